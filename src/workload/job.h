/* SPDX-License-Identifier: Apache-2.0 */
/* Job: pods that have to succeed.
 *
 * No pod is counted twice or forgotten: each has a finalizer until the status has its uid. First
 * the status lists the uid of a pod that ended (uncountedTerminatedPods), then the finalizer is
 * removed, and when that is seen, the number replaces the uid.  Backoff, policies, conditions and
 * messages are those of Kubernetes' job controller; a Job is Complete or Failed only when no pod of
 * it runs any more.  Pure. */
#pragma once

#include "workload/pods.h"

#define JOB_FINALIZER "batch.kubernetes.io/job-tracking"
#define JOB_INDEX "batch.kubernetes.io/job-completion-index"
#define JOB_BURST 500

void job_plan(const struct json *job, struct workload_child *pods, size_t n, int64_t now_ms,
              struct workload_plan *ret);
/* Whether it is Complete or Failed, and since when (may be NULL; 0: unknown). */
bool job_is_finished(const struct json *job, int64_t *ret_since_ms);
/* Whether another program works on it (spec.managedBy). */
bool job_is_foreign(const struct json *job);
/* A patch that removes the finalizer of the pod; owned. */
struct json *job_release_patch(const struct json *pod);
