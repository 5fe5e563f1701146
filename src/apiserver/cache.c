/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/cache.h"

#include "base/log.h"
#include "base/map.h"

LOG_MODULE("apiserver");

void cache_init(struct cache *c, size_t window, size_t window_bytes)
{
    *c = (struct cache){.window = window, .window_bytes = window_bytes};
    while (api_kinds[c->n_kinds]) {
        c->n_kinds++;
    }
    c->kinds = xcalloc(c->n_kinds, sizeof *c->kinds);
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct api_kind *k = api_kinds[i];
        c->kinds[i].kind = k;
        c->kinds[i].prefix =
            xasprintf("/registry/%s%s%s/", k->group, *k->group ? "/" : "", k->plural);
        c->kinds[i].head = object_head(k);
        list_init(&c->kinds[i].watches);
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

void cache_done(struct cache *c)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        clear_window(&c->kinds[i]);
        keyset_done(&c->kinds[i].objects);
        free(c->kinds[i].prefix);
        free(c->kinds[i].head);
    }
    free(c->kinds);
}

struct cache_kind *cache_find(struct cache *c, const struct api_kind *k)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (c->kinds[i].kind == k) {
            return &c->kinds[i];
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

/* The kind of a key in the store, and what follows its prefix. */
static struct cache_kind *kind_of(struct cache *c, const char *key, const char **ret_rest)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (str_has_prefix(key, c->kinds[i].prefix)) {
            *ret_rest = key + strlen(c->kinds[i].prefix);
            return &c->kinds[i];
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
    /* The newest event stays, however large it is: it is being reported. */
    while (ck->event_bytes > c->window_bytes && ck->n_events > 1) {
        drop_oldest(ck);
    }
}

/* ---- the store's reports ---- */

static struct object *read_object(const struct cache_kind *ck, const char *key,
                                  const struct blob *value, uint64_t revision)
{
    static struct log_limit limit;
    struct object *o = object_new(ck->kind, ck->head, key, value, revision);
    if (!o) {
        log_limited(&limit, LOG_ERROR, "the store has an unreadable object", "key=%s%s", ck->prefix,
                    key);
    }
    return o;
}

struct cache_kind *cache_add_event(struct cache *c, const struct store_event *ev,
                                   struct cache_event *ret)
{
    const char *key;
    struct cache_kind *ck = kind_of(c, ev->key, &key);
    c->revision = ev->revision;
    if (!ck) {
        return NULL;
    }
    struct object *o = ev->value ? read_object(ck, key, ev->value, ev->revision) : NULL;
    struct object *old =
        o ? keyset_put(&ck->objects, object_ref(o)) : keyset_remove(&ck->objects, key);
    if (!o && !old) {
        return NULL;
    }
    *ret = (struct cache_event){.revision = ev->revision, .old = old, .new = o};
    push_event(c, ck, ret);
    return ck;
}

/* What was up to 'revision' is the past of another registry. */
static void forget_past(struct cache *c, uint64_t revision)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        clear_window(&c->kinds[i]);
        keyset_done(&c->kinds[i].objects);
    }
    c->has_history = true;
    c->history_floor = revision;
}

/* History comes before the snapshot; what an object was before it comes with the event. */
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
        return;
    }
    struct object *o = ev->value ? read_object(ck, key, ev->value, ev->revision) : NULL;
    struct object *old =
        o ? keyset_put(&ck->objects, object_ref(o)) : keyset_remove(&ck->objects, key);
    if (!old && ev->prev) {
        /* Its own revision is not known; it was not after the history began. */
        old = read_object(ck, key, ev->prev, c->history_floor);
    }
    if (o || old) {
        push_event(c, ck, &(struct cache_event){.revision = ev->revision, .old = old, .new = o});
    }
}

void cache_load(struct cache *c, const struct store_item *items, size_t n, uint64_t revision)
{
    uint64_t floor = c->has_history ? c->history_floor : revision;
    for (size_t i = 0; i < c->n_kinds; i++) {
        struct cache_kind *ck = &c->kinds[i];
        if (c->ready) {
            /* The store was away: what happened meanwhile is not known. */
            clear_window(ck);
            keyset_done(&ck->objects);
            ck->floor = revision;
        } else if (ck->floor < floor) {
            ck->floor = floor;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const char *key;
        struct cache_kind *ck = kind_of(c, items[i].key, &key);
        struct object *have = ck ? keyset_get(&ck->objects, key) : NULL;
        if (!ck || (have && have->revision == items[i].revision)) {
            continue;
        }
        struct object *o = read_object(ck, key, items[i].value, items[i].revision);
        if (o) {
            object_unref(keyset_put(&ck->objects, o));
        }
    }
    c->revision = revision;
    c->ready = true;
}

/* ---- after the store was away ---- */

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

/* Objects of the cache that are not among 'present' are deleted, nobody knows in which revision. */
static void changes_add_deleted(struct changes *l, const struct cache *c,
                                const struct smap *present, uint64_t revision)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct cache_kind *ck = &c->kinds[i];
        struct keyset_pos pos = keyset_seek(&ck->objects, "");
        for (struct object *o; (o = keyset_next(&ck->objects, &pos));) {
            CLEANUP_FREE char *key = cache_store_key(ck, o->key);
            if (!smap_get(present, key)) {
                change_add(l, key, NULL, revision);
            }
        }
    }
}

int cache_resync(struct cache *c, const struct store_item *items, size_t n, uint64_t revision,
                 void (*event)(void *ctx, const struct store_event *ev), void *ctx)
{
    struct changes l = {0};
    struct smap present;
    bool same_past = revision >= c->revision;
    smap_init(&present, NULL);
    for (size_t i = 0; i < n && same_past; i++) {
        const char *key;
        struct cache_kind *ck = kind_of(c, items[i].key, &key);
        const struct object *have = ck ? keyset_get(&ck->objects, key) : NULL;
        smap_set(&present, items[i].key, c);
        if (ck && !(have && have->revision == items[i].revision)) {
            same_past = items[i].revision > c->revision;
            change_add(&l, items[i].key, items[i].value, items[i].revision);
        }
    }
    if (same_past) {
        changes_add_deleted(&l, c, &present, revision);
        /* Without a change of the revision, nothing can be gone. */
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
        clear_window(&c->kinds[i]);
        c->kinds[i].floor = revision;
    }
    c->revision = revision;
    return 0;
}

/* ---- walks ---- */

/* A key that changed after the walk's revision: what it was then (NULL: not there). */
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
    w->next = keyset_next(&w->ck->objects, &w->pos);
    if (w->next && !in_walk(w, w->next->key, NULL)) {
        w->next = NULL;
    }
}

void cache_walk_init(struct cache_walk *w, const struct cache_kind *ck, const char *namespace,
                     const char *after, uint64_t revision)
{
    *w = (struct cache_walk){.ck = ck, .prefix = namespace ? xasprintf("%s/", namespace) : NULL};
    const char *from = w->prefix ? w->prefix : "";
    if (after && strcmp(after, from) > 0) {
        from = after;
    }
    w->pos = keyset_seek(&ck->objects, from);
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
