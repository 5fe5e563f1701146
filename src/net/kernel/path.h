/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's routes to other hosts, for software that bypasses the IP stack.
 *
 * Calls are synchronous, in the network namespace of 'r'. One thread uses a 'struct rtnl' at a
 * time. */
#pragma once

#include "net/kernel/rtnl.h"

/* A path: link and next hop. All zero: there is none, or not a single IPv4 next hop (or on-link
 * destination), or the route does more than sending (encapsulation). */
struct path {
    int ifindex;
    uint32_t next; /* Host byte order; the destination itself when it is on the link. */
    uint32_t mtu;  /* MTU of the route; 0: the route has none. */
};
/* The paths from 'src', an address of this host, to each of 'dst'. */
int path_find(struct rtnl *r, uint32_t src, const uint32_t *dst, size_t n, struct path *ret,
              struct err *e);
/* Whether IPsec may affect sent or received packets: there are policies (or the kernel cannot be
 * asked), or packets without a policy are blocked (ip-xfrm(8)). */
bool path_has_ipsec(void);
