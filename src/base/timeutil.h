/* SPDX-License-Identifier: Apache-2.0 */
/* Time: the monotonic clock in milliseconds for timers, and RFC 3339 text for objects and logs.
 * Pure logic takes the time as an argument; only loops and loggers read a clock. */
#pragma once

#include "base/macro.h"

#define TIME_TEXT_SIZE 32
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

uint64_t time_mono_ms(void);
uint64_t time_mono_ns(void);
int64_t time_wall_ms(void); /* Milliseconds since 1970, UTC. */
/* Whether a wall clock was never set: it is before 2026, when Tenet's first version was made. */
bool time_is_unset(int64_t wall_ms);
/* "2026-11-21T07:29:34.123Z", and without the fraction as in Kubernetes' metav1.Time. */
void time_format_ms(int64_t wall_ms, char out[TIME_TEXT_SIZE]);
void time_format_s(int64_t wall_ms, char out[TIME_TEXT_SIZE]);
/* "Sun, 06 Nov 1994 08:49:37 GMT", as in HTTP's Date (RFC 9110, section 5.6.7). */
void time_format_http(int64_t wall_ms, char out[TIME_TEXT_SIZE]);
/* With six digits, as in Kubernetes' metav1.MicroTime: "2026-11-21T07:29:34.123000Z". */
void time_format_micro(int64_t wall_ms, char out[TIME_TEXT_SIZE]);
/* Reads "YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)" (RFC 3339) to milliseconds; -EINVAL. */
int time_parse(const char *s, int64_t *ret_wall_ms);
/* Durations as Go's time package reads and writes them: "1h2m3s", "1.5s", "-500ms", "0"; no other
 * number lacks a unit.  -EINVAL: no duration, or one of more than 292 years. */
int time_parse_duration(const char *text, int64_t *ret_ns);
void time_format_duration(int64_t ns, char out[TIME_TEXT_SIZE]);
/* Age as kubectl prints it: 5s, 3m12s, 2h, 4d3h, 2y5d. */
void time_format_age(int64_t age_ms, char out[TIME_TEXT_SIZE]);

/* Reconnection delay: doubles from 'min_ms' to 'max_ms', with up to a quarter of jitter
 * from 'seed'.  'attempt' counts from 0. */
uint64_t time_backoff_ms(unsigned attempt, uint64_t min_ms, uint64_t max_ms, uint32_t seed);
