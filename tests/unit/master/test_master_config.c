/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_config.h"

#include "json_text.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

static int read_yaml(struct master_config *c, const char *text, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    if (yaml_parse(text, strlen(text), &v, e) < 0) {
        fail_msg("%s", e->text);
    }
    int r = master_config_read(c, v, NULL, e);
    return r < 0 ? r : master_config_check(c, MASTER_WHOLE, e);
}

static void empty_file_means_the_defaults(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    assert_int_equal(read_yaml(&c, "", &e), 0);
    assert_string_equal(c.bind_address, "127.0.0.1:8443");
    assert_string_equal(c.storage_backend, "sqlite");
    assert_string_equal(c.storage_path, "/var/lib/tenet/registry.db");
    assert_null(c.storage_endpoints);
    assert_int_equal(c.network.n_ranges, 1);
    assert_string_equal(PREFIX_TEXT(c.network.ranges[0].cidr), "10.128.0.0/14");
    assert_int_equal(c.network.ranges[0].host_bits, 9);
    assert_string_equal(PREFIX_TEXT(c.network.service), "172.30.0.0/16");
    assert_int_equal(c.network.plugin, SDN_SUBNET);
    assert_int_equal(c.network.vxlan_port, 4789);
    assert_int_equal(c.network.mtu, 1450);
    assert_true(master_config_is_loopback(&c));
}

/* Tests run in the project's folder. */
static void sample_file_has_the_defaults(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    __attribute__((cleanup(master_config_donep))) struct master_config dflt;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct err e = {0};
    master_config_init(&c);
    master_config_init(&dflt);
    assert_int_equal(file_read("packaging/config/master-config.yaml", 65536, &text, &e), 0);
    assert_int_equal(read_yaml(&c, strbuf_cstr(&text), &e), 0);
    CLEANUP(json_free) struct json *network = netconf_object(&c.network);
    CLEANUP(json_free) struct json *expected = netconf_object(&dflt.network);
    assert_true(json_equal(network, expected));
    assert_string_equal(c.bind_address, dflt.bind_address);
    assert_string_equal(c.storage_backend, dflt.storage_backend);
    assert_string_equal(c.storage_path, dflt.storage_path);
    assert_null(c.log_level);
}

static struct service_ranges ranges_of(const struct master_config *c, const char *host_net)
{
    struct netconf_host_net net = {.ifname = "eth0"};
    assert_int_equal(prefix_parse(host_net, &net.net, NULL), 0);
    return service_config_ranges(&c->services, &c->network, &net, 1);
}

static void what_decides_about_addresses_is_read(void **state)
{
    static const struct {
        const char *text, *error; /* Part of it; NULL: good. */
    } cases[] = {
        {"networkConfig: {foreignPodNetworkCIDRs: [10.9.0.0/16, 10.10.0.0/24]}", NULL},
        {"networkConfig: {foreignPodNetworkCIDRs: []}", NULL},
        {"networkConfig: {foreignPodNetworkCIDRs: 10.9.0.0/16}",
         "networkConfig.foreignPodNetworkCIDRs: must be a list of CIDRs"},
        {"networkConfig: {foreignPodNetworkCIDRs: [10.9.0.1/16]}",
         "networkConfig.foreignPodNetworkCIDRs: "},
        {"networkConfig: {foreignPodNetworkCIDRs: [10.9.0.1]}",
         "networkConfig.foreignPodNetworkCIDRs: "},
        {"networkConfig: {foreignPodNetworkCIDRs: [10.129.0.0/24]}",
         "networkConfig: foreignPodNetworkCIDRs: 10.129.0.0/24: overlaps cluster network "
         "10.128.0.0/14"},
        {"networkConfig: {foreignPodNetworkCIDRs: [172.30.1.0/24]}",
         "networkConfig: foreignPodNetworkCIDRs: 172.30.1.0/24: overlaps service network "
         "172.30.0.0/16"},
        {"networkConfig: {foreignPodNetworkCIDRs: [10.9.0.0/16, 10.9.1.0/24]}",
         "networkConfig: foreignPodNetworkCIDRs: 10.9.1.0/24: overlaps 10.9.0.0/16"},
        {"networkConfig: {reservedAddresses: [192.0.2.1, 198.51.100.0/24]}", NULL},
        {"networkConfig: {reservedAddresses: [router]}",
         "networkConfig.reservedAddresses: \"router\" is neither an IPv4 address nor a network"},
        {"networkConfig: {reservedAddresses: [1]}",
         "networkConfig.reservedAddresses[0]: must be a string without commas"},
        {"kubernetesMasterConfig: {masterNodes: [m1, m2.example.com]}", NULL},
        {"kubernetesMasterConfig: {masterNodes: []}", NULL},
        {"kubernetesMasterConfig: {masterNodes: [M1]}",
         "kubernetesMasterConfig.masterNodes: \"M1\" cannot be the name of a node"},
        {"kubernetesMasterConfig: {masterNodes: m1}",
         "kubernetesMasterConfig.masterNodes: must be a list of names of nodes"},
        {"dnsConfig: {isolateProjects: true}", NULL},
        {"dnsConfig: {isolateProjects: 1}",
         "dnsConfig.isolateProjects: \"1\" is neither true nor false"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        __attribute__((cleanup(master_config_donep))) struct master_config c;
        struct err e = {0};
        master_config_init(&c);
        int r = read_yaml(&c, cases[i].text, &e);
        if (cases[i].error ? r != -EINVAL || !strstr(e.text, cases[i].error) : r != 0) {
            fail_msg("%s: %d %s", cases[i].text, r, e.text);
        }
    }
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct err e = {0};
    master_config_init(&c);
    assert_null(c.master_nodes); /* Not given: the node of this host's name. */
    assert_int_equal(
        options_set_flag(&master_options, &c, "foreign-pod-network", "10.9.0.0/16", &e), 0);
    assert_int_equal(
        options_set_flag(&master_options, &c, "reserved-address", "192.0.2.1,192.0.2.2", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "master-node", "m1,m2", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "dns-isolate-projects", "true", &e), 0);
    assert_int_equal(c.network.foreign.n, 1);
    assert_int_equal(c.reserved.n, 2);
    assert_string_equal(c.master_nodes[1], "m2");
    assert_null(c.master_nodes[2]);
    assert_true(c.dns.isolate);
    assert_int_equal(options_set_flag(&master_options, &c, "master-node", "", &e), 0);
    assert_null(c.master_nodes[0]);
    assert_int_equal(options_set_flag(&master_options, &c, "master-node", "a b", &e), -EINVAL);
    assert_int_equal(options_set_flag(&master_options, &c, "dns-isolate-projects", "yes", &e),
                     -EINVAL);
    assert_string_equal(e.text, "--dns-isolate-projects: \"yes\" is neither true nor false");
    /* The ClusterNetwork tells foreign ranges to nodes, until there are none any more. */
    CLEANUP(json_free) struct json *o = netconf_object(&c.network);
    struct address_ranges r;
    address_ranges_of_network(o, &r);
    assert_int_equal(r.n, 1);
    c.network.foreign.n = 0;
    assert_true(netconf_apply(&c.network, o));
    assert_false(netconf_apply(&c.network, o));
    address_ranges_of_network(o, &r);
    assert_int_equal(r.n, 0);
}

static void ranges_of_services_are_read(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct err e = {0};
    master_config_init(&c);
    struct service_ranges r = ranges_of(&c, "192.0.2.0/24");
    assert_string_equal(PREFIX_TEXT(r.services), "172.30.0.0/16");
    assert_string_equal(PREFIX_TEXT(r.ingress), "172.29.0.0/16");
    assert_true(r.has_ingress && r.first_port == 30000 && r.last_port == 32767);
    assert_int_equal(r.n_external, 0);
    assert_int_equal(r.n_pods, 1);
    assert_int_equal(read_yaml(&c,
                               "networkConfig:\n"
                               "  serviceNetworkCIDR: 172.28.0.0/20\n"
                               "  externalIPNetworkCIDRs: [80.0.0.0/8, '!80.1.0.0/16']\n"
                               "  ingressIPNetworkCIDR: 172.27.0.0/24\n"
                               "kubernetesMasterConfig:\n"
                               "  servicesNodePortRange: 31000-31099\n"
                               "  masterIP: 192.0.2.9\n",
                               &e),
                     0);
    r = ranges_of(&c, "192.0.2.0/24");
    assert_string_equal(PREFIX_TEXT(r.services), "172.28.0.0/20");
    assert_string_equal(PREFIX_TEXT(r.ingress), "172.27.0.0/24");
    assert_true(r.first_port == 31000 && r.last_port == 31099);
    assert_true(r.n_external == 2 && !r.external[0].rejected && r.external[1].rejected);
    assert_int_equal(service_config_master_ip(&c.services, "127.0.0.1:1", NULL, 0), 0xc0000209);
}

/* As the documents say: the default is used unless the environment uses that range. */
static void the_default_ingress_range_gives_way_and_one_of_ones_own_does_not(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct err e = {0};
    struct netconf_host_net net = {.ifname = "eth0", .net = {0xac1d0500, 24}}; /* 172.29.5.0 */
    master_config_init(&c);
    assert_false(ranges_of(&c, "172.29.5.0/24").has_ingress);
    assert_int_equal(service_config_check(&c.services, &c.network, &net, 1, &e), 0);
    assert_int_equal(read_yaml(&c, "networkConfig: {clusterNetworkCIDR: 172.29.0.0/16}", &e), 0);
    assert_false(ranges_of(&c, "192.0.2.0/24").has_ingress);
    assert_int_equal(read_yaml(&c, "networkConfig: {clusterNetworkCIDR: 10.128.0.0/14}", &e), 0);
    assert_int_equal(service_config_set_ingress(&c.services, "172.29.0.0/16", &e), 0);
    assert_int_equal(service_config_check(&c.services, &c.network, &net, 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "eth0"));
    assert_int_equal(service_config_set_ingress(&c.services, "", &e), 0);
    assert_int_equal(service_config_check(&c.services, &c.network, &net, 1, &e), 0);
}

static void the_masters_address_is_that_which_it_listens_on(void **state)
{
    struct service_config c;
    const struct netconf_host_net nets[] = {{.ifname = "lo", .addr = 0x7f000001},
                                            {.ifname = "tun0", .addr = 0x0a800001},
                                            {.ifname = "eth0", .addr = 0xc0000201}};
    service_config_init(&c);
    assert_int_equal(service_config_master_ip(&c, "192.0.2.7:8443", nets, 3), 0xc0000207);
    assert_int_equal(service_config_master_ip(&c, "0.0.0.0:8443", nets, 3), 0xc0000201);
    assert_int_equal(service_config_master_ip(&c, "127.0.0.1:8443", nets, 3), 0);
    assert_int_equal(service_config_master_ip(&c, "localhost:8443", nets, 3), 0);
}

static void every_key_is_read(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    int r = read_yaml(&c,
                      "apiVersion: v1\n"
                      "kind: MasterConfig\n"
                      "networkConfig:\n"
                      "  clusterNetworks:\n"
                      "  - cidr: 10.1.0.0/16\n"
                      "    hostSubnetLength: 8\n"
                      "  - {cidr: 10.64.0.0/12, hostSubnetLength: 20}\n"
                      "  serviceNetworkCIDR: 10.200.0.0/16\n"
                      "  networkPluginName: redhat/openshift-ovs-multitenant\n"
                      "  vxlanPort: 4790\n"
                      "  mtu: 8950\n"
                      "servingInfo:\n"
                      "  bindAddress: 0.0.0.0:443\n"
                      "storage:\n"
                      "  backend: etcd\n"
                      "  path: /x\n"
                      "  reserveMB: 3\n"
                      "  endpoints: http://127.0.0.1:2379\n"
                      "dnsConfig:\n"
                      "  bindAddress: 10.0.0.1:8053\n"
                      "  bindNetwork: tcp4\n"
                      "  allowRecursiveQueries: true\n"
                      "  domain: c.example\n"
                      "  nameservers: [10.0.0.2, '10.0.0.3:5353']\n"
                      "limits:\n"
                      "  maxConnections: 7\n"
                      "  shutdownDelaySeconds: 3\n"
                      "logLevel: info,subnets=debug\n",
                      &e);
    assert_string_equal(e.text, "");
    assert_int_equal(r, 0);
    assert_int_equal(c.network.n_ranges, 2);
    assert_string_equal(PREFIX_TEXT(c.network.ranges[0].cidr), "10.1.0.0/16");
    assert_int_equal(c.network.ranges[1].host_bits, 20);
    assert_string_equal(PREFIX_TEXT(c.network.service), "10.200.0.0/16");
    assert_int_equal(c.network.plugin, SDN_MULTITENANT);
    assert_int_equal(c.network.vxlan_port, 4790);
    assert_int_equal(c.network.mtu, 8950);
    assert_string_equal(c.bind_address, "0.0.0.0:443");
    assert_false(master_config_is_loopback(&c));
    assert_string_equal(c.storage_backend, "etcd");
    assert_string_equal(c.storage_path, "/x");
    assert_int_equal(c.storage_reserve_mb, 3);
    assert_string_equal(c.storage_endpoints, "http://127.0.0.1:2379");
    assert_string_equal(c.log_level, "info,subnets=debug");
    assert_string_equal(c.dns.bind_address, "10.0.0.1:8053");
    assert_true(c.dns.recursive);
    assert_string_equal(c.dns.domain, "c.example");
    assert_string_equal(c.dns.nameservers, "10.0.0.2,10.0.0.3:5353");
    assert_int_equal(c.limits.values[LIMIT_CONNS], 7);
    assert_int_equal(c.limits.values[LIMIT_SHUTDOWN_DELAY_S], 3);
    assert_int_equal(c.limits.values[LIMIT_INFLIGHT], 400);
}

static void openshifts_names_of_limits_are_known(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    assert_int_equal(
        read_yaml(&c, "servingInfo: {maxRequestsInFlight: 500, requestTimeoutSeconds: 3600}", &e),
        0);
    assert_int_equal(c.limits.values[LIMIT_INFLIGHT], 500);
    assert_int_equal(c.limits.values[LIMIT_WATCH_S], 3600);
    assert_int_equal(
        read_yaml(&c, "servingInfo: {maxRequestsInFlight: 0, requestTimeoutSeconds: -1}", &e), 0);
    assert_int_equal(c.limits.values[LIMIT_INFLIGHT], 1000000);
    assert_int_equal(c.limits.values[LIMIT_WATCH_S], 0);
}

static void etcd_is_where_openshift_has_it(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    int r = read_yaml(&c,
                      "etcdClientInfo:\n"
                      "  urls: ['https://etcd1:2379', 'https://etcd2:2379']\n"
                      "  ca: ca.crt\n"
                      "  certFile: etcd.crt\n"
                      "  keyFile: etcd.key\n"
                      "controllerLeaseTTL: 30\n",
                      &e);
    assert_string_equal(e.text, "");
    assert_int_equal(r, 0);
    assert_int_equal(master_config_check(&c, MASTER_WHOLE, &e), 0);
    assert_string_equal(c.storage_backend, "etcd");
    assert_string_equal(c.storage_endpoints, "https://etcd1:2379,https://etcd2:2379");
    assert_string_equal(c.etcd_ca, "ca.crt");
    assert_string_equal(c.etcd_cert, "etcd.crt");
    assert_string_equal(c.etcd_key, "etcd.key");
    assert_int_equal(c.lease_ttl_s, 30);
    static const struct {
        const char *yaml, *text;
    } bad[] = {
        {"etcdClientInfo: {urls: 'https://etcd1:2379'}", "etcdClientInfo.urls"},
        {"etcdClientInfo: {urls: ['a,b']}", "etcdClientInfo.urls"},
        {"etcdClientInfo: {urls: []}", "etcdClientInfo.urls"},
        {"etcdClientInfo: {cert: x}", "etcdClientInfo.cert"},
        {"controllerLeaseTTL: 2", "controllerLeaseTTL"},
        {"controllerLeaseTTL: soon", "controllerLeaseTTL"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        __attribute__((cleanup(master_config_donep))) struct master_config b;
        master_config_init(&b);
        if (read_yaml(&b, bad[i].yaml, &e) != -EINVAL || !strstr(e.text, bad[i].text)) {
            fail_msg("%s: %s", bad[i].yaml, e.text);
        }
    }
    free(c.etcd_key);
    c.etcd_key = NULL;
    assert_int_equal(master_config_check(&c, MASTER_WHOLE, &e), -EINVAL);
    assert_non_null(strstr(e.text, "etcdClientInfo.certFile"));
}

static void tls_is_off_unless_it_is_asked_for(void **state)
{
    static const struct {
        const char *yaml;
        enum master_tls_mode mode;
        bool always, anonymous;
    } cases[] = {
        {"", MASTER_TLS_OFF, true, true},
        {"servingInfo: {tls: off}", MASTER_TLS_OFF, true, true},
        {"servingInfo: {tls: auto}", MASTER_TLS_AUTO, false, true},
        {"servingInfo: {pkiDir: /x}", MASTER_TLS_AUTO, false, true},
        {"servingInfo: {pkiDir: /x, tls: 'off'}", MASTER_TLS_OFF, true, true},
        {"{servingInfo: {tls: auto}, authorization: {mode: AlwaysAllow}}", MASTER_TLS_AUTO, true,
         false},
        {"{servingInfo: {tls: auto}, authorization: {mode: AlwaysAllow, anonymous: true}}",
         MASTER_TLS_AUTO, true, true},
        {"{servingInfo: {tls: auto}, authorization: {anonymous: false}}", MASTER_TLS_AUTO, false,
         false},
        {"servingInfo: {certFile: a, keyFile: b}", MASTER_TLS_FILES, false, true},
        {"servingInfo: {certFile: a, keyFile: b, clientCA: c}", MASTER_TLS_FILES, false, true},
        {"servingInfo: {certFile: a, keyFile: b, tls: off}", MASTER_TLS_OFF, true, true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        __attribute__((cleanup(master_config_donep))) struct master_config c;
        master_config_init(&c);
        struct err e = {0};
        if (read_yaml(&c, cases[i].yaml, &e) < 0 || master_config_tls(&c) != cases[i].mode ||
            master_config_always_allows(&c) != cases[i].always ||
            master_config_anonymous(&c) != cases[i].anonymous) {
            fail_msg("%s: %s", cases[i].yaml, e.text);
        }
    }
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    assert_int_equal(read_yaml(&c,
                               "servingInfo: {certFile: a, keyFile: b, clientCA: c,\n"
                               "  names: [api.example, 192.0.2.1]}",
                               &e),
                     0);
    assert_string_equal(c.cert_file, "a");
    assert_string_equal(c.key_file, "b");
    assert_string_equal(c.client_ca, "c");
    assert_string_equal(c.names[1], "192.0.2.1");
    assert_null(c.names[2]);
}

static void the_older_pair_of_keys_works(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    assert_int_equal(
        read_yaml(&c, "networkConfig: {clusterNetworkCIDR: 10.1.0.0/16, hostSubnetLength: 8}", &e),
        0);
    assert_int_equal(c.network.n_ranges, 1);
    assert_string_equal(PREFIX_TEXT(c.network.ranges[0].cidr), "10.1.0.0/16");
    assert_int_equal(c.network.ranges[0].host_bits, 8);
}

static void wrong_files_are_refused_with_the_key(void **state)
{
    const struct {
        const char *yaml, *text;
    } bad[] = {
        {"nosuch: 1", "nosuch: unknown key"},
        {"servingInfo: {tls: on}", "servingInfo.tls: must be a string"},
        {"servingInfo: {tls: 'yes'}", "servingInfo.tls: \"yes\" is not one of auto, off"},
        {"servingInfo: {certFile: a}", "servingInfo.keyFile: must be given with certFile"},
        {"servingInfo: {keyFile: a}", "servingInfo.certFile: must be given with keyFile"},
        {"servingInfo: {clientCA: a}",
         "servingInfo.clientCA: must be given with certFile and keyFile"},
        {"servingInfo: {tls: auto, certFile: a, keyFile: b}",
         "servingInfo.certFile: cannot be given beside tls: auto"},
        {"servingInfo: {pkiDir: x, certFile: a, keyFile: b}",
         "servingInfo.certFile: cannot be given beside pkiDir"},
        {"authorization: {mode: RBAC}",
         "authorization.mode: needs HTTPS (tls: auto, or certFile and keyFile)"},
        {"authorization: {mode: ABAC}",
         "authorization.mode: \"ABAC\" is not one of RBAC, AlwaysAllow"},
        {"authorization: {anonymous: 1}",
         "authorization.anonymous: \"1\" is neither true nor false"},
        {"serviceAccountConfig: {managedNames: [A]}",
         "serviceAccountConfig.managedNames: \"A\" cannot be the name of a service account"},
        {"serviceAccountConfig: {publicKeyFiles: x}",
         "serviceAccountConfig.publicKeyFiles: must be a list of strings"},
        {"{servingInfo: {tls: auto}, auditConfig: {policyFile: p}}",
         "auditConfig.policyFile: needs auditFilePath"},
        {"auditConfig: {maximumRetainedFiles: 0}",
         "auditConfig.maximumRetainedFiles: 0 is not in 1-10000"},
        {"servingInfo: {names: [a b]}",
         "servingInfo.names: \"a b\" is neither a DNS name nor an IPv4 address"},
        {"networkConfig: {nosuch: 1}", "networkConfig.nosuch: unknown key"},
        {"networkConfig: 7", "networkConfig: must be a mapping of keys to values"},
        {"[]", "must be a mapping of keys to values"},
        {"kind: NodeConfig", "kind: must be \"MasterConfig\""},
        {"networkConfig: {vxlanPort: 70000}", "networkConfig.vxlanPort: 70000 is not in 1-65535"},
        {"networkConfig: {vxlanPort: x}", "networkConfig.vxlanPort: must be a whole number"},
        {"networkConfig: {mtu: 1.5}", "networkConfig.mtu: must be a whole number"},
        {"networkConfig: {mtu: 100}", "networkConfig.mtu: 100 is not in 576-65536"},
        {"networkConfig: {networkPluginName: none}",
         "networkConfig.networkPluginName: \"none\" is not a network plug-in: "
         "\"redhat/openshift-ovs-subnet\", \"redhat/openshift-ovs-multitenant\", "
         "\"redhat/openshift-ovs-networkpolicy\" and \"flannel\" are"},
        {"networkConfig: {clusterNetworks: []}",
         "networkConfig.clusterNetworks: must be a list of networks"},
        {"networkConfig: {clusterNetworks: [{cidr: 10.1.0.0/16}]}",
         "networkConfig.clusterNetworks[0].hostSubnetLength: must be a whole number"},
        {"networkConfig: {clusterNetworks: [{cidr: 10.1.0.0/16, hostSubnetLength: 17}]}",
         "networkConfig.clusterNetworks[0].hostSubnetLength: 17 is not in 2-16, the bits that "
         "10.1.0.0/16 leaves for a node's subnet"},
        {"networkConfig: {clusterNetworks: [{CIDR: 10.1.0.0/16, hostSubnetLength: 8}]}",
         "networkConfig.clusterNetworks[0].CIDR: unknown key"},
        {"networkConfig: {clusterNetworks: [{cidr: 10.1.2.3/16, hostSubnetLength: 8}]}",
         "networkConfig.clusterNetworks[0].cidr: \"10.1.2.3/16\" has bits set below its length; "
         "did you mean 10.1.0.0/16"},
        {"networkConfig: {clusterNetworks: [{cidr: 10.1.0.0/16, hostSubnetLength: 8}, "
         "{cidr: 10.1.128.0/17, hostSubnetLength: 8}]}",
         "networkConfig: clusterNetworks: 10.1.128.0/17: overlaps 10.1.0.0/16"},
        {"networkConfig: {serviceNetworkCIDR: 10.128.0.0/16}",
         "networkConfig: serviceNetworkCIDR: 10.128.0.0/16: overlaps cluster network "
         "10.128.0.0/14"},
        {"networkConfig: {clusterNetworks: [{cidr: 10.1.0.0/16, hostSubnetLength: 8}], "
         "clusterNetworkCIDR: 10.1.0.0/16}",
         "networkConfig.clusterNetworkCIDR: cannot be given beside clusterNetworks"},
        {"networkConfig: {clusterNetworkCIDR: 10.1.0.0/24}",
         "networkConfig.hostSubnetLength: 9 is not in 2-8, the bits that 10.1.0.0/24 leaves for a "
         "node's subnet"},
        {"servingInfo: {bindAddress: '256.0.0.1:1'}",
         "servingInfo.bindAddress: \"256.0.0.1:1\" is not an IPv4 address and port such as "
         "127.0.0.1:8443"},
        {"servingInfo: {bindAddress: '127.0.0.1'}",
         "servingInfo.bindAddress: \"127.0.0.1\" is not an IPv4 address and port such as "
         "127.0.0.1:8443"},
        {"storage: {backend: paper}",
         "storage.backend: \"paper\" is not one of sqlite, etcd, memory"},
        {"storage: {path: ''}", "storage.path: must not be empty"},
        {"logLevel: 7", "logLevel: must be a string"},
        {"dnsConfig: 7", "dnsConfig: must be a mapping of keys to values"},
        {"dnsConfig: {bindPort: 7}", "dnsConfig.bindPort: unknown key"},
        {"dnsConfig: {bindAddress: 7}", "dnsConfig.bindAddress: must be a string"},
        {"dnsConfig: {bindNetwork: tcp6}", "dnsConfig.bindNetwork: must be tcp4"},
        {"dnsConfig: {allowRecursiveQueries: 1}",
         "dnsConfig.allowRecursiveQueries: \"1\" is neither true nor false"},
        {"dnsConfig: {nameservers: 10.0.0.1}",
         "dnsConfig.nameservers: must be a list of addresses"},
        {"dnsConfig: {nameservers: [1]}",
         "dnsConfig.nameservers[0]: must be a string without commas"},
        {"limits: 7", "limits: must be a mapping of keys to values"},
        {"limits: {maxConnection: 7}",
         "limits.maxConnection: unknown key; did you mean limits.maxConnections?"},
        {"limits: {maxConnections: 0}", "limits.maxConnections: 0 is not in 1-1000000"},
        {"limits: {maxConnections: many}", "limits.maxConnections: must be a whole number"},
        {"servingInfo: {maxRequestsInFlight: -1}",
         "servingInfo.maxRequestsInFlight: -1 is not in 1-1000000"},
        {"storage: {path: 7}", "storage.path: must be a string"},
        {"storage: {reserveMB: -1}", "storage.reserveMB: -1 is not in 0-65536"},
        {"storage: {reserveMB: 65537}", "storage.reserveMB: 65537 is not in 0-65536"},
        {"storage: {backend: etcd}", "storage.endpoints: must be given for the backend etcd"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        __attribute__((cleanup(master_config_donep))) struct master_config c;
        master_config_init(&c);
        struct err e = {0};
        int r = read_yaml(&c, bad[i].yaml, &e);
        assert_string_equal(e.text, bad[i].text);
        assert_int_equal(r, -EINVAL);
    }
}

static void seventeen_networks_are_too_many(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, "networkConfig: {clusterNetworks: [");
    for (int i = 0; i < 17; i++) {
        strbuf_addf(&text, "{cidr: 10.%d.0.0/16, hostSubnetLength: 8},", i);
    }
    strbuf_adds(&text, "]}");
    struct err e = {0};
    assert_int_equal(read_yaml(&c, strbuf_cstr(&text), &e), -EINVAL);
    assert_string_equal(e.text, "networkConfig.clusterNetworks: more than 16 cluster networks");
}

static void options_override_the_file(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    master_config_init(&c);
    struct err e = {0};
    assert_int_equal(options_set_flag(&master_options, &c, "cluster-network", "10.1.0.0/16:8", &e),
                     0);
    assert_int_equal(options_set_flag(&master_options, &c, "cluster-network", "10.64.0.0/14", &e),
                     0);
    assert_int_equal(options_set_flag(&master_options, &c, "service-network", "10.9.0.0/16", &e),
                     0);
    assert_int_equal(options_set_flag(&master_options, &c, "plugin", "ovs-multitenant", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "vxlan-port", "4790", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "mtu", "1400", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "bind-address", "localhost:0", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "storage-backend", "memory", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "storage-path", "/y", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "storage-endpoints", "http://e", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "limit", "maxWatches=9", &e), 0);
    assert_int_equal(options_set_flag(&master_options, &c, "limit", "idleTimeoutSeconds=8", &e), 0);
    assert_int_equal(master_config_check(&c, MASTER_WHOLE, &e), 0);
    assert_int_equal(c.limits.values[LIMIT_WATCHES], 9);
    assert_int_equal(c.limits.values[LIMIT_IDLE_S], 8);
    assert_int_equal(c.network.n_ranges, 2);
    assert_int_equal(c.network.ranges[0].host_bits, 8);
    assert_int_equal(c.network.ranges[1].host_bits, 9);
    assert_int_equal(c.network.plugin, SDN_MULTITENANT);
    assert_int_equal(c.network.vxlan_port, 4790);
    assert_int_equal(c.network.mtu, 1400);
    assert_true(master_config_is_loopback(&c));
    assert_string_equal(c.storage_path, "/y");
    const struct {
        const char *option, *value, *text;
    } bad[] = {
        {"limit", "maxWatches",
         "--limit: \"maxWatches\" is not NAME=NUMBER such as "
         "maxConnections=1000"},
        {"limit", "nosuch=1", "--limit: nosuch: unknown key"},
        {"limit", "maxWatches=0", "--limit: maxWatches: 0 is not in 1-1000000"},
        {"mtu", "x", "--mtu: \"x\" is not a whole number"},
        {"vxlan-port", "0", "--vxlan-port: 0 is not in 1-65535"},
        {"cluster-network", "10.0.0.0/8:y",
         "--cluster-network: \"10.0.0.0/8:y\" is not CIDR:HOSTSUBNETLENGTH such as "
         "10.128.0.0/14:9"},
        {"cluster-network", "10.0.0.0",
         "--cluster-network: \"10.0.0.0\" is not an IPv4 CIDR such "
         "as 10.128.0.0/14"},
        {"storage-path", "", "--storage-path: must not be empty"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(options_set_flag(&master_options, &c, bad[i].option, bad[i].value, &e),
                         -EINVAL);
        assert_string_equal(e.text, bad[i].text);
    }
}

/* ---- files of OpenShift ---- */

static void files_of_openshift_are_read_with_warnings_only(void **state)
{
    static const char *const files[] = {"tests/integration/openshift/master-config.yaml",
                                        "tests/integration/openshift/master-config-3.4.yaml"};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        __attribute__((cleanup(master_config_donep))) struct master_config c;
        struct err e = {0};
        master_config_init(&c);
        if (master_config_load(files[i], &c, &e) < 0 ||
            master_config_check(&c, MASTER_WHOLE, &e) < 0) {
            fail_msg("%s", e.text);
        }
        assert_true(c.findings.n > 10);
        assert_string_equal(c.storage_backend, "etcd");
        assert_true(*c.key_file == '/' && **c.sa_public_keys == '/');
        assert_string_equal(c.bind_address, "0.0.0.0:8443");
        assert_int_equal(c.limits.values[LIMIT_INFLIGHT], 500);
        assert_null(c.audit_path);
    }
}

static void every_alias_names_a_row_and_every_idle_key_has_a_reason(void **state)
{
    for (const struct option_alias *a = master_options.alias; a->path; a++) {
        if (!options_find(&master_options, a->to)) {
            fail_msg("%s: there is no %s", a->path, a->to);
        }
    }
    for (const struct option_idle *i = master_options.idle; i->path; i++) {
        if (options_find(&master_options, i->path) || strlen(i->why) < 10) {
            fail_msg("%s: is a row, or has no reason", i->path);
        }
    }
}

static void flags_of_openshift_start_stand_for_keys(void **state)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    static const char *const flags[][2] = {
        {"master", "https://10.0.0.9:8443"},
        {"public-master", "https://api.example.com:8443/"},
        {"listen", "https://0.0.0.0:9443"},
        {"etcd-dir", "/var/lib/x"},
        {"network-cidr", "10.9.0.0/16:8"},
        {"network-plugin", "redhat/openshift-ovs-multitenant"},
        {"portal-net", "172.31.0.0/16"},
        {"dns", "tcp://127.0.0.1:8053"},
        {"cors-allowed-origins", "localhost"},
        {"images", "x/${component}"},
    };
    struct err e = {0};
    master_config_init(&c);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (options_set_flag(&master_options, &c, flags[i][0], flags[i][1], &e) < 0) {
            fail_msg("%s", e.text);
        }
    }
    assert_string_equal(c.names[0], "10.0.0.9");
    assert_string_equal(c.names[1], "api.example.com");
    assert_string_equal(c.bind_address, "0.0.0.0:9443");
    assert_string_equal(c.tls, "auto");
    assert_string_equal(c.storage_path, "/var/lib/x/registry.db");
    assert_string_equal(c.dns.bind_address, "127.0.0.1:8053");
    assert_string_equal(c.cors_origins[0], "localhost");
    assert_int_equal(c.findings.n, 1);
    assert_int_equal(options_set_flag(&master_options, &c, "etcd", "http://e:2379", &e), 0);
    assert_string_equal(c.storage_backend, "etcd");
    assert_int_equal(options_set_flag(&master_options, &c, "listen", "0.0.0.0:1", &e), -EINVAL);
    assert_int_equal(options_set_flag(&master_options, &c, "listen", "http://127.0.0.1", &e), 0);
    assert_string_equal(c.bind_address, "127.0.0.1:8443");
    assert_string_equal(c.tls, "off");
    assert_int_equal(options_set_flag(&master_options, &c, "master", "https://a b", &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_file_means_the_defaults),
        cmocka_unit_test(sample_file_has_the_defaults),
        cmocka_unit_test(what_decides_about_addresses_is_read),
        cmocka_unit_test(ranges_of_services_are_read),
        cmocka_unit_test(the_default_ingress_range_gives_way_and_one_of_ones_own_does_not),
        cmocka_unit_test(the_masters_address_is_that_which_it_listens_on),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(etcd_is_where_openshift_has_it),
        cmocka_unit_test(tls_is_off_unless_it_is_asked_for),
        cmocka_unit_test(openshifts_names_of_limits_are_known),
        cmocka_unit_test(the_older_pair_of_keys_works),
        cmocka_unit_test(wrong_files_are_refused_with_the_key),
        cmocka_unit_test(seventeen_networks_are_too_many),
        cmocka_unit_test(options_override_the_file),
        cmocka_unit_test(files_of_openshift_are_read_with_warnings_only),
        cmocka_unit_test(every_alias_names_a_row_and_every_idle_key_has_a_reason),
        cmocka_unit_test(flags_of_openshift_start_stand_for_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
