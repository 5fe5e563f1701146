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
    static const struct policy_flow_ops ops = {.set_group = count_group};
    *v = (struct env){0};
    group_store_init(&v->groups);
    v->p = policy_new_anywhere(local, &ops, v);
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
    policy_compile(v->p);
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

/* The original multiplied: from a thousand flows it warned, from ten thousand it ignored the policy. */
static void two_hundred_rules_for_two_hundred_pods_are_added_not_multiplied(void **state)
{
    struct env v;
    struct policy_stats s;
    env_begin(&v);
    set_namespace(&v, "red");
    for (unsigned i = 0; i < 200; i++) {
        char name[16], labels[32];
        snprintf(name, sizeof name, "p%u", i);
        snprintf(labels, sizeof labels, "\"pod\":\"p%u\"", i);
        set_pod(&v, "red", name, labels, IP(10, 128, 0, 2) + i, true);
    }
    CLEANUP_STRBUF struct strbuf spec = STRBUF_INIT;
    strbuf_adds(&spec, "{\"podSelector\":{},\"ingress\":[");
    for (unsigned i = 0; i < 200; i++) {
        strbuf_addf(&spec,
                    "%s{\"from\":[{\"podSelector\":{\"matchLabels\":{\"pod\":\"p%u\"}}}],"
                    "\"ports\":[{\"port\":%u}]}",
                    i ? "," : "", i, 1000 + i);
    }
    strbuf_adds(&spec, "]}");
    good_policy(&v, "p", strbuf_cstr(&spec));
    flush(&v);
    size_t n = group_store_count(&v.groups);
    print_message("200 rules for 200 selected pods: %zu flows\n", n);
    /* Two for each pod (whom it is selected by, which peer it is), three for each rule, one class of all. */
    assert_in_range(n, 200, 2 * 200 + 3 * 200 + 2);
    policy_get_stats(v.p, &s);
    assert_int_equal(s.broken, 0);
    /* It shrinks, and so do they. */
    good_policy(&v, "p", "{\"podSelector\":{},\"ingress\":[]}");
    flush(&v);
    assert_true(group_store_count(&v.groups) <= 201);
    env_end(&v);
}

static void tell_two_names_of_one_port(struct env *v, bool first)
{
    static const char *const pods[] = {"web", "alt"};
    set_namespace(v, "red");
    good_policy(v, "p",
                "{\"podSelector\":{},\"ingress\":[{\"ports\":[{\"port\":\"web\"},{\"port\":\"alt\"}"
                "]}]}");
    for (unsigned i = 0; i < 2; i++) {
        const char *name = pods[i ^ first];
        CLEANUP_FREE char *text =
            xasprintf("{\"metadata\":{},\"spec\":{\"containers\":[{\"ports\":[{\"name\":\"%s\","
                      "\"containerPort\":80}]}]},\"status\":{\"podIP\":\"%s\"}}",
                      name, IP4_TEXT(IP(10, 128, 0, 2) + (i ^ first)));
        CLEANUP(json_free) struct json *obj = parse(text);
        policy_set_pod(v->p, "red", name, obj);
        policy_attach(v->p, IP(10, 128, 0, 2) + (i ^ first), "red", name);
        flush(v);
    }
}

/* ---- addresses that count ---- */

static struct json *pod_at(const char *node, const char *more, const char *ip)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"labels\":{\"app\":\"good\"}},\"spec\":{\"nodeName\":\"%s\"%s},"
                  "\"status\":{\"podIP\":\"%s\",\"podIPs\":[{\"ip\":\"%s\"}]}}",
                  node, more, ip, ip);
    return parse(text);
}

static void tell_pod_at(struct env *v, const char *name, const char *node, const char *more,
                        const char *ip)
{
    CLEANUP(json_free) struct json *obj = pod_at(node, more, ip);
    policy_set_pod(v->p, "red", name, obj);
    flush(v);
}

static void tell_subnet(struct env *v, const char *node, const char *subnet)
{
    CLEANUP_FREE char *text = xasprintf("{\"hostIP\":\"192.0.2.7\",\"subnet\":\"%s\"}", subnet);
    CLEANUP(json_free) struct json *obj = parse(text);
    policy_set_host_subnet(v->p, node, obj);
    flush(v);
}

/* Whether the pod here lets the address in, which its policy does for pods "good" alone. */
static bool lets_in(struct env *v, uint32_t ip)
{
    return policy_decide(v->p, POLICY_INGRESS, ip, IP(10, 128, 0, 2), 6, 80).allowed;
}

static void begin_with_a_guarded_pod(struct env *v)
{
    env_begin(v);
    set_namespace(v, "red");
    good_policy(v, "p",
                "{\"podSelector\":{\"matchLabels\":{\"app\":\"web\"}},\"ingress\":[{\"from\":[{"
                "\"podSelector\":{\"matchLabels\":{\"app\":\"good\"}}}]}]}");
    set_pod(v, "red", "web", "\"app\":\"web\"", IP(10, 128, 0, 2), true);
    flush(v);
}

static unsigned n_ignored;
static char last_ignored[256];
static void note_ignored(void *ctx, const char *ns, const char *name, const char *why)
{
    n_ignored++;
    snprintf(last_ignored, sizeof last_ignored, "%s/%s: %s", ns ? ns : "", name, why);
}

static void a_pod_elsewhere_has_only_addresses_of_its_nodes_subnet(void **state)
{
    static const struct {
        const char *node, *more, *ip;
        uint32_t address;
        bool counts;
    } cases[] = {
        {"n2", "", "10.128.2.5", IP(10, 128, 2, 5), true},
        {"n2", "", "10.128.4.5", IP(10, 128, 4, 5), false},
        {"n2", "", "10.128.2.1", IP(10, 128, 2, 1), false},
        {"n2", "", "192.0.2.7", IP(192, 0, 2, 7), false},
        {"n2", "", "203.0.113.5", IP(203, 0, 113, 5), false},
        {"n9", "", "10.128.2.5", IP(10, 128, 2, 5), false},
        {"n2", ",\"hostNetwork\":true", "192.0.2.7", IP(192, 0, 2, 7), false},
        /* Of this node's subnet only those attached here have addresses, whatever is said. */
        {"n1", "", "10.128.0.9", IP(10, 128, 0, 9), false},
        {"n2", "", "10.128.0.9", IP(10, 128, 0, 9), false},
    };
    struct env v;
    begin_with_a_guarded_pod(&v);
    tell_subnet(&v, "n1", "10.128.0.0/23");
    tell_subnet(&v, "n2", "10.128.2.0/23");
    tell_subnet(&v, "n3", "10.128.4.0/23");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        tell_pod_at(&v, "client", cases[i].node, cases[i].more, cases[i].ip);
        assert_int_equal(lets_in(&v, cases[i].address), cases[i].counts);
    }
    env_end(&v);
}

static void addresses_count_as_soon_and_as_long_as_there_is_the_subnet(void **state)
{
    const uint32_t ip = IP(10, 128, 2, 5);
    struct env v;
    begin_with_a_guarded_pod(&v);
    tell_pod_at(&v, "client", "n2", "", "10.128.2.5");
    assert_false(lets_in(&v, ip));
    tell_subnet(&v, "n2", "10.128.2.0/23");
    assert_true(lets_in(&v, ip));
    tell_subnet(&v, "n2", "10.128.4.0/23");
    assert_false(lets_in(&v, ip));
    tell_subnet(&v, "n2", "10.128.2.0/23");
    assert_true(lets_in(&v, ip));
    policy_delete_host_subnet(v.p, "n2");
    policy_delete_host_subnet(v.p, "n2");
    flush(&v);
    assert_false(lets_in(&v, ip));
    /* It comes back after the pod has gone, and is another node's. */
    policy_delete_pod(v.p, "red", "client");
    tell_subnet(&v, "n2", "10.128.2.0/23");
    assert_false(lets_in(&v, ip));
    env_end(&v);
}

static void an_address_that_does_not_count_is_told(void **state)
{
    static const struct policy_ops ops = {.ignored = note_ignored};
    static const struct policy_flow_ops flows = {.set_group = count_group};
    struct env v = {0};
    group_store_init(&v.groups);
    v.p = policy_new(local, &ops, &v);
    policy_want_flows(v.p, &flows, &v);
    n_ignored = 0;
    tell_pod_at(&v, "a", "n2", "", "10.128.4.5");
    assert_int_equal(n_ignored, 0); /* The HostSubnet may be about to come. */
    tell_subnet(&v, "n2", "10.128.2.0/23");
    assert_int_equal(n_ignored, 1);
    assert_string_equal(last_ignored,
                        "red/a: 10.128.4.5 is not in 10.128.2.0/23, the subnet of the pod's node");
    tell_pod_at(&v, "a", "n2", "", "10.128.2.5");
    assert_int_equal(n_ignored, 1);
    env_end(&v);
}

static void foreign_ranges_count_on_every_node(void **state)
{
    const uint32_t ip = IP(10, 9, 0, 5);
    struct env v;
    begin_with_a_guarded_pod(&v);
    tell_subnet(&v, "n2", "10.128.2.0/23");
    tell_pod_at(&v, "client", "n2", "", "10.9.0.5");
    assert_false(lets_in(&v, ip));
    struct node_rules rules = {.foreign = {.list = {{IP(10, 9, 0, 0), 16}}, .n = 1}};
    policy_set_rules_of_addresses(v.p, &rules);
    flush(&v);
    assert_true(lets_in(&v, ip));
    policy_set_rules_of_addresses(v.p, &(struct node_rules){0});
    flush(&v);
    assert_false(lets_in(&v, ip));
    env_end(&v);
}

static void a_node_has_no_address_of_pods_or_services(void **state)
{
    static const char node[] =
        "{\"metadata\":{\"labels\":{\"good\":\"yes\"}},\"status\":{\"addresses\":["
        "{\"type\":\"InternalIP\",\"address\":\"192.0.2.7\"},"
        "{\"type\":\"InternalIP\",\"address\":\"10.128.2.5\"},"
        "{\"type\":\"ExternalIP\",\"address\":\"172.30.0.1\"}]}}";
    static const char admin[] =
        "{\"spec\":{\"priority\":1,\"subject\":{\"namespaces\":{}},\"egress\":[{\"action\":"
        "\"Allow\","
        "\"to\":[{\"nodes\":{\"matchLabels\":{\"good\":\"yes\"}}}]},{\"action\":\"Deny\",\"to\":[{"
        "\"networks\":[\"0.0.0.0/0\"]}]}]}}";
    static const struct {
        uint32_t ip;
        bool may;
    } cases[] = {{IP(192, 0, 2, 7), true},
                 {IP(10, 128, 2, 5), false},
                 {IP(172, 30, 0, 1), false},
                 {IP(192, 0, 2, 8), false}};
    struct env v;
    struct err e = {0};
    begin_with_a_guarded_pod(&v);
    CLEANUP(json_free) struct json *obj = parse(node);
    CLEANUP(json_free) struct json *policy = parse(admin);
    assert_int_equal(policy_set_object(v.p, POLICY_ADMIN, NULL, "a", policy, &e), 0);
    policy_set_node(v.p, "n2", obj);
    struct node_rules rules = {.service = {IP(172, 30, 0, 0), 16},
                               .cluster = {.list = {{IP(10, 128, 0, 0), 14}}, .n = 1}};
    policy_set_rules_of_addresses(v.p, &rules);
    flush(&v);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(
            policy_decide(v.p, POLICY_EGRESS, IP(10, 128, 0, 2), cases[i].ip, 6, 80).allowed,
            cases[i].may);
    }
    env_end(&v);
}

/* A restarted agent hears of things in another order, and must want the flows that are there. */
static void flows_do_not_depend_on_the_order_in_which_things_were_known(void **state)
{
    struct env a, b;
    env_begin(&a);
    env_begin(&b);
    tell_two_names_of_one_port(&a, false);
    tell_two_names_of_one_port(&b, true);
    assert_true(group_store_equal(&a.groups, &b.groups));
    assert_true(group_store_count(&a.groups) > 4);
    env_end(&a);
    env_end(&b);
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
        const char *want; /* NULL: that many. */
    } cases[] = {
        {"{\"cidr\":\"192.168.1.0/24\",\"except\":[\"192.168.1.1/32\"]}", 8,
         "192.168.1.0/32 192.168.1.2/31 192.168.1.4/30 192.168.1.8/29 192.168.1.16/28 "
         "192.168.1.32/27 192.168.1.64/26 192.168.1.128/25 "},
        {"{\"cidr\":\"10.0.0.0/8\",\"except\":[\"10.0.1.0/24\"]}", 16,
         "10.0.0.0/24 10.0.2.0/23 10.0.4.0/22 10.0.8.0/21 10.0.16.0/20 10.0.32.0/19 10.0.64.0/18 "
         "10.0.128.0/17 10.1.0.0/16 10.2.0.0/15 10.4.0.0/14 10.8.0.0/13 10.16.0.0/12 10.32.0.0/11 "
         "10.64.0.0/10 10.128.0.0/9 "},
        {"{\"cidr\":\"10.1.2.3/8\"}", 1, "10.0.0.0/8 "},
        {"{\"cidr\":\"10.0.0.0/8\",\"except\":[\"10.0.0.0/9\",\"10.128.0.0/9\"]}", 0, NULL},
        {"{\"cidr\":\"2001:db8::/32\"}", 0, NULL},
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
        CLEANUP_STRBUF struct strbuf got = STRBUF_INIT;
        for (size_t k = 0; k < s.rules[POLICY_INGRESS][0].n_blocks; k++) {
            strbuf_addf(&got, "%s ", PREFIX_TEXT(s.rules[POLICY_INGRESS][0].blocks[k]));
        }
        if (cases[i].want) {
            assert_string_equal(strbuf_cstr(&got), cases[i].want);
        }
        policy_spec_done(&pool, &s);
        label_pool_done(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_elsewhere_has_only_addresses_of_its_nodes_subnet),
        cmocka_unit_test(addresses_count_as_soon_and_as_long_as_there_is_the_subnet),
        cmocka_unit_test(an_address_that_does_not_count_is_told),
        cmocka_unit_test(foreign_ranges_count_on_every_node),
        cmocka_unit_test(a_node_has_no_address_of_pods_or_services),
        cmocka_unit_test(flows_are_the_sum_of_pods_not_their_product),
        cmocka_unit_test(a_change_touches_what_names_it),
        cmocka_unit_test(what_cannot_be_compiled_isolates_and_says_why),
        cmocka_unit_test(every_flow_has_a_name),
        cmocka_unit_test(a_pod_is_known_with_its_namespace),
        cmocka_unit_test(two_hundred_rules_for_two_hundred_pods_are_added_not_multiplied),
        cmocka_unit_test(flows_do_not_depend_on_the_order_in_which_things_were_known),
        cmocka_unit_test(ranges_become_the_fewest_blocks),
        cmocka_unit_test(excepts_are_taken_out_of_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
