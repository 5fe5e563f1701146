/* SPDX-License-Identifier: Apache-2.0 */
/* Host ports of pods, as every node of the cluster needs them: a pod's packet to (address of a
 * node, protocol, host port) is translated at its own node, where VNID and address of the sender
 * are still known. Pure.
 *
 * An agent writes the host ports of its node into an annotation of its Node; the master copies
 * those that it accepts, and the further addresses of the Node, to the HostSubnet, which all
 * agents watch. Both annotations are text:
 *     tenet.io/host-ports: "tcp:8080=10.128.0.5:80,udp:192.0.2.1:53=10.128.0.6:53"
 *     tenet.io/node-addresses: "192.0.2.1,198.51.100.7"
 * Lists belong to the caller. */
#pragma once

#include "sdn/network.h"
#include "sdn/service.h"
#include "wire/cni_runtime.h"

#define SDN_HOST_PORTS "tenet.io/host-ports"
#define SDN_NODE_ADDRESSES "tenet.io/node-addresses"
/* Per node: the annotation stays below the limit of all annotations. */
#define SDN_MAX_HOST_PORTS 4096

/* A port of the host that leads to a pod. */
struct sdn_host_port {
    struct cni_host_port port;
    uint32_t pod_ip;
};
/* Compares protocol, host port, address of the host, and pod; 0: equal except for the pod's own
 * port. */
int sdn_host_port_compare(const struct sdn_host_port *a, const struct sdn_host_port *b);
/* Whether 'list' (sorted) contains 'p'. */
bool sdn_host_ports_have(const struct sdn_host_port *list, size_t n, const struct sdn_host_port *p);

/* The annotation; owned.  NULL: there are none. */
char *sdn_host_ports_text(const struct sdn_host_port *list, size_t n);
/* Parses the annotation (NULL is fine): keeps valid entries that lead to a pod of 'subnet',
 * other than its gateway; of two that overlap, the first. '*ret' is owned and sorted; returns
 * its size, at most SDN_MAX_HOST_PORTS. */
size_t sdn_host_ports_parse(const char *text, struct ip4_prefix subnet, struct sdn_host_port **ret);

/* The annotation; owned.  NULL: there are none. */
char *sdn_addresses_text(const struct sdn_addresses *a);
/* Parses the annotation (NULL is fine): keeps the addresses that a host can have outside of 'n',
 * which are none of the cluster and service networks, loopback, link-local or multicast. */
void sdn_addresses_parse(const char *text, const struct sdn_network *n, struct sdn_addresses *ret);

/* Whether a host can have the address outside of 'n'. */
bool sdn_may_be_host(const struct sdn_network *n, uint32_t ip);

/* The host ports at one address of a node as a service with that address, which has one endpoint
 * for each port; NULL: that address has no TCP or UDP host port.  Its namespace is "", which no
 * Service has. */
struct sdn_service *sdn_host_ports_service(uint32_t address, const struct sdn_host_port *list,
                                           size_t n);
