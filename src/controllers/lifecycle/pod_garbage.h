/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes pods that nobody deletes otherwise: those of nodes that are gone, and the oldest of those
 * that have ended, when there are too many.
 *
 * A node that is gone for 40 seconds does not come back under load or by a restart of its agent;
 * before the first write the controller asks the API server for the Node once more, so that no
 * stale list of nodes ends pods.  A node has no right to delete its Node; whoever does ends its
 * pods in the registry, and the node then loses the right to what they refer to.
 *
 * The rules are those of Kubernetes' pod garbage collector.  What it does with pods that are being
 * deleted, pod_deletion.h does. */
#pragma once

#include "controller/controller.h"

struct pod_garbage_config {
    uint64_t quarantine_ms; /* Time that a Node may be absent; 0: 40 s. */
    unsigned threshold;     /* Pods that have ended and are kept; 0: all. */
};

extern const struct controller pod_garbage_controller;

/* Pure: whether the pod has ended: it is neither pending, running nor unknown. */
bool pod_garbage_has_ended(const struct json *pod);
/* Pure: sorts pods that have ended: evicted ones first, then the oldest. */
void pod_garbage_sort(const struct json **pods, size_t n);
