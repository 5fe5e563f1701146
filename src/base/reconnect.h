/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is made again whenever it breaks and that is probed while it is silent.  Pure:
 * time is an argument; the owner has the descriptor and one timer:
 *
 *     CLOSED --due--> connect --opened--> OPEN --silent--> probe --silent still--> close --> CLOSED
 *
 * After each call the owner arms its timer with what reconnect_run says.  All times are in
 * milliseconds of one clock that does not go back.  Not thread-safe; zeroed memory is no valid
 * value. */
#pragma once

#include "base/backoff.h"

struct reconnect {
    struct backoff backoff;
    uint64_t probe_ms; /* Silence before a probe. */
    uint64_t dead_ms;  /* Silence after the probe before the peer counts as dead. */
    bool open, probing;
    uint64_t received_ms;
};

enum reconnect_step {
    RECONNECT_WAIT,    /* Nothing is due. */
    RECONNECT_CONNECT, /* Connect, then call reconnect_opened or reconnect_closed. */
    RECONNECT_PROBE,   /* Send what the peer answers. */
    RECONNECT_CLOSE,   /* The peer is dead: close, then call reconnect_closed. */
};

/* Says what is due at 'now', and in '*ret_wait_ms' when to ask again. */
enum reconnect_step reconnect_run(struct reconnect *r, uint64_t now, uint64_t *ret_wait_ms);
void reconnect_opened(struct reconnect *r, uint64_t now);
/* Bytes arrived: the peer lives, and the next attempt after a loss comes soon. */
void reconnect_received(struct reconnect *r, uint64_t now);
/* The connection broke, or an attempt failed.  Returns when to ask again. */
uint64_t reconnect_closed(struct reconnect *r, uint64_t now, uint32_t seed);
