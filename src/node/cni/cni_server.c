/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cni/cni_server.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/loop/sock.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("cni");

#define MAX_CALLS 512
#define TRANSFER_MS 10000 /* Time limit for sending a request, and for taking an answer. */
#define READ_SIZE 8192

struct cni_server_call {
    struct list node;
    struct cni_server *server;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    struct strbuf buf; /* The received part of the request; then the rest of the answer. */
    int netns_fd;
    bool taken; /* The handler has the request and will answer. */
};

struct cni_server {
    struct loop *loop;
    char *path;
    int fd;
    struct loop_fd *watch;
    cni_server_fn *fn;
    void *ctx;
    struct list calls;
    size_t n_calls;
};

static void call_free(struct cni_server_call *c)
{
    loop_fd_free(c->watch);
    loop_timer_free(c->timer);
    fd_close(c->fd);
    fd_close(c->netns_fd);
    strbuf_done(&c->buf);
    list_remove(&c->node);
    c->server->n_calls--;
    free(c);
}

static void call_timeout(void *ctx)
{
    call_free(ctx);
}

/* Writes the rest of the answer; ends the call when all is sent or the peer is gone. */
static void call_flush(struct cni_server_call *c)
{
    while (c->buf.size > 0) {
        ssize_t n = send(c->fd, c->buf.data, c->buf.size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            loop_fd_set(c->watch, LOOP_WRITE);
            loop_timer_arm(c->timer, TRANSFER_MS);
            return;
        }
        if (n < 0) {
            log_debug("peer gone before its answer", "error=\"%s\"", strerror(errno));
            break;
        }
        strbuf_consume(&c->buf, (size_t) n);
    }
    call_free(c);
}

void cni_server_answer(struct cni_server_call *c, const char *text, size_t size)
{
    c->taken = false;
    strbuf_reset(&c->buf);
    c->buf.max = SIZE_MAX / 4;
    strbuf_add(&c->buf, text, size);
    call_flush(c);
}

static void answer_error(struct cni_server_call *c, const struct cni_error *e)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "request refused", "code=%d text=\"%s: %s\"", (int) e->code,
                e->msg, e->details);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    strbuf_adds(&out, "1 ");
    cni_error_write(e, &out);
    strbuf_addc(&out, '\n');
    cni_server_answer(c, out.data, out.size);
}

/* Keeps the first descriptor that a message carries, and closes others. */
static void take_fds(struct cni_server_call *c, struct msghdr *m)
{
    for (struct cmsghdr *cm = CMSG_FIRSTHDR(m); cm; cm = CMSG_NXTHDR(m, cm)) {
        if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(cm) + i * sizeof fd, sizeof fd);
            if (c->netns_fd < 0) {
                c->netns_fd = fd;
            } else {
                fd_close(fd);
            }
        }
    }
}

/* Appends what can be read: bytes, 0 at the end of the stream, negative errno. */
static ssize_t call_receive(struct cni_server_call *c)
{
    char *p = strbuf_reserve(&c->buf, READ_SIZE);
    if (!p) {
        return -EMSGSIZE;
    }
    struct iovec iov = {.iov_base = p, .iov_len = READ_SIZE};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.buf,
                       .msg_controllen = sizeof control.buf};
    ssize_t n;
    do {
        n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return -errno;
    }
    take_fds(c, &m);
    c->buf.size += (size_t) n;
    p[n] = '\0';
    return n;
}

static void call_complete(struct cni_server_call *c, size_t size)
{
    struct cni_request r = {0};
    struct cni_error e = {0};
    loop_fd_set(c->watch, 0);
    loop_timer_disarm(c->timer);
    if (cni_request_parse(c->buf.data, size, &r, &e) < 0) {
        answer_error(c, &e);
        return;
    }
    c->taken = true;
    c->server->fn(c->server->ctx, c, &r, fd_take(&c->netns_fd));
}

static void call_event(void *ctx, unsigned events)
{
    struct cni_server_call *c = ctx;
    if (events & LOOP_WRITE) {
        call_flush(c);
        return;
    }
    size_t before = c->buf.size;
    ssize_t n = call_receive(c);
    if (n == -EAGAIN) {
        return;
    }
    if (n == -EMSGSIZE) {
        struct cni_error e = {.version = CNI_1_1_0};
        cni_fail(&e, CNI_DECODE_FAILURE, "cannot read the request", "request: more than %u bytes",
                 CNI_MAX_INPUT);
        answer_error(c, &e);
        return;
    }
    if (n <= 0) {
        call_free(c);
        return;
    }
    const char *eol = memchr(c->buf.data + before, '\n', c->buf.size - before);
    if (eol) {
        call_complete(c, (size_t) (eol - c->buf.data));
    }
}

static void nothing(void *ctx)
{
}

/* Most of a request's time is a worker that makes a link.  An idle processor needs a tenth of a
 * millisecond to wake up, so wake a worker while the request is still being received. */
static void wake_a_worker(struct cni_server *s)
{
    loop_work(s->loop, nothing, nothing, NULL);
}

static void server_event(void *ctx, unsigned events)
{
    struct cni_server *s = ctx;
    static struct log_limit limit;
    for (;;) {
        CLEANUP(fd_close) int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            return;
        }
        unsigned uid = 1;
        if (sock_peer_uid(fd, &uid) < 0 || (uid != 0 && uid != geteuid())) {
            log_limited(&limit, LOG_WARN, "connection refused", "uid=%u", uid);
            continue;
        }
        if (s->n_calls >= MAX_CALLS) {
            log_limited(&limit, LOG_WARN, "too many requests at once", "max=%d", MAX_CALLS);
            continue;
        }
        struct cni_server_call *c = NEW(struct cni_server_call);
        c->server = s;
        c->netns_fd = -1;
        c->fd = fd_take(&fd);
        c->buf = STRBUF_INIT_MAX(CNI_MAX_INPUT + READ_SIZE);
        c->watch = loop_fd_new(s->loop, c->fd, LOOP_READ, call_event, c);
        c->timer = loop_timer_new(s->loop, call_timeout, c);
        loop_timer_arm(c->timer, TRANSFER_MS);
        list_push_back(&s->calls, &c->node);
        if (s->n_calls++ == 0) {
            wake_a_worker(s);
        }
    }
}

int cni_server_new(struct loop *l, const char *path, cni_server_fn *fn, void *ctx,
                   struct cni_server **ret, struct err *e)
{
    int fd;
    int r = sock_listen_unix(path, 0600, &fd, e);
    if (r < 0) {
        return r;
    }
    struct cni_server *s = NEW(struct cni_server);
    s->loop = l;
    s->path = xstrdup(path);
    s->fd = fd;
    s->fn = fn;
    s->ctx = ctx;
    list_init(&s->calls);
    s->watch = loop_fd_new(l, fd, LOOP_READ, server_event, s);
    *ret = s;
    return 0;
}

void cni_server_close(struct cni_server *s)
{
    if (s->fd >= 0) {
        unlink(s->path);
        s->watch = loop_fd_free(s->watch);
        s->fd = fd_close(s->fd);
    }
}

struct cni_server *cni_server_free(struct cni_server *s)
{
    if (s) {
        cni_server_close(s);
        struct cni_server_call *c;
        LIST_FOREACH (c, struct cni_server_call, node, &s->calls) {
            assert(!c->taken);
            call_free(c);
        }
        free(s->path);
        free(s);
    }
    return NULL;
}
