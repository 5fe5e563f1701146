/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of pods to idle services: the programs hand them to the agent, which keeps them until there
 * are endpoints and then hands them back (docs/services.md). */
#pragma once

#include "datapath/ebpf/bpf/places.h"
#include "datapath/ebpf/bpf/refuse.h"

/* Absent when options.events is 0. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EBPF_UPCALLS_SIZE);
} tenet_upcalls SEC(".maps");

/* Per-CPU memory to assemble a frame, as the stack is too small. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpf_upcall);
} tenet_upcall SEC(".maps");

/* Hands the frame to the agent as the pod sent it; limited per pod, together with ICMP errors.
 * Returns 0. */
static __attribute__((noinline)) int send_upcall(struct packet_ctx *ctx)
{
    __u32 zero = 0, size = ctx->skb->len;
    struct ebpf_upcall *u = bpf_map_lookup_elem(&tenet_upcall, &zero);
    if (!options.events || options.dry || !u || (!options.under_test && has_had_enough(ctx))) {
        return 0;
    }
    /* Keeps the bounds in registers, so that the verifier sees what the helpers get. */
    asm volatile("" : "+r"(size));
    if (size < ETH_HLEN || size > EBPF_UPCALL_MAX) {
        return 0;
    }
    u->port = ctx->pkt->port;
    u->size = size;
    if (bpf_skb_load_bytes(ctx->skb, 0, u->frame, size) == 0) {
        bpf_ringbuf_output(&tenet_upcalls, u, sizeof *u - EBPF_UPCALL_MAX + size, 0);
    }
    return 0;
}

/* A frame from the agent: redirects it to the link by which its pod's packets arrive, where from_pod
 * judges it like any other. */
INLINE int reinject(struct __sk_buff *skb)
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
