/* SPDX-License-Identifier: Apache-2.0 */
/* The nftables table "ip tenet-services": its layout, and the messages that create and change
 * it. Pure.
 *
 *     frontends     (address, protocol, port) -> goto a chain; the address of nodePorts is 0.0.0.0
 *     endpoints     (address, protocol, port, index) -> (address, port)
 *     affinity      (client, address, protocol, port) -> (address, port), for a while
 *     sticky        (address, protocol, port) -> jump to a chain that writes 'affinity'
 *     members       (address, protocol, port, address, port): the endpoints of sticky ones
 *     outside-...   frontends, endpoints: for clients from outside, where those differ
 *     restricted    (address, protocol, port) that only the clients of 'allowed' may use
 *     allowed       (address, protocol, port, client's prefix)
 *     proxy-ports   the userspace proxy's ports of UDP, for what was redirected to them only
 *
 * Chains "to-N" exist for each number of endpoints N that some service has: they draw an index
 * below N and translate to endpoints[address, protocol, port, index]. So a frontend costs one
 * element and each of its endpoints one, and a packet costs the same with one service or with
 * many. The endpoint of a sticky frontend's client is stored when its first packet leaves
 * ("remember-SECONDS"); an entry whose endpoint is no member any more is deleted there, and the
 * packet dropped: the client sends it again, and gets another endpoint. (The endpoint could be
 * checked when the entry is read, but nft 1.0.6 aborts when it lists such a rule.)  In userspace
 * mode the chains lead to the proxy's sockets ("port-N") and there are no endpoints.
 *
 * Packets of pods are translated in br0; one to a service that reaches this table is rejected,
 * because it would lose its VNID (docs/services.md). */
#pragma once

#include "net/kernel/nft.h"
#include "sdn/frontend.h"
#include "sdn/network.h"

#define SERVICES_TABLE "tenet-services"
#define SERVICES_AFFINITY "affinity"
/* Mark of packets that get an address of this host as source; kube-proxy uses the same. */
#define SERVICES_MARK 0x4000u
#define SERVICES_PROXY_MARK 0x8000u /* Mark of the userspace proxy's own packets. */
#define SERVICES_CHAIN_SIZE 44

enum services_mode { SERVICES_NETFILTER, SERVICES_USERSPACE };

/* Inputs of the fixed part of the table. */
struct services_base {
    enum services_mode mode;
    struct ip4_prefix cluster[SDN_MAX_CLUSTER_NETWORKS];
    size_t n_cluster;
    struct ip4_prefix service; /* len 0: none. */
    uint16_t tunnel_port;      /* Of VXLAN: no translated packet has it as its source port. */
};

/* Sums over the table's content, for comparison with the desired one. The order does not matter. */
struct services_digest {
    uint64_t rules, elements;
    size_t n_chains, n_rules, n_elements;
    bool odd; /* It has an object that we never create. */
};
static inline bool services_digest_equal(const struct services_digest *a,
                                         const struct services_digest *b)
{
    return a->rules == b->rules && a->elements == b->elements && a->n_chains == b->n_chains &&
           a->n_rules == b->n_rules && a->n_elements == b->n_elements && !a->odd && !b->odd;
}

/* Creates table, sets and fixed chains, replacing an existing table. The rules are added to 'd'
 * (may be NULL). */
void services_table_create(struct nft_batch *b, const struct services_base *base,
                           struct services_digest *d);

/* A chain that elements refer to. */
struct services_chain {
    enum { SERVICES_TO_ENDPOINT, SERVICES_TO_PROXY, SERVICES_REMEMBER } kind;
    enum sdn_view view; /* Leads to endpoints for clients of this view. */
    bool sticky;        /* The frontend has affinity. */
    bool node;          /* For nodePorts; also for remembering. */
    uint32_t number;    /* Number of endpoints; the proxy's port; or the seconds to remember. */
};
/* Its name: "to-2", "to-2-out-node-sticky", "port-40123", "remember-10800". */
void services_chain_name(const struct services_chain *c, char ret[SERVICES_CHAIN_SIZE]);
void services_chain_create(struct nft_batch *b, const struct services_chain *c,
                           struct services_digest *d);
/* In place of a port of the userspace proxy: it is not used. 0: it does not serve this frontend. */
#define SERVICES_TRANSLATED (-1)
/* The chains that the elements of 'f' refer to, without the fixed ones; returns their number. */
enum { SERVICES_MAX_CHAINS = SDN_N_VIEWS + 1 };
size_t services_chains_of(const struct sdn_frontend *f, int proxy_port,
                          struct services_chain ret[SERVICES_MAX_CHAINS]);

/* An element; all unused bytes are 0. */
struct services_element {
    uint8_t set, key_size, data_size;
    uint8_t key[32];                   /* An interval has its end in the second half. */
    uint8_t data[SERVICES_CHAIN_SIZE]; /* For a verdict: the chain's name. */
};
extern const char *const services_sets[]; /* Names of the sets, by their number. */
enum { SERVICES_N_SETS = 9 };
typedef void services_element_fn(void *ctx, const struct services_element *el);
/* The elements of 'f' in 'sets', one bit each. */
void services_elements(const struct sdn_frontend *f, int proxy_port, unsigned sets,
                       services_element_fn *fn, void *ctx);
#define SERVICES_ALL_SETS ((1u << SERVICES_N_SETS) - 1)
/* Adds one to the message begun by nft_elements_begin. */
void services_element_put(struct nft_batch *b, const struct services_element *el);
void services_element_digest(struct services_digest *d, const struct services_element *el);

/* Reads the kernel's table; -ENOENT: no table. Blocks. */
int services_table_read(struct nft *n, struct services_digest *ret, struct err *e);
