/* SPDX-License-Identifier: Apache-2.0 */
/* The links of the node that the programs send to: tun0, through which host and pods reach each other, with its peer,
 * and the VXLAN device.
 *
 * tun0 is one end of a veth pair, as any kernel has those: what the host sends by it is received by the other end and
 * judged there, what is for the host is handed to tun0's receive side.  The VXLAN device takes tunnel ids and ends
 * from each packet ("external"), so one serves all nodes and VNIDs.
 *
 * Calls block for some netlink exchanges, in the network namespace of the calling thread. */
#pragma once

#include "net/kernel/rtnl.h"
#include "sdn/network.h"

#define DEVICE_TUN "tun0"
#define DEVICE_HOST "tenet0" /* tun0's peer. */
#define DEVICE_VXLAN "vxlan_tenet"

struct devices {
    int tun, host, vxlan; /* ifindexes */
};

/* Refuses, and says why: a link of one of the names is not ours, or the VXLAN port is taken by another link. */
int devices_check(const struct sdn_network *n, struct err *e);
/* Makes them what 'n' needs, or changes what is not so; tun0 is left down when it is new: the host has not got its
 * rules yet. */
int devices_ensure(const struct sdn_network *n, struct devices *ret, struct err *e);
