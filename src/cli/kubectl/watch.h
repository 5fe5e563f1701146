/* SPDX-License-Identifier: Apache-2.0 */
/* A watch for commands: runs the loop until the callback ends it. */
#pragma once

#include "cli/session.h"

/* 'object' is borrowed for the call.  Returns false to end the watch. */
typedef bool watch_event_fn(void *ctx, const char *type, const struct json *object);

/* Watches 'path' (with its query, without the watch's own parameters) from resourceVersion
 * 'version'.  When the server ends the watch without an error, it goes on from the last version
 * seen.  'accept' NULL: application/json.  'timeout_ms' 0: no limit.  Returns 0 when 'fn' ended the
 * watch; -ETIMEDOUT; -ESTALE: the version is too old. */
int watch_run(struct session *s, const char *path, const char *accept, const char *version,
              uint64_t timeout_ms, watch_event_fn *fn, void *ctx, struct err *e);

/* Reads one object and its changes.  'object' is NULL while there is none.  Returns 0 to go on, 1
 * at the end, or a negative errno with the reason. */
typedef int watch_object_fn(void *ctx, const struct json *object, struct err *e);
struct api_kind;
/* Calls 'fn' with the object, and then with each new state, until it ends the watch.  'deadline_ms'
 * is on the monotonic clock; 0: no limit.  Returns 0; -ETIMEDOUT; the error of the server or of
 * 'fn'. */
int watch_object(struct session *s, const struct api_kind *k, const char *ns, const char *name,
                 uint64_t deadline_ms, watch_object_fn *fn, void *ctx, struct err *e);
