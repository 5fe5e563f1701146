/* SPDX-License-Identifier: Apache-2.0 */
/* The flow pipeline of br0: from desired network and pods to OpenFlow flows.  Pure.
 *
 * docs/pipeline.md describes each table.  Flows are made in groups, each with one cookie, so
 * that a change of one object changes one group: the base, a remote node, a pod, a VNID in use.
 * The datapath stores the union and sends differences. */
#pragma once

#include "sdn/firewall.h"
#include "sdn/model.h"
#include "sdn/service.h"
#include "wire/openflow.h"

#define PIPELINE_PORT_VXLAN 1
/* Tables for packets that the agent sends: the first table, and the one that delivers to the pod
 * whose port is in a register. */
#define PIPELINE_PORT_TUN 2
#define PIPELINE_TABLE_FIRST 0
#define PIPELINE_TABLE_ANSWER 85
#define PIPELINE_REG_DST_PORT 2
/* Zone of the connection tracker: connections of local pods to services. */
#define PIPELINE_SERVICE_ZONE 4787

struct pipeline_pod {
    uint32_t ofport; /* Port of the veth in br0. */
    uint32_t ip;
    struct mac mac; /* mac_from_ip4(ip), the address in ARP replies. */
    uint32_t vnid;  /* VNID of the project; the pipeline applies sdn_effective_vnid. */
    bool
        has_also_vnid; /* While the project moves, packets with 'also_vnid' are accepted as well. */
    uint32_t also_vnid;
};

/* Cookie of a group: kind in the upper 16 bits, identity below, so that a dump shows the owner
 * of each flow. */
enum pipeline_kind {
    PIPELINE_BASE = 1,
    PIPELINE_REMOTE = 2,
    PIPELINE_POD = 3,
    PIPELINE_VNID = 4,
    /* Groups of policy.h; policy_describe names the object of each. */
    PIPELINE_POLICY_ADDRESS = 5,
    PIPELINE_POLICY_CLASS = 6,
    PIPELINE_POLICY_RULE = 7,
    PIPELINE_POLICY_PORT = 8,
    PIPELINE_POLICY_BLOCK = 9,
    /* Groups of service_flows.h. */
    PIPELINE_SERVICE = 10,
    PIPELINE_SERVICE_ADDRESS = 11,
    PIPELINE_SERVICE_ENDPOINT = 12,
    PIPELINE_SERVICE_SPREAD = 13,
    PIPELINE_FIREWALL = 14,
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
/* Cookie of a class of subjects in a direction (enum policy_direction). */
static inline uint64_t pipeline_policy_class_cookie(unsigned direction, uint32_t id)
{
    return pipeline_cookie(PIPELINE_POLICY_CLASS, (uint64_t) (2 * direction) << 32 | id);
}
/* A flow that drops has this bit in its cookie; the cookies of the base have the cause as
 * identity. */
#define PIPELINE_BASE_COOKIE ((uint64_t) PIPELINE_BASE << 48)
#define PIPELINE_DROPS ((uint64_t) 1 << 63)
/* The cookie that names the group of the flow with 'cookie'. */
static inline uint64_t pipeline_group(uint64_t cookie)
{
    cookie &= ~PIPELINE_DROPS;
    return cookie >> 48 == PIPELINE_BASE ? PIPELINE_BASE_COOKIE : cookie;
}
/* The cause for which the flow of this table and cookie drops; MODEL_NOT_DROPPED: it does not
 * drop, or is not ours. */
enum model_cause pipeline_cause(uint8_t table, uint64_t cookie);

/* Bytes of a refused packet that the agent gets: enough for the longest IP header and the bytes
 * after it that an ICMP error must quote. */
/* Each appends the flows of one group to 'out'; no flow of one group has the key of another's.
 * 'n' has a local subnet, inside one of its cluster networks. */
#define PIPELINE_REFUSED_BYTES 128
void pipeline_base(const struct sdn_network *n, struct of_flow_list *out);
/* Four flows, and one for each further address; none when 'r' has no subnet yet, or claims one
 * that overlaps this node's. */
void pipeline_remote(const struct sdn_network *n, const struct sdn_remote *r,
                     struct of_flow_list *out);
/* Six flows, and one more while the pod's project moves to another VNID. */
void pipeline_pod(const struct sdn_network *n, const struct pipeline_pod *p,
                  struct of_flow_list *out);
/* One flow, for each effective VNID that a local pod has (none for 0 and SDN_VNID_NOBODY, none
 * where VNIDs are not compared). */
void pipeline_vnid(const struct sdn_network *n, uint32_t vnid, struct of_flow_list *out);

/* ---- traffic to the outside, in egress_flows.c ---- */

static inline uint64_t pipeline_firewall_cookie(uint32_t vnid)
{
    return pipeline_cookie(PIPELINE_FIREWALL, vnid);
}
/* The egress firewall of the pods with this VNID: one flow for each block. */
void pipeline_firewall(uint32_t vnid, const struct firewall_block *blocks, size_t n_blocks,
                       struct of_flow_list *out);

/* ---- services, in pipeline_services.c ---- */

/* More endpoints of one port than this are not used on one node. */
#define PIPELINE_MAX_ENDPOINTS 4096

uint64_t pipeline_service_cookie(const char *ns, const char *name); /* From a hash of both. */
/* One service with a clusterIP, of a project with these VNIDs: a flow for the clusterIP and two
 * for each other address of each port, one for each endpoint of each port (two with session
 * affinity), and one while the project moves. Two flows for each host port (host_ports.h).
 * 'node': this node's name, for traffic policies. */
void pipeline_service(const struct sdn_network *n, const struct sdn_service *s,
                      const struct sdn_vnids *v, const char *node, struct of_flow_list *out);
/* One flow: some service has this address, other than its clusterIP. */
static inline uint64_t pipeline_service_address_cookie(uint32_t ip)
{
    return pipeline_cookie(PIPELINE_SERVICE_ADDRESS, ip);
}
void pipeline_service_address(uint32_t ip, struct of_flow_list *out);
/* Whether 'ip' may be such an address: not one of a pod, of the service network or multicast. */
bool pipeline_is_external(const struct sdn_network *n, uint32_t ip);
/* Whether that may be an endpoint: the address is a single host's, and the port is not the VXLAN
 * port, as NAT would turn such packets into tunnel traffic that other nodes trust. */
bool pipeline_may_serve(const struct sdn_network *n, uint8_t proto, const struct sdn_backend *b);
/* Answers of an endpoint; a flow for each protocol. */
static inline uint64_t pipeline_service_endpoint_cookie(uint32_t ip, uint16_t port)
{
    return pipeline_cookie(PIPELINE_SERVICE_ENDPOINT, (uint64_t) ip << 16 | port);
}
void pipeline_service_endpoint(uint32_t ip, uint16_t port, bool tcp, bool udp,
                               struct of_flow_list *out);
/* Flows that spread new connections over 'endpoints' of them, from 2 on. */
static inline uint64_t pipeline_service_spread_cookie(uint8_t proto, uint32_t endpoints)
{
    return pipeline_cookie(PIPELINE_SERVICE_SPREAD, (uint64_t) proto << 32 | endpoints);
}
void pipeline_service_spread(uint8_t proto, uint32_t endpoints, struct of_flow_list *out);
/* Flows made by the switch itself, and removed flows that stay for existing connections: they
 * expire. */
bool pipeline_expires(const struct of_flow *f);
/* Seconds that a flow with this cookie stays after its removal, for such connections; 0: none. */
uint16_t pipeline_linger_s(uint64_t cookie);

/* Name of a table in docs/pipeline.md: "isolation"; NULL: no such table. */
const char *pipeline_table_name(uint8_t table);
