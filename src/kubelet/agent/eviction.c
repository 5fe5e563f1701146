/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/eviction.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/pods/measure.h"

LOG_MODULE("eviction");

#define PERIOD_MS 10000
#define SOON_MS 1000 /* While the node is under pressure. */
#define WAIT_MS 30000
#define PAUSE_TIMES 10 /* A walk is followed by so many times its length without one. */

struct eviction {
    struct eviction_config c;
    struct evict_settings settings;
    struct evict_state state;
    struct evict_need need;
    struct loop_timer *timer;
    struct measurement *measurement; /* Under way. */
    bool measures_disk;
    uint64_t began_ms, next_walk_ms;
    char *victim; /* UID of the pod that was evicted last. */
    uint64_t victim_ms;
};

bool eviction_has(const struct eviction *v, enum evict_condition c)
{
    return v->state.on[c];
}

static bool is_about_disk(const struct evict_need *n)
{
    return n->needed && n->signal != EVICT_MEMORY && n->signal != EVICT_PIDS;
}

static void read_signals(struct eviction *v)
{
    struct evict_value values[EVICT_SIGNALS];
    bool before = v->need.needed;
    host_signals(v->c.cfg->root_dir, v->c.image_dir ? v->c.image_dir(v->c.ctx) : NULL, values);
    evict_update(&v->state, &v->settings, values, (int64_t) time_mono_ns(), &v->need);
    node_status_set_pressure(v->c.status, v->state.on);
    if (v->need.needed && !before) {
        log_warn("the node is short of a resource", "signal=%s available=%lld threshold=%lld",
                 evict_signal_name(v->need.signal), (long long) v->need.available,
                 (long long) v->need.threshold);
    }
}

static bool evict(struct eviction *v, const struct json *pod, const char *message, int64_t grace_s)
{
    if (!workers_evict(v->c.pods, pod_uid(pod), "Evicted", message, grace_s)) {
        return false;
    }
    log_warn("a pod is evicted", "pod=%s/%s message=\"%s\"", pod_namespace(pod), pod_name(pod),
             message);
    return true;
}

/* Evicts the pods that use more than they may; forgets them in 'left'. */
static size_t evict_by_limits(struct eviction *v, const struct evict_usage *pods, size_t n,
                              struct evict_usage *left)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *message = evict_storage_limit(&pods[i]);
        if (!workers_is_kept(v->c.pods, pod_uid(pods[i].pod))) {
            continue; /* It ended meanwhile. */
        }
        if (!message || pod_is_critical(pods[i].pod) || !evict(v, pods[i].pod, message, 0)) {
            left[n_left++] = pods[i];
        }
    }
    return n_left;
}

static void evict_one(struct eviction *v, const struct evict_usage *pods, size_t n)
{
    int best = evict_choose(&v->need, pods, n);
    if (best < 0) {
        return;
    }
    CLEANUP_FREE char *message = evict_message(&v->need, &pods[best]);
    if (evict(v, pods[best].pod, message, v->need.hard ? 0 : v->settings.max_grace_s)) {
        free(v->victim);
        v->victim = xstrdup(pod_uid(pods[best].pod));
        v->victim_ms = loop_now_ms(v->c.loop);
    }
}

static void measured(void *ctx, const struct evict_usage *pods, size_t n)
{
    struct eviction *v = ctx;
    CLEANUP_FREE struct evict_usage *left = xcalloc(n + 1, sizeof *left);
    uint64_t now = loop_now_ms(v->c.loop);
    v->measurement = NULL;
    if (v->measures_disk) {
        v->next_walk_ms = now + PAUSE_TIMES * (now - v->began_ms);
        n = evict_by_limits(v, pods, n, left);
    } else {
        memcpy(left, pods, n * sizeof *left);
    }
    read_signals(v); /* The need may be over. */
    if (v->need.needed && (v->measures_disk || !is_about_disk(&v->need))) {
        evict_one(v, left, n);
    }
}

struct gathering {
    struct eviction *eviction;
    struct measurement *measurement;
    bool all;
};

static void gather(void *ctx, const struct json *pod, const struct json *status)
{
    struct gathering *g = ctx;
    const struct workers *pods = g->eviction->c.pods;
    if (workers_is_kept(pods, pod_uid(pod)) && (g->all || evict_has_storage_limit(pod))) {
        measurement_add(g->measurement, pod, workers_observed(pods, pod_uid(pod)));
    }
}

/* Whether the pod that was evicted last still has what is missing. */
static bool must_wait(struct eviction *v, uint64_t now)
{
    if (v->victim && (workers_has_ended(v->c.pods, v->victim) || now - v->victim_ms >= WAIT_MS)) {
        free(v->victim);
        v->victim = NULL;
    }
    return v->victim;
}

static void tick(void *ctx)
{
    struct eviction *v = ctx;
    uint64_t now = loop_now_ms(v->c.loop);
    read_signals(v);
    bool acts = v->need.needed && !must_wait(v, now);
    if (acts && is_about_disk(&v->need) && v->c.reclaim && v->c.reclaim(v->c.ctx, v->need.signal)) {
        acts = false; /* Images go before pods. */
    }
    bool pressed = v->need.needed;
    for (size_t i = 0; i < EVICT_CONDITIONS; i++) {
        pressed = pressed || v->state.on[i];
    }
    loop_timer_arm(v->timer, pressed ? SOON_MS : PERIOD_MS);
    bool walks = now >= v->next_walk_ms;
    if (v->measurement || (!walks && (!acts || is_about_disk(&v->need)))) {
        return;
    }
    struct gathering g = {.eviction = v, .all = acts};
    g.measurement = measurement_new(v->c.loop, v->c.node, v->c.cfg->root_dir, walks);
    workers_each(v->c.pods, gather, &g);
    if (measurement_count(g.measurement) == 0) {
        measurement_free(g.measurement);
        return;
    }
    v->measurement = g.measurement;
    v->measures_disk = walks;
    v->began_ms = now;
    measurement_start(v->measurement, measured, v);
}

struct eviction *eviction_new(const struct eviction_config *c)
{
    struct eviction *v = NEW(struct eviction);
    v->c = *c;
    kubelet_config_eviction(c->cfg, &v->settings);
    v->timer = loop_timer_new(c->loop, tick, v);
    loop_timer_arm(v->timer, 0);
    return v;
}

struct eviction *eviction_free(struct eviction *v)
{
    if (v) {
        measurement_free(v->measurement);
        loop_timer_free(v->timer);
        free(v->victim);
        free(v);
    }
    return NULL;
}
