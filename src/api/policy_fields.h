/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the kinds of network policy share.  Internal to src/api.
 *
 * Field paths, reasons and texts follow Kubernetes' validation of NetworkPolicy (networking.k8s.io/v1) and the
 * schemas of the Network Policy API working group (policy.networking.k8s.io/v1alpha1). */
#pragma once

#include "api/kind_util.h"

/* A metav1.LabelSelector; absent is fine. */
void policy_check_selector(struct api_causes *c, const char *field, const struct json *v);
/* A CIDR of either family, host bits allowed as Kubernetes allows them; tells whether it is a good one. */
bool policy_check_cidr(struct api_causes *c, const char *field, const struct json *v);
/* Whether 'inner' lies in 'outer' and is smaller; both are good CIDRs. */
bool policy_cidr_is_within(const char *inner, const char *outer);
/* A port's number in 1-65535, and the name of a container's port (IANA service name). */
bool policy_check_port_number(struct api_causes *c, const char *field, const struct json *v,
                              bool required, int64_t *ret);
bool policy_check_port_name(struct api_causes *c, const char *field, const struct json *v);
extern const char *const policy_protocols[]; /* "TCP", "UDP", "SCTP", NULL */

/* The rules and the subject that AdminNetworkPolicy and BaselineAdminNetworkPolicy have in common; 'actions'
 * ends with NULL. */
void policy_check_admin_spec(struct api_causes *c, const struct json *spec,
                             const char *const *actions);
/* "protocol: TCP" and "name" as the schema's defaults have them. */
void policy_default_admin_spec(struct json *spec);
