/* SPDX-License-Identifier: Apache-2.0 */
/* The model: the verdict of a node on one packet, in plain C. Pure.
 *
 * This is the second opinion on src/sdn/pipeline.c. It is written from the prose of
 * docs/pipeline.md and shares nothing with the flows but the description of the network, so that
 * their agreement over random clusters (tests/unit/sdn/test_model_trace.c) means something. Keep
 * it so: change it with the prose, not with the flows. It also names the cause of every drop. */
#pragma once

#include "sdn/firewall.h"
#include "sdn/model_policy.h"
#include "sdn/network.h"
#include "sdn/service.h"

struct model_pod {
    uint32_t port; /* No other pod has this port. */
    uint32_t ip;
    struct mac mac;
    uint32_t vnid; /* VNID of the project, whatever the plug-in. */
    bool
        has_also_vnid; /* While the project moves, packets with 'also_vnid' are accepted as well. */
    uint32_t also_vnid;
};

/* The egress firewall of the pods with a VNID. */
struct model_firewall {
    uint32_t vnid;
    const struct firewall_rule *rules;
    size_t n_rules;
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
    const struct model_firewall *firewalls; /* At most one for each VNID. */
    size_t n_firewalls;
    const char *name; /* Name of the node, for traffic policies; NULL: they are ignored. */
};

enum model_entry {
    MODEL_FROM_PORT,   /* A port other than the two below, with or without a pod. */
    MODEL_FROM_TUNNEL, /* vxlan0 */
    MODEL_FROM_HOST,   /* tun0 */
};

/* State of a packet in the connection tracker, under ovs-networkpolicy. */
enum model_connection {
    MODEL_NEW,
    MODEL_ORIGINAL, /* Part of an existing connection, in its original direction. */
    MODEL_REPLY,    /* The other way. */
    MODEL_RELATED,  /* An ICMP error about an existing connection. */
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
    bool has_vlan;     /* Any tag, including VLAN 0. */
    uint16_t vlan_tci; /* The tag's priority and VLAN. */
    uint16_t eth_type; /* The inner type when there is a tag. */
    union {
        struct { /* MODEL_ETH_IP4 */
            uint32_t src, dst;
            uint8_t proto;
            uint16_t src_port, dst_port; /* For protocols with ports. */
            enum model_connection connection;
            /* A packet of the connection was denied after it was established. */
            bool denied;
            bool later_fragment; /* Not the first fragment: ports are 0. */
            /* Translated by a service before; the destination is an endpoint of the service. */
            bool translated;
            /* An error, which quotes a packet that its receiver sent (RFC 792). */
            bool icmp_error;
            uint32_t quoted_dst; /* MODEL_RELATED: destination of the quoted packet. */
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
    MODEL_DELIVER, /* Delivered to the pod on 'port'. */
    MODEL_HOST,    /* Out of tun0. */
    MODEL_TUNNEL,  /* Sent to 'remote' with 'tunnel_id'. */
    MODEL_ANSWER,  /* An ARP reply, to the origin of the request. */
    /* A pod's new connection to a service gets one of its endpoints (model_may_get) as
     * destination; the translated packet has a verdict of its own. */
    MODEL_TRANSLATE,
};

/* Causes of drops, in the order of the checks. */
enum model_cause {
    MODEL_NOT_DROPPED,
    MODEL_VLAN_TAGGED,
    MODEL_NOT_IP,    /* Neither IPv4 nor ARP. */
    MODEL_MULTICAST, /* To a multicast group, or to 255.255.255.255. */
    /* From the tunnel or the host, to an address that this node does not serve. */
    MODEL_NOT_FOR_THIS_NODE,
    MODEL_FORGED_TUNNEL, /* A pod sends to the VXLAN port. */
    MODEL_UNKNOWN_PORT,  /* The port belongs to no pod. */
    MODEL_UNKNOWN_VTEP,  /* The outer source is not a node. */
    MODEL_SPOOFED_SOURCE,
    MODEL_ARP_NOT_ASKED,   /* ARP that is not a request: this node sends none. */
    MODEL_ARP_OFF_NETWORK, /* ARP for an address outside the cluster networks. */
    MODEL_SERVICE_NOT_AVAILABLE,
    MODEL_NO_SUCH_NODE, /* No node has the destination's subnet. */
    MODEL_NO_SUCH_POD,  /* The destination is in this node's subnet, and no pod has it. */
    MODEL_OWN_ADDRESS,  /* A pod's packet to itself. */
    MODEL_VNID_MISMATCH,
    MODEL_BACK_TO_HOST,      /* The host's packet for the host. */
    MODEL_CONNECTION_DENIED, /* A reply, while policy denies the packets that it answers. */
    MODEL_EGRESS_DENIED,     /* Denied by the policies of the sender. */
    MODEL_INGRESS_DENIED,    /* Denied by the policies of the receiver. */
    MODEL_SERVICE_INVALID,   /* To a service, with a packet that no connection can have. */
    MODEL_SERVICE_FOREIGN,   /* The service's project is not reachable from the sender's. */
    MODEL_SERVICE_NO_ENDPOINTS,
    MODEL_SERVICE_IDLE, /* The service has no endpoints and is idle; the agent keeps the packet. */
    MODEL_FORGED_ERROR, /* A pod's ICMP error about a packet that the pod did not receive. */
    MODEL_METADATA,     /* To SDN_METADATA_IP, which this node blocks. */
    MODEL_FIREWALL_DENIED, /* To the outside, which the project's egress firewall denies. */
    MODEL_N_CAUSES,
};

struct model_verdict {
    enum model_action action;
    enum model_cause cause; /* MODEL_NOT_DROPPED unless dropped. */
    bool refused;           /* Dropped with an ICMP error to the pod, or kept by the agent. */
    uint32_t port;          /* MODEL_DELIVER, and MODEL_ANSWER to a pod's request. */
    uint32_t remote;    /* Outer destination of MODEL_TUNNEL, and of MODEL_ANSWER by the tunnel. */
    uint32_t tunnel_id; /* Likewise. */
    /* Destination address of the frame; unchanged when it goes by the tunnel. */
    struct mac eth_dst;
    /* MODEL_ANSWER: the requested IP address and its hardware address. */
    uint32_t answer_ip;
    struct mac answer_mac;
    bool
        to_itself; /* MODEL_DELIVER: by a service, as if from the gateway's link and a source that is nobody's. */
    /* MODEL_TRANSLATE, and drops by a service. */
    const struct sdn_project_service *service;
    const struct sdn_service_port *service_port;
    bool any_node; /* Endpoints of all nodes may be chosen. */
};

/* 'n->net' has a local subnet, inside one of its cluster networks. */
struct model_verdict model_judge(const struct model_node *n, const struct model_packet *p);

/* Whether MODEL_TRANSLATE may choose the address and port. */
bool model_may_get(const struct model_node *n, const struct model_verdict *v, uint32_t ip,
                   uint16_t port);
/* Number of such endpoints. */
size_t model_endpoints(const struct model_node *n, const struct model_verdict *v);
/* Whether the pod's packet is looked up among the connections to services. */
bool model_asks_services(const struct model_node *n, const struct model_packet *p);

/* "vnid-mismatch"; "" for MODEL_NOT_DROPPED. */
const char *model_cause_name(enum model_cause c);
