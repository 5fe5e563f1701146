/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of packets: drops are counted by cause, and who watches hears of each flow (docs/ebpf.md). */
#pragma once

#include "datapath/ebpf/bpf/way.h"

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, EBPF_N_COUNTERS);
    __type(key, __u32);
    __type(value, __u64);
} tenet_drops SEC(".maps");

/* Not where options.events is 0. */
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

/* Of the flow, and other than 0. */
INLINE __u32 tag_of(const struct way *w, __u32 verdict)
{
    __u64 h = (__u64) w->ip.saddr << 32 | w->ip.daddr;
    h = (h ^ w->settings->watch) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
    h ^= (__u64) w->src_port << 48 | (__u64) w->dst_port << 32 | (__u64) w->entry << 28 | w->port;
    h ^= (__u64) w->ip.protocol << 24 | (__u64) w->eth.h_proto << 8;
    h = (h ^ verdict) * 0xbf58476d1ce4e5b9;
    return (__u32) (h >> 32) | 1;
}

/* Somebody watches; 'verdict' has the cause in its upper 16 bits. */
static __attribute__((noinline)) int tell(const struct way *w, __u32 verdict, __u32 target,
                                          __u32 tunnel_id)
{
    __u32 zero = 0, tag = tag_of(w, verdict), second = w->settings->watch_second;
    struct ebpf_watched *told = bpf_map_lookup_elem(&tenet_watched, &zero);
    if (!told) {
        return 0;
    }
    __u32 *seen = &told->seen[(tag >> 1) % EBPF_WATCHED_FLOWS];
    if (*seen == tag) {
        return 0;
    }
    if (told->second != second) {
        told->second = second;
        told->count = 0;
    }
    struct ebpf_event *e = told->count < EBPF_EVENTS_A_SECOND
                               ? bpf_ringbuf_reserve(&tenet_events, sizeof *e, 0)
                               : NULL;
    if (!e) {
        told->lost++;
        return 0;
    }
    told->count++;
    *seen = tag;
    e->tag = tag;
    e->src = w->ip.saddr;
    e->dst = w->ip.daddr;
    e->asked = w->asked;
    e->src_port = w->src_port;
    e->dst_port = w->dst_port;
    e->asked_port = w->asked_port;
    e->eth_type = w->eth.h_proto;
    e->protocol = w->ip.protocol;
    e->entry = (__u8) w->entry;
    e->verdict = (__u8) verdict;
    e->cause = (__u8) (verdict >> 16);
    e->port = w->port;
    e->outer_src = w->outer_src;
    e->tunnel_id = tunnel_id;
    e->target = target;
    e->size = w->skb->len;
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    return 0;
}

INLINE void note(const struct way *w, __u32 verdict, __u32 cause, __u32 target, __u32 tunnel_id)
{
    if (options.under_test) {
        w->skb->cb[EBPF_CB_VERDICT] = verdict | cause << 16;
        w->skb->cb[EBPF_CB_TARGET] = target;
        w->skb->cb[EBPF_CB_TUNNEL_ID] = tunnel_id;
    }
    /* A refusal was told as a drop, and answers to questions are no flows. */
    if (options.events && verdict != EBPF_REFUSED && verdict != EBPF_ANSWER && w->settings->watch) {
        tell(w, verdict | cause << 16, target, tunnel_id);
    }
}

INLINE void count(__u32 which)
{
    __u64 *n = bpf_map_lookup_elem(&tenet_drops, &which);
    if (n) {
        *n += 1;
    }
}

INLINE void tell_drop(const struct way *w, __u32 cause)
{
    count(cause);
    note(w, EBPF_DROP, cause, 0, w->tunnel_id);
}
