/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of pods to services that are idle: the agent keeps them until there are endpoints
 * (docs/services.md). */
#pragma once

#include "datapath/ebpf/bpf/places.h"
#include "datapath/ebpf/bpf/refuse.h"

/* Absent when options.events is 0. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EBPF_HELD_SIZE);
} tenet_held SEC(".maps");

/* Per-CPU memory to assemble a frame, as the stack is too small. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpf_held);
} tenet_holding SEC(".maps");

/* Hands the frame to the agent as the pod sent it; limited per pod like ICMP errors. */
static __attribute__((noinline)) int hold(struct packet_ctx *ctx)
{
    __u32 zero = 0, size = ctx->skb->len;
    struct ebpf_held *h = bpf_map_lookup_elem(&tenet_holding, &zero);
    if (!options.events || options.dry || !h || (!options.under_test && has_had_enough(ctx))) {
        return 0;
    }
    /* Keeps the bounds in registers, so that the verifier sees what the helpers get. */
    asm volatile("" : "+r"(size));
    if (size < ETH_HLEN || size > EBPF_HELD_MAX) {
        return 0;
    }
    h->port = ctx->pkt->port;
    h->size = size;
    if (bpf_skb_load_bytes(ctx->skb, 0, h->frame, size) == 0) {
        bpf_ringbuf_output(&tenet_held, h, sizeof *h - EBPF_HELD_MAX + size, 0);
    }
    return 0;
}

/* The agent's frame enters by the link of its pod again, where it is judged like any other. */
INLINE int let_go_on(struct __sk_buff *skb)
{
    struct iphdr ip;
    __u32 zero = 0;
    const struct ebpf_settings *settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    if (!settings || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof ip) < 0) {
        return TC_ACT_SHOT;
    }
    const struct ebpf_pod *pod = pod_at(settings, ip.saddr);
    skb->mark = 0;
    return pod ? bpf_redirect(pod->inlet, BPF_F_INGRESS) : TC_ACT_SHOT;
}
