/* SPDX-License-Identifier: Apache-2.0 */
/* The roles and bindings, and the namespaces they need, that every cluster has: Kubernetes' and OpenShift's names
 * for what is here.  Pure. */
#pragma once

#include "sdn/network.h"
#include "wire/json.h"

/* Owned array of Namespaces. */
struct json *default_namespaces(void);
/* Owned array of ClusterRoles; of ClusterRoleBindings: nodes read all pods only where policy asks for it. */
struct json *default_cluster_roles(void);
struct json *default_cluster_role_bindings(enum sdn_plugin plugin);

#define ANNOTATION_AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"
/* What the object 'have' becomes so that it gives all that 'want' does, and nothing that earlier versions gave and that
 * was withdrawn: owned, or NULL: nothing is to be done, as it is so, or its annotation autoupdate is "false".  What an
 * administrator added stays. */
struct json *default_reconciled(const struct json *want, const struct json *have);
/* Whether 'have' still gives what was withdrawn, because its annotation autoupdate is "false". */
bool default_keeps_withdrawn(const struct json *have);
