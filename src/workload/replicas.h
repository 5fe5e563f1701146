/* SPDX-License-Identifier: Apache-2.0 */
/* ReplicaSet and ReplicationController: a number of equal pods is kept.
 *
 * The rules, reasons and messages are those of Kubernetes' replicaset controller.  Pure. */
#pragma once

#include "workload/pods.h"

/* At most so many pods are created, or deleted, by one plan. */
#define REPLICAS_BURST 500

/* The selector of the owner as a LabelSelector; owned.  A ReplicationController has a map. */
struct json *replicas_selector(const struct workload_kind *kind, const struct json *owner);

/* Plans for 'owner', of kind workload_replica_sets or workload_replication_controllers.
 * 'candidates' are reordered.  'related': see workload_pod_sort_victims; it is read when pods are
 * deleted. */
void replicas_plan(const struct workload_kind *kind, const struct json *owner,
                   struct workload_child *candidates, size_t n, const struct json *const *related,
                   size_t n_related, int64_t now_ms, struct workload_plan *ret);
