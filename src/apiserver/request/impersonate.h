/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonation: a user with the right to it acts as another. */
#pragma once

#include "apiserver/request/request.h"

/* Changes q->user to whom the request's headers name.  -EACCES: not. */
int impersonate(struct request *q, struct outcome *outcome);
