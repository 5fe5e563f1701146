/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy in the programs: connection tracking, and the policies' verdict on a packet
 * (docs/policy.md).
 *
 * A packet is looked up among the connections first. Answers pass; packets in the connection's
 * original direction are judged once for each generation of policies. Judging is a constant
 * number of lookups, in rows of one generation: it is repeated when another generation came into
 * force meanwhile.
 *
 * The three steps are global functions, which the verifier checks once, independent of their
 * callers; so they share no stack, only the data of the packet in 'tenet_packet'. */
#pragma once

#include "datapath/ebpf/bpf/context.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpf_generation);
} tenet_policy SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_CLASSES_MAX);
    __type(key, __be32);
    __type(value, struct ebpf_classes_row);
} tenet_classes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_BLOCKS_MAX);
    __type(key, struct ebpf_block_key);
    __type(value, struct ebpf_block_row);
} tenet_blocks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_PAIRS_MAX);
    __type(key, struct ebpf_pair_key);
    __type(value, struct ebpf_pair_row);
} tenet_pairs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_PORT_SETS_MAX);
    __type(key, struct ebpf_port_key);
    __type(value, struct ebpf_port_verdict);
} tenet_port_sets SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_TRACKED_MAX);
    __type(key, struct ebpf_tracked_key);
    __type(value, struct ebpf_tracked);
} tenet_tracked SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, EBPF_SHARES_MAX);
    __type(key, __u32);
    __type(value, __u64);
} tenet_shares SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_FRAGMENTS_MAX);
    __type(key, struct ebpf_fragment_key);
    __type(value, struct ebpf_fragment);
} tenet_fragments SEC(".maps");

/* The packet that this CPU handles. */
struct judged {
    __u64 generation, judged_in; /* Generation of the policies: now, and when judging began. */
    struct ebpf_tracked_key key;
    __be32 src, dst;
    __be16 id, frag_off; /* Fields of the IP header. */
    __be16 port;         /* Destination port; 0: unknown. */
    __u16 payload;       /* Bytes after the IP header. */
    __u8 protocol, ihl;
    __u8 connection; /* enum connection */
    __u8 denied;     /* The connection is. */
    __u8 may_begin;  /* A connection. */
    __u8 from;       /* The end of the key that is the source. */
    __u8 from_pod;
    __u8 forged; /* A pod's ICMP error about a packet that the pod did not receive. */
    /* The packet was translated by a service, but keeps its destination address. */
    __u8 same_address;
    __u8 tcp_flags;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct judged);
} tenet_packet SEC(".maps");

#define TCP_FIN 1
#define TCP_RST 4

/* The packet's relation to the tracked connections, in the words of Linux's conntrack. */
enum connection {
    CT_NEW,      /* Of no tracked connection; it may begin one. */
    CT_ORIGINAL, /* In the direction of the connection's first packet. */
    CT_REPLY,    /* In the other direction. */
    CT_RELATED,  /* An ICMP error about a packet of the connection. */
    CT_NONE,     /* Of no tracked connection, and it cannot begin one. */
};

INLINE __u32 seconds(void)
{
    return (__u32) (bpf_ktime_get_ns() / 1000000000);
}

INLINE const struct ebpf_generation *generation(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&tenet_policy, &zero);
}

INLINE struct judged *packet(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&tenet_packet, &zero);
}

/* An error, which quotes a packet that its sender received (RFC 792). */
INLINE int is_icmp_error(__u8 type)
{
    return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

INLINE int is_later_fragment(const struct judged *p)
{
    return (p->frag_off & bpf_htons(FRAGMENT_OFFSET)) != 0;
}

INLINE int has_port_numbers(__u8 protocol)
{
    return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

/* ---- connections ---- */

/* Source and destination of a packet, also of one that an ICMP error quotes. */
struct ends {
    __be32 src, dst;
    __be16 src_port, dst_port;
    __u8 protocol;
};

/* Builds the key that both directions share; returns which end of it the source is. */
INLINE __u8 key_of(const struct ends *e, struct ebpf_tracked_key *ret)
{
    __u8 from = e->src > e->dst || (e->src == e->dst && e->src_port > e->dst_port);
    ret->protocol = e->protocol;
    ret->zero[0] = ret->zero[1] = ret->zero[2] = 0;
    ret->addr[0] = from ? e->dst : e->src;
    ret->addr[1] = from ? e->src : e->dst;
    ret->port[0] = from ? e->dst_port : e->src_port;
    ret->port[1] = from ? e->src_port : e->dst_port;
    return from;
}

/* An error goes to the sender of the quoted packet. A pod may only send errors about packets
 * that it received; errors from other nodes and the host were checked there. */
INLINE void look_up_quoted(struct __sk_buff *skb, struct judged *p, __u32 at)
{
    struct iphdr ip;
    struct ends e;
    __be16 ports[4] = {0};
    if (bpf_skb_load_bytes(skb, at, &ip, sizeof ip) < 0 || ip.ihl < 5 || ip.saddr != p->dst ||
        (ip.frag_off & bpf_htons(FRAGMENT_OFFSET)) ||
        bpf_skb_load_bytes(skb, at + ip.ihl * 4, ports, sizeof ports) < 0) {
        return;
    }
    e = (struct ends){.src = ip.saddr, .dst = ip.daddr, .protocol = ip.protocol};
    if (has_port_numbers(ip.protocol)) {
        e.src_port = ports[0];
        e.dst_port = ports[1];
    } else if (ip.protocol == IPPROTO_ICMP) {
        e.src_port = e.dst_port = ports[2];
    }
    key_of(&e, &p->key);
    const struct ebpf_tracked *t = bpf_map_lookup_elem(&tenet_tracked, &p->key);
    if (t && !ebpf_tracked_is_over(t, ip.protocol, seconds())) {
        p->connection = CT_RELATED;
        p->denied = t->denied;
        p->forged = p->from_pod && ip.daddr != p->src;
    }
}

/* Whether the transport header has ports and is not truncated. */
INLINE int has_whole_l4(struct __sk_buff *skb, const struct judged *p)
{
    __u32 l4 = ETH_HLEN + (p->ihl & 15) * 4;
    __u8 words = 0; /* The TCP header length in words, in the upper half. */
    if (p->protocol != IPPROTO_TCP) {
        return p->payload >= (p->protocol == IPPROTO_UDP ? UDP_SIZE : SCTP_SIZE);
    }
    return bpf_skb_load_bytes(skb, l4 + 12, &words, sizeof words) == 0 &&
           (words >> 4) * 4u >= TCP_SIZE && (words >> 4) * 4u <= p->payload;
}

/* Reads the key of the packet's connection; 0: it is found already, or the packet can have none. */
INLINE int read_ends(struct __sk_buff *skb, struct judged *p, struct ends *e)
{
    __u32 l4 = ETH_HLEN + (p->ihl & 15) * 4;
    __be16 head[4];
    struct ebpf_fragment_key whole = {
        .src = p->src, .dst = p->dst, .id = p->id, .protocol = p->protocol};
    int icmp = p->protocol == IPPROTO_ICMP, ports = has_port_numbers(p->protocol);
    *e = (struct ends){.src = p->src, .dst = p->dst, .protocol = p->protocol};
    p->may_begin = 1;
    if (!icmp && !ports) {
        return 1;
    }
    if (is_later_fragment(p)) {
        const struct ebpf_fragment *of = bpf_map_lookup_elem(&tenet_fragments, &whole);
        p->may_begin = 0;
        if (!of) {
            return 0;
        }
        e->src_port = of->src_port;
        e->dst_port = of->dst_port;
        p->port = ports ? of->dst_port : 0;
        return 1;
    }
    /* A truncated packet can be judged, without ports, and belongs to no connection. */
    if (p->payload < sizeof head || bpf_skb_load_bytes(skb, l4, head, sizeof head) < 0 ||
        (ports && !has_whole_l4(skb, p))) {
        p->may_begin = 0;
        return 0;
    }
    if (icmp) {
        __u8 type = ((__u8 *) head)[0];
        if (is_icmp_error(type)) {
            /* Until its connection is found: the receiver's node may know a connection that this
             * node does not. */
            p->forged = p->from_pod;
            look_up_quoted(skb, p, l4 + 8);
            return 0;
        }
        /* Requests and replies are 8 and 0, 13 and 14, 15 and 16, 17 and 18 (RFC 792, RFC 950). */
        if (type != 8 && type != 0 && (type < 13 || type > 18)) {
            return 0;
        }
        p->may_begin = type == 8 || (type & 1);
        e->src_port = e->dst_port = head[2];
    } else {
        e->src_port = head[0];
        e->dst_port = p->port = head[1];
    }
    if (p->protocol == IPPROTO_TCP) {
        __u8 flags = 0;
        bpf_skb_load_bytes(skb, l4 + 13, &flags, sizeof flags);
        p->tcp_flags = flags;
        /* Any segment but FIN, RST or an answer begins a connection: it may be older than this
         * table. */
        p->may_begin =
            !(flags & (TCP_FIN | TCP_RST)) && (flags & (TCP_SYN | TCP_ACK)) != (TCP_SYN | TCP_ACK);
    }
    if (p->frag_off & bpf_htons(MORE_FRAGMENTS)) {
        /* Keeps the destination that lead_fragments() stored for the same packet. */
        struct ebpf_fragment known = {
            .src_port = e->src_port, .dst_port = e->dst_port, .dst = p->same_address ? p->dst : 0};
        bpf_map_update_elem(&tenet_fragments, &whole, &known, BPF_ANY);
    }
    return 1;
}

INLINE void refresh(struct ebpf_tracked *t, const struct judged *p, __u32 now)
{
    if (p->connection == CT_REPLY && !t->answered) {
        t->answered = 1;
    }
    if (p->tcp_flags & TCP_RST) {
        t->ended[0] = t->ended[1] = 1;
    } else if (p->tcp_flags & TCP_FIN) {
        t->ended[p->from & 1] = 1;
    }
    if (t->seen_s != now) { /* Avoids a write: other processors read the cache line. */
        t->seen_s = now;
    }
}

/* The remaining work for the packet. */
enum judging { PASSES, IS_JUDGED, IS_DENIED, IS_FORGED };

/* Decides for a packet whose connection cannot be determined by read_ends(). */
INLINE int judging_of_none(const struct judged *p)
{
    if (p->connection == CT_RELATED && p->denied) {
        return IS_DENIED;
    }
    return p->forged ? IS_FORGED : p->connection == CT_RELATED ? PASSES : IS_JUDGED;
}

/* Finds the connection of the packet. */
__attribute__((noinline)) int tenet_track(struct __sk_buff *skb)
{
    struct judged *p = packet();
    const struct ebpf_generation *g = generation();
    struct ends e;
    if (!p || !g) {
        return IS_JUDGED;
    }
    p->generation = p->judged_in = *(volatile __u64 *) &g->current;
    p->connection = CT_NONE;
    p->denied = p->forged = p->tcp_flags = 0;
    p->port = 0;
    if (!read_ends(skb, p, &e)) {
        return judging_of_none(p);
    }
    p->from = key_of(&e, &p->key);
    p->connection = p->may_begin ? CT_NEW : CT_NONE;
    struct ebpf_tracked *t = bpf_map_lookup_elem(&tenet_tracked, &p->key);
    int anew = t && (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && (t->ended[0] || t->ended[1]);
    __u32 now = t ? seconds() : 0;
    if (!t || anew || ebpf_tracked_is_over(t, e.protocol, now)) {
        return IS_JUDGED;
    }
    p->connection = t->first == p->from ? CT_ORIGINAL : CT_REPLY;
    p->denied = t->denied;
    if (p->denied) {
        return p->connection == CT_REPLY ? IS_DENIED : IS_JUDGED;
    }
    if (p->connection == CT_ORIGINAL && t->generation != p->generation && !is_later_fragment(p)) {
        return IS_JUDGED;
    }
    refresh(t, p, now);
    return PASSES;
}

INLINE void begin_connection(const struct judged *p)
{
    struct ebpf_tracked t = {.generation = p->judged_in, .seen_s = seconds(), .first = p->from};
    /* A pod's share. */
    __u32 owner = bpf_ntohl(p->from_pod ? p->src : p->dst) & 0xffff, all = EBPF_SHARES_MAX - 1;
    __u64 *own = bpf_map_lookup_elem(&tenet_shares, &owner);
    __u64 *sum = bpf_map_lookup_elem(&tenet_shares, &all);
    /* An untracked connection passes, but its answers are judged. */
    if (!own || !sum || *sum >= EBPF_TRACKED_MAX || *own >= EBPF_TRACKED_MAX - *sum) {
        return;
    }
    t.owner = (__u16) owner;
    if (bpf_map_update_elem(&tenet_tracked, &p->key, &t, BPF_NOEXIST) == 0) {
        __sync_fetch_and_add(own, 1);
        __sync_fetch_and_add(sum, 1);
    }
}

/* Records that the packet was judged and passes. */
__attribute__((noinline)) int tenet_remember(void)
{
    const struct judged *p = packet();
    if (!p || (p->connection != CT_NEW && p->connection != CT_ORIGINAL)) {
        return 0;
    }
    struct ebpf_tracked *t = bpf_map_lookup_elem(&tenet_tracked, &p->key);
    if (!t) {
        if (p->connection == CT_NEW) {
            begin_connection(p);
        }
        return 0;
    }
    if (p->connection == CT_NEW) {
        t->first = p->from;
        t->answered = t->ended[0] = t->ended[1] = 0;
    }
    t->generation = p->judged_in;
    t->denied = 0;
    refresh(t, p, seconds());
    return 0;
}

/* ---- policies ---- */

/* The content of a row in that generation. */
#define ROW_IN(row, generation) ((row)->since <= (generation) ? &(row)->now : &(row)->before)

struct verdict {
    __u16 admin, baseline;
    __u8 admin_action, baseline_action, allowed;
};

/* policy_verdict_add */
INLINE void add_ports(const struct judged *p, __u32 ports, struct verdict *to)
{
    struct ebpf_port_key key = {
        .len = 64, .ports = ports, .protocol = p->protocol, .port = p->port};
    const struct ebpf_port_verdict *v = ports ? bpf_map_lookup_elem(&tenet_port_sets, &key) : NULL;
    if (!v) {
        return;
    }
    if (v->admin > to->admin) {
        to->admin = v->admin;
        to->admin_action = v->admin_action;
    }
    if (v->baseline > to->baseline) {
        to->baseline = v->baseline;
        to->baseline_action = v->baseline_action;
    }
    to->allowed |= v->allowed;
}

/* 0: no such pair. */
INLINE int find_pair(const struct judged *p, const struct ebpf_pair_key *key, struct ebpf_pair *ret)
{
    const struct ebpf_pair_row *row = bpf_map_lookup_elem(&tenet_pairs, key);
    if (row) {
        *ret = *ROW_IN(row, p->generation);
    }
    return row != NULL;
}

INLINE int find_classes(const struct judged *p, __be32 addr, struct ebpf_classes *ret)
{
    const struct ebpf_classes_row *row = bpf_map_lookup_elem(&tenet_classes, &addr);
    if (row) {
        *ret = *ROW_IN(row, p->generation);
    }
    return row != NULL;
}

/* Whether the policies of the pod at one end allow the packet. */
INLINE int allows(const struct judged *p, __u32 dir)
{
    __be32 subject = dir == EBPF_EGRESS ? p->src : p->dst;
    __be32 peer = dir == EBPF_EGRESS ? p->dst : p->src;
    struct ebpf_classes own = {}, other = {};
    struct ebpf_pair about = {};
    struct verdict v = {};
    if (!find_classes(p, subject, &own)) {
        return 1;
    }
    struct ebpf_pair_key key = {.subject = dir == EBPF_EGRESS ? own.subject[0] : own.subject[1],
                                .dir = (__u8) dir,
                                .kind = EBPF_ANYBODY};
    if (own.unknown || !key.subject) {
        return !own.unknown;
    }
    if (!find_pair(p, &key, &about) || (about.flags & EBPF_PAIR_CUT_OFF)) {
        return 0;
    }
    int isolated = about.flags & EBPF_PAIR_ISOLATED;
    add_ports(p, about.ports, &v);
    if (find_classes(p, peer, &other) && !other.unknown) {
        key.kind = EBPF_POD;
        key.peer = dir == EBPF_EGRESS ? other.peer[0] : other.peer[1];
        if (key.peer && find_pair(p, &key, &about)) {
            add_ports(p, about.ports, &v);
        }
    }
    struct ebpf_block_key at = {.len = EBPF_BLOCK_DIR_BITS + 32, .dir = dir, .addr = peer};
    const struct ebpf_block_row *block = bpf_map_lookup_elem(&tenet_blocks, &at);
    if (block) {
        key.kind = EBPF_BLOCK;
        key.peer = *ROW_IN(block, p->generation);
        if (key.peer && find_pair(p, &key, &about)) {
            add_ports(p, about.ports, &v);
        }
    }
    if (v.admin && v.admin_action != EBPF_PASS) {
        return v.admin_action == EBPF_ALLOW;
    }
    if (isolated) {
        return v.allowed;
    }
    return !v.baseline || v.baseline_action == EBPF_ALLOW;
}

/* Whether the packet is allowed at this end, by rows of one generation; a packet is denied when
 * no consistent read succeeds. */
__attribute__((noinline)) int tenet_allows(__u32 dir)
{
    struct judged *p = packet();
    const struct ebpf_generation *g = generation();
    if (!p || !g || g->closed) {
        return 0;
    }
    int allowed = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        p->generation = *(volatile __u64 *) &g->current;
        allowed = allows(p, dir);
        if (*(volatile __u64 *) &g->current == p->generation) {
            break;
        }
        allowed = 0;
    }
    if (!allowed && p->connection == CT_ORIGINAL) {
        struct ebpf_tracked *t = bpf_map_lookup_elem(&tenet_tracked, &p->key);
        if (t) {
            t->denied = 1;
        }
    }
    return allowed;
}

/* Judges the pod at this end; returns 0, or the cause of a denial. */
INLINE __u32 judge_end(const struct packet_ctx *ctx, __u32 dir)
{
    if (ctx->pkt->judging == PASSES || tenet_allows(dir)) {
        return EBPF_NOT_DROPPED;
    }
    return dir == EBPF_EGRESS ? EBPF_EGRESS_DENIED : EBPF_INGRESS_DENIED;
}

/* Judges a packet whose source and destination were checked; returns 0, or the cause of a drop. */
INLINE __u32 begin_policy(struct packet_ctx *ctx)
{
    if (LIKELY(!ctx->settings->has_policy)) {
        return EBPF_NOT_DROPPED;
    }
    struct judged *p = packet();
    if (!p) {
        return EBPF_EGRESS_DENIED; /* The per-CPU entry exists for every processor. */
    }
    p->src = ctx->pkt->ip.saddr;
    p->dst = ctx->pkt->ip.daddr;
    p->id = ctx->pkt->ip.id;
    p->frag_off = ctx->pkt->ip.frag_off;
    p->protocol = ctx->pkt->ip.protocol;
    p->ihl = ctx->pkt->ip.ihl;
    p->payload = (__u16) (bpf_ntohs(ctx->pkt->ip.tot_len) - ctx->pkt->ip.ihl * 4);
    p->from_pod = ctx->entry == FROM_POD;
    p->same_address = ctx->pkt->translated && ctx->pkt->asked == ctx->pkt->ip.daddr;
    ctx->pkt->judging = (__u8) tenet_track(ctx->skb);
    if (ctx->pkt->judging == IS_DENIED) {
        return EBPF_CONNECTION_DENIED;
    }
    if (UNLIKELY(ctx->pkt->judging == IS_FORGED)) {
        return EBPF_FORGED_ERROR;
    }
    return ctx->entry == FROM_POD ? judge_end(ctx, EBPF_EGRESS) : EBPF_NOT_DROPPED;
}

/* Judges a local receiver; its own node always reaches it, else probes would fail. */
INLINE __u32 judge_receiver(const struct packet_ctx *ctx)
{
    int own_host = ctx->entry == FROM_HOST && (ctx->pkt->ip.saddr == ctx->settings->gateway ||
                                               ctx->pkt->ip.saddr == ctx->settings->host);
    return UNLIKELY(ctx->settings->has_policy) && !own_host ? judge_end(ctx, EBPF_INGRESS)
                                                            : EBPF_NOT_DROPPED;
}

INLINE void end_policy(const struct packet_ctx *ctx)
{
    if (UNLIKELY(ctx->settings->has_policy) && ctx->pkt->judging != PASSES) {
        tenet_remember();
    }
}
