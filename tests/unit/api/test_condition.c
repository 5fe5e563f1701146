/* SPDX-License-Identifier: Apache-2.0 */
#include "api/condition.h"

#include "json_text.h"

static void a_condition_is_written_when_it_differs(void **state)
{
    CLEANUP(json_free) struct json *o = from("{'status': {'conditions': 'none'}}");
    assert_null(condition_find(o, "Ready"));
    assert_non_null(condition_set(o, "Ready", "True", "Up", "all is well", 1000));
    assert_null(condition_set(o, "Ready", "True", "Up", "all is well", 2000));
    assert_non_null(condition_set(o, "Ready", "True", "Up", "still well", 3000));
    assert_non_null(condition_set(o, "Ready", "True", "Stays", "still well", 4000));
    assert_json(o, "{'status': {'conditions': [{'type': 'Ready', 'status': 'True',"
                   "'lastTransitionTime': '1970-01-01T00:00:01Z', 'reason': 'Stays',"
                   "'message': 'still well'}]}}");
    assert_true(condition_is_true(o, "Ready"));
    assert_non_null(condition_set(o, "Ready", "False", "Stays", "still well", 5000));
    assert_false(condition_is_true(o, "Ready"));
    assert_false(condition_is_true(o, "Other"));
}

static void a_reason_that_is_not_given_stays(void **state)
{
    CLEANUP(json_free) struct json *o = json_object();
    assert_non_null(condition_set(o, "Ready", "True", NULL, NULL, 1000));
    assert_json(o, "{'status': {'conditions': [{'type': 'Ready', 'status': 'True',"
                   "'lastTransitionTime': '1970-01-01T00:00:01Z'}]}}");
    assert_non_null(condition_set(o, "Ready", "True", "Up", NULL, 2000));
    assert_null(condition_set(o, "Ready", "True", NULL, NULL, 3000));
    assert_non_null(condition_set(o, "Ready", "False", NULL, NULL, 4000));
    assert_json(o, "{'status': {'conditions': [{'type': 'Ready', 'status': 'False',"
                   "'lastTransitionTime': '1970-01-01T00:00:04Z', 'reason': 'Up'}]}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_is_written_when_it_differs),
        cmocka_unit_test(a_reason_that_is_not_given_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
