/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of Deployments (workload/deployment.h). */
#pragma once

#include "controller/controller.h"

extern const struct controller deployments_controller;
