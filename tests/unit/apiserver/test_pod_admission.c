/* SPDX-License-Identifier: Apache-2.0 */
/* What the server adds to a pod beyond its defaults: the priority of its class, and tolerations of
 * nodes that fail.  In all texts ' stands for ". */
#include "apiserver/request/server_priv.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PODS(ns) "/api/v1/namespaces/" ns "/pods"
#define CLASSES "/apis/scheduling.k8s.io/v1/priorityclasses"
#define USER "ann"
#define ROOT "root system:masters"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    give_rules(h, NULL, USER,
               "{'verbs': ['*'], 'apiGroups': [''], 'resources': ['pods', 'pods/status']}");
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static struct answer make_pod(const char *who, const char *path, const char *name, const char *spec)
{
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}, 'spec': {'containers': "
                                        "[{'name': 'c', 'image': 'i:1'}]%s%s}}",
                                        name, *spec ? ", " : "", spec);
    return ask_as(h, who, "POST", path, NULL, body);
}

static void make_class(const char *name, int value, const char *more, int want)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'value': %d%s}", name, value, more);
    CLEANUP_ANSWER struct answer a = ask_as(h, ROOT, "POST", CLASSES, NULL, body);
    if (a.status != want) {
        fail_msg("%s: %d: %s", name, a.status, a.text);
    }
}

static void drop(const char *path)
{
    CLEANUP_ANSWER struct answer a = ask_as(h, ROOT, "DELETE", path, NULL, NULL);
    assert_int_equal(a.status, 200);
}

static const struct json *spec_of(const struct answer *a)
{
    return json_get(a->body, "spec");
}

static void expect_priority(const struct answer *a, const char *class, int64_t value,
                            const char *policy)
{
    const struct json *spec = spec_of(a);
    if (a->status != 201 || json_get_int_or(json_get(spec, "priority"), -1) != value ||
        !streq(json_get_text(spec, "priorityClassName"), class) ||
        !streq(json_get_text(spec, "preemptionPolicy"), policy)) {
        fail_msg("%d: %s", a->status, a->text);
    }
}

static void a_pod_gets_the_priority_of_its_class(void **state)
{
    static const struct {
        const char *path, *spec, *class;
        int64_t value;
        const char *policy;
    } cases[] = {
        {PODS("red"), "", "", 0, "PreemptLowerPriority"},
        {PODS("red"), "'priorityClassName': 'high'", "high", 1000, "PreemptLowerPriority"},
        {PODS("red"), "'priorityClassName': 'patient'", "patient", -5, "Never"},
        {PODS("red"), "'priorityClassName': 'high', 'priority': 1000", "high", 1000,
         "PreemptLowerPriority"},
        {PODS("red"), "'priorityClassName': 'patient', 'preemptionPolicy': 'Never'", "patient", -5,
         "Never"},
    };
    make_class("high", 1000, "", 201);
    make_class("patient", -5, ", 'preemptionPolicy': 'Never'", 201);
    static const struct {
        const char *name;
        int64_t value;
    } of_system[] = {
        {"system-cluster-critical", 2000000000},
        {"system-node-critical", 2000001000},
    };
    for (size_t i = 0; i < ARRAY_SIZE(of_system); i++) {
        CLEANUP_FREE char *spec = xasprintf("'priorityClassName': '%s'", of_system[i].name);
        CLEANUP_ANSWER struct answer a = make_pod(ROOT, PODS("red"), of_system[i].name, spec);
        expect_priority(&a, of_system[i].name, of_system[i].value, "PreemptLowerPriority");
        CLEANUP_ANSWER struct answer user = make_pod(USER, PODS("red"), "user", spec);
        assert_int_equal(user.status, 403);
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *name = xasprintf("p%zu", i);
        CLEANUP_ANSWER struct answer a = make_pod(USER, cases[i].path, name, cases[i].spec);
        expect_priority(&a, cases[i].class, cases[i].value, cases[i].policy);
    }
}

static void a_pod_gets_what_its_runtime_class_says(void **state)
{
    CLEANUP_ANSWER struct answer class = ask_as(
        h, ROOT, "POST", "/apis/node.k8s.io/v1/runtimeclasses", NULL,
        "{'metadata': {'name': 'kata'}, 'handler': 'kata', 'overhead': {'podFixed': {'cpu': "
        "'250m'}},"
        "'scheduling': {'nodeSelector': {'vm': 'yes'}, 'tolerations': [{'key': 'vm', 'operator': "
        "'Exists'}]}}");
    assert_int_equal(class.status, 201);
    static const struct {
        const char *spec, *says; /* NULL: the pod is made. */
    } cases[] = {
        {"'runtimeClassName': 'kata'", NULL},
        {"'runtimeClassName': 'kata', 'overhead': {'cpu': '0.25'}, 'nodeSelector': {'vm': 'yes'}",
         NULL},
        {"'runtimeClassName': 'absent'",
         "pods \"x\" is forbidden: pod rejected: RuntimeClass \"absent\" not found"},
        {"'runtimeClassName': 'kata', 'overhead': {'cpu': '1m'}",
         "pods \"x\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's "
         "defined Overhead"},
        {"'overhead': {'cpu': '1m'}",
         "pods \"x\" is forbidden: pod rejected: Pod Overhead set without corresponding "
         "RuntimeClass defined Overhead"},
        {"'runtimeClassName': 'kata', 'nodeSelector': {'vm': 'no'}",
         "pods \"x\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; "
         "pod.spec.nodeSelector[vm] = no"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *name = cases[i].says ? xstrdup("x") : xasprintf("classed%zu", i);
        CLEANUP_ANSWER struct answer a = make_pod(USER, PODS("red"), name, cases[i].spec);
        if (a.status != (cases[i].says ? 403 : 201)) {
            fail_msg("%d: %s", a.status, a.text);
        }
        if (cases[i].says) {
            assert_string_equal(json_get_text(a.body, "message"), cases[i].says);
            continue;
        }
        const struct json *spec = spec_of(&a), *t;
        bool tolerates = false;
        JSON_FOREACH (t, json_get(spec, "tolerations")) {
            tolerates = tolerates || streq(json_get_text(t, "key"), "vm");
        }
        assert_true(tolerates);
        assert_string_equal(json_get_text(json_get(spec, "overhead"), "cpu"), "250m");
        assert_string_equal(json_get_text(json_get(spec, "nodeSelector"), "vm"), "yes");
    }
}

static void a_pod_cannot_choose_its_priority_otherwise(void **state)
{
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {"'priority': 7",
         "pods \"x\" is forbidden: the integer value of priority (7) must not be provided in pod "
         "spec; priority admission controller computed 0 from the given PriorityClass name"},
        {"'priority': 7, 'priorityClassName': 'high'",
         "pods \"x\" is forbidden: the integer value of priority (7) must not be provided in pod "
         "spec; priority admission controller computed 1000 from the given PriorityClass name"},
        {"'priorityClassName': 'high', 'preemptionPolicy': 'Never'",
         "pods \"x\" is forbidden: the string value of PreemptionPolicy (Never) must not be "
         "provided in pod spec; priority admission controller computed PreemptLowerPriority from "
         "the given PriorityClass name"},
        {"'priorityClassName': 'absent'",
         "pods \"x\" is forbidden: no PriorityClass with name absent was found"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = make_pod(ROOT, PODS("red"), "x", cases[i].spec);
        assert_int_equal(a.status, 403);
        assert_string_equal(at(&a, "message"), cases[i].says);
    }
}

static void the_default_class_is_for_pods_without_one_and_the_only_one(void **state)
{
    make_class("usual", 50, ", 'globalDefault': true, 'preemptionPolicy': 'Never'", 201);
    make_class("second", 60, ", 'globalDefault': true", 403);
    CLEANUP_ANSWER struct answer a = make_pod(USER, PODS("red"), "by-default", "");
    expect_priority(&a, "usual", 50, "Never");
    CLEANUP_ANSWER struct answer same =
        ask_as(h, ROOT, "PATCH", CLASSES "/usual", "application/merge-patch+json",
               "{'description': 'd', 'globalDefault': true}");
    assert_int_equal(same.status, 200);
    CLEANUP_ANSWER struct answer other =
        ask_as(h, ROOT, "PATCH", CLASSES "/high", "application/merge-patch+json",
               "{'globalDefault': true}");
    assert_int_equal(other.status, 403);
    assert_string_equal(at(&other, "message"),
                        "priorityclasses.scheduling.k8s.io \"high\" is forbidden: PriorityClass "
                        "usual is already marked as default. Only one default can exist");
    /* The pod keeps the number when the class is gone, and when an update leaves it out. */
    drop(CLASSES "/usual");
    CLEANUP_ANSWER struct answer again =
        ask_as(h, USER, "PATCH", PODS("red") "/by-default", "application/merge-patch+json",
               "{'metadata': {'labels': {'a': 'b'}}, 'spec': {'priority': null, "
               "'preemptionPolicy': null}}");
    assert_int_equal(again.status, 200);
    assert_int_equal(json_get_int_or(json_get(spec_of(&again), "priority"), 0), 50);
    assert_string_equal(at(&again, "spec.preemptionPolicy"), "Never");
}

#define TOLERATES(key, more)             \
    "{\"key\":\"node.kubernetes.io/" key \
    "\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"" more "}"
#define DEFAULTED(key) TOLERATES(key, ",\"tolerationSeconds\":300")

static void a_pod_bears_failing_nodes_for_five_minutes(void **state)
{
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"", "[" DEFAULTED("not-ready") "," DEFAULTED("unreachable") "]"},
        {"'tolerations': [" TOLERATES("unreachable", "") "]",
         "[" TOLERATES("unreachable", "") "," DEFAULTED("not-ready") "]"},
        {"'tolerations': [{'operator': 'Exists'}]", "[{\"operator\":\"Exists\"}]"},
        {"'tolerations': [{'operator': 'Exists', 'effect': 'NoSchedule'}]",
         "[{\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}," DEFAULTED(
             "not-ready") "," DEFAULTED("unreachable") "]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *name = xasprintf("t%zu", i);
        CLEANUP_ANSWER struct answer a = make_pod(USER, PODS("red"), name, cases[i].given);
        CLEANUP_FREE char *got = json_to_text(json_get(spec_of(&a), "tolerations"));
        assert_int_equal(a.status, 201);
        assert_string_equal(got, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_gets_the_priority_of_its_class),
        cmocka_unit_test(a_pod_gets_what_its_runtime_class_says),
        cmocka_unit_test(a_pod_cannot_choose_its_priority_otherwise),
        cmocka_unit_test(the_default_class_is_for_pods_without_one_and_the_only_one),
        cmocka_unit_test(a_pod_bears_failing_nodes_for_five_minutes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
