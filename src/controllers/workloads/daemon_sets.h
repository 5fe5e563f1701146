/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of DaemonSets (workload/daemon.h). */
#pragma once

#include "controller/controller.h"

extern const struct controller daemon_sets_controller;
