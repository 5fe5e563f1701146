/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of objects that many writes read: a pod's creation reads its namespace, priority class and
 * runtime class, which change far less often than pods are made.
 *
 * The table keeps a reference to each object whose tree it has.  An object is immutable, so its
 * tree stays right; a changed object is another one, and the old one leaves the table when its
 * place is needed.  Loop's thread only. */
#pragma once

#include "apiserver/cache/object.h"

#define PARSED_PLACES 64

struct parsed {
    struct {
        struct object *object; /* NULL: the place is free. */
        struct json *tree;
    } places[PARSED_PLACES];
};

/* The tree of 'o' in the version that is kept, borrowed until the next call; NULL: 'o' is NULL. */
const struct json *parsed_get(struct parsed *p, struct object *o);
void parsed_done(struct parsed *p);
