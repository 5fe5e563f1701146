/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/pods/workers.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/workers_priv.h"

LOG_MODULE("pods");

#define RELIST_MS 60000 /* Also without events, since a runtime may lose one. */
#define ORPHAN_RETRY_MS 2000

int64_t workers_now_ns(void)
{
    return time_wall_ms() * NS_PER_MS;
}

/* ---- pods that the API does not have ---- */

static const char *label(const struct runtime_pairs *labels, const char *key)
{
    for (size_t i = 0; i < labels->n; i++) {
        if (streq(labels->v[i].key, key)) {
            return labels->v[i].value;
        }
    }
    return "";
}

/* A worker for what is left of a pod, which ends it. */
static void adopt_orphan(struct workers *p, const struct runtime_pairs *labels,
                         const struct runtime_pairs *notes)
{
    const char *uid = label(labels, POD_LABEL_UID);
    uint64_t grace;
    if (!*uid || smap_get(&p->workers, uid)) {
        return;
    }
    CLEANUP(json_free) struct json *pod = json_object();
    struct json *metadata = json_ensure_object(pod, "metadata");
    json_set_string(metadata, "name", label(labels, POD_LABEL_NAME));
    json_set_string(metadata, "namespace", label(labels, POD_LABEL_NAMESPACE));
    json_set_string(metadata, "uid", uid);
    struct json *spec = json_ensure_object(pod, "spec");
    if (str_to_u64(label(notes, POD_NOTE_GRACE), INT32_MAX, &grace) == 0) {
        json_set_int(spec, "terminationGracePeriodSeconds", (int64_t) grace);
    }
    log_info("a pod that the API does not have is ended", "pod=%s/%s uid=%s",
             label(labels, POD_LABEL_NAMESPACE), label(labels, POD_LABEL_NAME), uid);
    struct worker *w = worker_new(p, pod, false);
    w->o.gone = true;
    smap_set(&p->workers, uid, w);
}

static void orphan_containers_listed(void *ctx, int error, const char *text,
                                     const struct runtime_container *c, size_t n)
{
    struct workers *p = ctx;
    p->orphan_containers = NULL;
    for (size_t i = 0; error == 0 && i < n; i++) {
        adopt_orphan(p, &c[i].labels, &c[i].annotations);
    }
    if (error < 0) {
        loop_timer_arm(p->timer, ORPHAN_RETRY_MS);
        return;
    }
    if (p->sweep_due) {
        p->sweep_due = false;
        workers_sweep(p);
    }
    if (!p->settled) {
        p->settled = true;
        if (p->ops->settled) {
            p->ops->settled(p->ctx);
        }
    }
}

static void orphans_listed(void *ctx, int error, const char *text, const struct runtime_sandbox *s,
                           size_t n)
{
    struct workers *p = ctx;
    p->orphans = NULL;
    for (size_t i = 0; error == 0 && i < n; i++) {
        adopt_orphan(p, &s[i].labels, &s[i].annotations);
    }
    if (error < 0) {
        loop_timer_arm(p->timer, ORPHAN_RETRY_MS);
        return;
    }
    p->orphan_containers = runtime_list_containers(p->c.runtime, NULL, orphan_containers_listed, p);
}

static void find_orphans(struct workers *p)
{
    if (p->synced && !p->orphans && !p->orphan_containers) {
        p->orphans = runtime_list_sandboxes(p->c.runtime, NULL, orphans_listed, p);
    }
}

static void relist(void *ctx)
{
    struct workers *p = ctx;
    p->sweep_due = true;
    loop_timer_arm(p->timer, RELIST_MS);
    workers_runtime_resync(p);
}

/* ---- what the caller says ---- */

void workers_set(struct workers *p, const struct json *pod)
{
    const char *uid = pod_uid(pod);
    struct worker *w = smap_get(&p->workers, uid);
    if (w && w->is_static) {
        return; /* No object of the API changes a static pod. */
    }
    if (p->c.objects) {
        pod_objects_set_pod(p->c.objects, pod);
    }
    if (w) {
        worker_set_pod(w, pod);
        return;
    }
    w = worker_new(p, pod, false);
    smap_set(&p->workers, uid, w);
    worker_wake(w);
}

/* ---- static pods ---- */

void workers_set_static(struct workers *p, const struct json *pod)
{
    struct worker *w = smap_get(&p->workers, pod_uid(pod));
    if (!w) {
        w = worker_new(p, pod, true);
        smap_set(&p->workers, pod_uid(pod), w);
        worker_wake(w);
    }
}

void workers_end_static(struct workers *p, const char *uid)
{
    struct worker *w = smap_get(&p->workers, uid);
    char now[TIME_TEXT_SIZE];
    if (!w || !w->is_static || pod_is_deleted(w->pod)) {
        return;
    }
    CLEANUP(json_free) struct json *pod = json_clone(w->pod);
    struct json *metadata = json_get(pod, "metadata");
    time_format_s(time_wall_ms(), now);
    json_set_string(metadata, "deletionTimestamp", now);
    json_set_int(metadata, "deletionGracePeriodSeconds", pod_grace_s(pod));
    worker_set_pod(w, pod);
}

void workers_set_mirror(struct workers *p, const char *uid, const struct json *mirror)
{
    struct worker *w = smap_get(&p->workers, uid);
    if (w && w->is_static) {
        if (mirror && !streq_null(w->mirror_uid, pod_uid(mirror))) {
            w->patch_failures = 0; /* They were those of another object. */
            loop_timer_disarm(w->patch_timer);
        }
        free(w->mirror_uid);
        w->mirror_uid = mirror ? xstrdup(pod_uid(mirror)) : NULL;
        worker_set_stored(w, json_get(mirror, "status"));
        worker_wake(w);
    }
}

void workers_gone(struct workers *p, const char *uid)
{
    struct worker *w = smap_get(&p->workers, uid);
    if (w && !w->is_static) {
        w->o.gone = true;
        worker_wake(w);
    }
}

static int by_age(const void *a, const void *b)
{
    const struct worker *const *x = a, *const *y = b;
    return strcmp(json_get_text(json_get((*x)->pod, "metadata"), "creationTimestamp"),
                  json_get_text(json_get((*y)->pod, "metadata"), "creationTimestamp"));
}

/* Wakes the workers that waited: those of pods that have a start first, then by age. */
static void admit_waiting(struct workers *p)
{
    CLEANUP_FREE struct worker **v = xcalloc(smap_size(&p->workers) + 1, sizeof *v);
    struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, &p->workers) {
        struct worker *w = e->value;
        if (!w->admitted) {
            v[n++] = w;
        }
    }
    qsort(v, n, sizeof *v, by_age);
    for (size_t i = 0; i < n; i++) {
        if (*json_get_text(json_get(v[i]->pod, "status"), "startTime")) {
            worker_admit(v[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        worker_wake(v[i]);
    }
}

void workers_synced(struct workers *p)
{
    p->synced = p->sweep_due = true;
    admit_waiting(p);
    find_orphans(p);
}

/* Whether the runtime is starting the container: the answer is followed by a read, so that one
 * because of the event before it would only be in its way. */
static bool is_starting(const struct worker *w, const char *container_id)
{
    const struct op *op;
    LIST_FOREACH (op, const struct op, node, &w->ops) {
        if (op->kind == OP_START && op->stage == STAGE_START && streq_null(op->id, container_id)) {
            return true;
        }
    }
    return false;
}

void workers_runtime_changed(struct workers *p, const char *sandbox_id, const char *container_id)
{
    const char *uid = container_id ? smap_get(&p->ids, container_id) : NULL;
    uid = !uid && sandbox_id ? smap_get(&p->ids, sandbox_id) : uid;
    struct worker *w = uid ? smap_get(&p->workers, uid) : NULL;
    if (w && !is_starting(w, container_id)) {
        worker_dirty(w);
    }
}

void workers_runtime_resync(struct workers *p)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &p->workers) {
        worker_dirty(e->value);
    }
    find_orphans(p);
}

void workers_wake(struct workers *p, const char *uid)
{
    struct smap_entry *e;
    if (uid) {
        struct worker *w = smap_get(&p->workers, uid);
        if (w) {
            worker_wake(w);
        }
        return;
    }
    SMAP_FOREACH (e, &p->workers) {
        worker_wake(e->value);
    }
}

/* What a start waits for may be there now. */
static void start_again(struct worker *w)
{
    static const char *const reasons[] = {"CreateContainerConfigError", "ErrImagePull",
                                          "ImagePullBackOff"};
    for (size_t i = 0; i < w->o.n_facts; i++) {
        struct observed_fact *f = &w->o.facts[i];
        for (size_t k = 0; k < ARRAY_SIZE(reasons); k++) {
            if (streq_null(f->wait_reason, reasons[k])) {
                f->retry_ns = 0;
            }
        }
    }
    worker_wake(w);
}

void workers_objects_changed(struct workers *p, const char *uid)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &p->workers) {
        if (!uid || streq(e->key, uid)) {
            start_again(e->value);
        }
    }
}

bool workers_evict(struct workers *p, const char *uid, const char *reason, const char *message,
                   int64_t grace_s)
{
    struct worker *w = smap_get(&p->workers, uid);
    if (!w || w->o.refused_reason || w->work != POD_SYNC) {
        return false;
    }
    w->o.refused_reason = xstrdup(reason);
    w->o.refused_message = xstrdup(message);
    w->o.hurried = grace_s >= 0;
    w->o.hurry_s = grace_s;
    worker_event(w, EVENT_WARNING, reason, "%s", message);
    worker_wake(w);
    return true;
}

/* ---- what others ask ---- */

size_t workers_count(const struct workers *p)
{
    return smap_size(&p->workers);
}

void workers_each(const struct workers *p,
                  void (*fn)(void *ctx, const struct json *pod, const struct json *status),
                  void *ctx)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &p->workers) {
        const struct worker *w = e->value;
        fn(ctx, w->pod, w->status);
    }
}

bool workers_find(const struct workers *p, const char *ns, const char *name, const char *uid,
                  const struct json **ret_pod, const struct json **ret_status)
{
    struct smap_entry *e;
    const struct worker *found = NULL;
    SMAP_FOREACH (e, &p->workers) {
        const struct worker *w = e->value;
        if (streq(w->ns, ns) && streq(w->name, name) &&
            (!uid || streq(w->uid, uid) || streq_null(w->mirror_uid, uid)) &&
            !(found && w->is_static && !found->is_static)) {
            found = w; /* The newest of several wins. */
        }
    }
    if (found) {
        *ret_pod = found->pod;
        *ret_status = found->status;
    }
    return found != NULL;
}

const struct pod_observed *workers_observed(const struct workers *p, const char *uid)
{
    const struct worker *w = smap_get(&p->workers, uid);
    return w ? &w->o : NULL;
}

bool workers_is_kept(const struct workers *p, const char *uid)
{
    const struct worker *w = smap_get(&p->workers, uid);
    return w && w->admitted && !w->frozen && !w->o.gone && !w->o.refused_reason &&
           w->work == POD_SYNC;
}

bool workers_has_ended(const struct workers *p, const char *uid)
{
    const struct worker *w = smap_get(&p->workers, uid);
    return !w || w->work == POD_ENDED;
}

bool workers_is_settled(const struct workers *p, const char *uid)
{
    const struct worker *w = smap_get(&p->workers, uid);
    return !w || (w->work == POD_ENDED && status_is_written(w));
}

void workers_each_probe(const struct workers *p,
                        void (*fn)(void *ctx, const struct workers_probe *p), void *ctx)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &p->workers) {
        probes_each(e->value, fn, ctx);
    }
}

void workers_get_stats(const struct workers *p, struct workers_stats *ret)
{
    struct images_stats images;
    struct smap_entry *e;
    images_get_stats(p->images, &images);
    *ret = p->stats;
    ret->image_pulls = images.pulls;
    ret->image_failures = images.failures;
    ret->pulling = images.pulling;
    ret->pods = (unsigned) smap_size(&p->workers);
    SMAP_FOREACH (e, &p->workers) {
        const struct worker *w = e->value;
        for (size_t i = 0; i < w->o.n_containers; i++) {
            ret->running += w->o.containers[i].state == RUNTIME_RUNNING;
        }
    }
}

struct workers *workers_new(const struct workers_config *c, const struct workers_ops *ops,
                            void *ctx)
{
    struct workers *p = NEW(struct workers);
    p->c = *c;
    p->root_dir = xstrdup(c->root_dir);
    p->node_name = xstrdup(c->node_name);
    p->host_ip = c->host_ip ? xstrdup(c->host_ip) : NULL;
    p->runtime_name = xstrdup(c->runtime_name);
    p->ops = ops;
    p->ctx = ctx;
    p->images = images_new(c->loop, c->runtime, c->parallel_pulls);
    smap_init(&p->workers, worker_free);
    smap_init(&p->ids, free);
    p->timer = loop_timer_new(c->loop, relist, p);
    loop_timer_arm(p->timer, RELIST_MS);
    return p;
}

struct workers *workers_free(struct workers *p)
{
    if (p) {
        p->closing = true;
        if (p->orphans) {
            runtime_cancel(p->orphans);
        }
        if (p->orphan_containers) {
            runtime_cancel(p->orphan_containers);
        }
        smap_done(&p->workers);
        images_free(p->images);
        smap_done(&p->ids);
        loop_timer_free(p->timer);
        free(p->root_dir);
        free(p->node_name);
        free(p->host_ip);
        free(p->runtime_name);
        free(p);
    }
    return NULL;
}
