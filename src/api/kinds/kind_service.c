/* SPDX-License-Identifier: Apache-2.0 */
/* Service (core v1): a stable name and address for changing pods.
 *
 * The API server allocates addresses and ports after the rules here. */
#include "api/kinds/kind_service.h"
#include "api/kinds.h"

#include "api/kinds/service_fields.h"
#include "base/mem.h"

#include <stdlib.h>

#define AFFINITY_SECONDS 10800

/* ---- needs of a service ---- */

static bool has_type(const struct json *spec, const char *type)
{
    const char *is = json_path_string(spec, "type", NULL);
    return streq(is && *is ? is : "ClusterIP", type);
}

bool service_needs_cluster_ip(const struct json *spec)
{
    return !has_type(spec, "ExternalName");
}

bool service_is_headless(const struct json *spec)
{
    return streq_null(json_path_string(spec, "clusterIP", NULL), "None");
}

bool service_is_load_balancer(const struct json *spec)
{
    return has_type(spec, "LoadBalancer");
}

bool service_needs_node_ports(const struct json *spec)
{
    return has_type(spec, "NodePort") ||
           (service_is_load_balancer(spec) &&
            json_get_bool(json_get(spec, "allocateLoadBalancerNodePorts"), true));
}

bool service_needs_health_port(const struct json *spec)
{
    return service_is_load_balancer(spec) &&
           streq_null(json_path_string(spec, "externalTrafficPolicy", NULL), "Local");
}

bool service_is_external(const struct json *spec)
{
    return has_type(spec, "NodePort") || service_is_load_balancer(spec) ||
           (has_type(spec, "ClusterIP") && !service_is_empty(spec, "externalIPs"));
}

/* ---- columns ---- */

static const struct json *spec_of(const struct json *obj)
{
    return json_get(obj, "spec");
}

static void add_text(struct strbuf *b, const char *s)
{
    if (s && *s) {
        strbuf_addf(b, "%s%s", b->size ? "," : "", s);
    }
}

struct json *kind_service_cell_external_ip(const struct json *obj, int64_t now_ms)
{
    const struct json *spec = spec_of(obj), *item;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (has_type(spec, "ExternalName")) {
        return api_cell_text(json_path_string(spec, "externalName", NULL), "<none>");
    }
    if (service_is_load_balancer(spec)) {
        JSON_FOREACH (item, json_path(obj, "status", "loadBalancer", "ingress", NULL)) {
            const char *ip = json_path_string(item, "ip", NULL);
            add_text(&b, ip && *ip ? ip : json_path_string(item, "hostname", NULL));
        }
    }
    JSON_FOREACH (item, json_get(spec, "externalIPs")) {
        add_text(&b, json_get_string(item));
    }
    return api_cell_text(strbuf_cstr(&b), service_is_load_balancer(spec) ? "<pending>" : "<none>");
}

static const char *protocol_of(const struct json *port)
{
    const char *s = json_path_string(port, "protocol", NULL);
    return s && *s ? s : "TCP";
}

struct json *kind_service_cell_ports(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *port;
    JSON_FOREACH (port, json_get(spec_of(obj), "ports")) {
        long long node_port = json_get_int_or(json_get(port, "nodePort"), 0);
        strbuf_addf(&b, "%s%lld", b.size ? "," : "",
                    (long long) json_get_int_or(json_get(port, "port"), 0));
        if (node_port > 0) {
            strbuf_addf(&b, ":%lld", node_port);
        }
        strbuf_addf(&b, "/%s", protocol_of(port));
    }
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

struct json *kind_service_cell_selector(const struct json *obj, int64_t now_ms)
{
    const struct json *selector = json_get(spec_of(obj), "selector");
    size_t n = json_is(selector, JSON_OBJECT) ? json_count(selector) : 0;
    if (!n) {
        return json_string("<none>");
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    char **list = xcalloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_at(selector, i));
        list[i] = xasprintf("%s=%s", json_key_at(selector, i), value ? value : "");
    }
    qsort(list, n, sizeof *list, compare_texts);
    for (size_t i = 0; i < n; i++) {
        add_text(&b, list[i]);
        free(list[i]);
    }
    free(list);
    return json_string(strbuf_cstr(&b));
}

/* ---- defaults ---- */

static void default_ports(struct json *ports)
{
    struct json *port;
    JSON_FOREACH (port, ports) {
        if (!json_is(port, JSON_OBJECT)) {
            continue;
        }
        const struct json *number = json_get(port, "port");
        if (service_is_empty(port, "targetPort") && number) {
            json_set(port, "targetPort", json_clone(number));
        }
        if (service_is_empty(port, "nodePort")) {
            json_remove(port, "nodePort");
        }
    }
}

static void default_affinity(struct json *spec)
{
    const char *affinity = json_path_string(spec, "sessionAffinity", NULL);
    if (streq_null(affinity, "None")) {
        json_remove(spec, "sessionAffinityConfig");
    } else if (streq_null(affinity, "ClientIP")) {
        struct json *config = json_get(spec, "sessionAffinityConfig");
        if (!config || json_is(config, JSON_NULL)) {
            config = json_set(spec, "sessionAffinityConfig", json_object());
        }
        struct json *client = json_get(config, "clientIP");
        if (json_is(config, JSON_OBJECT) && (!client || json_is(client, JSON_NULL))) {
            client = json_set(config, "clientIP", json_object());
        }
        if (json_is(client, JSON_OBJECT)) {
            api_default_int(client, "timeoutSeconds", AFFINITY_SECONDS);
        }
    }
}

static void default_families(struct json *spec)
{
    if (!service_needs_cluster_ip(spec)) {
        return;
    }
    api_default_string(spec, "ipFamilyPolicy", "SingleStack");
    if (service_is_empty(spec, "ipFamilies")) {
        json_append(json_set(spec, "ipFamilies", json_array()), json_string("IPv4"));
    }
    if (service_is_empty(spec, "clusterIPs") && !service_is_empty(spec, "clusterIP")) {
        json_append(json_set(spec, "clusterIPs", json_array()),
                    json_clone(json_get(spec, "clusterIP")));
    }
}

void kind_service_defaults(struct json *obj)
{
    struct json *spec = json_get(obj, "spec");
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    default_ports(json_get(spec, "ports"));
    default_affinity(spec);
    default_families(spec);
    if (service_needs_cluster_ip(spec)) {
        api_default_string(spec, "internalTrafficPolicy", "Cluster");
    }
    if (service_is_external(spec)) {
        api_default_string(spec, "externalTrafficPolicy", "Cluster");
    }
    const struct json *allocate = json_get(spec, "allocateLoadBalancerNodePorts");
    if (service_is_load_balancer(spec) && (!allocate || json_is(allocate, JSON_NULL))) {
        json_set_bool(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/* ---- allocated values ---- */

/* The older name: the same field. */
static void rename_portal_ip(struct json *spec)
{
    const struct json *portal = json_get(spec, "portalIP");
    if (service_is_empty(spec, "portalIP")) {
        json_remove(spec, "portalIP");
    } else if (service_is_empty(spec, "clusterIP")) {
        json_set(spec, "clusterIP", json_clone(portal));
        json_remove(spec, "portalIP");
    } else if (json_equal(portal, json_get(spec, "clusterIP"))) {
        json_remove(spec, "portalIP");
    }
}

static void copy_missing(struct json *to, const struct json *from, const char *key)
{
    if (service_is_empty(to, key) && !service_is_empty(from, key)) {
        json_set(to, key, json_clone(json_get(from, key)));
    }
}

static const struct json *port_like(const struct json *ports, const struct json *port)
{
    const struct json *p;
    JSON_FOREACH (p, ports) {
        if (service_same(p, port, "port") && streq(protocol_of(p), protocol_of(port))) {
            return p;
        }
    }
    return NULL;
}

static bool same_node_ports(const struct json *a, const struct json *b)
{
    const struct json *p;
    JSON_FOREACH (p, json_get(b, "ports")) {
        const struct json *was = port_like(json_get(a, "ports"), p);
        if (!service_is_empty(p, "nodePort") && (!was || !service_same(was, p, "nodePort"))) {
            return false;
        }
    }
    return true;
}

/* A writer that does not know the allocated values does not remove them. */
static void keep_allocated(struct json *spec, const struct json *old)
{
    if (service_needs_cluster_ip(spec) && service_needs_cluster_ip(old)) {
        bool cleared = service_is_empty(spec, "clusterIP");
        copy_missing(spec, old, "clusterIP");
        if (service_is_empty(spec, "clusterIPs") ||
            (!cleared && service_same(spec, old, "clusterIPs") &&
             !service_same(spec, old, "clusterIP"))) {
            json_remove(spec, "clusterIPs");
            default_families(spec);
        }
    }
    if (service_needs_node_ports(spec) && service_needs_node_ports(old)) {
        struct json *port;
        JSON_FOREACH (port, json_get(spec, "ports")) {
            const struct json *was = port_like(json_get(old, "ports"), port);
            if (was && json_is(port, JSON_OBJECT)) {
                copy_missing(port, was, "nodePort");
            }
        }
    }
    if (service_needs_health_port(spec) && service_needs_health_port(old)) {
        copy_missing(spec, old, "healthCheckNodePort");
    }
}

static void drop_same(struct json *spec, const struct json *old, const char *key)
{
    if (service_same(spec, old, key)) {
        json_remove(spec, key);
    }
}

/* Values that the former type needed and this one does not are removed, unless requested. */
static void drop_unneeded(struct json *spec, const struct json *old)
{
    static const char *const of_address[] = {"clusterIP", "clusterIPs", "ipFamilies",
                                             "ipFamilyPolicy", "internalTrafficPolicy"};
    if (!service_needs_cluster_ip(spec) && service_needs_cluster_ip(old)) {
        for (size_t i = 0; i < ARRAY_SIZE(of_address); i++) {
            drop_same(spec, old, of_address[i]);
        }
    }
    if (!service_needs_node_ports(spec) && service_needs_node_ports(old) &&
        same_node_ports(old, spec)) {
        struct json *port;
        JSON_FOREACH (port, json_get(spec, "ports")) {
            json_remove(port, "nodePort");
        }
    }
    if (!service_needs_health_port(spec) && service_needs_health_port(old)) {
        drop_same(spec, old, "healthCheckNodePort");
    }
    if (!service_is_external(spec) && service_is_external(old)) {
        drop_same(spec, old, "externalTrafficPolicy");
    }
    if (!service_is_load_balancer(spec) && service_is_load_balancer(old)) {
        drop_same(spec, old, "allocateLoadBalancerNodePorts");
        drop_same(spec, old, "loadBalancerClass");
    }
}

void kind_service_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = json_get(obj, "spec");
    const struct json *was = json_get(old, "spec");
    if (!old) {
        json_set(json_set(obj, "status", json_object()), "loadBalancer", json_object());
    }
    if (!json_is(spec, JSON_OBJECT)) {
        return;
    }
    rename_portal_ip(spec);
    default_ports(json_get(spec, "ports"));
    if (!service_is_load_balancer(spec)) {
        json_set(json_ensure_object(obj, "status"), "loadBalancer", json_object());
    }
    if (json_is(was, JSON_OBJECT)) {
        keep_allocated(spec, was);
        drop_unneeded(spec, was);
    }
}
