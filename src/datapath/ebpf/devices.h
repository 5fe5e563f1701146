/* SPDX-License-Identifier: Apache-2.0 */
/* The node's links that the programs send to: tun0, through which host and pods reach each
 * other, with its peer, and the VXLAN device.
 *
 * tun0 is one end of a veth pair, which every kernel has: the other end receives the host's
 * packets, and the program there judges them; packets for the host are put on tun0's receive
 * side.  The VXLAN device takes tunnel ids and ends from each packet ("external"), so one serves
 * all nodes and VNIDs.
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

/* Fails with the reason when a link with one of the names is not ours, or another link uses the
 * VXLAN port. */
int devices_check(const struct sdn_network *n, struct err *e);
/* Creates or changes the links as 'n' needs them; a new tun0 is left down, as the host's rules
 * are not in place yet. */
int devices_ensure(const struct sdn_network *n, struct devices *ret, struct err *e);
