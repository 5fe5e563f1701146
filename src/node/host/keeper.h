/* SPDX-License-Identifier: Apache-2.0 */
/* Maintains the part of the host that the network needs: tun0 (node/host/host.h) and the nftables
 * table (node/host/nat.h).
 *
 * Compares them with the desired state when the monitor reports a change, and every 30 seconds;
 * repairs differences on a worker thread and reports the result. On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "node/host/nat.h"
#include "sdn/network.h"

struct keeper;
/* Called after each comparison: 0 when everything is in place, else a negative errno and the
 * difference. */
typedef void keeper_fn(void *ctx, int error, const char *text);

struct keeper *keeper_new(struct loop *l, keeper_fn *fn, void *ctx);
/* Must not be busy. */
struct keeper *keeper_free(struct keeper *k);
/* Installs the NAT rules of 'n' early, while the datapath is being made, so that no packet is
 * forwarded without them; they do not depend on the datapath.  Errors are reported after
 * keeper_set. */
void keeper_begin(struct keeper *k, const struct sdn_network *n);
/* Sets the network to maintain (copied, without remotes); compares at once. */
void keeper_set(struct keeper *k, const struct sdn_network *n);
/* Sets the ports of the host that lead to pods (takes them over); compares at once.  Calls 'done'
 * (unless NULL) when the rules are in effect, or with the error; after an error it tries again. */
void keeper_set_ports(struct keeper *k, struct nat_port *ports, size_t n_ports, keeper_fn *applied,
                      void *ctx);
/* Sets whether node ports at 127.0.0.1 lead to pods, as host ports do; compares at once. */
void keeper_set_node_ports(struct keeper *k, bool some);
/* The monitor saw a change ('what' as in node/host/monitor.h): compare soon. */
void keeper_changed(struct keeper *k, unsigned what);
/* Whether a worker thread is at work. */
bool keeper_busy(const struct keeper *k);
/* Whether the rules for 'n' are accepted here (nft is installed, the kernel supports them); changes
 * nothing. */
int keeper_check(const struct sdn_network *n, struct err *e);
