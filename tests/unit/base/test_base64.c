/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* RFC 4648, section 10, and bytes that need every digit. */
static void bytes_and_text_become_each_other(void **state)
{
    static const struct {
        const char *bytes, *text;
        size_t size;
    } cases[] = {{"", "", 0},
                 {"f", "Zg==", 1},
                 {"fo", "Zm8=", 2},
                 {"foo", "Zm9v", 3},
                 {"foob", "Zm9vYg==", 4},
                 {"fooba", "Zm9vYmE=", 5},
                 {"foobar", "Zm9vYmFy", 6},
                 {"\xff\xfe\x00\xfb", "//4A+w==", 4}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, bytes = STRBUF_INIT;
        base64_encode(cases[i].bytes, cases[i].size, &text);
        assert_string_equal(strbuf_cstr(&text), cases[i].text);
        assert_int_equal(base64_decode(cases[i].text, strlen(cases[i].text), &bytes), 0);
        assert_int_equal(bytes.size, cases[i].size);
        assert_memory_equal(strbuf_cstr(&bytes), cases[i].bytes, cases[i].size);
    }
}

static void line_ends_are_skipped(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(base64_decode("Zm9v\r\nYm\nFy \n", 13, &b), 0);
    assert_string_equal(b.data, "foobar");
}

static void what_is_not_canonical_is_refused(void **state)
{
    static const char *const bad[] = {"Z",    "Zg",   "Zg=",      "Zg===", "Z===", "=",   "====",
                                      "Zh==", "Zm9=", "Zg==Zg==", "Zm9v-", "Zm 9", "Zg=g"};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "kept");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (base64_decode(bad[i], strlen(bad[i]), &b) != -EINVAL) {
            fail_msg("%s", bad[i]);
        }
    }
    assert_int_equal(base64_decode("Zm9\0v", 5, &b), -EINVAL);
    struct strbuf small = STRBUF_INIT_MAX(2);
    assert_int_equal(base64_decode("Zm9v", 4, &small), -ENOBUFS);
    assert_string_equal(b.data, "kept");
    strbuf_done(&small);
}

/* As JSON Web Tokens have it: no padding, and two other digits. */
static void a_token_has_one_text_for_its_bytes(void **state)
{
    static const struct {
        const char *bytes, *text;
        size_t size;
    } cases[] = {{"", "", 0},
                 {"f", "Zg", 1},
                 {"fo", "Zm8", 2},
                 {"foo", "Zm9v", 3},
                 {"foob", "Zm9vYg", 4},
                 {"fooba", "Zm9vYmE", 5},
                 {"\xff\xfe\x00\xfb", "__4A-w", 4}};
    static const char *const bad[] = {"Z", "Zm9vY", "Zh", "Zm9", "Zg==", "Zm+v", "Zm/v", "Zm 9"};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT, bytes = STRBUF_INIT;
        base64url_encode(cases[i].bytes, cases[i].size, &text);
        assert_string_equal(strbuf_cstr(&text), cases[i].text);
        assert_int_equal(base64url_decode(cases[i].text, strlen(cases[i].text), &bytes), 0);
        assert_int_equal(bytes.size, cases[i].size);
        assert_memory_equal(strbuf_cstr(&bytes), cases[i].bytes, cases[i].size);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        if (base64url_decode(bad[i], strlen(bad[i]), &b) != -EINVAL) {
            fail_msg("%s", bad[i]);
        }
        assert_int_equal(b.size, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_text_become_each_other),
        cmocka_unit_test(line_ends_are_skipped),
        cmocka_unit_test(what_is_not_canonical_is_refused),
        cmocka_unit_test(a_token_has_one_text_for_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
