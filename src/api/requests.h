/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks of its node: amounts of resources, and ports of the host.
 *
 * The scheduler, the node's admission and its control groups count by these functions alone, so
 * that a pod that was scheduled is not refused by its node for another sum.  Amounts are milliCPU
 * for "cpu" and whole units (bytes) for other resources; sums that are too large are INT64_MAX.
 * Pure; objects are those of core/v1. */
#pragma once

#include "wire/json.h"

/* An amount in a list of resources; 'dflt' when it is absent.  An amount that cannot be read is
 * INT64_MAX, more than any node has. */
int64_t api_amount(const struct json *list, const char *resource, int64_t dflt);
/* An amount of the list 'which' ("requests", "limits") of a container; 'dflt' when it is not given.
 * A limit stands for a request that is not given. */
int64_t api_container_amount(const struct json *container, const char *which, const char *resource,
                             int64_t dflt);
/* What the pod of this PodSpec needs, or may use: the largest of what its containers have together
 * and of what each init container has beside the sidecars that run by then (KEP 753), plus the
 * overhead.  'dflt': of containers that state nothing. */
int64_t api_pod_amount(const struct json *spec, const char *which, const char *resource,
                       int64_t dflt);

/* A port of the host that a container takes. */
struct api_host_port {
    const char *ip;       /* "0.0.0.0": all. */
    const char *protocol; /* "TCP" */
    int64_t port;
};
/* Reads a ContainerPort, whose texts are borrowed.  False: it takes no port of the host. */
bool api_host_port_read(const struct json *port, struct api_host_port *ret);
/* Whether two pods cannot have both on one node. */
bool api_host_ports_conflict(const struct api_host_port *a, const struct api_host_port *b);
