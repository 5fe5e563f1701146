/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that need the newest state wait until the cache has it. */
#pragma once

#include "apiserver/request/request.h"

/* Calls 'handler' when the cache is new enough for the request: now, or later. */
void newest_then(struct request *q, request_fn *handler, struct outcome *outcome);
/* Fills in a 503 with the reason why the store takes no writes. */
void outcome_unavailable(struct outcome *o, const struct request *q);
