/* SPDX-License-Identifier: Apache-2.0 */
/* Policies and policy bindings of authorization.openshift.io: all roles, and all bindings, of a
 * namespace or of the cluster in one object.
 *
 * OpenShift stored roles and bindings in this way until release 3.6.  The objects are made for each
 * answer from those of RBAC.  Nothing is written through them: the creation of an empty
 * PolicyBinding, which was necessary before the first binding to a local role, is accepted and
 * changes nothing. */
#pragma once

#include "apiserver/request/request.h"

bool policies_are_asked(const struct request *q);
void handle_policies(struct request *q, struct outcome *outcome);
