/* SPDX-License-Identifier: Apache-2.0 */
/* The token bucket of a link, as the kernel has it. */
#include "net/kernel/shape.h"
#include "net/loop/process.h"

#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

static struct rtnl *r;
static struct err e;
static int ifindex;

static int set_up(void **state)
{
    e = (struct err){0};
    if (geteuid() != 0) {
        return 0;
    }
    struct rtnl_link l;
    if (unshare(CLONE_NEWNET) < 0 || rtnl_open(&r, &e) < 0 || rtnl_bridge_add(r, "b0", &e) < 0 ||
        rtnl_link_get(r, "b0", &l, &e) < 0) {
        return -1;
    }
    ifindex = l.ifindex;
    return 0;
}

static int tear_down(void **state)
{
    r = rtnl_close(r);
    return 0;
}

#define OK(call)                        \
    do {                                \
        if ((call) != 0 || e.text[0]) { \
            fail_msg("%s", e.text);     \
        }                               \
    } while (0)

static void a_limit_is_set_checked_changed_and_taken_off(void **state)
{
    NEEDS_ROOT();
    struct shape slow = {.rate = 8000000}, fast = {.rate = 80000000000, .burst = 8000000};
    OK(shape_clear(r, ifindex, &e));
    assert_int_equal(shape_check(r, ifindex, &slow, &e), -ENOENT);
    assert_non_null(strstr(e.text, "is not limited to 8000000 bit/s"));
    e = (struct err){0};
    OK(shape_set(r, ifindex, &slow, &e));
    OK(shape_check(r, ifindex, &slow, &e));
    assert_int_equal(shape_check(r, ifindex, &fast, &e), -ENOENT);
    e = (struct err){0};
    OK(shape_set(r, ifindex, &fast, &e));
    OK(shape_check(r, ifindex, &fast, &e));
    OK(shape_clear(r, ifindex, &e));
    assert_int_equal(shape_check(r, ifindex, &fast, &e), -ENOENT);
    e = (struct err){0};
    OK(shape_clear(r, ifindex, &e));
}

static void a_link_that_is_gone_has_no_limit(void **state)
{
    NEEDS_ROOT();
    struct shape s = {.rate = 8000000};
    OK(shape_set(r, ifindex, &s, &e));
    OK(rtnl_link_del(r, "b0", &e));
    OK(shape_clear(r, ifindex, &e));
    assert_int_equal(shape_check(r, ifindex, &s, &e), -ENOENT);
    assert_int_equal(shape_set(r, ifindex, &s, &e), -ENODEV);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_limit_is_set_checked_changed_and_taken_off),
        T(a_link_that_is_gone_has_no_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
