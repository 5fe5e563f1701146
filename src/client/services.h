/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the Services and EndpointSlices of a cluster and tells what became of each service.
 *
 * Both are listed and watched; of the objects only a 'struct sdn_service' and its slices are kept.
 * Changes that come together, of a service and its slices, are told once, from a task of the loop.  While the server
 * is away everything stays as it was last known.
 *
 * Listeners are told in the order in which they were added.  Everything runs on the loop's thread. */
#pragma once

#include "client/informer_set.h"
#include "sdn/service.h"

struct services_watch;

struct services_listener {
    /* 'old' NULL: it is new; 's' NULL: it is gone.  Both are valid during the call. */
    void (*changed)(void *ctx, const struct sdn_service *old, const struct sdn_service *s);
    /* All changes that came together have been told.  Optional. */
    void (*settled)(void *ctx);
    /* Both lists are complete, and all there is has been told.  Once; optional. */
    void (*synced)(void *ctx);
};

struct services_watch *services_watch_new(struct loop *l, struct api_client *c);
/* As above, with the lists and watches of 'set', which must outlive it. */
struct services_watch *services_watch_new_in(struct loop *l, struct informer_set *set);
struct services_watch *services_watch_free(struct services_watch *w);
DEFINE_CLEANUP(struct services_watch *, services_watch_free)
/* 'ops' lives as long.  When there are services already they are told, and 'settled' and 'synced' called, from a
 * task of the loop. */
void services_watch_add(struct services_watch *w, const struct services_listener *ops, void *ctx);
/* The listener of 'ctx' hears nothing any more; not from within a listener. */
void services_watch_remove(struct services_watch *w, void *ctx);
bool services_watch_synced(const struct services_watch *w);
/* Whether the server can be reached at present; what is known stays when not. */
bool services_watch_connected(const struct services_watch *w);
/* NULL: there is none.  Valid until the next change. */
const struct sdn_service *services_watch_get(const struct services_watch *w, const char *ns,
                                             const char *name);
size_t services_watch_count(const struct services_watch *w);
void services_watch_each(const struct services_watch *w,
                         void (*fn)(void *ctx, const struct sdn_service *s), void *ctx);
