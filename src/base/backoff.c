/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include "base/timeutil.h"

void backoff_fail(struct backoff *b)
{
    b->failures++;
}

void backoff_succeed(struct backoff *b)
{
    b->failures = 0;
}

void backoff_lasted(struct backoff *b, uint64_t lasted_ms, uint64_t proven_ms)
{
    if (lasted_ms >= proven_ms) {
        backoff_succeed(b);
    }
}

bool backoff_at_once(struct backoff *b)
{
    if (b->failures) {
        return false;
    }
    backoff_fail(b);
    return true;
}

uint64_t backoff_pause_ms(const struct backoff *b, uint64_t min_ms, uint64_t max_ms, uint32_t seed)
{
    return b->failures ? time_backoff_ms(b->failures - 1, min_ms, max_ms, seed) : 0;
}
