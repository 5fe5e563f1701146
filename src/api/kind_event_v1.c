/* SPDX-License-Identifier: Apache-2.0 */
/* Event (events.k8s.io/v1): the core group's events under the names that the newer group has for their fields. */
#include "api/kind_util.h"
#include "api/schema_core.h"

#define EVENTS "io.k8s.api.events.v1."

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

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
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
        return; /* It may have been made in the older form, which demands less. */
    }
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

static const struct api_field series_fields[] = {
    {"count", &api_schema_int32, "Number of times", true},
    {"lastObservedTime", &api_schema_micro_time, "When it was last seen", true},
};
static const struct api_schema series =
    API_OBJECT_OF(series_fields, EVENTS "EventSeries", "How often the event was seen again");

static const struct api_field root_fields[] = {
    {"action", &api_schema_string, "What was done about the object"},
    API_ROOT_API_VERSION,
    {"deprecatedCount", &api_schema_int32, "Core v1's count"},
    {"deprecatedFirstTimestamp", &api_schema_time, "Core v1's firstTimestamp"},
    {"deprecatedLastTimestamp", &api_schema_time, "Core v1's lastTimestamp"},
    {"deprecatedSource", &api_schema_event_source, "Core v1's source"},
    {"eventTime", &api_schema_micro_time, "When the event was first seen"},
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"note", &api_schema_string, "What happened, for people"},
    {"reason", &api_schema_string, "Why, for programs, in CamelCase"},
    {"regarding", &api_schema_object_reference, "The object that the event is about"},
    {"related", &api_schema_object_reference, "Another object that the event is about"},
    {"reportingController", &api_schema_string, "Name of the controller that reports"},
    {"reportingInstance", &api_schema_string, "Instance of that controller"},
    {"series", &series, "How often the event was seen again"},
    {"type", &api_schema_string, "Normal or Warning"},
};
static const struct api_schema root = API_OBJECT_OF(
    root_fields, EVENTS "Event", "Event is a report of an event somewhere in the cluster.");

static const char *text_of(const struct json *obj, const char *a, const char *b)
{
    const char *s = json_path_string(obj, a, NULL);
    return s && *s ? s : json_path_string(obj, b, NULL);
}

static struct json *cell_last_seen(const struct json *obj, int64_t now_ms)
{
    const char *last = json_path_string(obj, "series", "lastObservedTime", NULL);
    if (!last || !*last) {
        last = text_of(obj, "deprecatedLastTimestamp", "eventTime");
    }
    return api_cell_since(last ? last : json_path_string(obj, "deprecatedFirstTimestamp", NULL),
                          now_ms);
}

static struct json *cell_type(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "type", NULL), "");
}

static struct json *cell_reason(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "reason", NULL), "");
}

static struct json *cell_object(const struct json *obj, int64_t now_ms)
{
    return api_cell_reference(json_get(obj, "regarding"));
}

static struct json *cell_note(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "note", NULL), "");
}

static const struct api_column columns[] = {
    {"Last Seen", "string", "", "Time this event was last observed", 0, cell_last_seen},
    {"Type", "string", "", "Type of this event (Normal, Warning)", 0, cell_type},
    {"Reason", "string", "", "Short, machine understandable reason", 0, cell_reason},
    {"Object", "string", "", "The object that this event is about.", 0, cell_object},
    {"Note", "string", "", "Description of what happened", 0, cell_note},
    {"Name", "string", "name", "Name must be unique within a namespace.", 1, api_cell_name},
};
static const char *const short_names[] = {"ev", NULL};
/* The core kind's, one by one. */
static const struct api_field_label selectable[] = {
    {"regarding.kind"},
    {"regarding.namespace"},
    {"regarding.name"},
    {"regarding.uid"},
    {"regarding.apiVersion"},
    {"regarding.resourceVersion"},
    {"regarding.fieldPath"},
    {"reason"},
    {"reportingController"},
    {"source"},
    {"type"},
    {0},
};
static const struct api_view view = {.of = &api_kind_event, .show = show, .store = store};

const struct api_kind api_kind_event_v1 = {
    .group = "events.k8s.io",
    .version = "v1",
    .kind = "Event",
    .plural = "events",
    .singular = "event",
    .short_names = short_names,
    .namespaced = true,
    .description = "Event is a report of an event somewhere in the cluster.",
    .create_on_update = true,
    .view = &view,
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .selectable = selectable,
    .schema = &root,
};
