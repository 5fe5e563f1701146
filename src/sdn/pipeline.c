/* SPDX-License-Identifier: Apache-2.0 */
/* The flows themselves; docs/pipeline.md explains each table.
 *
 * Registers: see tables.h; those of policy are set under ovs-networkpolicy only. */
#include "sdn/pipeline_internal.h"

#define ETH_ARP 0x0806
#define ETH_IP6 0x86dd
#define ARP_REQUEST 1
#define ARP_ANSWER 2
#define VNID_BITS 24
#define MAC_PREFIX 0x0a58 /* Prefix of mac_from_ip4; the address fills the other 32 bits. */

#define IP4(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

static const struct ip4_prefix multicast = {IP4(224, 0, 0, 0), 4};
static const struct ip4_prefix broadcast = {IP4(255, 255, 255, 255), 32};
static const struct ip4_prefix nobody = {IP4(0, 0, 0, 0), 32};

const char *pipeline_table_name(uint8_t table)
{
    static const char *const names[] = {
        [CLASSIFY] = "classify",
        [FROM_VXLAN] = "from-vxlan",
        [FROM_POD] = "from-pod",
        [SERVICE_ADDRESS] = "service-address",
        [SERVICE_NODE] = "service-node",
        [SERVICE_STATE] = "service-state",
        [SERVICE] = "service",
        [SERVICE_ISOLATION] = "service-isolation",
        [SERVICE_AFFINITY] = "service-affinity",
        [SERVICE_CHOICE] = "service-choice",
        [SERVICE_ENDPOINT] = "service-endpoint",
        [SERVICE_TRANSLATED] = "service-translated",
        [FROM_HOST] = "from-host",
        [TRACK] = "track",
        [STATE] = "state",
        [EGRESS_SUBJECT] = "egress-subject",
        [EGRESS_PEER] = "egress-peer",
        [EGRESS_ADMIN] = "egress-admin",
        [EGRESS_POLICY] = "egress-policy",
        [EGRESS_BASELINE] = "egress-baseline",
        [EGRESS_DENIED] = "egress-denied",
        [ARP] = "arp",
        [ARP_REPLY] = "arp-reply",
        [ROUTE] = "route",
        [EGRESS_FIREWALL] = "egress-firewall",
        [OUTSIDE] = "outside",
        [REMOTE] = "remote",
        [LOCAL] = "local",
        [INGRESS_SUBJECT] = "ingress-subject",
        [INGRESS_PEER] = "ingress-peer",
        [INGRESS_ADMIN] = "ingress-admin",
        [INGRESS_POLICY] = "ingress-policy",
        [INGRESS_BASELINE] = "ingress-baseline",
        [INGRESS_DENIED] = "ingress-denied",
        [ISOLATION] = "isolation",
        [ANSWER] = "answer",
        [DELIVER] = "deliver",
        [TO_ITSELF] = "to-itself",
        [TURN] = "turn",
        [FROM_ITSELF] = "from-itself",
        [HOST] = "host",
    };
    return table < ARRAY_SIZE(names) ? names[table] : NULL;
}

enum model_cause pipeline_cause(uint8_t table, uint64_t cookie)
{
    if (!(cookie & PIPELINE_DROPS)) {
        return MODEL_NOT_DROPPED;
    }
    uint64_t id = cookie & 0xffffffffffffu;
    switch ((cookie & ~PIPELINE_DROPS) >> 48) {
    case PIPELINE_BASE:
        return id < MODEL_N_CAUSES ? (enum model_cause) id : MODEL_NOT_DROPPED;
    case PIPELINE_REMOTE:
        return MODEL_SPOOFED_SOURCE;
    case PIPELINE_POD:
        return table == LOCAL ? MODEL_OWN_ADDRESS : MODEL_SPOOFED_SOURCE;
    case PIPELINE_FIREWALL:
        return MODEL_FIREWALL_DENIED;
    default:
        return MODEL_NOT_DROPPED;
    }
}

uint64_t pipeline_remote_cookie(const struct sdn_remote *r)
{
    return pipeline_cookie(PIPELINE_REMOTE, r->id);
}

static void begin_arp(struct of_builder *b, enum table t, uint16_t priority, uint64_t cookie)
{
    of_begin(b, (uint8_t) t, priority, cookie);
    of_match_eth_type(b, ETH_ARP);
}

static bool has_policy(const struct sdn_network *n)
{
    return n->plugin == SDN_NETWORKPOLICY;
}

/* ---- base ---- */

static void base_begin(struct of_builder *b, enum table t, uint16_t priority)
{
    of_begin(b, (uint8_t) t, priority, PIPELINE_BASE_COOKIE);
}

/* Drops packets that match no other flow of the table. */
static void base_drop_rest(enum table t, enum model_cause cause, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, t, 0);
    pipeline_end_drop(&b, cause, out);
}

/* IP packets to 'dst' go on in 'next'. */
static void base_ip_goto(enum table t, uint16_t priority, struct ip4_prefix dst, enum table next,
                         struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, t, priority, PIPELINE_BASE_COOKIE);
    of_match_ip_dst(&b, dst);
    pipeline_end_goto(&b, next, out);
}

static void base_drop_group(struct ip4_prefix dst, struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, CLASSIFY, 400, PIPELINE_BASE_COOKIE);
    of_match_ip_dst(&b, dst);
    pipeline_end_drop(&b, MODEL_MULTICAST, out);
}

static void base_classify(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, CLASSIFY, 500);
    of_match_vlan_tagged(&b);
    pipeline_end_drop(&b, MODEL_VLAN_TAGGED, out);
    base_begin(&b, CLASSIFY, 400);
    of_match_eth_type(&b, ETH_IP6);
    pipeline_end_drop(&b, MODEL_NOT_IP, out);
    base_drop_group(multicast, out);
    base_drop_group(broadcast, out);
    /* The switch reports an invalid header like this, too. */
    pipeline_begin_ip(&b, CLASSIFY, 400, PIPELINE_BASE_COOKIE);
    of_match_ip_src(&b, nobody);
    of_match_ip_dst(&b, nobody);
    pipeline_end_drop(&b, MODEL_NOT_IP, out);

    /* Only packets for this node are accepted from the tunnel, hence none is sent back into it. */
    pipeline_begin_ip(&b, CLASSIFY, 300, PIPELINE_BASE_COOKIE);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    of_match_ip_dst(&b, n->local);
    pipeline_end_goto(&b, FROM_VXLAN, out);
    begin_arp(&b, CLASSIFY, 300, PIPELINE_BASE_COOKIE);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    of_match_arp_tpa(&b, n->local);
    pipeline_end_goto(&b, FROM_VXLAN, out);
    pipeline_begin_ip(&b, CLASSIFY, 250, PIPELINE_BASE_COOKIE);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    pipeline_end_drop(&b, MODEL_NOT_FOR_THIS_NODE, out);
    begin_arp(&b, CLASSIFY, 250, PIPELINE_BASE_COOKIE);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    pipeline_end_drop(&b, MODEL_NOT_FOR_THIS_NODE, out);
    base_begin(&b, CLASSIFY, 200);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    pipeline_end_drop(&b, MODEL_NOT_IP, out);

    base_begin(&b, CLASSIFY, 200);
    of_match_in_port(&b, PIPELINE_PORT_TUN);
    pipeline_end_goto(&b, FROM_HOST, out);

    pipeline_begin_ip(&b, CLASSIFY, 100, PIPELINE_BASE_COOKIE);
    pipeline_end_goto(&b, FROM_POD, out);
    begin_arp(&b, CLASSIFY, 100, PIPELINE_BASE_COOKIE);
    pipeline_end_goto(&b, FROM_POD, out);
    base_drop_rest(CLASSIFY, MODEL_NOT_IP, out);
}

static void base_from_host(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    /* Linux requests with the source address of the waiting packet: the source is not checked,
     * and the reply goes to the host alone. */
    begin_arp(&b, FROM_HOST, 400, PIPELINE_BASE_COOKIE);
    pipeline_end_goto(&b, ARP, out);
    pipeline_begin_ip(&b, FROM_HOST, 300, PIPELINE_BASE_COOKIE);
    of_match_ip_src(&b, pipeline_address(sdn_gateway(n)));
    pipeline_end_goto(&b, pipeline_checked(n), out);
    pipeline_begin_ip(&b, FROM_HOST, 250, PIPELINE_BASE_COOKIE);
    of_match_ip_src(&b, n->local);
    pipeline_end_drop(&b, MODEL_SPOOFED_SOURCE, out);
    for (size_t i = 0; i < n->n_cluster; i++) {
        pipeline_begin_ip(&b, FROM_HOST, 200, PIPELINE_BASE_COOKIE);
        of_match_ip_src(&b, n->cluster[i]);
        pipeline_end_drop(&b, MODEL_SPOOFED_SOURCE, out);
    }
    /* From outside, after the reverse NAT: to local pods only. */
    base_ip_goto(FROM_HOST, 100, n->local, has_policy(n) ? TRACK : LOCAL, out);
    pipeline_begin_ip(&b, FROM_HOST, 50, PIPELINE_BASE_COOKIE);
    pipeline_end_drop(&b, MODEL_NOT_FOR_THIS_NODE, out);
    base_drop_rest(FROM_HOST, MODEL_NOT_IP, out);
}

static void arp_reply(struct of_builder *b)
{
    of_act_move(b, OF_ARP_SHA, 0, OF_ETH_DST, 0, 48); /* RFC 826: not to the frame's sender. */
    of_act_load(b, OF_ETH_SRC, 32, 16, MAC_PREFIX);
    of_act_move(b, OF_ARP_TPA, 0, OF_ETH_SRC, 0, 32);
    of_act_set_arp_op(b, ARP_ANSWER);
    of_act_move(b, OF_ARP_SHA, 0, OF_ARP_THA, 0, 48);
    of_act_load(b, OF_ARP_SHA, 32, 16, MAC_PREFIX);
    of_act_move(b, OF_ARP_TPA, 0, OF_ARP_SHA, 0, 32);
    of_act_move(b, OF_ARP_TPA, 0, OF_REG3, 0, 32);
    of_act_move(b, OF_ARP_SPA, 0, OF_ARP_TPA, 0, 32);
    of_act_move(b, OF_REG3, 0, OF_ARP_SPA, 0, 32);
    of_act_output(b, OF_PORT_IN_PORT);
}

static void base_arp(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    begin_arp(&b, ARP, 300, PIPELINE_BASE_COOKIE);
    of_match_arp_op(&b, ARP_REQUEST);
    of_match_arp_tpa(&b, pipeline_address(sdn_gateway(n)));
    pipeline_end_goto(&b, ARP_REPLY, out);
    /* An absent pod must get no reply: only the flow of an existing pod (200) answers. */
    begin_arp(&b, ARP, 150, PIPELINE_BASE_COOKIE);
    of_match_arp_op(&b, ARP_REQUEST);
    of_match_arp_tpa(&b, n->local);
    pipeline_end_drop(&b, MODEL_NO_SUCH_POD, out);
    for (size_t i = 0; i < n->n_cluster; i++) {
        begin_arp(&b, ARP, 100, PIPELINE_BASE_COOKIE);
        of_match_arp_op(&b, ARP_REQUEST);
        of_match_arp_tpa(&b, n->cluster[i]);
        pipeline_end_goto(&b, ARP_REPLY, out);
    }
    begin_arp(&b, ARP, 50, PIPELINE_BASE_COOKIE);
    of_match_arp_op(&b, ARP_REQUEST);
    pipeline_end_drop(&b, MODEL_ARP_OFF_NETWORK, out);
    base_drop_rest(ARP, MODEL_ARP_NOT_ASKED, out);

    begin_arp(&b, ARP_REPLY, 200, PIPELINE_BASE_COOKIE);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    of_act_move(&b, OF_TUN_SRC, 0, OF_TUN_DST, 0, 32);
    arp_reply(&b);
    of_end_into(&b, out);
    begin_arp(&b, ARP_REPLY, 100, PIPELINE_BASE_COOKIE);
    arp_reply(&b);
    of_end_into(&b, out);
}

/* Destinations that do not exist, independent of the pods of the cluster: a pod gets an error
 * (it reveals nothing about other pods), the host does not. */
static void base_refuse(const struct sdn_network *n, struct of_builder *b, struct of_builder *host,
                        enum model_cause cause, struct of_flow_list *out)
{
    of_match_in_port(host, PIPELINE_PORT_TUN);
    pipeline_end_drop(host, cause, out);
    pipeline_end_refuse(n, b, cause, out);
}

/* ---- base: policy ---- */

static void state_is(struct of_builder *b, uint16_t priority, uint32_t value, uint32_t mask)
{
    pipeline_begin_ip(b, STATE, priority, PIPELINE_BASE_COOKIE);
    of_match_ct_state(b, value | OF_CT_TRK, mask | OF_CT_TRK);
}

static void end_state(struct of_builder *b, uint32_t state, struct of_flow_list *out)
{
    of_act_load_reg(b, REG_STATE, state);
    pipeline_end_goto(b, EGRESS_SUBJECT, out);
}

/* The tracker calls an ICMP error related whichever host sends it, as long as its receiver sent
 * the quoted packet. Other nodes and the host judge their own errors; a local pod's are judged
 * here (pod_errors). */
static void base_related(struct of_flow_list *out)
{
    static const uint32_t judged_before[] = {PIPELINE_PORT_VXLAN, PIPELINE_PORT_TUN};
    struct of_builder b;
    for (size_t i = 0; i < ARRAY_SIZE(judged_before); i++) {
        state_is(&b, 200, OF_CT_REL, OF_CT_REL);
        of_match_in_port(&b, judged_before[i]);
        end_state(&b, STATE_REPLY, out);
    }
}

/* Sets the state of a connection's packet for policy. A reply is not judged: it passes as long
 * as the connection does. */
static void base_state(struct of_flow_list *out)
{
    static const uint32_t answers[] = {OF_CT_RPL, OF_CT_REL};
    static const uint16_t ends[] = {OF_TCP_FIN, OF_TCP_RST};
    struct of_builder b;
    pipeline_begin_ip(&b, TRACK, 200, PIPELINE_BASE_COOKIE);
    of_match_ip_proto(&b, IP_SCTP);
    of_act_hash_symmetric(&b, REG_ZONE, CT_SCTP_ZONE_BITS);
    of_act_load(&b, OF_REG7, CT_SCTP_ZONE_BITS, 1, 1);
    of_act_ct(&b, REG_ZONE, STATE);
    of_end_into(&b, out);
    pipeline_begin_ip(&b, TRACK, 100, PIPELINE_BASE_COOKIE);
    of_act_load_reg(&b, REG_ZONE, CT_ZONE);
    of_act_ct(&b, REG_ZONE, STATE);
    of_end_into(&b, out);
    base_drop_rest(TRACK, MODEL_NOT_IP, out);

    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        state_is(&b, 300, answers[i], answers[i]);
        of_match_ct_mark(&b, CT_MARK_DENIED);
        pipeline_end_drop(&b, MODEL_CONNECTION_DENIED, out);
    }
    state_is(&b, 200, OF_CT_RPL, OF_CT_RPL | OF_CT_REL);
    end_state(&b, STATE_REPLY, out);
    base_related(out);
    /* Denied before, so the connection is made again if it is allowed now. */
    state_is(&b, 180, OF_CT_EST, OF_CT_EST);
    of_match_ct_mark(&b, CT_MARK_DENIED);
    end_state(&b, STATE_NEW, out);
    /* Later fragments have no ports, and each follows a first one that was judged. */
    state_is(&b, 160, OF_CT_EST, OF_CT_EST);
    of_match_ip_later_fragment(&b);
    end_state(&b, STATE_REPLY, out);
    /* FIN and RST of an unknown connection begin none; any other segment may, as the tracker of
     * a restarted switch has forgotten existing connections. */
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        state_is(&b, 140, OF_CT_NEW, OF_CT_NEW);
        of_match_ip_proto(&b, IP_TCP);
        of_match_tcp_flags(&b, ends[i]);
        end_state(&b, STATE_ORIGINAL, out);
    }
    state_is(&b, 100, OF_CT_NEW, OF_CT_NEW);
    end_state(&b, STATE_NEW, out);
    base_begin(&b, STATE, 0);
    pipeline_end_goto(&b, EGRESS_SUBJECT, out);
}

static void base_next(enum table t, enum table next, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, t, 0);
    pipeline_end_goto(&b, next, out);
}

/* No policy selects the peer, unless its address has a flow. */
static void base_no_peer(enum table t, enum table next, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, t, 0);
    of_act_load_reg(&b, REG_PEER, 0);
    pipeline_end_goto(&b, next, out);
}

/* The end that denies a packet of an existing connection denies its replies, too. */
static void base_denied(enum table t, enum model_cause cause, struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, t, 100, PIPELINE_BASE_COOKIE);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_EST, OF_CT_TRK | OF_CT_EST | OF_CT_RPL);
    of_match_ct_mark(&b, CT_MARK_ALLOWED);
    of_act_ct_commit(&b, REG_ZONE, CT_MARK_DENIED);
    pipeline_end_drop(&b, cause, out);
    base_drop_rest(t, cause, out);
}

static void base_unjudged(struct of_builder *b, enum table t)
{
    pipeline_begin_ip(b, t, 300, PIPELINE_BASE_COOKIE);
}

/* A pod's ICMP error about a packet that the pod did not receive. It may be about a connection
 * that this node does not know, while the receiver's node does. */
static void base_forged_errors(struct of_flow_list *out)
{
    /* Destination unreachable, source quench, redirect, time exceeded, parameter problem (RFC
     * 792). */
    static const uint8_t errors[] = {3, 4, 5, 11, 12};
    struct of_builder b;
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        pipeline_begin_ip(&b, EGRESS_SUBJECT, 250, PIPELINE_BASE_COOKIE);
        of_match_ip_proto(&b, IP_ICMP);
        of_match_icmp_type(&b, errors[i]);
        pipeline_end_drop(&b, MODEL_FORGED_ERROR, out);
    }
}

static void base_policy(const struct sdn_network *n, struct of_flow_list *out)
{
    const uint32_t own[] = {sdn_gateway(n), n->host_ip};
    struct of_builder b;
    base_state(out);

    base_unjudged(&b, EGRESS_SUBJECT);
    of_match_in_port(&b, PIPELINE_PORT_VXLAN);
    pipeline_end_goto(&b, ROUTE, out);
    base_unjudged(&b, EGRESS_SUBJECT);
    of_match_in_port(&b, PIPELINE_PORT_TUN);
    pipeline_end_goto(&b, ROUTE, out);
    base_unjudged(&b, EGRESS_SUBJECT);
    of_match_reg(&b, REG_STATE, STATE_REPLY);
    pipeline_end_goto(&b, ROUTE, out);
    base_forged_errors(out);
    base_next(EGRESS_SUBJECT, ROUTE, out);
    base_no_peer(EGRESS_PEER, EGRESS_ADMIN, out);
    base_next(EGRESS_ADMIN, EGRESS_POLICY, out);
    base_next(EGRESS_POLICY, EGRESS_BASELINE, out);
    base_next(EGRESS_BASELINE, ROUTE, out);
    base_denied(EGRESS_DENIED, MODEL_EGRESS_DENIED, out);

    for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
        base_unjudged(&b, INGRESS_SUBJECT);
        of_match_in_port(&b, PIPELINE_PORT_TUN);
        of_match_ip_src(&b, pipeline_address(own[i]));
        pipeline_end_goto(&b, ISOLATION, out);
    }
    base_unjudged(&b, INGRESS_SUBJECT);
    of_match_reg(&b, REG_STATE, STATE_REPLY);
    pipeline_end_goto(&b, ISOLATION, out);
    base_next(INGRESS_SUBJECT, ISOLATION, out);
    base_no_peer(INGRESS_PEER, INGRESS_ADMIN, out);
    base_next(INGRESS_ADMIN, INGRESS_POLICY, out);
    base_next(INGRESS_POLICY, INGRESS_BASELINE, out);
    base_next(INGRESS_BASELINE, ISOLATION, out);
    base_denied(INGRESS_DENIED, MODEL_INGRESS_DENIED, out);
}

/* A packet that leaves this node, allowed by all local policies: its connection is committed. */
static void base_commit_route(uint16_t priority, struct ip4_prefix dst, enum table next,
                              struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, ROUTE, priority, PIPELINE_BASE_COOKIE);
    of_match_ip_dst(&b, dst);
    of_match_reg(&b, REG_STATE, STATE_NEW);
    of_act_ct_commit(&b, REG_ZONE, CT_MARK_ALLOWED);
    pipeline_end_goto(&b, next, out);
}

static void base_commit_routes(const struct sdn_network *n, struct of_flow_list *out)
{
    base_commit_route(410, pipeline_address(sdn_gateway(n)), HOST, out);
    for (size_t i = 0; i < n->n_cluster; i++) {
        base_commit_route(110, n->cluster[i], REMOTE, out);
    }
}

/* ---- base: routing and delivery ---- */

static void base_route(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b, host;
    if (has_policy(n)) {
        base_commit_routes(n, out);
    }
    base_ip_goto(ROUTE, 400, pipeline_address(sdn_gateway(n)), HOST, out);
    base_ip_goto(ROUTE, 300, n->local, LOCAL, out);
    if (n->service.len) {
        pipeline_begin_ip(&host, ROUTE, 250, PIPELINE_BASE_COOKIE);
        of_match_ip_dst(&host, n->service);
        pipeline_begin_ip(&b, ROUTE, 200, PIPELINE_BASE_COOKIE);
        of_match_ip_dst(&b, n->service);
        base_refuse(n, &b, &host, MODEL_SERVICE_NOT_AVAILABLE, out);
    }
    for (size_t i = 0; i < n->n_cluster; i++) {
        base_ip_goto(ROUTE, 100, n->cluster[i], REMOTE, out);
    }
    base_begin(&b, ROUTE, 0);
    pipeline_end_goto(&b, EGRESS_FIREWALL, out);

    base_begin(&host, REMOTE, 50);
    base_begin(&b, REMOTE, 0);
    base_refuse(n, &b, &host, MODEL_NO_SUCH_NODE, out);
}

static void base_deliver_global(uint16_t priority, unsigned reg, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, ISOLATION, priority);
    of_match_reg(&b, reg, SDN_VNID_GLOBAL);
    pipeline_end_goto(&b, ANSWER, out);
}

static void base_isolation(const struct sdn_network *n, struct of_flow_list *out)
{
    if (!sdn_plugin_compares_vnids(n->plugin)) {
        struct of_builder b;
        if (has_policy(n)) {
            pipeline_begin_ip(&b, ISOLATION, 400, PIPELINE_BASE_COOKIE);
            of_match_reg(&b, REG_STATE, STATE_NEW);
            of_act_ct_commit(&b, REG_ZONE, CT_MARK_ALLOWED);
            pipeline_end_goto(&b, ANSWER, out);
        }
        base_begin(&b, ISOLATION, 300);
        pipeline_end_goto(&b, ANSWER, out);
    } else {
        base_deliver_global(300, 0, out);
        base_deliver_global(200, 1, out);
    }
    base_drop_rest(ISOLATION, MODEL_VNID_MISMATCH, out);
}

static void base_host(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, HOST, 100);
    of_match_in_port(&b, PIPELINE_PORT_TUN);
    pipeline_end_drop(&b, MODEL_BACK_TO_HOST, out);
    base_begin(&b, HOST, 0);
    of_act_set_eth_dst(&b, mac_from_ip4(sdn_gateway(n)));
    of_act_output(&b, PIPELINE_PORT_TUN);
    of_end_into(&b, out);
}

void pipeline_base(const struct sdn_network *n, struct of_flow_list *out)
{
    base_classify(n, out);
    base_drop_rest(FROM_VXLAN, MODEL_UNKNOWN_VTEP, out);

    struct of_builder b;
    pipeline_begin_ip(&b, FROM_POD, 300, PIPELINE_BASE_COOKIE);
    of_match_ip_proto(&b, IP_UDP);
    of_match_udp_dst(&b, n->vxlan_port);
    pipeline_end_refuse(n, &b, MODEL_FORGED_TUNNEL, out);
    base_drop_rest(FROM_POD, MODEL_UNKNOWN_PORT, out);

    base_from_host(n, out);
    base_arp(n, out);
    if (has_policy(n)) {
        base_policy(n, out);
    } else {
        /* The tracked connections survive the end of the policies. */
        base_begin(&b, STATE, 0);
        pipeline_end_goto(&b, ROUTE, out);
    }
    pipeline_base_services(n, out);
    base_route(n, out);
    pipeline_base_egress(n, out);
    base_drop_rest(LOCAL, MODEL_NO_SUCH_POD, out);
    base_isolation(n, out);
    base_host(n, out);
}

/* ---- objects ---- */

void pipeline_remote(const struct sdn_network *n, const struct sdn_remote *r,
                     struct of_flow_list *out)
{
    if (!r->subnet.len || prefix_overlaps(r->subnet, n->local)) {
        return;
    }
    uint64_t cookie = pipeline_remote_cookie(r);
    struct of_builder b;

    /* A node may send from its own subnet only. */
    pipeline_begin_ip(&b, FROM_VXLAN, 100, cookie);
    of_match_tun_src(&b, r->host_ip);
    of_match_ip_src(&b, r->subnet);
    of_act_move(&b, OF_TUN_ID, 0, OF_REG0, 0, VNID_BITS);
    pipeline_end_goto(&b, pipeline_checked(n), out);

    begin_arp(&b, FROM_VXLAN, 100, cookie);
    of_match_tun_src(&b, r->host_ip);
    of_match_arp_spa(&b, r->subnet);
    pipeline_end_goto(&b, ARP, out);

    /* One host may have two subnets: then the flow of either covers both. */
    of_begin(&b, FROM_VXLAN, 50, cookie);
    of_match_tun_src(&b, r->host_ip);
    pipeline_end_drop(&b, MODEL_SPOOFED_SOURCE, out);

    pipeline_begin_ip(&b, REMOTE, 100, cookie);
    of_match_ip_dst(&b, r->subnet);
    if (r->has_fixed_vnid) {
        of_act_set_tun_id(&b, r->fixed_vnid);
        /* The host may have nothing but a tunnel device, which accepts frames to its own MAC. */
        of_act_load(&b, OF_ETH_DST, 32, 16, MAC_PREFIX);
        of_act_move(&b, OF_IP_DST, 0, OF_ETH_DST, 0, 32);
    } else {
        of_act_move(&b, OF_REG0, 0, OF_TUN_ID, 0, VNID_BITS);
    }
    of_act_set_tun_dst(&b, r->host_ip);
    of_act_output(&b, PIPELINE_PORT_VXLAN);
    of_end_into(&b, out);

    pipeline_node_addresses(cookie, r->host_ip, &r->addresses, out);
}

/* 'way': OF_CT_RPL when the quoted packet had the connection's original direction, 0 when it was
 * a reply. */
static void begin_pod_error(struct of_builder *b, uint32_t ip, uint32_t way)
{
    pipeline_begin_ip(b, STATE, 200, pipeline_pod_cookie(ip));
    of_match_ct_state(b, OF_CT_TRK | OF_CT_REL | way, OF_CT_TRK | OF_CT_REL | OF_CT_RPL);
    of_match_ip_src(b, pipeline_address(ip));
}

/* ICMP errors of the pod about packets that it received. */
static void pod_errors(uint32_t ip, struct of_flow_list *out)
{
    struct of_builder b;
    begin_pod_error(&b, ip, OF_CT_RPL);
    of_match_ct_nw_dst(&b, ip);
    end_state(&b, STATE_REPLY, out);
    begin_pod_error(&b, ip, 0);
    of_match_ct_nw_src(&b, ip);
    end_state(&b, STATE_REPLY, out);
}

void pipeline_pod(const struct sdn_network *n, const struct pipeline_pod *p,
                  struct of_flow_list *out)
{
    uint64_t cookie = pipeline_pod_cookie(p->ip);
    uint32_t vnid = sdn_effective_vnid(n, p->vnid);
    struct of_builder b;

    pipeline_begin_ip(&b, FROM_POD, 100, cookie);
    of_match_in_port(&b, p->ofport);
    of_match_eth_src(&b, p->mac);
    of_match_ip_src(&b, pipeline_address(p->ip));
    of_act_load_reg(&b, 0, vnid);
    pipeline_end_goto(&b, SERVICE_ADDRESS, out);

    begin_arp(&b, FROM_POD, 100, cookie);
    of_match_in_port(&b, p->ofport);
    of_match_eth_src(&b, p->mac);
    of_match_arp_spa(&b, pipeline_address(p->ip));
    of_match_arp_sha(&b, p->mac);
    pipeline_end_goto(&b, ARP, out);

    of_begin(&b, FROM_POD, 50, cookie);
    of_match_in_port(&b, p->ofport);
    pipeline_end_drop(&b, MODEL_SPOOFED_SOURCE, out);

    begin_arp(&b, ARP, 200, cookie);
    of_match_arp_op(&b, ARP_REQUEST);
    of_match_arp_tpa(&b, pipeline_address(p->ip));
    pipeline_end_goto(&b, ARP_REPLY, out);

    /* A packet never leaves by its input port: made explicit here, so that it is counted. */
    pipeline_begin_ip(&b, LOCAL, 200, cookie);
    of_match_in_port(&b, p->ofport);
    of_match_ip_dst(&b, pipeline_address(p->ip));
    pipeline_end_drop(&b, MODEL_OWN_ADDRESS, out);

    pipeline_begin_ip(&b, LOCAL, 100, cookie);
    of_match_ip_dst(&b, pipeline_address(p->ip));
    of_act_set_eth_dst(&b, p->mac);
    of_act_load_reg(&b, 1, vnid);
    of_act_load_reg(&b, 2, p->ofport);
    pipeline_end_goto(&b, has_policy(n) ? INGRESS_SUBJECT : ISOLATION, out);
    pipeline_pod_services(p, out);
    if (has_policy(n)) {
        pod_errors(p->ip, out);
    }

    /* On other nodes the project's VNID may be the old or the new one. */
    if (p->has_also_vnid && p->also_vnid != SDN_VNID_NOBODY &&
        sdn_plugin_compares_vnids(n->plugin)) {
        pipeline_begin_ip(&b, ISOLATION, 150, cookie);
        of_match_ip_dst(&b, pipeline_address(p->ip));
        if (p->also_vnid != SDN_VNID_GLOBAL) {
            of_match_reg(&b, 0, p->also_vnid);
        }
        pipeline_end_goto(&b, ANSWER, out);
    }
}

void pipeline_vnid(const struct sdn_network *n, uint32_t vnid, struct of_flow_list *out)
{
    vnid = sdn_effective_vnid(n, vnid);
    if (vnid == SDN_VNID_GLOBAL || vnid == SDN_VNID_NOBODY ||
        !sdn_plugin_compares_vnids(n->plugin)) {
        return;
    }
    struct of_builder b;
    of_begin(&b, ISOLATION, 100, pipeline_vnid_cookie(vnid));
    of_match_reg(&b, 0, vnid);
    of_match_reg(&b, 1, vnid);
    pipeline_end_goto(&b, ANSWER, out);
    pipeline_vnid_services(vnid, out);
}
