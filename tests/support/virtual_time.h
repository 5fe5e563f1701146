/* SPDX-License-Identifier: Apache-2.0 */
/* Time that passes only while the event loop has nothing to do: a program that links this file has
 * clocks of its own, and a wait for descriptors that lasts no time.  When nothing is ready, the
 * clocks go on to the loop's next timer.  So minutes of back-off cost nothing, and the same seed
 * gives the same history.
 *
 * It takes the place of clock_gettime and epoll_wait for the program and for libuv.  Everything that
 * the loop waits for must come from the program's own thread. */
#pragma once

#include <stdint.h>

/* Nanoseconds since 1970. */
int64_t virtual_now_ns(void);
