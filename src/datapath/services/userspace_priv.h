/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the userspace proxy: what its TCP and UDP sides share. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "datapath/services/userspace.h"

#include <netinet/in.h>

#define USERSPACE_MAX_AFFINITY 65536 /* Clients that are remembered for one frontend. */

/* A frontend that is served. */
struct served {
    struct hmap_node node;
    struct userspace *owner;
    struct sdn_frontend *frontend;
    uint32_t next[SDN_N_VIEWS]; /* Whose turn it is. */
    struct smap clients;        /* Of session affinity: address to 'struct client'. */
    /* Of UDP. */
    int fd;
    uint16_t port;
    struct loop_fd *watch;
    struct hmap sessions;
};

struct userspace {
    struct loop *loop;
    userspace_wanted_fn *wanted;
    void *ctx;
    struct hmap served;
    struct ip4_prefix cluster[SDN_MAX_CLUSTER_NETWORKS];
    size_t n_cluster;
    uint16_t tunnel_port; /* No endpoint has it. */
    int listener;
    uint16_t port;
    struct loop_fd *accept;
    struct loop_timer *accept_again; /* When descriptors ran out. */
    struct list connections;
    struct loop_timer *sweep; /* Of UDP sessions; armed while there are some. */
    struct userspace_stats stats;
};

struct served *userspace_find(struct userspace *u, const struct sdn_frontend_key *key);
/* Which targets a client gets, seen from the address it was accepted at. */
enum sdn_view userspace_view(const struct userspace *u, const struct sdn_frontend *f,
                             uint32_t client, uint32_t accepted_at);
/* Whether the proxy may connect there. */
bool userspace_may_use(const struct userspace *u, const struct sdn_target *t);
/* The target to try first, an index of those of 'v', of which there are some. */
uint32_t userspace_first(struct served *s, enum sdn_view v, uint32_t client);
/* The client of a frontend with affinity got 'target'. */
void userspace_remember(struct served *s, uint32_t client, const struct sdn_target *target);
struct sockaddr_in userspace_address(uint32_t ip, uint16_t port);
/* A socket of 'type' to reach an endpoint with; -1: errno says why not. */
int userspace_socket(int type);
/* A socket of 'type' bound to any address and a free port. */
int userspace_bind(int type, int *ret_fd, uint16_t *ret_port, struct err *e);

int userspace_tcp_open(struct userspace *u, struct err *e);
void userspace_tcp_close(struct userspace *u);
/* The frontend may have endpoints now, for which connections wait. */
void userspace_tcp_wake(struct served *s);
int userspace_udp_open(struct served *s, struct err *e);
void userspace_udp_close(struct served *s); /* Ends its sessions. */
void userspace_udp_sweep(void *ctx);
