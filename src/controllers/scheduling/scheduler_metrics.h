/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the scheduler, with the names of kube-scheduler.  Pure. */
#pragma once

#include "base/prom.h"

/* How an attempt to give a pod a node ended: its Binding succeeded, no node suited it, or its
 * Binding was refused. */
enum scheduler_result { SCHEDULER_SCHEDULED, SCHEDULER_UNSCHEDULABLE, SCHEDULER_ERROR };
#define SCHEDULER_RESULTS 3

struct scheduler_facts {
    size_t active, backoff, unschedulable, gated; /* Pods, as they are now. */
    uint64_t attempts[SCHEDULER_RESULTS];
    /* Time of a decision; without its Binding.  Of SCHEDULER_SCHEDULED and
     * SCHEDULER_UNSCHEDULABLE. */
    struct prom_histogram decisions[SCHEDULER_RESULTS];
    uint64_t preemptions; /* Attempts to make room. */
    uint64_t victims;     /* Pods that had to go. */
};
/* Its facts are 'struct scheduler_facts'. */
extern const struct prom_table scheduler_metrics;
