/* SPDX-License-Identifier: Apache-2.0 */
/* Reports changes of the objects that the agent maintains (tun0, its addresses and routes, and its
 * nftables tables), and the names of deleted links.
 *
 * A change is reported without details: the agent then compares its desired state with the
 * kernel's.  Lost messages count as a change of everything.  The deletion of a link may be missed.
 * On the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct monitor;
enum {
    MONITOR_TUN = 1,
    MONITOR_NFT = 2,       /* The nftables table "ip tenet". */
    MONITOR_SERVICES = 4,  /* The nftables table "ip tenet-services". */
    MONITOR_ADDRESSES = 8, /* Addresses of other links than tun0. */
};
struct monitor_ops {
    void (*changed)(void *ctx, unsigned what);
    void (*link_gone)(void *ctx, const char *name);
};

/* Watches the link 'tun' in the thread's network namespace. */
int monitor_new(struct loop *l, const char *tun, const struct monitor_ops *ops, void *ctx,
                struct monitor **ret, struct err *e);
/* Stops reports of changes to nftables that the netlink socket with this port ID makes. */
int monitor_ignore(struct monitor *m, uint32_t port, struct err *e);
struct monitor *monitor_free(struct monitor *m);
