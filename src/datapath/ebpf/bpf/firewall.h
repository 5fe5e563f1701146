/* SPDX-License-Identifier: Apache-2.0 */
/* The egress firewalls of projects: whether a pod's packet may leave the cluster. */
#pragma once

#include "datapath/ebpf/bpf/context.h"

#define DNS_PORT 53

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_FIREWALLS_MAX);
    __type(key, __u32);
    __type(value, struct ebpf_firewall);
} tenet_firewalls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_FIREWALL_BLOCKS_MAX);
    __type(key, struct ebpf_firewall_key);
    __type(value, __u32);
} tenet_fw_blocks SEC(".maps");

INLINE int is_dns(const struct packet_meta *p)
{
    return p->has_ports && p->dst_port == bpf_htons(DNS_PORT) &&
           (p->ip.protocol == IPPROTO_TCP || p->ip.protocol == IPPROTO_UDP);
}

INLINE int is_blocked_metadata(const struct packet_ctx *ctx)
{
    __be32 blocked = ctx->settings->metadata;
    return UNLIKELY(blocked && ctx->pkt->ip.daddr == blocked) && !is_dns(ctx->pkt);
}

/* Whether the firewall of this VNID denies the packet's destination, which is outside. */
INLINE int firewall_denies(const struct packet_ctx *ctx, __u32 vnid)
{
    const struct packet_meta *p = ctx->pkt;
    if (UNLIKELY(p->ip.daddr == ctx->settings->host && is_dns(p))) {
        return 0; /* DNS of this node. */
    }
    if (UNLIKELY(ctx->settings->firewalls_closed)) {
        return 1;
    }
    const struct ebpf_firewall *f = bpf_map_lookup_elem(&tenet_firewalls, &vnid);
    if (LIKELY(!f)) {
        return 0;
    }
    struct ebpf_firewall_key key = {
        .len = EBPF_FIREWALL_LIST_BITS + 32, .list = f->list, .addr = p->ip.daddr};
    const __u32 *action = f->closed ? NULL : bpf_map_lookup_elem(&tenet_fw_blocks, &key);
    return !action || *action != EBPF_ALLOW;
}
