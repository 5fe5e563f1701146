/* SPDX-License-Identifier: Apache-2.0 */
/* The watch cache: all objects as of the store's latest revision, and the recent changes.
 *
 * It is filled by the store's reports and read by everything else.  Each kind has its objects in key order
 * and a window of its latest events, from which watches resume and past states are told: the state at a
 * revision within the window is the present one with the later events taken back.
 * A returned object belongs to the cache; whoever keeps it takes a reference. */
#pragma once

#include "apiserver/keyset.h"
#include "base/list.h"
#include "store/store.h"

struct cache_event {
    uint64_t revision;
    struct object *old; /* NULL: created. */
    struct object *new; /* NULL: deleted. */
};

struct cache_kind {
    const struct api_kind *kind;
    char *prefix; /* Of its keys in the store: "/registry/pods/" */
    char *head;   /* Of its objects' texts. */
    struct keyset objects;
    /* The window: a ring, oldest first from 'first'. */
    struct cache_event *ring;
    size_t ring_cap, first, n_events;
    size_t event_bytes; /* Texts that only the window holds. */
    uint64_t floor;     /* All events after this revision are in the window. */
    struct list watches;
    size_t n_watches;
};

struct cache {
    struct cache_kind *kinds; /* As api_kinds. */
    size_t n_kinds;
    uint64_t revision;
    bool ready; /* A snapshot was loaded. */
    size_t window, window_bytes;
    uint64_t history_floor;
    bool has_history;
};

void cache_init(struct cache *c, size_t window, size_t window_bytes);
void cache_done(struct cache *c);

/* The store's reports.  Each event belongs to one kind, which is returned with the event in '*ret' (valid
 * until the next); NULL: a key of none of our kinds, or unreadable bytes. */
struct cache_kind *cache_add_event(struct cache *c, const struct store_event *ev,
                                   struct cache_event *ret);
void cache_add_history(struct cache *c, const struct store_event *ev);
void cache_load(struct cache *c, const struct store_item *items, size_t n, uint64_t revision);
/* A snapshot after the store was away: calls 'event' with what differs from the cache, as changes in the order of their
 * revisions; it is to give each to cache_add_event.  What an object was in between is not known, so that older
 * versions are out of the windows afterwards.  -ESTALE, with nothing done: the store has another past than the
 * cache, as after a backup was restored. */
int cache_resync(struct cache *c, const struct store_item *items, size_t n, uint64_t revision,
                 void (*event)(void *ctx, const struct store_event *ev), void *ctx);

struct cache_kind *cache_find(struct cache *c, const struct api_kind *k);
/* "NAMESPACE/NAME" or "NAME": owned. */
char *cache_key(const char *namespace, const char *name);
/* The store's key: owned. */
char *cache_store_key(const struct cache_kind *ck, const char *key);

/* The i-th event of the window, oldest first. */
const struct cache_event *cache_event_at(const struct cache_kind *ck, size_t i);
/* Index of the first event after 'revision'. */
size_t cache_event_after(const struct cache_kind *ck, uint64_t revision);

/* A walk over the objects of a kind in key order as they were at 'revision', which must be in the window. */
struct cache_walk {
    const struct cache_kind *ck;
    struct keyset_pos pos;
    struct object *next;
    char *prefix;      /* Only keys that begin so; NULL: all. */
    struct past *past; /* Keys that have changed since, in order. */
    size_t n_past, at_past;
};
/* 'namespace' NULL: all.  'after': begins behind this key; NULL: with the first. */
void cache_walk_init(struct cache_walk *w, const struct cache_kind *ck, const char *namespace,
                     const char *after, uint64_t revision);
struct object *cache_walk_next(struct cache_walk *w); /* NULL at the end. */
void cache_walk_done(struct cache_walk *w);
