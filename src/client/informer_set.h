/* SPDX-License-Identifier: Apache-2.0 */
/* Shared informers: one list and one watch for a kind and selector, for any number of listeners.
 *
 * A listener is an ordinary 'struct informer' (client.h).  The set keeps a copy of the
 * objects while a listener needs one, and lists whole objects while a listener needs more
 * than metadata; each listener sees the events of an object in the same order.  A listener
 * that is added late gets the existing objects as new, then 'listed' and 'synced': from the
 * copy, or from a new list if there is no copy.
 *
 * The set must outlive its informers, and the client the set.  Everything
 * runs on the loop's thread. */
#pragma once

#include "client/client.h"

struct informer_set;
struct informer_set *informer_set_new(struct loop *l, struct api_client *c);
/* Its informers must have been freed. */
struct informer_set *informer_set_free(struct informer_set *s);
DEFINE_CLEANUP(struct informer_set *, informer_set_free)
/* The caller owns the informer.  'field_selector' NULL: all.  'ops' must live as long as the
 * informer. */
struct informer *informer_set_add(struct informer_set *s, const char *api_version,
                                  const char *plural, const char *field_selector,
                                  const struct informer_ops *ops, void *ctx);
/* Listeners that are added from now on get no object listed before this call: a new leader
 * must see the last writes of the former one. */
void informer_set_expire(struct informer_set *s);
/* The number of running lists and watches. */
size_t informer_set_count(const struct informer_set *s);
