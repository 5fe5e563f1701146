/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log_line.h"

#include <setjmp.h>

#include <cmocka.h>

#define T1 "2026-11-23T10:00:00.000000001Z"
#define T2 "2026-11-23T10:00:00.5Z"
#define T3 "2026-11-23T12:00:01.250000000+02:00"
#define T3_UTC "2026-11-23T10:00:01.250000000Z"
static const char sample[] = T1 " stdout F one\n" T2 " stderr P two, \n" T2 " stderr F and more\n"
                                "no line of a runtime\n" T3 " stdout F \n" T3 " stdout F last";

static void filtered(struct log_filter f, const char *want)
{
    for (size_t step = 1; step < sizeof sample; step++) {
        struct log_filter g = f;
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        for (size_t at = 0; at < sizeof sample - 1; at += step) {
            log_filter_feed(&g, sample + at, MIN(step, sizeof sample - 1 - at), &out);
        }
        log_filter_end(&g, &out);
        assert_string_equal(strbuf_cstr(&out), want);
        log_filter_done(&g);
    }
}

static void lines_are_joined_and_stamped(void **state)
{
    struct log_filter f = LOG_FILTER_INIT;
    filtered(f, "one\ntwo, and more\n\nlast\n");
    f.timestamps = true;
    filtered(f, T1 " one\n" T2 " two, and more\n" T3_UTC " \n" T3_UTC " last\n");
}

static void lines_before_a_time_are_left_out(void **state)
{
    const int64_t second = INT64_C(1000000000), ten = INT64_C(1795428000) * second;
    static const char *const want[] = {"one\ntwo, and more\n\nlast\n", "two, and more\n\nlast\n",
                                       "\nlast\n", ""};
    const int64_t since[] = {ten + 1, ten + 2, ten + second, ten + 2 * second};
    for (size_t i = 0; i < ARRAY_SIZE(since); i++) {
        struct log_filter f = LOG_FILTER_INIT;
        f.since_ns = since[i];
        filtered(f, want[i]);
    }
}

static void output_ends_at_the_limit(void **state)
{
    struct log_filter f = LOG_FILTER_INIT;
    f.limit = 6;
    filtered(f, "one\ntw");
    f.limit = 0;
    filtered(f, "");
}

static void malformed_lines_are_told(void **state)
{
    static const char *const bad[] = {
        "",           "x", T1, T1 " stdout", T1 " stdout F", T1 " stdin F a", T1 " stdout X a",
        " stdout F a"};
    struct log_line l;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        bool empty_text = i == 4; /* The text after the tag may be missing. */
        assert_int_equal(log_line_parse(bad[i], strlen(bad[i]), &l), empty_text ? 0 : -EINVAL);
    }
    assert_int_equal(log_line_parse(T1 " stderr P:x a b", strlen(T1) + 15, &l), 0);
    assert_true(l.partial && l.is_stderr && l.size == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_joined_and_stamped),
        cmocka_unit_test(lines_before_a_time_are_left_out),
        cmocka_unit_test(output_ends_at_the_limit),
        cmocka_unit_test(malformed_lines_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
