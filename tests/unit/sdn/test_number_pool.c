/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of addresses and ports against a model, over random histories; and the ranges of services. */
#include "base/mem.h"
#include "sdn/number_pool.h"
#include "sdn/service_ranges.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed_state = 0x9e3779b97f4a7c15;
static uint64_t next_random(void)
{
    seed_state ^= seed_state << 13;
    seed_state ^= seed_state >> 7;
    seed_state ^= seed_state << 17;
    return seed_state;
}

static struct ip4_prefix net(const char *text)
{
    struct ip4_prefix p;
    assert_int_equal(prefix_parse(text, &p, NULL), 0);
    return p;
}

static void a_network_gives_its_host_addresses_only(void **state)
{
    static const struct {
        const char *net;
        uint32_t first, n;
    } cases[] = {
        {"172.30.0.0/16", 0xac1e0001, 65534},
        {"10.0.0.0/30", 0x0a000001, 2},
        {"10.0.0.0/31", 0x0a000001, 0},
        {"10.0.0.0/32", 0x0a000001, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct number_pool p;
        struct ip4_prefix prefix = net(cases[i].net);
        number_pool_init_net(&p, prefix);
        assert_int_equal(p.n, cases[i].n);
        assert_int_equal(p.first, cases[i].first);
        assert_false(number_pool_has(&p, prefix.addr));
        assert_false(number_pool_has(&p, prefix_last(prefix)));
        number_pool_done(&p);
    }
}

static void each_number_is_given_once_until_none_is_left(void **state)
{
    static const uint32_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 128, 1000, 2768, 65534};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        uint32_t n = sizes[i], number;
        struct number_pool p;
        CLEANUP_FREE uint8_t *given = xcalloc(n, 1);
        number_pool_init(&p, 30000, n);
        for (uint32_t k = 0; k < n; k++) {
            assert_int_equal(number_pool_choose(&p, next_random(), &number), 0);
            assert_true(number >= 30000 && number - 30000 < n);
            assert_int_equal(given[number - 30000]++, 0);
            /* The band is the last resort. */
            assert_true(k < n - p.band ? number - 30000 >= p.band : number - 30000 < p.band);
        }
        assert_int_equal(number_pool_choose(&p, 1, &number), -ENOSPC);
        number_pool_give(&p, 30000 + n / 2);
        assert_int_equal(number_pool_choose(&p, next_random(), &number), 0);
        assert_int_equal(number, 30000 + n / 2);
        number_pool_clear(&p);
        assert_int_equal(p.taken, 0);
        number_pool_done(&p);
    }
}

static void random_histories_match_a_model(void **state)
{
    for (unsigned round = 0; round < 200; round++) {
        uint32_t n = (uint32_t) (next_random() % 300), number, first = 7;
        struct number_pool p;
        bool model[300] = {false};
        uint32_t taken = 0;
        number_pool_init(&p, first, n);
        for (unsigned step = 0; step < 500; step++) {
            uint32_t at = (uint32_t) (next_random() % 310), i = at - first;
            bool in = at >= first && i < n;
            switch (next_random() % 4) {
            case 0:
                number_pool_take(&p, at);
                taken += in && !model[i];
                if (in) {
                    model[i] = true;
                }
                break;
            case 1:
                number_pool_give(&p, at);
                taken -= in && model[i];
                if (in) {
                    model[i] = false;
                }
                break;
            case 2:
                assert_int_equal(number_pool_is_free(&p, at), in && !model[i]);
                assert_int_equal(number_pool_has(&p, at), in);
                break;
            default:
                if (number_pool_choose(&p, next_random(), &number) < 0) {
                    assert_int_equal(taken, n);
                } else {
                    assert_true(number >= first && number - first < n && !model[number - first]);
                    model[number - first] = true;
                    taken++;
                }
            }
            assert_int_equal(p.taken, taken);
        }
        number_pool_done(&p);
    }
}

static void the_first_number_can_be_kept_out(void **state)
{
    struct number_pool p;
    uint32_t number;
    number_pool_init_net(&p, net("10.0.0.0/29"));
    number_pool_reserve_first(&p);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(number_pool_choose(&p, next_random(), &number), 0);
        assert_int_not_equal(number, 0x0a000001);
    }
    assert_int_equal(number_pool_choose(&p, 0, &number), -ENOSPC);
    number_pool_done(&p);
}

static void ranges_of_ports_are_read(void **state)
{
    static const struct {
        const char *text;
        int first, last; /* first 0: refused */
    } cases[] = {
        {"", 30000, 32767},
        {"31000-31010", 31000, 31010},
        {"31000+10", 31000, 31010},
        {"80-80", 80, 80},
        {"0-10", 0, 0},
        {"1-65536", 0, 0},
        {"100-99", 0, 0},
        {"100", 0, 0},
        {"a-b", 0, 0},
        {"65535+1", 0, 0},
        {"-5", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint16_t first = 0, last = 0;
        struct err e = {0};
        int r = service_ports_parse(cases[i].text, &first, &last, &e);
        assert_int_equal(r, cases[i].first ? 0 : -EINVAL);
        assert_int_equal(first, cases[i].first);
        assert_int_equal(last, cases[i].last);
    }
}

static void external_addresses_are_allowed_by_the_rules(void **state)
{
    struct service_ranges r;
    uint32_t ip;
    service_ranges_defaults(&r);
    assert_int_equal(ip4_parse("80.11.12.10", &ip), 0);
    assert_false(service_ranges_allow_external(&r, ip));
    assert_int_equal(service_external_parse("80.11.0.0/16", &r.external[r.n_external++], NULL), 0);
    assert_true(service_ranges_allow_external(&r, ip));
    assert_false(service_ranges_allow_external(&r, ip + (1 << 24)));
    assert_int_equal(service_external_parse("!80.11.12.0/24", &r.external[r.n_external++], NULL),
                     0);
    assert_false(service_ranges_allow_external(&r, ip));
    assert_true(service_ranges_allow_external(&r, ip + 256));
    assert_int_equal(service_external_parse("!", &r.external[2], NULL), -EINVAL);
}

static void overlapping_ranges_are_refused(void **state)
{
    struct service_ranges r;
    struct err e = {0};
    service_ranges_defaults(&r);
    r.pods[r.n_pods++] = net("10.128.0.0/14");
    assert_int_equal(service_ranges_check(&r, &e), 0);
    r.ingress = net("10.129.0.0/24");
    assert_int_equal(service_ranges_check(&r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "overlaps the cluster network 10.128.0.0/14"));
    r.ingress = net("172.30.7.0/24");
    assert_int_equal(service_ranges_check(&r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "overlaps the service network"));
    r.has_ingress = false;
    assert_int_equal(service_ranges_check(&r, &e), 0);
    r.services = net("172.30.0.0/30");
    assert_int_equal(service_ranges_check(&r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "too small"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_gives_its_host_addresses_only),
        cmocka_unit_test(each_number_is_given_once_until_none_is_left),
        cmocka_unit_test(random_histories_match_a_model),
        cmocka_unit_test(the_first_number_can_be_kept_out),
        cmocka_unit_test(ranges_of_ports_are_read),
        cmocka_unit_test(external_addresses_are_allowed_by_the_rules),
        cmocka_unit_test(overlapping_ranges_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
