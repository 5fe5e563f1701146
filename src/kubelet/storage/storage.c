/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/storage/storage.h"

#include "api/obj.h"
#include "api/quantity.h"
#include "base/log.h"
#include "base/mem.h"
#include "controller/workqueue.h"
#include "kubelet/storage/recycle.h"
#include "kubelet/storage/rules.h"
#include "kubelet/volumes/jobs.h"
#include "kubelet/volumes/local_dirs.h"
#include "storage/fields.h"

#include <dirent.h>

LOG_MODULE("storage");

#define CAPACITY_NS "kube-system"
#define MERGE "application/merge-patch+json"
#define PARALLEL 8
#define FREE_WAIT_MS 5000
#define CAPACITY_MS 60000
#define CAPACITY_SOON_MS 1000
#define MEASURE_MS 600000
#define CLAIM_KEY "claim/"
#define VOLUME_KEY "volume/"
#define CAPACITY_KEY "capacity/"

struct storage {
    struct storage_config c;
    char *node_name, *root_dir, *folder, *prefixes;
    struct informer *claims, *volumes, *classes;
    struct workqueue *queue;
    struct jobs *jobs;
    struct loop_timer *capacity_timer;
    struct smap used; /* Name of a volume to a size_t: bytes that it took when measured last. */
    struct smap published; /* Name of a class to the bytes that were published last, plus 1. */
    uint64_t measured_ms;
    bool measuring, closing;
};

/* One task of a worker thread for a key of the queue. */
struct task {
    struct storage *s;
    struct work *w;      /* NULL: no key waits for it. */
    struct json *object; /* The claim or the volume. */
    struct json *class;
    char *folder, *name, *prefixes, *root_dir;
    int64_t bytes, margin, outstanding;
    bool image;
    struct json *measured; /* Name to bytes. */
    int error;
    struct err err;
};

static struct task *task_new(struct storage *s, struct work *w)
{
    struct task *t = NEW(struct task);
    t->s = s;
    t->w = w;
    t->folder = xstrdup(s->folder);
    t->root_dir = xstrdup(s->root_dir);
    t->prefixes = s->prefixes ? xstrdup(s->prefixes) : NULL;
    return t;
}

static void task_free(struct task *t)
{
    json_free(t->object);
    json_free(t->class);
    json_free(t->measured);
    free(t->folder);
    free(t->root_dir);
    free(t->prefixes);
    free(t->name);
    free(t);
}

/* ---- capacity ---- */

struct sum {
    struct storage *s;
    int64_t bytes;
};

static int64_t size_of(const struct json *pv)
{
    int64_t n = 0;
    const char *text = json_path_string(pv, "spec", "capacity", "storage", NULL);
    return text && api_quantity_value(text, 0, &n, NULL) == 0 ? n : 0;
}

/* What the volume may still take. */
static void add_outstanding(void *ctx, const char *key, const struct json *pv)
{
    struct sum *sum = ctx;
    struct storage *s = sum->s;
    if (local_volume_is_own(pv, s->node_name, s->folder)) {
        int64_t left = size_of(pv) - (int64_t) (uintptr_t) smap_get(&s->used, obj_name(pv));
        if (left > 0 && __builtin_add_overflow(sum->bytes, left, &sum->bytes)) {
            sum->bytes = INT64_MAX;
        }
    }
}

static int64_t outstanding(struct storage *s)
{
    struct sum sum = {s, 0};
    informer_each(s->volumes, add_outstanding, &sum);
    return sum.bytes;
}

static void add_name(void *ctx, const char *key, const struct json *pv)
{
    struct task *t = ctx;
    if (local_volume_is_own(pv, t->s->node_name, t->s->folder)) {
        json_set_int(t->measured, obj_name(pv), 0);
    }
}

static void measure(void *ctx)
{
    struct task *t = ctx;
    for (size_t i = 0; i < json_count(t->measured); i++) {
        CLEANUP_FREE char *name = xstrdup(json_key_at(t->measured, i));
        int64_t bytes;
        if (local_dir_measure(t->folder, name, &bytes, NULL) == 0) {
            json_set_int(t->measured, name, bytes);
        }
    }
}

static void add_classes(void *ctx, const char *key, const struct json *class)
{
    struct storage *s = ctx;
    if (streq(json_get_text(class, "provisioner"), STORAGE_LOCAL_PROVISIONER)) {
        CLEANUP_FREE char *work = xasprintf(CAPACITY_KEY "%s", key);
        workqueue_add(s->queue, work);
    }
}

static void measured(void *ctx)
{
    struct task *t = ctx;
    struct storage *s = t->s;
    if (!s->closing) {
        s->measuring = false;
        s->measured_ms = loop_now_ms(s->c.loop);
        smap_done(&s->used);
        smap_init(&s->used, NULL);
        for (size_t i = 0; i < json_count(t->measured); i++) {
            const struct json *pv = informer_get(s->volumes, json_key_at(t->measured, i));
            int64_t bytes = json_get_int_or(json_at(t->measured, i), 0);
            smap_set(&s->used, json_key_at(t->measured, i), (void *) (uintptr_t) bytes);
            if (pv && bytes > size_of(pv)) {
                log_warn("a local volume holds more than its capacity",
                         "volume=%s bytes=%lld capacity=%lld", obj_name(pv), (long long) bytes,
                         (long long) size_of(pv));
            }
        }
        informer_each(s->classes, add_classes, s);
    }
    task_free(t);
}

static bool all_synced(const struct storage *s)
{
    return informer_synced(s->claims) && informer_synced(s->volumes) && informer_synced(s->classes);
}

static void on_capacity_timer(void *ctx)
{
    struct storage *s = ctx;
    uint64_t now = loop_now_ms(s->c.loop);
    loop_timer_arm(s->capacity_timer, CAPACITY_MS);
    if (!all_synced(s)) {
        return;
    }
    if (!s->measuring && (!s->measured_ms || now - s->measured_ms >= MEASURE_MS)) {
        struct task *t = task_new(s, NULL);
        t->measured = json_object();
        s->measuring = true;
        informer_each(s->volumes, add_name, t);
        jobs_start(s->jobs, measure, measured, t);
    } else {
        informer_each(s->classes, add_classes, s);
    }
}

static void capacity_soon(struct storage *s)
{
    loop_timer_arm(s->capacity_timer, CAPACITY_SOON_MS);
}

static void read_free(void *ctx)
{
    struct task *t = ctx;
    t->error = local_dir_free_bytes(t->folder, &t->bytes, &t->err);
}

static void capacity_written(void *ctx, struct work *w, int error, const char *text,
                             struct json *obj)
{
    struct storage *s = ctx;
    const char *class = work_key(w) + strlen(CAPACITY_KEY);
    if (error < 0) {
        smap_remove(&s->published, class);
        work_retry(w, error, "publish the capacity of local volumes", text);
    } else {
        work_done(w);
    }
}

static void capacity_read(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct storage *s = ctx;
    const struct json *node = s->c.node(s->c.ctx);
    const char *class = work_key(w) + strlen(CAPACITY_KEY);
    uintptr_t value = (uintptr_t) smap_get(&s->published, class);
    if ((error < 0 && error != -ENOENT) || !node || !value) {
        work_retry(w, error < 0 ? error : -EAGAIN, "read the capacity of local volumes",
                   error < 0 ? text : "the node is not known yet");
        return;
    }
    CLEANUP(json_free)
    struct json *want = local_capacity_make(CAPACITY_NS, class, node, (int64_t) (value - 1));
    CLEANUP_FREE char *path = api_path("storage.k8s.io/v1", "csistoragecapacities", CAPACITY_NS,
                                       error < 0 ? NULL : obj_name(want), NULL);
    if (error == 0) {
        json_set_string(json_get(want, "metadata"), "resourceVersion",
                        json_get_text(json_get(obj, "metadata"), "resourceVersion"));
    }
    work_request(w, error < 0 ? "POST" : "PUT", path, want, capacity_written);
}

static void free_read(void *ctx)
{
    struct task *t = ctx;
    struct storage *s = t->s;
    if (s->closing) {
        task_free(t);
        return;
    }
    struct work *w = t->w;
    const char *class = work_key(w) + strlen(CAPACITY_KEY);
    const struct json *node = s->c.node(s->c.ctx);
    int64_t left = local_capacity_left(t->bytes, t->margin, outstanding(s));
    /* Changes of less than a hundredth are not worth a write. */
    int64_t before = (int64_t) (uintptr_t) smap_get(&s->published, class) - 1;
    int64_t change = left > before ? left - before : before - left;
    if (t->error < 0 || !node) {
        work_retry(w, t->error < 0 ? t->error : -EAGAIN, "read the capacity of local volumes",
                   t->error < 0 ? t->err.text : "the node is not known yet");
    } else if (before >= 0 && change <= before / 100) {
        work_done(w);
    } else {
        CLEANUP(json_free) struct json *want = local_capacity_make(CAPACITY_NS, class, node, left);
        CLEANUP_FREE char *path = api_path("storage.k8s.io/v1", "csistoragecapacities", CAPACITY_NS,
                                           obj_name(want), NULL);
        smap_set(&s->published, class, (void *) (uintptr_t) (left + 1));
        work_request(w, "GET", path, NULL, capacity_read);
    }
    task_free(t);
}

static void sync_capacity(struct storage *s, struct work *w)
{
    const struct json *class = informer_get(s->classes, work_key(w) + strlen(CAPACITY_KEY));
    if (!class) {
        work_done(w);
        return;
    }
    struct task *t = task_new(s, w);
    t->margin = s->c.margin_bytes;
    jobs_start(s->jobs, read_free, free_read, t);
}

/* ---- making volumes ---- */

static void claim_event(struct storage *s, const struct json *claim, enum recorder_type type,
                        const char *reason, const char *text)
{
    recorder_event(s->c.recorder, "v1", "PersistentVolumeClaim", claim, type, reason, text);
}

static void unselected(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "ask for another node for a claim", text);
    } else {
        work_done(w);
    }
}

/* Reports that a volume cannot be made for the claim.  A node that has no room gives the claim back to
 * the scheduler; other failures are tried again later. */
static void claim_failed(struct storage *s, struct work *w, const struct json *claim,
                         const char *class, int error, const char *text)
{
    CLEANUP_FREE char *message =
        xasprintf("failed to provision volume with StorageClass \"%s\": %s", class, text);
    claim_event(s, claim, EVENT_WARNING, "ProvisioningFailed", message);
    if (error == -ENOSPC) {
        CLEANUP(json_free) struct json *patch = local_unselect_patch();
        CLEANUP_FREE char *path =
            api_path("v1", "persistentvolumeclaims", obj_namespace(claim), obj_name(claim), NULL);
        work_request_as(w, "PATCH", path, NULL, MERGE, patch, unselected);
        return;
    }
    work_retry(w, error, "make a local volume", text);
}

static void make_dir(void *ctx)
{
    struct task *t = ctx;
    int64_t free_bytes;
    t->error = local_dir_free_bytes(t->folder, &free_bytes, &t->err);
    if (t->error == 0 && local_capacity_left(free_bytes, t->margin, t->outstanding) < t->bytes) {
        t->error = err_set(&t->err, -ENOSPC, "the node has not enough free space");
    }
    if (t->error == 0) {
        t->error = local_is_block(t->object)
                       ? local_device_make(t->folder, t->name, t->bytes, &t->err)
                       : local_dir_make(t->folder, t->name, t->image ? t->bytes : 0, &t->err);
    }
}

static void volume_created(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct storage *s = ctx;
    const struct json *claim = informer_get(s->claims, work_key(w) + strlen(CLAIM_KEY));
    if (error < 0 && error != -EEXIST) {
        if (claim) {
            claim_failed(s, w, claim, storage_claim_class(claim), error, text);
        } else {
            work_retry(w, error, "create a PersistentVolume", text);
        }
        return;
    }
    if (error == 0 && claim) {
        CLEANUP_FREE char *message = xasprintf("Successfully provisioned volume %s", obj_name(obj));
        claim_event(s, claim, EVENT_NORMAL, "ProvisioningSucceeded", message);
        log_info("a local volume was made", "volume=%s claim=%s", obj_name(obj),
                 work_key(w) + strlen(CLAIM_KEY));
    }
    capacity_soon(s);
    work_done(w);
}

static void dir_made(void *ctx)
{
    struct task *t = ctx;
    struct storage *s = t->s;
    if (s->closing) {
        task_free(t);
        return;
    }
    if (t->error < 0) {
        claim_failed(s, t->w, t->object, obj_name(t->class), t->error, t->err.text);
    } else {
        CLEANUP(json_free)
        struct json *pv = local_volume_make(t->object, t->class, s->node_name, s->folder);
        CLEANUP_FREE char *path = api_path("v1", "persistentvolumes", NULL, NULL, NULL);
        work_request(t->w, "POST", path, pv, volume_created);
    }
    task_free(t);
}

static void sync_claim(struct storage *s, struct work *w)
{
    const struct json *claim = informer_get(s->claims, work_key(w) + strlen(CLAIM_KEY));
    const char *name = claim ? storage_claim_class(claim) : NULL;
    const struct json *class = name && *name ? informer_get(s->classes, name) : NULL;
    if (!claim || !class || !local_claim_is_selected(claim, s->node_name) ||
        !streq(json_get_text(class, "provisioner"), STORAGE_LOCAL_PROVISIONER)) {
        work_done(w);
        return;
    }
    CLEANUP_FREE char *volume = local_volume_name(claim);
    if (informer_get(s->volumes, volume)) {
        work_done(w); /* The binder has the next step. */
        return;
    }
    int64_t bytes;
    bool image;
    struct err e = {0};
    int r = local_claim_check(claim, class, &bytes, &image, &e);
    if (r < 0) {
        claim_failed(s, w, claim, name, r, e.text);
        return;
    }
    struct task *t = task_new(s, w);
    t->object = json_clone(claim);
    t->class = json_clone(class);
    t->name = TAKE(volume);
    t->bytes = bytes;
    t->image = image;
    t->margin = s->c.margin_bytes;
    t->outstanding = outstanding(s);
    jobs_start(s->jobs, make_dir, dir_made, t);
}

/* ---- deleting and emptying volumes ---- */

static void volume_gone(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct storage *s = ctx;
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "delete a PersistentVolume", text);
        return;
    }
    log_info("a local volume was deleted", "volume=%s", work_key(w) + strlen(VOLUME_KEY));
    capacity_soon(s);
    work_done(w);
}

static void remove_dir(void *ctx)
{
    struct task *t = ctx;
    t->error = local_dir_remove(t->folder, t->name, &t->err);
}

static void dir_removed(void *ctx)
{
    struct task *t = ctx;
    struct storage *s = t->s;
    if (!s->closing && t->error < 0) {
        recorder_event(s->c.recorder, "v1", "PersistentVolume", t->object, EVENT_WARNING,
                       "VolumeFailedDelete", t->err.text);
        work_retry(t->w, t->error, "delete a local volume", t->err.text);
    } else if (!s->closing) {
        CLEANUP(json_free) struct json *options = json_object();
        CLEANUP_FREE char *path = api_path("v1", "persistentvolumes", NULL, t->name, NULL);
        json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(t->object));
        work_request(t->w, "DELETE", path, options, volume_gone);
    }
    task_free(t);
}

static void empty(void *ctx)
{
    struct task *t = ctx;
    t->error = recycle_volume(t->object, t->root_dir, t->prefixes, &t->err);
}

static void result_stored(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "store that a volume was emptied", text);
    } else {
        work_done(w);
    }
}

static void emptied(void *ctx)
{
    struct task *t = ctx;
    struct storage *s = t->s;
    if (!s->closing) {
        bool ok = t->error == 0;
        CLEANUP(json_free) struct json *patch = recycle_patch(ok ? NULL : t->err.text);
        CLEANUP_FREE char *path = api_path("v1", "persistentvolumes", NULL, t->name, NULL);
        if (ok) {
            log_info("a released volume was emptied", "volume=%s", t->name);
        } else {
            log_warn("a released volume was not emptied", "volume=%s error=\"%s\"", t->name,
                     t->err.text);
        }
        recorder_event(
            s->c.recorder, "v1", "PersistentVolume", t->object, ok ? EVENT_NORMAL : EVENT_WARNING,
            ok ? "VolumeRecycled" : "VolumeFailedRecycle", ok ? "Volume recycled" : t->err.text);
        work_request_as(t->w, "PATCH", path, NULL, MERGE, patch, result_stored);
    }
    task_free(t);
}

static void grow_dir(void *ctx)
{
    struct task *t = ctx;
    t->error = local_dir_grow(t->folder, t->name, t->bytes, &t->err);
}

static void dir_grown(void *ctx)
{
    struct task *t = ctx;
    struct storage *s = t->s;
    if (!s->closing && t->error < 0) {
        recorder_event(s->c.recorder, "v1", "PersistentVolume", t->object, EVENT_WARNING,
                       "VolumeResizeFailed", t->err.text);
        work_retry(t->w, t->error, "grow a local volume", t->err.text);
    } else if (!s->closing) {
        capacity_soon(s);
        work_done(t->w);
    }
    task_free(t);
}

static void sync_volume(struct storage *s, struct work *w)
{
    const char *name = work_key(w) + strlen(VOLUME_KEY);
    const struct json *pv = informer_get(s->volumes, name);
    bool own = pv && local_volume_is_own(pv, s->node_name, s->folder);
    bool deletes = own && local_volume_is_to_go(pv);
    if (!own && (!pv || !recycle_is_due(pv, s->node_name))) {
        work_done(w);
        return;
    }
    struct task *t = task_new(s, w);
    t->object = json_clone(pv);
    t->name = xstrdup(name);
    if (deletes) {
        jobs_start(s->jobs, remove_dir, dir_removed, t);
    } else if (own) {
        t->bytes = storage_volume_size(pv);
        jobs_start(s->jobs, grow_dir, dir_grown, t);
    } else {
        jobs_start(s->jobs, empty, emptied, t);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct storage *s = ctx;
    if (str_has_prefix(key, CLAIM_KEY)) {
        sync_claim(s, w);
    } else if (str_has_prefix(key, VOLUME_KEY)) {
        sync_volume(s, w);
    } else {
        sync_capacity(s, w);
    }
}

/* ---- events ---- */

static void claim_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct storage *s = ctx;
    CLEANUP_FREE char *work = xasprintf(CLAIM_KEY "%s", key);
    if (local_claim_is_selected(obj, s->node_name)) {
        workqueue_add(s->queue, work);
    }
}

static void volume_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    struct storage *s = ctx;
    CLEANUP_FREE char *work = xasprintf(VOLUME_KEY "%s", key);
    bool grows = local_volume_is_own(obj, s->node_name, s->folder) &&
                 (!old || storage_volume_size(old) != storage_volume_size(obj));
    if (grows || local_volume_is_to_go(obj) || recycle_is_due(obj, s->node_name)) {
        workqueue_add(s->queue, work);
    }
}

static void add_claim(void *ctx, const char *key, const struct json *obj)
{
    claim_changed(ctx, key, NULL, obj);
}

static void class_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct storage *s = ctx;
    informer_each(s->claims, add_claim, s);
    capacity_soon(s);
}

static void has_uid(void *ctx, const char *key, const struct json *obj)
{
    CLEANUP_FREE char *name = local_volume_name(obj);
    json_set_bool(ctx, name, true);
}

/* Removes directories that were made for a claim that vanished before its volume was created.  A
 * directory with content stays: it belongs to a volume that this cluster does not know. */
static void sweep(struct storage *s)
{
    CLEANUP(json_free) struct json *claims = json_object();
    DIR *dir = opendir(s->folder);
    struct dirent *d;
    informer_each(s->claims, has_uid, claims);
    while (dir && (d = readdir(dir))) {
        struct err e = {0};
        if (local_dir_name_is_valid(d->d_name) && !str_has_suffix(d->d_name, ".img") &&
            !informer_get(s->volumes, d->d_name) && !json_get(claims, d->d_name) &&
            local_dir_remove_empty(s->folder, d->d_name, &e) < 0) {
            log_warn("a directory without a volume was not removed", "error=\"%s\"", e.text);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void synced(void *ctx)
{
    struct storage *s = ctx;
    if (all_synced(s)) {
        sweep(s);
        workqueue_start(s->queue);
        loop_timer_arm(s->capacity_timer, 0);
    }
}

/* ---- all ---- */

struct storage *storage_new(const struct storage_config *c)
{
    static const struct informer_ops claim_ops = {.changed = claim_changed, .synced = synced};
    static const struct informer_ops volume_ops = {.changed = volume_changed, .synced = synced};
    static const struct informer_ops class_ops = {.changed = class_changed, .synced = synced};
    struct storage *s = NEW(struct storage);
    s->c = *c;
    s->node_name = xstrdup(c->node_name);
    s->root_dir = xstrdup(c->root_dir);
    s->folder = xasprintf("%s/local-volumes", c->root_dir);
    s->prefixes = c->recycle_prefixes ? xstrdup(c->recycle_prefixes) : NULL;
    smap_init(&s->used, NULL);
    smap_init(&s->published, NULL);
    s->jobs = jobs_new(c->loop);
    s->queue = workqueue_new(c->loop, c->client, PARALLEL, reconcile, s);
    s->capacity_timer = loop_timer_new(c->loop, on_capacity_timer, s);
    s->classes = informer_new(c->client, c->loop, "storage.k8s.io/v1", "storageclasses", NULL,
                              &class_ops, s);
    s->claims =
        informer_new(c->client, c->loop, "v1", "persistentvolumeclaims", NULL, &claim_ops, s);
    s->volumes = informer_new(c->client, c->loop, "v1", "persistentvolumes", NULL, &volume_ops, s);
    return s;
}

struct storage *storage_free(struct storage *s)
{
    if (s) {
        s->closing = true;
        informer_free(s->claims);
        informer_free(s->volumes);
        informer_free(s->classes);
        workqueue_free(s->queue);
        jobs_free(s->jobs, FREE_WAIT_MS);
        loop_timer_free(s->capacity_timer);
        smap_done(&s->used);
        smap_done(&s->published);
        free(s->node_name);
        free(s->root_dir);
        free(s->folder);
        free(s->prefixes);
        free(s);
    }
    return NULL;
}
