/* SPDX-License-Identifier: Apache-2.0 */
#include "api/condition.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

struct json *condition_find(const struct json *obj, const char *type)
{
    struct json *c;
    JSON_FOREACH (c, json_path(obj, "status", "conditions", NULL)) {
        if (streq_null(json_path_string(c, "type", NULL), type)) {
            return c;
        }
    }
    return NULL;
}

bool condition_is_true(const struct json *obj, const char *type)
{
    return streq_null(json_path_string(condition_find(obj, type), "status", NULL), "True");
}

static bool stays(const struct json *condition, const char *member, const char *value)
{
    return !value || streq_null(json_path_string(condition, member, NULL), value);
}

struct json *condition_set(struct json *obj, const char *type, const char *status,
                           const char *reason, const char *message, int64_t now_ms)
{
    struct json *c = condition_find(obj, type);
    bool turned = !c || !streq_null(json_path_string(c, "status", NULL), status);
    if (!turned && stays(c, "reason", reason) && stays(c, "message", message)) {
        return NULL;
    }
    if (!c) {
        c = json_append(json_ensure_array(json_ensure_object(obj, "status"), "conditions"),
                        json_object());
        json_set_string(c, "type", type);
    }
    json_set_string(c, "status", status);
    if (turned) {
        char now[TIME_TEXT_SIZE];
        time_format_s(now_ms, now);
        json_set_string(c, "lastTransitionTime", now);
    }
    json_set_string(c, "reason", reason);
    json_set_string(c, "message", message);
    return c;
}

void condition_renew(struct json *obj, const char *type, const char *status, const char *reason,
                     const char *message, bool again, int64_t now_ms)
{
    struct json *c = condition_find(obj, type);
    char now[TIME_TEXT_SIZE];
    bool same = c && streq(json_get_text(c, "status"), status);
    if (same && streq(json_get_text(c, "reason"), reason) && !again) {
        return;
    }
    time_format_s(now_ms, now);
    CLEANUP_FREE char *since = xstrdup(same ? json_get_text(c, "lastTransitionTime") : now);
    condition_remove(obj, type);
    c = json_append(json_ensure_array(json_ensure_object(obj, "status"), "conditions"),
                    json_object());
    json_set_string(c, "type", type);
    json_set_string(c, "status", status);
    json_set_string(c, "lastUpdateTime", now);
    json_set_string(c, "lastTransitionTime", *since ? since : now);
    json_set_string(c, "reason", reason);
    json_set_string(c, "message", message);
}

void condition_remove(struct json *obj, const char *type)
{
    struct json *list = json_path(obj, "status", "conditions", NULL);
    for (size_t i = json_count(list); i-- > 0;) {
        if (streq_null(json_path_string(json_at(list, i), "type", NULL), type)) {
            (void) json_remove_at(list, i);
        }
    }
    if (list && !json_count(list)) {
        (void) json_remove(json_get(obj, "status"), "conditions");
    }
}
