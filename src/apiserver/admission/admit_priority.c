/* SPDX-License-Identifier: Apache-2.0 */
/* Priority: the number behind the name of a pod's PriorityClass, as in Kubernetes.
 *
 * The classes of the system's own pods exist without an object.  SecurityContextConstraint decides
 * who may use them, because their pods displace those of all users. */
#include "apiserver/admission/plugins.h"

#include "apiserver/request/server_priv.h"

#define PREEMPTS "PreemptLowerPriority"

static const struct {
    const char *name;
    int64_t value;
} system_classes[] = {
    {"system-cluster-critical", 2000000000},
    {"system-node-critical", 2000001000},
};

/* The class of a pod. */
struct class
{
    struct json *obj; /* NULL: it has no object. */
    const char *name; /* NULL: there is none. */
    const char *policy;
    int64_t value;
};

static void class_donep(struct class *class)
{
    json_free(class->obj);
}

static void class_set(struct class *class, struct json *obj)
{
    const char *policy = json_path_string(obj, "preemptionPolicy", NULL);
    json_free(class->obj);
    *class = (struct class){.obj = obj,
                            .name = json_path_string(obj, "metadata", "name", NULL),
                            .policy = policy && *policy ? policy : PREEMPTS,
                            .value = json_get_int_or(json_get(obj, "value"), 0)};
}

static struct cache_kind *classes(const struct request *q)
{
    return cache_find(&q->server->cache,
                      api_kind_find("scheduling.k8s.io", "v1", "priorityclasses"));
}

/* The class with globalDefault; of several, which two servers may have accepted at once, that with
 * the lowest value. */
static void find_default(const struct request *q, struct class *ret)
{
    const struct cache_kind *ck = classes(q);
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        const struct json *obj = parsed_get(&q->server->parsed, o);
        if (json_get_bool(json_get(obj, "globalDefault"), false) &&
            (!ret->name || json_get_int_or(json_get(obj, "value"), 0) < ret->value)) {
            class_set(ret, json_clone(obj));
        }
    }
}

static bool is_system_class(const char *name, struct class *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(system_classes); i++) {
        if (streq(system_classes[i].name, name)) {
            *ret = (struct class){.name = system_classes[i].name,
                                  .policy = PREEMPTS,
                                  .value = system_classes[i].value};
            return true;
        }
    }
    return false;
}

/* -EACCES: there is no such class, and the outcome is filled. */
static int find_class(const struct request *q, const struct json *pod, struct class *ret,
                      struct outcome *outcome)
{
    const char *name = json_path_string(pod, "spec", "priorityClassName", NULL);
    if (!name || !*name) {
        find_default(q, ret);
        return 0;
    }
    if (is_system_class(name, ret)) {
        return 0;
    }
    const struct object *o = keyset_get(&classes(q)->objects, name);
    if (!o) {
        CLEANUP_FREE char *why = xasprintf("no PriorityClass with name %.253s was found", name);
        return admission_refuse(q, pod, why, outcome);
    }
    class_set(ret, object_parse(o));
    return 0;
}

static bool lacks(const struct json *spec, const char *key)
{
    const struct json *v = json_get(spec, key);
    return !v || json_is(v, JSON_NULL);
}

/* A client that does not know the fields leaves them out of an update. */
static int keep(struct json *spec, const struct json *before)
{
    static const char *const fields[] = {"priority", "preemptionPolicy"};
    int changed = 0;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const struct json *v = json_get(before, fields[i]);
        if (v && lacks(spec, fields[i])) {
            json_set(spec, fields[i], json_clone(v));
            changed = 1;
        }
    }
    return changed;
}

/* Puts the class's values into a new pod, which may name only the same ones. */
static int resolve(const struct request *q, struct json *pod, const struct class *class,
                   struct outcome *outcome)
{
    struct json *spec = json_get(pod, "spec");
    const char *policy = json_path_string(spec, "preemptionPolicy", NULL);
    const char *want = class->name ? class->policy : PREEMPTS;
    int64_t value = class->name ? class->value : 0;
    int64_t given = json_get_int_or(json_get(spec, "priority"), value);
    if (given != value) {
        CLEANUP_FREE char *why =
            xasprintf("the integer value of priority (%lld) must not be provided in pod spec; "
                      "priority admission controller computed %lld from the given PriorityClass "
                      "name",
                      (long long) given, (long long) value);
        return admission_refuse(q, pod, why, outcome);
    }
    if (policy && *policy && !streq(policy, want)) {
        CLEANUP_FREE char *why =
            xasprintf("the string value of PreemptionPolicy (%.80s) must not be provided in pod "
                      "spec; priority admission controller computed %s from the given "
                      "PriorityClass name",
                      policy, want);
        return admission_refuse(q, pod, why, outcome);
    }
    json_set_string(spec, "priorityClassName", class->name);
    json_set_int(spec, "priority", value);
    json_set_string(spec, "preemptionPolicy", want);
    return 1;
}

int priority_admit(struct request *q, struct json *obj, const struct json *old,
                   struct outcome *outcome)
{
    CLEANUP(class_done) struct class class = {0};
    struct json *spec = json_get(obj, "spec");
    if (*q->kind->group || *q->subresource || !json_is(spec, JSON_OBJECT)) {
        return 0;
    }
    if (old) {
        return keep(spec, json_get(old, "spec"));
    }
    int r = find_class(q, obj, &class, outcome);
    return r < 0 ? r : resolve(q, obj, &class, outcome);
}

/* There is one default class at most. */
int priority_validate(struct request *q, const struct json *obj, const struct json *old,
                      struct outcome *outcome)
{
    CLEANUP(class_done) struct class class = {0};
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    if (!*q->kind->group || !json_get_bool(json_get(obj, "globalDefault"), false)) {
        return 0;
    }
    find_default(q, &class);
    if (!class.name || (old && streq_null(name, class.name))) {
        return 0;
    }
    CLEANUP_FREE char *why = xasprintf(
        "PriorityClass %s is already marked as default. Only one default can exist", class.name);
    return admission_refuse(q, obj, why, outcome);
}
