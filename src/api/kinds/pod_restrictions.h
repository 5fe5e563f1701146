/* SPDX-License-Identifier: Apache-2.0 */
/* Pods within objects, and the settings of a pod about which security context constraints have no
 * field: AppArmor, the host of probes, propagation of mounts, priorities of the system.
 *
 * Pods whose constraints do not allow privileged containers may have only the values that
 * docs/scc.md lists; pod/scc.h judges everything else.  Pods are found in templates, too, whether
 * their kind is compiled in or comes from a CustomResourceDefinition.
 *
 * A "pod" here is any object with metadata and spec of a pod: a Pod, or a PodTemplateSpec.  A
 * setting of a wrong type is refused.  Pure; the caller owns all trees. */
#pragma once

#include "api/kind.h"

/* Path of the pod within an object of the resource: "" for pods, "spec.template." for
 * deployments. NULL: there is none. */
const char *pod_restrictions_path(const char *group, const char *plural);
/* The pod at such a path of 'obj'; NULL: 'obj' has none. */
struct json *pod_restrictions_find(const struct json *obj, const char *path);

/* Adds a cause for each setting that only pods with privileged containers may have. 'path'
 * precedes the fields' names.  'host_network': the pod may use the node's network, and so connect
 * from it. */
void pod_restrictions_check(const struct json *pod, const char *path, bool host_network,
                            struct api_causes *c);
/* Whether everything that pod_restrictions_check and pod/scc.h read is the same in both; either may
 * be NULL.  'but_node': the node may differ. */
bool pod_restrictions_same(const struct json *a, const struct json *b, bool but_node);
