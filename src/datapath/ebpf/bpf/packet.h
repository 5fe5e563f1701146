/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's bytes: reads ports, rewrites addresses and ports with their checksums. */
#pragma once

#include "datapath/ebpf/bpf/context.h"

#define AT(p, offset) ((char *) (p) + (offset))

/* Both pointers are 2 above a multiple of 4, as addresses of Ethernet headers are. */
INLINE void copy_frame(void *to, const void *from, __u32 size)
{
    __builtin_memcpy(__builtin_assume_aligned(to, 2), __builtin_assume_aligned(from, 2), 2);
    __builtin_memcpy(__builtin_assume_aligned(AT(to, 2), 4),
                     __builtin_assume_aligned(AT(from, 2), 4), size - 2);
}

/* Copies the frame's first bytes to such an address: directly when they are linear, else by the
 * helper, which is slower. */
INLINE int read_frame(struct __sk_buff *skb, void *to, __u32 size)
{
    const void *data = (const void *) (long) skb->data;
    if (UNLIKELY(AT(data, size) > (char *) (long) skb->data_end)) {
        return bpf_skb_load_bytes(skb, 0, to, size);
    }
    copy_frame(to, data, size);
    return 0;
}

/* Folds a sum into the Internet checksum (RFC 1071). */
INLINE __be16 fold(__u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__be16) ~sum;
}

INLINE void copy_mac(__u8 *to, const __u8 *from)
{
    __builtin_memcpy(__builtin_assume_aligned(to, 2), __builtin_assume_aligned(from, 2), ETH_ALEN);
}

INLINE int same_mac(const __u8 *a, const __u8 *b)
{
    const __u16 *x = (const void *) a, *y = (const void *) b;
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

/* Most packets have the right address already: a write would copy a packet that its sender
 * shares. */
INLINE int set_destination(const struct packet_ctx *ctx, const __u8 *mac)
{
    return LIKELY(same_mac(ctx->pkt->eth.h_dest, mac))
               ? 0
               : bpf_skb_store_bytes(ctx->skb, 0, mac, ETH_ALEN, 0);
}

INLINE int is_tcp_or_udp(const struct iphdr *ip)
{
    return ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP;
}

struct ports {
    __be16 ports[2];
    __u8 between[8], size, flags; /* Fields of the TCP header. */
};

/* Reads the transport header after an IP header without options. */
INLINE int read_transport(struct __sk_buff *skb, __u32 l4, struct ports *to, __u32 size)
{
    const char *data = (const char *) (long) skb->data;
    if (UNLIKELY(l4 != HEADERS ||
                 data + HEADERS + sizeof *to > (const char *) (long) skb->data_end)) {
        return bpf_skb_load_bytes(skb, l4, to, size);
    }
    const struct ports *from = (const void *) (data + HEADERS);
    to->ports[0] = from->ports[0];
    to->ports[1] = from->ports[1];
    to->size = from->size;
    to->flags = from->flags;
    return 0;
}

/* Ports of a truncated header count as 0, as in Open vSwitch. */
INLINE void read_ports(struct packet_ctx *ctx)
{
    struct ports h;
    __u32 l4 = ETH_HLEN + ctx->pkt->ip.ihl * 4,
          payload = bpf_ntohs(ctx->pkt->ip.tot_len) - ctx->pkt->ip.ihl * 4;
    if (UNLIKELY(!is_tcp_or_udp(&ctx->pkt->ip) ||
                 (ctx->pkt->ip.frag_off & bpf_htons(FRAGMENT_OFFSET)))) {
        return;
    }
    if (LIKELY(ctx->pkt->ip.protocol == IPPROTO_TCP)) {
        if (UNLIKELY(read_transport(ctx->skb, l4, &h, sizeof h) < 0 ||
                     (h.size >> 4) * 4u < TCP_SIZE || (h.size >> 4) * 4u > payload)) {
            return;
        }
    } else if (payload < UDP_SIZE || read_transport(ctx->skb, l4, &h, sizeof h.ports) < 0) {
        return;
    } else {
        h.size = h.flags = 0;
    }
    ctx->pkt->tcp_size = (h.size >> 4) * 4;
    ctx->pkt->src_port = h.ports[0];
    ctx->pkt->dst_port = h.ports[1];
    ctx->pkt->has_ports = 1;
    ctx->pkt->begins =
        ctx->pkt->ip.protocol == IPPROTO_UDP || (h.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

#define ADDRESS_AT(member) (ETH_HLEN + (__u32) __builtin_offsetof(struct iphdr, member))
enum { SOURCE, DESTINATION };

/* The changes of rewrite() and readdress() in a global function, which the verifier checks once. */
#define OLD_AND_NEW(old, new) ((__u64) (new) << 32 | (old))
__attribute__((noinline)) int tenet_rewrite(struct __sk_buff *skb, __u32 which, __u64 addrs,
                                            __u64 ports, __u64 l4)
{
    __u32 at = which == SOURCE ? ADDRESS_AT(saddr) : ADDRESS_AT(daddr);
    __be32 addr = (__u32) (addrs >> 32), old = (__u32) addrs;
    __be16 port = (__u16) (ports >> 32), old_port = (__u16) ports;
    __u8 protocol = (__u8) (l4 >> 8);
    if (protocol) {
        __u32 header = l4 & 0xff, sum_at = header + (protocol == IPPROTO_TCP ? 16 : 6);
        __u64 zero_is_none = protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
        if (bpf_l4_csum_replace(skb, sum_at, old, addr,
                                BPF_F_PSEUDO_HDR | zero_is_none | sizeof addr) < 0 ||
            bpf_l4_csum_replace(skb, sum_at, old_port, port, zero_is_none | sizeof port) < 0 ||
            bpf_skb_store_bytes(skb, header + (which == SOURCE ? 0 : 2), &port, sizeof port, 0) <
                0) {
            return -1;
        }
    }
    return bpf_l3_csum_replace(skb, ADDRESS_AT(check), old, addr, sizeof addr) < 0 ||
                   bpf_skb_store_bytes(skb, at, &addr, sizeof addr, 0) < 0
               ? -1
               : 0;
}

/* Replaces address and port, and updates the checksums. */
INLINE int rewrite(struct packet_ctx *ctx, __u32 which, __be32 addr, __be16 port)
{
    __be32 *old = which == SOURCE ? &ctx->pkt->ip.saddr : &ctx->pkt->ip.daddr;
    __be16 *old_port = which == SOURCE ? &ctx->pkt->src_port : &ctx->pkt->dst_port;
    __u64 l4 = (__u64) (ETH_HLEN + ctx->pkt->ip.ihl * 4) | (__u64) ctx->pkt->ip.protocol << 8;
    if (tenet_rewrite(ctx->skb, which, OLD_AND_NEW(*old, addr), OLD_AND_NEW(*old_port, port), l4) <
        0) {
        return -1;
    }
    *old = addr;
    *old_port = port;
    return 0;
}

/* The address alone. */
INLINE int readdress(struct packet_ctx *ctx, __u32 which, __be32 addr)
{
    __be32 *old = which == SOURCE ? &ctx->pkt->ip.saddr : &ctx->pkt->ip.daddr;
    if (!addr || addr == *old) {
        return 0;
    }
    if (tenet_rewrite(ctx->skb, which, OLD_AND_NEW(*old, addr), 0, 0) < 0) {
        return -1;
    }
    *old = addr;
    return 0;
}
