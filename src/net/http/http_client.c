/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client.
 *
 * A call owns its request text until the response begins, so that it can be sent again when a
 * kept connection turns out to be dead. A connection is either idle in the client's pool or
 * belongs to one call. Results are delivered last: after the callback nothing of the call is
 * touched, so callbacks may start and cancel calls and free the client. */
#include "base/list.h"
#include "base/mem.h"
#include "net/http/http.h"
#include "net/loop/sock.h"
#include "net/tls/tls.h"
#include "wire/http1.h"

#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 32768
#define READS_AT_ONCE 8
#define MAX_HEAD 65536
#define MAX_ERROR_BODY 65536 /* Limit for a stream's answer other than 200. */
#define MAX_CONNS 16         /* Limit for calls that are no streams; more wait. */
/* An idle connection is not reused after this; servers close at 90 s. */
#define POOL_MS 60000

struct conn {
    struct http_client *client;
    int fd;
    struct tls *tls; /* NULL: plain, or not connected yet. */
    struct loop_fd *watch;
    struct http_call *call; /* NULL: in the pool. */
    struct list pool_node;
    uint64_t idle_since;
    bool connected; /* Includes the TLS handshake. */
    bool reused;    /* Has carried a call before. */
};

enum phase { QUEUED, CONNECTING, SENDING, BODY };

struct http_call {
    struct http_client *client;
    struct list node; /* In client->calls, or client->queued. */
    struct conn *conn;
    enum phase phase;
    bool is_stream, to_head, may_repeat, was_queued, is_paused;
    char *what; /* "GET http://...", for error texts. */
    struct strbuf request;
    size_t sent;
    struct strbuf in; /* The head received so far. */
    size_t scanned;
    struct http1_head head;
    char *head_text;
    struct http1_chunked chunked;
    uint64_t left; /* Remaining bytes of a body with a length. */
    struct strbuf body;
    struct loop_timer *timer;
    struct loop_task
        start; /* Begins, or fails, a call from the loop, never from within a call of ours. */
    int start_error;
    uint64_t idle_ms;
    bool *gone; /* Set when the call is freed while its stream callbacks run. */
    http_result_fn *fn;
    struct http_stream_ops ops;
    char *protocol; /* That the connection is upgraded to; NULL: not at all. */
    struct duplex *upgraded;
    http_connected_fn *connected;
    void *ctx;
};

struct http_client {
    struct loop *loop;
    char *host;              /* For the Host header. */
    char *base;              /* "http://host:port", for error texts. */
    char *name;              /* Name in the server's certificate. */
    struct tls_context *tls; /* NULL: plain. */
    char *prefix;
    char *unix_path; /* NULL: TCP. */
    char *address;   /* IPv4 */
    uint16_t port;
    struct strbuf headers; /* Headers of all requests. */
    uint64_t connect_ms, response_ms;
    size_t max_body;
    struct list calls, queued;
    struct list pool; /* Longest idle first. */
    struct loop_timer *pool_timer;
    unsigned n_conns; /* Connections in the pool and of calls that are no streams. */
};

static void call_start(void *ctx);
static void conn_ready(void *ctx, unsigned events);
static void queue_advance(struct http_client *c);

/* ---- connections ---- */

static void conn_free(struct conn *n)
{
    loop_fd_free(n->watch);
    if (n->tls) {
        tls_shutdown(n->tls);
    }
    tls_free(n->tls);
    fd_close(n->fd);
    list_remove(&n->pool_node);
    free(n);
}

/* Whether the kernel reports no error or data for an idle connection. */
static bool conn_is_alive(const struct conn *n)
{
    char c;
    return recv(n->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Watches the events that reading or writing ('wanted') needs. */
static void conn_watch(struct conn *n, unsigned wanted)
{
    loop_fd_set(n->watch, n->tls ? tls_watch(n->tls, wanted) : wanted);
}

/* Like send and recv, with negative errno. */
static ssize_t conn_send(struct conn *n, const char *p, size_t size, struct err *e)
{
    if (n->tls) {
        return tls_write(n->tls, p, size, e);
    }
    ssize_t r = send(n->fd, p, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return r >= 0 ? r : errno == EINTR ? -EAGAIN : -errno;
}

static ssize_t conn_recv(struct conn *n, char *buf, size_t size, struct err *e)
{
    if (n->tls) {
        return tls_read(n->tls, buf, size, e);
    }
    ssize_t r = recv(n->fd, buf, size, MSG_DONTWAIT);
    return r >= 0 ? r : errno == EINTR ? -EAGAIN : -errno;
}

static void pool_drop(struct conn *n)
{
    n->client->n_conns--;
    conn_free(n);
}

/* The connection with the shortest idle time; NULL. */
static struct conn *pool_take(struct http_client *c)
{
    while (!list_is_empty(&c->pool)) {
        struct conn *n = CONTAINER_OF(c->pool.prev, struct conn, pool_node);
        if (conn_is_alive(n)) {
            list_remove(&n->pool_node);
            return n;
        }
        pool_drop(n);
    }
    return NULL;
}

static void pool_put(struct http_client *c, struct conn *n)
{
    n->call = NULL;
    n->reused = true;
    n->idle_since = loop_now_ms(c->loop);
    list_push_back(&c->pool, &n->pool_node);
    conn_watch(n, LOOP_READ);
    if (!loop_timer_armed(c->pool_timer)) {
        loop_timer_arm(c->pool_timer, POOL_MS);
    }
}

static void pool_expire(void *ctx)
{
    struct http_client *c = ctx;
    uint64_t now = loop_now_ms(c->loop);
    while (!list_is_empty(&c->pool)) {
        struct conn *n = CONTAINER_OF(c->pool.next, struct conn, pool_node);
        if (n->idle_since + POOL_MS > now) {
            loop_timer_arm(c->pool_timer, n->idle_since + POOL_MS - now);
            return;
        }
        pool_drop(n);
    }
}

/* Opens a connection for 'call'. */
static int conn_open(struct http_call *call, struct err *e)
{
    struct http_client *c = call->client;
    int fd;
    int r = c->unix_path ? sock_connect_unix(c->unix_path, &fd, e)
                         : sock_connect_tcp(c->address, c->port, &fd, e);
    if (r < 0) {
        return r;
    }
    struct conn *n = NEW(struct conn);
    n->client = c;
    n->fd = fd;
    n->call = call;
    list_init(&n->pool_node);
    n->watch = loop_fd_new(c->loop, fd, LOOP_WRITE, conn_ready, n);
    call->conn = n;
    return 0;
}

/* ---- the end of a call ---- */

/* Detaches the connection from the call, into the pool when it can be reused. */
static void call_release_conn(struct http_call *call, bool reusable)
{
    struct http_client *c = call->client;
    struct conn *n = TAKE(call->conn);
    if (!n) {
        return;
    }
    if (reusable && !call->is_stream) {
        pool_put(c, n);
        return;
    }
    conn_free(n);
    c->n_conns -= !call->is_stream;
}

static void call_free(struct http_call *call)
{
    if (call->gone) {
        *call->gone = true;
    }
    list_remove(&call->node);
    loop_timer_free(call->timer);
    loop_task_cancel(&call->start);
    free(call->what);
    free(call->protocol);
    duplex_free(call->upgraded);
    free(call->head_text);
    strbuf_done(&call->request);
    strbuf_done(&call->in);
    strbuf_done(&call->body);
    free(call);
}

/* Passes the result of http_connect, with the connection if there is one, to the user. */
static void report_connected(struct http_call *call, const struct http_result *r)
{
    struct http_client *c = call->client;
    http_connected_fn *fn = call->connected;
    void *ctx = call->ctx;
    char *text = TAKE(call->head_text); /* The strings of 'head'. */
    struct http1_head head = call->head;
    struct http_connected n = {
        .result = *r, .stream = TAKE(call->upgraded), .head = head.status ? &head : NULL};
    call_free(call);
    queue_advance(c);
    fn(ctx, &n);
    free(text);
}

/* A header of the response (owned); "" when absent. */
static char *take_header(const struct http_call *call, const char *name)
{
    const char *value = call->head.status ? http1_header(&call->head, name) : NULL;
    return xstrdup(value ? value : "");
}

/* Ends and frees the call, and reports 'r'; always the last step. */
static void call_report(struct http_call *call, int error, const char *text, bool reusable)
{
    struct http_client *c = call->client;
    call_release_conn(call, reusable);
    CLEANUP_STRBUF struct strbuf body = call->body;
    call->body = STRBUF_INIT;
    CLEANUP_FREE char *type = take_header(call, "content-type");
    CLEANUP_FREE char *location = take_header(call, "location");
    struct http_result r = {
        .error = error,
        .error_text = text,
        .status = call->head.status,
        .content_type = type,
        .location = location,
        .body = strbuf_cstr(&body),
        .size = body.size,
    };
    http_result_fn *fn = call->is_stream ? call->ops.ended : call->fn;
    void *ctx = call->ctx;
    if (call->protocol) {
        report_connected(call, &r);
        return;
    }
    call_free(call);
    queue_advance(c);
    fn(ctx, &r);
}

static void call_fail(struct http_call *call, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void call_fail(struct http_call *call, int error, const char *fmt, ...)
{
    struct err e = {0};
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    err_set(&e, error, "%.200s: %s", call->what, why);
    if (call->phase < BODY) {
        call->head.status = 0;
    }
    call_report(call, error, e.text, false);
}

static void call_expired(void *ctx)
{
    struct http_call *call = ctx;
    static const char *const doing[] = {[CONNECTING] = "connect",
                                        [SENDING] = "wait for the response",
                                        [BODY] = "read the response"};
    call_fail(call, -ETIMEDOUT, "%s: timed out", doing[call->phase]);
}

/* ---- sending ---- */

static void call_timer(struct http_call *call, uint64_t ms)
{
    if (ms) {
        loop_timer_arm(call->timer, ms);
    } else {
        loop_timer_disarm(call->timer);
    }
}

/* The connection broke; repeats the call if that is safe. 'why' may be "". */
static void call_broken(struct http_call *call, int error, const char *why)
{
    bool nothing_came = call->phase == SENDING && !call->in.size && !call->head_text;
    if (call->conn->reused && nothing_came && (call->may_repeat || !call->sent)) {
        call_release_conn(call, false);
        call->sent = 0;
        struct err e = {0};
        call->client->n_conns += !call->is_stream;
        int r = conn_open(call, &e);
        if (r < 0) {
            call->client->n_conns -= !call->is_stream;
            call_fail(call, r, "%s", e.text);
            return;
        }
        call->phase = CONNECTING;
        call_timer(call, call->client->connect_ms);
        return;
    }
    if (call->phase == CONNECTING) {
        call_fail(call, error, "connect: %s", *why ? why : strerror(-error));
    } else if (*why && error != -ECONNRESET) {
        call_fail(call, error, "%s", why);
    } else {
        call_fail(call, error, "the server closed the connection%s%s",
                  nothing_came ? " without a response" : "",
                  error == -ECONNRESET ? " (reset)" : "");
    }
}

/* Sends as much as possible. */
static void call_send(struct http_call *call)
{
    struct conn *n = call->conn;
    while (call->sent < call->request.size) {
        ssize_t r =
            conn_send(n, call->request.data + call->sent, call->request.size - call->sent, NULL);
        if (r >= 0) {
            call->sent += (size_t) r;
            continue;
        }
        if (r == -EAGAIN) {
            conn_watch(n, LOOP_READ | LOOP_WRITE);
            return;
        }
        break; /* There may be an answer nevertheless; reading shows it. */
    }
    conn_watch(n, LOOP_READ);
}

/* The connection is established: sends the request. */
static void call_connected(struct http_call *call)
{
    call->conn->connected = true;
    call->phase = SENDING;
    call_timer(call, call->client->response_ms);
    call_send(call);
}

/* ---- receiving ---- */

static void call_complete(struct http_call *call)
{
    bool reusable = call->head.keep_alive && call->sent == call->request.size;
    call_report(call, 0, "", reusable);
}

/* Whether the body goes to the user as it arrives. */
static bool is_flowing(const struct http_call *call)
{
    return call->is_stream && !call->protocol && (call->head.status == 200 || call->ops.head);
}

/* Passes 'size' bytes of the body to the user; false: the call is freed. */
static bool call_data(struct http_call *call, const char *p, size_t size)
{
    if (!size) {
        return true;
    }
    if (is_flowing(call)) {
        bool gone = false;
        call->gone = &gone;
        call->ops.data(call->ctx, p, size);
        if (!gone) {
            call->gone = NULL;
        }
        return !gone;
    }
    if (strbuf_add(&call->body, p, size) == 0) {
        return true;
    }
    if (call->is_stream) { /* The kept part of the error suffices. */
        strbuf_add(&call->body, p, call->body.max - call->body.size);
        call_report(call, 0, "", false);
    } else {
        call_fail(call, -EMSGSIZE, "the response is over %zu bytes", call->body.max);
    }
    return false;
}

/* Takes body bytes; false: the call is freed. */
static bool call_body(struct http_call *call, const char *p, size_t size)
{
    switch (call->head.framing) {
    case HTTP1_LENGTH: {
        size_t n = (size_t) MIN((uint64_t) size, call->left);
        call->left -= n;
        if (!call_data(call, p, n)) {
            return false;
        }
        if (call->left) {
            return true;
        }
        call->head.keep_alive &= n == size; /* More bytes than the response has. */
        call_complete(call);
        return false;
    }
    case HTTP1_CHUNKED:
        while (size && !call->chunked.done) {
            const char *data;
            size_t used, n;
            if (http1_chunked_feed(&call->chunked, p, size, &used, &data, &n) < 0) {
                call_fail(call, -EPROTO, "malformed chunk in the response");
                return false;
            }
            if (!call_data(call, data, n)) {
                return false;
            }
            p += used;
            size -= used;
        }
        if (!call->chunked.done) {
            return true;
        }
        call->head.keep_alive &= size == 0;
        call_complete(call);
        return false;
    case HTTP1_UNTIL_CLOSE:
        return call_data(call, p, size);
    case HTTP1_NO_BODY:
        break;
    }
    call->head.keep_alive &= size == 0;
    call_complete(call);
    return false;
}

/* The server has answered 101: the connection leaves the call. */
static void call_upgraded(struct http_call *call)
{
    const char *protocol = http1_header(&call->head, "upgrade");
    if (!call->protocol || !protocol || strcasecmp(protocol, call->protocol) != 0 ||
        call->sent < call->request.size) {
        call_fail(call, -EPROTO, "unexpected status 101");
        return;
    }
    struct conn *n = call->conn;
    n->watch = loop_fd_free(n->watch);
    call->upgraded =
        duplex_new(call->client->loop, fd_take(&n->fd), TAKE(n->tls), call->in.data, call->in.size);
    call_report(call, 0, "", false);
}

/* A complete head of 'size' bytes is in call->in; false: the call is freed. */
static bool call_head(struct http_call *call, size_t size)
{
    struct err e = {0};
    free(call->head_text);
    call->head_text = xmemdup(call->in.data, size);
    strbuf_consume(&call->in, size);
    call->scanned = 0;
    int r = http1_parse_response(call->head_text, size, call->to_head, &call->head, &e);
    if (r < 0) {
        call_fail(call, -EPROTO, "malformed response: %s", e.text);
        return false;
    }
    if (call->head.status < 200) {
        if (call->head.status == 101) {
            call_upgraded(call);
            return false;
        }
        return true;
    }
    call->phase = BODY;
    call->left = call->head.length;
    if (call->sent == call->request.size) {
        strbuf_done(&call->request);
        call->sent = 0;
    }
    if (is_flowing(call)) {
        call_timer(call, call->idle_ms);
        if (call->ops.head || call->ops.opened) {
            bool gone = false;
            call->gone = &gone;
            if (call->ops.head) {
                call->ops.head(call->ctx, &call->head);
            } else {
                call->ops.opened(call->ctx);
            }
            if (gone) {
                return false;
            }
            call->gone = NULL;
        }
    }
    struct strbuf rest = call->in;
    call->in = STRBUF_INIT;
    bool here = true;
    if (rest.size || call->head.framing == HTTP1_NO_BODY) {
        here = call_body(call, strbuf_cstr(&rest), rest.size);
    }
    strbuf_done(&rest);
    return here;
}

/* Processes the received bytes; false: the call is freed. */
static bool call_input(struct http_call *call, const char *p, size_t size)
{
    if (call->phase == BODY) {
        if (is_flowing(call) && call->idle_ms) {
            call_timer(call, call->idle_ms);
        }
        return call_body(call, p, size);
    }
    strbuf_add(&call->in, p, size);
    while (call->phase != BODY && call->in.size) {
        ssize_t end = http1_head_end(call->in.data, call->in.size, &call->scanned);
        if (end == 0 && call->in.size <= MAX_HEAD) {
            return true;
        }
        if (end <= 0) {
            call_fail(call, -EPROTO,
                      end ? "malformed response: a line does not end in CR LF"
                          : "the head of the response is too large");
            return false;
        }
        if (!call_head(call, (size_t) end)) {
            return false;
        }
    }
    return true;
}

static void call_read(struct http_call *call)
{
    UNINITIALIZED char buf[READ_SIZE];
    struct err e = {0};
    for (int i = 0; i < READS_AT_ONCE && !call->is_paused; i++) {
        bool is_tls = call->conn->tls;
        ssize_t n = conn_recv(call->conn, buf, sizeof buf, &e);
        if (n > 0) {
            /* TLS returns one record at a time. */
            if (!call_input(call, buf, (size_t) n) || (!is_tls && (size_t) n < sizeof buf)) {
                return;
            }
            continue;
        }
        if (n == -EAGAIN) {
            return;
        }
        if (n == 0 && call->phase == BODY && call->head.framing == HTTP1_UNTIL_CLOSE) {
            call_report(call, 0, "", false);
        } else {
            call_broken(call, n < 0 ? (int) n : -ECONNRESET, e.text);
        }
        return;
    }
}

/* A step of connecting: 0 when done, -EAGAIN, or the error. */
static int conn_establish(struct conn *n, struct err *e)
{
    struct http_client *c = n->client;
    if (!n->tls) {
        int r = sock_connect_result(n->fd);
        if (r < 0 || !c->tls) {
            return r;
        }
        n->tls = tls_connect(c->tls, n->fd, c->name);
    }
    return tls_handshake(n->tls, e);
}

static void conn_ready(void *ctx, unsigned events)
{
    struct conn *n = ctx;
    struct http_call *call = n->call;
    if (!call) { /* Idle: the server closed it, or sent unexpected data. */
        pool_drop(n);
        return;
    }
    if (!n->connected) {
        struct err e = {0};
        int r = conn_establish(n, &e);
        if (r == 0) {
            call_connected(call);
        } else if (r == -EAGAIN) {
            conn_watch(n, 0);
        } else {
            call_broken(call, r, e.text);
        }
        return;
    }
    if (n->tls) {
        events = tls_ready(n->tls, events);
    }
    if (call->is_paused) {
        conn_watch(n, 0);
        return;
    }
    if (events & LOOP_WRITE) {
        call_send(call);
    }
    if (events & LOOP_READ) {
        call_read(call);
    }
}

/* ---- starting calls ---- */

/* Gives the call a connection and begins. */
static void call_start(void *ctx)
{
    struct http_call *call = ctx;
    struct http_client *c = call->client;
    if (call->start_error) {
        call_fail(call, call->start_error, "%s",
                  call->start_error == -EINVAL ? "not a valid request" : "broken off");
        return;
    }
    struct conn *n = call->is_stream ? NULL : pool_take(c);
    if (n) {
        n->call = call;
        call->conn = n;
        call_connected(call);
        return;
    }
    if (!call->is_stream && c->n_conns >= MAX_CONNS) {
        list_remove(&call->node);
        if (call->was_queued) {
            list_push_front(&c->queued, &call->node);
        } else {
            list_push_back(&c->queued, &call->node);
        }
        call->was_queued = true;
        return;
    }
    struct err e = {0};
    int r = conn_open(call, &e);
    if (r < 0) {
        call_fail(call, r, "%s", e.text);
        return;
    }
    c->n_conns += !call->is_stream;
    call->phase = CONNECTING;
    call_timer(call, c->connect_ms);
}

/* A connection became free: starts the call that has waited longest. */
static void queue_advance(struct http_client *c)
{
    if (!list_is_empty(&c->queued)) {
        struct list *node = list_pop_front(&c->queued);
        list_push_back(&c->calls, node);
        loop_task_queue(&CONTAINER_OF(node, struct http_call, node)->start);
    }
}

static struct http_call *call_new(struct http_client *c, const char *method, const char *path,
                                  const char *accept, const char *content_type, const void *body,
                                  size_t size, void *ctx)
{
    struct http_call *call = NEW(struct http_call);
    call->client = c;
    call->ctx = ctx;
    call->request = call->in = STRBUF_INIT;
    call->body = STRBUF_INIT_MAX(c->max_body);
    call->to_head = streq(method, "HEAD");
    call->may_repeat = call->to_head || streq(method, "GET");
    call->what = xasprintf("%s %s%s", method, c->base, path);
    call->timer = loop_timer_new(c->loop, call_expired, call);
    loop_task_init(&call->start, c->loop, call_start, call);
    loop_task_queue(&call->start);
    list_push_back(&c->calls, &call->node);

    struct strbuf *b = &call->request;
    CLEANUP_FREE char *target = xasprintf("%s%s", c->prefix, path);
    if (*path != '/' || http1_start_request(b, method, target) < 0 ||
        (accept && http1_add_header(b, "Accept", accept) < 0) ||
        (content_type && http1_add_header(b, "Content-Type", content_type) < 0)) {
        call->start_error = -EINVAL;
        return call;
    }
    strbuf_add(b, c->headers.data, c->headers.size);
    if (size || streq(method, "POST") || streq(method, "PUT") || streq(method, "PATCH")) {
        strbuf_addf(b, "Content-Length: %zu\r\n", size);
    }
    strbuf_adds(b, "\r\n");
    strbuf_add(b, body, size);
    return call;
}

/* Inserts complete header lines before the blank line that ends the head of the request, of 'size'
 * bytes of body. */
static void insert_headers(struct http_call *call, const char *headers, const void *body,
                           size_t size)
{
    struct strbuf *b = &call->request;
    b->size -= size + 2;
    strbuf_addf(b, "%s\r\n", headers);
    strbuf_add(b, body, size);
}

struct http_call *http_call_with(struct http_client *c, const char *method, const char *path,
                                 const char *accept, const char *content_type, const char *headers,
                                 const void *body, size_t size, http_result_fn *fn, void *ctx)
{
    size = body ? size : 0;
    body = body ? body : "";
    struct http_call *call = call_new(c, method, path, accept, content_type, body, size, ctx);
    call->fn = fn;
    if (headers && !call->start_error) {
        insert_headers(call, headers, body, size);
    }
    return call;
}

struct http_call *http_call(struct http_client *c, const char *method, const char *path,
                            const char *accept, const char *content_type, const void *body,
                            size_t size, http_result_fn *fn, void *ctx)
{
    return http_call_with(c, method, path, accept, content_type, NULL, body, size, fn, ctx);
}

struct http_call *http_stream(struct http_client *c, const char *path, const char *accept,
                              uint64_t idle_ms, const struct http_stream_ops *ops, void *ctx)
{
    struct http_call *call = call_new(c, "GET", path, accept, NULL, "", 0, ctx);
    call->is_stream = true;
    call->ops = *ops;
    call->idle_ms = idle_ms;
    call->body.max = MAX_ERROR_BODY;
    return call;
}

struct http_call *http_forward(struct http_client *c, const char *method, const char *path,
                               const char *headers, const void *body, size_t size,
                               const struct http_stream_ops *ops, void *ctx)
{
    struct http_call *call = call_new(c, method, path, NULL, NULL, body, size, ctx);
    call->is_stream = true;
    call->may_repeat = false;
    call->ops = *ops;
    call->body.max = MAX_ERROR_BODY;
    if (!call->start_error) {
        insert_headers(call, headers, body, size);
    }
    return call;
}

void http_call_pause(struct http_call *call, bool pause)
{
    if (call->is_paused != pause && call->conn && call->conn->connected) {
        call->is_paused = pause;
        conn_watch(call->conn, pause ? 0 : LOOP_READ);
    }
}

struct http_call *http_connect(struct http_client *c, const char *method, const char *path,
                               const char *protocol, const char *headers, http_connected_fn *fn,
                               void *ctx)
{
    struct http_call *call = call_new(c, method, path, NULL, NULL, "", 0, ctx);
    call->is_stream = true;
    call->may_repeat = false;
    call->protocol = xstrdup(protocol);
    call->connected = fn;
    call->body.max = MAX_ERROR_BODY;
    if (!call->start_error) {
        CLEANUP_FREE char *lines =
            xasprintf("Connection: Upgrade\r\nUpgrade: %s\r\n%s", protocol, headers);
        insert_headers(call, lines, "", 0);
    }
    return call;
}

void http_call_cancel(struct http_call *call)
{
    struct http_client *c = call->client;
    call_release_conn(call, false);
    call_free(call);
    queue_advance(c);
}

/* ---- the client ---- */

/* Parses the URL; creates the context for https. */
static int parse_url(struct http_client *c, const char *url, const struct tls_client_config *tls,
                     struct err *e)
{
    c->prefix = xstrdup("");
    if (str_has_prefix(url, "unix://")) {
        if (url[7] != '/') {
            return err_set(e, -EINVAL, "\"%s\": no absolute path after unix://", url);
        }
        c->unix_path = xstrdup(url + 7);
        c->host = xstrdup("localhost");
        c->base = xstrdup(url);
        return 0;
    }
    bool is_tls = strncasecmp(url, "https://", 8) == 0;
    if (!is_tls && strncasecmp(url, "http://", 7) != 0) {
        return err_set(e, -EINVAL, "\"%s\" is not a URL such as https://10.0.0.1:8443", url);
    }
    const char *host = url + (is_tls ? 8 : 7), *path = host + strcspn(host, "/?#");
    size_t path_size = strlen(path);
    while (path_size && path[path_size - 1] == '/') {
        path_size--;
    }
    c->host = xstrndup(host, (size_t) (path - host));
    c->base = xasprintf("%s://%s", is_tls ? "https" : "http", c->host);
    free(c->prefix);
    c->prefix = xstrndup(path, path_size);
    CLEANUP_FREE char *name = xstrdup(c->host);
    char *colon = strchr(name, ':');
    uint64_t port = is_tls ? 443 : 80;
    if (colon) {
        *colon = '\0';
    }
    if (!*name || strpbrk(name, "@[]") || strpbrk(path, "?#") ||
        (colon && (str_to_u64(colon + 1, UINT16_MAX, &port) < 0 || !port))) {
        return err_set(e, -EINVAL, "\"%s\" is not a URL such as https://10.0.0.1:8443", url);
    }
    c->port = (uint16_t) port;
    int r = sock_resolve(name, &c->address, e);
    if (r == 0 && is_tls) {
        static const struct tls_client_config defaults;
        r = tls_client_new(tls ? tls : &defaults, &c->tls, e);
        c->name = TAKE(name);
    }
    return r;
}

int http_client_new(struct loop *l, const struct http_client_config *cfg, struct http_client **ret,
                    struct err *e)
{
    struct http_client *c = NEW(struct http_client);
    c->loop = l;
    c->connect_ms = cfg->connect_ms ? cfg->connect_ms : 5000;
    c->response_ms = cfg->response_ms ? cfg->response_ms : 30000;
    c->max_body = cfg->max_body ? cfg->max_body : 256 << 20;
    c->headers = STRBUF_INIT;
    list_init(&c->calls);
    list_init(&c->queued);
    list_init(&c->pool);
    c->pool_timer = loop_timer_new(l, pool_expire, c);
    int r = parse_url(c, cfg->url, cfg->tls, e);
    const char *host = cfg->host ? cfg->host : c->host;
    if (r == 0 && http1_add_header(&c->headers, "Host", host) < 0) {
        r = err_set(e, -EINVAL, "\"%s\" is not a valid host", host);
    }
    const char *agent = cfg->user_agent ? cfg->user_agent : "tenet/" TENET_VERSION;
    if (r == 0 && http1_add_header(&c->headers, "User-Agent", agent) < 0) {
        r = err_set(e, -EINVAL, "the user agent has control characters");
    }
    if (r == 0 && cfg->bearer_token) {
        CLEANUP_FREE char *value = xasprintf("Bearer %s", cfg->bearer_token);
        if (http1_add_header(&c->headers, "Authorization", value) < 0) {
            r = err_set(e, -EINVAL, "the bearer token has control characters");
        }
    }
    if (r < 0) {
        http_client_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

int http_client_set_tls(struct http_client *c, const struct tls_client_config *tls, struct err *e)
{
    struct tls_context *made = NULL;
    if (!c->tls) {
        return err_set(e, -EINVAL, "%s: not HTTPS", c->base);
    }
    int r = tls_client_new(tls, &made, e);
    if (r < 0) {
        return r;
    }
    tls_context_free(c->tls);
    c->tls = made;
    while (!list_is_empty(&c->pool)) {
        pool_drop(CONTAINER_OF(c->pool.next, struct conn, pool_node));
    }
    return 0;
}

void http_client_break_streams(struct http_client *c)
{
    struct http_call *call;
    LIST_FOREACH (call, struct http_call, node, &c->calls) {
        if (call->is_stream) {
            call->start_error = -ECONNRESET;
            loop_task_queue(&call->start);
        }
    }
}

void http_client_add_header(struct http_client *c, const char *name, const char *value)
{
    assert(!strpbrk(value, "\r\n"));
    strbuf_addf(&c->headers, "%s: %s\r\n", name, value);
}

struct http_client *http_client_free(struct http_client *c)
{
    if (!c) {
        return NULL;
    }
    while (!list_is_empty(&c->queued)) {
        call_free(CONTAINER_OF(c->queued.next, struct http_call, node));
    }
    while (!list_is_empty(&c->calls)) {
        struct http_call *call = CONTAINER_OF(c->calls.next, struct http_call, node);
        call_release_conn(call, false);
        call_free(call);
    }
    while (!list_is_empty(&c->pool)) {
        pool_drop(CONTAINER_OF(c->pool.next, struct conn, pool_node));
    }
    loop_timer_free(c->pool_timer);
    tls_context_free(c->tls);
    strbuf_done(&c->headers);
    free(c->host);
    free(c->name);
    free(c->base);
    free(c->address);
    free(c->prefix);
    free(c->unix_path);
    free(c);
    return NULL;
}

void http_escape(const char *s, struct strbuf *out)
{
    http1_escape(s, out);
}
