/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as values of Kubernetes' Go types.
 *
 * A real API server decodes an object into Go structures before it does anything else, and what it
 * sends are these structures.  Clients notice: a value of a wrong type is a 400, null is an absent
 * value, a quantity has one form, and a field without omitempty is always there.  These functions
 * do the same for JSON trees, by the schemas of the kinds that are compiled in (api/kinds); custom
 * resources have no Go types.
 *
 * Pure.  The caller owns the trees. */
#pragma once

#include "api/schema.h"

/* The most elements that all lists of an object may have together: an empty one takes two bytes in
 * a request, and some hundred in memory. */
#define API_TYPED_MAX_ELEMENTS 200000
#define API_TYPED_TOO_MANY "the lists of the object have more than 200000 elements"

/* Checks the type of each value, in the order of the text: -EINVAL for the first one that Go would
 * not decode, in the words of encoding/json.  Null fits everywhere.  The members of 'obj' must be
 * those of the schema (api_schema_prune). */
int api_typed_check(const struct api_schema *s, const struct json *obj, struct err *e);
/* Brings the values into the form in which Kubernetes keeps them: null in a list or a map is the
 * empty value of its type, quantities and times have their canonical texts.  Values of a wrong
 * type, which only patches can leave, stay as they are. */
void api_typed_normalize(const struct api_schema *s, struct json *obj);
/* Puts in the empty values of absent fields that are always there.  Returns whether the object
 * was changed. */
bool api_typed_complete(const struct api_schema *s, struct json *obj);
/* Gives MicroTimes that an earlier release has stored with other digits their six, outside of lists
 * and maps.  Returns whether the object was changed. */
bool api_typed_mend(const struct api_schema *s, struct json *obj);
/* The empty value of a type: "", 0, false, [], {}; NULL for a type that has none. */
struct json *api_typed_empty(const struct api_schema *s);
/* Whether two values mean the same in Go: an absent value is that of an empty one, unless the field
 * has a pointer.  'ret_path' (empty; NULL: not asked) gets the path of the first difference. */
bool api_typed_same(const struct api_schema *s, const struct json *a, const struct json *b,
                    struct strbuf *ret_path);
