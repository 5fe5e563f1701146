/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a worker on sandboxes, and the end of containers. */
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/workers_priv.h"

LOG_MODULE("pods");

#define SANDBOX_RETRY_MIN_MS 1000
#define SANDBOX_RETRY_MAX_MS 30000
#define HOOK_ANSWER_MS 1000 /* For the runtime to say that a hook had no more time. */
#define STOP_MIN_S 2        /* Seconds that a container has at least after its preStop hook. */

struct op *op_new(struct worker *w, enum op_kind kind, const char *name, const char *id)
{
    struct op *op = NEW(struct op);
    op->worker = w;
    op->kind = kind;
    op->name = xstrdup(name);
    op->id = id ? xstrdup(id) : NULL;
    list_push_back(&w->ops, &op->node);
    if (*name) {
        pod_observed_fact(&w->o, name)->busy = true;
    } else {
        w->o.sandbox_busy = true;
    }
    return op;
}

/* What is busy by the operations that are left. */
static void update_busy(struct worker *w)
{
    struct op *op;
    w->o.sandbox_busy = false;
    for (size_t i = 0; i < w->o.n_facts; i++) {
        w->o.facts[i].busy = false;
    }
    LIST_FOREACH (op, struct op, node, &w->ops) {
        if (*op->name) {
            pod_observed_fact(&w->o, op->name)->busy = true;
        } else {
            w->o.sandbox_busy = true;
        }
    }
}

void op_free(struct op *op)
{
    struct worker *w = op->worker;
    list_remove(&op->node);
    if (op->call) {
        runtime_cancel(op->call);
    }
    image_call_cancel(op->image);
    action_free(op->action);
    loop_timer_free(op->timer);
    pod_env_done(&op->env);
    arena_done(&op->arena);
    json_free(op->pod);
    free(op->name);
    free(op->id);
    free(op->image_ref);
    free(op->sandbox_id);
    free(op);
    if (w) {
        update_busy(w);
    }
}

void op_end(struct op *op)
{
    struct worker *w = op->worker;
    op_free(op);
    worker_dirty(w);
}

struct op *op_find(const struct worker *w, const char *name, enum op_kind kind)
{
    struct op *op;
    LIST_FOREACH (op, struct op, node, &w->ops) {
        if (op->kind == kind && streq(op->name, name)) {
            return op;
        }
    }
    return NULL;
}

/* ---- sandboxes ---- */

static void sandbox_failed(struct worker *w, const char *text)
{
    uint64_t delay = time_backoff_ms(w->sandbox_failures++, SANDBOX_RETRY_MIN_MS,
                                     SANDBOX_RETRY_MAX_MS, hash_string(w->uid));
    w->o.sandbox_retry_ns = workers_now_ns() + (int64_t) delay * NS_PER_MS;
    w->pods->stats.action_errors++;
    worker_event(w, EVENT_WARNING, "FailedCreatePodSandBox", "Failed to create pod sandbox: %s",
                 text);
    log_warn("a pod's sandbox was not made", "pod=%s/%s error=\"%s\"", w->ns, w->name, text);
}

static void sandbox_made(void *ctx, int error, const char *text, const char *id)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    op->call = NULL;
    if (error < 0) {
        sandbox_failed(w, text);
    } else {
        w->sandbox_failures = 0;
        w->pods->stats.sandboxes++;
        smap_set(&w->pods->ids, id, xstrdup(w->uid));
    }
    op_end(op);
}

static void report_resolver(struct worker *w, struct arena *a)
{
    struct runtime_texts left_out = pod_dns_left_out(w->pod, w->pods->c.node, a);
    for (size_t i = 0; i < left_out.n; i++) {
        worker_event(w, EVENT_WARNING, "DNSConfigForming", "%s", left_out.v[i]);
    }
}

/* The runtime's handler for the pod's RuntimeClass; "": its default. */
static int find_handler(const struct worker *w, const char **ret, struct err *e)
{
    const struct workers *p = w->pods;
    const char *class = json_get_text(json_get(w->pod, "spec"), "runtimeClassName");
    *ret = "";
    if (!*class) {
        return 0;
    }
    int r = p->ops->handler ? p->ops->handler(p->ctx, class, ret) : -ENOENT;
    return r == -EAGAIN ? err_set(e, r, "the RuntimeClasses are not known yet")
           : r < 0      ? err_set(e, r, "RuntimeClass \"%s\" not found", class)
                        : 0;
}

void op_make_sandbox(struct worker *w, uint32_t attempt)
{
    struct op *op = op_new(w, OP_MAKE_SANDBOX, "", NULL);
    struct err e = {0};
    struct runtime_sandbox_spec s = {0};
    const char *handler;
    op->pod = json_clone(w->pod);
    int r = pod_sandbox_spec(op->pod, attempt, w->pods->c.node, &op->arena, &s, &e);
    if (find_handler(w, &handler, &e) < 0 || r == -ENAMETOOLONG) {
        sandbox_failed(w, e.text);
        op_end(op);
        return;
    }
    w->o.sandbox_attempt = attempt + 1;
    if (r < 0) {
        workers_evict(w->pods, w->uid, r == -EPERM ? "SysctlForbidden" : "UnexpectedAdmissionError",
                      e.text, -1);
        op_free(op);
        return;
    }
    report_resolver(w, &op->arena);
    op->call = runtime_run_sandbox(w->pods->c.runtime, &s, handler, sandbox_made, op);
}

static void sandbox_ended(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    op->call = NULL;
    if (error < 0 && error != -ENOENT) {
        w->pods->stats.action_errors++;
        if (said_is_news(&w->trouble, text)) {
            worker_event(w, EVENT_WARNING, "FailedKillPod", "error killing pod: %s", text);
        }
        log_warn("a pod's sandbox was not ended", "pod=%s/%s error=\"%s\"", w->ns, w->name, text);
    }
    op_end(op);
}

void op_stop_sandbox(struct worker *w, const char *id)
{
    struct op *op = op_new(w, OP_STOP_SANDBOX, "", id);
    op->call = runtime_stop_sandbox(w->pods->c.runtime, id, sandbox_ended, op);
}

void op_remove_sandbox(struct worker *w, const char *id)
{
    struct op *op = op_new(w, OP_REMOVE_SANDBOX, "", id);
    op->call = runtime_remove_sandbox(w->pods->c.runtime, id, sandbox_ended, op);
}

void op_remove_container(struct worker *w, const char *name, const char *id)
{
    struct op *op = op_new(w, OP_REMOVE, name, id);
    op->call = runtime_remove_container(w->pods->c.runtime, id, sandbox_ended, op);
}

/* ---- the end of a container ---- */

static void stop_now(struct op *op);

static uint32_t grace_left_s(const struct op *op)
{
    int64_t left = (op->deadline_ns - workers_now_ns() + NS_PER_S - 1) / NS_PER_S;
    return (uint32_t) MIN(MAX(left, (int64_t) STOP_MIN_S), (int64_t) INT32_MAX);
}

static void container_stopped(void *ctx, int error, const char *text)
{
    struct op *op = ctx;
    struct worker *w = op->worker;
    op->call = NULL;
    if (error < 0 && error != -ENOENT) {
        w->pods->stats.action_errors++;
        worker_event(w, EVENT_WARNING, "FailedKillPod", "error killing container %s: %s", op->name,
                     text);
        log_warn("a container was not ended", "pod=%s/%s container=%s error=\"%s\"", w->ns, w->name,
                 op->name, text);
    }
    op_end(op);
}

static void stop_now(struct op *op)
{
    op->action = action_free(op->action);
    op->timer = loop_timer_free(op->timer);
    op->stage = STAGE_STOP;
    op->call = runtime_stop_container(op->worker->pods->c.runtime, op->id, grace_left_s(op),
                                      container_stopped, op);
}

static void pre_stop_done(void *ctx, enum action_outcome outcome, const char *text)
{
    struct op *op = ctx;
    if (!action_succeeded(outcome)) {
        worker_event(op->worker, EVENT_WARNING, "FailedPreStopHook", "PreStopHook failed: %s",
                     text);
    }
    stop_now(op);
}

/* The runtime, which keeps the limit of a command, does not answer. */
static void pre_stop_expired(void *ctx)
{
    pre_stop_done(ctx, ACTION_FAILURE, "it did not end within the grace");
}

/* Begins the hook; false: there is none, or no time for it. */
static bool begin_pre_stop(struct op *op)
{
    struct worker *w = op->worker;
    const struct json *c = pod_container_named(op->pod, op->name, NULL);
    const struct json *hook = json_path(c, "lifecycle", "preStop", NULL);
    int64_t left = op->deadline_ns - workers_now_ns();
    const struct observed_sandbox *s = pod_observed_sandbox(&w->o);
    if (!hook || left <= 0) {
        return false;
    }
    struct action_target t = {.container = c,
                              .container_id = op->id,
                              .ip = pod_uses_host_network(w->pod) ? w->o.host_ip
                                    : s                           ? s->ip
                                                                  : NULL};
    op->stage = STAGE_HOOK;
    op->action = action_begin(w->pods->c.loop, w->pods->c.runtime, hook, &t,
                              (uint64_t) (left / NS_PER_MS), pre_stop_done, op);
    if (!op->timer) {
        op->timer = loop_timer_new(w->pods->c.loop, pre_stop_expired, op);
    }
    loop_timer_arm(op->timer, (uint64_t) (left / NS_PER_MS) + HOOK_ANSWER_MS);
    return true;
}

/* The end is to come sooner than was asked for. */
static void hurry(struct op *op, int64_t deadline_ns)
{
    if (deadline_ns + NS_PER_S / 2 >= op->deadline_ns) {
        return;
    }
    op->deadline_ns = deadline_ns;
    if (op->stage == STAGE_HOOK) {
        op->action = action_free(op->action);
        if (!begin_pre_stop(op)) {
            stop_now(op);
        }
        return;
    }
    /* The runtime continues with its first limit as well; the sooner one wins. */
    if (op->call) {
        op->call = runtime_cancel(op->call);
    }
    stop_now(op);
}

void op_kill(struct worker *w, const struct pod_kill *k)
{
    struct op *op;
    LIST_FOREACH (op, struct op, node, &w->ops) {
        if (op->kind == OP_KILL && streq(op->id, k->id)) {
            hurry(op, k->deadline_ns);
            return;
        }
    }
    op = op_new(w, OP_KILL, k->name, k->id);
    op->pod = json_clone(w->pod);
    op->deadline_ns = k->deadline_ns;
    w->pods->stats.kills++;
    if (k->message) {
        worker_event(w, EVENT_NORMAL, "Killing", "%s", k->message);
    } else {
        worker_event(w, EVENT_NORMAL, "Killing", "Stopping container %s", k->name);
    }
    if (!begin_pre_stop(op)) {
        stop_now(op);
    }
}
