/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes, from their HostSubnets, and the addresses of this node.  On the loop's
 * thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Fills in 'n->remotes' (owned by the caller), 'n->addresses', and the reported addresses of other
 * nodes that this node accepts.  A HostSubnet that cannot be used is left out, and reported once in
 * the log and by an Event. */
void agent_read_remotes(struct agent *a, struct sdn_network *n);
