/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_pool.h"

#include "base/map.h"
#include "wire/json_internal.h"

#define LEVELS 2
#define TEXT_KEPT 65536 /* Bytes of room that stay from one part to the next. */

struct json_pool {
    struct hmap parts;
    size_t n;           /* Parts, with those that are just being freed. */
    struct strbuf text; /* Room for the text of which a part's hash is made. */
    bool closed;        /* The pool goes with its last part. */
};

/* The vector comes first: the part is freed as the value that it is. */
struct part {
    struct json_vec vec;
    struct json_pool *pool;
    struct hmap_node node;
    uint32_t refs;
};

struct json_pool *json_pool_new(void)
{
    struct json_pool *p = NEW(struct json_pool);
    hmap_init(&p->parts);
    p->text = STRBUF_INIT;
    return p;
}

static void free_if_unused(struct json_pool *p)
{
    if (p->closed && !p->n) {
        hmap_done(&p->parts);
        strbuf_done(&p->text);
        free(p);
    }
}

struct json_pool *json_pool_free(struct json_pool *p)
{
    if (p) {
        p->closed = true;
        free_if_unused(p);
    }
    return NULL;
}

size_t json_pool_count(const struct json_pool *p)
{
    return p->n;
}

void json_part_release(struct json *v)
{
    struct part *part = CONTAINER_OF(v, struct part, vec.head);
    struct json_pool *p = part->pool;
    if (--part->refs) {
        return;
    }
    hmap_remove(&p->parts, &part->node);
    v->permanent = v->shared = false;
    json_free(v); /* The parts in it, too. */
    p->n--;
    free_if_unused(p);
}

/* The pool's part that equals 'v', which is taken over. */
static struct json *share(struct json_pool *p, struct json *v)
{
    struct part *part;
    json_write(v, 0, &p->text);
    uint32_t hash = (uint32_t) json_hash(strbuf_cstr(&p->text), p->text.size);
    if (p->text.cap > TEXT_KEPT) {
        strbuf_done(&p->text);
    } else {
        strbuf_reset(&p->text);
    }
    HMAP_FOREACH_WITH_HASH (part, struct part, node, hash, &p->parts) {
        if (json_equal(&part->vec.head, v)) {
            json_free(v);
            part->refs++;
            return &part->vec.head;
        }
    }
    part = NEW(struct part);
    part->vec = *(struct json_vec *) v;
    part->vec.head.permanent = part->vec.head.shared = true;
    part->pool = p;
    part->refs = 1;
    free(v);
    hmap_insert(&p->parts, &part->node, hash);
    p->n++;
    return &part->vec.head;
}

static void share_children(struct json_pool *p, struct json *v, int levels)
{
    struct json_vec *vec = (struct json_vec *) v;
    json_settle(v);
    for (size_t i = 0; i < vec->head.n; i++) {
        struct json **child = v->type == JSON_ARRAY ? &vec->items[i] : &vec->members[i].v;
        if ((*child)->type < JSON_ARRAY || (*child)->permanent) {
            continue;
        }
        if (levels > 1) {
            share_children(p, *child, levels - 1);
        }
        *child = share(p, *child);
    }
}

void json_pool_share(struct json_pool *p, struct json *v)
{
    share_children(p, v, LEVELS);
}
