/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath: what becomes of a packet, as docs/pipeline.md says it.
 *
 * Three programs, each on what a link receives: from_pod on the host end of each pod's link, from_tunnel on the VXLAN
 * device, from_host on the peer of tun0.  None lets a packet go on to the stack of the link it came by.  There are
 * no loops and no calls, so that the verifier of every kernel since 5.10 follows. */
#include "datapath/ebpf/bpf/maps.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define INLINE static __attribute__((always_inline))
#define FRAGMENT_OFFSET 0x1fff
#define ARP_REQUEST 1
#define ARP_REPLY 2
#define VNID_NOBODY 1 /* sdn/network.h */
/* Tunnel id and IPv4 address: a key of this size every kernel takes, whatever it has added behind. */
#define TUNNEL_KEY_SIZE __builtin_offsetof(struct bpf_tunnel_key, remote_ipv6[1])

char terms[] SEC("license") = "Apache-2.0";

const volatile struct ebpf_options options = {.redirect_peer = 1};

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
    __uint(max_entries, EBPF_N_CAUSES);
    __type(key, __u32);
    __type(value, __u64);
} tenet_drops SEC(".maps");

enum entry { FROM_POD, FROM_TUNNEL, FROM_HOST };

struct arp {
    __be16 hardware, protocol;
    __u8 hardware_size, protocol_size;
    __be16 op;
    __u8 sha[ETH_ALEN];
    __be32 spa;
    __u8 tha[ETH_ALEN];
    __be32 tpa;
} __attribute__((packed));

/* A packet on its way through. */
struct way {
    struct __sk_buff *skb;
    const struct ebpf_settings *settings;
    enum entry entry;
    __u32 port;                 /* FROM_POD: ifindex of the link. */
    __u32 outer_src, tunnel_id; /* FROM_TUNNEL */
    struct ethhdr eth;          /* As it came. */
};

/* ---- verdicts ---- */

INLINE void note(const struct way *w, __u32 verdict, __u32 cause, __u32 target, __u32 tunnel_id)
{
    if (options.under_test) {
        w->skb->cb[EBPF_CB_VERDICT] = verdict | cause << 16;
        w->skb->cb[EBPF_CB_TARGET] = target;
        w->skb->cb[EBPF_CB_TUNNEL_ID] = tunnel_id;
    }
}

INLINE int drop(const struct way *w, __u32 cause)
{
    __u64 *n = bpf_map_lookup_elem(&tenet_drops, &cause);
    if (n) {
        *n += 1;
    }
    note(w, EBPF_DROP, cause, 0, 0);
    return TC_ACT_SHOT;
}

INLINE int same_mac(const __u8 *a, const __u8 *b)
{
    const __u16 *x = (const void *) a, *y = (const void *) b;
    return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2])) == 0;
}

/* Most packets have the right one: a write would copy a packet that its sender keeps. */
INLINE int set_destination(const struct way *w, const __u8 *mac)
{
    return same_mac(w->eth.h_dest, mac) ? 0 : bpf_skb_store_bytes(w->skb, 0, mac, ETH_ALEN, 0);
}

INLINE int to_host(const struct way *w)
{
    if (w->entry == FROM_HOST) {
        return drop(w, EBPF_BACK_TO_HOST);
    }
    if (set_destination(w, w->settings->tun_mac) < 0) {
        return TC_ACT_SHOT;
    }
    note(w, EBPF_HOST, 0, w->settings->tun_ifindex, 0);
    return bpf_redirect(w->settings->tun_ifindex, BPF_F_INGRESS);
}

INLINE int send_by_tunnel(const struct way *w, __u32 vtep, __u32 vnid)
{
    struct bpf_tunnel_key key = {.tunnel_id = vnid, .remote_ipv4 = vtep};
    if (bpf_skb_set_tunnel_key(w->skb, &key, TUNNEL_KEY_SIZE,
                               BPF_F_ZERO_CSUM_TX | BPF_F_DONT_FRAGMENT) < 0) {
        return TC_ACT_SHOT;
    }
    return bpf_redirect(w->settings->vxlan_ifindex, 0);
}

/* sdn_vnid_may_reach */
INLINE int may_reach(__u32 from, __u32 to)
{
    return (from == to && from != VNID_NOBODY) || from == 0 || to == 0;
}

INLINE int deliver(const struct way *w, const struct ebpf_pod *pod, __u32 vnid)
{
    if (w->entry == FROM_POD && pod->ifindex == w->port) {
        return drop(w, EBPF_OWN_ADDRESS);
    }
    if (w->settings->compare_vnids && !may_reach(vnid, pod->vnid) &&
        !((pod->flags & EBPF_POD_ALSO) && may_reach(vnid, pod->also_vnid))) {
        return drop(w, EBPF_VNID_MISMATCH);
    }
    if (set_destination(w, pod->mac) < 0) {
        return TC_ACT_SHOT;
    }
    note(w, EBPF_DELIVER, 0, pod->ifindex, 0);
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

INLINE int is_local(const struct ebpf_route *r)
{
    return r && (r->kind == EBPF_LOCAL || r->kind == EBPF_GATEWAY);
}

INLINE int in_cluster(const struct ebpf_route *r)
{
    return r && r->kind != EBPF_SERVICE;
}

/* Whether the node that sent a tunnel packet may speak for its inner source. */
INLINE __u32 check_tunnel(const struct way *w, __be32 src)
{
    const struct ebpf_route *r = route_of(src);
    if (r && r->kind == EBPF_REMOTE && r->vtep == w->outer_src) {
        return EBPF_NOT_DROPPED;
    }
    return bpf_map_lookup_elem(&tenet_vteps, &w->outer_src) ? EBPF_SPOOFED_SOURCE
                                                            : EBPF_UNKNOWN_VTEP;
}

/* Why a packet of a pod's link is not its pod's. */
INLINE __u32 not_its_own(const struct way *w)
{
    return bpf_map_lookup_elem(&tenet_ports, &w->port) ? EBPF_SPOOFED_SOURCE : EBPF_UNKNOWN_PORT;
}

/* ---- IP ---- */

/* With an honest source of this VNID. */
INLINE int route(const struct way *w, __be32 dst, __u32 vnid)
{
    const struct ebpf_pod *pod = pod_at(dst);
    if (pod) {
        return deliver(w, pod, vnid);
    }
    const struct ebpf_route *r = route_of(dst);
    if (!r || r->kind == EBPF_GATEWAY) {
        return to_host(w);
    }
    if (r->kind == EBPF_REMOTE) {
        __u32 id = r->has_fixed ? r->fixed_vnid : vnid;
        note(w, EBPF_TUNNEL, 0, r->vtep, id);
        return send_by_tunnel(w, r->vtep, id);
    }
    if (r->kind == EBPF_LOCAL) {
        return drop(w, EBPF_NO_SUCH_POD);
    }
    return drop(w, r->kind == EBPF_SERVICE ? EBPF_SERVICE_NOT_AVAILABLE : EBPF_NO_SUCH_NODE);
}

INLINE int is_forged_tunnel(const struct way *w, const struct iphdr *ip)
{
    __be16 port;
    return ip->protocol == IPPROTO_UDP && !(ip->frag_off & bpf_htons(FRAGMENT_OFFSET)) &&
           bpf_skb_load_bytes(w->skb, ETH_HLEN + ip->ihl * 4 + 2, &port, sizeof port) == 0 &&
           port == w->settings->vxlan_port;
}

INLINE int ip_from_pod(const struct way *w, const struct iphdr *ip)
{
    if (is_forged_tunnel(w, ip)) {
        return drop(w, EBPF_FORGED_TUNNEL);
    }
    const struct ebpf_pod *pod = pod_at(ip->saddr);
    if (!pod || pod->ifindex != w->port || !same_mac(w->eth.h_source, pod->mac)) {
        return drop(w, not_its_own(w));
    }
    return route(w, ip->daddr, w->settings->carry_vnids ? pod->vnid : 0);
}

INLINE int ip_from_tunnel(const struct way *w, const struct iphdr *ip)
{
    if (!is_local(route_of(ip->daddr))) {
        return drop(w, EBPF_NOT_FOR_THIS_NODE);
    }
    __u32 cause = check_tunnel(w, ip->saddr);
    if (cause != EBPF_NOT_DROPPED) {
        return drop(w, cause);
    }
    return route(w, ip->daddr, w->tunnel_id);
}

INLINE int ip_from_host(const struct way *w, const struct iphdr *ip)
{
    if (ip->saddr == w->settings->gateway) {
        return route(w, ip->daddr, 0);
    }
    if (in_cluster(route_of(ip->saddr))) {
        return drop(w, EBPF_SPOOFED_SOURCE);
    }
    /* From outside, and from the host's other addresses: to pods of this node only. */
    const struct ebpf_pod *pod = pod_at(ip->daddr);
    if (pod) {
        return deliver(w, pod, 0);
    }
    return drop(w, is_local(route_of(ip->daddr)) ? EBPF_NO_SUCH_POD : EBPF_NOT_FOR_THIS_NODE);
}

INLINE int judge_ip(const struct way *w)
{
    struct iphdr ip;
    if (bpf_skb_load_bytes(w->skb, ETH_HLEN, &ip, sizeof ip) < 0 || ip.version != 4 || ip.ihl < 5) {
        return drop(w, EBPF_NOT_IP);
    }
    if ((ip.daddr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) || ip.daddr == 0xffffffff) {
        return drop(w, EBPF_MULTICAST);
    }
    if (w->entry == FROM_POD) {
        return ip_from_pod(w, &ip);
    }
    return w->entry == FROM_TUNNEL ? ip_from_tunnel(w, &ip) : ip_from_host(w, &ip);
}

/* ---- ARP ---- */

/* The host may ask with any sender address. */
INLINE __u32 check_arp_sender(const struct way *w, const struct arp *a)
{
    if (w->entry == FROM_POD) {
        const struct ebpf_pod *pod = pod_at(a->spa);
        int honest = pod && pod->ifindex == w->port && same_mac(w->eth.h_source, pod->mac) &&
                     same_mac(a->sha, pod->mac);
        return honest ? EBPF_NOT_DROPPED : not_its_own(w);
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
        note(w, EBPF_ANSWER, 0, w->outer_src, w->tunnel_id);
        return send_by_tunnel(w, w->outer_src, w->tunnel_id);
    }
    __u32 back = w->entry == FROM_POD ? w->port : w->settings->host_ifindex;
    note(w, EBPF_ANSWER, 0, back, 0);
    return bpf_redirect(back, 0);
}

INLINE int judge_arp(const struct way *w)
{
    struct arp a;
    /* What is not about IPv4 on Ethernet has no fields to speak of. */
    if (bpf_skb_load_bytes(w->skb, ETH_HLEN, &a, sizeof a) < 0 || a.hardware != bpf_htons(1) ||
        a.protocol != bpf_htons(ETH_P_IP) || a.hardware_size != ETH_ALEN || a.protocol_size != 4) {
        __builtin_memset(&a, 0, sizeof a);
    }
    __u32 cause = check_arp_sender(w, &a);
    if (cause != EBPF_NOT_DROPPED) {
        return drop(w, cause);
    }
    if (a.op != bpf_htons(ARP_REQUEST)) {
        return drop(w, EBPF_ARP_NOT_ASKED);
    }
    const struct ebpf_route *r = route_of(a.tpa);
    if (r && r->kind == EBPF_LOCAL && !pod_at(a.tpa)) {
        return drop(w, EBPF_NO_SUCH_POD);
    }
    return in_cluster(r) ? answer(w, &a) : drop(w, EBPF_ARP_OFF_NETWORK);
}

/* ---- everything ---- */

INLINE int judge(struct way *w)
{
    __u32 zero = 0;
    w->settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    if (!w->settings || bpf_skb_load_bytes(w->skb, 0, &w->eth, sizeof w->eth) < 0) {
        return TC_ACT_SHOT;
    }
    if (w->skb->vlan_present || w->eth.h_proto == bpf_htons(ETH_P_8021Q) ||
        w->eth.h_proto == bpf_htons(ETH_P_8021AD)) {
        return drop(w, EBPF_VLAN_TAGGED);
    }
    if (w->eth.h_proto == bpf_htons(ETH_P_IP)) {
        return judge_ip(w);
    }
    return w->eth.h_proto == bpf_htons(ETH_P_ARP) ? judge_arp(w) : drop(w, EBPF_NOT_IP);
}

SEC("tc")
int from_pod(struct __sk_buff *skb)
{
    struct way w = {.skb = skb, .entry = FROM_POD};
    w.port =
        *(volatile __u32 *) &skb->ifindex; /* The verifier wants the field named, not chosen. */
    if (options.under_test) {
        w.port = *(volatile __u32 *) &skb->cb[EBPF_CB_PORT];
    }
    return judge(&w);
}

SEC("tc")
int from_tunnel(struct __sk_buff *skb)
{
    struct way w = {.skb = skb, .entry = FROM_TUNNEL};
    struct bpf_tunnel_key key;
    if (options.under_test) {
        w.outer_src = skb->cb[EBPF_CB_OUTER_SRC];
        w.tunnel_id = skb->cb[EBPF_CB_TUNNEL_ID];
    } else if (bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_SIZE, 0) < 0) {
        return TC_ACT_SHOT;
    } else {
        w.outer_src = key.remote_ipv4;
        w.tunnel_id = key.tunnel_id;
    }
    return judge(&w);
}

SEC("tc")
int from_host(struct __sk_buff *skb)
{
    struct way w = {.skb = skb, .entry = FROM_HOST};
    return judge(&w);
}
