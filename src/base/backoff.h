/* SPDX-License-Identifier: Apache-2.0 */
/* The delay before something that failed is tried again: it doubles with each failure in a row, up
 * to a longest one.  Pure: the owner keeps the timer and gives the time, in milliseconds of one
 * clock that does not go back. */
#pragma once

#include "base/macro.h"

struct backoff {
    uint64_t min_ms, max_ms; /* The first delay, and the longest. */
    unsigned failures;       /* Since the last success. */
    uint64_t due_ms;         /* The next attempt is not before; 0: at once. */
};

#define BACKOFF_INIT(min, max) ((struct backoff){.min_ms = (min), .max_ms = (max)})

/* An attempt failed at 'now': the delay doubles, with up to a quarter of jitter from 'seed'.
 * Returns the delay. */
uint64_t backoff_fail(struct backoff *b, uint64_t now, uint32_t seed);
/* An attempt succeeded, or there is reason to try at once. */
void backoff_reset(struct backoff *b);
/* A connection ended after 'lasted_ms'.  If that is at least 'proven_ms', it was a working one,
 * which is a success. */
void backoff_lasted(struct backoff *b, uint64_t lasted_ms, uint64_t proven_ms);
/* True when nothing has failed: one attempt may follow at once, and counts as a failure until it
 * succeeds. */
bool backoff_at_once(struct backoff *b);
bool backoff_is_due(const struct backoff *b, uint64_t now);
/* Milliseconds until the next attempt is due; 0: it is. */
uint64_t backoff_left_ms(const struct backoff *b, uint64_t now);
