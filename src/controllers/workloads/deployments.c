/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/deployments.h"

#include "api/label_selector.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/engine.h"
#include "workload/deployment.h"

struct deployments {
    struct engine engine;
    struct informer *deployments, *sets, *pods;
    struct owned of_deployment; /* ReplicaSets by Deployment. */
    struct owned of_namespace;  /* Deployments by namespace. */
};

/* ---- one Deployment ---- */

struct pods_of {
    const struct owned_list *sets;
    const struct json **list;
    size_t n, cap;
};

static void add_pod(void *ctx, const char *key, const struct json *pod)
{
    struct pods_of *p = ctx;
    const struct json *ref = obj_controller(pod);
    const char *uid = ref ? json_get_text(ref, "uid") : "";
    for (size_t i = 0; *uid && i < p->sets->n; i++) {
        if (streq(uid, obj_uid(p->sets->list[i].obj))) {
            p->list = grow((void *) p->list, &p->cap, p->n + 1, sizeof *p->list);
            p->list[p->n++] = pod;
            return;
        }
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct deployments *c = ctx;
    const struct json *d = informer_get(c->deployments, key);
    struct owned_list sets = {0};
    struct pods_of pods = {.sets = &sets};
    if (!engine_is_current(&c->engine, w)) {
        return;
    }
    if (!d) {
        work_done(w);
        return;
    }
    owned_find(&c->of_deployment, c->sets, d, true, &sets);
    engine_mark_leaving(&c->engine, &sets);
    if (deployment_needs_pods(d)) {
        /* All pods are looked at, for want of an index; only while such a rollout goes on. */
        informer_each(c->pods, add_pod, &pods);
    }
    CLEANUP_PLAN struct workload_plan plan = {0};
    deployment_plan(d, sets.list, sets.n, pods.list, pods.n, time_wall_ms(), &plan);
    engine_run(&c->engine, w, d, &plan);
    free(sets.list);
    free((void *) pods.list);
}

/* ---- events ---- */

static void deployment_changed(void *ctx, const char *key, const struct json *old,
                               const struct json *obj)
{
    struct deployments *c = ctx;
    owned_change(&c->of_namespace, key, old, obj);
    workqueue_add(c->engine.env.queue, key);
}

static void deployment_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct deployments *c = ctx;
    owned_change(&c->of_namespace, key, obj, NULL);
    workqueue_add(c->engine.env.queue, key);
}

static void add_adopters(struct deployments *c, const struct json *set)
{
    const struct json *labels = json_path(set, "metadata", "labels", NULL);
    struct owned_list list = {0};
    owned_find_in(&c->of_namespace, c->deployments, obj_namespace(set), &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct json *d = list.list[i].obj, *selector = json_path(d, "spec", "selector", NULL);
        if (selector && label_selector_matches(selector, labels)) {
            CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(d), obj_name(d));
            workqueue_add(c->engine.env.queue, key);
        }
    }
    free(list.list);
}

/* Adds the Deployment of the set, or those that may adopt it. */
static void add_deployments_of(struct deployments *c, const struct json *set)
{
    CLEANUP_FREE char *key = owned_owner_key(&c->of_deployment, set);
    if (key) {
        workqueue_add(c->engine.env.queue, key);
    } else if (!obj_controller(set) && !obj_is_terminating(set)) {
        add_adopters(c, set);
    }
}

static void set_changed(void *ctx, const char *key, const struct json *old, const struct json *set)
{
    struct deployments *c = ctx;
    owned_change(&c->of_deployment, key, old, set);
    if (obj_is_terminating(set)) {
        engine_is_gone(&c->engine, set);
    }
    if (old && obj_controller(old) && !obj_controller(set)) {
        add_deployments_of(c, old);
    }
    add_deployments_of(c, set);
}

static void set_deleted(void *ctx, const char *key, const struct json *set)
{
    struct deployments *c = ctx;
    owned_change(&c->of_deployment, key, set, NULL);
    engine_is_gone(&c->engine, set);
    if (obj_controller(set)) {
        add_deployments_of(c, set);
    }
}

/* The end of a pod of a Deployment that waits for it. */
static void pod_ends(struct deployments *c, const struct json *pod)
{
    const struct json *ref = obj_controller(pod);
    if (!ref || !obj_ref_is(ref, workload_replica_sets.group, workload_replica_sets.kind)) {
        return;
    }
    CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(pod), json_get_text(ref, "name"));
    const struct json *set = informer_get(c->sets, key);
    CLEANUP_FREE char *owner = set ? owned_owner_key(&c->of_deployment, set) : NULL;
    const struct json *d = owner ? informer_get(c->deployments, owner) : NULL;
    if (d && deployment_needs_pods(d)) {
        workqueue_add(c->engine.env.queue, owner);
    }
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    if (workload_pod_has_phase(pod, "Succeeded") || workload_pod_has_phase(pod, "Failed")) {
        pod_ends(ctx, pod);
    }
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    pod_ends(ctx, pod);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct deployments *c = NEW(struct deployments);
    engine_init(&c->engine, env, &workload_deployments);
    engine_watch(&c->engine, &workload_deployments, &c->deployments);
    engine_watch(&c->engine, &workload_replica_sets, &c->sets);
    owned_init(&c->of_deployment, &workload_deployments);
    owned_init(&c->of_namespace, NULL);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct deployments *c = state;
    engine_done(&c->engine);
    owned_done(&c->of_deployment);
    owned_done(&c->of_namespace);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = "apps/v1",
     .plural = "deployments",
     .informer = CONTROLLER_INFORMER(struct deployments, deployments),
     .changed = deployment_changed,
     .deleted = deployment_deleted},
    {.api_version = "apps/v1",
     .plural = "replicasets",
     .informer = CONTROLLER_INFORMER(struct deployments, sets),
     .changed = set_changed,
     .deleted = set_deleted},
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct deployments, pods),
     .changed = pod_changed,
     .deleted = pod_deleted},
};

const struct controller deployments_controller = {
    .name = "deployments",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .account = "deployment-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
