/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/shutdown.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/agent/logind.h"
#include "pod/pod.h"

LOG_MODULE("shutdown");

#define LOOK_MS 100
#define SECOND_NS INT64_C(1000000000)
#define REASON "Terminated"
#define MESSAGE "Pod was terminated in response to imminent node shutdown."

enum stage { NONE, OTHERS, CRITICAL, DONE };

struct shutdown {
    struct shutdown_config c;
    struct logind *logind;
    int64_t grace_ns[DONE]; /* Of each stage. */
    enum stage stage;
    uint64_t until_ms; /* The end of the stage. */
    struct loop_timer *timer;
};

/* ---- pods ---- */

struct look {
    struct shutdown *shutdown;
    size_t left; /* Pods of the stage that have not ended. */
};

static void end_pod(void *ctx, const struct json *pod, const struct json *status)
{
    struct look *look = ctx;
    struct shutdown *s = look->shutdown;
    if (s->stage == OTHERS && pod_is_critical(pod)) {
        return;
    }
    if (workers_evict(s->c.pods, pod_uid(pod), REASON, MESSAGE,
                      s->grace_ns[s->stage] / SECOND_NS)) {
        log_info("a pod is ended for the host's shutdown", "pod=%s/%s", pod_namespace(pod),
                 pod_name(pod));
    }
    look->left += !workers_is_settled(s->c.pods, pod_uid(pod));
}

static void enter(struct shutdown *s, enum stage stage)
{
    s->stage = stage;
    if (stage == NONE || stage == DONE) {
        loop_timer_disarm(s->timer);
        return;
    }
    s->until_ms = loop_now_ms(s->c.loop) + (uint64_t) (s->grace_ns[stage] / 1000000);
    loop_timer_arm(s->timer, 0);
}

static void look_on(void *ctx)
{
    struct shutdown *s = ctx;
    struct look look = {.shutdown = s};
    workers_each(s->c.pods, end_pod, &look);
    if (look.left && loop_now_ms(s->c.loop) < s->until_ms) {
        loop_timer_arm(s->timer, LOOK_MS);
        return;
    }
    if (look.left) {
        log_warn("pods have not ended in time; the host shuts down without them",
                 "pods=%zu critical=%s", look.left, s->stage == CRITICAL ? "true" : "false");
    }
    enter(s, s->stage + 1);
    if (s->stage == DONE) {
        log_info("the host may shut down");
        logind_release(s->logind);
    }
}

/* ---- logind ---- */

static void on_locked(void *ctx, uint64_t delay_max_ms)
{
    struct shutdown *s = ctx;
    uint64_t want_ms = (uint64_t) ((s->grace_ns[OTHERS] + s->grace_ns[CRITICAL]) / 1000000);
    if (delay_max_ms < want_ms) {
        log_warn(
            "logind will not wait as long as shutdownGracePeriod says; set InhibitDelayMaxSec in "
            "/etc/systemd/logind.conf.d/tenet.conf, then restart systemd-logind",
            "InhibitDelayMaxSec=%llums shutdownGracePeriod=%llums",
            (unsigned long long) delay_max_ms, (unsigned long long) want_ms);
    } else {
        log_info("the host's shutdown will wait for pods");
    }
}

static void on_lost(void *ctx, const char *reason)
{
    log_warn("the host would shut down without waiting for pods", "error=\"%s\"", reason);
}

static void on_prepare(void *ctx, bool begins)
{
    struct shutdown *s = ctx;
    if (begins == (s->stage != NONE)) {
        return;
    }
    log_warn(begins ? "the host shuts down" : "the host does not shut down after all", "pods=%zu",
             workers_count(s->c.pods));
    enter(s, begins ? OTHERS : NONE);
    s->c.changed(s->c.ctx);
}

bool shutdown_is_under_way(const struct shutdown *s)
{
    return s && s->stage != NONE;
}

int shutdown_new(const struct shutdown_config *c, struct shutdown **ret, struct err *e)
{
    static const struct logind_ops ops = {
        .locked = on_locked, .lost = on_lost, .prepare = on_prepare};
    int64_t all_ns = 0, critical_ns = 0;
    time_parse_duration(c->cfg->shutdown_grace, &all_ns);
    time_parse_duration(c->cfg->shutdown_grace_critical, &critical_ns);
    *ret = NULL;
    if (!all_ns) {
        return 0;
    }
    struct shutdown *s = NEW(struct shutdown);
    s->c = *c;
    s->grace_ns[OTHERS] = all_ns - critical_ns;
    s->grace_ns[CRITICAL] = critical_ns;
    int r = logind_new(c->loop, &ops, s, &s->logind, e);
    if (r < 0) {
        free(s);
        return r;
    }
    s->timer = loop_timer_new(c->loop, look_on, s);
    *ret = s;
    return 0;
}

struct shutdown *shutdown_free(struct shutdown *s)
{
    if (s) {
        logind_free(s->logind);
        loop_timer_free(s->timer);
        free(s);
    }
    return NULL;
}
