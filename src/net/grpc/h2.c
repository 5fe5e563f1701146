/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/h2.h"

#include "base/list.h"
#include "base/mem.h"
#include "net/http/nghttp2_util.h"
#include "net/loop/sock.h"
#include "net/tls/tls.h"

#include <stdio.h>
#include <sys/socket.h>

#define CONNECT_MS 3000
/* etcd answers more frequent PINGs than one per 5 s with GOAWAY. */
#define PING_IDLE_MS 6000
#define PING_ANSWER_MS 4000
#define STREAM_WINDOW (4 << 20)
#define CONNECTION_WINDOW (16 << 20)
#define READ_SIZE 65536
#define READS_PER_WAKEUP 16
#define SEND_SIZE ((size_t) 256 << 10) /* Bytes collected for one write to the socket. */
#define MAX_FIELDS 16

struct h2 {
    struct loop *loop;
    int fd;
    struct tls *tls; /* NULL: cleartext. */
    struct loop_fd *watch;
    nghttp2_session *session;
    char *authority; /* In requests. */
    char *peer;      /* In texts. */
    bool is_unix;
    bool tcp_connected;
    bool connected;    /* Includes the TLS handshake. */
    bool is_down;      /* 'down' was called. */
    unsigned depth;    /* Inside nghttp2 or a callback: freeing must wait. */
    bool freed;        /* h2_free was called meanwhile. */
    struct strbuf out; /* Frames for the socket. */
    size_t out_sent;   /* Bytes of 'out' already sent. */
    struct loop_task flush;
    struct loop_timer *timer; /* Connecting, then PINGs. */
    bool heard;               /* Data was received since the timer was armed. */
    bool ping_open;
    struct list streams;
    const struct h2_ops *ops;
    void *ctx;
};

struct h2_stream {
    struct h2 *c;
    struct list node;
    int32_t id;
    struct strbuf body;
    size_t body_sent;
    bool body_ends;
    const struct h2_stream_ops *ops; /* NULL: cancelled. */
    void *ctx;
};

static void stream_free(struct h2_stream *s)
{
    list_remove(&s->node);
    strbuf_done(&s->body);
    free(s);
}

static void destroy(struct h2 *c)
{
    nghttp2_session_del(c->session);
    struct h2_stream *s;
    LIST_FOREACH (s, struct h2_stream, node, &c->streams) {
        stream_free(s);
    }
    loop_task_cancel(&c->flush);
    loop_timer_free(c->timer);
    loop_fd_free(c->watch);
    if (c->tls && c->connected) {
        tls_shutdown(c->tls);
    }
    tls_free(c->tls);
    fd_close(c->fd);
    free(c->authority);
    free(c->peer);
    strbuf_done(&c->out);
    free(c);
}

struct h2 *h2_free(struct h2 *c)
{
    if (c) {
        c->freed = true;
        if (!c->depth) {
            destroy(c);
        }
    }
    return NULL;
}

static void enter(struct h2 *c)
{
    c->depth++;
}
/* The last use of 'c' by a callback of the loop. */
static void leave(struct h2 *c)
{
    if (--c->depth == 0 && c->freed) {
        destroy(c);
    }
}

static void PRINTF_LIKE(2, 3) set_down(struct h2 *c, const char *fmt, ...)
{
    if (c->is_down || c->freed) {
        return;
    }
    char reason[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    c->is_down = true;
    c->watch = loop_fd_free(c->watch);
    loop_timer_disarm(c->timer);
    c->ops->down(c->ctx, reason);
}

/* ---- nghttp2's callbacks ---- */

static struct h2_stream *stream_of(const struct h2 *c, int32_t id)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(c->session, id);
    return s && s->ops && !c->freed && !c->is_down ? s : NULL;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *ctx)
{
    struct h2_stream *s = stream_of(ctx, frame->hd.stream_id);
    if (s) {
        s->ops->header(s->ctx, (const char *) name, name_size, (const char *) value, value_size);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                   size_t size, void *ctx)
{
    struct h2_stream *s = stream_of(ctx, id);
    if (s) {
        s->ops->data(s->ctx, (const char *) p, size);
    }
    return 0;
}

/* The last callback for 's'. */
static void stream_ended(struct h2_stream *s, uint32_t error)
{
    const struct h2_stream_ops *ops = s->ops;
    if (ops && !s->c->freed && !s->c->is_down) {
        s->ops = NULL;
        ops->closed(s->ctx, error);
    }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *c = ctx;
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        /* nghttp2 reports the close when both sides ended, which an endless request never does. */
        struct h2_stream *s = stream_of(c, frame->hd.stream_id);
        if (s) {
            bool open = !s->body_ends;
            stream_ended(s, 0);
            if (open && !c->freed) {
                nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                          NGHTTP2_CANCEL);
            }
        }
    }
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK) {
        c->ping_open = false;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        set_down(c, "%s ends the connection: %s", c->peer,
                 nghttp2_http2_strerror(frame->goaway.error_code));
    }
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
    struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (!s) {
        return 0;
    }
    stream_ended(s, error);
    stream_free(s);
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct h2_stream *s = source->ptr;
    size_t n = MIN(size, s->body.size - s->body_sent);
    if (n) {
        memcpy(buf, s->body.data + s->body_sent, n);
        s->body_sent += n;
    }
    if (s->body_sent == s->body.size) {
        strbuf_done(&s->body);
        s->body_sent = 0;
        if (s->body_ends) {
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        } else if (n == 0) {
            return NGHTTP2_ERR_DEFERRED;
        }
    }
    return (ssize_t) n;
}

/* ---- the socket ---- */

static void watch(struct h2 *c, unsigned wanted)
{
    loop_fd_set(c->watch, c->tls ? tls_watch(c->tls, wanted) : wanted);
}

/* Like send and recv, with negative errno. */
static ssize_t socket_send(struct h2 *c, const void *p, size_t size, struct err *e)
{
    if (c->tls) {
        return tls_write(c->tls, p, size, e);
    }
    ssize_t n = send(c->fd, p, size, MSG_NOSIGNAL);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : err_set(e, -errno, "%s", strerror(errno));
}

static ssize_t socket_recv(struct h2 *c, void *buf, size_t size, struct err *e)
{
    if (c->tls) {
        return tls_read(c->tls, buf, size, e);
    }
    ssize_t n = recv(c->fd, buf, size, 0);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : err_set(e, -errno, "%s", strerror(errno));
}

/* Fills 'out' with frames; false: the connection is broken. */
static bool gather(struct h2 *c)
{
    strbuf_consume(&c->out, c->out_sent);
    c->out_sent = 0;
    while (c->out.size < SEND_SIZE) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(c->session, &p);
        if (n < 0) {
            set_down(c, "HTTP/2 with %s: %s", c->peer, nghttp2_strerror((int) n));
            return false;
        }
        if (n == 0) {
            break;
        }
        strbuf_add(&c->out, p, (size_t) n);
    }
    return true;
}

static void flush_frames(struct h2 *c)
{
    while (!c->is_down && !c->freed && gather(c)) {
        if (c->freed || c->is_down) {
            return;
        }
        if (c->out_sent == c->out.size) {
            break;
        }
        struct err e = {0};
        ssize_t n = socket_send(c, c->out.data, c->out.size, &e);
        if (n == -EAGAIN) {
            watch(c, LOOP_READ | LOOP_WRITE);
            return;
        }
        if (n < 0) {
            set_down(c, "write to %s: %s", c->peer, e.text);
            return;
        }
        c->out_sent = (size_t) n;
    }
    if (c->is_down || c->freed) {
        return;
    }
    watch(c, LOOP_READ);
    if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session)) {
        set_down(c, "HTTP/2 with %s: the session ended", c->authority);
    }
}

static void flush_run(void *ctx)
{
    struct h2 *c = ctx;
    if (c->connected) {
        enter(c);
        flush_frames(c);
        leave(c);
    }
}

static void read_frames(struct h2 *c)
{
    char buf[READ_SIZE];
    for (int i = 0; i < READS_PER_WAKEUP && !c->is_down && !c->freed; i++) {
        struct err e = {0};
        ssize_t n = socket_recv(c, buf, sizeof buf, &e);
        if (n == -EAGAIN) {
            return;
        }
        if (n < 0) {
            set_down(c, "read from %s: %s", c->peer, e.text);
            return;
        }
        if (n == 0) {
            set_down(c, "%s closed the connection", c->peer);
            return;
        }
        c->heard = true;
        ssize_t used = nghttp2_session_mem_recv(c->session, (const uint8_t *) buf, (size_t) n);
        if (used < 0) {
            set_down(c, "HTTP/2 with %s: %s", c->peer, nghttp2_strerror((int) used));
            return;
        }
        if (!c->tls && (size_t) n < sizeof buf) {
            return; /* TLS returns one record at a time. */
        }
    }
}

/* The socket is ready: continues to connect. */
static void connect_on(struct h2 *c)
{
    int r = c->tcp_connected ? 0 : sock_connect_result(c->fd);
    if (r < 0) {
        set_down(c, "connect to %s: %s", c->peer, strerror(-r));
        return;
    }
    c->tcp_connected = true;
    struct err e = {0};
    r = c->tls ? tls_handshake(c->tls, &e) : 0;
    if (r == -EAGAIN) {
        watch(c, 0);
        return;
    }
    if (r < 0) {
        set_down(c, "connect to %s: TLS: %s", c->peer, e.text);
        return;
    }
    c->connected = true;
    loop_timer_disarm(c->timer);
    if (!c->is_unix) {
        loop_timer_arm(c->timer, PING_IDLE_MS);
    }
    c->ops->up(c->ctx);
}

static void on_fd(void *ctx, unsigned events)
{
    struct h2 *c = ctx;
    enter(c);
    if (!c->connected) {
        if (c->tcp_connected || events & LOOP_WRITE) {
            connect_on(c);
        }
    } else if ((c->tls ? tls_ready(c->tls, events) : events) & LOOP_READ) {
        read_frames(c);
    }
    if (c->connected) {
        flush_frames(c);
    }
    leave(c);
}

static void on_timer(void *ctx)
{
    struct h2 *c = ctx;
    enter(c);
    if (!c->connected) {
        set_down(c, "connect to %s: %s", c->peer, strerror(ETIMEDOUT));
    } else if (c->ping_open && !c->heard) {
        set_down(c, "no answer from %s: %s", c->peer, strerror(ETIMEDOUT));
    } else if (c->heard || list_is_empty(&c->streams)) {
        c->heard = c->ping_open = false;
        loop_timer_arm(c->timer, PING_IDLE_MS);
    } else {
        c->ping_open = true;
        nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
        flush_frames(c);
        if (!c->is_down && !c->freed) {
            loop_timer_arm(c->timer, PING_ANSWER_MS);
        }
    }
    leave(c);
}

/* ---- interface ---- */

static void session_init(struct h2 *c)
{
    nghttp2_session_callbacks *callbacks = nghttp2_callbacks();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_must(nghttp2_session_client_new(&c->session, callbacks, c));
    nghttp2_session_callbacks_del(callbacks);
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings));
    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

int h2_connect(struct loop *l, const struct h2_address *a, const struct h2_ops *ops, void *ctx,
               struct h2 **ret, struct err *e)
{
    int fd = -1;
    int r = a->path ? sock_connect_unix(a->path, &fd, e)
                    : sock_connect_tcp(a->address, a->port, &fd, e);
    if (r < 0) {
        return r;
    }
    struct h2 *c = NEW(struct h2);
    c->loop = l;
    c->fd = fd;
    c->ops = ops;
    c->ctx = ctx;
    c->out = STRBUF_INIT;
    c->is_unix = a->path;
    c->authority = a->path ? xstrdup(a->name) : xasprintf("%s:%u", a->name, a->port);
    c->peer = xstrdup(a->path ? a->path : c->authority);
    c->tls = a->tls ? tls_connect(a->tls, fd, a->name) : NULL;
    list_init(&c->streams);
    loop_task_init(&c->flush, l, flush_run, c);
    c->watch = loop_fd_new(l, fd, LOOP_WRITE, on_fd, c);
    c->timer = loop_timer_new(l, on_timer, c);
    loop_timer_arm(c->timer, CONNECT_MS);
    session_init(c);
    *ret = c;
    return 0;
}

struct h2_stream *h2_post(struct h2 *c, const char *path, const struct h2_field *fields,
                          size_t n_fields, struct strbuf *body, bool end,
                          const struct h2_stream_ops *ops, void *ctx)
{
    nghttp2_nv nv[4 + MAX_FIELDS] = {
        nghttp2_field(":method", "POST"),
        nghttp2_field(":scheme", c->tls ? "https" : "http"),
        nghttp2_field(":authority", c->authority),
        nghttp2_field(":path", path),
    };
    assert(n_fields <= MAX_FIELDS);
    for (size_t i = 0; i < n_fields; i++) {
        nv[4 + i] = nghttp2_field(fields[i].name, fields[i].value);
    }
    struct h2_stream *s = NEW(struct h2_stream);
    s->c = c;
    s->body = *body;
    *body = STRBUF_INIT_MAX(body->max);
    s->body_ends = end;
    s->ops = ops;
    s->ctx = ctx;
    list_push_back(&c->streams, &s->node);
    nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_body};
    s->id = nghttp2_submit_request(c->session, NULL, nv, 4 + n_fields, &provider, s);
    if (s->id < 0) {
        /* No stream ids are left after 2^30 calls: the next connection has new ones.  The caller
         * gets its stream, and the connection ends. */
        nghttp2_session_terminate_session(c->session, NGHTTP2_NO_ERROR);
    }
    loop_task_queue(&c->flush);
    return s;
}

void h2_cancel(struct h2_stream *s)
{
    s->ops = NULL;
    nghttp2_submit_rst_stream(s->c->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
    loop_task_queue(&s->c->flush);
}
