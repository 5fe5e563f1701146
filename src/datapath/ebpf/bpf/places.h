/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups by address: local pods, subnets of other nodes, and which sender an address belongs
 * to. */
#pragma once

#include "datapath/ebpf/bpf/context.h"

#define VNID_NOBODY 1 /* sdn/network.h */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_PODS_MAX);
    __type(key, __be32);
    __type(value, struct ebpf_pod);
} tenet_pods SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPF_POD_CACHE_SIZE);
    __type(key, __u32);
    __type(value, struct ebpf_pod);
} tenet_pod_cache SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_PODS_MAX);
    __type(key, __u32);
    __type(value, __be32);
} tenet_ports SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_ROUTES_MAX);
    __type(key, struct ebpf_route_key);
    __type(value, struct ebpf_route);
} tenet_routes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_ROUTES_MAX);
    __type(key, struct ebpf_route_key);
    __type(value, struct ebpf_route);
} tenet_subnets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_ROUTES_MAX);
    __type(key, __u32);
    __type(value, __u32);
} tenet_vteps SEC(".maps");

/* How a pod is reached, and by which VNIDs, read as one; the pod may have been removed
 * meanwhile. */
INLINE union ebpf_reach reach_of(const struct ebpf_pod *pod)
{
    union ebpf_reach r = {.both = *(const volatile __u64 *) &pod->reach.both};
    return r;
}

/* The cache's element for that address: its pod may have another address, or none. */
INLINE const struct ebpf_pod *cached_pod(__be32 addr)
{
    __u32 index = bpf_ntohl(addr) % EBPF_POD_CACHE_SIZE;
    return bpf_map_lookup_elem(&tenet_pod_cache, &index);
}

INLINE const struct ebpf_pod *pod_at(const struct ebpf_settings *s, __be32 addr)
{
    if (UNLIKELY((addr ^ s->local) & s->mask)) {
        return NULL;
    }
    const struct ebpf_pod *pod = cached_pod(addr);
    if (UNLIKELY(!pod || pod->addr != addr || !reach_of(pod).ifindex)) {
        pod = bpf_map_lookup_elem(&tenet_pods, &addr);
    }
    return pod && reach_of(pod).ifindex ? pod : NULL;
}

INLINE const struct ebpf_route *route_of(const struct packet_ctx *ctx, __be32 addr)
{
    __u32 len = ctx->settings->subnet_len;
    struct ebpf_route_key key = {.len = len, .addr = addr & bpf_htonl(~0u << ((32 - len) & 31))};
    const struct ebpf_route *r = len ? bpf_map_lookup_elem(&tenet_subnets, &key) : NULL;
    key = (struct ebpf_route_key){.len = 32, .addr = addr};
    return r ? r : bpf_map_lookup_elem(&tenet_routes, &key);
}

INLINE void find_destination(struct packet_ctx *ctx)
{
    ctx->pod = pod_at(ctx->settings, ctx->pkt->ip.daddr);
    ctx->route = ctx->pod ? NULL : route_of(ctx, ctx->pkt->ip.daddr);
}

INLINE int is_local(const struct ebpf_route *r)
{
    return r && (r->kind == EBPF_LOCAL || r->kind == EBPF_GATEWAY);
}

/* Local pods have addresses of this node's subnet. */
INLINE int is_here(const struct packet_ctx *ctx)
{
    return ctx->pod || is_local(ctx->route);
}

INLINE int in_cluster(const struct ebpf_route *r)
{
    return r && r->kind != EBPF_SERVICE;
}

/* sdn_vnid_may_reach */
INLINE int may_reach(__u32 from, __u32 to)
{
    return LIKELY(from == to && from != VNID_NOBODY) || from == 0 || to == 0;
}

/* Whether the sending node of a tunnel packet owns its inner source. */
INLINE __u32 check_tunnel(const struct packet_ctx *ctx, __be32 src)
{
    const struct ebpf_route *r = route_of(ctx, src);
    if (r && r->kind == EBPF_REMOTE && r->vtep == ctx->pkt->outer_src) {
        return EBPF_NOT_DROPPED;
    }
    const __u32 *is = bpf_map_lookup_elem(&tenet_vteps, &ctx->pkt->outer_src);
    return is && *is == EBPF_IS_VTEP ? EBPF_SPOOFED_SOURCE : EBPF_UNKNOWN_VTEP;
}

/* The cause why a packet from a pod's link does not have the pod's own source. */
INLINE __u32 not_its_own(const struct packet_ctx *ctx)
{
    return bpf_map_lookup_elem(&tenet_ports, &ctx->pkt->port) ? EBPF_SPOOFED_SOURCE
                                                              : EBPF_UNKNOWN_PORT;
}
