/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timeutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#define SECOND 1000ll
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static void times_are_written_in_utc(void **state)
{
    static const struct {
        int64_t ms;
        const char *with_ms, *seconds;
    } table[] = {
        {0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00Z"},
        {951827696789, "2000-02-29T12:34:56.789Z", "2000-02-29T12:34:56Z"},
        {1795246174007, "2026-11-21T07:29:34.007Z", "2026-11-21T07:29:34Z"},
        {-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z"},
        {-86400000, "1969-12-31T00:00:00.000Z", "1969-12-31T00:00:00Z"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char out[TIME_TEXT_SIZE];
        time_format_ms(table[i].ms, out);
        assert_string_equal(out, table[i].with_ms);
        int64_t back;
        assert_int_equal(time_parse(out, &back), 0);
        assert_true(back == table[i].ms);
        time_format_s(table[i].ms, out);
        assert_string_equal(out, table[i].seconds);
    }
    char out[TIME_TEXT_SIZE];
    time_format_micro(-1, out);
    assert_string_equal(out, "1969-12-31T23:59:59.999000Z");
}

static void a_clock_before_the_first_version_is_unset(void **state)
{
    int64_t first;
    assert_int_equal(time_parse("2026-01-01T00:00:00Z", &first), 0);
    assert_true(time_is_unset(0));
    assert_true(time_is_unset(first - 1));
    assert_false(time_is_unset(first));
    assert_false(time_is_unset(time_wall_ms()));
}

static void dates_of_http_are_in_greenwich_time(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } table[] = {
        {784111777999, "Sun, 06 Nov 1994 08:49:37 GMT"}, /* The example of RFC 9110. */
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {951827696789, "Tue, 29 Feb 2000 12:34:56 GMT"},
        {1798761599000, "Thu, 31 Dec 2026 23:59:59 GMT"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char out[TIME_TEXT_SIZE];
        time_format_http(table[i].ms, out);
        assert_string_equal(out, table[i].text);
    }
}

static void rfc_3339_times_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:01z", 1000},
        {"1970-01-01T01:00:00+01:00", 0},
        {"1969-12-31T19:30:00-04:30", 0},
        {"1970-01-01T00:00:00.5Z", 500},
        {"1970-01-01T00:00:00.0019999Z", 1},
        {"1970-01-01T00:00:00.123456789+00:00", 123},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"2024-02-29T00:00:00Z", 1709164800000},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        int64_t ms = -7;
        if (time_parse(good[i].text, &ms) < 0 || ms != good[i].ms) {
            fail_msg("%s", good[i].text);
        }
    }
    static const char *const bad[] = {
        "",
        "2026",
        "2026-11-21",
        "2026-11-21T07:29:34",
        "2026-11-21 07:29:34Z",
        "2026-11-21T07:29Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+01:60",
        "2026-01-01T00:00:00Zx",
        "26-01-01T00:00:00Z",
        "2026-1-01T00:00:00Z",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int64_t ms = -7;
        if (time_parse(bad[i], &ms) != -EINVAL || ms != -7) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void ages_read_as_kubectl_prints_them(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } table[] = {
        {-5, "0s"},
        {0, "0s"},
        {119 * SECOND, "119s"},
        {2 * MINUTE, "2m"},
        {3 * MINUTE + 12 * SECOND, "3m12s"},
        {9 * MINUTE + 59 * SECOND, "9m59s"},
        {10 * MINUTE + 5 * SECOND, "10m"},
        {179 * MINUTE, "179m"},
        {3 * HOUR, "3h"},
        {3 * HOUR + 20 * MINUTE, "3h20m"},
        {7 * HOUR + 59 * MINUTE, "7h59m"},
        {8 * HOUR + 30 * MINUTE, "8h"},
        {47 * HOUR, "47h"},
        {2 * DAY, "2d"},
        {4 * DAY + 3 * HOUR, "4d3h"},
        {8 * DAY + 3 * HOUR, "8d"},
        {729 * DAY, "729d"},
        {2 * 365 * DAY, "2y"},
        {2 * 365 * DAY + 5 * DAY, "2y5d"},
        {8 * 365 * DAY + 5 * DAY, "8y"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char out[TIME_TEXT_SIZE];
        time_format_age(table[i].ms, out);
        assert_string_equal(out, table[i].text);
    }
}

static void durations_are_those_of_go(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
        const char *again; /* NULL: the same. */
    } rows[] = {
        {"0s", 0, NULL},
        {"0", 0, "0s"},
        {"1ns", 1, NULL},
        {"1.5\xc2\xb5s", 1500, NULL},
        {"1.5\xce\xbcs", 1500, "1.5\xc2\xb5s"},
        {"1.5us", 1500, "1.5\xc2\xb5s"},
        {"500ms", 500000000, NULL},
        {"1.000001ms", 1000001, NULL},
        {"1.5s", 1500000000, NULL},
        {".5s", 500000000, "500ms"},
        {"5.s", 5000000000, "5s"},
        {"15.062s", 15062000000, NULL},
        {"0.123456789s", 123456789, "123.456789ms"},
        {"1m0s", 60000000000, NULL},
        {"90s", 90000000000, "1m30s"},
        {"1m0.5s", 60500000000, NULL},
        {"2h0m1s", 7201000000000, NULL},
        {"1.5h", 5400000000000, "1h30m0s"},
        {"0.50000000000000000000000h", 1800000000000, "30m0s"},
        {"-1m", -60000000000, "-1m0s"},
        {"+1m", 60000000000, "1m0s"},
        {"2562047h47m16.854775807s", INT64_MAX, NULL},
        {"-2562047h47m16.854775808s", INT64_MIN, NULL},
    };
    static const char *const wrong[] = {"",
                                        "5",
                                        "m",
                                        "1m-",
                                        "1.2.3s",
                                        ".s",
                                        "1x",
                                        "--1s",
                                        "1 s",
                                        "1s ",
                                        "s1",
                                        "-",
                                        "1m5",
                                        "00",
                                        "1e3s",
                                        "99999999999s",
                                        "2562047h47m16.854775808s",
                                        "18446744073709551616ns",
                                        "-2562047h47m16.854775809s"};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t ns = -1;
        char out[TIME_TEXT_SIZE];
        assert_int_equal(time_parse_duration(rows[i].text, &ns), 0);
        assert_int_equal(ns, rows[i].ns);
        time_format_duration(ns, out);
        assert_string_equal(out, rows[i].again ? rows[i].again : rows[i].text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        int64_t ns = -1;
        assert_int_equal(time_parse_duration(wrong[i], &ns), -EINVAL);
        assert_int_equal(ns, -1);
    }
}

static void backoff_doubles_up_to_its_maximum(void **state)
{
    for (uint32_t seed = 0; seed < 100; seed++) {
        uint64_t full = 100;
        for (unsigned attempt = 0; attempt < 80; attempt++) {
            uint64_t ms = time_backoff_ms(attempt, 100, 5000, seed);
            assert_true(ms >= full - full / 4 && ms <= full);
            full = MIN(full * 2, (uint64_t) 5000);
        }
    }
    assert_true(time_backoff_ms(7, 100, 5000, 1) != time_backoff_ms(7, 100, 5000, 2));
    assert_true(time_backoff_ms(5, 1, 1, 3) == 1);
}

static void the_monotonic_clock_goes_on(void **state)
{
    uint64_t ns = time_mono_ns(), ms = time_mono_ms();
    assert_true(time_mono_ns() >= ns);
    assert_true(ms >= ns / 1000000);
    assert_true(time_wall_ms() > 1577836800000); /* 2020 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_before_the_first_version_is_unset),
        cmocka_unit_test(dates_of_http_are_in_greenwich_time),
        cmocka_unit_test(times_are_written_in_utc),
        cmocka_unit_test(rfc_3339_times_are_read),
        cmocka_unit_test(ages_read_as_kubectl_prints_them),
        cmocka_unit_test(durations_are_those_of_go),
        cmocka_unit_test(backoff_doubles_up_to_its_maximum),
        cmocka_unit_test(the_monotonic_clock_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
