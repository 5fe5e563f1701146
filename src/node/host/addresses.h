/* SPDX-License-Identifier: Apache-2.0 */
/* All addresses of a node: its own, and which of another node's are believed.
 *
 * Pods reach node ports and host ports at any of them by the datapath (docs/services.md).  Calls block for netlink
 * exchanges, in the network namespace of 'r'. */
#pragma once

#include "net/kernel/rtnl.h"
#include "sdn/network.h"

/* The addresses of this host beside 'n->host_ip': not of tun0, loopback, link-local, or the cluster's networks, nor of the
 * bridges that container engines make with the same addresses on every host.  In ascending order. */
int addresses_own(struct rtnl *r, const struct sdn_network *n, struct sdn_addresses *ret,
                  struct err *e);
/* Leaves of the remotes' addresses only those that no other node or this one has, and where this host's packets go to the
 * node anyway: on a link of this host, where it could answer for the address all the same, or by that node as the next hop.
 * So a node gets by its word no packet that it could not get otherwise. */
void addresses_believe(struct rtnl *r, struct sdn_network *n);
