/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/deployments.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/deployment.h"

struct deployments {
    struct keeper keeper; /* The children are ReplicaSets. */
    struct informer *pods;
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
    const struct json *d = keeper_begin(&c->keeper, w, key);
    struct owned_list sets = {0};
    struct pods_of pods = {.sets = &sets};
    if (!d) {
        return;
    }
    keeper_find(&c->keeper, 0, d, &sets);
    if (deployment_needs_pods(d)) {
        /* All pods are looked at, for want of an index; only while such a rollout goes on. */
        informer_each(c->pods, add_pod, &pods);
    }
    CLEANUP_PLAN struct workload_plan plan = {0};
    deployment_plan(d, sets.list, sets.n, pods.list, pods.n, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, d, &plan);
    free(sets.list);
    free((void *) pods.list);
}

/* ---- events ---- */

/* The end of a pod of a Deployment that waits for it. */
static void pod_ends(struct deployments *c, const struct json *pod)
{
    const struct json *ref = obj_controller(pod);
    if (!ref || !obj_ref_is(ref, workload_replica_sets.group, workload_replica_sets.kind)) {
        return;
    }
    CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(pod), json_get_text(ref, "name"));
    const struct json *set = informer_get(c->keeper.children[0], key);
    CLEANUP_FREE char *owner = set ? owned_owner_key(&c->keeper.of_owner[0], set) : NULL;
    const struct json *d = owner ? informer_get(c->keeper.owners, owner) : NULL;
    if (d && deployment_needs_pods(d)) {
        workqueue_add(c->keeper.engine.env.queue, owner);
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
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_replica_sets};
    struct deployments *c = NEW(struct deployments);
    keeper_init(&c->keeper, env, &workload_deployments, children);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct deployments *c = state;
    keeper_done(&c->keeper);
    free(c);
}

static const struct controller_watch watches[] = {
    KEEPER_OWNERS(struct deployments, "apps/v1", "deployments"),
    KEEPER_FIRST(struct deployments, "apps/v1", "replicasets"),
    KEEPER_QUOTAS,
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
