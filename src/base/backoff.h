/* SPDX-License-Identifier: Apache-2.0 */
/* The pause before something that failed is tried again: none before the first failure, then one
 * that doubles with each failure in a row.  Pure: the owner keeps the timer and says how long an
 * attempt lasted.
 *
 * Zeroed is valid: nothing has failed. */
#pragma once

#include "base/macro.h"

struct backoff {
    unsigned failures; /* In a row. */
};

void backoff_fail(struct backoff *b);
void backoff_succeed(struct backoff *b);
/* A connection ended after 'lasted_ms'.  If that is at least 'proven_ms', it was a working one,
 * which is a success. */
void backoff_lasted(struct backoff *b, uint64_t lasted_ms, uint64_t proven_ms);
/* True when nothing has failed: one attempt may follow at once, and counts as a failure until it
 * succeeds. */
bool backoff_at_once(struct backoff *b);
/* Milliseconds to wait: 0 when nothing has failed, else 'min_ms' doubled up to 'max_ms', with up to
 * a quarter of jitter from 'seed'. */
uint64_t backoff_pause_ms(const struct backoff *b, uint64_t min_ms, uint64_t max_ms, uint32_t seed);
