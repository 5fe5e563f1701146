/* SPDX-License-Identifier: Apache-2.0 */
/* Label and field selectors, and the index of an object that they are matched against.
 *
 * An index has the values that selectors use (the kind's selectable fields, and the labels) in
 * one small block, so that selecting does not parse objects.  Both are immutable once made. */
#pragma once

#include "api/kind.h"

struct api_index;
/* Owned by the caller. */
struct api_index *api_index_new(const struct api_kind *k, const struct json *obj);
struct api_index *api_index_free(struct api_index *x);
DEFINE_CLEANUP(struct api_index *, api_index_free)
const char *api_index_label(const struct api_index *x, const char *key); /* NULL: absent. */
/* 'i' is a result of api_field_find. */
const char *api_index_field(const struct api_index *x, size_t i);

/* Number of the field that the kind is indexed by; -1: none. */
int api_field_indexed(const struct api_kind *k);
/* Number of the selectable field 'label' of 'k'; -1: not selectable. */
int api_field_find(const struct api_kind *k, const char *label);

struct api_selector;
/* "a=b,c!=d,e in (f,g),!h,i" as in the labelSelector parameter; "" selects all.  -EINVAL. */
int api_selector_parse_labels(const char *text, struct api_selector **ret, struct err *e);
/* "metadata.name=x,status.phase!=Running", with "\," "\=" and "\\" in values. -EINVAL:
 * malformed, or -ENOTSUP: the kind has no such field label (the error names it). */
int api_selector_parse_fields(const struct api_kind *k, const char *text, struct api_selector **ret,
                              struct err *e);
struct api_selector *api_selector_free(struct api_selector *s);
DEFINE_CLEANUP(struct api_selector *, api_selector_free)
/* The one value that 's' (NULL: none) requires of field 'i'; NULL: several are possible. */
const char *api_selector_value(const struct api_selector *s, size_t i);
/* 's' NULL selects all. */
bool api_selector_matches(const struct api_selector *s, const struct api_index *x);
