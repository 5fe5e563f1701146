/* SPDX-License-Identifier: Apache-2.0 */
/* Informers: listeners on a source, which has one list and watch and, if
 * a listener needs it, the copy.
 *
 * A new listener waits until it can follow: from the first page of a list, or, when the source has
 * a complete copy, from a task of the loop that reports the copy. */
#include "client/informer_set.h"

#include "base/map.h"
#include "base/mem.h"
#include "client/reflector.h"
#include "wire/json_pool.h"

struct source {
    struct informer_set *set; /* NULL: the source belongs to one listener alone. */
    struct list in_set;
    char *api_version, *plural, *field_selector;
    struct reflector *reflector;
    struct list listeners;  /* List of 'struct informer'. */
    unsigned delivering;    /* Depth of calls to listeners, during which no listener is released. */
    struct hmap objects;    /* Map of 'struct entry'. */
    struct list order;      /* The entries in the order of arrival. */
    struct json_pool *pool; /* Equal parts of the objects. */
    bool copies;            /* A listener needs the copy. */
    bool keys_only, metadata_only; /* What the copy has of each object. */
    bool metadata;                 /* The list has metadata only. */
    bool begins;                   /* A list was requested, and none of its pages has arrived. */
    bool listing;                  /* Pages are arriving. */
    bool complete;                 /* At least one list was complete. */
    bool expired;                  /* Listeners that are added now need a new list. */
    char *lost;                    /* The reason why the server cannot be reached; NULL: it can. */
    struct loop_task settle;
};

struct informer {
    struct list node; /* In the list of the source's listeners. */
    struct source *source;
    const struct informer_ops *ops;
    void *ctx;
    bool follows; /* It gets events. */
    bool synced;
    bool optional;
    bool lost;  /* It was notified that the server cannot be reached. */
    bool freed; /* It is released when the calls to listeners have returned. */
};

struct informer_set {
    struct loop *loop;
    struct api_client *client;
    struct list sources;
};

/* An entry is one allocation, because there may be very many. */
struct entry {
    struct hmap_node node;
    struct list order;
    struct json *obj; /* NULL: not kept. */
    uint32_t version; /* The hash of its resourceVersion. */
    bool seen;        /* It was in the list being read. */
    char key[];
};

/* ---- the copy ---- */

static struct entry *find_entry(const struct source *s, const char *key)
{
    struct entry *en;
    HMAP_FOREACH_WITH_HASH (en, struct entry, node, hash_string(key), &s->objects) {
        if (streq(en->key, key)) {
            return en;
        }
    }
    return NULL;
}

static struct entry *add_entry(struct source *s, const char *key)
{
    size_t size = strlen(key) + 1;
    struct entry *en = xcalloc(1, sizeof *en + size);
    memcpy(en->key, key, size);
    hmap_insert(&s->objects, &en->node, hash_string(key));
    list_push_back(&s->order, &en->order);
    return en;
}

static void take_entry(struct source *s, struct entry *en)
{
    hmap_remove(&s->objects, &en->node);
    list_remove(&en->order);
}

static void entry_free(struct entry *en)
{
    json_free(en->obj);
    free(en);
}

static void drop_copy(struct source *s)
{
    struct entry *en;
    LIST_FOREACH (en, struct entry, order, &s->order) {
        take_entry(s, en);
        entry_free(en);
    }
}

static const char *version_of(const struct json *obj)
{
    return json_path_string(obj, "metadata", "resourceVersion", NULL);
}

/* Owned "namespace/name" or "name"; NULL: the object has no name. */
static char *key_of(const struct json *obj)
{
    const char *ns = json_path_string(obj, "metadata", "namespace", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    return !name ? NULL : ns && *ns ? xasprintf("%s/%s", ns, name) : xstrdup(name);
}

/* ---- calling listeners ---- */

static void source_free(struct source *s)
{
    list_remove(&s->in_set);
    loop_task_cancel(&s->settle);
    reflector_free(s->reflector);
    drop_copy(s);
    hmap_done(&s->objects);
    json_pool_free(s->pool);
    free(s->api_version);
    free(s->plural);
    free(s->field_selector);
    free(s->lost);
    free(s);
}

static bool has_listeners(const struct source *s)
{
    const struct informer *i;
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        if (!i->freed) {
            return true;
        }
    }
    return false;
}

/* Releases the freed listeners, and with the last one the source; false: the source was
 * released. */
static bool release(struct source *s)
{
    struct informer *i;
    if (s->delivering) {
        return true;
    }
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        if (i->freed) {
            list_remove(&i->node);
            free(i);
        }
    }
    if (list_is_empty(&s->listeners)) {
        source_free(s);
        return false;
    }
    return true;
}

/* Iterates over the listeners that get events; each may be freed in the
 * loop's body, and others added. */
#define EACH_FOLLOWER(i, s)                                  \
    LIST_FOREACH (i, struct informer, node, &(s)->listeners) \
        if (!(i)->freed && (i)->follows)

/* Call it after the listeners were called; false: the source was released. */
static bool end_calls(struct source *s)
{
    s->delivering--;
    return release(s);
}

/* What the copy has of '*obj', which is taken over if it is the whole object. */
static struct json *kept(const struct source *s, struct json **obj)
{
    if (s->keys_only) {
        return NULL;
    }
    struct json *o = s->metadata_only ? json_object() : TAKE(*obj);
    if (s->metadata_only) {
        json_set(o, "metadata", json_clone(json_get(*obj, "metadata")));
    }
    json_pool_share(s->pool, o);
    return o;
}

/* Takes 'obj' over. */
static void object_changed(void *ctx, struct json *obj)
{
    struct source *s = ctx;
    struct informer *i;
    CLEANUP_FREE char *key = key_of(obj);
    CLEANUP(json_free) struct json *old = NULL, *unkept = obj;
    bool same = false;
    if (!key) {
        return;
    }
    /* Removed because it is large and no listener reads it. */
    json_remove(json_get(obj, "metadata"), "managedFields");
    if (s->copies) {
        struct entry *en = find_entry(s, key);
        const char *version = version_of(obj);
        uint32_t hash = version ? hash_string(version) : 0;
        old = en ? TAKE(en->obj) : NULL;
        same = en && (old ? streq_null(version_of(old), version) : en->version == hash);
        en = en ? en : add_entry(s, key);
        en->version = hash;
        en->seen = true;
        en->obj = kept(s, &unkept);
    }
    s->delivering++;
    EACH_FOLLOWER(i, s)
    {
        if (i->ops->changed && (i->ops->transient || !same)) {
            i->ops->changed(i->ctx, key, i->ops->transient ? NULL : old, obj);
        }
    }
    end_calls(s);
}

/* Reports that the object of the entry, which is removed from the copy, was deleted.  'last' goes
 * to listeners without a copy; NULL: these get no call. */
static bool entry_deleted(struct source *s, struct entry *en, const char *key,
                          const struct json *last)
{
    struct informer *i;
    if (en) {
        take_entry(s, en);
    }
    s->delivering++;
    EACH_FOLLOWER(i, s)
    {
        bool notify = i->ops->transient ? last != NULL : en != NULL;
        if (notify && i->ops->deleted) {
            i->ops->deleted(i->ctx, key, i->ops->transient ? last : en->obj);
        }
    }
    if (en) {
        entry_free(en);
    }
    return end_calls(s);
}

static void object_deleted(void *ctx, const struct json *obj)
{
    struct source *s = ctx;
    CLEANUP_FREE char *key = key_of(obj);
    if (key) {
        (void) entry_deleted(s, find_entry(s, key), key, obj);
    }
}

/* ---- lists ---- */

/* A listener without a copy gets all objects of any list.  One with a copy gets those that the copy
 * does not have: it follows a list only while the copy is empty. */
static void list_begins(void *ctx)
{
    struct source *s = ctx;
    struct informer *i;
    struct entry *en;
    s->begins = false;
    s->listing = true;
    LIST_FOREACH (en, struct entry, order, &s->order) {
        en->seen = false;
    }
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        i->follows = i->follows || i->ops->transient || s->objects.n == 0;
    }
    s->delivering++;
    EACH_FOLLOWER(i, s)
    {
        if (i->ops->listing) {
            i->ops->listing(i->ctx);
        }
    }
    end_calls(s);
}

static void say_listed(struct informer *i)
{
    bool news = !i->synced;
    i->synced = true;
    if (i->ops->listed) {
        i->ops->listed(i->ctx);
    }
    if (news && !i->freed && i->ops->synced) {
        i->ops->synced(i->ctx);
    }
}

/* Objects of the copy that were on none of the pages were deleted. */
static void list_ends(void *ctx)
{
    struct source *s = ctx;
    struct informer *i;
    struct entry *en;
    s->listing = false;
    s->complete = true;
    LIST_FOREACH (en, struct entry, order, &s->order) {
        if (!en->seen) {
            CLEANUP_FREE char *key = xstrdup(en->key);
            if (!entry_deleted(s, en, key, NULL)) {
                return;
            }
        }
    }
    loop_task_queue(&s->settle); /* Serves listeners that wait for the copy. */
    s->delivering++;
    EACH_FOLLOWER(i, s)
    {
        say_listed(i);
    }
    end_calls(s);
}

static void say_connection(struct informer *i, const char *lost)
{
    if (i->lost != (lost != NULL)) {
        i->lost = lost != NULL;
        if (i->ops->connection) {
            i->ops->connection(i->ctx, lost);
        }
    }
}

/* Notifies the listeners that have not been notified yet; false: the source was released. */
static bool say_connection_to_all(struct source *s)
{
    struct informer *i;
    s->delivering++;
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        if (!i->freed) {
            say_connection(i, s->lost);
        }
    }
    return end_calls(s);
}

static void connection_changed(void *ctx, const char *lost_reason)
{
    struct source *s = ctx;
    free(s->lost);
    s->lost = lost_reason ? xstrdup(lost_reason) : NULL;
    (void) say_connection_to_all(s);
}

static bool kind_absent(void *ctx)
{
    struct source *s = ctx;
    const struct informer *i;
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        if (!i->freed && !i->optional) {
            return false;
        }
    }
    return true;
}

/* ---- new listeners ---- */

struct needs {
    bool copy, whole; /* Needs of all listeners together: a copy; more than metadata. */
    bool waits;       /* A listener does not follow yet. */
    bool transient;   /* A listener that does not follow yet reads no copy. */
};

static struct needs needs_of(const struct source *s)
{
    struct needs n = {0};
    const struct informer *i;
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        n.copy |= !i->ops->transient;
        n.whole |= !i->ops->metadata;
        n.waits |= !i->follows;
        n.transient |= !i->follows && i->ops->transient;
    }
    return n;
}

/* Whether the waiting listeners can be served only by another list. */
static bool needs_list(const struct source *s, const struct needs *n)
{
    bool upgrade = (n->copy && !s->copies) || (n->whole && s->metadata);
    if (s->begins) { /* A copy can start with the first page. */
        return s->expired || (n->whole && s->metadata);
    }
    return upgrade || s->expired || (n->transient && !s->copies);
}

/* Reports the copy to 'i'. */
static void report_copy(struct source *s, struct informer *i)
{
    struct entry *en;
    i->follows = true;
    if (i->ops->listing) {
        i->ops->listing(i->ctx);
    }
    LIST_FOREACH (en, struct entry, order, &s->order) {
        if (!i->freed && i->ops->changed) {
            i->ops->changed(i->ctx, en->key, NULL, en->obj);
        }
    }
    if (!i->freed) {
        say_listed(i);
    }
}

static void serve_waiting(struct source *s)
{
    struct informer *i;
    s->delivering++;
    LIST_FOREACH (i, struct informer, node, &s->listeners) {
        if (!i->freed && !i->follows) {
            report_copy(s, i);
        }
    }
    end_calls(s);
}

/* Adapts the source to the needs of its listeners. */
static void settle(void *ctx)
{
    struct source *s = ctx;
    if (!say_connection_to_all(s)) {
        return;
    }
    struct needs n = needs_of(s);
    bool list = n.waits && needs_list(s, &n);
    if (!n.copy) {
        drop_copy(s);
    }
    s->copies = n.copy;
    if (list) {
        s->expired = s->listing = false;
        s->begins = true;
        s->metadata = !n.whole;
        reflector_list(s->reflector, s->metadata);
    } else if (n.waits && s->complete && !s->begins && !s->listing) {
        serve_waiting(s);
    }
}

/* ---- public ---- */

static struct source *source_new(struct informer_set *set, struct api_client *c, struct loop *l,
                                 const char *ns, const char *api_version, const char *plural,
                                 const char *field_selector)
{
    static const struct reflector_ops ops = {.listing = list_begins,
                                             .listed = list_ends,
                                             .changed = object_changed,
                                             .deleted = object_deleted,
                                             .connection = connection_changed,
                                             .absent = kind_absent};
    struct source *s = NEW(struct source);
    s->set = set;
    list_init(&s->in_set);
    s->api_version = xstrdup(api_version);
    s->plural = xstrdup(plural);
    s->field_selector = field_selector ? xstrdup(field_selector) : NULL;
    list_init(&s->listeners);
    hmap_init(&s->objects);
    s->pool = json_pool_new();
    list_init(&s->order);
    s->expired = true; /* No list was made yet. */
    loop_task_init(&s->settle, l, settle, s);
    s->reflector = reflector_new(c, l, ns, api_version, plural, field_selector, &ops, s);
    return s;
}

static struct informer *listener_new(struct source *s, const struct informer_ops *ops, void *ctx)
{
    struct informer *i = NEW(struct informer);
    i->source = s;
    i->ops = ops;
    i->ctx = ctx;
    list_push_back(&s->listeners, &i->node);
    loop_task_queue(&s->settle);
    return i;
}

struct informer *informer_new(struct api_client *c, struct loop *l, const char *api_version,
                              const char *plural, const char *field_selector,
                              const struct informer_ops *ops, void *ctx)
{
    return informer_new_in(c, l, NULL, api_version, plural, field_selector, ops, ctx);
}

struct informer *informer_new_in(struct api_client *c, struct loop *l, const char *ns,
                                 const char *api_version, const char *plural,
                                 const char *field_selector, const struct informer_ops *ops,
                                 void *ctx)
{
    return listener_new(source_new(NULL, c, l, ns, api_version, plural, field_selector), ops, ctx);
}

struct informer *informer_free(struct informer *i)
{
    if (i) {
        struct source *s = i->source;
        i->freed = true;
        i->follows = false;
        if (!has_listeners(s)) {
            list_remove(&s->in_set); /* A listener that is added now gets another source. */
        }
        if (release(s)) {
            loop_task_queue(&s->settle);
        }
    }
    return NULL;
}

void informer_keep_keys_only(struct informer *i)
{
    assert(!i->source->set);
    i->source->keys_only = true;
}

void informer_keep_metadata_only(struct informer *i)
{
    assert(!i->source->set);
    i->source->metadata_only = true;
}

void informer_set_optional(struct informer *i)
{
    i->optional = true;
}

bool informer_synced(const struct informer *i)
{
    return i->synced;
}

const struct json *informer_get(const struct informer *i, const char *key)
{
    const struct entry *en = find_entry(i->source, key);
    return en ? en->obj : NULL;
}

uint64_t informer_version(const struct informer *i)
{
    return i->follows ? reflector_version(i->source->reflector) : 0;
}

uint64_t informer_lists_begun(const struct informer *i)
{
    return i->follows ? reflector_lists_begun(i->source->reflector) : 0;
}

uint64_t informer_list_complete(const struct informer *i)
{
    return i->follows ? reflector_list_complete(i->source->reflector) : 0;
}

size_t informer_count(const struct informer *i)
{
    return i->source->objects.n;
}

void informer_each(const struct informer *i,
                   void (*fn)(void *ctx, const char *key, const struct json *obj), void *ctx)
{
    const struct entry *en;
    LIST_FOREACH (en, struct entry, order, &i->source->order) {
        fn(ctx, en->key, en->obj);
    }
}

/* ---- sets ---- */

struct informer_set *informer_set_new(struct loop *l, struct api_client *c)
{
    struct informer_set *set = NEW(struct informer_set);
    set->loop = l;
    set->client = c;
    list_init(&set->sources);
    return set;
}

struct informer_set *informer_set_free(struct informer_set *set)
{
    if (set) {
        assert(list_is_empty(&set->sources));
        free(set);
    }
    return NULL;
}

static struct source *find_source(const struct informer_set *set, const char *api_version,
                                  const char *plural, const char *field_selector)
{
    struct source *s;
    LIST_FOREACH (s, struct source, in_set, &set->sources) {
        if (streq(s->api_version, api_version) && streq(s->plural, plural) &&
            streq_null(s->field_selector, field_selector)) {
            return s;
        }
    }
    return NULL;
}

struct informer *informer_set_add(struct informer_set *set, const char *api_version,
                                  const char *plural, const char *field_selector,
                                  const struct informer_ops *ops, void *ctx)
{
    struct source *s = find_source(set, api_version, plural, field_selector);
    if (!s) {
        s = source_new(set, set->client, set->loop, NULL, api_version, plural, field_selector);
        list_push_back(&set->sources, &s->in_set);
    }
    return listener_new(s, ops, ctx);
}

void informer_set_expire(struct informer_set *set)
{
    struct source *s;
    LIST_FOREACH (s, struct source, in_set, &set->sources) {
        s->expired = true;
    }
}

size_t informer_set_count(const struct informer_set *set)
{
    return list_size(&set->sources);
}
