/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager's watchdog (sd_watchdog_enabled(3)): tells it again and again that the loop
 * runs.  A loop that hangs tells nothing, and the manager restarts the daemon.
 *
 * The owner frees the watchdog before the loop.  Thread of the loop only. */
#pragma once

#include "net/loop/loop.h"

struct watchdog;

/* Begins to report, at half the period that $WATCHDOG_USEC asks for.  NULL when the manager does
 * not ask this process ($WATCHDOG_PID), or the period is not a number of microseconds. */
struct watchdog *watchdog_new(struct loop *l);
/* Accepts NULL, and returns it. */
struct watchdog *watchdog_free(struct watchdog *w);
