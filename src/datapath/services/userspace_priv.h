/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the userspace proxy: shared by its TCP and UDP parts. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "datapath/services/userspace.h"

#include <netinet/in.h>

#define USERSPACE_MAX_AFFINITY 65536 /* Maximum of clients with affinity for one frontend. */

/* A frontend that is served. */
struct served {
    struct hmap_node node;
    struct userspace *owner;
    struct sdn_frontend *frontend;
    uint32_t next[SDN_N_VIEWS]; /* Index of the next target. */
    struct smap clients;        /* Session affinity: address to 'struct client'. */
    /* The UDP socket. */
    int fd;
    uint16_t port;
    struct loop_fd *watch;
    struct hmap sessions;
};

struct userspace {
    struct loop *loop;
    userspace_need_pods_fn *need_pods;
    userspace_may_leave_fn *may_leave;
    void *ctx;
    struct hmap served;
    struct ip4_prefix cluster[SDN_MAX_CLUSTER_NETWORKS];
    size_t n_cluster;
    uint16_t tunnel_port; /* No endpoint may have it. */
    int listener;
    uint16_t port;
    struct loop_fd *accept;
    struct loop_timer *accept_again; /* Armed when descriptors ran out. */
    struct list connections;
    struct loop_timer *sweep; /* Expires UDP sessions; armed while there are some. */
    struct userspace_stats stats;
};

struct served *userspace_find(struct userspace *u, const struct sdn_frontend_key *key);
/* The view of a client, by the address at which it was accepted. */
enum sdn_view userspace_view(const struct userspace *u, const struct sdn_frontend *f,
                             uint32_t client, uint32_t accepted_at);
/* Whether the proxy may connect there. */
bool userspace_may_use(const struct served *s, const struct sdn_target *t);
/* The target to try first, an index among those of 'v', of which there is at least one. */
uint32_t userspace_first(struct served *s, enum sdn_view v, uint32_t client);
/* The client of a frontend with affinity was connected to 'target'. */
void userspace_remember(struct served *s, uint32_t client, const struct sdn_target *target);
struct sockaddr_in userspace_address(uint32_t ip, uint16_t port);
/* A socket of 'type' to reach an endpoint with; -1: the reason is in errno. */
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
