/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's flows as values: against golden texts that Open vSwitch's own parser reads, and rules that
 * hold for any network.  What the flows do to packets is in test_pipeline_trace.c. */
#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

static struct sdn_network network(enum sdn_plugin plugin)
{
    return (struct sdn_network){
        .plugin = plugin,
        .cluster = {{IP(10, 128, 0, 0), 14}},
        .n_cluster = 1,
        .service = {IP(172, 30, 0, 0), 16},
        .local = {IP(10, 128, 0, 0), 23},
        .host_ip = IP(192, 168, 100, 1),
        .vxlan_port = SDN_VXLAN_PORT,
        .mtu = 1450,
    };
}

static struct sdn_remote remote(uint8_t host, uint8_t third, uint64_t id)
{
    return (struct sdn_remote){
        .host_ip = IP(192, 168, 100, host), .subnet = {IP(10, 128, third, 0), 23}, .id = id};
}

static struct pipeline_pod pod(uint8_t last, uint32_t ofport, uint32_t vnid)
{
    uint32_t ip = IP(10, 128, 0, last);
    return (struct pipeline_pod){.ofport = ofport, .ip = ip, .mac = mac_from_ip4(ip), .vnid = vnid};
}

/* ---- golden ---- */

/* Appends what follows "): " in each flow-mod that 'command' prints. */
static void read_flow_mods(const char *command, struct strbuf *out)
{
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, f) > 0) {
        char *at = strstr(line, "): ");
        if (str_has_prefix(line, "OFPT_FLOW_MOD") && at) {
            strbuf_adds(out, at + 3);
        }
    }
    free(line);
    assert_int_equal(pclose(f), 0);
}

/* Takes 'flows' over. */
static void expect_golden(const char *name, struct of_flow_list *flows)
{
    if (access("/usr/bin/ovs-ofctl", X_OK) != 0) {
        of_flow_list_done(flows);
        LEAVE_OUT("ovs-ofctl is not installed");
    }
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT, ours = STRBUF_INIT, golden = STRBUF_INIT;
    for (size_t i = 0; i < flows->n; i++) {
        of_put_flow_mod(&bytes, (uint32_t) i, OF_FLOW_ADD, flows->flows[i]);
    }
    of_flow_list_done(flows);
    char file[] = "/tmp/tenet-test-pipeline-XXXXXX", command[200];
    CLEANUP(fd_close) int fd = mkstemp(file);
    assert_true(fd >= 0 && write(fd, bytes.data, bytes.size) == (ssize_t) bytes.size);
    snprintf(command, sizeof command, "ovs-ofctl ofp-parse %s", file);
    read_flow_mods(command, &ours);
    unlink(file);
    snprintf(command, sizeof command,
             "ovs-ofctl -O OpenFlow14 parse-flows tests/unit/sdn/golden/%s.txt", name);
    read_flow_mods(command, &golden);
    assert_true(golden.size > 0);
    assert_string_equal(strbuf_cstr(&ours), strbuf_cstr(&golden));
}

static void base_of_multitenant_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    expect_golden("base-multitenant", &l);
}

static void base_of_networkpolicy_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_NETWORKPOLICY);
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    expect_golden("base-networkpolicy", &l);
}

static void base_of_subnet_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_SUBNET);
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    expect_golden("base-subnet", &l);
}

static void base_of_two_cluster_networks_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    n.cluster[n.n_cluster++] = (struct ip4_prefix){IP(10, 132, 0, 0), 16};
    n.service = (struct ip4_prefix){0};
    n.vxlan_port = 8472;
    n.refusal_meter = 1;
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    expect_golden("base-two-networks", &l);
}

static void remote_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct sdn_remote r = remote(2, 2, 0xaabbccddeeff0102u);
    struct of_flow_list l = {0};
    pipeline_remote(&n, &r, &l);
    expect_golden("remote", &l);
}

static void remote_with_fixed_vnid_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct sdn_remote r = remote(3, 4, 3);
    r.has_fixed_vnid = true;
    struct of_flow_list l = {0};
    pipeline_remote(&n, &r, &l);
    expect_golden("remote-fixed-vnid", &l);
}

static void pod_of_multitenant_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct pipeline_pod p = pod(2, 11, 42);
    struct of_flow_list l = {0};
    pipeline_pod(&n, &p, &l);
    expect_golden("pod-multitenant", &l);
}

static void pod_of_subnet_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_SUBNET);
    struct pipeline_pod p = pod(2, 11, 42);
    struct of_flow_list l = {0};
    pipeline_pod(&n, &p, &l);
    expect_golden("pod-subnet", &l);
}

static void pod_of_networkpolicy_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_NETWORKPOLICY);
    struct pipeline_pod p = pod(2, 11, 42);
    struct of_flow_list l = {0};
    pipeline_pod(&n, &p, &l);
    expect_golden("pod-networkpolicy", &l);
}

static void vnid_is_as_golden(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct of_flow_list l = {0};
    pipeline_vnid(&n, 42, &l);
    expect_golden("vnid", &l);
}

/* ---- rules ---- */

static void what_needs_no_flow_gets_none(void **state)
{
    struct sdn_network multi = network(SDN_MULTITENANT), flat = network(SDN_SUBNET);
    struct of_flow_list l = {0};
    pipeline_vnid(&multi, SDN_VNID_GLOBAL, &l);
    pipeline_vnid(&flat, 42, &l);
    struct sdn_remote unassigned = {.host_ip = IP(192, 168, 100, 9), .id = 9};
    pipeline_remote(&multi, &unassigned, &l);
    struct sdn_remote thief = remote(9, 0, 9); /* Has this node's subnet. */
    pipeline_remote(&multi, &thief, &l);
    assert_int_equal(l.n, 0);
    of_flow_list_done(&l);
}

static void expect_more_under_networkpolicy(void)
{
    struct sdn_network n = network(SDN_NETWORKPOLICY);
    struct pipeline_pod p = pod(2, 11, 42);
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    size_t base = l.n;
    assert_int_equal(base, 79 + 37 + 1);
    pipeline_pod(&n, &p, &l);
    assert_int_equal(l.n, base + 9);
    for (size_t i = base; i < l.n; i++) {
        assert_int_equal(pipeline_group(l.flows[i]->cookie), pipeline_pod_cookie(p.ip));
    }
    of_flow_list_done(&l);
}

static void groups_have_the_documented_size_and_their_cookie(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct sdn_remote r = remote(2, 2, 77);
    struct pipeline_pod p = pod(2, 11, 42);
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    size_t base = l.n;
    assert_int_equal(base, 79);
    pipeline_remote(&n, &r, &l);
    assert_int_equal(l.n, base + 5);
    pipeline_pod(&n, &p, &l);
    assert_int_equal(l.n, base + 5 + 7);
    pipeline_vnid(&n, 42, &l);
    assert_int_equal(l.n, base + 5 + 7 + 2);
    static const struct firewall_block blocks[] = {{{0, 0}, false}, {{0x08080808, 32}, true}};
    pipeline_firewall(42, blocks, 2, &l);
    assert_int_equal(l.n, base + 5 + 7 + 2 + 2);
    expect_more_under_networkpolicy();
    for (size_t i = 0; i < l.n; i++) {
        uint64_t group = i < base        ? PIPELINE_BASE_COOKIE
                         : i < base + 5  ? pipeline_remote_cookie(&r)
                         : i < base + 12 ? pipeline_pod_cookie(p.ip)
                         : i < base + 14 ? pipeline_vnid_cookie(42)
                                         : pipeline_firewall_cookie(42);
        assert_int_equal(pipeline_group(l.flows[i]->cookie), group);
    }
    of_flow_list_done(&l);
}

static void no_two_flows_share_a_key(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    n.cluster[n.n_cluster++] = n.local; /* The least that a cluster network can be. */
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    for (uint8_t i = 0; i < 20; i++) {
        struct sdn_remote r = remote((uint8_t) (2 + i), (uint8_t) (2 + 2 * i), i);
        pipeline_remote(&n, &r, &l);
        struct pipeline_pod p = pod((uint8_t) (2 + i), 11u + i, 42);
        pipeline_pod(&n, &p, &l);
        pipeline_vnid(&n, SDN_VNID_MIN + i, &l);
    }
    for (size_t i = 0; i < l.n; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_false(of_flow_same_key(l.flows[i], l.flows[j]));
        }
    }
    of_flow_list_done(&l);
}

/* Adding one before deleting the other must not take the wrong flows away. */
static void nodes_that_swap_addresses_have_flows_of_their_own(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct sdn_remote before = remote(2, 2, 1), other = remote(3, 4, 2);
    struct sdn_remote after = before;
    after.host_ip = other.host_ip;
    struct of_flow_list l = {0};
    pipeline_remote(&n, &other, &l);
    size_t n_other = l.n, shared = 0;
    pipeline_remote(&n, &after, &l);
    for (size_t i = n_other; i < l.n; i++) {
        assert_int_not_equal(pipeline_group(l.flows[i]->cookie), l.flows[0]->cookie);
        for (size_t j = 0; j < n_other; j++) {
            if (of_flow_same_key(l.flows[i], l.flows[j])) {
                /* What drops the rest of a host, and what is for its address, is the same for all its subnets. */
                assert_int_equal(l.flows[i]->instructions_size, l.flows[j]->instructions_size);
                assert_memory_equal(of_flow_instructions(l.flows[i]),
                                    of_flow_instructions(l.flows[j]),
                                    l.flows[i]->instructions_size);
                shared++;
            }
        }
    }
    assert_int_equal(shared, 2);
    of_flow_list_done(&l);
}

static void expect_tables_named_and_ended(enum sdn_plugin plugin)
{
    struct sdn_network n = network(plugin);
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    unsigned named = 0, ended = 0;
    for (unsigned t = 0; t <= UINT8_MAX; t++) {
        named += pipeline_table_name((uint8_t) t) != NULL;
    }
    for (size_t i = 0; i < l.n; i++) {
        assert_non_null(pipeline_table_name(l.flows[i]->table));
        ended += l.flows[i]->priority == 0 && l.flows[i]->match_size == 0;
    }
    assert_int_equal(named, 41);
    /* To arp-reply, and where a pod's packets to itself turn, comes nothing but what is meant; to service-affinity
     * nothing goes. */
    assert_int_equal(ended, n.plugin == SDN_NETWORKPOLICY ? named - 5 : 24);
    of_flow_list_done(&l);
}

static void every_table_is_named_and_takes_whatever_comes(void **state)
{
    expect_tables_named_and_ended(SDN_MULTITENANT);
    expect_tables_named_and_ended(SDN_NETWORKPOLICY);
}

/* What drops is counted under one cause, and what does not drop under none. */
static void every_drop_has_a_cause_and_every_cause_a_drop(void **state)
{
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_NETWORKPOLICY; plugin++) {
        for (uint32_t meter = 0; meter <= 1; meter++) {
            struct sdn_network n = network(plugin);
            n.refusal_meter = meter;
            n.block_metadata = true;
            struct sdn_remote r = remote(2, 2, 77);
            struct pipeline_pod p = pod(2, 11, 42);
            struct of_flow_list l = {0};
            bool seen[MODEL_N_CAUSES] = {false};
            unsigned refusing = 0;
            pipeline_base(&n, &l);
            pipeline_remote(&n, &r, &l);
            pipeline_pod(&n, &p, &l);
            pipeline_vnid(&n, 42, &l);
            pipeline_firewall(42, &(struct firewall_block){{0, 0}, false}, 1, &l);
            for (size_t i = 0; i < l.n; i++) {
                const struct of_flow *f = l.flows[i];
                enum model_cause c = pipeline_cause(f->table, f->cookie);
                bool refuses = f->instructions_size && c != MODEL_NOT_DROPPED;
                seen[c] = true;
                refusing += refuses;
                assert_true(f->instructions_size || c != MODEL_NOT_DROPPED);
            }
            bool policy = plugin == SDN_NETWORKPOLICY;
            for (enum model_cause c = MODEL_NOT_DROPPED; c < MODEL_N_CAUSES; c++) {
                bool of_policy = c == MODEL_CONNECTION_DENIED || c == MODEL_EGRESS_DENIED ||
                                 c == MODEL_INGRESS_DENIED || c == MODEL_FORGED_ERROR;
                bool of_vnids = c == MODEL_SERVICE_FOREIGN;
                assert_int_equal(seen[c], (!of_policy || policy) &&
                                              (!of_vnids || plugin == SDN_MULTITENANT));
            }
            /* What denies a connection that there is says so to the tracker. */
            assert_int_equal(refusing, (meter ? 8 : 0) + (policy ? 2 : 0));
            of_flow_list_done(&l);
        }
    }
    assert_int_equal(pipeline_cause(0, PIPELINE_DROPS | PIPELINE_BASE_COOKIE | MODEL_N_CAUSES),
                     MODEL_NOT_DROPPED);
    assert_int_equal(pipeline_cause(0, UINT64_MAX), MODEL_NOT_DROPPED);
}

static void plugin_names_are_those_of_openshift(void **state)
{
    enum sdn_plugin p = SDN_MULTITENANT;
    struct err e = {0};
    assert_int_equal(sdn_plugin_parse("redhat/openshift-ovs-subnet", &p, &e), 0);
    assert_int_equal(p, SDN_SUBNET);
    assert_int_equal(sdn_plugin_parse("ovs-multitenant", &p, &e), 0);
    assert_int_equal(p, SDN_MULTITENANT);
    assert_string_equal(sdn_plugin_name(p), "redhat/openshift-ovs-multitenant");
    assert_int_equal(sdn_plugin_parse("networkpolicy", &p, &e), 0);
    assert_int_equal(p, SDN_NETWORKPOLICY);
    assert_string_equal(sdn_plugin_name(p), "redhat/openshift-ovs-networkpolicy");
    p = SDN_MULTITENANT;
    static const char *const wrong[] = {"", "ovs-none", "redhat/openshift-", "openshift-ovs-subnet",
                                        "ovs-subnet "};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_int_equal(sdn_plugin_parse(wrong[i], &p, &e), -EINVAL);
        assert_int_equal(p, SDN_MULTITENANT);
        assert_non_null(strstr(e.text, "redhat/openshift-ovs-subnet"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_of_multitenant_is_as_golden),
        cmocka_unit_test(base_of_networkpolicy_is_as_golden),
        cmocka_unit_test(base_of_subnet_is_as_golden),
        cmocka_unit_test(base_of_two_cluster_networks_is_as_golden),
        cmocka_unit_test(remote_is_as_golden),
        cmocka_unit_test(remote_with_fixed_vnid_is_as_golden),
        cmocka_unit_test(pod_of_multitenant_is_as_golden),
        cmocka_unit_test(pod_of_subnet_is_as_golden),
        cmocka_unit_test(pod_of_networkpolicy_is_as_golden),
        cmocka_unit_test(vnid_is_as_golden),
        cmocka_unit_test(what_needs_no_flow_gets_none),
        cmocka_unit_test(groups_have_the_documented_size_and_their_cookie),
        cmocka_unit_test(no_two_flows_share_a_key),
        cmocka_unit_test(nodes_that_swap_addresses_have_flows_of_their_own),
        cmocka_unit_test(every_table_is_named_and_takes_whatever_comes),
        cmocka_unit_test(every_drop_has_a_cause_and_every_cause_a_drop),
        cmocka_unit_test(plugin_names_are_those_of_openshift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
