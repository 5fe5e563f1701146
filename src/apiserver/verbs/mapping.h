/* SPDX-License-Identifier: Apache-2.0 */
/* UserIdentityMapping: which user an identity belongs to.
 *
 * A mapping is not stored.  It exists while the Identity names the User with its UID and the User
 * lists the Identity, so that a user who is deleted and made again under the same name has no
 * identity of the former one.  Each change writes all objects that it concerns in one transaction,
 * each at the revision that was read: no crash and no other master leaves half of a mapping.
 * Clients get, create, update and delete mappings; they do not list or watch them, as in
 * OpenShift. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request is for that kind. */
bool mapping_is_asked(const struct request *q);
void handle_mapping(struct request *q, struct outcome *outcome);
