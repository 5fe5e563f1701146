/* SPDX-License-Identifier: Apache-2.0 */
/* users/~: the user who makes the request.
 *
 * The answer is the stored User with the groups and the UID of the request, since these decide.  A
 * user without an object (of a certificate, a service account, a system user, an impersonated one)
 * is answered as a User that is not stored. */
#pragma once

#include "apiserver/request/request.h"

/* Whether the request asks for its own user. */
bool self_is_asked(const struct request *q);
void handle_self(struct request *q, struct outcome *outcome);
