/* SPDX-License-Identifier: Apache-2.0 */
/* The flow pipeline of br0: from desired network and pods to OpenFlow flows.  Pure.
 *
 * docs/pipeline.md has one line a table.  Flows are made in groups, each with one cookie, so that a change
 * of one object changes one group: the base, a remote node, a pod, a VNID in use.  The datapath keeps the
 * union and sends differences. */
#pragma once

#include "sdn/model.h"
#include "sdn/service.h"
#include "wire/openflow.h"

#define PIPELINE_PORT_VXLAN 1
#define PIPELINE_PORT_TUN 2
/* For packets that the agent sends: where all begin, and where a pod gets an answer, with its port in a register. */
#define PIPELINE_TABLE_FIRST 0
#define PIPELINE_TABLE_ANSWER 85
#define PIPELINE_REG_DST_PORT 2
/* Of the connection tracker: connections of pods here to services. */
#define PIPELINE_SERVICE_ZONE 4787

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
    /* Of service_flows.h. */
    PIPELINE_SERVICE = 10,
    PIPELINE_SERVICE_ADDRESS = 11,
    PIPELINE_SERVICE_ENDPOINT = 12,
    PIPELINE_SERVICE_SPREAD = 13,
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
/* Of the class of subjects of a direction (enum policy_direction). */
static inline uint64_t pipeline_policy_class_cookie(unsigned direction, uint32_t id)
{
    return pipeline_cookie(PIPELINE_POLICY_CLASS, (uint64_t) (2 * direction) << 32 | id);
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
/* Four flows, and one for each further address; none when 'r' has no subnet yet, or claims one that overlaps this node's. */
void pipeline_remote(const struct sdn_network *n, const struct sdn_remote *r,
                     struct of_flow_list *out);
/* Six flows, and one more while the pod's project moves to another VNID. */
void pipeline_pod(const struct sdn_network *n, const struct pipeline_pod *p,
                  struct of_flow_list *out);
/* One flow, for each effective VNID that a local pod has (none for 0 and SDN_VNID_NOBODY, none where VNIDs are
 * not compared). */
void pipeline_vnid(const struct sdn_network *n, uint32_t vnid, struct of_flow_list *out);

/* ---- services, in pipeline_services.c ---- */

/* More endpoints of one port than this are not used on one node. */
#define PIPELINE_MAX_ENDPOINTS 4096

uint64_t pipeline_service_cookie(const char *ns, const char *name); /* From a hash of both. */
/* One service with a clusterIP, of a project with these VNIDs: a flow for the clusterIP and two for each other address of
 * each port, one for each endpoint of each port (two with session affinity), and one while the project moves.  Of host
 * ports (host_ports.h) two for each.  'node': whose name the traffic policies mean. */
void pipeline_service(const struct sdn_network *n, const struct sdn_service *s,
                      const struct sdn_vnids *v, const char *node, struct of_flow_list *out);
/* One flow: some service has this address, other than its clusterIP. */
static inline uint64_t pipeline_service_address_cookie(uint32_t ip)
{
    return pipeline_cookie(PIPELINE_SERVICE_ADDRESS, ip);
}
void pipeline_service_address(uint32_t ip, struct of_flow_list *out);
/* Whether 'ip' may be such an address: not of a pod, of the service network or of a group. */
bool pipeline_is_external(const struct sdn_network *n, uint32_t ip);
/* Whether that may be an endpoint: not at the tunnels' port, for what NAT makes of it other nodes would trust, and with
 * the address of a single host. */
bool pipeline_may_serve(const struct sdn_network *n, uint8_t proto, const struct sdn_backend *b);
/* Answers of an endpoint; a flow for each protocol. */
static inline uint64_t pipeline_service_endpoint_cookie(uint32_t ip, uint16_t port)
{
    return pipeline_cookie(PIPELINE_SERVICE_ENDPOINT, (uint64_t) ip << 16 | port);
}
void pipeline_service_endpoint(uint32_t ip, uint16_t port, bool tcp, bool udp,
                               struct of_flow_list *out);
/* How new connections are spread over 'endpoints' of them, from 2 on. */
static inline uint64_t pipeline_service_spread_cookie(uint8_t proto, uint32_t endpoints)
{
    return pipeline_cookie(PIPELINE_SERVICE_SPREAD, (uint64_t) proto << 32 | endpoints);
}
void pipeline_service_spread(uint8_t proto, uint32_t endpoints, struct of_flow_list *out);
/* Flows that the switch made itself, and those that ended but for the connections that still need them: they expire. */
bool pipeline_expires(const struct of_flow *f);
/* How long a flow of this cookie stays after nobody wants it, for such connections; 0: not at all. */
uint16_t pipeline_linger_s(uint64_t cookie);

/* Name of a table, as docs/pipeline.md has it: "isolation"; NULL: no such table. */
const char *pipeline_table_name(uint8_t table);
