/* SPDX-License-Identifier: Apache-2.0 */
/* The userspace service proxy: accepts connections to services and tries their endpoints in turn until one answers.
 *
 * nftables redirects new connections to its sockets: of TCP all to one, which asks the kernel where the client wanted
 * to go (SO_ORIGINAL_DST); of UDP to one for each frontend.  What goes through a TCP connection is moved by the kernel
 * between the two sockets (splice(2)) by way of a pipe each way, which is all that is ever kept of it; an end of one
 * direction is passed on as such.  Datagrams of one client go to one endpoint until they pause.  SCTP is not served.
 *
 * Connections to an idle service wait here until it has endpoints, for two minutes and a few of each frontend; its
 * datagrams do not, but the service is asked for all the same.
 *
 * Endpoints see this host as the client.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "sdn/frontend.h"
#include "sdn/network.h"

struct userspace;
/* Somebody connects to an idle frontend: its service needs pods.  May be called for each packet. */
typedef void userspace_wanted_fn(void *ctx, const struct sdn_frontend *f);
int userspace_new(struct loop *l, userspace_wanted_fn *wanted, void *ctx, struct userspace **ret,
                  struct err *e);
/* Ends all connections. */
struct userspace *userspace_free(struct userspace *u);
/* Clients of these networks use what clients of the host use.  Endpoints in them are left out when they are not pods of
 * the service's project: the proxy's own packets reach every project. */
/* The tunnels' port is no endpoint's: what has this node's address and that port other nodes would believe. */
void userspace_set_tunnel_port(struct userspace *u, uint16_t port);
void userspace_set_cluster(struct userspace *u, const struct ip4_prefix *cluster, size_t n);
/* Serves 'f' (a reference is taken) from now on, in place of what was at its key; connections that are open stay.
 * Returns the port of this host to send its clients to, which stays the same while the key is served; 0: none. */
uint16_t userspace_set(struct userspace *u, struct sdn_frontend *f);
void userspace_remove(struct userspace *u, const struct sdn_frontend_key *key);

struct userspace_stats {
    size_t connections, sessions; /* Now: of TCP, and clients of UDP. */
    size_t held;                  /* Connections that wait for endpoints. */
    uint64_t accepted, retried, failed;
    uint64_t refused; /* Over the limits. */
};
const struct userspace_stats *userspace_get_stats(const struct userspace *u);
