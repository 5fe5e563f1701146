/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/grpc.h"
#include "wire/protobuf.h"

/* ---- protobuf ---- */

static void numbers_are_encoded_as_documented(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_put_uint(&b, 1, 150); /* The example of the specification. */
    pb_put_uint(&b, 2, 0);
    pb_put_uint(&b, 16, 1);
    pb_put_uint(&b, 3, UINT64_MAX);
    static const unsigned char expected[] = {0x08, 0x96, 0x01, 0x10, 0x00, 0x80, 0x01,
                                             0x01, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff, 0xff, 0xff, 0xff, 0x01};
    assert_int_equal(b.size, sizeof expected);
    assert_memory_equal(b.data, expected, sizeof expected);
}

static void bytes_and_messages_are_encoded_as_documented(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_put_bytes(&b, 2, "testing", 7);
    size_t outer = pb_begin(&b, 3);
    size_t inner = pb_begin(&b, 1);
    pb_put_uint(&b, 1, 150);
    pb_end(&b, inner);
    pb_end(&b, outer);
    size_t empty = pb_begin(&b, 4);
    pb_end(&b, empty);
    static const char expected[] = "\x12\x07testing\x1a\x05\x0a\x03\x08\x96\x01\x22\x00";
    assert_int_equal(b.size, sizeof expected - 1);
    assert_memory_equal(b.data, expected, sizeof expected - 1);
}

static void long_messages_get_longer_lengths(void **state)
{
    static const size_t sizes[] = {0, 1, 125, 126, 127, 128, 16380, 16384, 3000000};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        CLEANUP_FREE char *content = xcalloc(1, sizes[i]);
        memset(content, 'c', sizes[i]);
        size_t outer = pb_begin(&b, 5);
        size_t inner = pb_begin(&b, 6);
        pb_put_bytes(&b, 7, content, sizes[i]);
        pb_end(&b, inner);
        pb_put_uint(&b, 8, 42);
        pb_end(&b, outer);
        pb_put_uint(&b, 9, 43);

        struct pb_reader r = pb_reader_of(b.data, b.size);
        struct pb_field f, g, c;
        assert_int_equal(pb_next(&r, &f), 1);
        assert_int_equal(f.number, 5);
        struct pb_reader in = pb_reader_of(f.data, f.size);
        assert_int_equal(pb_next(&in, &g), 1);
        struct pb_reader in2 = pb_reader_of(g.data, g.size);
        assert_int_equal(pb_next(&in2, &c), 1);
        assert_int_equal(c.number, 7);
        assert_int_equal(c.size, sizes[i]);
        assert_memory_equal(c.data, content, sizes[i]);
        assert_int_equal(pb_next(&in2, &c), 0);
        assert_int_equal(pb_next(&in, &g), 1);
        assert_int_equal(g.value, 42);
        assert_int_equal(pb_next(&in, &g), 0);
        assert_int_equal(pb_next(&r, &f), 1);
        assert_int_equal(f.value, 43);
        assert_int_equal(pb_next(&r, &f), 0);
    }
}

static void fixed_numbers_are_read(void **state)
{
    static const char data[] = "\x09\x01\x02\x03\x04\x05\x06\x07\x08\x15\xff\xff\xff\xff";
    struct pb_reader r = pb_reader_of(data, sizeof data - 1);
    struct pb_field f;
    assert_int_equal(pb_next(&r, &f), 1);
    assert_int_equal(f.type, PB_FIXED64);
    assert_true(f.value == 0x0807060504030201);
    assert_int_equal(pb_next(&r, &f), 1);
    assert_int_equal(f.type, PB_FIXED32);
    assert_int_equal(f.number, 2);
    assert_true(f.value == 0xffffffff);
    assert_int_equal(pb_next(&r, &f), 0);
}

static void malformed_fields_are_refused(void **state)
{
    static const struct {
        const char *data;
        size_t size;
    } cases[] = {
        {"\x08", 1},                                              /* no value */
        {"\x80", 1},                                              /* tag cut off */
        {"\x08\x80", 2},                                          /* value cut off */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", 11},     /* 65 bits */
        {"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12}, /* eleven bytes */
        {"\x00\x01", 2},                                          /* field 0 */
        {"\x80\x80\x80\x80\x10\x01", 6},                          /* field 2^29 */
        {"\x0a\x05hell", 6},                                      /* bytes cut off */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* huge length */
        {"\x09\x01\x02", 3},                                      /* fixed64 cut off */
        {"\x0d\x01\x02", 3},                                      /* fixed32 cut off */
        {"\x0b\x0c", 2},                                          /* group */
        {"\x0e", 1},                                              /* type 6 */
        {"\x0f", 1},                                              /* type 7 */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pb_reader r = pb_reader_of(cases[i].data, cases[i].size);
        struct pb_field f = {.number = 77};
        assert_int_equal(pb_next(&r, &f), -EBADMSG);
        assert_int_equal(f.number, 77);
    }
}

/* ---- gRPC ---- */

static void frames_survive_any_cut(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    static const size_t sizes[] = {0, 1, 300, 70000, 0, 5};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        size_t mark = grpc_frame_begin(&b);
        for (size_t n = 0; n < sizes[i]; n++) {
            strbuf_addc(&b, (char) ('a' + i));
        }
        grpc_frame_end(&b, mark);
    }
    assert_memory_equal(b.data, "\0\0\0\0\0\0\0\0\0\1b", 11);
    static const size_t steps[] = {1, 2, 3, 7, 16384, 1 << 20};
    for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
        struct grpc_reader r = GRPC_READER_INIT(70000);
        size_t got = 0;
        for (size_t at = 0; at < b.size; at += steps[s]) {
            grpc_reader_add(&r, b.data + at, MIN(steps[s], b.size - at));
            const char *p;
            size_t size;
            int more;
            while ((more = grpc_reader_next(&r, &p, &size)) > 0) {
                assert_int_equal(size, sizes[got]);
                for (size_t n = 0; n < size; n++) {
                    assert_int_equal(p[n], 'a' + got);
                }
                got++;
            }
            assert_int_equal(more, 0);
        }
        assert_int_equal(got, ARRAY_SIZE(sizes));
        assert_false(grpc_reader_partial(&r));
        grpc_reader_done(&r);
    }
}

static void large_and_compressed_frames_are_refused(void **state)
{
    struct grpc_reader r = GRPC_READER_INIT(10);
    const char *p;
    size_t size;
    grpc_reader_add(&r, "\0\0\0\0", 4);
    assert_int_equal(grpc_reader_next(&r, &p, &size), 0);
    assert_true(grpc_reader_partial(&r));
    grpc_reader_add(&r, "\x0b", 1);
    assert_int_equal(grpc_reader_next(&r, &p, &size), -EMSGSIZE);
    grpc_reader_done(&r);
    grpc_reader_add(&r, "\1\0\0\0\1x", 6);
    assert_int_equal(grpc_reader_next(&r, &p, &size), -EBADMSG);
    grpc_reader_done(&r);
}

static void status_and_message_are_read(void **state)
{
    assert_int_equal(grpc_status_parse("0", 1), GRPC_OK);
    assert_int_equal(grpc_status_parse("14", 2), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_status_parse("16", 2), GRPC_UNAUTHENTICATED);
    static const char *const bad[] = {"", "17", "-1", "1 ", "x", "99999999999"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(grpc_status_parse(bad[i], strlen(bad[i])), GRPC_UNKNOWN);
    }
    assert_int_equal(grpc_status_of_http(503), GRPC_UNAVAILABLE);
    assert_int_equal(grpc_status_of_http(404), GRPC_UNIMPLEMENTED);
    assert_int_equal(grpc_status_of_http(302), GRPC_UNKNOWN);
    assert_string_equal(grpc_status_name(GRPC_UNAVAILABLE), "unavailable");

    char text[12];
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"}, {"a%20b%c3%A9", "a b\xc3\xa9"},
        {"100%", "100%"},   {"%zz%4", "%zz%4"},
        {"%00x", "?x"},     {"far too long for it", "far too lon"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        grpc_message_decode(cases[i].in, strlen(cases[i].in), text, sizeof text);
        assert_string_equal(text, cases[i].out);
    }
}

static void nothing_is_an_empty_message(void **state)
{
    struct pb_reader r = pb_reader_of(NULL, 0);
    struct pb_field f;
    assert_ptr_equal(r.end, NULL);
    assert_int_equal(pb_next(&r, &f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_encoded_as_documented),
        cmocka_unit_test(bytes_and_messages_are_encoded_as_documented),
        cmocka_unit_test(long_messages_get_longer_lengths),
        cmocka_unit_test(fixed_numbers_are_read),
        cmocka_unit_test(malformed_fields_are_refused),
        cmocka_unit_test(nothing_is_an_empty_message),
        cmocka_unit_test(frames_survive_any_cut),
        cmocka_unit_test(large_and_compressed_frames_are_refused),
        cmocka_unit_test(status_and_message_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
