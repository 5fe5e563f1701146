/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/netconf.h"

#include "json_text.h"

static struct netconf conf(void)
{
    struct netconf c;
    netconf_defaults(&c);
    return c;
}

static struct ip4_prefix pfx(const char *s)
{
    struct ip4_prefix p = {0};
    assert_int_equal(prefix_parse(s, &p, NULL), 0);
    return p;
}

static void defaults_are_those_of_the_documents(void **state)
{
    struct netconf c = conf();
    assert_int_equal(netconf_check(&c, NULL), 0);
    CLEANUP(json_free) struct json *o = netconf_object(&c);
    assert_json(o, "{'apiVersion':'network.openshift.io/v1','kind':'ClusterNetwork',"
                   "'metadata':{'name':'default'},'network':'10.128.0.0/14','hostsubnetlength':9,"
                   "'serviceNetwork':'172.30.0.0/16','pluginName':'redhat/openshift-ovs-subnet',"
                   "'clusterNetworks':[{'CIDR':'10.128.0.0/14','hostSubnetLength':9}],"
                   "'vxlanPort':4789,'mtu':1450}");
}

static void impossible_networks_are_refused_by_name(void **state)
{
    struct err e = {0};
    struct netconf c = conf();
    c.service = pfx("10.130.0.0/16");
    assert_int_equal(netconf_check(&c, &e), -EINVAL);
    assert_string_equal(
        e.text, "serviceNetworkCIDR: 10.130.0.0/16: overlaps cluster network 10.128.0.0/14");
    c = conf();
    c.mtu = 575;
    assert_int_equal(netconf_check(&c, &e), -EINVAL);
    assert_string_equal(e.text, "mtu: 575 is not in 576-65536");
    c = conf();
    c.vxlan_port = 0;
    assert_int_equal(netconf_check(&c, &e), -EINVAL);
    assert_string_equal(e.text, "vxlanPort: 0 is not in 1-65535");
    c = conf();
    c.n_ranges = 0;
    assert_int_equal(netconf_check(&c, &e), -EINVAL);
    assert_string_equal(e.text, "clusterNetworks: no cluster network given");
}

static void applying_says_whether_anything_changed(void **state)
{
    struct netconf c = conf();
    CLEANUP(json_free) struct json *o = netconf_object(&c);
    json_set_string(json_get(o, "metadata"), "uid", "u");
    assert_false(netconf_apply(&c, o));
    c.vxlan_port = 4790; /* The original did not notice a change of the port alone. */
    assert_true(netconf_apply(&c, o));
    assert_false(netconf_apply(&c, o));
    c.ranges[1] = (struct subnet_range){pfx("10.64.0.0/16"), 8};
    c.n_ranges = 2;
    assert_true(netconf_apply(&c, o));
    assert_json(json_get(o, "clusterNetworks"), "[{'CIDR':'10.128.0.0/14','hostSubnetLength':9},"
                                                "{'CIDR':'10.64.0.0/16','hostSubnetLength':8}]");
    assert_string_equal(json_path_string(o, "metadata", "uid", NULL), "u");
}

static void service_network_cannot_change(void **state)
{
    struct netconf c = conf();
    CLEANUP(json_free) struct json *current = from("{'serviceNetwork':'172.31.0.0/16'}");
    struct err e = {0};
    assert_int_equal(netconf_check_change(&c, current, NULL, NULL, &e), -EINVAL);
    assert_non_null(strstr(e.text, "172.31.0.0/16"));
    assert_non_null(strstr(e.text, "172.30.0.0/16"));
}

static void changed_ranges_must_hold_what_is_there(void **state)
{
    struct netconf c = conf();
    CLEANUP(json_free)
    struct json *current = from("{'serviceNetwork':'172.30.0.0/16','clusterNetworks':[{'CIDR':"
                                "'10.128.0.0/14','hostSubnetLength':9}]}");
    CLEANUP(json_free)
    struct json *subnets = from("[{'metadata':{'name':'a'},'subnet':'10.128.0.0/23'},"
                                "{'metadata':{'name':'ghost'},'subnet':''},"
                                "{'metadata':{'name':'small'},'subnet':'10.131.255.192/26'}]");
    CLEANUP(json_free)
    struct json *pods = from(
        "[{'metadata':{'namespace':'red','name':'p'},'spec':{},'status':{'podIP':'10.128.0.2'}},"
        "{'metadata':{'namespace':'red','name':'h'},'spec':{'hostNetwork':true},"
        "'status':{'podIP':'192.168.0.1'}},"
        /* No address that the network gave out: its node's word must not keep the
         * master from starting. */
        "{'metadata':{'namespace':'red','name':'lie'},'spec':{},'status':{'podIP':'203.0.113.1'}},"
        "{'metadata':{'namespace':'red','name':'new'}}]");
    struct err e = {0};
    assert_int_equal(netconf_check_change(&c, current, subnets, pods, &e), 0);
    c.ranges[0].cidr = pfx("10.128.0.0/16");
    assert_int_equal(netconf_check_change(&c, current, subnets, pods, &e), -EINVAL);
    assert_string_equal(e.text, "clusterNetworks: these are in use and would lie outside: "
                                "hostsubnet small (10.131.255.192/26)");
    c.ranges[0].cidr = pfx("10.192.0.0/14");
    assert_int_equal(netconf_check_change(&c, current, subnets, pods, &e), -EINVAL);
    assert_string_equal(e.text,
                        "clusterNetworks: these are in use and would lie outside: "
                        "hostsubnet a (10.128.0.0/23), hostsubnet small (10.131.255.192/26), "
                        "pod red/p (10.128.0.2)");
}

static void at_most_ten_offenders_are_listed(void **state)
{
    struct netconf c = conf();
    CLEANUP(json_free) struct json *subnets = json_array();
    for (int i = 0; i < 12; i++) {
        CLEANUP_FREE char *text =
            xasprintf("{'metadata':{'name':'n%d'},'subnet':'10.0.%d.0/24'}", i, i);
        json_append(subnets, from(text));
        struct err e = {0};
        assert_int_equal(netconf_check_change(&c, NULL, subnets, NULL, &e), -EINVAL);
        assert_int_equal(strstr(e.text, "n9") != NULL, i >= 9);
        assert_null(strstr(e.text, "n10"));
        assert_int_equal(strstr(e.text, "and more") != NULL, i >= 10);
    }
}

static void overlap_with_the_host_is_found(void **state)
{
    struct netconf c = conf();
    struct netconf_host_net nets[] = {{"lo", pfx("127.0.0.0/8")},
                                      {"eth0", pfx("192.168.1.0/24")},
                                      {"tun0", pfx("10.128.0.0/23")},
                                      {"br0", pfx("10.128.0.0/14")}};
    struct err e = {0};
    assert_int_equal(netconf_check_host(&c, nets, 4, &e), 0);
    nets[1].net = pfx("10.0.0.0/8");
    assert_int_equal(netconf_check_host(&c, nets, 4, &e), -EADDRINUSE);
    assert_string_equal(e.text, "cluster network 10.128.0.0/14 overlaps network 10.0.0.0/8 of this "
                                "host's interface eth0");
    nets[1].net = pfx("172.30.5.0/24");
    assert_int_equal(netconf_check_host(&c, nets, 4, &e), -EADDRINUSE);
    assert_string_equal(e.text, "service network 172.30.0.0/16 overlaps network 172.30.5.0/24 of "
                                "this host's interface eth0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_documents),
        cmocka_unit_test(impossible_networks_are_refused_by_name),
        cmocka_unit_test(applying_says_whether_anything_changed),
        cmocka_unit_test(service_network_cannot_change),
        cmocka_unit_test(changed_ranges_must_hold_what_is_there),
        cmocka_unit_test(at_most_ten_offenders_are_listed),
        cmocka_unit_test(overlap_with_the_host_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
