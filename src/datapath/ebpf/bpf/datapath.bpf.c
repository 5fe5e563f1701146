/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath: forwards, answers or drops each packet, as docs/pipeline.md describes.
 *
 * Four programs, each on what a link receives: from_pod on the host end of each pod's link,
 * from_tunnel on the VXLAN device, from_host on the peer of tun0; from_wire on the links that
 * lead to other nodes. Packets never continue up the stack of the incoming link, with one
 * exception: from_wire takes only packets that are certainly the cluster's. There are no loops,
 * so that the verifier of every kernel since 5.10 follows.
 *
 * The headers beside this file hold its parts, each with its own maps; only this file includes
 * them. */
#include "datapath/ebpf/bpf/arp.h"
#include "datapath/ebpf/bpf/encap.h"
#include "datapath/ebpf/bpf/held.h"
#include "datapath/ebpf/bpf/leave.h"
#include "datapath/ebpf/bpf/refuse.h"
#include "datapath/ebpf/bpf/stream.h"

char terms[] SEC("license") = "Apache-2.0";

/* ---- IP ---- */

/* Requires a source that was checked, its VNID, and the final destination. */
INLINE int route(struct way *w, __u32 vnid)
{
    const struct ebpf_pod *pod = w->pod;
    const struct ebpf_route *r = w->route;
    if (UNLIKELY(r && r->kind == EBPF_SERVICE && w->entry == FROM_POD && !w->f->translated)) {
        return REFUSED(EBPF_SERVICE_NOT_AVAILABLE, NO_PORT); /* Whatever policies say. */
    }
    __u32 cause = begin_policy(w);
    if (UNLIKELY(cause != EBPF_NOT_DROPPED)) {
        return DROPPED(cause);
    }
    if (LIKELY(pod)) {
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
        return DROPPED(EBPF_NO_SUCH_POD);
    }
    return r->kind == EBPF_SERVICE ? REFUSED(EBPF_SERVICE_NOT_AVAILABLE, NO_PORT)
                                   : REFUSED(EBPF_NO_SUCH_NODE, NO_HOST);
}

/* The next step for a pod's packet after the service lookup. */
enum step { AS_SENT, ELSEWHERE, TO_HOST, TO_SENDER, TO_NOBODY };

/* The answer of a pod that reached itself by a service. */
INLINE int answer_itself(struct way *w)
{
    struct ebpf_connection_key key = connection_of(w, EBPF_BACK);
    const struct ebpf_chosen *asked =
        w->f->has_ports ? bpf_map_lookup_elem(&tenet_conns, &key) : NULL;
    __be32 itself = w->f->ip.saddr;
    if (!w->f->has_ports && follow_service(w)) {
        return w->f->ip.daddr == itself ? TO_SENDER : TO_NOBODY;
    }
    if (asked) {
        lead_fragments(w, asked->backend.addr, itself);
    }
    if (!asked || rewrite(w, SOURCE, asked->backend.addr, asked->backend.port) < 0 ||
        rewrite(w, DESTINATION, itself, w->f->dst_port) < 0) {
        return DROPPED(EBPF_SERVICE_INVALID);
    }
    return TO_SENDER;
}

/* Whether a pod's packet without ports (a later fragment, an ICMP error) belongs to a connection
 * to a service. Returns an enum step, or a verdict below 0; so does the next function. */
INLINE int follow(struct way *w)
{
    if (UNLIKELY(w->f->ip.daddr == bpf_htonl(ITSELF))) {
        return answer_itself(w);
    }
    if (UNLIKELY(w->settings->has_services && !w->f->has_ports) && follow_service(w) &&
        w->f->ip.saddr == bpf_htonl(ITSELF)) {
        return TO_SENDER;
    }
    return AS_SENT;
}

/* A packet for no other pod may be for a service. */
INLINE int ask_services(struct way *w, __u32 vnid)
{
    struct ebpf_service_key key;
    const struct ebpf_service *s = NULL;
    int may_be = 0;
    if (UNLIKELY(!w->settings->has_services || !w->f->has_ports)) {
        /* Later fragments of a packet follow the first one. */
        const struct ebpf_route *r =
            w->settings->services_by_host && (w->f->ip.frag_off & bpf_htons(FRAGMENT_OFFSET))
                ? w->route
                : NULL;
        return r && r->kind == EBPF_SERVICE ? TO_HOST : AS_SENT;
    }
    if (UNLIKELY(!w->pod)) {
        /* Not at the gateway's address: its ports are used by the host's own connections to
         * pods. */
        may_be = !w->route || w->route->kind == EBPF_SERVICE;
        s = may_be ? find_service(w, &key) : NULL;
    }
    __u32 cause = s ? translate(w, &key, s, vnid) : may_be ? go_on(w) : EBPF_NOT_DROPPED;
    if (UNLIKELY(cause == EBPF_SERVICE_NO_ENDPOINTS)) {
        return REFUSED(cause, NO_PORT);
    }
    if (UNLIKELY(cause == EBPF_SERVICE_IS_IDLE)) {
        hold(w);
    }
    if (UNLIKELY(cause != EBPF_NOT_DROPPED)) {
        return DROPPED(cause);
    }
    if (s && w->settings->services_by_host && !w->f->translated) {
        return TO_HOST;
    }
    if (LIKELY(!s)) {
        forget_service(w);
    }
    if (LIKELY(!w->f->translated)) {
        lead_fragments(w, 0, 0); /* Its fragments do not follow those of another packet. */
        return AS_SENT;
    }
    return w->f->ip.saddr == bpf_htonl(ITSELF) ? TO_SENDER : ELSEWHERE;
}

INLINE int is_forged_tunnel(const struct way *w)
{
    return w->f->ip.protocol == IPPROTO_UDP && w->f->has_ports &&
           w->f->dst_port == w->settings->vxlan_port;
}

INLINE int ip_from_pod(struct way *w)
{
    const struct ebpf_pod *pod = pod_at(w->settings, w->f->ip.saddr);
    int honest = pod && pod->inlet == w->f->port && same_mac(w->f->eth.h_source, pod->mac);
    union ebpf_reach self = {.both = 0};
    if (LIKELY(honest)) {
        self = reach_of(pod);
        honest = self.ifindex != 0;
    }
    if (LIKELY(honest)) {
        w->f->port = self.ifindex;
    }
    if (UNLIKELY(is_forged_tunnel(w))) {
        return honest ? REFUSED(EBPF_FORGED_TUNNEL, PROHIBITED) : DROPPED(EBPF_FORGED_TUNNEL);
    }
    if (UNLIKELY(!honest)) {
        return DROPPED(not_its_own(w));
    }
    __u32 vnid = w->settings->carry_vnids ? self.vnid : 0;
    int step = follow(w);
    if (LIKELY(step == AS_SENT)) {
        find_destination(w);
        step = ask_services(w, vnid);
        if (UNLIKELY(step == ELSEWHERE)) {
            find_destination(w);
        }
    }
    if (LIKELY(step == ELSEWHERE || step == AS_SENT)) {
        return route(w, vnid);
    }
    if (step == TO_HOST) {
        return to_host(w);
    }
    return step == TO_SENDER ? send_back(w, pod) : step == TO_NOBODY ? TC_ACT_SHOT : step;
}

INLINE int ip_from_tunnel(struct way *w)
{
    if (!w->pod) {
        find_destination(w);
    }
    if (!is_here(w)) {
        return DROPPED(EBPF_NOT_FOR_THIS_NODE);
    }
    __u32 cause = check_tunnel(w, w->f->ip.saddr);
    if (cause != EBPF_NOT_DROPPED) {
        return DROPPED(cause);
    }
    return route(w, w->f->tunnel_id);
}

INLINE int ip_from_host(struct way *w)
{
    find_destination(w);
    if (w->f->ip.saddr != w->settings->gateway) {
        if (in_cluster(route_of(w, w->f->ip.saddr))) {
            return DROPPED(EBPF_SPOOFED_SOURCE);
        }
        /* From outside, and from the host's other addresses: to local pods only. */
        if (!is_here(w)) {
            return DROPPED(EBPF_NOT_FOR_THIS_NODE);
        }
        if (w->f->ip.daddr == w->settings->gateway && !w->settings->has_policy) {
            return DROPPED(EBPF_NO_SUCH_POD);
        }
    }
    return route(w, 0);
}

/* The header's lengths fit the packet. Segments that the kernel cuts later (GSO) are counted
 * later. */
INLINE int is_whole(const struct way *w)
{
    __u32 header = w->f->ip.ihl * 4, total = bpf_ntohs(w->f->ip.tot_len);
    return w->skb->gso_size || (total >= header && total <= w->skb->len - ETH_HLEN);
}

INLINE int judge_ip(struct way *w, int has_ip)
{
    /* The version is not checked, as in Open vSwitch: the receiver checks it. */
    if (UNLIKELY(!has_ip || w->f->ip.ihl < 5 || !is_whole(w) ||
                 !(w->f->ip.saddr | w->f->ip.daddr))) {
        return DROPPED(EBPF_NOT_IP);
    }
    if (UNLIKELY((w->f->ip.daddr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) ||
                 w->f->ip.daddr == 0xffffffff)) {
        return DROPPED(EBPF_MULTICAST);
    }
    read_ports(w);
    if (w->entry == FROM_POD) {
        return ip_from_pod(w);
    }
    return w->entry == FROM_TUNNEL ? ip_from_tunnel(w) : ip_from_host(w);
}

/* ---- everything ---- */

INLINE int judge(struct way *w)
{
    __u32 zero = 0;
    w->settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    int has_ip = read_frame(w->skb, &w->f->eth, HEADERS) == 0;
    if (UNLIKELY(!w->settings) ||
        (UNLIKELY(!has_ip) && bpf_skb_load_bytes(w->skb, 0, &w->f->eth, sizeof w->f->eth) < 0)) {
        return TC_ACT_SHOT;
    }
    if (UNLIKELY(w->f->eth.h_proto != bpf_htons(ETH_P_IP))) {
        __builtin_memset(&w->f->ip, 0, sizeof w->f->ip);
    }
    if (UNLIKELY(w->skb->vlan_present || w->f->eth.h_proto == bpf_htons(ETH_P_8021Q) ||
                 w->f->eth.h_proto == bpf_htons(ETH_P_8021AD))) {
        int is_cut = !w->skb->vlan_present && w->skb->len < ETH_HLEN + TAG_SIZE;
        return DROPPED(is_cut ? EBPF_NOT_IP : EBPF_VLAN_TAGGED);
    }
    if (LIKELY(w->f->eth.h_proto == bpf_htons(ETH_P_IP))) {
        return judge_ip(w, has_ip);
    }
    return w->f->eth.h_proto == bpf_htons(ETH_P_ARP) ? judge_arp(w) : DROPPED(EBPF_NOT_IP);
}

SEC("tc")
int from_pod(struct __sk_buff *skb)
{
    __u32 port =
        /* A volatile read of the field: the verifier rejects a computed offset into the context. */
        *(volatile __u32 *) &skb->ifindex;
    if (UNLIKELY(options.under_test)) {
        port = *(volatile __u32 *) &skb->cb[EBPF_CB_PORT];
    }
    __u32 to = stream_to(skb, port);
    if (LIKELY(to)) {
        leave_note(skb, EBPF_DELIVER, 0, to, 0);
        return hand_over(skb, to);
    }
    struct way w = {.skb = skb, .entry = FROM_POD};
    if (begin(&w) < 0) {
        return TC_ACT_SHOT;
    }
    w.f->port = port;
    return conclude(&w, judge(&w));
}

SEC("tc")
int from_tunnel(struct __sk_buff *skb)
{
    struct way w = {.skb = skb, .entry = FROM_TUNNEL};
    struct bpf_tunnel_key key;
    if (begin(&w) < 0) {
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
    return conclude(&w, judge(&w));
}

SEC("tc")
int from_host(struct __sk_buff *skb)
{
    struct way w = {.skb = skb, .entry = FROM_HOST};
    if (skb->mark == EBPF_HELD_MARK) {
        return let_go_on(skb);
    }
    return begin(&w) < 0 ? TC_ACT_SHOT : conclude(&w, judge(&w));
}

SEC("tc")
int from_wire(struct __sk_buff *skb)
{
    struct way w = {.skb = skb, .entry = FROM_TUNNEL};
    if (!options.encap || begin(&w) < 0 || take_outer(&w) < 0) {
        return TC_ACT_UNSPEC; /* Later programs at this hook see the packet, too. */
    }
    return bpf_skb_store_bytes(skb, 0, &w.f->eth, 2 * ETH_ALEN, 0) < 0
               ? TC_ACT_SHOT
               : conclude(&w, judge_ip(&w, 1));
}
