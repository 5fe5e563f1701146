/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "random_firewalls.h"
#include "rng.h"
#include "sdn/firewall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define CLUSTERS 3000

static struct firewall_rule rule(bool allow, struct ip4_prefix *to)
{
    return (struct firewall_rule){allow, to, 1};
}

static void the_first_rule_decides(void **state)
{
    struct ip4_prefix wide = {IP(192, 168, 0, 0), 16}, narrow = {IP(192, 168, 1, 0), 24};
    struct firewall_rule rules[] = {rule(true, &wide), rule(false, &narrow)};
    struct firewall_block *blocks;
    assert_int_equal(firewall_find(rules, 2, IP(192, 168, 1, 1)), 0);
    assert_int_equal(firewall_find(rules, 2, IP(192, 169, 1, 1)), 2);
    /* All are allowed, as if there were no rule. */
    assert_int_equal(firewall_flatten(rules, 2, &blocks), 0);
    free(blocks);
}

/* OpenShift's own example: "allow 192.168.0.0/16, deny 192.168.1.0/24, allow 192.168.1.1/32", in
 * the order in which each rule means something. */
static void blocks_are_what_differs_from_the_block_around(void **state)
{
    struct ip4_prefix a = {IP(192, 168, 1, 1), 32}, b = {IP(192, 168, 1, 0), 24};
    struct ip4_prefix c = {IP(192, 168, 0, 0), 16}, all = {0, 0};
    struct firewall_rule rules[] = {rule(true, &a), rule(false, &b), rule(true, &c),
                                    rule(false, &all)};
    struct firewall_block *blocks;
    size_t n = firewall_flatten(rules, 4, &blocks);
    static const struct firewall_block want[] = {{{0, 0}, false},
                                                 {{IP(192, 168, 0, 0), 16}, true},
                                                 {{IP(192, 168, 1, 0), 24}, false},
                                                 {{IP(192, 168, 1, 1), 32}, true}};
    assert_int_equal(n, ARRAY_SIZE(want));
    for (size_t i = 0; i < n; i++) {
        assert_true(prefix_equal(blocks[i].to, want[i].to) && blocks[i].allow == want[i].allow);
    }
    free(blocks);
}

static bool by_longest_prefix(const struct firewall_block *blocks, size_t n, uint32_t ip)
{
    bool allow = true;
    int len = -1;
    for (size_t i = 0; i < n; i++) {
        if (prefix_contains(blocks[i].to, ip) && blocks[i].to.len > len) {
            len = blocks[i].to.len;
            allow = blocks[i].allow;
        }
    }
    return allow;
}

static void blocks_decide_as_the_rules_do(void **state)
{
    uint64_t first = rng_first_seed("TENET_FIREWALL_SEED", CLUSTERS, "firewalls"), denied = 0;
    for (uint64_t seed = first; seed < first + CLUSTERS; seed++) {
        struct random_firewalls f;
        struct firewall_block *blocks;
        uint32_t around[4];
        rng_start(seed);
        for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
            around[i] = (uint32_t) rng();
        }
        random_firewalls_init(&f);
        random_firewalls_add(&f, 42, around, ARRAY_SIZE(around));
        const struct model_firewall *m = &f.list[0];
        size_t n = firewall_flatten(m->rules, m->n_rules, &blocks);
        for (size_t i = 0; i < 40; i++) {
            uint32_t ip = (around[below(4)] + below(3) - 1) ^ (chance(50) ? 1u << below(32) : 0);
            size_t k = firewall_find(m->rules, m->n_rules, ip);
            bool allow = k == m->n_rules || m->rules[k].allow;
            if (by_longest_prefix(blocks, n, ip) != allow) {
                fail_msg("%s: the rules %s it (TENET_FIREWALL_SEED=%lu)", IP4_TEXT(ip),
                         allow ? "allow" : "deny", (unsigned long) seed);
            }
            denied += !allow;
        }
        for (size_t i = 1; i < n; i++) {
            assert_true(blocks[i - 1].to.addr < blocks[i].to.addr ||
                        (blocks[i - 1].to.addr == blocks[i].to.addr &&
                         blocks[i - 1].to.len < blocks[i].to.len));
        }
        free(blocks);
        random_firewalls_done(&f);
    }
    assert_true(denied > CLUSTERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_decides),
        cmocka_unit_test(blocks_are_what_differs_from_the_block_around),
        cmocka_unit_test(blocks_decide_as_the_rules_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
