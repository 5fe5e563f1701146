/* SPDX-License-Identifier: Apache-2.0 */
/* Deployment: ReplicaSets, one for each template, of which the present one takes over.
 *
 * Strategies, revisions, names, annotations, conditions and messages are those of Kubernetes'
 * deployment controller; the arithmetic is in rollout.h.  A plan makes one step (create the new
 * set, scale sets up, or down, or clean up); the next step follows when the changed sets are seen.
 * Pure. */
#pragma once

#include "workload/pods.h"

/* The hash of the template that a ReplicaSet was made from; admission may have changed it. */
#define DEPLOYMENT_MADE_FROM "tenet.io/template-hash"
#define DEPLOYMENT_REVISION "deployment.kubernetes.io/revision"

/* Plans for the Deployment 'd'.  'sets' are its ReplicaSets and those of its namespace that nothing
 * controls; they are reordered.  'pods': with the strategy Recreate the pods of its sets, which
 * have to end before new ones begin. */
void deployment_plan(const struct json *d, struct workload_child *sets, size_t n,
                     const struct json *const *pods, size_t n_pods, int64_t now_ms,
                     struct workload_plan *ret);
/* Whether the plan looks at pods: it has the strategy Recreate, and is not complete. */
bool deployment_needs_pods(const struct json *d);
