/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of CronJobs: five fields as in cron (minute, hour, day of the month, month, day of the
 * week), or a descriptor such as "@daily" or "@every 1h30m".  Rules and texts are those of the
 * parser that Kubernetes uses. Internal to src/api. Pure. */
#pragma once

#include "base/err.h"

/* -EINVAL: not a schedule, and why. */
int cron_check_schedule(const char *s, struct err *e);
