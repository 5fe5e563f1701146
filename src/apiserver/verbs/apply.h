/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side apply. */
#pragma once

#include "apiserver/request/request.h"

/* A patch of the type APPLY_TYPE. */
void handle_apply(struct request *q, struct outcome *outcome);
