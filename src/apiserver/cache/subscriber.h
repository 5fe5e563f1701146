/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the API server that follow the watch cache, in the order in which they need each change.
 *
 * A part embeds a struct cache_subscriber and registers it when it is made, so that the server does
 * not know who follows.  A change has been applied to the cache before the first subscriber gets
 * it, and each subscriber has dealt with it before the next one gets it.  The subscriber belongs to
 * the part, which cancels it before it is freed; a cancelled or zeroed one may be cancelled again.
 * Everything runs on the loop's thread, within the store's report. */
#pragma once

#include "apiserver/cache/cache.h"

/* The order of the subscribers; subscribers of one rank are in the order of their registration. */
enum cache_rank {
    /* Access rights: they apply to everything that the later subscribers do. */
    CACHE_RANK_ACCESS,
    CACHE_RANK_ADMISSION, /* Indexes of admission: addresses, claims, quotas. */
    /* Watches: a client that reacts to the event meets the parts above in their new state. */
    CACHE_RANK_WATCH,
    /* Definitions: they end watches and remove kinds, after the watches have sent the event. */
    CACHE_RANK_KINDS,
};

struct cache_subscriber {
    struct list node;
    enum cache_rank rank;
    void *ctx; /* The argument of the functions, each of which may be NULL. */
    /* An object of 'ck' was created, updated or deleted. */
    void (*changed)(void *ctx, struct cache_kind *ck, const struct cache_event *ev);
    /* A key of the store that belongs to no kind was written, or ('present' false) deleted. */
    void (*unknown_changed)(void *ctx, const char *key, bool present);
    /* The cache is about to be loaded anew: the changes in between remain unknown. */
    void (*resetting)(void *ctx);
    /* The cache was loaded. */
    void (*loaded)(void *ctx);
};

void cache_subscribe(struct cache *c, struct cache_subscriber *s);
void cache_unsubscribe(struct cache_subscriber *s);

/* Applies an event of the store, and notifies the subscribers of the change. */
void cache_apply(struct cache *c, const struct store_event *ev);
/* Loads the cache anew (see cache_load). */
void cache_reload(struct cache *c, struct store_item *items, size_t n, uint64_t revision,
                  void (*define)(void *ctx), void *ctx);
