/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm policy who-can: the users, groups and service accounts that may do something, and the
 * binding that gives it to each.
 *
 * The command reads roles and bindings and evaluates them itself, because the reviews of
 * authorization.openshift.io name subjects only. */
#pragma once

#include "cli/session.h"

struct policy_question {
    const char *verb, *group, *resource, *subresource; /* "" without a subresource. */
    const char *name;                                  /* The object; "": any. */
    const char *url; /* A path such as /metrics instead of a resource; NULL: a resource. */
};

/* Pure: whether a rule of the role allows what is asked. */
bool policy_role_allows(const struct json *role, const struct policy_question *q);

/* Asks the server for roles and bindings, and prints a table.  'ns' NULL: who may do it in all
 * namespaces.  Returns the exit status. */
int policy_who_run(struct session *s, const struct policy_question *q, const char *ns);
