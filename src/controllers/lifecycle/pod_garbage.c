/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/pod_garbage.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"

#include <stdlib.h>

LOG_MODULE("pod_garbage");

#define LOOK_MS 20000
#define QUARANTINE_MS 40000
#define STRATEGIC "application/strategic-merge-patch+json"

/* Keys of the queue: "o NAMESPACE/NAME", a pod of a node that is gone; "e NAMESPACE/NAME", one that
 * has ended and is too many. */
#define KEY_ORPHAN 'o'
#define KEY_ENDED 'e'

struct pod_garbage {
    struct controller_env env;
    struct informer *pods, *nodes;
    uint64_t quarantine_ms;
    unsigned threshold;
    struct smap gone; /* Name of a node that pods name, and is absent, to 'struct absence'. */
    const struct json **ended; /* Of a look. */
    size_t n_ended, room;
    struct loop_timer *timer;
};

struct absence {
    uint64_t since_ms;
    bool named; /* By a pod in this look. */
};

/* ---- pure ---- */

bool pod_garbage_has_ended(const struct json *pod)
{
    const char *phase = json_get_text(json_get(pod, "status"), "phase");
    return *phase && !streq(phase, "Pending") && !streq(phase, "Running") &&
           !streq(phase, "Unknown");
}

static bool is_evicted(const struct json *pod)
{
    return streq(json_get_text(json_get(pod, "status"), "reason"), "Evicted");
}

/* Times of one form compare as texts. */
static int compare(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *) a, *y = *(const struct json *const *) b;
    if (is_evicted(x) != is_evicted(y)) {
        return is_evicted(x) ? -1 : 1;
    }
    int r = strcmp(json_get_text(json_get(x, "metadata"), "creationTimestamp"),
                   json_get_text(json_get(y, "metadata"), "creationTimestamp"));
    return r ? r : strcmp(obj_name(x), obj_name(y));
}

void pod_garbage_sort(const struct json **pods, size_t n)
{
    if (n) {
        qsort(pods, n, sizeof(*pods), compare);
    }
}

/* ---- the look at all pods ---- */

static void add_key(struct pod_garbage *g, char type, const struct json *pod)
{
    CLEANUP_FREE char *key = xasprintf("%c %s/%s", type, obj_namespace(pod), obj_name(pod));
    workqueue_add(g->env.queue, key);
}

static const char *node_of(const struct json *pod)
{
    return json_get_text(json_get(pod, "spec"), "nodeName");
}

/* Whether the node has been absent for long enough. */
static bool is_gone(struct pod_garbage *g, const char *node)
{
    struct absence *a = smap_get(&g->gone, node);
    if (!*node || informer_get(g->nodes, node)) {
        return false;
    }
    if (!a) {
        a = NEW(struct absence);
        a->since_ms = loop_now_ms(g->env.loop);
        smap_set(&g->gone, node, a);
    }
    a->named = true;
    return loop_now_ms(g->env.loop) - a->since_ms >= g->quarantine_ms;
}

static void look_at(void *ctx, const char *key, const struct json *pod)
{
    struct pod_garbage *g = ctx;
    if (is_gone(g, node_of(pod))) {
        add_key(g, KEY_ORPHAN, pod);
    } else if (g->threshold && pod_garbage_has_ended(pod) && !obj_is_terminating(pod)) {
        if (g->n_ended == g->room) {
            g->room = MAX(g->room * 2, 64);
            g->ended = xreallocarray(g->ended, g->room, sizeof(*g->ended));
        }
        g->ended[g->n_ended++] = pod;
    }
}

static void forget_unnamed(struct pod_garbage *g)
{
    for (bool again = true; again;) {
        struct smap_entry *e;
        again = false;
        SMAP_FOREACH (e, &g->gone) {
            if (!((struct absence *) e->value)->named) {
                (void) smap_remove(&g->gone, e->key);
                again = true;
                break;
            }
        }
    }
    struct smap_entry *e;
    SMAP_FOREACH (e, &g->gone) {
        ((struct absence *) e->value)->named = false;
    }
}

static void look(void *ctx)
{
    struct pod_garbage *g = ctx;
    g->n_ended = 0;
    informer_each(g->pods, look_at, g);
    forget_unnamed(g);
    if (g->n_ended > g->threshold) {
        size_t many = g->n_ended - g->threshold;
        log_info("pods that have ended are deleted", "pods=%zu kept=%u", many, g->threshold);
        pod_garbage_sort(g->ended, g->n_ended);
        for (size_t i = 0; i < many; i++) {
            add_key(g, KEY_ENDED, g->ended[i]);
        }
    }
    free(TAKE(g->ended));
    g->room = 0;
    loop_timer_arm(g->timer, MIN(LOOK_MS, g->quarantine_ms / 2 + 1));
}

/* ---- a pod ---- */

static char *pod_path(const struct json *pod, const char *part)
{
    return api_path("v1", "pods", obj_namespace(pod), obj_name(pod), part);
}

/* The pod of a key; NULL: it is gone. */
static const struct json *find_pod(const struct pod_garbage *g, const struct work *w)
{
    return informer_get(g->pods, work_key(w) + 2);
}

static void ended(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    /* -ESTALE: another pod has that name by now. */
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "delete a pod that nobody deletes", text);
    } else {
        work_done(w);
    }
}

static void end(struct work *w, const struct json *pod)
{
    CLEANUP(json_free) struct json *options = json_object();
    CLEANUP_FREE char *path = pod_path(pod, NULL);
    json_set_int(options, "gracePeriodSeconds", 0);
    json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(pod));
    work_request(w, "DELETE", path, options, ended);
}

static void marked(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    const struct json *pod = find_pod(ctx, w);
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "mark a pod of a node that is gone", text);
    } else if (error < 0 || !pod) {
        work_done(w);
    } else {
        end(w, pod);
    }
}

/* Owners of pods count a failed one apart from one that was deleted. */
static void mark(struct work *w, const struct json *pod)
{
    CLEANUP_FREE char *path = pod_path(pod, "status");
    CLEANUP(json_free) struct json *patch = json_object();
    char now[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms(), now);
    json_set_string(json_ensure_object(patch, "metadata"), "uid", obj_uid(pod));
    struct json *status = json_ensure_object(patch, "status");
    json_set_string(status, "phase", "Failed");
    struct json *c = json_append(json_ensure_array(status, "conditions"), json_object());
    json_set_string(c, "type", "DisruptionTarget");
    json_set_string(c, "status", "True");
    json_set_string(c, "reason", "DeletionByPodGC");
    json_set_string(c, "message", "PodGC: node no longer exists");
    json_set_string(c, "lastTransitionTime", now);
    work_request_as(w, "PATCH", path, NULL, STRATEGIC, patch, marked);
}

static void node_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    const struct json *pod = find_pod(ctx, w);
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read the node of a pod", text);
    } else if (error == 0 || !pod) {
        work_done(w);
    } else if (pod_garbage_has_ended(pod)) {
        end(w, pod);
    } else {
        log_info("the node of a pod is gone", "namespace=%s pod=%s node=%s", obj_namespace(pod),
                 obj_name(pod), node_of(pod));
        mark(w, pod);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    const struct json *pod = find_pod(ctx, w);
    if (!pod) {
        work_done(w);
    } else if (*key == KEY_ORPHAN) {
        CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, node_of(pod), NULL);
        work_request(w, "GET", path, NULL, node_read);
    } else if (pod_garbage_has_ended(pod)) {
        end(w, pod);
    } else {
        work_done(w);
    }
}

/* ---- start and stop ---- */

static void ignored(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    (void) ctx;
}

static void node_deleted(void *ctx, const char *key, const struct json *node)
{
    struct pod_garbage *g = ctx;
    (void) smap_remove(&g->gone, key);
}

static void node_changed(void *ctx, const char *key, const struct json *old,
                         const struct json *node)
{
    node_deleted(ctx, key, node);
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    (void) ctx;
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    const struct pod_garbage_config *cfg = config;
    struct pod_garbage *g = NEW(struct pod_garbage);
    g->env = *env;
    g->quarantine_ms = cfg->quarantine_ms ? cfg->quarantine_ms : QUARANTINE_MS;
    g->threshold = cfg->threshold;
    smap_init(&g->gone, free);
    g->timer = loop_timer_new(env->loop, look, g);
    *ret = g;
    return 0;
}

static void synced(void *state)
{
    look(state);
}

static void stop(void *state)
{
    struct pod_garbage *g = state;
    loop_timer_free(g->timer);
    smap_done(&g->gone);
    free(g);
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct pod_garbage, pods),
     .changed = ignored,
     .deleted = pod_deleted},
    {.api_version = "v1",
     .plural = "nodes",
     .informer = CONTROLLER_INFORMER(struct pod_garbage, nodes),
     .changed = node_changed,
     .deleted = node_deleted},
};

const struct controller pod_garbage_controller = {
    .name = "pod_garbage",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .synced = synced,
    .reconcile = reconcile,
    .stop = stop,
};
