/* SPDX-License-Identifier: Apache-2.0 */
/* Pod templates within the kinds of controllers: defaults, checks, and the selector beside them.
 * Internal to src/api. Pure; trees belong to the caller. */
#pragma once

#include "api/kind.h"

/* Makes 'status' (on creation empty) and 'spec' objects, so that their defaults can be put in.
 * Returns the spec; NULL: another type is there. */
struct json *template_prepare(struct json *obj, const struct json *old);
/* The template at 'key' of 'spec' with its own spec, made when absent; NULL: another type. */
struct json *template_ensure(struct json *spec, const char *key);
/* Sets the fields of a template that depend on others; NULL: nothing. */
void template_default(struct json *template);

/* Checks a template whose types fit the schema: labels, annotations, containers, the pod's spec.
 * 'old' is the template before (NULL: it is new): one that stays the same is not judged again, since
 * it may be older than a rule.  'owner' is the kind whose pods have to run for ever, for messages;
 * NULL: they have to end. */
void template_check(struct api_causes *c, const char *field, const struct json *template,
                    const struct json *old, const char *owner);
/* Checks spec.selector (present): not empty, and selecting spec.template.  'kind' is its kind in
 * messages; 'old' NULL on creation, else its selector may not change. */
void template_check_selector(struct api_causes *c, const struct json *obj, const struct json *old,
                             const char *kind);
/* Each of the members 'counts' (ends with NULL) of the status is at most the member 'most'. */
void template_check_counts(struct api_causes *c, const struct json *obj, const char *const *counts,
                           const char *most);
