/* SPDX-License-Identifier: Apache-2.0 */
/* Checks common to the kinds of network policy.  Internal to src/api.
 *
 * Field paths, reasons and texts follow Kubernetes' validation of NetworkPolicy
 * (networking.k8s.io/v1) and the schemas of the Network Policy API working group
 * (policy.networking.k8s.io/v1alpha1). */
#pragma once

#include "api/kind_util.h"

/* Whether 'inner' is in 'outer' and is smaller; both are valid CIDRs. */
bool policy_cidr_is_within(const char *inner, const char *outer);
/* The rules and the subject, common to AdminNetworkPolicy and BaselineAdminNetworkPolicy. */
void policy_check_admin_spec(struct api_causes *c, const struct json *spec);
