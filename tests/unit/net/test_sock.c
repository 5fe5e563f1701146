/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/tenet-ut-net-XXXXXX";

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return dir_remove(dir, NULL);
}

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    assert_int_equal(poll(&p, 1, 5000), 1);
}

static void tcp_listens_on_a_free_port_and_is_connected_to(void **state)
{
    struct err e = {0};
    CLEANUP(fd_close) int l = -1;
    CLEANUP(fd_close) int c = -1;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &l, &e), 0);
    int port = sock_local_port(l);
    assert_in_range(port, 1, 65535);
    assert_true(fcntl(l, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(l, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(sock_connect_tcp("localhost", (uint16_t) port, &c, &e), 0);
    wait_for(c, POLLOUT);
    assert_int_equal(sock_connect_result(c), 0);
}

static void refused_connection_is_told_by_the_result(void **state)
{
    struct err e = {0};
    CLEANUP(fd_close) int l = -1;
    CLEANUP(fd_close) int c = -1;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &l, &e), 0);
    int port = sock_local_port(l);
    l = fd_close(l);
    if (sock_connect_tcp("127.0.0.1", (uint16_t) port, &c, &e) == 0) {
        wait_for(c, POLLOUT);
        assert_int_equal(sock_connect_result(c), -ECONNREFUSED);
    }
}

static void taken_port_is_named(void **state)
{
    struct err e = {0};
    CLEANUP(fd_close) int l = -1;
    int other = -1;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &l, &e), 0);
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%d", sock_local_port(l));
    assert_int_equal(sock_listen_tcp(address, &other, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, address));
    assert_non_null(strstr(e.text, "taken"));
    assert_int_equal(other, -1);
}

static void wrong_addresses_are_refused(void **state)
{
    static const char *const bad[] = {
        "",    "127.0.0.1",    "127.0.0.1:", "127.0.0.1:65536", "1.2.3:80", "example.com:80",
        ":80", "127.0.0.1:8o", "1.2.3.4:-1"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        int fd = -1;
        assert_int_equal(sock_listen_tcp(bad[i], &fd, &e), -EINVAL);
        assert_non_null(strstr(e.text, bad[i]));
    }
    int fd = -1;
    struct err e = {0};
    assert_int_equal(sock_connect_tcp("example.com", 80, &fd, &e), -EINVAL);
}

static void unix_socket_has_its_mode_whatever_the_umask(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/mode.sock", dir);
    struct err e = {0};
    CLEANUP(fd_close) int l = -1;
    mode_t before = umask(077);
    assert_int_equal(sock_listen_unix(path, 0660, &l, &e), 0);
    umask(before);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    CLEANUP(fd_close) int c = -1;
    assert_int_equal(sock_connect_unix(path, &c, &e), 0);
    CLEANUP(fd_close) int a = accept(l, NULL, NULL);
    unsigned uid = ~0u;
    assert_int_equal(sock_peer_uid(a, &uid), 0);
    assert_int_equal(uid, geteuid());
}

static void unix_socket_of_a_dead_program_is_replaced_and_of_a_living_one_not(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/stale.sock", dir);
    struct err e = {0};
    int l = -1, second = -1;
    assert_int_equal(sock_listen_unix(path, 0600, &l, &e), 0);
    assert_int_equal(sock_listen_unix(path, 0600, &second, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, path));
    close(l); /* The file stays. */
    assert_int_equal(sock_listen_unix(path, 0600, &second, &e), 0);
    close(second);
}

static void unix_socket_replaces_no_other_file(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/file", dir);
    struct err e = {0};
    int l = -1;
    assert_int_equal(file_write_atomic(path, "x", 1, 0600, &e), 0);
    assert_int_equal(sock_listen_unix(path, 0600, &l, &e), -EEXIST);
    assert_int_equal(access(path, F_OK), 0);
}

static bool cannot_listen;

/* In place of libc's: fails when it is told to. */
int listen(int fd, int backlog)
{
    if (cannot_listen) {
        errno = EMFILE;
        return -1;
    }
    return (int) syscall(SYS_listen, fd, backlog);
}

static unsigned sockets_left = ~0u; /* How many calls of socket() succeed from now on. */

/* In place of libc's: fails when it is told to. */
int socket(int domain, int type, int protocol)
{
    if (sockets_left == 0) {
        errno = EMFILE;
        return -1;
    }
    sockets_left--;
    return (int) syscall(SYS_socket, domain, type, protocol);
}

static void a_socket_that_cannot_be_made_is_told(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/none.sock", dir);
    struct err e = {0};
    int l = -1;
    sockets_left = 0;
    assert_int_equal(sock_listen_unix(path, 0600, &l, &e), -EMFILE);
    sockets_left = ~0u;
    assert_non_null(strstr(e.text, path));
    assert_int_equal(l, -1);
}

static void a_unix_socket_that_cannot_listen_leaves_no_file(void **state)
{
    CLEANUP_FREE char *path = xasprintf("%s/deaf.sock", dir);
    struct err e = {0};
    int l = -1;
    cannot_listen = true;
    assert_int_equal(sock_listen_unix(path, 0600, &l, &e), -EMFILE);
    cannot_listen = false;
    assert_non_null(strstr(e.text, path));
    assert_int_equal(l, -1);
    assert_int_equal(access(path, F_OK), -1);
}

static void too_long_unix_path_is_refused(void **state)
{
    char path[200];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    struct err e = {0};
    int fd = -1;
    assert_int_equal(sock_listen_unix(path, 0600, &fd, &e), -ENAMETOOLONG);
    assert_int_equal(sock_connect_unix(path, &fd, &e), -ENAMETOOLONG);
    assert_int_equal(sock_connect_unix("/nonexistent/x.sock", &fd, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/x.sock"));
}

/* In a child of its own, as the descriptors have fixed numbers. */
static int activation_in_child(const char *pid, const char *n)
{
    pid_t child = fork();
    if (child == 0) {
        char self[16];
        snprintf(self, sizeof self, "%d", (int) getpid());
        int fd = open("/dev/null", O_RDONLY);
        for (int i = 3; i < 5; i++) {
            dup2(fd, i);
        }
        setenv("LISTEN_PID", pid ? pid : self, 1);
        setenv("LISTEN_FDS", n, 1);
        int got = sock_activation_fds();
        bool ok = !getenv("LISTEN_PID") && !getenv("LISTEN_FDS");
        for (int i = 3; i < 3 + got; i++) {
            ok = ok && (fcntl(i, F_GETFD) & FD_CLOEXEC) && (fcntl(i, F_GETFL) & O_NONBLOCK);
        }
        _exit(ok ? got : 99);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void activation_takes_descriptors_meant_for_this_process_only(void **state)
{
    assert_int_equal(activation_in_child(NULL, "2"), 2);
    assert_int_equal(activation_in_child(NULL, "0"), 0);
    assert_int_equal(activation_in_child("1", "2"), 0);
    assert_int_equal(activation_in_child(NULL, "many"), 0);
    assert_int_equal(sock_activation_fds(), 0);
}

static void a_passed_socket_is_recognized_by_its_address(void **state)
{
    int fd = -1;
    char address[32], other[32];
    struct err e = {0};
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    int port = sock_local_port(fd);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    snprintf(other, sizeof other, "127.0.0.2:%d", port);
    assert_true(sock_listens_at(fd, address));
    assert_false(sock_listens_at(fd, other));
    assert_false(sock_listens_at(fd, "127.0.0.1:1"));
    assert_false(sock_listens_at(fd, "nonsense"));
    fd_close(fd);
    int bound = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(bound, (struct sockaddr *) &sa, sizeof sa), 0);
    snprintf(address, sizeof address, "127.0.0.1:%d", sock_local_port(bound));
    assert_false(sock_listens_at(bound, address)); /* It does not listen. */
    close(bound);
    assert_false(sock_listens_at(-1, address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_listens_on_a_free_port_and_is_connected_to),
        cmocka_unit_test(refused_connection_is_told_by_the_result),
        cmocka_unit_test(taken_port_is_named),
        cmocka_unit_test(wrong_addresses_are_refused),
        cmocka_unit_test(unix_socket_has_its_mode_whatever_the_umask),
        cmocka_unit_test(unix_socket_of_a_dead_program_is_replaced_and_of_a_living_one_not),
        cmocka_unit_test(unix_socket_replaces_no_other_file),
        cmocka_unit_test(a_socket_that_cannot_be_made_is_told),
        cmocka_unit_test(a_unix_socket_that_cannot_listen_leaves_no_file),
        cmocka_unit_test(too_long_unix_path_is_refused),
        cmocka_unit_test(a_passed_socket_is_recognized_by_its_address),
        cmocka_unit_test(activation_takes_descriptors_meant_for_this_process_only),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
