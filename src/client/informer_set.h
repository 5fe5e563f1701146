/* SPDX-License-Identifier: Apache-2.0 */
/* Informers that share: one list and one watch for a kind and selector, however many listeners
 * there are.
 *
 * A listener is a 'struct informer' (client.h) as any other.  The set keeps a copy of the objects
 * while a listener needs one, and lists whole objects while a listener needs more than metadata;
 * each listener sees the events of an object in the same order.  A listener that is added late gets
 * the present objects as new, then 'listed' and 'synced': from the copy, or by a list anew when
 * there is none.
 *
 * The set must outlive its informers, and the client the set.  All on the loop's thread. */
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
/* Listeners added from now on get no object that was listed before this call: a new leader must see
 * what the former one has written last. */
void informer_set_expire(struct informer_set *s);
/* Lists and watches that run. */
size_t informer_set_count(const struct informer_set *s);
