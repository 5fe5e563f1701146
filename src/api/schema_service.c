/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of Service, Endpoints and EndpointSlice. */
#include "api/schema_core.h"
#include "api/service_fields.h"

#define CORE "io.k8s.api.core.v1."
#define DISCOVERY "io.k8s.api.discovery.v1."

static const struct api_schema protocol = {.type = API_STRING, .key_default = "TCP"};

/* ---- Service ---- */

static const struct api_field service_port_fields[] = {
    {"appProtocol", &api_schema_string,
     "What is spoken on the port: an IANA name, or a name with a prefix of one's own"},
    {"name", &api_schema_string,
     "Name of the port within the service, a DNS label; needed when there are several"},
    {"nodePort", &api_schema_int32,
     "Port of every node that leads to this one, for NodePort and LoadBalancer; 0: one is chosen"},
    {"port", &api_schema_int32, "Port of the service", true},
    {"protocol", &protocol, "TCP, UDP or SCTP; TCP by default"},
    {"targetPort", &api_schema_int_or_string,
     "Port of the pods, by number or by its name in the pod; by default the same as port"},
};
static const struct api_schema service_port =
    API_OBJECT_OF(service_port_fields, CORE "ServicePort", "A port that a service offers");

static const struct api_field client_ip_fields[] = {
    {"timeoutSeconds", &api_schema_int32,
     "How long a client comes back to the same pod, 1 to 86400 seconds; 10800 by default"},
};
static const struct api_schema client_ip =
    API_OBJECT_OF(client_ip_fields, CORE "ClientIPConfig", "Settings of affinity by address");
static const struct api_field affinity_fields[] = {
    {"clientIP", &client_ip, "Settings of sessionAffinity ClientIP"},
};
static const struct api_schema affinity =
    API_OBJECT_OF(affinity_fields, CORE "SessionAffinityConfig", "Settings of session affinity");

static const struct api_field service_spec_fields[] = {
    {"allocateLoadBalancerNodePorts", &api_schema_boolean,
     "Whether a LoadBalancer gets node ports; true by default"},
    {"clusterIP", &api_schema_string,
     "Address of the service in the service network, chosen by the server unless given; \"None\": "
     "a headless service, which has none. Cannot be changed."},
    {"clusterIPs", &api_schema_string_list, "The same as clusterIP, as a list of one"},
    {"externalIPs", &api_schema_string_list,
     "Addresses outside the cluster for which nodes take traffic of this service; which are "
     "allowed is the administrator's choice"},
    {"externalName", &api_schema_string, "DNS name that a service of type ExternalName stands for"},
    {"externalTrafficPolicy", &api_schema_string,
     "Traffic from outside goes to all endpoints (Cluster) or to those on the same node (Local)"},
    {"healthCheckNodePort", &api_schema_int32,
     "Port at which nodes tell whether they have endpoints, for LoadBalancer with "
     "externalTrafficPolicy Local"},
    {"internalTrafficPolicy", &api_schema_string,
     "Traffic from pods goes to all endpoints (Cluster) or to those on the same node (Local)"},
    {"ipFamilies", &api_schema_string_list, "Families of the service's addresses: IPv4"},
    {"ipFamilyPolicy", &api_schema_string, "SingleStack or PreferDualStack"},
    {"loadBalancerClass", &api_schema_string,
     "Which implementation serves a LoadBalancer; none: the cluster's own ingress addresses"},
    {"loadBalancerIP", &api_schema_string, "Ingress address that is wished for"},
    {"loadBalancerSourceRanges", &api_schema_string_list,
     "Ranges that clients of a LoadBalancer must come from"},
    {"portalIP", &api_schema_string, "The old name of clusterIP; read, and kept as clusterIP"},
    {"ports", API_MAP_LIST(&service_port, "port", "port", "protocol"),
     "Ports that the service offers"},
    {"publishNotReadyAddresses", &api_schema_boolean,
     "Pods are endpoints whether they are ready or not."},
    {"selector", &api_schema_string_map,
     "Labels of the pods behind the service; none: its Endpoints are made by hand."},
    {"sessionAffinity", &api_schema_string,
     "None, or ClientIP: a client comes back to the same pod"},
    {"sessionAffinityConfig", &affinity, "Settings of session affinity"},
    {"trafficDistribution", &api_schema_string, "Which endpoints are preferred"},
    {"type", &api_schema_string, "ClusterIP, NodePort, LoadBalancer or ExternalName"},
};
static const struct api_schema service_spec =
    API_OBJECT_OF(service_spec_fields, CORE "ServiceSpec", "What the service offers, and of whom");

static const struct api_field port_status_fields[] = {
    {"error", &api_schema_string, "What is wrong with the port"},
    {"port", &api_schema_int32, "Port of the service", true},
    {"protocol", &api_schema_string, "TCP, UDP or SCTP", true},
};
static const struct api_schema port_status =
    API_OBJECT_OF(port_status_fields, CORE "PortStatus", "State of a port at the ingress");
static const struct api_field ingress_fields[] = {
    {"hostname", &api_schema_string, "Name by which the service is reached"},
    {"ip", &api_schema_string, "Address at which the service is reached"},
    {"ipMode", &api_schema_string, "VIP or Proxy"},
    {"ports", API_LIST_OF(&port_status), "Ports at this ingress"},
};
static const struct api_schema ingress =
    API_OBJECT_OF(ingress_fields, CORE "LoadBalancerIngress", "Where a service is reached");
static const struct api_field load_balancer_fields[] = {
    {"ingress", API_LIST_OF(&ingress), "Where the service is reached from outside"},
};
static const struct api_schema load_balancer =
    API_OBJECT_OF(load_balancer_fields, CORE "LoadBalancerStatus", "State of a LoadBalancer");
static const struct api_field service_status_fields[] = {
    {"conditions", &api_schema_conditions, "Aspects of the service's state"},
    {"loadBalancer", &load_balancer, "Where a LoadBalancer is reached"},
};
static const struct api_schema service_status =
    API_OBJECT_OF(service_status_fields, CORE "ServiceStatus", "State of the service");
static const struct api_field service_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &service_spec, "What the service offers, and of whom"},
    {"status", &service_status, "State of the service"},
};
const struct api_schema service_schema = API_OBJECT_OF(
    service_fields, CORE "Service",
    "Service is a name and an address, which stay, for pods that come and go; what is sent to it "
    "reaches one of them.");

/* ---- Endpoints ---- */

static const struct api_field address_fields[] = {
    {"hostname", &api_schema_string, "Its own name below the service's"},
    {"ip", &api_schema_string, "Address of the endpoint", true},
    {"nodeName", &api_schema_string, "Node that it is on"},
    {"targetRef", &api_schema_object_reference, "The object that it is the address of"},
};
static const struct api_schema address = {
    .type = API_OBJECT,
    .definition = CORE "EndpointAddress",
    .description = "An address behind a service",
    .fields = address_fields,
    .n_fields = ARRAY_SIZE(address_fields),
    .atomic = true,
};
static const struct api_field endpoint_port_fields[] = {
    {"appProtocol", &api_schema_string, "What is spoken on the port"},
    {"name", &api_schema_string, "Name of the service's port"},
    {"port", &api_schema_int32, "Port of the endpoints", true},
    {"protocol", &api_schema_string, "TCP, UDP or SCTP; TCP by default"},
};
static const struct api_schema endpoint_port = {
    .type = API_OBJECT,
    .definition = CORE "EndpointPort",
    .description = "A port behind a service",
    .fields = endpoint_port_fields,
    .n_fields = ARRAY_SIZE(endpoint_port_fields),
    .atomic = true,
};
static const struct api_field subset_fields[] = {
    {"addresses", API_LIST_OF(&address), "Addresses that are ready"},
    {"notReadyAddresses", API_LIST_OF(&address), "Addresses that are not ready"},
    {"ports", API_LIST_OF(&endpoint_port), "Ports that each of the addresses has"},
};
static const struct api_schema subset =
    API_OBJECT_OF(subset_fields, CORE "EndpointSubset", "Addresses which all have the same ports");
static const struct api_field endpoints_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"subsets", API_LIST_OF(&subset), "Addresses and ports, grouped by ports"},
};
const struct api_schema endpoints_schema =
    API_OBJECT_OF(endpoints_fields, CORE "Endpoints",
                  "Endpoints are the addresses and ports behind the service of the same name.");

/* ---- EndpointSlice ---- */

static const struct api_field conditions_fields[] = {
    {"ready", &api_schema_boolean, "It takes new connections; absent: it does."},
    {"serving", &api_schema_boolean, "It answers, though it may be terminating."},
    {"terminating", &api_schema_boolean, "It is being ended."},
};
static const struct api_schema conditions =
    API_OBJECT_OF(conditions_fields, DISCOVERY "EndpointConditions", "State of an endpoint");
static const struct api_field for_fields[] = {
    {"name", &api_schema_string, "Name of the zone or node", true},
};
static const struct api_schema for_zone =
    API_OBJECT_OF(for_fields, DISCOVERY "ForZone", "A zone that should use the endpoint");
static const struct api_schema for_node =
    API_OBJECT_OF(for_fields, DISCOVERY "ForNode", "A node that should use the endpoint");
static const struct api_field hints_fields[] = {
    {"forNodes", API_LIST_OF(&for_node), "Nodes that should use the endpoint"},
    {"forZones", API_LIST_OF(&for_zone), "Zones that should use the endpoint"},
};
static const struct api_schema hints =
    API_OBJECT_OF(hints_fields, DISCOVERY "EndpointHints", "Who should use the endpoint");
static const struct api_field endpoint_fields[] = {
    {"addresses", &api_schema_string_set, "Addresses of the endpoint, of the slice's type", true},
    {"conditions", &conditions, "State of the endpoint"},
    {"deprecatedTopology", &api_schema_string_map, "Where it is, as of an older version"},
    {"hints", &hints, "Who should use the endpoint"},
    {"hostname", &api_schema_string, "Its own name below the service's"},
    {"nodeName", &api_schema_string, "Node that it is on"},
    {"targetRef", &api_schema_object_reference, "The object that it is the address of"},
    {"zone", &api_schema_string, "Zone that it is in"},
};
static const struct api_schema endpoint =
    API_OBJECT_OF(endpoint_fields, DISCOVERY "Endpoint", "One of those behind a service");
static const struct api_field slice_port_fields[] = {
    {"appProtocol", &api_schema_string, "What is spoken on the port"},
    {"name", &api_schema_string, "Name of the service's port"},
    {"port", &api_schema_int32, "Port of the endpoints; absent: all of them"},
    {"protocol", &api_schema_string, "TCP, UDP or SCTP; TCP by default"},
};
static const struct api_schema slice_port = {
    .type = API_OBJECT,
    .definition = DISCOVERY "EndpointPort",
    .description = "A port behind a service",
    .fields = slice_port_fields,
    .n_fields = ARRAY_SIZE(slice_port_fields),
    .atomic = true,
};
static const struct api_field slice_fields[] = {
    {"addressType", &api_schema_string, "IPv4, IPv6 or FQDN. Cannot be changed.", true},
    API_ROOT_API_VERSION,
    {"endpoints", API_LIST_OF(&endpoint), "Endpoints, at most 1000", true},
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"ports", API_LIST_OF(&slice_port), "Ports that each of the endpoints has"},
};
const struct api_schema endpoint_slice_schema =
    API_OBJECT_OF(slice_fields, DISCOVERY "EndpointSlice",
                  "EndpointSlice has some of the endpoints behind a service, which its label "
                  "kubernetes.io/service-name names.");
