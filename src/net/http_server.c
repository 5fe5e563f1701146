/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server.
 *
 * A connection is one small struct and goes through the states below; buffers exist only while there is
 * something in them, so that an idle connection or stream costs about a kilobyte.  One request at a time:
 * what a client sends ahead waits in 'in', or in the kernel.
 * Calls of the user (http_respond, http_stream_*) only queue; connections are written and closed by
 * tasks, timers and socket events.  So no connection goes away under the feet of a caller. */
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/http.h"
#include "net/http_out.h"
#include "net/tls.h"
#include "wire/http1.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("http");

#define READ_SIZE 65536
#define ACCEPTS_AT_ONCE 64
#define LINGER_MS 2000
#define ACCEPT_PAUSE_MS 1000
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 15
#define BODIES_AT_ONCE 64 /* Of the largest size, that may be in receipt together. */

enum state {
    HANDSHAKE, /* Of TLS. */
    IDLE,      /* Between requests; 'in' is empty. */
    HEAD,      /* Part of a head is in 'in'. */
    BODY,      /* Receiving the body. */
    READY,     /* The request is complete. */
    HANDLER,   /* The user has the request and has not answered. */
    STREAMING, /* The user is sending a stream. */
    SENDING,   /* All of the response is queued. */
    LINGERING, /* We have said all and shut down; until the client has read it and closes. */
};

/* What a connection waits for.  Each kind has a fixed time, so its list is in order of deadline. */
enum wait { WAIT_IDLE, WAIT_REQUEST, WAIT_SEND, WAIT_LINGER, WAIT_MAX, WAIT_NONE = WAIT_MAX };

struct conn {
    struct http_server *server;
    int fd;
    struct tls *tls; /* NULL: plain. */
    struct tls_identity *identity;
    struct loop_fd *watch;
    struct loop_task task; /* Sends, and goes on with what can be done then. */
    struct list node;      /* In server->conns. */
    struct list wait_node; /* In server->waiting[...]. */
    uint64_t deadline;
    enum state state;
    bool keep_alive; /* After the current response. */
    bool eof;        /* The client has shut down its side. */
    bool cut;        /* To be closed by the task, for its queue is full. */
    bool is_head;    /* The request is HEAD: no body is sent. */
    unsigned minor;
    struct strbuf in;
    size_t scanned; /* Of 'in', for the end of the head. */
    uint64_t body_left;
    struct http_exchange *x;
    struct http_out out;
    char peer[24];
};

struct http_exchange {
    struct conn *conn; /* NULL: the connection is gone, nobody waits for the answer. */
    struct loop *loop;
    struct http1_head head;
    struct http1_target target;
    char *head_text, *target_text; /* What the strings of 'head' and 'target' are in. */
    struct strbuf body;
    struct http1_chunked chunked;
    struct strbuf extra; /* Headers of http_set_header. */
    bool raw;            /* A stream without chunks: HTTP/1.0. */
    loop_fn *closed, *drained;
    void *closed_ctx, *drained_ctx;
    struct loop_task gone; /* Tells a stream that began too late. */
    bool is_tls;
    struct tls_identity *identity;
    char peer[24];
};

struct listener {
    struct http_server *server;
    struct tls_context *tls; /* NULL: plain. */
    int fd;
    struct loop_fd *watch;
};

struct http_server {
    struct loop *loop;
    struct http_limits limits;
    http_handler_fn *fn;
    void *ctx;
    struct listener **listeners;
    size_t n_listeners, listeners_cap;
    struct list conns;
    unsigned n_conns;
    uint64_t receiving; /* Bytes of bodies that are not complete. */
    struct list waiting[WAIT_MAX];
    struct loop_timer *timer; /* The first of all deadlines. */
    uint64_t timer_at;        /* 0: not armed. */
    struct loop_timer *accept_timer;
    bool accept_paused;
    bool draining;
    struct loop_timer *drain_timer;
    struct loop_task drained;
    loop_fn *done;
    void *done_ctx;
};

static struct log_limit cut_limit, accept_limit, header_limit, handshake_limit;

/* ---- deadlines ---- */

static uint64_t wait_ms(const struct http_server *s, enum wait kind)
{
    switch (kind) {
    case WAIT_REQUEST:
        return s->limits.request_ms;
    case WAIT_LINGER:
        return LINGER_MS;
    case WAIT_IDLE:
    case WAIT_SEND:
    case WAIT_MAX:
        break;
    }
    return s->limits.idle_ms;
}

static void arm(struct http_server *s, uint64_t deadline)
{
    if (!s->timer_at || deadline < s->timer_at) {
        uint64_t now = loop_now_ms(s->loop);
        s->timer_at = deadline;
        loop_timer_arm(s->timer, deadline > now ? deadline - now : 0);
    }
}

static void conn_wait(struct conn *c, enum wait kind)
{
    struct http_server *s = c->server;
    list_remove(&c->wait_node);
    if (kind != WAIT_NONE) {
        c->deadline = loop_now_ms(s->loop) + wait_ms(s, kind);
        list_push_back(&s->waiting[kind], &c->wait_node);
        arm(s, c->deadline);
    }
}

/* ---- closing ---- */

static void exchange_free(struct http_exchange *x)
{
    loop_task_cancel(&x->gone);
    tls_identity_unref(x->identity);
    free(x->head_text);
    free(x->target_text);
    strbuf_done(&x->body);
    strbuf_done(&x->extra);
    free(x);
}

static void accept_pause(struct http_server *s, bool pause)
{
    s->accept_paused = pause;
    for (size_t i = 0; i < s->n_listeners; i++) {
        loop_fd_set(s->listeners[i]->watch, pause ? 0 : LOOP_READ);
    }
    if (pause) {
        loop_timer_arm(s->accept_timer, ACCEPT_PAUSE_MS);
    } else {
        loop_timer_disarm(s->accept_timer);
    }
}

static void accept_resume(void *ctx)
{
    accept_pause(ctx, false);
}

/* The user's stream is over: 'x' is freed after the user was told. */
static void stream_closed(struct http_exchange *x)
{
    x->conn = NULL;
    x->closed(x->closed_ctx);
    exchange_free(x);
}

/* Leaves the state BODY. */
static void body_end(struct conn *c, enum state next)
{
    if (c->state == BODY) {
        c->server->receiving -= c->x->body.size;
    }
    c->state = next;
}

/* Closes and frees 'c'. */
static void conn_close(struct conn *c)
{
    struct http_server *s = c->server;
    struct http_exchange *x = c->x;
    enum state state = c->state;
    body_end(c, state);
    loop_task_cancel(&c->task);
    loop_fd_free(c->watch);
    if (c->tls && state != LINGERING) {
        tls_shutdown(c->tls);
    }
    tls_free(c->tls);
    tls_identity_unref(c->identity);
    fd_close(c->fd);
    list_remove(&c->wait_node);
    list_remove(&c->node);
    http_out_clear(&c->out);
    strbuf_done(&c->in);
    free(c);
    s->n_conns--;
    if (s->accept_paused && !s->draining) {
        accept_pause(s, false);
    }
    if (s->draining && !s->n_conns) {
        loop_task_queue(&s->drained);
    }
    if (state == STREAMING) {
        stream_closed(x);
    } else if (state == HANDLER) {
        x->conn = NULL; /* The user answers it some time. */
    } else if (x) {
        exchange_free(x);
    }
}

/* We have said all.  Closing now, with bytes of the client unread, would reset the connection, and the client
 * might lose the end of it. */
static void conn_linger(struct conn *c)
{
    if (c->tls) {
        tls_shutdown(c->tls);
    }
    shutdown(c->fd, SHUT_WR);
    strbuf_done(&c->in);
    c->state = LINGERING;
    conn_wait(c, WAIT_LINGER);
}

/* Closes at once and throws away what the kernel has not sent: the client does not read. */
static void conn_abort(struct conn *c)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    conn_close(c);
}

/* ---- sending ---- */

/* Sends what is queued and can be sent; as http_out_send. */
static int conn_send(struct conn *c)
{
    bool progress;
    int r = http_out_send(&c->out, c->fd, c->tls, &progress);
    if (r == -EAGAIN && (progress || list_is_empty(&c->wait_node))) {
        conn_wait(c, WAIT_SEND);
    }
    return r;
}

/* Which events to watch in the state that 'c' is in. */
static void conn_watch(struct conn *c)
{
    unsigned events = 0;
    /* While a request is at work, reading on tells when the client goes away.  A client that sends on
     * regardless is left to fill its socket. */
    if (!c->eof && c->in.size <= c->server->limits.max_head) {
        events |= LOOP_READ;
    }
    if (c->out.n) {
        events |= LOOP_WRITE;
    }
    /* What comes while lingering is not looked at. */
    loop_fd_set(c->watch, c->tls && c->state != LINGERING ? tls_watch(c->tls, events) : events);
}

/* ---- responses ---- */

/* Starts the head of the response to 'x' (NULL: to a request that could not be parsed). */
static void response_head(struct conn *c, struct http_exchange *x, int status,
                          const char *content_type, struct strbuf *b)
{
    if (c->server->draining) {
        c->keep_alive = false;
    }
    http1_start_response(b, status);
    if (content_type && http1_add_header(b, "Content-Type", content_type) < 0) {
        log_limited(&header_limit, LOG_WARN, "malformed content type dropped", "status=%d", status);
    }
    if (x && x->extra.size) {
        strbuf_add(b, x->extra.data, x->extra.size);
    }
    if (!c->keep_alive) {
        strbuf_adds(b, "Connection: close\r\n");
    } else if (c->minor == 0) {
        strbuf_adds(b, "Connection: keep-alive\r\n");
    }
}

/* All of the response is in the queue. */
static void response_queued(struct conn *c)
{
    c->state = SENDING;
    conn_wait(c, WAIT_SEND);
    loop_task_queue(&c->task);
}

static void response_send(struct conn *c, struct http_exchange *x, int status,
                          const char *content_type, const void *body, struct blob *blob,
                          size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    response_head(c, x, status, content_type, &b);
    if (status >= 200 && status != 204 && status != 304) {
        strbuf_addf(&b, "Content-Length: %zu\r\n", size);
    } else {
        size = 0;
    }
    strbuf_add(&b, "\r\n", 2);
    if (c->is_head) {
        size = 0;
    }
    if (body && size) {
        strbuf_add(&b, body, size);
    }
    http_out_text(&c->out, b.data, b.size);
    if (blob && size) {
        http_out_blob(&c->out, blob);
    }
    response_queued(c);
}

/* Answers with an error and closes. */
static void conn_fail(struct conn *c, int status, const char *why)
{
    body_end(c, SENDING);
    if (c->x) {
        exchange_free(c->x);
        c->x = NULL;
    }
    log_debug("request refused", "peer=%s status=%d reason=\"%s\"", c->peer, status, why);
    c->keep_alive = c->is_head = false;
    CLEANUP_FREE char *text = xasprintf("%d %s: %s\n", status, http1_reason(status), why);
    response_send(c, NULL, status, "text/plain; charset=utf-8", text, NULL, strlen(text));
}

/* Queues the end of the stream 'x', which leaves 'c'. */
static void stream_finish(struct conn *c, struct http_exchange *x)
{
    if (!x->raw) {
        http_out_last_chunk(&c->out);
    }
    c->x = NULL;
    c->keep_alive = c->keep_alive && !c->server->draining;
    response_queued(c);
}

/* ---- requests ---- */

/* Takes bytes of the body from 'p', and returns how many.  The state is then still BODY, or READY, or
 * SENDING an error. */
static size_t body_input(struct conn *c, const char *p, size_t size)
{
    struct http_server *s = c->server;
    struct http_exchange *x = c->x;
    size_t at = 0;
    bool done;
    if (x->head.framing == HTTP1_LENGTH) {
        at = (size_t) MIN((uint64_t) size, c->body_left);
        strbuf_add(&x->body, p, at);
        s->receiving += at;
        c->body_left -= at;
        done = !c->body_left;
    } else {
        while (at < size && !x->chunked.done) {
            const char *data;
            size_t used, n;
            if (http1_chunked_feed(&x->chunked, p + at, size - at, &used, &data, &n) < 0) {
                conn_fail(c, 400, "malformed chunk");
                return size;
            }
            if (strbuf_add(&x->body, data, n) < 0) {
                conn_fail(c, 413, "the body is too large");
                return size;
            }
            s->receiving += n;
            at += used;
        }
        done = x->chunked.done;
    }
    if (done) {
        body_end(c, READY);
    } else if (s->receiving > s->limits.max_body * BODIES_AT_ONCE) {
        conn_fail(c, 503, "too many requests at once");
    }
    return at;
}

/* The complete head of 'size' bytes is in c->in: takes it out and parses it. */
static void head_done(struct conn *c, size_t size)
{
    struct http_server *s = c->server;
    struct err e = {0};
    struct http_exchange *x = c->x = NEW(struct http_exchange);
    x->conn = c;
    x->loop = s->loop;
    x->body = STRBUF_INIT_MAX(s->limits.max_body);
    x->extra = STRBUF_INIT;
    x->is_tls = c->tls;
    x->identity = tls_identity_ref(c->identity);
    memcpy(x->peer, c->peer, sizeof x->peer);
    x->head_text = xmemdup(c->in.data, size);
    strbuf_consume(&c->in, size);
    c->scanned = 0;
    c->minor = 1;
    int r = http1_parse_request(x->head_text, size, &x->head, &e);
    if (r < 0) {
        conn_fail(c, http1_error_status(r), e.text);
        return;
    }
    c->minor = x->head.minor;
    c->keep_alive = x->head.keep_alive;
    c->is_head = streq(x->head.method, "HEAD");
    x->target_text = xmalloc(http1_target_size(x->head.target));
    if (http1_target_parse(x->head.target, x->target_text, &x->target, &e) < 0) {
        conn_fail(c, 400, e.text);
        return;
    }
    if (x->head.framing == HTTP1_NO_BODY) {
        c->state = READY;
        return;
    }
    c->body_left = x->head.length;
    if (c->body_left > s->limits.max_body) {
        conn_fail(c, 413, "the body is too large");
        return;
    }
    c->state = BODY;
    if (x->head.expect_continue && !c->in.size) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        http_out_text(&c->out, text, sizeof text - 1);
        loop_task_queue(&c->task);
    }
}

static void head_input(struct conn *c)
{
    while (c->in.size >= 2 && memcmp(c->in.data, "\r\n", 2) == 0) {
        strbuf_consume(&c->in, 2);
        c->scanned = 0;
    }
    if (!c->in.size) {
        c->state = IDLE;
        conn_wait(c, WAIT_IDLE);
        return;
    }
    ssize_t end = http1_head_end(c->in.data, c->in.size, &c->scanned);
    if (end < 0) {
        conn_fail(c, 400, "a line does not end in CR LF");
    } else if ((end ? (size_t) end : c->in.size) > c->server->limits.max_head) {
        conn_fail(c, 431, "the head is too large");
    } else if (end) {
        head_done(c, (size_t) end);
    }
}

static void request_done(struct conn *c)
{
    conn_wait(c, WAIT_NONE);
    c->state = HANDLER;
    c->server->fn(c->server->ctx, c->x);
}

/* Goes on with what is in c->in, up to one request for the handler. */
static void conn_advance(struct conn *c)
{
    if (c->state == IDLE && c->in.size) {
        c->state = HEAD;
        conn_wait(c, WAIT_REQUEST);
    }
    if (c->state == HEAD) {
        head_input(c);
    }
    if (c->state == BODY && c->in.size) {
        strbuf_consume(&c->in, body_input(c, c->in.data, c->in.size));
    }
    if (!c->in.size) {
        strbuf_done(&c->in);
    }
    if (c->state == READY) {
        request_done(c);
    }
}

/* The response was sent: the next request, or the end. */
static void response_sent(struct conn *c)
{
    bool goes_on = c->keep_alive && !c->server->draining;
    if (c->eof && !(goes_on && c->in.size)) {
        conn_close(c);
        return;
    }
    if (goes_on) {
        c->state = IDLE;
        conn_wait(c, WAIT_IDLE);
        conn_advance(c);
    } else {
        conn_linger(c);
    }
    conn_watch(c);
}

static void conn_task(void *ctx)
{
    struct conn *c = ctx;
    if (c->cut) {
        conn_abort(c);
        return;
    }
    int r = conn_send(c);
    if (r < 0 && r != -EAGAIN) {
        conn_close(c);
        return;
    }
    if (r == 0 && c->state == SENDING) {
        response_sent(c);
        return;
    }
    if (r == 0 && c->state == STREAMING) {
        conn_wait(c, WAIT_NONE);
        if (c->x->drained) {
            c->x->drained(c->x->drained_ctx);
        }
    }
    conn_watch(c);
}

/* As recv, with negative errno. */
static ssize_t conn_recv(struct conn *c, char *buf, size_t size)
{
    if (c->tls && c->state != LINGERING) {
        return tls_read(c->tls, buf, size, NULL);
    }
    ssize_t n = recv(c->fd, buf, size, MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

/* Reads once; false: 'c' is gone. */
static bool conn_read(struct conn *c)
{
    char buf[READ_SIZE];
    ssize_t n = conn_recv(c, buf, sizeof buf);
    if (n == -EAGAIN) {
        return true;
    }
    if (n <= 0) {
        /* A client may shut down its side once it has sent its request; a stream ends with it. */
        c->eof = true;
        if (n < 0 || (c->state != HANDLER && c->state != SENDING)) {
            conn_close(c);
            return false;
        }
        return true;
    }
    size_t used = 0;
    if (c->state == LINGERING) {
        used = (size_t) n;
    } else if (c->state == BODY && !c->in.size) {
        used = body_input(c, buf, (size_t) n);
    }
    if (used < (size_t) n) {
        strbuf_add(&c->in, buf + used, (size_t) n - used);
    }
    conn_advance(c);
    return true;
}

/* A step of the handshake.  When it fails the client is told, by an alert, or in its own language. */
static void conn_handshake(struct conn *c)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "Connection: close\r\n\r\n"
                               "400 Bad Request: this port speaks HTTPS, not HTTP\n";
    struct err e = {0};
    int r = tls_handshake(c->tls, &e);
    if (r == 0) {
        c->identity = tls_peer_identity(c->tls);
        c->state = IDLE;
        conn_wait(c, WAIT_IDLE);
    } else if (r == -ECONNRESET) {
        conn_close(c);
        return;
    } else if (r != -EAGAIN) {
        log_limited(&handshake_limit, LOG_INFO, "TLS handshake failed", "peer=%s error=\"%s\"",
                    c->peer, e.text);
        if (tls_peer_spoke_http(c->tls)) {
            (void) send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        conn_linger(c);
    }
    conn_watch(c);
}

static void conn_ready(void *ctx, unsigned events)
{
    struct conn *c = ctx;
    if (c->state == HANDSHAKE) {
        conn_handshake(c);
        return;
    }
    if (c->tls && c->state != LINGERING) {
        events = tls_ready(c->tls, events);
    }
    if ((events & LOOP_READ) && !conn_read(c)) {
        return;
    }
    if (events & LOOP_WRITE) {
        loop_task_queue(&c->task);
    }
    conn_watch(c);
}

/* ---- connections ---- */

static void conn_new(struct listener *l, int fd, const struct sockaddr_in *sa)
{
    struct http_server *s = l->server;
    struct conn *c = NEW(struct conn);
    c->server = s;
    c->fd = fd;
    c->in = STRBUF_INIT;
    list_init(&c->wait_node);
    list_push_back(&s->conns, &c->node);
    s->n_conns++;
    if (sa->sin_family == AF_INET) {
        char host[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &sa->sin_addr, host, sizeof host);
        snprintf(c->peer, sizeof c->peer, "%s:%u", host, ntohs(sa->sin_port));
    } else {
        memcpy(c->peer, "unix", 5);
    }
    loop_task_init(&c->task, s->loop, conn_task, c);
    c->watch = loop_fd_new(s->loop, fd, LOOP_READ, conn_ready, c);
    if (l->tls) {
        c->tls = tls_accept(l->tls, fd);
        c->state = HANDSHAKE;
    } else {
        c->state = IDLE;
    }
    conn_wait(c, l->tls ? WAIT_REQUEST : WAIT_IDLE);
}

/* The connection that is missed least: one that is being closed, or has been idle for longest; NULL. */
static struct conn *least_missed(struct http_server *s)
{
    static const enum wait kinds[] = {WAIT_LINGER, WAIT_IDLE};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct list *l = &s->waiting[kinds[i]];
        if (!list_is_empty(l)) {
            return CONTAINER_OF(l->next, struct conn, wait_node);
        }
    }
    return NULL;
}

static void accept_ready(void *ctx, unsigned events)
{
    struct listener *l = ctx;
    struct http_server *s = l->server;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        bool full = s->n_conns >= s->limits.max_conns;
        struct conn *victim = least_missed(s);
        if (full && !victim) {
            log_limited(&accept_limit, LOG_WARN, "too many connections", "max=%u",
                        s->limits.max_conns);
            accept_pause(s, true);
            return;
        }
        struct sockaddr_in sa = {0};
        socklen_t n = sizeof sa;
        int fd = accept4(l->fd, (struct sockaddr *) &sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (full) {
                conn_close(victim);
            }
            conn_new(l, fd, &sa);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_limited(&accept_limit, LOG_WARN, "cannot accept connections", "error=\"%s\"",
                        strerror(errno));
            if (victim) {
                conn_close(victim);
            } else {
                accept_pause(s, true);
            }
            return;
        }
    }
}

/* ---- deadlines that have passed ---- */

static void conn_expire(struct conn *c)
{
    switch (c->state) {
    case HEAD:
    case BODY:
        conn_fail(c, 408, "the request took too long");
        break;
    case STREAMING:
    case SENDING:
        conn_abort(c);
        break;
    case HANDSHAKE:
    case IDLE:
    case LINGERING:
    case READY:
    case HANDLER:
        conn_close(c);
        break;
    }
}

static void server_tick(void *ctx)
{
    struct http_server *s = ctx;
    uint64_t now = loop_now_ms(s->loop);
    s->timer_at = 0;
    for (int kind = 0; kind < WAIT_MAX; kind++) {
        struct list *l = &s->waiting[kind];
        while (!list_is_empty(l)) {
            struct conn *c = CONTAINER_OF(l->next, struct conn, wait_node);
            if (c->deadline > now) {
                arm(s, c->deadline);
                break;
            }
            conn_expire(c);
        }
    }
}

/* ---- the server ---- */

static void listeners_close(struct http_server *s)
{
    for (size_t i = 0; i < s->n_listeners; i++) {
        loop_fd_free(s->listeners[i]->watch);
        fd_close(s->listeners[i]->fd);
        free(s->listeners[i]);
    }
    s->n_listeners = 0;
    s->accept_paused = false;
    loop_timer_disarm(s->accept_timer);
}

static void conns_close(struct http_server *s)
{
    while (!list_is_empty(&s->conns)) {
        conn_close(CONTAINER_OF(s->conns.next, struct conn, node));
    }
}

static void server_drained(void *ctx)
{
    struct http_server *s = ctx;
    loop_timer_disarm(s->drain_timer);
    loop_fn *done = s->done;
    s->done = NULL;
    if (done) {
        done(s->done_ctx);
    }
}

static void drain_expired(void *ctx)
{
    struct http_server *s = ctx;
    conns_close(s);
    loop_task_queue(&s->drained);
}

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits,
                                    http_handler_fn *fn, void *ctx)
{
    struct http_server *s = NEW(struct http_server);
    s->loop = l;
    s->limits = limits ? *limits : (struct http_limits){0};
    struct http_limits *m = &s->limits;
    m->max_head = m->max_head ? m->max_head : 32 << 10;
    m->max_body = m->max_body ? m->max_body : 3 << 20;
    m->max_stream_queue = m->max_stream_queue ? m->max_stream_queue : 4 << 20;
    m->max_conns = m->max_conns ? m->max_conns : 20000;
    m->idle_ms = m->idle_ms ? m->idle_ms : 90000;
    m->request_ms = m->request_ms ? m->request_ms : 30000;
    s->fn = fn;
    s->ctx = ctx;
    list_init(&s->conns);
    for (int i = 0; i < WAIT_MAX; i++) {
        list_init(&s->waiting[i]);
    }
    s->timer = loop_timer_new(l, server_tick, s);
    s->accept_timer = loop_timer_new(l, accept_resume, s);
    s->drain_timer = loop_timer_new(l, drain_expired, s);
    loop_task_init(&s->drained, l, server_drained, s);
    return s;
}

int http_server_add_listener_tls(struct http_server *s, int fd, struct tls_context *tls,
                                 struct err *e)
{
    CLEANUP(fd_close) int owned = fd;
    int listening = 0, one = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S;
    socklen_t n = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) < 0) {
        return err_sys(e, -errno, "descriptor %d", fd);
    }
    if (!listening) {
        return err_set(e, -EINVAL, "descriptor %d does not listen", fd);
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return err_sys(e, -errno, "descriptor %d", fd);
    }
    /* Accepted sockets inherit these.  Keep-alive finds streams whose client vanished. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    struct listener *l = NEW(struct listener);
    l->server = s;
    l->tls = tls;
    l->fd = fd_take(&owned);
    l->watch = loop_fd_new(s->loop, fd, LOOP_READ, accept_ready, l);
    s->listeners = grow(s->listeners, &s->listeners_cap, s->n_listeners + 1, sizeof *s->listeners);
    s->listeners[s->n_listeners++] = l;
    return 0;
}

int http_server_add_listener(struct http_server *s, int fd, struct err *e)
{
    return http_server_add_listener_tls(s, fd, NULL, e);
}

void http_server_shutdown(struct http_server *s, uint64_t timeout_ms, loop_fn *done, void *ctx)
{
    s->draining = true;
    s->done = done;
    s->done_ctx = ctx;
    listeners_close(s);
    struct conn *c;
    LIST_FOREACH (c, struct conn, node, &s->conns) {
        if (c->state == IDLE || c->state == HANDSHAKE) {
            conn_close(c);
        } else if (c->state == STREAMING) {
            struct http_exchange *x = c->x;
            stream_finish(c, x);
            stream_closed(x);
        }
    }
    if (s->n_conns) {
        loop_timer_arm(s->drain_timer, timeout_ms);
    } else {
        loop_task_queue(&s->drained);
    }
}

struct http_server *http_server_free(struct http_server *s)
{
    if (!s) {
        return NULL;
    }
    s->draining = true;
    listeners_close(s);
    conns_close(s);
    free(s->listeners);
    loop_task_cancel(&s->drained);
    loop_timer_free(s->timer);
    loop_timer_free(s->accept_timer);
    loop_timer_free(s->drain_timer);
    free(s);
    return NULL;
}

/* ---- the user's side of an exchange ---- */

const char *http_method(const struct http_exchange *x)
{
    return x->head.method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->target.path;
}

const char *http_query(const struct http_exchange *x, const char *name)
{
    return http1_param(&x->target, name);
}

const char *http_query_raw(const struct http_exchange *x)
{
    return x->target.query;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    return http1_header(&x->head, name);
}

bool http_header_at(const struct http_exchange *x, size_t i, const char **ret_name,
                    const char **ret_value)
{
    return http1_header_at(&x->head, i, ret_name, ret_value);
}

const char *http_body(const struct http_exchange *x, size_t *ret_size)
{
    *ret_size = x->body.size;
    return strbuf_cstr(&x->body);
}

const char *http_peer(const struct http_exchange *x)
{
    return x->peer;
}

bool http_is_tls(const struct http_exchange *x)
{
    return x->is_tls;
}

const struct tls_identity *http_peer_cert(const struct http_exchange *x)
{
    return x->identity;
}

void http_set_header(struct http_exchange *x, const char *name, const char *value)
{
    if (http1_add_header(&x->extra, name, value) < 0) {
        log_limited(&header_limit, LOG_WARN, "malformed response header dropped", "name=%s", name);
    }
}

static void respond(struct http_exchange *x, int status, const char *content_type, const void *body,
                    struct blob *blob, size_t size)
{
    struct conn *c = x->conn;
    if (c) {
        c->x = NULL;
        response_send(c, x, status, content_type, body, blob, size);
    }
    exchange_free(x);
}

void http_respond(struct http_exchange *x, int status, const char *content_type, const void *body,
                  size_t size)
{
    respond(x, status, content_type, body, NULL, size);
}

void http_respond_blob(struct http_exchange *x, int status, const char *content_type,
                       struct blob *body)
{
    respond(x, status, content_type, NULL, body, body->size);
}

static void stream_gone(void *ctx)
{
    stream_closed(ctx);
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type,
                       loop_fn *closed, void *ctx)
{
    struct conn *c = x->conn;
    x->closed = closed;
    x->closed_ctx = ctx;
    strbuf_done(&x->body);
    if (!c) {
        loop_task_init(&x->gone, x->loop, stream_gone, x);
        loop_task_queue(&x->gone);
        return;
    }
    x->raw = c->is_head || c->minor == 0;
    c->keep_alive = c->keep_alive && c->minor > 0;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    response_head(c, x, status, content_type, &b);
    strbuf_adds(&b, x->raw ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n");
    strbuf_done(&x->extra);
    http_out_text(&c->out, b.data, b.size);
    c->state = STREAMING;
    c->cut = c->eof || c->server->draining;
    loop_task_queue(&c->task);
}

int http_stream_write(struct http_exchange *x, struct blob *b)
{
    struct conn *c = x->conn;
    if (!c || c->cut) {
        return c ? -ENOBUFS : -EPIPE;
    }
    if (!b->size || c->is_head) {
        return 0;
    }
    if (c->out.bytes && c->out.bytes + b->size > c->server->limits.max_stream_queue) {
        log_limited(&cut_limit, LOG_WARN, "stream cut, its client does not keep up",
                    "peer=%s path=%s queued=%zu", c->peer, x->target.path, c->out.bytes);
        c->cut = true;
    } else if (x->raw) {
        http_out_blob(&c->out, b);
    } else {
        http_out_chunk(&c->out, b);
    }
    loop_task_queue(&c->task);
    return c->cut ? -ENOBUFS : 0;
}

size_t http_stream_queued(const struct http_exchange *x)
{
    return x->conn ? x->conn->out.bytes : 0;
}

void http_stream_on_drained(struct http_exchange *x, loop_fn *drained, void *ctx)
{
    x->drained = drained;
    x->drained_ctx = ctx;
}

void http_stream_end(struct http_exchange *x)
{
    if (x->conn) {
        stream_finish(x->conn, x);
    }
    exchange_free(x);
}
