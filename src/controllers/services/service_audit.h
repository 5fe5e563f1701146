/* SPDX-License-Identifier: Apache-2.0 */
/* Watches over what services were given: tells in Events, as Kubernetes does, of addresses and ports that two services
 * have or that are outside the ranges (a registry that others wrote to, ranges that were changed), and gives LoadBalancers
 * that found the ingress range full an address when one is free.  On the loop's thread. */
#pragma once

#include "controller/controller.h"
#include "sdn/service_ranges.h"

/* Its configuration is a pointer to the struct service_ranges of the API server. */
extern const struct controller service_audit_controller;

/* Pure: what a service has, as "ip ADDRESS", "port NUMBER" and "ingress ADDRESS", each once; owned. */
struct json *service_audit_holds(const struct json *service);
/* Pure: whether one of them is within the ranges. */
bool service_audit_in_range(const struct service_ranges *r, const char *held);
/* Pure: it is a LoadBalancer of ours without an address. */
bool service_audit_waits(const struct service_ranges *r, const struct json *service);
