/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/daemon_sets.h"

#include "api/node_match.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/workloads/keeper.h"
#include "workload/daemon.h"

struct daemon_sets {
    struct keeper keeper; /* The children are pods, and ControllerRevisions. */
    struct informer *nodes, *namespaces;
    struct json *default_selector; /* Of projects without one of their own; NULL: none. */
    struct smap failures;          /* uid of a DaemonSet to its 'struct daemon_failures'. */
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

/* The node selector of a namespace's pods, which the API server writes into each; owned.  NULL:
 * there is none, or it cannot be read, and the API server refuses all pods. */
static struct json *project_selector(const struct daemon_sets *c, const char *ns)
{
    const char *text = json_path_string(informer_get(c->namespaces, ns), "metadata", "annotations",
                                        MATCH_PROJECT_NODES, NULL);
    struct json *selector = NULL;
    if (!text) {
        return c->default_selector ? json_clone(c->default_selector) : NULL;
    }
    return match_parse_node_labels(text, &selector, NULL) < 0 ? NULL : selector;
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
    CLEANUP(json_free) struct json *selector = project_selector(c, obj_namespace(set));
    struct daemon_objects objects = {.pods = pods.list,
                                     .n_pods = pods.n,
                                     .revisions = revisions.list,
                                     .n_revisions = revisions.n,
                                     .nodes = nodes.list,
                                     .n_nodes = nodes.n,
                                     .selector = selector,
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

static const char *selector_text(const struct json *ns)
{
    return json_path_string(ns, "metadata", "annotations", MATCH_PROJECT_NODES, NULL);
}

struct of_namespace {
    struct daemon_sets *c;
    const char *ns;
};

static void add_set_of(void *ctx, const char *key, const struct json *set)
{
    const struct of_namespace *n = ctx;
    if (streq(obj_namespace(set), n->ns)) {
        workqueue_add(n->c->keeper.engine.env.queue, key);
    }
}

static void namespace_changed(void *ctx, const char *key, const struct json *old,
                              const struct json *ns)
{
    struct daemon_sets *c = ctx;
    const char *was = old ? selector_text(old) : NULL, *now = selector_text(ns);
    if (!old || !was != !now || (was && !streq(was, now))) {
        struct of_namespace n = {c, key};
        informer_each(c->keeper.owners, add_set_of, &n);
    }
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    static const struct workload_kind *const children[KEEPER_CHILDREN] = {&workload_pods,
                                                                          &workload_revisions};
    const char *selector = *(const char *const *) config;
    CLEANUP(json_free) struct json *labels = NULL;
    if (selector && match_parse_node_labels(selector, &labels, e) < 0) {
        return err_prefix(e, "the default node selector");
    }
    struct daemon_sets *c = NEW(struct daemon_sets);
    c->default_selector = TAKE(labels);
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
    json_free(c->default_selector);
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
    KEEPER_QUOTAS,
    {.api_version = "v1",
     .plural = "nodes",
     .informer = CONTROLLER_INFORMER(struct daemon_sets, nodes),
     .changed = node_changed,
     .deleted = node_deleted},
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct daemon_sets, namespaces),
     .changed = namespace_changed},
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
