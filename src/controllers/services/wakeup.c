/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/wakeup.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/discovery.h"
#include "controller/obj.h"
#include "controllers/services/idling.h"

LOG_MODULE("wakeup");

#define MERGE "application/merge-patch+json"

/* Keys of the queue: "w NAMESPACE/NAME", wake the service; "o NAMESPACE/NAME", its idling is
 * over. */
#define KEY_WAKE 'w'
#define KEY_OVER 'o'

/* A service that is being woken. */
struct waking {
    struct wakeup *owner;
    struct work *work;
    struct discovery_call *asking;
    struct discovery *kinds;
    struct json *targets;
    size_t at;
    char *scale; /* Paths of the target's Scale, and of the target itself. */
    char *target;
};

struct wakeup {
    struct api_client *client;
    struct workqueue *queue;
    struct smap requested; /* The newest event of each service to wake: struct json. */
    struct smap idled;     /* Idled services, and whether they had endpoints: 'had' or 'had_not'. */
    struct smap waking;
};

static char had, had_not;

static void event_free(void *p)
{
    json_free(p);
}

static void waking_free(void *p)
{
    struct waking *k = p;
    discovery_cancel(k->asking);
    discovery_free(k->kinds);
    json_free(k->targets);
    free(k->scale);
    free(k->target);
    free(k);
}

/* "namespace/name" of the work's key. */
static const char *service_of(const struct work *w)
{
    return work_key(w) + 2;
}

static char *path_of(const char *key, const char *plural)
{
    const char *slash = strchr(key, '/');
    CLEANUP_FREE char *ns = xstrndup(key, (size_t) (slash - key));
    return api_path("v1", plural, ns, slash + 1, NULL);
}

/* ---- annotations of the service and its endpoints ---- */

static void service_patched(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "annotate an idled service", text);
    } else {
        work_done(w);
    }
}

static struct json *patch_for(const struct work *w)
{
    return *work_key(w) == KEY_WAKE ? idle_woken_patch() : idle_over_patch();
}

static void endpoints_patched(void *ctx, struct work *w, int error, const char *text,
                              struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "annotate the endpoints of an idled service", text);
        return;
    }
    CLEANUP(json_free) struct json *patch = patch_for(w);
    CLEANUP_FREE char *path = path_of(service_of(w), "services");
    work_request_as(w, "PATCH", path, NULL, MERGE, patch, service_patched);
}

static void annotate(struct work *w)
{
    CLEANUP(json_free) struct json *patch = patch_for(w);
    CLEANUP_FREE char *path = path_of(service_of(w), "endpoints");
    work_request_as(w, "PATCH", path, NULL, MERGE, patch, endpoints_patched);
}

/* ---- wakeup ---- */

static void next_target(struct waking *k);

static struct waking *waking_of(struct wakeup *u, const struct work *w)
{
    return smap_get(&u->waking, work_key(w));
}

/* Handles an error; -ENOENT means that the object was deleted and needs no wakeup. */
static bool failed(struct wakeup *u, struct work *w, int error, const char *what, const char *text)
{
    if (error == 0 || error == -ENOENT) {
        return false;
    }
    (void) smap_remove(&u->waking, work_key(w));
    work_retry(w, error, what, text);
    return true;
}

static void target_patched(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (!failed(ctx, w, error, "annotate an idled target", text)) {
        next_target(waking_of(ctx, w));
    }
}

static void target_scaled(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct waking *k = waking_of(ctx, w);
    if (!failed(ctx, w, error, "scale an idled target", text)) {
        CLEANUP(json_free) struct json *patch = idle_target_over_patch();
        work_request_as(w, "PATCH", k->target, NULL, MERGE, patch, target_patched);
    }
}

static void scale_got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct waking *k = waking_of(ctx, w);
    const struct json *target = json_at(k->targets, k->at - 1);
    if (failed(ctx, w, error, "read the scale of an idled target", text)) {
        return;
    }
    int64_t now = json_get_int_or(json_path(obj, "spec", "replicas", NULL), 0);
    if (error == -ENOENT || now > 0) {
        target_scaled(ctx, w, error, text, obj); /* Another client has scaled it first. */
        return;
    }
    CLEANUP(json_free) struct json *scale = json_clone(obj);
    json_set(json_ensure_object(scale, "spec"), "replicas",
             json_clone(json_get(target, "replicas")));
    log_info("unidled", "service=%s kind=%s name=%s", service_of(w),
             json_path_string(target, "kind", NULL), json_path_string(target, "name", NULL));
    work_request(w, "PUT", k->scale, scale, target_scaled);
}

static const struct api_kind *kind_of(const struct waking *k, const struct json *target)
{
    const struct api_registry *r = discovery_registry(k->kinds);
    const char *kind = json_path_string(target, "kind", NULL);
    const char *group = json_path_string(target, "group", NULL);
    for (size_t i = 0; i < r->n; i++) {
        if (streq(r->list[i]->kind, kind) && streq(r->list[i]->group, group ? group : "")) {
            return r->list[i];
        }
    }
    return NULL;
}

static void next_target(struct waking *k)
{
    const struct json *target;
    const struct api_kind *kind = NULL;
    struct work *w = k->work;
    while ((target = json_at(k->targets, k->at)) && !(kind = kind_of(k, target))) {
        log_warn("the target of an idled service is of an unknown kind", "service=%s kind=%s",
                 service_of(w), json_path_string(target, "kind", NULL));
        k->at++;
    }
    if (!target) {
        (void) smap_remove(&k->owner->waking, work_key(w));
        annotate(w);
        return;
    }
    CLEANUP_FREE char *version = api_kind_api_version(kind);
    CLEANUP_FREE char *ns = xstrndup(service_of(w), strcspn(service_of(w), "/"));
    const char *name = json_path_string(target, "name", NULL);
    k->at++;
    free(k->scale);
    free(k->target);
    k->scale = api_path(version, kind->plural, ns, name, "scale");
    k->target = api_path(version, kind->plural, ns, name, NULL);
    work_request(w, "GET", k->scale, NULL, scale_got);
}

static void discovered(void *ctx, int error, const char *text, struct discovery *d)
{
    struct waking *k = ctx;
    struct work *w = k->work;
    k->asking = NULL;
    if (error < 0) {
        (void) smap_remove(&k->owner->waking, work_key(w));
        work_retry(w, error, "read the kinds of the server", text);
        return;
    }
    k->kinds = d;
    next_target(k);
}

static void endpoints_got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct wakeup *u = ctx;
    CLEANUP(json_free) struct json *event = smap_take(&u->requested, service_of(w));
    if (error < 0 && error != -ENOENT) {
        if (event && !smap_get(&u->requested, service_of(w))) {
            smap_set(&u->requested, service_of(w), TAKE(event));
        }
        work_retry(w, error, "read the endpoints of a service to wake", text);
        return;
    }
    struct json *targets = error ? json_array() : idle_targets(obj);
    if (!event || !json_count(targets) || !idle_event_counts(event, obj)) {
        json_free(targets);
        work_done(w);
        return;
    }
    struct waking *k = NEW(struct waking);
    k->owner = u;
    k->work = w;
    k->targets = targets;
    smap_set(&u->waking, work_key(w), k);
    k->asking = discovery_fetch(u->client, discovered, k);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    if (*key == KEY_OVER) {
        annotate(w);
        return;
    }
    CLEANUP_FREE char *path = path_of(service_of(w), "endpoints");
    work_request(w, "GET", path, NULL, endpoints_got);
}

/* ---- events ---- */

static void enqueue(struct wakeup *u, char type, const char *key)
{
    CLEANUP_FREE char *full = xasprintf("%c %s", type, key);
    workqueue_add(u->queue, full);
}

static void event_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *event)
{
    struct wakeup *u = ctx;
    const struct json *about = json_get(event, "involvedObject");
    const char *ns = json_path_string(about, "namespace", NULL);
    const char *name = json_path_string(about, "name", NULL);
    if (!ns || !*ns || !name || !*name ||
        !streq_null(json_path_string(about, "kind", NULL), "Service")) {
        return;
    }
    CLEANUP_FREE char *service = xasprintf("%s/%s", ns, name);
    smap_set(&u->requested, service, json_clone(event));
    enqueue(u, KEY_WAKE, service);
}

/* Idling is over when endpoints appear where there were none; endpoints that
 * exist when a service is idled do not end it. */
static void endpoints_changed(void *ctx, const char *key, const struct json *old,
                              const struct json *obj)
{
    struct wakeup *u = ctx;
    if (!idle_is_idled(obj)) {
        (void) smap_remove(&u->idled, key);
        return;
    }
    bool ready = idle_has_ready(obj), woken = !obj_annotation(obj, IDLE_TARGETS);
    if (ready && (woken || smap_get(&u->idled, key) == &had_not)) {
        enqueue(u, KEY_OVER, key);
    }
    smap_set(&u->idled, key, ready ? &had : &had_not);
}

static void endpoints_deleted(void *ctx, const char *key, const struct json *obj)
{
    (void) smap_remove(&((struct wakeup *) ctx)->idled, key);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct wakeup *u = NEW(struct wakeup);
    u->client = env->client;
    u->queue = env->queue;
    smap_init(&u->requested, event_free);
    smap_init(&u->idled, NULL);
    smap_init(&u->waking, waking_free);
    *ret = u;
    return 0;
}

static void stop(void *state)
{
    struct wakeup *u = state;
    smap_done(&u->waking);
    smap_done(&u->requested);
    smap_done(&u->idled);
    free(u);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "endpoints",
     .changed = endpoints_changed,
     .deleted = endpoints_deleted,
     .transient = true},
    {.api_version = "v1",
     .plural = "events",
     .fields = "reason=" IDLE_REASON,
     .changed = event_changed,
     .transient = true},
};

const struct controller wakeup_controller = {
    .name = "wakeup",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .reconcile = begin,
    .stop = stop,
};
