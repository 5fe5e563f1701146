/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm policy reconcile-cluster-roles, -cluster-role-bindings and -sccs: the roles, bindings
 * and security context constraints of every cluster, brought up to this release.
 *
 * Masters reconcile roles and bindings at each start; the commands show or do it in between, as oc
 * does.  What administrators added stays. */
#pragma once

#include "cli/session.h"

enum policy_defaults { POLICY_CLUSTER_ROLES, POLICY_CLUSTER_ROLE_BINDINGS, POLICY_SCCS };

/* 'names' are the only objects to look at; NULL in its first place: all.  Without 'confirm' the
 * objects that would be written are printed as YAML.  Returns the exit status. */
int policy_reconcile_run(struct session *s, enum policy_defaults what, char *const *names,
                         bool confirm);

/* Pure: constraints 'have' changed to the default 'want'; owned.  NULL: nothing to change.  Further
 * users, groups, labels and annotations stay, and so does a priority. */
struct json *policy_reconciled_scc(const struct json *want, const struct json *have);
