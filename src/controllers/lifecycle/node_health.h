/* SPDX-License-Identifier: Apache-2.0 */
/* The health of a node as the master sees it: conditions, taints and when pods have to leave.
 * Pure.
 *
 * The rules and names are those of Kubernetes' node life-cycle controller and taint manager.  Only
 * nodes with a kubelet are concerned: others have no one who keeps their conditions current. */
#pragma once

#include "wire/json.h"

/* A node that was silent for longer is unknown. */
#define NODE_HEALTH_GRACE_MS 40000
/* The time that pods stay on a node that is not ready or not reachable, when they do not say. */
#define NODE_HEALTH_STAY_S 300

/* Whether a kubelet reports for this Node: its status names a container runtime. */
bool node_health_has_kubelet(const struct json *node);

enum node_state { NODE_READY, NODE_NOT_READY, NODE_UNKNOWN };
/* By the condition Ready; absent is NODE_UNKNOWN. */
enum node_state node_health_state(const struct json *node);

/* Sets the conditions that a kubelet keeps to Unknown; returns whether that changed 'node'. */
bool node_health_mark_unknown(struct json *node, int64_t now_ms);
/* Gives 'node' the taints that its conditions mean, and removes them when they no longer hold;
 * taints with other keys stay.  'evicts': pods have to leave a node that is not ready or unknown.
 * Returns whether that changed it. */
bool node_health_set_taints(struct json *node, bool evicts, int64_t now_ms);

/* When the pod has to leave its node for a taint NoExecute, in wall-clock milliseconds; -1:
 * never. */
int64_t node_health_leave_ms(const struct json *pod, const struct json *node);

/* Nodes of one zone. */
struct zone_health {
    size_t nodes, ill; /* ill: not ready or unknown. */
};
/* The pause between two nodes of the zone whose pods begin to leave, in milliseconds; 0: none may,
 * because most nodes are ill: then more likely the network or the master is.  A zone whose nodes
 * are all ill has failed, and its pods leave as usual. */
uint64_t node_health_pause_ms(const struct zone_health *z);
