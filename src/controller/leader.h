/* SPDX-License-Identifier: Apache-2.0 */
/* Election of one leader among several processes, by a Lease object
 * (coordination.k8s.io/v1) as client-go does it.
 *
 * The holder renews the lease; the other processes watch it, and take it when it was not renewed
 * for its duration by their own clock (clocks of two hosts are never compared), or at once when the
 * holder has given it up.  A leader that cannot renew stops at two thirds of the duration, before
 * another process can begin.  Each term has a new identity, so that the header "Tenet-Lease" with
 * it (api.md) blocks late writes of an earlier term.
 *
 * Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"

struct leader_config {
    /* Namespace and name of the Lease; the namespace is made if it does not exist. */
    const char *ns, *name;
    const char *who;     /* Prefix of identities, such as the host's name. */
    unsigned duration_s; /* Duration of the lease; 0: 15; at least 3. */
    /* This process leads now.  'fence' is the value for the header
     * "Tenet-Lease" in each of its writes. */
    void (*elected)(void *ctx, const char *fence);
    /* This process no longer leads: everything that 'elected' began must have stopped on return. */
    void (*deposed)(void *ctx);
    /* Another process leads; called when that is first known and when the
     * leader changes; may be NULL. */
    void (*follows)(void *ctx, const char *holder);
    void *ctx;
};

struct leader;
/* 'cfg' is copied, except its ctx; loop and client must outlive the leader. */
struct leader *leader_new(struct loop *l, struct api_client *client,
                          const struct leader_config *cfg);
bool leader_is_leading(const struct leader *e);
/* Does not call 'deposed'.  If this process holds the lease, it stays until it expires. */
struct leader *leader_free(struct leader *e);
/* Ends the campaign or the term (without 'deposed': the caller has stopped its work), gives
 * the lease up so that another process takes over at once, and calls 'done' when that has
 * succeeded or failed.  leader_free must follow. */
void leader_resign(struct leader *e, loop_fn *done, void *ctx);
