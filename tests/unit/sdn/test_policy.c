/* SPDX-License-Identifier: Apache-2.0 */
/* The policy compiler: how many flows, what a change touches, and what it tells.  What the flows mean is in
 * test_model_trace.c. */
#include "random_policies.h"

#include "base/mem.h"
#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
static const struct ip4_prefix local = {IP(10, 128, 0, 0), 23};

struct env {
    struct group_store groups;
    struct policy *p;
    size_t handed_out;
};

static void count_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    struct env *v = ctx;
    v->handed_out++;
    group_store_ops.set_group(&v->groups, cookie, flows);
}

static void env_begin(struct env *v)
{
    static const struct policy_ops ops = {.set_group = count_group};
    *v = (struct env){0};
    group_store_init(&v->groups);
    v->p = policy_new(local, &ops, v);
}

static void env_end(struct env *v)
{
    policy_free(v->p);
    assert_int_equal(group_store_count(&v->groups), 0);
    group_store_done(&v->groups);
}

static size_t flush(struct env *v)
{
    v->handed_out = 0;
    policy_flush(v->p);
    return v->handed_out;
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static void set_namespace(struct env *v, const char *name)
{
    CLEANUP(json_free) struct json *obj = parse("{\"metadata\":{\"labels\":{}}}");
    policy_set_namespace(v->p, name, obj);
}

static void set_pod(struct env *v, const char *ns, const char *name, const char *labels,
                    uint32_t ip, bool here)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"labels\":{%s}},\"spec\":{\"containers\":[{"
                  "\"ports\":[{\"name\":\"web\",\"containerPort\":8080}]}]},"
                  "\"status\":{\"podIP\":\"%s\"}}",
                  labels, IP4_TEXT(ip));
    CLEANUP(json_free) struct json *obj = parse(text);
    policy_set_pod(v->p, ns, name, obj);
    if (here) {
        policy_attach(v->p, ip, ns, name);
    }
}

static int set_policy(struct env *v, const char *name, const char *spec, struct err *e)
{
    CLEANUP_FREE char *text = xasprintf("{\"spec\":%s}", spec);
    CLEANUP(json_free) struct json *obj = parse(text);
    return policy_set_object(v->p, POLICY_NETWORK, "red", name, obj, e);
}

static void good_policy(struct env *v, const char *name, const char *spec)
{
    struct err e = {0};
    if (set_policy(v, name, spec, &e) < 0) {
        fail_msg("%s: %s", spec, e.text);
    }
}

#define FROM_B                                                                     \
    "{\"podSelector\":{\"matchLabels\":{\"app\":\"a\"}},\"ingress\":[{\"from\":[{" \
    "\"podSelector\":{\"matchLabels\":{\"app\":\"b\"}}}],\"ports\":[{\"port\":80}]}]}"

static void flows_are_the_sum_of_pods_not_their_product(void **state)
{
    struct env v;
    env_begin(&v);
    set_namespace(&v, "red");
    for (unsigned i = 0; i < 200; i++) {
        char name[16], labels[64];
        snprintf(name, sizeof name, "a%u", i);
        snprintf(labels, sizeof labels, "\"app\":\"a\",\"pod\":\"a%u\"", i);
        set_pod(&v, "red", name, labels, IP(10, 128, 0, 2) + i, true);
        snprintf(name, sizeof name, "b%u", i);
        snprintf(labels, sizeof labels, "\"app\":\"b\",\"pod\":\"b%u\"", i);
        set_pod(&v, "red", name, labels, IP(10, 128, 2, 2) + i, false);
    }
    good_policy(&v, "p", FROM_B);
    flush(&v);
    assert_true(group_store_count(&v.groups) <= 450);
    print_message("200 x 200 selected pods: %zu flows\n", group_store_count(&v.groups));
    env_end(&v);
}

static void a_change_touches_what_names_it(void **state)
{
    struct env v;
    env_begin(&v);
    set_namespace(&v, "red");
    for (unsigned i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%u", i);
        set_pod(&v, "red", name, "\"app\":\"b\"", IP(10, 128, 2, 2) + i, false);
    }
    set_pod(&v, "red", "a", "\"app\":\"a\"", IP(10, 128, 0, 2), true);
    good_policy(&v, "p", FROM_B);
    flush(&v);
    assert_int_equal(flush(&v), 0);
    /* One more peer, one less: its address. */
    set_pod(&v, "red", "new", "\"app\":\"b\"", IP(10, 128, 4, 2), false);
    assert_int_equal(flush(&v), 1);
    policy_delete_pod(v.p, "red", "new");
    assert_int_equal(flush(&v), 1);
    /* Nobody asks for that label. */
    set_pod(&v, "red", "b1", "\"app\":\"b\",\"x\":\"y\"", IP(10, 128, 2, 3), false);
    assert_int_equal(flush(&v), 0);
    /* The same selectors once more: the classes, the port, its rule; no address. */
    good_policy(&v, "q", FROM_B);
    assert_true(flush(&v) <= 4);
    /* One that selects nobody here costs nothing. */
    good_policy(&v, "r", "{\"podSelector\":{\"matchLabels\":{\"app\":\"c\"}},\"ingress\":[{}]}");
    assert_int_equal(flush(&v), 0);
    env_end(&v);
}

static void what_cannot_be_compiled_isolates_and_says_why(void **state)
{
    static const struct {
        const char *spec, *says;
    } bad[] = {
        {"7", "spec: is missing"},
        {"{\"podSelector\":{\"matchLabels\":{\"a\":1}}}", "podSelector: matchLabels[a]"},
        {"{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Is\"}]}}",
         "operator"},
        {"{\"policyTypes\":[\"Up\"]}", "policyTypes"},
        {"{\"ingress\":[{\"ports\":[{\"port\":0}]}]}", "ingress[0]: ports[0]: port"},
        {"{\"ingress\":[{\"ports\":[{\"port\":9,\"endPort\":8}]}]}", "endPort"},
        {"{\"ingress\":[{\"ports\":[{\"port\":\"too-long-to-be-a-name\"}]}]}", "port"},
        {"{\"ingress\":[{\"ports\":[{\"protocol\":\"ICMP\"}]}]}", "protocol"},
        {"{\"ingress\":[{\"from\":[{}]}]}", "from[0]: names no peer"},
        {"{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0\"}}]}]}", "ipBlock: cidr"},
        {"{\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"10.0.0.0/8\",\"except\":[3]}}]}]}",
         "except[0]"},
        {"{\"ingress\":{}}", "ingress: is not a list"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct env v;
        struct err e = {0};
        struct policy_stats s;
        env_begin(&v);
        set_namespace(&v, "red");
        set_pod(&v, "red", "a", "\"app\":\"a\"", IP(10, 128, 0, 2), true);
        assert_int_equal(set_policy(&v, "p", bad[i].spec, &e), -EINVAL);
        if (!strstr(e.text, bad[i].says)) {
            fail_msg("%s: \"%s\"", bad[i].spec, e.text);
        }
        flush(&v);
        policy_get_stats(v.p, &s);
        assert_int_equal(s.broken, 1);
        /* The pod has a class, and the class is isolated. */
        bool selected = !strstr(bad[i].spec, "\"Is\"") && !strstr(bad[i].spec, "\"a\":1");
        assert_true(group_store_count(&v.groups) >= 2 || !selected);
        good_policy(&v, "p", "{\"podSelector\":{},\"ingress\":[{}]}");
        flush(&v);
        policy_get_stats(v.p, &s);
        assert_int_equal(s.broken, 0);
        env_end(&v);
    }
}

static void expect_description(const struct env *v, uint64_t cookie, const char *want)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(policy_describe(v->p, cookie, &b), want != NULL);
    if (want && !strstr(strbuf_cstr(&b), want)) {
        fail_msg("\"%s\", not \"%s\"", strbuf_cstr(&b), want);
    }
}

static void every_flow_has_a_name(void **state)
{
    struct env v;
    unsigned kinds[16] = {0};
    env_begin(&v);
    set_namespace(&v, "red");
    set_pod(&v, "red", "a", "\"app\":\"a\"", IP(10, 128, 0, 2), true);
    set_pod(&v, "red", "b", "\"app\":\"b\"", IP(10, 128, 2, 2), false);
    good_policy(&v, "p",
                "{\"podSelector\":{\"matchLabels\":{\"app\":\"a\"}},\"ingress\":[{\"from\":[{"
                "\"podSelector\":{\"matchLabels\":{\"app\":\"b\"}}},{\"ipBlock\":{\"cidr\":"
                "\"192.0.2.0/24\"}}],\"ports\":[{\"port\":80}]}]}");
    flush(&v);
    struct of_flow_list l = {0};
    group_store_flows(&v.groups, &l);
    for (size_t i = 0; i < l.n; i++) {
        static const char *const says[] = {
            [PIPELINE_POLICY_ADDRESS] = "pod red/",
            [PIPELINE_POLICY_CLASS] = "NetworkPolicy red/p",
            [PIPELINE_POLICY_RULE] = "NetworkPolicy red/p, ingress rule 1",
            [PIPELINE_POLICY_PORT] = "a port in NetworkPolicy red/p",
            [PIPELINE_POLICY_BLOCK] = "an address block in NetworkPolicy red/p",
        };
        unsigned kind = (unsigned) (l.flows[i]->cookie >> 48);
        assert_true(kind < ARRAY_SIZE(says) && says[kind]);
        expect_description(&v, l.flows[i]->cookie, says[kind]);
        kinds[kind]++;
    }
    for (unsigned k = PIPELINE_POLICY_ADDRESS; k <= PIPELINE_POLICY_BLOCK; k++) {
        assert_true(kinds[k] > 0);
    }
    of_flow_list_done(&l);
    expect_description(&v, PIPELINE_BASE_COOKIE, NULL);
    expect_description(&v, pipeline_cookie(PIPELINE_POLICY_RULE, 1), NULL);
    env_end(&v);
}

static void a_pod_is_known_with_its_namespace(void **state)
{
    struct env v;
    struct err e = {0};
    env_begin(&v);
    assert_int_equal(policy_knows_pod(v.p, "red", "a", &e), -ENOENT);
    assert_non_null(strstr(e.text, "Namespace red"));
    set_namespace(&v, "red");
    assert_int_equal(policy_knows_pod(v.p, "red", "a", &e), -ENOENT);
    assert_non_null(strstr(e.text, "Pod red/a"));
    /* Attached before it is known: cut off both ways. */
    policy_attach(v.p, IP(10, 128, 0, 2), "red", "a");
    flush(&v);
    assert_int_equal(group_store_count(&v.groups), 2);
    set_pod(&v, "red", "a", "", IP(10, 128, 0, 2), false);
    assert_int_equal(policy_knows_pod(v.p, "red", "a", &e), 0);
    flush(&v);
    assert_int_equal(group_store_count(&v.groups), 0);
    /* Deleted while attached: it stays as it was. */
    policy_delete_pod(v.p, "red", "a");
    assert_int_equal(policy_knows_pod(v.p, "red", "a", &e), -ENOENT);
    flush(&v);
    assert_int_equal(group_store_count(&v.groups), 0);
    env_end(&v);
}

/* ---- ranges ---- */

struct blocks {
    char text[512];
    size_t n;
};

static void add_block(void *ctx, uint32_t value, unsigned len)
{
    struct blocks *b = ctx;
    size_t at = strlen(b->text);
    snprintf(b->text + at, sizeof b->text - at, "%x/%u ", value, len);
    b->n++;
}

static void ranges_become_the_fewest_blocks(void **state)
{
    static const struct {
        uint32_t first, last;
        unsigned bits;
        const char *want;
    } cases[] = {
        {1024, 65535, 16, "400/6 800/5 1000/4 2000/3 4000/2 8000/1 "},
        {6000, 6100, 16, "1770/12 1780/10 17c0/12 17d0/14 17d4/16 "},
        {0, 1023, 16, "0/6 "},
        {0, 65535, 16, "0/0 "},
        {80, 80, 16, "50/16 "},
        {0, UINT32_MAX, 32, "0/0 "},
        {UINT32_MAX, UINT32_MAX, 32, "ffffffff/32 "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct blocks b = {0};
        range_to_blocks(cases[i].first, cases[i].last, cases[i].bits, add_block, &b);
        assert_string_equal(b.text, cases[i].want);
    }
}

static void excepts_are_taken_out_of_blocks(void **state)
{
    static const struct {
        const char *block;
        size_t n;
    } cases[] = {
        {"{\"cidr\":\"192.168.1.0/24\",\"except\":[\"192.168.1.1/32\"]}", 8},
        {"{\"cidr\":\"10.0.0.0/8\",\"except\":[\"10.0.1.0/24\"]}", 16},
        {"{\"cidr\":\"10.1.2.3/8\"}", 1},
        {"{\"cidr\":\"10.0.0.0/8\",\"except\":[\"10.0.0.0/9\",\"10.128.0.0/9\"]}", 0},
        {"{\"cidr\":\"2001:db8::/32\"}", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{\"spec\":{\"podSelector\":{},\"ingress\":[{\"from\":[{\"ipBlock\":%s}]}]}}",
                      cases[i].block);
        CLEANUP(json_free) struct json *obj = parse(text);
        struct label_pool pool;
        struct policy_spec s;
        struct err e = {0};
        label_pool_init(&pool);
        assert_int_equal(policy_spec_parse(&pool, POLICY_NETWORK, "red", obj, &s, &e), 0);
        assert_int_equal(s.rules[POLICY_INGRESS][0].n_blocks, cases[i].n);
        assert_false(s.rules[POLICY_INGRESS][0].any_peer);
        policy_spec_done(&pool, &s);
        label_pool_done(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flows_are_the_sum_of_pods_not_their_product),
        cmocka_unit_test(a_change_touches_what_names_it),
        cmocka_unit_test(what_cannot_be_compiled_isolates_and_says_why),
        cmocka_unit_test(every_flow_has_a_name),
        cmocka_unit_test(a_pod_is_known_with_its_namespace),
        cmocka_unit_test(ranges_become_the_fewest_blocks),
        cmocka_unit_test(excepts_are_taken_out_of_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
