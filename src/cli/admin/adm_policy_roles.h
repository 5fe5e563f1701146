/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm policy add-role-to-user and its like: bindings of roles. */
#pragma once

#include "cli/session.h"

struct policy_roles {
    const char *role;
    const char *ns;      /* The namespace of the bindings; NULL: they hold in the whole cluster. */
    bool local;          /* The role is a Role of 'ns', not a ClusterRole. */
    const char *binding; /* The name of the binding; NULL: the one that is found, or a new one. */
    bool removes;
    const struct json *subjects; /* As in bindings; borrowed. */
    const struct json *names;    /* The subjects' names as they were typed; borrowed. */
};

/* Adds the subjects to a binding of the role, or takes them out of all of them.  Returns the exit
 * status. */
int policy_roles_run(struct session *s, const struct policy_roles *r);

/* Pure: whether a list of subjects has this one. */
bool policy_has_subject(const struct json *list, const struct json *subject);
