/* SPDX-License-Identifier: Apache-2.0 */
/* How far a rollout is, in kubectl's and oc's words.  Pure. */
#pragma once

#include "api/kind.h"

/* Appends the line about the object's rollout to 'out'.  'revision' is the revision that must be
 * the current one; 0: any.  Returns 1 when the rollout is complete, 0 while it goes on, -EINVAL
 * when it failed, is not the rollout of 'revision', or the kind has none. */
int progress_write(const struct api_kind *k, const struct json *object, int64_t revision,
                   struct strbuf *out, struct err *e);
/* The condition of this type; NULL: there is none. */
const struct json *progress_condition(const struct json *object, const char *type);
