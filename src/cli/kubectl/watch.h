/* SPDX-License-Identifier: Apache-2.0 */
/* A watch for commands: runs the loop until enough was seen. */
#pragma once

#include "cli/session.h"

/* 'object' belongs to the caller of it.  False: enough. */
typedef bool watch_event_fn(void *ctx, const char *type, const struct json *object);

/* Watches 'path' (query included, but for the watch's own parameters) from resourceVersion 'version', and goes
 * on from the last one seen when the server ends the watch in order.  'accept' NULL: application/json.
 * 'timeout_ms' 0: no limit.  0 when 'fn' had enough; -ETIMEDOUT; -ESTALE: the version is too old. */
int watch_run(struct session *s, const char *path, const char *accept, const char *version,
              uint64_t timeout_ms, watch_event_fn *fn, void *ctx, struct err *e);
