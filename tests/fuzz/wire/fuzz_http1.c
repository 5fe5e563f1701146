/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of requests and responses, targets, chunked bodies.  A head that parses can be written again and
 * means the same; decoding does not depend on how the bytes are cut. */
#include "wire/http1.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_target(const char *target)
{
    CLEANUP_FREE char *buf = xmalloc(http1_target_size(target));
    struct http1_target t;
    if (http1_target_parse(target, buf, &t, NULL) < 0) {
        return;
    }
    CHECK(t.path[0] == '/' || t.path[0] == '*');
    CHECK(!strstr(t.path, "/../") && !str_has_suffix(t.path, "/.."));
    http1_param(&t, "none");
    /* Names and values survive being escaped. */
    const char *p = t.params;
    for (size_t i = 0; i < t.n_params; i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "/?");
        http1_escape(p, &b);
        strbuf_addc(&b, '=');
        const char *value = p + strlen(p) + 1;
        http1_escape(value, &b);
        CLEANUP_FREE char *buf2 = xmalloc(http1_target_size(b.data));
        struct http1_target again;
        CHECK(http1_target_parse(b.data, buf2, &again, NULL) == 0);
        CHECK(streq(http1_param(&again, p), value));
        p = value + strlen(value) + 1;
    }
}

/* Writes the headers of 'h' behind the first line in 'b'. */
static void write_headers(const struct http1_head *h, struct strbuf *b)
{
    const char *p = h->headers;
    for (size_t i = 0; i < h->n_headers; i++) {
        const char *value = p + strlen(p) + 1;
        CHECK(http1_add_header(b, p, value) == 0);
        p = value + strlen(value) + 1;
    }
    strbuf_adds(b, "\r\n");
}

static void check_equal(const struct http1_head *a, const struct http1_head *b)
{
    CHECK(a->status == b->status && a->framing == b->framing && a->length == b->length);
    CHECK(a->keep_alive == b->keep_alive && a->n_headers == b->n_headers);
    CHECK(a->expect_continue == b->expect_continue);
}

static void check_request(const char *data, size_t size)
{
    CLEANUP_FREE char *text = xmemdup(data, size);
    struct http1_head h, again;
    struct err e = {0};
    int r = http1_parse_request(text, size, &h, &e);
    if (r < 0) {
        CHECK(e.text[0] && http1_error_status(r) >= 400);
        return;
    }
    check_target(h.target);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (h.minor == 1 && http1_start_request(&b, h.method, h.target) == 0) {
        write_headers(&h, &b);
        size_t at = 0;
        CHECK(http1_head_end(b.data, b.size, &at) == (ssize_t) b.size);
        CHECK(http1_parse_request(b.data, b.size, &again, NULL) == 0);
        check_equal(&h, &again);
    }
}

static void check_response(const char *data, size_t size)
{
    CLEANUP_FREE char *text = xmemdup(data, size);
    struct http1_head h, again;
    struct err e = {0};
    if (http1_parse_response(text, size, false, &h, &e) < 0) {
        CHECK(e.text[0]);
        return;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    http1_start_response(&b, h.status);
    write_headers(&h, &b);
    if (h.minor == 1) {
        CHECK(http1_parse_response(b.data, b.size, false, &again, NULL) == 0);
        check_equal(&h, &again);
    }
}

/* Decodes 'p' in pieces of 'step' bytes: what was taken in all, and -1 when malformed. */
static ssize_t decode(const char *p, size_t size, size_t step, struct strbuf *out, bool *ret_done)
{
    struct http1_chunked c = {0};
    size_t at = 0;
    while (at < size && !c.done) {
        size_t end = MIN(size, at + step);
        while (at < end && !c.done) {
            const char *data;
            size_t used, n;
            if (http1_chunked_feed(&c, p + at, end - at, &used, &data, &n) < 0) {
                return -1;
            }
            CHECK(used > 0 && used <= end - at && n <= used && data + n == p + at + used);
            strbuf_add(out, data, n);
            at += used;
        }
    }
    *ret_done = c.done;
    return (ssize_t) at;
}

static void check_chunked(const char *p, size_t size)
{
    CLEANUP_STRBUF struct strbuf whole = STRBUF_INIT, bytes = STRBUF_INIT;
    bool done = false, done_bytes = false;
    ssize_t a = decode(p, size, size, &whole, &done), b = decode(p, size, 1, &bytes, &done_bytes);
    CHECK(a == b && done == done_bytes);
    CHECK(a < 0 || streq(strbuf_cstr(&whole), strbuf_cstr(&bytes)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *) data;
    size_t at = 0, by_byte = 0;
    ssize_t end = http1_head_end(p, size, &at), end_by_byte = 0;
    for (size_t n = 1; n <= size && end_by_byte == 0; n++) {
        end_by_byte = http1_head_end(p, n, &by_byte);
    }
    CHECK(end == end_by_byte);
    if (end > 0) {
        check_request(p, (size_t) end);
        check_response(p, (size_t) end);
        check_chunked(p + end, size - (size_t) end);
    } else {
        check_request(p, size);
        check_response(p, size);
        check_chunked(p, size);
    }
    return 0;
}
