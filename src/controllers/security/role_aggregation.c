/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/role_aggregation.h"

#include "api/label_selector.h"
#include "base/mem.h"
#include "controller/obj.h"

#define VERSION "rbac.authorization.k8s.io/v1"

struct role_aggregation {
    struct workqueue *queue;
    struct informer *roles;
};

/* ---- selection ---- */

static void add_rules(struct json *to, const struct json *rules)
{
    const struct json *rule, *other;
    JSON_FOREACH (rule, rules) {
        bool there = false;
        JSON_FOREACH (other, to) {
            there = there || json_equal(rule, other);
        }
        if (!there) {
            json_append(to, json_clone(rule));
        }
    }
}

struct json *role_aggregation_rules(const struct json *role, const struct json *roles)
{
    const struct json *selectors = json_path(role, "aggregationRule", "clusterRoleSelectors", NULL);
    const struct json *selector, *other;
    struct json *rules = json_array();
    JSON_FOREACH (selector, selectors) {
        JSON_FOREACH (other, roles) {
            if (!streq(obj_name(other), obj_name(role)) &&
                label_selector_matches(selector, json_path(other, "metadata", "labels", NULL))) {
                add_rules(rules, json_get(other, "rules"));
            }
        }
    }
    return rules;
}

/* ---- the controller ---- */

struct collection {
    const struct json **at;
    size_t n, cap;
};

static void collect(void *ctx, const char *key, const struct json *obj)
{
    struct collection *c = ctx;
    c->at = grow(c->at, &c->cap, c->n + 1, sizeof *c->at);
    c->at[c->n++] = obj;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(obj_name(*(const struct json *const *) a),
                  obj_name(*(const struct json *const *) b));
}

/* All roles sorted by name, so that the same roles always give the same rules. */
static struct json *all_roles(const struct role_aggregation *a)
{
    struct collection c = {0};
    struct json *list = json_array();
    informer_each(a->roles, collect, &c);
    if (c.n) {
        qsort(c.at, c.n, sizeof *c.at, by_name);
    }
    for (size_t i = 0; i < c.n; i++) {
        json_append(list, json_clone(c.at[i]));
    }
    free(c.at);
    return list;
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "aggregate a role's rules", text);
    } else {
        work_done(w);
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct role_aggregation *a = ctx;
    const struct json *role = informer_get(a->roles, key);
    if (!json_is(json_get(role, "aggregationRule"), JSON_OBJECT)) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *roles = all_roles(a);
    CLEANUP(json_free) struct json *rules = role_aggregation_rules(role, roles);
    const struct json *has = json_get(role, "rules");
    if ((has && json_equal(has, rules)) || (!json_count(has) && !json_count(rules))) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *o = json_clone(role);
    CLEANUP_FREE char *path = api_path(VERSION, "clusterroles", NULL, key, NULL);
    json_set(o, "rules", TAKE(rules));
    work_request(w, "PUT", path, o, written);
}

static void add_aggregated(void *ctx, const char *key, const struct json *obj)
{
    struct role_aggregation *a = ctx;
    if (json_get(obj, "aggregationRule")) {
        workqueue_add(a->queue, key);
    }
}

/* Queues all aggregated roles, because any role may be part of any other. */
static void look_at_all(struct role_aggregation *a)
{
    if (informer_synced(a->roles)) {
        informer_each(a->roles, add_aggregated, a);
    }
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    look_at_all(ctx);
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    look_at_all(ctx);
}

static void synced(void *state)
{
    look_at_all(state);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct role_aggregation *a = NEW(struct role_aggregation);
    a->queue = env->queue;
    *ret = a;
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = VERSION,
     .plural = "clusterroles",
     .informer = CONTROLLER_INFORMER(struct role_aggregation, roles),
     .changed = changed,
     .deleted = deleted},
};

const struct controller role_aggregation_controller = {
    .name = "role_aggregation",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 1,
    .start = start,
    .synced = synced,
    .reconcile = begin,
    .stop = free,
};
