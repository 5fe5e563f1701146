/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of containers that run.
 *
 * Each has a timer; the first comes after its initial delay, and after a start of the agent at a point
 * of its period that depends on the container's id, so that probes of many pods spread.  An error of
 * probing is tried twice more at once and then ignored, as in the kubelet. */
#include "base/log.h"
#include "base/mem.h"
#include "kubelet/pods/workers_priv.h"
#include "pod/probe.h"

LOG_MODULE("probes");

#define TRIES 3

struct probe {
    struct worker *worker;
    struct list node;
    enum pod_probe_type type;
    char *name, *id; /* Of the container. */
    struct pod_probe conf;
    struct pod_probe_state state;
    struct loop_timer *timer;
    struct action *action;
    struct json *container;
    unsigned tries;
    bool seen;
    struct said trouble;
    struct workers_probe counts; /* Only its numbers. */
};

static const char *const type_names[] = {[POD_PROBE_STARTUP] = "Startup",
                                         [POD_PROBE_LIVENESS] = "Liveness",
                                         [POD_PROBE_READINESS] = "Readiness"};

static void probe_free(struct probe *p)
{
    list_remove(&p->node);
    action_free(p->action);
    loop_timer_free(p->timer);
    json_free(p->container);
    said_done(&p->trouble);
    free(p->name);
    free(p->id);
    free(p);
}

void probes_free(struct worker *w)
{
    struct probe *p;
    LIST_FOREACH (p, struct probe, node, &w->probes) {
        probe_free(p);
    }
}

static void probe_begin(void *ctx);

/* Takes a verdict into the facts about the container. */
static void apply(struct probe *p, enum pod_probe_verdict v, const char *text)
{
    struct worker *w = p->worker;
    struct observed_fact *f = pod_observed_fact(&w->o, p->name);
    if (v == POD_PROBE_SAME || !streq_null(f->id, p->id)) {
        return;
    }
    bool good = v == POD_PROBE_GOOD;
    if (p->type == POD_PROBE_READINESS) {
        f->ready = good;
    } else if (good) {
        f->started = f->started || p->type == POD_PROBE_STARTUP;
    } else {
        free(f->kill_message);
        f->kill_message = xasprintf("Container %s failed %s probe, will be restarted", p->name,
                                    p->type == POD_PROBE_STARTUP ? "startup" : "liveness");
        f->kill_grace_s = p->conf.grace_s;
    }
    log_debug("a probe's result changed", "pod=%s/%s container=%s probe=%s good=%d text=\"%s\"",
              w->ns, w->name, p->name, type_names[p->type], good, text);
    worker_wake(w);
}

static void probe_done(void *ctx, enum action_outcome outcome, const char *text)
{
    struct probe *p = ctx;
    struct worker *w = p->worker;
    p->action = action_free(p->action);
    w->pods->stats.probes++;
    p->counts.successful += outcome == ACTION_SUCCESS;
    p->counts.failed += outcome == ACTION_FAILURE;
    p->counts.unknown += outcome == ACTION_ERROR;
    if (outcome == ACTION_ERROR && ++p->tries < TRIES) {
        probe_begin(p);
        return;
    }
    p->tries = 0;
    loop_timer_arm(p->timer, (uint64_t) p->conf.period_s * 1000);
    if (outcome == ACTION_ERROR) {
        worker_event(w, EVENT_WARNING, "ProbeWarning", "%s probe errored: %s", type_names[p->type],
                     text);
        return;
    }
    if (outcome == ACTION_FAILURE) {
        w->pods->stats.probe_failures++;
        /* One Event a failure, not one a probe: a pod that fails for days writes no more. */
        if (said_is_news(&p->trouble, text)) {
            worker_event(w, EVENT_WARNING, "Unhealthy", "%s probe failed: %s", type_names[p->type],
                         text);
        }
    } else if (outcome == ACTION_WARNING) {
        if (said_is_news(&p->trouble, text)) {
            worker_event(w, EVENT_WARNING, "ProbeWarning", "%s probe warning: %s",
                         type_names[p->type], text);
        }
    } else {
        said_is_news(&p->trouble, NULL);
    }
    enum pod_probe_verdict v =
        pod_probe_count(&p->conf, p->type, &p->state, action_succeeded(outcome));
    if (v == POD_PROBE_BAD && p->type != POD_PROBE_READINESS) {
        loop_timer_disarm(p->timer); /* It rests until there is another container. */
    }
    apply(p, v, text);
}

static void probe_begin(void *ctx)
{
    struct probe *p = ctx;
    struct worker *w = p->worker;
    const struct observed_fact *f = pod_observed_find_fact(&w->o, p->name);
    const struct observed_sandbox *s = pod_observed_sandbox(&w->o);
    if (!f || !streq_null(f->id, p->id)) {
        return;
    }
    /* The startup probe holds the others, and it ends with its first success. */
    bool startup = p->type == POD_PROBE_STARTUP;
    if (startup ? f->started : !f->started) {
        if (!startup) {
            loop_timer_arm(p->timer, (uint64_t) p->conf.period_s * 1000);
        }
        return;
    }
    struct action_target t = {.container = p->container,
                              .container_id = p->id,
                              .ip = pod_uses_host_network(w->pod) ? w->o.host_ip
                                    : s                           ? s->ip
                                                                  : NULL};
    p->action = action_begin(w->pods->c.loop, w->pods->c.runtime, p->conf.handler, &t,
                             (uint64_t) p->conf.timeout_s * 1000, probe_done, p);
}

static struct probe *find(struct worker *w, const char *name, enum pod_probe_type type)
{
    struct probe *p;
    LIST_FOREACH (p, struct probe, node, &w->probes) {
        if (p->type == type && streq(p->name, name)) {
            return p;
        }
    }
    return NULL;
}

static void probe_new(struct worker *w, const struct json *container, enum pod_probe_type type,
                      const struct observed_container *c)
{
    struct probe *p = NEW(struct probe);
    p->worker = w;
    p->type = type;
    p->name = xstrdup(c->name);
    p->id = xstrdup(c->id);
    p->container = json_clone(container);
    p->seen = true;
    pod_probe_read(p->container, type, &p->conf);
    p->timer = loop_timer_new(w->pods->c.loop, probe_begin, p);
    list_push_back(&w->probes, &p->node);
    uint64_t period = (uint64_t) p->conf.period_s * 1000;
    loop_timer_arm(p->timer, pod_probe_first_ms(&p->conf, c->started_ns, workers_now_ns(),
                                                hash_string(c->id) % MAX(period, UINT64_C(1))));
}

/* The results that hold before the first probe.  A container that an earlier agent started keeps the
 * readiness that the pod's status has. */
static void set_initial(struct worker *w, const struct json *container,
                        const struct observed_container *c, struct observed_fact *f)
{
    const struct json *told = pod_find_status(json_get(w->pod, "status"), c->name);
    const char *id = strrchr(json_get_text(told, "containerID"), '/');
    bool known = id && streq(id + 1, c->id);
    bool has_startup = json_get(container, "startupProbe") != NULL;
    bool has_readiness = json_get(container, "readinessProbe") != NULL;
    f->started = !has_startup || (known && json_get_bool(json_get(told, "started"), false));
    f->ready = has_readiness ? known && json_get_bool(json_get(told, "ready"), false) : f->started;
}

void probes_update(struct worker *w)
{
    struct probe *p;
    LIST_FOREACH (p, struct probe, node, &w->probes) {
        p->seen = false;
    }
    for (size_t i = 0; i < w->o.n_containers; i++) {
        const struct observed_container *c = &w->o.containers[i];
        enum pod_container_kind kind;
        const struct json *spec = pod_container_named(w->pod, c->name, &kind);
        struct observed_fact *f = pod_observed_fact(&w->o, c->name);
        if (!spec || c->state != RUNTIME_RUNNING || !streq_null(f->id, c->id) || f->hook) {
            continue;
        }
        if (!f->probed) {
            f->probed = true;
            set_initial(w, spec, c, f);
        }
        for (int t = POD_PROBE_STARTUP; t <= POD_PROBE_READINESS; t++) {
            struct pod_probe conf;
            enum pod_probe_type type = (enum pod_probe_type) t;
            bool ending = w->work != POD_SYNC && type != POD_PROBE_READINESS;
            if (kind == POD_INIT || kind == POD_EPHEMERAL || ending ||
                !pod_probe_read(spec, type, &conf)) {
                continue;
            }
            p = find(w, c->name, type);
            if (p && !streq(p->id, c->id)) {
                probe_free(p);
                p = NULL;
            }
            if (p) {
                p->seen = true;
            } else {
                probe_new(w, spec, type, c);
            }
        }
        if (f->started && !f->ready && !json_get(spec, "readinessProbe")) {
            f->ready = true;
        }
    }
    LIST_FOREACH (p, struct probe, node, &w->probes) {
        if (!p->seen) {
            probe_free(p);
        }
    }
}

void probes_each(const struct worker *w, void (*fn)(void *ctx, const struct workers_probe *p),
                 void *ctx)
{
    struct probe *p;
    LIST_FOREACH (p, struct probe, node, &w->probes) {
        struct workers_probe v = p->counts;
        v.namespace = w->ns;
        v.pod = w->name;
        v.uid = w->uid;
        v.container = p->name;
        v.type = type_names[p->type];
        fn(ctx, &v);
    }
}
