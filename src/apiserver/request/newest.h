/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that need the newest state wait until the cache has it. */
#pragma once

#include "apiserver/request/request.h"

/* Calls 'handler' when the cache is as new as the request needs: now, or later. */
void newest_then(struct request *q, request_fn *handler, struct outcome *outcome);
/* 503 with what is wrong: the store takes no writes now. */
void outcome_unavailable(struct outcome *o, const struct request *q);
