/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side apply, and the record of each field's managers (metadata.managedFields), as in
 * Kubernetes: https://kubernetes.io/docs/reference/using-api/server-side-apply/.
 *
 * A manager owns the fields that it applies: a different value of another manager is a conflict,
 * and a field no longer applied is removed unless another manager owns it. A manager that
 * changes an object by other requests owns the changed fields, and the former owners lose them.
 *
 * The record is bounded: a set is no larger than the object, of managers by update the
 * API_MAX_UPDATERS latest are told apart, and at most API_MAX_APPLIERS can apply. Pure; objects
 * are changed in place. */
#pragma once

#include "api/patch/fieldset.h"

#define API_MAX_UPDATERS 10
#define API_MAX_APPLIERS 50
#define API_MANAGER_MAX 128 /* Bytes of a manager's name. */

/* A manager and its kind of change. */
struct api_manager {
    const char *name;
    bool applies;
    const char *subresource; /* "": the object itself. */
    int64_t now_ms;
};

/* Records in 'obj' the changes of 'm'; 'old' NULL: it was created.  The managedFields of 'obj'
 * are those the client sent: none keep the old ones, one empty entry clears the record.  An
 * object with an empty record gets one only when a client applies to it. */
void api_managed_update(const struct api_kind *k, const struct json *old, struct json *obj,
                        const struct api_manager *m);

/* Applies 'config' to 'live' (NULL: absent) and returns the result: a new object with its
 * record, owned by the caller.  It sets no defaults; the server updates the record for fields
 * that it sets later. For the subresource "scale", 'config' has the number at the kind's path.
 * -EINVAL: the configuration cannot be applied (the error names the field). -EEXIST: conflicts,
 * which are in 'conflicts' (field, manager) and as text in '*ret_text'; with 'force' there are
 * none.  -E2BIG: too many appliers. */
int api_apply(const struct api_kind *k, const struct json *live, const struct json *config,
              const struct api_manager *m, bool force, struct json **ret,
              struct api_causes *conflicts, char **ret_text, struct err *e);

/* Adds causes for invalid managedFields of a client. */
void api_managed_validate(const struct json *list, struct api_causes *c);
