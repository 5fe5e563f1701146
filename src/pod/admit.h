/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this node takes a pod: the node's own check of what the scheduler checked (Kubernetes'
 * pkg/kubelet/lifecycle/predicate.go, and the admission of pkg/kubelet/eviction).
 *
 * A pod may name its node itself, and two schedulers may choose one node at once, so the last word
 * is the node's.  A refused pod ends as Failed with the reason and message, and is not looked at
 * again.  The words are the kubelet's.  Pure. */
#pragma once

#include "wire/json.h"

/* What the node is and has; borrowed, each may be NULL: not known, and not checked. */
struct pod_admit_node {
    const struct json *node;        /* The Node's object: labels and taints. */
    const struct json *allocatable; /* As in status.allocatable. */
    bool memory_pressure, disk_pressure, pid_pressure;
    bool shuts_down; /* The host does. */
};

struct pod_refusal {
    char *reason, *message; /* Owned. */
};
void pod_refusal_done(struct pod_refusal *r);
static inline UNUSED void pod_refusal_donep(struct pod_refusal *r)
{
    pod_refusal_done(r);
}

/* 'others': the pods that the node has taken and that have not ended.  True: the node takes 'pod';
 * else '*ret' has why, to be released with pod_refusal_done. */
bool pod_admit_here(const struct json *pod, const struct json *const *others, size_t n_others,
                    const struct pod_admit_node *node, struct pod_refusal *ret);
