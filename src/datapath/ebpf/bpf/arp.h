/* SPDX-License-Identifier: Apache-2.0 */
/* ARP (RFC 826): requests are answered in place, if the sender's addresses are its own. */
#pragma once

#include "datapath/ebpf/bpf/leave.h"

#define ARP_REQUEST 1
#define ARP_REPLY 2

struct arp {
    __be16 hardware, protocol;
    __u8 hardware_size, protocol_size;
    __be16 op;
    __u8 sha[ETH_ALEN];
    __be32 spa;
    __u8 tha[ETH_ALEN];
    __be32 tpa;
} __attribute__((packed));

/* The host may ask with any sender address. */
INLINE __u32 check_arp_sender(struct packet_ctx *ctx, const struct arp *a)
{
    if (ctx->entry == FROM_POD) {
        const struct ebpf_pod *pod = pod_at(ctx->settings, a->spa);
        int honest = pod && pod->inlet == ctx->pkt->port &&
                     same_mac(ctx->pkt->eth.h_source, pod->mac) && same_mac(a->sha, pod->mac);
        if (!honest) {
            return not_its_own(ctx);
        }
        ctx->pkt->port = reach_of(pod).ifindex;
        return EBPF_NOT_DROPPED;
    }
    if (ctx->entry == FROM_TUNNEL) {
        return is_local(route_of(ctx, a->tpa)) ? check_tunnel(ctx, a->spa) : EBPF_NOT_FOR_THIS_NODE;
    }
    return EBPF_NOT_DROPPED;
}

/* mac_from_ip4 */
INLINE void mac_of(__be32 addr, __u8 *mac)
{
    mac[0] = 0x0a;
    mac[1] = 0x58;
    __builtin_memcpy(mac + 2, &addr, 4);
}

/* Turns the request into its reply and sends it back (RFC 826). */
INLINE int answer(const struct packet_ctx *ctx, const struct arp *a)
{
    struct {
        struct ethhdr eth;
        struct arp arp;
    } __attribute__((packed)) f;
    __builtin_memcpy(f.eth.h_dest, a->sha, ETH_ALEN);
    mac_of(a->tpa, f.eth.h_source);
    f.eth.h_proto = bpf_htons(ETH_P_ARP);
    f.arp = *a;
    f.arp.op = bpf_htons(ARP_REPLY);
    mac_of(a->tpa, f.arp.sha);
    f.arp.spa = a->tpa;
    __builtin_memcpy(f.arp.tha, a->sha, ETH_ALEN);
    f.arp.tpa = a->spa;
    if (bpf_skb_store_bytes(ctx->skb, 0, &f, sizeof f, 0) < 0) {
        return TC_ACT_SHOT;
    }
    if (ctx->entry == FROM_TUNNEL) {
        record_verdict(ctx, EBPF_ANSWER, 0, ctx->pkt->outer_src, ctx->pkt->tunnel_id);
        return send_by_tunnel(ctx, ctx->pkt->outer_src, ctx->pkt->tunnel_id);
    }
    __u32 back = ctx->entry == FROM_POD ? ctx->pkt->port : ctx->settings->host_ifindex;
    record_verdict(ctx, EBPF_ANSWER, 0, back, 0);
    return bpf_redirect(back, 0);
}

INLINE int judge_arp(struct packet_ctx *ctx)
{
    struct arp a;
    /* Only ARP for IPv4 on Ethernet is answered. */
    if (bpf_skb_load_bytes(ctx->skb, ETH_HLEN, &a, sizeof a) < 0 || a.hardware != bpf_htons(1) ||
        a.protocol != bpf_htons(ETH_P_IP) || a.hardware_size != ETH_ALEN || a.protocol_size != 4) {
        __builtin_memset(&a, 0, sizeof a);
    }
    __u32 cause = check_arp_sender(ctx, &a);
    if (cause != EBPF_NOT_DROPPED) {
        return DROPPED(cause);
    }
    if (a.op != bpf_htons(ARP_REQUEST)) {
        return DROPPED(EBPF_ARP_NOT_ASKED);
    }
    const struct ebpf_route *r = route_of(ctx, a.tpa);
    if (r && r->kind == EBPF_LOCAL && !pod_at(ctx->settings, a.tpa)) {
        return DROPPED(EBPF_NO_SUCH_POD);
    }
    return in_cluster(r) ? answer(ctx, &a) : DROPPED(EBPF_ARP_OFF_NETWORK);
}
