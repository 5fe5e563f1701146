/* SPDX-License-Identifier: Apache-2.0 */
/* When a schedule is due, in a time zone.
 *
 * As in Kubernetes, a time that clocks skip when daylight saving begins does not come, and one that
 * they show twice comes twice.  Times are seconds since 1970, UTC.  Pure. */
#pragma once

#include "api/kinds/cron.h"
#include "wire/tzif.h"

/* The first time after 'after_s'; 0: none within five years.  'zone' NULL: UTC. */
int64_t schedule_next(const struct cron_schedule *c, const struct tzif *zone, int64_t after_s);
/* The last time after 'after_s' that is not after 'now_s'; 0: none. */
int64_t schedule_last(const struct cron_schedule *c, const struct tzif *zone, int64_t after_s,
                      int64_t now_s);
