/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the kinds that CustomResourceDefinitions in the registry define.
 *
 * A definition is served from the moment at which its stored status says "Established".  This file
 * decides on that status and writes it like any other object, so that all masters agree:
 * definitions that claim the same name are decided in the order of their revisions, one at a time,
 * and a write that fails because of a conflict has no effect. */
#include "apiserver/server/definitions.h"

#include "api/crd/crd.h"
#include "apiserver/verbs/watch.h"
#include "base/log.h"
#include "base/timeutil.h"

LOG_MODULE("apiserver");

#define RETRY_MS 1000

static struct cache_kind *definitions(const struct apiserver *a)
{
    return cache_find(&a->cache, api_kind_find(CRD_GROUP, CRD_VERSION, CRD_PLURAL));
}

/* The kind that is served for the definition 'name'; NULL: none. */
static struct cache_kind *find(const struct apiserver *a, const char *name)
{
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        struct cache_kind *ck = a->cache.kinds[i];
        if (ck->crd && streq(crd_name(ck->crd), name)) {
            return ck;
        }
    }
    return NULL;
}

static void purged(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        log_limited(&limit, LOG_WARN, "an object of a deleted definition remains", "error=\"%s\"",
                    strerror(-error));
    }
}

/* Deletes objects without a definition: they remain if the finalizer was
 * removed by hand, or if no version was served. */
static void purge(struct apiserver *a, const struct cache_kind *ck)
{
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        CLEANUP_FREE char *key = cache_store_key(ck, o->key);
        store_delete(a->store, key, o->revision, purged, NULL);
    }
}

static void withdraw(struct apiserver *a, struct cache_kind *ck)
{
    log_info("kind withdrawn", "definition=%s", crd_name(ck->crd));
    watch_end_kind(ck);
    cache_remove_kind(&a->cache, ck);
}

/* Serves the current version of the definition; NULL: it was deleted. */
static void apply(struct apiserver *a, const char *name, const struct object *o)
{
    struct cache_kind *ck = find(a, name);
    CLEANUP(crd_unref) struct crd *crd = NULL;
    struct err e = {0};
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : NULL;
    int r = o ? crd_new(obj, &crd, &e) : -ENOENT;
    if (r == -EINVAL) {
        log_error("a CustomResourceDefinition cannot be served", "name=%s reason=\"%s\"", name,
                  e.text);
    }
    if (r < 0) {
        if (ck) {
            if (!o) {
                purge(a, ck);
            }
            withdraw(a, ck);
        }
    } else if (!ck) {
        (void) cache_add_kind(&a->cache, crd);
        log_info("kind served", "definition=%s", name);
    } else if (crd_same(ck->crd, crd)) {
        crd_set_terminating(ck->crd, crd_is_terminating(crd));
    } else {
        watch_end_kind(ck);
        (void) cache_replace_kind(&a->cache, ck, crd);
        log_info("kind changed", "definition=%s", name);
    }
}

void definitions_load(void *server)
{
    struct apiserver *a = server;
    struct keyset *set = &definitions(a)->objects;
    struct keyset_pos pos = keyset_seek(set, "");
    struct object *o;
    /* Backwards, because removing a kind moves the later ones. */
    for (size_t i = a->cache.n_kinds; i-- > 0;) {
        struct cache_kind *ck = a->cache.kinds[i];
        if (ck->crd && !keyset_get(set, crd_name(ck->crd))) {
            withdraw(a, ck);
        }
    }
    while ((o = keyset_next(set, &pos))) {
        apply(a, o->key, o);
    }
}

static void on_changed(void *server, struct cache_kind *ck, const struct cache_event *ev)
{
    struct apiserver *a = server;
    if (ck == definitions(a)) {
        apply(a, ev->new ? ev->new->key : ev->old->key, ev->new);
        definitions_settle(a);
    }
}

void definitions_init(struct apiserver *a)
{
    a->settle_timer = loop_timer_new(a->loop, definitions_settle, a);
    a->definitions =
        (struct cache_subscriber){.rank = CACHE_RANK_KINDS, .ctx = a, .changed = on_changed};
    cache_subscribe(&a->cache, &a->definitions);
}

/* ---- status ---- */

/* The next state of the definition 'o'; NULL: it is settled. */
static struct blob *settled(struct apiserver *a, const struct object *o)
{
    struct cache_kind *served = find(a, o->key);
    if (served && served->settled == o->revision) {
        return NULL;
    }
    CLEANUP(json_free) struct json *obj = object_parse(o);
    struct blob *value = NULL;
    if (json_path_string(obj, "metadata", "deletionTimestamp", NULL) ||
        !crd_settle(obj, &a->cache.registry, served ? served->crd : NULL, time_wall_ms())) {
        if (served) {
            served->settled = o->revision;
        }
        return NULL;
    }
    (void) object_encode(definitions(a)->kind, obj, &value);
    return value;
}

static void settle_done(void *ctx, int error, uint64_t revision)
{
    static struct log_limit limit;
    struct apiserver *a = ctx;
    a->settling = false;
    if (error == 0 || error == -ESTALE || error == -ENOENT) {
        definitions_settle(a);
    } else if (error != -EAGAIN && error != -ECANCELED) {
        loop_timer_arm(a->settle_timer, RETRY_MS);
        log_limited(&limit, LOG_ERROR, "a CustomResourceDefinition's status was not written",
                    "error=\"%s\"", strerror(-error));
    }
}

void definitions_settle(void *server)
{
    struct apiserver *a = server;
    struct cache_kind *ck = definitions(a);
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    struct object *o, *first = NULL;
    CLEANUP(blob_unref) struct blob *value = NULL;
    if (a->settling || a->stopping || a->lost) {
        return;
    }
    while ((o = keyset_next(&ck->objects, &pos))) {
        if (first && first->revision < o->revision) {
            continue;
        }
        struct blob *v = settled(a, o);
        if (v) {
            blob_unref(value);
            value = v;
            first = o;
        }
    }
    if (first) {
        CLEANUP_FREE char *key = cache_store_key(ck, first->key);
        a->settling = true;
        store_put(a->store, key, value, first->revision, settle_done, a);
    }
}
