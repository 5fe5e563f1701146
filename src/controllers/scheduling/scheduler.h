/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: gives each pod that has no node the best one, by a Binding.
 *
 * The decisions are those of sched/; this controller keeps the model up to date, tries the pods
 * that wait in their order (pending.h), and writes.  A pod that was decided counts on its node at
 * once, before the API server has answered; when the Binding is refused, it is tried again.  So a
 * process that begins to lead knows all pods that have nodes from its first lists, and two leaders
 * cannot bind one pod twice, because only the first Binding of a pod succeeds.
 *
 * It handles the pods whose spec.schedulerName is "default-scheduler".  docs/scheduler.md is for
 * users. */
#pragma once

#include "controller/controller.h"
#include "sched/policy.h"

#define SCHEDULER_NAME "default-scheduler"

struct scheduler_config {
    const struct sched_policy *policy; /* Borrowed; NULL: the defaults. */
};

extern const struct controller scheduler_controller;
