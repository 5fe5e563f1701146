/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the cluster's network, the ClusterNetwork object made
 * from it, and the checks at start.  Pure. */
#pragma once

#include "sdn/address.h"
#include "sdn/network.h"
#include "sdn/subnet_alloc.h"
#include "wire/json.h"

#define NETCONF_MTU_MIN 576
#define NETCONF_MTU_MAX 65536

struct netconf {
    struct subnet_range ranges[SDN_MAX_CLUSTER_NETWORKS];
    size_t n_ranges;
    struct ip4_prefix service;
    /* Ranges from which other CNI plug-ins give addresses to pods. */
    struct address_ranges foreign;
    enum sdn_plugin plugin;
    uint16_t vxlan_port;
    uint32_t mtu;
};

/* 10.128.0.0/14 with 9 host bits, services 172.30.0.0/16, redhat/openshift-ovs-subnet,
 * port 4789, MTU 1450. */
void netconf_defaults(struct netconf *c);
/* Checks that the ranges satisfy subnet_ranges_check and do not overlap the service network, and
 * that port and MTU are in bounds.  -EINVAL names the key below networkConfig. */
int netconf_check(const struct netconf *c, struct err *e);

/* Whether an address, or a whole prefix, lies in one of the cluster networks. */
bool netconf_has_address(const struct netconf *c, uint32_t addr);
bool netconf_has_prefix(const struct netconf *c, struct ip4_prefix p);

/* The rules for addresses of nodes that follow from these networks. */
void netconf_node_rules(const struct netconf *c, struct node_rules *ret);

/* Owned ClusterNetwork "default". */
struct json *netconf_object(const struct netconf *c);
/* Writes the fields of the configuration into 'object', an existing ClusterNetwork "default",
 * and returns whether that changed it. */
bool netconf_apply(const struct netconf *c, struct json *object);

/* Whether 'c' is compatible with the cluster whose ClusterNetwork is 'current': the service network
 * must be the same, and each HostSubnet of 'hostsubnets' and each pod of 'pods' (arrays of objects)
 * must lie in the cluster networks.  Pods on the host's network and pods whose address is outside
 * the current cluster networks are ignored.  -EINVAL lists up to ten offenders. */
int netconf_check_change(const struct netconf *c, const struct json *current,
                         const struct json *hostsubnets, const struct json *pods, struct err *e);

/* A network to which an interface of this host belongs. */
struct netconf_host_net {
    char ifname[16];
    struct ip4_prefix net; /* Canonical. */
    uint32_t addr;         /* The host's own address. */
};
/* Whether an SDN made the interface. */
bool netconf_is_own_interface(const char *ifname);
/* Checks that the host's networks do not overlap the cluster's, because otherwise the
 * master could reach neither.  Interfaces made by an SDN (tun0, br0, lbr0) are
 * ignored.  -EADDRINUSE names both networks. */
int netconf_check_host(const struct netconf *c, const struct netconf_host_net *nets, size_t n,
                       struct err *e);
