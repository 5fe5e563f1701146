/* SPDX-License-Identifier: Apache-2.0 */
/* What a node takes and refuses, and with which words. */
#include "pod/admit.h"

#include "json_text.h"
#include "pod/pod.h"

#define NODE                                           \
    "{'metadata':{'name':'n1','labels':{'zone':'a'}}," \
    "'spec':{'taints':[{'key':'k','effect':'NoExecute'},{'key':'l','effect':'NoSchedule'}]}}"
#define TOLERANT "'tolerations':[{'operator':'Exists','effect':'NoExecute'}],"
#define CPU(n) "'containers':[{'name':'c','resources':{'requests':{'cpu':'" n "'}}}]"
#define PORT(ip, port, protocol) \
    "'containers':[{'name':'c','ports':[{" ip "'hostPort':" port ",'protocol':'" protocol "'}]}]"
#define STATIC "'metadata':{'annotations':{'kubernetes.io/config.source':'file'}},"

static void the_words_of_a_refusal(void **state)
{
    static const struct {
        const char *pod, *reason, *message;
    } rows[] = {
        {"{'spec':{" TOLERANT CPU("1") "}}", NULL, NULL},
        {"{'spec':{" TOLERANT CPU("1500m") "}}", NULL, NULL},
        {"{'spec':{" TOLERANT CPU("1501m") "}}", "OutOfcpu",
         "Node didn't have enough resource: cpu, requested: 1501, used: 500, capacity: 2000"},
        {"{'spec':{" TOLERANT CPU("lots") "}}", "OutOfcpu",
         "Node didn't have enough resource: cpu, requested: 9223372036854775807, used: 500, "
         "capacity: 2000"},
        {"{'spec':{" TOLERANT "'containers':[{'resources':{'limits':{'memory':'2Gi'}}}]}}",
         "OutOfmemory",
         "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: "
         "1073741824"},
        {"{'spec':{" TOLERANT
         "'containers':[{'resources':{'requests':{'ephemeral-storage':'11G'}}}]}}",
         "OutOfephemeral-storage",
         "Node didn't have enough resource: ephemeral-storage, requested: 11000000000, used: 0, "
         "capacity: 10000000000"},
        {"{'spec':{" TOLERANT "'nodeSelector':{'zone':'a'},'containers':[]}}", NULL, NULL},
        {"{'spec':{" TOLERANT "'nodeSelector':{'zone':'b'},'containers':[]}}", "NodeAffinity",
         "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
        {"{'spec':{" TOLERANT
         "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
         "'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'DoesNotExist'}]}]}}},"
         "'containers':[]}}",
         "NodeAffinity",
         "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
        {"{'spec':{" TOLERANT PORT("", "81", "TCP") "}}", NULL, NULL},
        {"{'spec':{" TOLERANT PORT("", "80", "UDP") "}}", NULL, NULL},
        {"{'spec':{" TOLERANT PORT("'hostIP':'10.0.0.2',", "80", "TCP") "}}", NULL, NULL},
        {"{'spec':{" TOLERANT PORT("'hostIP':'10.0.0.1',", "80", "TCP") "}}", "NodePorts",
         "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
        {"{'spec':{" TOLERANT PORT("", "80", "TCP") "}}", "NodePorts",
         "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
        {"{'spec':{'containers':[]}}", "TaintToleration",
         "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
        {"{" STATIC "'spec':{'containers':[]}}", NULL, NULL},
        {"{'spec':{" TOLERANT "'os':{'name':'windows'},'containers':[]}}", "PodOSNotSupported",
         "Failed to admit pod as the OS field doesn't match node OS"},
    };
    CLEANUP(json_free) struct json *node = from(NODE);
    CLEANUP(json_free)
    struct json *allocatable =
        from("{'cpu':'2','memory':'1Gi','ephemeral-storage':'10G','pods':'3'}");
    CLEANUP(json_free)
    struct json *other = from("{'spec':{'containers':[{'resources':{'requests':{'cpu':'500m'}},"
                              "'ports':[{'hostPort':80,'hostIP':'10.0.0.1','protocol':'TCP'}]}]}}");
    const struct json *others[] = {other};
    struct pod_admit_node n = {.node = node, .allocatable = allocatable};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *pod = from(rows[i].pod);
        CLEANUP(pod_refusal_done) struct pod_refusal r = {0};
        bool taken = pod_admit_here(pod, others, 1, &n, &r);
        print_message("%s\n", rows[i].pod);
        assert_int_equal(taken, rows[i].reason == NULL);
        if (!taken) {
            assert_string_equal(r.reason, rows[i].reason);
            assert_string_equal(r.message, rows[i].message);
        }
    }
}

static void a_node_has_so_many_pods(void **state)
{
    CLEANUP(json_free) struct json *allocatable = from("{'pods':'2'}");
    CLEANUP(json_free) struct json *pod = from("{'spec':{'containers':[]}}");
    const struct json *others[] = {pod, pod};
    struct pod_admit_node n = {.allocatable = allocatable};
    CLEANUP(pod_refusal_done) struct pod_refusal r = {0};
    assert_true(pod_admit_here(pod, others, 1, &n, &r));
    assert_false(pod_admit_here(pod, others, 2, &n, &r));
    assert_string_equal(r.reason, "OutOfpods");
    assert_string_equal(r.message, "Node didn't have enough resource: pods, requested: 1, used: 2, "
                                   "capacity: 2");
}

static void sums_that_are_too_large_stay_so(void **state)
{
    CLEANUP(json_free) struct json *allocatable = from("{'cpu':'2'}");
    CLEANUP(json_free) struct json *huge = from("{'spec':{" CPU("x") "}}");
    CLEANUP(json_free) struct json *pod = from("{'spec':{" CPU("1m") "}}");
    const struct json *others[] = {huge, huge};
    struct pod_admit_node n = {.allocatable = allocatable};
    CLEANUP(pod_refusal_done) struct pod_refusal r = {0};
    assert_false(pod_admit_here(pod, others, 2, &n, &r));
    assert_string_equal(r.reason, "OutOfcpu");
}

static void pressure_refuses_by_class(void **state)
{
    static const char best_effort[] = "{'spec':{'containers':[{'name':'c'}]}}",
                      burstable[] = "{'spec':{" CPU("1m") "}}",
                      tolerant[] = "{'spec':{'tolerations':[{'key':"
                                   "'node.kubernetes.io/memory-pressure','operator':'Exists'}],"
                                   "'containers':[{'name':'c'}]}}",
                      critical[] = "{'spec':{'priority':2000000000,'containers':[{'name':'c'}]}}",
                      from_file[] = "{" STATIC "'spec':{'containers':[{'name':'c'}]}}";
    static const struct {
        bool memory, disk, pids;
        const char *pod, *message;
    } rows[] = {
        {false, false, false, best_effort, NULL},
        {true, false, false, best_effort, "The node had condition: [MemoryPressure]. "},
        {true, false, false, burstable, NULL},
        {true, false, false, tolerant, NULL},
        {false, true, false, burstable, "The node had condition: [DiskPressure]. "},
        {true, true, false, tolerant, "The node had condition: [MemoryPressure DiskPressure]. "},
        {false, false, true, burstable, "The node had condition: [PIDPressure]. "},
        {true, true, true, critical, NULL},
        {true, true, true, from_file, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *pod = from(rows[i].pod);
        CLEANUP(pod_refusal_done) struct pod_refusal r = {0};
        struct pod_admit_node n = {.memory_pressure = rows[i].memory,
                                   .disk_pressure = rows[i].disk,
                                   .pid_pressure = rows[i].pids};
        bool taken = pod_admit_here(pod, NULL, 0, &n, &r);
        assert_int_equal(taken, rows[i].message == NULL);
        if (!taken) {
            assert_string_equal(r.reason, "Evicted");
            assert_string_equal(r.message, rows[i].message);
        }
    }
}

static void nothing_is_taken_while_the_host_shuts_down(void **state)
{
    CLEANUP(json_free)
    struct json *pod = from("{'spec':{'priority':2000000000,'containers':[{'name':'c'}]}}");
    CLEANUP(pod_refusal_done) struct pod_refusal r = {0};
    struct pod_admit_node n = {.shuts_down = true};
    assert_false(pod_admit_here(pod, NULL, 0, &n, &r));
    assert_string_equal(r.reason, "NodeShutdown");
    assert_string_equal(r.message, "Pod was rejected as the node is shutting down.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_of_a_refusal),
        cmocka_unit_test(a_node_has_so_many_pods),
        cmocka_unit_test(sums_that_are_too_large_stay_so),
        cmocka_unit_test(pressure_refuses_by_class),
        cmocka_unit_test(nothing_is_taken_while_the_host_shuts_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
