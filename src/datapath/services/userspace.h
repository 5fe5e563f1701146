/* SPDX-License-Identifier: Apache-2.0 */
/* The userspace service proxy: accepts connections to services and tries their endpoints in turn
 * until one answers.
 *
 * nftables redirects new connections to its sockets: TCP to a single socket, where the kernel
 * knows the original destination (SO_ORIGINAL_DST); UDP to one socket per frontend. The kernel
 * moves the data of a TCP connection between the two sockets (splice(2)) through a pipe per
 * direction, which is its only buffer; the end of one direction is forwarded. Datagrams of one
 * client go to one endpoint until they pause. SCTP is not served.
 *
 * Connections to an idle service wait here until it has endpoints, for two minutes and a few per
 * frontend; its datagrams do not wait, but also wake the service.
 *
 * Endpoints see this host as the client.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "sdn/frontend.h"
#include "sdn/network.h"

struct userspace;
/* A client connects to an idle frontend: its service needs pods. May be called for each packet. */
typedef void userspace_need_pods_fn(void *ctx, const struct sdn_frontend *f);
int userspace_new(struct loop *l, userspace_need_pods_fn *need_pods, void *ctx,
                  struct userspace **ret, struct err *e);
/* Ends all connections. */
struct userspace *userspace_free(struct userspace *u);
/* Clients of these networks use the same targets as clients of the host. Endpoints in them are
 * left out when they are not pods of the service's project: the proxy's own packets reach every
 * project. */
/* No endpoint may have the tunnels' port: other nodes would trust packets with this node's
 * address and that port. */
void userspace_set_tunnel_port(struct userspace *u, uint16_t port);
void userspace_set_cluster(struct userspace *u, const struct ip4_prefix *cluster, size_t n);
/* Whether the service of 'f' may have clients at an endpoint outside the cluster: asked for each
 * attempt, with the context of userspace_new.  NULL, the default: always. */
typedef bool userspace_may_leave_fn(void *ctx, const struct sdn_frontend *f, uint32_t ip);
void userspace_set_filter(struct userspace *u, userspace_may_leave_fn *may_leave);
/* Serves 'f' (takes a reference) from now on, replacing the frontend with its key; open
 * connections stay. Returns the port of this host to redirect its clients to, which stays the
 * same while the key is served; 0: none. */
uint16_t userspace_set(struct userspace *u, struct sdn_frontend *f);
void userspace_remove(struct userspace *u, const struct sdn_frontend_key *key);

struct userspace_stats {
    size_t connections, sessions; /* Present numbers of TCP connections, and of UDP clients. */
    size_t held;                  /* Connections that wait for endpoints. */
    uint64_t accepted, retried, failed;
    uint64_t refused; /* Over the limits. */
};
const struct userspace_stats *userspace_get_stats(const struct userspace *u);
