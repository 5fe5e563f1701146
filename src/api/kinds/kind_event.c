/* SPDX-License-Identifier: Apache-2.0 */
/* Event (core v1): a component's report about an object. */
#include "api/kind_util.h"
#include "api/kinds.h"

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a && *a ? a : b && *b ? b : c;
}

struct json *kind_event_cell_last_seen(const struct json *obj, int64_t now_ms)
{
    const char *series = json_path_string(obj, "series", "lastObservedTime", NULL);
    return api_cell_since(first_of(series, json_path_string(obj, "lastTimestamp", NULL),
                                   first_of(json_path_string(obj, "eventTime", NULL),
                                            json_path_string(obj, "firstTimestamp", NULL), NULL)),
                          now_ms);
}

struct json *kind_event_cell_first_seen(const struct json *obj, int64_t now_ms)
{
    return api_cell_since(first_of(json_path_string(obj, "firstTimestamp", NULL),
                                   json_path_string(obj, "eventTime", NULL), NULL),
                          now_ms);
}

struct json *kind_event_cell_object(const struct json *obj, int64_t now_ms)
{
    return api_cell_reference(json_get(obj, "involvedObject"));
}

struct json *kind_event_cell_source(const struct json *obj, int64_t now_ms)
{
    const char *component = first_of(json_path_string(obj, "source", "component", NULL),
                                     json_path_string(obj, "reportingComponent", NULL), "");
    const char *host = json_path_string(obj, "source", "host", NULL);
    return json_stringf("%s%s%s", component, host && *host ? ", " : "", host ? host : "");
}

struct json *kind_event_cell_message(const struct json *obj, int64_t now_ms)
{
    const char *s = json_path_string(obj, "message", NULL);
    size_t n = s ? strlen(s) : 0;
    while (n && strchr(" \t\r\n", s[n - 1])) {
        n--;
    }
    return json_string_n(s ? s : "", n);
}

struct json *kind_event_cell_count(const struct json *obj, int64_t now_ms)
{
    return json_int(json_get_int_or(json_path(obj, "series", "count", NULL),
                                    json_get_int_or(json_get(obj, "count"), 1)));
}

void kind_event_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *ns = json_path(obj, "involvedObject", "namespace", NULL);
    const char *own = json_path_string(obj, "metadata", "namespace", NULL);
    /* Events about cluster-scoped objects have no namespace of their own. */
    bool fits = json_string_size(ns) ? streq_null(own, json_get_string(ns))
                                     : streq_null(own, "default") || streq_null(own, "kube-system");
    if (own && !fits) {
        api_invalid(c, "involvedObject.namespace", ns, "does not match event.namespace");
    }
}
