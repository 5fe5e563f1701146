/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/daemon_sets.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/daemon.h"

struct daemon_sets {
    struct keeper keeper; /* The children are pods, and ControllerRevisions. */
    struct informer *nodes;
    struct smap failures; /* uid of a DaemonSet to its 'struct daemon_failures'. */
};

/* ---- one DaemonSet ---- */

static struct daemon_failures *failures_of(struct daemon_sets *c, const struct json *set)
{
    struct daemon_failures *f = smap_get(&c->failures, obj_uid(set));
    if (!f) {
        f = NEW(struct daemon_failures);
        daemon_failures_init(f);
        smap_set(&c->failures, obj_uid(set), f);
    }
    return f;
}

static void free_failures(void *p)
{
    daemon_failures_done(p);
    free(p);
}

struct nodes {
    const struct json **list;
    size_t n;
};

static void add_node(void *ctx, const char *key, const struct json *node)
{
    struct nodes *nodes = ctx;
    nodes->list[nodes->n++] = node;
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct daemon_sets *c = ctx;
    const struct json *set = keeper_begin(&c->keeper, w, key);
    struct owned_list pods = {0}, revisions = {0};
    struct nodes nodes = {0};
    if (!set) {
        return;
    }
    keeper_find(&c->keeper, 0, set, &pods);
    keeper_find(&c->keeper, 1, set, &revisions);
    nodes.list = xcalloc(informer_count(c->nodes) + 1, sizeof(*nodes.list));
    informer_each(c->nodes, add_node, &nodes);
    struct daemon_objects objects = {.pods = pods.list,
                                     .n_pods = pods.n,
                                     .revisions = revisions.list,
                                     .n_revisions = revisions.n,
                                     .nodes = nodes.list,
                                     .n_nodes = nodes.n,
                                     .failures = failures_of(c, set)};
    CLEANUP_PLAN struct workload_plan plan = {0};
    daemon_plan(set, &objects, time_wall_ms(), &plan);
    engine_run(&c->keeper.engine, w, set, &plan);
    free(pods.list);
    free(revisions.list);
    free((void *) nodes.list);
}

/* ---- events ---- */

static void set_deleted(void *ctx, const char *key, const struct json *set)
{
    struct daemon_sets *c = ctx;
    (void) smap_remove(&c->failures, obj_uid(set));
    keeper_owner_deleted(ctx, key, set);
}

static void add_set(void *ctx, const char *key, const struct json *set)
{
    struct daemon_sets *c = ctx;
    workqueue_add(c->keeper.engine.env.queue, key);
}

static void node_changed(void *ctx, const char *key, const struct json *old,
                         const struct json *node)
{
    struct daemon_sets *c = ctx;
    if (!old || daemon_node_differs(old, node)) {
        informer_each(c->keeper.owners, add_set, c);
    }
}

static void node_deleted(void *ctx, const char *key, const struct json *node)
{
    struct daemon_sets *c = ctx;
    informer_each(c->keeper.owners, add_set, c);
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_pods,
                                                                          &workload_revisions};
    struct daemon_sets *c = NEW(struct daemon_sets);
    keeper_init(&c->keeper, env, &workload_daemon_sets, children);
    smap_init(&c->failures, free_failures);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct daemon_sets *c = state;
    keeper_done(&c->keeper);
    smap_done(&c->failures);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = "apps/v1",
     .plural = "daemonsets",
     .informer = CONTROLLER_INFORMER(struct daemon_sets, keeper.owners),
     .changed = keeper_owner_changed,
     .deleted = set_deleted},
    KEEPER_FIRST(struct daemon_sets, "v1", "pods"),
    KEEPER_SECOND(struct daemon_sets, "apps/v1", "controllerrevisions"),
    {.api_version = "v1",
     .plural = "nodes",
     .informer = CONTROLLER_INFORMER(struct daemon_sets, nodes),
     .changed = node_changed,
     .deleted = node_deleted},
};

const struct controller daemon_sets_controller = {
    .name = "daemon_sets",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .account = "daemon-set-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
