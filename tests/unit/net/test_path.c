/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of IPsec. The tests of the eBPF datapath cover ways to other hosts. */
#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/path.h"
#include "net/loop/process.h"

#include <dlfcn.h>
#include <libmnl/libmnl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

/* Runs `ip xfrm policy` with 'arguments' in this network namespace. */
static void xfrm_policy(const char *arguments)
{
    CLEANUP_FREE char *script = xasprintf("ip xfrm policy %s", arguments);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    struct err e = {0};
    int status = -1;
    s.argv = argv;
    if (process_run(&s, 10000, NULL, NULL, &status, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(status, 0);
}

static int enter_namespace(void **state)
{
    return geteuid() == 0 && unshare(CLONE_NEWNET) < 0 ? -1 : 0;
}

static void a_policy_of_any_direction_is_ipsec(void **state)
{
    static const char *const directions[] = {"in", "out", "fwd"};
    NEEDS_ROOT();
    assert_false(path_has_ipsec());
    for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
        CLEANUP_FREE char *add =
            xasprintf("add dir %s src 192.0.2.1/32 dst 192.0.2.2/32", directions[i]);
        xfrm_policy(add);
        assert_true(path_has_ipsec());
        xfrm_policy("flush");
        assert_false(path_has_ipsec());
    }
}

static void packets_that_are_blocked_without_a_policy_are_ipsec(void **state)
{
    static const char *const defaults[] = {"in block", "out block"};
    NEEDS_ROOT();
    for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
        CLEANUP_FREE char *set = xasprintf("setdefault %s", defaults[i]);
        xfrm_policy(set);
        assert_true(path_has_ipsec());
        xfrm_policy("setdefault in accept out accept");
        assert_false(path_has_ipsec());
    }
}

static int open_error; /* Of mnl_socket_open2; 0: it is the library's. */

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
    struct mnl_socket *(*open2)(int, int);
    *(void **) &open2 = dlsym(RTLD_NEXT, "mnl_socket_open2");
    if (open_error) {
        errno = open_error;
        return NULL;
    }
    return open2(bus, flags);
}

static void a_kernel_that_cannot_be_asked_may_have_ipsec(void **state)
{
    open_error = EPROTONOSUPPORT; /* There is none in it. */
    assert_false(path_has_ipsec());
    open_error = EMFILE;
    assert_true(path_has_ipsec());
    open_error = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_of_any_direction_is_ipsec),
        cmocka_unit_test(packets_that_are_blocked_without_a_policy_are_ipsec),
        cmocka_unit_test(a_kernel_that_cannot_be_asked_may_have_ipsec),
    };
    return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
