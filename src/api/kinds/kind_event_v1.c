/* SPDX-License-Identifier: Apache-2.0 */
/* Event (events.k8s.io/v1): the core group's events with the newer group's field names. */
#include "api/kind_util.h"
#include "api/kinds.h"

/* Names in core v1 and here. */
static const char *const names[][2] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
};

static void rename_members(struct json *obj, size_t from, size_t to)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct json *v = json_take(obj, names[i][from]);
        if (v) {
            json_set(obj, names[i][to], v);
        }
    }
}

static void show(struct json *obj)
{
    rename_members(obj, 0, 1);
}

static void store(struct json *obj)
{
    rename_members(obj, 1, 0);
}

static void check_length(struct api_causes *c, const char *field, const struct json *v, size_t max)
{
    if (json_string_size(v) == 0) {
        api_required(c, field, "");
    } else if (json_string_size(v) > max) {
        api_too_long(c, field, max);
    }
}

static void check_series(const struct json *series, struct api_causes *c)
{
    const struct json *count = json_get(series, "count");
    if (series && json_get_int_or(count, 0) < 2) {
        api_invalid(c, "series.count", count, "should be at least 2");
    }
}

/* Only the series of an event may change. Fields with types of their own, and times, are compared
 * here; texts are immutable by their description. */
static void check_update(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const fixed[] = {"eventTime",
                                        "regarding",
                                        "related",
                                        "deprecatedSource",
                                        "deprecatedFirstTimestamp",
                                        "deprecatedLastTimestamp",
                                        "deprecatedCount"};
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
        api_field_immutable(c, fixed[i], json_get(obj, fixed[i]), json_get(old, fixed[i]));
    }
    if (!json_equal(json_get(obj, "series"), json_get(old, "series"))) {
        check_series(json_get(obj, "series"), c);
    }
}

void kind_event_v1_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const types[] = {"Normal", "Warning", NULL};
    const struct json *type = json_get(obj, "type");
    const char *about = json_path_string(obj, "regarding", "namespace", NULL);
    const char *own = json_path_string(obj, "metadata", "namespace", NULL);
    if (about && *about ? !streq_null(own, about)
                        : own && !streq(own, "default") && !streq(own, "kube-system")) {
        api_invalid(c, "regarding.namespace", json_path(obj, "regarding", "namespace", NULL),
                    "does not match event.namespace");
    }
    if (old) {
        /* It may have been created in the older form, which requires less. */
        check_update(obj, old, c);
        return;
    }
    check_series(json_get(obj, "series"), c);
    if (!json_get(obj, "eventTime")) {
        api_required(c, "eventTime", "");
    }
    check_length(c, "reportingController", json_get(obj, "reportingController"), 316);
    check_length(c, "reportingInstance", json_get(obj, "reportingInstance"), 128);
    check_length(c, "action", json_get(obj, "action"), 128);
    check_length(c, "reason", json_get(obj, "reason"), 128);
    api_field_enum(c, "type", type, true, types);
    if (json_string_size(json_get(obj, "note")) > 1024) {
        api_too_long(c, "note", 1024);
    }
}

static const char *text_of(const struct json *obj, const char *a, const char *b)
{
    const char *s = json_path_string(obj, a, NULL);
    return s && *s ? s : json_path_string(obj, b, NULL);
}

struct json *kind_event_v1_cell_last_seen(const struct json *obj, int64_t now_ms)
{
    const char *last = json_path_string(obj, "series", "lastObservedTime", NULL);
    if (!last || !*last) {
        last = text_of(obj, "deprecatedLastTimestamp", "eventTime");
    }
    return api_cell_since(last ? last : json_path_string(obj, "deprecatedFirstTimestamp", NULL),
                          now_ms);
}

struct json *kind_event_v1_cell_object(const struct json *obj, int64_t now_ms)
{
    return api_cell_reference(json_get(obj, "regarding"));
}

const struct api_view kind_event_v1_view = {.of = &api_kind_event, .show = show, .store = store};
