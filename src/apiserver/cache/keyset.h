/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of objects by key, which lists iterate over.
 *
 * Two levels of sorted arrays: a change moves the pointers of one chunk only, a walk
 * reads memory in order, and a namespace is a range ("NAMESPACE/" is the prefix of its
 * keys).  It holds a reference to each object. */
#pragma once

#include "apiserver/cache/object.h"

#define KEYSET_CHUNK 256

struct keyset_chunk {
    size_t n;
    struct object *at[KEYSET_CHUNK];
};
struct keyset {
    struct keyset_chunk **chunks; /* None is empty. */
    size_t n_chunks, cap;
    size_t n;
};
/* A position in the set; valid until the set changes. */
struct keyset_pos {
    size_t chunk, i;
};

void keyset_done(struct keyset *s); /* Empties it; it can be used again. */
struct object *keyset_get(const struct keyset *s, const char *key); /* NULL: absent. */
/* Stores 'o' (the reference is taken over) and returns the object it replaced, which the caller
 * owns. */
struct object *keyset_put(struct keyset *s, struct object *o);
struct object *keyset_remove(struct keyset *s, const char *key);
/* The first object whose key is not less than 'key'. */
struct keyset_pos keyset_seek(const struct keyset *s, const char *key);
/* Returns the object at '*pos' and advances it; NULL at the end. */
struct object *keyset_next(const struct keyset *s, struct keyset_pos *pos);
/* The number of objects before 'pos'. */
size_t keyset_rank(const struct keyset *s, struct keyset_pos pos);
