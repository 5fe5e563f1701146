/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of the deployers of DeploymentConfigs: their pods (workload/deployer.h), and
 * rollouts that need none, which it does itself (workload/deploy.h). */
#pragma once

#include "controller/controller.h"

/* The image is borrowed. */
struct deployers_config {
    const char *image; /* Of deployer pods. */
    bool in_process;   /* Rollouts are done without a pod where that is possible. */
};

extern const struct controller deployers_controller;
