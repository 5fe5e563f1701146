/* SPDX-License-Identifier: Apache-2.0 */
/* Forwarding of packets: the datapath, and the host's part (tun0, routes, NAT).  The node is ready
 * when both are; each can be lost and repaired without the other.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Opens the datapath for the network 'n', the host sync, which maintains the host's part,
 * and the monitor, which reports changes of it.  Their callbacks set a->datapath_state
 * and a->host_state. */
int agent_open_forwarding(struct agent *a, const struct sdn_network *n, struct err *e);
/* Passes the present remotes to a->neigh, if the datapath needs resolved VTEPs (host/neigh.h). */
void agent_update_neighbours(struct agent *a);
