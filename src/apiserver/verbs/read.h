/* SPDX-License-Identifier: Apache-2.0 */
/* Get and list, and the parts that they share with watch and
 * deletecollection: selection and versions. */
#pragma once

#include "apiserver/cache/cache.h"
#include "apiserver/request/request.h"

void handle_get(struct request *q, struct outcome *outcome);
void handle_list(struct request *q, struct outcome *outcome);

/* Answers a list with these objects, which are of the request's kind; all is borrowed. */
void list_answer(struct request *q, struct object *const *found, size_t n, struct outcome *outcome);

struct visible;
/* The selectors of a request; NULL: all. */
struct selection {
    struct api_selector *labels, *fields;
    /* The name of the object, when one is watched by its path; belongs to the request. */
    const char *name;
    struct visible *visible; /* The objects that the user may get; NULL: all. */
    /* The node that sees a part of the kind (node_storage.h); NULL: all is seen.  The trees of the
     * objects are those of 'parsed'. */
    const char *node;
    const struct api_kind *kind;
    struct parsed *parsed;
    const struct request *own; /* Only objects of its user are seen (api_kind.own); NULL: all. */
};
/* Whether the request's user may see the object: kinds that are api_kind.own show each user the
 * user's own objects, and other kinds are not limited by it. */
bool own_sees(const struct request *q, const struct object *o);
int selection_parse(struct request *q, struct selection *ret, struct outcome *outcome);
void selection_done(struct selection *s);
bool selection_matches(const struct selection *s, const struct object *o);
/* The range of the cache that contains the selected objects, within the request's namespace. */
struct cache_range selection_range(const struct request *q, const struct selection *s);
/* The value of the kind's indexed field that the selection requires; NULL: several. */
const char *selection_value(const struct request *q, const struct selection *s);
/* Parses a resourceVersion parameter: *ret is 0 when it is absent or "0". */
int version_parse(struct request *q, uint64_t *ret, bool *ret_present, struct outcome *outcome);
/* Fills in a 504: the cache does not have that revision yet. */
void outcome_too_large(struct outcome *o, const struct request *q, uint64_t revision);
