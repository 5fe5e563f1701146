/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's agent may say about addresses, asked of a server as that node. */
#include "harness.h"

#include "base/str.h"
#include "sdn/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NODES "/api/v1/nodes"
#define PODS "/api/v1/namespaces/default/pods"
#define SUBNETS "/apis/network.openshift.io/v1/hostsubnets"
#define SERVICES "/api/v1/namespaces/default/services"

struct cluster {
    struct apiserver_security security;
    struct node_rules rules;
    struct service_ranges *services;
    struct apiserver_config cfg;
    struct harness *h;
};

#define NODE1 "system:node:n1 system:nodes"

static void must(struct cluster *c, const char *method, const char *path, const char *body,
                 int want)
{
    put_in(c->h, method, path, body, want);
}

#define ADDRESSES(list) "'status':{'addresses':[" list "]}"
#define IP(ip) "{'type':'InternalIP','address':'" ip "'}"
#define NODE(name, list) "{'metadata':{'name':'" name "'}," ADDRESSES(list) "}"
#define POD(name, node, more)                                   \
    "{'metadata':{'name':'" name "'},'spec':{'nodeName':'" node \
    "','containers':[{'name':'c','image':'i'}]" more "}}"
#define SUBNET(name, ip, net) \
    "{'metadata':{'name':'" name "'},'host':'" name "','hostIP':'" ip "','subnet':'" net "'}"

static void begin(struct cluster *c)
{
    static const char *const master_nodes[] = {"m1", NULL};
    *c = (struct cluster){.security = {.loopback_token = "secret"}};
    c->rules = (struct node_rules){.service = {0xac1e0000, 16}, .master_nodes = master_nodes};
    assert_int_equal(address_ranges_parse("10.128.0.0/14", false, &c->rules.cluster, NULL), 0);
    assert_int_equal(address_ranges_parse("10.9.0.0/16", false, &c->rules.foreign, NULL), 0);
    assert_int_equal(address_ranges_parse("192.0.2.254", true, &c->rules.reserved, NULL), 0);
    assert_int_equal(address_ranges_parse("192.0.2.10", true, &c->rules.masters, NULL), 0);
    c->cfg = (struct apiserver_config){.security = &c->security, .addresses = &c->rules};
    c->h = harness_new(&c->cfg, NULL);
    must(c, "POST", NODES, NODE("n1", IP("192.0.2.1") "," IP("2001:db8::1")), 201);
    must(c, "POST", NODES, NODE("n2", IP("192.0.2.2") "," IP("198.51.100.2") "," IP("2001:db8::2")),
         201);
    must(c, "POST", SUBNETS, SUBNET("n1", "192.0.2.1", "10.128.0.0/23"), 201);
    must(c, "POST", SUBNETS, SUBNET("n2", "192.0.2.2", "10.128.2.0/23"), 201);
    must(c, "POST", SUBNETS, SUBNET("f5", "192.0.2.100", "10.128.4.0/23"), 201);
    must(c, "POST", SERVICES,
         "{'metadata':{'name':'out'},'spec':{'ports':[{'port':80}],'externalIPs':['203.0.113.9']}}",
         201);
    must(
        c, "POST", "/api/v1/namespaces/default/endpoints",
        "{'metadata':{'name':'kubernetes'},'subsets':[{'addresses':[{'ip':'192.0.2.11'}],'ports':[{"
        "'port':8443}]}]}",
        201);
}

static void end(struct cluster *c)
{
    harness_free(c->h);
}

/* 'why' NULL: it is done; else 403 that names 'field' and says why. */
static void expect(const struct answer *a, const char *what, const char *field, const char *why)
{
    if (!why) {
        if (a->status != 200 && a->status != 201) {
            fail_msg("%s: %d %s", what, a->status, a->text);
        }
        return;
    }
    if (a->status != 403 || !streq(at(a, "details.causes.0.field"), field) ||
        !str_has_suffix(at(a, "details.causes.0.message"), why)) {
        fail_msg("%s: %d %s, not %s: %s", what, a->status, a->text, field, why);
    }
}

#define MASTER(ip)                                                                         \
    ip " is an address of a master; a node that runs on a master's host must be named in " \
       "kubernetesMasterConfig.masterNodes"

static void a_node_has_no_address_that_is_somebody_elses(void **state)
{
    static const struct {
        const char *type, *address, *why;
    } cases[] = {
        {"InternalIP", "192.0.2.3", NULL},
        {"ExternalIP", "203.0.113.3", NULL},
        {"Hostname", "n1.example.com", NULL},
        {"InternalIP", "2001:db8::3", NULL},
        {"ExternalIP", "192.0.2.1", NULL},
        {"InternalIP", "192.0.2.2", "192.0.2.2 is an address of Node n2"},
        {"ExternalIP", "192.0.2.2", "192.0.2.2 is an address of Node n2"},
        {"Hostname", "192.0.2.2", "192.0.2.2 is an address of Node n2"},
        {"InternalDNS", "192.0.2.2", "192.0.2.2 is an address of Node n2"},
        /* Further ones of n2, which may be moving here. */
        {"InternalIP", "198.51.100.2", NULL},
        {"InternalIP", "2001:db8::2", NULL},
        {"InternalIP", "::ffff:192.0.2.2", "192.0.2.2 is an address of Node n2"},
        {"InternalIP", "192.0.2.100", "192.0.2.100 is an address of HostSubnet f5"},
        {"InternalIP", "203.0.113.9", "203.0.113.9 is an address of Service default/out"},
        {"InternalIP", "10.128.0.1", "10.128.0.1 lies in the cluster network"},
        {"InternalIP", "172.30.0.1", "172.30.0.1 lies in the service network 172.30.0.0/16"},
        {"InternalIP", "10.9.0.1", "10.9.0.1 lies in networkConfig.foreignPodNetworkCIDRs"},
        {"InternalIP", "192.0.2.254", "192.0.2.254 is reserved by networkConfig.reservedAddresses"},
        {"InternalIP", "192.0.2.10", MASTER("192.0.2.10")},
        {"InternalIP", "192.0.2.11", MASTER("192.0.2.11")},
        {"InternalIP", "::ffff:192.0.2.11", MASTER("192.0.2.11")},
        {"InternalIP", "127.0.0.1", "127.0.0.1 is a loopback address"},
        {"InternalIP", "0.0.0.0", "0.0.0.0 is not an address of a host"},
        {"InternalIP", "224.0.0.1", "224.0.0.1 is a multicast address"},
        {"InternalIP", "169.254.1.1", "169.254.1.1 is a link-local address"},
        {"InternalIP", "::1", "::1 is not an address at which other hosts reach a node"},
        {"InternalIP", "::", ":: is not an address at which other hosts reach a node"},
        {"InternalIP", "fe80::1", "fe80::1 is not an address at which other hosts reach a node"},
        {"InternalIP", "ff02::1", "ff02::1 is not an address at which other hosts reach a node"},
    };
    struct cluster c;
    begin(&c);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *at_field = "status.addresses[1].address";
        /* As an update, as a patch, and as server-side apply. */
        CLEANUP_FREE char *put = xasprintf("{'metadata':{'name':'n1'},'status':{'addresses':[" IP(
                                               "192.0.2.1") ",{'type':'%s','address':'%s'}]}}",
                                           cases[i].type, cases[i].address);
        CLEANUP_ANSWER struct answer a = ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL, put);
        expect(&a, cases[i].address, at_field, cases[i].why);
        must(&c, "PUT", NODES "/n1/status", NODE("n1", IP("192.0.2.1")), 200);
        CLEANUP_ANSWER struct answer b =
            ask_as(c.h, NODE1, "PATCH", NODES "/n1/status", "application/merge-patch+json", put);
        expect(&b, cases[i].address, at_field, cases[i].why);
        must(&c, "PUT", NODES "/n1/status", NODE("n1", IP("192.0.2.1")), 200);
    }
    end(&c);
}

static void a_nodes_own_address_is_not_a_further_one_of_another(void **state)
{
    static const char *const lists[] = {
        IP("198.51.100.2"),
        "{'type':'Hostname','address':'n1'}," IP("198.51.100.2"),
        "{'type':'ExternalIP','address':'203.0.113.3'}," IP("2001:DB8:0::2"),
    };
    struct cluster c;
    begin(&c);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        CLEANUP_FREE char *field = xasprintf("status.addresses[%d].address", i ? 1 : 0);
        CLEANUP_FREE char *put =
            xasprintf("{'metadata':{'name':'n1'},'status':{'addresses':[%s]}}", lists[i]);
        CLEANUP_ANSWER struct answer a = ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL, put);
        expect(&a, lists[i], field,
               i == 2 ? "2001:db8::2 is an address of Node n2"
                      : "198.51.100.2 is an address of Node n2");
    }
    /* Nor does one that was a further address become the node's own. */
    must(&c, "PUT", NODES "/n1/status", NODE("n1", IP("192.0.2.1") "," IP("198.51.100.2")), 200);
    CLEANUP_ANSWER struct answer a = ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL,
                                            NODE("n1", IP("198.51.100.2") "," IP("192.0.2.1")));
    expect(&a, "the order changes", "status.addresses[0].address",
           "198.51.100.2 is an address of Node n2");
    end(&c);
}

static void a_new_node_is_looked_at_as_well(void **state)
{
    struct cluster c;
    begin(&c);
    must(&c, "DELETE", NODES "/n1", NULL, 200);
    CLEANUP_ANSWER struct answer bad =
        ask_as(c.h, NODE1, "POST", NODES, NULL, NODE("n1", IP("192.0.2.10")));
    expect(&bad, "a master's", "status.addresses[0].address", MASTER("192.0.2.10"));
    CLEANUP_ANSWER struct answer good =
        ask_as(c.h, NODE1, "POST", NODES, NULL, NODE("n1", IP("192.0.2.1")));
    expect(&good, "its own", NULL, NULL);
    end(&c);
}

static void a_node_on_a_masters_host_has_its_address(void **state)
{
    struct cluster c;
    begin(&c);
    CLEANUP_ANSWER struct answer a = ask_as(c.h, "system:node:m1 system:nodes", "POST", NODES, NULL,
                                            NODE("m1", IP("192.0.2.10") "," IP("192.0.2.11")));
    expect(&a, "m1", NULL, NULL);
    end(&c);
}

static void what_a_node_had_before_it_keeps_and_no_more(void **state)
{
    struct cluster c;
    begin(&c);
    /* An administrator may write anything: as it was before an upgrade. */
    must(&c, "PUT", NODES "/n1/status", NODE("n1", IP("192.0.2.2")), 200);
    CLEANUP_ANSWER struct answer same =
        ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL, NODE("n1", IP("192.0.2.2")));
    expect(&same, "unchanged", NULL, NULL);
    CLEANUP_ANSWER struct answer more = ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL,
                                               NODE("n1", IP("192.0.2.2") "," IP("192.0.2.10")));
    expect(&more, "one more", "status.addresses[1].address", MASTER("192.0.2.10"));
    /* When the owner is gone the address is free, and taken by what comes after. */
    must(&c, "PUT", NODES "/n1/status", NODE("n1", IP("192.0.2.1")), 200);
    must(&c, "DELETE", NODES "/n2", NULL, 200);
    must(&c, "DELETE", SUBNETS "/n2", NULL, 200);
    CLEANUP_ANSWER struct answer freed =
        ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL, NODE("n1", IP("192.0.2.2")));
    expect(&freed, "free", NULL, NULL);
    end(&c);
}

static void a_node_has_a_limited_number_of_addresses(void **state)
{
    struct cluster c;
    begin(&c);
    for (int n = ADDRESS_MAX_OF_NODE; n <= ADDRESS_MAX_OF_NODE + 1; n++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "{'metadata':{'name':'n1'},'status':{'addresses':[");
        for (int i = 0; i < n; i++) {
            strbuf_addf(&b, "%s{'type':'InternalIP','address':'198.51.101.%d'}", i ? "," : "",
                        i + 1);
        }
        strbuf_adds(&b, "]}}");
        CLEANUP_ANSWER struct answer a =
            ask_as(c.h, NODE1, "PUT", NODES "/n1/status", NULL, strbuf_cstr(&b));
        expect(&a, "many", "status.addresses",
               n > ADDRESS_MAX_OF_NODE ? "a node has at most 64 addresses" : NULL);
    }
    end(&c);
}

#define OF_NODE ", the subnet of the pod's node"

static void an_address_of_a_pod_is_one_that_its_node_gives_out(void **state)
{
    static const struct {
        const char *pod, *status, *field, *why;
    } cases[] = {
        {"a", "'podIP':'10.128.0.5','podIPs':[{'ip':'10.128.0.5'}],'hostIP':'192.0.2.1'", NULL,
         NULL},
        {"a", "'podIP':'10.9.0.5'", NULL, NULL},
        {"a", "'phase':'Running'", NULL, NULL},
        {"a", "'podIP':''", NULL, NULL},
        {"a", "'podIP':'10.128.2.5'", "status.podIP", "10.128.2.5 is not in 10.128.0.0/23" OF_NODE},
        {"a", "'podIP':'10.128.0.1'", "status.podIP",
         "10.128.0.1 is the gateway's address of 10.128.0.0/23" OF_NODE},
        {"a", "'podIP':'192.0.2.10'", "status.podIP", "192.0.2.10 is not in 10.128.0.0/23" OF_NODE},
        {"a", "'podIP':'192.0.2.1'", "status.podIP", "192.0.2.1 is not in 10.128.0.0/23" OF_NODE},
        {"a", "'podIP':'::ffff:192.0.2.10'", "status.podIP",
         "192.0.2.10 is not in 10.128.0.0/23" OF_NODE},
        {"a", "'podIPs':[{'ip':'203.0.113.1'}]", "status.podIP",
         "203.0.113.1 is not in 10.128.0.0/23" OF_NODE},
        {"a", "'podIP':'10.128.0.5','podIPs':[{'ip':'10.128.0.5'},{'ip':'10.128.2.5'}]",
         "status.podIPs[1].ip", "10.128.2.5 is not in 10.128.0.0/23" OF_NODE},
        {"a", "'podIP':'2001:db8::1'", "status.podIP",
         "2001:db8::1: the pod network gives out IPv4 addresses only"},
        {"a", "'hostIP':'192.0.2.2'", "status.hostIP", "192.0.2.2 is not the address of node n1"},
        {"a", "'hostIP':'192.0.2.1','hostIPs':[{'ip':'192.0.2.1'},{'ip':'2001:db8::1'}]", NULL,
         NULL},
        {"a", "'hostIPs':[{'ip':'192.0.2.1'},{'ip':'2001:db8::2'}]", "status.hostIPs[1].ip",
         "2001:db8::2 is not the address of node n1"},
        {"host", "'podIP':'192.0.2.1','podIPs':[{'ip':'192.0.2.1'},{'ip':'2001:db8::1'}]", NULL,
         NULL},
        {"host", "'podIP':'192.0.2.2'", "status.podIP", "192.0.2.2 is not the address of node n1"},
        {"host", "'podIP':'10.128.0.5'", "status.podIP",
         "10.128.0.5 is not the address of node n1"},
        {"host", "'podIP':'10.9.0.5'", "status.podIP", "10.9.0.5 is not the address of node n1"},
    };
    static const char *const types[] = {NULL, "application/merge-patch+json",
                                        "application/strategic-merge-patch+json",
                                        "application/apply-patch+yaml"};
    struct cluster c;
    begin(&c);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t k = 0; k < ARRAY_SIZE(types); k++) {
            bool host = streq(cases[i].pod, "host");
            must(&c, "POST", PODS,
                 host ? POD("host", "n1", ",'hostNetwork':true") : POD("a", "n1", ""), 201);
            CLEANUP_FREE char *path = xasprintf(PODS "/%s/status%s", cases[i].pod,
                                                k == 3 ? "?fieldManager=n1&force=true" : "");
            CLEANUP_FREE char *body = xasprintf(
                "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'%s'},%s'status':{%s}}",
                cases[i].pod,
                k      ? ""
                : host ? "'spec':{'nodeName':'n1','hostNetwork':true,'containers':[{'name':"
                         "'c','image':'i'}]},"
                       : "'spec':{'nodeName':'n1','containers':[{'name':'c','image':'i'}]},",
                cases[i].status);
            CLEANUP_ANSWER struct answer a =
                ask_as(c.h, NODE1, k ? "PATCH" : "PUT", path, types[k], body);
            expect(&a, cases[i].status, cases[i].field, cases[i].why);
            CLEANUP_FREE char *name = xasprintf(PODS "/%s?gracePeriodSeconds=0", cases[i].pod);
            must(&c, "DELETE", name, NULL, 200);
        }
    }
    end(&c);
}

/* Where the kinds of the network are defined by the cluster itself. */
static void a_server_without_host_subnets_loads(void **state)
{
    struct apiserver_config cfg = {.without_group = "network.openshift.io"};
    struct harness *h = harness_new(&cfg, NULL);
    put_in(h, "POST", NODES, NODE("n1", IP("192.0.2.1")), 201);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", SUBNETS, NULL, 404);
    harness_free(h);
}

static void without_a_host_subnet_no_address_is_taken(void **state)
{
    struct cluster c;
    begin(&c);
    must(&c, "POST", PODS, POD("a", "n1", ""), 201);
    must(&c, "POST", PODS, POD("host", "n1", ",'hostNetwork':true"), 201);
    must(&c, "DELETE", SUBNETS "/n1", NULL, 200);
    static const struct {
        const char *path, *status, *field, *why;
    } cases[] = {
        {PODS "/a/status", "{'status':{'podIP':'10.128.0.5'}}", "status.podIP",
         "10.128.0.5 cannot be checked: the pod's node has no HostSubnet with a subnet yet"},
        {PODS "/a/status", "{'status':{'hostIP':'192.0.2.1'}}", "status.hostIP",
         "192.0.2.1 is not the address of node n1, which has no HostSubnet yet"},
        {PODS "/host/status", "{'status':{'podIP':'192.0.2.1'}}", "status.podIP",
         "192.0.2.1 is not the address of node n1, which has no HostSubnet yet"},
        {PODS "/a/status", "{'status':{'phase':'Running'}}", NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = ask_as(c.h, NODE1, "PATCH", cases[i].path,
                                                "application/merge-patch+json", cases[i].status);
        expect(&a, cases[i].status, cases[i].field, cases[i].why);
    }
    end(&c);
}

static void addresses_from_before_stay_and_an_administrator_writes_any(void **state)
{
    struct cluster c;
    begin(&c);
    must(&c, "POST", PODS, POD("a", "n1", ""), 201);
    CLEANUP_ANSWER struct answer admin = ask_as(
        c.h, "root system:masters", "PATCH", PODS "/a/status", "application/merge-patch+json",
        "{'status':{'podIP':'203.0.113.1','podIPs':[{'ip':'203.0.113.1'}]}}");
    assert_int_equal(admin.status, 200);
    CLEANUP_ANSWER struct answer more =
        ask_as(c.h, NODE1, "PATCH", PODS "/a/status", "application/merge-patch+json",
               "{'status':{'phase':'Failed'}}");
    expect(&more, "another field", NULL, NULL);
    CLEANUP_ANSWER struct answer changed =
        ask_as(c.h, NODE1, "PATCH", PODS "/a/status", "application/merge-patch+json",
               "{'status':{'podIP':'203.0.113.2','podIPs':[{'ip':'203.0.113.2'}]}}");
    expect(&changed, "another address", "status.podIP",
           "203.0.113.2 is not in 10.128.0.0/23" OF_NODE);
    end(&c);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_nodes_own_address_is_not_a_further_one_of_another),
        T(a_node_has_no_address_that_is_somebody_elses),
        T(a_new_node_is_looked_at_as_well),
        T(a_node_on_a_masters_host_has_its_address),
        T(what_a_node_had_before_it_keeps_and_no_more),
        T(a_node_has_a_limited_number_of_addresses),
        T(an_address_of_a_pod_is_one_that_its_node_gives_out),
        T(a_server_without_host_subnets_loads),
        T(without_a_host_subnet_no_address_is_taken),
        T(addresses_from_before_stay_and_an_administrator_writes_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
