/* SPDX-License-Identifier: Apache-2.0 */
/* Checks common to Service, Endpoints and EndpointSlice.  Internal to src/api.
 *
 * Field paths, reasons and texts follow Kubernetes' validation of core/v1 and
 * discovery.k8s.io/v1. */
#pragma once

#include "api/kind_util.h"
#include "api/schema.h"

/* Service names (RFC 1035 label of at most 63 characters); NULL: fine. */
const char *service_check_name(const char *name);
/* Whether the member of 'obj' is absent, null or empty. */
bool service_is_empty(const struct json *obj, const char *key);
/* Whether the member is the same in both; empty equals absent. */
bool service_same(const struct json *a, const struct json *b, const char *key);
