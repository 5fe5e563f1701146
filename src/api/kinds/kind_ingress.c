/* SPDX-License-Identifier: Apache-2.0 */
/* Ingress and IngressClass (networking.k8s.io/v1): the rules beyond their descriptions, in the words
 * of kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"

/* Host names that a cell shows; it counts the others. */
#define SHOWN_HOSTS 3

static const struct json *rules_of(const struct json *obj)
{
    return json_path(obj, "spec", "rules", NULL);
}

/* ---- cells ---- */

/* "a.example.com,b.example.com + 2 more..." */
struct json *kind_ingress_cell_hosts(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *r;
    size_t n = 0;
    JSON_FOREACH (r, rules_of(obj)) {
        const char *host = json_get_text(r, "host");
        if (*host && n++ < SHOWN_HOSTS) {
            strbuf_addf(&b, "%s%s", b.size ? "," : "", host);
        }
    }
    if (n > SHOWN_HOSTS) {
        strbuf_addf(&b, " + %zu more...", n - SHOWN_HOSTS);
    }
    return api_cell_text(strbuf_cstr(&b), "*");
}

struct json *kind_ingress_cell_address(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *a;
    JSON_FOREACH (a, json_path(obj, "status", "loadBalancer", "ingress", NULL)) {
        const char *ip = json_get_text(a, "ip");
        strbuf_addf(&b, "%s%s", b.size ? "," : "", *ip ? ip : json_get_text(a, "hostname"));
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_ingress_cell_ports(const struct json *obj, int64_t now_ms)
{
    return json_string(json_count(json_path(obj, "spec", "tls", NULL)) ? "80, 443" : "80");
}

/* "Gateway.example.com/fast" */
struct json *kind_ingress_class_cell_parameters(const struct json *obj, int64_t now_ms)
{
    const struct json *p = json_path(obj, "spec", "parameters", NULL);
    const char *group = json_get_text(p, "apiGroup"), *kind = json_get_text(p, "kind");
    if (!p) {
        return json_string("<none>");
    }
    return *group ? json_stringf("%s.%s/%s", kind, group, json_get_text(p, "name"))
                  : json_stringf("%s/%s", kind, json_get_text(p, "name"));
}

/* ---- defaults ---- */

void kind_ingress_defaults(struct json *obj)
{
    (void) json_ensure_object(json_ensure_object(obj, "status"), "loadBalancer");
}

/* ---- validation ---- */

static void check_host(struct api_causes *c, const char *field, const struct json *v)
{
    const char *s = json_get_string(v), *why;
    if (!s || !*s) {
        return;
    }
    if (!api_check_ip(s)) {
        api_invalid(c, field, v, "must be a DNS name, not an IP address");
    } else if (strchr(s, '*')) {
        if (!str_has_prefix(s, "*.") || api_check_dns_subdomain(s + 2)) {
            api_invalid(c, field, v,
                        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid "
                        "DNS subdomain, which must consist of lower case alphanumeric characters, "
                        "'-' or '.' and end with an alphanumeric character (e.g. "
                        "'*.example.com', regex used for validation is "
                        "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
                        "')");
        }
    } else if ((why = api_check_dns_subdomain(s))) {
        api_invalid(c, field, v, "%s", why);
    }
}

static void check_port(struct api_causes *c, const char *field, const struct json *port)
{
    const char *name = json_get_text(port, "name");
    int64_t number = json_get_int_or(json_get(port, "number"), 0);
    if (*name && number) {
        api_invalid(c, field, port, "cannot set both port name & port number");
    } else if (!*name && !number) {
        api_required(c, field, "port name or number is required");
    } else if (*name && api_check_port_name(name)) {
        api_invalid(c, API_FIELD("%s.name", field), json_get(port, "name"), "%s",
                    api_check_port_name(name));
    } else if (!*name && (number < 1 || number > 65535)) {
        api_invalid(c, API_FIELD("%s.number", field), json_get(port, "number"),
                    "must be between 1 and 65535, inclusive");
    }
}

static void check_backend(struct api_causes *c, const char *field, const struct json *backend)
{
    const struct json *service = json_get(backend, "service"), *name = json_get(service, "name");
    bool resource = json_get(backend, "resource") != NULL;
    const char *why;
    if (service && resource) {
        api_invalid(c, field, backend, "cannot set both resource and service backends");
    } else if (!service && !resource) {
        api_required(c, field, "resource or service backend is required");
    } else if (service) {
        if (json_string_size(name) == 0) {
            api_required(c, API_FIELD("%s.service.name", field), "");
        } else if ((why = api_check_dns_label(json_get_string(name)))) {
            api_invalid(c, API_FIELD("%s.service.name", field), name, "%s", why);
        }
        check_port(c, API_FIELD("%s.service.port", field), json_get(service, "port"));
    }
}

/* Texts that a path of Exact and Prefix cannot have. */
static const char *bad_part(const char *path)
{
    static const char *const parts[] = {"//", "/./", "/../", "%2f", "%2F"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (strstr(path, parts[i])) {
            return parts[i];
        }
    }
    return str_has_suffix(path, "/..") ? "/.." : str_has_suffix(path, "/.") ? "/." : NULL;
}

static void check_path(struct api_causes *c, const char *field, const struct json *p)
{
    static const char *const types[] = {"Exact", "ImplementationSpecific", "Prefix", NULL};
    const struct json *path = json_get(p, "path"), *type = json_get(p, "pathType");
    const char *s = json_get_text(p, "path"), *t = json_get_text(p, "pathType");
    if (!*t) {
        api_required(c, API_FIELD("%s.pathType", field), "pathType must be specified");
    } else if (!streq(t, "Exact") && !streq(t, "Prefix") && !streq(t, "ImplementationSpecific")) {
        api_unsupported(c, API_FIELD("%s.pathType", field), type, types);
    } else if (*s != '/' && (*s || !streq(t, "ImplementationSpecific"))) {
        api_invalid(c, API_FIELD("%s.path", field), path, "must be an absolute path");
    } else if (!streq(t, "ImplementationSpecific") && bad_part(s)) {
        api_invalid(c, API_FIELD("%s.path", field), path, "must not contain '%s'", bad_part(s));
    }
    check_backend(c, API_FIELD("%s.backend", field), json_get(p, "backend"));
}

static void check_rule(struct api_causes *c, const char *field, const struct json *rule)
{
    const struct json *http = json_get(rule, "http"), *p;
    check_host(c, API_FIELD("%s.host", field), json_get(rule, "host"));
    if (http && json_count(json_get(http, "paths")) == 0) {
        api_required(c, API_FIELD("%s.http.paths", field), "");
    }
    JSON_FOREACH (p, json_get(http, "paths")) {
        check_path(c, API_FIELD("%s.http.paths[%zu]", field, p_i), p);
    }
}

static void check_tls(struct api_causes *c, const char *field, const struct json *tls)
{
    const struct json *h, *secret = json_get(tls, "secretName");
    JSON_FOREACH (h, json_get(tls, "hosts")) {
        check_host(c, API_FIELD("%s.hosts[%zu]", field, h_i), h);
    }
    if (json_string_size(secret) && api_check_dns_subdomain(json_get_string(secret))) {
        api_invalid(c, API_FIELD("%s.secretName", field), secret, "%s",
                    api_check_dns_subdomain(json_get_string(secret)));
    }
}

void kind_ingress_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *dflt = json_get(spec, "defaultBackend");
    const struct json *class = json_get(spec, "ingressClassName"), *v;
    if (json_count(rules_of(obj)) == 0 && !dflt) {
        api_invalid(c, "spec", spec, "either `defaultBackend` or `rules` must be specified");
    }
    if (dflt) {
        check_backend(c, "spec.defaultBackend", dflt);
    }
    JSON_FOREACH (v, json_get(spec, "tls")) {
        check_tls(c, API_FIELD("spec.tls[%zu]", v_i), v);
    }
    JSON_FOREACH (v, rules_of(obj)) {
        check_rule(c, API_FIELD("spec.rules[%zu]", v_i), v);
    }
    if (json_get_string(class) && api_check_dns_subdomain(json_get_string(class))) {
        api_invalid(c, "spec.ingressClassName", class, "%s",
                    api_check_dns_subdomain(json_get_string(class)));
    }
}

/* A change of the status does not judge spec, which may be that of an older server. */
void kind_ingress_validate_part(const char *subresource, const struct json *obj,
                                const struct json *old, struct api_causes *c)
{
    const struct json *a;
    (void) subresource;
    (void) old;
    JSON_FOREACH (a, json_path(obj, "status", "loadBalancer", "ingress", NULL)) {
        const struct json *ip = json_get(a, "ip");
        if (json_string_size(ip) && api_check_ip(json_get_string(ip))) {
            api_invalid(c, API_FIELD("status.loadBalancer.ingress[%zu].ip", a_i), ip,
                        "must be a valid IP address");
        }
    }
}

/* ---- IngressClass ---- */

static void check_parameters(struct api_causes *c, const struct json *p)
{
    static const char *const scopes[] = {"Cluster", "Namespace", NULL};
    const char *scope = json_get_text(p, "scope"), *ns = json_get_text(p, "namespace");
    if (!p) {
        return;
    }
    if (!*json_get_text(p, "kind")) {
        api_required(c, "spec.parameters.kind", "kind is required");
    }
    if (!*json_get_text(p, "name")) {
        api_required(c, "spec.parameters.name", "name is required");
    }
    (void) api_field_enum(c, "spec.parameters.scope", json_get(p, "scope"), false, scopes);
    if (streq(scope, "Namespace") && !*ns) {
        api_required(c, "spec.parameters.namespace", "`parameters.scope` is set to 'Namespace'");
    } else if (!streq(scope, "Namespace") && *ns) {
        api_forbidden(c, "spec.parameters.namespace", "`parameters.scope` is set to 'Cluster'");
    }
}

void kind_ingress_class_validate(const struct json *obj, const struct json *old,
                                 struct api_causes *c)
{
    const struct json *v = json_path(obj, "spec", "controller", NULL);
    const char *s = json_get_string(v), *slash = s ? strchr(s, '/') : NULL;
    if (old) {
        api_field_immutable(c, "spec.controller", v, json_path(old, "spec", "controller", NULL));
    }
    if (!s || !*s) {
        api_required(c, "spec.controller", "");
    } else if (!slash || slash == s || !slash[1]) {
        api_invalid(c, "spec.controller", v,
                    "must be a domain-prefixed path (such as \"acme.io/foo\")");
    }
    check_parameters(c, json_path(obj, "spec", "parameters", NULL));
}
