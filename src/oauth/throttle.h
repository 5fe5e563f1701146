/* SPDX-License-Identifier: Apache-2.0 */
/* Delays after failed logins, per user and per address: guessing becomes slow, and a person with a
 * typing error does not notice.
 *
 * The first failures are free.  After that each doubles the delay before the next attempt of the
 * same key is looked at, up to a maximum, and time without failures forgets them.  The table is
 * bounded: the key whose last failure is oldest is forgotten first.  An attacker who names another
 * user delays that user by the maximum at most; there is no lock-out.  Pure: the time comes in as
 * an argument. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct throttle {
    struct smap entries; /* By key: struct throttle_entry. */
    struct list by_age;  /* The oldest failure first. */
    size_t max;
    unsigned free_failures;
    uint64_t first_ms, max_ms; /* The first delay, and the longest. */
    uint64_t forget_ms;        /* After so long without a failure a key is forgotten. */
};
void throttle_init(struct throttle *t, size_t max, unsigned free_failures, uint64_t first_ms,
                   uint64_t max_ms, uint64_t forget_ms);
void throttle_done(struct throttle *t);
/* Milliseconds from 'now_ms' until an attempt of 'key' may be looked at; 0: now. */
uint64_t throttle_wait_ms(struct throttle *t, const char *key, uint64_t now_ms);
void throttle_failed(struct throttle *t, const char *key, uint64_t now_ms);
void throttle_succeeded(struct throttle *t, const char *key);
