/* SPDX-License-Identifier: Apache-2.0 */
#include "api/quantity.h"

#include "json_text.h"

static void amounts_are_whole_units_rounded_up(void **state)
{
    static const struct {
        const char *text;
        int exponent;
        int64_t want;
    } rows[] = {
        {"0", 0, 0},
        {"1", 0, 1},
        {"100m", -3, 100},
        {"0.1", -3, 100},
        {"1.5", -3, 1500},
        {"2", -3, 2000},
        {"1u", -3, 1},
        {"1500m", 0, 2},
        {"1n", 0, 1},
        {"64Mi", 0, INT64_C(64) << 20},
        {"1.5Gi", 0, INT64_C(1536) << 20},
        {"1e3", 0, 1000},
        {"12E2", 0, 1200},
        {"-1500m", 0, -2},
        {"1M", 6, 1},
        {"1500k", 6, 2},
        {"9223372036854775807", 0, INT64_MAX},
        {"9223372036854775808", 0, INT64_MAX},
        {"16Ei", 0, INT64_MAX},
        {"-16Ei", 0, -INT64_MAX},
        {"1e100", 0, INT64_MAX},
        {"1e-100", 0, 1},
        {"1000000000000000000000000000000000000000", 0, INT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t got = -1;
        assert_int_equal(api_quantity_value(rows[i].text, rows[i].exponent, &got, NULL), 0);
        if (got != rows[i].want) {
            fail_msg("%s: %lld, not %lld", rows[i].text, (long long) got, (long long) rows[i].want);
        }
    }
}

static void other_texts_are_refused(void **state)
{
    static const char *const rows[] = {"", "a", "1x", "1 ", "1..2", "1e", "0x10"};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t got = 7;
        struct err e = {0};
        if (api_quantity_value(rows[i], 0, &got, &e) != -EINVAL) {
            fail_msg("\"%s\" is accepted", rows[i]);
        }
        assert_int_equal(got, 7);
        assert_true(*e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_are_whole_units_rounded_up),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
