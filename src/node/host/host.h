/* SPDX-License-Identifier: Apache-2.0 */
/* The host under the pod network: checks before the agent touches anything, and the gateway's
 * address, the routes and the settings of its link, which the agent maintains: tun0, or docker0 of
 * the plug-in flannel, whose routes are the datapath's.
 *
 * Everything is compared with what the kernel reports, and only the difference is applied.
 * Calls block for a few netlink exchanges; they work in the network namespace of the calling
 * thread, and any thread may call them. */
#pragma once

#include "net/kernel/rtnl.h"
#include "sdn/network.h"

/* Whether this process may do an agent's work: CAP_NET_ADMIN and CAP_SYS_ADMIN. -EPERM: the error
 * names the missing ones. */
int host_check_privileges(struct err *e);
/* Finds the address of the link that has the default route. */
int host_default_address(struct rtnl *r, uint32_t *ret, struct err *e);
/* Refuses, and says why: 'n->host_ip' is not this host's; its link's MTU is too small for pods of
 * 'n->mtu'; an address or route of the host clashes with the cluster or service networks; the VXLAN
 * port is used by another link than 'own_vxlan' (NULL: than the link that Open vSwitch makes).
 * '*ret_warning' gets a configuration that is unusual but can work (or ""). */
int host_check(struct rtnl *r, const struct sdn_network *n, const char *own_vxlan,
               char ret_warning[256], struct err *e);
/* Whether the text of /proc/net/udp or udp6 has a socket bound to 'port'. */
bool host_udp_port_taken(const char *text, uint16_t port);

/* Lets packets from the host's loopback to a pod's host port leave by the gateway's link
 * (ip-sysctl, route_localnet). */
int host_route_loopback(const struct sdn_network *n, unsigned *changes, struct err *e);

/* Configures the gateway's link (which must exist) for 'n'; '*ret_changes' counts the changes. */
int host_apply(const struct sdn_network *n, unsigned *ret_changes, struct err *e);
