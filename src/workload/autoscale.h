/* SPDX-License-Identifier: Apache-2.0 */
/* HorizontalPodAutoscaler (autoscaling/v2): how many pods a target gets by the use of their
 * resources.
 *
 * The arithmetic (tolerance, pods without metrics or not ready yet, stabilisation, limits of the
 * rate), the conditions and their messages are those of Kubernetes' horizontal controller.  Metrics
 * of the types Pods, Object and External have no source here and are failures that the condition
 * ScalingActive names.  Pure. */
#pragma once

#include "wire/json.h"

#define AUTOSCALE_PERIOD_MS 15000

/* What the decision remembers of one autoscaler; zero-initialise it. */
struct autoscale_note {
    int64_t at_ms, n; /* A recommendation, or a change that was made (negative: pods fewer). */
};
struct autoscale_memory {
    struct autoscale_note *wanted, *changes;
    size_t n_wanted, cap_wanted, n_changes, cap_changes;
};
void autoscale_memory_done(struct autoscale_memory *m);

struct autoscale_input {
    const struct json *scale;   /* autoscaling/v1 Scale of the target. */
    const struct json *pods;    /* Array of the Pods that its selector selects. */
    const struct json *metrics; /* Array of their PodMetrics; NULL: they cannot be had. */
    const char *metrics_error;  /* Then: why. */
};

struct autoscale {
    int64_t desired;               /* The number of pods. */
    bool scales;                   /* It differs from the target's. */
    char *reason;                  /* Owned: why it changes, for the Event. */
    char *fail_reason, *fail_text; /* Owned: the metrics are no basis; NULL: they are. */
    struct json *status;           /* The autoscaler with its status; owned. */
};
void autoscale_done(struct autoscale *a);

/* Decides for the autoscaler 'hpa'. */
void autoscale_plan(const struct json *hpa, const struct autoscale_input *in,
                    struct autoscale_memory *memory, int64_t now_ms, struct autoscale *ret);
/* The target was changed from 'from' to 'to' pods: notes it, and completes the status. */
void autoscale_changed(struct autoscale *a, struct autoscale_memory *memory, int64_t from,
                       int64_t to, int64_t now_ms);
