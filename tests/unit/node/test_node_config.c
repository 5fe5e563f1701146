/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "datapath/ops.h"
#include "net/loop/config_file.h"
#include "node/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int parse(struct node_config *c, const char *text, const char *dir, struct err *e)
{
    return node_config_parse(c, text, strlen(text), dir, e);
}

/* As the datapath reads it. */
static const char *setting(const struct node_config *c, const char *key)
{
    struct datapath_config dc = {.kind = c->datapath, .settings = &c->datapath_settings};
    return datapath_get_setting(&dc, key);
}

static void a_whole_file_is_read(void **state)
{
    (void) state;
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    int r = parse(&c,
                  "apiVersion: v1\nkind: NodeConfig\nnodeName: node1.example\nnodeIP: 10.245.2.2\n"
                  "masterKubeConfig: admin.kubeconfig\n"
                  "networkConfig:\n  networkPluginName: redhat/openshift-ovs-subnet\n  mtu: 1400\n"
                  "  datapath: ebpf\n"
                  "runDir: /run/x\ncniConfDir: /tmp/net.d\ncniConfName: 10-x.conf\n"
                  "cniPlugins: [bandwidth, portmap]\n"
                  "ovs:\n  database: /run/o/db.sock\n  runDir: /run/o\n  bridge: br7\n"
                  "  datapathType: netdev\nlogLevel: info,ovs=debug\n",
                  "/etc/tenet", &e);
    assert_string_equal(e.text, "");
    assert_int_equal(r, 0);
    assert_string_equal(c.node_name, "node1.example");
    assert_int_equal(c.node_ip, 0x0af50202);
    assert_string_equal(c.kubeconfig, "/etc/tenet/admin.kubeconfig");
    assert_string_equal(c.plugin_name, "redhat/openshift-ovs-subnet");
    assert_int_equal(c.mtu, 1400);
    assert_string_equal(c.datapath, "ebpf");
    assert_string_equal(c.run_dir, "/run/x");
    assert_string_equal(c.cni_conf_dir, "/tmp/net.d");
    assert_string_equal(c.cni_conf_name, "10-x.conf");
    assert_true(c.chain_portmap && c.chain_bandwidth);
    assert_string_equal(setting(&c, "ovs.database"), "/run/o/db.sock");
    assert_string_equal(setting(&c, "ovs.runDir"), "/run/o");
    assert_string_equal(setting(&c, "ovs.bridge"), "br7");
    assert_string_equal(setting(&c, "ovs.datapathType"), "netdev");
    assert_int_equal(node_config_finish(&c, &e), 0);
}

static void an_empty_file_gets_the_defaults(void **state)
{
    (void) state;
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    assert_int_equal(parse(&c, "", NULL, &e), 0);
    assert_int_equal(options_set_path(&node_options, &c, "nodeName", "n1", &e), 0);
    assert_int_equal(node_config_finish(&c, &e), 0);
    assert_string_equal(c.run_dir, "/run/tenet/node");
    assert_string_equal(c.cni_conf_dir, "/etc/cni/net.d");
    assert_string_equal(c.cni_conf_name, "80-openshift-network.conf");
    assert_string_equal(setting(&c, "ovs.database"), "/run/openvswitch/db.sock");
    assert_string_equal(setting(&c, "ovs.runDir"), "/run/openvswitch");
    assert_string_equal(setting(&c, "ovs.bridge"), "br0");
    assert_string_equal(c.datapath, "ovs");
    assert_null(setting(&c, "ovs.datapathType"));
    assert_false(c.chain_portmap || c.chain_bandwidth);
    assert_null(c.plugin_name);
    assert_int_equal(c.mtu, 0);
    assert_int_equal(c.node_ip, 0);
}

static void what_is_wrong_is_named_by_its_key(void **state)
{
    (void) state;
    static const struct {
        const char *text, *needle;
    } cases[] = {
        {"a: [", "line"},
        {"[]", "mapping"},
        {"text", "mapping"},
        {"nosuch: 1", "nosuch: "},
        {"networkConfig:\n  nosuch: 1", "networkConfig.nosuch: "},
        {"networkConfig: 3", "networkConfig: "},
        {"ovs: []", "ovs: "},
        {"nodeName: {a: b}", "nodeName: "},
        {"nodeName: [x]", "nodeName: "},
        {"nodeName: true", "nodeName: "},
        {"nodeName: \"\"", "nodeName: "},
        {"nodeName: Node_1", "nodeName: \"Node_1\""},
        {"nodeIP: 300.1.1.1", "nodeIP: \"300.1.1.1\""},
        {"nodeIP: 127.0.0.1", "nodeIP: 127.0.0.1"},
        {"nodeIP: 224.0.0.1", "nodeIP: 224.0.0.1"},
        {"nodeIP: 0.0.0.0", "nodeIP: 0.0.0.0"},
        {"networkConfig:\n  networkPluginName: calico", "networkConfig.networkPluginName: "},
        {"networkConfig:\n  mtu: 70000", "networkConfig.mtu: 70000 is not in 576-65535"},
        {"networkConfig:\n  mtu: 575", "networkConfig.mtu: "},
        {"networkConfig:\n  mtu: x", "networkConfig.mtu: "},
        {"cniConfName: a/b.conf", "cniConfName: "},
        {"cniConfName: b.json", "cniConfName: "},
        {"cniConfName: .conf", "cniConfName: "},
        {"cniPlugins: [portmap, tuning]", "cniPlugins: \"tuning\" cannot be chained"},
        {"cniPlugins: portmap,", "cniPlugins: "},
        {"cniPlugins: [1]", "cniPlugins[0]: must be a string without commas"},
        {"cniPlugins: {a: b}", "cniPlugins: "},
        {"runDir: x", "runDir: \"x\" is not an absolute path"},
        {"runDir: /0123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789",
         "runDir: "},
        {"networkConfig:\n  datapath: dpdk", "networkConfig.datapath: \"dpdk\""},
        {"ebpf:\n  maxEntries: 0", "ebpf.maxEntries: 0 is not in 1-4294967295"},
        {"ebpf:\n  maxEntries: x", "ebpf.maxEntries: "},
        {"ebpf:\n  without: tcx,jit",
         "ebpf.without: \"jit\" is none of redirect_peer, scrub, tcx, ringbuf, encap"},
        {"ovs:\n  bridge: a-name-that-is-too-long", "ovs.bridge: "},
        {"ovs:\n  bridge: a/b", "ovs.bridge: "},
        {"hostgw:\n  subnetFile: 3", "hostgw.subnetFile: "},
        {"ovs:\n  datapathType: dpdk", "ovs.datapathType: \"dpdk\""},
        {"metricsBindAddress: 9101",
         "metricsBindAddress: \"9101\" is not an IPv4 address and port such as 127.0.0.1:9101"},
        {"metricsBindAddress: example:9101", "metricsBindAddress: "},
        {"metricsBindAddress: 127.0.0.1:0", "metricsBindAddress: "},
        {"dnsDomain: a..b", "dnsDomain: \"a..b\""},
        {"dnsBindAddress: here", "dnsBindAddress: \"here\" is neither ADDRESS[:PORT] nor none"},
        {"dnsBindAddress: 10.0.0.1:0", "dnsBindAddress: "},
        {"dnsBindAddress: fd00::1", "dnsBindAddress: "},
        {"dnsIP: 10.0.0.1:53", "dnsIP: "},
        {"dnsNameservers: [10.0.0.1, x]", "dnsNameservers: \"x\""},
        {"dnsIsolateProjects: maybe", "dnsIsolateProjects: \"maybe\" is neither true nor false"},
        {"dnsIsolateProjects: 1", "dnsIsolateProjects: \"1\" is neither true nor false"},
        {"masterServers: \"10.0.0.1:8443\"", "masterServers: \"10.0.0.1:8443\""},
        {"masterServers: \"https://10.0.0.1:8443,10.0.0.2\"", "masterServers: "},
        {"kind: MasterConfig", "kind: "},
        {"apiVersion: v2", "apiVersion: "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(node_config_done) struct node_config c;
        struct err e = {0};
        node_config_init(&c);
        print_message("%s\n", cases[i].text);
        assert_int_equal(parse(&c, cases[i].text, NULL, &e), -EINVAL);
        assert_non_null(strstr(e.text, cases[i].needle));
    }
}

static void options_and_keys_are_the_same_set(void **state)
{
    (void) state;
    static const struct {
        const char *key, *value;
    } good[] = {
        {"nodeName", "a"},
        {"nodeIP", "10.0.0.1"},
        {"masterKubeConfig", "k"},
        {"masterServers", "https://10.0.0.1:8443,http://10.0.0.2:8443"},
        {"bootstrapKubeConfig", "b"},
        {"networkConfig.networkPluginName", "ovs-subnet"},
        {"networkConfig.mtu", "1450"},
        {"runDir", "/r"},
        {"cniConfDir", "/c"},
        {"cniConfName", "a.conf"},
        {"cniPlugins", "portmap"},
        {"networkConfig.datapath", "ebpf"},
        {"ebpf.without", "tcx,redirect_peer"},
        {"ebpf.maxEntries", "9"},
        {"ovs.database", "/d"},
        {"ovs.runDir", "/o"},
        {"hostgw.subnetFile", "/run/flannel/subnet.env"},
        {"ovs.bridge", "br0"},
        {"ovs.datapathType", "system"},
        {"proxyArguments.proxy-mode", "iptables"},
        {"metricsBindAddress", "127.0.0.1:9101"},
        {"logFormat", "json"},
        {"logLevel", "debug"},
        {"dnsDomain", "cluster.example"},
        {"dnsBindAddress", "10.128.0.1:53"},
        {"dnsIP", "10.128.0.1"},
        {"dnsNameservers", "10.0.0.2,[fd00::1]:5353"},
        {"dnsRecursiveResolvConf", "/r"},
        {"dnsIsolateProjects", "true"},
        {"hostgw.subnetFile", "/run/flannel/subnet.env"},
    };
    CLEANUP(node_config_done) struct node_config c;
    node_config_init(&c);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        assert_int_equal(options_set_path(&node_options, &c, good[i].key, good[i].value, NULL), 0);
    }
    for (size_t i = 0; i < node_options.n; i++) {
        n += node_options.rows[i].path != NULL;
        assert_non_null(node_options.rows[i].flag);
    }
    assert_int_equal(n, ARRAY_SIZE(good));
    /* Flags of "openshift start node", which have no keys of their own. */
    assert_int_equal(node_options.n - n, 2);
    assert_int_equal(options_set_path(&node_options, &c, "ovs", "x", NULL), -EINVAL);
}

static void projects_are_isolated_in_dns_when_it_is_said(void **state)
{
    static const struct {
        const char *text;
        bool want;
    } cases[] = {{"nodeName: a", false},
                 {"dnsIsolateProjects: true", true},
                 {"dnsIsolateProjects: 'true'", true},
                 {"dnsIsolateProjects: false", false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(node_config_done) struct node_config c;
        struct err e = {0};
        node_config_init(&c);
        assert_int_equal(parse(&c, cases[i].text, NULL, &e), 0);
        assert_int_equal(c.dns_isolate_projects, cases[i].want);
    }
}

static void name_servers_may_be_a_list(void **state)
{
    (void) state;
    static const struct {
        const char *text, *value;
    } cases[] = {
        {"dnsNameservers: [10.0.0.2, '10.0.0.3:5353']", "10.0.0.2,10.0.0.3:5353"},
        {"dnsNameservers: 10.0.0.2", "10.0.0.2"},
        {"dnsNameservers: none", "none"},
        {"dnsNameservers: []", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(node_config_done) struct node_config c;
        node_config_init(&c);
        assert_int_equal(parse(&c, cases[i].text, NULL, NULL), 0);
        assert_true(streq_null(c.dns_nameservers, cases[i].value));
    }
}

static void a_wrong_log_level_is_named(void **state)
{
    (void) state;
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    assert_int_equal(options_set_path(&node_options, &c, "logLevel", "info,ovs=loud", NULL), 0);
    assert_int_equal(config_file_set_log(c.log_level, c.log_format, &e), -EINVAL);
    assert_non_null(strstr(e.text, "logLevel: \"ovs=loud\""));
    assert_int_equal(options_set_path(&node_options, &c, "logLevel", "error", NULL), 0);
    assert_int_equal(config_file_set_log(c.log_level, c.log_format, &e), 0);
}

static void an_absent_file_is_named(void **state)
{
    (void) state;
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    assert_int_equal(node_config_load(&c, "/nonexistent/node-config.yaml", &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/node-config.yaml"));
}

/* The agent of the network and the kubelet read the same file. */
#define FILE_OF_OPENSHIFT "tests/integration/openshift/node-config.yaml"

static void a_file_of_openshift_is_read_with_warnings_only(void **state)
{
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    if (node_config_load(&c, FILE_OF_OPENSHIFT, &e) < 0 || node_config_finish(&c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_string_equal(c.node_name, "node1.example.com");
    assert_true(*c.kubeconfig == '/');
    assert_true(c.findings.n > 5);
    for (const struct option_alias *a = node_options.alias; a->path; a++) {
        assert_non_null(options_find(&node_options, a->to));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_is_read),
        cmocka_unit_test(an_empty_file_gets_the_defaults),
        cmocka_unit_test(what_is_wrong_is_named_by_its_key),
        cmocka_unit_test(options_and_keys_are_the_same_set),
        cmocka_unit_test(projects_are_isolated_in_dns_when_it_is_said),
        cmocka_unit_test(name_servers_may_be_a_list),
        cmocka_unit_test(a_wrong_log_level_is_named),
        cmocka_unit_test(an_absent_file_is_named),
        cmocka_unit_test(a_file_of_openshift_is_read_with_warnings_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
