/* SPDX-License-Identifier: Apache-2.0 */
/* Watches over nodes: one whose kubelet is silent becomes unknown, conditions become taints, and
 * pods leave a node that is not ready or unknown after the time that they tolerate.
 *
 * A kubelet is heard when its Lease in kube-node-lease or its Ready condition's heartbeat changes;
 * times are those of this process, so clocks of hosts are not compared, and a new leader waits the
 * whole time again.  When many nodes of a zone are ill at once, few or none lose their pods
 * (node_health.h); when all nodes of the cluster are, none does, and no pod is marked as not ready.
 *
 * A pod that has to leave is only marked as being deleted: its node ends it when it is back. */
#pragma once

#include "controller/controller.h"

struct node_lifecycle_config {
    unsigned grace_s; /* A kubelet that was silent for longer is unknown; 0: 40. */
};

extern const struct controller node_lifecycle_controller;
