/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of HorizontalPodAutoscalers (workload/autoscale.h): every 15 s it reads the scale
 * of each target, its pods and their metrics, and changes the number of pods. */
#pragma once

#include "controller/controller.h"

extern const struct controller autoscalers_controller;
