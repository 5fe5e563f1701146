/* SPDX-License-Identifier: Apache-2.0 */
/* The network of this node, from the registry's objects: ClusterNetwork, HostSubnets.  Reads them
 * when they change, checks them, and brings the difference into effect in the datapath, the host
 * and the pods.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

struct datapath_config agent_datapath_config(const struct node_config *c);
/* Begins to follow the registry's objects. */
void agent_follow_network(struct agent *a);
/* Brings what changed into effect; the callback of a->settle and a->look_again. */
void agent_settle(void *ctx);
/* Calls agent_settle soon: changes that come together are applied together. */
void agent_settle_soon(struct agent *a);
/* Logs what the start waits for; the callback of a->wait. */
void agent_log_wait(void *ctx);
