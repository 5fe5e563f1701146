/* SPDX-License-Identifier: Apache-2.0 */
/* What writes of all kinds have in common beside the store: their options, unknown fields, and the
 * record of who manages which fields.  Internal to src/apiserver. */
#pragma once

#include "api/patch/apply.h"
#include "apiserver/request/request.h"

/* dryRun, fieldValidation, fieldManager and force of a create, update or patch, into the request.
 * -EINVAL. */
int fields_parse_options(struct request *q, struct outcome *outcome);
/* Removes from 'obj' what its kind does not know, as the client's fieldValidation wants it:
 * silently, with a warning in the answer, or (-EINVAL) not at all.  'quiet': it was told
 * already. */
int fields_prune(struct request *q, struct json *obj, bool quiet, struct outcome *outcome);
/* Who makes the change of 'q'; its strings are the request's. */
struct api_manager fields_manager(const struct request *q, bool applies);
/* Records in 'obj' what this request changed of 'old' (NULL: created). */
void fields_record(const struct request *q, const struct json *old, struct json *obj);
