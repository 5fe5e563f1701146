/* SPDX-License-Identifier: Apache-2.0 */
/* All addresses of a node: its own, and the reported addresses of other nodes that this node
 * accepts.
 *
 * Pods reach node ports and host ports at any of them by the datapath (docs/services.md).  Calls
 * block for netlink exchanges, in the network namespace of 'r'. */
#pragma once

#include "net/kernel/rtnl.h"
#include "sdn/network.h"

/* The addresses of this host beside 'n->host_ip': not of tun0, loopback, link-local, or the
 * cluster's networks, nor of the bridges that container engines make with the same addresses
 * on every host.  In ascending order. */
int addresses_own(struct rtnl *r, const struct sdn_network *n, struct sdn_addresses *ret,
                  struct err *e);
/* Removes remotes' addresses that this node does not accept.  An accepted address is claimed by one
 * node only, and this host's packets to it reach that node anyway: the address is on a link of this
 * host, where the node could answer ARP for it, or the node is the next hop.  So a node's report
 * brings it no packet that it could not get otherwise. */
void addresses_believe(struct rtnl *r, struct sdn_network *n);
