/* SPDX-License-Identifier: Apache-2.0 */
/* The reports to the service manager's watchdog. */
#include "net/loop/notify.h"
#include "net/loop/watchdog.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* A socket as the manager has it: of an abstract name that the kernel chooses. */
static int manager_new(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    assert_int_equal(bind(fd, (struct sockaddr *) &sa, sizeof sa.sun_family), 0);
    socklen_t n = sizeof sa;
    assert_int_equal(getsockname(fd, (struct sockaddr *) &sa, &n), 0);
    char name[sizeof sa.sun_path + 1];
    snprintf(name, sizeof name, "@%.*s", (int) (n - sizeof sa.sun_family - 1), sa.sun_path + 1);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

struct reports {
    int fd, n;
    bool enough;
};

static void count(void *ctx, unsigned events)
{
    struct reports *r = ctx;
    char text[64];
    ssize_t n;
    while ((n = recv(r->fd, text, sizeof text - 1, 0)) > 0) {
        text[n] = '\0';
        assert_string_equal(text, "WATCHDOG=1");
        r->n++;
    }
    r->enough = r->n >= 3;
}

static void a_loop_that_runs_is_reported_again_and_again(void **state)
{
    struct reports r = {.fd = manager_new()};
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int) getpid());
    setenv("WATCHDOG_PID", pid, 1);
    setenv("WATCHDOG_USEC", "20000", 1);
    struct loop *l = loop_new();
    struct loop_fd *w = loop_fd_new(l, r.fd, LOOP_READ, count, &r);
    struct watchdog *dog = watchdog_new(l);
    assert_non_null(dog);
    assert_int_equal(loop_run_until(l, &r.enough, 10000), 0);
    assert_null(watchdog_free(dog));
    loop_fd_free(w);
    loop_free(l);
    close(r.fd);
}

static void nothing_is_reported_that_was_not_asked_for(void **state)
{
    static const struct {
        const char *usec, *pid;
    } rows[] = {{NULL, NULL},   {"", NULL},      {"soon", NULL},
                {"-1", NULL},   {"0", NULL},     {"1", NULL},
                {"20000", "1"}, {"20000", "me"}, {"99999999999999999999", NULL}};
    int fd = manager_new();
    struct loop *l = loop_new();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
        if (rows[i].usec) {
            setenv("WATCHDOG_USEC", rows[i].usec, 1);
        }
        if (rows[i].pid) {
            setenv("WATCHDOG_PID", rows[i].pid, 1);
        }
        assert_null(watchdog_new(l));
    }
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_null(watchdog_free(NULL));
    loop_free(l);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_runs_is_reported_again_and_again),
        cmocka_unit_test(nothing_is_reported_that_was_not_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
