/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the rules of ClusterRoles that have an aggregationRule: all rules
 * of the roles that its selectors match. */
#pragma once

#include "controller/controller.h"

extern const struct controller role_aggregation_controller;

/* Pure: the rules (owned array) of 'role', from 'roles' (an array of ClusterRoles in order). */
struct json *role_aggregation_rules(const struct json *role, const struct json *roles);
