/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/rollout_request.h"

#include "base/mem.h"

static const struct json *triggers_of(const struct json *config)
{
    return json_path(config, "spec", "triggers", NULL);
}

static bool is_type(const struct json *trigger, const char *type)
{
    return streq(json_get_text(trigger, "type"), type);
}

/* The settings of a trigger of images; NULL: it is another one. */
static const struct json *image_params(const struct json *trigger)
{
    return is_type(trigger, "ImageChange") ? json_get(trigger, "imageChangeParams") : NULL;
}

static bool is_same_source(const struct json *a, const struct json *b)
{
    const struct json *x = json_get(a, "from"), *y = json_get(b, "from");
    return streq(json_get_text(x, "name"), json_get_text(y, "name")) &&
           streq(json_get_text(x, "namespace"), json_get_text(y, "namespace"));
}

/* The settings of the trigger of the same tag; NULL: there is none. */
static const struct json *find_source(const struct json *config, const struct json *params)
{
    const struct json *t;
    JSON_FOREACH (t, triggers_of(config)) {
        const struct json *other = image_params(t);
        if (other && is_same_source(other, params)) {
            return other;
        }
    }
    return NULL;
}

static bool has_new_trigger(const struct json *config, const struct json *was)
{
    const struct json *t;
    JSON_FOREACH (t, triggers_of(config)) {
        const struct json *params = image_params(t);
        if (params && !find_source(was, params)) {
            return true;
        }
    }
    return false;
}

static bool has_other_image(const struct json *params, const struct json *was)
{
    const struct json *before = find_source(was, params);
    return before && !streq(json_get_text(before, "lastTriggeredImage"),
                            json_get_text(params, "lastTriggeredImage"));
}

static void add_cause(struct json *causes, const char *type, const struct json *params)
{
    struct json *cause = json_append(causes, json_object());
    json_set_string(cause, "type", type);
    if (params) {
        const struct json *from = json_get(params, "from");
        struct json *to = json_ensure_object(json_ensure_object(cause, "imageTrigger"), "from");
        json_set_string(to, "kind", "ImageStreamTag");
        json_set_string(to, "namespace", json_get_text(from, "namespace"));
        json_set_string(to, "name", json_get_text(from, "name"));
    }
}

/* Appends the images that have changed; false: a trigger has no image yet. */
static bool add_images(const struct json *config, const struct json *was, struct json *causes)
{
    const struct json *t;
    bool changed = false;
    JSON_FOREACH (t, triggers_of(config)) {
        const struct json *params = image_params(t);
        if (!params) {
            continue;
        }
        if (!*json_get_text(params, "lastTriggeredImage")) {
            return false;
        }
        if (!json_get_bool(json_get(params, "automatic"), false)) {
            continue;
        }
        changed |= !was || has_new_trigger(config, was) || has_other_image(params, was);
        if (changed) {
            add_cause(causes, "ImageChange", params);
        }
    }
    return true;
}

static bool template_differs(const struct json *config, const struct json *was)
{
    const struct json *now = json_path(config, "spec", "template", NULL);
    const struct json *before = json_path(was, "spec", "template", NULL);
    return !was || !before || !now || !json_equal(now, before);
}

static bool has_change_trigger(const struct json *config)
{
    const struct json *t;
    JSON_FOREACH (t, triggers_of(config)) {
        if (is_type(t, "ConfigChange")) {
            return true;
        }
    }
    return false;
}

static void next_version(struct json *config)
{
    struct json *status = json_ensure_object(config, "status");
    json_set_int(status, "latestVersion",
                 json_get_int_or(json_get(status, "latestVersion"), 0) + 1);
}

enum rollout_answer rollout_instantiate(struct json *config, const struct json *was, bool force)
{
    CLEANUP(json_free) struct json *causes = json_array();
    if (!add_images(config, was, causes)) {
        return ROLLOUT_UNRESOLVED;
    }
    if (force) {
        json_free(causes);
        causes = json_array();
        add_cause(causes, "Manual", NULL);
    } else if (!json_count(causes) && has_change_trigger(config) && template_differs(config, was)) {
        add_cause(causes, "ConfigChange", NULL);
    }
    const struct json *first = json_at(causes, 0);
    if (!first) {
        return ROLLOUT_IS_LATEST;
    }
    struct json *details = json_object();
    json_set_string(details, "message",
                    is_type(first, "Manual")         ? "manual change"
                    : is_type(first, "ConfigChange") ? "config change"
                                                     : "image change");
    json_set(details, "causes", TAKE(causes));
    json_set(json_ensure_object(config, "status"), "details", details);
    next_version(config);
    return ROLLOUT_BEGINS;
}

/* ---- rollback ---- */

static void take(struct json *spec, const struct json *from, const char *key)
{
    const struct json *v = json_get(from, key);
    if (v) {
        json_set(spec, key, json_clone(v));
    } else {
        (void) json_remove(spec, key);
    }
}

static bool is_wanted(const struct json *spec, const char *key)
{
    return json_get_bool(json_get(spec, key), false);
}

void rollout_go_back(struct json *config, const struct json *to, const struct json *spec)
{
    static const struct {
        const char *flag, *key;
    } parts[] = {{"includeTriggers", "triggers"},
                 {"includeTemplate", "template"},
                 {"includeReplicationMeta", "replicas"},
                 {"includeReplicationMeta", "selector"},
                 {"includeStrategy", "strategy"}};
    struct json *own = json_ensure_object(config, "spec"), *t;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (is_wanted(spec, parts[i].flag)) {
            take(own, json_get(to, "spec"), parts[i].key);
        }
    }
    JSON_FOREACH (t, json_get(own, "triggers")) {
        struct json *params = json_get(t, "imageChangeParams");
        if (is_type(t, "ImageChange") && json_is(params, JSON_OBJECT)) {
            json_set_bool(params, "automatic", false);
        }
    }
    next_version(config);
}
