/* SPDX-License-Identifier: Apache-2.0 */
/* Election of one leader among several processes, by a Lease object (coordination.k8s.io/v1) as client-go does it.
 *
 * Who holds the lease renews it; the others watch it, and take it when it was not renewed for its duration by
 * their own clock (no two clocks are compared), or at once when it was given up.  A leader that cannot renew stops
 * at two thirds of the duration, before anybody else can begin.  Its identity is new for each term, so that
 * the header "Tenet-Lease" with it (api.md) keeps out whatever is still on its way from an earlier one.
 *
 * All on the loop's thread. */
#pragma once

#include "client/client.h"

struct leader_config {
    const char *ns, *name; /* Of the Lease; the namespace is made if it is not there. */
    const char *who;       /* Identities begin with it, such as the host's name. */
    unsigned duration_s;   /* 0: 15; at least 3. */
    /* This process leads.  'fence' is the value for "Tenet-Lease" in each of its writes. */
    void (*elected)(void *ctx, const char *fence);
    /* It does no longer: whatever 'elected' began must have stopped on return. */
    void (*deposed)(void *ctx);
    /* Another one leads; told when that is first known, and when it changes; may be NULL. */
    void (*follows)(void *ctx, const char *holder);
    void *ctx;
};

struct leader;
/* 'cfg' is copied but for its ctx; loop and client must outlive it. */
struct leader *leader_new(struct loop *l, struct api_client *client,
                          const struct leader_config *cfg);
bool leader_is_leading(const struct leader *e);
/* Does not call 'deposed'.  A lease that is held stays until it runs out. */
struct leader *leader_free(struct leader *e);
/* Ends the campaign or the term (without 'deposed': the caller has stopped its work), gives the lease up so that
 * another takes over at once, and calls 'done' when that is done or has failed.  leader_free follows. */
void leader_resign(struct leader *e, loop_fn *done, void *ctx);
