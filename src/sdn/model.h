/* SPDX-License-Identifier: Apache-2.0 */
/* What may reach what: the verdict of a node on one packet, in plain C.  Pure.
 *
 * This is the second opinion on src/sdn/pipeline.c.  It is written from the prose of docs/pipeline.md and
 * shares nothing with the flows but the description of the network, so that their agreement over random
 * clusters (tests/unit/sdn/test_model_trace.c) means something.  Keep it so: change it with the prose, not
 * with the flows.  It also names the cause of every drop. */
#pragma once

#include "sdn/model_policy.h"
#include "sdn/network.h"
#include "sdn/service.h"

struct model_pod {
    uint32_t port; /* Which is the pod's alone. */
    uint32_t ip;
    struct mac mac;
    uint32_t vnid; /* Of the project, whatever the plug-in. */
    bool has_also; /* The project moves: packets of 'also_vnid' are for it, too. */
    uint32_t also_vnid;
};

/* The caller owns the network and the arrays; they must outlive the struct. */
struct model_node {
    const struct sdn_network *net;
    const struct model_pod *pods;
    size_t n_pods;
    const struct model_policies
        *policies; /* Under ovs-networkpolicy; its endpoints include 'pods'. */
    const struct sdn_project_service *services;
    size_t n_services;
    const char *name; /* Of the node, for traffic policies; NULL: none is asked. */
};

enum model_entry {
    MODEL_FROM_PORT,   /* A port other than the two below, whether a pod has it or not. */
    MODEL_FROM_TUNNEL, /* vxlan0 */
    MODEL_FROM_HOST,   /* tun0 */
};

/* What the connection tracker knows of a packet, under ovs-networkpolicy. */
enum model_connection {
    MODEL_NEW,
    MODEL_ONWARD,  /* Of a connection that exists, in its own direction. */
    MODEL_REPLY,   /* The other way. */
    MODEL_RELATED, /* An ICMP error about one. */
    MODEL_INVALID,
};

#define MODEL_ETH_IP4 0x0800
#define MODEL_ETH_ARP 0x0806
#define MODEL_PROTO_UDP 17
#define MODEL_ARP_REQUEST 1

struct model_packet {
    enum model_entry entry;
    uint32_t port;                 /* MODEL_FROM_PORT */
    uint32_t outer_src, tunnel_id; /* MODEL_FROM_TUNNEL */
    struct mac eth_src, eth_dst;
    bool has_vlan;     /* Any tag, also of VLAN 0. */
    uint16_t vlan_tci; /* The tag's priority and VLAN. */
    uint16_t eth_type; /* Behind the tag, if there is one. */
    union {
        struct { /* MODEL_ETH_IP4 */
            uint32_t src, dst;
            uint8_t proto;
            uint16_t src_port, dst_port; /* Of the protocols that have ports. */
            enum model_connection connection;
            bool denied;         /* A packet of the connection was denied after it was made. */
            bool later_fragment; /* Not the beginning of its packet: ports are 0. */
            bool translated;     /* To a service before; the destination is an endpoint of it. */
            bool icmp_error;     /* RFC 792: about a packet of its receiver, which it quotes. */
            uint32_t quoted_dst; /* MODEL_RELATED: where the quoted packet was sent. */
        } ip;
        struct { /* MODEL_ETH_ARP */
            uint16_t op;
            uint32_t spa, tpa;
            struct mac sha, tha;
        } arp;
    };
};

enum model_action {
    MODEL_DROP,
    MODEL_DELIVER, /* To the pod on 'port'. */
    MODEL_HOST,    /* Out of tun0. */
    MODEL_TUNNEL,  /* To 'remote' with 'tunnel_id'. */
    MODEL_ANSWER,  /* ARP, to where the question came from. */
    /* A pod's new connection to a service gets an endpoint of it (model_may_get) for destination; what then becomes of
     * it is that packet's verdict. */
    MODEL_TRANSLATE,
};

/* Why a packet is dropped; in the order in which they are found. */
enum model_cause {
    MODEL_NOT_DROPPED,
    MODEL_VLAN_TAGGED,
    MODEL_NOT_IP,            /* Neither IPv4 nor ARP. */
    MODEL_MULTICAST,         /* To a group, or to 255.255.255.255. */
    MODEL_NOT_FOR_THIS_NODE, /* From the tunnel or the host, to what is not the node's to deliver. */
    MODEL_FORGED_TUNNEL,     /* A pod writes to the VXLAN port. */
    MODEL_UNKNOWN_PORT,      /* The port is no pod's. */
    MODEL_UNKNOWN_VTEP,      /* The outer source is no node's. */
    MODEL_SPOOFED_SOURCE,
    MODEL_ARP_NOT_ASKED,   /* ARP that is not a request: nobody here asks. */
    MODEL_ARP_OFF_NETWORK, /* For an address outside the cluster networks. */
    MODEL_SERVICE_NOT_AVAILABLE,
    MODEL_NO_SUCH_NODE, /* No node has the destination's subnet. */
    MODEL_NO_SUCH_POD,  /* The destination is this node's and nobody has it. */
    MODEL_OWN_ADDRESS,  /* A pod's packet to itself. */
    MODEL_VNID_MISMATCH,
    MODEL_BACK_TO_HOST,      /* The host's packet for the host. */
    MODEL_CONNECTION_DENIED, /* A reply, while policy denies what it answers. */
    MODEL_EGRESS_DENIED,     /* By the policies of the sender. */
    MODEL_INGRESS_DENIED,    /* By the policies of the receiver. */
    MODEL_SERVICE_INVALID,   /* To a service, and no packet that a connection may have. */
    MODEL_SERVICE_FOREIGN,   /* Of a project that the sender's may not reach. */
    MODEL_SERVICE_NO_ENDPOINTS,
    MODEL_SERVICE_IDLE, /* It has none, and waits for pods; the agent keeps the packet. */
    MODEL_FORGED_ERROR, /* A pod's ICMP error about a packet that the pod did not receive. */
    MODEL_N_CAUSES,
};

struct model_verdict {
    enum model_action action;
    enum model_cause cause; /* MODEL_NOT_DROPPED unless dropped. */
    bool refused;       /* Dropped, and an honest pod hears of it (ICMP), or the agent keeps it. */
    uint32_t port;      /* MODEL_DELIVER, and MODEL_ANSWER of a pod's question. */
    uint32_t remote;    /* Outer destination of MODEL_TUNNEL, and of MODEL_ANSWER by the tunnel. */
    uint32_t tunnel_id; /* Likewise. */
    struct mac eth_dst; /* With which the packet leaves; as it came when it goes by the tunnel. */
    /* MODEL_ANSWER: this address ... is to be had at this one. */
    uint32_t answer_ip;
    struct mac answer_mac;
    bool
        to_itself; /* MODEL_DELIVER: by a service, as if from the gateway's link and a source that is nobody's. */
    /* MODEL_TRANSLATE, and drops by a service. */
    const struct sdn_project_service *service;
    const struct sdn_service_port *service_port;
    bool any_node; /* Its endpoints of all nodes are meant. */
};

/* 'n->net' has a local subnet, inside one of its cluster networks. */
struct model_verdict model_judge(const struct model_node *n, const struct model_packet *p);

/* Whether the address and port can be what MODEL_TRANSLATE makes the destination. */
bool model_may_get(const struct model_node *n, const struct model_verdict *v, uint32_t ip,
                   uint16_t port);
/* How many of them there are. */
size_t model_endpoints(const struct model_node *n, const struct model_verdict *v);
/* Whether the packet of a pod is looked up among the connections to services. */
bool model_asks_services(const struct model_node *n, const struct model_packet *p);

/* "vnid-mismatch"; "" for MODEL_NOT_DROPPED. */
const char *model_cause_name(enum model_cause c);
