/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/crd_cleanup.h"

#include "api/condition.h"
#include "api/crd/crd.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/lifecycle/gc_graph.h"

LOG_MODULE("crd");

/* First pause while objects wait for their own finalizers; it doubles with each round. */
#define POLL_MIN_MS 20
#define POLL_MAX_MS 10000

/* A definition whose objects are being deleted. */
struct emptying {
    char *api_version, *plural; /* NULL: no version of the kind is served. */
    struct smap namespaces;     /* Namespaces whose objects are not deleted yet. */
    struct backoff rounds;
};

struct crd_cleanup {
    struct workqueue *queue;
    struct smap emptyings; /* By name of the definition. */
};

static void emptying_free(void *p)
{
    struct emptying *em = p;
    free(em->api_version);
    free(em->plural);
    smap_done(&em->namespaces);
    free(em);
}

static void finish(struct crd_cleanup *c, struct work *w)
{
    smap_remove(&c->emptyings, work_key(w));
    work_done(w);
}

static char *definition_path(const char *name, const char *subresource)
{
    return api_path(CRD_API_VERSION, CRD_PLURAL, NULL, name, subresource);
}

static void finalized(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "finalize the definition", text);
        return;
    }
    log_info("definition emptied", "name=%s", work_key(w));
    finish(ctx, w);
}

static void read_again(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the definition", text);
    } else if (error < 0 || !gc_has_finalizer(obj, CRD_FINALIZER)) {
        finish(ctx, w);
    } else {
        CLEANUP_FREE char *path = definition_path(work_key(w), NULL);
        CLEANUP(json_free) struct json *patch = gc_patch_finalizer(obj, CRD_FINALIZER);
        work_request_as(w, "PATCH", path, API_ACCEPT_METADATA, "application/merge-patch+json",
                        patch, finalized);
    }
}

static void finalize(struct work *w)
{
    CLEANUP_FREE char *path = definition_path(work_key(w), NULL);
    work_request_as(w, "GET", path, API_ACCEPT_METADATA, NULL, NULL, read_again);
}

static void list_objects(struct crd_cleanup *c, struct work *w, const struct emptying *em);

static void wait_round(struct work *w, struct emptying *em)
{
    work_wait(w, backoff_fail(&em->rounds, time_mono_ms(), 0));
}

static void next_namespace(struct crd_cleanup *c, struct work *w, struct emptying *em);

static void deleted_all(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct crd_cleanup *c = ctx;
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "delete the objects of the definition", text);
    } else {
        next_namespace(c, w, smap_get(&c->emptyings, work_key(w)));
    }
}

static void next_namespace(struct crd_cleanup *c, struct work *w, struct emptying *em)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &em->namespaces) {
        CLEANUP_FREE char *path =
            api_path(em->api_version, em->plural, *se->key ? se->key : NULL, NULL, NULL);
        smap_remove(&em->namespaces, se->key);
        work_request_as(w, "DELETE", path, API_ACCEPT_METADATA_LIST, NULL, NULL, deleted_all);
        return;
    }
    wait_round(w, em);
}

static void listed(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct crd_cleanup *c = ctx;
    struct emptying *em = smap_get(&c->emptyings, work_key(w));
    const struct json *o;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "list the objects of the definition", text);
        return;
    }
    if (json_count(json_get(obj, "items")) == 0) {
        finalize(w);
        return;
    }
    bool first = false;
    JSON_FOREACH (o, json_get(obj, "items")) {
        if (!obj_is_terminating(o)) {
            first = true;
            smap_set(&em->namespaces, obj_namespace(o), NULL);
        }
    }
    if (first) {
        next_namespace(c, w, em);
    } else {
        wait_round(w, em); /* All remaining objects wait for their finalizers. */
    }
}

static void list_objects(struct crd_cleanup *c, struct work *w, const struct emptying *em)
{
    CLEANUP_FREE char *path = api_path(em->api_version, em->plural, NULL, NULL, NULL);
    CLEANUP_FREE char *page = xasprintf("%s?limit=500", path);
    work_request_as(w, "GET", page, API_ACCEPT_METADATA_LIST, NULL, NULL, listed);
}

static void status_written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct crd_cleanup *c = ctx;
    struct emptying *em = smap_get(&c->emptyings, work_key(w));
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write the definition's status", text);
    } else if (em->api_version) {
        list_objects(c, w, em);
    } else {
        finalize(w);
    }
}

static struct emptying *emptying_of(struct crd_cleanup *c, const struct json *obj)
{
    struct emptying *em = smap_get(&c->emptyings, obj_name(obj));
    const struct json *spec = json_get(obj, "spec"), *v;
    if (em) {
        return em;
    }
    em = NEW(struct emptying);
    em->rounds = BACKOFF_INIT(POLL_MIN_MS, POLL_MAX_MS);
    smap_init(&em->namespaces, NULL);
    JSON_FOREACH (v, condition_is_true(obj, "Established") ? json_get(spec, "versions") : NULL) {
        if (json_get_bool(json_get(v, "served"), false) && !em->api_version) {
            em->api_version = xasprintf("%s/%s", json_path_string(spec, "group", NULL),
                                        json_path_string(v, "name", NULL));
            em->plural = xstrdup(json_path_string(spec, "names", "plural", NULL));
        }
    }
    smap_set(&c->emptyings, obj_name(obj), em);
    return em;
}

static void definition_read(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj)
{
    struct crd_cleanup *c = ctx;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the definition", text);
        return;
    }
    if (error < 0 || !obj_is_terminating(obj) || !gc_has_finalizer(obj, CRD_FINALIZER)) {
        finish(c, w);
        return;
    }
    (void) emptying_of(c, obj);
    CLEANUP(json_free) struct json *o = json_clone(obj);
    if (!condition_set(o, "Terminating", "True", "InstanceDeletionInProgress",
                       "CustomResource deletion is in progress", time_wall_ms())) {
        status_written(c, w, 0, NULL, NULL);
        return;
    }
    CLEANUP_FREE char *path = definition_path(work_key(w), "status");
    work_request(w, "PUT", path, o, status_written);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    CLEANUP_FREE char *path = definition_path(key, NULL);
    work_request(w, "GET", path, NULL, definition_read);
}

static void changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct crd_cleanup *c = ctx;
    if (obj_is_terminating(obj) && gc_has_finalizer(obj, CRD_FINALIZER)) {
        workqueue_add(c->queue, key);
    }
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct crd_cleanup *c = NEW(struct crd_cleanup);
    c->queue = env->queue;
    smap_init(&c->emptyings, emptying_free);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct crd_cleanup *c = state;
    smap_done(&c->emptyings);
    free(c);
}

static const struct controller_watch watches[] = {
    {.api_version = CRD_API_VERSION,
     .plural = CRD_PLURAL,
     .changed = changed,
     .transient = true,
     .metadata = true},
};

const struct controller crd_cleanup_controller = {
    .name = "crd_cleanup",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 2,
    .start = start,
    .reconcile = begin,
    .stop = stop,
};
