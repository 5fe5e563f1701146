/* SPDX-License-Identifier: Apache-2.0 */
/* The subnet controller: makes a HostSubnet for each Node.
 *
 * subnet_plan.h decides on the next state of a HostSubnet, sdn/subnet_alloc.h chooses the
 * subnet, and this controller carries the decisions out through the API.  A subnet is marked
 * in the allocator before it is written, and released only when it is certain that no
 * HostSubnet has it any more: when the watch reports the deletion of the HostSubnet, or the
 * server answers that there is none.  Decisions are made one after the other on the loop's
 * thread, so no two nodes get the same subnet, however many register at once.  Nothing is
 * allocated before all HostSubnets are known.
 *
 * Nodes for which no subnet is free wait in the order of their
 * registration, and get one as soon as one is released. */
#pragma once

#include "controller/controller.h"
#include "controllers/network/netconf.h"

struct subnets_config {
    struct netconf network;
    /* Rules for the addresses that nodes report, borrowed; NULL: addresses
     * are checked against the networks only. */
    const struct node_rules *addresses;
};
/* Its configuration is a struct subnets_config, which is copied; the names in the rules must
 * outlive the controller. */
extern const struct controller subnets_controller;
