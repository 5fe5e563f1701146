/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the metadata that objects of all kinds have.  Pure.
 *
 * Strings returned belong to the object.  All functions accept objects with parts missing or of
 * the wrong type. */
#pragma once

#include "wire/json.h"

const char *obj_name(const struct json *o);      /* "" when absent. */
const char *obj_namespace(const struct json *o); /* "" when absent. */
const char *obj_uid(const struct json *o);       /* "" when absent. */
bool obj_is_terminating(const struct json *o);   /* metadata.deletionTimestamp is set. */
int64_t obj_generation(const struct json *o);    /* metadata.generation; 0 when absent. */
/* The time of creation, wall clock in milliseconds; 0 when absent. */
int64_t obj_created_ms(const struct json *o);
/* The value of an annotation, of a label; NULL when absent. */
const char *obj_annotation(const struct json *o, const char *key);
const char *obj_label(const struct json *o, const char *key);
void obj_set_annotation(struct json *o, const char *key, const char *value);
void obj_remove_annotation(struct json *o, const char *key);
bool obj_has_finalizer(const struct json *o, const char *name);
/* The ownerReference of the object that controls this one; NULL: none does. */
const struct json *obj_controller(const struct json *o);
/* Whether the ownerReference is to an object of this group ("": core) and kind. */
bool obj_ref_is(const struct json *ref, const char *group, const char *kind);
/* An object with apiVersion, kind and metadata.name (and namespace unless NULL). */
struct json *obj_new(const char *api_version, const char *kind, const char *ns, const char *name);
