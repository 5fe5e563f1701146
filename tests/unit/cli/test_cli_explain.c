/* SPDX-License-Identifier: Apache-2.0 */
/* What trace, flows and check print, and how they exit. */
#include "cli/explain/check.h"
#include "cli/explain/node_flows.h"
#include "cli/explain/trace.h"
#include "wire/ping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct json *from(const char *text)
{
    CLEANUP_FREE char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(s, strlen(s), &v, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return v;
}

#define ENDS                                                                                    \
    "'from':{'text':'red/a 10.128.0.2 on node1','namespace':'red','vnid':10},"                  \
    "'to':{'text':'blue/b 10.128.2.2 on node2','namespace':'blue','vnid':11},'protocol':'tcp'," \
    "'port':80,"
#define TUNNEL                                                                                 \
    "{'node':'node1','agreed':true,'model':{'action':'tunnel','remoteNode':'node2','vnid':10," \
    "'vtep':'192.168.0.2'},'switch':{'action':'tunnel','steps':[]}}"
#define STEP                                                                                     \
    "{'table':80,'tableName':'isolation','priority':0,'cookie':'0x800100000000000f','match':''," \
    "'object':'','meaning':'they differ','cause':'vnid-mismatch'}"

static const char *conclude(struct json *trace, struct strbuf *out)
{
    trace_conclude(trace);
    trace_render(trace, out);
    return strbuf_cstr(out);
}

static void a_drop_names_node_rule_cause_and_objects(void **state)
{
    CLEANUP(json_free)
    struct json *t =
        from("{" ENDS "'halves':[" TUNNEL ",{'node':'node2','agreed':true,"
             "'model':{'action':'drop','cause':'vnid-mismatch'},"
             "'switch':{'action':'drop','cause':'vnid-mismatch','steps':[" STEP "]}}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *text = conclude(t, &out);
    assert_int_equal(trace_exit_status(t), 1);
    assert_non_null(strstr(text, "-> by the tunnel to node2 (192.168.0.2) with VNID 10\n"));
    assert_non_null(strstr(text,
                           "dropped on node2: vnid-mismatch (they differ), by table 80 isolation, "
                           "priority 0, cookie 0x800100000000000f: NetNamespace red has 10, "
                           "NetNamespace blue has 11\n"));
    assert_null(strstr(text, "disagree"));
}

static void what_arrives_is_allowed(void **state)
{
    CLEANUP(json_free)
    struct json *t = from("{" ENDS "'halves':[" TUNNEL ",{'node':'node2','agreed':true,"
                          "'model':{'action':'deliver'},"
                          "'switch':{'action':'deliver','steps':[]}}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_non_null(strstr(conclude(t, &out), "\nallowed: delivered on node2\n"));
    assert_int_equal(trace_exit_status(t), 0);
}

static void the_switch_counts_and_a_model_that_disagrees_is_told(void **state)
{
    /* The first node drops what its model would send; the second half is only what
     * would have been. */
    CLEANUP(json_free)
    struct json *t =
        from("{" ENDS "'halves':[{'node':'node1','agreed':false,"
             "'model':{'action':'tunnel'},'switch':{'action':'drop','cause':'no-such-node',"
             "'steps':[]}},{'node':'node2','agreed':true,'model':{'action':'deliver'},"
             "'switch':{'action':'deliver','steps':[]}}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *text = conclude(t, &out);
    assert_non_null(strstr(text, "THE MODEL DISAGREES: it says tunnel"));
    assert_non_null(strstr(text, "dropped on node1: no-such-node"));
    assert_non_null(strstr(text, "switch and model disagree"));
    assert_int_equal(trace_exit_status(t), 3);
}

static void without_the_switch_the_registrys_word_is_taken_and_said(void **state)
{
    CLEANUP(json_free)
    struct json *t = from("{" ENDS "'halves':[" TUNNEL ",{'node':'node2',"
                          "'model':{'action':'drop','cause':'no-such-pod','text':'nobody has it'},"
                          "'switch':{'error':'not here'}}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *text = conclude(t, &out);
    assert_non_null(
        strstr(text, "its switch was not asked (not here); computed from the registry"));
    assert_non_null(strstr(text, "dropped on node2: no-such-pod (nobody has it)"));
    assert_int_equal(trace_exit_status(t), 1);
}

static void each_half_of_a_trace_is_told_in_full(void **state)
{
    CLEANUP(json_free)
    struct json *t = from(
        "{" ENDS "'halves':[{'node':'node1','agreed':true,'model':{'action':'tunnel',"
        "'remoteNode':'node2','vnid':10,'vtep':'192.168.0.2'},'service':{'name':'red/web',"
        "'port':80,'endpoint':'10.128.2.2','endpointPort':8080,'endpoints':3},'policies':["
        "{'direction':'egress','allowed':true,'agreed':true,'object':'','meaning':'no policy'}],"
        "'switch':{'action':'tunnel','steps':[{'tableName':'from_pod','match':'','object':'',"
        "'meaning':'a map'}],'remark':'as told'}},{'node':'node2','agreed':false,"
        "'model':{'action':'deliver'},'service':{'name':'host ports at 192.168.0.9','port':80},"
        "'policies':[{'direction':'ingress','allowed':false,'agreed':false,'object':'a','meaning':"
        "'b'},{'direction':'ingress','allowed':true,'agreed':true,'object':'c','meaning':'d'}],"
        "'switch':{'action':'deliver','steps':[]}}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_string_equal(conclude(t, &out),
                        "red/a 10.128.0.2 on node1 -> blue/b 10.128.2.2 on node2, tcp port 80\n"
                        "\n"
                        "node1:\n"
                        "  TABLE      PRIORITY   MATCH          OBJECT   MEANING\n"
                        "  from_pod   -          (everything)   -        a map\n"
                        "  egress policies allow it: no policy\n"
                        "  to service red/web port 80: endpoint 10.128.2.2:8080, one of 3\n"
                        "  -> by the tunnel to node2 (192.168.0.2) with VNID 10\n"
                        "  the switch remarks: as told\n"
                        "\n"
                        "node2:\n"
                        "  ingress policies deny it: a (b), THE DATAPATH DOES NOT\n"
                        "  ingress policies allow it: c (d)\n"
                        "  to host ports at 192.168.0.9 port 80\n"
                        "  -> delivered to the pod\n"
                        "\n"
                        "allowed: delivered on node2\n"
                        "switch and model disagree: the node does not do what it should\n");
    assert_int_equal(trace_exit_status(t), 3);
}

static void a_drop_by_a_program_is_told_with_what_the_pod_hears(void **state)
{
    CLEANUP(json_free)
    struct json *t =
        from("{" ENDS "'halves':[{'node':'node1','agreed':true,'policiesChange':true,"
             "'model':{'action':'drop','cause':'x','refused':true},'policies':["
             "{'direction':'egress','allowed':true,'agreed':false,'object':'o',"
             "'meaning':'m'}],'switch':{'action':'drop','cause':'x','steps':["
             "{'tableName':'from_pod','match':'k','object':'Pod a','meaning':'w'}]}}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *text = conclude(t, &out);
    assert_non_null(
        strstr(text, "  egress policies allow it: o (m), as of a change that is not in place yet\n"
                     "  -> dropped; the pod gets an ICMP error\n"
                     "\n"
                     "dropped on node1: x (w), by the program from_pod: Pod a\n"));
    assert_null(strstr(text, "DISAGREES"));
    assert_int_equal(trace_exit_status(t), 1);
}

static void flows_are_a_table_with_counters_and_objects(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'node':'node1','flows':[{'table':70,'tableName':'local','priority':100,"
                          "'packets':12,'match':'ip,ip_dst=10.128.0.2','object':'Pod red/a',"
                          "'meaning':'the destination is the pod'},{'table':70,'tableName':'local',"
                          "'priority':0,'packets':3,'match':'','object':'','meaning':'nobody',"
                          "'cause':'no-such-pod'}]}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    node_flows_render(v, &out);
    assert_string_equal(
        strbuf_cstr(&out),
        "  TABLE      PRIORITY   PACKETS   MATCH                  OBJECT      MEANING\n"
        "  70 local   100        12        ip,ip_dst=10.128.0.2   Pod red/a   the "
        "destination is the pod\n"
        "  70 local   0 drop     3         (everything)           -           nobody\n");
}

static void check_judges_each_probe(void **state)
{
    struct check_pod pod = {0};
    struct check_probe p[] = {
        {.name = "isolation", .pod = &pod, .tried = true, .forbidden = true},
        {.name = "isolation", .pod = &pod, .tried = true, .forbidden = true, .answered = true},
        {.name = "mtu", .pod = &pod, .tried = true, .answered = true, .size = 1450},
        {.name = "mtu", .pod = &pod, .tried = true, .size = 1450, .from = "node1", .to = "node2"},
        {.name = "nat", .pod = &pod},
        {.name = "dns", .detail = "nothing configured"},
    };
    static const enum check_result want[] = {CHECK_OK,     CHECK_FAILED, CHECK_OK,
                                             CHECK_FAILED, CHECK_FAILED, CHECK_SKIPPED};
    for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
        check_judge(&p[i]);
        assert_int_equal(p[i].result, want[i]);
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    check_render(p, ARRAY_SIZE(p), &out);
    const char *text = strbuf_cstr(&out);
    assert_non_null(strstr(text, "isolation   ok                        1 of 2 tried\n"));
    assert_non_null(strstr(text, "reached, and must not be\n"));
    assert_non_null(
        strstr(text, "mtu         FAILED    node1   node2   no answer to packets of 1450 bytes\n"));
    assert_non_null(strstr(text, "dns         skipped"));
    assert_non_null(strstr(text, "\n2 passed, 3 failed, 1 skipped\n"));
    assert_int_equal(check_exit_status(p, ARRAY_SIZE(p)), 1);
    assert_int_equal(check_exit_status(p, 1), 0);
    CLEANUP(json_free) struct json *v = check_json(p, ARRAY_SIZE(p));
    assert_false(json_get_bool(json_get(v, "ok"), true));
    assert_int_equal(json_count(json_get(v, "probes")), ARRAY_SIZE(p));
}

static void answers_to_probes_are_told_from_others(void **state)
{
    uint8_t packet[28 + 28] = {0x45, 0, 0,  28,  0, 0, 0,  0,   64, 1,
                               0,    0, 10, 128, 0, 1, 10, 128, 0,  2};
    ping_put(packet + 20, 8, 0x1234, 7);
    assert_int_equal(ping_parse(packet, 28, 0x1234).kind, PING_NOT_OURS); /* The request itself. */
    packet[20] = 0;
    struct ping_reply r = ping_parse(packet, 28, 0x1234);
    assert_int_equal(r.kind, PING_ANSWER);
    assert_int_equal(r.seq, 7);
    assert_int_equal(r.from, 0x0a800001);
    assert_int_equal(ping_parse(packet, 28, 0x1235).kind, PING_NOT_OURS);
    assert_int_equal(ping_parse(packet, 27, 0x1234).kind, PING_NOT_OURS);

    uint8_t error[56] = {0x45, 0,  0,   56, 0, 0,  0,   0, 64, 1, 0,
                         0,    10, 128, 0,  1, 10, 128, 0, 2,  3, 1};
    packet[20] = 8;
    memcpy(error + 28, packet, 28);
    r = ping_parse(error, sizeof error, 0x1234);
    assert_int_equal(r.kind, PING_UNREACHABLE);
    assert_int_equal(r.code, 1);
    assert_int_equal(r.seq, 7);
    assert_int_equal(ping_parse(error, sizeof error - 1, 0x1234).kind, PING_NOT_OURS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_drop_names_node_rule_cause_and_objects),
        cmocka_unit_test(what_arrives_is_allowed),
        cmocka_unit_test(the_switch_counts_and_a_model_that_disagrees_is_told),
        cmocka_unit_test(without_the_switch_the_registrys_word_is_taken_and_said),
        cmocka_unit_test(each_half_of_a_trace_is_told_in_full),
        cmocka_unit_test(a_drop_by_a_program_is_told_with_what_the_pod_hears),
        cmocka_unit_test(flows_are_a_table_with_counters_and_objects),
        cmocka_unit_test(check_judges_each_probe),
        cmocka_unit_test(answers_to_probes_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
