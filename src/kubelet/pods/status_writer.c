/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a pod at the API: one request at a time, always the newest state, so that no older
 * write follows a newer one.  A pod with another UID is never written.  The status of a static pod is
 * written to its mirror while there is one, and nothing waits for that. */
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/workers_priv.h"

LOG_MODULE("pods");

#define RETRY_MIN_MS 250
#define RETRY_MAX_MS 10000

static void retry(struct worker *w, const char *what, const char *text)
{
    uint64_t delay =
        time_backoff_ms(w->patch_failures++, RETRY_MIN_MS, RETRY_MAX_MS, hash_string(w->uid));
    w->pods->stats.status_errors++;
    log_debug(what, "pod=%s/%s error=\"%s\"", w->ns, w->name, text);
    loop_timer_arm(w->patch_timer, delay);
}

static void patched(void *ctx, int error, const char *text, struct json *obj)
{
    struct worker *w = ctx;
    CLEANUP(json_free) struct json *sent = TAKE(w->sent);
    w->patch = NULL;
    w->pods->stats.status_writes++;
    if (error == 0 && w->is_static && !streq_null(w->mirror_uid, pod_uid(obj))) {
        worker_wake(w); /* Its mirror is another object by now. */
        return;
    }
    if (error == 0) {
        w->patch_failures = 0;
        worker_set_stored(w, json_get(obj, "status"));
        /* The server may have another form of it, which is as good. */
        w->written = json_equal(sent, w->status);
        worker_wake(w);
        return;
    }
    if (error == -ENOENT && !w->is_static) {
        /* The informer says that it is gone, but perhaps late: it may just be connecting again. */
        loop_timer_arm(w->patch_timer, RETRY_MAX_MS);
        return;
    }
    retry(w, "a pod's status was not written", text);
}

bool status_is_written(const struct worker *w)
{
    if (w->o.gone || w->frozen || w->is_static) {
        return true;
    }
    return !w->patch && w->written;
}

/* The UID of the object that has the pod's status; NULL: there is none. */
static const char *object_uid(const struct worker *w)
{
    return w->is_static ? w->mirror_uid : w->uid;
}

void status_write(struct worker *w)
{
    const char *uid = object_uid(w);
    if (w->patch || w->o.gone || w->frozen || !uid || !w->status || w->written ||
        loop_timer_armed(w->patch_timer)) {
        return;
    }
    CLEANUP(json_free) struct json *patch = pod_status_patch(worker_stored(w), w->status, uid);
    if (!patch) {
        w->written = true;
        return;
    }
    w->sent = json_clone(w->status);
    CLEANUP_FREE char *path = api_path("v1", "pods", w->ns, w->name, "status");
    w->patch = api_request(w->pods->c.client, "PATCH", path,
                           "application/strategic-merge-patch+json", patch, patched, w);
}

static void removed(void *ctx, int error, const char *text, struct json *obj)
{
    struct worker *w = ctx;
    w->remove = NULL;
    if (error == 0 || error == -ENOENT || error == -ESTALE) {
        return; /* The informer reports it. */
    }
    retry(w, "a pod that has ended was not deleted", text);
}

void status_delete_object(struct worker *w)
{
    if (w->remove || w->o.gone || loop_timer_armed(w->patch_timer)) {
        return;
    }
    CLEANUP(json_free) struct json *options = json_object();
    json_set_string(options, "kind", "DeleteOptions");
    json_set_string(options, "apiVersion", "v1");
    json_set_int(options, "gracePeriodSeconds", 0);
    json_set_string(json_ensure_object(options, "preconditions"), "uid", w->uid);
    CLEANUP_FREE char *path = api_path("v1", "pods", w->ns, w->name, NULL);
    w->remove = api_request(w->pods->c.client, "DELETE", path, NULL, options, removed, w);
}
