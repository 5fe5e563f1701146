/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster's network as the master's configuration gives it, the ClusterNetwork object it becomes, and
 * the rules for starting with it.  Pure. */
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
    struct address_ranges foreign; /* Pods' addresses given by other CNI plug-ins. */
    enum sdn_plugin plugin;
    uint16_t vxlan_port;
    uint32_t mtu;
};

/* 10.128.0.0/14 with 9 host bits, services 172.30.0.0/16, redhat/openshift-ovs-subnet, port 4789, MTU
 * 1450. */
void netconf_defaults(struct netconf *c);
/* Ranges as subnet_ranges_check has them, none overlapping the service network; port and MTU in bounds.
 * -EINVAL names the key below networkConfig. */
int netconf_check(const struct netconf *c, struct err *e);

/* Whether an address, or a whole prefix, lies in one of the cluster networks. */
bool netconf_has_address(const struct netconf *c, uint32_t addr);
bool netconf_has_prefix(const struct netconf *c, struct ip4_prefix p);

/* The rules for nodes' addresses that follow from these networks. */
void netconf_node_rules(const struct netconf *c, struct node_rules *ret);

/* Owned ClusterNetwork "default". */
struct json *netconf_object(const struct netconf *c);
/* Writes the fields of the configuration into 'object', an existing ClusterNetwork "default", and returns
 * whether that changed it. */
bool netconf_apply(const struct netconf *c, struct json *object);

/* Whether the cluster that has 'current' as its ClusterNetwork may go on with 'c': the service network must
 * be the same, and each HostSubnet of 'hostsubnets' and each pod of 'pods' (arrays of objects; pods of
 * the host's network aside, and those whose address is none of the present cluster networks) must lie in the cluster
 * networks.  -EINVAL lists up to ten offenders. */
int netconf_check_change(const struct netconf *c, const struct json *current,
                         const struct json *hostsubnets, const struct json *pods, struct err *e);

/* A network that an interface of this host is in. */
struct netconf_host_net {
    char ifname[16];
    struct ip4_prefix net; /* Canonical. */
    uint32_t addr;         /* The host's own. */
};
/* Whether an SDN made the interface. */
bool netconf_is_own_interface(const char *ifname);
/* The host must not be in the cluster's own networks, else the master could reach neither.  Interfaces that
 * an SDN made (tun0, br0, lbr0) are skipped.  -EADDRINUSE names both networks. */
int netconf_check_host(const struct netconf *c, const struct netconf_host_net *nets, size_t n,
                       struct err *e);
