/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that an import of openshift-sdn's objects makes, and its obstacles. */
#include "base/mem.h"
#include "cli/admin/sdn_import.h"
#include "wire/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NETWORK(plugin)                                                                          \
    "{kind: ClusterNetwork, apiVersion: v1, metadata: {name: default}, network: 10.128.0.0/14, " \
    "hostsubnetlength: 9, serviceNetwork: 172.30.0.0/16, pluginName: " plugin "}"
#define MULTITENANT NETWORK("redhat/openshift-ovs-multitenant")
#define SUBNET(name, ip, range)                                                         \
    "{kind: HostSubnet, apiVersion: network.openshift.io/v1, metadata: {name: " name    \
    ", uid: u, annotations: {pod.network.openshift.io/node-uid: x, a: b}}, host: " name \
    ", hostIP: " ip ", subnet: " range "}"
#define NET(name, id)                                                                 \
    "{kind: NetNamespace, apiVersion: v1, metadata: {name: " name "}, netname: " name \
    ", netid: " id "}"
#define PROJECT(name)                                                             \
    "{kind: Project, apiVersion: project.openshift.io/v1, metadata: {name: " name \
    ", resourceVersion: '7'}, status: {phase: Active}}"
#define POD(project) \
    "{kind: Pod, apiVersion: v1, metadata: {name: p, namespace: " project "}, spec: {}}"

static struct sdn_objects objects(const char *list)
{
    CLEANUP(json_free) struct json *v = NULL;
    struct sdn_objects o;
    struct err e = {0};
    sdn_objects_init(&o);
    assert_int_equal(yaml_parse(list, strlen(list), &v, &e), 0);
    while (json_count(v)) {
        struct json *item = json_take_at(v, 0);
        if (streq(json_path_string(item, "kind", NULL), "Pod")) {
            json_append(o.pods, item);
        } else {
            assert_true(sdn_objects_add(&o, item));
        }
    }
    return o;
}

/* Makes the plan from two lists in YAML. */
static struct sdn_plan plan_with(const char *from, const char *to, bool has_policies)
{
    struct sdn_objects a = objects(from), b = objects(to);
    struct sdn_plan p;
    sdn_plan_make(&a, &b, has_policies, &p);
    sdn_objects_done(&a);
    sdn_objects_done(&b);
    return p;
}

static struct sdn_plan plan(const char *from, const char *to)
{
    return plan_with(from, to, true);
}

static void a_cluster_keeps_its_numbers(void **state)
{
    struct sdn_plan p = plan(
        "[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.129.2.0/23") ", " NET(
            "default", "0") ", " NET("red", "4711") ", " PROJECT("red") ", " PROJECT("default") "]",
        "[" MULTITENANT ", " NET("default", "0") ", " PROJECT("default") "]");
    assert_string_equal(strbuf_cstr(&p.problems), "");
    CLEANUP_FREE char *subnet = json_to_text(json_at(p.subnets, 0));
    assert_string_equal(subnet,
                        "{\"kind\":\"HostSubnet\",\"apiVersion\":\"network.openshift.io/v1\","
                        "\"host\":\"n1\",\"hostIP\":\"192.0.2.1\",\"subnet\":\"10.129.2.0/23\","
                        "\"metadata\":{\"name\":\"n1\",\"annotations\":{\"a\":\"b\"}}}");
    CLEANUP_FREE char *net = json_to_text(json_at(p.nets, 0));
    assert_non_null(strstr(net, "\"netid\":4711"));
    CLEANUP_FREE char *project = json_to_text(json_at(p.projects, 0));
    assert_string_equal(project, "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\","
                                 "\"metadata\":{\"name\":\"red\"}}");
    assert_int_equal(json_count(p.subnets) + json_count(p.nets) + json_count(p.projects), 3);
    assert_int_equal(p.unchanged, 2);
    sdn_plan_done(&p);
}

static void an_import_that_was_made_changes_nothing(void **state)
{
    static const char all[] =
        "[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.129.2.0/23") ", " NET(
            "default", "0") ", " NET("red", "4711") ", " PROJECT("red") ", " PROJECT("default") "]";
    struct sdn_plan p = plan(all, all);
    assert_int_equal(p.n_problems, 0);
    assert_int_equal(json_count(p.subnets) + json_count(p.nets) + json_count(p.projects), 0);
    assert_int_equal(p.unchanged, 5);
    sdn_plan_done(&p);
}

static void conflicts_are_named(void **state)
{
    static const struct {
        const char *from, *to, *problems;
    } cases[] = {
        {"[" NETWORK("redhat/openshift-ovs-subnet") "]", "[" MULTITENANT "]",
         "ClusterNetwork: pluginName is \"redhat/openshift-ovs-subnet\" in the import and "
         "\"redhat/openshift-ovs-multitenant\" here; networkConfig.networkPluginName sets it\n"},
        {"[]", "[" MULTITENANT "]", "ClusterNetwork default: the import has none\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.1.0.0/23") "]", "[" MULTITENANT "]",
         "HostSubnet n1: 10.1.0.0/23 is in no cluster network of this cluster\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "x") "]", "[" MULTITENANT "]",
         "HostSubnet n1: subnet \"x\" is no network\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2", "10.128.0.0/23") "]", "[" MULTITENANT "]",
         "HostSubnet n1: hostIP \"192.0.2\" is no address\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.128.0.0/23") "]",
         "[" MULTITENANT ", " SUBNET("m1", "192.0.2.9", "10.128.0.0/22") "]",
         "HostSubnet n1: 10.128.0.0/23 overlaps with 10.128.0.0/22 of HostSubnet m1\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.128.0.0/23") ", " SUBNET(
             "n2", "192.0.2.1", "10.128.2.0/23") "]",
         "[" MULTITENANT "]", "HostSubnet n2: hostIP 192.0.2.1 is also that of HostSubnet n1\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.128.0.0/23") "]",
         "[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.128.4.0/23") "]",
         "HostSubnet n1: exists here with 10.128.4.0/23 at 192.0.2.1, and has 10.128.0.0/23 at "
         "192.0.2.1 in the import\n"},
        {"[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.128.0.0/23") ", " SUBNET(
             "n1", "192.0.2.1", "10.128.0.0/23") "]",
         "[" MULTITENANT ", " SUBNET("n1", "192.0.2.1", "10.128.0.0/23") "]",
         "HostSubnet n1: is there twice\n"},
        {"[" MULTITENANT ", " NET("red", "5") ", " PROJECT("red") "]", "[" MULTITENANT "]",
         "NetNamespace red: netid 5 is neither 0 nor in 10-16777215\n"},
        {"[" MULTITENANT ", " NET("default", "12") ", " PROJECT("default") "]", "[" MULTITENANT "]",
         "NetNamespace default: netid 12, but the project default is global\n"},
        {"[" MULTITENANT ", " NET("red", "12") "]", "[" MULTITENANT "]",
         "NetNamespace red: the import has no such project, and neither has this cluster\n"},
        {"[" MULTITENANT ", " PROJECT("red") "]", "[" MULTITENANT "]",
         "project red: the import has no NetNamespace of it, and so not its VNID\n"},
        {"[" MULTITENANT ", " NET("red", "12") ", " PROJECT("red") "]",
         "[" MULTITENANT ", " NET("red", "13") ", " PROJECT("red") ", " POD("red") "]",
         "NetNamespace red: VNID 13 here, 12 in the import, and the project has pods\n"},
        {"[" MULTITENANT ", " NET("red", "12") ", " PROJECT("red") "]",
         "[" MULTITENANT ", " NET("own", "12") ", " PROJECT("own") ", " POD("own") "]",
         "NetNamespace own: VNID 12 is that of another project in the import, and the project has "
         "pods here\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sdn_plan p = plan(cases[i].from, cases[i].to);
        assert_string_equal(strbuf_cstr(&p.problems), cases[i].problems);
        assert_int_equal(p.n_problems, 1);
        sdn_plan_done(&p);
    }
}

static void another_range_or_port_is_a_conflict(void **state)
{
    struct sdn_plan p =
        plan("[" MULTITENANT "]",
             "[{kind: ClusterNetwork, apiVersion: v1, metadata: {name: default}, network: "
             "10.0.0.0/14, serviceNetwork: 172.31.0.0/16, vxlanPort: 4790, pluginName: "
             "redhat/openshift-ovs-multitenant, clusterNetworks: [{CIDR: 10.128.0.0/14, "
             "hostSubnetLength: 8}]}]");
    assert_int_equal(p.n_problems, 3);
    assert_non_null(strstr(strbuf_cstr(&p.problems),
                           "this cluster lacks 10.128.0.0/14 with hostSubnetLength 9"));
    assert_non_null(strstr(strbuf_cstr(&p.problems),
                           "serviceNetwork is \"172.30.0.0/16\" in the import and "
                           "\"172.31.0.0/16\" here"));
    assert_non_null(strstr(strbuf_cstr(&p.problems), "vxlanPort is 4789 in the import"));
    sdn_plan_done(&p);
}

static void a_project_without_pods_gives_its_number_away(void **state)
{
    struct sdn_plan p = plan("[" MULTITENANT ", " NET("red", "10") ", " NET(
                                 "blue", "11") ", " PROJECT("red") ", " PROJECT("blue") "]",
                             "[" MULTITENANT ", " NET("own", "10") ", " PROJECT("own") "]");
    assert_int_equal(p.n_problems, 0);
    assert_string_equal(strbuf_cstr(&p.remarks), "NetNamespace own: moves from VNID 10 to 12\n");
    assert_int_equal(json_get_int_or(json_get(json_at(p.nets, 2), "netid"), 0), 12);
    sdn_plan_done(&p);
}

static void joined_projects_stay_joined(void **state)
{
    struct sdn_plan p = plan("[" MULTITENANT ", " NET("red", "10") ", " NET(
                                 "blue", "10") ", " PROJECT("red") ", " PROJECT("blue") "]",
                             "[" MULTITENANT "]");
    assert_int_equal(p.n_problems, 0);
    assert_int_equal(json_count(p.nets), 2);
    sdn_plan_done(&p);
}

static void firewalls_are_taken_where_the_kind_is_known(void **state)
{
    static const char from[] = "[" MULTITENANT ", " NET("red", "10") ", " PROJECT(
        "red") ", {kind: EgressNetworkPolicy, "
               "apiVersion: v1, metadata: {name: e, namespace: red}, spec: {egress: []}}]";
    static const char to[] = "[" MULTITENANT "]";
    struct sdn_plan p = plan(from, to);
    assert_int_equal(json_count(p.policies), 1);
    assert_string_equal(strbuf_cstr(&p.remarks), "");
    sdn_plan_done(&p);
    p = plan_with(from, to, false);
    assert_int_equal(p.n_problems, 0);
    assert_int_equal(json_count(p.policies), 0);
    assert_string_equal(strbuf_cstr(&p.remarks),
                        "EgressNetworkPolicies are left out (1): this cluster does not know them, "
                        "and their projects reach every address outside\n");
    sdn_plan_done(&p);
}

static void other_kinds_are_not_taken(void **state)
{
    struct sdn_objects o;
    CLEANUP(json_free) struct json *v = NULL;
    static const char text[] = "{kind: HostSubnet, apiVersion: example.com/v1}";
    sdn_objects_init(&o);
    assert_int_equal(yaml_parse(text, strlen(text), &v, NULL), 0);
    assert_false(sdn_objects_add(&o, v));
    sdn_objects_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_keeps_its_numbers),
        cmocka_unit_test(an_import_that_was_made_changes_nothing),
        cmocka_unit_test(conflicts_are_named),
        cmocka_unit_test(another_range_or_port_is_a_conflict),
        cmocka_unit_test(a_project_without_pods_gives_its_number_away),
        cmocka_unit_test(joined_projects_stay_joined),
        cmocka_unit_test(firewalls_are_taken_where_the_kind_is_known),
        cmocka_unit_test(other_kinds_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
