/* SPDX-License-Identifier: Apache-2.0 */
/* Finding kinds, defaults, and what the columns show. */
#include "api/schema.h"
#include "api/table/table.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

static void kinds_are_found_by_what_users_type(void **state)
{
    static const struct {
        const char *alias, *plural;
    } cases[] = {
        {"po", "pods"},
        {"Pods", "pods"},
        {"pod", "pods"},
        {"no", "nodes"},
        {"ns", "namespaces"},
        {"project", "projects"},
        {"HostSubnet", "hostsubnets"},
        {"hostsubnets.network.openshift.io", "hostsubnets"},
        {"hostsubnets.v1.network.openshift.io", "hostsubnets"},
        {"pods.v1", "pods"},
        {"pods.", "pods"},
        {"netnamespace", "netnamespaces"},
        {"ev", "events"},
        {"pods.network.openshift.io", NULL},
        {"hostsubnets.v2.network.openshift.io", NULL},
        {"hostsubnets.v1.example.com", NULL},
        {"hostsubnets.v1xnetwork.openshift.io", NULL},
        {"hostsubnets.v1", NULL},
        {"hostsubnets.V1.Network.OpenShift.io", "hostsubnets"},
        {"pods.v1.", NULL},
        {"pods.v1.network.openshift.io", NULL},
        {"pods.v11", NULL},
        {"svc", "services"},
        {"ep", "endpoints"},
        {"endpointslice", "endpointslices"},
        {"deploy", "deployments"},
        {"hpa", "horizontalpodautoscalers"},
        {"dc", "deploymentconfigs"},
        {"buildconfigs", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct api_kind *k = api_kind_by_alias(cases[i].alias);
        if (!streq_null(k ? k->plural : NULL, cases[i].plural)) {
            fail_msg("%s finds %s", cases[i].alias, k ? k->plural : "nothing");
        }
    }
    assert_ptr_equal(api_kind_by_name("network.openshift.io/v1", "HostSubnet"),
                     api_kind_find("network.openshift.io", "v1", "hostsubnets"));
    assert_null(api_kind_by_name("v1", "HostSubnet"));
    assert_null(api_kind_find("", "v2", "pods"));
}

static void expect_defaults(const char *plural, const char *text, const char *want_text)
{
    const struct api_kind *k = api_kind_by_alias(plural);
    CLEANUP(json_free) struct json *obj = parse(text);
    CLEANUP(json_free) struct json *want = parse(want_text);
    api_schema_default(k->schema, obj);
    k->defaults(obj);
    if (!json_equal(obj, want)) {
        CLEANUP_FREE char *got = json_to_text(obj);
        fail_msg("got %s, want %s", got, want_text);
    }
}

#define MESSAGES                                           \
    "\"terminationMessagePath\":\"/dev/termination-log\"," \
    "\"terminationMessagePolicy\":\"File\""

static void defaults_fill_in_what_is_absent(void **state)
{
    expect_defaults("namespaces", "{\"metadata\":{\"name\":\"a\"}}",
                    "{\"metadata\":{\"name\":\"a\",\"labels\":{\"kubernetes.io/metadata.name\":"
                    "\"a\"}}}");
    expect_defaults("pods",
                    "{\"spec\":{\"containers\":[{\"image\":\"h:5000/a\"},{\"image\":\"a:1\"},{"
                    "\"image\":\"a:latest\"},{\"image\":\"a:1\",\"imagePullPolicy\":\"Never\"}]}}",
                    "{\"spec\":{\"restartPolicy\":\"Always\",\"dnsPolicy\":\"ClusterFirst\","
                    "\"terminationGracePeriodSeconds\":30,\"schedulerName\":\"default-scheduler\","
                    "\"securityContext\":{},\"enableServiceLinks\":true,\"containers\":[{"
                    "\"image\":\"h:5000/a\"," MESSAGES ",\"imagePullPolicy\":\"Always\"},{"
                    "\"image\":\"a:1\"," MESSAGES ",\"imagePullPolicy\":\"IfNotPresent\"},{"
                    "\"image\":\"a:latest\"," MESSAGES ",\"imagePullPolicy\":\"Always\"},{"
                    "\"image\":\"a:1\"," MESSAGES ",\"imagePullPolicy\":\"Never\"}]}}");
    expect_defaults("clusternetworks",
                    "{\"metadata\":{\"name\":\"default\"},\"clusterNetworks\":[{\"CIDR\":\"a\","
                    "\"hostSubnetLength\":9}],\"mtu\":1400}",
                    "{\"metadata\":{\"name\":\"default\"},\"clusterNetworks\":[{\"CIDR\":\"a\","
                    "\"hostSubnetLength\":9}],\"mtu\":1400,\"network\":\"a\",\"hostsubnetlength\":"
                    "9,\"vxlanPort\":4789}");
    expect_defaults(
        "clusternetworks",
        "{\"metadata\":{\"name\":\"default\"},\"network\":\"a\",\"hostsubnetlength\":9}",
        "{\"metadata\":{\"name\":\"default\"},\"network\":\"a\",\"hostsubnetlength\":9,"
        "\"clusterNetworks\":[{\"CIDR\":\"a\",\"hostSubnetLength\":9}],\"vxlanPort\":"
        "4789,\"mtu\":1450}");
}

static void a_verdict_that_names_no_status_is_true(void **state)
{
    const struct api_kind *k = api_kind_by_alias("csr");
    CLEANUP(json_free) struct json *out = parse("{\"status\":{}}");
    CLEANUP(json_free)
    struct json *obj = parse("{\"status\":{\"conditions\":[{\"type\":\"Approved\"}]}}");
    k->merge_part("approval", out, obj);
    const struct json *verdict = json_at(json_path(out, "status", "conditions", NULL), 0);
    assert_string_equal(json_path_string(verdict, "status", NULL), "True");
}

static void a_new_pod_is_pending_whatever_its_creator_says(void **state)
{
    const struct api_kind *k = api_kind_by_alias("pods");
    CLEANUP(json_free) struct json *obj = parse("{\"status\":{\"phase\":\"Running\",\"x\":1}}");
    k->prepare(obj, NULL);
    CLEANUP_FREE char *text = json_to_text(obj);
    assert_string_equal(text, "{\"status\":{\"phase\":\"Pending\"},\"spec\":{}}");
}

/* The cells of 'priority' and below, joined by "|". */
static void expect_cells(const char *kind, const char *text, const char *want)
{
    const struct api_kind *k = api_kind_by_alias(kind);
    CLEANUP(json_free) struct json *obj = parse(text);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int64_t now;
    assert_int_equal(time_parse("2026-01-01T01:00:00Z", &now), 0);
    for (size_t i = 0; i < k->n_columns; i++) {
        CLEANUP(json_free) struct json *cell = api_column_cell(&k->columns[i], obj, now);
        const char *s = json_get_string(cell);
        strbuf_addf(&out, "%s%s", i ? "|" : "", s ? s : json_number_text(cell));
    }
    assert_string_equal(strbuf_cstr(&out), want);
}

static void cells_show_what_kubectl_users_expect(void **state)
{
    expect_cells("namespaces",
                 "{\"metadata\":{\"name\":\"red\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                 "\"status\":{\"phase\":\"Terminating\"}}",
                 "red|Terminating|60m");
    expect_cells(
        "nodes",
        "{\"metadata\":{\"name\":\"n\",\"creationTimestamp\":\"2026-01-01T00:59:55Z\","
        "\"labels\":{\"node-role.kubernetes.io/compute\":\"\","
        "\"node-role.kubernetes.io/infra\":\"true\"}},\"spec\":{\"unschedulable\":true},"
        "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],"
        "\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"192.0.2.1\"}],\"nodeInfo\":{"
        "\"kubeletVersion\":\"v1\",\"osImage\":\"Debian\",\"kernelVersion\":\"6.1\"}}}",
        "n|NotReady,SchedulingDisabled|compute,infra|5s|v1|192.0.2.1|<none>|Debian|6.1|"
        "<unknown>");
    expect_cells("nodes", "{}",
                 "|Unknown|<none>|<unknown>||<none>|<none>|<unknown>|<unknown>|"
                 "<unknown>");
    expect_cells("pods",
                 "{\"metadata\":{\"name\":\"p\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
                 "\"spec\":{\"nodeName\":\"n\",\"containers\":[{},{}]},\"status\":{\"phase\":"
                 "\"Running\",\"podIP\":\"10.128.0.2\",\"containerStatuses\":[{\"ready\":true,"
                 "\"restartCount\":2,\"state\":{\"running\":{}}},{\"restartCount\":1,\"state\":{"
                 "\"waiting\":{\"reason\":"
                 "\"CrashLoopBackOff\"}}}]}}",
                 "p|1/2|CrashLoopBackOff|3|60m|10.128.0.2|n|<none>|<none>");
    expect_cells("pods", "{\"metadata\":{\"deletionTimestamp\":\"x\"}}",
                 "|0/0|Terminating|0|<unknown>|<none>|<none>|<none>|<none>");
    expect_cells(
        "hostsubnets",
        "{\"metadata\":{\"name\":\"n\"},\"host\":\"n\",\"hostIP\":\"192.0.2.1\",\"subnet\":"
        "\"10.128.0.0/23\",\"egressIPs\":[\"192.0.2.7\",\"192.0.2.8\"]}",
        "n|n|192.0.2.1|10.128.0.0/23|[]|[192.0.2.7, 192.0.2.8]|<unknown>");
    expect_cells("netnamespaces", "{\"metadata\":{\"name\":\"r\"},\"netid\":77}",
                 "r|77|[]|<unknown>");
    expect_cells("clusternetworks",
                 "{\"metadata\":{\"name\":\"default\"},\"clusterNetworks\":[{\"CIDR\":"
                 "\"10.128.0.0/14\",\"hostSubnetLength\":9},{\"CIDR\":\"10.4.0.0/16\","
                 "\"hostSubnetLength\":8}],\"serviceNetwork\":\"172.30.0.0/16\",\"pluginName\":"
                 "\"redhat/openshift-ovs-subnet\",\"vxlanPort\":4789,\"mtu\":1450}",
                 "default|10.128.0.0/14:9, 10.4.0.0/16:8|172.30.0.0/16|redhat/openshift-ovs-subnet|"
                 "4789|1450|<unknown>");
    expect_cells("events",
                 "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"kind\":\"Node\",\"name\":"
                 "\"n\"},\"reason\":\"R\",\"type\":\"Warning\",\"message\":\"no subnet\\n\","
                 "\"lastTimestamp\":\"2026-01-01T00:59:00Z\",\"source\":{\"component\":\"c\","
                 "\"host\":\"h\"},\"count\":4}",
                 "60s|Warning|R|node/n||c, h|no subnet|<unknown>|4|e");
}

static void cells_bear_any_object(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "{\"metadata\":[],\"spec\":[],\"status\":[]}",
        "{\"metadata\":{\"name\":5,\"labels\":[1],\"creationTimestamp\":7},\"status\":{"
        "\"conditions\":[1,null,{}],\"addresses\":{},\"containerStatuses\":[[]]},\"netid\":\"x\","
        "\"egressIPs\":[1,{}],\"clusterNetworks\":[1],\"spec\":{\"containers\":3}}",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        for (size_t k = 0; api_kinds[k]; k++) {
            CLEANUP(json_free) struct json *obj = parse(texts[i]);
            CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
            struct json *row = NULL;
            api_table_row(api_kinds[k], obj, texts[i], strlen(texts[i]), API_INCLUDE_OBJECT, 0,
                          &out);
            assert_int_equal(json_parse(out.data, out.size, &row, NULL), 0);
            assert_int_equal(json_count(json_get(row, "cells")), api_kinds[k]->n_columns);
            json_free(row);
        }
    }
}

static void a_table_row_has_the_object_that_was_asked_for(void **state)
{
    const char *text = "{\"metadata\":{\"name\":\"a\"},\"netid\":5}";
    const struct api_kind *k = api_kind_by_alias("netnamespaces");
    CLEANUP(json_free) struct json *obj = parse(text);
    static const char *const want[] = {
        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
        "\"name\":\"a\"}}",
        "{\"metadata\":{\"name\":\"a\"},\"netid\":5}",
        "null",
    };
    for (int i = API_INCLUDE_METADATA; i <= API_INCLUDE_NONE; i++) {
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        api_table_row(k, obj, text, strlen(text), (enum api_include) i, 0, &out);
        CLEANUP(json_free) struct json *row = parse(out.data);
        CLEANUP_FREE char *got = json_to_text(json_get(row, "object"));
        assert_string_equal(got, want[i]);
    }
    CLEANUP_STRBUF struct strbuf columns = STRBUF_INIT;
    api_table_columns(k, &columns);
    CLEANUP(json_free) struct json *list = parse(columns.data);
    assert_int_equal(json_count(list), k->n_columns);
    assert_string_equal(json_path_string(json_at(list, 0), "format", NULL), "name");
}

/* READY, STATUS and RESTARTS of a pod, as kubectl has shown them for years. */
static void pods_are_summed_up_as_users_know_it(void **state)
{
#define INIT \
    "'spec': {'initContainers': [{'name': 'i'}, {'name': 's', 'restartPolicy': 'Always'}], "
#define PODS "'containers': [{'name': 'c'}]}, 'status': {"
#define C "'containerStatuses': [{'name': 'c', "
    static const struct {
        const char *pod, *want;
    } rows[] = {
        {INIT PODS "'initContainerStatuses': [{'name': 'i', 'state': {'waiting': {'reason': "
                   "'PodInitializing'}}}], " C "'state': {'waiting': {'reason': "
                   "'PodInitializing'}}}]}",
         "0/2|Init:0/2|0"},
        {INIT PODS "'initContainerStatuses': [{'name': 'i', 'restartCount': 4, 'state': {'waiting':"
                   "{'reason': 'CrashLoopBackOff'}}, 'lastState': {'terminated': {'finishedAt': "
                   "'2026-01-01T00:50:00Z'}}}]}",
         "0/2|Init:CrashLoopBackOff|4 (10m ago)"},
        {INIT PODS "'initContainerStatuses': [{'name': 'i', 'state': {'terminated': {'exitCode': "
                   "3}}}]}",
         "0/2|Init:ExitCode:3|0"},
        {INIT PODS "'initContainerStatuses': [{'name': 'i', 'state': {'terminated': {'exitCode': 1,"
                   "'reason': 'Error'}}}]}",
         "0/2|Init:Error|0"},
        {INIT PODS "'initContainerStatuses': [{'name': 'i', 'restartCount': 5, 'state': "
                   "{'terminated': {'exitCode': 0}}}, {'name': 's', 'started': true, 'ready': true,"
                   "'restartCount': 1, 'state': {'running': {}}}], " C "'ready': true, "
                   "'restartCount': 1, 'state': {'running': {}}}], 'phase': 'Running'}",
         "2/2|Running|2"}, /* Those of finished init containers no longer count. */
        {"'spec': {" PODS C "'state': {'terminated': {'exitCode': 137, 'signal': 9}}}]}",
         "0/1|Signal:9|0"},
        {"'spec': {" PODS C "'state': {'terminated': {'exitCode': 0, 'reason': 'Completed'}}}]}",
         "0/1|Completed|0"},
        {"'spec': {" PODS C "'ready': true, 'state': {'running': {}}}, {'state': {'terminated': "
         "{'exitCode': 0, 'reason': 'Completed'}}}], 'conditions': [{'type': 'Ready', 'status': "
         "'True'}]}",
         "1/1|Running|0"},
        {"'spec': {" PODS "'containerStatuses': [{'state': {'terminated': {'exitCode': 0, "
         "'reason': 'Completed'}}}, {'ready': true, 'state': {'running': {}}}]}",
         "1/1|NotReady|0"},
        {"'spec': {" PODS "'conditions': [{'type': 'PodScheduled', 'status': 'False', 'reason': "
         "'SchedulingGated'}]}",
         "0/1|SchedulingGated|0"},
        {"'spec': {" PODS "'reason': 'Evicted', 'phase': 'Failed'}", "0/1|Evicted|0"},
        {"'metadata': {'deletionTimestamp': 'x'}, 'spec': {" PODS "'reason': 'NodeLost'}",
         "0/1|Unknown|0"},
        {"'metadata': {'deletionTimestamp': 'x'}, 'spec': {" PODS "'phase': 'Succeeded'}",
         "0/1|Succeeded|0"},
        {"'metadata': {'deletionTimestamp': 'x'}, 'spec': {" PODS "'a': 1}", "0/1|Terminating|0"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = xasprintf("{%s}", rows[i].pod);
        CLEANUP_FREE char *want =
            xasprintf("|%s|<unknown>|<none>|<none>|<none>|<none>", rows[i].want);
        for (char *p = text; *p; p++) {
            *p = *p == '\'' ? '"' : *p;
        }
        expect_cells("pods", text, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_are_summed_up_as_users_know_it),
        cmocka_unit_test(kinds_are_found_by_what_users_type),
        cmocka_unit_test(defaults_fill_in_what_is_absent),
        cmocka_unit_test(a_verdict_that_names_no_status_is_true),
        cmocka_unit_test(a_new_pod_is_pending_whatever_its_creator_says),
        cmocka_unit_test(cells_show_what_kubectl_users_expect),
        cmocka_unit_test(cells_bear_any_object),
        cmocka_unit_test(a_table_row_has_the_object_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
