/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/2 on a connection of the server (RFC 9113), by nghttp2.
 *
 * A client's use of memory and work is bounded: streams, bytes of a head, of bodies, of unread
 * answers, and by 'allowance' the frames that are neither requests nor in proportion to the sent
 * data (RFC 9113, 10.5). Answers are not copied: each DATA frame refers to the blobs it is made
 * of. */
#include "base/log.h"
#include "net/http/http_server_priv.h"
#include "net/http/nghttp2_util.h"

#include <stddef.h>
#include <stdio.h>
#include <strings.h>

LOG_MODULE("http");

/* Maximum of data framed for the socket at once; more waits in its stream. */
#define FILL_BYTES ((size_t) 256 << 10)
#define FILL_SEGMENTS 1024
#define STREAM_WINDOW (256 << 10)
#define CONN_WINDOW (1 << 20)
#define MAX_CONTINUATIONS 8
#define MAX_ACKS 100
#define HEAD_BOMB 16 /* Times the largest head, after which the connection is closed. */
#define MAX_RESPONSE_FIELDS 24
/* Frames other than requests that a client may send, initially and at most. */
#define ALLOWANCE_MAX 2000u
#define ALLOWANCE_PER_S 100u
#define SMALL_DATA 64u
/* Allowance per frame of ours, as its receiver may send WINDOW_UPDATE in return. */
#define EARNS_BASE 2u
#define EARNS_BYTES 2048u

enum h2_state {
    RECEIVING, /* Head or body. */
    READY,     /* Complete, in c->ready. */
    HANDLER,   /* The handler has it. */
    STREAMING,
    SENDING, /* The whole response is queued. */
};

struct h2_exchange {
    struct http_exchange x;
    struct list node;       /* In h2->exchanges. */
    struct list ready_node; /* In h2->ready, and later in h2->drained. */
    struct http_deadline wait;
    size_t progress;
    int32_t id;
    enum h2_state state;
    bool received; /* The request is complete. */
    bool answered; /* A response was submitted. */
    bool is_head;
    bool too_large; /* The head. */
    bool was_reset; /* By us. */
    size_t head_size;
    struct strbuf fields; /* "name\0value\0" pairs of the head. */
    struct strbuf cookie; /* The value of the field cookie, which may come in parts. */
    char *method, *path, *authority;
    /* The body of the response; the first 'at' bytes of the first blob are framed already. */
    struct blob **blobs;
    size_t first, n, cap, at, bytes;
    bool ends; /* Nothing follows. */
};

struct h2_conn {
    nghttp2_session *session;
    struct list exchanges;
    unsigned n_exchanges;
    struct list ready;   /* Waiting for the handler, while 'queued' is too large. */
    struct list drained; /* Streams whose 'drained' call is due. */
    size_t queued;       /* Unframed bytes of response bodies. */
    unsigned allowance;
    uint64_t allowance_at_ms;
    int32_t head_id; /* Stream whose head is being received; 0: none. */
    bool over;       /* Nothing is read any more. */
};

static struct log_limit cut_limit, flood_limit, header_limit, error_limit;

static struct h2_exchange *mine(struct http_exchange *x)
{
    return CONTAINER_OF(x, struct h2_exchange, x);
}

/* ---- exchanges ---- */

static void queue_clear(struct h2_exchange *h)
{
    if (h->x.conn) {
        h->x.conn->h2->queued -= h->bytes;
    }
    while (h->first < h->n) {
        blob_unref(h->blobs[h->first++]);
    }
    free(h->blobs);
    h->blobs = NULL;
    h->first = h->n = h->cap = h->at = h->bytes = 0;
}

/* Detaches 'h' from its connection, but keeps x.conn. */
static void unlink_exchange(struct h2_exchange *h)
{
    struct http_conn *c = h->x.conn;
    queue_clear(h);
    list_remove(&h->node);
    list_remove(&h->ready_node);
    list_remove(&h->wait.node);
    strbuf_done(&h->fields);
    strbuf_done(&h->cookie);
    c->h2->n_exchanges--;
    c->server->stats.streams--;
}

/* They are in x.head_text once the head is complete. */
static void pseudo_free(struct h2_exchange *h)
{
    free(h->method);
    free(h->path);
    free(h->authority);
    h->method = h->path = h->authority = NULL;
}

static void exchange_done(struct h2_exchange *h)
{
    unlink_exchange(h);
    pseudo_free(h);
    http_exchange_free(&h->x);
}

static void reset(struct h2_exchange *h, uint32_t code)
{
    struct http_conn *c = h->x.conn;
    h->was_reset = true;
    nghttp2_submit_rst_stream(c->h2->session, NGHTTP2_FLAG_NONE, h->id, code);
    loop_task_queue(&c->task);
}

static void fail(struct h2_exchange *h, int status, const char *why);

static void exchange_expired(struct http_deadline *d)
{
    struct h2_exchange *h = CONTAINER_OF(d, struct h2_exchange, wait);
    if (!h->answered) {
        fail(h, 408, "the request took too long");
        return;
    }
    log_limited(&cut_limit, LOG_WARN, "stream cut, its client does not read", "peer=%s path=%s",
                h->x.conn->peer, h->x.target.path ? h->x.target.path : "");
    h->x.conn->server->stats.cut++;
    reset(h, NGHTTP2_CANCEL);
}

static struct h2_exchange *exchange_new(struct http_conn *c, int32_t id)
{
    struct http_exchange *x = http_exchange_new(c, sizeof(struct h2_exchange));
    struct h2_exchange *h = mine(x);
    h->id = id;
    h->fields = STRBUF_INIT;
    h->cookie = STRBUF_INIT;
    list_init(&h->ready_node);
    http_deadline_init(&h->wait, exchange_expired);
    list_push_back(&c->h2->exchanges, &h->node);
    c->h2->n_exchanges++;
    c->server->stats.streams++;
    return h;
}

/* ---- the body of a response ---- */

static void queue_push(struct h2_exchange *h, struct blob *b)
{
    if (h->n == h->cap && h->first) {
        h->n -= h->first;
        memmove(h->blobs, h->blobs + h->first, h->n * sizeof *h->blobs);
        h->first = 0;
    }
    h->blobs = grow(h->blobs, &h->cap, h->n + 1, sizeof(struct blob *));
    h->blobs[h->n++] = blob_ref(b);
    h->bytes += b->size;
    h->x.conn->h2->queued += b->size;
    if (!http_deadline_is_set(&h->wait)) {
        h->progress = 0;
        http_deadline_set(h->x.conn->server, &h->wait, HTTP_WAIT_SEND);
    }
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct h2_exchange *h = source->ptr;
    size_t n = MIN(size, h->bytes);
    if (!n && !h->ends) {
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == h->bytes && h->ends) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t) n;
}

static void made_progress(struct h2_exchange *h, size_t size)
{
    h->progress += size;
    if (!h->bytes) {
        http_deadline_set(h->x.conn->server, &h->wait, HTTP_WAIT_NONE);
    } else if (h->progress >= HTTP_PROGRESS_BYTES) {
        h->progress = 0;
        http_deadline_set(h->x.conn->server, &h->wait, HTTP_WAIT_SEND);
    }
}

/* Queues one DATA frame of 'size' bytes. */
static int send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                     size_t size, nghttp2_data_source *source, void *ctx)
{
    struct http_conn *c = ctx;
    struct h2_exchange *h = source->ptr;
    size_t head_size = HTTP_OUT_HEAD_SIZE, left = size;
    if (c->out.bytes >= FILL_BYTES || c->out.n - c->out.first >= FILL_SEGMENTS) {
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    if (!size) {
        http_out_text(&c->out, (const char *) head, head_size);
    }
    while (left) {
        struct blob *b = h->blobs[h->first];
        size_t part = MIN(left, b->size - h->at);
        http_out_slice(&c->out, head, head_size, b, h->at, part);
        head_size = 0;
        left -= part;
        h->at += part;
        if (h->at == b->size) {
            blob_unref(b);
            h->at = 0;
            h->first++;
        }
    }
    h->bytes -= size;
    c->h2->queued -= size;
    if (!h->bytes) {
        queue_clear(h);
        if (h->state == STREAMING) {
            list_push_back(&c->h2->drained, &h->ready_node);
        }
    }
    made_progress(h, size);
    c->h2->allowance =
        MIN(ALLOWANCE_MAX, c->h2->allowance + EARNS_BASE + (unsigned) (size / EARNS_BYTES));
    return 0;
}

/* ---- responses ---- */

/* Adds the lines of x->extra, with names in lower case; 'text' is a copy of it. */
static size_t extra_fields(char *text, nghttp2_nv *nv, size_t max)
{
    size_t n = 0;
    while (text && *text && n < max) {
        char *colon = strchr(text, ':'), *end = strstr(text, "\r\n");
        *colon = *end = '\0';
        for (char *p = text; *p; p++) {
            *p = (char) (*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
        }
        if (!streq(text, "connection") && !streq(text, "keep-alive")) {
            nv[n++] = nghttp2_field(text, colon + 2);
        }
        text = end + 2;
    }
    return n;
}

/* Submits the head of a response; 'body': DATA follow. */
static void submit_head(struct h2_exchange *h, int status, const char *content_type,
                        const char *length, bool body)
{
    struct http_conn *c = h->x.conn;
    char code[8];
    nghttp2_nv nv[4 + MAX_RESPONSE_FIELDS];
    size_t n = 0;
    CLEANUP_FREE char *extra = xstrndup(strbuf_cstr(&h->x.extra), h->x.extra.size);
    CLEANUP_STRBUF struct strbuf checked = STRBUF_INIT;
    snprintf(code, sizeof code, "%d", status);
    nv[n++] = nghttp2_field(":status", code);
    nv[n++] = nghttp2_field("date", http_server_date(c->server));
    if (content_type && http1_add_header(&checked, "content-type", content_type) < 0) {
        log_limited(&header_limit, LOG_WARN, "malformed content type dropped", "status=%d", status);
    } else if (content_type) {
        nv[n++] = nghttp2_field("content-type", content_type);
    }
    if (length) {
        nv[n++] = nghttp2_field("content-length", length);
    }
    n += extra_fields(extra, nv + n, MAX_RESPONSE_FIELDS);
    nghttp2_data_provider provider = {.source.ptr = h, .read_callback = read_body};
    h->answered = true;
    http_deadline_set(c->server, &h->wait, h->bytes ? HTTP_WAIT_SEND : HTTP_WAIT_NONE);
    nghttp2_submit_response(c->h2->session, h->id, nv, n, body ? &provider : NULL);
    loop_task_queue(&c->task);
}

static void answer(struct h2_exchange *h, int status, const char *content_type, const void *body,
                   struct blob *blob, size_t size)
{
    char length[24];
    bool bodyless = status == 204 || status == 304;
    snprintf(length, sizeof length, "%zu", size);
    h->state = SENDING;
    if (size && !bodyless && !h->is_head) {
        CLEANUP(blob_unref) struct blob *b = blob ? blob_ref(blob) : blob_new(body, size);
        queue_push(h, b);
    }
    h->ends = true;
    submit_head(h, status, content_type, bodyless ? NULL : length, h->bytes > 0);
    http_exchange_drop_body(&h->x);
}

/* Answers with an error of the server itself. */
static void fail(struct h2_exchange *h, int status, const char *why)
{
    struct http_server *s = h->x.conn->server;
    const char *type;
    CLEANUP_FREE char *text = http_error_text(&h->x, status, why, &type);
    log_debug("request refused", "peer=%s status=%d reason=\"%s\"", h->x.conn->peer, status, why);
    s->stats.errors++;
    answer(h, status, type, text, NULL, strlen(text));
}

static void h2_respond(struct http_exchange *x, int status, const char *content_type,
                       const void *body, struct blob *blob, size_t size)
{
    answer(mine(x), status, content_type, body, blob, size);
}

static void h2_stream_begin(struct http_exchange *x, int status, const char *content_type)
{
    struct h2_exchange *h = mine(x);
    h->state = STREAMING;
    h->ends = h->is_head;
    submit_head(h, status, content_type, NULL, !h->is_head);
    if (x->conn->server->draining) {
        reset(h, NGHTTP2_REFUSED_STREAM);
    }
}

static int h2_stream_write(struct http_exchange *x, struct blob *b)
{
    struct h2_exchange *h = mine(x);
    struct http_conn *c = x->conn;
    if (h->was_reset) {
        return -ENOBUFS;
    }
    if (!b->size || h->is_head) {
        return 0;
    }
    if (h->bytes && h->bytes + b->size > c->server->limits.max_stream_queue) {
        log_limited(&cut_limit, LOG_WARN, "stream cut, its client does not keep up",
                    "peer=%s path=%s queued=%zu", c->peer, x->target.path, h->bytes);
        c->server->stats.cut++;
        reset(h, NGHTTP2_CANCEL);
        return -ENOBUFS;
    }
    queue_push(h, b);
    nghttp2_session_resume_data(c->h2->session, h->id);
    loop_task_queue(&c->task);
    return 0;
}

static size_t h2_stream_queued(const struct http_exchange *x)
{
    return CONTAINER_OF(x, const struct h2_exchange, x)->bytes;
}

/* The response is complete; the connection owns the exchange from now on. */
static void stream_finish(struct h2_exchange *h)
{
    struct http_conn *c = h->x.conn;
    h->state = SENDING;
    h->ends = true;
    list_remove(&h->ready_node);
    nghttp2_session_resume_data(c->h2->session, h->id);
    loop_task_queue(&c->task);
}

static void h2_stream_end(struct http_exchange *x)
{
    x->is_streaming = false;
    stream_finish(mine(x));
}

static void h2_stream_cut(struct http_exchange *x)
{
    struct h2_exchange *h = mine(x);
    x->is_streaming = false;
    h->state = SENDING;
    if (!h->was_reset) {
        reset(h, NGHTTP2_INTERNAL_ERROR);
    }
}

/* ---- nghttp2's callbacks: requests ---- */

static struct h2_exchange *exchange_of(const struct http_conn *c, int32_t id)
{
    return nghttp2_session_get_stream_user_data(c->h2->session, id);
}

/* Counts a frame that is no request; when the allowance is used up, the connection ends. */
static void spend(struct http_conn *c)
{
    struct h2_conn *h2 = c->h2;
    uint64_t now = loop_now_ms(c->server->loop);
    uint64_t earned = (now - h2->allowance_at_ms) * ALLOWANCE_PER_S / 1000;
    if (earned) {
        h2->allowance = (unsigned) MIN((uint64_t) ALLOWANCE_MAX, h2->allowance + earned);
        h2->allowance_at_ms = now;
    }
    if (h2->allowance) {
        h2->allowance--;
    } else if (!h2->over) {
        h2->over = true;
        c->server->stats.floods++;
        log_limited(&flood_limit, LOG_WARN, "too many HTTP/2 frames that are no requests",
                    "peer=%s", c->peer);
        nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
    }
}

static int on_frame_begins(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx)
{
    bool request = hd->type == NGHTTP2_HEADERS;
    bool data = hd->type == NGHTTP2_DATA &&
                (hd->flags & NGHTTP2_FLAG_END_STREAM || hd->length >= SMALL_DATA);
    if (!request && !data) {
        spend(ctx);
    }
    return 0;
}

static int on_headers_begin(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct http_conn *c = ctx;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0; /* Trailers: ignored. */
    }
    struct h2_exchange *h = exchange_new(c, frame->hd.stream_id);
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, h);
    c->h2->head_id = h->id;
    http_conn_wait(c, HTTP_WAIT_HEAD);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *ctx)
{
    struct http_conn *c = ctx;
    struct h2_exchange *h = exchange_of(c, frame->hd.stream_id);
    if (!h) {
        return 0;
    }
    size_t max = c->server->limits.max_head;
    h->head_size += name_size + value_size + 32; /* RFC 9113, 6.5.2. */
    if (h->head_size > max * HEAD_BOMB) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    h->too_large |= h->head_size > max || h->x.head.n_headers == HTTP1_MAX_HEADERS;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST || h->too_large) {
        return 0;
    }
    static const struct {
        const char *name;
        size_t at;
    } pseudo[] = {{":method", offsetof(struct h2_exchange, method)},
                  {":path", offsetof(struct h2_exchange, path)},
                  {":authority", offsetof(struct h2_exchange, authority)}};
    for (size_t i = 0; i < ARRAY_SIZE(pseudo); i++) {
        if (name_size == strlen(pseudo[i].name) && memcmp(name, pseudo[i].name, name_size) == 0) {
            char **to = (char **) ((char *) h + pseudo[i].at);
            free(*to);
            *to = xstrndup((const char *) value, value_size);
            return 0;
        }
    }
    if (name_size == strlen("cookie") && memcmp(name, "cookie", name_size) == 0) {
        /* Browsers send each cookie as a field, to compress it; all are one (RFC 9113, 8.2.3). */
        strbuf_adds(&h->cookie, h->cookie.size ? "; " : "");
        strbuf_add(&h->cookie, value, value_size);
    } else if (*name != ':') {
        strbuf_add(&h->fields, name, name_size);
        strbuf_addc(&h->fields, '\0');
        strbuf_add(&h->fields, value, value_size);
        strbuf_addc(&h->fields, '\0');
        h->x.head.n_headers++;
    }
    return 0;
}

/* Moves the complete head to where the user looks for it; returns 0, or the status of an error. */
static int head_done(struct http_conn *c, struct h2_exchange *h, struct err *e)
{
    struct http_exchange *x = &h->x;
    uint64_t length = 0;
    if (h->too_large) {
        (void) err_set(e, -EMSGSIZE, "the head is too large");
        return 431;
    }
    if (!h->method || !h->path) {
        (void) err_set(e, -EINVAL, "CONNECT is not served");
        return 400;
    }
    if (h->authority) {
        strbuf_add(&h->fields, "host", 5);
        strbuf_add(&h->fields, h->authority, strlen(h->authority) + 1);
        x->head.n_headers++;
    }
    if (h->cookie.size) {
        strbuf_add(&h->fields, "cookie", sizeof "cookie");
        strbuf_add(&h->fields, h->cookie.data, h->cookie.size + 1);
        x->head.n_headers++;
    }
    size_t headers = h->fields.size;
    strbuf_add(&h->fields, h->method, strlen(h->method) + 1);
    x->head_text = strbuf_steal(&h->fields);
    x->head.headers = x->head_text;
    x->head.method = x->head_text + headers;
    h->is_head = streq(h->method, "HEAD");
    int status = http_exchange_target(x, h->path, e);
    pseudo_free(h);
    if (status) {
        return status;
    }
    const char *text = http1_header(&x->head, "content-length");
    if (text &&
        (str_to_u64(text, UINT64_MAX, &length) < 0 || length > c->server->limits.max_body)) {
        (void) err_set(e, -EMSGSIZE, "the body is too large");
        return 413;
    }
    return 0;
}

static void request_received(struct http_conn *c, struct h2_exchange *h)
{
    h->received = true;
    if (!h->answered) {
        http_deadline_set(c->server, &h->wait, HTTP_WAIT_NONE);
        h->state = READY;
        list_push_back(&c->h2->ready, &h->ready_node);
    }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct http_conn *c = ctx;
    uint8_t type = frame->hd.type;
    if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) {
        return 0;
    }
    struct h2_exchange *h = exchange_of(c, frame->hd.stream_id);
    bool request = type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (!h) {
        return 0;
    }
    if (request) {
        struct err e = {0};
        int status = head_done(c, h, &e);
        c->h2->head_id = 0;
        http_conn_wait(c, HTTP_WAIT_NONE);
        if (status) {
            h->received = ends;
            fail(h, status, e.text);
            return 0;
        }
        const char *expect = http1_header(&h->x.head, "expect");
        http_deadline_set(c->server, &h->wait, HTTP_WAIT_BODY);
        if (!ends && expect && strcasecmp(expect, "100-continue") == 0) {
            nghttp2_nv nv = nghttp2_field(":status", "100");
            nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, h->id, NULL, &nv, 1, NULL);
        }
    }
    if (ends) {
        request_received(c, h);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                   size_t size, void *ctx)
{
    struct h2_exchange *h = exchange_of(ctx, id);
    if (!h || h->answered) {
        return 0;
    }
    int status = http_exchange_body(&h->x, (const char *) p, size);
    if (status) {
        fail(h, status, status == 413 ? "the body is too large" : "too many requests at once");
    }
    return 0;
}

/* The whole response was sent before the client has sent its whole request: the rest is not
 * needed. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        struct h2_exchange *h = exchange_of(ctx, frame->hd.stream_id);
        if (h && !h->received) {
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, h->id, NGHTTP2_NO_ERROR);
        }
    }
    return 0;
}

static int on_stream_closed(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
    struct http_conn *c = ctx;
    struct h2_exchange *h = exchange_of(c, id);
    if (!h) {
        return 0;
    }
    if (c->h2->head_id == id) {
        c->h2->head_id = 0;
    }
    if (h->state == HANDLER || h->state == STREAMING) {
        unlink_exchange(h);
        http_exchange_orphan(&h->x);
        http_exchange_tell(&h->x, false);
    } else {
        exchange_done(h);
    }
    return 0;
}

/* ---- the connection ---- */

static void session_new(struct http_conn *c)
{
    nghttp2_session_callbacks *callbacks = nghttp2_callbacks();
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_frame_begins);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_headers_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
    nghttp2_option *option;
    nghttp2_must(nghttp2_option_new(&option));
    /* Our allowance counts resets too, and tolerates those of cancelled watches. */
    nghttp2_option_set_stream_reset_rate_limit(option, 2 * ALLOWANCE_MAX, 2 * ALLOWANCE_PER_S);
    nghttp2_option_set_max_continuations(option, MAX_CONTINUATIONS);
    nghttp2_option_set_max_outbound_ack(option, MAX_ACKS);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_must(nghttp2_session_server_new2(&c->h2->session, callbacks, c, option));
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->server->limits.max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t) c->server->limits.max_head},
    };
    nghttp2_must(
        nghttp2_submit_settings(c->h2->session, NGHTTP2_FLAG_NONE, settings, ARRAY_SIZE(settings)));
    nghttp2_must(
        nghttp2_session_set_local_window_size(c->h2->session, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW));
}

void h2_begin(struct http_conn *c)
{
    struct h2_conn *h2 = c->h2 = NEW(struct h2_conn);
    c->proto = &http_h2;
    strbuf_done(&c->h1.in);
    list_init(&h2->exchanges);
    list_init(&h2->ready);
    list_init(&h2->drained);
    h2->allowance = ALLOWANCE_MAX;
    h2->allowance_at_ms = loop_now_ms(c->server->loop);
    c->server->stats.h2_conns++;
    session_new(c);
    http_conn_wait(c, HTTP_WAIT_IDLE);
    loop_task_queue(&c->task);
}

/* Gives complete requests to the handler, as long as unsent answers are below the limit. */
static void run_ready(struct http_conn *c)
{
    struct h2_conn *h2 = c->h2;
    while (!h2->over && !list_is_empty(&h2->ready) &&
           h2->queued <= c->server->limits.max_conn_queue) {
        struct h2_exchange *h =
            CONTAINER_OF(list_pop_front(&h2->ready), struct h2_exchange, ready_node);
        h->state = HANDLER;
        c->server->fn(c->server->ctx, &h->x);
    }
}

static void h2_input(struct http_conn *c, const char *p, size_t size)
{
    struct h2_conn *h2 = c->h2;
    if (h2->over) {
        return;
    }
    ssize_t r = nghttp2_session_mem_recv(h2->session, (const uint8_t *) p, size);
    if (r < 0) {
        h2->over = true;
        log_limited(&error_limit, LOG_INFO, "HTTP/2 connection refused", "peer=%s error=\"%s\"",
                    c->peer, nghttp2_strerror((int) r));
        nghttp2_session_terminate_session(h2->session, r == NGHTTP2_ERR_FLOODED ||
                                                               r == NGHTTP2_ERR_CALLBACK_FAILURE
                                                           ? NGHTTP2_ENHANCE_YOUR_CALM
                                                           : NGHTTP2_PROTOCOL_ERROR);
    }
    run_ready(c);
    loop_task_queue(&c->task);
}

static bool h2_eof(struct http_conn *c)
{
    return false;
}

static bool h2_wants_input(const struct http_conn *c)
{
    return c->out.bytes < FILL_BYTES;
}

static void h2_fill(struct http_conn *c)
{
    struct h2_conn *h2 = c->h2;
    while (c->out.bytes < FILL_BYTES && c->out.n - c->out.first < FILL_SEGMENTS) {
        const uint8_t *p;
        ssize_t n = nghttp2_session_mem_send(h2->session, &p);
        if (n <= 0) {
            h2->over |= n < 0;
            break;
        }
        http_out_text(&c->out, (const char *) p, (size_t) n);
    }
    while (!list_is_empty(&h2->drained)) {
        struct h2_exchange *h =
            CONTAINER_OF(list_pop_front(&h2->drained), struct h2_exchange, ready_node);
        if (h->x.drained) {
            h->x.drained(h->x.drained_ctx);
        }
    }
}

static void h2_sent(struct http_conn *c)
{
    struct h2_conn *h2 = c->h2;
    run_ready(c);
    bool ended =
        !nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session);
    if (h2->over || ended) {
        http_conn_linger(c);
        http_conn_watch(c);
        c->proto->detach(c);
        h1_begin(c); /* Which is silent while lingering. */
    } else if (!h2->head_id) {
        http_conn_wait(c, h2->n_exchanges ? HTTP_WAIT_NONE : HTTP_WAIT_IDLE);
    }
}

static void h2_expired(struct http_conn *c)
{
    c->h2->over = true;
    nghttp2_session_terminate_session(c->h2->session, NGHTTP2_NO_ERROR);
    loop_task_queue(&c->task);
}

/* Ends streams; requests in progress are answered, and no new ones are begun. */
static void h2_drain(struct http_conn *c)
{
    struct h2_exchange *h;
    LIST_FOREACH (h, struct h2_exchange, node, &c->h2->exchanges) {
        if (h->state == STREAMING) {
            struct http_exchange *x = &h->x;
            stream_finish(h);
            x->is_streaming = false;
            x->closed(x->closed_ctx);
        }
    }
    nghttp2_submit_goaway(c->h2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(c->h2->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
    loop_task_queue(&c->task);
}

static void h2_detach(struct http_conn *c)
{
    struct h2_conn *h2 = c->h2;
    struct list lost;
    struct h2_exchange *h;
    list_init(&lost);
    LIST_FOREACH (h, struct h2_exchange, node, &h2->exchanges) {
        bool users = h->state == HANDLER || h->state == STREAMING;
        unlink_exchange(h);
        if (users) {
            http_exchange_orphan(&h->x);
            list_push_back(&lost, &h->node);
        } else {
            pseudo_free(h);
            http_exchange_free(&h->x);
        }
    }
    nghttp2_session_del(h2->session);
    c->h2 = NULL;
    free(h2);
    c->server->stats.h2_conns--;
    while (!list_is_empty(&lost)) {
        h = CONTAINER_OF(list_pop_front(&lost), struct h2_exchange, node);
        http_exchange_tell(&h->x, true);
    }
}

const struct http_proto http_h2 = {
    .input = h2_input,
    .eof = h2_eof,
    .fill = h2_fill,
    .sent = h2_sent,
    .wants_input = h2_wants_input,
    .expired = h2_expired,
    .drain = h2_drain,
    .detach = h2_detach,
    .respond = h2_respond,
    .stream_begin = h2_stream_begin,
    .stream_write = h2_stream_write,
    .stream_queued = h2_stream_queued,
    .stream_end = h2_stream_end,
    .stream_cut = h2_stream_cut,
};
