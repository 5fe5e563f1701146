/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/cache/cache.h"

#include "base/log.h"
#include "base/map.h"

LOG_MODULE("apiserver");

/* A value in the store whose kind is not registered; a definition may register it later. */
struct unknown_value {
    struct blob *value;
    uint64_t revision;
};

static void unknown_value_free(void *p)
{
    struct unknown_value *s = p;
    blob_unref(s->value);
    free(s);
}

static void set_unknown(struct cache *c, const char *key, struct blob *value, uint64_t revision)
{
    if (!value) {
        smap_remove(&c->unknown_keys, key);
        return;
    }
    struct unknown_value *s = NEW(struct unknown_value);
    *s = (struct unknown_value){blob_ref(value), revision};
    smap_set(&c->unknown_keys, key, s);
}

/* An event of the history whose kind is not known yet. */
struct cache_past_event {
    char *key;
    struct blob *value, *prev;
    uint64_t revision;
};

static void free_keyset(void *p)
{
    keyset_done(p);
    free(p);
}

/* Adds a kind with its prefix in the store; this alone does not serve it. */
static struct cache_kind *add(struct cache *c, const struct api_kind *k, struct crd *crd)
{
    struct cache_kind *ck = NEW(struct cache_kind);
    ck->refs = 1;
    ck->kind = k;
    ck->crd = crd ? crd_ref(crd) : NULL;
    ck->prefix = xasprintf("/registry/%s%s%s/", k->group, *k->group ? "/" : "", k->plural);
    ck->head = object_head(k);
    ck->indexed = api_field_indexed(k);
    smap_init(&ck->unreadable, NULL);
    smap_init(&ck->by_value, free_keyset);
    list_init(&ck->watches);
    list_init(&ck->watches_of_any);
    smap_init(&ck->watches_by_value, free);
    c->kinds = grow(c->kinds, &c->cap_kinds, c->n_kinds + 1, sizeof(*c->kinds));
    c->kinds[c->n_kinds++] = ck;
    return ck;
}

void cache_init(struct cache *c, const char *without, size_t window, size_t window_bytes)
{
    *c = (struct cache){.window = window, .window_bytes = window_bytes};
    smap_init(&c->unknown_keys, unknown_value_free);
    list_init(&c->subscribers);
    api_registry_init(&c->registry, without);
    for (size_t i = 0; i < c->registry.n; i++) {
        if (!c->registry.list[i]->view) {
            (void) add(c, c->registry.list[i], NULL);
        }
    }
}

const struct blob *cache_unknown_value(const struct cache *c, const char *key,
                                       uint64_t *ret_revision)
{
    const struct unknown_value *s = smap_get(&c->unknown_keys, key);
    if (s && ret_revision) {
        *ret_revision = s->revision;
    }
    return s ? s->value : NULL;
}

void cache_each_unknown(const struct cache *c, const char *prefix,
                        void (*fn)(void *ctx, const char *key), void *ctx)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &c->unknown_keys) {
        if (str_has_prefix(se->key, prefix)) {
            fn(ctx, se->key);
        }
    }
}

static void clear_window(struct cache_kind *ck)
{
    for (size_t i = 0; i < ck->n_events; i++) {
        const struct cache_event *ev = cache_event_at(ck, i);
        object_unref(ev->old);
        object_unref(ev->new);
    }
    free(ck->ring);
    ck->ring = NULL;
    ck->ring_cap = ck->first = ck->n_events = ck->event_bytes = 0;
}

/* ---- objects ---- */

static void clear_objects(struct cache_kind *ck)
{
    keyset_done(&ck->objects);
    smap_clear(&ck->unreadable);
    smap_clear(&ck->by_value);
}

static void index_object(struct cache_kind *ck, struct object *o)
{
    if (ck->indexed >= 0) {
        const char *value = api_index_field(o->index, (size_t) ck->indexed);
        struct keyset *set = smap_get(&ck->by_value, value);
        if (!set) {
            set = NEW(struct keyset);
            smap_set(&ck->by_value, value, set);
        }
        object_unref(keyset_put(set, object_ref(o)));
    }
}

static void unindex_object(struct cache_kind *ck, const struct object *o)
{
    if (ck->indexed >= 0) {
        const char *value = api_index_field(o->index, (size_t) ck->indexed);
        struct keyset *set = smap_get(&ck->by_value, value);
        if (set) {
            object_unref(keyset_remove(set, o->key));
            if (set->n == 0) {
                smap_remove(&ck->by_value, value);
            }
        }
    }
}

/* Like keyset_put and keyset_remove, for the objects of the kind. */
static struct object *put_object(struct cache_kind *ck, struct object *o)
{
    struct object *old = keyset_put(&ck->objects, o);
    if (old) {
        unindex_object(ck, old);
    }
    index_object(ck, o);
    return old;
}

static struct object *remove_object(struct cache_kind *ck, const char *key)
{
    struct object *old = keyset_remove(&ck->objects, key);
    if (old) {
        unindex_object(ck, old);
    }
    return old;
}

struct cache_kind *cache_kind_ref(struct cache_kind *ck)
{
    ck->refs++;
    return ck;
}

struct cache_kind *cache_kind_unref(struct cache_kind *ck)
{
    if (ck && --ck->refs == 0) {
        clear_window(ck);
        clear_objects(ck);
        smap_done(&ck->unreadable);
        smap_done(&ck->by_value);
        smap_done(&ck->watches_by_value);
        crd_unref(ck->crd);
        free(ck->prefix);
        free(ck->head);
        free(ck);
    }
    return NULL;
}

static void drop_unclaimed(struct cache *c)
{
    for (size_t i = 0; i < c->n_unclaimed; i++) {
        free(c->unclaimed[i].key);
        blob_unref(c->unclaimed[i].value);
        blob_unref(c->unclaimed[i].prev);
    }
    free(TAKE(c->unclaimed));
    c->n_unclaimed = c->cap_unclaimed = 0;
}

void cache_done(struct cache *c)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        cache_kind_unref(c->kinds[i]);
    }
    free(c->kinds);
    drop_unclaimed(c);
    smap_done(&c->unknown_keys);
    api_registry_done(&c->registry);
}

struct cache_kind *cache_find(const struct cache *c, const struct api_kind *k)
{
    k = k->view ? k->view->of : k;
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (c->kinds[i]->kind == k || (c->kinds[i]->crd && crd_has_kind(c->kinds[i]->crd, k))) {
            return c->kinds[i];
        }
    }
    return NULL;
}

char *cache_key(const char *namespace, const char *name)
{
    return namespace ? xasprintf("%s/%s", namespace, name) : xstrdup(name);
}

char *cache_store_key(const struct cache_kind *ck, const char *key)
{
    return xasprintf("%s%s", ck->prefix, key);
}

/* The kind of a key in the store, and the part that follows the kind's prefix. */
static struct cache_kind *kind_of(struct cache *c, const char *key, const char **ret_rest)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        /* The keys of snapshots are sorted: usually the kind is that of the previous key. */
        size_t k = (c->last_kind + i) % c->n_kinds;
        if (str_has_prefix(key, c->kinds[k]->prefix)) {
            c->last_kind = k;
            *ret_rest = key + strlen(c->kinds[k]->prefix);
            return c->kinds[k];
        }
    }
    return NULL;
}

/* ---- window ---- */

const struct cache_event *cache_event_at(const struct cache_kind *ck, size_t i)
{
    return &ck->ring[(ck->first + i) % ck->ring_cap];
}

size_t cache_event_after(const struct cache_kind *ck, uint64_t revision)
{
    size_t lo = 0, hi = ck->n_events;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (cache_event_at(ck, mid)->revision <= revision) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

bool cache_revision_is_shared(const struct cache_kind *ck, uint64_t revision)
{
    size_t i = cache_event_after(ck, revision);
    return i > 0 && cache_event_at(ck, i - 1)->revision == revision &&
           (i > 1 ? cache_event_at(ck, i - 2)->revision : ck->floor) == revision;
}

static size_t cost(const struct cache_event *ev)
{
    return sizeof *ev + (ev->old ? ev->old->text->size : 0);
}

static void drop_oldest(struct cache_kind *ck)
{
    struct cache_event *ev = &ck->ring[ck->first];
    ck->floor = ev->revision;
    ck->event_bytes -= cost(ev);
    object_unref(ev->old);
    object_unref(ev->new);
    ck->first = (ck->first + 1) % ck->ring_cap;
    ck->n_events--;
}

static void grow_ring(struct cache_kind *ck, size_t window)
{
    size_t cap = MIN(window, MAX(ck->ring_cap * 2, (size_t) 64));
    struct cache_event *ring = xcalloc(cap, sizeof *ring);
    for (size_t i = 0; i < ck->n_events; i++) {
        ring[i] = *cache_event_at(ck, i);
    }
    free(ck->ring);
    ck->ring = ring;
    ck->ring_cap = cap;
    ck->first = 0;
}

/* The references of 'ev' are taken over. */
static void push_event(struct cache *c, struct cache_kind *ck, const struct cache_event *ev)
{
    if (ck->n_events == ck->ring_cap && ck->ring_cap < c->window) {
        grow_ring(ck, c->window);
    }
    if (ck->n_events == ck->ring_cap) {
        drop_oldest(ck);
    }
    ck->ring[(ck->first + ck->n_events++) % ck->ring_cap] = *ev;
    ck->event_bytes += cost(ev);
    /* The newest event is kept, however large it is: subscribers are about to get it. */
    while (ck->event_bytes > c->window_bytes && ck->n_events > 1) {
        drop_oldest(ck);
    }
}

/* ---- the store's reports ---- */

static struct object *read_object(struct cache_kind *ck, const char *key, const struct blob *value,
                                  uint64_t revision)
{
    static struct log_limit limit;
    struct object *o = object_new(ck->kind, ck->head, key, value, revision);
    if (!o) {
        log_limited(&limit, LOG_ERROR, "the store has an unreadable object", "key=%s%s", ck->prefix,
                    key);
    }
    return o;
}

/* Records whether the newest value of a key can be read. */
static void set_readable(struct cache_kind *ck, const char *key, bool readable)
{
    if (readable) {
        smap_remove(&ck->unreadable, key);
    } else {
        smap_set(&ck->unreadable, key, ck);
    }
}

const char *cache_unreadable(const struct cache_kind *ck, const char *key, const char *namespace)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &ck->unreadable) {
        size_t n = namespace ? strlen(namespace) : 0;
        if ((!key || streq(se->key, key)) &&
            (!n || (str_has_prefix(se->key, namespace) && se->key[n] == '/'))) {
            return se->key;
        }
    }
    return NULL;
}

struct cache_kind *cache_add_event(struct cache *c, const struct store_event *ev,
                                   struct cache_event *ret)
{
    const char *key;
    struct cache_kind *ck = kind_of(c, ev->key, &key);
    c->revision = ev->revision;
    if (!ck) {
        set_unknown(c, ev->key, ev->value, ev->revision);
        return NULL;
    }
    struct object *o = ev->value ? read_object(ck, key, ev->value, ev->revision) : NULL;
    set_readable(ck, key, o || !ev->value);
    if (ev->value && !o) {
        return NULL; /* The object still exists in the store. */
    }
    struct object *old = o ? put_object(ck, object_ref(o)) : remove_object(ck, key);
    if (!o && !old) {
        return NULL;
    }
    *ret = (struct cache_event){.revision = ev->revision, .old = old, .new = o};
    push_event(c, ck, ret);
    return ck;
}

/* Events up to 'revision' belong to the history of another registry. */
static void forget_past(struct cache *c, uint64_t revision)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        clear_window(c->kinds[i]);
        clear_objects(c->kinds[i]);
    }
    drop_unclaimed(c);
    c->has_history = true;
    c->history_floor = revision;
}

/* History is reported before the snapshot; each event carries the previous value of its object. */
void cache_add_history(struct cache *c, const struct store_event *ev)
{
    const char *key;
    struct cache_kind *ck = kind_of(c, ev->key, &key);
    if (str_has_prefix(ev->key, STORE_OWN_PREFIX)) {
        forget_past(c, ev->revision);
        return;
    }
    if (!c->has_history) {
        c->has_history = true;
        c->history_floor = ev->revision - 1;
    }
    if (!ck) {
        c->unclaimed =
            grow(c->unclaimed, &c->cap_unclaimed, c->n_unclaimed + 1, sizeof(*c->unclaimed));
        c->unclaimed[c->n_unclaimed++] = (struct cache_past_event){
            .key = xstrdup(ev->key),
            .value = ev->value ? blob_ref(ev->value) : NULL,
            .prev = ev->prev ? blob_ref(ev->prev) : NULL,
            .revision = ev->revision,
        };
        return;
    }
    struct object *o = ev->value ? read_object(ck, key, ev->value, ev->revision) : NULL;
    struct object *old = o ? put_object(ck, object_ref(o)) : remove_object(ck, key);
    if (!old && ev->prev) {
        /* The revision of the previous value is unknown; it is not later than the
         * beginning of the history. */
        old = read_object(ck, key, ev->prev, c->history_floor);
    }
    if (o || old) {
        push_event(c, ck, &(struct cache_event){.revision = ev->revision, .old = old, .new = o});
    }
}

static void load_item(struct cache *c, struct cache_kind *ck, const char *key,
                      const struct store_item *item)
{
    if (!ck) {
        set_unknown(c, item->key, item->value, item->revision);
        return;
    }
    const struct object *have = keyset_get(&ck->objects, key);
    if (have && have->revision == item->revision) {
        return;
    }
    struct object *o = read_object(ck, key, item->value, item->revision);
    set_readable(ck, key, o);
    if (o) {
        object_unref(put_object(ck, o));
    }
}

/* Loads the items of the kind 'only' (NULL: of all kinds) that were not loaded yet.  Each value is
 * freed at once, so that the next object can reuse its memory. */
static void load_items(struct cache *c, struct store_item *items, size_t n,
                       const struct cache_kind *only)
{
    for (size_t i = 0; i < n; i++) {
        const char *key;
        struct cache_kind *ck = kind_of(c, items[i].key, &key);
        if (items[i].value && (!only || ck == only)) {
            load_item(c, ck, key, &items[i]);
            items[i].value = blob_unref(items[i].value);
        }
    }
}

/* Events up to this revision are unknown. */
static uint64_t window_floor(const struct cache *c, uint64_t revision)
{
    return c->has_history && !c->ready ? c->history_floor : revision;
}

static void begin_window(struct cache *c, struct cache_kind *ck, uint64_t revision)
{
    if (c->ready) {
        /* The store was unavailable: the changes in between are unknown. */
        clear_window(ck);
        clear_objects(ck);
    }
    ck->floor = c->ready ? revision : MAX(ck->floor, window_floor(c, revision));
}

static void claim_history(struct cache *c)
{
    struct cache_past_event *list = TAKE(c->unclaimed);
    size_t n = c->n_unclaimed;
    c->n_unclaimed = c->cap_unclaimed = 0;
    for (size_t i = 0; i < n; i++) {
        const char *key;
        if (kind_of(c, list[i].key, &key)) {
            cache_add_history(c, &(struct store_event){.key = list[i].key,
                                                       .value = list[i].value,
                                                       .prev = list[i].prev,
                                                       .revision = list[i].revision});
        }
        free(list[i].key);
        blob_unref(list[i].value);
        blob_unref(list[i].prev);
    }
    free(list);
}

void cache_load(struct cache *c, struct store_item *items, size_t n, uint64_t revision,
                void (*define)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        begin_window(c, c->kinds[i], revision);
    }
    smap_clear(&c->unknown_keys);
    if (define) {
        load_items(c, items, n, cache_find(c, api_kind_find(CRD_GROUP, CRD_VERSION, CRD_PLURAL)));
        define(ctx);
        for (size_t i = 0; i < c->n_kinds; i++) {
            begin_window(c, c->kinds[i], revision);
        }
        claim_history(c);
    }
    load_items(c, items, n, NULL);
    drop_unclaimed(c);
    c->revision = revision;
    c->ready = true;
}

/* ---- kinds made by definitions ---- */

static void serve(struct cache *c, const struct cache_kind *ck, bool on)
{
    const struct api_kind *k;
    for (size_t i = 0; (k = crd_served(ck->crd, i)); i++) {
        if (on) {
            api_registry_add(&c->registry, k);
        } else {
            api_registry_remove(&c->registry, k);
        }
    }
}

struct cache_kind *cache_add_kind(struct cache *c, struct crd *crd)
{
    struct cache_kind *ck = add(c, crd_stored(crd), crd);
    ck->floor = c->revision;
    serve(c, ck, true);
    struct smap_entry *se;
    SMAP_FOREACH (se, &c->unknown_keys) {
        struct unknown_value *s = se->value;
        if (str_has_prefix(se->key, ck->prefix)) {
            struct object *o = read_object(ck, se->key + strlen(ck->prefix), s->value, s->revision);
            set_readable(ck, se->key + strlen(ck->prefix), o);
            if (o) {
                object_unref(put_object(ck, o));
            }
            smap_remove(&c->unknown_keys, se->key);
        }
    }
    return ck;
}

void cache_remove_kind(struct cache *c, struct cache_kind *ck)
{
    size_t i = 0;
    while (c->kinds[i] != ck) {
        i++;
    }
    c->n_kinds--;
    memmove(&c->kinds[i], &c->kinds[i + 1], (c->n_kinds - i) * sizeof(struct cache_kind *));
    serve(c, ck, false);
    ck->gone = true;
    struct keyset_pos pos = keyset_seek(&ck->objects, "");
    struct object *o;
    while ((o = keyset_next(&ck->objects, &pos))) {
        CLEANUP_FREE char *key = cache_store_key(ck, o->key);
        set_unknown(c, key, o->text, o->revision);
    }
    clear_window(ck);
    clear_objects(ck);
    cache_kind_unref(ck);
}

struct cache_kind *cache_replace_kind(struct cache *c, struct cache_kind *ck, struct crd *crd)
{
    cache_remove_kind(c, ck);
    return cache_add_kind(c, crd);
}

/* ---- resynchronisation after the store was unavailable ---- */

struct changes {
    struct store_event *v;
    size_t n, cap;
};

static void change_add(struct changes *l, const char *key, struct blob *value, uint64_t revision)
{
    l->v = grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (struct store_event){.key = xstrdup(key), .value = value, .revision = revision};
}

static int by_revision(const void *x, const void *y)
{
    const struct store_event *a = x, *b = y;
    return a->revision < b->revision ? -1 : a->revision > b->revision;
}

/* Adds deletions of the cached objects that are not in 'present'; the
 * revision of each deletion is unknown. */
static void changes_add_deleted(struct changes *l, const struct cache *c,
                                const struct smap *present, uint64_t revision)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct cache_kind *ck = c->kinds[i];
        struct keyset_pos pos = keyset_seek(&ck->objects, "");
        for (struct object *o; (o = keyset_next(&ck->objects, &pos));) {
            CLEANUP_FREE char *key = cache_store_key(ck, o->key);
            if (!smap_get(present, key)) {
                change_add(l, key, NULL, revision);
            }
        }
    }
    struct smap_entry *se;
    SMAP_FOREACH (se, &c->unknown_keys) {
        if (!smap_get(present, se->key)) {
            change_add(l, se->key, NULL, revision);
        }
    }
}

/* The revision at which the cache has the key of the store; 0: it does not have it. */
static uint64_t known_revision(struct cache *c, const char *store_key)
{
    const char *key;
    struct cache_kind *ck = kind_of(c, store_key, &key);
    const struct object *have = ck ? keyset_get(&ck->objects, key) : NULL;
    const struct unknown_value *unknown = ck ? NULL : smap_get(&c->unknown_keys, store_key);
    return have ? have->revision : unknown ? unknown->revision : 0;
}

int cache_resync(struct cache *c, const struct store_item *items, size_t n, uint64_t revision,
                 void (*event)(void *ctx, const struct store_event *ev), void *ctx)
{
    struct changes l = {0};
    struct smap present;
    bool same_past = revision >= c->revision;
    smap_init(&present, NULL);
    for (size_t i = 0; i < n && same_past; i++) {
        smap_set(&present, items[i].key, c);
        if (known_revision(c, items[i].key) != items[i].revision) {
            same_past = items[i].revision > c->revision;
            change_add(&l, items[i].key, items[i].value, items[i].revision);
        }
    }
    if (same_past) {
        changes_add_deleted(&l, c, &present, revision);
        /* If the revision is unchanged, no object can have been deleted. */
        same_past = !l.n || revision > c->revision;
    }
    if (same_past && l.n) {
        qsort(l.v, l.n, sizeof *l.v, by_revision);
    }
    for (size_t i = 0; i < l.n; i++) {
        if (same_past) {
            event(ctx, &l.v[i]);
        }
        free((char *) l.v[i].key);
    }
    free(l.v);
    smap_done(&present);
    if (!same_past) {
        return -ESTALE;
    }
    for (size_t i = 0; i < c->n_kinds; i++) {
        clear_window(c->kinds[i]);
        c->kinds[i]->floor = revision;
    }
    c->revision = revision;
    return 0;
}

/* ---- walks ---- */

/* A key that changed after the walk's revision, with its object at that revision (NULL: absent). */
struct past {
    const char *key;
    struct object *object;
};

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct past *) a)->key, ((const struct past *) b)->key);
}

static bool in_walk(const struct cache_walk *w, const char *key, const char *after)
{
    return (!w->prefix || str_has_prefix(key, w->prefix)) && (!after || strcmp(key, after) > 0);
}

static void collect_past(struct cache_walk *w, const char *after, uint64_t revision)
{
    size_t first = cache_event_after(w->ck, revision), cap = 0;
    struct smap seen;
    smap_init(&seen, NULL);
    for (size_t i = first; i < w->ck->n_events; i++) {
        const struct cache_event *ev = cache_event_at(w->ck, i);
        const char *key = ev->new ? ev->new->key : ev->old->key;
        if (!in_walk(w, key, after) || smap_get(&seen, key)) {
            continue;
        }
        smap_set(&seen, key, w);
        w->past = grow(w->past, &cap, w->n_past + 1, sizeof *w->past);
        w->past[w->n_past++] = (struct past){key, ev->old};
    }
    smap_done(&seen);
    if (w->n_past) {
        qsort(w->past, w->n_past, sizeof *w->past, by_key);
    }
}

static void step(struct cache_walk *w)
{
    w->next = keyset_next(w->set, &w->pos);
    if (w->next && !in_walk(w, w->next->key, NULL)) {
        w->next = NULL;
    }
}

/* The common prefix of all keys in the range; owned, NULL: none. */
static char *prefix_of(const struct cache_kind *ck, const struct cache_range *range)
{
    if (range->namespace) {
        return xasprintf("%s/%s", range->namespace, range->name ? range->name : "");
    }
    return range->name && !ck->kind->namespaced ? xstrdup(range->name) : NULL;
}

void cache_walk_init(struct cache_walk *w, const struct cache_kind *ck,
                     const struct cache_range *range, uint64_t revision)
{
    static const struct keyset none;
    const char *after = range->after;
    *w = (struct cache_walk){.ck = ck, .set = &ck->objects, .prefix = prefix_of(ck, range)};
    if (range->value && ck->indexed >= 0) {
        const struct keyset *set = smap_get(&ck->by_value, range->value);
        w->set = set ? set : &none;
    }
    const char *from = w->prefix ? w->prefix : "";
    if (after && strcmp(after, from) > 0) {
        from = after;
    }
    w->pos = keyset_seek(w->set, from);
    step(w);
    if (w->next && after && streq(w->next->key, after)) {
        step(w);
    }
    collect_past(w, after, revision);
}

struct object *cache_walk_next(struct cache_walk *w)
{
    for (;;) {
        struct past *p = w->at_past < w->n_past ? &w->past[w->at_past] : NULL;
        struct object *o = w->next;
        int order = !p ? 1 : !o ? -1 : strcmp(p->key, o->key);
        if (!p && !o) {
            return NULL;
        }
        if (order >= 0) {
            step(w);
        }
        if (order > 0) {
            return o;
        }
        w->at_past++;
        if (p->object) {
            return p->object;
        }
    }
}

void cache_walk_done(struct cache_walk *w)
{
    free(w->prefix);
    free(w->past);
}
