/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSet: one pod on each node that it selects.
 *
 * Pods are bound by the scheduler: each has a node affinity for its node.  Which nodes get a pod,
 * which taints are tolerated and in which order pods are replaced is what Kubernetes' daemonset
 * controller does.  Pure, but for the delays of failed pods, which are the caller's. */
#pragma once

#include "base/map.h"
#include "workload/pods.h"

/* At most so many pods are created, or deleted, by one plan. */
#define DAEMON_BURST 250

/* Nodes on which pods of the set have failed, by name: the delay before another one doubles. */
struct daemon_failures {
    struct smap nodes;
};
void daemon_failures_init(struct daemon_failures *f);
void daemon_failures_done(struct daemon_failures *f);

/* Objects that a plan for a DaemonSet looks at; the lists of children are reordered. */
struct daemon_objects {
    struct workload_child *pods, *revisions;
    size_t n_pods, n_revisions;
    const struct json *const *nodes;
    size_t n_nodes;
    /* The node selector of the project, an object of texts; NULL: it has none. */
    const struct json *selector;
    struct daemon_failures *failures;
};

void daemon_plan(const struct json *set, struct daemon_objects *objects, int64_t now_ms,
                 struct workload_plan *ret);
/* Whether the node gets a pod of the set, and whether one that is there may stay.  'selector': as
 * in struct daemon_objects. */
bool daemon_wants(const struct json *set, const struct json *selector, const struct json *node,
                  bool *ret_stays);
/* The node that the pod has, or is for; "": none. */
const char *daemon_node_of(const struct json *pod);
/* Whether the change of a node can change which pods it gets. */
bool daemon_node_differs(const struct json *a, const struct json *b);
