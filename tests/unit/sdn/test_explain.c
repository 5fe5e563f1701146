/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline in words: every flow has some, and traces are read as what they say. */
#include "base/mem.h"
#include "sdn/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

static struct sdn_network network(enum sdn_plugin plugin)
{
    return (struct sdn_network){.plugin = plugin,
                                .cluster = {{IP(10, 128, 0, 0), 14}},
                                .n_cluster = 1,
                                .service = {IP(172, 30, 0, 0), 16},
                                .local = {IP(10, 128, 0, 0), 23},
                                .host_ip = IP(192, 168, 100, 1),
                                .vxlan_port = SDN_VXLAN_PORT,
                                .mtu = 1450,
                                .refusal_meter = 1};
}

static void every_flow_and_every_cause_has_words(void **state)
{
    for (enum sdn_plugin plugin = SDN_SUBNET; plugin <= SDN_NETWORKPOLICY; plugin++) {
        struct sdn_network n = network(plugin);
        struct sdn_remote r = {
            .host_ip = IP(192, 168, 100, 2), .subnet = {IP(10, 128, 2, 0), 23}, .id = 7};
        struct pipeline_pod p = {.ofport = 3,
                                 .ip = IP(10, 128, 0, 2),
                                 .mac = mac_from_ip4(IP(10, 128, 0, 2)),
                                 .vnid = 42};
        struct of_flow_list l = {0};
        pipeline_base(&n, &l);
        pipeline_remote(&n, &r, &l);
        pipeline_pod(&n, &p, &l);
        pipeline_vnid(&n, 42, &l);
        for (size_t i = 0; i < l.n; i++) {
            const struct of_flow *f = l.flows[i];
            CLEANUP_STRBUF struct strbuf match = STRBUF_INIT, actions = STRBUF_INIT;
            of_flow_match_text(f, &match);
            of_flow_actions_text(f, &actions);
            if (!*explain_rule(f->table, f->priority, f->cookie)) {
                fail_msg("no words for table %u priority %u %s", f->table, f->priority,
                         strbuf_cstr(&match));
            }
            assert_true(actions.size > 0 && !strstr(strbuf_cstr(&actions), "action"));
            assert_null(strstr(strbuf_cstr(&match), "field"));
        }
        of_flow_list_done(&l);
    }
    for (enum model_cause c = 1; c < MODEL_N_CAUSES; c++) {
        assert_true(strlen(explain_cause(c)) > 10);
    }
    for (enum policy_reason r = POLICY_BY_RULE; r <= POLICY_NOT_SELECTED; r++) {
        struct policy_decision d = {.reason = r};
        assert_true(strlen(explain_decision(&d, POLICY_EGRESS)) > 10);
        assert_true(strlen(explain_decision(&d, POLICY_INGRESS)) > 10);
    }
    assert_string_equal(explain_rule(80, 100, 0), "");
    assert_string_equal(explain_rule(7, 0, PIPELINE_BASE_COOKIE), "");
}

static void flows_are_written_as_ovs_names_them(void **state)
{
    struct of_builder b;
    CLEANUP_STRBUF struct strbuf s = STRBUF_INIT;
    of_begin(&b, 60, 100, 1);
    of_match_eth_type(&b, 0x0800);
    of_match_ip_dst(&b, (struct ip4_prefix){IP(10, 128, 2, 0), 23});
    of_match_in_port(&b, 3);
    of_match_eth_src(&b, mac_from_ip4(IP(10, 128, 0, 2)));
    of_match_tun_src(&b, IP(192, 168, 100, 2));
    of_match_reg(&b, 0, 42);
    of_act_move(&b, OF_REG0, 0, OF_TUN_ID, 0, 24);
    of_act_load(&b, OF_ETH_SRC, 32, 16, 0x0a58);
    of_act_set_tun_dst(&b, IP(192, 168, 100, 2));
    of_act_output_reg(&b, 2);
    of_act_output(&b, OF_PORT_IN_PORT);
    of_act_controller(&b, 128);
    of_act_conjunction(&b, 7, 2, 3);
    of_act_ct(&b, 7, 32);
    of_act_ct_commit(&b, 7, 1);
    of_meter(&b, 1);
    of_goto(&b, 70);
    struct of_flow *f = of_end(&b);
    of_flow_match_text(f, &s);
    assert_string_equal(strbuf_cstr(&s),
                        "in_port=3,eth_src=0a:58:0a:80:00:02,ip,ip_dst=10.128.2.0/23,reg0=0x2a,"
                        "tun_src=192.168.100.2");
    strbuf_reset(&s);
    of_flow_actions_text(f, &s);
    assert_string_equal(
        strbuf_cstr(&s),
        "meter:1,move:reg0[0..23]->tun_id[0..23],load:0xa58->eth_src[32..47],"
        "set:tun_dst=192.168.100.2,output:reg2,output:IN_PORT,CONTROLLER,conjunction(7,2/3),"
        "ct(zone=reg7,table=32),ct(commit,zone=reg7,exec(set:ct_mark=0x1)),goto:70");
    of_flow_free(f);
}

/* ---- traces ---- */

#define HEAD "Flow: icmp,in_port=3\n\nbridge(\"br0\")\n-------------\n"
#define FROM_POD                                               \
    " 0. ip, priority 100, cookie 0x1000000000000\n"           \
    "    goto_table:20\n"                                      \
    "20. ip,in_port=3, priority 100, cookie 0x300000a800002\n" \
    "    set_field:0xa->reg0\n"                                \
    "    goto_table:50\n"

static void expect(const char *text, enum model_action action, enum model_cause cause, int table)
{
    CLEANUP(ovstrace_done) struct ovstrace t = {0};
    struct explain_outcome o;
    struct err e = {0};
    int r = ovstrace_parse(text, "br0", &t, &e);
    if (r == 0) {
        r = explain_outcome(&t, &o, &e);
    }
    if (r < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(o.action, action);
    assert_int_equal(o.cause, cause);
    assert_int_equal(o.decisive->table, table);
    struct model_verdict v = {.action = action, .cause = cause};
    assert_true(explain_agrees(&o, &v));
    v.cause = MODEL_SPOOFED_SOURCE;
    assert_false(explain_agrees(&o, &v));
}

static void traces_are_read_as_what_they_say(void **state)
{
    expect(HEAD FROM_POD "70. ip,nw_dst=10.128.0.3, priority 100, cookie 0x300000a800003\n"
                         "80. priority 0, cookie 0x800100000000000f\n    drop\n\n"
                         "Final flow: unchanged\nDatapath actions: drop\n",
           MODEL_DROP, MODEL_VNID_MISMATCH, 80);
    expect(HEAD FROM_POD "70. ip,nw_dst=10.128.0.3, priority 100, cookie 0x300000a800003\n"
                         "80. reg0=0xa,reg1=0xa, priority 100, cookie 0x400000000000a\n"
                         "    output:NXM_NX_REG2[]\n     -> output port is 4\n\n"
                         "Datapath actions: 4\n",
           MODEL_DELIVER, MODEL_NOT_DROPPED, 80);
    expect(HEAD FROM_POD
           "60. priority 0, cookie 0x800100000000000c\n    meter:1\n    CONTROLLER:128\n"
           "Datapath actions: meter(0),userspace(pid=0,controller(reason=6))\n",
           MODEL_DROP, MODEL_NO_SUCH_NODE, 60);
    expect(HEAD FROM_POD "60. ip, priority 100, cookie 0x2e312662d4228\n    output:1\n"
                         "\nbridge(\"br-phy\")\n---\n 0. priority 0\n    NORMAL\n"
                         "Datapath actions: tnl_push(tnl_port(4)),1",
           MODEL_TUNNEL, MODEL_NOT_DROPPED, 60);
    expect(HEAD FROM_POD "90. priority 0, cookie 0x1000000000000\n    output:2\n"
                         "Datapath actions: 3\n",
           MODEL_HOST, MODEL_NOT_DROPPED, 90);
    /* The flows would send it, the switch cannot. */
    expect(HEAD FROM_POD "60. ip, priority 100, cookie 0x2e312662d4228\n    output:1\n"
                         "     >> native tunnel routing failed\nDatapath actions: drop\n",
           MODEL_DROP, MODEL_NOT_DROPPED, 60);
}

static void the_endpoint_of_a_service_is_read_from_a_trace(void **state)
{
    static const struct {
        const char *actions;
        uint32_t ip; /* 0: none. */
        uint16_t port;
    } cases[] = {
        {"ct(commit,table=29,zone=4787,nat(dst=10.128.2.3:8080))", 0x0a800203, 8080},
        {"ct(table=23,zone=4787,nat)", 0, 0},
        {"ct(commit,table=29,zone=4787,nat(dst=10.128.2.3))", 0, 0},
        {"nat(dst=", 0, 0},
        {"nat(dst=10.128.2.3:", 0, 0},
        {"nat(dst=10.128.2.3:99999)", 0, 0},
        {"nat(dst=10.128.2.300:80)", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(ovstrace_done) struct ovstrace t = {0};
        struct err e = {0};
        uint32_t ip = 0;
        uint16_t port = 0;
        CLEANUP_FREE char *text =
            xasprintf(HEAD FROM_POD "28. ip, priority 100, cookie 0xa00000a800003\n    %s\n"
                                    "Datapath actions: drop\n",
                      cases[i].actions);
        assert_int_equal(ovstrace_parse(text, "br0", &t, &e), 0);
        assert_int_equal(explain_translation(&t, &ip, &port), cases[i].ip != 0);
        assert_int_equal(port, cases[i].port);
        assert_true(!cases[i].ip || ip == cases[i].ip);
    }
}

static void a_step_has_its_match_and_actions(void **state)
{
    CLEANUP(ovstrace_done) struct ovstrace t = {0};
    assert_int_equal(ovstrace_parse(HEAD FROM_POD "60. priority 0, cookie 0x800100000000000c\n"
                                                  "     >> native tunnel routing failed\n"
                                                  "Datapath actions: drop",
                                    "br0", &t, NULL),
                     0);
    assert_int_equal(t.n, 3);
    assert_string_equal(t.steps[1].match, "ip,in_port=3");
    assert_string_equal(t.steps[1].actions, "set_field:0xa->reg0, goto_table:50");
    assert_int_equal(t.steps[1].priority, 100);
    assert_true(t.steps[1].cookie == 0x300000a800002);
    assert_string_equal(t.steps[2].match, "");
    assert_string_equal(t.remark, "native tunnel routing failed");
    assert_string_equal(t.datapath_actions, "drop");
}

/* A switch whose flows resubmit without an end. */
static void of_a_very_long_trace_the_first_steps_are_kept(void **state)
{
    CLEANUP(ovstrace_done) struct ovstrace t = {0};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, HEAD);
    for (int i = 0; i < 1030; i++) {
        strbuf_addf(&text, "20. priority %d, cookie 0x300000a800002\n", i);
    }
    strbuf_addf(&text, "Datapath actions: drop\n");
    assert_int_equal(ovstrace_parse(strbuf_cstr(&text), "br0", &t, NULL), 0);
    assert_int_equal(t.n, 1024);
    assert_int_equal(t.steps[1023].priority, 1023);
}

static void what_is_no_trace_is_refused(void **state)
{
    CLEANUP(ovstrace_done) struct ovstrace t = {0};
    struct explain_outcome o;
    struct err e = {0};
    assert_int_equal(ovstrace_parse("Bad openflow flow syntax", "br0", &t, &e), -EBADMSG);
    assert_non_null(strstr(e.text, "Bad openflow flow syntax"));
    assert_int_equal(
        ovstrace_parse("bridge(\"br1\")\n 0. priority 0\nDatapath actions: 1", "br0", &t, &e), 0);
    assert_int_equal(t.n, 0);
    assert_int_equal(explain_outcome(&t, &o, &e), -EBADMSG);
}

static void packets_are_put_in_the_words_of_ofproto_trace(void **state)
{
    struct sdn_network n = network(SDN_MULTITENANT);
    struct explain_question q = {.entry = MODEL_FROM_TUNNEL,
                                 .outer_src = IP(192, 168, 100, 2),
                                 .tunnel_id = 42,
                                 .src = IP(10, 128, 2, 2),
                                 .dst = IP(10, 128, 0, 2),
                                 .proto = 6,
                                 .src_port = 40000,
                                 .dst_port = 80};
    struct model_packet p;
    CLEANUP_STRBUF struct strbuf s = STRBUF_INIT;
    explain_packet(&n, &q, &p);
    explain_packet_text(&n, &p, &s);
    assert_string_equal(strbuf_cstr(&s),
                        "in_port=1,tun_src=192.168.100.2,tun_dst=192.168.100.1,tun_id=42,"
                        "dl_src=0a:58:0a:80:02:02,dl_dst=0a:58:0a:80:00:01,tcp,nw_src=10.128.2.2,"
                        "nw_dst=10.128.0.2,nw_ttl=64,tcp_src=40000,tcp_dst=80,tcp_flags=syn");
    uint8_t proto = 0;
    struct err e = {0};
    assert_int_equal(explain_proto_parse("sctp", &proto, &e), 0);
    assert_int_equal(proto, 132);
    assert_int_equal(explain_proto_parse("TCP", &proto, &e), -EINVAL);
    assert_non_null(strstr(e.text, "icmp, tcp, udp or sctp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flow_and_every_cause_has_words),
        cmocka_unit_test(flows_are_written_as_ovs_names_them),
        cmocka_unit_test(traces_are_read_as_what_they_say),
        cmocka_unit_test(a_step_has_its_match_and_actions),
        cmocka_unit_test(the_endpoint_of_a_service_is_read_from_a_trace),
        cmocka_unit_test(of_a_very_long_trace_the_first_steps_are_kept),
        cmocka_unit_test(what_is_no_trace_is_refused),
        cmocka_unit_test(packets_are_put_in_the_words_of_ofproto_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
