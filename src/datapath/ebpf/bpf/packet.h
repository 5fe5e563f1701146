/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's bytes: ports are read, addresses and ports are rewritten with their checksums. */
#pragma once

#include "datapath/ebpf/bpf/way.h"

INLINE int same_mac(const __u8 *a, const __u8 *b)
{
    const __u16 *x = (const void *) a, *y = (const void *) b;
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

/* Most packets have the right one: a write would copy a packet that its sender keeps. */
INLINE int set_destination(const struct way *w, const __u8 *mac)
{
    return same_mac(w->eth.h_dest, mac) ? 0 : bpf_skb_store_bytes(w->skb, 0, mac, ETH_ALEN, 0);
}

INLINE int is_tcp_or_udp(const struct iphdr *ip)
{
    return ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP;
}

/* As in Open vSwitch, ports of a header that is not whole are none. */
INLINE void read_ports(struct way *w)
{
    struct {
        __be16 ports[2];
        __u8 between[8], size, flags; /* Of TCP. */
    } h;
    __u32 l4 = ETH_HLEN + w->ip.ihl * 4, payload = bpf_ntohs(w->ip.tot_len) - w->ip.ihl * 4;
    if (!is_tcp_or_udp(&w->ip) || (w->ip.frag_off & bpf_htons(FRAGMENT_OFFSET))) {
        return;
    }
    h.flags = 0;
    if (w->ip.protocol == IPPROTO_TCP) {
        if (bpf_skb_load_bytes(w->skb, l4, &h, sizeof h) < 0 || (h.size >> 4) * 4u < TCP_SIZE ||
            (h.size >> 4) * 4u > payload) {
            return;
        }
    } else if (payload < UDP_SIZE || bpf_skb_load_bytes(w->skb, l4, h.ports, sizeof h.ports) < 0) {
        return;
    }
    w->src_port = h.ports[0];
    w->dst_port = h.ports[1];
    w->has_ports = 1;
    w->begins = w->ip.protocol == IPPROTO_UDP || (h.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

#define ADDRESS_AT(member) (ETH_HLEN + (__u32) __builtin_offsetof(struct iphdr, member))
enum { SOURCE, DESTINATION };

/* Puts address and port in place of those there are, with the checksums. */
INLINE int rewrite(struct way *w, int which, __be32 addr, __be16 port)
{
    __u32 l4 = ETH_HLEN + w->ip.ihl * 4, port_at = l4 + (which == SOURCE ? 0 : 2);
    __u32 sum_at = l4 + (w->ip.protocol == IPPROTO_TCP ? 16 : 6);
    __u64 zero_is_none = w->ip.protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
    __be32 old = which == SOURCE ? w->ip.saddr : w->ip.daddr;
    __be16 old_port = which == SOURCE ? w->src_port : w->dst_port;
    __u32 addr_at = which == SOURCE ? ADDRESS_AT(saddr) : ADDRESS_AT(daddr);
    if (bpf_l4_csum_replace(w->skb, sum_at, old, addr,
                            BPF_F_PSEUDO_HDR | zero_is_none | sizeof addr) < 0 ||
        bpf_l4_csum_replace(w->skb, sum_at, old_port, port, zero_is_none | sizeof port) < 0 ||
        bpf_l3_csum_replace(w->skb, ADDRESS_AT(check), old, addr, sizeof addr) < 0 ||
        bpf_skb_store_bytes(w->skb, addr_at, &addr, sizeof addr, 0) < 0 ||
        bpf_skb_store_bytes(w->skb, port_at, &port, sizeof port, 0) < 0) {
        return -1;
    }
    if (which == SOURCE) {
        w->ip.saddr = addr;
        w->src_port = port;
    } else {
        w->ip.daddr = addr;
        w->dst_port = port;
        w->knows_pod = w->knows_route = 0;
    }
    return 0;
}
