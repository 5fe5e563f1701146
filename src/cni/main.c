/* SPDX-License-Identifier: Apache-2.0 */
/* tenet-cni: the CNI plug-in that a container runtime executes.
 *
 * It reads and validates the request, hands it to the node's agent over a unix socket together with
 * the open network namespace, prints the agent's answer and exits. The agent does all work: this
 * program is static, small, and starts in a fraction of a millisecond.  See docs/cni.md. */
#include "base/mem.h"
#include "wire/cni.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Longer than all timeouts of the agent. */
#define ANSWER_TIMEOUT_S 60

#define AGENT "tenet node, the network process of this node, "
/* Reads 'fd' to its end, or to the end of a line if that suffices: waiting for the end after it
 * would cost another wait. At most 'max' bytes; -EFBIG when there are more. */
#define LOOK_AT "its log says why (journalctl -u tenet-node)"
static int read_all(int fd, size_t max, bool line, struct strbuf *out)
{
    for (;;) {
        char *p = strbuf_reserve(out, 16384);
        ssize_t n = read(fd, p, 16384);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : 0;
        }
        out->size += (size_t) n;
        if (out->size > max) {
            return -EFBIG;
        }
        if (line && out->data[out->size - 1] == '\n') {
            return 0;
        }
    }
}

static int write_all(int fd, const char *p, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        p += n;
        size -= (size_t) n;
    }
    return 0;
}

/* The kernel frees descriptors and memory at exit, faster than one by one. */
static _Noreturn void end(int status, const char *text, size_t size)
{
    _exit(write_all(STDOUT_FILENO, text, size) < 0 ? 1 : status);
}

static int read_input(struct strbuf *out, struct cni_error *e)
{
    int r = read_all(STDIN_FILENO, CNI_MAX_INPUT, false, out);
    if (r == -EFBIG) {
        return cni_fail(e, CNI_DECODE_FAILURE, "cannot read the network configuration",
                        "standard input: more than %u bytes", CNI_MAX_INPUT);
    }
    if (r < 0) {
        return cni_fail(e, CNI_IO_FAILURE, "cannot read the network configuration",
                        "standard input: %s", strerror(-r));
    }
    return 0;
}

/* Opened here, because the agent may be in another mount namespace. DEL continues without it. */
static int open_netns(const struct cni_request *r, int *ret_fd, struct cni_error *e)
{
    *ret_fd = -1;
    if (!r->netns) {
        return 0;
    }
    /* O_NONBLOCK: to open a pipe would otherwise wait for its writer. */
    CLEANUP(fd_close) int fd = open(r->netns, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET) {
        *ret_fd = fd_take(&fd);
        return 0;
    }
    if (r->command == CNI_DEL) {
        return 0;
    }
    if (fd >= 0) {
        return cni_fail(e, CNI_INVALID_ENVIRONMENT, "invalid environment variable",
                        "CNI_NETNS: %.400s is not a network namespace", r->netns);
    }
    if (errno == ENOENT) {
        return cni_fail(e, CNI_UNKNOWN_CONTAINER, "the container's network namespace is gone",
                        "CNI_NETNS: %.400s does not exist", r->netns);
    }
    return cni_fail(e, CNI_IO_FAILURE, "cannot open the container's network namespace",
                    "CNI_NETNS: %.400s: %s", r->netns, strerror(errno));
}

static int connect_agent(const char *path, enum cni_command command, int *ret_fd,
                         struct cni_error *e)
{
    CLEANUP(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return cni_fail(e, CNI_IO_FAILURE, "cannot make a socket", "%s", strerror(errno));
    }
    struct timeval t = {.tv_sec = ANSWER_TIMEOUT_S};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0) {
        if (errno == EACCES || errno == EPERM) {
            return cni_fail(e, CNI_IO_FAILURE,
                            "cannot reach tenet node, the network process of this node", "%s: %s",
                            path, strerror(errno));
        }
        return cni_fail(e, command == CNI_STATUS ? CNI_NOT_AVAILABLE : CNI_TRY_AGAIN,
                        AGENT "is not running", "%s: %s; " LOOK_AT, path, strerror(errno));
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

/* The first byte carries the descriptor. */
static int send_request(int fd, const struct strbuf *line, int netns)
{
    struct iovec iov = {.iov_base = line->data, .iov_len = line->size};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (netns >= 0) {
        m.msg_control = control.buf;
        m.msg_controllen = sizeof control.buf;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &netns, sizeof netns);
    }
    ssize_t n;
    do {
        n = sendmsg(fd, &m, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : write_all(fd, line->data + n, line->size - (size_t) n);
}

/* Sends the request to the agent, prints its answer, and exits with its status. */
static int ask_agent(const struct cni_request *r, struct cni_error *e)
{
    CLEANUP(fd_close) int netns = -1;
    CLEANUP(fd_close) int fd = -1;
    int err = open_netns(r, &netns, e);
    if (err == 0) {
        err = connect_agent(r->config.socket, r->command, &fd, e);
    }
    if (err < 0) {
        return err;
    }
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT, reply = STRBUF_INIT;
    cni_request_write(r, &line);
    strbuf_addc(&line, '\n');
    err = send_request(fd, &line, netns);
    if (err == 0) {
        err = read_all(fd, CNI_MAX_REPLY, true, &reply);
    }
    if (err == -EAGAIN) {
        return cni_fail(e, CNI_TRY_AGAIN, AGENT "does not answer",
                        "%s: no answer to %s in %d s; see its log", r->config.socket,
                        cni_command_name(r->command), ANSWER_TIMEOUT_S);
    }
    const char *text = strbuf_cstr(&reply);
    bool whole = reply.size >= 3 && (text[0] == '0' || text[0] == '1') && text[1] == ' ' &&
                 text[reply.size - 1] == '\n';
    if (err < 0 || !whole) {
        return cni_fail(e, CNI_TRY_AGAIN, AGENT "gave no answer", "%s: %s; " LOOK_AT,
                        r->config.socket, err < 0 ? strerror(-err) : "it closed the connection");
    }
    end(text[0] - '0', text + 2, reply.size > 3 ? reply.size - 2 : 0);
}

/* 'out' gets the output. */
static int run(struct strbuf *out, struct cni_error *e)
{
    struct cni_env env = {.command = getenv("CNI_COMMAND"),
                          .container_id = getenv("CNI_CONTAINERID"),
                          .netns = getenv("CNI_NETNS"),
                          .ifname = getenv("CNI_IFNAME"),
                          .args = getenv("CNI_ARGS")};
    enum cni_command command;
    CLEANUP_STRBUF struct strbuf input = STRBUF_INIT;
    int r = cni_command_parse(env.command, &command, e);
    if (r == 0) {
        r = read_input(&input, e);
    }
    if (r < 0) {
        return r;
    }
    if (command == CNI_VERSION) {
        r = cni_version_answer(strbuf_cstr(&input), input.size, out, e);
        return r < 0 ? r : strbuf_addc(out, '\n');
    }
    CLEANUP(cni_request_done) struct cni_request req = {0};
    r = cni_request_read(&env, strbuf_cstr(&input), input.size, &req, e);
    return r < 0 ? r : ask_agent(&req, e);
}

int main(int argc, char **argv)
{
    if (argc > 1 && streq(argv[1], "--version")) {
        static const char text[] = "tenet-cni " TENET_VERSION " (CNI 0.3.1, 0.4.0, 1.0.0, 1.1.0)\n";
        end(0, text, sizeof text - 1);
    }
    signal(SIGPIPE, SIG_IGN);
    struct cni_error e = {.version = CNI_1_1_0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int r = run(&out, &e);
    if (r < 0) {
        cni_error_write(&e, &out);
        strbuf_addc(&out, '\n');
    }
    end(r < 0, strbuf_cstr(&out), out.size);
}
