/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of StatefulSets (workload/stateful.h). */
#pragma once

#include "controller/controller.h"

extern const struct controller stateful_sets_controller;
