/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the deletion of pods whose node does not.
 *
 * A pod that is deleted has its grace period, and whoever runs it deletes it for good when it is ended (a kubelet; the
 * lab).  Where nobody does so, the pod is deleted for good here, some seconds after its time is over. */
#pragma once

#include "controller/controller.h"

/* What its node gets beyond the grace period. */
#define POD_END_SLACK_MS 2000

extern const struct controller pod_end_controller;

/* Pure: milliseconds until 'pod' is to be deleted for good; 0: now; negative: its deletion was not asked for. */
int64_t pod_end_in_ms(const struct json *pod, int64_t now_ms);
