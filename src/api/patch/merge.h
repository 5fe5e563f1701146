/* SPDX-License-Identifier: Apache-2.0 */
/* Merging by a schema, the part of server-side apply that works on values.  Internal to src/api. */
#pragma once

#include "api/patch/fieldset.h"

/* Merges 'config' into 'target': granular lists and objects are merged, all others are replaced.
 * Elements keep their order; those of 'config' have its order. */
void api_merge(const struct api_schema *s, struct json *target, const struct json *config);
/* Removes from 'obj' the fields of 'last', except those in 'owned' and the paths to them.  No set of
 * fields has anything of an empty list, or of a structure with nothing but empty lists: such a field
 * stays, but a structure that is left with nothing else is removed
 * (sigs.k8s.io/structured-merge-diff, addBackOwnedItems and addBackDanglingItems). */
void api_remove_fields(const struct api_schema *s, struct json *obj, const struct json *last,
                       const struct json *owned);
/* Removes the lists and maps of 'obj' that became empty since 'before', as Go's types do when they
 * are written; a structure at the top (spec) stays, because it may be required. */
void api_drop_emptied(const struct api_schema *s, struct json *obj, const struct json *before);
