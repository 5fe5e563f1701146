/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the parts of API objects that several controllers need.  Pure.
 *
 * Strings returned belong to the object.  All accept objects with parts missing or of
 * the wrong type. */
#pragma once

#include "base/ip.h"
#include "wire/json.h"

#define NETWORK_API_VERSION "network.openshift.io/v1"

#define ANNOTATION_NODE_UID "pod.network.openshift.io/node-uid"
#define ANNOTATION_ASSIGN_SUBNET "pod.network.openshift.io/assign-subnet"
#define ANNOTATION_FIXED_VNID "pod.network.openshift.io/fixed-vnid-host"

const char *obj_name(const struct json *o);      /* "" when absent. */
const char *obj_namespace(const struct json *o); /* "" when absent. */
const char *obj_uid(const struct json *o);       /* "" when absent. */
bool obj_is_terminating(const struct json *o);   /* metadata.deletionTimestamp is set. */
/* The value of an annotation; NULL when absent. */
const char *obj_annotation(const struct json *o, const char *key);
void obj_set_annotation(struct json *o, const char *key, const char *value);
void obj_remove_annotation(struct json *o, const char *key);
/* An object with apiVersion, kind and metadata.name (and namespace unless NULL). */
struct json *obj_new(const char *api_version, const char *kind, const char *ns, const char *name);

/* The first address of type InternalIP in a Node's status; NULL when there is none. */
const char *node_internal_ip(const struct json *node);

/* HostSubnet.subnet as a prefix: 0; -ENOENT: empty or absent; -EINVAL: not a prefix. */
int hostsubnet_prefix(const struct json *hs, struct ip4_prefix *ret);
/* NetNamespace.netid; -EINVAL: not a number of 24 bits. */
int netnamespace_vnid(const struct json *nn, uint32_t *ret);
