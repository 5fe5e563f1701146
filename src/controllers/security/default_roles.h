/* SPDX-License-Identifier: Apache-2.0 */
/* The roles, bindings and namespaces that every cluster has, with
 * Kubernetes' and OpenShift's names.  Pure. */
#pragma once

#include "sdn/network.h"
#include "wire/json.h"

/* An owned array of Namespaces. */
struct json *default_namespaces(void);
/* Owned arrays of ClusterRoles and of ClusterRoleBindings; nodes may read
 * all pods only where NetworkPolicy needs it. */
struct json *default_cluster_roles(void);
struct json *default_cluster_role_bindings(enum sdn_plugin plugin);
/* Owned arrays of the Roles and of the RoleBindings of kube-system. */
struct json *default_system_roles(void);
struct json *default_system_role_bindings(void);
/* The project whose templates every authenticated user may read, and owned arrays of its Role and
 * RoleBinding. */
#define SHARED_NAMESPACE "openshift"
struct json *default_shared_roles(void);
struct json *default_shared_role_bindings(void);

/* The ConfigMap of kube-system from which Kubernetes' parts learn how the API server authenticates
 * its clients, so that their own servers do it alike (root_ca.h). */
#define AUTHENTICATION_CONFIG "extension-apiserver-authentication"

#define ANNOTATION_AUTOUPDATE "rbac.authorization.kubernetes.io/autoupdate"
/* The object 'have' changed so that it grants everything in 'want', and nothing that earlier
 * versions granted and that was withdrawn; owned.  NULL: nothing to change, or its annotation
 * autoupdate is "false".  Additions of an administrator stay. */
struct json *default_reconciled(const struct json *want, const struct json *have);
/* Whether 'have' still grants a withdrawn rule, because its annotation autoupdate is "false". */
bool default_keeps_withdrawn(const struct json *have);
