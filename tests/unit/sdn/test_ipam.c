/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "sdn/ipam.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct ipam *make(const char *subnet)
{
    struct ip4_prefix p;
    struct ipam *m = NULL;
    assert_int_equal(prefix_parse(subnet, &p, NULL), 0);
    assert_int_equal(ipam_new(p, &m, NULL), 0);
    return m;
}

static uint32_t ip(const char *s)
{
    uint32_t a;
    assert_int_equal(ip4_parse(s, &a), 0);
    return a;
}

static void a_23_has_509_pods_and_never_gives_gateway_network_or_broadcast(void **state)
{
    (void) state;
    CLEANUP(ipam_free) struct ipam *m = make("10.128.0.0/23");
    assert_int_equal(ipam_capacity(m), 509);
    for (unsigned i = 0; i < 509; i++) {
        uint32_t a = 0;
        assert_int_equal(ipam_alloc(m, &a, NULL), 0);
        assert_int_equal(a, ip("10.128.0.2") + i);
    }
    struct err e = {0};
    uint32_t a = 7;
    assert_int_equal(ipam_alloc(m, &a, &e), -ENOSPC);
    assert_string_equal(e.text, "no free address in 10.128.0.0/23: 509 in use");
    assert_int_equal(a, 7);
}

static void a_freed_address_is_not_given_again_at_once(void **state)
{
    (void) state;
    CLEANUP(ipam_free) struct ipam *m = make("10.128.0.0/29");
    uint32_t a = 0;
    assert_int_equal(ipam_alloc(m, &a, NULL), 0);
    assert_int_equal(a, ip("10.128.0.2"));
    assert_int_equal(ipam_release(m, a), 0);
    for (unsigned i = 3; i <= 6; i++) {
        assert_int_equal(ipam_alloc(m, &a, NULL), 0);
        assert_int_equal(a, ip("10.128.0.0") + i);
    }
    assert_int_equal(ipam_alloc(m, &a, NULL), 0);
    assert_int_equal(a, ip("10.128.0.2"));
}

static void the_smallest_subnet_has_one_pod(void **state)
{
    (void) state;
    CLEANUP(ipam_free) struct ipam *m = make("10.1.0.4/30");
    uint32_t a = 0;
    assert_int_equal(ipam_alloc(m, &a, NULL), 0);
    assert_int_equal(a, ip("10.1.0.6"));
    assert_int_equal(ipam_alloc(m, &a, NULL), -ENOSPC);
    assert_int_equal(ipam_release(m, a), 0);
    assert_int_equal(ipam_alloc(m, &a, NULL), 0);
    assert_int_equal(a, ip("10.1.0.6"));
}

static void lengths_without_room_or_sense_are_refused(void **state)
{
    (void) state;
    static const char *const bad[] = {"10.1.0.4/31", "10.1.0.4/32", "0.0.0.0/0", "10.0.0.0/7"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct ip4_prefix p;
        struct ipam *m = NULL;
        struct err e = {0};
        assert_int_equal(prefix_parse(bad[i], &p, NULL), 0);
        assert_int_equal(ipam_new(p, &m, &e), -EINVAL);
        assert_null(m);
        assert_non_null(strstr(e.text, bad[i]));
    }
}

static void marking_refuses_what_is_in_use_or_not_a_pods_address(void **state)
{
    (void) state;
    CLEANUP(ipam_free) struct ipam *m = make("10.128.2.0/23");
    struct err e = {0};
    static const char *const outside[] = {"10.128.2.0", "10.128.2.1", "10.128.3.255", "10.128.1.9",
                                          "10.128.4.9"};
    for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
        assert_int_equal(ipam_mark(m, ip(outside[i]), &e), -ERANGE);
        assert_int_equal(ipam_release(m, ip(outside[i])), -ENOENT);
        assert_false(ipam_is_used(m, ip(outside[i])));
    }
    assert_int_equal(ipam_mark(m, ip("10.128.2.2"), &e), 0);
    assert_int_equal(ipam_mark(m, ip("10.128.2.2"), &e), -EEXIST);
    assert_string_equal(e.text, "10.128.2.2 is in use");
    uint32_t a = 0;
    assert_int_equal(ipam_alloc(m, &a, NULL), 0);
    assert_int_equal(a, ip("10.128.2.3"));
    assert_int_equal(ipam_release(m, ip("10.128.2.2")), 0);
    assert_int_equal(ipam_release(m, ip("10.128.2.2")), -ENOENT);
}

/* A plain model beside the allocator: random allocations, releases, marks and restarts. */
static void random_histories_agree_with_a_model(void **state)
{
    (void) state;
    static const char *const subnets[] = {"10.128.0.0/30", "10.128.0.0/28", "10.1.7.0/24",
                                          "10.128.6.0/23"};
    uint64_t seed = 88172645463325252u;
    for (unsigned round = 0; round < 60; round++) {
        CLEANUP(ipam_free) struct ipam *m = make(subnets[round % ARRAY_SIZE(subnets)]);
        struct ip4_prefix p = ipam_subnet(m);
        bool used[512] = {0};
        unsigned n = 0;
        for (unsigned step = 0; step < 3000; step++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            uint32_t a = p.addr + (uint32_t) (seed >> 40) % (uint32_t) prefix_size(p);
            unsigned what = (unsigned) (seed >> 20) % 100;
            /* Phases that fill and phases that empty, so that full and empty are both reached. */
            unsigned p_alloc = step / 500 % 2 ? 30 : 60;
            if (what < p_alloc) {
                uint32_t got = 0;
                int r = ipam_alloc(m, &got, NULL);
                assert_int_equal(r, n == ipam_capacity(m) ? -ENOSPC : 0);
                if (r == 0) {
                    assert_true(prefix_contains(p, got));
                    assert_true(got > p.addr + 1 && got < prefix_last(p));
                    assert_false(used[got - p.addr]);
                    used[got - p.addr] = true;
                    n++;
                }
            } else if (what < 90) {
                assert_int_equal(ipam_release(m, a), used[a - p.addr] ? 0 : -ENOENT);
                n -= used[a - p.addr];
                used[a - p.addr] = false;
            } else if (what < 97) {
                bool pod = a > p.addr + 1 && a < prefix_last(p);
                int want = !pod ? -ERANGE : used[a - p.addr] ? -EEXIST : 0;
                assert_int_equal(ipam_mark(m, a, NULL), want);
                n += want == 0;
                used[a - p.addr] |= want == 0;
            } else {
                m = ipam_free(m);
                assert_int_equal(ipam_new(p, &m, NULL), 0);
                for (uint32_t i = 0; i < prefix_size(p); i++) {
                    if (used[i]) {
                        assert_int_equal(ipam_mark(m, p.addr + i, NULL), 0);
                    }
                }
            }
            assert_int_equal(ipam_used(m), n);
            assert_int_equal(ipam_is_used(m, a), used[a - p.addr]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_23_has_509_pods_and_never_gives_gateway_network_or_broadcast),
        cmocka_unit_test(a_freed_address_is_not_given_again_at_once),
        cmocka_unit_test(the_smallest_subnet_has_one_pod),
        cmocka_unit_test(lengths_without_room_or_sense_are_refused),
        cmocka_unit_test(marking_refuses_what_is_in_use_or_not_a_pods_address),
        cmocka_unit_test(random_histories_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
