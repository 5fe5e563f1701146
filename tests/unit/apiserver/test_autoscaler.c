/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscalers are read and written in autoscaling/v1 and v2: one object, two forms. */
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define OLD "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
#define NEW_ "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
#define TARGET "'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'d'}"
#define KEY "autoscaling.alpha.kubernetes.io/"
#define CPU(percent)                                         \
    "{'type':'Resource','resource':{'name':'cpu','target':{" \
    "'type':'Utilization','averageUtilization':" #percent "}}}"

static struct harness *h;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static struct json *get(const char *path, const char *name, const char *part)
{
    CLEANUP_FREE char *full = xasprintf("%s/%s", path, name);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", full, NULL, 200);
    const struct json *v = json_get(a.body, part);
    return v ? json_clone(v) : NULL;
}

static void expect(const struct json *got, const char *want)
{
    CLEANUP(json_free) struct json *w = json_of(want);
    CLEANUP_FREE char *text = got ? json_to_text(got) : xstrdup("nothing");
    if (!got || !json_equal(got, w)) {
        fail_msg("%s\nwant %s", text, want);
    }
}

static const char *note(const struct json *metadata, const char *key)
{
    CLEANUP_FREE char *full = xasprintf(KEY "%s", key);
    const char *s = json_path_string(metadata, "annotations", full, NULL);
    return s ? s : "";
}

static void the_old_form_has_the_use_of_cpu(void **state)
{
    put_in(h, "POST", OLD,
           "{'metadata':{'name':'cpu'},'spec':{" TARGET
           ",'maxReplicas':5,'targetCPUUtilizationPercentage':60}}",
           201);
    CLEANUP(json_free) struct json *spec = get(NEW_, "cpu", "spec");
    expect(spec, "{" TARGET ",'minReplicas':1,'maxReplicas':5,'metrics':[" CPU(60) "]}");
    CLEANUP(json_free) struct json *same = get(OLD, "cpu", "spec");
    expect(same,
           "{" TARGET ",'minReplicas':1,'maxReplicas':5,'targetCPUUtilizationPercentage':60}");
    CLEANUP(json_free) struct json *meta = get(OLD, "cpu", "metadata");
    assert_null(json_get(meta, "annotations"));
    /* Without any metric the target is 80 %, in both forms. */
    put_in(h, "POST", OLD, "{'metadata':{'name':'none'},'spec':{" TARGET ",'maxReplicas':5}}", 201);
    CLEANUP(json_free) struct json *none = get(OLD, "none", "spec");
    expect(none,
           "{" TARGET ",'minReplicas':1,'maxReplicas':5,'targetCPUUtilizationPercentage':80}");
    put_in(h, "PUT", OLD "/cpu/status",
           "{'metadata':{'name':'cpu'},'spec':{" TARGET ",'maxReplicas':5},'status':{"
           "'currentReplicas':2,'desiredReplicas':3,'currentCPUUtilizationPercentage':55}}",
           200);
    CLEANUP(json_free) struct json *status = get(NEW_, "cpu", "status");
    expect(status, "{'currentReplicas':2,'desiredReplicas':3,'currentMetrics':[{'type':'Resource',"
                   "'resource':{'name':'cpu','current':{'averageUtilization':55}}}]}");
}

static void annotations_carry_what_the_old_form_lacks(void **state)
{
#define METRICS                                                                                 \
    "{'type':'Pods','pods':{'metric':{'name':'rps','selector':{'matchLabels':{'a':'b'}}},"      \
    "'target':{'type':'AverageValue','averageValue':'10'}}},"                                   \
    "{'type':'Object','object':{'describedObject':{'kind':'Service','name':'s'},'target':{"     \
    "'type':'Value','value':'5'},'metric':{'name':'hits'}}},"                                   \
    "{'type':'External','external':{'metric':{'name':'queue'},'target':{'type':'AverageValue'," \
    "'averageValue':'7'}}},"                                                                    \
    "{'type':'ContainerResource','containerResource':{'name':'cpu','target':{"                  \
    "'type':'Utilization','averageUtilization':70},'container':'c'}},"                          \
    "{'type':'Resource','resource':{'name':'memory','target':{'type':'AverageValue',"           \
    "'averageValue':'1Gi'}}}"
#define BEHAVIOR                                                                          \
    "'behavior':{'scaleDown':{'selectPolicy':'Max','policies':[{'type':'Pods','value':1," \
    "'periodSeconds':60}],'stabilizationWindowSeconds':30}}"
#define SPEC \
    "{" TARGET ",'minReplicas':2,'maxReplicas':9,'metrics':[" METRICS "," CPU(50) "]," BEHAVIOR "}"
#define CONDITION \
    "{'type':'AbleToScale','status':'True','lastTransitionTime':'2024-01-02T03:04:05Z'}"
#define NOW                                                                         \
    "{'type':'Resource','resource':{'name':'cpu','current':{'averageValue':'100m'," \
    "'averageUtilization':40}}}"
    put_in(h, "POST", NEW_,
           "{'metadata':{'name':'all','annotations':{'mine':'x'}},'spec':" SPEC "}", 201);
    put_in(h, "PUT", NEW_ "/all/status",
           "{'metadata':{'name':'all'},'spec':" SPEC ",'status':{'currentReplicas':2,"
           "'desiredReplicas':3,'conditions':[" CONDITION "],'currentMetrics':[" NOW "]}}",
           200);
    CLEANUP(json_free) struct json *spec = get(OLD, "all", "spec");
    expect(spec,
           "{" TARGET ",'minReplicas':2,'maxReplicas':9,'targetCPUUtilizationPercentage':50}");
    CLEANUP(json_free) struct json *meta = get(OLD, "all", "metadata");
    assert_string_equal(json_path_string(meta, "annotations", "mine", NULL), "x");
    CLEANUP_FREE char *metrics = quoted(note(meta, "metrics"));
    CLEANUP(json_free) struct json *list = json_of(metrics);
    expect(list,
           "[{'type':'Pods','pods':{'metricName':'rps','targetAverageValue':'10','selector':{"
           "'matchLabels':{'a':'b'}}}},{'type':'Object','object':{'target':{'kind':'Service',"
           "'name':'s'},'metricName':'hits','targetValue':'5'}},{'type':'External','external':{"
           "'metricName':'queue','targetAverageValue':'7'}},{'type':'ContainerResource',"
           "'containerResource':{'name':'cpu','targetAverageUtilization':70,'container':'c'}},"
           "{'type':'Resource','resource':{'name':'memory','targetAverageValue':'1Gi'}}]");
    CLEANUP(json_free) struct json *behavior = json_of(note(meta, "behavior"));
    expect(behavior, "{'ScaleUp':null,'ScaleDown':{'StabilizationWindowSeconds':30,"
                     "'SelectPolicy':'Max','Policies':[{'Type':'Pods','Value':1,"
                     "'PeriodSeconds':60}],'Tolerance':null}}");
    CLEANUP(json_free) struct json *now = json_of(note(meta, "current-metrics"));
    expect(now, "[{'type':'Resource','resource':{'name':'cpu','currentAverageUtilization':40,"
                "'currentAverageValue':'100m'}}]");
    CLEANUP(json_free) struct json *conditions = json_of(note(meta, "conditions"));
    expect(conditions, "[" CONDITION "]");
    CLEANUP(json_free) struct json *status = get(OLD, "all", "status");
    expect(status,
           "{'currentReplicas':2,'desiredReplicas':3,'currentCPUUtilizationPercentage':40}");
    /* A client of the old form that writes the object back changes nothing of it. */
    CLEANUP_ANSWER struct answer old = ask_ok(h, "GET", OLD "/all", NULL, 200);
    CLEANUP_ANSWER struct answer put = ask_ok(h, "PUT", OLD "/all", old.text, 200);
    CLEANUP(json_free) struct json *after = get(NEW_, "all", "spec");
    expect(after, SPEC);
    CLEANUP(json_free) struct json *kept = get(NEW_, "all", "metadata");
    CLEANUP(json_free) struct json *notes = json_clone(json_get(kept, "annotations"));
    expect(notes, "{'mine':'x'}");
    assert_string_equal(at(&put, "metadata.resourceVersion"), at(&old, "metadata.resourceVersion"));
}

static void annotations_are_judged_like_the_fields(void **state)
{
    static const char *const wrong[][2] = {
        {"[{'type':'Pods'}]", "spec.metrics[0].pods"},
        {"[{'type':'Resource','resource':{'name':'cpu','targetAverageUtilization':-1}}]",
         "spec.metrics[0].resource.target.averageUtilization"},
        {"[{'type':'Nonsense'}]", "spec.metrics[0].type"},
        {"[7]", "spec.metrics[0]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        CLEANUP_FREE char *text = quoted(wrong[i][0]);
        CLEANUP(json_free)
        struct json *o = json_of("{'metadata':{'name':'w'},'spec':{" TARGET ",'maxReplicas':5}}");
        json_set_string(json_ensure_object(json_get(o, "metadata"), "annotations"), KEY "metrics",
                        text);
        CLEANUP_FREE char *body = json_to_text(o);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", OLD, body);
        if (a.status != 422 || !strstr(a.text, wrong[i][1])) {
            fail_msg("%s: %d %s", wrong[i][0], a.status, a.text);
        }
    }
    /* What is no JSON is passed over, as in Kubernetes. */
    put_in(h, "POST", OLD,
           "{'metadata':{'name':'text','annotations':{'" KEY "metrics':'{','" KEY
           "behavior':'[]'}},"
           "'spec':{" TARGET ",'maxReplicas':5}}",
           201);
    CLEANUP(json_free) struct json *spec = get(NEW_, "text", "spec");
    expect(spec, "{" TARGET ",'minReplicas':1,'maxReplicas':5,'metrics':[" CPU(80) "]}");
    CLEANUP_ANSWER struct answer none =
        ask(h, "POST", OLD,
            "{\"metadata\":{\"name\":\"z\"},\"spec\":{\"maxReplicas\":0,\"scaleTargetRef\""
            ":{\"kind\":\"Deployment\",\"name\":\"d\"}}}");
    assert_int_equal(none.status, 422);
    assert_string_equal(at(&none, "details.causes.0.field"), "spec.maxReplicas");
    assert_string_equal(at(&none, "details.causes.1.field"), "");
}

static void discovery_prefers_the_newer_form(void **state)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/apis/autoscaling", NULL, 200);
    assert_string_equal(at(&a, "preferredVersion.version"), "v2");
    assert_string_equal(at(&a, "versions.0.version"), "v2");
    assert_string_equal(at(&a, "versions.1.version"), "v1");
    CLEANUP_ANSWER struct answer list = ask_ok(h, "GET", "/apis/autoscaling/v1", NULL, 200);
    assert_string_equal(at(&list, "resources.0.name"), "horizontalpodautoscalers");
    CLEANUP_ANSWER struct answer table =
        ask_full(h, "GET", OLD, "application/json;as=Table;v=v1;g=meta.k8s.io", NULL, NULL);
    assert_int_equal(table.status, 200);
    assert_non_null(strstr(table.text, "<unknown>/80%"));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_old_form_has_the_use_of_cpu),
        T(annotations_carry_what_the_old_form_lacks),
        T(annotations_are_judged_like_the_fields),
        T(discovery_prefers_the_newer_form),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
