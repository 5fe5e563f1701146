/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the Services and EndpointSlices of a cluster, and notifies
 * listeners of the resulting state of each service.
 *
 * Both kinds are listed and watched; only a 'struct sdn_service' and its slices are kept of the
 * objects.  Changes of a service and its slices that arrive together are reported once, from a task
 * of the loop.  While the server is unavailable, the last known state stays.
 *
 * Listeners are called in the order in which they were
 * added.  Everything runs on the loop's thread. */
#pragma once

#include "client/informer_set.h"
#include "sdn/service.h"

struct services_watch;

struct services_listener {
    /* 'old' NULL: the service is new; 's' NULL: it was deleted.  Both are valid during the call. */
    void (*changed)(void *ctx, const struct sdn_service *old, const struct sdn_service *s);
    /* All changes that arrived together have been reported.  Optional. */
    void (*settled)(void *ctx);
    /* Both lists are complete, and all their services have been reported.  Called once;
     * optional. */
    void (*synced)(void *ctx);
};

struct services_watch *services_watch_new(struct loop *l, struct api_client *c);
/* Like services_watch_new, with the lists and watches of 'set', which must outlive it. */
struct services_watch *services_watch_new_in(struct loop *l, struct informer_set *set);
struct services_watch *services_watch_free(struct services_watch *w);
DEFINE_CLEANUP(struct services_watch *, services_watch_free)
/* 'ops' must live until services_watch_remove.  Existing services are reported, and 'settled' and
 * 'synced' called, from a task of the loop. */
void services_watch_add(struct services_watch *w, const struct services_listener *ops, void *ctx);
/* The listener with 'ctx' gets no further calls; not allowed within a listener. */
void services_watch_remove(struct services_watch *w, void *ctx);
bool services_watch_synced(const struct services_watch *w);
/* Whether the server can be reached at present; if not, the last known state stays. */
bool services_watch_connected(const struct services_watch *w);
/* The state of a service; NULL: there is none.  Valid until the next change. */
const struct sdn_service *services_watch_get(const struct services_watch *w, const char *ns,
                                             const char *name);
size_t services_watch_count(const struct services_watch *w);
void services_watch_each(const struct services_watch *w,
                         void (*fn)(void *ctx, const struct sdn_service *s), void *ctx);
