/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/pods.h"

#include "api/condition.h"
#include "api/label_selector.h"
#include "api/obj.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#define DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

/* ---- owners ---- */

struct json *workload_owner_ref(const struct workload_kind *owner_kind, const struct json *owner)
{
    struct json *ref = json_object();
    json_set_string(ref, "apiVersion", owner_kind->api_version);
    json_set_string(ref, "kind", owner_kind->kind);
    json_set_string(ref, "name", obj_name(owner));
    json_set_string(ref, "uid", obj_uid(owner));
    json_set_bool(ref, "controller", true);
    json_set_bool(ref, "blockOwnerDeletion", true);
    return ref;
}

/* A patch of the child's ownerReferences that applies to this very object only. */
static void patch_owners(struct workload_plan *p, enum workload_stage stage,
                         const struct workload_kind *kind, const struct json *child,
                         struct json *ref)
{
    struct json *patch = json_object(), *meta = json_ensure_object(patch, "metadata");
    json_set_string(meta, "uid", obj_uid(child));
    json_append(json_ensure_array(meta, "ownerReferences"), ref);
    (void) workload_plan_add(p, stage, WORKLOAD_PATCH, kind, obj_name(child), patch);
}

static void release(struct workload_plan *p, const struct workload_kind *kind,
                    const struct json *owner, const struct json *child)
{
    struct json *ref = json_object();
    json_set_string(ref, "$patch", "delete");
    json_set_string(ref, "uid", obj_uid(owner));
    patch_owners(p, WORKLOAD_FIRST, kind, child, ref);
}

size_t workload_claim(struct workload_plan *p, const struct workload_kind *owner_kind,
                      const struct json *owner, const struct json *selector,
                      const struct workload_kind *kind, struct workload_child *list, size_t n)
{
    bool ends = obj_is_terminating(owner);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const struct json *child = list[i].obj, *ref = obj_controller(child);
        bool fits = !selector ||
                    label_selector_matches(selector, json_path(child, "metadata", "labels", NULL));
        if (!streq(obj_namespace(child), obj_namespace(owner)) ||
            (ref && !streq(json_get_text(ref, "uid"), obj_uid(owner)))) {
            continue;
        }
        if (ref && !fits) {
            if (!ends) {
                release(p, kind, owner, child);
            }
            continue;
        }
        if (!ref) {
            if (!selector || !fits || ends || list[i].going) {
                continue;
            }
            patch_owners(p, WORKLOAD_ADOPT, kind, child, workload_owner_ref(owner_kind, owner));
        }
        list[kept++] = list[i];
    }
    return kept;
}

/* ---- the state of a pod ---- */

bool workload_pod_has_phase(const struct json *pod, const char *phase)
{
    return streq(json_get_text(json_get(pod, "status"), "phase"), phase);
}

bool workload_pod_is_active(const struct workload_child *pod)
{
    return !pod->going && !workload_pod_has_phase(pod->obj, "Succeeded") &&
           !workload_pod_has_phase(pod->obj, "Failed");
}

bool workload_pod_is_ready(const struct json *pod)
{
    return condition_is_true(pod, "Ready");
}

/* Since when the pod has been ready; 0: unknown. */
static int64_t ready_since(const struct json *pod)
{
    int64_t ms;
    const char *s = json_get_text(condition_find(pod, "Ready"), "lastTransitionTime");
    return time_parse(s, &ms) == 0 ? ms : 0;
}

bool workload_pod_is_available(const struct json *pod, int64_t min_ready_s, int64_t now_ms,
                               int64_t *ret_at_ms)
{
    int64_t since = ready_since(pod), at = since + min_ready_s * 1000;
    if (!workload_pod_is_ready(pod)) {
        return false;
    }
    if (min_ready_s <= 0 || (since && at <= now_ms)) {
        return true;
    }
    if (ret_at_ms && since) {
        *ret_at_ms = at;
    }
    return false;
}

static int64_t most_restarts(const struct json *statuses)
{
    const struct json *s;
    int64_t most = 0;
    JSON_FOREACH (s, statuses) {
        most = MAX(most, json_get_int_or(json_get(s, "restartCount"), 0));
    }
    return most;
}

int64_t workload_pod_restarts(const struct json *pod)
{
    return most_restarts(json_path(pod, "status", "containerStatuses", NULL));
}

const char *workload_pod_node(const struct json *pod)
{
    return json_get_text(json_get(pod, "spec"), "nodeName");
}

/* ---- victims ---- */

struct victim {
    struct workload_child pod;
    size_t phase, related;
    bool ready;
    int64_t cost, ready_ms, restarts, created_ms, now_ms;
};

static size_t phase_rank(const struct json *pod)
{
    return workload_pod_has_phase(pod, "Running")   ? 2
           : workload_pod_has_phase(pod, "Unknown") ? 1
                                                    : 0;
}

/* The binary logarithm of an age in nanoseconds; -1: no age. */
static int log_of_age(int64_t since_ms, int64_t now_ms)
{
    int64_t age = now_ms - since_ms;
    if (age <= 0) {
        return -1;
    }
    age = age > INT64_MAX / NS_PER_MS ? INT64_MAX : age * NS_PER_MS;
    return 63 - __builtin_clzll((unsigned long long) age);
}

/* The younger one first, where ages of one power of two are equal: then the uid decides, so that
 * pods that were made together do not all end together. */
static int compare_ages(const struct victim *a, const struct victim *b, int64_t a_ms, int64_t b_ms)
{
    if (a_ms == b_ms) {
        return 0;
    }
    if (!a_ms || !b_ms) {
        return !a_ms ? -1 : 1;
    }
    int diff = log_of_age(a_ms, a->now_ms) - log_of_age(b_ms, b->now_ms);
    return diff ? diff : strcmp(obj_uid(a->pod.obj), obj_uid(b->pod.obj));
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_victims(const void *x, const void *y)
{
    const struct victim *a = x, *b = y;
    bool a_placed = *workload_pod_node(a->pod.obj), b_placed = *workload_pod_node(b->pod.obj);
    int r = compare_numbers(a_placed, b_placed);
    r = r ? r : compare_numbers((int64_t) a->phase, (int64_t) b->phase);
    r = r ? r : compare_numbers(a->ready, b->ready);
    r = r ? r : compare_numbers(a->cost, b->cost);
    r = r ? r : compare_numbers((int64_t) b->related, (int64_t) a->related);
    if (!r && a->ready && b->ready) {
        r = compare_ages(a, b, a->ready_ms, b->ready_ms);
    }
    r = r ? r : compare_numbers(b->restarts, a->restarts);
    return r ? r : compare_ages(a, b, a->created_ms, b->created_ms);
}

static int64_t deletion_cost(const struct json *pod)
{
    int64_t cost;
    const char *s = obj_annotation(pod, DELETION_COST);
    return s && str_to_i64(s, INT32_MIN, INT32_MAX, &cost) == 0 ? cost : 0;
}

void workload_pod_sort_victims(struct workload_child *pods, size_t n,
                               const struct json *const *related, size_t n_related, int64_t now_ms)
{
    struct victim *list = xcalloc(n + 1, sizeof *list);
    struct smap nodes; /* Name to the number of related pods. */
    smap_init(&nodes, NULL);
    for (size_t i = 0; i < n_related; i++) {
        const char *node = workload_pod_node(related[i]);
        if (*node) {
            smap_set(&nodes, node, (char *) smap_get(&nodes, node) + 1);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct json *pod = pods[i].obj;
        list[i] = (struct victim){.pod = pods[i],
                                  .phase = phase_rank(pod),
                                  .related = (size_t) smap_get(&nodes, workload_pod_node(pod)),
                                  .ready = workload_pod_is_ready(pod),
                                  .cost = deletion_cost(pod),
                                  .ready_ms = ready_since(pod),
                                  .restarts = workload_pod_restarts(pod),
                                  .created_ms = obj_created_ms(pod),
                                  .now_ms = now_ms};
    }
    qsort(list, n, sizeof *list, compare_victims);
    for (size_t i = 0; i < n; i++) {
        pods[i] = list[i].pod;
    }
    smap_done(&nodes);
    free(list);
}

/* ---- new pods ---- */

struct json *workload_pod_from_template(const struct workload_kind *owner_kind,
                                        const struct json *owner, const struct json *template,
                                        const char *name)
{
    static const char *const copied[] = {"labels", "annotations", "finalizers"};
    struct json *pod = json_object(), *meta = json_ensure_object(pod, "metadata");
    json_set_string(pod, "apiVersion", workload_pods.api_version);
    json_set_string(pod, "kind", workload_pods.kind);
    json_set_string(meta, "namespace", obj_namespace(owner));
    if (name) {
        json_set_string(meta, "name", name);
    } else {
        CLEANUP_FREE char *prefix = xasprintf("%s-", obj_name(owner));
        json_set_string(meta, "generateName", prefix);
    }
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++) {
        const struct json *v = json_path(template, "metadata", copied[i], NULL);
        if (v) {
            json_set(meta, copied[i], json_clone(v));
        }
    }
    json_append(json_ensure_array(meta, "ownerReferences"), workload_owner_ref(owner_kind, owner));
    const struct json *spec = json_get(template, "spec");
    json_set(pod, "spec", spec ? json_clone(spec) : json_object());
    return pod;
}

bool workload_pod_is_fully_labeled(const struct json *pod, const struct json *template)
{
    const struct json *want = json_path(template, "metadata", "labels", NULL);
    const struct json *has = json_path(pod, "metadata", "labels", NULL);
    for (size_t i = 0; i < json_count(want); i++) {
        const struct json *v = json_get(has, json_key_at(want, i));
        if (!v || !json_equal(v, json_at(want, i))) {
            return false;
        }
    }
    return true;
}
