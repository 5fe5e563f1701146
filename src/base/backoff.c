/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

#include "base/timeutil.h"

uint64_t backoff_fail(struct backoff *b, uint64_t now, uint32_t seed)
{
    uint64_t delay = time_backoff_ms(b->failures++, b->min_ms, b->max_ms, seed);
    b->due_ms = now + delay;
    return delay;
}

void backoff_reset(struct backoff *b)
{
    b->failures = 0;
    b->due_ms = 0;
}

void backoff_lasted(struct backoff *b, uint64_t lasted_ms, uint64_t proven_ms)
{
    if (lasted_ms >= proven_ms) {
        backoff_reset(b);
    }
}

bool backoff_at_once(struct backoff *b)
{
    bool first = b->failures == 0;
    b->failures += first;
    return first;
}

bool backoff_is_due(const struct backoff *b, uint64_t now)
{
    return now >= b->due_ms;
}

uint64_t backoff_left_ms(const struct backoff *b, uint64_t now)
{
    return backoff_is_due(b, now) ? 0 : b->due_ms - now;
}
