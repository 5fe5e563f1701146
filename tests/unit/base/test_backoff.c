/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void delays_double_up_to_the_longest_and_begin_anew_after_a_success(void **state)
{
    (void) state;
    static const uint64_t longest[] = {20, 40, 80, 160, 200, 200};
    struct backoff b = BACKOFF_INIT(20, 200);
    assert_true(backoff_is_due(&b, 0));
    for (int round = 0; round < 2; round++) {
        uint64_t now = 1000;
        for (size_t i = 0; i < ARRAY_SIZE(longest); i++) {
            uint64_t delay = backoff_fail(&b, now, (uint32_t) i);
            assert_in_range(delay, longest[i] - longest[i] / 4, longest[i]);
            assert_int_equal(backoff_left_ms(&b, now), delay);
            assert_false(backoff_is_due(&b, now + delay - 1));
            assert_true(backoff_is_due(&b, now + delay));
            assert_int_equal(backoff_left_ms(&b, now + delay + 1), 0);
            now += delay;
        }
        backoff_reset(&b);
        assert_true(backoff_is_due(&b, now));
    }
}

static void a_connection_that_lasted_is_a_success(void **state)
{
    struct backoff b = BACKOFF_INIT(20, 100);
    backoff_fail(&b, 1000, 0);
    backoff_lasted(&b, 4999, 5000);
    assert_int_equal(b.failures, 1);
    assert_false(backoff_is_due(&b, 1000));
    backoff_lasted(&b, 5000, 5000);
    assert_int_equal(b.failures, 0);
    assert_true(backoff_is_due(&b, 1000));
}

static void one_attempt_after_a_success_needs_no_pause(void **state)
{
    struct backoff b = BACKOFF_INIT(20, 100);
    assert_true(backoff_at_once(&b));
    assert_false(backoff_at_once(&b));
    assert_in_range(backoff_fail(&b, 1000, 0), 30, 40); /* It counted as the first failure. */
    backoff_reset(&b);
    assert_true(backoff_at_once(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_double_up_to_the_longest_and_begin_anew_after_a_success),
        cmocka_unit_test(a_connection_that_lasted_is_a_success),
        cmocka_unit_test(one_attempt_after_a_success_needs_no_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
