/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy in the agent: whether it is needed, whether all of it is known, and when it comes
 * into effect. The objects are followed by node/registry/policies.h. On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Whether the policies that 'n' needs are known; begins to follow them when they are not. Network
 * policy comes into effect only when all policies are known. */
bool agent_policies_are_ready(struct agent *a, const struct sdn_network *n);
/* Puts policies into effect, or takes them away, as the plug-in of a->net says. */
void agent_begin_policies(struct agent *a);
/* Stops following policies, and removes their rules from the datapath. */
void agent_drop_policies(struct agent *a);
/* Gives the policies the networks of the ClusterNetwork, against which they check reported
 * addresses. */
void agent_set_policy_networks(struct agent *a);
/* Implements pods_ops.known; 'ctx' is a struct agent. */
int agent_knows_pod(void *ctx, const char *project, const char *pod, struct err *e);
