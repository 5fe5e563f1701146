/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath: what becomes of a packet, as docs/pipeline.md says it.
 *
 * Four programs, each on what a link receives: from_pod on the host end of each pod's link, from_tunnel on the VXLAN
 * device, from_host on the peer of tun0; from_wire on the links that lead to other nodes.  None but the last, which
 * takes what it knows for sure, lets a packet go on to the stack of the link it came by.  There are no loops, so that
 * the verifier of every kernel since 5.10 follows. */
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
#define FRAGMENT_OFFSET 0x1fff
#define MORE_FRAGMENTS 0x2000
#define ARP_REQUEST 1
#define ARP_REPLY 2
#define VNID_NOBODY 1     /* sdn/network.h */
#define ITSELF 0xa9fea904 /* SDN_ITSELF_IP */
#define TCP_SIZE 20u
#define UDP_SIZE 8u
#define SCTP_SIZE 12u
#define TCP_SYN 2
#define TCP_ACK 16
/* Tunnel id and IPv4 address: a key of this size every kernel takes, whatever it has added behind. */
#define TUNNEL_KEY_SIZE __builtin_offsetof(struct bpf_tunnel_key, remote_ipv6[1])

char terms[] SEC("license") = "Apache-2.0";

const volatile struct ebpf_options options = {.redirect_peer = 1, .events = 1, .encap = 1};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_PODS_MAX);
    __type(key, __be32);
    __type(value, struct ebpf_pod);
} tenet_pods SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_PODS_MAX);
    __type(key, __u32);
    __type(value, __be32);
} tenet_ports SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_ROUTES_MAX);
    __type(key, struct ebpf_route_key);
    __type(value, struct ebpf_route);
} tenet_routes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_ROUTES_MAX);
    __type(key, __u32);
    __type(value, __u32);
} tenet_vteps SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpf_settings);
} tenet_settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, EBPF_N_COUNTERS);
    __type(key, __u32);
    __type(value, __u64);
} tenet_drops SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_SERVICES_MAX);
    __type(key, struct ebpf_service_key);
    __type(value, struct ebpf_service);
} tenet_services SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_BACKENDS_MAX);
    __type(key, struct ebpf_backend_key);
    __type(value, struct ebpf_backend);
} tenet_backends SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, EBPF_BACKENDS_MAX);
    __type(key, struct ebpf_serving_key);
    __type(value, __u32);
} tenet_serving SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_CONNECTIONS_MAX);
    __type(key, struct ebpf_connection_key);
    __type(value, struct ebpf_chosen);
} tenet_conns SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPF_CLIENTS_MAX);
    __type(key, __u32);
    __type(value, struct ebpf_clients);
} tenet_clients SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_CONNECTIONS_MAX);
    __type(key, struct ebpf_affinity_key);
    __type(value, struct ebpf_chosen);
} tenet_affinity SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPF_REFUSALS_MAX);
    __type(key, __be32);
    __type(value, struct ebpf_refusals);
} tenet_refusals SEC(".maps");

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

enum entry {
    FROM_POD = EBPF_FROM_POD,
    FROM_TUNNEL = EBPF_FROM_TUNNEL,
    FROM_HOST = EBPF_FROM_HOST,
};

struct arp {
    __be16 hardware, protocol;
    __u8 hardware_size, protocol_size;
    __be16 op;
    __u8 sha[ETH_ALEN];
    __be32 spa;
    __u8 tha[ETH_ALEN];
    __be32 tpa;
} __attribute__((packed));

/* What is known of a packet.  It is in memory of the processor, of which the verifier assumes nothing, so that it does not go
 * through the programs once for all that it may be. */
struct facts {
    __u32 port; /* FROM_POD: ifindex of the link; first of that which it came in by. */
    __u32 outer_src, tunnel_id; /* FROM_TUNNEL */
    __u16 align;                /* What follows is read as one, and both parts are aligned. */
    struct ethhdr eth;          /* As it came. */
    struct iphdr ip;            /* Of IP; as it is now. */
    __be16 src_port, dst_port;  /* Likewise, ... */
    __u8 has_ports;             /* ... of TCP and UDP, and not of later fragments. */
    __u8 begins;                /* It may be the first of its connection. */
    __u8 translated;
    __u8 judging; /* enum judging, of policy.h */
    __be32 asked; /* Translated: the service's address and port. */
    __be16 asked_port;
    __u8 knows_pod, knows_route; /* Of its destination, when they were asked for. */
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
    enum entry entry;
    struct facts *f;
    const struct ebpf_settings *settings;
    const struct ebpf_pod *pod; /* Of its destination, once asked for. */
    const struct ebpf_route *route;
};
#define HEADERS (sizeof(struct ethhdr) + sizeof(struct iphdr))
_Static_assert(__builtin_offsetof(struct facts, ip) ==
                   __builtin_offsetof(struct facts, eth) + ETH_HLEN,
               "as in a packet");

/* ---- what is told ---- */

/* Of the flow, and other than 0. */
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

/* Tells of 'told->now', unless it was told.  Global functions are verified once, not at each call: what they get is in
 * memory of the processor. */
__attribute__((noinline)) int tenet_tell(void)
{
    __u32 zero = 0;
    struct ebpf_watched *told = watched();
    const struct ebpf_settings *settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    if (!told || !settings) {
        return 0;
    }
    __u32 tag = tag_of(&told->now, settings->watch), second = settings->watch_second;
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
    *e = told->now;
    e->tag = tag;
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    return 0;
}

/* Somebody watches. */
INLINE void tell(const struct way *w, __u32 verdict, __u32 cause, __u32 target, __u32 tunnel_id)
{
    struct ebpf_watched *told = watched();
    if (!told) {
        return;
    }
    struct ebpf_event *e = &told->now;
    e->src = w->f->ip.saddr;
    e->dst = w->f->ip.daddr;
    e->asked = w->f->asked;
    e->src_port = w->f->src_port;
    e->dst_port = w->f->dst_port;
    e->asked_port = w->f->asked_port;
    e->eth_type = w->f->eth.h_proto;
    e->protocol = w->f->ip.protocol;
    e->entry = (__u8) w->entry;
    e->verdict = (__u8) verdict;
    e->cause = (__u8) cause;
    e->port = w->f->port;
    e->outer_src = w->f->outer_src;
    e->tunnel_id = tunnel_id;
    e->target = target;
    e->size = w->skb->len;
    tenet_tell();
}

#include "datapath/ebpf/bpf/policy.h"

/* ---- verdicts ---- */

INLINE void note(const struct way *w, __u32 verdict, __u32 cause, __u32 target, __u32 tunnel_id)
{
    if (options.under_test) {
        w->skb->cb[EBPF_CB_VERDICT] = verdict | cause << 16;
        w->skb->cb[EBPF_CB_TARGET] = target;
        w->skb->cb[EBPF_CB_TUNNEL_ID] = tunnel_id;
    }
    /* A refusal was told as a drop, and answers to questions are no flows. */
    if (options.events && verdict != EBPF_REFUSED && verdict != EBPF_ANSWER && w->settings->watch) {
        tell(w, verdict, cause, target, tunnel_id);
    }
}

INLINE void count(__u32 which)
{
    __u64 *n = bpf_map_lookup_elem(&tenet_drops, &which);
    if (n) {
        *n += 1;
    }
}

/* What is said of a packet before it is settled: to be dropped, or still on its way to its destination.  Both are no
 * action of the kernel's; what follows from them stands in one place (settle), as the verifier goes through each. */
#define DROPPED 0x10000
#define ON_ITS_WAY 0x20000

INLINE int drop(__u32 cause)
{
    return (int) (DROPPED | cause);
}

/* RFC 792, RFC 1812 */
enum { UNREACHABLE = 3, NO_HOST = 1, NO_PORT = 3, PROHIBITED = 13 };

/* Dropped; and an honest pod is told by its gateway, so that its programs fail at once.  Only of what is the same whoever
 * else is in the cluster (docs/pipeline.md), and of TCP and UDP: never of an error or of a later part (RFC 1122 3.2.2). */
INLINE int refuse(__u32 cause, __u32 code)
{
    return (int) (DROPPED | code << 8 | cause);
}

INLINE int same_mac(const __u8 *a, const __u8 *b)
{
    const __u16 *x = (const void *) a, *y = (const void *) b;
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

/* Most packets have the right one: a write would copy a packet that its sender keeps. */
INLINE int set_destination(const struct way *w, const __u8 *mac)
{
    return same_mac(w->f->eth.h_dest, mac) ? 0 : bpf_skb_store_bytes(w->skb, 0, mac, ETH_ALEN, 0);
}

INLINE int to_host(struct way *w)
{
    if (w->entry == FROM_HOST) {
        return drop(EBPF_BACK_TO_HOST);
    }
    end_policy(w);
    if (set_destination(w, w->settings->tun_mac) < 0) {
        return TC_ACT_SHOT;
    }
    note(w, EBPF_HOST, 0, w->settings->tun_ifindex, 0);
    return bpf_redirect(w->settings->tun_ifindex, BPF_F_INGRESS);
}

/* By the VXLAN device. */
INLINE int send_by_tunnel(const struct way *w, __u32 vtep, __u32 vnid)
{
    struct bpf_tunnel_key key = {.tunnel_id = vnid, .remote_ipv4 = vtep};
    if (bpf_skb_set_tunnel_key(w->skb, &key, TUNNEL_KEY_SIZE,
                               BPF_F_ZERO_CSUM_TX | BPF_F_DONT_FRAGMENT) < 0) {
        return TC_ACT_SHOT;
    }
    return bpf_redirect(w->settings->vxlan_ifindex, 0);
}

/* ---- addresses and ports of connections to services ---- */

INLINE int is_tcp_or_udp(const struct iphdr *ip)
{
    return ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP;
}

/* As in Open vSwitch, ports of a header that is not whole are none. */
INLINE void read_ports(struct way *w)
{
    struct {
        __be16 ports[2];
        __u8 between[8], size, flags; /* Of TCP. */
    } h;
    __u32 l4 = ETH_HLEN + w->f->ip.ihl * 4,
          payload = bpf_ntohs(w->f->ip.tot_len) - w->f->ip.ihl * 4;
    if (!is_tcp_or_udp(&w->f->ip) || (w->f->ip.frag_off & bpf_htons(FRAGMENT_OFFSET))) {
        return;
    }
    h.flags = 0;
    if (w->f->ip.protocol == IPPROTO_TCP) {
        if (bpf_skb_load_bytes(w->skb, l4, &h, sizeof h) < 0 || (h.size >> 4) * 4u < TCP_SIZE ||
            (h.size >> 4) * 4u > payload) {
            return;
        }
    } else if (payload < UDP_SIZE || bpf_skb_load_bytes(w->skb, l4, h.ports, sizeof h.ports) < 0) {
        return;
    }
    w->f->src_port = h.ports[0];
    w->f->dst_port = h.ports[1];
    w->f->has_ports = 1;
    w->f->begins = w->f->ip.protocol == IPPROTO_UDP || (h.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

#define ADDRESS_AT(member) (ETH_HLEN + (__u32) __builtin_offsetof(struct iphdr, member))
enum { SOURCE, DESTINATION };

/* Puts address and port in place of those there are, with the checksums.  Global, as tenet_tell. */
__attribute__((noinline)) int tenet_rewrite(struct __sk_buff *skb, __u32 which, __u32 addr,
                                            __u32 port)
{
    struct facts *f = facts();
    __be16 port16 = (__be16) port;
    if (!f) {
        return -1;
    }
    __u32 l4 = ETH_HLEN + f->ip.ihl * 4, port_at = l4 + (which == SOURCE ? 0 : 2);
    __u32 sum_at = l4 + (f->ip.protocol == IPPROTO_TCP ? 16 : 6);
    __u64 zero_is_none = f->ip.protocol == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0;
    __be32 old = which == SOURCE ? f->ip.saddr : f->ip.daddr;
    __be16 old_port = which == SOURCE ? f->src_port : f->dst_port;
    __u32 addr_at = which == SOURCE ? ADDRESS_AT(saddr) : ADDRESS_AT(daddr);
    if (bpf_l4_csum_replace(skb, sum_at, old, addr, BPF_F_PSEUDO_HDR | zero_is_none | sizeof addr) <
            0 ||
        bpf_l4_csum_replace(skb, sum_at, old_port, port16, zero_is_none | sizeof port16) < 0 ||
        bpf_l3_csum_replace(skb, ADDRESS_AT(check), old, addr, sizeof addr) < 0 ||
        bpf_skb_store_bytes(skb, addr_at, &addr, sizeof addr, 0) < 0 ||
        bpf_skb_store_bytes(skb, port_at, &port16, sizeof port16, 0) < 0) {
        return -1;
    }
    if (which == SOURCE) {
        f->ip.saddr = addr;
        f->src_port = port16;
    } else {
        f->ip.daddr = addr;
        f->dst_port = port16;
        f->knows_pod = f->knows_route = 0;
    }
    return 0;
}

INLINE int rewrite(const struct way *w, __u32 which, __be32 addr, __be16 port)
{
    return tenet_rewrite(w->skb, which, addr, port);
}

INLINE struct ebpf_connection_key connection_of(const struct way *w, __u8 way)
{
    return (struct ebpf_connection_key){.src = w->f->ip.saddr,
                                        .dst = w->f->ip.daddr,
                                        .src_port = w->f->src_port,
                                        .dst_port = w->f->dst_port,
                                        .protocol = w->f->ip.protocol,
                                        .way = way};
}

/* Whether a pod has asked a service; NULL: nobody knows. */
INLINE __u8 *has_asked(__be32 pod)
{
    __u32 addr = bpf_ntohl(pod), index = ebpf_clients_index(addr);
    struct ebpf_clients *c = bpf_map_lookup_elem(&tenet_clients, &index);
    return c ? &c->asked[addr % sizeof c->asked] : NULL;
}

#include "datapath/ebpf/bpf/related.h"

/* What a backend answers comes from the service that was asked. */
INLINE int restore_service(struct way *w)
{
    if (!w->settings->has_services) {
        return 0;
    }
    const __u8 *asked_any = has_asked(w->f->ip.daddr);
    if (asked_any && !*asked_any) {
        return 0;
    }
    if (!w->f->has_ports) {
        return restore_related(w);
    }
    struct ebpf_connection_key key = connection_of(w, EBPF_BACK);
    const struct ebpf_chosen *asked = bpf_map_lookup_elem(&tenet_conns, &key);
    lead_fragments(w, asked ? asked->backend.addr : 0, 0);
    return asked ? rewrite(w, SOURCE, asked->backend.addr, asked->backend.port) : 0;
}

/* sdn_vnid_may_reach */
INLINE int may_reach(__u32 from, __u32 to)
{
    return (from == to && from != VNID_NOBODY) || from == 0 || to == 0;
}

INLINE int deliver(struct way *w, const struct ebpf_pod *pod, __u32 vnid)
{
    if (w->entry == FROM_POD && pod->ifindex == w->f->port) {
        return drop(EBPF_OWN_ADDRESS);
    }
    __u32 cause = judge_receiver(w);
    if (cause != EBPF_NOT_DROPPED) {
        return drop(cause);
    }
    if (w->settings->compare_vnids && !may_reach(vnid, pod->vnid) &&
        !((pod->flags & EBPF_POD_ALSO) && may_reach(vnid, pod->also_vnid))) {
        return drop(EBPF_VNID_MISMATCH);
    }
    end_policy(w);
    if (set_destination(w, pod->mac) < 0 || restore_service(w) < 0) {
        return TC_ACT_SHOT;
    }
    note(w, EBPF_DELIVER, 0, pod->ifindex, w->f->tunnel_id);
    if (options.redirect_peer && !(pod->flags & EBPF_POD_QUEUED)) {
        if (w->skb->pkt_type != PACKET_HOST) {
            bpf_skb_change_type(w->skb, PACKET_HOST); /* Before 6.15 nobody else does. */
        }
        return bpf_redirect_peer(pod->ifindex, 0);
    }
    return bpf_redirect(pod->ifindex, 0);
}

/* ---- what is where ---- */

INLINE const struct ebpf_pod *pod_at(__be32 addr)
{
    const struct ebpf_pod *pod = bpf_map_lookup_elem(&tenet_pods, &addr);
    return pod && pod->ifindex ? pod : NULL;
}

INLINE const struct ebpf_route *route_of(__be32 addr)
{
    struct ebpf_route_key key = {.len = 32, .addr = addr};
    return bpf_map_lookup_elem(&tenet_routes, &key);
}

INLINE const struct ebpf_pod *receiver(struct way *w)
{
    if (!w->f->knows_pod) {
        w->pod = pod_at(w->f->ip.daddr);
        w->f->knows_pod = 1;
    }
    return w->pod;
}

INLINE const struct ebpf_route *destination(struct way *w)
{
    if (!w->f->knows_route) {
        w->route = route_of(w->f->ip.daddr);
        w->f->knows_route = 1;
    }
    return w->route;
}

INLINE int is_local(const struct ebpf_route *r)
{
    return r && (r->kind == EBPF_LOCAL || r->kind == EBPF_GATEWAY);
}

INLINE int in_cluster(const struct ebpf_route *r)
{
    return r && r->kind != EBPF_SERVICE;
}

#include "datapath/ebpf/bpf/encap.h"

/* Whether the node that sent a tunnel packet may speak for its inner source. */
INLINE __u32 check_tunnel(const struct way *w, __be32 src)
{
    const struct ebpf_route *r = route_of(src);
    if (r && r->kind == EBPF_REMOTE && r->vtep == w->f->outer_src) {
        return EBPF_NOT_DROPPED;
    }
    return bpf_map_lookup_elem(&tenet_vteps, &w->f->outer_src) ? EBPF_SPOOFED_SOURCE
                                                               : EBPF_UNKNOWN_VTEP;
}

/* Why a packet of a pod's link is not its pod's. */
INLINE __u32 not_its_own(const struct way *w)
{
    return bpf_map_lookup_elem(&tenet_ports, &w->f->port) ? EBPF_SPOOFED_SOURCE : EBPF_UNKNOWN_PORT;
}

/* ---- refusals ---- */

struct icmp_error {
    struct iphdr ip;
    __u8 type, code;
    __be16 sum;
    __be32 unused;
};
#define QUOTE (sizeof(struct iphdr) + 20) /* With the checksum of TCP, which offloads keep apart. */
#define QUOTE_UDP (sizeof(struct iphdr) + 8)

INLINE __be16 fold(__u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__be16) ~sum;
}

INLINE int has_had_enough(const struct way *w)
{
    __be32 pod = w->f->ip.saddr;
    struct ebpf_refusals now = {.second = (__u32) (bpf_ktime_get_ns() / 1000000000), .count = 1};
    struct ebpf_refusals *r = bpf_map_lookup_elem(&tenet_refusals, &pod);
    if (!r || r->second != now.second) {
        bpf_map_update_elem(&tenet_refusals, &pod, &now, BPF_ANY);
        return 0;
    }
    r->count++;
    return r->count > EBPF_REFUSALS_A_SECOND;
}

/* What was dropped becomes the error about it and goes back, or not. */
static __attribute__((noinline)) int send_error(struct way *w, __u32 cause, __u8 code)
{
    __u8 quote[QUOTE];
    struct icmp_error e = {.ip = {.version = 4,
                                  .ihl = 5,
                                  .tos = 0xc0,
                                  .frag_off = bpf_htons(0x4000),
                                  .ttl = 64,
                                  .protocol = IPPROTO_ICMP,
                                  .saddr = w->settings->gateway,
                                  .daddr = w->f->ip.saddr},
                           .type = UNREACHABLE,
                           .code = code};
    __u32 size = w->f->ip.protocol == IPPROTO_TCP ? QUOTE : QUOTE_UDP, sum;
    struct ethhdr eth;
    if (w->entry != FROM_POD || !w->f->has_ports || w->f->ip.ihl != 5 ||
        w->skb->len < ETH_HLEN + size) {
        return TC_ACT_SHOT;
    }
    if (!options.under_test && has_had_enough(w)) {
        count(EBPF_ERRORS_LIMITED);
        return TC_ACT_SHOT;
    }
    /* The pod knows the address that it asked. */
    if ((w->f->translated && rewrite(w, DESTINATION, w->f->asked, w->f->asked_port) < 0) ||
        bpf_skb_change_tail(w->skb, ETH_HLEN + size, 0) < 0) {
        return TC_ACT_SHOT;
    }
    if (size == QUOTE) {
        if (bpf_skb_load_bytes(w->skb, ETH_HLEN, quote, QUOTE) < 0) {
            return TC_ACT_SHOT;
        }
        sum = bpf_csum_diff(NULL, 0, (__be32 *) quote, QUOTE, 0);
    } else {
        if (bpf_skb_load_bytes(w->skb, ETH_HLEN, quote, QUOTE_UDP) < 0) {
            return TC_ACT_SHOT;
        }
        sum = bpf_csum_diff(NULL, 0, (__be32 *) quote, QUOTE_UDP, 0);
    }
    e.ip.tot_len = bpf_htons(sizeof e + size);
    e.ip.check = fold(bpf_csum_diff(NULL, 0, (__be32 *) &e.ip, sizeof e.ip, 0));
    e.sum = fold(bpf_csum_diff(NULL, 0, (__be32 *) &e.type, sizeof e - sizeof e.ip, sum));
    eth = w->f->eth;
    __builtin_memcpy(eth.h_dest, w->f->eth.h_source, ETH_ALEN);
    __builtin_memcpy(eth.h_source, w->f->eth.h_dest, ETH_ALEN);
    if (bpf_skb_adjust_room(w->skb, sizeof e, BPF_ADJ_ROOM_MAC, 0) < 0 ||
        bpf_skb_store_bytes(w->skb, 0, &eth, sizeof eth, 0) < 0 ||
        bpf_skb_store_bytes(w->skb, ETH_HLEN, &e, sizeof e, 0) < 0) {
        return TC_ACT_SHOT;
    }
    count(EBPF_ERRORS_SENT);
    note(w, EBPF_REFUSED, cause, 0, w->f->tunnel_id);
    return bpf_redirect(w->f->port, 0);
}

#include "datapath/ebpf/bpf/held.h"

/* ---- services ---- */

INLINE const struct ebpf_service *find_service(const struct way *w, const struct ebpf_route *r,
                                               struct ebpf_service_key *key)
{
    *key = (struct ebpf_service_key){
        .addr = w->f->ip.daddr, .port = w->f->dst_port, .protocol = w->f->ip.protocol};
    const struct ebpf_service *s = bpf_map_lookup_elem(&tenet_services, key);
    if (s || (r && r->kind == EBPF_SERVICE)) {
        return s;
    }
    __u32 host = bpf_ntohl(w->f->ip.daddr);
    if (w->f->ip.daddr == w->settings->host || bpf_map_lookup_elem(&tenet_vteps, &host)) {
        key->addr = 0;
        return bpf_map_lookup_elem(&tenet_services, key);
    }
    return NULL;
}

INLINE const struct ebpf_backend *backend_at(const struct ebpf_service_key *service, __u32 index)
{
    struct ebpf_backend_key key = {.service = *service, .index = index};
    return bpf_map_lookup_elem(&tenet_backends, &key);
}

/* Whether the backend that was chosen serves still. */
INLINE int serves(const struct ebpf_service_key *service, const struct ebpf_chosen *c)
{
    struct ebpf_serving_key key = {.service = *service, .backend = c->backend};
    return bpf_map_lookup_elem(&tenet_serving, &key) != NULL;
}

INLINE int choose(const struct way *w, const struct ebpf_service_key *key,
                  const struct ebpf_service *s, struct ebpf_chosen *ret)
{
    __u32 now = (__u32) (bpf_ktime_get_ns() / 1000000000);
    struct ebpf_affinity_key client = {.service = *key, .client = w->f->ip.saddr};
    struct ebpf_chosen *last = s->affinity_s ? bpf_map_lookup_elem(&tenet_affinity, &client) : NULL;
    if (last && now - last->asked_s < s->affinity_s && serves(key, last)) {
        *ret = *last;
    } else {
        __u32 index = s->count ? bpf_get_prandom_u32() % s->count : 0;
        const struct ebpf_backend *b = s->count ? backend_at(key, index) : NULL;
        if (!b && s->count) { /* It went since the count was read. */
            index = 0;
            b = backend_at(key, index);
        }
        if (!b) {
            return -1;
        }
        *ret = (struct ebpf_chosen){.backend = *b};
    }
    ret->asked_s = now;
    if (s->affinity_s && !options.dry) {
        bpf_map_update_elem(&tenet_affinity, &client, ret, BPF_ANY);
    }
    return 0;
}

/* A connection stays with its backend, but for the beginning of one whose backend serves no more. */
INLINE const struct ebpf_chosen *known(const struct way *w, const struct ebpf_service_key *key,
                                       const struct ebpf_connection_key *onward)
{
    const struct ebpf_chosen *c = bpf_map_lookup_elem(&tenet_conns, onward);
    return c && (!w->f->begins || serves(key, c)) ? c : NULL;
}

/* The packets that answer this one. */
INLINE struct ebpf_connection_key answers_to(const struct way *w)
{
    return (struct ebpf_connection_key){.src = w->f->ip.daddr,
                                        .dst = w->f->ip.saddr,
                                        .src_port = w->f->dst_port,
                                        .dst_port = w->f->src_port,
                                        .protocol = w->f->ip.protocol,
                                        .way = EBPF_BACK};
}

/* A connection that begins between the same ends, but not to the service, gets its answers as they are. */
INLINE void forget_service(const struct way *w)
{
    struct ebpf_connection_key back = answers_to(w);
    if (w->f->begins && bpf_map_lookup_elem(&tenet_conns, &back)) {
        bpf_map_delete_elem(&tenet_conns, &back);
    }
}

/* The packet goes to that backend instead; 0, or the cause why not. */
INLINE __u32 send_to(struct way *w, const struct ebpf_backend *b)
{
    /* By itself a pod is reached from an address that is nobody's, to which it answers. */
    int itself = b->addr == w->f->ip.saddr;
    w->f->asked = w->f->ip.daddr;
    w->f->asked_port = w->f->dst_port;
    w->f->translated = 1;
    lead_fragments(w, itself ? bpf_htonl(ITSELF) : 0, b->addr);
    if (rewrite(w, DESTINATION, b->addr, b->port) < 0 ||
        (itself && rewrite(w, SOURCE, bpf_htonl(ITSELF), w->f->src_port) < 0)) {
        return EBPF_SERVICE_INVALID;
    }
    return EBPF_NOT_DROPPED;
}

/* The pod's packet goes to a backend of the service instead; 0, or the cause why not. */
static __attribute__((noinline)) __u32 translate(struct way *w, const struct ebpf_service_key *key,
                                                 const struct ebpf_service *s, __u32 vnid)
{
    if (w->settings->compare_vnids && !may_reach(vnid, s->vnid) &&
        !((s->flags & EBPF_SERVICE_ALSO) && may_reach(vnid, s->also_vnid))) {
        return EBPF_SERVICE_FOREIGN;
    }
    if (w->settings->services_by_host && s->count) {
        return EBPF_NOT_DROPPED;
    }
    struct ebpf_connection_key onward = connection_of(w, EBPF_ONWARD);
    const struct ebpf_chosen *c = known(w, key, &onward);
    struct ebpf_chosen chosen;
    if (c) {
        chosen = *c;
    } else if (choose(w, key, s, &chosen) < 0) {
        return s->flags & EBPF_SERVICE_IDLE ? EBPF_SERVICE_IS_IDLE : EBPF_SERVICE_NO_ENDPOINTS;
    }
    struct ebpf_chosen asked = {.backend = {.addr = w->f->ip.daddr, .port = w->f->dst_port}};
    __be32 from = w->f->ip.saddr;
    __u32 cause = send_to(w, &chosen.backend);
    if (cause != EBPF_NOT_DROPPED) {
        return cause;
    }
    __u8 *asked_any = has_asked(from);
    if (asked_any && !*asked_any) {
        *asked_any = 1;
    }
    struct ebpf_connection_key back = answers_to(w);
    const struct ebpf_chosen *was = bpf_map_lookup_elem(&tenet_conns, &back);
    if (!was || was->backend.addr != asked.backend.addr ||
        was->backend.port != asked.backend.port) {
        bpf_map_update_elem(&tenet_conns, &back, &asked, BPF_ANY);
    }
    if (!c) {
        bpf_map_update_elem(&tenet_conns, &onward, &chosen, BPF_ANY);
    }
    return EBPF_NOT_DROPPED;
}

/* A service that is gone keeps the connections it has. */
INLINE __u32 go_on(struct way *w)
{
    struct ebpf_connection_key onward = connection_of(w, EBPF_ONWARD);
    const struct ebpf_chosen *c = w->f->begins ? NULL : bpf_map_lookup_elem(&tenet_conns, &onward);
    return c ? send_to(w, &c->backend) : EBPF_NOT_DROPPED;
}

/* To the pod that sent it. */
INLINE int send_back(const struct way *w, const struct ebpf_pod *pod)
{
    if (set_destination(w, pod->mac) < 0) {
        return TC_ACT_SHOT;
    }
    note(w, EBPF_DELIVER, 0, w->f->port, 0);
    return bpf_redirect(w->f->port, 0);
}

/* What a pod answers to itself. */
INLINE int answer_itself(struct way *w, const struct ebpf_pod *pod)
{
    struct ebpf_connection_key key = connection_of(w, EBPF_BACK);
    const struct ebpf_chosen *asked =
        w->f->has_ports ? bpf_map_lookup_elem(&tenet_conns, &key) : NULL;
    __be32 itself = w->f->ip.saddr;
    if (!w->f->has_ports && follow_service(w)) {
        return w->f->ip.daddr == itself ? send_back(w, pod) : TC_ACT_SHOT;
    }
    if (asked) {
        lead_fragments(w, asked->backend.addr, itself);
    }
    if (!asked || rewrite(w, SOURCE, asked->backend.addr, asked->backend.port) < 0 ||
        rewrite(w, DESTINATION, itself, w->f->dst_port) < 0) {
        return drop(EBPF_SERVICE_INVALID);
    }
    return send_back(w, pod);
}

/* ---- IP ---- */

/* With an honest source of this VNID, and its true destination. */
INLINE int route(struct way *w, __u32 vnid)
{
    const struct ebpf_pod *pod = receiver(w);
    const struct ebpf_route *r = pod ? NULL : destination(w);
    if (r && r->kind == EBPF_SERVICE && w->entry == FROM_POD && !w->f->translated) {
        return refuse(EBPF_SERVICE_NOT_AVAILABLE, NO_PORT); /* Whatever policies say. */
    }
    __u32 cause = begin_policy(w);
    if (cause != EBPF_NOT_DROPPED) {
        return drop(cause);
    }
    if (pod) {
        return deliver(w, pod, vnid);
    }
    if (!r || r->kind == EBPF_GATEWAY) {
        return to_host(w);
    }
    if (r->kind == EBPF_REMOTE) {
        __u32 id = r->has_fixed ? r->fixed_vnid : vnid;
        end_policy(w);
        note(w, EBPF_TUNNEL, 0, r->vtep, id);
        int sent = send_direct(w, r, id);
        return sent >= 0 ? sent : send_by_tunnel(w, r->vtep, id);
    }
    if (r->kind == EBPF_LOCAL) {
        return drop(EBPF_NO_SUCH_POD);
    }
    return r->kind == EBPF_SERVICE ? refuse(EBPF_SERVICE_NOT_AVAILABLE, NO_PORT)
                                   : refuse(EBPF_NO_SUCH_NODE, NO_HOST);
}

/* Of a pod: what is for no other pod may be for a service. */
INLINE int route_of_pod(struct way *w, const struct ebpf_pod *from, __u32 vnid)
{
    struct ebpf_service_key key;
    const struct ebpf_service *s = NULL;
    int may_be = 0;
    if (w->f->ip.daddr == bpf_htonl(ITSELF)) {
        return answer_itself(w, from);
    }
    if (w->settings->has_services && !w->f->has_ports && follow_service(w)) {
        return w->f->ip.saddr == bpf_htonl(ITSELF) ? send_back(w, from) : ON_ITS_WAY;
    }
    if (!w->settings->has_services || !w->f->has_ports) {
        /* The later parts of a packet follow the first. */
        const struct ebpf_route *r =
            w->settings->services_by_host && (w->f->ip.frag_off & bpf_htons(FRAGMENT_OFFSET))
                ? destination(w)
                : NULL;
        return r && r->kind == EBPF_SERVICE ? to_host(w) : ON_ITS_WAY;
    }
    if (!receiver(w)) {
        const struct ebpf_route *r = destination(w);
        /* Not at the gateway's address: its ports are those of the host's own connections to pods. */
        may_be = !r || r->kind == EBPF_SERVICE;
        s = may_be ? find_service(w, r, &key) : NULL;
    }
    __u32 cause = s ? translate(w, &key, s, vnid) : may_be ? go_on(w) : EBPF_NOT_DROPPED;
    if (cause == EBPF_SERVICE_NO_ENDPOINTS) {
        return refuse(cause, NO_PORT);
    }
    if (cause == EBPF_SERVICE_IS_IDLE) {
        hold(w);
    }
    if (cause != EBPF_NOT_DROPPED) {
        return drop(cause);
    }
    if (s && w->settings->services_by_host) {
        return to_host(w);
    }
    if (!s) {
        forget_service(w);
    }
    if (!w->f->translated) {
        lead_fragments(w, 0, 0); /* Nor do its parts follow another packet's. */
    }
    return w->f->ip.saddr == bpf_htonl(ITSELF) ? send_back(w, from) : ON_ITS_WAY;
}

INLINE int is_forged_tunnel(const struct way *w)
{
    return w->f->ip.protocol == IPPROTO_UDP && w->f->has_ports &&
           w->f->dst_port == w->settings->vxlan_port;
}

INLINE int ip_from_pod(struct way *w, __u32 *vnid)
{
    const struct ebpf_pod *pod = pod_at(w->f->ip.saddr);
    int honest = pod && pod->inlet == w->f->port && same_mac(w->f->eth.h_source, pod->mac);
    if (honest) {
        w->f->port = pod->ifindex;
    }
    if (is_forged_tunnel(w)) {
        return honest ? refuse(EBPF_FORGED_TUNNEL, PROHIBITED) : drop(EBPF_FORGED_TUNNEL);
    }
    if (!honest) {
        return drop(not_its_own(w));
    }
    *vnid = w->settings->carry_vnids ? pod->vnid : 0;
    return route_of_pod(w, pod, *vnid);
}

INLINE int ip_from_tunnel(struct way *w)
{
    /* Pods have addresses of this node's subnet. */
    if (!receiver(w) && !is_local(destination(w))) {
        return drop(EBPF_NOT_FOR_THIS_NODE);
    }
    __u32 cause = check_tunnel(w, w->f->ip.saddr);
    if (cause != EBPF_NOT_DROPPED) {
        return drop(cause);
    }
    return ON_ITS_WAY;
}

INLINE int ip_from_host(struct way *w)
{
    if (w->f->ip.saddr == w->settings->gateway) {
        return ON_ITS_WAY;
    }
    if (in_cluster(route_of(w->f->ip.saddr))) {
        return drop(EBPF_SPOOFED_SOURCE);
    }
    /* From outside, and from the host's other addresses: to pods of this node only. */
    if (!is_local(destination(w))) {
        return drop(EBPF_NOT_FOR_THIS_NODE);
    }
    if (w->f->ip.daddr == w->settings->gateway && !w->settings->has_policy) {
        return drop(EBPF_NO_SUCH_POD);
    }
    return ON_ITS_WAY;
}

/* What the header says of sizes is true; the kernel's own segments to be are cut and counted later. */
INLINE int is_whole(const struct way *w)
{
    __u32 header = w->f->ip.ihl * 4, total = bpf_ntohs(w->f->ip.tot_len);
    return w->skb->gso_size || (total >= header && total <= w->skb->len - ETH_HLEN);
}

INLINE int judge_ip(struct way *w, int has_ip)
{
    if (!has_ip || w->f->ip.version != 4 || w->f->ip.ihl < 5 || !is_whole(w)) {
        return drop(EBPF_NOT_IP);
    }
    if ((w->f->ip.daddr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) ||
        w->f->ip.daddr == 0xffffffff) {
        return drop(EBPF_MULTICAST);
    }
    read_ports(w);
    __u32 vnid = w->f->tunnel_id;
    int r = w->entry == FROM_POD      ? ip_from_pod(w, &vnid)
            : w->entry == FROM_TUNNEL ? ip_from_tunnel(w)
                                      : ip_from_host(w);
    return r == ON_ITS_WAY ? route(w, vnid) : r;
}

/* ---- ARP ---- */

/* The host may ask with any sender address. */
INLINE __u32 check_arp_sender(struct way *w, const struct arp *a)
{
    if (w->entry == FROM_POD) {
        const struct ebpf_pod *pod = pod_at(a->spa);
        int honest = pod && pod->inlet == w->f->port && same_mac(w->f->eth.h_source, pod->mac) &&
                     same_mac(a->sha, pod->mac);
        if (!honest) {
            return not_its_own(w);
        }
        w->f->port = pod->ifindex;
        return EBPF_NOT_DROPPED;
    }
    if (w->entry == FROM_TUNNEL) {
        return is_local(route_of(a->tpa)) ? check_tunnel(w, a->spa) : EBPF_NOT_FOR_THIS_NODE;
    }
    return EBPF_NOT_DROPPED;
}

/* mac_from_ip4 */
INLINE void mac_of(__be32 addr, __u8 *mac)
{
    mac[0] = 0x0a;
    mac[1] = 0x58;
    __builtin_memcpy(mac + 2, &addr, 4);
}

/* The question becomes its answer and goes back (RFC 826). */
INLINE int answer(const struct way *w, const struct arp *a)
{
    struct {
        struct ethhdr eth;
        struct arp arp;
    } __attribute__((packed)) f;
    __builtin_memcpy(f.eth.h_dest, a->sha, ETH_ALEN);
    mac_of(a->tpa, f.eth.h_source);
    f.eth.h_proto = bpf_htons(ETH_P_ARP);
    f.arp = *a;
    f.arp.op = bpf_htons(ARP_REPLY);
    mac_of(a->tpa, f.arp.sha);
    f.arp.spa = a->tpa;
    __builtin_memcpy(f.arp.tha, a->sha, ETH_ALEN);
    f.arp.tpa = a->spa;
    if (bpf_skb_store_bytes(w->skb, 0, &f, sizeof f, 0) < 0) {
        return TC_ACT_SHOT;
    }
    if (w->entry == FROM_TUNNEL) {
        note(w, EBPF_ANSWER, 0, w->f->outer_src, w->f->tunnel_id);
        return send_by_tunnel(w, w->f->outer_src, w->f->tunnel_id);
    }
    __u32 back = w->entry == FROM_POD ? w->f->port : w->settings->host_ifindex;
    note(w, EBPF_ANSWER, 0, back, 0);
    return bpf_redirect(back, 0);
}

INLINE int judge_arp(struct way *w)
{
    struct arp a;
    /* What is not about IPv4 on Ethernet has no fields to speak of. */
    if (bpf_skb_load_bytes(w->skb, ETH_HLEN, &a, sizeof a) < 0 || a.hardware != bpf_htons(1) ||
        a.protocol != bpf_htons(ETH_P_IP) || a.hardware_size != ETH_ALEN || a.protocol_size != 4) {
        __builtin_memset(&a, 0, sizeof a);
    }
    __u32 cause = check_arp_sender(w, &a);
    if (cause != EBPF_NOT_DROPPED) {
        return drop(cause);
    }
    if (a.op != bpf_htons(ARP_REQUEST)) {
        return drop(EBPF_ARP_NOT_ASKED);
    }
    const struct ebpf_route *r = route_of(a.tpa);
    if (r && r->kind == EBPF_LOCAL && !pod_at(a.tpa)) {
        return drop(EBPF_NO_SUCH_POD);
    }
    return in_cluster(r) ? answer(w, &a) : drop(EBPF_ARP_OFF_NETWORK);
}

/* ---- everything ---- */

INLINE int judge(struct way *w)
{
    __u32 zero = 0;
    w->settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    int has_ip = bpf_skb_load_bytes(w->skb, 0, &w->f->eth, HEADERS) == 0;
    if (!w->settings ||
        (!has_ip && bpf_skb_load_bytes(w->skb, 0, &w->f->eth, sizeof w->f->eth) < 0)) {
        return TC_ACT_SHOT;
    }
    if (w->f->eth.h_proto != bpf_htons(ETH_P_IP)) {
        __builtin_memset(&w->f->ip, 0, sizeof w->f->ip);
    }
    if (w->skb->vlan_present || w->f->eth.h_proto == bpf_htons(ETH_P_8021Q) ||
        w->f->eth.h_proto == bpf_htons(ETH_P_8021AD)) {
        return drop(EBPF_VLAN_TAGGED);
    }
    if (w->f->eth.h_proto == bpf_htons(ETH_P_IP)) {
        return judge_ip(w, has_ip);
    }
    return w->f->eth.h_proto == bpf_htons(ETH_P_ARP) ? judge_arp(w) : drop(EBPF_NOT_IP);
}

/* What the kernel is to do with a packet that was judged. */
INLINE int settle(struct way *w, int judged)
{
    __u32 cause = judged & 0xff, code = judged >> 8 & 0xff;
    if (judged < DROPPED) {
        return judged;
    }
    count(cause);
    note(w, EBPF_DROP, cause, 0, w->f->tunnel_id);
    return code ? send_error(w, cause, (__u8) code) : TC_ACT_SHOT;
}

/* A packet that just came in by 'entry'; 0, or there is no memory for it, which no processor lacks. */
INLINE int begin(struct way *w, enum entry entry)
{
    w->f = facts();
    if (!w->f) {
        return -1;
    }
    __builtin_memset(w->f, 0, sizeof *w->f);
    w->entry = entry;
    return 0;
}

SEC("tc")
int from_pod(struct __sk_buff *skb)
{
    struct way w = {.skb = skb};
    if (begin(&w, FROM_POD) < 0) {
        return TC_ACT_SHOT;
    }
    w.f->port =
        *(volatile __u32 *) &skb->ifindex; /* The verifier wants the field named, not chosen. */
    if (options.under_test) {
        w.f->port = *(volatile __u32 *) &skb->cb[EBPF_CB_PORT];
    }
    return settle(&w, judge(&w));
}

SEC("tc")
int from_tunnel(struct __sk_buff *skb)
{
    struct way w = {.skb = skb};
    struct bpf_tunnel_key key;
    if (begin(&w, FROM_TUNNEL) < 0) {
        return TC_ACT_SHOT;
    }
    if (options.under_test) {
        w.f->outer_src = skb->cb[EBPF_CB_OUTER_SRC];
        w.f->tunnel_id = skb->cb[EBPF_CB_TUNNEL_ID];
    } else if (bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_SIZE, 0) < 0) {
        return TC_ACT_SHOT;
    } else {
        w.f->outer_src = key.remote_ipv4;
        w.f->tunnel_id = key.tunnel_id;
    }
    return settle(&w, judge(&w));
}

SEC("tc")
int from_host(struct __sk_buff *skb)
{
    struct way w = {.skb = skb};
    if (skb->mark == EBPF_HELD_MARK) {
        return let_go_on(skb);
    }
    return begin(&w, FROM_HOST) < 0 ? TC_ACT_SHOT : settle(&w, judge(&w));
}

SEC("tc")
int from_wire(struct __sk_buff *skb)
{
    struct way w = {.skb = skb};
    if (!options.encap || begin(&w, FROM_TUNNEL) < 0 || take_outer(&w) < 0) {
        return TC_ACT_UNSPEC; /* Who comes after sees it, too. */
    }
    return bpf_skb_store_bytes(skb, 0, &w.f->eth, 2 * ETH_ALEN, 0) < 0
               ? TC_ACT_SHOT
               : settle(&w, judge_ip(&w, 1));
}
