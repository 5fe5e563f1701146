/* SPDX-License-Identifier: Apache-2.0 */
/* What "tenet flows" and "tenet node maps" make of an agent's answers. */
#include "cli/explain/flows.h"
#include "cli/explain/node_maps.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* With ' for ". */
static struct json *from(const char *text)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    struct json *v = NULL;
    struct err e = {0};
    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(copy, strlen(copy), &v, &e) < 0) {
        fail_msg("%s: %s", e.text, text);
    }
    return v;
}

#define HEAD "'time':'2026-01-02T03:04:05.678Z','node':'node1',"
#define RED "'from':{'ip':'10.128.0.2','port':40000,'namespace':'red','pod':'web'},"

static char *line(const char *text, const struct flow_names *n)
{
    CLEANUP(json_free) struct json *event = from(text);
    size_t width[FLOW_COLUMNS] = {0};
    struct strbuf out = STRBUF_INIT;
    if (n) {
        flow_name(event, n);
    }
    flow_render(event, width, &out);
    strbuf_cstr(&out);
    return strbuf_steal(&out);
}

static void assert_line(const char *text, const struct flow_names *n, const char *want)
{
    CLEANUP_FREE char *got = line(text, n);
    assert_string_equal(got, want);
}

static void a_flow_is_a_line_with_both_ends_and_its_verdict(void **state)
{
    (void) state;
    assert_line("{" HEAD RED "'to':{'ip':'10.128.0.3','port':80,'namespace':'red','pod':'db'},"
                "'protocol':'tcp','action':'deliver','verdict':'forwarded'}",
                NULL, "03:04:05.678   node1   red/web:40000   red/db:80   tcp   delivered\n");
    assert_line("{" HEAD RED "'to':{'ip':'192.0.2.1','port':80},'protocol':'tcp',"
                "'action':'host','verdict':'forwarded'}",
                NULL, "03:04:05.678   node1   red/web:40000   192.0.2.1:80   tcp   to the host\n");
    assert_line(
        "{" HEAD RED "'to':{'ip':'10.128.0.3','port':8080},'protocol':'tcp',"
        "'service':{'ip':'172.30.0.7','port':80,'namespace':'red','name':'db'},"
        "'action':'deliver','verdict':'forwarded'}",
        NULL,
        "03:04:05.678   node1   red/web:40000   service red/db:80 at 10.128.0.3:8080   tcp   "
        "delivered\n");
    assert_line("{" HEAD "'from':{'ip':'10.128.0.9'},'to':{'ip':'10.128.0.3'},'sender':'red/web',"
                "'protocol':'icmp','action':'drop','verdict':'dropped','cause':'spoofed-source',"
                "'object':'Pod red/web'}",
                NULL,
                "03:04:05.678   node1   10.128.0.9 of red/web   10.128.0.3   icmp   dropped: "
                "spoofed-source (Pod red/web)\n");
    assert_line("{" HEAD "'lost':7}", NULL,
                "03:04:05.678   node1   -   -   -   7 more flows than can be shown\n");
    /* What makes no sense is no reason to stop. */
    assert_line("{}", NULL, "      -   -      \n");
}

static void names_come_from_the_registry_where_the_agent_has_none(void **state)
{
    (void) state;
    static const char event[] =
        "{" HEAD
        "'from':{'ip':'10.128.2.2'},'to':{'ip':'10.128.0.2','namespace':'red','pod':'web'},"
        "'protocol':'icmp','action':'tunnel','remote':'192.0.2.9','verdict':'forwarded'}";
    static const char pod[] = "{'metadata':{'namespace':'blue','name':'x'},"
                              "'spec':{%s},'status':{'podIP':'10.128.2.2'%s}}";
    struct flow_names n;
    flow_names_init(&n);
    assert_line(event, &n,
                "03:04:05.678   node1   10.128.2.2   red/web   icmp   to node 192.0.2.9\n");
    CLEANUP_FREE char *plain = xasprintf(pod, "", "");
    CLEANUP_FREE char *ended = xasprintf(pod, "", ",'phase':'Succeeded'");
    CLEANUP_FREE char *of_host = xasprintf(pod, "'hostNetwork':true", "");
    CLEANUP(json_free) struct json *a = from(plain), *b = from(ended), *c = from(of_host);
    flow_names_pod(&n, c, false); /* That address is the host's. */
    flow_names_pod(&n, b, false);
    assert_int_equal(smap_size(&n.pods), 0);
    flow_names_pod(&n, a, false);
    smap_set(&n.nodes, "192.0.2.9", xstrdup("node9"));
    assert_line(event, &n, "03:04:05.678   node1   blue/x   red/web   icmp   to node node9\n");
    flow_names_pod(&n, a, true);
    assert_int_equal(smap_size(&n.pods), 0);
    flow_names_done(&n);
}

static void a_project_is_part_of_a_flow_at_either_end_or_as_the_service(void **state)
{
    (void) state;
    CLEANUP(json_free)
    struct json *v = from("{" RED "'to':{'ip':'1.2.3.4','namespace':'blue','pod':'x'},"
                          "'service':{'namespace':'green','name':'s'},'sender':'grey/y'}");
    static const char *const in[] = {"red", "blue", "green", "grey"};
    for (size_t i = 0; i < ARRAY_SIZE(in); i++) {
        assert_true(flow_is_of(v, in[i]));
    }
    assert_true(flow_is_of(v, NULL));
    assert_false(flow_is_of(v, "gre") || flow_is_of(v, "default") || flow_is_of(v, ""));
    CLEANUP(json_free) struct json *lost = from("{'lost':3}");
    assert_true(flow_is_of(lost, "red"));
}

static void maps_are_tables(void **state)
{
    (void) state;
    CLEANUP(json_free)
    struct json *all = from("[{'name':'tenet_pods','type':'hash','entries':32768,'max':65536},"
                            "{'name':'none','type':'array','entries':0,'max':0}]");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    node_maps_render(all, &out);
    assert_string_equal(strbuf_cstr(&out), "MAP          TYPE    ENTRIES   OF      FULL\n"
                                           "tenet_pods   hash    32768     65536   50%\n"
                                           "none         array   0         0       0%\n");
    CLEANUP(json_free)
    struct json *one =
        from("{'name':'tenet_pods','entries':1,'max':9,'items':[{'key':{'address':'10.128.0.2'},"
             "'value':{'vnid':7,'queued':true},'object':'Pod red/web'},"
             "{'key':{},'value':{'a':'b'},'object':''}]}");
    strbuf_reset(&out);
    node_maps_render_entries(one, &out);
    assert_string_equal(strbuf_cstr(&out), "tenet_pods, 1 of 9\n"
                                           "KEY                  VALUE                OBJECT\n"
                                           "address=10.128.0.2   vnid=7 queued=true   Pod red/web\n"
                                           "                     a=b                  -\n");
    CLEANUP(json_free) struct json *bare = from("{'name':'x'}");
    strbuf_reset(&out);
    node_maps_render_entries(bare, &out);
    assert_string_equal(strbuf_cstr(&out), "x, 0 of 0\n"
                                           "KEY   VALUE   OBJECT\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_is_a_line_with_both_ends_and_its_verdict),
        cmocka_unit_test(names_come_from_the_registry_where_the_agent_has_none),
        cmocka_unit_test(a_project_is_part_of_a_flow_at_either_end_or_as_the_service),
        cmocka_unit_test(maps_are_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
