/* SPDX-License-Identifier: Apache-2.0 */
/* The flow pipeline of br0: from desired network and pods to OpenFlow flows.  Pure.
 *
 * docs/pipeline.md has one line a table.  Flows are made in groups, each with one cookie, so that a change
 * of one object changes one group: the base, a remote node, a pod, a VNID in use.  The datapath keeps the
 * union and sends differences. */
#pragma once

#include "sdn/network.h"
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

/* Each appends the flows of one group to 'out'; no flow of one group has the key of another's.  'n' has a
 * local subnet, inside one of its cluster networks. */
void pipeline_base(const struct sdn_network *n, struct of_flow_list *out);
/* Three flows; none when 'r' has no subnet yet, or claims one that overlaps this node's. */
void pipeline_remote(const struct sdn_network *n, const struct sdn_remote *r,
                     struct of_flow_list *out);
/* Four flows, and one more while the pod's project moves to another VNID. */
void pipeline_pod(const struct sdn_network *n, const struct pipeline_pod *p,
                  struct of_flow_list *out);
/* One flow, for each effective VNID that a local pod has (none for 0 and SDN_VNID_NOBODY, none where VNIDs are
 * not compared). */
void pipeline_vnid(const struct sdn_network *n, uint32_t vnid, struct of_flow_list *out);

/* Name of a table, as docs/pipeline.md has it: "isolation"; NULL: no such table. */
const char *pipeline_table_name(uint8_t table);
