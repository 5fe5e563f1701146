/* SPDX-License-Identifier: Apache-2.0 */
/* The context of one packet within the programs, and what all parts need: settings, options,
 * protocol numbers. */
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

/* The branch that stream packets take is laid out contiguously, which saves instruction cache
 * lines. */
#define INLINE static __attribute__((always_inline))
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

/* The fields of a packet. They are in per-CPU memory, about which the verifier assumes nothing,
 * so that it does not explore the programs once for each possible value; global functions, which
 * are verified once, can read them, too. */
struct facts {
    __u32 port; /* FROM_POD: ifindex of the link; initially that of the incoming link. */
    __u32 outer_src, tunnel_id; /* FROM_TUNNEL */
    /* The following bytes are copied as one, and both headers in them are aligned. */
    __u16 align;
    struct ethhdr eth;         /* The Ethernet header as received. */
    struct iphdr ip;           /* The IP header, including changes so far. */
    __be16 src_port, dst_port; /* Ports of TCP and UDP, including changes so far. */
    __u8 has_ports;            /* Ports are present: TCP or UDP, and no later fragment. */
    __u8 tcp_size;             /* Bytes of the TCP header, under the same condition. */
    __u8 begins;               /* It may be the first of its connection. */
    __u8 translated;
    __be32 asked; /* Translated: the service's address and port. */
    __be16 asked_port;
    __u8 judging; /* enum judging, of policy.h */
    __u8 unused;
    __u32 passed; /* Number of such packets, including earlier ones: tell.h samples by it. */
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct facts);
} tenet_facts SEC(".maps");

INLINE struct facts *facts(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&tenet_facts, &zero);
}

/* One packet on its way through the programs. */
struct way {
    struct __sk_buff *skb;
    struct facts *f;
    const struct ebpf_settings *settings;
    enum entry entry;
    /* The destination: a local pod, else its route (NULL: outside). */
    const struct ebpf_pod *pod;
    const struct ebpf_route *route;
};

/* Starts with a packet that just arrived; -1: the per-CPU entry is missing, which cannot happen. */
INLINE int begin(struct way *w)
{
    w->f = facts();
    if (UNLIKELY(!w->f)) {
        return -1;
    }
    __builtin_memset(w->f, 0, __builtin_offsetof(struct facts, passed));
    return 0;
}

#define HEADERS (sizeof(struct ethhdr) + sizeof(struct iphdr))
_Static_assert(__builtin_offsetof(struct facts, ip) ==
                   __builtin_offsetof(struct facts, eth) + ETH_HLEN,
               "as in a packet");

/* A verdict is a TC_ACT_; below 0, the packet is dropped for that cause, and with an ICMP code
 * its pod gets an error. */
#define DROPPED(cause) (-(int) (cause))
#define REFUSED(cause, code) (-(int) ((cause) | (code) << 8))
_Static_assert(EBPF_N_CAUSES <= 0xff, "a cause is a byte of those");
