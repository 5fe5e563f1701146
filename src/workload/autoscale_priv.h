/* SPDX-License-Identifier: Apache-2.0 */
/* The replicas that one metric wants.  Internal to src/workload; pure. */
#pragma once

#include "base/err.h"
#include "workload/autoscale.h"

struct autoscale_metric {
    int64_t replicas;
    int64_t utilization; /* Percentage; negative: the target is a value. */
    int64_t average;     /* Of a pod, in thousandths. */
};

/* The number of pods that the metric wants, where there are 'current'.  'tolerance_up' and
 * 'tolerance_down': changes of the ratio that are ignored.  -ENODATA: no basis, and why. */
int autoscale_metric_replicas(const struct json *metric, const struct autoscale_input *in,
                              int64_t current, double tolerance_up, double tolerance_down,
                              int64_t now_ms, struct autoscale_metric *ret, struct err *e);
