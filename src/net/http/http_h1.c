/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 on a connection of the server. */
#include "base/log.h"
#include "net/http/http_server_priv.h"

#include <stdio.h>

LOG_MODULE("http");

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113, 3.4. */
#define PREFACE_SIZE (sizeof preface - 1)

struct h1_exchange {
    struct http_exchange x;
    struct http1_chunked chunked;
    bool raw; /* A stream without chunks: HTTP/1.0, or to HEAD. */
};

static struct log_limit cut_limit, header_limit;

static struct h1_exchange *mine(struct http_exchange *x)
{
    return CONTAINER_OF(x, struct h1_exchange, x);
}

void h1_begin(struct http_conn *c)
{
    c->proto = &http_h1;
    c->h1 = (struct h1_conn){.in = STRBUF_INIT};
}

/* ---- responses ---- */

/* Starts the head of the response to 'x'. */
static void response_head(struct http_conn *c, struct http_exchange *x, int status,
                          const char *content_type, struct strbuf *b)
{
    struct h1_conn *h = &c->h1;
    if (c->server->draining) {
        h->keep_alive = false;
    }
    http1_start_response(b, status);
    strbuf_adds(b, "Date: ");
    strbuf_adds(b, http_server_date(c->server));
    strbuf_add(b, "\r\n", 2);
    if (content_type && http1_add_header(b, "Content-Type", content_type) < 0) {
        log_limited(&header_limit, LOG_WARN, "malformed content type dropped", "status=%d", status);
    }
    if (x->extra.size) {
        strbuf_add(b, x->extra.data, x->extra.size);
    }
    if (!h->keep_alive) {
        strbuf_adds(b, "Connection: close\r\n");
    } else if (h->minor == 0) {
        strbuf_adds(b, "Connection: keep-alive\r\n");
    }
}

/* The whole response is in the queue. */
static void response_queued(struct http_conn *c)
{
    c->h1.state = H1_SENDING;
    http_conn_wait(c, HTTP_WAIT_SEND);
    loop_task_queue(&c->task);
}

static void response_send(struct http_conn *c, struct http_exchange *x, int status,
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
    if (c->h1.is_head) {
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
static void request_fail(struct http_conn *c, int status, const char *why)
{
    struct h1_conn *h = &c->h1;
    const char *type;
    struct http_exchange *x = h->x ? TAKE(h->x) : http_exchange_new(c, sizeof(struct h1_exchange));
    log_debug("request refused", "peer=%s status=%d reason=\"%s\"", c->peer, status, why);
    c->server->stats.errors++;
    h->keep_alive = h->is_head = false;
    CLEANUP_FREE char *text = http_error_text(x, status, why, &type);
    response_send(c, x, status, type, text, NULL, strlen(text));
    http_exchange_free(x);
}

static void h1_respond(struct http_exchange *x, int status, const char *content_type,
                       const void *body, struct blob *blob, size_t size)
{
    struct http_conn *c = x->conn;
    response_send(c, x, status, content_type, body, blob, size);
    if (x->finished) {
        http_exchange_drop_body(x); /* Kept until all is sent. */
    } else {
        c->h1.x = NULL;
        http_exchange_free(x);
    }
}

/* ---- streams ---- */

static void h1_stream_begin(struct http_exchange *x, int status, const char *content_type)
{
    struct http_conn *c = x->conn;
    struct h1_conn *h = &c->h1;
    mine(x)->raw = h->is_head || h->minor == 0;
    h->keep_alive = h->keep_alive && h->minor > 0;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    response_head(c, x, status, content_type, &b);
    strbuf_adds(&b, mine(x)->raw ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n");
    http_out_text(&c->out, b.data, b.size);
    h->state = H1_STREAMING;
    c->cut = c->eof || c->server->draining;
    loop_task_queue(&c->task);
}

static int h1_stream_write(struct http_exchange *x, struct blob *b)
{
    struct http_conn *c = x->conn;
    if (c->cut) {
        return -ENOBUFS;
    }
    if (!b->size || c->h1.is_head) {
        return 0;
    }
    if (c->out.bytes && c->out.bytes + b->size > c->server->limits.max_stream_queue) {
        log_limited(&cut_limit, LOG_WARN, "stream cut, its client does not keep up",
                    "peer=%s path=%s queued=%zu", c->peer, x->target.path, c->out.bytes);
        c->cut = true;
    } else if (mine(x)->raw) {
        http_out_blob(&c->out, b);
    } else {
        http_out_chunk(&c->out, b);
    }
    loop_task_queue(&c->task);
    return c->cut ? -ENOBUFS : 0;
}

static size_t h1_stream_queued(const struct http_exchange *x)
{
    return x->conn->out.bytes;
}

/* Queues the end of the stream 'x', which leaves 'c'. */
static void stream_finish(struct http_conn *c, struct http_exchange *x)
{
    if (!mine(x)->raw) {
        http_out_last_chunk(&c->out);
    }
    c->h1.x = NULL;
    c->h1.keep_alive = c->h1.keep_alive && !c->server->draining;
    response_queued(c);
}

static void h1_stream_end(struct http_exchange *x)
{
    stream_finish(x->conn, x);
    http_exchange_free(x);
}

/* What is queued is sent; the last chunk is missing then. */
static void h1_stream_cut(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    c->h1.x = NULL;
    c->h1.keep_alive = false;
    response_queued(c);
    http_exchange_free(x);
}

/* ---- upgrades ---- */

static struct duplex *h1_upgrade(struct http_exchange *x, const char *protocol)
{
    struct http_conn *c = x->conn;
    struct h1_conn *h = &c->h1;
    if (h->state != H1_HANDLER || h->minor == 0 || c->eof || c->out.n || x->body.size ||
        c->server->draining) {
        return NULL;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    http1_start_response(&b, 101);
    strbuf_addf(&b, "Date: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n",
                http_server_date(c->server), protocol);
    if (x->extra.size) {
        strbuf_add(&b, x->extra.data, x->extra.size);
    }
    strbuf_add(&b, "\r\n", 2);
    struct duplex *d = http_conn_upgrade(c, h->in.data, h->in.size);
    duplex_write(d, b.data, b.size);
    strbuf_done(&h->in);
    h->state = H1_UPGRADED;
    h->x = NULL;
    http_exchange_free(x);
    return d;
}

/* ---- requests ---- */

/* Takes bytes of the body from 'p', and returns their number. The state is then H1_BODY,
 * H1_READY, or H1_SENDING an error. */
static size_t body_input(struct http_conn *c, const char *p, size_t size)
{
    struct h1_conn *h = &c->h1;
    struct http_exchange *x = h->x;
    struct http1_chunked *chunked = &mine(x)->chunked;
    bool sized = x->head.framing == HTTP1_LENGTH;
    size_t at = 0;
    int status = 0;
    if (sized) {
        at = (size_t) MIN((uint64_t) size, h->body_left);
        status = http_exchange_body(x, p, at);
        h->body_left -= at;
    }
    while (!sized && at < size && !chunked->done && !status) {
        const char *data;
        size_t used, n;
        if (http1_chunked_feed(chunked, p + at, size - at, &used, &data, &n) < 0) {
            request_fail(c, 400, "malformed chunk");
            return size;
        }
        status = http_exchange_body(x, data, n);
        at += used;
    }
    if (status) {
        request_fail(c, status,
                     status == 413 ? "the body is too large" : "too many requests at once");
        return size;
    }
    if (sized ? !h->body_left : chunked->done) {
        h->state = H1_READY;
    }
    return at;
}

/* The complete head of 'size' bytes is in h->in: takes it out and parses it. */
static void head_done(struct http_conn *c, size_t size)
{
    struct h1_conn *h = &c->h1;
    struct err e = {0};
    struct http_exchange *x = h->x = http_exchange_new(c, sizeof(struct h1_exchange));
    x->head_text = xmemdup(h->in.data, size);
    strbuf_consume(&h->in, size);
    h->scanned = 0;
    h->minor = 1;
    int r = http1_parse_request(x->head_text, size, &x->head, &e);
    if (r < 0) {
        request_fail(c, http1_error_status(r), e.text);
        return;
    }
    h->minor = x->head.minor;
    h->keep_alive = x->head.keep_alive;
    h->is_head = streq(x->head.method, "HEAD");
    int status = http_exchange_target(x, x->head.target, &e);
    if (status) {
        request_fail(c, status, e.text);
        return;
    }
    if (x->head.framing == HTTP1_NO_BODY) {
        h->state = H1_READY;
        return;
    }
    h->body_left = x->head.length;
    if (h->body_left > c->server->limits.max_body) {
        request_fail(c, 413, "the body is too large");
        return;
    }
    h->state = H1_BODY;
    http_conn_wait(c, HTTP_WAIT_BODY);
    if (x->head.expect_continue && !h->in.size) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        http_out_text(&c->out, text, sizeof text - 1);
        loop_task_queue(&c->task);
    }
}

static void head_input(struct http_conn *c)
{
    struct h1_conn *h = &c->h1;
    size_t max = c->server->limits.max_head;
    while (h->in.size >= 2 && memcmp(h->in.data, "\r\n", 2) == 0) {
        strbuf_consume(&h->in, 2);
        h->scanned = 0;
    }
    if (!h->in.size) {
        h->state = H1_IDLE;
        http_conn_wait(c, HTTP_WAIT_IDLE);
        return;
    }
    ssize_t end = http1_head_end(h->in.data, h->in.size, &h->scanned);
    size_t size = end > 0 ? (size_t) end : h->in.size;
    if (end < 0) {
        request_fail(c, 400, "a line does not end in CR LF");
    } else if (size > max && !memchr(h->in.data, '\n', MIN(size, max))) {
        request_fail(c, 414, "the target is too long");
    } else if (size > max) {
        request_fail(c, 431, "the head is too large");
    } else if (end) {
        head_done(c, (size_t) end);
    }
}

/* Continues with h->in, up to one request for the handler. */
static void h1_advance(struct http_conn *c)
{
    struct h1_conn *h = &c->h1;
    if (h->state == H1_IDLE && h->in.size) {
        h->state = H1_HEAD;
        http_conn_wait(c, HTTP_WAIT_HEAD);
    }
    if (h->state == H1_HEAD) {
        head_input(c);
    }
    if (h->state == H1_BODY && h->in.size) {
        strbuf_consume(&h->in, body_input(c, h->in.data, h->in.size));
    }
    if (!h->in.size) {
        strbuf_done(&h->in);
    }
    if (h->state == H1_READY) {
        http_conn_wait(c, HTTP_WAIT_NONE);
        h->state = H1_HANDLER;
        c->server->fn(c->server->ctx, h->x);
    }
}

/* Detects HTTP/2 with prior knowledge by the first bytes of a connection; true: they are not (or
 * not yet) for HTTP/1.1. */
static bool is_preface(struct http_conn *c)
{
    struct strbuf *in = &c->h1.in;
    if (memcmp(in->data, preface, MIN(in->size, PREFACE_SIZE)) != 0) {
        return false;
    }
    if (in->size < PREFACE_SIZE) {
        if (c->h1.state == H1_IDLE) {
            c->h1.state = H1_HEAD;
            http_conn_wait(c, HTTP_WAIT_HEAD);
        }
        return true;
    }
    CLEANUP_STRBUF struct strbuf taken = *in;
    *in = STRBUF_INIT;
    h2_begin(c);
    c->proto->input(c, taken.data, taken.size);
    return true;
}

static void h1_input(struct http_conn *c, const char *p, size_t size)
{
    struct h1_conn *h = &c->h1;
    size_t used = 0;
    if (h->state == H1_BODY && !h->in.size) {
        used = body_input(c, p, size);
    }
    if (used < size) {
        strbuf_add(&h->in, p + used, size - used);
    }
    if (!h->begun && is_preface(c)) {
        return;
    }
    h->begun = true;
    h1_advance(c);
}

/* A client may shut down its side once it has sent its request; a stream ends with it. */
static bool h1_eof(struct http_conn *c)
{
    return c->h1.state == H1_HANDLER || c->h1.state == H1_SENDING;
}

static bool h1_wants_input(const struct http_conn *c)
{
    return c->h1.in.size <= c->server->limits.max_head;
}

/* The response was sent: begins the next request, or closes. */
static void response_sent(struct http_conn *c)
{
    struct h1_conn *h = &c->h1;
    bool goes_on = h->keep_alive && !c->server->draining;
    if (h->x) {
        http_exchange_free(TAKE(h->x));
    }
    if (c->eof && !(goes_on && h->in.size)) {
        http_conn_close(c);
        return;
    }
    if (goes_on) {
        h->state = H1_IDLE;
        http_conn_wait(c, HTTP_WAIT_IDLE);
        h1_advance(c);
    } else {
        strbuf_done(&h->in);
        http_conn_linger(c);
    }
    http_conn_watch(c);
}

static void h1_sent(struct http_conn *c)
{
    struct http_exchange *x = c->h1.x;
    if (c->h1.state == H1_SENDING) {
        response_sent(c);
    } else if (c->h1.state == H1_STREAMING) {
        http_conn_wait(c, HTTP_WAIT_NONE);
        if (x->drained) {
            x->drained(x->drained_ctx);
        }
    }
}

static void h1_expired(struct http_conn *c)
{
    if (c->h1.state == H1_HEAD || c->h1.state == H1_BODY) {
        request_fail(c, 408, "the request took too long");
    } else {
        http_conn_close(c);
    }
}

static void h1_drain(struct http_conn *c)
{
    struct http_exchange *x = c->h1.x;
    if (c->h1.state == H1_IDLE) {
        http_conn_close(c);
    } else if (c->h1.state == H1_STREAMING) {
        stream_finish(c, x);
        http_exchange_orphan(x);
        http_exchange_tell(x, true);
    }
}

static void h1_detach(struct http_conn *c)
{
    struct http_exchange *x = TAKE(c->h1.x);
    enum h1_state state = c->h1.state;
    strbuf_done(&c->h1.in);
    if (state == H1_STREAMING || state == H1_HANDLER) {
        http_exchange_orphan(x);
        http_exchange_tell(x, true);
    } else if (x) {
        http_exchange_free(x);
    }
}

const struct http_proto http_h1 = {
    .input = h1_input,
    .eof = h1_eof,
    .sent = h1_sent,
    .wants_input = h1_wants_input,
    .expired = h1_expired,
    .drain = h1_drain,
    .detach = h1_detach,
    .respond = h1_respond,
    .stream_begin = h1_stream_begin,
    .stream_write = h1_stream_write,
    .stream_queued = h1_stream_queued,
    .stream_end = h1_stream_end,
    .stream_cut = h1_stream_cut,
    .upgrade = h1_upgrade,
};
