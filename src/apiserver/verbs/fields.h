/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that all writes share, apart from the store: their options, unknown fields, and
 * managedFields.  Internal to src/apiserver. */
#pragma once

#include "api/patch/apply.h"
#include "apiserver/request/request.h"

/* Reads dryRun, fieldValidation, fieldManager and force of a create,
 * update or patch into the request.  -EINVAL. */
int fields_parse_options(struct request *q, struct outcome *outcome);
/* Removes from 'obj' fields that its kind does not have, as the client's
 * fieldValidation says: silently, with a warning in the response, or refuses them
 * (-EINVAL).  'quiet': the warning was added before. */
int fields_prune(struct request *q, struct json *obj, bool quiet, struct outcome *outcome);
/* The manager of the change of 'q'; its strings belong to the request. */
struct api_manager fields_manager(const struct request *q, bool applies);
/* Records in managedFields of 'obj' the fields of 'old' that this request changed (NULL:
 * created). */
void fields_record(const struct request *q, const struct json *old, struct json *obj);
