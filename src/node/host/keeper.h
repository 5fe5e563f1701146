/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the host as the network needs it: tun0 (node/host/host.h) and the nftables table (node/host/nat.h).
 *
 * Looks again when somebody touched one of them, and every 30 seconds; does what is missing on a worker
 * thread and says how it went.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "node/host/nat.h"
#include "sdn/network.h"

struct keeper;
/* After each look: 0 when everything is in place, else a negative errno and what is not. */
typedef void keeper_fn(void *ctx, int error, const char *text);

struct keeper *keeper_new(struct loop *l, keeper_fn *fn, void *ctx);
/* Must not be busy. */
struct keeper *keeper_free(struct keeper *k);
/* Begins with the rules of 'n', ahead of keeper_set, while the datapath is being made: no packet shall pass the host without
 * them, and they need nothing to be there.  What is wrong with them is said after keeper_set. */
void keeper_begin(struct keeper *k, const struct sdn_network *n);
/* What to keep from now on (copied, without remotes); looks at once. */
void keeper_set(struct keeper *k, const struct sdn_network *n);
/* The ports of the host that lead to pods (taken over); looks at once.  'told' (NULL: nobody) is called when the host
 * has them, or with what went wrong, which is then tried again. */
void keeper_set_ports(struct keeper *k, struct nat_port *ports, size_t n_ports, keeper_fn *told,
                      void *ctx);
/* Whether 127.0.0.1 leads to pods at node ports, as at host ports; looks at once. */
void keeper_set_node_ports(struct keeper *k, bool some);
/* Somebody touched something ('what' as in node/host/monitor.h): look soon. */
void keeper_changed(struct keeper *k, unsigned what);
/* Whether a worker thread is at it. */
bool keeper_busy(const struct keeper *k);
/* Whether the rules for 'n' are accepted here (nft is there, the kernel can all of it); changes nothing. */
int keeper_check(const struct sdn_network *n, struct err *e);
