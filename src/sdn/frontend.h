/* SPDX-License-Identifier: Apache-2.0 */
/* The frontends of a host's service proxy: addresses and ports, and the targets of connections
 * to each. Pure.
 *
 * A frontend is one (address, protocol, port) of a service: of its clusterIP, of an address from
 * outside, or a nodePort, whose address is that of any link of the host. It has the targets for
 * clients of the host itself, and, when externalTrafficPolicy is Local, those for clients from
 * outside. Frontends are immutable and shared by references, on one thread. */
#pragma once

#include "sdn/service.h"

struct sdn_frontend_key {
    uint32_t ip; /* 0: any address of the host. */
    uint16_t port;
    uint8_t protocol;
};

struct sdn_target {
    uint32_t ip;
    uint16_t port;
    bool pod; /* It is a pod of the service's project, according to the slice. */
};

/* Origin of a connection. */
enum sdn_view {
    SDN_FROM_ANYWHERE, /* Any client; with a split frontend only clients on the host itself. */
    /* Clients from outside, of a split frontend: their source address is kept. */
    SDN_FROM_OUTSIDE,
    SDN_N_VIEWS
};

struct sdn_frontend {
    uint32_t refs;
    struct sdn_frontend_key key;
    uint16_t service_port; /* The service's port; the key has another one for nodePorts. */
    bool idle;             /* The service is idle: its pods start when a client connects. */
    /* Session affinity: seconds that a client keeps its target; 0: none. */
    uint32_t affinity_s;
    uint32_t n[SDN_N_VIEWS];
    bool split;
    /* No target here, but on other nodes: packets are dropped, not rejected. */
    bool elsewhere[SDN_N_VIEWS];
    bool restricted; /* Only clients from outside that are in 'ranges' are served. */
    uint32_t n_ranges;
    /* By address and port; those of the first view, then of the second; then the ranges, which
     * do not overlap. */
    struct sdn_target targets[];
};

/* The frontends of 's' at the host of node 'node', each key once; '*ret' is owned by the caller,
 * with a reference to each. None: headless, of ExternalName, or without addresses. */
size_t sdn_frontends_of(const struct sdn_service *s, const char *node, struct sdn_frontend ***ret);
struct sdn_frontend *sdn_frontend_ref(struct sdn_frontend *f);
struct sdn_frontend *sdn_frontend_unref(struct sdn_frontend *f); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct sdn_frontend *, sdn_frontend_unref)
bool sdn_frontend_equal(const struct sdn_frontend *a, const struct sdn_frontend *b);
static inline const struct sdn_target *sdn_frontend_targets(const struct sdn_frontend *f,
                                                            enum sdn_view v)
{
    return f->targets + (v == SDN_FROM_OUTSIDE ? f->n[SDN_FROM_ANYWHERE] : 0);
}
static inline const struct ip4_prefix *sdn_frontend_ranges(const struct sdn_frontend *f)
{
    return (const struct ip4_prefix *) (const void *) (f->targets + f->n[SDN_FROM_ANYWHERE] +
                                                       f->n[SDN_FROM_OUTSIDE]);
}
/* Whether some clients get that target; 'f' may be NULL. */
bool sdn_frontend_has(const struct sdn_frontend *f, uint32_t ip, uint16_t port);
uint32_t sdn_frontend_key_hash(const struct sdn_frontend_key *k);
static inline bool sdn_frontend_key_equal(const struct sdn_frontend_key *a,
                                          const struct sdn_frontend_key *b)
{
    return a->ip == b->ip && a->port == b->port && a->protocol == b->protocol;
}
