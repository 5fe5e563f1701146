/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the addresses that nodes report.  Pure.
 *
 * An agent reports the addresses of its node and of the node's pods. Policies, endpoints and
 * tunnels follow these reports, so a report counts only when the rest of the registry agrees: a
 * pod's address lies in the HostSubnet of its node, and a node's address belongs to no other
 * object. The API server refuses other reports (apiserver/admit_address.c), and each reader
 * ignores those that were stored before. */
#pragma once

#include "base/err.h"
#include "sdn/network.h"
#include "wire/json.h"

#define ADDRESS_MAX_RANGES 128
/* Limit of the addresses in one Node. */
/* Annotation of the ClusterNetwork: ranges of "networkConfig.foreignPodNetworkCIDRs", with
 * commas between. */
#define ADDRESS_MAX_OF_NODE 64
#define FOREIGN_PODS_ANNOTATION "tenet.io/foreign-pod-networks"

struct address_ranges {
    struct ip4_prefix list[ADDRESS_MAX_RANGES];
    size_t n;
};
bool address_ranges_contain(const struct address_ranges *r, uint32_t ip);
/* "10.9.0.0/16,192.0.2.1": prefixes, or addresses if 'hosts'; "" is an empty list. -EINVAL names
 * the malformed one. */
int address_ranges_parse(const char *text, bool hosts, struct address_ranges *ret, struct err *e);
/* The text that address_ranges_parse reads; owned. */
char *address_ranges_text(const struct address_ranges *r);
/* The ranges in FOREIGN_PODS_ANNOTATION of a ClusterNetwork; a malformed annotation gives none. */
void address_ranges_of_network(const struct json *network, struct address_ranges *ret);

/* ---- pods ---- */

/* The facts that decide whether a pod's address counts. */
struct pod_site {
    bool host_network; /* The pod shares the network of its node. */
    bool has_subnet;   /* The pod's node has a HostSubnet with a subnet. */
    struct ip4_prefix subnet;
    uint32_t host_ip; /* hostIP of that HostSubnet; 0: none. */
};
/* 'host_subnet' is the HostSubnet named as the pod's node, NULL: there is none. */
void pod_site_read(const struct json *pod, const struct json *host_subnet, struct pod_site *ret);
/* Whether 'ip' counts as an address of the pod: one within its node's subnet, the node's
 * own for a pod of the host's network, or one in 'foreign' (NULL: none). -EADDRNOTAVAIL says why
 * it does not. */
int pod_address_check(const struct pod_site *s, const struct address_ranges *foreign, uint32_t ip,
                      struct err *e);

/* ---- nodes ---- */

/* Addresses that no node can have, from the master's configuration. */
struct node_rules {
    struct address_ranges cluster;   /* The cluster networks. */
    struct ip4_prefix service;       /* len 0 and addr 0: none. */
    struct address_ranges ingress;   /* Addresses of LoadBalancer services. */
    struct address_ranges foreign;   /* Pods of other CNI plug-ins. */
    struct address_ranges reserved;  /* Routers and the like. */
    struct address_ranges masters;   /* Addresses of masters and etcd, which only the */
    const char *const *master_nodes; /* nodes named here can have; ends with NULL. */
};
/* Checks that a host can have the address at all: it is not loopback, multicast or the like.
 * -EADDRNOTAVAIL. */
int host_address_check(uint32_t ip, struct err *e);
/* Checks that the node 'name' can have the address 'ip'. -EADDRNOTAVAIL says to what the address
 * belongs. */
int node_address_check(const struct node_rules *r, const char *name, uint32_t ip, struct err *e);
