/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/project_limit.h"

#include "apiserver/admission/admission.h"
#include "apiserver/admission/plugin_config.h"
#include "apiserver/cache/object.h"
#include "base/log.h"

LOG_MODULE("apiserver");

#define PLUGIN "ProjectRequestLimit"
#define FENCE_PREFIX "/registry/project-limits/"
#define REQUESTER "openshift.io/requester"
#define ACCOUNT_PREFIX "system:serviceaccount:"
#define FREE_TERMINATING 2
#define FIRST_MS 1000

/* The projects that one user has requested. */
struct count {
    unsigned all, terminating;
};

struct project_counts {
    struct apiserver *server;
    const struct cache_kind *namespaces, *users;
    struct smap of_user; /* Name to struct count. */
    struct cache_subscriber subscriber;
    struct loop_timer *timer;
};

/* ---- counting ---- */

static void add(struct project_counts *c, const struct object *o, bool there)
{
    CLEANUP(json_free) struct json *ns = o ? object_parse(o) : NULL;
    const char *user = json_path_string(ns, "metadata", "annotations", REQUESTER, NULL);
    bool terminating = streq_null(json_path_string(ns, "status", "phase", NULL), "Terminating");
    if (!user || !*user) {
        return;
    }
    struct count *n = smap_get(&c->of_user, user);
    if (!n) {
        n = NEW(struct count);
        smap_set(&c->of_user, user, n);
    }
    n->all = there ? n->all + 1 : n->all - 1;
    n->terminating += terminating ? (there ? 1U : -1U) : 0U;
    if (!n->all) {
        (void) smap_remove(&c->of_user, user);
    }
}

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct project_counts *c = ctx;
    if (ck == c->namespaces) {
        add(c, ev->new, true);
        add(c, ev->old, false);
    }
}

static void on_resetting(void *ctx)
{
    smap_clear(&((struct project_counts *) ctx)->of_user);
}

static void on_loaded(void *ctx)
{
    struct project_counts *c = ctx;
    const struct object *o;
    struct keyset_pos pos = keyset_seek(&c->namespaces->objects, "");
    smap_clear(&c->of_user);
    while ((o = keyset_next(&c->namespaces->objects, &pos))) {
        add(c, o, true);
    }
    loop_timer_arm(c->timer, FIRST_MS);
}

/* ---- fences ---- */

/* Names of users may have characters that the parts of a key may not. */
static char *fence_key(const char *user)
{
    CLEANUP_STRBUF struct strbuf hex = STRBUF_INIT;
    for (const char *p = user; *p; p++) {
        strbuf_addf(&hex, "%02x", (unsigned char) *p);
    }
    return xasprintf(FENCE_PREFIX "%s", strbuf_cstr(&hex));
}

static struct blob *fence_value(const char *user)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "user", user);
    CLEANUP_FREE char *text = json_to_text(v);
    return blob_new(text, strlen(text));
}

static void removed(void *ctx, int error, uint64_t revision)
{
    /* After a conflict a request has replaced the fence: it is in use. */
    if (error == 0) {
        log_info("fence of a user without projects removed", "revision=%llu",
                 (unsigned long long) revision);
    }
}

static void add_key(void *ctx, const char *key)
{
    json_append(ctx, json_string(key));
}

static void check_fence(struct project_counts *c, const char *key)
{
    uint64_t revision;
    CLEANUP(json_free) struct json *v = NULL;
    const struct blob *value = cache_unknown_value(&c->server->cache, key, &revision);
    if (value && json_parse(value->data, value->size, &v, NULL) == 0 &&
        !smap_get(&c->of_user, json_get_text(v, "user"))) {
        store_delete(c->server->store, key, revision, removed, NULL);
    }
}

static void clean(void *ctx)
{
    struct project_counts *c = ctx;
    CLEANUP(json_free) struct json *keys = json_array();
    if (c->server->lost || c->server->stopping) {
        loop_timer_arm(c->timer, FIRST_MS);
        return;
    }
    cache_each_unknown(&c->server->cache, FENCE_PREFIX, add_key, keys);
    for (size_t i = 0; i < json_count(keys); i++) {
        check_fence(c, json_get_string(json_at(keys, i)));
    }
}

void project_limit_drop(struct project_limit_write *w)
{
    free((char *) w->fence.key);
    blob_unref(w->fence.value);
    *w = (struct project_limit_write){0};
}

/* ---- the limit ---- */

static bool matches(const struct json *selector, const struct object *user)
{
    for (size_t i = 0; i < json_count(selector); i++) {
        const char *value = user ? api_index_label(user->index, json_key_at(selector, i)) : NULL;
        if (!streq_null(value, json_get_string(json_at(selector, i)))) {
            return false;
        }
    }
    return true;
}

/* The limit of the user; -1: none.  A user without an object has no labels. */
static int64_t limit_of(const struct project_counts *c, const char *name)
{
    const struct project_limits *p = &c->server->cfg.admission->projects;
    const struct json *limit;
    if (str_has_prefix(name, ACCOUNT_PREFIX)) {
        return p->service_accounts;
    }
    if (c->users->kind->check_name(name)) {
        return p->system_users;
    }
    const struct object *user = keyset_get(&c->users->objects, name);
    JSON_FOREACH (limit, p->list) {
        if (matches(json_get(limit, "selector"), user)) {
            return json_get_int_or(json_get(limit, "maxProjects"), -1);
        }
    }
    return -1;
}

int project_limit_settle(struct request *q, struct project_limit_write *w, const char *name,
                         struct outcome *outcome)
{
    struct project_counts *c = q->server->project_counts;
    project_limit_drop(w);
    int64_t max = c ? limit_of(c, q->user->name) : -1;
    if (max < 0) {
        return 0;
    }
    const struct count *n = smap_get(&c->of_user, q->user->name);
    int64_t has = n ? (int64_t) n->all - MIN(n->terminating, FREE_TERMINATING) : 0;
    if (has >= max) {
        outcome_status(outcome, 403, "Forbidden", name,
                       "projectrequests.project.openshift.io \"%s\" is forbidden: user %s cannot "
                       "create more than %lld project(s).",
                       name, q->user->name, (long long) max);
        return -EACCES;
    }
    uint64_t revision = STORE_ABSENT;
    char *key = fence_key(q->user->name);
    if (!cache_unknown_value(&c->server->cache, key, &revision)) {
        revision = STORE_ABSENT;
    }
    w->fence = (struct store_claim){key, fence_value(q->user->name), revision};
    w->n = 1;
    return 0;
}

/* ---- creation and end ---- */

struct project_counts *project_counts_new(struct apiserver *a)
{
    if (!a->cfg.admission || !admission_is_enabled(a->admission, PLUGIN)) {
        return NULL;
    }
    struct project_counts *c = NEW(struct project_counts);
    c->server = a;
    c->namespaces = cache_find(&a->cache, api_kind_find("", "v1", "namespaces"));
    c->users = cache_find(&a->cache, api_kind_find("user.openshift.io", "v1", "users"));
    smap_init(&c->of_user, free);
    c->timer = loop_timer_new(a->loop, clean, c);
    c->subscriber = (struct cache_subscriber){.rank = CACHE_RANK_ADMISSION,
                                              .ctx = c,
                                              .changed = on_changed,
                                              .resetting = on_resetting,
                                              .loaded = on_loaded};
    cache_subscribe(&a->cache, &c->subscriber);
    return c;
}

struct project_counts *project_counts_free(struct project_counts *c)
{
    if (c) {
        cache_unsubscribe(&c->subscriber);
        loop_timer_free(c->timer);
        smap_done(&c->of_user);
        free(c);
    }
    return NULL;
}
