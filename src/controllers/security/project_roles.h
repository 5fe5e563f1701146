/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of the role bindings that each project has for its service accounts: so a deployer
 * pod may do rollouts in its project, and nothing else. */
#pragma once

#include "controller/controller.h"

extern const struct controller project_roles_controller;
