/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/websocket.h"

#include <setjmp.h>

#include <cmocka.h>

static const unsigned char mask[4] = {1, 0xfe, 3, 0x80};

static int read_all(struct ws_reader *r, const struct strbuf *b, size_t step, struct strbuf *seen)
{
    int got = 0;
    for (size_t at = 0; at < b->size || got;) {
        size_t used, n = MIN(step, b->size - at);
        struct ws_piece f;
        got = ws_read(r, strbuf_cstr(b) + at, n, &used, &f, NULL);
        at += used;
        if (got < 0) {
            return got;
        }
        if (got == 1) {
            strbuf_addf(seen, "%s", f.first ? "<" : "");
            if (f.first) {
                strbuf_addf(seen, "%d:", (int) f.opcode);
            }
            strbuf_add(seen, f.data, f.size);
            strbuf_adds(seen, f.last ? ">" : "");
        } else {
            assert_int_equal(used, n);
        }
    }
    return 0;
}

static void messages_are_the_same_however_they_are_cut(void **state)
{
    for (int masked = 0; masked < 2; masked++) {
        const unsigned char *key = masked ? mask : NULL;
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, big = STRBUF_INIT, want = STRBUF_INIT;
        for (int i = 0; i < 70000; i++) {
            strbuf_addc(&big, (char) ('a' + i % 26));
        }
        ws_write(WS_BINARY, key, "hello", 5, &b);
        ws_write(WS_PING, key, "p", 1, &b);
        ws_write(WS_TEXT, key, "", 0, &b);
        ws_write_parts(WS_BINARY, key, "xy", 2, big.data, 200, &b);
        ws_write(WS_BINARY, key, big.data, big.size, &b);
        strbuf_addf(&want, "<2:hello><9:p><1:><2:xy%.200s><2:%s>", big.data, big.data);
        static const size_t steps[] = {1, 2, 7, 100, 16384, 100000};
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
            CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
            struct ws_reader r;
            ws_reader_init(&r, masked);
            assert_int_equal(read_all(&r, &b, steps[i], &seen), 0);
            assert_string_equal(seen.data, want.data);
        }
    }
}

static void fragments_are_one_message_with_control_frames_between(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT;
    struct ws_reader r;
    ws_reader_init(&r, false);
    strbuf_add(&b, "\x02\2ab\x89\1p\x00\1c\x80\1d", 13);
    assert_int_equal(read_all(&r, &b, 1, &seen), 0);
    assert_string_equal(seen.data, "<2:ab<9:p>cd>");
}

static void malformed_frames_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool masked;
    } cases[] = {
        {"\x82\1a", 3, true}, /* no mask of a client */
        {"\x82\x81"
         "mask"
         "a",
         7, false},                   /* a mask of a server */
        {"\xc2\1a", 3, false},        /* a reserved bit */
        {"\x83\1a", 3, false},        /* an unknown opcode */
        {"\x8b\0", 2, false},         /* an unknown control frame */
        {"\x09\1a", 3, false},        /* a fragment of a ping */
        {"\x89\x7e\0\x7e", 4, false}, /* a ping of 126 bytes */
        {"\x80\1a", 3, false},        /* a continuation of nothing */
        {"\x02\1a\x82\1b", 6, false}, /* a message within a message */
        {"\x82\x7e\0\1a", 5, false},  /* a length that is too long */
        {"\x82\x7f\0\0\0\0\0\0\0\1a", 11, false},
        {"\x82\x7f\xff\0\0\0\0\0\0\0", 10, false}, /* more than 2^63 */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT;
        struct ws_reader r;
        ws_reader_init(&r, cases[i].masked);
        strbuf_add(&b, cases[i].bytes, cases[i].size);
        assert_int_equal(read_all(&r, &b, b.size, &seen), -EPROTO);
    }
}

static void close_has_a_code_and_a_reason(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, seen = STRBUF_INIT, reason = STRBUF_INIT;
    struct ws_reader r;
    ws_reader_init(&r, false);
    for (int i = 0; i < 200; i++) {
        strbuf_addc(&reason, 'x');
    }
    ws_write_close(WS_FAILED, NULL, reason.data, &b);
    assert_int_equal(read_all(&r, &b, b.size, &seen), 0);
    assert_memory_equal(seen.data, "<8:\x03\xf3xxx", 8);
    assert_int_equal(seen.size, 3 + WS_MAX_CONTROL + 1);
}

/* The example of RFC 6455, section 1.3. */
static void accept_key_is_that_of_the_rfc(void **state)
{
    char out[WS_ACCEPT_SIZE];
    assert_int_equal(ws_accept_key("dGhlIHNhbXBsZSBub25jZQ==", out), 0);
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_int_equal(ws_accept_key("", out), -EINVAL);
    assert_int_equal(ws_accept_key("dGhlIHNhbXBsZSBub25jZQ", out), -EINVAL);
    assert_int_equal(ws_accept_key("!!!!!!!!!!!!!!!!!!!!!!==", out), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_the_same_however_they_are_cut),
        cmocka_unit_test(fragments_are_one_message_with_control_frames_between),
        cmocka_unit_test(malformed_frames_are_refused),
        cmocka_unit_test(close_has_a_code_and_a_reason),
        cmocka_unit_test(accept_key_is_that_of_the_rfc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
