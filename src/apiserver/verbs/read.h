/* SPDX-License-Identifier: Apache-2.0 */
/* Get and list, and what they share with watch and deletecollection: selection and versions. */
#pragma once

#include "apiserver/cache/cache.h"
#include "apiserver/request/request.h"

void handle_get(struct request *q, struct outcome *outcome);
void handle_list(struct request *q, struct outcome *outcome);

struct visible;
/* The selectors of a request; NULL: all. */
struct selection {
    struct api_selector *labels, *fields;
    const char *name;        /* Of the object, when one is watched by its path; the request's. */
    struct visible *visible; /* The objects that the user may get; NULL: all. */
};
int selection_parse(struct request *q, struct selection *ret, struct outcome *outcome);
void selection_done(struct selection *s);
bool selection_matches(const struct selection *s, const struct object *o);
/* Where in the cache the objects of the selection are, within the request's namespace. */
struct cache_range selection_range(const struct request *q, const struct selection *s);
/* The value that it wants of the field by which the kind is indexed; NULL: several. */
const char *selection_value(const struct request *q, const struct selection *s);
/* A resourceVersion parameter: *ret 0 when absent or "0". */
int version_parse(struct request *q, uint64_t *ret, bool *ret_present, struct outcome *outcome);
/* 504: the cache does not have that revision yet. */
void outcome_too_large(struct outcome *o, const struct request *q, uint64_t revision);
