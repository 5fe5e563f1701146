/* SPDX-License-Identifier: Apache-2.0 */
/* From a service and its pods to Endpoints and EndpointSlices.  Pure.
 *
 * The rules are those of Kubernetes' endpoint, endpointslice and endpointslicemirroring controllers.  Slices are
 * changed as little as can be: an endpoint stays in the slice where it is, what is new goes where something changes
 * anyway, then where there is room. */
#pragma once

#include "sdn/address.h"
#include "wire/json.h"

#define DISCOVERY_VERSION "discovery.k8s.io/v1"
#define SLICE_SERVICE_LABEL "kubernetes.io/service-name"
#define SLICE_MANAGER_LABEL "endpointslice.kubernetes.io/managed-by"
#define SLICE_MANAGER "endpointslice-controller.k8s.io"
#define SLICE_MIRROR_MANAGER "endpointslicemirroring-controller.k8s.io"
#define SLICE_SKIP_MIRROR_LABEL "endpointslice.kubernetes.io/skip-mirror"
#define ENDPOINTS_MANAGER_LABEL "endpoints.kubernetes.io/managed-by"
#define ENDPOINTS_MANAGER "endpoint-controller"
#define TRIGGER_TIME_ANNOTATION "endpoints.kubernetes.io/last-change-trigger-time"
#define SLICE_MAX 100      /* Endpoints in one. */
#define ENDPOINTS_MAX 1000 /* Addresses in Endpoints; slices have them all. */

/* What of a Pod matters here. */
struct endpoint_pod_port {
    char *name; /* "" when it has none. */
    char *protocol;
    uint16_t number;
};
struct endpoint_pod {
    char *namespace, *name, *uid;
    char *reported; /* IPv4 address in the Pod's status; NULL: none yet. */
    char *ip;       /* 'reported', if it counts (endpoint_pod_settle); else NULL. */
    bool host_network;
    char *node; /* NULL: none. */
    char *hostname, *subdomain;
    char **labels; /* "key=value", in order. */
    size_t n_labels;
    struct endpoint_pod_port *ports;
    size_t n_ports;
    bool ready, terminating, ended; /* ended: Succeeded or Failed. */
    int64_t since_ms;               /* When it became ready, or stopped being so; 0: not known. */
};
/* Owned by the caller.  'ip' is NULL until endpoint_pod_settle. */
struct endpoint_pod *endpoint_pod_new(const struct json *pod);
/* Sets 'ip' if the reported address counts.  'host_subnet' is the HostSubnet of the pod's node, NULL: there is none.
 * -EADDRNOTAVAIL says why it does not; a pod that reports none is fine. */
int endpoint_pod_settle(struct endpoint_pod *p, const struct json *host_subnet,
                        const struct address_ranges *foreign, struct err *e);
struct endpoint_pod *endpoint_pod_free(struct endpoint_pod *p);
bool endpoint_pod_equal(const struct endpoint_pod *a, const struct endpoint_pod *b);
/* Whether it has all labels of the selector (an object with at least one). */
bool endpoint_pod_matches(const struct endpoint_pod *p, const struct json *selector);

/* Whether the service has endpoints that follow its pods. */
bool service_selects(const struct json *service);
/* Whether slices mirror its Endpoints, made by hand. */
bool service_mirrors(const struct json *service, const struct json *endpoints);

/* The annotation that says when the newest of what was looked at changed. */
void endpoints_set_trigger_time(struct json *obj, const struct json *service,
                                struct endpoint_pod *const *pods, size_t n);
/* The Endpoints of the service with these pods, which all match; owned. */
struct json *endpoints_plan(const struct json *service, struct endpoint_pod *const *pods, size_t n);
/* 'have' with what is planned in it; NULL: it is so already.  Owned. */
struct json *endpoints_apply_plan(const struct json *have, const struct json *plan);

/* Groups of endpoints with the same ports: a list of {addressType, ports, endpoints}; owned. */
struct json *slices_plan(const struct json *service, struct endpoint_pod *const *pods, size_t n);
struct json *slices_plan_mirror(const struct json *endpoints);
/* What new slices of the service begin with, and others are to have: labels and owner; owned. */
struct json *slice_template(const struct json *service, const char *manager,
                            const struct json *owner);
/* What has to be done to come from the slices 'have' to 'groups': a list of {verb, object}, with verb POST, PUT or
 * DELETE, in the order in which it is to be done; owned, taken from what it is given by copying. */
struct json *slices_diff(const struct json *groups, const struct json *const *have, size_t n,
                         const struct json *template);
