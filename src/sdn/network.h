/* SPDX-License-Identifier: Apache-2.0 */
/* The network as a node must realise it: plain values, no I/O.
 *
 * This is the one desired state from which every datapath works (docs/architecture.md). The
 * agent fills it from ClusterNetwork, HostSubnet and NetNamespace objects and from its attached
 * pods; src/sdn/ decides what may reach what; a datapath encodes it. Values are copied; the code
 * that fills a struct owns its arrays. */
#pragma once

#include "base/ip.h"

/* redhat/openshift-ovs-subnet, -ovs-multitenant, -ovs-networkpolicy; flannel */
enum sdn_plugin { SDN_SUBNET, SDN_MULTITENANT, SDN_NETWORKPOLICY, SDN_FLANNEL };
#define SDN_N_PLUGINS 4

#define SDN_VNID_GLOBAL 0u
/* VNID of a pod whose project has none: it and pods with VNID 0 reach each other; two pods with
 * this VNID do not. */
#define SDN_VNID_NOBODY 1u
#define SDN_VNID_MIN 10u       /* 1-9 are reserved. */
#define SDN_VNID_MAX 0xffffffu /* 24 bits on the wire (RFC 7348). */
#define SDN_MAX_CLUSTER_NETWORKS 16
#define SDN_VXLAN_PORT 4789
#define SDN_VXLAN_OVERHEAD 50 /* Outer Ethernet, IPv4, UDP and VXLAN headers. */
/* The source address that a pod sees when it reaches itself by a service: 169.254.169.4, link-local
 * (RFC 3927); no host has it. */
#define SDN_ITSELF_IP 0xa9fea904u

/* The VNIDs of a project. While it moves from one to another its pods accept both, so that nodes
 * need not change at the same moment (docs/allocation.md). */
struct sdn_vnids {
    uint32_t id; /* VNID of the packets that its pods send. */
    bool moving;
    uint32_t also; /* While the project moves, packets with this VNID are accepted as well. */
};

/* Maximum of a host's addresses beside its VTEP, without duplicates. */
#define SDN_MAX_ADDRESSES 15
struct sdn_addresses {
    uint32_t ip[SDN_MAX_ADDRESSES];
    size_t n;
};
/* False: the address was in the list, or the list is full. */
bool sdn_addresses_add(struct sdn_addresses *a, uint32_t ip);

struct sdn_remote {
    uint32_t host_ip;         /* VTEP. */
    struct ip4_prefix subnet; /* len 0 and addr 0: none assigned yet. */
    bool has_fixed_vnid;      /* pod.network.openshift.io/fixed-vnid-host */
    uint32_t fixed_vnid;
    uint64_t id; /* Hash of the HostSubnet's uid: distinguishes two nodes that swap addresses. */
    struct sdn_addresses addresses; /* Further addresses with its node ports and host ports. */
};

/* The address at which clouds tell a host about itself, its credentials included. */
#define SDN_METADATA_IP 0xa9fea9feu

struct sdn_network {
    enum sdn_plugin plugin;
    struct ip4_prefix cluster[SDN_MAX_CLUSTER_NETWORKS];
    size_t n_cluster;
    struct ip4_prefix service; /* len 0 and addr 0: none. */
    struct ip4_prefix local;   /* This node's subnet; its first address is the gateway. */
    uint32_t host_ip;          /* This node's VTEP. */
    /* Further addresses with this node's node ports and host ports. */
    struct sdn_addresses addresses;
    uint16_t vxlan_port;
    /* Pods' traffic to services goes to the host, whose proxy accepts it (proxy-mode userspace);
     * else br0 translates it. */
    bool service_by_host;
    bool block_metadata; /* Pods do not reach SDN_METADATA_IP, except its DNS. */
    uint32_t mtu;        /* MTU of pods and tun0. */
    /* Meter for packets that are answered with an ICMP error; 0: none are. The datapath sets it. */
    uint32_t refusal_meter;
    struct sdn_remote *remotes; /* Without this node itself. */
    size_t n_remotes;
};

static inline uint32_t sdn_gateway(const struct sdn_network *n)
{
    return n->local.addr + 1;
}

/* "redhat/openshift-ovs-subnet" (or "ovs-subnet", or "subnet") and the other plug-ins, of which
 * "flannel" has no longer form; -EINVAL lists the accepted names. */
int sdn_plugin_parse(const char *name, enum sdn_plugin *ret, struct err *e);
const char *sdn_plugin_name(enum sdn_plugin p); /* The longest form. */

/* Whether projects have NetNamespaces. */
static inline bool sdn_plugin_has_vnids(enum sdn_plugin p)
{
    return p != SDN_SUBNET && p != SDN_FLANNEL;
}
/* Whether the hosts route packets between pods of different nodes, without a tunnel and without a
 * switch that judges them. */
static inline bool sdn_plugin_is_routed(enum sdn_plugin p)
{
    return p == SDN_FLANNEL;
}
/* The link of the host that has the gateway's address. */
static inline const char *sdn_gateway_link(enum sdn_plugin p)
{
    return sdn_plugin_is_routed(p) ? "docker0" : "tun0";
}
/* Bytes that the way to another node adds to a pod's packet. */
static inline uint32_t sdn_overhead(enum sdn_plugin p)
{
    return sdn_plugin_is_routed(p) ? 0 : SDN_VXLAN_OVERHEAD;
}
/* Whether VNIDs are compared (sdn_vnid_may_reach): under ovs-networkpolicy only policy isolates. */
static inline bool sdn_plugin_compares_vnids(enum sdn_plugin p)
{
    return p == SDN_MULTITENANT;
}
/* VNID in a pod's packets: 0 for every project under ovs-subnet. */
static inline uint32_t sdn_effective_vnid(const struct sdn_network *n, uint32_t vnid)
{
    return sdn_plugin_has_vnids(n->plugin) ? vnid : SDN_VNID_GLOBAL;
}
/* The isolation rule (ISO-02, ISO-05, ISO-06): VNIDs are equal, or one is global. */
static inline bool sdn_vnid_may_reach(uint32_t src, uint32_t dst)
{
    return (src == dst && src != SDN_VNID_NOBODY) || src == SDN_VNID_GLOBAL ||
           dst == SDN_VNID_GLOBAL;
}
