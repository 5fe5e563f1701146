/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the neighbour (ARP) entries of the tunnels' next hops fresh.
 *
 * A switch in user space resolves the next hop of a tunnel itself, by listening to ARP, and drops
 * packets until it knows it. This module therefore asks the kernel to resolve the next hop of every
 * remote host when it appears, and again every few minutes, a few at a time. On the loop's thread;
 * works in the thread's network namespace. */
#pragma once

#include "net/loop/loop.h"
#include "sdn/network.h"

struct neigh;
int neigh_new(struct loop *l, struct neigh **ret, struct err *e);
struct neigh *neigh_free(struct neigh *n);
/* Sets the remote hosts; new ones are resolved at once. */
void neigh_set_remotes(struct neigh *n, const struct sdn_remote *remotes, size_t count);
