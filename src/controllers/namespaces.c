/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/namespaces.h"

#include "api/kind.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "controllers/obj.h"
#include "controllers/workqueue.h"

LOG_MODULE("namespaces");

#define PARALLEL 4
#define PAGE "?limit=500"
#define FINALIZER "kubernetes"
#define KEPT "default" /* A cluster is not without it: made again when it was deleted. */
#define POLL_MS 500    /* While objects wait for their own finalizers or grace periods. */

/* How far one Namespace is emptied. */
struct purge {
    size_t kind;       /* Index in api_kinds of the kind at work. */
    struct json *list; /* Its objects. */
    size_t next;       /* The first of them that was not looked at. */
    size_t found;      /* Objects found in this pass over the kinds, */
    size_t removed;    /* and those of them that were asked to go by it. */
};

struct namespaces {
    struct workqueue *queue;
    struct informer *informer;
    struct smap purges; /* By namespace. */
};

static void purge_free(void *p)
{
    struct purge *pu = p;
    if (pu) {
        json_free(pu->list);
        free(pu);
    }
}

struct json *namespaces_finalized(const struct json *ns)
{
    const struct json *list = json_path(ns, "spec", "finalizers", NULL), *f;
    CLEANUP(json_free) struct json *rest = json_array();
    bool has = false;
    JSON_FOREACH (f, list) {
        if (streq_null(json_get_string(f), FINALIZER)) {
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

static void next_object(struct namespaces *n, struct work *w, struct purge *pu);

static void finish(struct namespaces *n, struct work *w)
{
    smap_remove(&n->purges, work_key(w));
    work_done(w);
}

static void again(struct namespaces *n, struct work *w, int error, const char *what,
                  const char *text)
{
    smap_remove(&n->purges, work_key(w));
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

static void listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct namespaces *n = ctx;
    struct purge *pu = smap_get(&n->purges, work_key(w));
    if (error < 0) {
        again(n, w, error, "list objects of the namespace", text);
        return;
    }
    json_free(pu->list);
    pu->list = json_clone(json_get(obj, "items"));
    pu->next = 0;
    pu->found += json_count(pu->list);
    next_object(n, w, pu);
}

/* Lists the kind at pu->kind, or the next one that has a namespace; after the last, the pass ends. */
static void next_kind(struct namespaces *n, struct work *w, struct purge *pu)
{
    while (api_kinds[pu->kind] &&
           (!api_kinds[pu->kind]->namespaced || api_kinds[pu->kind]->create_only)) {
        pu->kind++;
    }
    const struct api_kind *k = api_kinds[pu->kind];
    if (!k && pu->found == 0) {
        finalize(n, w);
    } else if (!k) {
        /* What was asked to go may be gone at once; what waits for others is looked at again later. */
        uint64_t ms = pu->removed > 0 ? 0 : POLL_MS;
        smap_remove(&n->purges, work_key(w));
        work_wait(w, ms);
    } else {
        CLEANUP_FREE char *version = api_kind_api_version(k);
        CLEANUP_FREE char *path = api_path(version, k->plural, work_key(w), NULL, NULL);
        CLEANUP_FREE char *page = xasprintf("%s%s", path, PAGE);
        work_request(w, "GET", page, NULL, listed);
    }
}

static void object_deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct namespaces *n = ctx;
    struct purge *pu = smap_get(&n->purges, work_key(w));
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        again(n, w, error, "delete an object of the namespace", text);
        return;
    }
    pu->removed++;
    next_object(n, w, pu);
}

static void next_object(struct namespaces *n, struct work *w, struct purge *pu)
{
    const struct json *o = NULL;
    while (pu->next < json_count(pu->list)) {
        const struct json *it = json_at(pu->list, pu->next++);
        if (!obj_is_terminating(it)) {
            o = it;
            break;
        }
    }
    if (!o) {
        pu->kind++;
        next_kind(n, w, pu);
        return;
    }
    const struct api_kind *k = api_kinds[pu->kind];
    CLEANUP_FREE char *version = api_kind_api_version(k);
    CLEANUP_FREE char *path = api_path(version, k->plural, work_key(w), obj_name(o), NULL);
    work_request(w, "DELETE", path, NULL, object_deleted);
}

static void default_made(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -EEXIST) {
        work_retry(w, error, "create the namespace default", text);
    } else {
        work_done(w);
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct namespaces *n = ctx;
    if (streq(key, KEPT) && !informer_get(n->informer, key)) {
        CLEANUP(json_free) struct json *ns = obj_new("v1", "Namespace", NULL, KEPT);
        work_request(w, "POST", "/api/v1/namespaces", ns, default_made);
        return;
    }
    CLEANUP(json_free) struct json *o = namespaces_finalized(informer_get(n->informer, key));
    if (!o) {
        finish(n, w);
        return;
    }
    struct purge *pu = NEW(struct purge);
    smap_set(&n->purges, key, pu);
    next_kind(n, w, pu);
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct namespaces *n = ctx;
    if (obj_is_terminating(obj)) {
        workqueue_add(n->queue, key);
    }
}

static void deleted(void *ctx, const char *key, const struct json *obj)
{
    struct namespaces *n = ctx;
    if (streq(key, KEPT)) {
        workqueue_add(n->queue, key);
    }
}

struct namespaces *namespaces_new(struct loop *l, struct api_client *client)
{
    static const struct informer_ops ops = {.changed = changed, .deleted = deleted};
    struct namespaces *n = NEW(struct namespaces);
    smap_init(&n->purges, purge_free);
    n->queue = workqueue_new(l, client, PARALLEL, begin, n);
    workqueue_start(n->queue);
    n->informer = informer_new(client, l, "v1", "namespaces", NULL, &ops, n);
    return n;
}

struct namespaces *namespaces_free(struct namespaces *n)
{
    if (n) {
        workqueue_free(n->queue);
        informer_free(n->informer);
        smap_done(&n->purges);
        free(n);
    }
    return NULL;
}
