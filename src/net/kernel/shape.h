/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the rate of a link by a token bucket (tc-tbf(8)) as its queue, which delays packets
 * above the rate, and drops only those that would wait too long.
 *
 * Calls block, and share nothing but the 'struct rtnl'.  The queue is removed with its link. */
#pragma once

#include "net/kernel/rtnl.h"

struct shape {
    uint64_t rate;  /* Bits per second. */
    uint64_t burst; /* Bits that may be sent at once; 0: 100 ms of the rate. */
};

/* Makes this the link's queue, replacing any other. */
int shape_set(struct rtnl *r, int ifindex, const struct shape *s, struct err *e);
/* Removes the token bucket, if there is one; success when the link is gone. */
int shape_clear(struct rtnl *r, int ifindex, struct err *e);
/* -ENOENT: the link's queue does not have this rate; the error says so. */
int shape_check(struct rtnl *r, int ifindex, const struct shape *s, struct err *e);
