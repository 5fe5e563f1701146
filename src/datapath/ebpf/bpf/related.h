/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a connection to a service that do not carry its ports: later fragments, which
 * follow the first, and ICMP errors, which quote a packet of the connection (RFC 792).
 *
 * An error has to quote the packet as the error's receiver sent it: the translation is reverted
 * in the quote. A backend's error gets the service's address as source; a router's keeps its
 * own. Checksums of TCP and UDP in a quote are not updated, as the data that they cover is not
 * there. */
#pragma once

#include "datapath/ebpf/bpf/connections.h"
#include "datapath/ebpf/bpf/packet.h"
#include "datapath/ebpf/bpf/policy.h"

/* ---- fragments ---- */

/* The packet's first fragment got these addresses (0: unchanged); later fragments will get them,
 * too. */
INLINE void lead_fragments(const struct packet_ctx *ctx, __be32 src, __be32 dst)
{
    if (UNLIKELY(ctx->pkt->ip.frag_off & bpf_htons(MORE_FRAGMENTS))) {
        struct ebpf_fragment_key whole = {.src = ctx->pkt->ip.saddr,
                                          .dst = ctx->pkt->ip.daddr,
                                          .id = ctx->pkt->ip.id,
                                          .protocol = ctx->pkt->ip.protocol};
        struct ebpf_fragment given = {
            .src_port = ctx->pkt->src_port, .dst_port = ctx->pkt->dst_port, .src = src, .dst = dst};
        bpf_map_update_elem(&tenet_fragments, &whole, &given, BPF_ANY);
    }
}

INLINE const struct ebpf_fragment *first_of(const struct packet_ctx *ctx)
{
    struct ebpf_fragment_key whole = {.src = ctx->pkt->ip.saddr,
                                      .dst = ctx->pkt->ip.daddr,
                                      .id = ctx->pkt->ip.id,
                                      .protocol = ctx->pkt->ip.protocol};
    return bpf_map_lookup_elem(&tenet_fragments, &whole);
}

/* Whether the first fragment was translated; this one is translated the same way. */
INLINE int follow_first(struct packet_ctx *ctx)
{
    const struct ebpf_fragment *first = first_of(ctx);
    if (!first || !first->dst) {
        return 0;
    }
    __be32 src = first->src, dst = first->dst;
    return readdress(ctx, SOURCE, src) == 0 && readdress(ctx, DESTINATION, dst) == 0;
}

/* ---- errors ---- */

/* The packet that an error quotes, and its translation. */
struct quote {
    struct iphdr ip;
    __be16 ports[2];
    __u32 at, icmp; /* Offset of the quoted header, and of the error. */
};

INLINE int read_quote(const struct packet_ctx *ctx, struct quote *q)
{
    __u8 type;
    q->icmp = ETH_HLEN + ctx->pkt->ip.ihl * 4;
    q->at = q->icmp + 8;
    return ctx->pkt->ip.protocol == IPPROTO_ICMP &&
           !(ctx->pkt->ip.frag_off & bpf_htons(FRAGMENT_OFFSET)) &&
           bpf_skb_load_bytes(ctx->skb, q->icmp, &type, sizeof type) == 0 && is_icmp_error(type) &&
           bpf_skb_load_bytes(ctx->skb, q->at, &q->ip, sizeof q->ip) == 0 && q->ip.ihl >= 5 &&
           is_tcp_or_udp(&q->ip) && !(q->ip.frag_off & bpf_htons(FRAGMENT_OFFSET)) &&
           bpf_skb_load_bytes(ctx->skb, q->at + q->ip.ihl * 4, q->ports, sizeof q->ports) == 0;
}

/* Replaces an end in the quote. The sum of the quoted IP header including its checksum stays
 * equal, so the error's own checksum changes by the port alone. */
INLINE int requote(struct packet_ctx *ctx, const struct quote *q, int which, __be32 addr,
                   __be16 port)
{
    __be32 old = which == SOURCE ? q->ip.saddr : q->ip.daddr;
    __be16 old_port = q->ports[which == SOURCE ? 0 : 1];
    __u32 addr_at = q->at + (which == SOURCE ? (__u32) __builtin_offsetof(struct iphdr, saddr)
                                             : (__u32) __builtin_offsetof(struct iphdr, daddr));
    __u32 port_at = q->at + q->ip.ihl * 4 + (which == SOURCE ? 0 : 2);
    return bpf_l3_csum_replace(ctx->skb, q->at + (__u32) __builtin_offsetof(struct iphdr, check),
                               old, addr, sizeof addr) < 0 ||
                   bpf_skb_store_bytes(ctx->skb, addr_at, &addr, sizeof addr, 0) < 0 ||
                   bpf_l4_csum_replace(ctx->skb, q->icmp + 2, old_port, port, sizeof port) < 0 ||
                   bpf_skb_store_bytes(ctx->skb, port_at, &port, sizeof port, 0) < 0
               ? -1
               : 0;
}

/* The entry for answers to the quoted packet (EBPF_DIR_REPLY), or for the packet that it answered
 * (EBPF_DIR_ORIGINAL). */
INLINE const struct ebpf_chosen *quoted_connection(const struct quote *q, __u8 dir)
{
    struct ebpf_connection_key key = {.src = q->ip.daddr,
                                      .dst = q->ip.saddr,
                                      .src_port = q->ports[1],
                                      .dst_port = q->ports[0],
                                      .protocol = q->ip.protocol,
                                      .dir = dir};
    return bpf_map_lookup_elem(&tenet_conns, &key);
}

/* Reverts the translation in an error about a pod's packet to a service. */
static __attribute__((noinline)) int restore_quote(struct packet_ctx *ctx)
{
    struct quote q;
    if (!read_quote(ctx, &q) || q.ip.saddr != ctx->pkt->ip.daddr) {
        return 0;
    }
    const struct ebpf_chosen *asked = quoted_connection(&q, EBPF_DIR_REPLY);
    if (!asked) {
        return 0;
    }
    struct ebpf_chosen service = *asked;
    if (service.client_port && requote(ctx, &q, SOURCE, q.ip.saddr, service.client_port) < 0) {
        return -1;
    }
    return requote(ctx, &q, DESTINATION, service.addr, service.port) < 0 ||
                   (ctx->pkt->ip.saddr == q.ip.daddr && readdress(ctx, SOURCE, service.addr) < 0)
               ? -1
               : 0;
}

/* Translates a pod's error about a service's answer for the backend that sent it; returns
 * whether it is such an error. */
static __attribute__((noinline)) int follow_quote(struct packet_ctx *ctx)
{
    struct quote q;
    __be32 itself = bpf_htonl(ITSELF), pod = ctx->pkt->ip.saddr;
    if (!read_quote(ctx, &q) || q.ip.saddr != ctx->pkt->ip.daddr || q.ip.daddr != pod) {
        return 0;
    }
    if (ctx->pkt->ip.daddr ==
        itself) { /* About a packet that the pod sent to itself by a service. */
        const struct ebpf_chosen *asked = quoted_connection(&q, EBPF_DIR_REPLY);
        if (!asked) {
            return 0;
        }
        struct ebpf_chosen service = *asked;
        __be16 port = service.client_port ? service.client_port : q.ports[0];
        return requote(ctx, &q, DESTINATION, service.addr, service.port) == 0 &&
               requote(ctx, &q, SOURCE, pod, port) == 0 &&
               readdress(ctx, SOURCE, service.addr) == 0 && readdress(ctx, DESTINATION, pod) == 0;
    }
    const struct ebpf_chosen *c = quoted_connection(&q, EBPF_DIR_ORIGINAL);
    if (!c) {
        return 0;
    }
    struct ebpf_chosen backend = *c;
    if (requote(ctx, &q, SOURCE, backend.addr, backend.port) < 0 ||
        readdress(ctx, DESTINATION, backend.addr) < 0) {
        return 0;
    }
    __be16 port = backend.client_port ? backend.client_port : q.ports[1];
    if (backend.addr != pod) {
        return port == q.ports[1] || requote(ctx, &q, DESTINATION, pod, port) == 0;
    }
    return requote(ctx, &q, DESTINATION, itself, port) == 0 && readdress(ctx, SOURCE, itself) == 0;
}

/* ---- both ---- */

INLINE int is_later(const struct packet_ctx *ctx)
{
    return (ctx->pkt->ip.frag_off & bpf_htons(FRAGMENT_OFFSET)) != 0;
}

/* Gives packets of a backend the service's address as source. */
INLINE int restore_related(struct packet_ctx *ctx)
{
    if (is_later(ctx)) {
        const struct ebpf_fragment *first = first_of(ctx);
        return first && !first->dst ? readdress(ctx, SOURCE, first->src) : 0;
    }
    return ctx->pkt->ip.protocol == IPPROTO_ICMP ? restore_quote(ctx) : 0;
}

/* Whether a pod's packet belongs to a connection to a service; its destination is then the
 * connection's. */
INLINE int follow_service(struct packet_ctx *ctx)
{
    int follows = is_later(ctx)                           ? follow_first(ctx)
                  : ctx->pkt->ip.protocol == IPPROTO_ICMP ? follow_quote(ctx)
                                                          : 0;
    ctx->pkt->translated |= (__u8) follows;
    return follows;
}
