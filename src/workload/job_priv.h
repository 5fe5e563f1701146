/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a Job's plan.  Internal to src/workload; pure. */
#pragma once

#include "workload/indexes.h"
#include "workload/job.h"

struct job {
    const struct json *job, *spec;
    struct workload_child *pods;
    size_t n;
    int64_t now_ms;
    bool indexed, suspended;
    bool waits_for_end; /* Pods on their way out are not replaced before they have ended. */
    int64_t parallelism, completions; /* 'completions' negative: not given. */
    int64_t backoff_limit, index_limit, most_failed_indexes; /* Negative: not given. */
    int64_t succeeded, failed;                               /* Uncounted pods included. */
    int64_t active, ready, terminating;
    struct indexes done, lost; /* Indexes that have succeeded, and failed for good. */
    /* Why it is going to fail, or has succeeded before all pods have; NULL: neither. */
    const char *fail_reason, *success_reason;
    char *text; /* Owned. */
    struct workload_plan *plan;
    struct json *o;
};

/* The completion index of a pod; negative: it has none in the range. */
int64_t job_index_of(const struct job *j, const struct json *pod);
bool job_pod_failed(const struct job *j, const struct workload_child *pod);
/* How often pods of the index have failed, as far as the pods are known. */
int64_t job_failures_of(const struct job *j, int64_t index);

/* ---- job_count.c ---- */
/* Counts the pods, fills the numbers of the status and adds the writes of finalizers.  Returns
 * whether all pods that have ended are counted. */
bool job_count(struct job *j);

/* ---- job_policy.c ---- */
enum job_action { JOB_COUNT, JOB_IGNORE, JOB_FAIL_INDEX, JOB_FAIL };
/* What the failure of the pod means by the podFailurePolicy; with JOB_FAIL '*ret_text' (may be
 * NULL) gets the reason, owned. */
enum job_action job_failure_action(const struct job *j, const struct json *pod, char **ret_text);
/* The number of the rule of the successPolicy that holds; negative: none. */
int64_t job_success_rule(const struct job *j);
