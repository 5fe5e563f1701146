/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void an_error_carries_code_and_text(void **state)
{
    struct err e = {0};
    assert_int_equal(err_set(&e, -EINVAL, "mtu: %d is not in %d-%d", 70000, 576, 65536), -EINVAL);
    assert_int_equal(e.code, -EINVAL);
    assert_string_equal(e.text, "mtu: 70000 is not in 576-65536");
    err_clear(&e);
    assert_int_equal(e.code, 0);
    assert_string_equal(e.text, "");
}

static void system_errors_say_why(void **state)
{
    struct err e = {0};
    assert_int_equal(err_sys(&e, -ENOENT, "open %s", "a.yaml"), -ENOENT);
    assert_string_equal(e.text, "open a.yaml: No such file or directory");
}

static void context_goes_in_front(void **state)
{
    struct err e = {0};
    err_set(&e, -ERANGE, "inner");
    assert_int_equal(err_prefix(&e, "middle %d", 1), -ERANGE);
    assert_int_equal(err_prefix(&e, "outer"), -ERANGE);
    assert_string_equal(e.text, "outer: middle 1: inner");
}

static void nobody_need_listen(void **state)
{
    assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
    assert_int_equal(err_sys(NULL, -EIO, "x"), -EIO);
    assert_int_equal(err_prefix(NULL, "x"), -EINVAL);
    err_clear(NULL);
}

static void long_texts_are_cut(void **state)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct err e = {0};
    err_set(&e, -EINVAL, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    err_sys(&e, -EINVAL, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    err_prefix(&e, "front");
    assert_int_equal(strncmp(e.text, "front: xxx", 10), 0);
    err_prefix(&e, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_carries_code_and_text),
        cmocka_unit_test(system_errors_say_why),
        cmocka_unit_test(context_goes_in_front),
        cmocka_unit_test(nobody_need_listen),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
