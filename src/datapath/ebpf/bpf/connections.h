/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of local pods to services, as the programs record them. */
#pragma once

#include "datapath/ebpf/bpf/context.h"

#define ITSELF 0xa9fea904 /* SDN_ITSELF_IP */

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_CONNECTIONS_MAX);
    __type(key, struct ebpf_connection_key);
    __type(value, struct ebpf_chosen);
} tenet_conns SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPF_CLIENTS_MAX);
    __type(key, __u32);
    __type(value, struct ebpf_clients);
} tenet_clients SEC(".maps");

INLINE struct ebpf_connection_key connection_of(const struct packet_ctx *ctx, __u8 dir)
{
    return (struct ebpf_connection_key){.src = ctx->pkt->ip.saddr,
                                        .dst = ctx->pkt->ip.daddr,
                                        .src_port = ctx->pkt->src_port,
                                        .dst_port = ctx->pkt->dst_port,
                                        .protocol = ctx->pkt->ip.protocol,
                                        .dir = dir};
}

/* Whether a pod has sent anything to a service; NULL: unknown. */
INLINE __u8 *has_asked(__be32 pod)
{
    __u32 addr = bpf_ntohl(pod), index = ebpf_clients_index(addr);
    struct ebpf_clients *c = bpf_map_lookup_elem(&tenet_clients, &index);
    return c ? &c->asked[addr % sizeof c->asked] : NULL;
}

INLINE int may_have_asked(__be32 pod)
{
    const __u8 *asked_any = has_asked(pod);
    return !asked_any || *asked_any;
}

/* The key of the packets in the reverse direction. */
INLINE struct ebpf_connection_key answers_to(const struct packet_ctx *ctx)
{
    return (struct ebpf_connection_key){.src = ctx->pkt->ip.daddr,
                                        .dst = ctx->pkt->ip.saddr,
                                        .src_port = ctx->pkt->dst_port,
                                        .dst_port = ctx->pkt->src_port,
                                        .protocol = ctx->pkt->ip.protocol,
                                        .dir = EBPF_DIR_REPLY};
}
