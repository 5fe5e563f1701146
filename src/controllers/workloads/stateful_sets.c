/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/stateful_sets.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/stateful.h"

struct stateful_sets {
    struct keeper keeper; /* The children are pods, and ControllerRevisions. */
    struct informer *claims;
};

/* The claims of one namespace. */
struct claims {
    const struct stateful_sets *c;
    const char *ns;
};

static const struct json *find_claim(void *ctx, const char *name)
{
    const struct claims *claims = ctx;
    CLEANUP_FREE char *key = xasprintf("%s/%s", claims->ns, name);
    return informer_get(claims->c->claims, key);
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct stateful_sets *c = ctx;
    const struct json *set = keeper_begin(&c->keeper, w, key);
    struct owned_list pods = {0}, revisions = {0};
    if (!set) {
        return;
    }
    struct claims claims = {c, obj_namespace(set)};
    keeper_find(&c->keeper, 0, set, &pods);
    keeper_find(&c->keeper, 1, set, &revisions);
    struct stateful_objects objects = {.pods = pods.list,
                                       .n_pods = pods.n,
                                       .revisions = revisions.list,
                                       .n_revisions = revisions.n,
                                       .claim = find_claim,
                                       .ctx = &claims};
    CLEANUP_PLAN struct workload_plan plan = {0};
    stateful_plan(set, &objects, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, set, &plan);
    free(pods.list);
    free(revisions.list);
}

/* ---- claims: their changes add no set, which looks at them when its pods change ---- */

static void claim_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *claim)
{
    (void) ctx;
}

static void claim_deleted(void *ctx, const char *key, const struct json *claim)
{
    (void) ctx;
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_pods,
                                                                          &workload_revisions};
    struct stateful_sets *c = NEW(struct stateful_sets);
    keeper_init(&c->keeper, env, &workload_stateful_sets, children);
    engine_watch(&c->keeper.engine, &workload_claims, &c->claims);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct stateful_sets *c = state;
    keeper_done(&c->keeper);
    free(c);
}

static const struct controller_watch watches[] = {
    KEEPER_OWNERS(struct stateful_sets, "apps/v1", "statefulsets"),
    KEEPER_FIRST(struct stateful_sets, "v1", "pods"),
    KEEPER_SECOND(struct stateful_sets, "apps/v1", "controllerrevisions"),
    KEEPER_QUOTAS,
    {.api_version = "v1",
     .plural = "persistentvolumeclaims",
     .informer = CONTROLLER_INFORMER(struct stateful_sets, claims),
     .changed = claim_changed,
     .deleted = claim_deleted},
};

const struct controller stateful_sets_controller = {
    .name = "stateful_sets",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .account = "statefulset-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
