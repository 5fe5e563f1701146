/* SPDX-License-Identifier: Apache-2.0 */
/* The context of one packet (struct packet_ctx), and what all parts of the programs need: settings,
 * options, protocol numbers. */
#pragma once

#include "datapath/ebpf/bpf/maps.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define INLINE static __attribute__((always_inline))
/* The compiler lays out the branch that stream packets take contiguously, which saves instruction
 * cache lines. */
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FRAGMENT_OFFSET 0x1fff
#define MORE_FRAGMENTS 0x2000
#define TCP_SIZE 20u
#define UDP_SIZE 8u
#define SCTP_SIZE 12u
#define TAG_SIZE 4u /* Bytes of a VLAN tag. */
#define TCP_SYN 2
#define TCP_ACK 16

const volatile struct ebpf_options options = {
    .redirect_peer = 1, .scrub = 1, .events = 1, .encap = 1};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpf_settings);
} tenet_settings SEC(".maps");

enum entry {
    FROM_POD = EBPF_FROM_POD,
    FROM_TUNNEL = EBPF_FROM_TUNNEL,
    FROM_HOST = EBPF_FROM_HOST,
};

/* The fields of a packet and what is known about it. They are in per-CPU memory and not on the
 * stack: the verifier assumes nothing about their values, so that it does not explore the programs
 * once for each; and global functions, which are verified once, can read them, too. */
struct packet_meta {
    /* FROM_POD: ifindex of the link by which the packet arrived, and of the pod's own link once
     * the source is checked. */
    __u32 port;
    /* FROM_TUNNEL: VTEP of the sender (host byte order), and the VNID that it sent. */
    __u32 outer_src, tunnel_id;
    __u16 align;               /* Aligns 'ip' to 4 bytes. 'eth' and 'ip' are filled by one copy. */
    struct ethhdr eth;         /* The Ethernet header as received. */
    struct iphdr ip;           /* The IP header, including changes so far. */
    __be16 src_port, dst_port; /* Ports of TCP and UDP, including changes so far. */
    __u8 has_ports;            /* Ports are present: TCP or UDP, and no later fragment. */
    __u8 tcp_size;             /* Bytes of the TCP header, under the same condition. */
    __u8 begins;               /* It may be the first of its connection. */
    __u8 translated;           /* Its destination was a service, and is a backend now. */
    __be32 asked;              /* Translated: the service's address and port. */
    __be16 asked_port;
    __u8 judging; /* enum judging, of policy.h */
    __u8 unused;
    /* Counts data packets on this CPU; begin() keeps it. events.h takes samples by it. */
    __u32 passed;
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct packet_meta);
} tenet_meta SEC(".maps");

INLINE struct packet_meta *packet_meta(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&tenet_meta, &zero);
}

/* The context of one packet within the programs. */
struct packet_ctx {
    struct __sk_buff *skb;
    struct packet_meta *pkt;
    const struct ebpf_settings *settings;
    enum entry entry;
    /* The destination: a local pod, else its route (NULL: outside). */
    const struct ebpf_pod *pod;
    const struct ebpf_route *route;
};

/* Takes this CPU's metadata for a packet that just arrived, with everything 0 but 'passed'. -1: the
 * per-CPU entry is missing, which cannot happen. */
INLINE int begin(struct packet_ctx *ctx)
{
    ctx->pkt = packet_meta();
    if (UNLIKELY(!ctx->pkt)) {
        return -1;
    }
    __builtin_memset(ctx->pkt, 0, __builtin_offsetof(struct packet_meta, passed));
    return 0;
}

#define HEADERS (sizeof(struct ethhdr) + sizeof(struct iphdr))
_Static_assert(__builtin_offsetof(struct packet_meta, ip) ==
                   __builtin_offsetof(struct packet_meta, eth) + ETH_HLEN,
               "as in a packet");

/* What the judging functions return: a TC_ACT_, or a number below 0 that conclude() executes. It has
 * the cause (enum ebpf_cause) for which the packet is dropped, and with REFUSED the code of the ICMP
 * error that the sending pod gets. */
#define DROPPED(cause) (-(int) (cause))
#define REFUSED(cause, code) (-(int) ((cause) | (code) << 8))
_Static_assert(EBPF_N_CAUSES <= 0xff, "a cause is the lower byte of such a number");
