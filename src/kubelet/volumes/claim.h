/* SPDX-License-Identifier: Apache-2.0 */
/* The PersistentVolume that a pod's claim is bound to.
 *
 * A node may only get claims that its pods use and their volumes, so they are asked for again until
 * they are bound: after a second at first, then less often, up to every 10 seconds.  Everything runs
 * on the loop's thread. */
#pragma once

#include "client/client.h"

struct claim;
/* 'owner_uid' (NULL: none): the claim must be controlled by this pod (an ephemeral volume).  'changed'
 * is called when claim_volume or claim_failure has changed, and may free the claim. */
struct claim *claim_new(struct loop *l, struct api_client *c, const char *ns, const char *name,
                        const char *owner_uid, loop_fn *changed, void *ctx);
struct claim *claim_free(struct claim *c);
/* The spec of the PersistentVolume, which has the claim's volumeMode; NULL: the claim is not bound yet. */
const struct json *claim_volume(const struct claim *c);
const char *claim_failure(const struct claim *c); /* NULL: nothing is wrong so far. */
