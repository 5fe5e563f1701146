/* SPDX-License-Identifier: Apache-2.0 */
/* RuntimeClass: a new pod gets what its class says of overhead, node selector and tolerations, as
 * in Kubernetes, so that the scheduler and the nodes count and place it by its own object. */
#include "api/quantity.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/request/server_priv.h"

static int reject(struct request *q, const struct json *pod, const char *why,
                  struct outcome *outcome)
{
    CLEANUP_FREE char *text = xasprintf("pod rejected: %s", why);
    return admission_refuse(q, pod, text, outcome);
}

static bool same_amounts(const struct json *a, const struct json *b)
{
    bool same = json_count(a) == json_count(b);
    for (size_t i = 0; i < json_count(a) && same; i++) {
        const char *x = json_get_string(json_at(a, i));
        const char *y = json_get_string(json_get(b, json_key_at(a, i)));
        same = x && y && api_quantity_compare(x, y) == 0;
    }
    return same;
}

static int set_overhead(struct request *q, struct json *pod, const struct json *class,
                        struct outcome *outcome)
{
    struct json *spec = json_get(pod, "spec");
    const struct json *own = json_get(spec, "overhead");
    const struct json *fixed = json_path(class, "overhead", "podFixed", NULL);
    bool given = json_count(own) > 0;
    if (given && !json_count(fixed)) {
        return reject(q, pod,
                      "Pod Overhead set without corresponding RuntimeClass defined Overhead",
                      outcome);
    }
    if (given && !same_amounts(own, fixed)) {
        return reject(q, pod, "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
                      outcome);
    }
    if (!given && json_count(fixed)) {
        json_set(spec, "overhead", json_clone(fixed));
        return 1;
    }
    return 0;
}

static int add_selector(struct request *q, struct json *pod, const struct json *wanted,
                        struct outcome *outcome)
{
    struct json *own =
        json_count(wanted) ? json_ensure_object(json_get(pod, "spec"), "nodeSelector") : NULL;
    for (size_t i = 0; i < json_count(wanted); i++) {
        const char *key = json_key_at(wanted, i), *value = json_get_text(wanted, key);
        const char *has = json_get_string(json_get(own, key));
        if (has && !streq(has, value)) {
            CLEANUP_FREE char *why =
                xasprintf("conflict: runtimeClass.scheduling.nodeSelector[%.80s] = %.80s; "
                          "pod.spec.nodeSelector[%.80s] = %.80s",
                          key, value, key, has);
            return admission_refuse(q, pod, why, outcome);
        }
        json_set_string(own, key, value);
    }
    return own != NULL;
}

static int add_tolerations(struct json *pod, const struct json *wanted)
{
    const struct json *t, *has;
    int changed = 0;
    JSON_FOREACH (t, wanted) {
        struct json *list = json_ensure_array(json_get(pod, "spec"), "tolerations");
        bool found = false;
        JSON_FOREACH (has, list) {
            found = found || json_equal(has, t);
        }
        if (!found) {
            json_append(list, json_clone(t));
            changed = 1;
        }
    }
    return changed;
}

int runtime_class_admit(struct request *q, struct json *obj, const struct json *old,
                        struct outcome *outcome)
{
    CLEANUP(json_free) struct json *class = NULL;
    const char *name = json_path_string(obj, "spec", "runtimeClassName", NULL);
    if (*q->subresource || !json_is(json_get(obj, "spec"), JSON_OBJECT)) {
        return 0;
    }
    if (name && *name) {
        const struct cache_kind *ck =
            cache_find(&q->server->cache, api_kind_find("node.k8s.io", "v1", "runtimeclasses"));
        const struct object *o = keyset_get(&ck->objects, name);
        if (!o) {
            CLEANUP_FREE char *why = xasprintf("RuntimeClass \"%.253s\" not found", name);
            return reject(q, obj, why, outcome);
        }
        class = object_parse(o);
    }
    const struct json *scheduling = json_get(class, "scheduling");
    int r = set_overhead(q, obj, class, outcome);
    int s = r < 0 ? r : add_selector(q, obj, json_get(scheduling, "nodeSelector"), outcome);
    return s < 0 ? s : (add_tolerations(obj, json_get(scheduling, "tolerations")) || r || s);
}
