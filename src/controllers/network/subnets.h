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

#include "controller/recorder.h"
#include "controllers/network/netconf.h"

struct subnets;
/* Starts the controller.  'conf' and 'rules' are copied; the names in 'rules' and the other arguments must outlive the
 * controller.  'rules' NULL: nodes' addresses are checked against the networks of 'conf' only. */
int subnets_new(struct loop *l, struct api_client *client, struct recorder *recorder,
                const struct netconf *conf, const struct node_rules *rules, struct subnets **ret,
                struct err *e);
struct subnets *subnets_free(struct subnets *s);
