/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void hex_has_two_digits_a_byte(void **state)
{
    char text[2 * 128 + 2];
    for (size_t size = 0; size <= 128; size++) {
        memset(text, 'x', sizeof text);
        random_hex(text, size);
        assert_int_equal(strlen(text), 2 * size);
        assert_int_equal(strspn(text, "0123456789abcdef"), 2 * size);
        assert_int_equal(text[2 * size + 1], 'x');
    }
    (void) state;
}

/* RFC 9562, section 5.4: the version is 4, and the variant's two bits are 10. */
static void uuid_has_version_and_variant(void **state)
{
    for (int i = 0; i < 200; i++) {
        char text[RANDOM_UUID_SIZE], other[RANDOM_UUID_SIZE];
        random_uuid(text);
        random_uuid(other);
        assert_int_equal(strlen(text), 36);
        assert_string_not_equal(text, other);
        for (int k = 0; k < 36; k++) {
            bool dash = k == 8 || k == 13 || k == 18 || k == 23;
            assert_true(dash ? text[k] == '-' : strchr("0123456789abcdef", text[k]) != NULL);
        }
        assert_int_equal(text[14], '4');
        assert_non_null(strchr("89ab", text[19]));
    }
    (void) state;
}

/* Each bit is set in some results and clear in others. */
static void every_bit_changes(void **state)
{
    uint8_t any[256] = {0}, all[256], bytes[256];
    memset(all, 0xff, sizeof all);
    for (int i = 0; i < 64; i++) {
        random_bytes(bytes, sizeof bytes);
        for (size_t k = 0; k < sizeof bytes; k++) {
            any[k] |= bytes[k];
            all[k] &= bytes[k];
        }
    }
    for (size_t k = 0; k < sizeof bytes; k++) {
        assert_int_equal(any[k], 0xff);
        assert_int_equal(all[k], 0);
    }
    (void) state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hex_has_two_digits_a_byte),
        cmocka_unit_test(uuid_has_version_and_variant),
        cmocka_unit_test(every_bit_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
