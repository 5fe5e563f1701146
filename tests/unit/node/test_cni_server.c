/* SPDX-License-Identifier: Apache-2.0 */
/* The socket by which the CNI program reaches the agent, and the configuration that names it. */
#include "node/cni/cni_server.h"

#include "base/log.h"
#include "base/mem.h"
#include "node/cni/cni_conf.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

static struct loop *loop;

static int setup(void **state)
{
    log_set_levels("error", NULL);
    loop = loop_new();
    return 0;
}

static int teardown(void **state)
{
    loop_free(loop);
    return 0;
}

struct serving {
    struct cni_server *server;
    char dir[64], path[96];
    int fd_seen;
    unsigned requests;
};

static void on_request(void *ctx, struct cni_server_call *call, struct cni_request *r, int netns_fd)
{
    struct serving *s = ctx;
    s->requests++;
    s->fd_seen = netns_fd >= 0;
    fd_close(netns_fd);
    CLEANUP_FREE char *line = xasprintf("0 {\"id\":\"%s\"}\n", r->container_id);
    cni_request_done(r);
    cni_server_answer(call, line, strlen(line));
}

static int connect_to(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &sa, sizeof sa), 0);
    return fd;
}

struct reading {
    int fd;
    struct strbuf got;
    bool ended;
};

static void on_readable(void *ctx, unsigned events)
{
    struct reading *r = ctx;
    char buf[4096];
    ssize_t n = recv(r->fd, buf, sizeof buf, MSG_DONTWAIT);
    if (n > 0) {
        strbuf_add(&r->got, buf, (size_t) n);
    } else if (n == 0 || errno != EAGAIN) {
        r->ended = true;
    }
}

/* Sends 'parts' one after the other (with 'fd' at the first) and returns the answer. */
static char *talk(struct serving *s, const char *const *parts, int pass)
{
    struct reading r = {.fd = connect_to(s->path), .got = STRBUF_INIT};
    bool never = false;
    for (size_t i = 0; parts[i]; i++) {
        struct iovec iov = {.iov_base = (void *) (uintptr_t) parts[i], .iov_len = strlen(parts[i])};
        union {
            struct cmsghdr align;
            char buf[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        if (i == 0 && pass >= 0) {
            m.msg_control = control.buf;
            m.msg_controllen = sizeof control.buf;
            struct cmsghdr *c = CMSG_FIRSTHDR(&m);
            c->cmsg_level = SOL_SOCKET;
            c->cmsg_type = SCM_RIGHTS;
            c->cmsg_len = CMSG_LEN(sizeof(int));
            memcpy(CMSG_DATA(c), &pass, sizeof pass);
        }
        assert_int_equal(sendmsg(r.fd, &m, MSG_NOSIGNAL), (int) strlen(parts[i]));
        loop_run_until(loop, &never, 2);
    }
    struct loop_fd *w = loop_fd_new(loop, r.fd, LOOP_READ, on_readable, &r);
    assert_int_equal(loop_run_until(loop, &r.ended, 10000), 0);
    loop_fd_free(w);
    close(r.fd);
    return strbuf_steal(&r.got);
}

#define GOOD                                                            \
    "{\"command\":\"ADD\",\"containerID\":\"abc\",\"ifname\":\"eth0\"," \
    "\"netns\":\"/n\",\"podNamespace\":\"red\",\"podName\":\"web\","    \
    "\"config\":{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"t\"}}"

static void the_socket_takes_a_line_with_a_descriptor(void **state)
{
    struct serving s = {.dir = "/tmp/tenet-cnitest-XXXXXX"};
    struct err e = {0};
    assert_non_null(mkdtemp(s.dir));
    snprintf(s.path, sizeof s.path, "%s/cni.sock", s.dir);
    assert_int_equal(cni_server_new(loop, s.path, on_request, &s, &s.server, &e), 0);

    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char *text = talk(&s, (const char *const[]){GOOD, "\n", NULL}, null);
    assert_string_equal(text, "0 {\"id\":\"abc\"}\n");
    assert_true(s.fd_seen);
    free(text);
    text = talk(&s, (const char *const[]){"{\"command\":\"ADD\"}\n", NULL}, -1);
    assert_true(str_has_prefix(text, "1 {\"cniVersion\""));
    free(text);
    text = talk(&s, (const char *const[]){"nonsense\n", NULL}, -1);
    assert_non_null(strstr(text, "\"code\":6"));
    free(text);
    assert_int_equal(s.requests, 1);

    /* A peer that goes away in the middle leaves nothing. */
    int fd = connect_to(s.path);
    assert_int_equal(send(fd, "{", 1, 0), 1);
    bool never = false;
    loop_run_until(loop, &never, 5);
    close(fd);
    loop_run_until(loop, &never, 5);

    cni_server_close(s.server);
    assert_int_equal(access(s.path, F_OK), -1);
    cni_server_free(s.server);
    close(null);
    rmdir(s.dir);
}

static bool leaves_errno; /* recvmsg succeeds, and errno is what an interruption left. */

/* In place of libc's. */
ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    ssize_t n = syscall(SYS_recvmsg, fd, m, flags);
    if (n >= 0 && leaves_errno) {
        errno = EINTR;
    }
    return n;
}

static void a_request_is_read_once_whatever_errno_was_before(void **state)
{
    struct serving s = {.dir = "/tmp/tenet-cnitest-XXXXXX"};
    struct err e = {0};
    assert_non_null(mkdtemp(s.dir));
    snprintf(s.path, sizeof s.path, "%s/cni.sock", s.dir);
    assert_int_equal(cni_server_new(loop, s.path, on_request, &s, &s.server, &e), 0);
    leaves_errno = true;
    char *text = talk(&s, (const char *const[]){GOOD, "\n", NULL}, -1);
    leaves_errno = false;
    assert_string_equal(text, "0 {\"id\":\"abc\"}\n");
    free(text);
    cni_server_free(s.server);
    rmdir(s.dir);
}

/* What another user's process reads from the socket, to which it sends a request: the number of
 * bytes, or that it could not connect. */
static int ask_as_nobody(const char *path, const char *line)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (setgid(65534) < 0 || setuid(65534) < 0) {
            _exit(100);
        }
        if (connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0) {
            _exit(errno == EACCES ? 101 : 102);
        }
        char byte;
        send(fd, line, strlen(line), MSG_NOSIGNAL);
        _exit(recv(fd, &byte, 1, 0) > 0);
    }
    int status = 0;
    bool never = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        loop_run_until(loop, &never, 1);
    }
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_socket_is_roots_by_its_mode_and_by_who_connects(void **state)
{
    NEEDS_ROOT();
    struct serving s = {.dir = "/tmp/tenet-cnitest-XXXXXX"};
    struct err e = {0};
    struct stat st;
    assert_non_null(mkdtemp(s.dir));
    snprintf(s.path, sizeof s.path, "%s/cni.sock", s.dir);
    mode_t before = umask(0);
    assert_int_equal(cni_server_new(loop, s.path, on_request, &s, &s.server, &e), 0);
    umask(before);
    assert_int_equal(stat(s.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(chmod(s.dir, 0755), 0);
    assert_int_equal(ask_as_nobody(s.path, GOOD "\n"), 101);
    /* Should somebody change its mode. */
    assert_int_equal(chmod(s.path, 0666), 0);
    assert_int_equal(ask_as_nobody(s.path, GOOD "\n"), 0);
    assert_int_equal(s.requests, 0);
    cni_server_free(s.server);
    rmdir(s.dir);
}

static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void the_socket_takes_so_many_calls_at_once(void **state)
{
    enum { LIMIT = 512, MORE = 8 };
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    rlim_t before = files.rlim_cur;
    files.rlim_cur = MIN(files.rlim_max, 4096);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    struct serving s = {.dir = "/tmp/tenet-cnitest-XXXXXX"};
    struct err e = {0};
    bool never = false;
    int fds[LIMIT + MORE];
    assert_non_null(mkdtemp(s.dir));
    snprintf(s.path, sizeof s.path, "%s/cni.sock", s.dir);
    assert_int_equal(cni_server_new(loop, s.path, on_request, &s, &s.server, &e), 0);
    for (size_t i = 0; i < LIMIT + MORE; i++) {
        fds[i] = connect_to(s.path);
        if (i % 64 == 0) {
            loop_run_until(loop, &never, 1);
        }
    }
    for (size_t i = LIMIT; i < LIMIT + MORE; i++) {
        for (unsigned tries = 0; tries < 1000 && !is_closed(fds[i]); tries++) {
            loop_run_until(loop, &never, 1);
        }
        assert_true(is_closed(fds[i]));
    }
    for (size_t i = 0; i < LIMIT; i++) {
        assert_false(is_closed(fds[i]));
    }
    /* There is room again when one has gone. */
    close(fds[0]);
    loop_run_until(loop, &never, 5);
    char *text = talk(&s, (const char *const[]){GOOD "\n", NULL}, -1);
    assert_string_equal(text, "0 {\"id\":\"abc\"}\n");
    free(text);
    for (size_t i = 1; i < LIMIT + MORE; i++) {
        close(fds[i]);
    }
    cni_server_free(s.server);
    rmdir(s.dir);
    files.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &files);
}

static void the_configuration_is_roots(void **state)
{
    char dir[] = "/tmp/tenet-cnitest-XXXXXX";
    assert_non_null(mkdtemp(dir));
    mode_t before = umask(0);
    for (int chained = 0; chained < 2; chained++) {
        struct cni_conf c = {
            .dir = dir, .name = "80-x.conf", .socket = "/run/x.sock", .portmap = chained};
        CLEANUP_FREE char *path = cni_conf_path(&c);
        struct err e = {0};
        struct stat st;
        assert_int_equal(cni_conf_write(&c, &e), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
        cni_conf_remove(&c);
    }
    umask(before);
    assert_int_equal(rmdir(dir), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_socket_takes_a_line_with_a_descriptor),
        T(a_request_is_read_once_whatever_errno_was_before),
        T(the_socket_is_roots_by_its_mode_and_by_who_connects),
        T(the_socket_takes_so_many_calls_at_once),
        T(the_configuration_is_roots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
