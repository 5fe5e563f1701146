/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of the datapath hostgw, and its file for other programs. */
#include "base/mem.h"
#include "datapath/datapath.h"
#include "datapath/hostgw/routes.h"

#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ETH 2
#define BRIDGE 3

static struct ip4_prefix prefix(const char *text)
{
    struct ip4_prefix p;
    assert_int_equal(prefix_parse(text, &p, NULL), 0);
    return p;
}

static uint32_t ip(const char *text)
{
    uint32_t a;
    assert_int_equal(ip4_parse(text, &a), 0);
    return a;
}

static struct rtnl_route via(const char *dst, const char *gateway)
{
    return (struct rtnl_route){.dst = prefix(dst), .gateway = ip(gateway), .ifindex = ETH};
}

/* The first node of the documents: its own network, its pods, and the default route. */
#define FIRST_NODE                                          \
    {.dst = prefix("192.168.0.0/24"), .ifindex = ETH},      \
        {.dst = prefix("10.1.15.0/24"), .ifindex = BRIDGE}, \
    {                                                       \
        .gateway = ip("192.168.0.1"), .ifindex = ETH        \
    }

static struct sdn_network network(struct sdn_remote *remotes, size_t n)
{
    return (struct sdn_network){.plugin = SDN_FLANNEL,
                                .n_cluster = 1,
                                .cluster = {prefix("10.1.0.0/16")},
                                .local = prefix("10.1.15.0/24"),
                                .host_ip = ip("192.168.0.100"),
                                .mtu = 1500,
                                .remotes = remotes,
                                .n_remotes = n};
}

static struct sdn_remote remote(const char *host, const char *subnet)
{
    return (struct sdn_remote){.host_ip = ip(host), .subnet = prefix(subnet)};
}

static void a_node_gets_a_route_by_its_address(void **state)
{
    struct sdn_remote other = remote("192.168.0.200", "10.1.20.0/24");
    struct sdn_network n = network(&other, 1);
    struct rtnl_route have[] = {FIRST_NODE};
    struct routes_plan p;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    assert_int_equal(p.n_add, 1);
    assert_int_equal(p.n_del, 0);
    assert_int_equal(p.n_far, 0);
    assert_true(prefix_equal(p.add[0].dst, prefix("10.1.20.0/24")));
    assert_int_equal(p.add[0].gateway, ip("192.168.0.200"));
    assert_int_equal(p.add[0].ifindex, ETH);
    assert_int_equal(p.add[0].protocol, RTPROT_BOOT);
    routes_plan_done(&p);
}

static void a_complete_table_is_left_alone(void **state)
{
    struct sdn_remote other = remote("192.168.0.200", "10.1.20.0/24");
    struct sdn_network n = network(&other, 1);
    struct rtnl_route have[] = {FIRST_NODE, via("10.1.20.0/24", "192.168.0.200")};
    struct routes_plan p;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    assert_int_equal(p.n_add + p.n_del, 0);
    assert_int_equal(p.n_wanted, 1);
    routes_plan_done(&p);
}

static void a_route_by_another_gateway_or_link_is_replaced(void **state)
{
    struct sdn_remote other = remote("192.168.0.200", "10.1.20.0/24");
    struct sdn_network n = network(&other, 1);
    struct rtnl_route have[] = {FIRST_NODE, via("10.1.20.0/24", "192.168.0.7")};
    struct routes_plan p;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    assert_int_equal(p.n_add, 1);
    assert_int_equal(p.n_del, 0); /* Replacing it leaves no gap. */
    routes_plan_done(&p);
    have[3] = via("10.1.20.0/24", "192.168.0.200");
    have[3].ifindex = 9;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    assert_int_equal(p.n_add, 1);
    routes_plan_done(&p);
}

static void only_routes_into_the_cluster_networks_are_removed(void **state)
{
    struct sdn_network n = network(NULL, 0);
    struct rtnl_route have[] = {FIRST_NODE, via("10.1.20.0/24", "192.168.0.200"),
                                via("10.2.0.0/16", "192.168.0.1"),
                                via("10.0.0.0/8", "192.168.0.1")};
    struct routes_plan p;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    assert_int_equal(p.n_add, 0);
    assert_int_equal(p.n_del, 1);
    assert_true(prefix_equal(p.del[0].dst, prefix("10.1.20.0/24")));
    routes_plan_done(&p);
}

static void a_node_that_is_no_neighbour_gets_no_route(void **state)
{
    struct sdn_remote others[] = {remote("203.0.113.5", "10.1.20.0/24"),
                                  remote("10.1.15.9", "10.1.21.0/24"),
                                  remote("192.168.0.3", "10.1.22.0/24")};
    struct sdn_network n = network(others, ARRAY_SIZE(others));
    struct rtnl_route have[] = {FIRST_NODE};
    struct routes_plan p;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    /* The second one claims the address of a pod of this node. */
    assert_int_equal(p.n_far, 2);
    assert_int_equal(p.far.host_ip, ip("203.0.113.5"));
    assert_int_equal(p.n_add, 1);
    assert_true(prefix_equal(p.add[0].dst, prefix("10.1.22.0/24")));
    routes_plan_done(&p);
}

static void a_node_without_a_subnet_waits_for_it(void **state)
{
    struct sdn_remote other = {.host_ip = ip("192.168.0.200")};
    struct sdn_network n = network(&other, 1);
    struct rtnl_route have[] = {FIRST_NODE};
    struct routes_plan p;
    routes_plan_make(&n, have, ARRAY_SIZE(have), &p);
    assert_int_equal(p.n_add + p.n_far, 0);
    routes_plan_done(&p);
}

static void subnet_file_is_flannels(void **state)
{
    struct sdn_network n = network(NULL, 0);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    n.cluster[n.n_cluster++] = prefix("10.3.0.0/16");
    routes_write_subnet_env(&n, &out);
    assert_string_equal(strbuf_cstr(&out), "FLANNEL_NETWORK=10.1.0.0/16,10.3.0.0/16\n"
                                           "FLANNEL_SUBNET=10.1.15.1/24\n"
                                           "FLANNEL_MTU=1500\n"
                                           "FLANNEL_IPMASQ=true\n");
}

static void isolation_is_refused_with_the_reason(void **state)
{
    struct sdn_network n = network(NULL, 0);
    struct datapath_config routed = {.kind = "hostgw"}, ovs = {.kind = "ovs"};
    struct err e = {0};
    assert_int_equal(datapath_check(&routed, &n, &e), 0);
    assert_int_equal(datapath_check(&ovs, &n, &e), -EINVAL);
    assert_string_equal(e.text,
                        "networkConfig.datapath: ovs: the cluster's plug-in flannel needs hostgw");
    static const enum sdn_plugin isolating[] = {SDN_MULTITENANT, SDN_NETWORKPOLICY};
    for (size_t i = 0; i < ARRAY_SIZE(isolating); i++) {
        n.plugin = isolating[i];
        assert_int_equal(datapath_check(&routed, &n, &e), -EINVAL);
        CLEANUP_FREE char *text = xasprintf(
            "networkConfig.datapath: hostgw: routes of the host have no VNIDs and judge no "
            "NetworkPolicy, so the cluster's plug-in must be flannel, not %s",
            sdn_plugin_name(isolating[i]));
        assert_string_equal(e.text, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_gets_a_route_by_its_address),
        cmocka_unit_test(a_complete_table_is_left_alone),
        cmocka_unit_test(a_route_by_another_gateway_or_link_is_replaced),
        cmocka_unit_test(only_routes_into_the_cluster_networks_are_removed),
        cmocka_unit_test(a_node_that_is_no_neighbour_gets_no_route),
        cmocka_unit_test(a_node_without_a_subnet_waits_for_it),
        cmocka_unit_test(subnet_file_is_flannels),
        cmocka_unit_test(isolation_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
