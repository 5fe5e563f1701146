/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/cache/parsed.h"

#include "base/map.h"

const struct json *parsed_get(struct parsed *p, struct object *o)
{
    if (!o) {
        return NULL;
    }
    size_t i = hash_string(o->key) % PARSED_PLACES;
    if (p->places[i].object != o) {
        object_unref(p->places[i].object);
        json_free(p->places[i].tree);
        p->places[i].object = object_ref(o);
        p->places[i].tree = object_parse(o);
    }
    return p->places[i].tree;
}

void parsed_done(struct parsed *p)
{
    for (size_t i = 0; i < PARSED_PLACES; i++) {
        object_unref(p->places[i].object);
        json_free(p->places[i].tree);
    }
    *p = (struct parsed){0};
}
