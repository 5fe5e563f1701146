/* SPDX-License-Identifier: Apache-2.0 */
/* Completes the deletion of pods whose node does not.
 *
 * A pod whose deletion was requested has a grace period; the program that runs it (a kubelet, the
 * lab) deletes it finally when it has ended.  If no program does so, this controller deletes the
 * pod some seconds after the grace period. */
#pragma once

#include "controller/controller.h"

/* Time that the node gets beyond the grace period. */
#define POD_DELETION_SLACK_MS 2000

extern const struct controller pod_deletion_controller;

/* Pure: milliseconds until 'pod' must be deleted finally; 0: now;
 * negative: its deletion was not requested. */
int64_t pod_deletion_in_ms(const struct json *pod, int64_t now_ms);
