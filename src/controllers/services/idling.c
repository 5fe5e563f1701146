/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/idling.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"

/* An object with empty annotations for a merge patch; '*ret' are the annotations. */
static struct json *patch_new(struct json **ret)
{
    struct json *o = json_object();
    *ret = json_ensure_object(json_ensure_object(o, "metadata"), "annotations");
    return o;
}

struct json *idle_patch(const char *at, const struct json *targets)
{
    struct json *a, *o = patch_new(&a);
    CLEANUP_FREE char *text = json_to_text(targets);
    json_set_string(a, IDLE_AT, at);
    json_set_string(a, IDLE_TARGETS, text);
    return o;
}

struct json *idle_target_patch(const char *at, int64_t replicas)
{
    struct json *a, *o = patch_new(&a);
    json_set_string(a, IDLE_AT, at);
    json_set(a, IDLE_PREVIOUS_SCALE, json_stringf("%lld", (long long) replicas));
    return o;
}

struct json *idle_woken_patch(void)
{
    struct json *a, *o = patch_new(&a);
    json_set(a, IDLE_TARGETS, json_null());
    return o;
}

struct json *idle_over_patch(void)
{
    struct json *a, *o = patch_new(&a);
    json_set(a, IDLE_AT, json_null());
    json_set(a, IDLE_TARGETS, json_null());
    return o;
}

struct json *idle_target_over_patch(void)
{
    struct json *a, *o = patch_new(&a);
    json_set(a, IDLE_AT, json_null());
    json_set(a, IDLE_PREVIOUS_SCALE, json_null());
    return o;
}

struct json *idle_targets(const struct json *obj)
{
    const char *text = obj_annotation(obj, IDLE_TARGETS);
    CLEANUP(json_free) struct json *list = NULL;
    struct json *out = json_array();
    const struct json *t;
    if (!text || json_parse(text, strlen(text), &list, NULL) < 0) {
        return out;
    }
    JSON_FOREACH (t, list) {
        int64_t replicas;
        if (json_path_string(t, "kind", NULL) && json_path_string(t, "name", NULL) &&
            json_get_int(json_get(t, "replicas"), &replicas) == 0 && replicas > 0 &&
            replicas <= INT32_MAX) {
            json_append(out, json_clone(t));
        }
    }
    return out;
}

bool idle_is_idled(const struct json *obj)
{
    return obj_annotation(obj, IDLE_AT) != NULL;
}

bool idle_event_counts(const struct json *event, const struct json *endpoints)
{
    static const char *const fields[] = {"lastTimestamp", "eventTime", "firstTimestamp"};
    const char *at = obj_annotation(endpoints, IDLE_AT);
    int64_t idled, seen;
    if (!at || time_parse(at, &idled) < 0) {
        return false;
    }
    const char *series = json_path_string(event, "series", "lastObservedTime", NULL);
    if (series && time_parse(series, &seen) == 0 && seen >= idled) {
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const char *s = json_path_string(event, fields[i], NULL);
        if (s && time_parse(s, &seen) == 0) {
            /* An event of the same second counts as later than the idling: a
             * connection waits for the pods. */
            return seen / 1000 >= idled / 1000;
        }
    }
    return false;
}

bool idle_has_ready(const struct json *endpoints)
{
    const struct json *s;
    JSON_FOREACH (s, json_get(endpoints, "subsets")) {
        if (json_count(json_get(s, "addresses"))) {
            return true;
        }
    }
    return false;
}
