/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "sdn/egress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The blocks that were handed out, a line each. */
struct heard {
    struct egress *e;
    struct strbuf lines;
};

static void on_set(void *ctx, uint32_t vnid, const struct firewall_block *blocks, size_t n)
{
    struct heard *h = ctx;
    strbuf_addf(&h->lines, "set %u:", vnid);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&h->lines, " %s %s", blocks[i].allow ? "allow" : "deny",
                    PREFIX_TEXT(blocks[i].to));
    }
    strbuf_adds(&h->lines, "\n");
}

static void on_name(void *ctx, const char *name, bool wanted)
{
    struct heard *h = ctx;
    strbuf_addf(&h->lines, "%s %s\n", wanted ? "want" : "forget", name);
}

static void on_judged(void *ctx, const char *project, const char *policy, const char *reason,
                      const char *why)
{
    struct heard *h = ctx;
    strbuf_addf(&h->lines, "%s/%s %s\n", project, policy, why ? reason : "applied");
}

static int setup(void **state)
{
    static const struct egress_ops ops = {.set = on_set, .name = on_name, .judged = on_judged};
    struct heard *h = NEW(struct heard);
    h->e = egress_new(&ops, h);
    h->lines = (struct strbuf) STRBUF_INIT;
    *state = h;
    return 0;
}

static int teardown(void **state)
{
    struct heard *h = *state;
    egress_free(h->e);
    strbuf_done(&h->lines);
    free(h);
    return 0;
}

static void policy(struct heard *h, const char *project, const char *name, const char *rules)
{
    CLEANUP_FREE char *text = rules ? xasprintf("{\"spec\":{\"egress\":[%s]}}", rules) : NULL;
    struct json *obj = NULL;
    if (text) {
        assert_int_equal(json_parse(text, strlen(text), &obj, NULL), 0);
    }
    egress_set_policy(h->e, project, name, obj);
    json_free(obj);
}

static void project(struct heard *h, const char *name, uint32_t vnid)
{
    egress_set_project(h->e, name, &vnid);
}

static void expect(struct heard *h, const char *lines)
{
    egress_update(h->e);
    assert_string_equal(strbuf_cstr(&h->lines), lines);
    strbuf_reset(&h->lines);
}

#define DENY(cidr) "{\"type\":\"Deny\",\"to\":{\"cidrSelector\":\"" cidr "\"}}"
#define ALLOW(cidr) "{\"type\":\"Allow\",\"to\":{\"cidrSelector\":\"" cidr "\"}}"
#define ALLOW_NAME(name) "{\"type\":\"Allow\",\"to\":{\"dnsName\":\"" name "\"}}"

static void one_policy_applies_to_its_project(void **state)
{
    struct heard *h = *state;
    project(h, "red", 42);
    project(h, "blue", 43);
    policy(h, "red", "p", ALLOW("192.0.2.0/24") "," DENY("0.0.0.0/0"));
    expect(h, "set 42: deny 0.0.0.0/0 allow 192.0.2.0/24\n");
    policy(h, "red", "p", ALLOW("192.0.2.0/24") "," DENY("0.0.0.0/0"));
    expect(h, "");
    policy(h, "red", "p", NULL);
    expect(h, "set 42:\n");
}

/* A common mistake, which OpenShift corrects, too. */
static void a_host_part_of_zero_is_everything(void **state)
{
    struct heard *h = *state;
    project(h, "red", 42);
    policy(h, "red", "p", DENY("0.0.0.0/32"));
    expect(h, "set 42: deny 0.0.0.0/0\n");
}

static void several_policies_deny_everything(void **state)
{
    struct heard *h = *state;
    project(h, "red", 42);
    policy(h, "red", "p", ALLOW("192.0.2.0/24"));
    expect(h, "");
    policy(h, "red", "q", ALLOW("192.0.2.0/24"));
    expect(h, "red/p SeveralPolicies\nred/q SeveralPolicies\nset 42: deny 0.0.0.0/0\n");
    policy(h, "red", "q", NULL);
    expect(h, "red/p applied\nset 42:\n");
}

static void a_shared_network_is_denied_everything(void **state)
{
    struct heard *h = *state;
    project(h, "red", 42);
    project(h, "blue", 43);
    policy(h, "red", "p", DENY("192.0.2.0/24"));
    expect(h, "set 42: deny 192.0.2.0/24\n");
    project(h, "blue", 42);
    expect(h, "red/p SharedNetwork\nset 42: deny 0.0.0.0/0\n");
    project(h, "blue", 43);
    expect(h, "red/p applied\nset 42: deny 192.0.2.0/24\n");
}

static void a_global_project_has_no_firewall(void **state)
{
    struct heard *h = *state;
    project(h, "red", 0);
    policy(h, "red", "p", DENY("192.0.2.0/24"));
    expect(h, "red/p GlobalProject\n");
    project(h, "red", 42);
    expect(h, "red/p applied\nset 42: deny 192.0.2.0/24\n");
}

static void a_moved_project_has_its_firewall_before_it_leaves_the_old_vnid(void **state)
{
    struct heard *h = *state;
    project(h, "red", 42);
    policy(h, "red", "p", DENY("192.0.2.0/24"));
    expect(h, "set 42: deny 192.0.2.0/24\n");
    project(h, "red", 50);
    egress_prepare(h->e);
    assert_string_equal(strbuf_cstr(&h->lines), "set 50: deny 192.0.2.0/24\n");
    strbuf_reset(&h->lines);
    expect(h, "set 42:\n");
}

/* Pods without a VNID are nobody's. */
static void a_project_without_vnid_is_denied_everything(void **state)
{
    struct heard *h = *state;
    policy(h, "red", "p", DENY("192.0.2.0/24"));
    expect(h, "red/p NoNetNamespace\nset 1: deny 0.0.0.0/0\n");
    project(h, "red", 42);
    expect(h, "red/p applied\nset 42: deny 192.0.2.0/24\nset 1:\n");
    egress_set_project(h->e, "red", NULL);
    expect(h, "red/p NoNetNamespace\nset 1: deny 0.0.0.0/0\nset 42:\n");
}

static void what_cannot_be_read_denies_everything(void **state)
{
    static const char *const bad[] = {
        "{\"type\":\"Log\",\"to\":{\"cidrSelector\":\"192.0.2.0/24\"}}",
        "{\"type\":\"Deny\",\"to\":{}}",
        "{\"type\":\"Deny\"}",
        "{\"type\":\"Deny\",\"to\":{\"cidrSelector\":\"192.0.2.1/24\"}}",
        "{\"type\":\"Deny\",\"to\":{\"cidrSelector\":\"192.0.2.0/24\",\"dnsName\":\"a\"}}",
        "1",
    };
    struct heard *h = *state;
    project(h, "red", 42);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        policy(h, "red", "p", bad[i]);
        expect(h, "red/p InvalidPolicy\nset 42: deny 0.0.0.0/0\n");
        policy(h, "red", "p", ALLOW("192.0.2.0/24"));
        expect(h, "red/p applied\nset 42:\n");
    }
}

static void names_have_the_addresses_that_they_are_given(void **state)
{
    struct heard *h = *state;
    static const uint32_t ips[] = {0xc0000201, 0xc0000202};
    const struct firewall_rule *rules;
    project(h, "red", 42);
    policy(h, "red", "p", ALLOW_NAME("a.example") "," DENY("0.0.0.0/0"));
    expect(h, "want a.example\nset 42: deny 0.0.0.0/0\n");
    egress_set_name(h->e, "a.example", ips, 2);
    egress_set_name(h->e, "b.example", ips, 2);
    expect(h, "set 42: deny 0.0.0.0/0 allow 192.0.2.1/32 allow 192.0.2.2/32\n");
    /* The object is read again: the name keeps its addresses. */
    policy(h, "red", "p", ALLOW_NAME("a.example") "," DENY("0.0.0.0/0"));
    expect(h, "");
    assert_int_equal(egress_rules(h->e, 42, &rules), 2);
    assert_int_equal(firewall_find(rules, 2, ips[1]), 0);
    egress_set_name(h->e, "a.example", ips, 1);
    expect(h, "set 42: deny 0.0.0.0/0 allow 192.0.2.1/32\n");
    policy(h, "red", "p", NULL);
    expect(h, "forget a.example\nset 42:\n");
}

static void objects_that_are_gone_leave_nothing(void **state)
{
    struct heard *h = *state;
    struct egress_counts c;
    project(h, "red", 42);
    policy(h, "red", "p", DENY("192.0.2.0/24"));
    egress_update(h->e);
    policy(h, "red", "p", NULL);
    policy(h, "red", "p", NULL);
    policy(h, "green", "p", NULL);
    egress_set_project(h->e, "red", NULL);
    egress_set_project(h->e, "red", NULL);
    egress_update(h->e);
    egress_count(h->e, &c);
    assert_int_equal(c.policies + c.rules + c.names + c.unapplied, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_policy_applies_to_its_project),
        TEST(a_host_part_of_zero_is_everything),
        TEST(several_policies_deny_everything),
        TEST(a_shared_network_is_denied_everything),
        TEST(a_global_project_has_no_firewall),
        TEST(a_moved_project_has_its_firewall_before_it_leaves_the_old_vnid),
        TEST(a_project_without_vnid_is_denied_everything),
        TEST(what_cannot_be_read_denies_everything),
        TEST(names_have_the_addresses_that_they_are_given),
        TEST(objects_that_are_gone_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
