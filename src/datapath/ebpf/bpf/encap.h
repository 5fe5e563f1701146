/* SPDX-License-Identifier: Apache-2.0 */
/* The outer header of tunnel packets (RFC 7348), added and removed by the programs, which bypass
 * the VXLAN device and the host's IP stack.
 *
 * Only plain packets are handled here; both functions refuse all others before they change the
 * packet, which then goes by the device. The packets sent are equal to the device's, except for
 * the identification of the outer IP header: it is 0, as a packet that is never fragmented needs
 * none (RFC 6864 4.1). */
#pragma once

#include "datapath/ebpf/bpf/places.h"

#define AF_INET 2
#define VXLAN_HAS_VNI 0x08000000
#define DONT_FRAGMENT 0x4000
/* The ECN bits of the type of service (RFC 3168): 0 not capable, 1 and 2 capable, 3 congestion. */
#define ECN 3
#define OUTER_TTL 64

/* The headers of the tunnel packet that this CPU handles: a program's stack is too small for them. */
struct tunnelled {
    __u16 align;
    struct ethhdr eth;
    struct outer {
        struct iphdr ip;
        struct udphdr udp;
        __be32 flags, vni;
    } o;
    struct ethhdr inner_eth;
    __u16 inner[sizeof(struct iphdr) / 2]; /* Not aligned to 4 bytes, as an IP header would be. */
    __u16 unused;
};
#define INNER_TOS(t) ((__u8) (bpf_ntohs((t)->inner[0]) & 0xff))
#define OUTER_AT __builtin_offsetof(struct tunnelled, o)
_Static_assert(__builtin_offsetof(struct tunnelled, inner) == OUTER_AT + EBPF_OUTER_SIZE,
               "as in a packet");
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct tunnelled);
} tenet_outer SEC(".maps");

INLINE struct tunnelled *tunnelled(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&tenet_outer, &zero);
}

/* Whether tunnel packets may bypass the VXLAN device: the agent has renewed the paths to other nodes
 * recently. */
INLINE int is_direct(const struct ebpf_settings *s)
{
    return options.encap && (options.under_test ||
                             bpf_ktime_get_coarse_ns() < (__u64) s->direct_until_s * 1000000000);
}

/* The checksum over a header without options; 0 when the header's own checksum is right. */
INLINE __u16 header_sum(const struct iphdr *ip)
{
    const __u16 *p = (const void *) ip;
    return fold(p[0] + p[1] + p[2] + p[3] + p[4] + p[5] + p[6] + p[7] + p[8] + p[9]);
}

/* The checksum of a header that is to be written, computed from its values: reading back bytes
 * just written in other sizes is slow. */
INLINE __be16 new_header_sum(__u8 tos, __be16 size, __be32 src, __be32 dst)
{
    return fold(bpf_htons(0x4500) + bpf_htons(tos) + size + bpf_htons(DONT_FRAGMENT) +
                bpf_htons(OUTER_TTL << 8 | IPPROTO_UDP) + (src & 0xffff) + (src >> 16) +
                (dst & 0xffff) + (dst >> 16));
}

/* The source port as the kernel chooses it, within the ephemeral ports: it spreads flows, and
 * keeps the packets of each in order. */
INLINE __be16 source_port(struct __sk_buff *skb)
{
    __u32 hash = skb->hash ? skb->hash : bpf_get_hash_recalc(skb);
    hash ^= hash << 16;
    return bpf_htons((__u16) (32768 + (((__u64) hash * (60999 - 32768)) >> 32)));
}

/* Whether each packet on the wire (after segmentation) fits the MTU. */
INLINE int fits(const struct packet_ctx *ctx, __u32 mtu)
{
    __u32 size = ctx->skb->len - ETH_HLEN;
    if (ctx->skb->gso_size) {
        if (!ctx->pkt->tcp_size) {
            return 0;
        }
        size = ctx->pkt->ip.ihl * 4 + ctx->pkt->tcp_size + ctx->skb->gso_size;
    }
    return size + EBPF_OUTER_SIZE <= mtu && ctx->skb->len <= 0xffff - EBPF_OUTER_SIZE;
}

/* Sends an IPv4 packet to another node; -1: the packet is unchanged and can go by the device. */
INLINE int send_direct(const struct packet_ctx *ctx, const struct ebpf_route *r, __u32 vnid)
{
    struct tunnelled *t = tunnelled();
    struct bpf_redir_neigh next;
    if (!t || !r->ifindex || !is_direct(ctx->settings) || !fits(ctx, r->mtu)) {
        return -1;
    }
    __u32 size = ctx->skb->len - ETH_HLEN + EBPF_OUTER_SIZE;
    __u8 ecn = ctx->pkt->ip.tos & ECN,
         tos = ecn == ECN ? 2 : ecn; /* RFC 6040 4.1, as the kernel does it. */
    __be32 src = ctx->settings->host, dst = bpf_htonl(r->vtep);
    __be16 total = bpf_htons((__u16) size);
    t->o = (struct outer){
        .ip = {.version = 4,
               .ihl = 5,
               .tos = tos,
               .tot_len = total,
               .frag_off = bpf_htons(DONT_FRAGMENT),
               .ttl = OUTER_TTL,
               .protocol = IPPROTO_UDP,
               .check = new_header_sum(tos, total, src, dst),
               .saddr = src,
               .daddr = dst},
        .udp = {.source = source_port(ctx->skb),
                .dest = ctx->settings->vxlan_port,
                .len = bpf_htons((__u16) (size - sizeof(struct iphdr)))},
        .flags = bpf_htonl(VXLAN_HAS_VNI),
        .vni = bpf_htonl(vnid << 8),
    };
    copy_mac(t->inner_eth.h_dest, ctx->pkt->eth.h_dest);
    copy_mac(t->inner_eth.h_source, ctx->pkt->eth.h_source);
    t->inner_eth.h_proto = bpf_htons(ETH_P_IP);
    if (bpf_skb_adjust_room(ctx->skb, EBPF_OUTER_SIZE, BPF_ADJ_ROOM_MAC, EBPF_ENCAP_FLAGS) < 0) {
        return -1;
    }
    if (bpf_skb_store_bytes(ctx->skb, ETH_HLEN, &t->o, EBPF_OUTER_SIZE, 0) < 0) {
        return TC_ACT_SHOT;
    }
    __builtin_memset(&next, 0, sizeof next);
    next.nh_family = AF_INET;
    next.ipv4_nh = r->next;
    return bpf_redirect_neigh(r->ifindex, &next, sizeof next, 0);
}

/* Whether the VXLAN device would accept it as a packet of this cluster, and no other part of the
 * host could change or drop it. */
INLINE int is_plain(const struct ebpf_settings *s, const struct tunnelled *t, __u32 size)
{
    const struct outer *o = &t->o;
    __u8 ecn = o->ip.tos & ECN;
    return o->ip.version == 4 && o->ip.ihl == 5 && o->ip.daddr == s->host &&
           !(o->ip.frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS)) &&
           o->udp.dest == s->vxlan_port && !o->udp.check &&
           bpf_ntohs(o->ip.tot_len) + ETH_HLEN == size &&
           bpf_ntohs(o->udp.len) + sizeof o->ip + ETH_HLEN == size && !header_sum(&o->ip) &&
           o->flags == bpf_htonl(VXLAN_HAS_VNI) && !(o->vni & bpf_htonl(0xff)) &&
           t->inner_eth.h_proto == bpf_htons(ETH_P_IP) &&
           /* The device drops packets from its own address, and marks congestion when it has to
            * (RFC 6040 4.2). */
           (t->inner_eth.h_source[0] != 0xee || t->inner_eth.h_source[1] != 0x58) &&
           (!(ecn & 1) || ecn == (INNER_TOS(t) & ECN));
}

/* Removes the outer header of a packet from the wire that is for a local pod, and reads the
 * packet into '*ctx'; -1: the packet is unchanged and belongs to the host. */
INLINE int take_outer(struct packet_ctx *ctx)
{
    struct tunnelled *t = tunnelled();
    if (!t ||
        read_frame(ctx->skb, &t->eth, ETH_HLEN + EBPF_OUTER_SIZE + sizeof(struct iphdr)) < 0 ||
        t->eth.h_proto != bpf_htons(ETH_P_IP) || t->o.ip.protocol != IPPROTO_UDP) {
        return -1;
    }
    __u32 zero = 0;
    ctx->settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    if (!ctx->settings || ctx->skb->pkt_type != PACKET_HOST || ctx->skb->vlan_present ||
        !is_plain(ctx->settings, t, ctx->skb->len) || !is_direct(ctx->settings)) {
        return -1;
    }
    __builtin_memcpy(&ctx->pkt->ip, t->inner, sizeof ctx->pkt->ip);
    const struct ebpf_pod *pod = ctx->pod = pod_at(ctx->settings, ctx->pkt->ip.daddr);
    /* The kernel counts the checksums that the card has verified, and the outer UDP checksum is one of
     * them, even if it is absent (0, RFC 768). bpf_skb_adjust_room() must not reset the count;
     * bpf_csum_level() then takes the outer checksum from it. */
    if (!pod || bpf_skb_adjust_room(ctx->skb, -EBPF_OUTER_SIZE, BPF_ADJ_ROOM_MAC,
                                    BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET) < 0) {
        return -1;
    }
    bpf_csum_level(ctx->skb, BPF_CSUM_LEVEL_DEC);
    ctx->pkt->outer_src = bpf_ntohl(t->o.ip.saddr);
    ctx->pkt->tunnel_id = bpf_ntohl(t->o.vni) >> 8;
    copy_mac(ctx->pkt->eth.h_dest, pod->mac);
    copy_mac(ctx->pkt->eth.h_source, t->inner_eth.h_source);
    ctx->pkt->eth.h_proto = bpf_htons(ETH_P_IP);
    return 0;
}
