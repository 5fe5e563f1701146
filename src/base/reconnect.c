/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reconnect.h"

enum reconnect_step reconnect_run(struct reconnect *r, uint64_t now, uint64_t *ret_wait_ms)
{
    if (!r->open) {
        *ret_wait_ms = backoff_left_ms(&r->backoff, now);
        return *ret_wait_ms == 0 ? RECONNECT_CONNECT : RECONNECT_WAIT;
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
