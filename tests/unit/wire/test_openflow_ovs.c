/* SPDX-License-Identifier: Apache-2.0 */
/* The codec before a real Open vSwitch: what we encode it takes, and reports in the same bytes. */
#include "ovs.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct ovs ovs;
static struct of_client client;

static int set_up(void **state)
{
    ovs_start(&ovs);
    OVS_VSCTL(&ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
              "fail_mode=secure");
    of_client_open(&client, &ovs, "br0");
    return 0;
}

static int tear_down(void **state)
{
    of_client_close(&client);
    ovs_stop(&ovs);
    return 0;
}

static void delete_all(void)
{
    struct of_flow_list all = {0};
    struct of_builder b;
    of_begin(&b, UINT8_MAX, 0, 0);
    of_end_into(&b, &all);
    of_client_commit(&client, OF_FLOW_DELETE, &all);
    of_flow_list_done(&all);
}

/* Every flow of 'want' is in the switch, byte for byte, and no other. */
static void expect_in_switch(const struct of_flow_list *want)
{
    struct of_flow_list got = {0};
    of_client_dump(&client, &got);
    assert_int_equal(got.n, want->n);
    for (size_t i = 0; i < want->n; i++) {
        size_t j = 0;
        while (j < got.n && !of_flow_equal(want->flows[i], got.flows[j])) {
            j++;
        }
        if (j == got.n) {
            fail_msg("flow %zu of table %u is reported otherwise", i, want->flows[i]->table);
        }
    }
    of_flow_list_done(&got);
}

static void every_match_and_action_comes_back_the_same(void **state)
{
    struct of_flow_list l = {0};
    struct of_builder b;
    struct mac m = {{0x0a, 0x58, 0x0a, 0x80, 0, 2}}, group = {{1}};
    struct ip4_prefix net = {0x0a800000, 14}, host = {0x0a800002, 32};
    for (uint8_t proto = 6; proto <= 17; proto += 11) {
        of_begin(&b, proto, 100, UINT64_MAX);
        of_match_reg(&b, 3, UINT32_MAX);
        of_match_reg(&b, 0, 7);
        of_match_tun_src(&b, 0xc0a86402);
        of_match_tun_id(&b, 42);
        of_match_in_port(&b, 1);
        of_match_eth_src(&b, m);
        of_match_eth_dst(&b, m);
        of_match_eth_type(&b, 0x800);
        of_match_ip_src(&b, net);
        of_match_ip_dst(&b, host);
        of_match_ip_proto(&b, proto);
        if (proto == 6) {
            of_match_tcp_dst(&b, 80);
        } else {
            of_match_udp_dst(&b, 4789);
        }
        of_act_load_reg(&b, 1, 0x01020304);
        of_act_load_reg(&b, 0, 0);
        of_act_set_eth_src(&b, m);
        of_act_set_eth_dst(&b, m);
        of_act_set_tun_dst(&b, 0xc0a86403);
        of_act_set_tun_id(&b, 0);
        of_act_set_tun_id(&b, 0xffffff);
        of_act_output(&b, 1);
        of_act_output(&b, OF_PORT_IN_PORT);
        of_act_output(&b, OF_PORT_LOCAL);
        of_act_output_reg(&b, 2);
        of_goto(&b, 200);
        of_end_into(&b, &l);
    }

    of_begin(&b, 2, UINT16_MAX, 0);
    of_match_eth_type(&b, 0x806);
    of_match_arp_op(&b, 1);
    of_match_arp_spa(&b, net);
    of_match_arp_tpa(&b, net);
    of_match_arp_sha(&b, m);
    of_match_eth_dst_masked(&b, group, group);
    of_act_set_arp_op(&b, 2);
    static const struct {
        enum of_field field;
        unsigned bits;
    } fields[] = {{OF_ETH_SRC, 48}, {OF_ETH_DST, 48}, {OF_ARP_SHA, 48}, {OF_ARP_THA, 48},
                  {OF_ARP_SPA, 32}, {OF_ARP_TPA, 32}, {OF_TUN_ID, 64},  {OF_TUN_SRC, 32},
                  {OF_TUN_DST, 32}, {OF_REG0, 32},    {OF_REG1, 32},    {OF_REG2, 32},
                  {OF_REG3, 32}};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        unsigned bits = fields[i].bits;
        of_act_load(&b, fields[i].field, 0, bits, 0x0a0b0c0d);
        of_act_load(&b, fields[i].field, 16, 16, 0x0a58);
        of_act_move(&b, fields[i].field, 0, OF_REG1, 8, 24);
        of_act_move(&b, OF_REG2, 8, fields[i].field, 0, 24);
        of_act_move(&b, fields[i].field, 0, fields[(i + 1) % ARRAY_SIZE(fields)].field, 0, 32);
        if (i == ARRAY_SIZE(fields) / 2) {
            of_end_into(&b, &l);
            of_begin(&b, 3, 0, 0);
            of_match_eth_type(&b, 0x806);
        }
    }
    of_end_into(&b, &l);

    of_begin(&b, 4, 1, 0);
    of_match_eth_type(&b, 0x800);
    of_act_move(&b, OF_IP_SRC, 0, OF_IP_DST, 0, 32);
    of_act_load(&b, OF_IP_SRC, 0, 32, 0x01020304);
    of_act_load(&b, OF_IP_DST, 8, 8, 0xff);
    of_end_into(&b, &l);
    of_begin(&b, 5, 1, 0);
    of_match_vlan_tagged(&b);
    of_end_into(&b, &l);
    of_begin(&b, 0, 0, 1);
    of_goto(&b, 253);
    of_end_into(&b, &l);
    of_begin(&b, 253, 0, 1);
    of_end_into(&b, &l);
    for (uint8_t len = 1; len <= 32; len++) {
        of_begin(&b, 6, len, 1);
        of_match_eth_type(&b, 0x800);
        of_match_ip_dst(&b, (struct ip4_prefix){0xffffffff, len});
        of_end_into(&b, &l);
    }

    delete_all();
    of_client_commit(&client, OF_FLOW_ADD, &l);
    expect_in_switch(&l);
    of_flow_list_done(&l);
}

static void flows_of_policy_are_in_the_switch_as_sent(void **state)
{
    static const uint8_t protocols[] = {6, 17, 132};
    struct of_flow_list l = {0};
    struct of_builder b;
    of_begin(&b, 1, 1, 7);
    of_match_eth_type(&b, 0x800);
    of_act_load(&b, OF_REG7, 15, 1, 1);
    of_act_hash_symmetric(&b, 7, 15);
    of_act_hash_symmetric(&b, 0, 16);
    of_act_ct(&b, 7, 2);
    of_end_into(&b, &l);
    of_begin(&b, 2, 1, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_EST, OF_CT_TRK | OF_CT_EST | OF_CT_RPL | OF_CT_INV);
    of_match_ct_mark(&b, 1);
    of_match_reg(&b, 4, 9);
    of_act_ct_commit(&b, 7, 0x01020304);
    of_act_output_reg(&b, 2);
    of_end_into(&b, &l);
    of_begin(&b, 2, 2, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_NEW, OF_CT_TRK | OF_CT_NEW | OF_CT_REL);
    of_act_load_reg(&b, 6, 1);
    of_act_ct_commit(&b, 0, 0);
    of_goto(&b, 3);
    of_end_into(&b, &l);
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        static const uint16_t masks[] = {0, 0x8000, 0xfff0, 0xffff};
        for (size_t k = 0; k < ARRAY_SIZE(masks); k++) {
            of_begin(&b, 3, 100, 7);
            of_match_eth_type(&b, 0x800);
            of_match_ip_proto(&b, protocols[i]);
            of_match_l4_dst(&b, protocols[i], 0xabcd, masks[k]);
            of_act_conjunction(&b, 0xfffffff0, 3, 3);
            of_act_conjunction(&b, 5, 64, 64);
            of_end_into(&b, &l);
        }
    }
    of_begin(&b, 3, 100, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ip_src(&b, (struct ip4_prefix){0x0a800002, 32});
    for (uint32_t i = 0; i < OF_MAX_CONJUNCTIONS; i++) {
        of_act_conjunction(&b, 1000 + i, 1 + i % 2, 2);
    }
    of_end_into(&b, &l);
    of_begin(&b, 3, 102, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ip_proto(&b, 6);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_NEW, OF_CT_TRK | OF_CT_NEW);
    of_match_tcp_flags(&b, OF_TCP_FIN);
    of_end_into(&b, &l);
    of_begin(&b, 3, 104, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_REL, OF_CT_TRK | OF_CT_REL | OF_CT_RPL);
    of_match_ct_nw_src(&b, 0x0a800002);
    of_end_into(&b, &l);
    of_begin(&b, 3, 103, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_REL, OF_CT_TRK | OF_CT_REL);
    of_match_ct_nw_dst(&b, 0x0a800002);
    of_end_into(&b, &l);
    of_begin(&b, 3, 101, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ip_later_fragment(&b);
    of_end_into(&b, &l);
    of_begin(&b, 3, 100, 7);
    of_match_eth_type(&b, 0x800);
    of_match_conj_id(&b, 0xfffffff0);
    of_goto(&b, 4);
    of_end_into(&b, &l);

    delete_all();
    of_client_commit(&client, OF_FLOW_ADD, &l);
    expect_in_switch(&l);
    of_flow_list_done(&l);
}

static void flows_of_services_are_in_the_switch_as_sent(void **state)
{
    static const uint8_t protocols[] = {6, 17};
    struct of_learn learn = {.table = 26,
                             .priority = 100,
                             .idle_s = 10800,
                             .cookie = 0x000a123456789abcu,
                             .match_regs = {8, 9},
                             .load_regs = {14, 15},
                             .load = {0x0a800002, 8080}};
    struct of_flow_list l = {0};
    struct of_builder b;
    of_begin(&b, 21, 200, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ip_fragment(&b);
    of_act_ct_nat(&b, 4787, 23);
    of_end_into(&b, &l);
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        of_begin(&b, 27, 100, 7);
        of_match_eth_type(&b, 0x800);
        of_match_ip_proto(&b, protocols[i]);
        of_match_l4_src(&b, protocols[i], 0x1234, 0x000e);
        of_match_ip_src_bits(&b, 0x0a800003, 0x3);
        of_match_reg(&b, 12, 5);
        of_act_resubmit(&b, 28);
        of_act_load_reg(&b, 13, 1);
        of_goto(&b, 28);
        of_end_into(&b, &l);
    }
    of_begin(&b, 28, 100, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_DNAT, OF_CT_TRK | OF_CT_DNAT);
    of_match_reg(&b, 15, 1);
    of_act_learn(&b, &learn);
    of_act_ct_nat_dst(&b, 4787, 0x0a800002, 8080, 29);
    of_act_ct_nat_src(&b, 4786, 0xa9fe0001, 88);
    of_end_into(&b, &l);
    of_begin(&b, 85, 100, 7);
    of_match_eth_type(&b, 0x800);
    of_match_ip_proto(&b, 1);
    of_match_icmp_type(&b, 3);
    of_act_ct_nat(&b, UINT16_MAX, 86);
    of_act_move(&b, OF_ETH_SRC, 0, OF_ETH_DST, 0, 48);
    of_end_into(&b, &l);

    delete_all();
    of_client_commit(&client, OF_FLOW_ADD, &l);
    expect_in_switch(&l);
    of_flow_list_done(&l);
}

/* Flows that others wrote, with what our builder has no word for: read, deleted and
 * sent again they are what they were. */
static void flows_of_others_survive_a_round_trip(void **state)
{
    static const char *const flows[] = {
        "table=1,cookie=5,ct_state=+trk+est,ip,ct_mark=0x1/"
        "0x3,actions=ct(commit,zone=5,nat(src=1.2."
        "3.4),exec(load:7->NXM_NX_CT_MARK[])),resubmit(,2)",
        "table=2,ipv6,ipv6_dst=fd00::/8,nw_ttl=1,actions=dec_ttl,clone(output:1),LOCAL",
        "table=3,conj_id=77,ip,actions=learn(table=4,hard_timeout=9,NXM_OF_ETH_DST[]=NXM_OF_ETH_"
        "SRC[],"
        "output:NXM_OF_IN_PORT[]),NORMAL",
        "table=5,tcp,tp_src=0x1000/0xf000,tcp_flags=+syn,vlan_tci=0x1123/0x1fff,actions=meter:3,"
        "pop_vlan,group:9",
        "table=5,ip,actions=push_vlan:0x8100,set_field:4097->vlan_vid,mod_nw_tos:8,output:2",
        "table=6,arp,arp_op=2,in_port=LOCAL,actions=write_metadata:0x5/0xff,goto_table:7",
        "table=7,ip,nw_src=10.0.0.1/"
        "255.0.255.0,actions=note:00.11.22,set_queue:3,clear_actions,write_"
        "actions(output:4),goto_table:9",
        "table=9,priority=3,icmp,icmp_type=8,metadata=9/"
        "0xf,reg9=1,xreg2=5,actions=CONTROLLER:65535",
        "table=9,tun_id=5/0xff,tun_dst=1.2.3.4,tun_flags=+oam,actions=drop",
    };
    delete_all();
    OVS_RUN(&ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "add-group", "br0",
            "group_id=9,type=all,bucket=output:1");
    OVS_RUN(&ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "add-meter", "br0",
            "meter=3,kbps,band=type=drop,rate=1000");
    for (size_t i = 0; i < ARRAY_SIZE(flows); i++) {
        OVS_RUN(&ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "add-flow", "br0", flows[i]);
    }
    struct of_flow_list l = {0};
    of_client_dump(&client, &l);
    assert_int_equal(l.n, ARRAY_SIZE(flows));
    delete_all();
    of_client_commit(&client, OF_FLOW_ADD, &l);
    expect_in_switch(&l);
    of_client_commit(&client, OF_FLOW_DELETE_STRICT, &l);
    of_flow_list_done(&l);
    expect_in_switch(&l);
}

static void flow_with_a_timeout_equals_no_flow_of_ours(void **state)
{
    struct of_flow_list l = {0}, got = {0};
    struct of_builder b;
    of_begin(&b, 0, 5, 0);
    of_end_into(&b, &l);
    delete_all();
    OVS_RUN(&ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "add-flow", "br0",
            "priority=5,idle_timeout=600,actions=drop");
    of_client_dump(&client, &got);
    assert_int_equal(got.n, 1);
    assert_true(of_flow_same_key(got.flows[0], l.flows[0]));
    assert_false(of_flow_equal(got.flows[0], l.flows[0]));
    of_flow_list_done(&got);
    /* Adding ours replaces it. */
    of_client_commit(&client, OF_FLOW_ADD, &l);
    expect_in_switch(&l);
    of_flow_list_done(&l);
}

static void many_flows_come_in_several_replies(void **state)
{
    struct of_flow_list l = {0}, got = {0};
    struct of_builder b;
    for (uint32_t i = 0; i < 5000; i++) {
        of_begin(&b, 1, 100, i);
        of_match_eth_type(&b, 0x800);
        of_match_ip_dst(&b, (struct ip4_prefix){0x0a800000 + i, 32});
        of_act_output(&b, i + 1);
        of_end_into(&b, &l);
    }
    delete_all();
    of_client_commit(&client, OF_FLOW_ADD, &l);
    of_client_dump(&client, &got);
    assert_int_equal(got.n, l.n);
    uint64_t cookies = 0;
    for (size_t i = 0; i < got.n; i++) {
        assert_true(of_flow_equal(got.flows[i], l.flows[got.flows[i]->cookie]));
        cookies += got.flows[i]->cookie;
    }
    assert_int_equal(cookies, 4999 * 5000 / 2);
    of_flow_list_done(&got);
    of_flow_list_done(&l);
}

/* What came before the reply to a barrier. */
struct outcome {
    char error[96];
    uint32_t error_xid; /* Of the first error. */
    bool committed;
};

static struct outcome outcome_of(struct strbuf *out)
{
    struct outcome o = {0};
    of_put_barrier_request(out, 9999);
    of_client_send(&client, out);
    strbuf_reset(out);
    for (;;) {
        struct of_msg m = of_client_receive(&client);
        struct of_error er;
        uint32_t bundle;
        uint16_t type;
        if (!o.error_xid && of_error_parse(&m, &er, NULL) == 0) {
            o.error_xid = m.xid;
            of_error_text(&er, o.error);
        }
        if (of_bundle_control_parse(&m, &bundle, &type, NULL) == 0) {
            o.committed = o.committed || type == OF_BUNDLE_COMMIT + 1;
        }
        if (m.type == OF_BARRIER_REPLY && m.xid == 9999) {
            return o;
        }
    }
}

/* A good flow, then a bad one: refused when it is added, or only at the commit. */
static void bundle_is_all_or_nothing(void **state)
{
    struct of_flow_list l = {0}, none = {0};
    struct of_builder b;
    of_begin(&b, 0, 5, 0);
    of_end_into(&b, &l);
    of_begin(&b, 0, 6, 0);
    of_match_ip_dst(&b, (struct ip4_prefix){1, 32}); /* Lacks eth_type. */
    of_end_into(&b, &l);
    of_begin(&b, 9, 6, 0);
    of_end_into(&b, &l);
    of_begin(&b, 9, 7, 0); /* More than the table takes. */
    of_end_into(&b, &l);
    delete_all();
    OVS_VSCTL(&ovs, "--id=@t", "create", "Flow_Table", "flow_limit=1", "overflow_policy=refuse",
              "--", "set", "bridge", "br0", "flow_tables:9=@t");

    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    of_put_bundle_control(&out, 1000, 77, OF_BUNDLE_OPEN);
    of_put_bundle_flow_mod(&out, 1001, 77, OF_FLOW_ADD, l.flows[0]);
    of_put_bundle_flow_mod(&out, 1002, 77, OF_FLOW_ADD, l.flows[1]);
    of_put_bundle_control(&out, 1003, 77, OF_BUNDLE_CLOSE);
    struct outcome o = outcome_of(&out);
    assert_int_equal(o.error_xid, 1002);
    assert_string_equal(o.error, "bad match: a field lacks its prerequisite");
    of_put_bundle_control(&out, 1004, 77, OF_BUNDLE_DISCARD);
    o = outcome_of(&out);
    assert_int_equal(o.error_xid, 0);
    expect_in_switch(&none);

    of_put_bundle_control(&out, 2000, 78, OF_BUNDLE_OPEN);
    of_put_bundle_flow_mod(&out, 2001, 78, OF_FLOW_ADD, l.flows[0]);
    of_put_bundle_flow_mod(&out, 2002, 78, OF_FLOW_ADD, l.flows[2]);
    of_put_bundle_flow_mod(&out, 2003, 78, OF_FLOW_ADD, l.flows[3]);
    of_put_bundle_control(&out, 2004, 78, OF_BUNDLE_CLOSE);
    o = outcome_of(&out);
    assert_int_equal(o.error_xid, 0);
    of_put_bundle_control(&out, 2005, 78, OF_BUNDLE_COMMIT);
    o = outcome_of(&out);
    assert_int_equal(o.error_xid, 2003);
    assert_string_equal(o.error, "flow-mod failed: table full");
    assert_false(o.committed);
    expect_in_switch(&none);
    of_flow_list_done(&l);
    OVS_VSCTL(&ovs, "clear", "bridge", "br0", "flow_tables");
}

static void counters_of_a_changed_flow_go_on(void **state)
{
    struct of_flow_list l = {0};
    struct of_builder b;
    of_begin(&b, 0, 5, 1);
    of_end_into(&b, &l);
    delete_all();
    of_client_commit(&client, OF_FLOW_ADD, &l);
    OVS_RUN(&ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "packet-out", "br0",
            "in_port=LOCAL,packet=ffffffffffff0a580a8000020806,actions=resubmit(,0)");
    of_flow_list_done(&l);
    of_begin(&b, 0, 5, 2);
    of_act_output(&b, 9);
    of_end_into(&b, &l);
    of_client_commit(&client, OF_FLOW_ADD, &l);
    expect_in_switch(&l);

    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    of_put_flow_dump_request(&out, 5000);
    of_client_send(&client, &out);
    struct of_msg m = of_client_receive(&client);
    struct of_flow_list got = {0};
    struct of_counters *stats = NULL;
    size_t cap = 0;
    bool more;
    assert_int_equal(of_flow_dump_parse(&m, &got, &stats, &cap, &more, NULL), 0);
    assert_int_equal(got.n, 1);
    assert_int_equal(stats[0].packets, 1);
    assert_int_equal(stats[0].bytes, 14);
    free(stats);
    of_flow_list_done(&got);
    of_flow_list_done(&l);
}

int main(void)
{
    if (ovs_unavailable()) {
        print_message("skipped: %s\n", ovs_unavailable());
        return 77; /* What meson counts as skipped. */
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_match_and_action_comes_back_the_same),
        cmocka_unit_test(flows_of_policy_are_in_the_switch_as_sent),
        cmocka_unit_test(flows_of_services_are_in_the_switch_as_sent),
        cmocka_unit_test(flows_of_others_survive_a_round_trip),
        cmocka_unit_test(flow_with_a_timeout_equals_no_flow_of_ours),
        cmocka_unit_test(many_flows_come_in_several_replies),
        cmocka_unit_test(bundle_is_all_or_nothing),
        cmocka_unit_test(counters_of_a_changed_flow_go_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
