/* SPDX-License-Identifier: Apache-2.0 */
/* The host under the pod network: what must be so before the agent touches anything, and what the agent then
 * keeps so: the gateway's address, the routes and the settings of tun0.
 *
 * Everything is compared with what the kernel reports, and only the difference is applied.  Calls block for
 * a few netlink exchanges; they work in the network namespace of the calling thread, and any thread may
 * call them. */
#pragma once

#include "net/kernel/rtnl.h"
#include "sdn/network.h"

#define HOST_TUN "tun0"

/* Whether this process may do an agent's work: CAP_NET_ADMIN and CAP_SYS_ADMIN.  -EPERM names those
 * that are missing. */
int host_check_privileges(struct err *e);
/* Address of the link that has the default route. */
int host_default_address(struct rtnl *r, uint32_t *ret, struct err *e);
/* Refuses, and says why: 'n->host_ip' is not this host's; its link's MTU is too small for pods of 'n->mtu';
 * an address or route of the host clashes with the cluster or service networks; the VXLAN port belongs
 * to somebody else than the link 'own_vxlan' (NULL: than the one that Open vSwitch makes).  '*ret_warning' gets what is odd but can work (or ""). */
int host_check(struct rtnl *r, const struct sdn_network *n, const char *own_vxlan,
               char ret_warning[256], struct err *e);
/* Whether the text of /proc/net/udp or udp6 has a socket bound to 'port'. */
bool host_udp_port_taken(const char *text, uint16_t port);

/* Lets packets of the host's loopback leave by tun0: those to a host port that lead to a pod (ip-sysctl,
 * route_localnet). */
int host_route_loopback(unsigned *changes, struct err *e);

/* Makes tun0 (which must exist) what 'n' needs; '*ret_changes' counts what had to be done. */
int host_apply(const struct sdn_network *n, unsigned *ret_changes, struct err *e);
