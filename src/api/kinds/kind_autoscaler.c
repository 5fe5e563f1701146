/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscaler (autoscaling/v2): the rules beyond its description, in the words of
 * kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/template.h"
#include "api/label_selector.h"

#define SHOWN 2 /* Metrics that a cell names. */

/* The types of metrics and the members that describe them. */
static const struct {
    const char *type, *member;
} metrics[] = {{"ContainerResource", "containerResource"},
               {"External", "external"},
               {"Object", "object"},
               {"Pods", "pods"},
               {"Resource", "resource"}};

static const char *member_of(const struct json *metric)
{
    const char *type = json_path_string(metric, "type", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        if (streq_null(type, metrics[i].type)) {
            return metrics[i].member;
        }
    }
    return NULL;
}

/* ---- cells ---- */

struct json *kind_horizontal_pod_autoscaler_cell_reference(const struct json *obj, int64_t now_ms)
{
    const struct json *ref = json_path(obj, "spec", "scaleTargetRef", NULL);
    const char *kind = json_path_string(ref, "kind", NULL);
    const char *name = json_path_string(ref, "name", NULL);
    return json_stringf("%s/%s", kind ? kind : "", name ? name : "");
}

/* A value as "PRESENT/DESIRED"; 'key' is the member that both have. */
static void write_pair(struct strbuf *b, const struct json *now, const struct json *target,
                       const char *key, const char *unit)
{
    const struct json *sides[] = {json_get(now, key), json_get(target, key)};
    for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
        const char *s = json_get_string(sides[i]);
        int64_t n;
        strbuf_adds(b, i ? "/" : "");
        if (s) {
            strbuf_adds(b, s);
        } else if (json_get_int(sides[i], &n) == 0) {
            strbuf_addf(b, "%lld%s", (long long) n, unit);
        } else {
            strbuf_adds(b, i ? "<auto>" : "<unknown>");
        }
    }
}

static void write_metric(struct strbuf *b, const struct json *metric, const struct json *status)
{
    const char *member = member_of(metric);
    const struct json *spec = member ? json_get(metric, member) : NULL;
    const struct json *now = member ? json_path(status, member, "current", NULL) : NULL;
    const struct json *target = json_get(spec, "target");
    const char *name = json_path_string(spec, "name", NULL);
    if (!spec) {
        strbuf_adds(b, "<unknown type>");
        return;
    }
    if (name) {
        strbuf_addf(b, "%s: ", name);
    }
    if (json_get(target, "averageValue")) {
        write_pair(b, now, target, "averageValue", "");
        strbuf_adds(b, name || streq(member, "pods") ? "" : " (avg)");
    } else {
        write_pair(b, now, target, name ? "averageUtilization" : "value", name ? "%" : "");
    }
}

struct json *kind_horizontal_pod_autoscaler_cell_targets(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *list = json_path(obj, "spec", "metrics", NULL);
    const struct json *now = json_path(obj, "status", "currentMetrics", NULL);
    size_t n = json_count(list);
    for (size_t i = 0; i < MIN(n, (size_t) SHOWN); i++) {
        strbuf_adds(&b, i ? ", " : "");
        write_metric(&b, json_at(list, i), i < json_count(now) ? json_at(now, i) : NULL);
    }
    if (n > SHOWN) {
        strbuf_addf(&b, " + %zu more...", n - SHOWN);
    }
    return json_string(n ? strbuf_cstr(&b) : "<none>");
}

/* ---- defaults ---- */

void kind_horizontal_pod_autoscaler_prepare(struct json *obj, const struct json *old)
{
    (void) template_prepare(obj, old);
}

/* Without a metric the target is 80 % of the CPU that pods request. */
void kind_horizontal_pod_autoscaler_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *metric, *target;
    const struct json *list = json_get(spec, "metrics");
    if (!json_is(spec, JSON_OBJECT) || (list && !json_is(list, JSON_ARRAY)) || json_count(list)) {
        return;
    }
    metric = json_append(json_ensure_array(spec, "metrics"), json_object());
    json_set_string(metric, "type", "Resource");
    metric = json_ensure_object(metric, "resource");
    json_set_string(metric, "name", "cpu");
    target = json_ensure_object(metric, "target");
    json_set_string(target, "type", "Utilization");
    json_set_int(target, "averageUtilization", 80);
}

/* ---- validation ---- */

/* The values that fit the target's type, for messages. */
static void check_target(struct api_causes *c, const char *field, const struct json *target)
{
    static const struct {
        const char *type, *key;
    } values[] = {{"Utilization", "averageUtilization"},
                  {"Value", "value"},
                  {"AverageValue", "averageValue"}};
    const char *type = json_path_string(target, "type", NULL);
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        n += json_get(target, values[i].key) != NULL;
        if (streq_null(type, values[i].type) && !json_get(target, values[i].key)) {
            api_required(c, API_FIELD("%s.%s", field, values[i].key),
                         "must be specified for the target type %s", type);
        }
    }
    if (n > 1) {
        api_forbidden(c, field, "may not set more than one target value");
    }
}

static void check_metric(struct api_causes *c, const char *field, const struct json *metric)
{
    const char *member = member_of(metric);
    const struct json *source = json_get(metric, member);
    for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
        if (json_get(metric, metrics[i].member) && !streq(metrics[i].member, member)) {
            api_forbidden(c, API_FIELD("%s.%s", field, metrics[i].member),
                          "must populate the given metric source only");
        }
    }
    if (!source) {
        api_required(c, API_FIELD("%s.%s", field, member),
                     "must populate information for the given metric source");
        return;
    }
    check_target(c, API_FIELD("%s.%s.target", field, member), json_get(source, "target"));
    label_selector_check(c, API_FIELD("%s.%s.metric.selector", field, member),
                         json_path(source, "metric", "selector", NULL));
}

static void check_behavior(struct api_causes *c, const struct json *behavior)
{
    static const char *const directions[] = {"scaleDown", "scaleUp"};
    for (size_t i = 0; i < ARRAY_SIZE(directions); i++) {
        const struct json *rules = json_get(behavior, directions[i]);
        const struct json *policies = json_get(rules, "policies");
        if (policies && json_count(policies) == 0) {
            api_required(c, API_FIELD("spec.behavior.%s.policies", directions[i]),
                         "must specify at least one Policy");
        }
    }
}

void kind_horizontal_pod_autoscaler_validate(const struct json *obj, const struct json *old,
                                             struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *list = json_get(spec, "metrics");
    const struct json *most = json_get(spec, "maxReplicas"), *least = json_get(spec, "minReplicas");
    bool counted = false;
    if (json_get_int_or(least, 1) < 1) {
        for (size_t i = 0; i < json_count(list); i++) {
            const char *member = member_of(json_at(list, i));
            counted |= streq_null(member, "object") || streq_null(member, "external");
        }
        if (!counted) {
            api_forbidden(c, "spec.metrics",
                          "must specify at least one Object or External metric to support scaling "
                          "to zero replicas");
        }
    }
    if (json_get_int_or(most, 0) < 1) {
        api_invalid(c, "spec.maxReplicas", most, "must be greater than 0");
    } else if (json_get_int_or(most, 0) < json_get_int_or(least, 1)) {
        api_invalid(c, "spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        check_metric(c, API_FIELD("spec.metrics[%zu]", i), json_at(list, i));
    }
    check_behavior(c, json_get(spec, "behavior"));
}
