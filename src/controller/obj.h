/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the parts of nodes' and networks' objects that several controllers need.  Pure.
 *
 * Strings returned belong to the object.  All accept objects with parts missing or of
 * the wrong type. */
#pragma once

#include "api/obj.h"
#include "base/ip.h"

#define NETWORK_API_VERSION "network.openshift.io/v1"

#define ANNOTATION_NODE_UID "pod.network.openshift.io/node-uid"
#define ANNOTATION_ASSIGN_SUBNET "pod.network.openshift.io/assign-subnet"
#define ANNOTATION_FIXED_VNID "pod.network.openshift.io/fixed-vnid-host"

/* The first address of type InternalIP in a Node's status; NULL when there is none. */
const char *node_internal_ip(const struct json *node);

/* HostSubnet.subnet as a prefix: 0; -ENOENT: empty or absent; -EINVAL: not a prefix. */
int hostsubnet_prefix(const struct json *hs, struct ip4_prefix *ret);
/* NetNamespace.netid; -EINVAL: not a number of 24 bits. */
int netnamespace_vnid(const struct json *nn, uint32_t *ret);
