/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/objects.h"

#include "base/map.h"
#include "base/mem.h"

struct object {
    struct pod_objects *all;
    enum pod_object_kind kind;
    char *ns, *name;
    struct informer *watch;    /* NULL: the object is immutable. */
    struct json *kept;         /* The immutable object. */
    char *failure;             /* Why the API server does not answer; NULL: it does. */
    struct list uses;          /* List of 'struct use'. */
    struct loop_task freezing; /* Ends the watch, outside of the watch's own callback. */
};

/* That one pod refers to one object. */
struct use {
    struct list of_object, of_pod;
    struct object *object;
    struct user *pod;
    bool current; /* The latest state of the pod refers to it. */
};

struct user {
    char *uid, *ns;
    struct list uses;
};

struct pod_objects {
    struct loop *loop;
    struct api_client *client;
    const struct pod_objects_ops *ops;
    void *ctx;
    struct smap objects; /* "KIND/NAMESPACE/NAME" to 'struct object'. */
    struct smap pods;    /* Uid to 'struct user'. */
};

static char *key_of(enum pod_object_kind kind, const char *ns, const char *name)
{
    return xasprintf("%s/%s/%s", pod_object_plural(kind), ns, name);
}

static struct object *find(const struct pod_objects *o, enum pod_object_kind kind, const char *ns,
                           const char *name)
{
    CLEANUP_FREE char *key = key_of(kind, ns, name);
    return smap_get(&o->objects, key);
}

/* Calls 'changed' for each pod that uses the object.  The uids are copied: the callee may add and
 * remove pods. */
static void tell_users(struct object *obj)
{
    struct pod_objects *all = obj->all;
    CLEANUP(json_free) struct json *uids = json_array();
    const struct json *uid;
    struct use *u;
    LIST_FOREACH (u, struct use, of_object, &obj->uses) {
        json_append(uids, json_string(u->pod->uid));
    }
    JSON_FOREACH (uid, uids) {
        all->ops->changed(all->ctx, json_get_string(uid));
    }
}

static void on_changed(void *ctx, const char *key, const struct json *old, const struct json *now)
{
    struct object *obj = ctx;
    if (json_get_bool(json_get(now, "immutable"), false)) {
        loop_task_queue(&obj->freezing);
    }
    if (informer_synced(obj->watch)) {
        tell_users(obj);
    }
}

static void on_deleted(void *ctx, const char *key, const struct json *last)
{
    struct object *obj = ctx;
    loop_task_cancel(&obj->freezing);
    tell_users(obj);
}

static void on_synced(void *ctx)
{
    tell_users(ctx);
}

static void on_connection(void *ctx, const char *lost_reason)
{
    struct object *obj = ctx;
    free(obj->failure);
    obj->failure = lost_reason ? xstrdup(lost_reason) : NULL;
    if (lost_reason && !informer_synced(obj->watch)) {
        tell_users(obj);
    }
}

static const struct informer_ops watch_ops = {
    .changed = on_changed, .deleted = on_deleted, .synced = on_synced, .connection = on_connection};

static void freeze(void *ctx)
{
    struct object *obj = ctx;
    CLEANUP_FREE char *key = xasprintf("%s/%s", obj->ns, obj->name);
    const struct json *now = informer_get(obj->watch, key);
    if (now) {
        obj->kept = json_clone(now);
        obj->watch = informer_free(obj->watch);
    }
}

static struct object *object_new(struct pod_objects *o, enum pod_object_kind kind, const char *ns,
                                 const char *name)
{
    CLEANUP_FREE char *key = key_of(kind, ns, name);
    CLEANUP_FREE char *selector = xasprintf("metadata.name=%s", name);
    struct object *obj = NEW(struct object);
    *obj = (struct object){.all = o, .kind = kind, .ns = xstrdup(ns), .name = xstrdup(name)};
    list_init(&obj->uses);
    loop_task_init(&obj->freezing, o->loop, freeze, obj);
    smap_set(&o->objects, key, obj);
    obj->watch = informer_new_in(o->client, o->loop, ns, "v1", pod_object_plural(kind), selector,
                                 &watch_ops, obj);
    return obj;
}

static void object_free(struct object *obj)
{
    CLEANUP_FREE char *key = key_of(obj->kind, obj->ns, obj->name);
    smap_remove(&obj->all->objects, key);
    loop_task_cancel(&obj->freezing);
    if (obj->watch) {
        informer_free(obj->watch);
    }
    json_free(obj->kept);
    free(obj->failure);
    free(obj->ns);
    free(obj->name);
    free(obj);
}

static void use_free(struct use *u)
{
    struct object *obj = u->object;
    list_remove(&u->of_object);
    list_remove(&u->of_pod);
    free(u);
    if (list_is_empty(&obj->uses)) {
        object_free(obj);
    }
}

static void user_free(struct user *p)
{
    struct use *u;
    LIST_FOREACH (u, struct use, of_pod, &p->uses) {
        use_free(u);
    }
    free(p->uid);
    free(p->ns);
    free(p);
}

struct referring {
    struct pod_objects *all;
    struct user *pod;
    enum pod_object_kind kind;
};

static int add_use(void *ctx, const struct pod_reference *ref)
{
    struct referring *r = ctx;
    struct use *u;
    LIST_FOREACH (u, struct use, of_pod, &r->pod->uses) {
        if (u->object->kind == r->kind && streq(u->object->name, ref->name)) {
            u->current = true;
            return 0;
        }
    }
    struct object *obj = find(r->all, r->kind, r->pod->ns, ref->name);
    u = NEW(struct use);
    u->object = obj ? obj : object_new(r->all, r->kind, r->pod->ns, ref->name);
    u->pod = r->pod;
    u->current = true;
    list_push_back(&u->object->uses, &u->of_object);
    list_push_back(&r->pod->uses, &u->of_pod);
    return 0;
}

void pod_objects_set_pod(struct pod_objects *o, const struct json *pod)
{
    const struct json *meta = json_get(pod, "metadata");
    const char *uid = json_get_text(meta, "uid");
    struct user *p = smap_get(&o->pods, uid);
    struct use *u;
    if (!p) {
        p = NEW(struct user);
        p->uid = xstrdup(uid);
        p->ns = xstrdup(json_get_text(meta, "namespace"));
        list_init(&p->uses);
        smap_set(&o->pods, uid, p);
    }
    LIST_FOREACH (u, struct use, of_pod, &p->uses) {
        u->current = false;
    }
    for (enum pod_object_kind kind = 0; kind < POD_OBJECT_KINDS; kind++) {
        (void) pod_reference_each(json_get(pod, "spec"), kind, add_use,
                                  &(struct referring){o, p, kind});
    }
    LIST_FOREACH (u, struct use, of_pod, &p->uses) {
        if (!u->current) {
            use_free(u);
        }
    }
}

void pod_objects_remove_pod(struct pod_objects *o, const char *uid)
{
    struct user *p = smap_take(&o->pods, uid);
    if (p) {
        user_free(p);
    }
}

int pod_objects_get(const struct pod_objects *o, enum pod_object_kind kind, const char *ns,
                    const char *name, const struct json **ret)
{
    const struct object *obj = find(o, kind, ns, name);
    if (!obj || (!obj->kept && !informer_synced(obj->watch))) {
        return -EAGAIN;
    }
    CLEANUP_FREE char *key = xasprintf("%s/%s", ns, name);
    const struct json *found = obj->kept ? obj->kept : informer_get(obj->watch, key);
    if (!found) {
        return -ENOENT;
    }
    *ret = found;
    return 0;
}

const char *pod_objects_failure(const struct pod_objects *o, enum pod_object_kind kind,
                                const char *ns, const char *name)
{
    const struct object *obj = find(o, kind, ns, name);
    return obj ? obj->failure : NULL;
}

size_t pod_objects_count(const struct pod_objects *o)
{
    return smap_size(&o->objects);
}

size_t pod_objects_watches(const struct pod_objects *o)
{
    struct smap_entry *en;
    size_t n = 0;
    SMAP_FOREACH (en, &o->objects) {
        n += ((const struct object *) en->value)->watch != NULL;
    }
    return n;
}

struct pod_objects *pod_objects_new(struct loop *l, struct api_client *c,
                                    const struct pod_objects_ops *ops, void *ctx)
{
    struct pod_objects *o = NEW(struct pod_objects);
    *o = (struct pod_objects){.loop = l, .client = c, .ops = ops, .ctx = ctx};
    smap_init(&o->objects, NULL);
    smap_init(&o->pods, NULL);
    return o;
}

struct pod_objects *pod_objects_free(struct pod_objects *o)
{
    if (o) {
        struct smap_entry *en;
        SMAP_FOREACH (en, &o->pods) {
            user_free(en->value);
        }
        smap_done(&o->pods);
        smap_done(&o->objects);
        free(o);
    }
    return NULL;
}
