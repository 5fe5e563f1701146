/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side apply, and the record of who manages which fields (metadata.managedFields), as Kubernetes has them:
 * https://kubernetes.io/docs/reference/using-api/server-side-apply/.
 *
 * Whoever applies owns the fields of what is applied: another's different value for one of them is a conflict, and
 * a field no longer applied is removed unless somebody else owns it.  Whoever changes an object by another way
 * owns what was changed, and the former owners lose it.
 *
 * The record is bounded: a set is no larger than the object, of managers by update the API_MAX_UPDATERS latest are
 * told apart, and at most API_MAX_APPLIERS can apply.
 * Pure; objects are changed in place. */
#pragma once

#include "api/patch/fieldset.h"

#define API_MAX_UPDATERS 10
#define API_MAX_APPLIERS 50
#define API_MANAGER_MAX 128 /* Bytes of a manager's name. */

/* Who makes a change, and how. */
struct api_manager {
    const char *name;
    bool applies;
    const char *subresource; /* "": the object itself. */
    int64_t now_ms;
};

/* Records in 'obj' what 'm' changed in it; 'old' NULL: it was created.  The managedFields of 'obj' are those the
 * client sent: none keep the old ones, one empty entry clears the record.  An object whose record is empty has
 * none until something is applied to it. */
void api_managed_update(const struct api_kind *k, const struct json *old, struct json *obj,
                        const struct api_manager *m);

/* What 'config' makes of 'live' (NULL: nothing there): a new object with its record, owned by the caller.  Nothing is
 * defaulted, and what the record says of fields that the server fills in later is up to the server.  Through the
 * subresource "scale", 'config' has the number where the kind has it.
 * -EINVAL: the configuration cannot be applied (the error names the field).
 * -EEXIST: conflicts, which are in 'conflicts' (field, manager), and '*ret_text' says them; with 'force' there are
 * none.  -E2BIG: too many appliers. */
int api_apply(const struct api_kind *k, const struct json *live, const struct json *config,
              const struct api_manager *m, bool force, struct json **ret,
              struct api_causes *conflicts, char **ret_text, struct err *e);

/* Causes for what is wrong with the managedFields that a client sent. */
void api_managed_validate(const struct json *list, struct api_causes *c);
