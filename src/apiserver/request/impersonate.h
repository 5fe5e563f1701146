/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonation: a user with the right to do so acts as another user. */
#pragma once

#include "apiserver/request/request.h"

/* Changes q->user to the user that the request's headers name.  -EACCES: the right is missing. */
int impersonate(struct request *q, struct outcome *outcome);
