/* SPDX-License-Identifier: Apache-2.0 */
/* By which ways the kernel's routing sends packets to other hosts, for who sends them past it.
 *
 * Calls are synchronous, in the network namespace of 'r'.  One thread uses a 'struct rtnl' at a time. */
#pragma once

#include "net/kernel/rtnl.h"

/* A way: link and next hop.  All zero: there is none, or not a single one by an IPv4 router (or on the link), or the route
 * wants more done than sending (encapsulation). */
struct path {
    int ifindex;
    uint32_t next; /* Host byte order; the destination itself when it is on the link. */
    uint32_t mtu;  /* Of the route; 0: it says none. */
};
/* Those from 'src', an address of this host, to each of 'dst'. */
int path_find(struct rtnl *r, uint32_t src, const uint32_t *dst, size_t n, struct path *ret,
              struct err *e);
/* Whether IPsec may have a say in what is sent or received: there are policies (or may be: it cannot be asked), or what no
 * policy is about is blocked (ip-xfrm(8)). */
bool path_has_ipsec(void);
