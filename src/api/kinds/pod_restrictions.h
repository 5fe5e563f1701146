/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod may ask for without leave of its own: as much as OpenShift's security context constraint `restricted` gives.
 *
 * Security context constraints are objects that administrators write; until the server has them, this is the one that
 * everybody may use.  It speaks of pods, and of the templates that controllers make pods from, whether their kind is
 * compiled in or comes from a CustomResourceDefinition.  docs/security.md lists the fields and says why.
 *
 * A "pod" here is any object with metadata and spec of a pod: a Pod, or a PodTemplateSpec.  A setting of a wrong type
 * counts as asking for more.  Pure; the caller owns all trees. */
#pragma once

#include "api/kind.h"

/* Where the pod of an object of the resource is: "" for pods, "spec.template." for deployments.  NULL: there is none. */
const char *pod_restrictions_path(const char *group, const char *plural);
/* The pod at such a path of 'obj'; NULL: 'obj' has none. */
struct json *pod_restrictions_find(const struct json *obj, const char *path);

/* Adds a cause for each field of 'pod', and for each annotation, that asks for more than `restricted` gives.  'path' is
 * put in front of the fields' names. */
void pod_restrictions_check(const struct json *pod, const char *path, struct api_causes *c);
/* Sets what a pod that passed the check leaves open: no privilege escalation, no root user, the runtime's seccomp
 * profile, and without the capabilities that `restricted` drops. */
void pod_restrictions_fill(struct json *pod);
/* Whether all that pod_restrictions_check looks at is the same in both; either may be NULL. */
bool pod_restrictions_same(const struct json *a, const struct json *b);
