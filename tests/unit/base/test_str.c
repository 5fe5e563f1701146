/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

static void buffers_grow_and_stay_terminated(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_string_equal(strbuf_cstr(&b), "");
    CLEANUP_STRBUF struct strbuf expect = STRBUF_INIT;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(strbuf_addf(&b, "%d,", i), 0);
        char text[16];
        int n = snprintf(text, sizeof text, "%d,", i);
        strbuf_add(&expect, text, (size_t) n);
        assert_int_equal(strlen(b.data), b.size);
    }
    assert_string_equal(b.data, expect.data);
    strbuf_consume(&b, 2);
    assert_true(str_has_prefix(b.data, "1,2,"));
    strbuf_consume(&b, 0);
    strbuf_consume(&b, b.size);
    assert_string_equal(b.data, "");
    strbuf_addc(&b, 'x');
    strbuf_adds(&b, "yz");
    strbuf_add(&b, "a\0b", 3);
    assert_int_equal(b.size, 6);
    assert_memory_equal(b.data, "xyza\0b", 7);
    CLEANUP_FREE char *s = strbuf_steal(&b);
    assert_memory_equal(s, "xyza\0b", 7);
    assert_int_equal(b.size, 0);
    CLEANUP_FREE char *none = strbuf_steal(&b);
    assert_string_equal(none, "");
}

static void what_does_not_fit_is_refused_whole(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT_MAX(5);
    assert_int_equal(strbuf_adds(&b, "12345"), 0);
    assert_int_equal(strbuf_addc(&b, '6'), -ENOBUFS);
    assert_string_equal(b.data, "12345");
    assert_true(b.failed);
    strbuf_reset(&b);
    assert_false(b.failed);
    assert_string_equal(b.data, "");
    assert_int_equal(strbuf_addf(&b, "%s", "123"), 0);
    assert_int_equal(strbuf_addf(&b, "%d", 456), -ENOBUFS);
    assert_string_equal(b.data, "123");
    assert_true(b.failed);
    assert_null(strbuf_reserve(&b, SIZE_MAX));
    strbuf_reset(&b);
    char *at = strbuf_reserve(&b, 5);
    assert_non_null(at);
    memcpy(at, "abcde", 5);
    b.size += 5;
    assert_null(strbuf_reserve(&b, 1));
    strbuf_done(&b);
    assert_int_equal(b.max, 5);
    assert_int_equal(strbuf_adds(&b, "123456"), -ENOBUFS);
}

static void strings_compare(void **state)
{
    assert_true(streq("a", "a"));
    assert_false(streq("a", "b"));
    assert_true(streq_null(NULL, NULL));
    assert_false(streq_null(NULL, ""));
    assert_false(streq_null("", NULL));
    assert_true(streq_null("a", "a"));
    assert_true(str_has_prefix("abc", "ab"));
    assert_true(str_has_prefix("abc", ""));
    assert_false(str_has_prefix("ab", "abc"));
    assert_true(str_has_suffix("abc", "bc"));
    assert_true(str_has_suffix("abc", "abc"));
    assert_true(str_has_suffix("abc", ""));
    assert_false(str_has_suffix("bc", "abc"));
}

static void numbers_are_parsed_whole_or_not_at_all(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        int r;
        uint64_t value;
    } u[] = {
        {"0", 10, 0, 0},
        {"10", 10, 0, 10},
        {"11", 10, -ERANGE, 0},
        {"0010", 10, 0, 10},
        {"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, -ERANGE, 0},
        {"99999999999999999999999", UINT64_MAX, -ERANGE, 0},
        {"99999999999999999999999x", UINT64_MAX, -EINVAL, 0},
        {"", 10, -EINVAL, 0},
        {"-1", 10, -EINVAL, 0},
        {"+1", 10, -EINVAL, 0},
        {" 1", 10, -EINVAL, 0},
        {"1 ", 10, -EINVAL, 0},
        {"1.0", 10, -EINVAL, 0},
        {"0x1", 10, -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
        uint64_t v = 99;
        if (str_to_u64(u[i].text, u[i].max, &v) != u[i].r || v != (u[i].r ? 99 : u[i].value)) {
            fail_msg("%s", u[i].text);
        }
    }
    static const struct {
        const char *text;
        int64_t min, max;
        int r;
        int64_t value;
    } s[] = {
        {"-5", -5, 5, 0, -5},
        {"-6", -5, 5, -ERANGE, 0},
        {"6", -5, 5, -ERANGE, 0},
        {"-0", -5, 5, 0, 0},
        {"9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX},
        {"9223372036854775808", INT64_MIN, INT64_MAX, -ERANGE, 0},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, -ERANGE, 0},
        {"--1", -5, 5, -EINVAL, 0},
        {"-", -5, 5, -EINVAL, 0},
        {"", -5, 5, -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
        int64_t v = 99;
        if (str_to_i64(s[i].text, s[i].min, s[i].max, &v) != s[i].r ||
            v != (s[i].r ? 99 : s[i].value)) {
            fail_msg("%s", s[i].text);
        }
    }
}

/* Values published with the FNV-1a algorithm. */
static void hashes_are_fnv_1a(void **state)
{
    assert_true(hash_bytes("", 0) == 0xcbf29ce484222325u);
    assert_true(hash_bytes("a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(hash_bytes("foobar", 6) == 0x85944171f73967e8u);
    assert_int_equal(hash_string("foobar"), hash32("foobar", 6));
    assert_int_equal(hash_string("foobar"), 0x85944171u ^ 0xf73967e8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_grow_and_stay_terminated),
        cmocka_unit_test(what_does_not_fit_is_refused_whole),
        cmocka_unit_test(strings_compare),
        cmocka_unit_test(numbers_are_parsed_whole_or_not_at_all),
        cmocka_unit_test(hashes_are_fnv_1a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
