/* SPDX-License-Identifier: Apache-2.0 */
#include "base/said.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_same_is_said_once(void **state)
{
    struct said s = {0};
    assert_true(said_is_news(&s, "full"));
    assert_false(said_is_news(&s, "full"));
    assert_true(said_is_news(&s, "gone"));
    assert_true(said_is_news(&s, "full"));
    said_done(&s);
}

static void it_is_news_again_after_all_was_well(void **state)
{
    struct said s = {0};
    assert_false(said_is_news(&s, NULL));
    assert_true(said_is_news(&s, "full"));
    assert_false(said_is_news(&s, NULL));
    assert_true(said_is_news(&s, "full"));
    said_done(&s);
    assert_true(said_is_news(&s, "full"));
    said_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_said_once),
        cmocka_unit_test(it_is_news_again_after_all_was_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
