/* SPDX-License-Identifier: Apache-2.0 */
/* The watch cache: all objects as of the store's latest revision, and the recent changes.
 *
 * It is filled by the store's reports and read by everything else.  Each kind has its objects in
 * key order and a window of its latest events, from which watches resume and past states are told:
 * the state at a revision within the window is the present one with the later events taken back. A
 * returned object belongs to the cache; whoever keeps it takes a reference. */
#pragma once

#include "api/crd/crd.h"
#include "api/registry.h"
#include "apiserver/cache/keyset.h"
#include "base/list.h"
#include "base/map.h"
#include "store/store.h"

struct cache_event {
    uint64_t revision;
    struct object *old; /* NULL: created. */
    struct object *new; /* NULL: deleted. */
};

/* Counted, as requests hold the one they are about: a definition may be changed or deleted
 * meanwhile. */
struct cache_kind {
    uint32_t refs;
    const struct api_kind *kind; /* In whose version its objects are kept. */
    struct crd *crd;             /* NULL: the kind is compiled in. */
    uint64_t settled;            /* Revision at which the definition's status was found right. */
    bool gone;                   /* Not of the cache any more, and empty. */
    char *prefix;                /* Of its keys in the store: "/registry/pods/" */
    char *head;                  /* Of its objects' texts. */
    struct keyset objects;
    struct smap
        unreadable; /* Keys whose value in the store is no object; 'objects' has what it was before. */
    int indexed;    /* Number of the field that 'by_value' goes by; -1: none. */
    struct smap by_value; /* Its values: struct keyset. */
    /* The window: a ring, oldest first from 'first'. */
    struct cache_event *ring;
    size_t ring_cap, first, n_events;
    size_t event_bytes;           /* Texts that only the window holds. */
    uint64_t floor;               /* All events after this revision are in the window. */
    struct list watches;          /* All of them. */
    struct list watches_of_any;   /* Those which want more than one value of the indexed field. */
    struct smap watches_by_value; /* The others, by that value: struct list. */
    size_t n_watches;
};

struct cache {
    struct api_registry registry; /* What is served: each version of each kind. */
    struct cache_kind **kinds;
    size_t n_kinds, cap_kinds, last_kind;
    uint64_t revision;
    bool ready; /* A snapshot was loaded. */
    size_t window, window_bytes;
    uint64_t history_floor;
    bool has_history;
    struct smap strangers; /* What the store has of kinds that are not known, by its key. */
    /* History of kinds that are not known before the snapshot tells their definitions. */
    struct cache_past_event *unclaimed;
    size_t n_unclaimed, cap_unclaimed;
    struct list subscribers; /* In the order of subscriber.h. */
};

/* 'without' as of api_registry_init. */
void cache_init(struct cache *c, const char *without, size_t window, size_t window_bytes);
void cache_done(struct cache *c);

/* The store's reports.  Each event belongs to one kind, which is returned with the event in '*ret'
 * (valid until the next); NULL: a key of none of our kinds, or bytes that cannot be read: then the
 * object stays as it was. */
struct cache_kind *cache_add_event(struct cache *c, const struct store_event *ev,
                                   struct cache_event *ret);
void cache_add_history(struct cache *c, const struct store_event *ev);
/* 'define' (NULL: nothing to do) is called when the definitions are there, before other objects: it
 * adds, replaces and removes kinds.  Values are given back as soon as they are read, and NULL is
 * left in their place. */
void cache_load(struct cache *c, struct store_item *items, size_t n, uint64_t revision,
                void (*define)(void *ctx), void *ctx);
/* A snapshot after the store was away: calls 'event' with what differs from the cache, as changes
 * in the order of their revisions; it is to give each to cache_add_event.  What an object was in
 * between is not known, so that older versions are out of the windows afterwards.  -ESTALE, with
 * nothing done: the store has another past than the cache, as after a backup was restored. */
int cache_resync(struct cache *c, const struct store_item *items, size_t n, uint64_t revision,
                 void (*event)(void *ctx, const struct store_event *ev), void *ctx);

/* A key whose value in the store cannot be read: 'key' itself (NULL: any) in 'namespace' (NULL:
 * any); NULL: there is none. */
const char *cache_unreadable(const struct cache_kind *ck, const char *key, const char *namespace);

/* Of any served version of it; NULL: not of this cache. */
struct cache_kind *cache_find(const struct cache *c, const struct api_kind *k);

/* The value in the store of a key that is of no kind; NULL: there is none. */
const struct blob *cache_stranger(const struct cache *c, const char *key, uint64_t *ret_revision);
/* Calls 'fn' for each such key that begins with 'prefix'; the cache must not change meanwhile. */
void cache_each_stranger(const struct cache *c, const char *prefix,
                         void (*fn)(void *ctx, const char *key), void *ctx);

/* Serves the versions of 'crd' (a reference is taken). */
struct cache_kind *cache_add_kind(struct cache *c, struct crd *crd);
/* Serves 'crd' in the place of the definition that '*ck' has: the objects stay, the window begins
 * anew.  '*ck' is gone then, and the new one is returned. */
struct cache_kind *cache_replace_kind(struct cache *c, struct cache_kind *ck, struct crd *crd);
/* Of a definition that is not served any more.  Its objects are strangers again, until the store
 * tells that they have gone or another definition comes. */
void cache_remove_kind(struct cache *c, struct cache_kind *ck);
struct cache_kind *cache_kind_ref(struct cache_kind *ck);
struct cache_kind *cache_kind_unref(struct cache_kind *ck); /* NULL is fine; returns NULL. */
/* "NAMESPACE/NAME" or "NAME": owned. */
char *cache_key(const char *namespace, const char *name);
/* The store's key: owned. */
char *cache_store_key(const struct cache_kind *ck, const char *key);

/* The i-th event of the window, oldest first. */
const struct cache_event *cache_event_at(const struct cache_kind *ck, size_t i);
/* Index of the first event after 'revision'. */
size_t cache_event_after(const struct cache_kind *ck, uint64_t revision);

/* Which objects a walk is to meet; it may meet others of the same namespace. */
struct cache_range {
    const char *namespace; /* NULL: all. */
    const char *name;      /* NULL: all; counts with a namespace, or if the kind has none. */
    const char *value;     /* Of the indexed field; NULL: all. */
    const char *after;     /* Begins behind this key; NULL: with the first. */
};

/* A walk over the objects of a kind in key order as they were at 'revision', which must be in the
 * window. */
struct cache_walk {
    const struct cache_kind *ck;
    const struct keyset *set; /* All objects, or those with one value. */
    struct keyset_pos pos;
    struct object *next;
    char *prefix;      /* Only keys that begin so; NULL: all. */
    struct past *past; /* Keys that have changed since, in order. */
    size_t n_past, at_past;
};
void cache_walk_init(struct cache_walk *w, const struct cache_kind *ck,
                     const struct cache_range *range, uint64_t revision);
struct object *cache_walk_next(struct cache_walk *w); /* NULL at the end. */
void cache_walk_done(struct cache_walk *w);
