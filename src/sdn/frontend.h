/* SPDX-License-Identifier: Apache-2.0 */
/* What a service proxy of a host serves: addresses and ports, and where a connection to each goes.  Pure.
 *
 * A frontend is one (address, protocol, port) of a service: of its clusterIP, of an address from outside, or a nodePort,
 * whose address is that of any link of the host.  It has the targets for clients of the host itself, and, when
 * externalTrafficPolicy is Local, those for clients from outside.
 * Frontends are immutable and shared by references, on one thread. */
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
    bool pod; /* It is one of the service's project, by what the slice says. */
};

/* Who connects. */
enum sdn_view {
    SDN_FROM_ANYWHERE, /* Or, of a frontend that is split, from the host itself. */
    SDN_FROM_OUTSIDE,  /* Of one that is split: their source stays as it is. */
    SDN_N_VIEWS
};

struct sdn_frontend {
    uint32_t refs;
    struct sdn_frontend_key key;
    uint16_t service_port; /* The service's own; of nodePorts the key has another. */
    bool idle;             /* The service waits for its pods to be started by who connects. */
    /* Clients come back to the same target within so long; 0: they need not. */
    uint32_t affinity_s;
    uint32_t n[SDN_N_VIEWS];
    bool split;
    /* No target here, but on other nodes: packets are dropped, not refused. */
    bool elsewhere[SDN_N_VIEWS];
    bool restricted; /* Clients from outside are of 'ranges' only. */
    uint32_t n_ranges;
    /* By address and port; of the first view, then of the second; then the ranges, none within another. */
    struct sdn_target targets[];
};

/* The frontends of 's' at the host of node 'node', each key once; '*ret' is owned by the caller, with a reference to
 * each.  None: headless, of ExternalName, or without addresses. */
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
/* Whether some clients get that target; NULL: there is no frontend. */
bool sdn_frontend_has(const struct sdn_frontend *f, uint32_t ip, uint16_t port);
uint32_t sdn_frontend_key_hash(const struct sdn_frontend_key *k);
static inline bool sdn_frontend_key_equal(const struct sdn_frontend_key *a,
                                          const struct sdn_frontend_key *b)
{
    return a->ip == b->ip && a->port == b->port && a->protocol == b->protocol;
}
