/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the addresses and ports of services: records Events, as Kubernetes does, about addresses
 * and ports that two services have or that are outside the ranges (in a registry that other
 * programs wrote to, or after a change of the ranges), and lets a LoadBalancer service that found
 * the ingress range exhausted get an address when one is free.  Runs on the loop's thread. */
#pragma once

#include "controller/controller.h"
#include "sdn/service_ranges.h"

/* Its configuration is a pointer to the struct service_ranges of the API server. */
extern const struct controller service_audit_controller;

/* Pure: the numbers of a service, as "ip ADDRESS", "port NUMBER" and
 * "ingress ADDRESS", each once; owned. */
struct json *service_audit_holds(const struct json *service);
/* Pure: whether one of these numbers is within the ranges. */
bool service_audit_in_range(const struct service_ranges *r, const char *held);
/* Pure: whether the service is a LoadBalancer of this implementation without an address. */
bool service_audit_waits(const struct service_ranges *r, const struct json *service);
