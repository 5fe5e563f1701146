/* SPDX-License-Identifier: Apache-2.0 */
/* The watch cache: all objects as of the store's latest revision, and the recent changes.
 *
 * It is filled from the events of the store, and all other parts read it.  Each kind has its
 * objects in key order and a window of its latest events, from which watches resume and past states
 * are computed: the state at a revision within the window is the current one with the later events
 * undone.  A returned object belongs to the cache; a caller that keeps it takes a reference. */
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

/* Reference-counted, because requests hold the kind that they use: a definition
 * may be changed or deleted in the meantime. */
struct cache_kind {
    uint32_t refs;
    const struct api_kind *kind; /* Objects are kept in the version of this kind. */
    struct crd *crd;             /* NULL: the kind is compiled in. */
    /* The revision at which the definition's status was last found correct. */
    uint64_t settled;
    bool gone;    /* Removed from the cache, and empty. */
    char *prefix; /* The prefix of its keys in the store: "/registry/pods/" */
    char *head;   /* The beginning of its objects' texts (object.h). */
    struct keyset objects;
    struct smap
        /* Keys whose newest value in the store is not an object; 'objects' keeps the
         * previous one. */
        unreadable;
    int indexed;          /* Index of the field that 'by_value' is keyed by; -1: none. */
    struct smap by_value; /* Values of that field to struct keyset. */
    /* The window of events: a ring, whose oldest event is at 'first'. */
    struct cache_event *ring;
    size_t ring_cap, first, n_events;
    size_t event_bytes;  /* Bytes of texts that only the window references. */
    uint64_t floor;      /* All events after this revision are in the window. */
    struct list watches; /* All watches of the kind. */
    /* Watches that select more than one value of the indexed field. */
    struct list watches_of_any;
    struct smap watches_by_value; /* All other watches, by their value: struct list. */
    size_t n_watches;
};

struct cache {
    struct api_registry registry; /* Each version of each kind that is served. */
    struct cache_kind **kinds;
    size_t n_kinds, cap_kinds, last_kind;
    uint64_t revision;
    bool ready; /* The first snapshot was loaded. */
    size_t window, window_bytes;
    uint64_t history_floor;
    bool has_history;
    struct smap unknown_keys; /* Values of the store whose kind is not registered, by their key. */
    /* Events of kinds that were unknown when the history came; the snapshot
     * brings their definitions. */
    struct cache_past_event *unclaimed;
    size_t n_unclaimed, cap_unclaimed;
    struct list subscribers; /* In the order of subscriber.h. */
};

/* 'without': see api_registry_init. */
void cache_init(struct cache *c, const char *without, size_t window, size_t window_bytes);
void cache_done(struct cache *c);

/* Applies an event of the store.  Each event belongs to one kind, which is returned with the event
 * in '*ret' (valid until the next call).  NULL: the key belongs to no registered kind, or its bytes
 * cannot be read; then the object keeps its previous state. */
struct cache_kind *cache_add_event(struct cache *c, const struct store_event *ev,
                                   struct cache_event *ret);
void cache_add_history(struct cache *c, const struct store_event *ev);
/* Loads a snapshot.  'define' (NULL: none) is called when the definitions are loaded,
 * before other objects: it adds, replaces and removes kinds.  Values are freed as soon as
 * they are read, and NULL is left in their place. */
void cache_load(struct cache *c, struct store_item *items, size_t n, uint64_t revision,
                void (*define)(void *ctx), void *ctx);
/* Applies a snapshot taken after the store was unavailable: calls 'event' for each difference from
 * the cache, in the order of the revisions; 'event' must pass each to cache_add_event.  States in
 * between are unknown, so that older versions leave the windows.  -ESTALE, with nothing done: the
 * store has another history than the cache, as after the restore of a backup. */
int cache_resync(struct cache *c, const struct store_item *items, size_t n, uint64_t revision,
                 void (*event)(void *ctx, const struct store_event *ev), void *ctx);

/* A key whose value in the store cannot be read, limited to 'key' (NULL: any) in
 * 'namespace' (NULL: any); NULL: there is none. */
const char *cache_unreadable(const struct cache_kind *ck, const char *key, const char *namespace);

/* Finds a kind by any of its served versions; NULL: it is not in this cache. */
struct cache_kind *cache_find(const struct cache *c, const struct api_kind *k);

/* The value of a key in the store that belongs to no registered kind; NULL: there is none. */
const struct blob *cache_unknown_value(const struct cache *c, const char *key,
                                       uint64_t *ret_revision);
/* Calls 'fn' for each such key that begins with 'prefix'; the cache must
 * not change during the walk. */
void cache_each_unknown(const struct cache *c, const char *prefix,
                        void (*fn)(void *ctx, const char *key), void *ctx);

/* Serves the versions of 'crd' (a reference is taken). */
struct cache_kind *cache_add_kind(struct cache *c, struct crd *crd);
/* Serves 'crd' instead of the definition of '*ck': the objects stay, and the window begins anew.
 * '*ck' is invalid afterwards; the new kind is returned. */
struct cache_kind *cache_replace_kind(struct cache *c, struct cache_kind *ck, struct crd *crd);
/* Removes the kind of a definition that is no longer served.  Its objects become unknown keys
 * again, until the store reports their deletion or another definition is served. */
void cache_remove_kind(struct cache *c, struct cache_kind *ck);
struct cache_kind *cache_kind_ref(struct cache_kind *ck);
struct cache_kind *cache_kind_unref(struct cache_kind *ck); /* NULL is fine; returns NULL. */
/* "NAMESPACE/NAME" or "NAME"; owned. */
char *cache_key(const char *namespace, const char *name);
/* The key in the store; owned. */
char *cache_store_key(const struct cache_kind *ck, const char *key);

/* The i-th event of the window, oldest first. */
const struct cache_event *cache_event_at(const struct cache_kind *ck, size_t i);
/* Index of the first event after 'revision'. */
size_t cache_event_after(const struct cache_kind *ck, uint64_t revision);
/* Whether the kind had several events at 'revision', which is the last thing that a client knows:
 * it may have been cut off between them. */
bool cache_revision_is_shared(const struct cache_kind *ck, uint64_t revision);

/* The objects that a walk must visit; it may visit others of the same namespace. */
struct cache_range {
    const char *namespace; /* NULL: all. */
    const char *name;      /* NULL: all; used with a namespace, or if the kind has none. */
    const char *value;     /* A value of the indexed field; NULL: all. */
    const char *after;     /* The walk begins after this key; NULL: with the first. */
};

/* A walk over the objects of a kind in key order as they were at 'revision', which must be in the
 * window. */
struct cache_walk {
    const struct cache_kind *ck;
    const struct keyset *set; /* All objects, or those with one value of the indexed field. */
    struct keyset_pos pos;
    struct object *next;
    char *prefix;      /* The walk visits only keys with this prefix; NULL: all. */
    struct past *past; /* Keys that have changed since 'revision', in order. */
    size_t n_past, at_past;
};
void cache_walk_init(struct cache_walk *w, const struct cache_kind *ck,
                     const struct cache_range *range, uint64_t revision);
struct object *cache_walk_next(struct cache_walk *w); /* NULL at the end. */
void cache_walk_done(struct cache_walk *w);
