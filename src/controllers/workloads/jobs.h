/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of Jobs (workload/job.h), and the one that deletes Jobs some time after their end
 * (spec.ttlSecondsAfterFinished). */
#pragma once

#include "controller/controller.h"

extern const struct controller jobs_controller, job_ttl_controller;
