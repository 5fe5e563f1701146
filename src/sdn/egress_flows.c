/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic of pods to the outside: table 52, the egress firewalls of the projects, and table 55,
 * from which it leaves for the host. */
#include "sdn/pipeline_internal.h"

#define DNS_PORT 53
#define PRIORITY_DNS 65000
/* The priority of a block with the prefix length 0; longer prefixes come first. */
#define PRIORITY_BLOCK 100

static void begin_dns(struct of_builder *b, const struct sdn_network *n, uint8_t proto)
{
    pipeline_begin_ip(b, EGRESS_FIREWALL, PRIORITY_DNS, PIPELINE_BASE_COOKIE);
    of_match_ip_proto(b, proto);
    of_match_ip_dst(b, pipeline_address(n->host_ip));
    of_match_l4_dst(b, proto, DNS_PORT, UINT16_MAX);
}

static void begin_metadata(struct of_builder *b, uint16_t priority)
{
    pipeline_begin_ip(b, ROUTE, priority, PIPELINE_BASE_COOKIE);
    of_match_ip_dst(b, pipeline_address(SDN_METADATA_IP));
}

/* Before the egress firewalls. */
static void base_metadata(const struct sdn_network *n, struct of_flow_list *out)
{
    static const uint8_t protocols[] = {IP_TCP, IP_UDP};
    struct of_builder b;
    begin_metadata(&b, 40);
    of_match_in_port(&b, PIPELINE_PORT_TUN);
    pipeline_end_goto(&b, EGRESS_FIREWALL, out);
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        begin_metadata(&b, 30);
        of_match_ip_proto(&b, protocols[i]);
        of_match_l4_dst(&b, protocols[i], DNS_PORT, UINT16_MAX);
        pipeline_end_goto(&b, EGRESS_FIREWALL, out);
    }
    begin_metadata(&b, 20);
    pipeline_end_refuse(n, &b, MODEL_METADATA, out);
}

void pipeline_base_egress(const struct sdn_network *n, struct of_flow_list *out)
{
    static const uint8_t protocols[] = {IP_TCP, IP_UDP};
    struct of_builder b;
    if (n->block_metadata) {
        base_metadata(n, out);
    }
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        begin_dns(&b, n, protocols[i]);
        pipeline_end_goto(&b, OUTSIDE, out);
    }
    of_begin(&b, EGRESS_FIREWALL, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_goto(&b, OUTSIDE, out);

    if (n->plugin == SDN_NETWORKPOLICY) {
        /* Allowed by all local policies: its connection is committed. */
        pipeline_begin_ip(&b, OUTSIDE, 10, PIPELINE_BASE_COOKIE);
        of_match_reg(&b, REG_STATE, STATE_NEW);
        of_act_ct_commit(&b, REG_ZONE, CT_MARK_ALLOWED);
        pipeline_end_goto(&b, HOST, out);
    }
    of_begin(&b, OUTSIDE, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_goto(&b, HOST, out);
}

void pipeline_firewall(uint32_t vnid, const struct firewall_block *blocks, size_t n_blocks,
                       struct of_flow_list *out)
{
    struct of_builder b;
    for (size_t i = 0; i < n_blocks; i++) {
        pipeline_begin_ip(&b, EGRESS_FIREWALL, PRIORITY_BLOCK + blocks[i].to.len,
                          pipeline_firewall_cookie(vnid));
        of_match_reg(&b, REG_SRC_VNID, vnid);
        of_match_ip_dst(&b, blocks[i].to);
        if (blocks[i].allow) {
            pipeline_end_goto(&b, OUTSIDE, out);
        } else {
            pipeline_end_drop(&b, MODEL_FIREWALL_DENIED, out);
        }
    }
}
