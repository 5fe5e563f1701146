/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/lifecycle/gc_graph.h"

#include "base/mem.h"
#include "controller/obj.h"

/* ---- nodes ---- */

void gc_graph_init(struct gc_graph *g)
{
    hmap_init(&g->nodes);
    hmap_init(&g->refs);
}

static void drop_details(struct gc_graph *g, struct gc_node *n)
{
    struct gc_details *d = TAKE(n->more);
    if (!d) {
        return;
    }
    for (size_t i = 0; i < d->n_refs; i++) {
        hmap_remove(&g->refs, &d->refs[i].node);
        free(d->refs[i].api_version);
        free(d->refs[i].kind);
        free(d->refs[i].name);
        free(d->refs[i].uid);
    }
    free(d->refs);
    free(d->ns);
    free(d->name);
    free(d);
}

void gc_graph_remove(struct gc_graph *g, struct gc_node *n)
{
    drop_details(g, n);
    hmap_remove(&g->nodes, &n->node);
    free(n);
}

void gc_graph_done(struct gc_graph *g)
{
    struct gc_node *n;
    HMAP_FOREACH (n, struct gc_node, node, &g->nodes) {
        gc_graph_remove(g, n);
    }
    hmap_done(&g->nodes);
    hmap_done(&g->refs);
}

struct gc_node *gc_graph_find(const struct gc_graph *g, const char *uid)
{
    struct gc_node *n;
    HMAP_FOREACH_WITH_HASH (n, struct gc_node, node, hash_string(uid), &g->nodes) {
        if (streq(n->uid, uid)) {
            return n;
        }
    }
    return NULL;
}

uint32_t gc_place(const char *ns, const char *name)
{
    CLEANUP_FREE char *place = xasprintf("%s/%s", ns ? ns : "", name);
    return hash_string(place);
}

static char *text(const struct json *o, const char *key)
{
    const char *s = json_path_string(o, key, NULL);
    return xstrdup(s ? s : "");
}

static void add_refs(struct gc_graph *g, struct gc_node *n, const struct json *list)
{
    struct gc_details *d = n->more;
    d->n_refs = json_count(list);
    d->refs = xcalloc(MAX(d->n_refs, (size_t) 1), sizeof(*d->refs));
    for (size_t i = 0; i < d->n_refs; i++) {
        const struct json *ref = json_at(list, i);
        struct gc_ref *r = &d->refs[i];
        *r = (struct gc_ref){
            .dependent = n,
            .api_version = text(ref, "apiVersion"),
            .kind = text(ref, "kind"),
            .name = text(ref, "name"),
            .uid = text(ref, "uid"),
            .blocks = json_get_bool(json_get(ref, "blockOwnerDeletion"), false),
        };
        hmap_insert(&g->refs, &r->node, hash_string(r->uid));
    }
}

struct gc_node *gc_graph_set(struct gc_graph *g, void *kind, const struct json *obj)
{
    const char *uid = obj_uid(obj);
    const struct json *refs = json_path(obj, "metadata", "ownerReferences", NULL);
    if (!*uid) {
        return NULL;
    }
    struct gc_node *n = gc_graph_find(g, uid);
    if (!n) {
        size_t size = strlen(uid) + 1;
        n = xcalloc(1, sizeof(*n) + size);
        memcpy(n->uid, uid, size);
        hmap_insert(&g->nodes, &n->node, hash_string(uid));
    }
    n->kind = kind;
    n->place = gc_place(obj_namespace(obj), obj_name(obj));
    drop_details(g, n);
    bool deleting = obj_is_terminating(obj);
    bool waits =
        deleting && (gc_has_finalizer(obj, GC_FOREGROUND) || gc_has_finalizer(obj, GC_ORPHAN));
    if (json_count(refs) || waits) {
        n->more = NEW(struct gc_details);
        *n->more = (struct gc_details){
            .ns = *obj_namespace(obj) ? xstrdup(obj_namespace(obj)) : NULL,
            .name = xstrdup(obj_name(obj)),
            .deleting = deleting,
            .foreground = deleting && gc_has_finalizer(obj, GC_FOREGROUND),
            .orphan = deleting && gc_has_finalizer(obj, GC_ORPHAN),
        };
        add_refs(g, n, refs);
    }
    return n;
}

void gc_graph_dependents(const struct gc_graph *g, const char *uid,
                         void (*fn)(void *ctx, const struct gc_ref *ref), void *ctx)
{
    struct gc_ref *r;
    HMAP_FOREACH_WITH_HASH (r, struct gc_ref, node, hash_string(uid), &g->refs) {
        if (streq(r->uid, uid)) {
            fn(ctx, r);
        }
    }
}

bool gc_ref_is_of(const struct gc_ref *ref, const struct gc_node *owner)
{
    return owner->place == gc_place(NULL, ref->name) ||
           owner->place == gc_place(ref->dependent->more->ns, ref->name);
}

bool gc_graph_is_blocked(const struct gc_graph *g, const char *uid, const struct gc_node *except)
{
    const struct gc_node *owner = gc_graph_find(g, uid);
    struct gc_ref *r;
    HMAP_FOREACH_WITH_HASH (r, struct gc_ref, node, hash_string(uid), &g->refs) {
        if (r->blocks && r->dependent != except && streq(r->uid, uid) &&
            (!owner || gc_ref_is_of(r, owner))) {
            return true;
        }
    }
    return false;
}

/* ---- decisions ---- */

bool gc_has_finalizer(const struct json *obj, const char *name)
{
    const struct json *f;
    JSON_FOREACH (f, json_path(obj, "metadata", "finalizers", NULL)) {
        if (streq_null(json_get_string(f), name)) {
            return true;
        }
    }
    return false;
}

enum gc_owner gc_owner_state(const struct json *owner, const char *uid)
{
    if (!owner || !streq(obj_uid(owner), uid)) {
        return GC_OWNER_ABSENT;
    }
    return obj_is_terminating(owner) && gc_has_finalizer(owner, GC_FOREGROUND) ? GC_OWNER_WAITING
                                                                               : GC_OWNER_SOLID;
}

/* A merge patch of metadata that fails when the object has changed; an empty list is removed. */
static struct json *patch_of(const struct json *obj, const char *key, struct json *v)
{
    struct json *patch = json_object(), *meta = json_ensure_object(patch, "metadata");
    json_set_string(meta, "uid", obj_uid(obj));
    json_set_string(meta, "resourceVersion",
                    json_path_string(obj, "metadata", "resourceVersion", NULL));
    if (json_count(v)) {
        json_set(meta, key, v);
    } else {
        json_free(v);
        json_set(meta, key, json_null());
    }
    return patch;
}

struct json *gc_patch_finalizer(const struct json *obj, const char *name)
{
    struct json *rest = json_array();
    const struct json *f;
    JSON_FOREACH (f, json_path(obj, "metadata", "finalizers", NULL)) {
        if (!streq_null(json_get_string(f), name)) {
            json_append(rest, json_clone(f));
        }
    }
    return patch_of(obj, "finalizers", rest);
}

struct json *gc_patch_owners(const struct json *obj, const char *const *uids, size_t n)
{
    struct json *rest = json_array();
    const struct json *ref;
    JSON_FOREACH (ref, json_path(obj, "metadata", "ownerReferences", NULL)) {
        bool drop = false;
        for (size_t i = 0; i < n; i++) {
            drop |= streq_null(json_path_string(ref, "uid", NULL), uids[i]);
        }
        if (!drop) {
            json_append(rest, json_clone(ref));
        }
    }
    return patch_of(obj, "ownerReferences", rest);
}

struct json *gc_patch_unblock(const struct json *obj)
{
    struct json *list = json_clone(json_path(obj, "metadata", "ownerReferences", NULL)), *ref;
    JSON_FOREACH (ref, list) {
        if (json_get(ref, "blockOwnerDeletion")) {
            json_set_bool(ref, "blockOwnerDeletion", false);
        }
    }
    return patch_of(obj, "ownerReferences", list);
}

struct json *gc_delete_options(const struct json *obj, const char *policy)
{
    if (!policy) {
        policy = gc_has_finalizer(obj, GC_ORPHAN)       ? "Orphan"
                 : gc_has_finalizer(obj, GC_FOREGROUND) ? "Foreground"
                                                        : "Background";
    }
    struct json *o = json_object(), *pre = json_ensure_object(o, "preconditions");
    json_set_string(o, "kind", "DeleteOptions");
    json_set_string(o, "apiVersion", "v1");
    json_set_string(o, "propagationPolicy", policy);
    json_set_string(pre, "uid", obj_uid(obj));
    json_set_string(pre, "resourceVersion",
                    json_path_string(obj, "metadata", "resourceVersion", NULL));
    return o;
}
