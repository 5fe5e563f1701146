/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the deletion of pods on nodes that run no containers.
 *
 * A pod whose deletion was requested has a grace period.  Where a kubelet runs the pod, only the
 * kubelet deletes it finally, when its containers have ended: were the pod gone earlier, a
 * replacement would run beside them.  On other nodes, and when the Node is gone, this controller
 * deletes the pod some seconds after the grace period, unless the program that made it has.
 *
 * An administrator who knows that a node is switched off taints it as out of service: then, while
 * it is not ready, its pods are deleted at once.  A node cannot set its taints. */
#pragma once

#include "controller/controller.h"

/* Pure: whether no kubelet ends the pods of this Node (NULL: it is gone). */
bool pod_deletion_is_by_clock(const struct json *node);

/* Pure: whether the deletion of the node's pods ends at once: it is not ready, and an administrator
 * has tainted it with node.kubernetes.io/out-of-service. */
bool pod_deletion_is_forced(const struct json *node);

/* Time that the node gets beyond the grace period. */
#define POD_DELETION_SLACK_MS 2000

extern const struct controller pod_deletion_controller;

/* Pure: milliseconds until 'pod' must be deleted finally; 0: now;
 * negative: its deletion was not requested. */
int64_t pod_deletion_in_ms(const struct json *pod, int64_t now_ms);
