/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/namespaces.h"

#include "api/condition.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/discovery.h"
#include "controller/obj.h"

LOG_MODULE("namespaces");

/* Finalizers that stand for the deletion of all objects in the namespace; a Project has both. */
static const char *const own_finalizers[] = {"kubernetes", "openshift.io/origin"};
/* First pause while objects wait for their own finalizers; it doubles with each round. */
#define POLL_MIN_MS 100
#define POLL_MAX_MS 10000

/* The progress of emptying one Namespace. */
struct purge {
    struct namespaces *owner;
    struct work *work; /* NULL: between rounds. */
    struct discovery_call *asking;
    struct discovery *kinds;
    size_t at; /* Index of the kind in work. */
    /* Remaining objects of this round: counts by kind, and by finalizer. */
    struct smap left, finalizers;
    struct backoff rounds;
};

struct namespaces {
    struct api_client *client;
    struct workqueue *queue;
    struct informer *informer;
    struct smap purges; /* By name of the namespace. */
};

/* ---- remaining objects ---- */

struct count {
    size_t n;
};

static void count_add(struct smap *m, const char *key, size_t n)
{
    struct count *c = smap_get(m, key);
    if (!c) {
        c = NEW(struct count);
        smap_set(m, key, c);
    }
    c->n += n;
}

/* "pods. has 2 resource instances, widgets.example.com has 1 resource instances" */
static void describe(const struct smap *m, const char *verb, struct strbuf *out)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, m) {
        strbuf_addf(out, "%s%s %s %zu resource instances", out->size ? ", " : "", se->key, verb,
                    ((struct count *) se->value)->n);
    }
}

/* Writes the remaining objects into the conditions of 'ns'; returns false
 * if they are the same already. */
static bool report(const struct purge *pu, struct json *ns)
{
    int64_t now = time_wall_ms();
    bool left = smap_size(&pu->left) > 0, waiting = smap_size(&pu->finalizers) > 0;
    CLEANUP_STRBUF struct strbuf content = STRBUF_INIT, finalizers = STRBUF_INIT;
    strbuf_adds(&content,
                left ? "Some resources are remaining: " : "All content successfully removed");
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    describe(&pu->left, "has", &list);
    strbuf_adds(&content, strbuf_cstr(&list));
    strbuf_reset(&list);
    describe(&pu->finalizers, "in", &list);
    strbuf_addf(&finalizers, "%s%s",
                waiting ? "Some content in the namespace has finalizers remaining: "
                        : "All content-preserving finalizers finished",
                strbuf_cstr(&list));
    bool changed =
        condition_set(ns, "NamespaceContentRemaining", left ? "True" : "False",
                      left ? "SomeResourcesRemain" : "ContentRemoved", content.data, now) != NULL;
    return condition_set(ns, "NamespaceFinalizersRemaining", waiting ? "True" : "False",
                         waiting ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
                         finalizers.data, now) ||
           changed;
}

/* ---- a round ---- */

static void purge_reset(struct purge *pu)
{
    discovery_cancel(TAKE(pu->asking));
    pu->kinds = discovery_free(pu->kinds);
    pu->work = NULL;
    pu->at = 0;
    smap_clear(&pu->left);
    smap_clear(&pu->finalizers);
}

static void purge_free(void *p)
{
    struct purge *pu = p;
    if (pu) {
        purge_reset(pu);
        smap_done(&pu->left);
        smap_done(&pu->finalizers);
        free(pu);
    }
}

static bool is_own_finalizer(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(own_finalizers); i++) {
        found |= streq_null(name, own_finalizers[i]);
    }
    return found;
}

struct json *namespaces_finalized(const struct json *ns)
{
    const struct json *list = json_path(ns, "spec", "finalizers", NULL), *f;
    CLEANUP(json_free) struct json *rest = json_array();
    bool has = false;
    JSON_FOREACH (f, list) {
        if (is_own_finalizer(json_get_string(f))) {
            has = true;
        } else {
            json_append(rest, json_clone(f));
        }
    }
    if (!has || !obj_is_terminating(ns)) {
        return NULL;
    }
    struct json *o = json_clone(ns);
    json_set(json_ensure_object(o, "spec"), "finalizers", TAKE(rest));
    return o;
}

static void finish(struct namespaces *n, struct work *w)
{
    smap_remove(&n->purges, work_key(w));
    work_done(w);
}

static void again(struct namespaces *n, struct work *w, int error, const char *what,
                  const char *text)
{
    purge_reset(smap_get(&n->purges, work_key(w)));
    work_retry(w, error, what, text);
}

static void finalized(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        again(ctx, w, error, "finalize the namespace", text);
        return;
    }
    log_info("namespace emptied", "namespace=%s", work_key(w));
    finish(ctx, w);
}

static void finalize(struct namespaces *n, struct work *w)
{
    CLEANUP(json_free)
    struct json *o = namespaces_finalized(informer_get(n->informer, work_key(w)));
    if (!o) {
        finish(n, w);
        return;
    }
    CLEANUP_FREE char *path = api_path("v1", "namespaces", NULL, work_key(w), "finalize");
    work_request(w, "PUT", path, o, finalized);
}

static void wait_round(struct namespaces *n, struct work *w)
{
    struct purge *pu = smap_get(&n->purges, work_key(w));
    uint64_t ms = backoff_fail(&pu->rounds, time_mono_ms(), 0);
    purge_reset(pu);
    work_wait(w, ms);
}

static void status_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    /* After a conflict the next round writes the conditions. */
    wait_round(ctx, w);
}

static void end_round(struct namespaces *n, struct work *w, struct purge *pu)
{
    const struct json *ns = informer_get(n->informer, work_key(w));
    if (smap_size(&pu->left) == 0 || !ns) {
        finalize(n, w);
        return;
    }
    CLEANUP(json_free) struct json *o = json_clone(ns);
    if (!report(pu, o)) {
        wait_round(n, w);
        return;
    }
    CLEANUP_FREE char *path = api_path("v1", "namespaces", NULL, work_key(w), "status");
    work_request(w, "PUT", path, o, status_written);
}

static const struct api_kind *kind_at(const struct purge *pu)
{
    const struct api_registry *r = discovery_registry(pu->kinds);
    return pu->at < r->n ? r->list[pu->at] : NULL;
}

static char *kind_path(const struct api_kind *k, const char *namespace)
{
    CLEANUP_FREE char *version = api_kind_api_version(k);
    return api_path(version, k->plural, namespace, NULL, NULL);
}

static void next_kind(struct namespaces *n, struct work *w, struct purge *pu);

static void listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct namespaces *n = ctx;
    struct purge *pu = smap_get(&n->purges, work_key(w));
    if (error < 0 && error != -ENOENT) {
        again(n, w, error, "list objects of the namespace", text);
        return;
    }
    const struct api_kind *k = kind_at(pu);
    const struct json *items = json_get(obj, "items"), *o, *f;
    size_t more =
        (size_t) json_get_int_or(json_path(obj, "metadata", "remainingItemCount", NULL), 0);
    if (json_count(items)) {
        CLEANUP_FREE char *name = xasprintf("%s.%s", k->plural, k->group);
        count_add(&pu->left, name, json_count(items) + more);
    }
    JSON_FOREACH (o, items) {
        JSON_FOREACH (f, json_path(o, "metadata", "finalizers", NULL)) {
            count_add(&pu->finalizers, json_get_string(f) ? json_get_string(f) : "?", 1);
        }
    }
    pu->at++;
    next_kind(n, w, pu);
}

static void deleted_all(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct namespaces *n = ctx;
    struct purge *pu = smap_get(&n->purges, work_key(w));
    if (error < 0 && error != -ENOENT && error != -ESTALE && error != -EOPNOTSUPP) {
        again(n, w, error, "delete the objects of the namespace", text);
        return;
    }
    CLEANUP_FREE char *path = kind_path(kind_at(pu), work_key(w));
    CLEANUP_FREE char *page = xasprintf("%s?limit=500", path);
    work_request_as(w, "GET", page, API_ACCEPT_METADATA_LIST, NULL, NULL, listed);
}

/* Deletes the objects of the kind at pu->at, or of the next one that has a namespace;
 * after the last, the round ends. */
static void next_kind(struct namespaces *n, struct work *w, struct purge *pu)
{
    const unsigned needed = DISCOVERY_LIST | DISCOVERY_DELETE_COLLECTION;
    const struct api_kind *k;
    while ((k = kind_at(pu)) && (!k->namespaced || (discovery_verbs(k) & needed) != needed ||
                                 !discovery_is_preferred(pu->kinds, k))) {
        pu->at++;
    }
    if (!k) {
        end_round(n, w, pu);
        return;
    }
    CLEANUP_FREE char *path = kind_path(k, work_key(w));
    /* No kind leaves its dependents: they go as well. */
    CLEANUP(json_free) struct json *options = json_object();
    json_set_string(options, "apiVersion", "v1");
    json_set_string(options, "kind", "DeleteOptions");
    json_set_string(options, "propagationPolicy", "Background");
    work_request_as(w, "DELETE", path, API_ACCEPT_METADATA_LIST, NULL, options, deleted_all);
}

static void discovered(void *ctx, int error, const char *text, struct discovery *d)
{
    struct purge *pu = ctx;
    pu->asking = NULL;
    if (error < 0) {
        again(pu->owner, pu->work, error, "read the kinds of the server", text);
        return;
    }
    pu->kinds = d;
    next_kind(pu->owner, pu->work, pu);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct namespaces *n = ctx;
    CLEANUP(json_free) struct json *o = namespaces_finalized(informer_get(n->informer, key));
    if (!o) {
        finish(n, w);
        return;
    }
    struct purge *pu = smap_get(&n->purges, key);
    if (!pu) {
        pu = NEW(struct purge);
        pu->owner = n;
        pu->rounds = BACKOFF_INIT(POLL_MIN_MS, POLL_MAX_MS);
        smap_init(&pu->left, free);
        smap_init(&pu->finalizers, free);
        smap_set(&n->purges, key, pu);
    }
    pu->work = w;
    pu->asking = discovery_fetch(n->client, discovered, pu);
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct namespaces *n = ctx;
    if (obj_is_terminating(obj) && !(old && obj_is_terminating(old))) {
        workqueue_add(n->queue, key);
    }
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct namespaces *n = NEW(struct namespaces);
    n->client = env->client;
    n->queue = env->queue;
    smap_init(&n->purges, purge_free);
    *ret = n;
    return 0;
}

static void stop(void *state)
{
    struct namespaces *n = state;
    smap_done(&n->purges);
    free(n);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "namespaces",
     .informer = CONTROLLER_INFORMER(struct namespaces, informer),
     .changed = changed},
};

const struct controller namespaces_controller = {
    .name = "namespaces",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .reconcile = begin,
    .stop = stop,
};
