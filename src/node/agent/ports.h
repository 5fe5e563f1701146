/* SPDX-License-Identifier: Apache-2.0 */
/* Host ports of pods: opened on this host, published in the HostSubnet, and given to the pods'
 * services together with those that other nodes published.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Makes a->host_ports. */
void agent_open_host_ports(struct agent *a);
/* Gives the host ports of all nodes, as services, to the datapath. */
void agent_put_port_services(struct agent *a);
/* Reads which host ports of this node the master has published. */
void agent_read_published(struct agent *a);
/* Brings the host's rules in line with the pods that have host ports. */
void agent_keep_host_ports(struct agent *a);
