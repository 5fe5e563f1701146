/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of probes: settings with their defaults, thresholds, the time of the first one.  Pure.
 * The rules are those of the kubelet (pkg/kubelet/prober). */
#pragma once

#include "wire/json.h"

enum pod_probe_type { POD_PROBE_STARTUP, POD_PROBE_LIVENESS, POD_PROBE_READINESS };

struct pod_probe {
    const struct json *handler; /* The probe itself, which has exec, httpGet, ...; borrowed. */
    int64_t initial_delay_s, period_s, timeout_s;
    int64_t success_threshold, failure_threshold;
    int64_t grace_s; /* -1: the pod's. */
};

struct pod_probe_state {
    bool decided, good; /* The last verdict. */
    bool last;          /* The last result ... */
    int64_t in_a_row;   /* ... and how often it came. */
};

/* What a result means for the container. */
enum pod_probe_verdict { POD_PROBE_SAME, POD_PROBE_GOOD, POD_PROBE_BAD };

/* False: the container has no probe of this type. */
bool pod_probe_read(const struct json *container, enum pod_probe_type type, struct pod_probe *ret);
/* Counts a result.  A verdict is given when it changes, or is the first one. */
enum pod_probe_verdict pod_probe_count(const struct pod_probe *p, enum pod_probe_type type,
                                       struct pod_probe_state *s, bool success);
/* Milliseconds from now until the first probe of a container that was started at 'started_ns'.
 * 'phase_ms' (below the period) spreads the probes of containers that ran before the agent did. */
uint64_t pod_probe_first_ms(const struct pod_probe *p, int64_t started_ns, int64_t now_ns,
                            uint64_t phase_ms);
