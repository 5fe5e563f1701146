/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http1.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A head whose text lives as long as the test's scope. */
struct parsed {
    char text[8192];
    struct http1_head head;
    struct err e;
    int r;
};

static int parse_request(struct parsed *p, const char *text, size_t size)
{
    assert_true(size <= sizeof p->text);
    memset(&p->head, 0x55, sizeof p->head);
    p->e = (struct err){0};
    memcpy(p->text, text, size);
    size_t at = 0;
    ssize_t n = http1_head_end(p->text, size, &at);
    if (n <= 0) {
        return p->r = n < 0 ? (int) n : -EAGAIN;
    }
    return p->r = http1_parse_request(p->text, (size_t) n, &p->head, &p->e);
}

static int parse_response(struct parsed *p, const char *text, bool to_head)
{
    size_t size = strlen(text);
    p->e = (struct err){0};
    memcpy(p->text, text, size);
    return p->r = http1_parse_response(p->text, size, to_head, &p->head, &p->e);
}

#define H "Host: h\r\n"

static void a_request_is_taken_apart(void **state)
{
    struct parsed p;
    static const char text[] = "PATCH /api/v1?watch=true HTTP/1.1\r\n"
                               "host: example:8443\r\n"
                               "X-Empty:\r\n"
                               "Authorization:\t Bearer  x y \t\r\n"
                               "!#$%&'*+-.^_`|~09azAZ: \xc3\xbc\r\n"
                               "Content-Length: 0042\r\n"
                               "Expect: 100-Continue\r\n\r\n";
    assert_int_equal(parse_request(&p, text, strlen(text)), 0);
    const struct http1_head *h = &p.head;
    assert_string_equal(h->method, "PATCH");
    assert_string_equal(h->target, "/api/v1?watch=true");
    assert_int_equal(h->minor, 1);
    assert_int_equal(h->framing, HTTP1_LENGTH);
    assert_int_equal(h->length, 42);
    assert_true(h->keep_alive);
    assert_true(h->expect_continue);
    assert_int_equal(h->n_headers, 6);
    assert_string_equal(http1_header(h, "HOST"), "example:8443");
    assert_string_equal(http1_header(h, "x-empty"), "");
    assert_string_equal(http1_header(h, "authorization"), "Bearer  x y");
    assert_string_equal(http1_header(h, "!#$%&'*+-.^_`|~09azaz"), "\xc3\xbc");
    assert_null(http1_header(h, "accept"));
    assert_null(http1_header(h, "example:8443"));
}

static void framing_and_persistence_follow_the_rules(void **state)
{
    static const struct {
        const char *text;
        enum http1_framing framing;
        bool keep_alive;
    } table[] = {
        {"GET / HTTP/1.1\r\n" H "\r\n", HTTP1_NO_BODY, true},
        {"GET / HTTP/1.0\r\n\r\n", HTTP1_NO_BODY, false},
        {"GET / HTTP/1.2\r\n" H "\r\n", HTTP1_NO_BODY, true},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", HTTP1_NO_BODY, true},
        {"GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", HTTP1_NO_BODY, false},
        {"GET / HTTP/1.1\r\n" H "Connection: x ,Close\r\n\r\n", HTTP1_NO_BODY, false},
        {"GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", HTTP1_NO_BODY, true},
        {"GET / HTTP/1.1\r\n" H "Connection: x\r\nConnection: close\r\n\r\n", HTTP1_NO_BODY, false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", HTTP1_NO_BODY, false},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", HTTP1_NO_BODY, true},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 9223372036854775807\r\n\r\n", HTTP1_LENGTH, true},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n", HTTP1_CHUNKED, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct parsed p;
        if (parse_request(&p, table[i].text, strlen(table[i].text)) < 0) {
            fail_msg("%s: %s", table[i].text, p.e.text);
        }
        assert_int_equal(p.head.framing, table[i].framing);
        assert_int_equal(p.head.keep_alive, table[i].keep_alive);
    }
}

static void malformed_requests_are_refused(void **state)
{
    static const struct {
        const char *text;
        int r;
        const char *why;
    } table[] = {
        {"\r\n", -EINVAL, "method"},
        {" GET / HTTP/1.1\r\n" H "\r\n", -EINVAL, "method"},
        {"GET\r\n\r\n", -EINVAL, "method"},
        {"G{T / HTTP/1.1\r\n" H "\r\n", -EINVAL, "method"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" H "\r\n", -EINVAL, "method"},
        {"GET /\r\n\r\n", -EINVAL, "target"},
        {"GET  / HTTP/1.1\r\n" H "\r\n", -EINVAL, "target"},
        {"GET /\t HTTP/1.1\r\n" H "\r\n", -EINVAL, "target"},
        {"GET /\x7f HTTP/1.1\r\n" H "\r\n", -EINVAL, "target"},
        {"GET /\xc3\xbc HTTP/1.1\r\n" H "\r\n", -EINVAL, "target"},
        {"GET / HTTP/1.1 \r\n" H "\r\n", -EINVAL, "version"},
        {"GET / HTTP/1.1x\r\n" H "\r\n", -EINVAL, "version"},
        {"GET / http/1.1\r\n" H "\r\n", -EINVAL, "version"},
        {"GET / HTTP/11\r\n" H "\r\n", -EINVAL, "version"},
        {"GET / HTTP/2.0\r\n" H "\r\n", -EPROTONOSUPPORT, "version 2.0"},
        {"GET / HTTP/0.9\r\n\r\n", -EPROTONOSUPPORT, "version 0.9"},
        {"GET / HTTP/1.1\r\n\r\n", -EINVAL, "no Host"},
        {"GET / HTTP/1.1\r\n" H H "\r\n", -EINVAL, "repeated Host"},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", -EINVAL, "malformed Host"},
        {"GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", -EINVAL, "malformed Host"},
        {"GET / HTTP/1.1\n" H "\r\n", -EINVAL, ""},
        {"GET / HTTP/1.1\r\n" H "\n", -EINVAL, ""},
        {"GET / HTTP/1.1\r\nHost: h\n\r\n", -EINVAL, ""},
        {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", -EINVAL, "bare CR"},
        {"GET / HTTP/1.1\r\nHost: h\r\r\n\r\n", -EINVAL, "bare CR"},
        {"GET /\rx HTTP/1.1\r\n" H "\r\n", -EINVAL, "bare CR"},
        {"GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "A: b\r\n\tc: d\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "A : b\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "A\t: b\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H ": b\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "Ab\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "A(b): c\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "\xc3\xbc: c\r\n\r\n", -EINVAL, "header name"},
        {"GET / HTTP/1.1\r\n" H "A: \x01\r\n\r\n", -EINVAL, "control character"},
        {"GET / HTTP/1.1\r\n" H "A: b\x7f\r\n\r\n", -EINVAL, "control character"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", -EINVAL,
         "repeated Content-Length"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n", -EINVAL, "not a number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n", -EINVAL, "not a number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", -EINVAL, "not a number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n", -EINVAL, "not a number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 1 0\r\n\r\n", -EINVAL, "not a number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", -EINVAL, "not a number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 9223372036854775808\r\n\r\n", -EINVAL, "number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 18446744073709551617\r\n\r\n", -EINVAL, "number"},
        {"PUT / HTTP/1.1\r\n" H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", -EINVAL,
         "both"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", -EINVAL,
         "both"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", -ENOTSUP, "coding"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, gzip\r\n\r\n", -ENOTSUP, "coding"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", -ENOTSUP, "coding"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b"
         "chunked\r\n\r\n",
         -EINVAL, "control"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", -EINVAL, "empty"},
        {"PUT / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         -EINVAL, "repeated"},
        {"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", -EINVAL, "HTTP/1.0"},
        {"GET / HTTP/1.1\r\n" H "Authorization: a\r\nauthorization: b\r\n\r\n", -EINVAL,
         "repeated"},
    };
    struct parsed p;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (parse_request(&p, table[i].text, strlen(table[i].text)) != table[i].r) {
            fail_msg("%s: %d %s", table[i].text, p.r, p.e.text);
        }
        if (!strstr(p.e.text, table[i].why)) {
            fail_msg("%s: \"%s\" lacks \"%s\"", table[i].text, p.e.text, table[i].why);
        }
        assert_int_equal(p.head.status, 0x55555555); /* Untouched. */
    }
    assert_int_equal(parse_request(&p, "GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", 29), -EINVAL);
    assert_int_equal(parse_request(&p, "GET / HTTP/1.1\r\nHost: h\0i\r\n\r\n", 30), -EINVAL);
    assert_int_equal(http1_error_status(-EINVAL), 400);
    assert_int_equal(http1_error_status(-ENOTSUP), 501);
    assert_int_equal(http1_error_status(-EPROTONOSUPPORT), 505);
}

static void the_number_of_headers_is_limited(void **state)
{
    for (int n = HTTP1_MAX_HEADERS; n <= HTTP1_MAX_HEADERS + 1; n++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "GET / HTTP/1.1\r\nHost: h\r\n");
        for (int i = 1; i < n; i++) {
            strbuf_addf(&b, "x-%d: %d\r\n", i, i);
        }
        strbuf_adds(&b, "\r\n");
        struct parsed p;
        bool over = n > HTTP1_MAX_HEADERS;
        assert_int_equal(parse_request(&p, b.data, b.size), over ? -EMSGSIZE : 0);
        if (over) {
            assert_int_equal(http1_error_status(p.r), 431);
        } else {
            assert_string_equal(http1_header(&p.head, "x-99"), "99");
        }
    }
}

static void the_end_of_a_head_is_found_at_every_split(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\nbody\n\n";
    size_t end = strlen(text) - 6;
    for (size_t step = 1; step < sizeof text; step++) {
        size_t at = 0, size = 0;
        ssize_t n = 0;
        while (n == 0) {
            size = MIN(size + step, strlen(text));
            n = http1_head_end(text, size, &at);
        }
        assert_int_equal(n, end);
    }
    size_t at = 0;
    assert_int_equal(http1_head_end("\r", 1, &at), 0);
    assert_int_equal(http1_head_end("\r\n", 2, &at), 2);
    at = 0;
    assert_int_equal(http1_head_end("\n", 1, &at), -EINVAL);
}

static void responses_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        bool to_head;
        int status;
        const char *reason;
        enum http1_framing framing;
        bool keep_alive;
    } table[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, 200, "OK", HTTP1_LENGTH, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, 200, "OK", HTTP1_NO_BODY, true},
        {"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", false, 200, "", HTTP1_CHUNKED,
         true},
        {"HTTP/1.1 404\r\n\r\n", false, 404, "", HTTP1_UNTIL_CLOSE, false},
        {"HTTP/1.0 200 Fine thanks\r\n\r\n", false, 200, "Fine thanks", HTTP1_UNTIL_CLOSE, false},
        {"HTTP/1.1 204 No Content\r\n\r\n", false, 204, "No Content", HTTP1_NO_BODY, true},
        {"HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", false, 304, "x", HTTP1_NO_BODY, true},
        {"HTTP/1.1 100 Continue\r\n\r\n", false, 100, "Continue", HTTP1_NO_BODY, true},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false, 200, "OK",
         HTTP1_NO_BODY, false},
    };
    struct parsed p;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (parse_response(&p, table[i].text, table[i].to_head) < 0) {
            fail_msg("%s: %s", table[i].text, p.e.text);
        }
        assert_int_equal(p.head.status, table[i].status);
        assert_string_equal(p.head.reason, table[i].reason);
        assert_int_equal(p.head.framing, table[i].framing);
        assert_int_equal(p.head.keep_alive, table[i].keep_alive);
    }
    static const char *const bad[] = {
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (parse_response(&p, bad[i], false) >= 0) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void targets_are_decoded(void **state)
{
    static const char *const good[][3] = {
        {"/", "/", ""},
        {"*", "*", ""},
        {"/a%20b/%C3%BC+c", "/a b/\xc3\xbc+c", ""},
        {"/a%2Fb//c", "/a/b//c", ""},
        {"/...", "/...", ""},
        {"/.a/b.", "/.a/b.", ""},
        {"http://host:80/x?y=1", "/x", "y=1"},
        {"HTTP://host", "/", ""},
        {"http://host?y", "/", "y"},
        {"/?a=b?c", "/", "a=b?c"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CLEANUP_FREE char *buf = xmalloc(http1_target_size(good[i][0]));
        struct http1_target t;
        struct err e = {0};
        if (http1_target_parse(good[i][0], buf, &t, &e) < 0) {
            fail_msg("%s: %s", good[i][0], e.text);
        }
        assert_string_equal(t.path, good[i][1]);
        assert_string_equal(t.query, good[i][2]);
    }
    static const char *const bad[] = {
        "a",     "h:80",      "https//x", "http://", "http:///x", "/a#b",  "/%",      "/%4",
        "/%4g",  "/%g4",      "/%00",     "/%0a",    "/%7f",      "/..",   "/a/../b", "/.",
        "/a/./", "/%2e%2E/a", "/a%2f..",  "/?%",     "/?a=%1",    "/?%00", "/?a=%zz",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_FREE char *buf = xmalloc(http1_target_size(bad[i]));
        struct http1_target t;
        if (http1_target_parse(bad[i], buf, &t, NULL) != -EINVAL) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void query_parameters_are_decoded(void **state)
{
    static const char target[] =
        "/?watch=true&labelSelector=app%3Dweb%2Ctier+x&&flag&empty=&watch=second&a=b=c&%61b=%0a";
    CLEANUP_FREE char *buf = xmalloc(http1_target_size(target));
    struct http1_target t;
    assert_int_equal(http1_target_parse(target, buf, &t, NULL), 0);
    assert_string_equal(t.query, strchr(target, '?') + 1);
    assert_string_equal(http1_param(&t, "watch"), "true");
    assert_string_equal(http1_param(&t, "labelSelector"), "app=web,tier x");
    assert_string_equal(http1_param(&t, "flag"), "");
    assert_string_equal(http1_param(&t, "empty"), "");
    assert_string_equal(http1_param(&t, "a"), "b=c");
    assert_string_equal(http1_param(&t, "ab"), "\n");
    assert_null(http1_param(&t, "Watch"));
    assert_null(http1_param(&t, "true"));
    assert_int_equal(t.n_params, 7);
}

static void escaping_and_decoding_are_inverse(void **state)
{
    char all[256];
    size_t n = 0;
    for (int c = 1; c < 256; c++) {
        if (c != 0x7f) {
            all[n++] = (char) c;
        }
    }
    all[n] = '\0';
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "/?k=");
    http1_escape(all, &b);
    CLEANUP_FREE char *buf = xmalloc(http1_target_size(b.data));
    struct http1_target t;
    assert_int_equal(http1_target_parse(b.data, buf, &t, NULL), 0);
    assert_string_equal(http1_param(&t, "k"), all);
    strbuf_reset(&b);
    http1_escape("aZ0-._~ /?&=+%\xc3", &b);
    assert_string_equal(b.data, "aZ0-._~%20%2F%3F%26%3D%2B%25%C3");
}

/* Feeds 'text' in pieces of 'step' bytes; the decoded body is added to 'out'.  The bytes taken, or
 * -EINVAL, or -EAGAIN when it did not end. */
static ssize_t decode(const char *text, size_t size, size_t step, struct strbuf *out)
{
    struct http1_chunked c = {0};
    size_t at = 0;
    while (at < size && !c.done) {
        size_t end = MIN(size, at + step);
        while (at < end && !c.done) {
            const char *data;
            size_t used, n;
            if (http1_chunked_feed(&c, text + at, end - at, &used, &data, &n) < 0) {
                return -EINVAL;
            }
            strbuf_add(out, data, n);
            at += used;
        }
    }
    return c.done ? (ssize_t) at : -EAGAIN;
}

static void chunked_bodies_are_decoded_at_every_split(void **state)
{
    static const char text[] = "3\r\nabc\r\n00A;x=\"y\" z\r\n0123456789\r\n1\r\n\n\r\n"
                               "000;last\r\nTrailer: x\r\nB:\r\n\r\nNEXT";
    for (size_t step = 1; step <= sizeof text; step++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        assert_int_equal(decode(text, strlen(text), step, &b), strlen(text) - 4);
        assert_string_equal(b.data, "abc0123456789\n");
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (size_t size = 0; size < strlen(text) - 4; size++) {
        assert_int_equal(decode(text, size, 1, &b), -EAGAIN);
    }
}

static void malformed_chunks_are_refused(void **state)
{
    static const char *const bad[] = {
        "\r\n",
        ";x\r\n",
        "g\r\n",
        "-1\r\n",
        "+1\r\n",
        " 1\r\n",
        "1 \r\nx",
        "0x1\r\n",
        "1\n",
        "1\rx",
        "1\r\nab",
        "1\r\na\nb",
        "1\r\na\rb",
        "0\r\n\n",
        "0\r\n\rx",
        "0\r\n x\r\n",
        "0\r\n: x\r\n",
        "0\r\nA: \x01\r\n",
        "0\r\nA: b\n",
        "1;\x01\r\n",
        "0\r\nA: b\rx",
        "1000000000000000\r\n",
        "0000000000000001\r\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        if (decode(bad[i], strlen(bad[i]), 1, &b) != -EINVAL ||
            decode(bad[i], strlen(bad[i]), 100, &b) != -EINVAL) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void extensions_and_trailers_are_limited(void **state)
{
    CLEANUP_STRBUF struct strbuf ext = STRBUF_INIT, trailers = STRBUF_INIT, out = STRBUF_INIT;
    strbuf_adds(&trailers, "0\r\n");
    for (int i = 0; i < 9000; i++) {
        strbuf_adds(&ext, "1;x\r\na\r\n");
        strbuf_adds(&trailers, "a\r\n");
    }
    assert_int_equal(decode(ext.data, ext.size, 100, &out), -EINVAL);
    assert_int_equal(decode(trailers.data, trailers.size, 100, &out), -EINVAL);
}

static void written_chunks_read_back(void **state)
{
    static const uint64_t sizes[] = {1, 15, 16, 4095, 65536};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    size_t total = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char head[HTTP1_CHUNK_HEAD_SIZE];
        strbuf_add(&text, head, http1_chunk_head(head, sizes[i]));
        for (uint64_t n = 0; n < sizes[i]; n++) {
            strbuf_addc(&text, 'x');
        }
        strbuf_adds(&text, "\r\n");
        total += sizes[i];
    }
    strbuf_adds(&text, HTTP1_LAST_CHUNK);
    assert_int_equal(decode(text.data, text.size, 1000, &out), text.size);
    assert_int_equal(out.size, total);
    char head[HTTP1_CHUNK_HEAD_SIZE];
    assert_int_equal(http1_chunk_head(head, UINT64_MAX), 18);
}

static void headers_cannot_be_injected(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(http1_start_request(&b, "GET", "/a b"), -EINVAL);
    assert_int_equal(http1_start_request(&b, "GET", "/a\r\nX: y"), -EINVAL);
    assert_int_equal(http1_start_request(&b, "GET", "a"), -EINVAL);
    assert_int_equal(http1_start_request(&b, "GET", ""), -EINVAL);
    assert_int_equal(http1_start_request(&b, "GET /", "/"), -EINVAL);
    assert_int_equal(http1_start_request(&b, "", "/"), -EINVAL);
    assert_int_equal(http1_start_request(&b, "GET", "/\xc3\xbc"), -EINVAL);
    assert_int_equal(http1_start_request(&b, "GET", "/\x7f"), -EINVAL);
    assert_int_equal(http1_add_header(&b, "A", "b\r\nC: d"), -EINVAL);
    assert_int_equal(http1_add_header(&b, "A", "b\n"), -EINVAL);
    assert_int_equal(http1_add_header(&b, "A", "b\x7f"), -EINVAL);
    assert_int_equal(http1_add_header(&b, "A:", "b"), -EINVAL);
    assert_int_equal(http1_add_header(&b, "A\r\nB", "b"), -EINVAL);
    assert_int_equal(http1_add_header(&b, "", "b"), -EINVAL);
    assert_int_equal(b.size, 0);
    assert_int_equal(http1_start_request(&b, "GET", "/a%20b?c"), 0);
    assert_int_equal(http1_add_header(&b, "Host", "h:80"), 0);
    assert_int_equal(http1_add_header(&b, "X", ""), 0);
    assert_string_equal(b.data, "GET /a%20b?c HTTP/1.1\r\nHost: h:80\r\nX: \r\n");
    strbuf_reset(&b);
    http1_start_response(&b, 404);
    assert_string_equal(b.data, "HTTP/1.1 404 Not Found\r\n");
    assert_string_equal(http1_reason(599), "Unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(framing_and_persistence_follow_the_rules),
        cmocka_unit_test(malformed_requests_are_refused),
        cmocka_unit_test(the_number_of_headers_is_limited),
        cmocka_unit_test(the_end_of_a_head_is_found_at_every_split),
        cmocka_unit_test(responses_are_taken_apart),
        cmocka_unit_test(targets_are_decoded),
        cmocka_unit_test(query_parameters_are_decoded),
        cmocka_unit_test(escaping_and_decoding_are_inverse),
        cmocka_unit_test(chunked_bodies_are_decoded_at_every_split),
        cmocka_unit_test(malformed_chunks_are_refused),
        cmocka_unit_test(extensions_and_trailers_are_limited),
        cmocka_unit_test(written_chunks_read_back),
        cmocka_unit_test(headers_cannot_be_injected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
