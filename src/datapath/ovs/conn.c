/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/conn.h"

#include "base/mem.h"
#include "base/reconnect.h"
#include "base/timeutil.h"
#include "net/loop/sock.h"

#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MIN_MS 20
#define RETRY_MAX_MS 200
#define PROBE_MS 5000
#define DEAD_MS 10000
#define READ_SIZE (64u << 10)
/* Bytes read in one turn of the loop; then other sources have a turn. */
#define READS_AT_ONCE 16
#define KEEP_SIZE (64u << 10) /* A larger buffer is freed once it is empty. */

struct conn {
    struct loop *loop;
    char *path;
    const struct conn_ops *ops;
    void *ctx;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *retry; /* While the connection is open, the timer also sends probes. */
    struct loop_task flush;
    struct strbuf in, out;
    struct reconnect reconnect;
};

static void on_timer(void *ctx);
static void on_ready(void *ctx, unsigned events);
static void on_flush(void *ctx);

struct conn *conn_new(struct loop *l, const char *path, size_t max_in, size_t max_out,
                      const struct conn_ops *ops, void *ctx)
{
    struct conn *c = NEW(struct conn);
    c->loop = l;
    c->path = xstrdup(path);
    c->ops = ops;
    c->ctx = ctx;
    c->fd = -1;
    c->reconnect = (struct reconnect){.backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS),
                                      .probe_ms = PROBE_MS,
                                      .dead_ms = DEAD_MS};
    c->retry = loop_timer_new(l, on_timer, c);
    loop_task_init(&c->flush, l, on_flush, c);
    c->in = STRBUF_INIT_MAX(max_in);
    c->out = STRBUF_INIT_MAX(max_out);
    return c;
}

static void disconnect(struct conn *c)
{
    c->watch = loop_fd_free(c->watch);
    c->fd = fd_close(c->fd);
    loop_task_cancel(&c->flush);
    strbuf_done(&c->in);
    strbuf_done(&c->out);
    c->in.failed = c->out.failed = false;
}

struct conn *conn_free(struct conn *c)
{
    if (c) {
        disconnect(c);
        loop_timer_free(c->retry);
        free(c->path);
        free(c);
    }
    return NULL;
}

void conn_reset(struct conn *c, const char *reason)
{
    disconnect(c);
    uint32_t seed = (uint32_t) time_mono_ns();
    loop_timer_arm(c->retry, reconnect_closed(&c->reconnect, loop_now_ms(c->loop), seed));
    c->ops->closed(c->ctx, reason);
}

static void try_connect(struct conn *c)
{
    struct err e = {0};
    if (sock_connect_unix(c->path, &c->fd, &e) < 0) {
        conn_reset(c, e.text);
        return;
    }
    c->watch = loop_fd_new(c->loop, c->fd, LOOP_READ, on_ready, c);
    reconnect_opened(&c->reconnect, loop_now_ms(c->loop));
    loop_timer_arm(c->retry, PROBE_MS);
    c->ops->opened(c->ctx);
}

static void on_timer(void *ctx)
{
    struct conn *c = ctx;
    uint64_t wait;
    switch (reconnect_run(&c->reconnect, loop_now_ms(c->loop), &wait)) {
    case RECONNECT_CONNECT:
        try_connect(c);
        return;
    case RECONNECT_CLOSE:
        conn_reset(c, "no answer to a probe");
        return;
    case RECONNECT_PROBE:
        c->ops->probe(c->ctx);
        break;
    default:
        break;
    }
    loop_timer_arm(c->retry, wait);
}

void conn_start(struct conn *c)
{
    loop_timer_arm(c->retry, 0);
}

void conn_kick(struct conn *c)
{
    if (c->fd < 0) {
        backoff_reset(&c->reconnect.backoff);
        loop_timer_arm(c->retry, 0);
    }
}

bool conn_is_open(const struct conn *c)
{
    return c->fd >= 0;
}

struct strbuf *conn_out(struct conn *c)
{
    loop_task_queue(&c->flush);
    return &c->out;
}

static void on_flush(void *ctx)
{
    struct conn *c = ctx;
    size_t sent = 0;
    if (c->out.failed) {
        conn_reset(c, "too much is waiting to be sent");
        return;
    }
    while (sent < c->out.size) {
        ssize_t n = send(c->fd, c->out.data + sent, c->out.size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno != EAGAIN) {
            conn_reset(c, strerror(errno));
            return;
        }
        if (n < 0) {
            break;
        }
        sent += (size_t) n;
    }
    strbuf_consume(&c->out, sent);
    if (!c->out.size && c->ops->drained) {
        c->ops->drained(c->ctx);
    }
    if (!c->out.size && c->out.cap > KEEP_SIZE) {
        strbuf_done(&c->out);
    }
    loop_fd_set(c->watch, c->out.size ? LOOP_READ | LOOP_WRITE : LOOP_READ);
}

/* Passes the buffered bytes to the user.  Returns false if the connection is closed. */
static bool dispatch(struct conn *c)
{
    struct err e = {0};
    size_t used = 0;
    if (c->ops->received(c->ctx, c->in.data, c->in.size, &used, &e) < 0) {
        conn_reset(c, e.text);
        return false;
    }
    if (c->fd < 0) {
        return false; /* The user called conn_reset. */
    }
    strbuf_consume(&c->in, used);
    if (!c->in.size && c->in.cap > KEEP_SIZE + READ_SIZE) {
        strbuf_done(&c->in);
    }
    return true;
}

static void on_ready(void *ctx, unsigned events)
{
    struct conn *c = ctx;
    if (events & LOOP_WRITE) {
        loop_task_queue(&c->flush);
    }
    if (!(events & LOOP_READ)) {
        return;
    }
    for (int i = 0; i < READS_AT_ONCE; i++) {
        char *p = strbuf_reserve(&c->in, READ_SIZE);
        if (!p) {
            conn_reset(c, "message too long");
            return;
        }
        ssize_t n = read(c->fd, p, READ_SIZE);
        if (n < 0) {
            if (errno == EAGAIN) {
                return;
            }
            if (errno == EINTR) {
                continue;
            }
            conn_reset(c, strerror(errno));
            return;
        }
        if (n == 0) {
            conn_reset(c, "closed by Open vSwitch");
            return;
        }
        c->in.size += (size_t) n;
        reconnect_received(&c->reconnect, loop_now_ms(c->loop));
        if (!dispatch(c) || (size_t) n < READ_SIZE) {
            return;
        }
    }
}
