/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a node's pods: which addresses of the node's subnet are in use.
 *
 * The network and broadcast addresses are never allocated, nor the first one, which is the
 * node's gateway: a /23 has room for 509 pods.  The search continues after the last address
 * allocated, so that a freed address is reused as late as possible: peers keep stale ARP and
 * connection entries for a while. Pure; the authority is the datapath's list of pods
 * (datapath_pods), from which the agent marks the used addresses when it starts.  Not
 * thread-safe; the maker owns it. */
#pragma once

#include "base/ip.h"

struct ipam;

/* For subnets from /30 (one pod) to /8; -EINVAL for others. */
int ipam_new(struct ip4_prefix subnet, struct ipam **ret, struct err *e);
struct ipam *ipam_free(struct ipam *m);
DEFINE_CLEANUP(struct ipam *, ipam_free)

struct ip4_prefix ipam_subnet(const struct ipam *m);
uint32_t ipam_capacity(const struct ipam *m); /* Pods that fit: size less three. */
uint32_t ipam_used(const struct ipam *m);
bool ipam_is_used(const struct ipam *m, uint32_t ip); /* false outside the pods' range, too. */

/* -ENOSPC: "no free address in 10.128.0.0/23: 509 in use". */
int ipam_alloc(struct ipam *m, uint32_t *ret_ip, struct err *e);
/* Marks a known address: -ERANGE when it is not one of the subnet's pod addresses, -EEXIST when
 * it is in use. */
int ipam_mark(struct ipam *m, uint32_t ip, struct err *e);
/* -ENOENT: it was not in use. */
int ipam_release(struct ipam *m, uint32_t ip);
