/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/unixctl.h"

#include "base/mem.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "wire/ovsdb.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 5000
#define ANSWER_MAX (4u << 20)
#define READ_SIZE 65536

struct unixctl_call {
    struct loop *loop;
    int fd;
    struct loop_fd *watch;
    /* The time limit; the timer also reports an immediate failure. */
    struct loop_timer *timer;
    struct strbuf in, out;
    size_t sent;
    struct ovsdb_framer framer;
    struct err failure;
    unixctl_fn *done;
    void *ctx;
};

static void call_end(struct unixctl_call *c, int error, const char *text)
{
    c->done(c->ctx, error, text);
    loop_fd_free(c->watch);
    loop_timer_free(c->timer);
    fd_close(c->fd);
    strbuf_done(&c->in);
    strbuf_done(&c->out);
    free(c);
}

static void on_timer(void *ctx)
{
    struct unixctl_call *c = ctx;
    if (c->failure.code) {
        call_end(c, c->failure.code, c->failure.text);
    } else {
        call_end(c, -ETIMEDOUT, "ovs-vswitchd does not answer");
    }
}

static void on_answer(struct unixctl_call *c, size_t size)
{
    struct ovsdb_msg m = {0};
    struct err e = {0};
    if (ovsdb_msg_parse(c->in.data, size, &m, &e) < 0 || m.kind != OVSDB_REPLY) {
        call_end(c, -EBADMSG, e.code ? e.text : "ovs-vswitchd sent no reply");
    } else if (m.error) {
        const char *text = json_get_string(m.error);
        CLEANUP_FREE char *line = xstrdup(text ? text : "ovs-vswitchd refuses");
        line[strcspn(line, "\n")] = '\0';
        call_end(c, -EINVAL, line);
    } else {
        const char *text = json_get_string(m.result);
        call_end(c, text ? 0 : -EBADMSG, text ? text : "ovs-vswitchd sent no text");
    }
    ovsdb_msg_done(&m);
}

static void on_readable(struct unixctl_call *c)
{
    char *p = strbuf_reserve(&c->in, READ_SIZE);
    ssize_t n = p ? read(c->fd, p, READ_SIZE) : -1;
    if (p && n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        call_end(c, p ? -EIO : -EMSGSIZE,
                 p ? "ovs-vswitchd closed its control socket"
                   : "ovs-vswitchd's answer is too long");
        return;
    }
    c->in.size += (size_t) n;
    struct err e = {0};
    size_t size = 0;
    int r = ovsdb_frame(&c->framer, c->in.data, c->in.size, &size, &e);
    if (r == 0) {
        on_answer(c, size);
    } else if (r != -EAGAIN) {
        call_end(c, r, e.text);
    }
}

static void on_event(void *ctx, unsigned events)
{
    struct unixctl_call *c = ctx;
    if (events & LOOP_WRITE) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.size - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            call_end(c, -errno, "ovs-vswitchd closed its control socket");
            return;
        }
        c->sent += n > 0 ? (size_t) n : 0;
        if (c->sent == c->out.size) {
            loop_fd_set(c->watch, LOOP_READ);
        }
    }
    if (events & LOOP_READ) {
        on_readable(c);
    }
}

/* The socket's name is "RUNDIR/ovs-vswitchd.PID.ctl" (ovs-appctl(8)). */
static int find_socket(const char *rundir, char **ret, struct err *e)
{
    CLEANUP_FREE char *pid_path = xasprintf("%s/ovs-vswitchd.pid", rundir);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = file_read(pid_path, 64, &text, e);
    if (r < 0) {
        return err_prefix(e, "find ovs-vswitchd's control socket");
    }
    uint64_t pid;
    CLEANUP_FREE char *number = xstrdup(strbuf_cstr(&text));
    number[strcspn(number, "\n")] = '\0';
    if (str_to_u64(number, INT32_MAX, &pid) < 0) {
        return err_set(e, -EINVAL, "%s: holds no process id", pid_path);
    }
    *ret = xasprintf("%s/ovs-vswitchd.%llu.ctl", rundir, (unsigned long long) pid);
    return 0;
}

static void put_request(struct strbuf *out, const char *method, const char *const *args)
{
    CLEANUP(json_free) struct json *request = json_object();
    json_set_string(request, "method", method);
    struct json *params = json_ensure_array(request, "params");
    for (; *args; args++) {
        json_append(params, json_string(*args));
    }
    json_set_int(request, "id", 0);
    json_write(request, 0, out);
}

struct unixctl_call *unixctl_call(struct loop *l, const char *rundir, const char *method,
                                  const char *const *args, unixctl_fn *done, void *ctx)
{
    struct unixctl_call *c = NEW(struct unixctl_call);
    CLEANUP_FREE char *path = NULL;
    c->loop = l;
    c->fd = -1;
    c->in = STRBUF_INIT_MAX(ANSWER_MAX);
    c->out = STRBUF_INIT;
    c->done = done;
    c->ctx = ctx;
    c->timer = loop_timer_new(l, on_timer, c);
    put_request(&c->out, method, args);
    if (find_socket(rundir, &path, &c->failure) < 0 ||
        sock_connect_unix(path, &c->fd, &c->failure) < 0) {
        loop_timer_arm(c->timer, 0);
        return c;
    }
    c->watch = loop_fd_new(l, c->fd, LOOP_WRITE, on_event, c);
    loop_timer_arm(c->timer, ANSWER_MS);
    return c;
}

void unixctl_cancel(struct unixctl_call *c)
{
    call_end(c, -ECANCELED, "the agent is stopping");
}
