/* SPDX-License-Identifier: Apache-2.0 */
/* The needs of a Service, derived from its spec: for its own rules and for the allocators. Pure. */
#pragma once

#include "wire/json.h"

bool service_needs_cluster_ip(
    const struct json *spec); /* It is not an ExternalName; or it is headless. */
bool service_is_headless(const struct json *spec); /* clusterIP: None */
bool service_is_load_balancer(const struct json *spec);
bool service_needs_node_ports(const struct json *spec);
bool service_needs_health_port(const struct json *spec); /* healthCheckNodePort */
bool service_is_external(const struct json *spec);       /* Traffic from outside may reach it. */
