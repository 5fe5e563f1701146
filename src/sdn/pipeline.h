/* SPDX-License-Identifier: Apache-2.0 */
/* The flow pipeline of br0: from desired network and pods to OpenFlow flows.  Pure.
 *
 * docs/pipeline.md has one line a table.  Flows are made in groups, each with one cookie, so that a change
 * of one object changes one group: the base, a remote node, a pod, a VNID in use.  The datapath keeps the
 * union and sends differences. */
#pragma once

#include "sdn/model.h"
#include "wire/openflow.h"

#define PIPELINE_PORT_VXLAN 1
#define PIPELINE_PORT_TUN 2

struct pipeline_pod {
    uint32_t ofport; /* Of the veth in br0. */
    uint32_t ip;
    struct mac mac; /* mac_from_ip4(ip): ARP is answered with that. */
    uint32_t vnid;  /* Of the project; the pipeline applies sdn_effective_vnid. */
    bool has_also;  /* The project moves: 'also_vnid' is taken, too. */
    uint32_t also_vnid;
};

/* Cookie of a group: kind in the upper 16 bits, identity below, so that a dump says whose flow it is. */
enum pipeline_kind {
    PIPELINE_BASE = 1,
    PIPELINE_REMOTE = 2,
    PIPELINE_POD = 3,
    PIPELINE_VNID = 4,
    /* Of policy.h, where policy_describe tells what each is of. */
    PIPELINE_POLICY_ADDRESS = 5,
    PIPELINE_POLICY_CLASS = 6,
    PIPELINE_POLICY_RULE = 7,
    PIPELINE_POLICY_PORT = 8,
    PIPELINE_POLICY_BLOCK = 9,
};
static inline uint64_t pipeline_cookie(enum pipeline_kind kind, uint64_t id)
{
    return (uint64_t) kind << 48 | (id & 0xffffffffffffu);
}
uint64_t pipeline_remote_cookie(const struct sdn_remote *r); /* From r->id. */
static inline uint64_t pipeline_pod_cookie(uint32_t ip)
{
    return pipeline_cookie(PIPELINE_POD, ip);
}
static inline uint64_t pipeline_vnid_cookie(uint32_t vnid)
{
    return pipeline_cookie(PIPELINE_VNID, vnid);
}
#define PIPELINE_BASE_COOKIE ((uint64_t) PIPELINE_BASE << 48)

/* A flow that drops says so in its cookie, whatever else it is; the base's have their cause as identity. */
#define PIPELINE_DROPS ((uint64_t) 1 << 63)
/* The cookie that names the group of the flow with 'cookie'. */
static inline uint64_t pipeline_group(uint64_t cookie)
{
    cookie &= ~PIPELINE_DROPS;
    return cookie >> 48 == PIPELINE_BASE ? PIPELINE_BASE_COOKIE : cookie;
}
/* Why the flow of this table and cookie drops; MODEL_NOT_DROPPED: it does not, or is none of ours. */
enum model_cause pipeline_cause(uint8_t table, uint64_t cookie);

/* How much of a packet that is refused reaches the agent: enough for the longest IP header and what an
 * ICMP error must quote behind it. */
#define PIPELINE_REFUSED_BYTES 128

/* Each appends the flows of one group to 'out'; no flow of one group has the key of another's.  'n' has a
 * local subnet, inside one of its cluster networks. */
void pipeline_base(const struct sdn_network *n, struct of_flow_list *out);
/* Four flows; none when 'r' has no subnet yet, or claims one that overlaps this node's. */
void pipeline_remote(const struct sdn_network *n, const struct sdn_remote *r,
                     struct of_flow_list *out);
/* Six flows, and one more while the pod's project moves to another VNID. */
void pipeline_pod(const struct sdn_network *n, const struct pipeline_pod *p,
                  struct of_flow_list *out);
/* One flow, for each effective VNID that a local pod has (none for 0 and SDN_VNID_NOBODY, none where VNIDs are
 * not compared). */
void pipeline_vnid(const struct sdn_network *n, uint32_t vnid, struct of_flow_list *out);

/* Name of a table, as docs/pipeline.md has it: "isolation"; NULL: no such table. */
const char *pipeline_table_name(uint8_t table);
