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
#include "datapath/ebpf/bpf/firewall.h"
#include "datapath/ebpf/bpf/leave.h"
#include "datapath/ebpf/bpf/refuse.h"
#include "datapath/ebpf/bpf/stream.h"
#include "datapath/ebpf/bpf/upcall.h"

char terms[] SEC("license") = "Apache-2.0";

/* ---- IP ---- */

/* A host with a fixed VNID may have nothing but a tunnel device, which accepts frames to its own
 * MAC: the one that follows from the address. */
INLINE int name_receiver(struct packet_ctx *ctx)
{
    __u8 mac[ETH_ALEN];
    mac_of(ctx->pkt->ip.daddr, mac);
    int r = set_destination(ctx, mac);
    copy_mac(ctx->pkt->eth.h_dest, mac);
    return r;
}

/* Requires a source that was checked, its VNID, and the final destination. */
INLINE int route(struct packet_ctx *ctx, __u32 vnid)
{
    const struct ebpf_pod *pod = ctx->pod;
    const struct ebpf_route *r = ctx->route;
    if (UNLIKELY(r && r->kind == EBPF_SERVICE && ctx->entry == FROM_POD && !ctx->pkt->translated)) {
        return REFUSED(EBPF_SERVICE_NOT_AVAILABLE, NO_PORT); /* Whatever policies say. */
    }
    __u32 cause = begin_policy(ctx);
    if (UNLIKELY(cause != EBPF_NOT_DROPPED)) {
        return DROPPED(cause);
    }
    if (LIKELY(pod)) {
        return deliver(ctx, pod, vnid);
    }
    if (!r && ctx->entry == FROM_POD) {
        if (is_blocked_metadata(ctx)) {
            return REFUSED(EBPF_METADATA, PROHIBITED);
        }
        if (firewall_denies(ctx, vnid)) {
            return DROPPED(EBPF_FIREWALL_DENIED);
        }
    }
    if (!r || r->kind == EBPF_GATEWAY) {
        return to_host(ctx);
    }
    if (r->kind == EBPF_REMOTE) {
        __u32 id = r->has_fixed ? r->fixed_vnid : vnid;
        end_policy(ctx);
        if (UNLIKELY(r->has_fixed) && name_receiver(ctx) < 0) {
            return TC_ACT_SHOT;
        }
        record_verdict(ctx, EBPF_TUNNEL, 0, r->vtep, id);
        int sent = send_direct(ctx, r, id);
        return sent >= 0 ? sent : send_by_tunnel(ctx, r->vtep, id);
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
INLINE int answer_itself(struct packet_ctx *ctx)
{
    struct ebpf_connection_key key = connection_of(ctx, EBPF_DIR_REPLY);
    const struct ebpf_chosen *asked =
        ctx->pkt->has_ports ? bpf_map_lookup_elem(&tenet_conns, &key) : NULL;
    __be32 itself = ctx->pkt->ip.saddr;
    if (!ctx->pkt->has_ports && follow_service(ctx)) {
        return ctx->pkt->ip.daddr == itself ? TO_SENDER : TO_NOBODY;
    }
    if (asked) {
        lead_fragments(ctx, asked->addr, itself);
    }
    if (!asked || rewrite(ctx, SOURCE, asked->addr, asked->port) < 0 ||
        rewrite(ctx, DESTINATION, itself,
                asked->client_port ? asked->client_port : ctx->pkt->dst_port) < 0) {
        return DROPPED(EBPF_SERVICE_INVALID);
    }
    return TO_SENDER;
}

/* Whether a pod's packet without ports (a later fragment, an ICMP error) belongs to a connection
 * to a service. Returns an enum step, or a verdict below 0; so does the next function. */
INLINE int follow(struct packet_ctx *ctx)
{
    if (UNLIKELY(ctx->pkt->ip.daddr == bpf_htonl(ITSELF))) {
        return answer_itself(ctx);
    }
    if (UNLIKELY(ctx->settings->has_services && !ctx->pkt->has_ports) && follow_service(ctx) &&
        ctx->pkt->ip.saddr == bpf_htonl(ITSELF)) {
        return TO_SENDER;
    }
    return AS_SENT;
}

/* A packet for no other pod may be for a service. */
INLINE int ask_services(struct packet_ctx *ctx, __u32 vnid)
{
    struct ebpf_service_key key;
    const struct ebpf_service *s = NULL;
    int may_be = 0;
    if (UNLIKELY(!ctx->settings->has_services || !ctx->pkt->has_ports)) {
        /* Later fragments of a packet follow the first one. */
        const struct ebpf_route *r =
            ctx->settings->services_by_host && (ctx->pkt->ip.frag_off & bpf_htons(FRAGMENT_OFFSET))
                ? ctx->route
                : NULL;
        return r && r->kind == EBPF_SERVICE ? TO_HOST : AS_SENT;
    }
    if (UNLIKELY(!ctx->pod)) {
        /* Not at the gateway's address: its ports are used by the host's own connections to
         * pods. */
        may_be = !ctx->route || ctx->route->kind == EBPF_SERVICE;
        s = may_be ? find_service(ctx, &key) : NULL;
    }
    __u32 cause = s ? translate(ctx, &key, s, vnid) : may_be ? go_on(ctx) : EBPF_NOT_DROPPED;
    if (UNLIKELY(cause == EBPF_SERVICE_NO_ENDPOINTS)) {
        return REFUSED(cause, NO_PORT);
    }
    if (UNLIKELY(cause == EBPF_SERVICE_IS_IDLE)) {
        send_upcall(ctx);
    }
    if (UNLIKELY(cause != EBPF_NOT_DROPPED)) {
        return DROPPED(cause);
    }
    if (s && ctx->settings->services_by_host && !ctx->pkt->translated) {
        return TO_HOST;
    }
    if (LIKELY(!s)) {
        forget_service(ctx);
    }
    if (LIKELY(!ctx->pkt->translated)) {
        lead_fragments(ctx, 0, 0); /* Its fragments do not follow those of another packet. */
        return AS_SENT;
    }
    return ctx->pkt->ip.saddr == bpf_htonl(ITSELF) ? TO_SENDER : ELSEWHERE;
}

INLINE int is_forged_tunnel(const struct packet_ctx *ctx)
{
    return ctx->pkt->ip.protocol == IPPROTO_UDP && ctx->pkt->has_ports &&
           ctx->pkt->dst_port == ctx->settings->vxlan_port;
}

INLINE int ip_from_pod(struct packet_ctx *ctx)
{
    const struct ebpf_pod *pod = pod_at(ctx->settings, ctx->pkt->ip.saddr);
    int honest = pod && pod->inlet == ctx->pkt->port && same_mac(ctx->pkt->eth.h_source, pod->mac);
    union ebpf_reach self = {.both = 0};
    if (LIKELY(honest)) {
        self = reach_of(pod);
        honest = self.ifindex != 0;
    }
    if (LIKELY(honest)) {
        ctx->pkt->port = self.ifindex;
    }
    if (UNLIKELY(is_forged_tunnel(ctx))) {
        return honest ? REFUSED(EBPF_FORGED_TUNNEL, PROHIBITED) : DROPPED(EBPF_FORGED_TUNNEL);
    }
    if (UNLIKELY(!honest)) {
        return DROPPED(not_its_own(ctx));
    }
    __u32 vnid = ctx->settings->carry_vnids ? self.vnid : 0;
    int step = follow(ctx);
    if (LIKELY(step == AS_SENT)) {
        find_destination(ctx);
        step = ask_services(ctx, vnid);
        if (UNLIKELY(step == ELSEWHERE)) {
            find_destination(ctx);
        }
    }
    if (LIKELY(step == ELSEWHERE || step == AS_SENT)) {
        return route(ctx, vnid);
    }
    if (step == TO_HOST) {
        return to_host(ctx);
    }
    return step == TO_SENDER ? send_back(ctx, pod) : step == TO_NOBODY ? TC_ACT_SHOT : step;
}

INLINE int ip_from_tunnel(struct packet_ctx *ctx)
{
    if (!ctx->pod) {
        find_destination(ctx);
    }
    if (!is_here(ctx)) {
        return DROPPED(EBPF_NOT_FOR_THIS_NODE);
    }
    __u32 cause = check_tunnel(ctx, ctx->pkt->ip.saddr);
    if (cause != EBPF_NOT_DROPPED) {
        return DROPPED(cause);
    }
    return route(ctx, ctx->pkt->tunnel_id);
}

INLINE int ip_from_host(struct packet_ctx *ctx)
{
    find_destination(ctx);
    if (ctx->pkt->ip.saddr != ctx->settings->gateway) {
        if (in_cluster(route_of(ctx, ctx->pkt->ip.saddr))) {
            return DROPPED(EBPF_SPOOFED_SOURCE);
        }
        /* From outside, and from the host's other addresses: to local pods only. */
        if (!is_here(ctx)) {
            return DROPPED(EBPF_NOT_FOR_THIS_NODE);
        }
        if (ctx->pkt->ip.daddr == ctx->settings->gateway && !ctx->settings->has_policy) {
            return DROPPED(EBPF_NO_SUCH_POD);
        }
    }
    return route(ctx, 0);
}

/* The header's lengths fit the packet. Segments that the kernel cuts later (GSO) are counted
 * later. */
INLINE int is_whole(const struct packet_ctx *ctx)
{
    __u32 header = ctx->pkt->ip.ihl * 4, total = bpf_ntohs(ctx->pkt->ip.tot_len);
    return ctx->skb->gso_size || (total >= header && total <= ctx->skb->len - ETH_HLEN);
}

INLINE int judge_ip(struct packet_ctx *ctx, int has_ip)
{
    /* The version is not checked, as in Open vSwitch: the receiver checks it. */
    if (UNLIKELY(!has_ip || ctx->pkt->ip.ihl < 5 || !is_whole(ctx) ||
                 !(ctx->pkt->ip.saddr | ctx->pkt->ip.daddr))) {
        return DROPPED(EBPF_NOT_IP);
    }
    if (UNLIKELY((ctx->pkt->ip.daddr & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) ||
                 ctx->pkt->ip.daddr == 0xffffffff)) {
        return DROPPED(EBPF_MULTICAST);
    }
    read_ports(ctx);
    if (ctx->entry == FROM_POD) {
        return ip_from_pod(ctx);
    }
    return ctx->entry == FROM_TUNNEL ? ip_from_tunnel(ctx) : ip_from_host(ctx);
}

/* ---- everything ---- */

INLINE int judge(struct packet_ctx *ctx)
{
    __u32 zero = 0;
    ctx->settings = bpf_map_lookup_elem(&tenet_settings, &zero);
    int has_ip = read_frame(ctx->skb, &ctx->pkt->eth, HEADERS) == 0;
    if (UNLIKELY(!ctx->settings) ||
        (UNLIKELY(!has_ip) &&
         bpf_skb_load_bytes(ctx->skb, 0, &ctx->pkt->eth, sizeof ctx->pkt->eth) < 0)) {
        return TC_ACT_SHOT;
    }
    if (UNLIKELY(ctx->pkt->eth.h_proto != bpf_htons(ETH_P_IP))) {
        __builtin_memset(&ctx->pkt->ip, 0, sizeof ctx->pkt->ip);
    }
    if (UNLIKELY(ctx->skb->vlan_present || ctx->pkt->eth.h_proto == bpf_htons(ETH_P_8021Q) ||
                 ctx->pkt->eth.h_proto == bpf_htons(ETH_P_8021AD))) {
        int is_cut = !ctx->skb->vlan_present && ctx->skb->len < ETH_HLEN + TAG_SIZE;
        return DROPPED(is_cut ? EBPF_NOT_IP : EBPF_VLAN_TAGGED);
    }
    if (LIKELY(ctx->pkt->eth.h_proto == bpf_htons(ETH_P_IP))) {
        return judge_ip(ctx, has_ip);
    }
    return ctx->pkt->eth.h_proto == bpf_htons(ETH_P_ARP) ? judge_arp(ctx) : DROPPED(EBPF_NOT_IP);
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
        return_verdict(skb, EBPF_DELIVER, 0, to, 0);
        return hand_over(skb, to);
    }
    struct packet_ctx ctx = {.skb = skb, .entry = FROM_POD};
    if (begin(&ctx) < 0) {
        return TC_ACT_SHOT;
    }
    ctx.pkt->port = port;
    return conclude(&ctx, judge(&ctx));
}

SEC("tc")
int from_tunnel(struct __sk_buff *skb)
{
    struct packet_ctx ctx = {.skb = skb, .entry = FROM_TUNNEL};
    struct bpf_tunnel_key key;
    if (begin(&ctx) < 0) {
        return TC_ACT_SHOT;
    }
    if (options.under_test) {
        ctx.pkt->outer_src = skb->cb[EBPF_CB_OUTER_SRC];
        ctx.pkt->tunnel_id = skb->cb[EBPF_CB_TUNNEL_ID];
    } else if (bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_SIZE, 0) < 0) {
        return TC_ACT_SHOT;
    } else {
        ctx.pkt->outer_src = key.remote_ipv4;
        ctx.pkt->tunnel_id = key.tunnel_id;
    }
    return conclude(&ctx, judge(&ctx));
}

SEC("tc")
int from_host(struct __sk_buff *skb)
{
    struct packet_ctx ctx = {.skb = skb, .entry = FROM_HOST};
    if (skb->mark == EBPF_REINJECT_MARK) {
        return reinject(skb);
    }
    return begin(&ctx) < 0 ? TC_ACT_SHOT : conclude(&ctx, judge(&ctx));
}

SEC("tc")
int from_wire(struct __sk_buff *skb)
{
    struct packet_ctx ctx = {.skb = skb, .entry = FROM_TUNNEL};
    if (!options.encap || begin(&ctx) < 0 || take_outer(&ctx) < 0) {
        return TC_ACT_UNSPEC; /* Later programs at this hook see the packet, too. */
    }
    return bpf_skb_store_bytes(skb, 0, &ctx.pkt->eth, 2 * ETH_ALEN, 0) < 0
               ? TC_ACT_SHOT
               : conclude(&ctx, judge_ip(&ctx, 1));
}
