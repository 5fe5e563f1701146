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

struct host_sync;
/* Called after each comparison: 0 when everything is in place, else a negative errno and the
 * difference. */
typedef void host_sync_fn(void *ctx, int error, const char *text);

struct host_sync *host_sync_new(struct loop *l, host_sync_fn *fn, void *ctx);
/* Must not be busy. */
struct host_sync *host_sync_free(struct host_sync *h);
/* Installs the NAT rules of 'n' early, while the datapath is being made, so that no packet is
 * forwarded without them; they do not depend on the datapath.  Errors are reported after
 * host_sync_set. */
void host_sync_begin(struct host_sync *h, const struct sdn_network *n);
/* Sets the network to maintain (copied); compares at once.  The other nodes matter only to the
 * rules of a routed plug-in. */
void host_sync_set(struct host_sync *h, const struct sdn_network *n);
/* Sets the ports of the host that lead to pods (takes them over); compares at once.  Calls 'done'
 * (unless NULL) when the rules are in effect, or with the error; after an error it tries again. */
void host_sync_set_ports(struct host_sync *h, struct nat_port *ports, size_t n_ports,
                         host_sync_fn *applied, void *ctx);
/* Sets whether node ports at 127.0.0.1 lead to pods, as host ports do; compares at once. */
void host_sync_set_node_ports(struct host_sync *h, bool some);
/* The monitor saw a change ('what' as in node/host/monitor.h): compare soon. */
void host_sync_changed(struct host_sync *h, unsigned what);
/* Whether a worker thread is at work. */
bool host_sync_busy(const struct host_sync *h);
/* Whether the rules for 'n' are accepted here (nft is installed, the kernel supports them); changes
 * nothing. */
int host_sync_check(const struct sdn_network *n, struct err *e);
