/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/timeutil.h"
#include "h2_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/socket.h>

static void expect(struct h2_client *c, struct h2_reply *r, int status, const char *body)
{
    h2_wait(c, r);
    if (!r->ended || r->status != status || !strstr(strbuf_cstr(&r->body), body)) {
        fail_msg("status %d, error %u, %s: %s", r->status, r->error, r->ended ? "ended" : "cut",
                 strbuf_cstr(&r->body));
    }
}

static void expect_get(struct h2_client *c, const char *path, int status, const char *body)
{
    expect(c, h2_get(c, path), status, body);
}

static struct blob *filled(size_t size)
{
    char *data = xmalloc(size);
    for (size_t i = 0; i < size; i++) {
        data[i] = (char) (i * 2654435761u >> 13);
    }
    struct blob *b = blob_new(data, size);
    free(data);
    return b;
}

/* ---- requests ---- */

/* The head of the response without the date, which the status has before it. */
static const char *undated(struct h2_reply *r)
{
    char *date = strstr(r->head.data, "\ndate: ");
    assert_non_null(date);
    char *end = strchr(date + 1, '\n');
    assert_int_equal(end - date, sizeof "\ndate: Sun, 06 Nov 1994 08:49:37 GMT" - 1);
    memmove(date, end, strlen(end) + 1);
    return r->head.data;
}

static void requests_are_answered(void **state)
{
    static const char *const headers[] = {"user-agent", "ua", "authorization", "tok", NULL};
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *r = h2_ask(c, "PUT", "/a%20b?x=1&q=v%26w", NULL, "hello", 5);
    expect(c, r, 200, "PUT /a b q=v&w [hello]");
    assert_string_equal(undated(r), ":status: 200\ncontent-type: text/plain\ncontent-length: 22\n");
    r = h2_ask(c, "GET", "/headers", headers, NULL, 0);
    expect(c, r, 200, "tok|ua|t");
    assert_non_null(strstr(r->head.data, "warning: 299 - \"w\"\n"));
    assert_null(strstr(r->head.data, "injected"));
    r = h2_get(c, "/none");
    expect(c, r, 204, "");
    assert_string_equal(undated(r), ":status: 204\n");
    assert_int_equal(r->body.size, 0);
    r = h2_ask(c, "HEAD", "/", NULL, NULL, 0);
    expect(c, r, 200, "");
    assert_non_null(strstr(r->head.data, "content-length: 13\n"));
    assert_int_equal(r->body.size, 0);
    assert_int_equal(b->requests, 4);
    assert_non_null(strstr(b->last_peer, "127.0.0.1:"));
    struct http_stats stats = http_server_stats(b->server);
    assert_int_equal(stats.conns, 1);
    assert_int_equal(stats.h2_conns, 1);
    assert_int_equal(stats.streams, 0);
    h2_client_free(c);
    bench_free(b);
}

/* As browsers send them: one field for each (RFC 9113, 8.2.3). */
static void cookies_in_parts_are_one_field(void **state)
{
    static const char *const headers[] = {"cookie",     "a=1",    "user-agent", "ua", "cookie",
                                          "ssn=x_y-z=", "cookie", "c=3",        NULL};
    static const char *const one[] = {"cookie", "a=1; b=2", NULL};
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *r = h2_ask(c, "GET", "/headers", headers, NULL, 0);
    expect(c, r, 200, "-|ua|t|a=1; ssn=x_y-z=; c=3");
    r = h2_ask(c, "GET", "/headers", one, NULL, 0);
    expect(c, r, 200, "-|-|t|a=1; b=2");
    h2_client_free(c);
    bench_free(b);
}

static void both_versions_are_served_on_one_port(void **state)
{
    struct bench *b = bench_new(NULL);
    struct raw h1 = raw_connect(b);
    struct h2_client *c = h2_client_new(b, 0);
    /* The preface in pieces; and what looks like it at first. */
    const uint8_t *p;
    ssize_t n = nghttp2_session_mem_send(c->session, &p);
    assert_true(n >= 24);
    for (ssize_t i = 0; i < n; i++) {
        raw_send_n(&c->r, (const char *) p + i, 1);
        bench_run_for(b, 1);
    }
    expect_get(c, "/two", 200, "GET /two");
    raw_send(&h1, "P");
    bench_run_for(b, 5);
    raw_send(&h1, "RI HTTP/1.1\r\n" H "\r\n");
    raw_expect(&h1, "HTTP/1.1 400 ");
    raw_done(&h1);
    h1 = raw_connect(b);
    raw_send(&h1, "PRI * HTTP/2.0\r\n\r\nxx\r\n\r\n");
    raw_expect(&h1, "HTTP/1.1 505 ");
    raw_done(&h1);
    h2_client_free(c);
    bench_free(b);
}

static void requests_of_one_connection_do_not_wait_for_each_other(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *held = h2_get(c, "/hold"), *many[100];
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        char path[16];
        snprintf(path, sizeof path, "/%zu.", i);
        many[i] = h2_get(c, path);
    }
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        char path[16];
        snprintf(path, sizeof path, "GET /%zu.", i);
        expect(c, many[i], 200, path);
    }
    assert_non_null(b->held);
    assert_false(held->closed);
    http_respond(TAKE(b->held), 200, NULL, "held", 4);
    expect(c, held, 200, "held");
    h2_client_free(c);
    bench_free(b);
}

static void trailers_are_ignored_and_continue_is_said(void **state)
{
    static const char *const expects[] = {"expect", "100-continue", NULL};
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *r = h2_ask(c, "PUT", "/a", expects, "", 0);
    r->upload_hangs = true;
    h2_wait_head(c, r);
    assert_int_equal(r->status, 100);
    r->upload = "hi";
    r->upload_size = 2;
    r->upload_hangs = false;
    nghttp2_session_resume_data(c->session, r->id);
    expect(c, r, 200, "[hi]");
    r = h2_ask(c, "PUT", "/b", NULL, "", 0);
    r->upload_hangs = true;
    h2_pump(c);
    h2_frame(c, NGHTTP2_DATA, 0, r->id, "body", 4);
    /* Literal field without indexing: "t: v". */
    h2_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, r->id,
             "\x00\x01t\x01v", 5);
    expect(c, r, 200, "PUT /b q=- [body]");
    h2_client_free(c);
    bench_free(b);
}

static void bad_requests_are_refused_and_the_connection_goes_on(void **state)
{
    static const struct http_limits limits = {.max_head = 2000, .max_uri = 500, .max_body = 100};
    static const char *const length[] = {"content-length", "101", NULL};
    static const char *const huge[] = {"content-length", "99999999999999999999999", NULL};
    struct bench *b = bench_new(&limits);
    struct h2_client *c = h2_client_new(b, 0);
    char uri[601], value[2001], body[101];
    memset(uri, 'u', sizeof uri);
    memset(value, 'v', sizeof value);
    memset(body, 'b', sizeof body);
    uri[0] = '/';
    uri[600] = value[2000] = '\0';
    const char *large[] = {"x", value, NULL};
    const char *many[121];
    for (size_t i = 0; i < 120; i++) {
        many[i] = i % 2 ? "" : "a";
    }
    many[120] = NULL;
    expect(c, h2_ask(c, "GET", uri, NULL, NULL, 0), 414, "the target is longer than 500 bytes");
    expect(c, h2_ask(c, "GET", "/", large, NULL, 0), 431, "the head is too large");
    expect(c, h2_ask(c, "GET", "/", many, NULL, 0), 431, "the head is too large");
    expect(c, h2_get(c, "/../x"), 400, "");
    expect(c, h2_get(c, "/%zz"), 400, "");
    expect(c, h2_ask(c, "PUT", "/", NULL, body, sizeof body), 413, "the body is too large");
    struct h2_reply *r = h2_ask(c, "PUT", "/", length, "", 0);
    r->upload_hangs = true;
    expect(c, r, 413, "the body is too large");
    h2_pump(c);
    assert_true(r->closed); /* What would have come is not wanted. */
    assert_int_equal(r->error, NGHTTP2_NO_ERROR);
    /* nghttp2 itself sees that this is no number. */
    r = h2_ask(c, "PUT", "/", huge, "", 0);
    h2_wait(c, r);
    assert_int_equal(r->error, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(b->requests, 0);
    expect(c, h2_ask(c, "PUT", "/", NULL, body, 100), 200, "[bbbb");
    assert_int_equal(http_server_stats(b->server).errors, 7);
    assert_int_equal(http_server_stats(b->server).body_bytes, 0);
    h2_client_free(c);
    bench_free(b);
}

static void bodies_of_all_requests_are_bounded(void **state)
{
    static const struct http_limits limits = {.max_body = 4000, .max_bodies = 16000};
    static char body[3000];
    struct bench *b = bench_new(&limits);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *a = h2_ask(c, "PUT", "/1", NULL, body, sizeof body);
    a->upload_hangs = true;
    h2_pump(c);
    /* One address may have a quarter. */
    expect(c, h2_ask(c, "PUT", "/2", NULL, body, sizeof body), 503, "too many requests");
    a->upload_hangs = false;
    nghttp2_session_resume_data(c->session, a->id);
    expect(c, a, 200, "PUT /1");
    expect(c, h2_ask(c, "PUT", "/2", NULL, body, sizeof body), 200, "PUT /2");
    assert_int_equal(http_server_stats(b->server).body_bytes, 0);
    h2_client_free(c);
    bench_free(b);
}

static void slow_requests_are_cut_off(void **state)
{
    static const struct http_limits limits = {.head_ms = 60, .body_ms = 60, .idle_ms = 200};
    struct bench *b = bench_new(&limits);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *held = h2_get(c, "/hold");
    struct h2_reply *slow = h2_ask(c, "PUT", "/", NULL, "x", 1);
    slow->upload_hangs = true;
    expect(c, slow, 408, "took too long");
    http_respond(TAKE(b->held), 200, NULL, "x", 1);
    expect(c, held, 200, "x"); /* A handler may take longer than that. */
    /* A head that does not end takes the connection with it, */
    h2_frame(c, NGHTTP2_HEADERS, 0, 99, "\x82", 1);
    h2_wait_goaway(c);
    assert_true(c->goaway);
    h2_client_free(c);
    /* as idleness does, */
    c = h2_client_new(b, 0);
    expect_get(c, "/", 200, "GET /");
    h2_wait_goaway(c);
    assert_true(c->goaway);
    assert_int_equal(c->goaway_error, NGHTTP2_NO_ERROR);
    h2_client_free(c);
    /* and a preface that does not end. */
    struct raw r = raw_connect(b);
    raw_send(&r, "PRI * HTTP/2");
    raw_expect_end(&r);
    raw_done(&r);
    bench_free(b);
}

/* ---- responses ---- */

static void big_responses_arrive_whole(void **state)
{
    struct bench *b = bench_new(NULL);
    b->big = filled(9 << 20);
    struct h2_client *c = h2_client_new(b, 20000);
    struct h2_reply *r[3];
    for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
        r[i] = h2_get(c, "/big");
    }
    for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
        h2_wait(c, r[i]);
        assert_true(r[i]->ended);
        assert_int_equal(r[i]->body.size, b->big->size);
        assert_memory_equal(r[i]->body.data, b->big->data, b->big->size);
    }
    assert_int_equal(b->big->refs, 1);
    h2_client_free(c);
    bench_free(b);
}

static void requests_wait_while_answers_pile_up(void **state)
{
    static const struct http_limits limits = {.max_conn_queue = 1 << 20};
    struct bench *b = bench_new(&limits);
    b->big = filled(3 << 20);
    struct h2_client *c = h2_client_new(b, 0);
    c->keep_window = true;
    struct h2_reply *first = h2_get(c, "/big");
    h2_wait_head(c, first);
    struct h2_reply *second = h2_get(c, "/second");
    for (int i = 0; i < 20; i++) {
        h2_pump(c);
    }
    assert_int_equal(second->status, 0);
    assert_int_equal(b->requests, 1);
    c->keep_window = false;
    nghttp2_session_consume_stream(c->session, first->id, first->body.size);
    h2_wait(c, first);
    assert_int_equal(first->body.size, b->big->size);
    expect(c, second, 200, "GET /second");
    h2_client_free(c);
    bench_free(b);
}

static void a_response_that_is_not_read_is_cut_and_others_are_served(void **state)
{
    static const struct http_limits limits = {.send_ms = 100};
    struct bench *b = bench_new(&limits);
    b->big = filled(1 << 20);
    struct h2_client *c = h2_client_new(b, 0);
    c->keep_window = true;
    struct h2_reply *stuck = h2_get(c, "/big");
    h2_wait_head(c, stuck);
    while (!stuck->closed) {
        expect_get(c, "/other", 200, "GET /other");
    }
    assert_false(stuck->ended);
    assert_int_equal(stuck->error, NGHTTP2_CANCEL);
    assert_int_equal(b->big->refs, 1);
    assert_int_equal(http_server_stats(b->server).cut, 1);
    h2_client_free(c);
    /* A window opened byte by byte is no progress. */
    c = h2_client_new(b, 1);
    stuck = h2_get(c, "/big");
    h2_wait(c, stuck);
    assert_int_equal(stuck->error, NGHTTP2_CANCEL);
    assert_true(stuck->body.size >= 1 && stuck->body.size < 16384);
    h2_client_free(c);
    bench_free(b);
}

/* ---- streams ---- */

static bool has_text(void *ctx)
{
    void **p = ctx;
    struct h2_client *c = p[0];
    struct h2_reply *r = p[1];
    h2_pump(c);
    return strstr(strbuf_cstr(&r->body), p[2]);
}

static void wait_text(struct h2_client *c, struct h2_reply *r, const char *text)
{
    void *args[] = {c, r, (void *) text};
    bench_turn(c->b, has_text, args);
}

static void streams_send_what_is_written(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *r = h2_get(c, "/stream");
    h2_wait_head(c, r);
    assert_int_equal(r->status, 200);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4), *empty = blob_new("", 0);
    assert_int_equal(http_stream_write(b->stream, one), 0);
    assert_int_equal(http_stream_write(b->stream, empty), 0);
    assert_int_equal(http_stream_write(b->stream, one), 0);
    assert_int_equal(one->refs, 3); /* Shared, not copied. */
    wait_text(c, r, "one\none\n");
    assert_int_equal(one->refs, 1);
    assert_int_equal(http_stream_queued(b->stream), 0);
    http_stream_write(b->stream, one);
    http_stream_end(TAKE(b->stream));
    expect(c, r, 200, "one\none\none\n");
    h2_pump(c);
    assert_int_equal(r->error, 0);
    assert_false(b->stream_closed);
    expect_get(c, "/after", 200, "GET /after");
    h2_client_free(c);
    bench_free(b);
}

static void a_stream_that_its_client_cancels_is_closed(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *r = h2_get(c, "/stream");
    h2_wait_head(c, r);
    nghttp2_submit_rst_stream(c->session, 0, r->id, NGHTTP2_CANCEL);
    h2_pump(c);
    WAIT_FLAG(b, b->stream_closed);
    expect_get(c, "/after", 200, "GET /after");
    /* And with the connection. */
    b->stream_closed = false;
    r = h2_get(c, "/stream");
    h2_wait_head(c, r);
    h2_client_free(c);
    WAIT_FLAG(b, b->stream_closed);
    bench_free(b);
}

static void a_stream_whose_client_does_not_read_is_cut_and_others_go_on(void **state)
{
    static const struct http_limits limits = {.max_stream_queue = 1 << 20};
    struct bench *b = bench_new(&limits);
    struct h2_client *c = h2_client_new(b, 0);
    c->keep_window = true;
    struct h2_reply *r = h2_get(c, "/stream");
    h2_wait_head(c, r);
    CLEANUP(blob_unref) struct blob *blob = filled(10000);
    int n = 0, w = 0;
    while ((w = http_stream_write(b->stream, blob)) == 0) {
        assert_true(++n < 1000);
        assert_true(http_stream_queued(b->stream) <= 1 << 20);
        h2_pump(c);
    }
    assert_int_equal(w, -ENOBUFS);
    assert_false(b->stream_closed); /* Not from within the write. */
    assert_int_equal(http_stream_write(b->stream, blob), -ENOBUFS);
    WAIT_FLAG(b, b->stream_closed);
    h2_wait(c, r);
    assert_int_equal(r->error, NGHTTP2_CANCEL);
    assert_int_equal(blob->refs, 1);
    expect_get(c, "/after", 200, "GET /after");
    h2_client_free(c);
    bench_free(b);
}

struct pacing {
    struct bench *b;
    struct blob *blob;
    int left;
};

static void write_more(void *ctx)
{
    struct pacing *p = ctx;
    while (p->b->stream && p->left && http_stream_queued(p->b->stream) < 100000) {
        assert_int_equal(http_stream_write(p->b->stream, p->blob), 0);
        p->left--;
    }
    if (!p->left && p->b->stream) {
        http_stream_end(TAKE(p->b->stream));
    }
}

static void much_is_sent_in_step_with_the_client(void **state)
{
    static const struct http_limits limits = {.max_stream_queue = 200000};
    struct bench *b = bench_new(&limits);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *r = h2_get(c, "/stream");
    h2_wait_head(c, r);
    struct pacing p = {b, filled(10000), 500};
    http_stream_on_drained(b->stream, write_more, &p);
    write_more(&p);
    h2_wait(c, r);
    assert_true(r->ended);
    assert_int_equal(r->body.size, 500 * 10000);
    assert_memory_equal(r->body.data + 499 * 10000, p.blob->data, 10000);
    blob_unref(p.blob);
    h2_client_free(c);
    bench_free(b);
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

static void who_answers_is_told_that_the_client_is_gone(void **state)
{
    struct bench *b = bench_new(NULL);
    for (int i = 0; i < 4; i++) {
        struct h2_client *c = h2_client_new(b, 0);
        struct h2_reply *r = h2_get(c, "/hold");
        bool gone = false;
        while (!b->held) {
            h2_pump(c);
        }
        http_on_gone(b->held, set_flag, &gone);
        if (i % 2) {
            nghttp2_submit_rst_stream(c->session, 0, r->id, NGHTTP2_CANCEL);
            h2_pump(c);
        } else {
            h2_client_free(c);
        }
        WAIT_FLAG(b, gone);
        assert_string_equal(http_path(b->held), "/hold");
        assert_string_equal(http_method(b->held), "GET");
        assert_string_equal(http_header(b->held, "host"), "t");
        struct http_exchange *x = TAKE(b->held);
        if (i < 2) {
            http_respond(x, 200, NULL, "late", 4);
        } else {
            b->stream_closed = false;
            http_stream_begin(x, 200, NULL, bench_stream_closed, b);
            assert_int_equal(http_stream_write(x, b->big ? b->big : (b->big = filled(1))), -EPIPE);
            WAIT_FLAG(b, b->stream_closed);
        }
        if (i % 2) {
            expect_get(c, "/after", 200, "GET /after");
            h2_client_free(c);
        }
    }
    bench_free(b);
}

static void finished_comes_when_the_response_was_sent_or_lost(void **state)
{
    struct bench *b = bench_new(NULL);
    char *text = xmalloc(1 << 20);
    memset(text, 't', 1 << 20);
    CLEANUP(blob_unref) struct blob *big = blob_new(text, 1 << 20);
    free(text);
    for (int i = 0; i < 3; i++) {
        struct h2_client *c = h2_client_new(b, 0);
        c->keep_window = i > 0;
        bool finished = false;
        struct h2_reply *r = h2_get(c, "/hold");
        while (!b->held) {
            h2_pump(c);
        }
        http_on_finished(b->held, set_flag, &finished);
        http_respond_blob(TAKE(b->held), 200, NULL, big);
        h2_wait_head(c, r);
        if (i == 0) {
            h2_wait(c, r);
            assert_int_equal(r->body.size, big->size);
        } else {
            assert_false(finished);
        }
        if (i == 1) {
            nghttp2_submit_rst_stream(c->session, 0, r->id, NGHTTP2_CANCEL);
            h2_pump(c);
        } else if (i == 2) {
            h2_client_free(c);
        }
        WAIT_FLAG(b, finished);
        if (i < 2) {
            h2_client_free(c);
        }
    }
    /* The same with HTTP/1.1. */
    for (int i = 0; i < 2; i++) {
        struct raw r = raw_connect(b);
        bool finished = false;
        raw_send(&r, "GET /hold HTTP/1.1\r\n" H "\r\n");
        WAIT_POINTER(b, b->held);
        http_on_finished(b->held, set_flag, &finished);
        http_respond_blob(TAKE(b->held), 200, NULL, big);
        if (i) {
            raw_done(&r);
        } else {
            raw_send(&r, "GET /after HTTP/1.1\r\n" H "\r\n");
            raw_expect(&r, "GET /after");
            raw_done(&r);
        }
        WAIT_FLAG(b, finished);
    }
    bench_free(b);
}

/* ---- hostile clients ---- */

/* A flood ends the flooder's connection, and nobody else's. */
static void expect_calm(struct bench *b, struct h2_client *c, struct h2_client *other)
{
    h2_wait_goaway(c);
    assert_true(c->goaway || c->r.eof);
    if (c->goaway) {
        assert_int_equal(c->goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    expect_get(other, "/other", 200, "GET /other");
    h2_client_free(c);
}

static void floods_of_frames_end_the_connection(void **state)
{
    static const struct {
        uint8_t type, flags;
        bool on_stream;
        const char *p;
        size_t size;
    } table[] = {
        {NGHTTP2_PING, 0, false, "12345678", 8},
        {NGHTTP2_PING, NGHTTP2_FLAG_ACK, false, "12345678", 8},
        {NGHTTP2_SETTINGS, 0, false, "", 0},
        {NGHTTP2_WINDOW_UPDATE, 0, false, "\0\0\0\1", 4},
        {NGHTTP2_PRIORITY, 0, true, "\0\0\0\0\1", 5},
        {NGHTTP2_DATA, 0, true, "", 0},
        {NGHTTP2_DATA, 0, true, "x", 1},
    };
    struct bench *b = bench_new(NULL);
    struct h2_client *other = h2_client_new(b, 0);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct h2_client *c = h2_client_new(b, 0);
        expect_get(c, "/", 200, "GET /");
        struct h2_reply *r = h2_ask(c, "PUT", "/", NULL, "", 0);
        r->upload_hangs = true;
        h2_pump(c);
        for (int k = 0; k < 4000; k++) {
            h2_frame(c, table[i].type, table[i].flags, table[i].on_stream ? r->id : 0, table[i].p,
                     table[i].size);
        }
        expect_calm(b, c, other);
    }
    assert_true(http_server_stats(b->server).floods >= 5);
    h2_client_free(other);
    bench_free(b);
}

static void rapid_resets_end_the_connection(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *other = h2_client_new(b, 0), *c = h2_client_new(b, 0);
    expect_get(c, "/", 200, "GET /");
    /* GET / by fields of the static table, then the reset. */
    static const char head[] = "\x82\x86\x84\x41\x01t";
    int32_t id = 101;
    for (int k = 0; k < 6000; k++, id += 2) {
        h2_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id, head,
                 sizeof head - 1);
        h2_frame(c, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\x8", 4);
    }
    expect_calm(b, c, other);
    assert_int_equal(http_server_stats(b->server).streams, 0);
    h2_client_free(other);
    bench_free(b);
}

static void heads_without_end_and_bombs_end_the_connection(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *other = h2_client_new(b, 0), *c = h2_client_new(b, 0);
    static char zeros[4200];
    expect_get(c, "/", 200, "GET /");
    h2_frame(c, NGHTTP2_HEADERS, 0, 101, "\x82\x86\x84\x41\x01t", 6);
    for (int k = 0; k < 100; k++) {
        h2_frame(c, NGHTTP2_CONTINUATION, 0, 101, "\x00\x01x\x01y", 5);
    }
    h2_wait_goaway(c);
    assert_true(c->goaway || c->r.eof);
    h2_client_free(c);
    /* A field of 4,000 bytes goes into the table, and is then named thousands of times by one byte. */
    c = h2_client_new(b, 0);
    expect_get(c, "/", 200, "GET /");
    CLEANUP_STRBUF struct strbuf block = STRBUF_INIT;
    strbuf_add(&block, "\x82\x86\x84\x41\x01t", 6);
    strbuf_add(&block, "\x40\x01z\x7f\xa1\x1e", 6); /* 127 + 0x21 + 30 * 128 = 4,000 */
    memset(zeros, 'z', sizeof zeros);
    strbuf_add(&block, zeros, 4000);
    while (block.size < 16000) {
        strbuf_addc(&block, (char) 0xbe);
    }
    h2_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 101,
             block.data, block.size);
    expect_calm(b, c, other);
    assert_int_equal(http_server_stats(b->server).streams, 0);
    h2_client_free(other);
    bench_free(b);
}

static void streams_of_a_connection_are_limited(void **state)
{
    static const struct http_limits limits = {.max_streams = 3};
    struct bench *b = bench_new(&limits);
    struct h2_client *c = h2_client_new(b, 0);
    expect_get(c, "/", 200, "GET /");
    assert_int_equal(
        nghttp2_session_get_remote_settings(c->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
        3);
    static const char head[] = "\x82\x86\x84\x41\x01t"; /* GET / */
    for (int k = 0; k < 3; k++) {
        h2_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 101 + 2 * k, head, sizeof head - 1);
    }
    bench_run_for(b, 10);
    assert_int_equal(http_server_stats(b->server).streams, 3);
    h2_frame(c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 107, head, sizeof head - 1);
    bench_run_for(b, 10);
    assert_int_equal(http_server_stats(b->server).streams, 3);
    h2_client_free(c);
    bench_free(b);
}

/* ---- shutdown ---- */

static void shutdown_finishes_what_is_under_way(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0), *idle = h2_client_new(b, 0);
    expect_get(idle, "/", 200, "GET /");
    struct h2_reply *stream = h2_get(c, "/stream"), *held = h2_get(c, "/hold");
    struct h2_reply *half = h2_ask(c, "PUT", "/half", NULL, "ab", 2);
    half->upload_hangs = true;
    h2_wait_head(c, stream);
    while (!b->held) {
        h2_pump(c);
    }
    CLEANUP(blob_unref) struct blob *one = blob_new("one", 3);
    http_stream_write(b->stream, one);
    http_server_shutdown(b->server, PATIENCE_MS, set_flag, &b->drained);
    assert_true(b->stream_closed);
    expect(c, stream, 200, "one");
    h2_wait_goaway(c);
    assert_int_equal(c->goaway_error, NGHTTP2_NO_ERROR);
    assert_int_equal(c->goaway_last, half->id);
    h2_wait_goaway(idle);
    assert_true(idle->goaway);
    assert_false(b->drained);
    half->upload = "cd";
    half->upload_size = 2;
    half->upload_hangs = false;
    nghttp2_session_resume_data(c->session, half->id);
    expect(c, half, 200, "PUT /half q=- [abcd]");
    http_respond(TAKE(b->held), 200, NULL, "held", 4);
    expect(c, held, 200, "held");
    h2_client_free(idle);
    h2_client_free(c);
    WAIT_FLAG(b, b->drained);
    bench_free(b);
}

static void a_freed_server_leaves_its_exchanges(void **state)
{
    struct bench *b = bench_new(NULL);
    struct h2_client *c = h2_client_new(b, 0);
    struct h2_reply *stream = h2_get(c, "/stream");
    h2_get(c, "/hold");
    h2_wait_head(c, stream);
    while (!b->held) {
        h2_pump(c);
    }
    b->server = http_server_free(b->server);
    assert_true(b->stream_closed);
    assert_string_equal(http_path(b->held), "/hold");
    h2_client_free(c);
    bench_free(b); /* Answers it. */
}

int main(void)
{
    log_set_levels("error", NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(cookies_in_parts_are_one_field),
        cmocka_unit_test(both_versions_are_served_on_one_port),
        cmocka_unit_test(requests_of_one_connection_do_not_wait_for_each_other),
        cmocka_unit_test(trailers_are_ignored_and_continue_is_said),
        cmocka_unit_test(bad_requests_are_refused_and_the_connection_goes_on),
        cmocka_unit_test(bodies_of_all_requests_are_bounded),
        cmocka_unit_test(slow_requests_are_cut_off),
        cmocka_unit_test(big_responses_arrive_whole),
        cmocka_unit_test(requests_wait_while_answers_pile_up),
        cmocka_unit_test(a_response_that_is_not_read_is_cut_and_others_are_served),
        cmocka_unit_test(streams_send_what_is_written),
        cmocka_unit_test(a_stream_that_its_client_cancels_is_closed),
        cmocka_unit_test(a_stream_whose_client_does_not_read_is_cut_and_others_go_on),
        cmocka_unit_test(much_is_sent_in_step_with_the_client),
        cmocka_unit_test(who_answers_is_told_that_the_client_is_gone),
        cmocka_unit_test(finished_comes_when_the_response_was_sent_or_lost),
        cmocka_unit_test(floods_of_frames_end_the_connection),
        cmocka_unit_test(rapid_resets_end_the_connection),
        cmocka_unit_test(heads_without_end_and_bombs_end_the_connection),
        cmocka_unit_test(streams_of_a_connection_are_limited),
        cmocka_unit_test(shutdown_finishes_what_is_under_way),
        cmocka_unit_test(a_freed_server_leaves_its_exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
