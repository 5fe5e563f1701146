/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/replica_sets.h"

#include "api/label_selector.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/engine.h"
#include "workload/replicas.h"

struct replicas {
    struct engine engine;
    const struct workload_kind *kind;
    struct informer *sets, *pods;
    struct owned of_set;        /* Pods by set. */
    struct owned of_deployment; /* ReplicaSets by Deployment: pods are spread over all of these. */
    struct owned of_namespace;  /* Sets by namespace. */
};

/* ---- one set ---- */

/* Appends the active pods of the set to 'ret'. */
static void add_active(const struct replicas *c, const struct json *set, const struct json ***ret,
                       size_t *n, size_t *cap)
{
    struct owned_list pods = {0};
    owned_find(&c->of_set, c->pods, set, false, &pods);
    for (size_t i = 0; i < pods.n; i++) {
        const struct json *ref = obj_controller(pods.list[i].obj);
        if (workload_pod_is_active(&pods.list[i]) &&
            streq(json_get_text(ref, "uid"), obj_uid(set))) {
            *ret = grow((void *) *ret, cap, *n + 1, sizeof **ret);
            (*ret)[(*n)++] = pods.list[i].obj;
        }
    }
    free(pods.list);
}

/* The active pods of all sets of the Deployment that controls this one, or of this one; owned. */
static const struct json **related_pods(const struct replicas *c, const struct json *set,
                                        size_t *ret_n)
{
    const struct json *ref = obj_controller(set), **list = NULL;
    size_t cap = 0;
    struct owned_list sets = {0};
    *ret_n = 0;
    if (ref && obj_ref_is(ref, workload_deployments.group, workload_deployments.kind)) {
        CLEANUP(json_free) struct json *owner = json_object();
        json_set_string(json_ensure_object(owner, "metadata"), "uid", json_get_text(ref, "uid"));
        owned_find(&c->of_deployment, c->sets, owner, false, &sets);
    }
    for (size_t i = 0; i < sets.n; i++) {
        add_active(c, sets.list[i].obj, &list, ret_n, &cap);
    }
    if (!sets.n) {
        add_active(c, set, &list, ret_n, &cap);
    }
    free(sets.list);
    return list;
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct replicas *c = ctx;
    const struct json *set = informer_get(c->sets, key), **related = NULL;
    struct owned_list pods = {0};
    size_t n_related = 0;
    if (!engine_is_current(&c->engine, w)) {
        return;
    }
    if (!set) {
        work_done(w);
        return;
    }
    owned_find(&c->of_set, c->pods, set, true, &pods);
    engine_mark_leaving(&c->engine, &pods);
    if ((int64_t) pods.n > json_get_int_or(json_path(set, "spec", "replicas", NULL), 1)) {
        related = related_pods(c, set, &n_related);
    }
    CLEANUP_PLAN struct workload_plan plan = {0};
    replicas_plan(c->kind, set, pods.list, pods.n, related, n_related, time_wall_ms(), &plan);
    engine_run(&c->engine, w, set, &plan);
    free(pods.list);
    free((void *) related);
}

/* ---- events ---- */

static void set_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct replicas *c = ctx;
    owned_change(&c->of_deployment, key, old, obj);
    owned_change(&c->of_namespace, key, old, obj);
    workqueue_add(c->engine.env.queue, key);
}

static void set_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct replicas *c = ctx;
    owned_change(&c->of_deployment, key, obj, NULL);
    owned_change(&c->of_namespace, key, obj, NULL);
    workqueue_add(c->engine.env.queue, key);
}

/* Adds the sets that may adopt the pod. */
static void add_adopters(struct replicas *c, const struct json *pod)
{
    const struct json *labels = json_path(pod, "metadata", "labels", NULL);
    struct owned_list sets = {0};
    owned_find_in(&c->of_namespace, c->sets, obj_namespace(pod), &sets);
    for (size_t i = 0; i < sets.n; i++) {
        const struct json *set = sets.list[i].obj;
        CLEANUP(json_free) struct json *selector = replicas_selector(c->kind, set);
        if (selector && label_selector_matches(selector, labels)) {
            CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(set), obj_name(set));
            workqueue_add(c->engine.env.queue, key);
        }
    }
    free(sets.list);
}

/* Adds the sets that the pod concerns: its own, or those that may adopt it. */
static void add_sets_of(struct replicas *c, const struct json *pod)
{
    CLEANUP_FREE char *key = owned_owner_key(&c->of_set, pod);
    if (key) {
        workqueue_add(c->engine.env.queue, key);
    } else if (!obj_controller(pod) && !obj_is_terminating(pod)) {
        add_adopters(c, pod);
    }
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct replicas *c = ctx;
    owned_change(&c->of_set, key, old, pod);
    if (obj_is_terminating(pod)) {
        engine_is_gone(&c->engine, pod);
    }
    if (old && obj_controller(old) && !obj_controller(pod)) {
        add_sets_of(c, old);
    }
    add_sets_of(c, pod);
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    struct replicas *c = ctx;
    owned_change(&c->of_set, key, pod, NULL);
    engine_is_gone(&c->engine, pod);
    if (obj_controller(pod)) {
        add_sets_of(c, pod);
    }
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const struct workload_kind *kind, void **ret)
{
    struct replicas *c = NEW(struct replicas);
    c->kind = kind;
    engine_init(&c->engine, env, kind);
    engine_watch(&c->engine, kind, &c->sets);
    engine_watch(&c->engine, &workload_pods, &c->pods);
    owned_init(&c->of_set, kind);
    owned_init(&c->of_deployment, &workload_deployments);
    owned_init(&c->of_namespace, NULL);
    *ret = c;
    return 0;
}

static int start_replica_sets(const struct controller_env *env, const void *config, void **ret,
                              struct err *e)
{
    return start(env, &workload_replica_sets, ret);
}

static int start_replication_controllers(const struct controller_env *env, const void *config,
                                         void **ret, struct err *e)
{
    return start(env, &workload_replication_controllers, ret);
}

static void stop(void *state)
{
    struct replicas *c = state;
    engine_done(&c->engine);
    owned_done(&c->of_set);
    owned_done(&c->of_deployment);
    owned_done(&c->of_namespace);
    free(c);
}

#define WATCHES(version, name)                                                              \
    {                                                                                       \
        {.api_version = version,                                                            \
         .plural = name,                                                                    \
         .informer = CONTROLLER_INFORMER(struct replicas, sets),                            \
         .changed = set_changed,                                                            \
         .deleted = set_deleted},                                                           \
        {                                                                                   \
            .api_version = "v1", .plural = "pods",                                          \
            .informer = CONTROLLER_INFORMER(struct replicas, pods), .changed = pod_changed, \
            .deleted = pod_deleted                                                          \
        }                                                                                   \
    }
static const struct controller_watch set_watches[] = WATCHES("apps/v1", "replicasets");
static const struct controller_watch controller_watches[] = WATCHES("v1", "replicationcontrollers");

const struct controller replica_sets_controller = {
    .name = "replica_sets",
    .watches = set_watches,
    .n_watches = ARRAY_SIZE(set_watches),
    .parallel = 8,
    .account = "replicaset-controller",
    .start = start_replica_sets,
    .reconcile = reconcile,
    .stop = stop,
};

const struct controller replication_controllers_controller = {
    .name = "replication_controllers",
    .watches = controller_watches,
    .n_watches = ARRAY_SIZE(controller_watches),
    .parallel = 8,
    .account = "replication-controller",
    .start = start_replication_controllers,
    .reconcile = reconcile,
    .stop = stop,
};
