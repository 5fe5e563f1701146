/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the datapath "hostgw": one to each other node's subnet, by that node's address.
 * Pure.
 *
 * Such a route exists only where the other node is a neighbour: its address is on a network to
 * which this host has a link.  All routes with a gateway into the cluster networks belong to the
 * datapath, so routes of nodes that are gone are found after a restart as well. */
#pragma once

#include "base/str.h"
#include "net/kernel/rtnl.h"
#include "sdn/network.h"

struct routes_plan {
    struct rtnl_route *add; /* Owned.  rtnl_route_add replaces a route to the same subnet. */
    size_t n_add;
    struct rtnl_route *del; /* Owned. */
    size_t n_del;
    size_t n_wanted;
    /* Nodes that are no neighbours, and one of them. */
    size_t n_far;
    struct sdn_remote far;
};
void routes_plan_done(struct routes_plan *p);

/* Compares the host's routes 'have' with those that 'n' needs.  Routes are added with protocol
 * "boot", as flanneld's are. */
void routes_plan_make(const struct sdn_network *n, const struct rtnl_route *have, size_t n_have,
                      struct routes_plan *ret);

/* Writes flannel's subnet.env for 'n': FLANNEL_NETWORK, FLANNEL_SUBNET, FLANNEL_MTU,
 * FLANNEL_IPMASQ. */
void routes_write_subnet_env(const struct sdn_network *n, struct strbuf *out);
