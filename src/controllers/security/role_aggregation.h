/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the rules of ClusterRoles that have an aggregationRule: all rules of the roles that its selectors match. */
#pragma once

#include "client/client.h"

struct role_aggregation;
struct role_aggregation *role_aggregation_new(struct loop *l, struct api_client *client);
struct role_aggregation *role_aggregation_free(struct role_aggregation *a);

/* Pure: the rules (owned array) of 'role', from 'roles' (an array of ClusterRoles in order). */
struct json *role_aggregation_rules(const struct json *role, const struct json *roles);
