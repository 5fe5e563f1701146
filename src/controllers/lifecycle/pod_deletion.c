/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/pod_deletion.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "controller/obj.h"

struct pod_deletion {
    struct workqueue *queue; /* Keys are "namespace/name". */
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

static void got(void *ctx, struct work *w, int error, const char *text, struct json *pod)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read a pod", text);
        return;
    }
    int64_t left = pod ? pod_deletion_in_ms(pod, time_wall_ms()) : -1;
    if (left < 0) {
        work_done(w);
    } else if (left > 0) {
        work_wait(w, (uint64_t) left);
    } else {
        CLEANUP(json_free) struct json *options = json_object();
        CLEANUP_FREE char *path = path_of(work_key(w));
        const char *uid = json_path_string(pod, "metadata", "uid", NULL);
        json_set_int(options, "gracePeriodSeconds", 0);
        json_set_string(json_ensure_object(options, "preconditions"), "uid", uid ? uid : "");
        work_request(w, "DELETE", path, options, deleted);
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    CLEANUP_FREE char *path = path_of(key);
    work_request_as(w, "GET", path, API_ACCEPT_METADATA, NULL, NULL, got);
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct pod_deletion *p = ctx;
    if (obj_is_terminating(obj) &&
        json_get_int_or(json_path(obj, "metadata", "deletionGracePeriodSeconds", NULL), 0) > 0) {
        workqueue_add(p->queue, key);
    }
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
     .changed = pod_changed,
     .transient = true,
     .metadata = true},
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
