/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The pause is 'ms' or up to a quarter less. */
static void expect_pause(const struct backoff *b, uint64_t ms)
{
    uint64_t pause = backoff_pause_ms(b, 20, 100, 7);
    assert_true(pause <= ms + ms / 4);
    assert_true(pause >= ms - ms / 4);
}

static void the_pause_doubles_with_each_failure(void **state)
{
    static const uint64_t pauses[] = {20, 40, 80, 100, 100};
    struct backoff b = {0};
    expect_pause(&b, 0);
    for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
        backoff_fail(&b);
        expect_pause(&b, pauses[i]);
    }
    backoff_succeed(&b);
    expect_pause(&b, 0);
}

static void a_connection_that_lasted_is_a_success(void **state)
{
    struct backoff b = {0};
    backoff_fail(&b);
    backoff_lasted(&b, 4999, 5000);
    expect_pause(&b, 20);
    backoff_lasted(&b, 5000, 5000);
    expect_pause(&b, 0);
}

static void one_attempt_after_a_success_needs_no_pause(void **state)
{
    struct backoff b = {0};
    assert_true(backoff_at_once(&b));
    assert_false(backoff_at_once(&b));
    expect_pause(&b, 20);
    backoff_succeed(&b);
    assert_true(backoff_at_once(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pause_doubles_with_each_failure),
        cmocka_unit_test(a_connection_that_lasted_is_a_success),
        cmocka_unit_test(one_attempt_after_a_success_needs_no_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
