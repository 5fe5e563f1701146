/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that packets leave to: local pods, the host, the VXLAN device. encap.h bypasses
 * the device. */
#pragma once

#include "datapath/ebpf/bpf/events.h"
#include "datapath/ebpf/bpf/policy.h"
#include "datapath/ebpf/bpf/service.h"

/* Tunnel id and IPv4 address: every kernel accepts a key of this size, whatever fields were
 * added after it. */
#define TUNNEL_KEY_SIZE __builtin_offsetof(struct bpf_tunnel_key, remote_ipv6[1])

INLINE int to_host(struct packet_ctx *ctx)
{
    if (ctx->entry == FROM_HOST) {
        return DROPPED(EBPF_BACK_TO_HOST);
    }
    end_policy(ctx);
    if (set_destination(ctx, ctx->settings->tun_mac) < 0) {
        return TC_ACT_SHOT;
    }
    record_verdict(ctx, EBPF_HOST, 0, ctx->settings->tun_ifindex, 0);
    return bpf_redirect(ctx->settings->tun_ifindex, BPF_F_INGRESS);
}

/* Sends by the VXLAN device. */
INLINE int send_by_tunnel(const struct packet_ctx *ctx, __u32 vtep, __u32 vnid)
{
    struct bpf_tunnel_key key = {.tunnel_id = vnid, .remote_ipv4 = vtep};
    if (bpf_skb_set_tunnel_key(ctx->skb, &key, TUNNEL_KEY_SIZE,
                               BPF_F_ZERO_CSUM_TX | BPF_F_DONT_FRAGMENT) < 0) {
        return TC_ACT_SHOT;
    }
    return bpf_redirect(ctx->settings->vxlan_ifindex, 0);
}

/* Delivers to the other end of that link, into the pod. */
INLINE int hand_over(struct __sk_buff *skb, __u32 ifindex)
{
    if (!options.redirect_peer) {
        return bpf_redirect(ifindex, 0);
    }
    if (!options.scrub && skb->pkt_type != PACKET_HOST) {
        bpf_skb_change_type(skb, PACKET_HOST);
    }
    return bpf_redirect_peer(ifindex, 0);
}

INLINE int deliver(struct packet_ctx *ctx, const struct ebpf_pod *pod, __u32 vnid)
{
    union ebpf_reach to = reach_of(pod);
    if (UNLIKELY(!to.ifindex)) {
        return DROPPED(EBPF_NO_SUCH_POD);
    }
    if (UNLIKELY(ctx->entry == FROM_POD && to.ifindex == ctx->pkt->port)) {
        return DROPPED(EBPF_OWN_ADDRESS);
    }
    __u32 cause = judge_receiver(ctx);
    if (UNLIKELY(cause != EBPF_NOT_DROPPED)) {
        return DROPPED(cause);
    }
    if (UNLIKELY(ctx->settings->compare_vnids && !may_reach(vnid, to.vnid)) &&
        !((pod->flags & EBPF_POD_ALSO_VNID) && may_reach(vnid, pod->also_vnid))) {
        return DROPPED(EBPF_VNID_MISMATCH);
    }
    end_policy(ctx);
    if (UNLIKELY(set_destination(ctx, pod->mac) < 0 || restore_service(ctx) < 0)) {
        return TC_ACT_SHOT;
    }
    record_verdict(ctx, EBPF_DELIVER, 0, to.ifindex, ctx->pkt->tunnel_id);
    return pod->flags & EBPF_POD_QUEUED ? bpf_redirect(to.ifindex, 0)
                                        : hand_over(ctx->skb, to.ifindex);
}

/* Returns the packet to the pod that sent it. */
INLINE int send_back(const struct packet_ctx *ctx, const struct ebpf_pod *pod)
{
    if (set_destination(ctx, pod->mac) < 0) {
        return TC_ACT_SHOT;
    }
    record_verdict(ctx, EBPF_DELIVER, 0, ctx->pkt->port, 0);
    return bpf_redirect(ctx->pkt->port, 0);
}
