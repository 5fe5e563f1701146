/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/probe.h"

#include "base/timeutil.h"

static int64_t number(const struct json *probe, const char *key, int64_t dflt)
{
    int64_t n = json_get_int_or(json_get(probe, key), 0);
    return n > 0 && n <= INT32_MAX ? n : dflt;
}

bool pod_probe_read(const struct json *container, enum pod_probe_type type, struct pod_probe *ret)
{
    static const char *const keys[] = {[POD_PROBE_STARTUP] = "startupProbe",
                                       [POD_PROBE_LIVENESS] = "livenessProbe",
                                       [POD_PROBE_READINESS] = "readinessProbe"};
    const struct json *p = json_get(container, keys[type]);
    if (!json_is(p, JSON_OBJECT)) {
        return false;
    }
    *ret = (struct pod_probe){
        .handler = p,
        .initial_delay_s = number(p, "initialDelaySeconds", 0),
        .period_s = number(p, "periodSeconds", 10),
        .timeout_s = number(p, "timeoutSeconds", 1),
        .success_threshold = type == POD_PROBE_READINESS ? number(p, "successThreshold", 1) : 1,
        .failure_threshold = number(p, "failureThreshold", 3),
        .grace_s = json_get_int_or(json_get(p, "terminationGracePeriodSeconds"), -1),
    };
    return true;
}

enum pod_probe_verdict pod_probe_count(const struct pod_probe *p, enum pod_probe_type type,
                                       struct pod_probe_state *s, bool success)
{
    s->in_a_row = s->in_a_row && s->last == success ? s->in_a_row + 1 : 1;
    s->last = success;
    if (s->in_a_row < (success ? p->success_threshold : p->failure_threshold)) {
        return POD_PROBE_SAME;
    }
    if (s->decided && s->good == success) {
        return POD_PROBE_SAME;
    }
    s->decided = true;
    s->good = success;
    return success ? POD_PROBE_GOOD : POD_PROBE_BAD;
}

uint64_t pod_probe_first_ms(const struct pod_probe *p, int64_t started_ns, int64_t now_ns,
                            uint64_t phase_ms)
{
    int64_t due = started_ns + p->initial_delay_s * NS_PER_S;
    bool fresh = now_ns - started_ns < p->period_s * NS_PER_S;
    if (due > now_ns) {
        return (uint64_t) ((due - now_ns) / NS_PER_MS);
    }
    return fresh ? 0 : phase_ms;
}
