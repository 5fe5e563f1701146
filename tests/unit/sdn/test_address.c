/* SPDX-License-Identifier: Apache-2.0 */
/* Whose an address can be: of pods and of nodes. */
#include "sdn/address.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t ip_of(const char *text)
{
    uint32_t ip = 0;
    assert_int_equal(ip4_parse(text, &ip), 0);
    return ip;
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    CLEANUP_FREE char *good = xstrdup(text);
    for (char *p = good; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    assert_int_equal(json_parse(good, strlen(good), &v, NULL), 0);
    return v;
}

#define POD "{'spec':{'nodeName':'n1'}}"
#define HOST_POD "{'spec':{'nodeName':'n1','hostNetwork':true}}"
#define SUBNET "{'hostIP':'192.0.2.1','subnet':'10.128.2.0/23'}"
#define OF_NODE ", the subnet of the pod's node"
#define NONE_YET " cannot be checked: the pod's node has no HostSubnet with a subnet yet"

static void an_address_of_a_pod_is_one_that_its_node_gives_out(void **state)
{
    static const struct {
        const char *pod, *host_subnet, *ip, *why; /* 'why' NULL: it counts. */
    } cases[] = {
        {POD, SUBNET, "10.128.2.2", NULL},
        {POD, SUBNET, "10.128.3.254", NULL},
        {POD, SUBNET, "10.128.2.0", "10.128.2.0 is the network address of 10.128.2.0/23" OF_NODE},
        {POD, SUBNET, "10.128.2.1", "10.128.2.1 is the gateway's address of 10.128.2.0/23" OF_NODE},
        {POD, SUBNET, "10.128.3.255",
         "10.128.3.255 is the broadcast address of 10.128.2.0/23" OF_NODE},
        {POD, SUBNET, "10.128.1.255", "10.128.1.255 is not in 10.128.2.0/23" OF_NODE},
        {POD, SUBNET, "10.128.4.0", "10.128.4.0 is not in 10.128.2.0/23" OF_NODE},
        {POD, SUBNET, "192.0.2.1", "192.0.2.1 is not in 10.128.2.0/23" OF_NODE},
        {POD, SUBNET, "203.0.113.7", "203.0.113.7 is not in 10.128.2.0/23" OF_NODE},
        {POD, NULL, "10.128.2.2", "10.128.2.2" NONE_YET},
        {POD, "{'hostIP':'192.0.2.1','subnet':''}", "10.128.2.2", "10.128.2.2" NONE_YET},
        {POD, "{'hostIP':'192.0.2.1','subnet':'10.128.2.1/23'}", "10.128.2.2",
         "10.128.2.2" NONE_YET},
        {POD, "{'hostIP':1,'subnet':2}", "10.128.2.2", "10.128.2.2" NONE_YET},
        {HOST_POD, SUBNET, "192.0.2.1", NULL},
        {HOST_POD, SUBNET, "192.0.2.2",
         "192.0.2.2 is not 192.0.2.1, the address of the node whose network the pod shares"},
        {HOST_POD, SUBNET, "10.128.2.2",
         "10.128.2.2 is not 192.0.2.1, the address of the node whose network the pod shares"},
        {HOST_POD, NULL, "192.0.2.1", "192.0.2.1" NONE_YET},
        /* Of another CNI plug-in, with and without a subnet of ours. */
        {POD, SUBNET, "10.9.0.5", NULL},
        {POD, NULL, "10.9.0.5", NULL},
        {POD, SUBNET, "10.10.0.5", "10.10.0.5 is not in 10.128.2.0/23" OF_NODE},
        {HOST_POD, SUBNET, "10.9.0.5",
         "10.9.0.5 is not 192.0.2.1, the address of the node whose network the pod shares"},
        {HOST_POD, NULL, "10.9.0.5", "10.9.0.5" NONE_YET},
    };
    struct address_ranges foreign;
    assert_int_equal(address_ranges_parse("10.9.0.0/16", false, &foreign, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *pod = parse(cases[i].pod);
        CLEANUP(json_free)
        struct json *hs = cases[i].host_subnet ? parse(cases[i].host_subnet) : NULL;
        struct pod_site s;
        struct err e = {0};
        pod_site_read(pod, hs, &s);
        int r = pod_address_check(&s, &foreign, ip_of(cases[i].ip), &e);
        assert_string_equal(e.text, cases[i].why ? cases[i].why : "");
        assert_int_equal(r, cases[i].why ? -EADDRNOTAVAIL : 0);
    }
    CLEANUP(json_free) struct json *pod = parse(POD);
    struct pod_site s;
    pod_site_read(pod, NULL, &s);
    assert_int_equal(pod_address_check(&s, NULL, ip_of("10.9.0.5"), NULL), -EADDRNOTAVAIL);
}

#define MASTER                                                                                    \
    "192.0.2.10 is an address of a master; a node that runs on a master's host must be named in " \
    "kubernetesMasterConfig.masterNodes"

static void an_address_of_a_node_is_nobody_elses(void **state)
{
    static const struct {
        const char *node, *ip, *why;
    } cases[] = {
        {"n1", "192.0.2.1", NULL},
        {"n1", "0.0.0.0", "0.0.0.0 is not an address of a host"},
        {"n1", "0.1.2.3", "0.1.2.3 is not an address of a host"},
        {"n1", "127.0.0.1", "127.0.0.1 is a loopback address"},
        {"n1", "127.255.255.255", "127.255.255.255 is a loopback address"},
        {"n1", "169.254.169.254", "169.254.169.254 is a link-local address"},
        {"n1", "224.0.0.1", "224.0.0.1 is a multicast address"},
        {"n1", "255.255.255.255", "255.255.255.255 is not an address of a host"},
        {"n1", "10.128.0.1", "10.128.0.1 lies in the cluster network"},
        {"n1", "10.131.255.255", "10.131.255.255 lies in the cluster network"},
        {"n1", "10.132.0.0", NULL},
        {"n1", "172.30.0.1", "172.30.0.1 lies in the service network 172.30.0.0/16"},
        {"n1", "172.29.0.9", "172.29.0.9 lies in the range of services' ingress addresses"},
        {"n1", "10.9.8.7", "10.9.8.7 lies in networkConfig.foreignPodNetworkCIDRs"},
        {"n1", "192.0.2.254", "192.0.2.254 is reserved by networkConfig.reservedAddresses"},
        {"n1", "192.0.2.10", MASTER},
        {"master1", "192.0.2.10", NULL},
        {"master1", "192.0.2.254", "192.0.2.254 is reserved by networkConfig.reservedAddresses"},
        {"master10", "192.0.2.10", MASTER},
    };
    static const char *const nodes[] = {"other", "master1", NULL};
    struct node_rules rules = {.service = {0xac1e0000, 16}, .master_nodes = nodes};
    assert_int_equal(address_ranges_parse("10.128.0.0/14", false, &rules.cluster, NULL), 0);
    assert_int_equal(address_ranges_parse("172.29.0.0/16", false, &rules.ingress, NULL), 0);
    assert_int_equal(address_ranges_parse("10.9.0.0/16", false, &rules.foreign, NULL), 0);
    assert_int_equal(address_ranges_parse("192.0.2.254", true, &rules.reserved, NULL), 0);
    assert_int_equal(address_ranges_parse("192.0.2.10", true, &rules.masters, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        int r = node_address_check(&rules, cases[i].node, ip_of(cases[i].ip), &e);
        assert_string_equal(e.text, cases[i].why ? cases[i].why : "");
        assert_int_equal(r, cases[i].why ? -EADDRNOTAVAIL : 0);
    }
    /* Without rules only what no host has is refused. */
    struct node_rules none = {0};
    assert_int_equal(node_address_check(&none, "n1", ip_of("10.128.0.1"), NULL), 0);
    assert_int_equal(node_address_check(&none, "n1", ip_of("127.0.0.1"), NULL), -EADDRNOTAVAIL);
}

static void ranges_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        bool hosts;
        const char *error; /* Part of it; NULL: good. */
    } cases[] = {
        {"", false, NULL},
        {"10.9.0.0/16,10.10.0.0/24", false, NULL},
        {"10.9.0.1/16", false, "10.9.0.1/16"},
        {"10.9.0.1", false, "10.9.0.1"},
        {"10.9.0.1", true, NULL},
        {"10.9.0.256", true, "\"10.9.0.256\" is neither an IPv4 address nor a network"},
        {"10.9.0.0/16,,10.10.0.0/24", false, "\"\""},
        {"x", true, "\"x\" is neither an IPv4 address nor a network"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct address_ranges r = {.n = 99};
        struct err e = {0};
        int got = address_ranges_parse(cases[i].text, cases[i].hosts, &r, &e);
        assert_int_equal(got, cases[i].error ? -EINVAL : 0);
        if (cases[i].error) {
            assert_non_null(strstr(e.text, cases[i].error));
            assert_int_equal(r.n, 99); /* Failure leaves it untouched. */
        }
    }
    CLEANUP_STRBUF struct strbuf many = STRBUF_INIT;
    for (unsigned i = 0; i <= ADDRESS_MAX_RANGES; i++) {
        strbuf_addf(&many, "%s10.%u.0.0/16", i ? "," : "", i);
    }
    struct address_ranges r = {0};
    struct err e = {0};
    assert_int_equal(address_ranges_parse(strbuf_cstr(&many), false, &r, &e), -EINVAL);
    assert_string_equal(e.text, "more than 128 ranges");
    assert_int_equal(address_ranges_parse("10.9.0.0/16,192.0.2.1", true, &r, &e), 0);
    CLEANUP_FREE char *text = address_ranges_text(&r);
    assert_string_equal(text, "10.9.0.0/16,192.0.2.1/32");
    struct address_ranges none = {0};
    CLEANUP_FREE char *empty = address_ranges_text(&none);
    assert_string_equal(empty, "");
}

static void the_cluster_network_tells_foreign_ranges(void **state)
{
    struct address_ranges r = {.n = 3};
    CLEANUP(json_free)
    struct json *good =
        parse("{'metadata':{'annotations':{'tenet.io/foreign-pod-networks':'10.9.0.0/16'}}}");
    CLEANUP(json_free)
    struct json *bad =
        parse("{'metadata':{'annotations':{'tenet.io/foreign-pod-networks':'all'}}}");
    address_ranges_of_network(good, &r);
    assert_int_equal(r.n, 1);
    assert_true(address_ranges_contain(&r, ip_of("10.9.255.255")));
    assert_false(address_ranges_contain(&r, ip_of("10.10.0.0")));
    address_ranges_of_network(bad, &r);
    assert_int_equal(r.n, 0);
    address_ranges_of_network(NULL, &r);
    assert_int_equal(r.n, 0);
    assert_false(address_ranges_contain(NULL, 1));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_address_of_a_pod_is_one_that_its_node_gives_out),
        T(an_address_of_a_node_is_nobody_elses),
        T(ranges_are_read_and_written),
        T(the_cluster_network_tells_foreign_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
