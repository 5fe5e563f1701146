/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/replica_sets.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/replicas.h"

struct replicas {
    struct keeper keeper;
    const struct workload_kind *kind;
    struct owned of_deployment; /* ReplicaSets by Deployment: pods are spread over all of these. */
};

/* ---- one set ---- */

/* Appends the active pods of the set to 'ret'. */
static void add_active(const struct replicas *c, const struct json *set, const struct json ***ret,
                       size_t *n, size_t *cap)
{
    struct owned_list pods = {0};
    owned_find(&c->keeper.of_owner[0], c->keeper.children[0], set, false, &pods);
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
        owned_find(&c->of_deployment, c->keeper.owners, owner, false, &sets);
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
    const struct json *set = keeper_begin(&c->keeper, w, key), **related = NULL;
    struct owned_list pods = {0};
    size_t n_related = 0;
    if (!set) {
        return;
    }
    keeper_find(&c->keeper, 0, set, &pods);
    if ((int64_t) pods.n > json_get_int_or(json_path(set, "spec", "replicas", NULL), 1)) {
        related = related_pods(c, set, &n_related);
    }
    CLEANUP_PLAN struct workload_plan plan = {0};
    replicas_plan(c->kind, set, pods.list, pods.n, related, n_related, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, set, &plan);
    free(pods.list);
    free((void *) related);
}

static void set_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct replicas *c = ctx;
    owned_change(&c->of_deployment, key, old, obj);
    keeper_owner_changed(ctx, key, old, obj);
}

static void set_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct replicas *c = ctx;
    owned_change(&c->of_deployment, key, obj, NULL);
    keeper_owner_deleted(ctx, key, obj);
}

/* ---- start and stop ---- */

static struct json *selector(const struct keeper *k, const struct json *set)
{
    return replicas_selector(k->engine.kind, set);
}

static int start(const struct controller_env *env, const struct workload_kind *kind, void **ret)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_pods};
    struct replicas *c = NEW(struct replicas);
    c->kind = kind;
    keeper_init(&c->keeper, env, kind, children);
    c->keeper.selector = selector;
    owned_init(&c->of_deployment, &workload_deployments);
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
    keeper_done(&c->keeper);
    owned_done(&c->of_deployment);
    free(c);
}

#define SETS(version, name)                                                                      \
    {                                                                                            \
        .api_version = version, .plural = name,                                                  \
        .informer = CONTROLLER_INFORMER(struct replicas, keeper.owners), .changed = set_changed, \
        .deleted = set_deleted                                                                   \
    }
static const struct controller_watch set_watches[] = {
    SETS("apps/v1", "replicasets"),
    KEEPER_FIRST(struct replicas, "v1", "pods"),
    KEEPER_QUOTAS,
};
static const struct controller_watch controller_watches[] = {
    SETS("v1", "replicationcontrollers"),
    KEEPER_FIRST(struct replicas, "v1", "pods"),
    KEEPER_QUOTAS,
};

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
