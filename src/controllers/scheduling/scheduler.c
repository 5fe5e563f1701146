/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/scheduling/scheduler.h"

#include "api/condition.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controller/obj.h"
#include "controllers/scheduling/claim_steps.h"
#include "controllers/scheduling/pending.h"
#include "controllers/scheduling/scheduler_metrics.h"
#include "sched/sched.h"

LOG_MODULE("scheduler");

#define STRATEGIC "application/strategic-merge-patch+json"
#define TURN_MS 20      /* The longest time of decisions before other work of the process. */
#define WRITES_MOST 512 /* Pods whose writes are not finished; no more are decided then. */

#define ALL_REASONS (SCHED_BIT(SCHED_REASONS) - 1)
#define BY_PODS                                                                     \
    (SCHED_BIT(SCHED_SPREAD) | SCHED_BIT(SCHED_POD_AFFINITY) |                      \
     SCHED_BIT(SCHED_POD_ANTI_AFFINITY) | SCHED_BIT(SCHED_EXISTING_ANTI_AFFINITY) | \
     SCHED_BIT(SCHED_SERVICE_AFFINITY))
#define BY_ROOM (SCHED_BIT(SCHED_PORTS) | SCHED_BIT(SCHED_RESOURCES))
#define BY_VOLUMES                                                   \
    (SCHED_BIT(SCHED_POD_FAULT) | SCHED_BIT(SCHED_VOLUME_AFFINITY) | \
     SCHED_BIT(SCHED_VOLUME_LIMIT) | SCHED_BIT(SCHED_VOLUME_BIND) |  \
     SCHED_BIT(SCHED_VOLUME_CAPACITY))

/* The end of a pod frees its room, and a claim of one pod alone. */
#define BY_ENDS (BY_ROOM | BY_PODS | SCHED_BIT(SCHED_POD_FAULT) | SCHED_BIT(SCHED_VOLUME_LIMIT))

/* What has to be written about a pod.  Keys of the queue: "NAMESPACE/NAME". */
struct action {
    /* END: the pod is a victim.  PREPARE: its claims get volumes. */
    enum { BIND, REPORT, END, PREPARE } type;
    char *uid;
    char *node;                /* BIND: its node.  REPORT: nominated; NULL: none. */
    char *reason, *text;       /* REPORT: of the condition. */
    struct claim_steps *steps; /* PREPARE. */
    bool marked;               /* END: its condition is written. */
    bool sent;                 /* The request under way is for it, not for the one before. */
};

struct scheduler {
    struct controller_env env;
    struct informer *pods, *volumes;
    struct sched *model;
    struct pending *pending;
    struct smap actions; /* By key. */
    struct smap assumed; /* Pods with a Binding that no event has shown yet: their UIDs. */
    struct smap gated;   /* Keys of pods with scheduling gates. */
    struct scheduler_facts facts;
    struct loop_task task;
    struct loop_timer *timer;
    bool synced;
};

static void action_free(void *p)
{
    struct action *a = p;
    free(a->uid);
    free(a->node);
    free(a->reason);
    free(a->text);
    claim_steps_free(a->steps);
    free(a);
}

static uint64_t now_ms(struct scheduler *s)
{
    return loop_now_ms(s->env.loop);
}

static const char *node_of(const struct json *pod)
{
    return json_get_text(json_get(pod, "spec"), "nodeName");
}

static bool is_over(const struct json *pod)
{
    const char *phase = json_get_text(json_get(pod, "status"), "phase");
    return streq(phase, "Succeeded") || streq(phase, "Failed");
}

static bool is_mine(const struct json *pod)
{
    const char *name = json_get_text(json_get(pod, "spec"), "schedulerName");
    return !*name || streq(name, SCHEDULER_NAME);
}

/* ---- the next turn ---- */

static void wake(struct scheduler *s)
{
    uint64_t due = pending_due_ms(s->pending), now = now_ms(s);
    if (!s->synced || due == UINT64_MAX || smap_size(&s->actions) >= WRITES_MOST) {
        return;
    }
    if (due <= now) {
        loop_task_queue(&s->task);
    } else {
        loop_timer_arm(s->timer, due - now);
    }
}

static void timer_fired(void *ctx)
{
    struct scheduler *s = ctx;
    loop_task_queue(&s->task);
}

static void helps(struct scheduler *s, uint32_t reasons)
{
    pending_move(s->pending, reasons, now_ms(s));
    wake(s);
}

static void add_action(struct scheduler *s, const char *key, struct action a)
{
    struct action *copy = NEW(struct action);
    *copy = a;
    smap_set(&s->actions, key, copy);
    workqueue_add(s->env.queue, key);
}

/* Writes that the pod has no node, unless the pod says so already. */
static void report(struct scheduler *s, const char *key, const struct json *pod, const char *reason,
                   const char *text, const char *nominated)
{
    const struct json *c = condition_find(pod, "PodScheduled");
    const char *was = json_get_text(json_get(pod, "status"), "nominatedNodeName");
    if (streq(json_get_text(c, "status"), "False") && streq(json_get_text(c, "reason"), reason) &&
        streq(json_get_text(c, "message"), text) && streq(was, nominated ? nominated : "")) {
        return;
    }
    add_action(s, key,
               (struct action){.type = REPORT,
                               .uid = xstrdup(obj_uid(pod)),
                               .node = nominated ? xstrdup(nominated) : NULL,
                               .reason = xstrdup(reason),
                               .text = xstrdup(text)});
}

/* ---- decisions ---- */

static void bind(struct scheduler *s, const char *key, const struct json *pod, const char *node)
{
    CLEANUP_FREE char *name = xstrdup(node);
    sched_nominate(s->model, pod, NULL);
    sched_set_pod(s->model, pod, name);
    smap_set(&s->assumed, key, xstrdup(obj_uid(pod)));
    add_action(s, key,
               (struct action){.type = BIND, .uid = xstrdup(obj_uid(pod)), .node = xstrdup(name)});
}

/* The volume is not offered to other claims before its event comes. */
static void take_volume(struct scheduler *s, const char *name, const struct json *pod)
{
    const struct json *volume = informer_get(s->volumes, name);
    if (volume && !json_path(volume, "spec", "claimRef", NULL)) {
        CLEANUP(json_free) struct json *copy = json_clone(volume);
        struct json *ref = json_ensure_object(json_ensure_object(copy, "spec"), "claimRef");
        json_set_string(ref, "namespace", obj_namespace(pod));
        sched_set(s->model, SCHED_VOLUME, copy);
    }
}

/* Claims of the pod wait for it: they get volumes first, and room for the pod is kept meanwhile. */
static void prepare(struct scheduler *s, const char *key, const struct json *pod, const char *node,
                    const struct sched_volume_step *list, size_t n)
{
    struct claim_steps *steps = claim_steps_new(obj_namespace(pod), node, list, n);
    CLEANUP_FREE char *name = xstrdup(node);
    sched_nominate(s->model, pod, name);
    pending_hold(s->pending, key, BY_VOLUMES, now_ms(s));
    if (steps) {
        const char *volume;
        for (size_t i = 0; !(volume = claim_steps_volume(steps, i)) || *volume; i++) {
            if (volume) {
                take_volume(s, volume, pod);
            }
        }
        add_action(s, key,
                   (struct action){.type = PREPARE, .uid = xstrdup(obj_uid(pod)), .steps = steps});
    }
}

/* False: the victim is just being bound, and cannot be ended yet. */
static bool end_victim(struct scheduler *s, const char *key, const struct json *pod,
                       const char *node)
{
    const struct json *victim = informer_get(s->pods, key);
    if (smap_get(&s->assumed, key)) {
        return false;
    }
    if (!victim || obj_is_terminating(victim)) {
        return true;
    }
    CLEANUP_FREE char *text =
        xasprintf("Preempted by pod %s/%s on node %s", obj_namespace(pod), obj_name(pod), node);
    recorder_event(s->env.recorder, "v1", "Pod", victim, EVENT_NORMAL, "Preempted", text);
    s->facts.victims++;
    add_action(s, key, (struct action){.type = END, .uid = xstrdup(obj_uid(victim))});
    return true;
}

/* No node suits the pod: victims make room, or it waits. */
static void no_node(struct scheduler *s, const char *key, const struct json *pod,
                    const struct sched_decision *d)
{
    struct sched_preemption p;
    sched_preempt(s->model, pod, &p);
    s->facts.preemptions++;
    CLEANUP_FREE char *node = p.node ? xstrdup(p.node) : NULL;
    CLEANUP_FREE char *text = xasprintf("%s%s%s", d->why, p.why ? " " : "", p.why ? p.why : "");
    bool done = true;
    for (size_t i = 0; i < p.n_victims; i++) {
        done = end_victim(s, p.victims[i], pod, node) && done;
    }
    const char *kept = json_get_text(json_get(pod, "status"), "nominatedNodeName");
    bool waits = p.waits && *kept;
    if (!waits) {
        sched_nominate(s->model, pod, node);
    }
    recorder_event(s->env.recorder, "v1", "Pod", pod, EVENT_WARNING, "FailedScheduling", text);
    report(s, key, pod, "Unschedulable", text, waits ? kept : node);
    sched_preemption_done(&p);
    if (done) {
        pending_put_back(s->pending, key, d->reasons, now_ms(s));
    } else {
        pending_retry(s->pending, key, now_ms(s));
    }
}

static void decide(struct scheduler *s, const char *key)
{
    const struct json *pod = informer_get(s->pods, key);
    struct sched_decision d;
    if (!pod) {
        pending_remove(s->pending, key);
        return;
    }
    uint64_t start = time_mono_ns();
    sched_decide(s->model, pod, &d);
    enum scheduler_result result = d.node ? SCHEDULER_SCHEDULED : SCHEDULER_UNSCHEDULABLE;
    prom_histogram_add(&s->facts.decisions[result], time_mono_ns() - start);
    struct sched_volume_step *steps = NULL;
    size_t n_steps = d.node ? sched_volumes(s->model, pod, d.node, &steps) : 0;
    if (n_steps) {
        prepare(s, key, pod, d.node, steps, n_steps);
    } else if (d.node) {
        bind(s, key, pod, d.node);
    } else {
        s->facts.attempts[SCHEDULER_UNSCHEDULABLE]++;
        no_node(s, key, pod, &d);
    }
    free(steps);
    sched_decision_done(&d);
}

static void turn(void *ctx)
{
    struct scheduler *s = ctx;
    uint64_t end = time_mono_ms() + TURN_MS;
    const char *key;
    while (smap_size(&s->actions) < WRITES_MOST && time_mono_ms() < end &&
           (key = pending_take(s->pending, now_ms(s)))) {
        decide(s, key);
    }
    wake(s);
}

/* ---- writes ---- */

/* The write about the pod is over; the pod may have changed meanwhile. */
static void finish(struct scheduler *s, struct work *w)
{
    CLEANUP_FREE char *key = xstrdup(work_key(w));
    const struct action *a = smap_get(&s->actions, key);
    if (a && a->sent) {
        (void) smap_remove(&s->actions, key);
    }
    work_done(w);
    wake(s);
}

static char *path_of(const char *key, const char *part)
{
    const char *slash = strchr(key, '/');
    CLEANUP_FREE char *ns = xstrndup(key, (size_t) (slash - key));
    return api_path("v1", "pods", ns, slash + 1, part);
}

/* The Binding was refused: the pod is gone, changed or has a node, or may not have this one. */
static void unbound(struct scheduler *s, const char *key, int error, const char *text)
{
    const struct json *pod = informer_get(s->pods, key);
    sched_remove_pod(s->model, key);
    (void) smap_remove(&s->assumed, key);
    if (!pod || error == -ENOENT) {
        pending_remove(s->pending, key);
    } else if (*node_of(pod)) {
        sched_set_pod(s->model, pod, node_of(pod));
        pending_remove(s->pending, key);
    } else {
        log_info("binding refused", "pod=%s reason=%s", key, text);
        pending_retry(s->pending, key, now_ms(s));
    }
    helps(s, BY_ROOM | BY_PODS);
}

static void bound(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct scheduler *s = ctx;
    const struct action *a = smap_get(&s->actions, work_key(w));
    const struct json *pod = informer_get(s->pods, work_key(w));
    if (error == -EAGAIN || !a) {
        work_retry(w, error, "bind a pod", text);
        return;
    }
    s->facts.attempts[error < 0 ? SCHEDULER_ERROR : SCHEDULER_SCHEDULED]++;
    if (error < 0) {
        unbound(s, work_key(w), error, text);
    } else if (pod && streq(obj_uid(pod), a->uid)) {
        CLEANUP_FREE char *said = xasprintf("Successfully assigned %s to %s", work_key(w), a->node);
        recorder_event(s->env.recorder, "v1", "Pod", pod, EVENT_NORMAL, "Scheduled", said);
        pending_remove(s->pending, work_key(w));
    }
    finish(s, w);
}

static void send_binding(struct work *w, const struct action *a)
{
    const char *slash = strchr(work_key(w), '/');
    CLEANUP_FREE char *ns = xstrndup(work_key(w), (size_t) (slash - work_key(w)));
    CLEANUP_FREE char *path = path_of(work_key(w), "binding");
    CLEANUP(json_free) struct json *binding = obj_new("v1", "Binding", ns, slash + 1);
    struct json *target = json_ensure_object(binding, "target");
    json_set_string(json_get(binding, "metadata"), "uid", a->uid);
    json_set_string(target, "apiVersion", "v1");
    json_set_string(target, "kind", "Node");
    json_set_string(target, "name", a->node);
    work_request(w, "POST", path, binding, bound);
}

static struct json *condition(const char *type, const char *status, const char *reason,
                              const char *text, const struct json *before)
{
    char now[TIME_TEXT_SIZE];
    struct json *c = json_object();
    const char *since = json_get_text(before, "lastTransitionTime");
    bool same = *since && streq(json_get_text(before, "status"), status);
    time_format_s(time_wall_ms(), now);
    json_set_string(c, "type", type);
    json_set_string(c, "status", status);
    json_set_string(c, "reason", reason);
    json_set_string(c, "message", text);
    json_set_string(c, "lastTransitionTime", same ? since : now);
    return c;
}

/* A patch of the status with the condition, for this pod and no other of its name. */
static struct json *status_patch(const char *uid, struct json *c)
{
    struct json *patch = json_object();
    json_set_string(json_ensure_object(patch, "metadata"), "uid", uid);
    json_append(json_ensure_array(json_ensure_object(patch, "status"), "conditions"), c);
    return patch;
}

static void reported(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error == -EAGAIN) {
        work_retry(w, error, "write the status of a pod", text);
        return;
    }
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        log_warn("cannot write the status of a pod", "pod=%s error=%s", work_key(w), text);
    }
    finish(ctx, w);
}

static void send_report(struct scheduler *s, struct work *w, const struct action *a)
{
    const struct json *pod = informer_get(s->pods, work_key(w));
    CLEANUP_FREE char *path = path_of(work_key(w), "status");
    CLEANUP(json_free)
    struct json *patch = status_patch(a->uid, condition("PodScheduled", "False", a->reason, a->text,
                                                        condition_find(pod, "PodScheduled")));
    json_set(json_get(patch, "status"), "nominatedNodeName",
             a->node ? json_string(a->node) : json_null());
    work_request_as(w, "PATCH", path, NULL, STRATEGIC, patch, reported);
}

static void ended(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "end a pod for a more important one", text);
    } else {
        finish(ctx, w);
    }
}

static void send_deletion(struct work *w, const struct action *a)
{
    CLEANUP_FREE char *path = path_of(work_key(w), NULL);
    CLEANUP(json_free) struct json *options = json_object();
    json_set_string(json_ensure_object(options, "preconditions"), "uid", a->uid);
    work_request(w, "DELETE", path, options, ended);
}

static void marked(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct scheduler *s = ctx;
    struct action *a = smap_get(&s->actions, work_key(w));
    if (!a || !a->sent || error == -ENOENT || error == -ESTALE) {
        finish(s, w);
    } else if (error < 0) {
        work_retry(w, error, "mark a pod that has to go", text);
    } else {
        a->marked = true;
        send_deletion(w, a);
    }
}

static void send_mark(struct work *w, const struct action *a)
{
    CLEANUP_FREE char *path = path_of(work_key(w), "status");
    CLEANUP_FREE char *text =
        xasprintf("%s: preempting to accommodate a higher priority pod", SCHEDULER_NAME);
    CLEANUP(json_free)
    struct json *patch = status_patch(
        a->uid, condition("DisruptionTarget", "True", "PreemptionByScheduler", text, NULL));
    work_request_as(w, "PATCH", path, NULL, STRATEGIC, patch, marked);
}

/* ---- claims that wait for their pod ---- */

static void send_step(struct scheduler *s, struct work *w, struct action *a);

/* A step was refused: the volumes are as the copy has them.  The event of what made the server
 * refuse it makes the pod active. */
static void give_volumes_back(struct scheduler *s, struct action *a)
{
    const char *name;
    for (size_t i = 0; !(name = claim_steps_volume(a->steps, i)) || *name; i++) {
        const struct json *volume = name ? informer_get(s->volumes, name) : NULL;
        if (volume) {
            sched_set(s->model, SCHED_VOLUME, volume);
        }
    }
}

static void step_done(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct scheduler *s = ctx;
    struct action *a = smap_get(&s->actions, work_key(w));
    if (!a || !a->sent || a->type != PREPARE) {
        finish(s, w);
    } else if (error == -EAGAIN) {
        work_retry(w, error, "prepare a claim of a pod", text);
    } else if (error < 0) {
        log_info("claim of a pod refused its volume", "pod=%s reason=%s", work_key(w), text);
        give_volumes_back(s, a);
        finish(s, w);
    } else {
        claim_steps_count(a->steps);
        send_step(s, w, a);
    }
}

static void send_step(struct scheduler *s, struct work *w, struct action *a)
{
    if (!claim_steps_send(a->steps, w, step_done)) {
        finish(s, w);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct scheduler *s = ctx;
    struct action *a = smap_get(&s->actions, key);
    if (a) {
        a->sent = true;
    }
    if (!a) {
        work_done(w);
    } else if (a->type == BIND) {
        send_binding(w, a);
    } else if (a->type == PREPARE) {
        send_step(s, w, a);
    } else if (a->type == REPORT) {
        send_report(s, w, a);
    } else if (a->marked) {
        send_deletion(w, a);
    } else {
        send_mark(w, a);
    }
}

/* ---- events of pods ---- */

/* Whether the pod gets a node by a Binding that is under way, or that no event has shown yet. */
static bool is_assumed(const struct scheduler *s, const char *key, const struct json *pod)
{
    return streq_null(smap_get(&s->assumed, key), obj_uid(pod));
}

static void pod_waits(struct scheduler *s, const char *key, const struct json *old,
                      const struct json *pod)
{
    const char *nominated = json_get_text(json_get(pod, "status"), "nominatedNodeName");
    const struct json *gates = json_path(pod, "spec", "schedulingGates", NULL);
    bool same = old && streq(obj_uid(old), obj_uid(pod)) &&
                json_equal(json_get(old, "spec"), json_get(pod, "spec")) &&
                !json_path(old, "spec", "nodeName", NULL) && pending_has(s->pending, key);
    if (is_assumed(s, key, pod)) {
        return;
    }
    sched_remove_pod(s->model, key);
    if (json_count(gates)) {
        pending_remove(s->pending, key);
        smap_set(&s->gated, key, s);
        report(s, key, pod, "SchedulingGated",
               "Scheduling is blocked due to non-empty scheduling gates", NULL);
        return;
    }
    (void) smap_remove(&s->gated, key);
    if (!old && *nominated) {
        sched_nominate(s->model, pod, nominated);
    }
    if (!same) {
        pending_add(s->pending, key, sched_pod_priority(pod),
                    json_get_text(json_get(pod, "metadata"), "creationTimestamp"));
        wake(s);
    }
}

static void forget(struct scheduler *s, const char *key, const struct json *pod)
{
    (void) smap_remove(&s->assumed, key);
    (void) smap_remove(&s->gated, key);
    pending_remove(s->pending, key);
    sched_nominate(s->model, pod, NULL);
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct scheduler *s = ctx;
    if (is_over(pod)) {
        forget(s, key, pod);
        sched_remove_pod(s->model, key);
        helps(s, BY_ENDS);
    } else if (*node_of(pod)) {
        forget(s, key, pod);
        sched_set_pod(s->model, pod, node_of(pod));
        if (!old || !*node_of(old) || obj_is_terminating(pod) ||
            !json_equal(json_get(old, "metadata"), json_get(pod, "metadata"))) {
            helps(s, BY_PODS);
        }
    } else if (obj_is_terminating(pod) || !is_mine(pod)) {
        forget(s, key, pod);
    } else {
        pod_waits(s, key, old, pod);
    }
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    struct scheduler *s = ctx;
    forget(s, key, pod);
    sched_remove_pod(s->model, key);
    helps(s, BY_ENDS);
}

/* ---- events of other kinds ---- */

static void node_changed(void *ctx, const char *key, const struct json *old,
                         const struct json *node)
{
    struct scheduler *s = ctx;
    if (sched_set_node(s->model, node)) {
        helps(s, ALL_REASONS);
    }
}

static void node_deleted(void *ctx, const char *key, const struct json *node)
{
    struct scheduler *s = ctx;
    sched_remove_node(s->model, key);
    helps(s, BY_PODS | BY_VOLUMES); /* A volume that was to be made there is made elsewhere. */
}

#define WATCHES_KIND(name, kind, reasons)                                          \
    static void name##_changed(void *ctx, const char *key, const struct json *old, \
                               const struct json *obj)                             \
    {                                                                              \
        struct scheduler *s = ctx;                                                 \
        sched_set(s->model, kind, obj);                                            \
        helps(s, reasons);                                                         \
    }                                                                              \
    static void name##_deleted(void *ctx, const char *key, const struct json *obj) \
    {                                                                              \
        struct scheduler *s = ctx;                                                 \
        sched_remove(s->model, kind, key);                                         \
        helps(s, reasons);                                                         \
    }

WATCHES_KIND(namespace, SCHED_NAMESPACE, BY_PODS)
WATCHES_KIND(service, SCHED_SERVICE, BY_PODS)
WATCHES_KIND(claim, SCHED_CLAIM, BY_VOLUMES)
WATCHES_KIND(volume, SCHED_VOLUME, BY_VOLUMES)
WATCHES_KIND(class, SCHED_CLASS, BY_VOLUMES)
WATCHES_KIND(capacity, SCHED_CAPACITY, SCHED_BIT(SCHED_VOLUME_CAPACITY))
WATCHES_KIND(driver, SCHED_DRIVER, SCHED_BIT(SCHED_VOLUME_CAPACITY))
WATCHES_KIND(csi_node, SCHED_CSI_NODE, SCHED_BIT(SCHED_VOLUME_LIMIT))
WATCHES_KIND(budget, SCHED_BUDGET, 0)

/* ---- start and stop ---- */

static void synced(void *state)
{
    struct scheduler *s = state;
    s->synced = true;
    log_info("scheduling", "nodes=%zu waiting=%zu", sched_node_count(s->model),
             pending_size(s->pending));
    wake(s);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    const struct scheduler_config *cfg = config;
    struct scheduler *s = NEW(struct scheduler);
    s->env = *env;
    s->model = sched_new((uint64_t) time_wall_ms());
    if (cfg->policy) {
        sched_set_policy(s->model, cfg->policy);
    }
    s->pending = pending_new();
    smap_init(&s->actions, action_free);
    smap_init(&s->assumed, free);
    smap_init(&s->gated, NULL);
    loop_task_init(&s->task, env->loop, turn, s);
    s->timer = loop_timer_new(env->loop, timer_fired, s);
    *ret = s;
    return 0;
}

static void write_metrics(void *state, struct strbuf *out)
{
    struct scheduler *s = state;
    struct scheduler_facts facts = s->facts;
    pending_count(s->pending, &facts.active, &facts.backoff, &facts.unschedulable);
    facts.gated = smap_size(&s->gated);
    prom_write(&scheduler_metrics, &facts, out);
}

static void stop(void *state)
{
    struct scheduler *s = state;
    loop_task_cancel(&s->task);
    loop_timer_free(s->timer);
    smap_done(&s->actions);
    smap_done(&s->assumed);
    smap_done(&s->gated);
    pending_free(s->pending);
    sched_free(s->model);
    free(s);
}

#define ROW(kind, version, name)                                               \
    {                                                                          \
        .api_version = (version), .plural = (kind), .changed = name##_changed, \
        .deleted = name##_deleted                                              \
    }

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "pods",
     .informer = CONTROLLER_INFORMER(struct scheduler, pods),
     .changed = pod_changed,
     .deleted = pod_deleted},
    ROW("nodes", "v1", node),
    ROW("namespaces", "v1", namespace),
    ROW("services", "v1", service),
    ROW("persistentvolumeclaims", "v1", claim),
    {.api_version = "v1",
     .plural = "persistentvolumes",
     .informer = CONTROLLER_INFORMER(struct scheduler, volumes),
     .changed = volume_changed,
     .deleted = volume_deleted},
    ROW("storageclasses", "storage.k8s.io/v1", class),
    ROW("csistoragecapacities", "storage.k8s.io/v1", capacity),
    ROW("csidrivers", "storage.k8s.io/v1", driver),
    ROW("csinodes", "storage.k8s.io/v1", csi_node),
    ROW("poddisruptionbudgets", "policy/v1", budget),
};

const struct controller scheduler_controller = {
    .name = "scheduler",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 32,
    .start = start,
    .synced = synced,
    .reconcile = reconcile,
    .write_metrics = write_metrics,
    .stop = stop,
};
