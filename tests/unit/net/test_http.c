/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http.h"

#include "base/log.h"
#include "base/timeutil.h"
#include "net/sock.h"
#include "wire/http1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 20000

/* ---- a server whose answers the tests steer ---- */

struct bench {
    struct loop *loop;
    struct http_server *server;
    int port;
    unsigned requests, conns_closed;
    struct http_exchange *held;   /* Of /hold. */
    struct http_exchange *stream; /* Of /stream, until it ends. */
    bool stream_closed;
    bool drained;
    struct blob *big;
    char last_peer[32];
};

static void stream_closed(void *ctx)
{
    struct bench *b = ctx;
    b->stream = NULL;
    b->stream_closed = true;
}

static void handle(void *ctx, struct http_exchange *x)
{
    struct bench *b = ctx;
    size_t size;
    const char *path = http_path(x), *body = http_body(x, &size);
    b->requests++;
    snprintf(b->last_peer, sizeof b->last_peer, "%s", http_peer(x));
    if (streq(path, "/hold")) {
        b->held = x;
    } else if (streq(path, "/stream")) {
        b->stream = x;
        b->stream_closed = false;
        http_stream_begin(x, 200, "application/json", stream_closed, b);
    } else if (streq(path, "/big")) {
        http_respond_blob(x, 200, "application/octet-stream", b->big);
    } else if (streq(path, "/none")) {
        http_respond(x, 204, NULL, "x", 1);
    } else if (streq(path, "/headers")) {
        http_set_header(x, "Warning", "299 - \"w\"");
        http_set_header(x, "Evil", "a\r\nInjected: yes");
        const char *token = http_header(x, "authorization"), *agent = http_header(x, "user-agent");
        CLEANUP_FREE char *text =
            xasprintf("%s|%s|%s", token ? token : "-", agent ? agent : "-", http_header(x, "host"));
        http_respond(x, 200, "text/plain", text, strlen(text));
    } else if (streq(path, "/error")) {
        http_respond(x, 403, "text/plain", "no", 2);
    } else {
        const char *q = http_query(x, "q");
        CLEANUP_FREE char *text = xasprintf("%s %s q=%s [%.*s]", http_method(x), path, q ? q : "-",
                                            (int) MIN(size, 1000), body);
        http_respond(x, 200, "text/plain", text, strlen(text));
    }
}

static void serve(struct bench *b, const struct http_limits *limits)
{
    struct err e = {0};
    char address[32];
    int fd;
    snprintf(address, sizeof address, "127.0.0.1:%d", b->port);
    if (sock_listen_tcp(address, &fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    b->port = sock_local_port(fd);
    b->server = http_server_new(b->loop, limits, handle, b);
    assert_int_equal(http_server_add_listener(b->server, fd, &e), 0);
}

static struct bench *bench_new(const struct http_limits *limits)
{
    struct bench *b = NEW(struct bench);
    b->loop = loop_new();
    serve(b, limits);
    return b;
}

static void bench_free(struct bench *b)
{
    http_server_free(b->server);
    if (b->held) {
        http_respond(b->held, 200, NULL, "", 0);
    }
    loop_free(b->loop);
    blob_unref(b->big);
    free(b);
}

static void turn(struct bench *b, bool (*condition)(void *), void *ctx)
{
    uint64_t end = time_mono_ms() + PATIENCE_MS;
    while (!condition(ctx)) {
        static const bool never = false;
        loop_run_until(b->loop, &never, 2);
        if (time_mono_ms() > end) {
            fail_msg("waited in vain");
        }
    }
}

static bool pointer_set(void *p)
{
    return *(void **) p;
}

static bool flag_set(void *p)
{
    return *(bool *) p;
}

#define WAIT_POINTER(b, p) turn(b, pointer_set, &(p))
#define WAIT_FLAG(b, f) turn(b, flag_set, &(f))

/* ---- a client that sends any bytes ---- */

struct raw {
    struct bench *b;
    int fd;
    struct strbuf in;
    bool eof, reset;
    const char *wanted;
};

static struct raw raw_connect(struct bench *b)
{
    struct raw r = {.b = b, .in = STRBUF_INIT};
    struct err e = {0};
    if (sock_connect_tcp("127.0.0.1", (uint16_t) b->port, &r.fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return r;
}

static void raw_done(struct raw *r)
{
    fd_close(r->fd);
    strbuf_done(&r->in);
}

static void raw_poll(struct raw *r)
{
    char buf[65536];
    for (;;) {
        ssize_t n = recv(r->fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n > 0) {
            strbuf_add(&r->in, buf, (size_t) n);
            continue;
        }
        r->eof = n == 0 || (errno != EAGAIN && errno != EINTR);
        r->reset = r->eof && n < 0;
        return;
    }
}

struct sending {
    struct raw *r;
    const char *p;
    size_t size;
};

static bool sent_all(void *ctx)
{
    struct sending *s = ctx;
    ssize_t n = send(s->r->fd, s->p, s->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != ENOTCONN) {
        return true; /* The server may have had enough. */
    }
    if (n > 0) {
        s->p += n;
        s->size -= (size_t) n;
    }
    return s->size == 0;
}

static void raw_send_n(struct raw *r, const char *p, size_t size)
{
    struct sending s = {r, p, size};
    turn(r->b, sent_all, &s);
}

static void raw_send(struct raw *r, const char *text)
{
    raw_send_n(r, text, strlen(text));
}

static bool raw_has(void *ctx)
{
    struct raw *r = ctx;
    raw_poll(r);
    return r->eof || (r->wanted && strstr(strbuf_cstr(&r->in), r->wanted));
}

static void raw_expect(struct raw *r, const char *text)
{
    r->wanted = text;
    turn(r->b, raw_has, r);
    if (!strstr(strbuf_cstr(&r->in), text)) {
        fail_msg("\"%s\" is not in \"%s\"", text, strbuf_cstr(&r->in));
    }
}

static void raw_expect_end(struct raw *r)
{
    r->wanted = NULL;
    turn(r->b, raw_has, r);
}

#define H "Host: t\r\n"

/* ---- server ---- */

static void requests_are_answered(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "PUT /a%20b?x=1&q=v%26w HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello");
    raw_expect(&r, "PUT /a b q=v&w [hello]");
    assert_string_equal(r.in.data, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                   "Content-Length: 22\r\n\r\nPUT /a b q=v&w [hello]");
    assert_non_null(strstr(b->last_peer, "127.0.0.1:"));
    strbuf_reset(&r.in);
    /* The same connection, the body in chunks, the text in pieces. */
    static const char text[] = "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: x\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        raw_send_n(&r, text + i, 1);
        static const bool never = false;
        loop_run_until(b->loop, &never, 1);
    }
    raw_expect(&r, "POST / q=- [abcde]");
    strbuf_reset(&r.in);
    raw_send(&r, "GET /headers HTTP/1.1\r\n" H "\r\n");
    raw_expect(&r, "|t");
    assert_non_null(strstr(r.in.data, "\r\nWarning: 299 - \"w\"\r\n"));
    assert_null(strstr(r.in.data, "Injected"));
    strbuf_reset(&r.in);
    raw_send(&r, "GET /none HTTP/1.1\r\n" H "\r\n");
    raw_expect(&r, "\r\n\r\n");
    assert_string_equal(r.in.data, "HTTP/1.1 204 No Content\r\n\r\n");
    strbuf_reset(&r.in);
    raw_send(&r, "HEAD / HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    raw_expect_end(&r);
    assert_string_equal(r.in.data, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                   "Connection: close\r\nContent-Length: 13\r\n\r\n");
    assert_false(r.reset);
    assert_int_equal(b->requests, 5);
    raw_done(&r);
    bench_free(b);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /1 HTTP/1.1\r\n" H "\r\n"
                 "\r\nPUT /2 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab"
                 "GET /hold HTTP/1.1\r\n" H "\r\n"
                 "PUT /3 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
                 "GET /4 HTTP/1.1\r\n" H "Connection: close\r\n\r\n"
                 "GET /5 HTTP/1.1\r\n" H "\r\n");
    raw_expect(&r, "PUT /2 q=- [ab]");
    WAIT_POINTER(b, b->held);
    assert_int_equal(b->requests, 3); /* The rest waits for the answer. */
    http_respond(TAKE(b->held), 200, NULL, "held", 4);
    raw_expect_end(&r);
    const char *last = r.in.data;
    static const char *const order[] = {"GET /1", "PUT /2", "held", "PUT /3 q=- [x]", "GET /4"};
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        last = strstr(last, order[i]);
        assert_non_null(last);
    }
    assert_null(strstr(r.in.data, "GET /5"));
    assert_int_equal(b->requests, 5);
    raw_done(&r);
    bench_free(b);
}

static void bad_requests_are_refused_and_the_connection_closed(void **state)
{
    static const struct http_limits limits = {.max_head = 1000, .max_body = 100};
    static const char *const table[][2] = {
        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"GET / HTTP/1.1\n", "HTTP/1.1 400 Bad Request\r\n"},
        {"nonsense\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /../x HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400 "},
        {"GET /%zz HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/3.0\r\n" H "\r\n", "HTTP/1.1 505 "},
        {"CONNECT h:80 HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400 "},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "HTTP/1.1 400 "},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "HTTP/1.1 400 "},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 101\r\n\r\n", "HTTP/1.1 413 "},
        {"PUT / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
         "HTTP/1.1 413 "},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n65\r\n"
         "0123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789",
         "HTTP/1.1 413 "},
    };
    struct bench *b = bench_new(&limits);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct raw r = raw_connect(b);
        raw_send(&r, table[i][0]);
        raw_send(&r, "more that nobody reads");
        raw_expect_end(&r);
        if (!str_has_prefix(strbuf_cstr(&r.in), table[i][1]) || r.reset ||
            !strstr(r.in.data, "\r\nConnection: close\r\n")) {
            fail_msg("%s: %s", table[i][0], strbuf_cstr(&r.in));
        }
        raw_done(&r);
    }
    /* Heads: in one piece, and without an end. */
    for (int i = 0; i < 2; i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        strbuf_adds(&text, "GET / HTTP/1.1\r\n" H "X: ");
        while (text.size < 1001) {
            strbuf_addc(&text, 'x');
        }
        strbuf_adds(&text, i ? "" : "\r\n\r\n");
        struct raw r = raw_connect(b);
        raw_send(&r, text.data);
        raw_expect(&r, "HTTP/1.1 431 ");
        raw_expect_end(&r);
        raw_done(&r);
    }
    assert_int_equal(b->requests, 0);
    /* A body of just the limit is fine. */
    struct raw r = raw_connect(b);
    raw_send(&r, "PUT / HTTP/1.1\r\n" H "Content-Length: 100\r\n\r\n");
    for (int i = 0; i < 10; i++) {
        raw_send(&r, "0123456789");
    }
    raw_expect(&r, "[0123456789");
    raw_done(&r);
    bench_free(b);
}

static void continue_is_said_when_asked_for(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "PUT / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    raw_expect(&r, "\r\n\r\n");
    assert_string_equal(r.in.data, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_send(&r, "hi");
    raw_expect(&r, "[hi]");
    strbuf_reset(&r.in);
    raw_send(&r, "PUT / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nyo");
    raw_expect(&r, "[yo]");
    assert_null(strstr(r.in.data, "100 Continue"));
    raw_done(&r);
    bench_free(b);
}

static void http_1_0_clients_are_served(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    raw_expect(&r, "GET /a");
    assert_non_null(strstr(r.in.data, "Connection: keep-alive\r\n"));
    strbuf_reset(&r.in);
    raw_send(&r, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    WAIT_POINTER(b, b->stream);
    CLEANUP(blob_unref) struct blob *one = blob_new("one", 3);
    http_stream_write(b->stream, one);
    http_stream_end(TAKE(b->stream));
    raw_expect_end(&r);
    assert_non_null(strstr(r.in.data, "Connection: close\r\n"));
    assert_null(strstr(r.in.data, "chunked"));
    assert_true(str_has_suffix(r.in.data, "\r\n\r\none"));
    raw_done(&r);
    bench_free(b);
}

static void a_client_that_shut_down_its_side_still_gets_its_answer(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /hold HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->held);
    shutdown(r.fd, SHUT_WR);
    static const bool never = false;
    loop_run_until(b->loop, &never, 20);
    http_respond(TAKE(b->held), 200, NULL, "late", 4);
    raw_expect_end(&r);
    assert_true(str_has_suffix(r.in.data, "late"));
    raw_done(&r);
    bench_free(b);
}

static void slow_clients_are_cut_off(void **state)
{
    static const struct http_limits limits = {.request_ms = 60, .idle_ms = 150};
    struct bench *b = bench_new(&limits);
    struct raw head = raw_connect(b), body = raw_connect(b), idle = raw_connect(b);
    raw_send(&head, "GET / HT");
    raw_send(&body, "PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nab");
    raw_expect(&head, "HTTP/1.1 408 ");
    raw_expect_end(&head);
    raw_expect(&body, "HTTP/1.1 408 ");
    raw_expect_end(&body);
    raw_expect_end(&idle);
    assert_int_equal(idle.in.size, 0);
    assert_int_equal(b->requests, 0);
    /* A handler may take longer than that. */
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /hold HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->held);
    static const bool never = false;
    loop_run_until(b->loop, &never, 300);
    http_respond(TAKE(b->held), 200, NULL, "done", 4);
    raw_expect(&r, "done");
    raw_done(&r);
    raw_done(&head);
    raw_done(&body);
    raw_done(&idle);
    bench_free(b);
}

static void big_responses_arrive_whole(void **state)
{
    struct bench *b = bench_new(NULL);
    size_t size = 20 << 20;
    char *data = xmalloc(size);
    for (size_t i = 0; i < size; i++) {
        data[i] = (char) (i * 2654435761u >> 13);
    }
    b->big = blob_new(data, size);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /big HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    raw_expect_end(&r);
    const char *body = strstr(r.in.data, "\r\n\r\n") + 4;
    assert_int_equal(r.in.size - (size_t) (body - r.in.data), size);
    assert_memory_equal(body, data, size);
    free(data);
    raw_done(&r);
    bench_free(b);
}

static void a_client_that_does_not_read_its_response_is_cut_off(void **state)
{
    static const struct http_limits limits = {.idle_ms = 100};
    struct bench *b = bench_new(&limits);
    b->big = blob_new(NULL, 0);
    blob_unref(b->big);
    char *data = xcalloc(1, 30 << 20);
    b->big = blob_new(data, 30 << 20);
    free(data);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /big HTTP/1.1\r\n" H "\r\n");
    uint64_t end = time_mono_ms() + PATIENCE_MS;
    static const bool never = false;
    while (b->big->refs == 1 || b->requests == 0) { /* Until it is queued, */
        loop_run_until(b->loop, &never, 2);
        assert_true(time_mono_ms() < end);
    }
    while (b->big->refs > 1) { /* and given up. */
        loop_run_until(b->loop, &never, 2);
        assert_true(time_mono_ms() < end);
    }
    raw_expect_end(&r);
    assert_true(r.in.size < 30 << 20);
    raw_done(&r);
    bench_free(b);
}

static void connections_are_limited_and_idle_ones_give_way(void **state)
{
    static const struct http_limits limits = {.max_conns = 2};
    struct bench *b = bench_new(&limits);
    struct raw busy = raw_connect(b), idle = raw_connect(b);
    raw_send(&busy, "GET /hold HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->held);
    raw_send(&idle, "GET /1 HTTP/1.1\r\n" H "\r\n");
    raw_expect(&idle, "GET /1");
    struct raw third = raw_connect(b);
    raw_send(&third, "GET /2 HTTP/1.1\r\n" H "\r\n");
    raw_expect(&third, "GET /2");
    raw_expect_end(&idle);
    http_respond(TAKE(b->held), 200, NULL, "x", 1);
    raw_expect(&busy, "\r\n\r\nx");
    raw_done(&busy);
    raw_done(&idle);
    raw_done(&third);
    bench_free(b);
}

static void an_answer_to_a_client_that_has_gone_is_dropped(void **state)
{
    struct bench *b = bench_new(NULL);
    for (int i = 0; i < 3; i++) {
        struct raw r = raw_connect(b);
        raw_send(&r, "GET /hold HTTP/1.1\r\n" H "\r\n");
        WAIT_POINTER(b, b->held);
        struct linger now = {.l_onoff = 1};
        setsockopt(r.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        raw_done(&r);
        static const bool never = false;
        loop_run_until(b->loop, &never, 20);
        assert_string_equal(http_path(b->held), "/hold");
        struct http_exchange *x = TAKE(b->held);
        if (i == 0) {
            http_respond(x, 200, NULL, "x", 1);
            continue;
        }
        b->stream_closed = false;
        http_stream_begin(x, 200, NULL, stream_closed, b);
        assert_false(b->stream_closed);
        CLEANUP(blob_unref) struct blob *one = blob_new("one", 3);
        assert_int_equal(http_stream_write(x, one), -EPIPE);
        if (i == 1) {
            WAIT_FLAG(b, b->stream_closed);
        } else {
            http_stream_end(x);
            loop_run_until(b->loop, &never, 5);
            assert_false(b->stream_closed);
        }
    }
    bench_free(b);
}

/* ---- streams ---- */

static void streams_send_chunks_as_they_are_written(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /stream HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->stream);
    raw_expect(&r, "Transfer-Encoding: chunked\r\n\r\n");
    strbuf_reset(&r.in);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4), *empty = blob_new("", 0);
    assert_int_equal(http_stream_write(b->stream, one), 0);
    assert_int_equal(http_stream_write(b->stream, empty), 0);
    assert_int_equal(http_stream_write(b->stream, one), 0);
    assert_int_equal(one->refs, 3); /* Shared, not copied. */
    raw_expect(&r, "one\n\r\n4\r\none\n\r\n");
    assert_string_equal(r.in.data, "4\r\none\n\r\n4\r\none\n\r\n");
    assert_int_equal(one->refs, 1);
    assert_int_equal(http_stream_queued(b->stream), 0);
    strbuf_reset(&r.in);
    http_stream_write(b->stream, one);
    http_stream_end(TAKE(b->stream));
    raw_expect(&r, "\r\n0\r\n\r\n");
    assert_string_equal(r.in.data, "4\r\none\n\r\n0\r\n\r\n");
    /* The connection goes on. */
    raw_send(&r, "GET /after HTTP/1.1\r\n" H "\r\n");
    raw_expect(&r, "GET /after");
    assert_false(b->stream_closed);
    strbuf_reset(&r.in);
    raw_send(&r, "HEAD /stream HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->stream);
    assert_int_equal(http_stream_write(b->stream, one), 0);
    http_stream_end(TAKE(b->stream));
    raw_send(&r, "GET /after HTTP/1.1\r\n" H "\r\n");
    raw_expect(&r, "GET /after");
    assert_null(strstr(r.in.data, "one"));
    raw_done(&r);
    bench_free(b);
}

static void a_stream_whose_client_went_away_is_closed(void **state)
{
    struct bench *b = bench_new(NULL);
    for (int i = 0; i < 3; i++) {
        struct raw r = raw_connect(b);
        raw_send(&r, "GET /stream HTTP/1.1\r\n" H "\r\n");
        WAIT_POINTER(b, b->stream);
        raw_expect(&r, "\r\n\r\n");
        if (i == 0) {
            shutdown(r.fd, SHUT_WR);
        } else if (i == 1) {
            struct linger now = {.l_onoff = 1};
            setsockopt(r.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        }
        if (i) {
            raw_done(&r);
        }
        WAIT_FLAG(b, b->stream_closed);
        if (!i) {
            raw_done(&r);
        }
    }
    bench_free(b);
}

static void a_stream_whose_client_does_not_read_is_cut(void **state)
{
    static const struct http_limits limits = {.max_stream_queue = 1 << 20};
    struct bench *b = bench_new(&limits);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /stream HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->stream);
    char data[10000];
    memset(data, 'x', sizeof data);
    CLEANUP(blob_unref) struct blob *blob = blob_new(data, sizeof data);
    static const bool never = false;
    int n = 0, w = 0;
    while ((w = http_stream_write(b->stream, blob)) == 0) {
        assert_true(++n < 100000);
        assert_true(http_stream_queued(b->stream) <= 1 << 20);
        if (n % 50 == 0) {
            loop_run_until(b->loop, &never, 1);
        }
    }
    assert_int_equal(w, -ENOBUFS);
    assert_false(b->stream_closed); /* Not from within the write. */
    assert_int_equal(http_stream_write(b->stream, blob), -ENOBUFS);
    WAIT_FLAG(b, b->stream_closed);
    assert_int_equal(blob->refs, 1);
    raw_expect_end(&r);
    assert_true(r.reset);
    raw_done(&r);
    bench_free(b);
}

struct pacing {
    struct bench *b;
    struct blob *blob;
    int left;
    bool done;
};

static void write_more(void *ctx)
{
    struct pacing *p = ctx;
    while (p->left && http_stream_queued(p->b->stream) < 100000) {
        assert_int_equal(http_stream_write(p->b->stream, p->blob), 0);
        p->left--;
    }
    if (!p->left && !p->done) {
        p->done = true;
        http_stream_end(TAKE(p->b->stream));
    }
}

static void much_is_sent_in_step_with_the_client(void **state)
{
    static const struct http_limits limits = {.max_stream_queue = 200000};
    struct bench *b = bench_new(&limits);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /stream HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    WAIT_POINTER(b, b->stream);
    char data[10000];
    memset(data, 'x', sizeof data);
    struct pacing p = {b, blob_new(data, sizeof data), 2000, false};
    http_stream_on_drained(b->stream, write_more, &p);
    write_more(&p);
    raw_expect_end(&r);
    assert_true(p.done);
    assert_true(r.in.size > 2000 * sizeof data);
    assert_true(str_has_suffix(r.in.data, "\r\n0\r\n\r\n"));
    blob_unref(p.blob);
    raw_done(&r);
    bench_free(b);
}

static unsigned streams_open;
static void one_of_many_closed(void *ctx)
{
    streams_open--;
}

static struct http_exchange *many[3000];
static unsigned n_many;
static void begin_one_of_many(void *ctx, struct http_exchange *x)
{
    many[n_many++] = x;
    streams_open++;
    http_stream_begin(x, 200, "application/json", one_of_many_closed, NULL);
}

static bool all_open(void *ctx)
{
    return streams_open == *(unsigned *) ctx;
}

static void thousands_of_idle_streams_are_cheap(void **state)
{
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    const unsigned streams = (unsigned) MIN((rlim_t) ARRAY_SIZE(many), (files.rlim_cur - 64) / 2);
    struct bench *b = bench_new(NULL);
    b->server = http_server_free(b->server);
    struct err e = {0};
    int fd;
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", b->port);
    assert_int_equal(sock_listen_tcp(address, &fd, &e), 0);
    b->server = http_server_new(b->loop, NULL, begin_one_of_many, b);
    assert_int_equal(http_server_add_listener(b->server, fd, &e), 0);
    int *fds = xcalloc(streams, sizeof *fds);
    static const char text[] = "GET /watch HTTP/1.1\r\n" H "Accept: application/json\r\n\r\n";
    for (unsigned i = 0; i < streams; i++) {
        struct raw r = raw_connect(b);
        raw_send(&r, text);
        fds[i] = r.fd;
    }
    unsigned want = streams;
    turn(b, all_open, &want);
    /* One event to all: the blob is shared, and each gets it. */
    struct blob *event = blob_new("event\n", 6);
    for (unsigned i = 0; i < streams; i++) {
        assert_int_equal(http_stream_write(many[i], event), 0);
    }
    assert_int_equal(event->refs, streams + 1);
    uint64_t end = time_mono_ms() + PATIENCE_MS;
    static const bool never = false;
    while (event->refs > 1) {
        loop_run_until(b->loop, &never, 1);
        assert_true(time_mono_ms() < end);
    }
    for (unsigned i = 0; i < streams; i++) {
        char buf[512];
        ssize_t n = recv(fds[i], buf, sizeof buf - 1, MSG_DONTWAIT);
        assert_true(n > 0);
        buf[n] = '\0';
        assert_non_null(strstr(buf, "6\r\nevent\n\r\n"));
        close(fds[i]);
    }
    blob_unref(event);
    want = 0;
    turn(b, all_open, &want);
    free(fds);
    bench_free(b);
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

static void shutdown_finishes_what_is_under_way(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw idle = raw_connect(b), held = raw_connect(b), stream = raw_connect(b),
               half = raw_connect(b);
    raw_send(&idle, "GET /1 HTTP/1.1\r\n" H "\r\n");
    raw_expect(&idle, "GET /1");
    raw_send(&stream, "GET /stream HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->stream);
    raw_send(&held, "GET /hold HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->held);
    raw_send(&half, "PUT /2 HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    raw_expect(&half, "100 Continue");
    CLEANUP(blob_unref) struct blob *one = blob_new("one", 3);
    http_stream_write(b->stream, one);
    http_server_shutdown(b->server, PATIENCE_MS, set_flag, &b->drained);
    assert_true(b->stream_closed);
    raw_expect_end(&idle);
    raw_expect_end(&stream);
    assert_true(str_has_suffix(stream.in.data, "3\r\none\r\n0\r\n\r\n"));
    raw_send(&half, "abc");
    raw_expect_end(&half);
    assert_non_null(strstr(half.in.data, "PUT /2 q=- [abc]"));
    assert_false(b->drained);
    http_respond(TAKE(b->held), 200, NULL, "held", 4);
    raw_expect_end(&held);
    assert_non_null(strstr(held.in.data, "Connection: close\r\n"));
    raw_done(&idle);
    raw_done(&held);
    raw_done(&stream);
    raw_done(&half);
    WAIT_FLAG(b, b->drained);
    bench_free(b);
}

static void shutdown_ends_after_its_time(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /hold HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->held);
    http_server_shutdown(b->server, 30, set_flag, &b->drained);
    WAIT_FLAG(b, b->drained);
    raw_expect_end(&r);
    assert_int_equal(r.in.size, 0);
    raw_done(&r);
    bench_free(b);
}

/* ---- client ---- */

struct got {
    bool done;
    unsigned calls;
    int error, status;
    char *text, *error_text, *type;
    struct strbuf data;
    unsigned opened;
    struct http_client *free_client; /* To be freed by the callback. */
    struct http_call *cancel;        /* To be cancelled by it. */
};

static void got_result(void *ctx, const struct http_result *r)
{
    struct got *g = ctx;
    g->done = true;
    g->calls++;
    g->error = r->error;
    g->status = r->status;
    free(g->text);
    free(g->error_text);
    free(g->type);
    g->text = xstrdup(r->body);
    assert_int_equal(strlen(r->body), r->size);
    g->error_text = xstrdup(r->error_text);
    g->type = xstrdup(r->content_type);
    http_client_free(TAKE(g->free_client));
}

static void got_data(void *ctx, const char *p, size_t size)
{
    struct got *g = ctx;
    strbuf_add(&g->data, p, size);
    if (g->cancel) {
        http_call_cancel(TAKE(g->cancel));
    }
    http_client_free(TAKE(g->free_client));
}

static void got_opened(void *ctx)
{
    ((struct got *) ctx)->opened++;
}

static const struct http_stream_ops stream_ops = {got_opened, got_data, got_result};

#define GOT                 \
    {                       \
        .data = STRBUF_INIT \
    }

static void got_done(struct got *g)
{
    free(g->text);
    free(g->error_text);
    free(g->type);
    strbuf_done(&g->data);
}

static struct http_client *client_with(struct bench *b, struct http_client_config cfg)
{
    char url[64];
    struct http_client *c;
    struct err e = {0};
    snprintf(url, sizeof url, "http://localhost:%d/", b->port);
    cfg.url = cfg.url ? cfg.url : url;
    if (http_client_new(b->loop, &cfg, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

static struct http_client *client(struct bench *b)
{
    return client_with(b, (struct http_client_config){0});
}

static void get(struct bench *b, struct http_client *c, const char *path, struct got *g)
{
    g->done = false;
    http_call(c, "GET", path, NULL, NULL, NULL, 0, got_result, g);
    WAIT_FLAG(b, g->done);
}

static void calls_bring_responses(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client_with(
        b, (struct http_client_config){.bearer_token = "secret", .user_agent = "agent/1"});
    struct got g = GOT;
    get(b, c, "/x?q=%C3%A9", &g);
    assert_int_equal(g.error, 0);
    assert_int_equal(g.status, 200);
    assert_string_equal(g.text, "GET /x q=\xc3\xa9 []");
    assert_string_equal(g.type, "text/plain");
    assert_string_equal(g.error_text, "");
    char first_peer[32];
    memcpy(first_peer, b->last_peer, sizeof first_peer);
    get(b, c, "/headers", &g);
    CLEANUP_FREE char *expect = xasprintf("Bearer secret|agent/1|localhost:%d", b->port);
    assert_string_equal(g.text, expect);
    get(b, c, "/error", &g);
    assert_int_equal(g.status, 403);
    assert_string_equal(g.text, "no");
    get(b, c, "/none", &g);
    assert_int_equal(g.status, 204);
    assert_string_equal(g.text, "");
    assert_string_equal(g.type, "");
    g.done = false;
    http_call(c, "POST", "/y", "application/json", "text/plain", "body", 4, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_string_equal(g.text, "POST /y q=- [body]");
    g.done = false;
    http_call(c, "HEAD", "/y", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.status, 200);
    assert_string_equal(g.text, "");
    get(b, c, "/again", &g);
    assert_string_equal(b->last_peer, first_peer); /* All on one connection. */
    assert_int_equal(g.calls, 7);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void calls_at_once_share_few_connections(void **state)
{
    enum { CALLS = 100 };
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    static struct got g[CALLS];
    for (int i = 0; i < CALLS; i++) {
        g[i] = (struct got) GOT;
        char path[32];
        snprintf(path, sizeof path, "/%d", i);
        http_call(c, "GET", path, NULL, NULL, NULL, 0, got_result, &g[i]);
        assert_int_equal(g[i].calls, 0);
    }
    for (int i = 0; i < CALLS; i++) {
        WAIT_FLAG(b, g[i].done);
        char expect[32];
        snprintf(expect, sizeof expect, "GET /%d q=- []", i);
        assert_string_equal(g[i].text, expect);
        assert_int_equal(g[i].calls, 1);
        got_done(&g[i]);
    }
    assert_int_equal(b->requests, CALLS);
    http_client_free(c);
    bench_free(b);
}

static void bad_calls_fail_from_the_loop(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    static const char *const paths[] = {"", "x", "/a b", "/a\r\nX: y"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        get(b, c, paths[i], &g);
        assert_int_equal(g.error, -EINVAL);
    }
    g.done = false;
    http_call(c, "GET", "/", "a\r\nb: c", NULL, NULL, 0, got_result, &g);
    assert_false(g.done);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -EINVAL);
    assert_int_equal(b->requests, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void a_server_that_is_not_there_is_an_error(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    b->server = http_server_free(b->server);
    struct got g = GOT;
    get(b, c, "/x", &g);
    assert_int_equal(g.error, -ECONNREFUSED);
    assert_int_equal(g.status, 0);
    CLEANUP_FREE char *where = xasprintf("GET http://localhost:%d/x: connect", b->port);
    assert_non_null(strstr(g.error_text, where));
    assert_non_null(strstr(g.error_text, "Connection refused"));
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void calls_survive_a_restart_of_the_server(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    for (int i = 0; i < 3; i++) {
        get(b, c, "/x", &g);
        assert_int_equal(g.error, 0);
        /* Either the client saw that the kept connection was closed, or it has to find out. */
        http_server_free(b->server);
        serve(b, NULL);
        if (i == 1) {
            static const bool never = false;
            loop_run_until(b->loop, &never, 20);
        }
    }
    g.done = false;
    http_call(c, "POST", "/x", NULL, NULL, "x", 1, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void answers_that_do_not_come_time_out(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client_with(b, (struct http_client_config){.response_ms = 50});
    struct got g = GOT;
    get(b, c, "/hold", &g);
    assert_int_equal(g.error, -ETIMEDOUT);
    assert_non_null(strstr(g.error_text, "timed out"));
    http_respond(TAKE(b->held), 200, NULL, "", 0);
    get(b, c, "/x", &g);
    assert_int_equal(g.error, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void responses_over_the_limit_are_refused(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client_with(b, (struct http_client_config){.max_body = 20});
    struct got g = GOT;
    get(b, c, "/123", &g);
    assert_int_equal(g.error, 0);
    get(b, c, "/12345678901234567890", &g);
    assert_int_equal(g.error, -EMSGSIZE);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void calls_can_be_cancelled_at_any_time(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    static const bool never = false;
    http_call_cancel(http_call(c, "GET", "/x", NULL, NULL, NULL, 0, got_result, &g));
    struct http_call *call = http_call(c, "GET", "/hold", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_POINTER(b, b->held);
    http_call_cancel(call);
    loop_run_until(b->loop, &never, 10);
    http_respond(TAKE(b->held), 200, NULL, "", 0);
    /* More than may run at once, then the client goes with all of them. */
    for (int i = 0; i < 40; i++) {
        http_call(c, "GET", "/x", NULL, NULL, NULL, 0, got_result, &g);
        if (i % 10 == 5) {
            loop_run_until(b->loop, &never, 1);
        }
    }
    unsigned calls = g.calls;
    http_client_free(c);
    loop_run_until(b->loop, &never, 20);
    assert_int_equal(g.calls, calls);
    /* From within the callback. */
    g.free_client = client(b);
    g.done = false;
    http_call(g.free_client, "GET", "/x", NULL, NULL, NULL, 0, got_result, &g);
    http_call(g.free_client, "GET", "/hold", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.calls, calls + 1);
    got_done(&g);
    bench_free(b);
}

static bool has_data(void *ctx)
{
    struct got *g = ctx;
    return g->data.size > 0 || g->done;
}

static void streams_deliver_bytes_as_they_come(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_stream(c, "/stream", "application/json", 0, &stream_ops, &g);
    WAIT_POINTER(b, b->stream);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4);
    for (int i = 0; i < 3; i++) {
        http_stream_write(b->stream, one);
        strbuf_reset(&g.data);
        turn(b, has_data, &g);
        assert_string_equal(g.data.data, "one\n");
    }
    assert_int_equal(g.opened, 1);
    /* Calls go on meanwhile. */
    struct got other = GOT;
    get(b, c, "/x", &other);
    assert_int_equal(other.status, 200);
    http_stream_end(TAKE(b->stream));
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, 0);
    assert_int_equal(g.status, 200);
    assert_int_equal(g.calls, 1);
    http_client_free(c);
    got_done(&g);
    got_done(&other);
    bench_free(b);
}

static void streams_that_are_refused_tell_why(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_stream(c, "/error", NULL, 0, &stream_ops, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, 0);
    assert_int_equal(g.status, 403);
    assert_string_equal(g.text, "no");
    assert_int_equal(g.opened, 0);
    assert_int_equal(g.data.size, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void streams_that_break_are_errors(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
    WAIT_POINTER(b, b->stream);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4);
    http_stream_write(b->stream, one);
    turn(b, has_data, &g);
    b->server = http_server_free(b->server);
    assert_true(b->stream_closed);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -ECONNRESET);
    /* Silence. */
    b->stream = NULL;
    serve(b, NULL);
    g.done = false;
    http_stream(c, "/stream", NULL, 60, &stream_ops, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -ETIMEDOUT);
    WAIT_FLAG(b, b->stream_closed);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void streams_can_be_cancelled_from_their_data(void **state)
{
    struct bench *b = bench_new(NULL);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4);
    for (int i = 0; i < 2; i++) {
        struct http_client *c = client(b);
        struct got g = GOT;
        struct http_call *call = http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
        WAIT_POINTER(b, b->stream);
        if (i) {
            g.free_client = c;
        } else {
            g.cancel = call;
        }
        http_stream_write(b->stream, one);
        http_stream_write(b->stream, one);
        WAIT_FLAG(b, b->stream_closed);
        assert_string_equal(g.data.data, "one\n");
        assert_false(g.done);
        if (!i) {
            http_client_free(c);
        }
        got_done(&g);
    }
    bench_free(b);
}

/* A server of one answer, byte for byte. */
struct canned {
    struct bench *b;
    int listen_fd;
    struct loop_fd *watch;
    struct loop_fd *conn_watch;
    int conn_fd;
    const char *answer;
    bool reset;
    unsigned accepted;
};

static void canned_answer(void *ctx, unsigned events)
{
    struct canned *s = ctx;
    char buf[4096];
    ssize_t n = recv(s->conn_fd, buf, sizeof buf, MSG_DONTWAIT);
    (void) n;
    send(s->conn_fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
    if (s->reset) {
        struct linger now = {.l_onoff = 1};
        setsockopt(s->conn_fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    s->conn_watch = loop_fd_free(s->conn_watch);
    s->conn_fd = fd_close(s->conn_fd);
}

static void canned_accept(void *ctx, unsigned events)
{
    struct canned *s = ctx;
    s->conn_fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s->conn_fd >= 0) {
        s->accepted++;
        s->conn_watch = loop_fd_new(s->b->loop, s->conn_fd, LOOP_READ, canned_answer, s);
    }
}

static void responses_of_other_servers_are_understood(void **state)
{
    static const struct {
        const char *answer;
        int error, status;
        const char *text;
    } table[] = {
        {"HTTP/1.0 200 OK\r\n\r\nuntil the end", 0, 200, "until the end"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 0, 200, ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
         0, 200, "ok"},
        {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
         0, 201, "abc"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore than asked for", 0, 200, "ok"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", -ECONNRESET, 200, "ok"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", -ECONNRESET, 200,
         "ab"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", -EPROTO, 200, "ab"},
        {"HTTP/1.1 200 OK\r\nContent-Le", -ECONNRESET, 0, ""},
        {"", -ECONNRESET, 0, ""},
        {"SSH-2.0-OpenSSH\r\n\r\n", -EPROTO, 0, ""},
        {"HTTP/1.1 200 OK\n\n", -EPROTO, 0, ""},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", -EPROTO, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", -EPROTO, 0, ""},
    };
    struct bench *b = bench_new(NULL);
    struct canned s = {.b = b, .conn_fd = -1};
    struct err e = {0};
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &s.listen_fd, &e), 0);
    s.watch = loop_fd_new(b->loop, s.listen_fd, LOOP_READ, canned_accept, &s);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d/prefix", sock_local_port(s.listen_fd));
    struct http_client *c = client_with(b, (struct http_client_config){.url = url});
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct got g = GOT;
        s.answer = table[i].answer;
        get(b, c, "/x", &g);
        if (g.error != table[i].error || g.status != table[i].status ||
            !streq(g.text, table[i].text)) {
            fail_msg("%s: %d %s, %d, \"%s\"", table[i].answer, g.error, g.error_text, g.status,
                     g.text);
        }
        assert_int_equal(s.accepted, i + 1); /* Nothing was repeated. */
        got_done(&g);
    }
    /* A body cut by a reset is no end, though no length was announced. */
    struct got g = GOT;
    s.answer = "HTTP/1.1 200 OK\r\n\r\npart";
    s.reset = true;
    get(b, c, "/x", &g);
    assert_true(g.error == -ECONNRESET || streq(g.text, "part"));
    got_done(&g);
    http_client_free(c);
    loop_fd_free(s.watch);
    fd_close(s.listen_fd);
    bench_free(b);
}

static void urls_are_checked(void **state)
{
    static const struct {
        const char *url;
        int r;
        const char *why;
    } table[] = {
        {"http://127.0.0.1", 0, ""},
        {"HTTP://localhost:8080/a/b/", 0, ""},
        {"unix:///run/x.sock", 0, ""},
        {"https://127.0.0.1:8443", -EPROTONOSUPPORT, "https is not supported"},
        {"127.0.0.1:80", -EINVAL, "not a URL"},
        {"ftp://x", -EINVAL, "not a URL"},
        {"http://", -EINVAL, "not a URL"},
        {"http://:80", -EINVAL, "not a URL"},
        {"http://127.0.0.1:0", -EINVAL, "not a URL"},
        {"http://127.0.0.1:65536", -EINVAL, "not a URL"},
        {"http://127.0.0.1:x", -EINVAL, "not a URL"},
        {"http://[::1]:80", -EINVAL, "not a URL"},
        {"http://u@127.0.0.1", -EINVAL, "not a URL"},
        {"http://127.0.0.1/?q", -EINVAL, "not a URL"},
        {"http://127.0.0.1\r\nX:80", -EINVAL, ""},
        {"unix://x", -EINVAL, "absolute path"},
    };
    struct loop *l = loop_new();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct http_client_config cfg = {.url = table[i].url};
        struct http_client *c = NULL;
        struct err e = {0};
        int r = http_client_new(l, &cfg, &c, &e);
        if ((r < 0) != (table[i].r < 0) || !strstr(e.text, table[i].why)) {
            fail_msg("%s: %d %s", table[i].url, r, e.text);
        }
        http_client_free(c);
    }
    struct http_client_config cfg = {.url = "http://127.0.0.1", .bearer_token = "a\nb"};
    struct http_client *c = NULL;
    assert_int_equal(http_client_new(l, &cfg, &c, NULL), -EINVAL);
    loop_free(l);
}

static void unix_sockets_work_too(void **state)
{
    char dir[] = "/tmp/tenet-http-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/s", dir), *url = xasprintf("unix://%s", path);
    struct bench *b = bench_new(NULL);
    int fd;
    struct err e = {0};
    assert_int_equal(sock_listen_unix(path, 0600, &fd, &e), 0);
    assert_int_equal(http_server_add_listener(b->server, fd, &e), 0);
    struct http_client *c = client_with(b, (struct http_client_config){.url = url});
    struct got g = GOT;
    get(b, c, "/x", &g);
    assert_string_equal(g.text, "GET /x q=- []");
    assert_string_equal(b->last_peer, "unix");
    http_client_free(c);
    got_done(&g);
    bench_free(b);
    unlink(path);
    rmdir(dir);
}

static void only_listening_sockets_are_served(void **state)
{
    struct bench *b = bench_new(NULL);
    struct err e = {0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(http_server_add_listener(b->server, fd, &e), -EINVAL);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* It was taken over. */
    assert_true(http_server_add_listener(b->server, -1, &e) < 0);
    bench_free(b);
}

int main(void)
{
    log_set_levels("error", NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(bad_requests_are_refused_and_the_connection_closed),
        cmocka_unit_test(continue_is_said_when_asked_for),
        cmocka_unit_test(http_1_0_clients_are_served),
        cmocka_unit_test(a_client_that_shut_down_its_side_still_gets_its_answer),
        cmocka_unit_test(slow_clients_are_cut_off),
        cmocka_unit_test(big_responses_arrive_whole),
        cmocka_unit_test(a_client_that_does_not_read_its_response_is_cut_off),
        cmocka_unit_test(connections_are_limited_and_idle_ones_give_way),
        cmocka_unit_test(an_answer_to_a_client_that_has_gone_is_dropped),
        cmocka_unit_test(streams_send_chunks_as_they_are_written),
        cmocka_unit_test(a_stream_whose_client_went_away_is_closed),
        cmocka_unit_test(a_stream_whose_client_does_not_read_is_cut),
        cmocka_unit_test(much_is_sent_in_step_with_the_client),
        cmocka_unit_test(thousands_of_idle_streams_are_cheap),
        cmocka_unit_test(shutdown_finishes_what_is_under_way),
        cmocka_unit_test(shutdown_ends_after_its_time),
        cmocka_unit_test(calls_bring_responses),
        cmocka_unit_test(calls_at_once_share_few_connections),
        cmocka_unit_test(bad_calls_fail_from_the_loop),
        cmocka_unit_test(a_server_that_is_not_there_is_an_error),
        cmocka_unit_test(calls_survive_a_restart_of_the_server),
        cmocka_unit_test(answers_that_do_not_come_time_out),
        cmocka_unit_test(responses_over_the_limit_are_refused),
        cmocka_unit_test(calls_can_be_cancelled_at_any_time),
        cmocka_unit_test(streams_deliver_bytes_as_they_come),
        cmocka_unit_test(streams_that_are_refused_tell_why),
        cmocka_unit_test(streams_that_break_are_errors),
        cmocka_unit_test(streams_can_be_cancelled_from_their_data),
        cmocka_unit_test(responses_of_other_servers_are_understood),
        cmocka_unit_test(urls_are_checked),
        cmocka_unit_test(unix_sockets_work_too),
        cmocka_unit_test(only_listening_sockets_are_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
