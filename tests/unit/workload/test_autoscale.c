/* SPDX-License-Identifier: Apache-2.0 */
/* Autoscalers: the number of pods for given metrics, as Kubernetes computes it. */
#include "workload/autoscale.h"

#include "api/condition.h"
#include "json_text.h"

#define NOW INT64_C(1767229200000) /* 2026-01-01T01:00:00Z */
#define HPA(least, most, more)                                                                 \
    "{'metadata': {'name': 'h', 'namespace': 'ns'}, 'spec': {'minReplicas': " least            \
    ", 'maxReplicas': " most ", 'metrics': [{'type': 'Resource', 'resource': {'name': 'cpu', " \
    "'target': {'type': 'Utilization', 'averageUtilization': 50}}}]" more "}}"

static struct autoscale_memory memory;
static struct autoscale result;

static int drop(void **state)
{
    autoscale_memory_done(&memory);
    autoscale_done(&result);
    return 0;
}

/* Pods p0, p1, ... that request 100m; each letter is one of them: the digit of its use in tens of
 * milli-CPU ('5': 50m, 'x': 200m), '?': no metrics, 'p': pending, 'u': not ready, 'd': in deletion.
 * */
static void plan(const char *hpa_text, int64_t replicas, const char *pods, int64_t now_ms)
{
    CLEANUP(json_free) struct json *hpa = from(hpa_text), *list = json_array();
    CLEANUP(json_free) struct json *scale = json_object(), *metrics = json_array();
    json_set_int(json_ensure_object(scale, "spec"), "replicas", replicas);
    json_set_int(json_ensure_object(scale, "status"), "replicas", replicas);
    for (size_t i = 0; pods[i]; i++) {
        char c = pods[i];
        int use = c == 'x' ? 200 : c >= '0' && c <= '9' ? (c - '0') * 10 : 10;
        CLEANUP_FREE char *pod = xasprintf(
            "{'metadata': {'name': 'p%zu'%s}, 'spec': {'containers': [{'name': 'c', 'resources': "
            "{'requests': {'cpu': '100m'}}}]}, 'status': {'phase': '%s', 'startTime': "
            "'2026-01-01T00:%s:00Z', 'conditions': [{'type': 'Ready', 'status': '%s', "
            "'lastTransitionTime': '2026-01-01T00:%s:00Z'}]}}",
            i, c == 'd' ? ", 'deletionTimestamp': '2026-01-01T00:59:00Z'" : "",
            c == 'p' ? "Pending" : "Running", c == 'u' ? "58" : "00", c == 'u' ? "False" : "True",
            c == 'u' ? "58" : "01");
        json_append(list, from(pod));
        if (c != '?') {
            CLEANUP_FREE char *text =
                xasprintf("{'metadata': {'name': 'p%zu'}, 'timestamp': '2026-01-01T00:59:50Z', "
                          "'window': '15s', 'containers': [{'name': 'c', 'usage': {'cpu': "
                          "'%dm'}}]}",
                          i, use);
            json_append(metrics, from(text));
        }
    }
    const struct autoscale_input in = {.scale = scale, .pods = list, .metrics = metrics};
    autoscale_done(&result);
    autoscale_plan(hpa, &in, &memory, now_ms, &result);
}

static const char *reason(const char *type)
{
    return json_get_text(condition_find(result.status, type), "reason");
}

static void pods_follow_their_use(void **state)
{
    static const struct {
        const char *what, *pods;
        int64_t replicas, want;
    } cases[] = {
        {"on target", "55", 2, 2},
        {"within the tolerance", "55555555556", 11, 11},
        {"four times as much: at most four pods more", "xx", 2, 6},
        {"one half more", "78", 2, 3},
        {"no metrics of one, which then uses nothing", "99?", 3, 4},
        {"no metrics of one, which then uses all", "22?", 3, 3},
        {"no metrics of one, without which the use is on target", "88?", 3, 3},
        {"one that is pending uses nothing", "9p", 2, 2},
        {"one that is pending, with which the use is on target", "88p", 3, 3},
        {"one that is not ready uses nothing", "9u", 2, 2},
        {"one in deletion does not count", "9d", 2, 2},
        {"too few to change the direction", "6????", 5, 5},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        autoscale_memory_done(&memory);
        plan(HPA("1", "100", ""), cases[i].replicas, cases[i].pods, NOW);
        if (result.desired != cases[i].want) {
            fail_msg("%s: %d, not %d", cases[i].what, (int) result.desired, (int) cases[i].want);
        }
        assert_string_equal(reason("ScalingActive"), "ValidMetricFound");
        assert_int_equal(result.scales, cases[i].want != cases[i].replicas);
    }
}

static void limits_hold_and_are_named(void **state)
{
    plan(HPA("1", "3", ""), 2, "xx", NOW);
    assert_int_equal(result.desired, 3);
    assert_string_equal(reason("ScalingLimited"), "TooManyReplicas");
    /* At most twice as many, or four more, in 15 s. */
    autoscale_memory_done(&memory);
    plan(HPA("1", "100", ""), 1, "x", NOW);
    assert_int_equal(result.desired, 4);
    autoscale_changed(&result, &memory, 1, 4, NOW);
    assert_string_equal(reason("AbleToScale"), "SucceededRescale");
    plan(HPA("1", "100", ""), 4, "xxxx", NOW + 5000);
    assert_int_equal(result.desired, 5);
    assert_string_equal(reason("ScalingLimited"), "ScaleUpLimit");
    plan(HPA("1", "100", ""), 4, "xxxx", NOW + 15500);
    assert_int_equal(result.desired, 8);
    /* A user has made it smaller meanwhile; what was added more than 15 s ago does not count. */
    plan(HPA("1", "100", ""), 1, "x", NOW + 15500);
    assert_int_equal(result.desired, 4);
    /* What is wanted stays: at the lower limit, above it, and with a lower limit of one. */
    autoscale_memory_done(&memory);
    plan(HPA("2", "10", ""), 2, "55", NOW);
    assert_int_equal(result.desired, 2);
    assert_string_equal(reason("ScalingLimited"), "TooFewReplicas");
    plan(HPA("2", "10", ""), 3, "555", NOW);
    assert_int_equal(result.desired, 3);
    assert_string_equal(reason("ScalingLimited"), "DesiredWithinRange");
    plan(HPA("1", "10", ""), 1, "5", NOW);
    assert_int_equal(result.desired, 1);
    assert_string_equal(reason("ScalingLimited"), "DesiredWithinRange");
    /* Outside of the limits no metric is asked. */
    plan(HPA("3", "5", ""), 2, "", NOW);
    assert_int_equal(result.desired, 3);
    plan(HPA("3", "5", ""), 9, "", NOW);
    assert_int_equal(result.desired, 5);
}

static void pods_go_after_five_minutes_of_little_use(void **state)
{
    plan(HPA("1", "10", ""), 4, "5555", NOW);
    assert_int_equal(result.desired, 4);
    plan(HPA("1", "10", ""), 4, "1111", NOW + 15000);
    assert_int_equal(result.desired, 4);
    assert_string_equal(reason("AbleToScale"), "ScaleDownStabilized");
    plan(HPA("1", "10", ""), 4, "1111", NOW + 299000);
    assert_int_equal(result.desired, 4);
    plan(HPA("1", "10", ""), 4, "1111", NOW + 301000);
    assert_int_equal(result.desired, 1);
    assert_string_equal(reason("AbleToScale"), "ReadyForNewScale");
}

static void behaviour_changes_windows_and_rates(void **state)
{
    static const char down[] =
        HPA("1", "10",
            ", 'behavior': {'scaleDown': {'stabilizationWindowSeconds': 0, 'policies': "
            "[{'type': 'Pods', 'value': 1, 'periodSeconds': 60}]}, 'scaleUp': "
            "{'selectPolicy': 'Disabled'}}");
    plan(down, 4, "1111", NOW);
    autoscale_memory_done(&memory);
    plan(down, 4, "5555", NOW);
    plan(down, 4, "1111", NOW + 1000);
    assert_int_equal(result.desired, 3);
    assert_string_equal(reason("ScalingLimited"), "ScaleDownLimit");
    plan(down, 4, "xxxx", NOW + 2000);
    assert_int_equal(result.desired, 4);
}

static void without_a_basis_nothing_changes(void **state)
{
    plan(HPA("1", "10", ""), 0, "", NOW);
    assert_false(result.scales);
    assert_string_equal(reason("ScalingActive"), "ScalingDisabled");
    plan(HPA("1", "10", ""), 2, "", NOW);
    assert_false(result.scales);
    assert_string_equal(reason("ScalingActive"), "FailedGetResourceMetric");
    plan(HPA("1", "10", ""), 2, "??", NOW);
    assert_non_null(strstr(result.fail_text, "did not receive metrics for targeted pods"));
    plan("{'metadata': {'name': 'h'}, 'spec': {'maxReplicas': 5, 'metrics': [{'type': 'Pods', "
         "'pods': {'metric': {'name': 'm'}, 'target': {}}}]}}",
         2, "55", NOW);
    assert_false(result.scales);
    assert_string_equal(reason("ScalingActive"), "FailedGetPodsMetric");
    assert_non_null(strstr(result.fail_text, "metrics of the type Pods have no source"));
    /* The reason is that of the first failure, also beside a metric that wants fewer pods. */
    plan("{'metadata': {'name': 'h'}, 'spec': {'maxReplicas': 5, 'metrics': [{'type': 'External', "
         "'external': {'metric': {'name': 'm'}, 'target': {}}}, {'type': 'Object', 'object': "
         "{'metric': {'name': 'm'}, 'target': {}}}]}}",
         2, "55", NOW);
    assert_string_equal(reason("ScalingActive"), "FailedGetExternalMetric");
    plan("{'metadata': {'name': 'h'}, 'spec': {'maxReplicas': 5, 'metrics': [{'type': 'Resource', "
         "'resource': {'name': 'memory', 'target': {'type': 'Utilization', 'averageUtilization': "
         "5}}}]}}",
         2, "55", NOW);
    assert_non_null(
        strstr(result.fail_text, "missing request for memory in container c of Pod p0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(pods_follow_their_use, drop),
        cmocka_unit_test_teardown(limits_hold_and_are_named, drop),
        cmocka_unit_test_teardown(pods_go_after_five_minutes_of_little_use, drop),
        cmocka_unit_test_teardown(behaviour_changes_windows_and_rates, drop),
        cmocka_unit_test_teardown(without_a_basis_nothing_changes, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
