/* SPDX-License-Identifier: Apache-2.0 */
/* A packet on its way through the programs, and what every part of them needs: settings, options, numbers of protocols. */
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
/* What the packets of a stream meet lies together then, and is fetched from memory as one. */
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FRAGMENT_OFFSET 0x1fff
#define MORE_FRAGMENTS 0x2000
#define TCP_SIZE 20u
#define UDP_SIZE 8u
#define SCTP_SIZE 12u
#define TAG_SIZE 4u /* Of a VLAN. */
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

/* What is known of a packet.  It is in memory of the processor, of which the verifier assumes nothing, so that it does not go
 * through the programs once for all that it may be; global functions, which are verified once, have it, too. */
struct facts {
    __u32 port; /* FROM_POD: ifindex of the link; first of that which it came in by. */
    __u32 outer_src, tunnel_id; /* FROM_TUNNEL */
    __u16 align;                /* What follows is read as one, and both parts are aligned. */
    struct ethhdr eth;          /* As it came. */
    struct iphdr ip;            /* Of IP; as it is now. */
    __be16 src_port, dst_port;  /* Likewise, ... */
    __u8 has_ports;             /* ... of TCP and UDP, and not of later fragments. */
    __u8 tcp_size;              /* Of TCP's header, likewise. */
    __u8 begins;                /* It may be the first of its connection. */
    __u8 translated;
    __be32 asked; /* Translated: the service's address and port. */
    __be16 asked_port;
    __u8 judging; /* enum judging, of policy.h */
    __u8 unused;
    __u32 passed; /* Of those before, too: tell.h counts them. */
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

/* A packet on its way through. */
struct way {
    struct __sk_buff *skb;
    struct facts *f;
    const struct ebpf_settings *settings;
    enum entry entry;
    /* Of its destination: a pod here, else how it is reached (NULL: outside). */
    const struct ebpf_pod *pod;
    const struct ebpf_route *route;
};

/* A packet that came in just now; -1: there is no memory for it, which no processor lacks. */
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

/* What becomes of a packet: a TC_ACT_; below 0, it is dropped for that cause, and with a code of ICMP its pod hears of it. */
#define DROPPED(cause) (-(int) (cause))
#define REFUSED(cause, code) (-(int) ((cause) | (code) << 8))
_Static_assert(EBPF_N_CAUSES <= 0xff, "a cause is a byte of those");
