/* SPDX-License-Identifier: Apache-2.0 */
/* Fast path for packets of an established TCP connection between two local pods.
 *
 * It reads no more than such a packet needs, and keeps it in registers: a stream's data evicts
 * the CPU caches, so each access is a cache miss for each packet. It can only deliver a packet;
 * any other packet takes the full path from the start. */
#pragma once

#include "datapath/ebpf/bpf/leave.h"

/* Whether it is a whole TCP packet, neither a fragment nor the beginning of a connection. */
INLINE int is_of_stream(const struct __sk_buff *skb, const struct iphdr *ip,
                        const struct ports *tcp)
{
    __u32 header = (tcp->size >> 4) * 4u, total = bpf_ntohs(ip->tot_len);
    return *(const __u8 *) ip == 0x45 && ip->protocol == IPPROTO_TCP &&
           !(ip->frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS)) &&
           (tcp->flags & TCP_ACK) && header >= TCP_SIZE && total >= sizeof *ip + header &&
           (total <= skb->len - ETH_HLEN || skb->gso_size);
}

/* Whether it may be an answer of a service's backend. */
INLINE int may_be_restored(const struct iphdr *ip, const struct ports *tcp)
{
    if (LIKELY(!may_have_asked(ip->daddr))) {
        return 0;
    }
    struct ebpf_connection_key key = {.src = ip->saddr,
                                      .dst = ip->daddr,
                                      .src_port = tcp->ports[0],
                                      .dst_port = tcp->ports[1],
                                      .protocol = IPPROTO_TCP,
                                      .dir = EBPF_DIR_REPLY};
    return bpf_map_lookup_elem(&tenet_conns, &key) != NULL;
}

/* The link (ifindex) of the pod that gets the packet, which arrived by 'port'; 0: the full path
 * decides. */
INLINE __u32 stream_to(struct __sk_buff *skb, __u32 port)
{
    const char *data = (const char *) (long) skb->data;
    const struct ethhdr *eth = (const void *) data;
    const struct iphdr *ip = (const void *) (data + ETH_HLEN);
    const struct ports *tcp = (const void *) (data + HEADERS);
    __u32 zero = 0;
    const struct ebpf_settings *s = bpf_map_lookup_elem(&tenet_settings, &zero);
    if (UNLIKELY(!s || (const char *) (tcp + 1) > (const char *) (long) skb->data_end ||
                 ((ip->daddr ^ s->local) & s->mask) || s->has_policy || s->watch ||
                 skb->vlan_present || eth->h_proto != bpf_htons(ETH_P_IP) ||
                 !is_of_stream(skb, ip, tcp))) {
        return 0;
    }
    const struct ebpf_pod *from = cached_pod(ip->saddr), *to = cached_pod(ip->daddr);
    if (UNLIKELY(!from || !to)) {
        return 0;
    }
    if (UNLIKELY(from->addr != ip->saddr || !same_mac(from->mac, eth->h_source) ||
                 from->inlet != port || to->addr != ip->daddr || !same_mac(to->mac, eth->h_dest) ||
                 (to->flags & EBPF_POD_QUEUED) || from == to)) {
        return 0;
    }
    union ebpf_reach sender = reach_of(from), receiver = reach_of(to);
    if (UNLIKELY(!sender.ifindex || (s->compare_vnids && !may_reach(sender.vnid, receiver.vnid)) ||
                 (s->has_services && may_be_restored(ip, tcp)))) {
        return 0;
    }
    return receiver.ifindex;
}
