/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of a Service, after ValidateService and ValidateServiceUpdate of Kubernetes. */
#include "api/kinds.h"
#include "api/kinds/kind_service.h"
#include "api/kinds/service_fields.h"

#include "base/mem.h"

#define KUBELET_PORT 10250
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

static void check_node_port(const struct json *spec, const char *field, const struct json *v,
                            struct api_causes *c)
{
    int64_t number;
    if (json_get_int_or(v, 0) == 0) {
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
    const struct json *p = json_at(ports, i), *name = json_get(p, "name");
    const char *at = API_FIELD("spec.ports[%zu]", i);
    bool named = json_string_size(name) > 0;
    if (!named && json_count(ports) > 1) {
        api_required(c, API_FIELD("%s.name", at), "");
    }
    api_validate_port(c, API_FIELD("%s.targetPort", at), json_get(p, "targetPort"));
    check_node_port(spec, API_FIELD("%s.nodePort", at), json_get(p, "nodePort"), c);
    if (json_get_int_or(json_get(p, "port"), 0) == KUBELET_PORT && service_is_load_balancer(spec)) {
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
    if (same_port) {
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
        const char *wrong = json_string_size(ip) ? api_check_ip4(json_get_string(ip)) : NULL;
        if (wrong) {
            api_invalid(c, "spec.clusterIP", ip, "%s", wrong);
        }
    }
    if (service_is_empty(spec, "clusterIPs")) {
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
    if (json_string_size(policy) == 0) {
        api_required(c, "spec.ipFamilyPolicy", "");
    } else if (streq(json_get_string(policy), "RequireDualStack")) {
        api_invalid(c, "spec.ipFamilyPolicy", policy,
                    "this cluster is not configured for dual-stack services");
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const char *at = API_FIELD("spec.ipFamilies[%zu]", i);
        if (!streq(json_get_string(json_at(list, i)), "IPv4")) {
            api_invalid(c, at, json_at(list, i), "not configured on this cluster");
        } else if (i) {
            api_duplicate(c, at, json_at(list, i));
        }
    }
}

static void check_external_name(const struct json *spec, struct api_causes *c)
{
    const struct json *v = json_get(spec, "externalName");
    size_t n = json_string_size(v);
    if (!has_type(spec, "ExternalName")) {
        return;
    }
    if (n == 0) {
        api_required(c, "spec.externalName", "");
        return;
    }
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
    const struct json *config = json_get(spec, "sessionAffinityConfig");
    if (streq_null(json_path_string(spec, "sessionAffinity", NULL), "None")) {
        if (!service_is_empty(spec, "sessionAffinityConfig")) {
            api_forbidden(c, "spec.sessionAffinityConfig",
                          "must not be set when session affinity is None");
        }
    } else if (!json_path(config, "clientIP", "timeoutSeconds", NULL)) {
        api_required(c, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", "");
    }
}

static void check_policies(const struct json *spec, struct api_causes *c)
{
    const struct json *external = json_get(spec, "externalTrafficPolicy");
    const struct json *health = json_get(spec, "healthCheckNodePort");
    int64_t number;
    if (!service_is_external(spec)) {
        if (!service_is_empty(spec, "externalTrafficPolicy")) {
            api_invalid(c, "spec.externalTrafficPolicy", external,
                        "may only be set for externally-accessible services");
        }
    } else if (json_string_size(external) == 0) {
        api_required(c, "spec.externalTrafficPolicy", "");
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
    if (service_needs_cluster_ip(spec) && service_is_empty(spec, "internalTrafficPolicy")) {
        api_required(c, "spec.internalTrafficPolicy", "");
    }
}

static void check_load_balancer(const struct json *spec, struct api_causes *c)
{
    static const char *const fields[] = {"loadBalancerSourceRanges", "loadBalancerClass"};
    const struct json *allocate = json_get(spec, "allocateLoadBalancerNodePorts");
    bool is = service_is_load_balancer(spec);
    for (size_t i = 0; !is && i < ARRAY_SIZE(fields); i++) {
        if (!service_is_empty(spec, fields[i])) {
            api_forbidden(c, API_FIELD("spec.%s", fields[i]), ONLY_LOAD_BALANCER);
        }
    }
    if (allocate && !is) {
        api_forbidden(c, "spec.allocateLoadBalancerNodePorts", ONLY_LOAD_BALANCER);
    } else if (!allocate && is) {
        api_required(c, "spec.allocateLoadBalancerNodePorts", "");
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
    if (json_count(list) && !service_is_load_balancer(json_get(obj, "spec"))) {
        api_forbidden(c, "status.loadBalancer.ingress",
                      "may only be used when `spec.type` is 'LoadBalancer'");
    }
}

void kind_service_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *before = json_get(old, "spec");
    check_ports(spec, c);
    check_cluster_ip(spec, c);
    check_families(spec, c);
    check_external_name(spec, c);
    check_affinity(spec, c);
    check_policies(spec, c);
    check_load_balancer(spec, c);
    api_validate_labels(c, "spec.selector", json_get(spec, "selector"));
    check_status(obj, c);
    if (before) {
        check_change(spec, before, c);
    }
}
