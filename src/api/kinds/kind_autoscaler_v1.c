/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscaler (autoscaling/v1): the objects of autoscaling/v2 in the older form, as
 * kubernetes/pkg/apis/autoscaling/v1/conversion.go converts them.
 *
 * The older form has one metric, the use of CPU.  Annotations carry what it lacks, in the names of
 * autoscaling/v1, so that a client of it that writes an object back loses nothing. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>

#define PREFIX "autoscaling.alpha.kubernetes.io/"
#define METRICS PREFIX "metrics"
#define BEHAVIOR PREFIX "behavior"
#define CURRENT PREFIX "current-metrics"
#define CONDITIONS PREFIX "conditions"
#define DEFAULT_UTILIZATION 80

/* ---- metrics ---- */

/* A member of a metric in both forms: the newer one has it within another member or (NULL) next
 * to it.  'always': the older form has it even when it is absent, as an amount of 0. */
struct place {
    const char *member, *outer, *inner, *old;
    bool always;
};

static const struct place targets[] = {
    {"object", NULL, "describedObject", "target"},
    {"object", "metric", "name", "metricName"},
    {"object", "target", "value", "targetValue", true},
    {"object", "metric", "selector", "selector"},
    {"object", "target", "averageValue", "averageValue"},
    {"pods", "metric", "name", "metricName"},
    {"pods", "target", "averageValue", "targetAverageValue", true},
    {"pods", "metric", "selector", "selector"},
    {"resource", NULL, "name", "name"},
    {"resource", "target", "averageUtilization", "targetAverageUtilization"},
    {"resource", "target", "averageValue", "targetAverageValue"},
    {"containerResource", NULL, "name", "name"},
    {"containerResource", "target", "averageUtilization", "targetAverageUtilization"},
    {"containerResource", "target", "averageValue", "targetAverageValue"},
    {"containerResource", NULL, "container", "container"},
    {"external", "metric", "name", "metricName"},
    {"external", "metric", "selector", "metricSelector"},
    {"external", "target", "value", "targetValue"},
    {"external", "target", "averageValue", "targetAverageValue"},
};
static const struct place values[] = {
    {"object", NULL, "describedObject", "target"},
    {"object", "metric", "name", "metricName"},
    {"object", "current", "value", "currentValue", true},
    {"object", "metric", "selector", "selector"},
    {"object", "current", "averageValue", "averageValue"},
    {"pods", "metric", "name", "metricName"},
    {"pods", "current", "averageValue", "currentAverageValue", true},
    {"pods", "metric", "selector", "selector"},
    {"resource", NULL, "name", "name"},
    {"resource", "current", "averageUtilization", "currentAverageUtilization"},
    {"resource", "current", "averageValue", "currentAverageValue", true},
    {"containerResource", NULL, "name", "name"},
    {"containerResource", "current", "averageUtilization", "currentAverageUtilization"},
    {"containerResource", "current", "averageValue", "currentAverageValue", true},
    {"containerResource", NULL, "container", "container"},
    {"external", "metric", "name", "metricName"},
    {"external", "metric", "selector", "metricSelector"},
    {"external", "current", "value", "currentValue", true},
    {"external", "current", "averageValue", "currentAverageValue"},
};
struct places {
    const struct place *rows;
    size_t n;
    bool desired; /* They are targets, which have a type in the newer form. */
};
static const struct places of_targets = {targets, ARRAY_SIZE(targets), true};
static const struct places of_values = {values, ARRAY_SIZE(values), false};

static void set_copy(struct json *obj, const char *key, const struct json *v)
{
    if (v && !json_is(v, JSON_NULL)) {
        json_set(obj, key, json_clone(v));
    }
}

/* The metric in the older form, owned. */
static struct json *metric_to_old(const struct json *metric, const struct places *p)
{
    struct json *out = json_object();
    set_copy(out, "type", json_get(metric, "type"));
    for (size_t i = 0; i < p->n; i++) {
        const struct place *row = &p->rows[i];
        const struct json *from = json_get(metric, row->member);
        if (!from) {
            continue;
        }
        struct json *to = json_ensure_object(out, row->member);
        const struct json *v = json_get(row->outer ? json_get(from, row->outer) : from, row->inner);
        set_copy(to, row->old, v);
        if (!v && row->always) {
            json_set_string(to, row->old, "0");
        }
    }
    return out;
}

/* An amount of 0 beside another value stands for none. */
static bool is_filler(const struct place *row, const struct json *from, const struct json *v)
{
    bool other = json_get(from, "averageValue") || json_get(from, "targetAverageValue") ||
                 json_get(from, "currentAverageUtilization");
    return row->always && streq(row->inner, "value") && other &&
           streq_null(json_get_string(v), "0");
}

static void set_target_type(struct json *source)
{
    struct json *target = json_ensure_object(source, "target");
    json_set_string(target, "type",
                    json_get(target, "averageUtilization") ? "Utilization"
                    : json_get(target, "averageValue")     ? "AverageValue"
                                                           : "Value");
}

static struct json *metric_to_new(const struct json *metric, const struct places *p)
{
    struct json *out = json_object();
    set_copy(out, "type", json_get(metric, "type"));
    for (size_t i = 0; i < p->n; i++) {
        const struct place *row = &p->rows[i];
        const struct json *from = json_get(metric, row->member), *v = json_get(from, row->old);
        if (!json_is(from, JSON_OBJECT)) {
            continue;
        }
        struct json *to = json_ensure_object(out, row->member);
        if (!is_filler(row, from, v)) {
            set_copy(row->outer ? json_ensure_object(to, row->outer) : to, row->inner, v);
        }
        bool last = i + 1 == p->n || !streq(p->rows[i + 1].member, row->member);
        if (last && p->desired) {
            set_target_type(to);
        }
    }
    return out;
}

static bool is_cpu(const struct json *metric)
{
    return streq_null(json_path_string(metric, "type", NULL), "Resource") &&
           streq_null(json_path_string(metric, "resource", "name", NULL), "cpu");
}

/* ---- behavior ---- */

/* The annotation has Go's names: those of JSON with a capital, which a reader does not tell apart.
 * Go writes absent members as null. */
static struct json *capitals(const struct json *v, const char *const *keys)
{
    struct json *out = json_object();
    for (; *keys; keys++) {
        const struct json *member = json_get(v, *keys);
        CLEANUP_FREE char *name = xstrdup(*keys);
        name[0] = (char) toupper(name[0]);
        json_set(out, name, member ? json_clone(member) : json_null());
    }
    return out;
}

static const char *const directions[] = {"scaleUp", "scaleDown", NULL};

static struct json *behavior_to_old(const struct json *behavior)
{
    static const char *const rules[] = {"stabilizationWindowSeconds", "selectPolicy", "policies",
                                        "tolerance", NULL};
    static const char *const policy[] = {"type", "value", "periodSeconds", NULL};
    CLEANUP(json_free) struct json *in = json_clone(behavior);
    const struct json *p;
    for (size_t i = 0; directions[i]; i++) {
        const struct json *direction = json_get(in, directions[i]);
        if (!direction) {
            continue;
        }
        struct json *own = capitals(direction, rules);
        struct json *list = json_array();
        JSON_FOREACH (p, json_get(direction, "policies")) {
            json_append(list, capitals(p, policy));
        }
        json_set(own, "Policies", list);
        json_set(in, directions[i], own);
    }
    return capitals(in, directions);
}

/* The value with small initials in the names of all members, and without nulls. */
static struct json *small_initials(const struct json *v)
{
    struct json *out;
    if (json_is(v, JSON_ARRAY)) {
        out = json_array();
        for (size_t i = 0; i < json_count(v); i++) {
            json_append(out, small_initials(json_at(v, i)));
        }
    } else if (json_is(v, JSON_OBJECT)) {
        out = json_object();
        for (size_t i = 0; i < json_count(v); i++) {
            CLEANUP_FREE char *name = xstrdup(json_key_at(v, i));
            name[0] = (char) tolower(name[0]);
            if (!json_is(json_at(v, i), JSON_NULL)) {
                json_set(out, name, small_initials(json_at(v, i)));
            }
        }
    } else {
        out = json_clone(v);
    }
    return out;
}

/* ---- annotations ---- */

static void annotate(struct json *obj, const char *key, struct json *v)
{
    CLEANUP(json_free) struct json *own = v;
    CLEANUP_FREE char *text = json_to_text(own);
    json_set_string(json_ensure_object(json_ensure_object(obj, "metadata"), "annotations"), key,
                    text);
}

static void drop_annotations(struct json *obj)
{
    static const char *const keys[] = {METRICS, BEHAVIOR, CURRENT, CONDITIONS};
    struct json *meta = json_get(obj, "metadata"), *annotations = json_get(meta, "annotations");
    size_t had = json_count(annotations);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        json_remove(annotations, keys[i]);
    }
    if (had && json_count(annotations) == 0) {
        json_remove(meta, "annotations");
    }
}

/* The annotation's value of the type, owned; NULL: there is none that can be read, which Kubernetes
 * passes over. */
static struct json *annotation(const struct json *obj, const char *key, enum json_type type)
{
    CLEANUP(json_free) struct json *v = NULL;
    const char *text = json_get_string(json_path(obj, "metadata", "annotations", key, NULL));
    if (!text || json_parse(text, strlen(text), &v, NULL) < 0 || !json_is(v, type)) {
        return NULL;
    }
    return TAKE(v);
}

/* ---- conversion ---- */

/* The list in the older form, but what the field for CPU says of targets; owned. */
static struct json *list_to_old(const struct json *list, const struct places *p)
{
    struct json *out = json_array();
    const struct json *m;
    JSON_FOREACH (m, list) {
        if (!p->desired || !is_cpu(m) ||
            !json_path(m, "resource", "target", "averageUtilization", NULL)) {
            json_append(out, metric_to_old(m, p));
        }
    }
    return out;
}

/* Sets the field for CPU from the first metric that has a percentage of it. */
static void set_cpu(struct json *to, const char *key, const struct json *list, const char *side)
{
    const struct json *m;
    JSON_FOREACH (m, list) {
        const struct json *v = json_path(m, "resource", side, "averageUtilization", NULL);
        if (is_cpu(m) && v && !json_get(to, key)) {
            json_set(to, key, json_clone(v));
        }
    }
}

static void show(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *status = json_get(obj, "status");
    CLEANUP(json_free) struct json *metrics = json_take(spec, "metrics");
    CLEANUP(json_free) struct json *behavior = json_take(spec, "behavior");
    CLEANUP(json_free) struct json *now = json_take(status, "currentMetrics");
    CLEANUP(json_free) struct json *conditions = json_take(status, "conditions");
    CLEANUP(json_free) struct json *others = list_to_old(metrics, &of_targets);
    drop_annotations(obj);
    if (spec) {
        set_cpu(spec, "targetCPUUtilizationPercentage", metrics, "target");
    }
    if (status) {
        set_cpu(status, "currentCPUUtilizationPercentage", now, "current");
    }
    if (json_count(others)) {
        annotate(obj, METRICS, TAKE(others));
    }
    if (json_count(now)) {
        annotate(obj, CURRENT, list_to_old(now, &of_values));
    }
    if (behavior) {
        annotate(obj, BEHAVIOR, behavior_to_old(behavior));
    }
    if (json_count(conditions)) {
        annotate(obj, CONDITIONS, json_clone(conditions));
    }
}

/* The list of an annotation in the newer form; NULL: there is none.  Owned. */
static struct json *list_to_new(const struct json *obj, const char *key, const struct places *p)
{
    CLEANUP(json_free) struct json *list = annotation(obj, key, JSON_ARRAY);
    struct json *out = list ? json_array() : NULL;
    const struct json *m;
    JSON_FOREACH (m, list) {
        json_append(out, metric_to_new(m, p));
    }
    return out;
}

static void append_cpu(struct json *list, const char *side, const char *type, int64_t percent)
{
    struct json *metric = json_append(list, json_object());
    json_set_string(metric, "type", "Resource");
    struct json *resource = json_ensure_object(metric, "resource");
    json_set_string(resource, "name", "cpu");
    struct json *value = json_ensure_object(resource, side);
    if (type) {
        json_set_string(value, "type", type);
    }
    json_set_int(value, "averageUtilization", percent);
}

static void store_spec(struct json *obj, struct json *spec)
{
    CLEANUP(json_free) struct json *cpu = json_take(spec, "targetCPUUtilizationPercentage");
    CLEANUP(json_free) struct json *behavior = annotation(obj, BEHAVIOR, JSON_OBJECT);
    CLEANUP(json_free) struct json *small = behavior ? small_initials(behavior) : NULL;
    struct json *list = list_to_new(obj, METRICS, &of_targets);
    list = list ? list : json_array();
    int64_t percent;
    if (cpu && json_get_int(cpu, &percent) == 0) {
        append_cpu(list, "target", "Utilization", percent);
    } else if (json_count(list) == 0) {
        append_cpu(list, "target", "Utilization", DEFAULT_UTILIZATION);
    }
    json_set(spec, "metrics", list);
    if (json_count(small)) {
        json_set(spec, "behavior", TAKE(small));
    }
}

static void store_status(struct json *obj, struct json *status)
{
    CLEANUP(json_free) struct json *cpu = json_take(status, "currentCPUUtilizationPercentage");
    struct json *list = list_to_new(obj, CURRENT, &of_values);
    struct json *conditions = annotation(obj, CONDITIONS, JSON_ARRAY);
    int64_t percent;
    if (!list && cpu && json_get_int(cpu, &percent) == 0) {
        append_cpu(list = json_array(), "current", NULL, percent);
    }
    json_set(status, "currentMetrics", list);
    json_set(status, "conditions", conditions);
}

static void store(struct json *obj)
{
    struct json *spec = json_get(obj, "spec"), *status = json_get(obj, "status");
    const struct api_schema *schema = api_kind_schema(&api_kind_horizontal_pod_autoscaler);
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    if (json_is(spec, JSON_OBJECT)) {
        store_spec(obj, spec);
    }
    if (json_is(status, JSON_OBJECT)) {
        store_status(obj, status);
    }
    drop_annotations(obj);
    api_schema_prune(schema, obj, &unknown); /* Annotations may have had any members. */
    api_schema_default(schema, obj);
}

const struct api_view kind_horizontal_pod_autoscaler_v1_view = {
    .of = &api_kind_horizontal_pod_autoscaler, .show = show, .store = store};

/* ---- rules ---- */

/* The object is valid if the one that is stored for it is: annotations may say anything. */
void kind_horizontal_pod_autoscaler_v1_validate(const struct json *obj, const struct json *old,
                                                struct api_causes *c)
{
    CLEANUP(json_free) struct json *stored = json_clone(obj);
    CLEANUP(json_free) struct json *before = old ? json_clone(old) : NULL;
    store(stored);
    if (before) {
        store(before);
    }
    api_validate_object(&api_kind_horizontal_pod_autoscaler, stored, before, c);
}

struct json *kind_horizontal_pod_autoscaler_v1_cell_targets(const struct json *obj, int64_t now_ms)
{
    int64_t want, now;
    if (json_get_int(json_path(obj, "spec", "targetCPUUtilizationPercentage", NULL), &want) < 0) {
        return json_string("<unset>");
    }
    return json_get_int(json_path(obj, "status", "currentCPUUtilizationPercentage", NULL), &now) < 0
               ? json_stringf("<unknown>/%lld%%", (long long) want)
               : json_stringf("%lld%%/%lld%%", (long long) now, (long long) want);
}
