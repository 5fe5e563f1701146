/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of addresses that a node reports for itself and for its pods.
 *
 * The index holds the addresses of Nodes, HostSubnets, masters and services as text, so that a new
 * address of a Node is compared with all of them without parsing their objects.  Internal to
 * src/apiserver; everything runs on the loop's thread. */
#pragma once

#include "apiserver/cache/subscriber.h"
#include "sdn/address.h"

struct addresses;
struct outcome;
struct request;

/* Follows the cache.  'rules' is copied but for its names, which must outlive the server; NULL:
 * there are none. */
struct addresses *addresses_new(struct cache *c, const struct node_rules *rules);
struct addresses *addresses_free(struct addresses *a);
/* Checks that the server may connect to 'address' (IPv4) as the node 'name': that no other object
 * has it, and that the node can have it at all.  -EADDRNOTAVAIL says why not. */
int addresses_check_use(const struct addresses *a, const char *name, const char *address,
                        struct err *e);

/* The address at which the server may connect to a pod: one of the pod network that this pod can
 * have, and that no other party has.  Pods of the host's network, and those that have ended, have
 * none.  -EADDRNOTAVAIL says why not. */
int addresses_of_pod(const struct addresses *a, const struct json *pod, uint32_t *ret,
                     struct err *e);

/* Admit a write of 'obj', a Node or Pod, by the node 'node'.  A Node's address must not belong to
 * another object, a pod's address must lie in the node's subnet.  Addresses that 'old' has may
 * stay, because readers ignore those that do not count.  -EACCES: refused. */
int addresses_admit_node(struct request *q, const char *node, const struct json *obj,
                         const struct json *old, struct outcome *outcome);
int addresses_admit_pod(struct request *q, const char *node, const struct json *obj,
                        const struct json *old, struct outcome *outcome);
