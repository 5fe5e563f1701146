/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of DeploymentConfigs (workload/deployment_config.h). */
#pragma once

#include "controller/controller.h"

extern const struct controller deployment_configs_controller;
