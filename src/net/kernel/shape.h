/* SPDX-License-Identifier: Apache-2.0 */
/* Limits what a link sends: a token bucket (tc-tbf(8)) as its queue, which delays what is too much, and drops only what
 * would wait too long.
 *
 * Calls block, and share nothing but the 'struct rtnl'.  The queue goes with its link. */
#pragma once

#include "net/kernel/rtnl.h"

struct shape {
    uint64_t rate;  /* Bits per second. */
    uint64_t burst; /* Bits that may be sent at once; 0: 100 ms of the rate. */
};

/* Makes this the link's queue, in place of what it had. */
int shape_set(struct rtnl *r, int ifindex, const struct shape *s, struct err *e);
/* Takes the token bucket away, if there is one; a link that is gone has none. */
int shape_clear(struct rtnl *r, int ifindex, struct err *e);
/* -ENOENT: the link's queue has not this rate; the error says so. */
int shape_check(struct rtnl *r, int ifindex, const struct shape *s, struct err *e);
