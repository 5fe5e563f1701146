/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/endpoints.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/services/endpoint_index.h"

LOG_MODULE("endpoints");

/* Longest wait for the informer to show the controller's own writes, which arrive far sooner. */
#define SEEN_MS 1000

/* Keys of the queue: "e NAMESPACE/NAME" of Endpoints, "s NAMESPACE/NAME" of slices. */
#define KEY_ENDPOINTS 'e'
#define KEY_SLICES 's'

/* A write of this controller that the informer has not shown yet. */
struct written {
    char *key;
    uint64_t version; /* 0: a deletion. */
};

struct service {
    bool gone;          /* The service was deleted, and its Endpoints must be deleted. */
    struct smap slices; /* Keys of the slices that this controller manages. */
    struct json *steps; /* The steps in execution. */
    size_t at;
    struct written *written;
    size_t n_written, cap_written;
    /* Monotonic ms, until which the controller waits for its writes; 0: it does not wait. */
    uint64_t wait_until;
};

struct endpoints {
    struct recorder *recorder;
    struct address_ranges foreign;
    struct workqueue *queue;
    struct informer *services, *endpoints, *slices;
    /* HostSubnets, which decide whether addresses of pods are accepted. */
    struct informer *subnets;
    struct endpoint_index index;
    struct smap states; /* States of services, by key. */
    struct smap unseen; /* Pods that the list being read has not contained so far. */
    bool started;
};

/* ---- states ---- */

static void state_free(void *p)
{
    struct service *s = p;
    for (size_t i = 0; i < s->n_written; i++) {
        free(s->written[i].key);
    }
    free(s->written);
    smap_done(&s->slices);
    json_free(s->steps);
    free(s);
}

static struct service *state_of(struct endpoints *e, const char *key)
{
    struct service *s = smap_get(&e->states, key);
    if (!s) {
        s = NEW(struct service);
        smap_init(&s->slices, NULL);
        smap_set(&e->states, key, s);
    }
    return s;
}

/* Frees the state of a service that is gone with all its objects. */
static void prune(struct endpoints *e, const char *key)
{
    const struct service *s = smap_get(&e->states, key);
    if (s && !s->gone && !s->steps && !s->n_written && !smap_size(&s->slices) &&
        !informer_get(e->services, key)) {
        (void) smap_remove(&e->states, key);
    }
}

static void enqueue(struct endpoints *e, char type, const char *key)
{
    CLEANUP_FREE char *full = xasprintf("%c %s", type, key);
    workqueue_add(e->queue, full);
}

static void enqueue_both(void *ctx, const char *key)
{
    enqueue(ctx, KEY_ENDPOINTS, key);
    enqueue(ctx, KEY_SLICES, key);
}

static uint64_t version_of(const struct json *obj)
{
    const char *text = json_path_string(obj, "metadata", "resourceVersion", NULL);
    uint64_t version = 0;
    return text && str_to_u64(text, UINT64_MAX, &version) == 0 ? version : 0;
}

static char *key_of(const struct json *obj)
{
    return xasprintf("%s/%s", obj_namespace(obj), obj_name(obj));
}

static size_t pods_of(struct endpoints *e, const struct json *service, struct endpoint_pod ***ret)
{
    return endpoint_index_pods(&e->index, obj_namespace(service),
                               json_path(service, "spec", "selector", NULL), ret);
}

/* Sets apiVersion and kind, which members of lists lack. */
static void name_kind(struct json *obj, const char *api_version, const char *kind)
{
    json_set_string(obj, "apiVersion", api_version);
    json_set_string(obj, "kind", kind);
}

/* ---- Endpoints ---- */

static bool is_managed(const struct json *endpoints)
{
    return streq_null(
        json_path_string(endpoints, "metadata", "labels", ENDPOINTS_MANAGER_LABEL, NULL),
        ENDPOINTS_MANAGER);
}

static void endpoints_written(void *ctx, struct work *w, int error, const char *text,
                              struct json *obj)
{
    /* The object is gone with its namespace, or about to be. */
    if (error < 0 && error != -ENOENT && error != -EACCES) {
        work_retry(w, error, "write endpoints", text);
    } else {
        work_done(w);
    }
}

static void sync_endpoints(struct endpoints *e, struct work *w, const char *key)
{
    const struct json *service = informer_get(e->services, key);
    const struct json *have = informer_get(e->endpoints, key);
    struct service *state = state_of(e, key);
    if (!service) {
        bool ours = have && (state->gone || is_managed(have));
        state->gone = false;
        prune(e, key);
        if (!ours) {
            work_done(w);
            return;
        }
        CLEANUP_FREE char *path =
            api_path("v1", "endpoints", obj_namespace(have), obj_name(have), NULL);
        work_request(w, "DELETE", path, NULL, endpoints_written);
        return;
    }
    if (!service_selects(service) || obj_is_terminating(service)) {
        work_done(w);
        return;
    }
    struct endpoint_pod **pods = NULL;
    size_t n = pods_of(e, service, &pods);
    CLEANUP(json_free) struct json *plan = endpoints_plan(service, pods, n);
    free(pods);
    CLEANUP(json_free) struct json *next = have ? endpoints_apply_plan(have, plan) : NULL;
    CLEANUP_FREE char *path =
        api_path("v1", "endpoints", obj_namespace(service), have ? obj_name(service) : NULL, NULL);
    if (!have) {
        work_request(w, "POST", path, plan, endpoints_written);
    } else if (next) {
        name_kind(next, "v1", "Endpoints");
        work_request(w, "PUT", path, next, endpoints_written);
    } else {
        work_done(w);
    }
}

/* ---- slices ---- */

static bool is_seen(const struct endpoints *e, const struct written *wr)
{
    const struct json *have = informer_get(e->slices, wr->key);
    return wr->version ? have && version_of(have) >= wr->version : !have;
}

static bool all_seen(const struct endpoints *e, struct service *s)
{
    for (size_t i = 0; i < s->n_written;) {
        if (is_seen(e, &s->written[i])) {
            free(s->written[i].key);
            s->written[i] = s->written[--s->n_written];
        } else {
            i++;
        }
    }
    return s->n_written == 0;
}

static void forget_written(struct service *s)
{
    while (s->n_written) {
        free(s->written[--s->n_written].key);
    }
}

static void note_written(struct service *s, const struct json *obj, uint64_t version)
{
    s->written = grow(s->written, &s->cap_written, s->n_written + 1, sizeof *s->written);
    s->written[s->n_written++] = (struct written){key_of(obj), version};
}

static void next_step(struct endpoints *e, struct work *w);

static void step_done(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct endpoints *e = ctx;
    struct service *s = state_of(e, work_key(w) + 2);
    const struct json *step = json_at(s->steps, s->at++);
    bool deletion = streq(json_path_string(step, "verb", NULL), "DELETE");
    if (error == -EACCES || (error == -ENOENT && !deletion)) {
        s->steps = json_free(s->steps); /* The namespace is being deleted, or the slice is gone. */
        work_done(w);
    } else if (error < 0 && error != -ENOENT) {
        s->steps = json_free(s->steps);
        work_retry(w, error, "write an endpoint slice", text);
    } else {
        note_written(s, deletion ? json_get(step, "object") : obj, deletion ? 0 : version_of(obj));
        next_step(e, w);
    }
}

static void next_step(struct endpoints *e, struct work *w)
{
    struct service *s = state_of(e, work_key(w) + 2);
    struct json *step = json_at(s->steps, s->at);
    if (!step) {
        s->steps = json_free(s->steps);
        prune(e, work_key(w) + 2);
        work_done(w);
        return;
    }
    const char *verb = json_path_string(step, "verb", NULL);
    struct json *object = json_get(step, "object");
    bool post = streq(verb, "POST"), del = streq(verb, "DELETE");
    name_kind(object, DISCOVERY_VERSION, "EndpointSlice");
    CLEANUP_FREE char *path = api_path(DISCOVERY_VERSION, "endpointslices", obj_namespace(object),
                                       post ? NULL : obj_name(object), NULL);
    work_request(w, verb, path, del ? NULL : object, step_done);
}

static const char *manager_of(const struct json *slice)
{
    return json_path_string(slice, "metadata", "labels", SLICE_MANAGER_LABEL, NULL);
}

/* The desired groups of the service's slices, and their template; NULL: no slices. */
static struct json *desired(struct endpoints *e, const char *key, const struct json *service,
                            struct json **ret_template)
{
    const struct json *endpoints = informer_get(e->endpoints, key);
    if (!service || obj_is_terminating(service)) {
        return NULL;
    }
    if (service_selects(service)) {
        struct endpoint_pod **pods = NULL;
        size_t n = pods_of(e, service, &pods);
        struct json *groups = slices_plan(service, pods, n);
        *ret_template = slice_template(service, SLICE_MANAGER, service);
        endpoints_set_trigger_time(*ret_template, service, pods, n);
        free(pods);
        return groups;
    }
    if (!service_mirrors(service, endpoints)) {
        return NULL;
    }
    struct json *groups = slices_plan_mirror(endpoints);
    if (!json_count(groups)) {
        return json_free(groups);
    }
    *ret_template = slice_template(service, SLICE_MIRROR_MANAGER, endpoints);
    return groups;
}

static void sync_slices(struct endpoints *e, struct work *w, const char *key)
{
    struct service *s = state_of(e, key);
    uint64_t now = time_mono_ms();
    if (!all_seen(e, s)) {
        /* Each change of a slice queues the service again, but a slice that
         * another client deletes does not. */
        s->wait_until = s->wait_until ? s->wait_until : now + SEEN_MS;
        if (now < s->wait_until) {
            work_wait(w, s->wait_until - now);
            return;
        }
        forget_written(s);
    }
    s->wait_until = 0;
    CLEANUP(json_free) struct json *template = NULL;
    CLEANUP(json_free)
    struct json *groups = desired(e, key, informer_get(e->services, key), &template);
    const char *manager = template ? manager_of(template) : NULL;
    const struct json **have = xcalloc(smap_size(&s->slices) + 1, sizeof *have);
    CLEANUP(json_free) struct json *others = json_array();
    size_t n = 0;
    struct smap_entry *se;
    SMAP_FOREACH (se, &s->slices) {
        const struct json *slice = informer_get(e->slices, se->key);
        if (slice && streq_null(manager_of(slice), manager)) {
            have[n++] = slice;
        } else if (slice) {
            struct json *step = json_append(others, json_object());
            json_set_string(step, "verb", "DELETE");
            json_set(step, "object", json_clone(slice));
        }
    }
    json_free(s->steps);
    s->at = 0;
    s->steps = groups ? slices_diff(groups, have, n, template) : json_array();
    free(have);
    while (json_count(others)) {
        json_append(s->steps, json_take_at(others, 0));
    }
    next_step(e, w);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    (*key == KEY_ENDPOINTS ? sync_endpoints : sync_slices)(ctx, w, key + 2);
}

/* ---- events ---- */

/* Logs and records an Event for a pod; the Pod object itself is not kept. */
static void report_ignored(struct endpoints *e, const struct endpoint_pod *pod, const char *why)
{
    static struct log_limit limit;
    CLEANUP(json_free) struct json *about = json_object();
    struct json *metadata = json_ensure_object(about, "metadata");
    json_set_string(metadata, "namespace", pod->namespace);
    json_set_string(metadata, "name", pod->name);
    json_set_string(metadata, "uid", pod->uid);
    log_limited(&limit, LOG_WARN, "reported address ignored", "pod=%s/%s node=%s reason=\"%s\"",
                pod->namespace, pod->name, pod->node ? pod->node : "", why);
    recorder_event(e->recorder, "v1", "Pod", about, EVENT_WARNING, "AddressIgnored", why);
}

/* Decides whether the pod's reported address is accepted. */
static void settle(struct endpoints *e, struct endpoint_pod *pod, const struct endpoint_pod *old)
{
    struct err why = {0};
    const struct json *subnet = pod->node ? informer_get(e->subnets, pod->node) : NULL;
    bool reported_before = old && !old->ip && streq_null(old->reported, pod->reported);
    /* Without a HostSubnet nothing is reported: it may arrive after the pod. */
    if (endpoint_pod_settle(pod, subnet, &e->foreign, &why) < 0 && subnet && !reported_before &&
        !pod->ended) {
        report_ignored(e, pod, why.text);
    }
}

/* Decides again for the pods of the node (NULL: for all pods). */
static void settle_all(struct endpoints *e, const char *node)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &e->index.pods) {
        struct endpoint_pod *pod = se->value;
        if (node && !streq_null(pod->node, node)) {
            continue;
        }
        bool had = pod->ip != NULL;
        settle(e, pod, NULL);
        if (had != (pod->ip != NULL)) {
            endpoint_index_services(&e->index, pod, enqueue_both, e);
        }
    }
}

static void synced(void *state)
{
    struct endpoints *e = state;
    e->started = true;
    settle_all(e, NULL);
}

static void service_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct endpoints *e = ctx;
    struct service *s = smap_get(&e->states, key);
    if (s) {
        s->gone = false;
    }
    endpoint_index_select(&e->index, key, json_path(old, "spec", "selector", NULL),
                          json_path(obj, "spec", "selector", NULL));
    enqueue_both(e, key);
}

static void service_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct endpoints *e = ctx;
    endpoint_index_select(&e->index, key, json_path(obj, "spec", "selector", NULL), NULL);
    state_of(e, key)->gone = true;
    enqueue_both(e, key);
}

/* The key of the service, if this controller manages the slice; owned. */
static char *service_of(const struct json *slice)
{
    const char *manager = manager_of(slice);
    const char *name = json_path_string(slice, "metadata", "labels", SLICE_SERVICE_LABEL, NULL);
    bool ours = streq_null(manager, SLICE_MANAGER) || streq_null(manager, SLICE_MIRROR_MANAGER);
    return ours && name ? xasprintf("%s/%s", obj_namespace(slice), name) : NULL;
}

static void slice_leaves(struct endpoints *e, const char *key, const struct json *slice)
{
    CLEANUP_FREE char *service = slice ? service_of(slice) : NULL;
    if (service) {
        (void) smap_remove(&state_of(e, service)->slices, key);
        enqueue(e, KEY_SLICES, service);
    }
}

static void slice_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct endpoints *e = ctx;
    slice_leaves(e, key, old);
    CLEANUP_FREE char *service = service_of(obj);
    if (service) {
        smap_set(&state_of(e, service)->slices, key, e);
        enqueue(e, KEY_SLICES, service);
    }
}

static void slice_deleted(void *ctx, const char *key, const struct json *obj)
{
    slice_leaves(ctx, key, obj);
}

static void subnet_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    static const char *const fields[] = {"hostIP", "subnet"};
    struct endpoints *e = ctx;
    bool same = old && obj;
    for (size_t i = 0; same && i < ARRAY_SIZE(fields); i++) {
        same = streq_null(json_path_string(old, fields[i], NULL),
                          json_path_string(obj, fields[i], NULL));
    }
    if (e->started && !same) {
        settle_all(e, key);
    }
}

static void subnet_deleted(void *ctx, const char *key, const struct json *obj)
{
    subnet_changed(ctx, key, obj, NULL);
}

static void pod_put(struct endpoints *e, const char *key, struct endpoint_pod *pod)
{
    if (pod && e->started) { /* At start all pods are settled together. */
        settle(e, pod, smap_get(&e->index.pods, key));
    }
    struct endpoint_pod *old = endpoint_index_put(&e->index, key, pod);
    if (!old || !pod || !endpoint_pod_equal(old, pod)) {
        if (old) {
            endpoint_index_services(&e->index, old, enqueue_both, e);
        }
        if (pod) {
            endpoint_index_services(&e->index, pod, enqueue_both, e);
        }
    }
    endpoint_pod_free(old);
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct endpoints *e = ctx;
    (void) smap_remove(&e->unseen, key);
    pod_put(e, key, endpoint_pod_new(obj));
}

static void pod_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct endpoints *e = ctx;
    (void) smap_remove(&e->unseen, key);
    pod_put(e, key, NULL);
}

static void pods_listing(void *ctx)
{
    struct endpoints *e = ctx;
    struct smap_entry *se;
    smap_clear(&e->unseen);
    SMAP_FOREACH (se, &e->index.pods) {
        smap_set(&e->unseen, se->key, e);
    }
}

static void pods_listed(void *ctx)
{
    struct endpoints *e = ctx;
    struct smap_entry *se;
    SMAP_FOREACH (se, &e->unseen) {
        pod_put(e, se->key, NULL);
    }
    smap_clear(&e->unseen);
}

static void endpoints_changed(void *ctx, const char *key, const struct json *old,
                              const struct json *obj)
{
    enqueue_both(ctx, key);
}

static void endpoints_deleted(void *ctx, const char *key, const struct json *obj)
{
    enqueue_both(ctx, key);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *err)
{
    struct endpoints *e = NEW(struct endpoints);
    e->recorder = env->recorder;
    e->queue = env->queue;
    e->foreign = *(const struct address_ranges *) config;
    endpoint_index_init(&e->index);
    smap_init(&e->states, state_free);
    smap_init(&e->unseen, NULL);
    *ret = e;
    return 0;
}

static void stop(void *state)
{
    struct endpoints *e = state;
    endpoint_index_done(&e->index);
    smap_done(&e->states);
    smap_done(&e->unseen);
    free(e);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "services",
     .informer = CONTROLLER_INFORMER(struct endpoints, services),
     .changed = service_changed,
     .deleted = service_deleted},
    {.api_version = "v1",
     .plural = "endpoints",
     .informer = CONTROLLER_INFORMER(struct endpoints, endpoints),
     .changed = endpoints_changed,
     .deleted = endpoints_deleted},
    {.api_version = "v1",
     .plural = "pods",
     .changed = pod_changed,
     .deleted = pod_deleted,
     .listing = pods_listing,
     .listed = pods_listed,
     .transient = true},
    {.api_version = NETWORK_API_VERSION,
     .plural = "hostsubnets",
     .informer = CONTROLLER_INFORMER(struct endpoints, subnets),
     .changed = subnet_changed,
     .deleted = subnet_deleted},
    {.api_version = DISCOVERY_VERSION,
     .plural = "endpointslices",
     .informer = CONTROLLER_INFORMER(struct endpoints, slices),
     .changed = slice_changed,
     .deleted = slice_deleted},
};

const struct controller endpoints_controller = {
    .name = "endpoints",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 32,
    .start = start,
    .synced = synced,
    .reconcile = begin,
    .stop = stop,
};
