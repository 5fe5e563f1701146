/* SPDX-License-Identifier: Apache-2.0 */
/* Tells when somebody touched what the agent keeps: tun0, its addresses and routes, or nftables rules.
 *
 * Only that something happened is reported, never what: the agent then compares with what the kernel
 * reports.  Lost messages count as a change of everything.  On the loop's thread. */
#pragma once

#include "net/loop.h"

struct monitor;
enum { MONITOR_TUN = 1, MONITOR_NFT = 2 };
typedef void monitor_fn(void *ctx, unsigned what);

/* Watches the link 'tun' in the thread's network namespace. */
int monitor_new(struct loop *l, const char *tun, monitor_fn *fn, void *ctx, struct monitor **ret,
                struct err *e);
struct monitor *monitor_free(struct monitor *m);
