/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which default roles are written down.  Internal to default_roles.c and the tables
 * that it joins.  Constant data; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define READ "get list watch"

/* Words are separated by blanks; the group "core" is the one with the empty name. */
struct rule {
    const char *verbs, *groups, *resources, *names, *urls;
};
#define MAX_RULES 20
struct role {
    const char *name;
    const char *aggregates; /* The name of the role to which its rules are added. */
    const char *gathers;    /* The label of the roles whose rules this role aggregates. */
    struct rule rules[MAX_RULES];
    /* The verbs for kinds in projects whose descriptions name the role "edit" or
     * "view"; these rules come before the others. */
    const char *project_verbs, *project_role;
};

/* The roles of Kubernetes' own parts (default_component_roles.c): the controller manager, its
 * controllers, the kubelet, the proxy. */
extern const struct role component_roles[];
extern const size_t n_component_roles;
/* A role of this prefix is bound to the service account of kube-system that the rest names. */
#define CONTROLLER_PREFIX "system:controller:"
