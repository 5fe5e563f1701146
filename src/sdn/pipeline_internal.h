/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make br0's flows. Internal to src/sdn. */
#pragma once

#include "sdn/pipeline.h"
#include "sdn/tables.h"

#define IP_ICMP 1
#define IP_TCP 6
#define IP_UDP 17
#define IP_SCTP 132

static inline struct ip4_prefix pipeline_address(uint32_t ip)
{
    return (struct ip4_prefix){ip, 32};
}

static inline void pipeline_begin_ip(struct of_builder *b, enum table t, uint16_t priority,
                                     uint64_t cookie)
{
    of_begin(b, (uint8_t) t, priority, cookie);
    of_match_eth_type(b, ETH_IP4);
}

static inline void pipeline_end_goto(struct of_builder *b, enum table t, struct of_flow_list *out)
{
    of_goto(b, (uint8_t) t);
    of_end_into(b, out);
}

/* The packet is dropped, and counted under its cause. */
static inline void pipeline_end_drop(struct of_builder *b, enum model_cause cause,
                                     struct of_flow_list *out)
{
    b->cookie |= PIPELINE_DROPS;
    if (b->cookie >> 48 == (PIPELINE_DROPS >> 48 | PIPELINE_BASE)) {
        b->cookie |= (uint64_t) cause;
    }
    of_end_into(b, out);
}

/* Drops as above, and lets the agent send an ICMP error, if the switch has a meter for it. */
static inline void pipeline_end_refuse(const struct sdn_network *n, struct of_builder *b,
                                       enum model_cause cause, struct of_flow_list *out)
{
    if (n->refusal_meter) {
        of_meter(b, n->refusal_meter);
        of_act_controller(b, PIPELINE_REFUSED_BYTES);
    }
    pipeline_end_drop(b, cause, out);
}

/* The table for IP with a checked source and the final destination: under ovs-networkpolicy it
 * is tracked and judged first. */
static inline enum table pipeline_checked(const struct sdn_network *n)
{
    return n->plugin == SDN_NETWORKPOLICY ? TRACK : ROUTE;
}

/* ---- egress_flows.c ---- */
void pipeline_base_egress(const struct sdn_network *n, struct of_flow_list *out);

/* ---- pipeline_services.c ---- */
void pipeline_base_services(const struct sdn_network *n, struct of_flow_list *out);
/* Packets to the addresses of a node; each flow belongs to the group 'cookie'. */
void pipeline_node_addresses(uint64_t cookie, uint32_t host_ip, const struct sdn_addresses *others,
                             struct of_flow_list *out);
/* Lets local pods with this VNID reach services with it. */
void pipeline_vnid_services(uint32_t vnid, struct of_flow_list *out);
/* Packets that the pod sends to itself by a service. */
void pipeline_pod_services(const struct pipeline_pod *p, struct of_flow_list *out);
