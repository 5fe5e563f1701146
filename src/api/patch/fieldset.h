/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of fields, in the format of metadata.managedFields (meta/v1 FieldsV1).
 *
 * A set is a JSON object, the tree itself: members are named by path elements - "f:NAME" a field,
 * "k:{"KEY":VALUE}" a list's element by its keys, "v:VALUE" one by its value - and contain the
 * nodes below. A node is in the set when it is empty or has the member "."; else it is only a
 * path to others.  The root is never in it: an empty root is the empty set.  NULL is the empty
 * set, too.
 *
 * A kind's sets leave out fields that only the server decides: apiVersion, kind, and name,
 * namespace, uid, generation, versions and times of the metadata.
 *
 * Pure.  Sets are trees of json.h and owned like them. */
#pragma once

#include "api/schema.h"

/* The set of all fields of 'obj', an object of the kind with schema 's': those owned after
 * applying it. */
struct json *fieldset_of(const struct api_schema *s, const struct json *obj);
/* The differences of two objects of 'k': '*ret_changed' has fields that 'b' adds or changes,
 * '*ret_removed' those that only 'a' has, with the paths to them. 'a' NULL: everything is added.
 * Both may be empty, never NULL. */
void fieldset_compare(const struct api_kind *k, const struct json *a, const struct json *b,
                      struct json **ret_changed, struct json **ret_removed);

bool fieldset_is_empty(const struct json *set);
bool fieldset_has(const struct json *node); /* The node itself is in its set. */
/* Adds the fields of 'other' to 'set', or removes them. */
void fieldset_add(struct json *set, const struct json *other);
void fieldset_subtract(struct json *set, const struct json *other);
/* The fields in both; owned. */
struct json *fieldset_intersect(const struct json *a, const struct json *b);
/* Calls 'fn' with the path of each field of the set: ".spec.containers[name="a"].image". */
void fieldset_foreach(const struct json *set, void (*fn)(void *ctx, const char *path), void *ctx);
/* Whether 'set', which came from a client, is in the form above. */
bool fieldset_is_valid(const struct json *set);
