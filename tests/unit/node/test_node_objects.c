/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "client/objects.h"
#include "node/registry/registration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", e.text, text);
    }
    return v;
}

static uint32_t ip(const char *s)
{
    uint32_t a;
    assert_int_equal(ip4_parse(s, &a), 0);
    return a;
}

static struct ip4_prefix prefix(const char *s)
{
    struct ip4_prefix p;
    assert_int_equal(prefix_parse(s, &p, NULL), 0);
    return p;
}

#define CLUSTER                                                                                 \
    "{\"metadata\":{\"name\":\"default\"},\"pluginName\":\"redhat/openshift-ovs-multitenant\"," \
    "\"network\":\"10.128.0.0/14\",\"hostsubnetlength\":9,\"serviceNetwork\":\"172.30.0.0/16\""

static void a_cluster_network_is_read_in_both_forms(void **state)
{
    (void) state;
    struct sdn_network n = {.host_ip = 7};
    struct err e = {0};
    CLEANUP(json_free) struct json *old = parse(CLUSTER "}");
    assert_int_equal(objects_parse_cluster_network(old, &n, &e), 0);
    assert_int_equal(n.plugin, SDN_MULTITENANT);
    assert_int_equal(n.n_cluster, 1);
    assert_true(prefix_equal(n.cluster[0], prefix("10.128.0.0/14")));
    assert_true(prefix_equal(n.service, prefix("172.30.0.0/16")));
    assert_int_equal(n.vxlan_port, 4789);
    assert_int_equal(n.mtu, 1450);
    assert_int_equal(n.host_ip, 7);

    CLEANUP(json_free)
    struct json *obj = parse(CLUSTER ",\"vxlanPort\":4790,\"mtu\":8950,\"clusterNetworks\":["
                                     "{\"CIDR\":\"10.128.0.0/14\",\"hostSubnetLength\":9},"
                                     "{\"CIDR\":\"10.1.0.0/16\",\"hostSubnetLength\":8}]}");
    assert_int_equal(objects_parse_cluster_network(obj, &n, &e), 0);
    assert_int_equal(n.n_cluster, 2);
    assert_true(prefix_equal(n.cluster[1], prefix("10.1.0.0/16")));
    assert_int_equal(n.vxlan_port, 4790);
    assert_int_equal(n.mtu, 8950);
}

static void a_bad_cluster_network_names_the_field_and_changes_nothing(void **state)
{
    (void) state;
    static const struct {
        const char *text, *needle;
    } cases[] = {
        {"{}", "pluginName: is missing"},
        {"{\"pluginName\":\"x\",\"network\":\"10.0.0.0/8\"}", "pluginName"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\"}", "network: is missing"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"network\":\"10.1.0.0/8\"}", "network"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"network\":7}", "network"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"network\":\"10.0.0.0/8\","
         "\"serviceNetwork\":\"10.4.0.0/16\"}",
         "serviceNetwork"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"network\":\"10.0.0.0/8\",\"mtu\":1}",
         "mtu"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"network\":\"10.0.0.0/8\","
         "\"vxlanPort\":65536}",
         "vxlanPort"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"clusterNetworks\":["
         "{\"CIDR\":\"10.0.0.0/9\"},{\"CIDR\":\"10.64.0.0/16\"}]}",
         "clusterNetworks[1].CIDR: 10.64.0.0/16 overlaps with 10.0.0.0/9"},
        {"{\"pluginName\":\"redhat/openshift-ovs-subnet\",\"clusterNetworks\":[{}]}",
         "clusterNetworks[0]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sdn_network n = {.mtu = 1};
        struct err e = {0};
        CLEANUP(json_free) struct json *v = parse(cases[i].text);
        assert_true(objects_parse_cluster_network(v, &n, &e) < 0);
        assert_non_null(strstr(e.text, cases[i].needle));
        assert_int_equal(n.mtu, 1);
        assert_int_equal(n.n_cluster, 0);
    }
}

static void a_host_subnet_is_read_with_its_fixed_vnid(void **state)
{
    (void) state;
    struct sdn_remote r;
    struct err e = {0};
    CLEANUP(json_free)
    struct json *v = parse("{\"metadata\":{\"name\":\"f5\",\"uid\":\"u1\",\"annotations\":{"
                           "\"pod.network.openshift.io/fixed-vnid-host\":\"0\"}},\"host\":\"f5\","
                           "\"hostIP\":\"10.1.1.1\",\"subnet\":\"10.131.0.0/23\"}");
    assert_int_equal(objects_parse_host_subnet(v, &r, &e), 0);
    assert_int_equal(r.host_ip, ip("10.1.1.1"));
    assert_true(prefix_equal(r.subnet, prefix("10.131.0.0/23")));
    assert_true(r.has_fixed_vnid);
    assert_int_equal(r.fixed_vnid, 0);
    CLEANUP(json_free)
    struct json *other = parse("{\"metadata\":{\"name\":\"f5\",\"uid\":\"u2\",\"annotations\":{"
                               "\"pod.network.openshift.io/fixed-vnid-host\":\"16777216\"}},"
                               "\"hostIP\":\"10.1.1.1\",\"subnet\":\"\"}");
    struct sdn_remote s;
    assert_int_equal(objects_parse_host_subnet(other, &s, &e), 0);
    assert_false(s.has_fixed_vnid);
    assert_int_equal(s.subnet.len, 0);
    assert_true(r.id != s.id);
}

static void bad_host_subnets_name_the_field(void **state)
{
    (void) state;
    static const struct {
        const char *text, *needle;
    } cases[] = {
        {"{}", "hostIP"},
        {"{\"hostIP\":\"x\",\"subnet\":\"10.128.0.0/23\"}", "hostIP"},
        {"{\"hostIP\":\"0.0.0.0\",\"subnet\":\"10.128.0.0/23\"}", "hostIP"},
        {"{\"hostIP\":\"1.2.3.4\",\"subnet\":\"10.128.0.1/23\"}", "subnet"},
        {"{\"hostIP\":\"1.2.3.4\",\"subnet\":\"10.128.0.0/31\"}", "subnet"},
        {"{\"hostIP\":\"1.2.3.4\",\"subnet\":[]}", "subnet"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sdn_remote r;
        struct err e = {0};
        CLEANUP(json_free) struct json *v = parse(cases[i].text);
        assert_true(objects_parse_host_subnet(v, &r, &e) < 0);
        assert_non_null(strstr(e.text, cases[i].needle));
    }
}

struct skipped {
    unsigned n;
    char text[2000];
};

static void on_skipped(void *ctx, const char *name, const char *why)
{
    struct skipped *s = ctx;
    s->n++;
    size_t used = strlen(s->text);
    snprintf(s->text + used, sizeof s->text - used, "%s=%s;", name, why);
}

static void remotes_leave_out_the_own_node_and_what_cannot_be(void **state)
{
    (void) state;
    struct sdn_network n = {.cluster = {prefix("10.128.0.0/14")},
                            .n_cluster = 1,
                            .local = prefix("10.128.0.0/23"),
                            .host_ip = ip("192.168.0.1")};
    static const struct {
        const char *name, *host_ip, *subnet;
    } nodes[] = {
        {"node1", "192.168.0.1", "10.128.0.0/23"},   {"node3", "192.168.0.3", "10.128.4.0/23"},
        {"node2", "192.168.0.2", "10.128.2.0/23"},   {"me-too", "192.168.0.1", "10.128.6.0/23"},
        {"on-us", "192.168.0.9", "10.128.1.0/24"},   {"around-us", "192.168.0.9", "10.128.0.0/16"},
        {"elsewhere", "192.168.0.9", "10.1.0.0/23"}, {"too-wide", "192.168.0.9", "10.0.0.0/8"},
        {"twin", "192.168.0.8", "10.128.4.0/24"},    {"waiting", "192.168.0.7", ""},
        {"broken", "192.168.0", "10.128.8.0/23"},
    };
    struct objects_host_subnet items[ARRAY_SIZE(nodes)];
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{\"metadata\":{\"name\":\"%s\"},\"hostIP\":\"%s\",\"subnet\":\"%s\"}",
                      nodes[i].name, nodes[i].host_ip, nodes[i].subnet);
        items[i] = (struct objects_host_subnet){nodes[i].name, parse(text)};
    }
    struct skipped s = {0};
    CLEANUP_FREE struct sdn_remote *remotes = NULL;
    size_t count =
        objects_build_remotes(&n, "node1", items, ARRAY_SIZE(items), on_skipped, &s, &remotes);
    assert_int_equal(count, 3);
    assert_int_equal(remotes[0].host_ip, ip("192.168.0.7"));
    assert_int_equal(remotes[0].subnet.len, 0);
    assert_int_equal(remotes[1].host_ip, ip("192.168.0.2"));
    assert_int_equal(remotes[2].host_ip, ip("192.168.0.3"));
    assert_int_equal(s.n, 7);
    assert_non_null(strstr(s.text, "me-too=hostIP: 192.168.0.1 is the address of this node"));
    assert_non_null(strstr(s.text, "on-us=subnet: 10.128.1.0/24 overlaps with this node's"));
    assert_non_null(strstr(s.text, "around-us=subnet"));
    assert_non_null(strstr(s.text, "elsewhere=subnet: 10.1.0.0/23 is not in a cluster network"));
    assert_non_null(strstr(s.text, "too-wide=subnet"));
    assert_non_null(strstr(s.text, "twin=subnet: 10.128.4.0/24 overlaps with 10.128.4.0/23 of"));
    assert_non_null(strstr(s.text, "broken=hostIP"));
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        json_free((struct json *) items[i].obj);
    }
}

static void a_net_namespace_without_netid_is_not_global(void **state)
{
    (void) state;
    struct sdn_vnids vnids = {.id = 77};
    struct err e = {0};
    CLEANUP(json_free) struct json *good = parse("{\"netid\":16777215}");
    assert_int_equal(objects_parse_net_namespace(good, &vnids, &e), 0);
    assert_int_equal(vnids.id, 16777215);
    assert_false(vnids.moving);
    static const char *const bad[] = {"{}",
                                      "{\"netid\":16777216}",
                                      "{\"netid\":-1}",
                                      "{\"netid\":\"5\"}",
                                      "{\"netid\":1.5}",
                                      "{\"netid\":null}"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *v = parse(bad[i]);
        vnids.id = 77;
        assert_int_equal(objects_parse_net_namespace(v, &vnids, &e), -EINVAL);
        assert_int_equal(vnids.id, 77);
        assert_non_null(strstr(e.text, "netid"));
    }
}

static void a_moving_net_namespace_has_two_ids(void **state)
{
    (void) state;
    static const struct {
        const char *annotation;
        bool moving;
        uint32_t also;
    } cases[] = {
        {"\"tenet.io/next-netid\":\"12\"", true, 12},
        {"\"tenet.io/previous-netid\":\"0\"", true, 0},
        {"\"tenet.io/next-netid\":\"x\"", false, 0}, /* What cannot be read opens nothing. */
        {"\"tenet.io/next-netid\":\"-1\"", false, 0},
        {"\"tenet.io/next-netid\":\"16777216\"", false, 0},
        {"\"tenet.io/next-netid\":12", false, 0},
        {"\"other\":\"12\"", false, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sdn_vnids vnids = {0};
        CLEANUP_FREE char *text =
            xasprintf("{\"metadata\":{\"annotations\":{%s}},\"netid\":10}", cases[i].annotation);
        CLEANUP(json_free) struct json *v = parse(text);
        assert_int_equal(objects_parse_net_namespace(v, &vnids, NULL), 0);
        assert_int_equal(vnids.id, 10);
        assert_int_equal(vnids.moving, cases[i].moving);
        assert_int_equal(vnids.also, cases[i].also);
    }
}

/* ---- the Node object ---- */

static const struct registration_want ready = {.node_name = "node1",
                                               .node_ip = 0x0a000001,
                                               .ready = true,
                                               .reason = "TenetReady",
                                               .message = "m"};

static const char *condition(const struct json *node, const char *type, const char *field)
{
    const struct json *c;
    JSON_FOREACH (c, json_path(node, "status", "conditions", NULL)) {
        if (streq_null(json_path_string(c, "type", NULL), type)) {
            return json_path_string(c, field, NULL);
        }
    }
    return NULL;
}

static void a_node_gets_addresses_and_conditions_once(void **state)
{
    (void) state;
    CLEANUP(json_free) struct json *node = parse("{\"metadata\":{\"name\":\"node1\"}}");
    assert_true(registration_update(node, &ready, 1000));
    const struct json *a = json_at(json_path(node, "status", "addresses", NULL), 0);
    assert_string_equal(json_path_string(a, "address", NULL), "10.0.0.1");
    assert_string_equal(condition(node, "Ready", "status"), "True");
    assert_string_equal(condition(node, "NetworkUnavailable", "status"), "False");
    assert_string_equal(condition(node, "Ready", "lastTransitionTime"), "1970-01-01T00:00:01Z");
    assert_false(registration_update(node, &ready, 2000));

    struct registration_want w = ready;
    w.heartbeat = true;
    assert_true(registration_update(node, &w, 3000));
    assert_string_equal(condition(node, "Ready", "lastHeartbeatTime"), "1970-01-01T00:00:03Z");
    assert_string_equal(condition(node, "Ready", "lastTransitionTime"), "1970-01-01T00:00:01Z");

    w.ready = false;
    w.reason = "OpenVSwitchGone";
    assert_true(registration_update(node, &w, 4000));
    assert_string_equal(condition(node, "Ready", "status"), "False");
    assert_string_equal(condition(node, "NetworkUnavailable", "status"), "True");
    assert_string_equal(condition(node, "Ready", "lastTransitionTime"), "1970-01-01T00:00:04Z");
    assert_int_equal(json_count(json_path(node, "status", "conditions", NULL)), 2);
    assert_int_equal(json_count(json_path(node, "status", "addresses", NULL)), 2);
}

static void a_changed_address_is_written(void **state)
{
    (void) state;
    CLEANUP(json_free)
    struct json *node =
        parse("{\"status\":{\"addresses\":[{\"type\":\"ExternalIP\",\"address\":\"1.1.1.1\"},"
              "{\"type\":\"InternalIP\",\"address\":\"9.9.9.9\"}]}}");
    assert_true(registration_update(node, &ready, 1));
    const struct json *list = json_path(node, "status", "addresses", NULL);
    assert_string_equal(json_path_string(json_at(list, 0), "address", NULL), "1.1.1.1");
    assert_string_equal(json_path_string(json_at(list, 1), "address", NULL), "10.0.0.1");
}

static void what_a_kubelet_keeps_is_left_to_it(void **state)
{
    (void) state;
    CLEANUP(json_free)
    struct json *node =
        parse("{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"9.9.9.9\"}],"
              "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
              "\"reason\":\"KubeletNotReady\"}]}}");
    assert_true(registration_update(node, &ready, 1));
    assert_string_equal(condition(node, "Ready", "status"), "False");
    assert_string_equal(condition(node, "NetworkUnavailable", "status"), "False");
    const struct json *a = json_at(json_path(node, "status", "addresses", NULL), 0);
    assert_string_equal(json_path_string(a, "address", NULL), "9.9.9.9");
    assert_false(registration_update(node, &ready, 2));
}

static void further_addresses_and_host_ports_of_the_node_are_written(void **state)
{
    struct sdn_addresses a = {{0xc0000207, 0xc6336401}, 2};
    struct registration_want w = {.node_name = "n1",
                                  .node_ip = 0xc0a80701,
                                  .addresses = &a,
                                  .ready = true,
                                  .reason = "TenetReady",
                                  .message = "fine"};
    CLEANUP(json_free) struct json *node = json_object();
    assert_true(registration_update(node, &w, 1));
    assert_false(registration_update(node, &w, 2));
    const struct json *list = json_path(node, "status", "addresses", NULL);
    assert_int_equal(json_count(list), 4);
    assert_string_equal(json_path_string(json_at(list, 0), "address", NULL), "192.168.7.1");
    assert_string_equal(json_path_string(json_at(list, 2), "address", NULL), "192.0.2.7");
    assert_string_equal(json_path_string(json_at(list, 3), "address", NULL), "198.51.100.1");
    a = (struct sdn_addresses){{0xc6336401}, 1};
    assert_true(registration_update(node, &w, 3));
    assert_int_equal(json_count(list), 3);
    assert_false(registration_update(node, &w, 4));
    w.addresses = NULL; /* Not known: they stay. */
    assert_false(registration_update(node, &w, 5));
    a.n = 0;
    w.addresses = &a;
    assert_true(registration_update(node, &w, 6));
    assert_int_equal(json_count(list), 2);

    assert_false(registration_annotate(node, NULL));
    assert_true(registration_annotate(node, "tcp:80=10.128.0.5:80"));
    assert_false(registration_annotate(node, "tcp:80=10.128.0.5:80"));
    assert_string_equal(json_path_string(node, "metadata", "annotations", SDN_HOST_PORTS, NULL),
                        "tcp:80=10.128.0.5:80");
    assert_true(registration_annotate(node, NULL));
    assert_null(json_path(node, "metadata", "annotations", SDN_HOST_PORTS, NULL));
}

static void a_pod_says_its_host_ports_and_bandwidth(void **state)
{
    (void) state;
    CLEANUP(json_free)
    struct json *pod =
        parse("{\"metadata\":{\"annotations\":{\"kubernetes.io/ingress-bandwidth\":\"10M\","
              "\"kubernetes.io/egress-bandwidth\":\"1.5Mi\"}},\"spec\":{\"containers\":["
              "{\"ports\":[{\"containerPort\":80,\"hostPort\":8080},{\"containerPort\":81}]},"
              "{\"ports\":[{\"containerPort\":53,\"hostPort\":53,\"protocol\":\"UDP\","
              "\"hostIP\":\"192.0.2.1\"}]}]}}");
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    assert_int_equal(objects_parse_pod_runtime(pod, &r, NULL), 0);
    assert_int_equal(r.bandwidth.to_pod, 10000000);
    assert_int_equal(r.bandwidth.from_pod, 1572864);
    CLEANUP_FREE char *text = cni_host_ports_text(&r);
    assert_string_equal(text, "tcp:8080:80,udp:192.0.2.1:53:53");
}

static void quantities_are_those_of_kubernetes(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        uint64_t value; /* 0: refused. */
    } cases[] = {
        {"1k", 1000},
        {"+8M", 8000000},
        {"2e6", 2000000},
        {"25E2", 2500},
        {".5G", 500000000},
        {"5000000m", 5000},
        {"1P", CNI_MAX_RATE},
        {"1Ki", 1024},
        {"4096", 4096},
        {"999", 0},
        {"1.1P", 0},
        {"1E", 0},
        {"", 0},
        {"M", 0},
        {"8 M", 0},
        {"8m", 0},
        {"-8M", 0},
        {"8Mb", 0},
        {"1e", 0},
        {"1e999", 0},
        {"8.0.0M", 0},
        {"0x10", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free)
        struct json *pod = json_object();
        json_set_string(json_ensure_object(json_ensure_object(pod, "metadata"), "annotations"),
                        "kubernetes.io/egress-bandwidth", cases[i].text);
        CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
        struct err e = {0};
        print_message("%s\n", cases[i].text);
        assert_int_equal(objects_parse_pod_runtime(pod, &r, &e), cases[i].value ? 0 : -EINVAL);
        assert_int_equal(r.bandwidth.from_pod, cases[i].value);
        assert_true(cases[i].value || strstr(e.text, "kubernetes.io/egress-bandwidth"));
    }
}

static void bad_host_ports_name_the_field(void **state)
{
    (void) state;
    static const char *const cases[][2] = {
        {"{\"containerPort\":80,\"hostPort\":70000}", "spec.containers[0].ports[0]: hostPort"},
        {"{\"containerPort\":0,\"hostPort\":7}", "containerPort"},
        {"{\"containerPort\":1,\"hostPort\":7,\"protocol\":\"ICMP\"}", "\"ICMP\""},
        {"{\"containerPort\":1,\"hostPort\":7,\"hostIP\":\"fe80::1\"}", "\"fe80::1\""},
        {"{\"containerPort\":1,\"hostPort\":7},{\"containerPort\":2,\"hostPort\":7}", "7/tcp"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text =
            xasprintf("{\"spec\":{\"containers\":[{\"ports\":[%s]}]}}", cases[i][0]);
        CLEANUP(json_free) struct json *pod = parse(text);
        struct cni_runtime r = {0};
        struct err e = {0};
        assert_true(objects_parse_pod_runtime(pod, &r, &e) < 0);
        assert_non_null(strstr(e.text, cases[i][1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(further_addresses_and_host_ports_of_the_node_are_written),
        cmocka_unit_test(a_cluster_network_is_read_in_both_forms),
        cmocka_unit_test(a_bad_cluster_network_names_the_field_and_changes_nothing),
        cmocka_unit_test(a_host_subnet_is_read_with_its_fixed_vnid),
        cmocka_unit_test(bad_host_subnets_name_the_field),
        cmocka_unit_test(remotes_leave_out_the_own_node_and_what_cannot_be),
        cmocka_unit_test(a_net_namespace_without_netid_is_not_global),
        cmocka_unit_test(a_moving_net_namespace_has_two_ids),
        cmocka_unit_test(a_node_gets_addresses_and_conditions_once),
        cmocka_unit_test(a_changed_address_is_written),
        cmocka_unit_test(what_a_kubelet_keeps_is_left_to_it),
        cmocka_unit_test(a_pod_says_its_host_ports_and_bandwidth),
        cmocka_unit_test(quantities_are_those_of_kubernetes),
        cmocka_unit_test(bad_host_ports_name_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
