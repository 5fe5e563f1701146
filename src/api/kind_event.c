/* SPDX-License-Identifier: Apache-2.0 */
/* Event (core v1): what a component reports about an object. */
#include "api/kind_util.h"
#include "api/schema_core.h"

#include "base/timeutil.h"

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a && *a ? a : b && *b ? b : c;
}

static struct json *cell_last_seen(const struct json *obj, int64_t now_ms)
{
    const char *series = json_path_string(obj, "series", "lastObservedTime", NULL);
    return api_cell_since(first_of(series, json_path_string(obj, "lastTimestamp", NULL),
                                   first_of(json_path_string(obj, "eventTime", NULL),
                                            json_path_string(obj, "firstTimestamp", NULL), NULL)),
                          now_ms);
}

static struct json *cell_first_seen(const struct json *obj, int64_t now_ms)
{
    return api_cell_since(first_of(json_path_string(obj, "firstTimestamp", NULL),
                                   json_path_string(obj, "eventTime", NULL), NULL),
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
    return api_cell_reference(json_get(obj, "involvedObject"));
}

static struct json *cell_subobject(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "involvedObject", "fieldPath", NULL), "");
}

static struct json *cell_source(const struct json *obj, int64_t now_ms)
{
    const char *component = first_of(json_path_string(obj, "source", "component", NULL),
                                     json_path_string(obj, "reportingComponent", NULL), "");
    const char *host = json_path_string(obj, "source", "host", NULL);
    return json_stringf("%s%s%s", component, host && *host ? ", " : "", host ? host : "");
}

static struct json *cell_message(const struct json *obj, int64_t now_ms)
{
    const char *s = json_path_string(obj, "message", NULL);
    size_t n = s ? strlen(s) : 0;
    while (n && strchr(" \t\r\n", s[n - 1])) {
        n--;
    }
    return json_string_n(s ? s : "", n);
}

static struct json *cell_count(const struct json *obj, int64_t now_ms)
{
    return json_int(json_get_int_or(json_path(obj, "series", "count", NULL),
                                    json_get_int_or(json_get(obj, "count"), 1)));
}

static void check_time(struct api_causes *c, const char *field, const struct json *v)
{
    int64_t ms;
    if (api_field_string(c, field, v, false) && time_parse(json_get_string(v), &ms) < 0) {
        api_invalid(c, field, v, "must be an RFC 3339 time, (e.g. 2006-01-02T15:04:05Z)");
    }
}

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *ref = json_get(obj, "involvedObject");
    if (!json_is(ref, JSON_OBJECT)) {
        api_required(c, "involvedObject", "");
    } else {
        const struct json *ns = json_get(ref, "namespace");
        const char *own = json_path_string(obj, "metadata", "namespace", NULL);
        if (api_field_string(c, "involvedObject.namespace", ns, false)) {
            if (own && !streq(own, json_get_string(ns))) {
                api_invalid(c, "involvedObject.namespace", ns, "does not match event.namespace");
            }
        } else if (own && !streq(own, "default") && !streq(own, "kube-system")) {
            /* Events about cluster-scoped objects have no namespace of their own. */
            api_invalid(c, "involvedObject.namespace", ns, "does not match event.namespace");
        }
    }
    api_field_string(c, "reason", json_get(obj, "reason"), false);
    api_field_string(c, "message", json_get(obj, "message"), false);
    api_field_string(c, "type", json_get(obj, "type"), false);
    check_time(c, "firstTimestamp", json_get(obj, "firstTimestamp"));
    check_time(c, "lastTimestamp", json_get(obj, "lastTimestamp"));
    check_time(c, "eventTime", json_get(obj, "eventTime"));
    int64_t count;
    api_field_int(c, "count", json_get(obj, "count"), false, 0, INT32_MAX, &count);
}

/* ---- schema ---- */

#define CORE "io.k8s.api.core.v1."

static const struct api_field event_series_fields[] = {
    API_ROOT_API_VERSION,
    {"count", &api_schema_int32, "Number of times"},
    {"lastObservedTime", &api_schema_micro_time, "When it was last seen"},
};
static const struct api_schema event_series =
    API_OBJECT_OF(event_series_fields, CORE "EventSeries", "How often the event was seen again");

static const struct api_field event_source_fields[] = {
    {"component", &api_schema_string, "Name of the component"},
    {"host", &api_schema_string, "Name of its host"},
};
const struct api_schema api_schema_event_source =
    API_OBJECT_OF(event_source_fields, CORE "EventSource", "Who reported the event");
static const struct api_field root_fields[] = {
    {"action", &api_schema_string, "What was done about the object"},
    API_ROOT_API_VERSION,
    {"count", &api_schema_int32, "How often the event was seen"},
    {"eventTime", &api_schema_micro_time, "When the event was first seen"},
    {"firstTimestamp", &api_schema_time, "When the event was first recorded"},
    {"involvedObject", &api_schema_object_reference, "The object that the event is about"},
    API_ROOT_KIND,
    {"lastTimestamp", &api_schema_time, "When the event was last recorded"},
    {"message", &api_schema_string, "What happened, for people"},
    API_ROOT_METADATA,
    {"reason", &api_schema_string, "Why, for programs, in CamelCase"},
    {"related", &api_schema_object_reference, "Another object that the event is about"},
    {"reportingComponent", &api_schema_string, "Name of the controller that reports"},
    {"reportingInstance", &api_schema_string, "Instance of that controller"},
    {"series", &event_series, "How often the event was seen again"},
    {"source", &api_schema_event_source, "Who reported the event"},
    {"type", &api_schema_string, "Normal or Warning"},
};
static const struct api_schema root = API_OBJECT_OF(
    root_fields, CORE "Event", "Event is a report of an event somewhere in the cluster.");

static const struct api_column columns[] = {
    {"Last Seen", "string", "", "Time this event was last observed", 0, cell_last_seen},
    {"Type", "string", "", "Type of this event (Normal, Warning)", 0, cell_type},
    {"Reason", "string", "", "Short, machine understandable reason", 0, cell_reason},
    {"Object", "string", "", "The object that this event is about.", 0, cell_object},
    {"Subobject", "string", "", "Part of the object that it is about", 1, cell_subobject},
    {"Source", "string", "", "Who reported this event", 1, cell_source},
    {"Message", "string", "", "Description of what happened", 0, cell_message},
    {"First Seen", "string", "", "Time this event was first observed", 1, cell_first_seen},
    {"Count", "string", "", "How often it was observed", 1, cell_count},
    {"Name", "string", "name", "Name must be unique within a namespace.", 1, api_cell_name},
};
static const char *const short_names[] = {"ev", NULL};
static const struct api_field_label selectable[] = {
    {"involvedObject.kind"},
    {"involvedObject.namespace"},
    {"involvedObject.name"},
    {"involvedObject.uid"},
    {"involvedObject.apiVersion"},
    {"involvedObject.resourceVersion"},
    {"involvedObject.fieldPath"},
    {"reason"},
    {"reportingComponent"},
    {"source", "source.component"},
    {"type"},
    {0},
};

const struct api_kind api_kind_event = {
    .group = "",
    .version = "v1",
    .kind = "Event",
    .plural = "events",
    .singular = "event",
    .short_names = short_names,
    .namespaced = true,
    .create_on_update = true,
    .ttl_s = API_EVENT_TTL_S,
    .description = "Event is a report of an event somewhere in the cluster.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .selectable = selectable,
    .schema = &root,
};
