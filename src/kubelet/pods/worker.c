/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of one pod: reads, plans, begins actions, writes the status. */
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/workers_priv.h"
#include "net/loop/process.h"

#include <stdio.h>
#include <unistd.h>

LOG_MODULE("pods");

#define RETRY_MS 1000
#define LONG_MS (24 * 3600 * 1000)

void worker_event(struct worker *w, enum recorder_type type, const char *reason, const char *fmt,
                  ...)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(4096);
    va_list ap;
    va_start(ap, fmt);
    if (strbuf_vaddf(&text, fmt, ap) < 0) {
        strbuf_adds(&text, "(the text is too long)");
    }
    va_end(ap);
    if (w->pods->c.recorder && !w->o.gone) {
        recorder_event(w->pods->c.recorder, "v1", "Pod", w->pod, type, reason, strbuf_cstr(&text));
    }
}

void worker_wake(struct worker *w)
{
    loop_task_queue(&w->task);
}

void worker_dirty(struct worker *w)
{
    w->dirty = true;
    loop_task_queue(&w->task);
}

/* ---- status ---- */

void worker_make_status(struct worker *w)
{
    struct pod_status_facts facts = {.runtime = w->pods->runtime_name, .work = w->work};
    CLEANUP(json_free) struct json *last = pod_status_merge(w->status, json_get(w->pod, "status"));
    struct json *now = pod_status(w->pod, last, &w->o, &facts, workers_now_ns());
    w->written = w->written && w->status && json_equal(w->status, now);
    json_free(w->status);
    w->status = now;
}

static const struct json *last_status(const struct worker *w)
{
    return w->status ? w->status : json_get(w->pod, "status");
}

/* ---- the end ---- */

static void volumes_removed(void *ctx, int error, const char *text)
{
    CLEANUP_FREE char *uid = NULL;
    struct workers *p = *(struct workers **) ctx;
    uid = xstrdup((char *) ctx + sizeof p);
    free(ctx);
    struct worker *w = p->closing ? NULL : smap_get(&p->workers, uid);
    if (!w) {
        return;
    }
    w->cleaning = false;
    if (w->releasing) {
        w->releasing = false; /* Its deletion removes what is left. */
        worker_wake(w);
        return;
    }
    if (error < 0) {
        if (said_is_news(&w->volume_trouble, text)) {
            log_warn("the volumes of a pod were not removed", "pod=%s/%s error=\"%s\"", w->ns,
                     w->name, text);
        }
        loop_timer_arm(w->timer, RETRY_MS);
        return;
    }
    w->cleaned = true;
    worker_wake(w);
}

static void remove_volumes(struct worker *w)
{
    struct workers *p = w->pods;
    size_t size = strlen(w->uid) + 1;
    char *ctx = xmalloc(sizeof p + size);
    memcpy(ctx, &p, sizeof p);
    memcpy(ctx + sizeof p, w->uid, size);
    w->cleaning = true;
    volumes_remove(p->c.volumes, w->uid, volumes_removed, ctx);
}

/* Removes the pod's own directories, where no volumes do it. */
static void remove_directories(struct worker *w)
{
    CLEANUP_ARENA struct arena a = {0};
    struct err e = {0};
    char *logs = pod_log_directory(w->pod, w->pods->c.node, &a);
    if (*w->ns && *w->name && dir_remove(logs, &e) < 0) {
        log_warn("a pod's logs were not removed", "path=%s error=\"%s\"", logs, e.text);
    }
    if (!w->pods->c.volumes) {
        dir_remove(arena_printf(&a, "%s/pods/%s", w->pods->root_dir, w->uid), NULL);
    }
}

/* Ends what is left of a pod that runs no more and is not wanted: its records in the runtime, its
 * directories, its control groups. */
static void clean_up(struct worker *w)
{
    struct workers *p = w->pods;
    if (!list_is_empty(&w->ops) || w->cleaning || w->cleaned) {
        return;
    }
    for (size_t i = 0; i < w->o.n_containers; i++) {
        struct observed_container *c = &w->o.containers[i];
        if (!op_find(w, c->name, OP_REMOVE)) {
            op_remove_container(w, c->name, c->id);
        }
    }
    if (!list_is_empty(&w->ops)) {
        return;
    }
    for (size_t i = 0; i < w->o.n_sandboxes; i++) {
        op_remove_sandbox(w, w->o.sandboxes[i].id);
    }
    if (!list_is_empty(&w->ops)) {
        return;
    }
    remove_directories(w);
    cgroups_remove(w);
    if (!p->c.volumes) {
        w->cleaned = true;
        return;
    }
    remove_volumes(w);
}

/* Gives back what a pod needs no more that has ended and whose object stays. */
static void release_resources(struct worker *w)
{
    if (w->released || !list_is_empty(&w->ops) || !status_is_written(w)) {
        return;
    }
    w->released = true;
    cgroups_remove(w);
    if (w->pods->c.volumes && !w->cleaning) {
        w->releasing = true;
        remove_volumes(w);
    }
}

static void plan_ended(struct worker *w)
{
    struct workers *p = w->pods;
    bool unwanted = w->o.gone || pod_is_deleted(w->pod);
    if (!unwanted) {
        release_resources(w);
        return;
    }
    clean_up(w);
    if (!w->cleaned) {
        return;
    }
    if (w->o.gone || w->is_static) {
        CLEANUP_FREE char *uid = xstrdup(w->uid);
        bool tell = w->is_static;
        smap_remove(&p->workers, uid); /* Frees it. */
        workers_wake(p, NULL);
        if (tell) {
            p->ops->static_ended(p->ctx, uid);
        }
    } else if (status_is_written(w)) {
        status_delete_object(w);
    }
}

/* ---- a round ---- */

static void begin_ending(struct worker *w)
{
    struct op *op;
    const char *reason, *message;
    if (!w->o.ending_ns) {
        w->o.ending_ns = workers_now_ns();
        if (pod_must_end(w->pod, last_status(w), &w->o, w->o.ending_ns, &reason, &message) &&
            reason && streq(reason, "DeadlineExceeded")) {
            /* It stays the reason, whatever the containers say. */
            w->o.refused_reason = xstrdup(reason);
            w->o.refused_message = xstrdup(message);
            worker_event(w, EVENT_NORMAL, reason, "%s", message);
        }
    }
    LIST_FOREACH (op, struct op, node, &w->ops) {
        if (op->kind == OP_START) {
            op_start_abandon(op);
        }
    }
}

static void execute(struct worker *w, const struct pod_actions *a)
{
    for (size_t i = 0; i < a->n_kills; i++) {
        op_kill(w, &a->kills[i]);
    }
    for (size_t i = 0; i < a->n_stop_sandboxes && !w->o.sandbox_busy; i++) {
        op_stop_sandbox(w, a->stop_sandboxes[i]);
    }
    for (size_t i = 0; i < a->n_remove_sandboxes && !w->o.sandbox_busy; i++) {
        op_remove_sandbox(w, a->remove_sandboxes[i]);
    }
    for (size_t i = 0; i < a->n_remove_containers; i++) {
        const struct observed_container *c = pod_observed_find(&w->o, a->remove_containers[i]);
        if (c && !op_find(w, c->name, OP_REMOVE)) {
            op_remove_container(w, c->name, c->id);
        }
    }
    if (a->make_sandbox && !w->o.sandbox_busy) {
        if (a->sandbox_changed && w->status) {
            worker_event(w, EVENT_NORMAL, "SandboxChanged",
                         "Pod sandbox changed, it will be killed and re-created.");
        }
        cgroups_make(w);
        op_make_sandbox(w, a->sandbox_attempt);
    }
    for (size_t i = 0; i < a->n_starts; i++) {
        if (!pod_observed_fact(&w->o, a->starts[i].name)->busy) {
            op_start(w, &a->starts[i], a->sandbox_id);
        }
    }
}

/* Whether another pod of the same name has to end first: one that came before, or one whose object is
 * gone, which an agent that was restarted finds after the new pod.  Pods of the API and static pods do
 * not wait for each other: a user could hold up a static pod by one of its name. */
static bool must_wait(const struct worker *w)
{
    struct smap_entry *e;
    bool earlier = true;
    SMAP_FOREACH (e, &w->pods->workers) {
        const struct worker *o = e->value;
        if (o == w) {
            earlier = false;
        } else if ((earlier || o->o.gone) && !w->o.gone && o->is_static == w->is_static &&
                   streq(o->name, w->name) && streq(o->ns, w->ns)) {
            return true;
        }
    }
    return false;
}

static void watch_volumes(struct worker *w)
{
    const char *text = NULL;
    if (!w->pods->c.volumes) {
        w->o.volumes_ready = true;
        return;
    }
    enum volumes_phase phase = volumes_state(w->pods->c.volumes, w->uid, &text);
    w->o.volumes_ready = phase == VOLUMES_READY;
    if (said_is_news(&w->volume_trouble, text)) {
        worker_event(w, EVENT_WARNING, "FailedMount", "%s", text);
    }
}

/* A changed image restarts the container under any policy, once: a start that failed may have been
 * done all the same. */
static void update_start(struct worker *w, struct observed_fact *f,
                         const struct observed_container *c, const struct json *spec)
{
    char hash[POD_HASH_SIZE];
    pod_container_hash(spec, hash);
    bool same = streq(c->hash, hash), runs = c->state == RUNTIME_RUNNING;
    if (same && (runs || (c->state == RUNTIME_EXITED && c->started_ns))) {
        f->again = false;
    } else if (!same && runs && w->work == POD_SYNC && op_find(w, f->name, OP_KILL)) {
        f->again = true;
    }
    if (same && runs && !f->busy) {
        observed_fact_set_wait(f, NULL, NULL);
    }
}

/* What a plan may not name again: facts about containers that are gone. */
static void update_facts(struct worker *w)
{
    for (size_t i = 0; i < w->o.n_facts; i++) {
        struct observed_fact *f = &w->o.facts[i];
        const struct observed_container *c = pod_observed_newest(&w->o, f->name);
        if (f->id && c && !streq(f->id, c->id) && !f->busy) {
            observed_fact_set_id(f, c->id);
        }
        if (f->id && c && streq(f->id, c->id) && c->state == RUNTIME_EXITED) {
            f->hook = f->ready = false;
        }
        const struct json *spec = c ? pod_container_named(w->pod, f->name, NULL) : NULL;
        if (spec && *c->hash) {
            update_start(w, f, c, spec);
        }
    }
    for (size_t i = 0; i < w->o.n_containers; i++) {
        const struct observed_container *c = &w->o.containers[i];
        if (c->state == RUNTIME_RUNNING && c == pod_observed_newest(&w->o, c->name)) {
            struct observed_fact *f = pod_observed_fact(&w->o, c->name);
            if (!f->busy || !f->id) {
                observed_fact_set_id(f, c->id);
            }
        }
    }
}

static void count_start(struct worker *w)
{
    size_t n = 0, runs = 0;
    const struct json *c;
    JSON_FOREACH (c, json_get(w->status, "containerStatuses")) {
        n++;
        runs += json_path(c, "state", "running", NULL) != NULL;
    }
    if (!w->started_all && n && runs == n) {
        w->started_all = true;
        prom_histogram_add(&w->pods->stats.start_ns,
                           (uint64_t) (workers_now_ns() - w->o.first_seen_ns));
    }
}

static void plan(struct worker *w)
{
    struct pod_actions a;
    int64_t now = workers_now_ns();
    pod_plan(w->pod, last_status(w), &w->o, now, &a);
    if (a.work > w->work) {
        w->work = a.work;
    }
    if (w->work != POD_SYNC) {
        begin_ending(w);
    }
    if (w->work == POD_SYNC || a.work == POD_ENDING) {
        execute(w, &a);
    }
    if (a.again_ns) {
        loop_timer_arm(w->timer, (uint64_t) MIN(MAX((a.again_ns - now) / NS_PER_MS + 1, INT64_C(1)),
                                                (int64_t) LONG_MS));
    }
    bool ended = a.work == POD_ENDED;
    pod_actions_done(&a);
    probes_update(w);
    worker_make_status(w);
    count_start(w);
    status_write(w);
    if (ended) {
        plan_ended(w);
    }
}

static void round_begin(void *ctx)
{
    struct worker *w = ctx;
    if (must_wait(w)) {
        return;
    }
    if (!w->admitted && !w->pods->synced && !pod_is_static(w->pod) && !w->o.gone) {
        return; /* Those that were admitted before come first. */
    }
    worker_admit(w);
    if (w->dirty) {
        worker_read(w);
    }
    if (w->loading || !w->read_once) {
        return;
    }
    watch_volumes(w);
    update_facts(w);
    plan(w);
}

static void timer_fired(void *ctx)
{
    worker_wake(ctx);
}

/* ---- its life ---- */

static void refuse(struct worker *w, const char *reason, const char *message)
{
    w->o.refused_reason = xstrdup(reason);
    w->o.refused_message = xasprintf("Pod was rejected: %s", message);
    worker_event(w, EVENT_WARNING, reason, "%s", message);
    log_info("a pod was refused", "pod=%s/%s reason=%s message=\"%s\"", w->ns, w->name, reason,
             message);
}

/* Whether the pod uses what it requests of the node. */
static bool uses_node(const struct worker *w)
{
    return w->admitted && !w->frozen && !w->o.gone && !w->o.refused_reason && w->work != POD_ENDED;
}

const struct json **workers_admitted(const struct workers *p, size_t *ret_n)
{
    const struct json **v = xcalloc(smap_size(&p->workers) + 1, sizeof *v);
    struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, &p->workers) {
        const struct worker *w = e->value;
        if (uses_node(w)) {
            v[n++] = w->pod;
        }
    }
    *ret_n = n;
    return v;
}

void worker_admit(struct worker *w)
{
    const struct workers *p = w->pods;
    CLEANUP_ARENA struct arena a = {0};
    CLEANUP(pod_refusal_done) struct pod_refusal refusal = {0};
    struct pod_admit_node node = {0};
    struct runtime_pairs sysctls;
    struct err e = {0};
    size_t n;
    if (w->admitted) {
        return;
    }
    if (w->frozen || w->o.gone || *json_get_text(json_get(w->pod, "status"), "startTime")) {
        w->admitted = true; /* It was admitted by an earlier agent, or is only to be ended. */
        return;
    }
    CLEANUP_FREE const struct json **others = workers_admitted(p, &n);
    w->admitted = true;
    if (p->ops->admission) {
        p->ops->admission(p->ctx, &node);
    }
    if (pod_sysctls(w->pod, &p->c.node->security, &a, &sysctls, &e) < 0) {
        refuse(w, "SysctlForbidden", e.text);
    } else if (!pod_admit_here(w->pod, others, n, &node, &refusal)) {
        refuse(w, refusal.reason, refusal.message);
    }
}

const struct json *worker_stored(const struct worker *w)
{
    return w->is_static ? w->mirrored : json_get(w->pod, "status");
}

/* What was written stays so if the API has nothing else. */
static void compare_stored(struct worker *w, const struct json *status)
{
    const struct json *stored = worker_stored(w);
    w->written = w->written && stored && status && json_equal(stored, status);
}

void worker_set_stored(struct worker *w, const struct json *status)
{
    compare_stored(w, status);
    if (w->is_static) {
        json_free(w->mirrored);
        w->mirrored = status ? json_clone(status) : NULL;
    } else if (status) {
        json_set(w->pod, "status", json_clone(status));
    } else {
        json_remove(w->pod, "status");
    }
}

void worker_set_pod(struct worker *w, const struct json *pod)
{
    if (!w->is_static) {
        compare_stored(w, json_get(pod, "status"));
    }
    json_free(w->pod);
    w->pod = json_clone(pod);
    if (w->work == POD_SYNC && !w->frozen && w->pods->c.volumes) {
        volumes_set_pod(w->pods->c.volumes, pod);
    }
    worker_wake(w);
}

struct worker *worker_new(struct workers *p, const struct json *pod, bool is_static)
{
    struct worker *w = NEW(struct worker);
    w->pods = p;
    w->is_static = is_static;
    w->uid = xstrdup(pod_uid(pod));
    w->ns = xstrdup(pod_namespace(pod));
    w->name = xstrdup(pod_name(pod));
    list_init(&w->ops);
    list_init(&w->probes);
    loop_task_init(&w->task, p->c.loop, round_begin, w);
    w->timer = loop_timer_new(p->c.loop, timer_fired, w);
    w->patch_timer = loop_timer_new(p->c.loop, timer_fired, w);
    w->o.host_ip = p->host_ip ? xstrdup(p->host_ip) : NULL;
    w->o.first_seen_ns = workers_now_ns();
    w->dirty = true;
    w->frozen = pod_phase_is_final(json_get_text(json_get(pod, "status"), "phase"));
    worker_set_pod(w, pod);
    return w;
}

/* Also of what was made and removed between two lists. */
static void forget_ids(const struct worker *w)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w->pods->ids) {
        if (streq(e->value, w->uid)) {
            smap_remove(&w->pods->ids, e->key);
        }
    }
}

void worker_free(void *v)
{
    struct worker *w = v;
    struct op *op;
    LIST_FOREACH (op, struct op, node, &w->ops) {
        if (op->kind == OP_START && op->stage == STAGE_MOUNTS) {
            op_start_abandon(op);
        } else {
            op_free(op);
        }
    }
    probes_free(w);
    worker_read_cancel(w);
    if (w->patch) {
        api_call_cancel(w->patch);
    }
    if (w->remove) {
        api_call_cancel(w->remove);
    }
    forget_ids(w);
    if (w->pods->c.objects) {
        pod_objects_remove_pod(w->pods->c.objects, w->uid);
    }
    loop_task_cancel(&w->task);
    loop_timer_free(w->timer);
    loop_timer_free(w->patch_timer);
    pod_observed_done(&w->o);
    pod_observed_done(&w->next);
    said_done(&w->trouble);
    said_done(&w->volume_trouble);
    json_free(w->pod);
    json_free(w->status);
    json_free(w->mirrored);
    json_free(w->sent);
    free(w->mirror_uid);
    free(w->uid);
    free(w->ns);
    free(w->name);
    free(w);
}
