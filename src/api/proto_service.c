/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers: generated.proto of k8s.io/api/core/v1 and discovery/v1.  The status of a service is the
 * server's to fill, and skipped. */
#include "api/proto_internal.h"

#include <stddef.h>

/* ---- Service ---- */

static const struct proto_field service_port_fields[] = {
    {1, "name", T_STRING},  {2, "protocol", T_STRING},
    {3, "port", T_INT},     {4, "targetPort", T_INT_OR_STRING},
    {5, "nodePort", T_INT}, {6, "appProtocol", T_STRING},
};
static const struct proto_message service_port = PROTO_MESSAGE(service_port_fields);
static const struct proto_field client_ip_fields[] = {{1, "timeoutSeconds", T_INT}};
static const struct proto_message client_ip = PROTO_MESSAGE(client_ip_fields);
static const struct proto_field affinity_fields[] = {MEMBER(1, "clientIP", client_ip)};
static const struct proto_message affinity = PROTO_MESSAGE(affinity_fields);
static const struct proto_field service_spec_fields[] = {
    MEMBERS(1, "ports", service_port),
    {2, "selector", T_MAP},
    {3, "clusterIP", T_STRING},
    {4, "type", T_STRING},
    STRINGS(5, "externalIPs"),
    {7, "sessionAffinity", T_STRING},
    {8, "loadBalancerIP", T_STRING},
    STRINGS(9, "loadBalancerSourceRanges"),
    {10, "externalName", T_STRING},
    {11, "externalTrafficPolicy", T_STRING},
    {12, "healthCheckNodePort", T_INT},
    {13, "publishNotReadyAddresses", T_BOOL},
    MEMBER(14, "sessionAffinityConfig", affinity),
    {17, "ipFamilyPolicy", T_STRING},
    STRINGS(18, "clusterIPs"),
    STRINGS(19, "ipFamilies"),
    {20, "allocateLoadBalancerNodePorts", T_BOOL},
    {21, "loadBalancerClass", T_STRING},
    {22, "internalTrafficPolicy", T_STRING},
    {23, "trafficDistribution", T_STRING},
};
static const struct proto_message service_spec = PROTO_MESSAGE(service_spec_fields);
static const struct proto_field service[] = {
    META, MEMBER(2, "spec", service_spec), {3, "status", T_IGNORED}};

/* ---- Endpoints ---- */

static const struct proto_field address_fields[] = {
    {1, "ip", T_STRING},
    MEMBER(2, "targetRef", proto_reference),
    {3, "hostname", T_STRING},
    {4, "nodeName", T_STRING},
};
static const struct proto_message address = PROTO_MESSAGE(address_fields);
static const struct proto_field endpoint_port_fields[] = {
    {1, "name", T_STRING},
    {2, "port", T_INT},
    {3, "protocol", T_STRING},
    {4, "appProtocol", T_STRING},
};
static const struct proto_message endpoint_port = PROTO_MESSAGE(endpoint_port_fields);
static const struct proto_field subset_fields[] = {
    MEMBERS(1, "addresses", address),
    MEMBERS(2, "notReadyAddresses", address),
    MEMBERS(3, "ports", endpoint_port),
};
static const struct proto_message subset = PROTO_MESSAGE(subset_fields);
static const struct proto_field endpoints[] = {META, MEMBERS(2, "subsets", subset)};

/* ---- EndpointSlice ---- */

static const struct proto_field conditions_fields[] = {
    {1, "ready", T_BOOL},
    {2, "serving", T_BOOL},
    {3, "terminating", T_BOOL},
};
static const struct proto_message conditions = PROTO_MESSAGE(conditions_fields);
static const struct proto_field for_fields[] = {{1, "name", T_STRING}};
static const struct proto_message for_name = PROTO_MESSAGE(for_fields);
static const struct proto_field hints_fields[] = {MEMBERS(1, "forZones", for_name),
                                                  MEMBERS(2, "forNodes", for_name)};
static const struct proto_message hints = PROTO_MESSAGE(hints_fields);
static const struct proto_field endpoint_fields[] = {
    STRINGS(1, "addresses"),
    MEMBER(2, "conditions", conditions),
    {3, "hostname", T_STRING},
    MEMBER(4, "targetRef", proto_reference),
    {5, "deprecatedTopology", T_MAP},
    {6, "nodeName", T_STRING},
    {7, "zone", T_STRING},
    MEMBER(8, "hints", hints),
};
static const struct proto_message endpoint = PROTO_MESSAGE(endpoint_fields);
static const struct proto_field slice_port_fields[] = {
    {1, "name", T_STRING},
    {2, "protocol", T_STRING},
    {3, "port", T_INT},
    {4, "appProtocol", T_STRING},
};
static const struct proto_message slice_port = PROTO_MESSAGE(slice_port_fields);
static const struct proto_field slice[] = {META,
                                           MEMBERS(2, "endpoints", endpoint),
                                           MEMBERS(3, "ports", slice_port),
                                           {4, "addressType", T_STRING}};

const struct proto_kind proto_service_kinds[] = {
    {"Service", PROTO_MESSAGE(service)},
    {"Endpoints", PROTO_MESSAGE(endpoints)},
    {"EndpointSlice", PROTO_MESSAGE(slice)},
    {0},
};
