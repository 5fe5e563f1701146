/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/pod_deletion.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/lifecycle/node_health.h"

#define OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

struct pod_deletion {
    struct workqueue *queue; /* Keys are "namespace/name". */
    struct informer *pods, *nodes;
};

int64_t pod_deletion_in_ms(const struct json *pod, int64_t now_ms)
{
    int64_t end_ms;
    const char *end = json_path_string(pod, "metadata", "deletionTimestamp", NULL);
    if (!end || time_parse(end, &end_ms) < 0) {
        return -1;
    }
    return MAX(end_ms + POD_DELETION_SLACK_MS - now_ms, 0);
}

bool pod_deletion_is_by_clock(const struct json *node)
{
    const char *runtime =
        json_path_string(node, "status", "nodeInfo", "containerRuntimeVersion", NULL);
    return !runtime || !*runtime;
}

bool pod_deletion_is_forced(const struct json *node)
{
    const struct json *taint;
    JSON_FOREACH (taint, json_path(node, "spec", "taints", NULL)) {
        if (streq(json_get_text(taint, "key"), OUT_OF_SERVICE)) {
            return node_health_state(node) != NODE_READY;
        }
    }
    return false;
}

static const char *node_of(const struct json *pod)
{
    return json_get_text(json_get(pod, "spec"), "nodeName");
}

static char *path_of(const char *key)
{
    const char *slash = strchr(key, '/');
    CLEANUP_FREE char *ns = xstrndup(key, slash ? (size_t) (slash - key) : 0);
    return api_path("v1", "pods", ns, slash ? slash + 1 : key, NULL);
}

static void deleted(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    /* -ESTALE: another pod has that name by now. */
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "end the deletion of a pod", text);
    } else {
        work_done(w);
    }
}

static void end(struct work *w, const struct json *pod)
{
    CLEANUP(json_free) struct json *options = json_object();
    CLEANUP_FREE char *path = path_of(work_key(w));
    json_set_int(options, "gracePeriodSeconds", 0);
    json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(pod));
    work_request(w, "DELETE", path, options, deleted);
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct pod_deletion *p = ctx;
    const struct json *pod = informer_get(p->pods, key);
    const struct json *node = pod ? informer_get(p->nodes, node_of(pod)) : NULL;
    int64_t left = pod ? pod_deletion_in_ms(pod, time_wall_ms()) : -1;
    if (left >= 0 && pod_deletion_is_forced(node)) {
        end(w, pod);
    } else if (left < 0 || !pod_deletion_is_by_clock(node)) {
        work_done(w);
    } else if (left > 0) {
        work_wait(w, (uint64_t) left);
    } else {
        end(w, pod);
    }
}

static bool is_ending(const struct json *pod)
{
    return obj_is_terminating(pod) &&
           json_get_int_or(json_path(pod, "metadata", "deletionGracePeriodSeconds", NULL), 0) > 0;
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct pod_deletion *p = ctx;
    if (is_ending(obj)) {
        workqueue_add(p->queue, key);
    }
}

struct search {
    struct pod_deletion *p;
    const char *node;
};

static void add_if_there(void *ctx, const char *key, const struct json *pod)
{
    const struct search *s = ctx;
    if (is_ending(pod) && streq(node_of(pod), s->node)) {
        workqueue_add(s->p->queue, key);
    }
}

static void add_pods_of(struct pod_deletion *p, const char *node)
{
    struct search s = {p, node};
    informer_each(p->pods, add_if_there, &s);
}

static void node_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    if ((pod_deletion_is_by_clock(obj) && !pod_deletion_is_by_clock(old)) ||
        (pod_deletion_is_forced(obj) && !pod_deletion_is_forced(old))) {
        add_pods_of(ctx, key);
    }
}

static void node_deleted(void *ctx, const char *key, const struct json *obj)
{
    add_pods_of(ctx, key);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct pod_deletion *p = NEW(struct pod_deletion);
    p->queue = env->queue;
    *ret = p;
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct pod_deletion, pods),
     .changed = pod_changed},
    {.api_version = "v1",
     .plural = "nodes",
     .informer = CONTROLLER_INFORMER(struct pod_deletion, nodes),
     .changed = node_changed,
     .deleted = node_deleted},
};

const struct controller pod_deletion_controller = {
    .name = "pod_deletion",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 4,
    .start = start,
    .reconcile = begin,
    .stop = free,
};
