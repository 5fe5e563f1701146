/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when somebody touched what the agent keeps: tun0, its addresses and routes, or one of its nftables tables; and
 * which links are gone.
 *
 * Of the former only that something happened is reported, never what: the agent then compares with what
 * the kernel reports, and lost messages count as a change of everything.  That a link is gone may be missed.
 * On the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct monitor;
enum {
    MONITOR_TUN = 1,
    MONITOR_NFT = 2,       /* The table "ip tenet", ... */
    MONITOR_SERVICES = 4,  /* ... "ip tenet-services". */
    MONITOR_ADDRESSES = 8, /* Addresses of other links than tun0. */
};
struct monitor_ops {
    void (*changed)(void *ctx, unsigned what);
    void (*link_gone)(void *ctx, const char *name);
};

/* Watches the link 'tun' in the thread's network namespace. */
int monitor_new(struct loop *l, const char *tun, const struct monitor_ops *ops, void *ctx,
                struct monitor **ret, struct err *e);
/* What the netlink socket of this port does to nftables is not told. */
int monitor_ignore(struct monitor *m, uint32_t port, struct err *e);
struct monitor *monitor_free(struct monitor *m);
