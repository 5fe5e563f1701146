/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of each packet, for people: drops are counted by cause, and while there is a watcher
 * it gets an event per flow (docs/ebpf.md). */
#pragma once

#include "datapath/ebpf/bpf/context.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, EBPF_N_COUNTERS);
    __type(key, __u32);
    __type(value, __u64);
} tenet_drops SEC(".maps");

/* Absent when options.events is 0. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EBPF_EVENTS_SIZE);
} tenet_events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpf_watched);
} tenet_watched SEC(".maps");

/* The tag of the flow; never 0. */
INLINE __u32 tag_of(const struct ebpf_event *e, __u32 watch)
{
    __u64 h = (__u64) e->src << 32 | e->dst;
    h = (h ^ watch) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
    h ^= (__u64) e->src_port << 48 | (__u64) e->dst_port << 32 | (__u64) e->entry << 28 | e->port;
    h ^= (__u64) e->protocol << 24 | (__u64) e->eth_type << 8;
    h = (h ^ (e->verdict | (__u32) e->cause << 16)) * 0xbf58476d1ce4e5b9;
    return (__u32) (h >> 32) | 1;
}

INLINE struct ebpf_watched *watched(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&tenet_watched, &zero);
}

/* Sends 'now' of this CPU's state to the agent, unless the CPU sent an event of the flow before, or
 * too many in this second. Global, so that the verifier checks it once. */
__attribute__((noinline)) int tenet_send_event(void)
{
    __u32 zero = 0;
    /* Before Linux 6.8 the verifier checks the function even if it is never called. */
    if (!options.events) {
        return 0;
    }
    struct ebpf_watched *state = watched();
    const struct ebpf_settings *settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    if (!state || !settings) {
        return 0;
    }
    __u32 tag = tag_of(&state->now, settings->watch), second = settings->watch_second;
    __u32 *seen = &state->seen[(tag >> 1) % EBPF_WATCHED_FLOWS];
    if (*seen == tag) {
        return 0;
    }
    if (state->second != second) {
        state->second = second;
        state->count = 0;
    }
    struct ebpf_event *e = state->count < EBPF_EVENTS_A_SECOND
                               ? bpf_ringbuf_reserve(&tenet_events, sizeof *e, 0)
                               : NULL;
    if (!e) {
        state->lost++;
        return 0;
    }
    state->count++;
    *seen = tag;
    *e = state->now;
    e->tag = tag;
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    return 0;
}

/* Reports the packet to the watcher. */
INLINE void report(const struct packet_ctx *ctx, __u32 verdict, __u32 cause, __u32 target,
                   __u32 tunnel_id)
{
    struct ebpf_watched *state = watched();
    if (!state) {
        return;
    }
    struct ebpf_event *e = &state->now;
    e->src = ctx->pkt->ip.saddr;
    e->dst = ctx->pkt->ip.daddr;
    e->asked = ctx->pkt->asked;
    e->src_port = ctx->pkt->src_port;
    e->dst_port = ctx->pkt->dst_port;
    e->asked_port = ctx->pkt->asked_port;
    e->eth_type = ctx->pkt->eth.h_proto;
    e->protocol = ctx->pkt->ip.protocol;
    e->entry = (__u8) ctx->entry;
    e->verdict = (__u8) verdict;
    e->cause = (__u8) cause;
    e->port = ctx->pkt->port;
    e->outer_src = ctx->pkt->outer_src;
    e->tunnel_id = tunnel_id;
    e->target = target;
    e->size = ctx->skb->len;
    tenet_send_event();
}

/* Whether to skip the packet: it has data of a TCP connection whose beginning was reported, and only
 * one of EBPF_DATA_LOOKED_AT such packets is looked at. */
INLINE int is_skipped(const struct packet_ctx *ctx, __u32 verdict)
{
    return verdict != EBPF_DROP && ctx->pkt->ip.protocol == IPPROTO_TCP &&
           ctx->skb->len >= EBPF_DATA_SIZE && ++ctx->pkt->passed % EBPF_DATA_LOOKED_AT != 0;
}

/* Under test: returns the verdict in the packet's cb[] (EBPF_CB_VERDICT). */
INLINE void return_verdict(struct __sk_buff *skb, __u32 verdict, __u32 cause, __u32 target,
                           __u32 tunnel_id)
{
    if (UNLIKELY(options.under_test)) {
        skb->cb[EBPF_CB_VERDICT] = verdict | cause << 16;
        skb->cb[EBPF_CB_TARGET] = target;
        skb->cb[EBPF_CB_TUNNEL_ID] = tunnel_id;
    }
}

/* To be called for each verdict, before the packet is sent. */
INLINE void record_verdict(const struct packet_ctx *ctx, __u32 verdict, __u32 cause, __u32 target,
                           __u32 tunnel_id)
{
    return_verdict(ctx->skb, verdict, cause, target, tunnel_id);
    /* A refusal was reported as a drop, and an ARP reply of this node's is no flow. */
    if (options.events && verdict != EBPF_REFUSED && verdict != EBPF_ANSWER &&
        UNLIKELY(ctx->settings->watch) && !is_skipped(ctx, verdict)) {
        report(ctx, verdict, cause, target, tunnel_id);
    }
}

INLINE void count(__u32 which)
{
    __u64 *n = bpf_map_lookup_elem(&tenet_drops, &which);
    if (n) {
        *n += 1;
    }
}

INLINE void record_drop(const struct packet_ctx *ctx, __u32 cause)
{
    count(cause);
    record_verdict(ctx, EBPF_DROP, cause, 0, ctx->pkt->tunnel_id);
}
