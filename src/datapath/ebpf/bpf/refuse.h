/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals: when a packet of a pod with a checked source is dropped, the gateway sends it an
 * ICMP error (docs/pipeline.md). */
#pragma once

#include "datapath/ebpf/bpf/events.h"
#include "datapath/ebpf/bpf/packet.h"

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_REFUSALS_MAX);
    __type(key, __be32);
    __type(value, struct ebpf_refusals);
} tenet_refusals SEC(".maps");

/* RFC 792, RFC 1812 */
enum { UNREACHABLE = 3, NO_HOST = 1, NO_PORT = 3, PROHIBITED = 13 };
struct icmp_error {
    struct iphdr ip;
    __u8 type, code;
    __be16 sum;
    __be32 unused;
};
/* The IP header and the TCP header up to the checksum, which offloads keep apart. */
#define QUOTE (sizeof(struct iphdr) + 20)
#define QUOTE_UDP (sizeof(struct iphdr) + 8)

INLINE int has_had_enough(const struct packet_ctx *ctx)
{
    __be32 pod = ctx->pkt->ip.saddr;
    struct ebpf_refusals now = {.second = (__u32) (bpf_ktime_get_ns() / 1000000000), .count = 1};
    struct ebpf_refusals *r = bpf_map_lookup_elem(&tenet_refusals, &pod);
    if (!r || r->second != now.second) {
        bpf_map_update_elem(&tenet_refusals, &pod, &now, BPF_ANY);
        return 0;
    }
    r->count++;
    return r->count > EBPF_REFUSALS_A_SECOND;
}

/* Turns the dropped packet into the ICMP error about it and returns it, within the pod's limit. */
static __attribute__((noinline)) int send_error(struct packet_ctx *ctx, __u32 cause, __u8 code)
{
    __u8 quote[QUOTE];
    struct icmp_error e = {.ip = {.version = 4,
                                  .ihl = 5,
                                  .tos = 0xc0,
                                  .frag_off = bpf_htons(0x4000),
                                  .ttl = 64,
                                  .protocol = IPPROTO_ICMP,
                                  .saddr = ctx->settings->gateway,
                                  .daddr = ctx->pkt->ip.saddr},
                           .type = UNREACHABLE,
                           .code = code};
    __u32 size = ctx->pkt->ip.protocol == IPPROTO_TCP ? QUOTE : QUOTE_UDP, sum;
    struct ethhdr eth;
    if (ctx->entry != FROM_POD || !ctx->pkt->has_ports || ctx->pkt->ip.ihl != 5 ||
        ctx->skb->len < ETH_HLEN + size) {
        return TC_ACT_SHOT;
    }
    if (!options.under_test && has_had_enough(ctx)) {
        count(EBPF_ERRORS_LIMITED);
        return TC_ACT_SHOT;
    }
    /* Restores the address that the pod sent to. */
    if ((ctx->pkt->translated &&
         rewrite(ctx, DESTINATION, ctx->pkt->asked, ctx->pkt->asked_port) < 0) ||
        bpf_skb_change_tail(ctx->skb, ETH_HLEN + size, 0) < 0) {
        return TC_ACT_SHOT;
    }
    if (size == QUOTE) {
        if (bpf_skb_load_bytes(ctx->skb, ETH_HLEN, quote, QUOTE) < 0) {
            return TC_ACT_SHOT;
        }
        sum = bpf_csum_diff(NULL, 0, (__be32 *) quote, QUOTE, 0);
    } else {
        if (bpf_skb_load_bytes(ctx->skb, ETH_HLEN, quote, QUOTE_UDP) < 0) {
            return TC_ACT_SHOT;
        }
        sum = bpf_csum_diff(NULL, 0, (__be32 *) quote, QUOTE_UDP, 0);
    }
    e.ip.tot_len = bpf_htons(sizeof e + size);
    e.ip.check = fold(bpf_csum_diff(NULL, 0, (__be32 *) &e.ip, sizeof e.ip, 0));
    e.sum = fold(bpf_csum_diff(NULL, 0, (__be32 *) &e.type, sizeof e - sizeof e.ip, sum));
    eth = ctx->pkt->eth;
    __builtin_memcpy(eth.h_dest, ctx->pkt->eth.h_source, ETH_ALEN);
    __builtin_memcpy(eth.h_source, ctx->pkt->eth.h_dest, ETH_ALEN);
    if (bpf_skb_adjust_room(ctx->skb, sizeof e, BPF_ADJ_ROOM_MAC, 0) < 0 ||
        bpf_skb_store_bytes(ctx->skb, 0, &eth, sizeof eth, 0) < 0 ||
        bpf_skb_store_bytes(ctx->skb, ETH_HLEN, &e, sizeof e, 0) < 0) {
        return TC_ACT_SHOT;
    }
    count(EBPF_ERRORS_SENT);
    record_verdict(ctx, EBPF_REFUSED, cause, 0, ctx->pkt->tunnel_id);
    return bpf_redirect(ctx->pkt->port, 0);
}

/* Executes a verdict below 0. A pod with a checked source gets an ICMP error from its gateway,
 * so that its programs fail at once. Errors are sent only for causes that do not reveal other
 * pods (docs/pipeline.md), and only about TCP and UDP: never about an error or a later fragment
 * (RFC 1122 3.2.2). */
INLINE int conclude(struct packet_ctx *ctx, int verdict)
{
    if (LIKELY(verdict >= 0)) {
        return verdict;
    }
    __u32 cause = (__u32) -verdict & 0xff, code = (__u32) -verdict >> 8;
    record_drop(ctx, cause);
    return code ? send_error(ctx, cause, (__u8) code) : TC_ACT_SHOT;
}
