/* SPDX-License-Identifier: Apache-2.0 */
/* Computes Endpoints and EndpointSlices from a service and its pods.  Pure.
 *
 * The rules are those of Kubernetes' endpoint, endpointslice and endpointslicemirroring
 * controllers.  Slices are changed as little as possible: an endpoint stays in its slice, and a new
 * endpoint goes to a slice that changes anyway, else to one with room. */
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
#define SLICE_MAX 100      /* Maximum number of endpoints in a slice. */
#define ENDPOINTS_MAX 1000 /* Maximum number of addresses in Endpoints; slices have all of them. */

/* The fields of a Pod that endpoints depend on. */
struct endpoint_pod_port {
    char *name; /* "" when it has no name. */
    char *protocol;
    uint16_t number;
};
struct endpoint_pod {
    char *namespace, *name, *uid;
    char *reported; /* IPv4 address in the Pod's status; NULL: none yet. */
    /* Equal to 'reported' if that address is accepted (endpoint_pod_settle); otherwise NULL. */
    char *ip;
    bool host_network;
    char *node; /* NULL: none. */
    char *hostname, *subdomain;
    char **labels; /* "key=value", sorted. */
    size_t n_labels;
    struct endpoint_pod_port *ports;
    size_t n_ports;
    bool ready, terminating, ended; /* 'ended': its phase is Succeeded or Failed. */
    /* The time at which it became ready, or ceased to be; 0: not known. */
    int64_t since_ms;
};
/* The caller owns the pod.  'ip' is NULL until endpoint_pod_settle. */
struct endpoint_pod *endpoint_pod_new(const struct json *pod);
/* Sets 'ip' if the reported address is accepted.  'host_subnet' is the HostSubnet
 * of the pod's node, NULL: there is none.  -EADDRNOTAVAIL says why it is refused; a
 * pod without a reported address is no error. */
int endpoint_pod_settle(struct endpoint_pod *p, const struct json *host_subnet,
                        const struct address_ranges *foreign, struct err *e);
struct endpoint_pod *endpoint_pod_free(struct endpoint_pod *p);
bool endpoint_pod_equal(const struct endpoint_pod *a, const struct endpoint_pod *b);
/* Whether the pod has all labels of the selector (an object with at least one). */
bool endpoint_pod_matches(const struct endpoint_pod *p, const struct json *selector);

/* Whether the service has a selector, so that its endpoints follow its pods. */
bool service_selects(const struct json *service);
/* Whether slices mirror the Endpoints of the service, which were made by hand. */
bool service_mirrors(const struct json *service, const struct json *endpoints);

/* Sets the annotation with the time of the newest change among the service and its pods. */
void endpoints_set_trigger_time(struct json *obj, const struct json *service,
                                struct endpoint_pod *const *pods, size_t n);
/* The Endpoints of the service with these pods, all of which match its selector; owned. */
struct json *endpoints_plan(const struct json *service, struct endpoint_pod *const *pods, size_t n);
/* 'have' updated to the plan; NULL: it is up to date.  Owned. */
struct json *endpoints_apply_plan(const struct json *have, const struct json *plan);

/* Groups of endpoints with the same ports: a list of {addressType, ports, endpoints}; owned. */
struct json *slices_plan(const struct json *service, struct endpoint_pod *const *pods, size_t n);
struct json *slices_plan_mirror(const struct json *endpoints);
/* The labels and owner that slices of the service must have; owned. */
struct json *slice_template(const struct json *service, const char *manager,
                            const struct json *owner);
/* The steps from the slices 'have' to 'groups': a list of {verb, object}, with verb POST, PUT or
 * DELETE, in the order of execution; owned, a copy of its inputs. */
struct json *slices_diff(const struct json *groups, const struct json *const *have, size_t n,
                         const struct json *template);
