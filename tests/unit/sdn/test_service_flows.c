/* SPDX-License-Identifier: Apache-2.0 */
/* The flows of services as values.  What they do to packets is compared with the model in test_model_trace.c. */
#include "base/mem.h"
#include "sdn/service_flows.h"
#include "sdn/service_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_GROUPS 64

/* ---- what was handed out ---- */

struct log {
    uint64_t cookies[MAX_GROUPS];
    size_t flows[MAX_GROUPS];
    size_t n;
};

static void set_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    struct log *l = ctx;
    assert_true(l->n < MAX_GROUPS);
    l->cookies[l->n] = cookie;
    l->flows[l->n++] = flows->n;
}

/* Flows of the group as it was handed out last; -1: it was not. */
static int size_of(const struct log *l, uint64_t cookie)
{
    int found = -1;
    for (size_t i = 0; i < l->n; i++) {
        found = l->cookies[i] == cookie ? (int) l->flows[i] : found;
    }
    return found;
}

static const struct service_flows_ops ops = {.set_group = set_group};

static const struct sdn_network network = {
    .plugin = SDN_MULTITENANT,
    .cluster = {{0x0a800000, 14}},
    .n_cluster = 1,
    .service = {0xac1e0000, 16},
    .local = {0x0a800000, 23},
    .host_ip = 0xc0a86401,
    .vxlan_port = SDN_VXLAN_PORT,
    .mtu = 1450,
};

/* ---- services ---- */

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    CLEANUP_FREE char *json = xstrdup(text);
    for (char *p = json; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(json, strlen(json), &v, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return v;
}

/* Port 80 of TCP and 53 of UDP, both 30080 on nodes; 'endpoints': last bytes of addresses 10.128.0.0/24. */
static struct sdn_service *service(const char *name, const char *more, const uint8_t *endpoints)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct sdn_service *s = NULL;
    struct sdn_slice *slice = NULL;
    struct err e = {0};
    strbuf_addf(&text,
                "{'metadata':{'namespace':'red','name':'%s'},'spec':{'type':'NodePort','clusterIP':"
                "'172.30.0.%u',%s"
                "'ports':[{'name':'t','port':80,'nodePort':30080},"
                "{'name':'u','protocol':'UDP','port':53,'nodePort':30080}]}}",
                name, (unsigned) name[0], more);
    CLEANUP(json_free) struct json *obj = parse(strbuf_cstr(&text));
    assert_int_equal(sdn_service_parse(obj, &s, &e), 0);
    strbuf_reset(&text);
    strbuf_adds(&text, "{'addressType':'IPv4','metadata':{},'ports':[{'name':'t','port':8080},"
                       "{'name':'u','protocol':'UDP','port':8053}],'endpoints':[");
    for (size_t i = 0; endpoints[i]; i++) {
        strbuf_addf(&text, "%s{'addresses':['10.128.0.%u']}", i ? "," : "", endpoints[i]);
    }
    strbuf_adds(&text, "]}");
    CLEANUP(json_free) struct json *list = parse(strbuf_cstr(&text));
    assert_int_equal(sdn_slice_parse(list, &slice, &e), 0);
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}
#define ENDPOINTS(...) ((const uint8_t[]){__VA_ARGS__, 0})
#define NONE ((const uint8_t[]){0})

/* ---- spreading ---- */

/* Sizes of what each endpoint gets of all values, which must be all: 'by_address' those of address bits. */
static void count_shares(const struct of_flow_list *l, bool by_address, uint32_t n, double *shares)
{
    double sum = 0;
    memset(shares, 0, n * sizeof *shares);
    for (size_t i = 0; i < l->n; i++) {
        const struct of_flow *f = l->flows[i];
        CLEANUP_STRBUF struct strbuf match = STRBUF_INIT, actions = STRBUF_INIT;
        unsigned endpoint, value, mask = 0;
        if ((f->priority == 110) != by_address) {
            continue;
        }
        of_flow_match_text(f, &match);
        of_flow_actions_text(f, &actions);
        assert_int_equal(sscanf(strbuf_cstr(&actions), "set:reg13=%x", &endpoint), 1);
        assert_true(endpoint < n);
        if (by_address) {
            unsigned a, b, c, d, p, q, r, s;
            const char *at = strstr(strbuf_cstr(&match), "ip_src=");
            assert_int_equal(
                sscanf(at, "ip_src=%u.%u.%u.%u/%u.%u.%u.%u", &a, &b, &c, &d, &p, &q, &r, &s), 8);
            mask = r << 8 | s;
        } else {
            const char *at = strstr(strbuf_cstr(&match), "tcp_src=");
            assert_int_equal(sscanf(at, "tcp_src=%u/%u", &value, &mask), 2);
            assert_int_equal(mask & 1, 0); /* Linux connects from even ports. */
        }
        double share = 1.0 / (1u << __builtin_popcount(mask));
        shares[endpoint] += share;
        sum += share;
        for (size_t k = 0; k < i; k++) {
            assert_false(of_flow_same_key(f, l->flows[k]));
        }
    }
    assert_true(sum > 0.999999 && sum < 1.000001);
}

static void connections_are_spread_evenly_over_any_number(void **state)
{
    static const uint32_t numbers[] = {2, 3, 4, 5, 7, 8, 16, 17, 31, 100, 257, 1000};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint32_t n = numbers[i];
        struct of_flow_list l = {0};
        CLEANUP_FREE double *shares = xcalloc(n, sizeof *shares);
        pipeline_service_spread(SDN_TCP, n, &l);
        count_shares(&l, false, n, shares);
        for (uint32_t k = 0; k < n; k++) {
            assert_true(shares[k] * n > 0.86 && shares[k] * n < 1.14);
        }
        count_shares(&l, true, n, shares);
        for (uint32_t k = 0; k < n; k++) {
            assert_true(shares[k] > 0);
        }
        /* Once for all services with so many, and no product of anything. */
        assert_true(l.n <= 10 * n);
        of_flow_list_done(&l);
    }
}

/* ---- groups ---- */

static void shared_groups_live_as_long_as_one_needs_them(void **state)
{
    struct log l = {0};
    struct service_flows *f = service_flows_new("node1", &ops, &l);
    CLEANUP(sdn_service_free)
    struct sdn_service *a =
        service("a", "'externalIPs':['192.0.2.1','10.128.0.7'],", ENDPOINTS(2, 3));
    CLEANUP(sdn_service_free)
    struct sdn_service *b = service("b", "'externalIPs':['192.0.2.1'],", ENDPOINTS(3));
    uint64_t address = pipeline_service_address_cookie(0xc0000201);
    uint64_t both = pipeline_service_endpoint_cookie(0x0a800003, 8080);
    uint64_t own = pipeline_service_endpoint_cookie(0x0a800002, 8053);
    uint64_t two = pipeline_service_spread_cookie(SDN_UDP, 2);
    service_flows_set_network(f, &network);
    service_flows_set(f, a, NULL);
    service_flows_set(f, b, NULL);
    service_flows_flush(f);
    assert_int_equal(size_of(&l, address), 1);
    assert_int_equal(size_of(&l, both), 1);
    assert_int_equal(size_of(&l, own), 1);
    assert_true(size_of(&l, two) > 0);
    /* Its address must not take a pod's. */
    assert_int_equal(size_of(&l, pipeline_service_address_cookie(0x0a800007)), -1);
    struct service_flows_stats stats;
    service_flows_get_stats(f, &stats);
    assert_int_equal(stats.services, 2);
    assert_int_equal(stats.endpoints, 4);

    l.n = 0;
    service_flows_set(f, a, NULL); /* Nothing new: its own group again, and no other. */
    service_flows_flush(f);
    assert_int_equal(l.n, 1);
    l.n = 0;
    service_flows_delete(f, "red", "a");
    service_flows_flush(f);
    assert_int_equal(size_of(&l, pipeline_service_cookie("red", "a")), 0);
    assert_int_equal(size_of(&l, address), -1);
    assert_int_equal(size_of(&l, both), -1);
    assert_int_equal(size_of(&l, own), 0);
    assert_int_equal(size_of(&l, two), 0);
    service_flows_delete(f, "red", "b");
    service_flows_delete(f, "red", "b");
    service_flows_flush(f);
    assert_int_equal(size_of(&l, address), 0);
    assert_int_equal(size_of(&l, both), 0);
    /* Answers of connections that go on find their way for a while; nothing else of a service stays. */
    assert_true(pipeline_linger_s(both) > 0);
    assert_int_equal(pipeline_linger_s(address) + pipeline_linger_s(two), 0);
    service_flows_free(f);
}

static void a_service_without_clusterip_has_no_flows(void **state)
{
    struct log l = {0};
    struct service_flows *f = service_flows_new("node1", &ops, &l);
    CLEANUP(sdn_service_free) struct sdn_service *a = service("a", "", ENDPOINTS(2));
    service_flows_set_network(f, &network);
    service_flows_set(f, a, NULL);
    a->cluster_ip = 0;
    a->headless = true;
    service_flows_set(f, a, NULL);
    service_flows_flush(f);
    assert_int_equal(size_of(&l, pipeline_service_cookie("red", "a")), 0);
    service_flows_free(f);
}

static void the_size_of_a_service_is_the_sum_of_its_parts(void **state)
{
    CLEANUP(sdn_service_free) struct sdn_service *plain = service("a", "", ENDPOINTS(2, 3, 4));
    CLEANUP(sdn_service_free)
    struct sdn_service *sticky = service(
        "b", "'sessionAffinity':'ClientIP','externalIPs':['192.0.2.1'],", ENDPOINTS(2, 3, 4));
    CLEANUP(sdn_service_free)
    struct sdn_service *local =
        service("c", "'internalTrafficPolicy':'Local',", ENDPOINTS(2, 3, 4));
    const struct {
        const struct sdn_service *service;
        size_t flows;
    } cases[] = {
        {plain, 2 * (1 + 2 + 3)},          /* clusterIP, node port, endpoints. */
        {sticky, 2 * (1 + 2 + 2 + 2 * 3)}, /* ... and an address; each endpoint twice. */
        {local, 2 * (1 + 2 + 3)},          /* None here for the clusterIP, all for the node port. */
    };
    struct sdn_vnids v = {.id = 42}, moving = {.id = 42, .moving = true, .also = 43};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct of_flow_list l = {0};
        pipeline_service(&network, cases[i].service, &v, "node1", &l);
        assert_int_equal(l.n, cases[i].flows);
        for (size_t k = 0; k < l.n; k++) {
            assert_int_equal(pipeline_group(l.flows[k]->cookie),
                             pipeline_service_cookie("red", cases[i].service->name));
        }
        of_flow_list_done(&l);
    }
    struct of_flow_list l = {0};
    pipeline_service(&network, plain, &moving, "node1", &l);
    assert_int_equal(l.n, 2 * (1 + 2 + 3) + 1);
    of_flow_list_done(&l);
}

static void endpoints_that_would_forge_are_not_used(void **state)
{
    struct sdn_endpoint pod = {.ip = 0x0a800002}, loopback = {.ip = 0x7f000001},
                        group = {.ip = 0xe0000001};
    assert_true(pipeline_may_serve(&network, SDN_UDP, &(struct sdn_backend){&pod, 53}));
    assert_true(pipeline_may_serve(&network, SDN_TCP, &(struct sdn_backend){&pod, SDN_VXLAN_PORT}));
    assert_false(
        pipeline_may_serve(&network, SDN_UDP, &(struct sdn_backend){&pod, SDN_VXLAN_PORT}));
    assert_false(pipeline_may_serve(&network, SDN_TCP, &(struct sdn_backend){&loopback, 80}));
    assert_false(pipeline_may_serve(&network, SDN_TCP, &(struct sdn_backend){&group, 80}));
    assert_true(pipeline_is_external(&network, 0xc0000201));
    assert_false(pipeline_is_external(&network, 0x0a83ffff)); /* Of pods. */
    assert_false(pipeline_is_external(&network, 0xac1e0001)); /* Of services. */
    assert_false(pipeline_is_external(&network, SDN_ITSELF_IP));
    assert_false(pipeline_is_external(&network, 0xffffffff));
}

static void groups_are_named(void **state)
{
    struct log l = {0};
    struct service_flows *f = service_flows_new("node1", &ops, &l);
    CLEANUP(sdn_service_free) struct sdn_service *a = service("a", "", ENDPOINTS(2));
    service_flows_set_network(f, &network);
    service_flows_set(f, a, NULL);
    const struct {
        uint64_t cookie;
        const char *name;
    } cases[] = {
        {pipeline_service_cookie("red", "a"), "service red/a"},
        {pipeline_service_endpoint_cookie(0x0a800002, 8080),
         "endpoint 10.128.0.2:8080 of services"},
        {pipeline_service_address_cookie(0xc0000201), "address 192.0.2.1 of services"},
        {pipeline_service_spread_cookie(SDN_TCP, 3), "services with 3 endpoints"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        assert_true(service_flows_describe(f, cases[i].cookie, &out));
        assert_string_equal(strbuf_cstr(&out), cases[i].name);
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_false(service_flows_describe(f, pipeline_service_cookie("red", "b"), &out));
    assert_false(service_flows_describe(f, PIPELINE_BASE_COOKIE, &out));
    service_flows_free(f);
}

/* ---- idle ---- */

static void an_idle_service_waits_for_pods_wherever_they_are(void **state)
{
    static const char idle[] = "'sessionAffinity':'None',";
    CLEANUP(sdn_service_free) struct sdn_service *s = service("a", idle, NONE);
    CLEANUP(sdn_service_free) struct sdn_service *has = service("b", idle, ENDPOINTS(2));
    assert_false(sdn_service_waits(s, &s->ports[0]));
    s->idle = has->idle = true;
    assert_true(sdn_service_waits(s, &s->ports[0]) && sdn_service_waits(s, &s->ports[1]));
    /* None of this node is no reason to wait. */
    has->internal_local = true;
    assert_false(sdn_service_waits(has, &has->ports[0]));
}

static void the_target_of_a_frame_is_read(void **state)
{
    CLEANUP(sdn_service_free) struct sdn_service *s = service("a", "", NONE);
    uint8_t f[14 + 24 + 8] = {[12] = 8, [14] = 0x46, [14 + 9] = SDN_UDP, [14 + 16] = 172, 30,
                              0,        97};
    struct service_target t;
    f[14 + 24 + 3] = 53;
    assert_int_equal(service_target_parse(f, sizeof f, &t), 0);
    assert_int_equal(t.dst, 0xac1e0061);
    assert_ptr_equal(service_target_port(s, &t), &s->ports[1]);
    t.port = 30080; /* Of nodes, not of the clusterIP. */
    assert_null(service_target_port(s, &t));
    t.dst = 0xc0a86401;
    assert_ptr_equal(service_target_port(s, &t), &s->ports[1]);
    t.proto = SDN_TCP;
    assert_ptr_equal(service_target_port(s, &t), &s->ports[0]);
    assert_int_equal(service_target_parse(f, 14 + 24 + 3, &t), -EINVAL);
    f[14 + 7] = 1; /* Not its beginning. */
    assert_int_equal(service_target_parse(f, sizeof f, &t), -EINVAL);
}

static void the_checksum_of_a_frame_is_made(void **state)
{
    (void) state;
    /* 10.128.0.2 port 4660 to 172.30.0.97 port 53, "abc": by RFC 768, by hand. */
    uint8_t f[14 + 20 + 8 + 3 + 5] = {[12] = 8,
                                      [14] = 0x45,
                                      [17] = 31,
                                      [14 + 9] = SDN_UDP,
                                      [14 + 12] = 10,
                                      128,
                                      0,
                                      2,
                                      172,
                                      30,
                                      0,
                                      97,
                                      0x12,
                                      0x34,
                                      0,
                                      53};
    const size_t l4 = 34;
    f[l4 + 5] = 11;
    memcpy(f + l4 + 8, "abc", 3);
    memset(f + l4 + 11, 0xff, 5); /* Padding of the frame. */
    service_frame_sum(f, sizeof f);
    assert_true(f[l4 + 6] == 0 && f[l4 + 7] == 0); /* It has none. */
    f[l4 + 7] = 1;
    service_frame_sum(f, sizeof f);
    uint32_t sum = 0x0a80 + 2 + 0xac1e + 0x61 + 17 + 11 + 0x1234 + 53 + 11 + 0x6162 + 0x6300;
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    assert_int_equal(f[l4 + 6] << 8 | f[l4 + 7], sum);
    /* What is cut short, and what is one of several parts, stays as it is. */
    f[l4 + 6] = 9;
    service_frame_sum(f, l4 + 10);
    assert_int_equal(f[l4 + 6], 9);
    f[14 + 6] = 0x20;
    service_frame_sum(f, sizeof f);
    assert_int_equal(f[l4 + 6], 9);
}

/* ---- what ends ---- */

static void write_ended(void *ctx, const struct of_connection *c)
{
    struct strbuf *out = ctx;
    assert_int_equal(c->proto, SDN_UDP);
    strbuf_addf(out, "%s:%u", c->dst ? IP4_TEXT(c->dst) : "*", c->dst_port);
    if (c->reply_src) {
        strbuf_addf(out, ">%s:%u", IP4_TEXT(c->reply_src), c->reply_src_port);
    }
    strbuf_addc(out, ' ');
}

static void expect_ended(const struct sdn_service *old, const struct sdn_service *now,
                         const char *want)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    service_flows_ended(old, now, write_ended, &out);
    assert_string_equal(strbuf_cstr(&out), want);
}

static void only_udp_of_what_went_ends(void **state)
{
    CLEANUP(sdn_service_free) struct sdn_service *two = service("a", "", ENDPOINTS(2, 3));
    CLEANUP(sdn_service_free) struct sdn_service *one = service("a", "", ENDPOINTS(3));
    CLEANUP(sdn_service_free) struct sdn_service *none = service("a", "", NONE);
    CLEANUP(sdn_service_free)
    struct sdn_service *address = service("a", "'externalIPs':['192.0.2.1'],", ENDPOINTS(3));
    expect_ended(NULL, one, "");
    expect_ended(one, two, "");
    expect_ended(none, one, "");
    expect_ended(none, NULL, "");
    expect_ended(two, one, "172.30.0.97:53>10.128.0.2:8053 *:30080>10.128.0.2:8053 ");
    expect_ended(one, none, "172.30.0.97:53>10.128.0.3:8053 *:30080>10.128.0.3:8053 ");
    expect_ended(one, NULL, "172.30.0.97:53 *:30080 ");
    expect_ended(address, one, "192.0.2.1:53 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_spread_evenly_over_any_number),
        cmocka_unit_test(shared_groups_live_as_long_as_one_needs_them),
        cmocka_unit_test(a_service_without_clusterip_has_no_flows),
        cmocka_unit_test(the_size_of_a_service_is_the_sum_of_its_parts),
        cmocka_unit_test(endpoints_that_would_forge_are_not_used),
        cmocka_unit_test(groups_are_named),
        cmocka_unit_test(an_idle_service_waits_for_pods_wherever_they_are),
        cmocka_unit_test(the_target_of_a_frame_is_read),
        cmocka_unit_test(the_checksum_of_a_frame_is_made),
        cmocka_unit_test(only_udp_of_what_went_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
