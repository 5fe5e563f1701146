/* SPDX-License-Identifier: Apache-2.0 */
/* A listener for pods of this node.  Modules with state for each attached pod (network policy, DNS)
 * implement it; pods_listen (node/cni/pods.h) registers it. On the loop's thread. */
#pragma once

#include "datapath/datapath.h"

struct pod_listener {
    /* The pod is about to be attached: called before the datapath has it, so that the listener's
     * rules for its address are in place with the pod. */
    void (*attaching)(void *ctx, const struct dp_pod *pod);
    /* The datapath has the pod no longer, or the attachment failed; its address is about to
     * become free. */
    void (*detached)(void *ctx, const struct dp_pod *pod);
};
