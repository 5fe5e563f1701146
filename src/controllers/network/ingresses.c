/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/network/ingresses.h"

#include "api/obj.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "route/ingress.h"

LOG_MODULE("ingresses");

#define ROUTES "route.openshift.io/v1"
#define NETWORKING "networking.k8s.io/v1"

struct ingresses {
    struct workqueue *queue;
    struct informer *ingresses, *classes, *routes, *services, *secrets;
    /* By key of an Ingress: a "struct smap *" whose keys are those of its routes. */
    struct smap owned;
};

/* ---- routes by Ingress ---- */

static void names_free(void *p)
{
    smap_done(p);
    free(p);
}

/* The key of the Ingress that controls the route; owned.  NULL: none does. */
static char *owner_key(const struct json *route)
{
    const struct json *ref = obj_controller(route);
    return ref && obj_ref_is(ref, "networking.k8s.io", "Ingress")
               ? xasprintf("%s/%s", obj_namespace(route), json_get_text(ref, "name"))
               : NULL;
}

static void own(struct ingresses *c, const char *owner, const char *route)
{
    static char present;
    struct smap *names = smap_get(&c->owned, owner);
    if (!names) {
        names = NEW(struct smap);
        smap_init(names, NULL);
        smap_set(&c->owned, owner, names);
    }
    smap_set(names, route, &present);
}

static void disown(struct ingresses *c, const char *owner, const char *route)
{
    struct smap *names = smap_get(&c->owned, owner);
    if (names && smap_remove(names, route) && smap_size(names) == 0) {
        smap_remove(&c->owned, owner);
    }
}

/* ---- one Ingress ---- */

/* The plan's input: objects of one namespace. */
struct reading {
    const struct ingresses *c;
    const char *namespace;
};

static const struct json *in_namespace(const struct reading *r, const struct informer *i,
                                       const char *name)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", r->namespace, name);
    return informer_get(i, key);
}

static const struct json *read_service(void *ctx, const char *name)
{
    const struct reading *r = ctx;
    return in_namespace(r, r->c->services, name);
}

static const struct json *read_secret(void *ctx, const char *name)
{
    const struct reading *r = ctx;
    return in_namespace(r, r->c->secrets, name);
}

static bool is_ours(const struct ingresses *c, const struct json *ingress)
{
    const char *class = json_path_string(ingress, "spec", "ingressClassName", NULL);
    return route_ingress_is_ours(ingress, class ? informer_get(c->classes, class) : NULL);
}

/* The routes that the Ingress should have; owned. */
static struct json *plan(const struct ingresses *c, const struct json *ingress)
{
    struct reading r = {c, obj_namespace(ingress)};
    const struct route_ingress_sources sources = {read_service, read_secret, &r};
    return is_ours(c, ingress) ? route_ingress_plan(ingress, &sources) : json_array();
}

static bool is_of(const struct json *route, const struct json *ingress)
{
    const struct json *ref = obj_controller(route);
    return ref && streq(json_get_text(ref, "uid"), obj_uid(ingress));
}

/* The watch reports what was written, and the key is reconciled again. */
static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error == -EINVAL || error == -EACCES) {
        /* Another attempt would fail as well: the Ingress or what it names must change first. */
        log_warn("route of an Ingress was refused", "ingress=%s error=\"%s\"", work_key(w), text);
        work_done(w);
    } else if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write a route of an Ingress", text);
    } else {
        work_done(w);
    }
}

static const struct json *find(const struct json *list, const char *name)
{
    const struct json *r;
    JSON_FOREACH (r, list) {
        if (streq(obj_name(r), name)) {
            return r;
        }
    }
    return NULL;
}

/* Begins the first request that is due for a route that is wanted; false: none is. */
static bool write_one(struct ingresses *c, struct work *w, const struct json *ingress,
                      const struct json *want)
{
    const char *ns = obj_namespace(ingress);
    CLEANUP_FREE char *key = xasprintf("%s/%s", ns, obj_name(want));
    const struct json *have = informer_get(c->routes, key);
    if (have && !is_of(have, ingress)) {
        return false; /* A route of the user's own has the name. */
    }
    CLEANUP_FREE char *path = api_path(ROUTES, "routes", ns, have ? obj_name(want) : NULL, NULL);
    CLEANUP(json_free) struct json *changed = have ? route_ingress_update(have, want) : NULL;
    if (!have) {
        work_request(w, "POST", path, want, written);
    } else if (changed) {
        work_request(w, "PUT", path, changed, written);
    }
    return !have || changed;
}

static bool delete_one(struct ingresses *c, struct work *w, const char *key,
                       const struct json *ingress, const struct json *wanted)
{
    struct smap *names = smap_get(&c->owned, key);
    struct smap_entry *e;
    if (!names) {
        return false;
    }
    SMAP_FOREACH (e, names) {
        const struct json *have = informer_get(c->routes, e->key);
        if (have && is_of(have, ingress) && !obj_is_terminating(have) &&
            !find(wanted, obj_name(have))) {
            CLEANUP_FREE char *path =
                api_path(ROUTES, "routes", obj_namespace(have), obj_name(have), NULL);
            CLEANUP(json_free) struct json *options = json_object();
            json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(have));
            work_request(w, "DELETE", path, options, written);
            return true;
        }
    }
    return false;
}

/* The status, when it differs; owned.  NULL: it is right. */
static struct json *new_status(struct ingresses *c, const char *key, const struct json *ingress)
{
    CLEANUP(json_free) struct json *routes = json_array();
    struct smap *names = smap_get(&c->owned, key);
    const struct json *before = json_path(ingress, "status", "loadBalancer", NULL);
    if (names) {
        struct smap_entry *e;
        SMAP_FOREACH (e, names) {
            const struct json *have = informer_get(c->routes, e->key);
            if (have && is_of(have, ingress)) {
                json_append(routes, json_clone(have));
            }
        }
    }
    CLEANUP(json_free) struct json *now = route_ingress_status(routes);
    if (before ? json_equal(before, now) : json_count(now) == 0) {
        return NULL;
    }
    struct json *out = json_clone(ingress);
    json_set(json_ensure_object(out, "status"), "loadBalancer", TAKE(now));
    return out;
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct ingresses *c = ctx;
    const struct json *ingress = informer_get(c->ingresses, key), *want;
    if (!ingress || obj_is_terminating(ingress)) {
        work_done(w);
        return;
    }
    CLEANUP(json_free) struct json *wanted = plan(c, ingress);
    JSON_FOREACH (want, wanted) {
        if (write_one(c, w, ingress, want)) {
            return;
        }
    }
    if (delete_one(c, w, key, ingress, wanted)) {
        return;
    }
    /* The status of an Ingress of another class is that class's. */
    CLEANUP(json_free)
    struct json *status = json_count(wanted) ? new_status(c, key, ingress) : NULL;
    if (status) {
        CLEANUP_FREE char *path =
            api_path(NETWORKING, "ingresses", obj_namespace(ingress), obj_name(ingress), "status");
        work_request(w, "PUT", path, status, written);
    } else {
        work_done(w);
    }
}

/* ---- events ---- */

static void route_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct ingresses *c = ctx;
    CLEANUP_FREE char *before = old ? owner_key(old) : NULL;
    CLEANUP_FREE char *now = owner_key(obj);
    if (before && !streq_null(before, now)) {
        disown(c, before, key);
        workqueue_add(c->queue, before);
    }
    if (now) {
        own(c, now, key);
        workqueue_add(c->queue, now);
    }
}

static void route_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct ingresses *c = ctx;
    CLEANUP_FREE char *owner = owner_key(obj);
    if (owner) {
        disown(c, owner, key);
        workqueue_add(c->queue, owner);
    }
}

/* Adds the Ingresses of a namespace, or those of a class. */
struct adding {
    struct ingresses *c;
    const char *namespace, *class;
};

static void add_if(void *ctx, const char *key, const struct json *ingress)
{
    const struct adding *a = ctx;
    if (a->class ? streq_null(json_path_string(ingress, "spec", "ingressClassName", NULL), a->class)
                 : streq(obj_namespace(ingress), a->namespace)) {
        workqueue_add(a->c->queue, key);
    }
}

static void named_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct adding a = {ctx, obj_namespace(obj), NULL};
    informer_each(a.c->ingresses, add_if, &a);
}

static void named_deleted(void *ctx, const char *key, const struct json *obj)
{
    named_changed(ctx, key, obj, obj);
}

static void class_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct adding a = {ctx, NULL, key};
    informer_each(a.c->ingresses, add_if, &a);
}

static void class_deleted(void *ctx, const char *key, const struct json *obj)
{
    class_changed(ctx, key, obj, obj);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct ingresses *c = NEW(struct ingresses);
    c->queue = env->queue;
    smap_init(&c->owned, names_free);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct ingresses *c = state;
    smap_done(&c->owned);
    free(c);
}

#define INFORMER(member) CONTROLLER_INFORMER(struct ingresses, member)
static const struct controller_watch watches[] = {
    {.api_version = NETWORKING, .plural = "ingresses", .informer = INFORMER(ingresses)},
    {.api_version = NETWORKING,
     .plural = "ingressclasses",
     .informer = INFORMER(classes),
     .changed = class_changed,
     .deleted = class_deleted},
    {.api_version = ROUTES,
     .plural = "routes",
     .informer = INFORMER(routes),
     .changed = route_changed,
     .deleted = route_deleted},
    {.api_version = "v1",
     .plural = "services",
     .informer = INFORMER(services),
     .changed = named_changed,
     .deleted = named_deleted},
    {.api_version = "v1",
     .plural = "secrets",
     .fields = "type=kubernetes.io/tls",
     .informer = INFORMER(secrets),
     .changed = named_changed,
     .deleted = named_deleted},
};

const struct controller ingresses_controller = {
    .name = "ingresses",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .account = "ingress-to-route-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
