/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of CronJobs: five fields as in cron (minute, hour, day of the month, month, day of the
 * week), or a descriptor such as "@daily" or "@every 1h30m".  Rules and texts are those of the
 * parser that Kubernetes uses.  When a schedule is next due: workload/schedule.h.  Pure. */
#pragma once

#include "base/err.h"

/* The times at which a schedule is due, as bits of numbers. */
struct cron_schedule {
    uint64_t minutes, hours, days, months, weekdays;
    /* The field of days, of weekdays, is "*" or "?": then only the other one counts.  Otherwise a day
     * of either is due. */
    bool any_day, any_weekday;
    int64_t every_s; /* "@every": the interval; 0: the fields count. */
};

/* -EINVAL: not a schedule, and why. */
int cron_parse(const char *s, struct cron_schedule *ret, struct err *e);
int cron_check_schedule(const char *s, struct err *e);
