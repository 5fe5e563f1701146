/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/duplex.h"

#include "base/mem.h"
#include "base/str.h"

#include <sys/socket.h>

#define READ_SIZE 65536
#define READS_AT_ONCE 4
#define WRITES_AT_ONCE 32
/* Sent bytes at the start of the queue that are worth moving the rest. */
#define COMPACT_SIZE 131072

static_assert(READ_SIZE >= TLS_RECORD_SIZE, "a whole record fits");

struct duplex {
    struct loop *loop;
    int fd;
    struct tls *tls; /* NULL: plain. */
    struct loop_fd *watch;
    struct loop_task task;
    const struct duplex_ops *ops; /* NULL: not started. */
    void *ctx;
    struct strbuf early, out;
    size_t sent;                     /* Bytes of 'out' that were sent. */
    bool paused, eof, ending, ended; /* eof: the peer has ended; ended: so have we. */
    int error;                       /* Of duplex_break or of the socket; 0: none. */
    struct err why;
    bool reported; /* 'failed' was called. */
    bool *gone;    /* Set when it is freed during a callback. */
    loop_fn *on_free;
    void *on_free_ctx;
};

static void watch(struct duplex *d)
{
    unsigned events = 0;
    if (d->ops && !d->paused && !d->eof && !d->error) {
        events |= LOOP_READ;
    }
    if (d->out.size > d->sent && !d->error) {
        events |= LOOP_WRITE;
    }
    loop_fd_set(d->watch, d->tls ? tls_watch(d->tls, events) : events);
}

static void fail(struct duplex *d, int error)
{
    d->error = d->error ? d->error : error;
    loop_task_queue(&d->task);
}

/* ---- sending ---- */

static ssize_t send_some(struct duplex *d)
{
    const char *p = d->out.data + d->sent;
    size_t size = d->out.size - d->sent;
    if (d->tls) {
        return tls_write(d->tls, p, MIN(size, (size_t) TLS_RECORD_SIZE), &d->why);
    }
    ssize_t n = send(d->fd, p, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

static void compact(struct duplex *d)
{
    if (d->sent == d->out.size) {
        strbuf_done(&d->out);
        d->sent = 0;
    } else if (d->sent >= COMPACT_SIZE) {
        strbuf_consume(&d->out, d->sent);
        d->sent = 0;
    }
}

/* Sends what the socket takes; true: something was sent. */
static bool flush(struct duplex *d)
{
    bool progress = false;
    for (int i = 0; i < WRITES_AT_ONCE && d->sent < d->out.size && !d->error; i++) {
        ssize_t n = send_some(d);
        if (n == -EAGAIN) {
            break;
        }
        if (n < 0) {
            fail(d, (int) n);
            break;
        }
        d->sent += (size_t) n;
        progress = true;
    }
    compact(d);
    if (d->ending && !d->ended && !d->out.size && !d->error) {
        d->ended = true;
        if (d->tls) {
            tls_shutdown(d->tls);
        }
        shutdown(d->fd, SHUT_WR);
        progress = true;
    }
    return progress;
}

/* ---- callbacks: each returns false when it freed 'd' ---- */

static bool begin_call(struct duplex *d, bool *gone)
{
    *gone = false;
    d->gone = gone;
    return true;
}

static bool end_call(struct duplex *d, const bool *gone)
{
    if (*gone) {
        return false;
    }
    d->gone = NULL;
    return true;
}

static bool give(struct duplex *d, const char *p, size_t size)
{
    bool gone;
    begin_call(d, &gone);
    d->ops->data(d->ctx, p, size);
    return end_call(d, &gone);
}

static bool give_eof(struct duplex *d)
{
    bool gone;
    d->eof = true;
    begin_call(d, &gone);
    d->ops->eof(d->ctx);
    return end_call(d, &gone);
}

static bool give_drained(struct duplex *d)
{
    bool gone;
    if (!d->ops || !d->ops->drained || duplex_queued(d) > DUPLEX_LOW) {
        return true;
    }
    begin_call(d, &gone);
    d->ops->drained(d->ctx);
    return end_call(d, &gone);
}

static void give_failure(struct duplex *d)
{
    if (d->ops && !d->reported) {
        d->reported = true;
        d->ops->failed(d->ctx, d->error, *d->why.text ? d->why.text : strerror(-d->error));
    }
}

static bool give_early(struct duplex *d)
{
    if (!d->ops || d->paused || !d->early.size || d->error) {
        return true;
    }
    CLEANUP_STRBUF struct strbuf early = d->early;
    d->early = STRBUF_INIT;
    return give(d, early.data, early.size);
}

/* ---- reading ---- */

static ssize_t receive(struct duplex *d, char *buf, size_t size)
{
    if (d->tls) {
        return tls_read(d->tls, buf, size, &d->why);
    }
    ssize_t n = recv(d->fd, buf, size, MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

static bool read_some(struct duplex *d)
{
    char buf[READ_SIZE];
    for (int i = 0; i < READS_AT_ONCE && !d->paused && !d->eof && !d->error; i++) {
        ssize_t n = receive(d, buf, sizeof buf);
        if (n == -EAGAIN) {
            return true;
        }
        if (n < 0) {
            fail(d, (int) n);
            return true;
        }
        if (n == 0) {
            return give_eof(d);
        }
        if (!give(d, buf, (size_t) n)) {
            return false;
        }
    }
    return true;
}

static void run(void *ctx)
{
    struct duplex *d = ctx;
    if (!give_early(d) || (flush(d) && !give_drained(d))) {
        return;
    }
    watch(d);
    if (d->error) {
        give_failure(d);
    }
}

static void ready(void *ctx, unsigned events)
{
    struct duplex *d = ctx;
    if (d->tls) {
        events = tls_ready(d->tls, events);
    }
    if ((events & LOOP_WRITE) && flush(d) && !give_drained(d)) {
        return;
    }
    if ((events & LOOP_READ) && d->ops && !read_some(d)) {
        return;
    }
    watch(d);
}

/* ---- the interface ---- */

struct duplex *duplex_new(struct loop *l, int fd, struct tls *tls, const void *early, size_t size)
{
    struct duplex *d = NEW(struct duplex);
    d->loop = l;
    d->fd = fd;
    d->tls = tls;
    d->early = d->out = STRBUF_INIT;
    if (size) {
        strbuf_add(&d->early, early, size);
    }
    loop_task_init(&d->task, l, run, d);
    d->watch = loop_fd_new(l, fd, 0, ready, d);
    return d;
}

void duplex_start(struct duplex *d, const struct duplex_ops *ops, void *ctx)
{
    d->ops = ops;
    d->ctx = ctx;
    loop_task_queue(&d->task);
}

void duplex_write(struct duplex *d, const void *p, size_t size)
{
    if (size && !d->ending && !d->error) {
        strbuf_add(&d->out, p, size);
        loop_task_queue(&d->task);
    }
}

size_t duplex_queued(const struct duplex *d)
{
    return d->out.size - d->sent;
}

bool duplex_is_flushed(const struct duplex *d)
{
    return !duplex_queued(d) && (!d->ending || d->ended);
}

void duplex_pause(struct duplex *d, bool pause)
{
    if (d->paused != pause) {
        d->paused = pause;
        loop_task_queue(&d->task);
    }
}

void duplex_end(struct duplex *d)
{
    d->ending = true;
    loop_task_queue(&d->task);
}

void duplex_break(struct duplex *d, int error)
{
    fail(d, error);
}

void duplex_on_free(struct duplex *d, loop_fn *fn, void *ctx)
{
    d->on_free = fn;
    d->on_free_ctx = ctx;
}

struct duplex *duplex_free(struct duplex *d)
{
    if (!d) {
        return NULL;
    }
    if (d->gone) {
        *d->gone = true;
    }
    loop_task_cancel(&d->task);
    loop_fd_free(d->watch);
    if (d->tls && !d->ended) {
        tls_shutdown(d->tls);
    }
    tls_free(d->tls);
    fd_close(d->fd);
    strbuf_done(&d->early);
    strbuf_done(&d->out);
    if (d->on_free) {
        d->on_free(d->on_free_ctx);
    }
    free(d);
    return NULL;
}
