/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of CronJobs (workload/cronjob.h). */
#pragma once

#include "controller/controller.h"

extern const struct controller cron_jobs_controller;
