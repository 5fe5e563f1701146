/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/deployment_configs.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/deployment_config.h"

struct configs {
    struct keeper keeper; /* The children are ReplicationControllers. */
};

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct configs *c = ctx;
    const struct json *config = keeper_begin(&c->keeper, w, key);
    struct owned_list sets = {0};
    if (!config) {
        return;
    }
    keeper_find(&c->keeper, 0, config, &sets);
    CLEANUP_PLAN struct workload_plan plan = {0};
    deployment_config_plan(config, sets.list, sets.n, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, config, &plan);
    free(sets.list);
}

static struct json *selector(const struct keeper *k, const struct json *config)
{
    return deployment_config_selector(config);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {
        &workload_replication_controllers};
    struct configs *c = NEW(struct configs);
    keeper_init(&c->keeper, env, &workload_deployment_configs, children);
    c->keeper.selector = selector;
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct configs *c = state;
    keeper_done(&c->keeper);
    free(c);
}

static const struct controller_watch watches[] = {
    KEEPER_OWNERS(struct configs, "apps.openshift.io/v1", "deploymentconfigs"),
    KEEPER_FIRST(struct configs, "v1", "replicationcontrollers"),
    KEEPER_QUOTAS,
};

const struct controller deployment_configs_controller = {
    .name = "deployment_configs",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .account = "deploymentconfig-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
