/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/timeutil.h"
#include "http_bench.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Compares the response, in which the first header is the present time. */
static void expect_dated(struct raw *r, const char *status, const char *rest)
{
    int64_t now_ms = time_wall_ms();
    bool found = false;
    for (int64_t ago_s = 0; ago_s < 10 && !found; ago_s++) {
        char date[TIME_TEXT_SIZE];
        time_format_http(now_ms - ago_s * 1000, date);
        CLEANUP_FREE char *want = xasprintf("%s\r\nDate: %s\r\n%s", status, date, rest);
        found = streq(r->in.data, want);
    }
    if (!found) {
        fail_msg("have %s\nwant %s with %s", r->in.data, status, rest);
    }
}

static void requests_are_answered(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "PUT /a%20b?x=1&q=v%26w HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello");
    raw_expect(&r, "PUT /a b q=v&w [hello]");
    expect_dated(&r, "HTTP/1.1 200 OK",
                 "Content-Type: text/plain\r\n"
                 "Content-Length: 22\r\n\r\nPUT /a b q=v&w [hello]");
    assert_non_null(strstr(b->last_peer, "127.0.0.1:"));
    strbuf_reset(&r.in);
    /* The same connection, the body in chunks, the text in pieces. */
    static const char text[] = "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
                               "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: x\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        raw_send_n(&r, text + i, 1);
        bench_run_for(b, 1);
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
    expect_dated(&r, "HTTP/1.1 204 No Content", "\r\n");
    strbuf_reset(&r.in);
    raw_send(&r, "HEAD / HTTP/1.1\r\n" H "Connection: close\r\n\r\n");
    raw_expect_end(&r);
    expect_dated(&r, "HTTP/1.1 200 OK",
                 "Content-Type: text/plain\r\n"
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
    bench_run_for(b, 20);
    http_respond(TAKE(b->held), 200, NULL, "late", 4);
    raw_expect_end(&r);
    assert_true(str_has_suffix(r.in.data, "late"));
    raw_done(&r);
    bench_free(b);
}

static void slow_clients_are_cut_off(void **state)
{
    static const struct http_limits limits = {.head_ms = 60, .body_ms = 60, .idle_ms = 150};
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
    bench_run_for(b, 300);
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
    static const struct http_limits limits = {.send_ms = 100};
    struct bench *b = bench_new(&limits);
    b->big = blob_new(NULL, 0);
    blob_unref(b->big);
    char *data = xcalloc(1, 30 << 20);
    b->big = blob_new(data, 30 << 20);
    free(data);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /big HTTP/1.1\r\n" H "\r\n");
    uint64_t end = time_mono_ms() + PATIENCE_MS;
    while (b->big->refs == 1 || b->requests == 0) { /* Until it is queued, */
        bench_run_for(b, 2);
        assert_true(time_mono_ms() < end);
    }
    while (b->big->refs > 1) { /* and given up. */
        bench_run_for(b, 2);
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
        bench_run_for(b, 20);
        assert_string_equal(http_path(b->held), "/hold");
        struct http_exchange *x = TAKE(b->held);
        if (i == 0) {
            http_respond(x, 200, NULL, "x", 1);
            continue;
        }
        b->stream_closed = false;
        http_stream_begin(x, 200, NULL, bench_stream_closed, b);
        assert_false(b->stream_closed);
        CLEANUP(blob_unref) struct blob *one = blob_new("one", 3);
        assert_int_equal(http_stream_write(x, one), -EPIPE);
        if (i == 1) {
            WAIT_FLAG(b, b->stream_closed);
        } else {
            http_stream_end(x);
            bench_run_for(b, 5);
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
    int n = 0, w = 0;
    while ((w = http_stream_write(b->stream, blob)) == 0) {
        assert_true(++n < 100000);
        assert_true(http_stream_queued(b->stream) <= 1 << 20);
        if (n % 50 == 0) {
            bench_run_for(b, 1);
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
    bench_turn(b, all_open, &want);
    /* One event to all: the blob is shared, and each gets it. */
    struct blob *event = blob_new("event\n", 6);
    for (unsigned i = 0; i < streams; i++) {
        assert_int_equal(http_stream_write(many[i], event), 0);
    }
    assert_int_equal(event->refs, streams + 1);
    uint64_t end = time_mono_ms() + PATIENCE_MS;
    while (event->refs > 1) {
        bench_run_for(b, 1);
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
    bench_turn(b, all_open, &want);
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

static void a_stream_that_begins_during_shutdown_is_closed(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET /hold HTTP/1.1\r\n" H "\r\n");
    WAIT_POINTER(b, b->held);
    http_server_shutdown(b->server, PATIENCE_MS, set_flag, &b->drained);
    http_stream_begin(TAKE(b->held), 200, NULL, bench_stream_closed, b);
    assert_false(b->stream_closed);
    WAIT_FLAG(b, b->stream_closed);
    WAIT_FLAG(b, b->drained);
    raw_done(&r);
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
        cmocka_unit_test(a_stream_that_begins_during_shutdown_is_closed),
        cmocka_unit_test(shutdown_ends_after_its_time),
        cmocka_unit_test(only_listening_sockets_are_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
