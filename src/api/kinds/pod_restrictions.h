/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that every pod may have: those of OpenShift's security context constraint
 * `restricted`.
 *
 * Security context constraints are objects that administrators write; until the server has them,
 * this one applies to all users. It covers pods, and the templates from which controllers create
 * pods, whether their kind is compiled in or comes from a CustomResourceDefinition.
 * docs/security.md lists the fields and says why.
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

/* Adds a cause for each field and annotation of 'pod' that `restricted` does not allow. 'path'
 * precedes the fields' names. */
void pod_restrictions_check(const struct json *pod, const char *path, struct api_causes *c);
/* Sets unset fields of a pod that passed the check: no privilege escalation, no root user, the
 * runtime's seccomp profile, and without the capabilities that `restricted` drops. */
void pod_restrictions_fill(struct json *pod);
/* Whether all fields that pod_restrictions_check reads are the same in both; either may be NULL.
 * 'but_node': the node may differ. */
bool pod_restrictions_same(const struct json *a, const struct json *b, bool but_node);
