/* SPDX-License-Identifier: Apache-2.0 */
/* What a Service may be, after ValidateService and ValidateServiceUpdate of Kubernetes. */
#include "api/kind_service.h"
#include "api/kinds.h"
#include "api/policy_fields.h"
#include "api/service_fields.h"

#include "base/mem.h"

#define KUBELET_PORT 10250
#define MAX_AFFINITY_SECONDS 86400
#define MAX_PORTS 1000
/* Each is an entry of the registry, written in one transaction with the service. */
#define MAX_NODE_PORTS 50
#define ONLY_LOAD_BALANCER "may only be used when `type` is 'LoadBalancer'"

const char *service_check_name(const char *name)
{
    size_t n = strlen(name);
    bool good = n > 0 && name[0] >= 'a' && name[0] <= 'z' && name[n - 1] != '-';
    for (size_t i = 0; i < n && good; i++) {
        good = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
               name[i] == '-';
    }
    if (n > 63) {
        return "must be no more than 63 characters";
    }
    return good ? NULL
                : "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
                  "start with an alphabetic character, and end with an alphanumeric character "
                  "(e.g. 'my-name',  or 'abc-123', regex used for validation is "
                  "'[a-z]([-a-z0-9]*[a-z0-9])?')";
}

static bool has_type(const struct json *spec, const char *type)
{
    return streq_null(json_path_string(spec, "type", NULL), type);
}

/* ---- ports ---- */

static void check_target(const char *field, const struct json *v, struct api_causes *c)
{
    int64_t number;
    if (json_is(v, JSON_STRING)) {
        policy_check_port_name(c, field, v);
    } else {
        api_field_int(c, field, v, true, 1, 65535, &number);
    }
}

static void check_node_port(const struct json *spec, const char *field, const struct json *v,
                            struct api_causes *c)
{
    int64_t number;
    if (!v || json_is(v, JSON_NULL) || json_get_int_or(v, -1) == 0) {
        return;
    }
    if (has_type(spec, "ClusterIP") || has_type(spec, "ExternalName")) {
        api_forbidden(c, field, "may not be used when `type` is '%s'",
                      json_path_string(spec, "type", NULL));
        return;
    }
    api_field_int(c, field, v, true, 1, 65535, &number);
}

static void check_port(const struct json *spec, const struct json *ports, size_t i,
                       struct api_causes *c)
{
    const struct json *p = json_at(ports, i);
    const char *at = API_FIELD("spec.ports[%zu]", i);
    int64_t number = 0;
    if (!json_is(p, JSON_OBJECT)) {
        api_invalid(c, at, p, "must be an object");
        return;
    }
    const struct json *name = json_get(p, "name");
    bool named = api_field_checked(c, API_FIELD("%s.name", at), name, json_count(ports) > 1,
                                   api_check_dns_label);
    api_field_int(c, API_FIELD("%s.port", at), json_get(p, "port"), true, 1, 65535, &number);
    service_check_protocol(c, API_FIELD("%s.protocol", at), json_get(p, "protocol"));
    check_target(API_FIELD("%s.targetPort", at), json_get(p, "targetPort"), c);
    service_check_app_protocol(c, API_FIELD("%s.appProtocol", at), json_get(p, "appProtocol"));
    check_node_port(spec, API_FIELD("%s.nodePort", at), json_get(p, "nodePort"), c);
    if (number == KUBELET_PORT && service_is_load_balancer(spec)) {
        api_invalid(c, API_FIELD("%s.port", at), json_get(p, "port"),
                    "may not expose port 10250 externally since it is used by kubelet");
    }
    bool same_name = false, same_port = false, same_node_port = false;
    for (size_t k = 0; k < i; k++) {
        const struct json *q = json_at(ports, k);
        bool protocol = service_same(p, q, "protocol");
        same_name |= named && service_same(p, q, "name");
        same_port |= protocol && service_same(p, q, "port");
        same_node_port |=
            protocol && !service_is_empty(p, "nodePort") && service_same(p, q, "nodePort");
    }
    if (same_name) {
        api_duplicate(c, API_FIELD("%s.name", at), name);
    }
    if (same_port && number) {
        api_duplicate(c, at, p);
    }
    if (same_node_port) {
        api_duplicate(c, API_FIELD("%s.nodePort", at), json_get(p, "nodePort"));
    }
}

static void check_ports(const struct json *spec, struct api_causes *c)
{
    const struct json *ports = json_get(spec, "ports");
    size_t max = service_needs_node_ports(spec) ? MAX_NODE_PORTS : MAX_PORTS;
    if (service_is_empty(spec, "ports")) {
        if (!service_is_headless(spec) && !has_type(spec, "ExternalName")) {
            api_required(c, "spec.ports", "");
        }
        return;
    }
    if (!api_field_array(c, "spec.ports", ports)) {
        return;
    }
    if (json_count(ports) > max) {
        api_too_many(c, "spec.ports", json_count(ports), max);
        return;
    }
    for (size_t i = 0; i < json_count(ports); i++) {
        check_port(spec, ports, i, c);
    }
}

/* ---- addresses ---- */

static void check_cluster_ip(const struct json *spec, struct api_causes *c)
{
    const struct json *ip = json_get(spec, "clusterIP"), *ips = json_get(spec, "clusterIPs");
    if (!service_is_empty(spec, "portalIP")) {
        api_invalid(c, "spec.portalIP", json_get(spec, "portalIP"),
                    "is the old name of clusterIP and must be the same");
    }
    if (!service_needs_cluster_ip(spec)) {
        if (!service_is_empty(spec, "clusterIP") || !service_is_empty(spec, "clusterIPs")) {
            api_forbidden(c, "spec.clusterIPs", "may not be set for ExternalName services");
        }
        return;
    }
    if (service_is_headless(spec) && !has_type(spec, "ClusterIP")) {
        const char *type = json_path_string(spec, "type", NULL);
        api_invalid(c, "spec.clusterIPs[0]", ip, "may not be set to 'None' for %s services",
                    type ? type : "such");
    } else if (!service_is_headless(spec)) {
        api_field_ip4(c, "spec.clusterIP", ip, false, NULL);
    }
    if (service_is_empty(spec, "clusterIPs") || !api_field_array(c, "spec.clusterIPs", ips)) {
        return;
    }
    if (json_count(ips) > 1) {
        api_invalid(c, "spec.clusterIPs", ips,
                    "may only hold one address: this cluster has IPv4 addresses only");
    } else if (!ip || !json_equal(json_at(ips, 0), ip)) {
        api_invalid(c, "spec.clusterIPs", ips, "first value must match `clusterIP`");
    }
}

static void check_families(const struct json *spec, struct api_causes *c)
{
    static const char *const policies[] = {"SingleStack", "PreferDualStack", "RequireDualStack",
                                           NULL};
    static const char *const families[] = {"IPv4", "IPv6", NULL};
    const struct json *list = json_get(spec, "ipFamilies"),
                      *policy = json_get(spec, "ipFamilyPolicy");
    if (!service_needs_cluster_ip(spec)) {
        if (!service_is_empty(spec, "ipFamilies")) {
            api_forbidden(c, "spec.ipFamilies", "may not be set for ExternalName services");
        }
        if (!service_is_empty(spec, "ipFamilyPolicy")) {
            api_forbidden(c, "spec.ipFamilyPolicy", "may not be set for ExternalName services");
        }
        return;
    }
    if (api_field_enum(c, "spec.ipFamilyPolicy", policy, true, policies) &&
        streq(json_get_string(policy), "RequireDualStack")) {
        api_invalid(c, "spec.ipFamilyPolicy", policy,
                    "this cluster is not configured for dual-stack services");
    }
    if (!api_field_array(c, "spec.ipFamilies", list)) {
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const char *at = API_FIELD("spec.ipFamilies[%zu]", i);
        if (!api_field_enum(c, at, json_at(list, i), true, families)) {
            return;
        }
        if (!streq(json_get_string(json_at(list, i)), "IPv4")) {
            api_invalid(c, at, json_at(list, i), "not configured on this cluster");
        } else if (i) {
            api_duplicate(c, at, json_at(list, i));
        }
    }
}

static void check_external_ips(const struct json *spec, struct api_causes *c)
{
    const struct json *list = json_get(spec, "externalIPs");
    if (!api_field_array(c, "spec.externalIPs", list)) {
        return;
    }
    if (json_count(list) > 1024) {
        api_too_many(c, "spec.externalIPs", json_count(list), 1024);
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        service_check_endpoint_ip(c, API_FIELD("spec.externalIPs[%zu]", i), json_at(list, i));
    }
}

static void check_external_name(const struct json *spec, struct api_causes *c)
{
    const struct json *v = json_get(spec, "externalName");
    if (!has_type(spec, "ExternalName") || !api_field_string(c, "spec.externalName", v, true)) {
        return;
    }
    size_t n = json_string_size(v);
    CLEANUP_FREE char *name = xstrdup(json_get_string(v));
    if (n > 1 && name[n - 1] == '.') {
        name[n - 1] = '\0';
    }
    const char *wrong = api_check_dns_subdomain(name);
    if (wrong) {
        api_invalid(c, "spec.externalName", v, "%s", wrong);
    }
}

/* ---- balancing ---- */

static void check_affinity(const struct json *spec, struct api_causes *c)
{
    static const char *const affinities[] = {"ClientIP", "None", NULL};
    const struct json *affinity = json_get(spec, "sessionAffinity");
    const struct json *config = json_get(spec, "sessionAffinityConfig");
    int64_t seconds;
    if (!api_field_enum(c, "spec.sessionAffinity", affinity, true, affinities)) {
        return;
    }
    if (streq(json_get_string(affinity), "None")) {
        if (!service_is_empty(spec, "sessionAffinityConfig")) {
            api_forbidden(c, "spec.sessionAffinityConfig",
                          "must not be set when session affinity is None");
        }
    } else if (!json_path(config, "clientIP", "timeoutSeconds", NULL)) {
        api_required(c, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", "");
    } else {
        api_field_int(c, "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                      json_path(config, "clientIP", "timeoutSeconds", NULL), true, 1,
                      MAX_AFFINITY_SECONDS, &seconds);
    }
}

static void check_policies(const struct json *spec, struct api_causes *c)
{
    static const char *const policies[] = {"Cluster", "Local", NULL};
    const struct json *external = json_get(spec, "externalTrafficPolicy");
    const struct json *health = json_get(spec, "healthCheckNodePort");
    int64_t number;
    if (!service_is_external(spec)) {
        if (!service_is_empty(spec, "externalTrafficPolicy")) {
            api_invalid(c, "spec.externalTrafficPolicy", external,
                        "may only be set for externally-accessible services");
        }
    } else {
        api_field_enum(c, "spec.externalTrafficPolicy", external, true, policies);
    }
    if (!service_is_empty(spec, "healthCheckNodePort")) {
        if (!service_needs_health_port(spec)) {
            api_invalid(c, "spec.healthCheckNodePort", health,
                        "may only be set when `type` is 'LoadBalancer' and "
                        "`externalTrafficPolicy` is 'Local'");
        } else {
            api_field_int(c, "spec.healthCheckNodePort", health, true, 1, 65535, &number);
        }
    }
    api_field_enum(c, "spec.internalTrafficPolicy", json_get(spec, "internalTrafficPolicy"),
                   service_needs_cluster_ip(spec), policies);
}

static void check_load_balancer(const struct json *spec, struct api_causes *c)
{
    bool is = service_is_load_balancer(spec);
    const struct json *ranges = json_get(spec, "loadBalancerSourceRanges");
    if (!service_is_empty(spec, "loadBalancerSourceRanges")) {
        if (!is) {
            api_forbidden(c, "spec.loadBalancerSourceRanges", ONLY_LOAD_BALANCER);
        } else if (api_field_array(c, "spec.loadBalancerSourceRanges", ranges)) {
            for (size_t i = 0; i < json_count(ranges); i++) {
                policy_check_cidr(c, API_FIELD("spec.loadBalancerSourceRanges[%zu]", i),
                                  json_at(ranges, i));
            }
        }
    }
    const struct json *allocate = json_get(spec, "allocateLoadBalancerNodePorts");
    if (allocate && !json_is(allocate, JSON_NULL)) {
        if (!is) {
            api_forbidden(c, "spec.allocateLoadBalancerNodePorts", ONLY_LOAD_BALANCER);
        }
        api_field_bool(c, "spec.allocateLoadBalancerNodePorts", allocate);
    } else if (is) {
        api_required(c, "spec.allocateLoadBalancerNodePorts", "");
    }
    if (!service_is_empty(spec, "loadBalancerClass")) {
        if (!is) {
            api_forbidden(c, "spec.loadBalancerClass", ONLY_LOAD_BALANCER);
        }
        api_field_checked(c, "spec.loadBalancerClass", json_get(spec, "loadBalancerClass"), false,
                          api_check_qualified_name);
    }
    if (!service_is_empty(spec, "loadBalancerIP")) {
        api_field_ip4(c, "spec.loadBalancerIP", json_get(spec, "loadBalancerIP"), false, NULL);
    }
}

static void check_selector(const struct json *v, struct api_causes *c)
{
    if (!api_field_object(c, "spec.selector", v)) {
        return;
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *wrong = api_check_qualified_name(json_key_at(v, i));
        CLEANUP(json_free) struct json *key = json_string(json_key_at(v, i));
        if (wrong) {
            api_invalid(c, "spec.selector", key, "%s", wrong);
        }
        const char *value = json_get_string(json_at(v, i));
        if (!value || (wrong = api_check_label_value(value))) {
            api_invalid(c, "spec.selector", json_at(v, i), "%s",
                        value ? wrong : "must be a string");
        }
    }
}

/* ---- changes ---- */

static void check_change(const struct json *spec, const struct json *old, struct api_causes *c)
{
    if (service_needs_cluster_ip(spec) && service_needs_cluster_ip(old) &&
        !service_is_empty(old, "clusterIP") && !service_same(spec, old, "clusterIP")) {
        api_invalid(c, "spec.clusterIPs[0]", json_get(spec, "clusterIPs"),
                    "may not change once set");
    }
    if (service_needs_health_port(spec) && service_needs_health_port(old) &&
        !service_is_empty(old, "healthCheckNodePort") &&
        !service_same(spec, old, "healthCheckNodePort")) {
        api_invalid(c, "spec.healthCheckNodePort", json_get(spec, "healthCheckNodePort"),
                    "field is immutable");
    }
    if (service_is_load_balancer(spec) && service_is_load_balancer(old) &&
        !service_same(spec, old, "loadBalancerClass")) {
        api_invalid(c, "spec.loadBalancerClass", json_get(spec, "loadBalancerClass"),
                    "may not change once set");
    }
}

static void check_status(const struct json *obj, struct api_causes *c)
{
    const struct json *list = json_path(obj, "status", "loadBalancer", "ingress", NULL);
    if (!list || !api_field_array(c, "status.loadBalancer.ingress", list)) {
        return;
    }
    if (json_count(list) && !service_is_load_balancer(json_get(obj, "spec"))) {
        api_forbidden(c, "status.loadBalancer.ingress",
                      "may only be used when `spec.type` is 'LoadBalancer'");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *in = json_at(list, i);
        const char *at = API_FIELD("status.loadBalancer.ingress[%zu]", i);
        api_field_ip(c, API_FIELD("%s.ip", at), json_get(in, "ip"), false);
        api_field_checked(c, API_FIELD("%s.hostname", at), json_get(in, "hostname"), false,
                          api_check_dns_subdomain);
    }
}

void kind_service_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort",
                                        NULL};
    static const char *const preferences[] = {"PreferClose", "PreferSameNode", "PreferSameZone",
                                              NULL};
    const struct json *spec = json_get(obj, "spec");
    if (!json_is(spec, JSON_OBJECT)) {
        api_required(c, "spec", "");
        return;
    }
    if (!api_field_enum(c, "spec.type", json_get(spec, "type"), true, types)) {
        return;
    }
    check_ports(spec, c);
    check_cluster_ip(spec, c);
    check_families(spec, c);
    check_external_ips(spec, c);
    check_external_name(spec, c);
    check_affinity(spec, c);
    check_policies(spec, c);
    check_load_balancer(spec, c);
    check_selector(json_get(spec, "selector"), c);
    api_field_bool(c, "spec.publishNotReadyAddresses", json_get(spec, "publishNotReadyAddresses"));
    api_field_enum(c, "spec.trafficDistribution", json_get(spec, "trafficDistribution"), false,
                   preferences);
    check_status(obj, c);
    if (json_is(json_get(old, "spec"), JSON_OBJECT)) {
        check_change(spec, json_get(old, "spec"), c);
    }
}
