/* SPDX-License-Identifier: Apache-2.0 */
/* Converts objects of the registry to the values of sdn/network.h.  Pure; an error names
 * the field of the object and the problem. */
#pragma once

#include "sdn/network.h"
#include "wire/cni_runtime.h"
#include "wire/json.h"

#define OBJECTS_NETWORK_API "network.openshift.io/v1"
#define OBJECTS_DEFAULT_MTU 1450

/* Fills plugin, cluster, service, vxlan_port and mtu of '*ret', and nothing else. */
int objects_parse_cluster_network(const struct json *obj, struct sdn_network *ret, struct err *e);
/* Parses a HostSubnet.  One that still waits for its subnet gets the subnet {0, 0}. */
int objects_parse_host_subnet(const struct json *obj, struct sdn_remote *ret, struct err *e);
/* Whether 'r' can be a remote of 'n' (whose cluster, service, local and
 * host_ip are set); the error says why not. */
int objects_check_remote(const struct sdn_network *n, const struct sdn_remote *r, struct err *e);
/* Parses a NetNamespace; while the project moves, the result has both its ids. */
int objects_parse_net_namespace(const struct json *obj, struct sdn_vnids *ret, struct err *e);

/* The settings of a Pod for its node: hostPort of its containers' ports, and the
 * annotations kubernetes.io/ingress-bandwidth and kubernetes.io/egress-bandwidth,
 * which are quantities of bits per second. */
int objects_parse_pod_runtime(const struct json *obj, struct cni_runtime *ret, struct err *e);

struct objects_host_subnet {
    const char *name;
    const struct json *obj;
};
/* The remotes made from 'items' for the network 'n' of node 'own' (whose own item is skipped), in a
 * stable order; '*ret' is owned by the caller.  Their further addresses are taken from the
 * annotations that the master writes.  Of two that overlap, the lower address and longer range
 * wins.  'skipped' is called for each unusable item, with the reason. */
size_t objects_build_remotes(const struct sdn_network *n, const char *own,
                             const struct objects_host_subnet *items, size_t count,
                             void (*skipped)(void *ctx, const char *name, const char *why),
                             void *ctx, struct sdn_remote **ret);
