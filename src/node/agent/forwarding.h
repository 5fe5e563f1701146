/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath and the host's side of it (tun0, routes, NAT): opened together, ready together, lost
 * and repaired independently. On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Opens the datapath for 'n', and the keeper and monitor that keep the host in line with it. */
int agent_open_forwarding(struct agent *a, const struct sdn_network *n, struct err *e);
/* Keeps the neighbour entries of the VTEPs warm where the datapath needs that. */
void agent_update_neighbours(struct agent *a);
