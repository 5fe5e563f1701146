/* SPDX-License-Identifier: Apache-2.0 */
/* The subnet controller: Nodes to HostSubnets.
 *
 * What a node should have is decided by subnet_plan.h, which subnet by sdn/subnet_alloc.h; here the decisions
 * are carried out through the API.  A subnet is marked in the allocator before it is written, and released
 * only when it is certain that no HostSubnet holds it any more: by the deletion of the HostSubnet seen, or
 * by the server's word that there is none.  As decisions are made one after the other on the loop's
 * thread, no two nodes get the same subnet, however many register at once.  Nothing is allocated before
 * all HostSubnets are known.
 *
 * Nodes for which no subnet is left wait in the order of their registration, and get one as soon as one is
 * freed. */
#pragma once

#include "controller/controller.h"
#include "controllers/network/netconf.h"

struct subnets_config {
    struct netconf network;
    /* Rules for the addresses that nodes report, borrowed; NULL: they are checked against the
     * networks only. */
    const struct node_rules *addresses;
};
/* Its configuration is a struct subnets_config, which is copied; the names in the rules must
 * outlive the controller. */
extern const struct controller subnets_controller;
