/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reconnect.h"

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

bool backoff_is_due(const struct backoff *b, uint64_t now)
{
    return now >= b->due_ms;
}

enum reconnect_step reconnect_run(struct reconnect *r, uint64_t now, uint64_t *ret_wait_ms)
{
    if (!r->open) {
        bool due = backoff_is_due(&r->backoff, now);
        *ret_wait_ms = due ? 0 : r->backoff.due_ms - now;
        return due ? RECONNECT_CONNECT : RECONNECT_WAIT;
    }
    uint64_t idle = now - r->received_ms;
    *ret_wait_ms = r->probe_ms;
    if (idle < r->probe_ms) {
        *ret_wait_ms -= idle;
        return RECONNECT_WAIT;
    }
    if (!r->probing) {
        r->probing = true;
        return RECONNECT_PROBE;
    }
    return idle >= r->probe_ms + r->dead_ms ? RECONNECT_CLOSE : RECONNECT_WAIT;
}

void reconnect_opened(struct reconnect *r, uint64_t now)
{
    r->open = true;
    r->probing = false;
    r->received_ms = now;
}

void reconnect_received(struct reconnect *r, uint64_t now)
{
    backoff_reset(&r->backoff);
    r->probing = false;
    r->received_ms = now;
}

uint64_t reconnect_closed(struct reconnect *r, uint64_t now, uint32_t seed)
{
    r->open = r->probing = false;
    return backoff_fail(&r->backoff, now, seed);
}
