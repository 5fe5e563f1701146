/* SPDX-License-Identifier: Apache-2.0 */
/* Services: a pod's connection to a service gets a backend, and the backend's answers get the
 * service's address (docs/services.md). */
#pragma once

#include "datapath/ebpf/bpf/places.h"
#include "datapath/ebpf/bpf/related.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_SERVICES_MAX);
    __type(key, struct ebpf_service_key);
    __type(value, struct ebpf_service);
} tenet_services SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_BACKENDS_MAX);
    __type(key, struct ebpf_backend_key);
    __type(value, struct ebpf_backend);
} tenet_backends SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_BACKENDS_MAX);
    __type(key, struct ebpf_serving_key);
    __type(value, __u32);
} tenet_serving SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_CONNECTIONS_MAX);
    __type(key, struct ebpf_affinity_key);
    __type(value, struct ebpf_chosen);
} tenet_affinity SEC(".maps");

#define CLIENT_PORT_TRIES 4

/* Gives a backend's answer the address of the service that was asked. */
INLINE int restore_service(struct packet_ctx *ctx)
{
    if (UNLIKELY(!ctx->settings->has_services)) {
        return 0;
    }
    if (LIKELY(!may_have_asked(ctx->pkt->ip.daddr))) {
        return 0;
    }
    if (!ctx->pkt->has_ports) {
        return restore_related(ctx);
    }
    struct ebpf_connection_key key = connection_of(ctx, EBPF_DIR_REPLY);
    const struct ebpf_chosen *asked = bpf_map_lookup_elem(&tenet_conns, &key);
    lead_fragments(ctx, asked ? asked->addr : 0, 0);
    if (!asked) {
        return 0;
    }
    if (UNLIKELY(asked->client_port) &&
        rewrite(ctx, DESTINATION, ctx->pkt->ip.daddr, asked->client_port) < 0) {
        return -1;
    }
    return rewrite(ctx, SOURCE, asked->addr, asked->port);
}

INLINE const struct ebpf_service *find_service(const struct packet_ctx *ctx,
                                               struct ebpf_service_key *key)
{
    *key = (struct ebpf_service_key){
        .addr = ctx->pkt->ip.daddr, .port = ctx->pkt->dst_port, .protocol = ctx->pkt->ip.protocol};
    const struct ebpf_service *s = bpf_map_lookup_elem(&tenet_services, key);
    if (s || (ctx->route && ctx->route->kind == EBPF_SERVICE)) {
        return s;
    }
    __u32 host = bpf_ntohl(ctx->pkt->ip.daddr);
    if (ctx->pkt->ip.daddr == ctx->settings->host || bpf_map_lookup_elem(&tenet_vteps, &host)) {
        key->addr = 0;
        return bpf_map_lookup_elem(&tenet_services, key);
    }
    return NULL;
}

INLINE const struct ebpf_backend *backend_at(const struct ebpf_service_key *service, __u32 index)
{
    struct ebpf_backend_key key = {.service = *service, .index = index};
    return bpf_map_lookup_elem(&tenet_backends, &key);
}

/* Whether the chosen backend still serves. */
INLINE int serves(const struct ebpf_service_key *service, const struct ebpf_chosen *c)
{
    struct ebpf_serving_key key = {.service = *service,
                                   .backend = {.addr = c->addr, .port = c->port}};
    return bpf_map_lookup_elem(&tenet_serving, &key) != NULL;
}

INLINE int choose(const struct packet_ctx *ctx, const struct ebpf_service_key *key,
                  const struct ebpf_service *s, struct ebpf_chosen *ret)
{
    __u32 now = (__u32) (bpf_ktime_get_ns() / 1000000000);
    struct ebpf_affinity_key client = {.service = *key, .client = ctx->pkt->ip.saddr};
    struct ebpf_chosen *last = s->affinity_s ? bpf_map_lookup_elem(&tenet_affinity, &client) : NULL;
    if (last && now - last->asked_s < s->affinity_s && serves(key, last)) {
        *ret = *last;
    } else {
        __u32 index = s->count ? bpf_get_prandom_u32() % s->count : 0;
        const struct ebpf_backend *b = s->count ? backend_at(key, index) : NULL;
        if (!b && s->count) { /* The backend was removed after the count was read. */
            index = 0;
            b = backend_at(key, index);
        }
        if (!b) {
            return -1;
        }
        *ret = (struct ebpf_chosen){.addr = b->addr, .port = b->port};
    }
    ret->asked_s = now;
    if (s->affinity_s && !options.dry) {
        bpf_map_update_elem(&tenet_affinity, &client, ret, BPF_ANY);
    }
    return 0;
}

/* A connection keeps its backend; a new connection whose remembered backend no longer serves
 * gets another. */
INLINE const struct ebpf_chosen *known(const struct packet_ctx *ctx,
                                       const struct ebpf_service_key *key,
                                       const struct ebpf_connection_key *original)
{
    const struct ebpf_chosen *c = bpf_map_lookup_elem(&tenet_conns, original);
    return c && (!ctx->pkt->begins || serves(key, c)) ? c : NULL;
}

/* A connection between the same ends that does not go to the service gets untranslated answers. */
INLINE void forget_service(const struct packet_ctx *ctx)
{
    if (UNLIKELY(ctx->pkt->begins)) {
        struct ebpf_connection_key back = answers_to(ctx);
        if (bpf_map_lookup_elem(&tenet_conns, &back)) {
            bpf_map_delete_elem(&tenet_conns, &back);
        }
    }
}

/* Sends the packet to that backend instead; returns 0, or the cause of a drop. */
INLINE __u32 send_to(struct packet_ctx *ctx, const struct ebpf_chosen *b)
{
    /* A pod reaches itself from an address that no pod has, so that it answers to that address. */
    int itself = b->addr == ctx->pkt->ip.saddr;
    ctx->pkt->asked = ctx->pkt->ip.daddr;
    ctx->pkt->asked_port = ctx->pkt->dst_port;
    ctx->pkt->translated = 1;
    lead_fragments(ctx, itself ? bpf_htonl(ITSELF) : 0, b->addr);
    __be32 from = itself ? bpf_htonl(ITSELF) : ctx->pkt->ip.saddr;
    __be16 port = b->client_port ? b->client_port : ctx->pkt->src_port;
    if (rewrite(ctx, DESTINATION, b->addr, b->port) < 0 ||
        ((itself || b->client_port) && rewrite(ctx, SOURCE, from, port) < 0)) {
        return EBPF_SERVICE_INVALID;
    }
    return EBPF_NOT_DROPPED;
}

/* The key of the answers to this packet once it is sent to 'b'. */
INLINE struct ebpf_connection_key answers_of(const struct packet_ctx *ctx,
                                             const struct ebpf_chosen *b)
{
    return (struct ebpf_connection_key){
        .src = b->addr,
        .dst = b->addr == ctx->pkt->ip.saddr ? bpf_htonl(ITSELF) : ctx->pkt->ip.saddr,
        .src_port = b->port,
        .dst_port = b->client_port ? b->client_port : ctx->pkt->src_port,
        .protocol = ctx->pkt->ip.protocol,
        .dir = EBPF_DIR_REPLY};
}

/* Whether the answers to this packet, sent to 'b', would be those of a connection to another
 * service, as the client used one port for both. */
INLINE int is_taken(const struct packet_ctx *ctx, const struct ebpf_chosen *b)
{
    struct ebpf_connection_key back = answers_of(ctx, b);
    const struct ebpf_chosen *was = bpf_map_lookup_elem(&tenet_conns, &back);
    return was && (was->addr != ctx->pkt->ip.daddr || was->port != ctx->pkt->dst_port);
}

/* Gives the connection another port of the client when its own is taken. If none is found in a few
 * tries, the older connection loses its answers. */
INLINE void choose_port(const struct packet_ctx *ctx, struct ebpf_chosen *b)
{
    if (LIKELY(!is_taken(ctx, b))) {
        return;
    }
    __u32 first = bpf_get_prandom_u32();
#pragma unroll
    for (int i = 0; i < CLIENT_PORT_TRIES; i++) {
        __u32 port = EBPF_CLIENT_PORT_FIRST + (first + i * 1021u) % EBPF_CLIENT_PORTS;
        b->client_port = bpf_htons((__u16) port);
        if (!is_taken(ctx, b)) {
            return;
        }
    }
    b->client_port = 0;
}

/* Sends the pod's packet to a backend of the service; returns 0, or the cause of a drop. */
static __attribute__((noinline)) __u32 translate(struct packet_ctx *ctx,
                                                 const struct ebpf_service_key *key,
                                                 const struct ebpf_service *s, __u32 vnid)
{
    if (ctx->settings->compare_vnids && !may_reach(vnid, s->vnid) &&
        !((s->flags & EBPF_SERVICE_ALSO_VNID) && may_reach(vnid, s->also_vnid))) {
        return EBPF_SERVICE_FOREIGN;
    }
    if (ctx->settings->services_by_host && s->count && !(s->flags & EBPF_SERVICE_HOST_PORT)) {
        return EBPF_NOT_DROPPED;
    }
    struct ebpf_connection_key original = connection_of(ctx, EBPF_DIR_ORIGINAL);
    const struct ebpf_chosen *c = known(ctx, key, &original);
    struct ebpf_chosen chosen;
    if (c) {
        chosen = *c;
    } else if (choose(ctx, key, s, &chosen) < 0) {
        return s->flags & EBPF_SERVICE_IDLE ? EBPF_SERVICE_IS_IDLE : EBPF_SERVICE_NO_ENDPOINTS;
    } else {
        choose_port(ctx, &chosen);
    }
    struct ebpf_chosen asked = {.addr = ctx->pkt->ip.daddr,
                                .port = ctx->pkt->dst_port,
                                .client_port = chosen.client_port ? ctx->pkt->src_port : 0};
    __be32 from = ctx->pkt->ip.saddr;
    __u32 cause = send_to(ctx, &chosen);
    if (cause != EBPF_NOT_DROPPED) {
        return cause;
    }
    __u8 *asked_any = has_asked(from);
    if (asked_any && !*asked_any) {
        *asked_any = 1;
    }
    struct ebpf_connection_key back = answers_to(ctx);
    const struct ebpf_chosen *was = bpf_map_lookup_elem(&tenet_conns, &back);
    if (!was || was->addr != asked.addr || was->port != asked.port ||
        was->client_port != asked.client_port) {
        bpf_map_update_elem(&tenet_conns, &back, &asked, BPF_ANY);
    }
    if (!c) {
        bpf_map_update_elem(&tenet_conns, &original, &chosen, BPF_ANY);
    }
    return EBPF_NOT_DROPPED;
}

/* A removed service keeps its established connections. */
INLINE __u32 go_on(struct packet_ctx *ctx)
{
    struct ebpf_connection_key original = connection_of(ctx, EBPF_DIR_ORIGINAL);
    const struct ebpf_chosen *c =
        ctx->pkt->begins ? NULL : bpf_map_lookup_elem(&tenet_conns, &original);
    return c ? send_to(ctx, c) : EBPF_NOT_DROPPED;
}
