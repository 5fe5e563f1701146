/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/owned.h"

#include "api/obj.h"
#include "base/mem.h"

struct child {
    struct hmap_node node; /* By the owner's uid, or by namespace. */
    char key[];
};

void owned_init(struct owned *o, const struct workload_kind *owner)
{
    o->owner = owner;
    hmap_init(&o->children);
}

void owned_done(struct owned *o)
{
    struct child *c;
    HMAP_FOREACH (c, struct child, node, &o->children) {
        hmap_remove(&o->children, &c->node);
        free(c);
    }
    hmap_done(&o->children);
}

static uint32_t hash_of_orphans(const char *ns)
{
    return ~hash_string(ns);
}

/* Where the object is in the index; false: it is not. */
static bool place(const struct owned *o, const struct json *obj, uint32_t *ret_hash)
{
    const struct json *ref = obj && o->owner ? obj_controller(obj) : NULL;
    if (!obj || (ref && !obj_ref_is(ref, o->owner->group, o->owner->kind))) {
        return false;
    }
    *ret_hash = ref ? hash_string(json_get_text(ref, "uid")) : hash_of_orphans(obj_namespace(obj));
    return true;
}

static struct child *find(const struct owned *o, const char *key, uint32_t hash)
{
    struct child *c;
    HMAP_FOREACH_WITH_HASH (c, struct child, node, hash, &o->children) {
        if (streq(c->key, key)) {
            return c;
        }
    }
    return NULL;
}

void owned_change(struct owned *o, const char *key, const struct json *old, const struct json *obj)
{
    uint32_t before = 0, now = 0;
    bool was = place(o, old, &before), is = place(o, obj, &now);
    struct child *c = was ? find(o, key, before) : NULL;
    if (c && is && before == now) {
        return;
    }
    if (c) {
        hmap_remove(&o->children, &c->node);
        free(c);
    }
    if (is && !find(o, key, now)) {
        size_t size = strlen(key) + 1;
        c = xcalloc(1, sizeof *c + size);
        memcpy(c->key, key, size);
        hmap_insert(&o->children, &c->node, now);
    }
}

static void append(const struct owned *o, const struct informer *informer, uint32_t hash,
                   struct owned_list *ret)
{
    const struct child *c;
    HMAP_FOREACH_WITH_HASH (c, struct child, node, hash, &o->children) {
        const struct json *obj = informer_get(informer, c->key);
        if (obj) {
            ret->list = grow(ret->list, &ret->cap, ret->n + 1, sizeof *ret->list);
            ret->list[ret->n++] =
                (struct workload_child){.obj = obj, .going = obj_is_terminating(obj)};
        }
    }
}

void owned_find(const struct owned *o, const struct informer *informer, const struct json *owner,
                bool orphans, struct owned_list *ret)
{
    append(o, informer, hash_string(obj_uid(owner)), ret);
    if (orphans) {
        owned_find_in(o, informer, obj_namespace(owner), ret);
    }
}

void owned_find_in(const struct owned *o, const struct informer *informer, const char *ns,
                   struct owned_list *ret)
{
    append(o, informer, hash_of_orphans(ns), ret);
}

char *owned_owner_key(const struct owned *o, const struct json *child)
{
    const struct json *ref = obj_controller(child);
    if (!ref || !obj_ref_is(ref, o->owner->group, o->owner->kind)) {
        return NULL;
    }
    return xasprintf("%s/%s", obj_namespace(child), json_get_text(ref, "name"));
}
