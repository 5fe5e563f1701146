/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void addresses_are_strict_dotted_quads(void **state)
{
    static const struct {
        const char *text;
        uint32_t addr;
    } good[] = {
        {"0.0.0.0", 0},
        {"10.128.0.2", 0x0a800002},
        {"255.255.255.255", 0xffffffff},
        {"1.20.100.0", 0x01146400},
    };
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        uint32_t a = 1;
        assert_int_equal(ip4_parse(good[i].text, &a), 0);
        assert_int_equal(a, good[i].addr);
        assert_string_equal(IP4_TEXT(a), good[i].text);
    }
    static const char *const bad[] = {
        "",          "1",         "1.2.3",      "1.2.3.",   "1.2.3.4.",   "1.2.3.4.5",
        "256.1.1.1", "1.1.1.256", "01.2.3.4",   "1.2.3.04", "1.2.3.00",   " 1.2.3.4",
        "1.2.3.4 ",  "1..2.3",    "a.b.c.d",    "1.2.3.-4", "+1.2.3.4",   "1.2.3.4/8",
        "0x1.2.3.4", "1,2,3,4",   "1.2.3.0000", ".1.2.3.4", "1111.2.3.4", "99999999999.1.1.1",
        "::1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint32_t a = 7;
        if (ip4_parse(bad[i], &a) != -EINVAL || a != 7) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void prefixes_must_be_canonical(void **state)
{
    struct ip4_prefix p = {1, 1};
    struct err e = {0};
    assert_int_equal(prefix_parse("10.128.0.0/14", &p, &e), 0);
    assert_int_equal(p.addr, 0x0a800000);
    assert_int_equal(p.len, 14);
    assert_string_equal(PREFIX_TEXT(p), "10.128.0.0/14");
    assert_int_equal(prefix_parse("0.0.0.0/0", &p, &e), 0);
    assert_int_equal(prefix_parse("1.2.3.4/32", &p, &e), 0);
    struct ip4_prefix before = p;
    assert_int_equal(prefix_parse("10.129.0.1/14", &p, &e), -EINVAL);
    assert_true(prefix_equal(p, before));
    assert_non_null(strstr(e.text, "did you mean 10.128.0.0/14"));
    static const char *const bad[] = {
        "",
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/08",
        "/8",
        "10.0.0/8",
        "10.0.0.0/8/8",
        "10.0.0.0/8 ",
        "10.0.0.0/+8",
        "10.0.0.0/00",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/99999999999999999999",
        "1111111111111111111.0.0.0/8",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        if (prefix_parse(bad[i], &p, &e) != -EINVAL || prefix_parse_host(bad[i], &p, NULL) >= 0) {
            fail_msg("%s", bad[i]);
        }
    }
    assert_int_equal(prefix_parse_host("10.129.0.1/14", &p, &e), 0);
    assert_int_equal(p.addr, 0x0a810001);
}

static void prefix_arithmetic_holds_at_the_edges(void **state)
{
    struct ip4_prefix all = {0, 0}, one = {0x01020304, 32}, net = {0x0a800000, 14},
                      inside = {0x0a810200, 23}, beside = {0x0a840000, 14};
    assert_int_equal(prefix_mask(0), 0);
    assert_int_equal(prefix_mask(1), 0x80000000);
    assert_int_equal(prefix_mask(32), 0xffffffff);
    assert_int_equal(prefix_last(all), 0xffffffff);
    assert_int_equal(prefix_last(one), 0x01020304);
    assert_int_equal(prefix_last(net), 0x0a83ffff);
    assert_true(prefix_size(all) == (uint64_t) 1 << 32);
    assert_true(prefix_size(one) == 1);
    assert_true(prefix_contains(all, 0xffffffff));
    assert_true(prefix_contains(one, 0x01020304));
    assert_false(prefix_contains(one, 0x01020305));
    assert_true(prefix_contains(net, 0x0a83ffff));
    assert_false(prefix_contains(net, 0x0a840000));
    assert_true(prefix_overlaps(net, inside));
    assert_true(prefix_overlaps(inside, net));
    assert_true(prefix_overlaps(all, one));
    assert_true(prefix_overlaps(net, net));
    assert_false(prefix_overlaps(net, beside));
    assert_false(prefix_equal(net, (struct ip4_prefix){0x0a800000, 15}));
}

static void macs_are_six_hex_pairs(void **state)
{
    struct mac m;
    assert_int_equal(mac_parse("0a:58:0A:80:00:fF", &m), 0);
    assert_string_equal(MAC_TEXT(m), "0a:58:0a:80:00:ff");
    static const char *const bad[] = {
        "",
        "0a",
        "0a:58:0a:80:00",
        "0a:58:0a:80:00:02:03",
        "0a:58:0a:80:00:0",
        "0a-58-0a-80-00-02",
        "0g:58:0a:80:00:02",
        "a:58:0a:80:00:02",
        "0a:58:0a:80:00:02 ",
        "0a580a800002",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct mac before = m;
        if (mac_parse(bad[i], &m) != -EINVAL || !mac_equal(m, before)) {
            fail_msg("%s", bad[i]);
        }
    }
    assert_string_equal(MAC_TEXT(mac_from_ip4(0x0a800002)), "0a:58:0a:80:00:02");
    assert_false(mac_equal(mac_from_ip4(1), mac_from_ip4(2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_strict_dotted_quads),
        cmocka_unit_test(prefixes_must_be_canonical),
        cmocka_unit_test(prefix_arithmetic_holds_at_the_edges),
        cmocka_unit_test(macs_are_six_hex_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
