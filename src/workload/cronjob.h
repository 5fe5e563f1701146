/* SPDX-License-Identifier: Apache-2.0 */
/* CronJob: a Job at each time of a schedule.
 *
 * The name of a Job is made from its time, so that no time gets two.  After a pause the latest
 * missed time counts, however many there were.  Events and policies are those of Kubernetes'
 * cronjob controller.  Pure. */
#pragma once

#include "wire/tzif.h"
#include "workload/pods.h"

/* Plans for the CronJob.  'jobs' are its Jobs.  'zone' is the zone that spec.timeZone names, or the
 * controller's; 'zone_error' (NULL: none) says why there is none: then no Job is made. */
void cronjob_plan(const struct json *cronjob, struct workload_child *jobs, size_t n,
                  const struct tzif *zone, const char *zone_error, int64_t now_ms,
                  struct workload_plan *ret);
