/* SPDX-License-Identifier: Apache-2.0 */
#include "route/ingress.h"

#include "api/kinds/route_fields.h"
#include "api/obj.h"
#include "base/base64.h"
#include "base/mem.h"

#define CLASS_ANNOTATION "kubernetes.io/ingress.class"
#define TERMINATION "route.openshift.io/termination"
#define DESTINATION_CA "route.openshift.io/destination-ca-certificate-secret"
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#define MAX_NAME 63
/* "-" and 8 hexadecimal digits. */
#define SUFFIX 9

bool route_ingress_is_ours(const struct json *ingress, const struct json *class)
{
    const char *name = json_path_string(ingress, "spec", "ingressClassName", NULL);
    const char *old = obj_annotation(ingress, CLASS_ANNOTATION);
    if (name && *name) {
        return streq_null(json_path_string(class, "spec", "controller", NULL),
                          ROUTE_INGRESS_CONTROLLER);
    }
    return !old || !*old || streq(old, "openshift-default");
}

/* ---- services and secrets ---- */

static bool is_port(const struct json *service_port, const struct json *want)
{
    const char *name = json_get_text(want, "name");
    return *name ? streq(json_get_text(service_port, "name"), name)
                 : json_get_int_or(json_get(service_port, "port"), 0) ==
                       json_get_int_or(json_get(want, "number"), -1);
}

/* The route's port for the backend's; NULL: the service or the port does not exist. */
static struct json *target_port(const struct route_ingress_sources *s, const struct json *service)
{
    const struct json *have = s->service(s->ctx, json_get_text(service, "name")), *p;
    JSON_FOREACH (p, json_path(have, "spec", "ports", NULL)) {
        if (is_port(p, json_get(service, "port"))) {
            const struct json *target = json_get(p, "targetPort");
            return *json_get_text(p, "name") ? json_clone(json_get(p, "name"))
                   : target                  ? json_clone(target)
                                             : json_clone(json_get(p, "port"));
        }
    }
    return NULL;
}

/* A text of a secret's data; owned.  NULL: it is not there, or it is not base64 of a text. */
static char *secret_text(const struct json *secret, const char *key)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const char *s = json_path_string(secret, "data", key, NULL);
    if (!s || base64_decode(s, strlen(s), &b) < 0 || b.size == 0 ||
        strlen(strbuf_cstr(&b)) != b.size) {
        return NULL;
    }
    return strbuf_steal(&b);
}

static bool set_from_secret(struct json *tls, const char *field, const struct json *secret,
                            const char *key)
{
    CLEANUP_FREE char *text = secret_text(secret, key);
    if (text) {
        json_set_string(tls, field, text);
        explicit_bzero(text, strlen(text));
    }
    return text != NULL;
}

/* ---- TLS ---- */

/* The entry of spec.tls that names the host; NULL: none does. */
static const struct json *tls_entry(const struct json *ingress, const char *host)
{
    const struct json *entry, *h;
    JSON_FOREACH (entry, json_path(ingress, "spec", "tls", NULL)) {
        JSON_FOREACH (h, json_get(entry, "hosts")) {
            if (streq_null(json_get_string(h), host)) {
                return entry;
            }
        }
    }
    return NULL;
}

/* Sets spec.tls.  False: a certificate is named and cannot be had, so that no route is made. */
static bool set_tls(struct json *spec, const struct json *ingress, const char *host,
                    const struct route_ingress_sources *s)
{
    const struct json *entry = tls_entry(ingress, host);
    const char *want = obj_annotation(ingress, TERMINATION), *secret;
    const char *authority = obj_annotation(ingress, DESTINATION_CA);
    if (!entry && !want) {
        return true;
    }
    const char *end = want && strcasecmp(want, "passthrough") == 0 ? "passthrough"
                      : want && strcasecmp(want, "reencrypt") == 0 ? "reencrypt"
                                                                   : "edge";
    struct json *tls = json_ensure_object(spec, "tls");
    json_set_string(tls, "termination", end);
    json_set_string(tls, "insecureEdgeTerminationPolicy", "Redirect");
    if (streq(end, "passthrough")) {
        return true;
    }
    if (streq(end, "reencrypt") && authority &&
        !set_from_secret(tls, "destinationCACertificate", s->secret(s->ctx, authority),
                         "tls.crt")) {
        return false;
    }
    secret = json_get_text(entry, "secretName");
    if (!*secret) {
        return true;
    }
    const struct json *pair = s->secret(s->ctx, secret);
    return streq(json_get_text(pair, "type"), "kubernetes.io/tls") &&
           set_from_secret(tls, "certificate", pair, "tls.crt") &&
           set_from_secret(tls, "key", pair, "tls.key");
}

/* ---- one route ---- */

static void set_metadata(struct json *route, const struct json *ingress)
{
    struct json *meta = json_get(route, "metadata");
    const struct json *labels = json_path(ingress, "metadata", "labels", NULL);
    const struct json *notes = json_path(ingress, "metadata", "annotations", NULL), *v;
    if (json_count(labels)) {
        json_set(meta, "labels", json_clone(labels));
    }
    JSON_FOREACH (v, notes) {
        const char *key = json_key_at(notes, v_i);
        if (json_get_string(v) && !streq(key, LAST_APPLIED) && !streq(key, CLASS_ANNOTATION)) {
            obj_set_annotation(route, key, json_get_string(v));
        }
    }
    struct json *ref = json_append(json_ensure_array(meta, "ownerReferences"), json_object());
    json_set_string(ref, "apiVersion", "networking.k8s.io/v1");
    json_set_string(ref, "kind", "Ingress");
    json_set_string(ref, "name", obj_name(ingress));
    json_set_string(ref, "uid", obj_uid(ingress));
    json_set_bool(ref, "controller", true);
}

static char *route_name(const struct json *ingress, const char *host, const char *path,
                        const char *service)
{
    CLEANUP_FREE char *text = xasprintf("%s\n%s\n%s", host, path, service);
    CLEANUP_FREE char *name = xstrndup(obj_name(ingress), MAX_NAME - SUFFIX);
    /* A name that is cut does not end with "." or "-". */
    for (size_t n = strlen(name); n > 0 && strchr(".-", name[n - 1]); n--) {
        name[n - 1] = '\0';
    }
    return xasprintf("%s-%08x", name, hash_string(text));
}

/* The path of the route; NULL: no route can serve it.  A prefix "/a/" is "/a". */
static char *route_path(const char *path, const char *type, bool passthrough)
{
    size_t n = strlen(path);
    if (streq(type, "Exact")) {
        return NULL;
    }
    if (passthrough) {
        return n == 0 || streq(path, "/") ? xstrdup("") : NULL;
    }
    while (n > 1 && path[n - 1] == '/' && streq(type, "Prefix")) {
        n--;
    }
    char *out = xstrndup(path, n);
    if (*out && route_check_path(out)) {
        free(out);
        return NULL;
    }
    return out;
}

static void add_route(struct json *list, const struct json *ingress, const char *host,
                      const char *ingress_path, const char *type, const struct json *backend,
                      const struct route_ingress_sources *s)
{
    const struct json *service = json_get(backend, "service");
    const char *name = json_get_text(service, "name"), *end = obj_annotation(ingress, TERMINATION);
    bool wild = str_has_prefix(host, "*.");
    CLEANUP_FREE char *path =
        route_path(ingress_path, type, end && strcasecmp(end, "passthrough") == 0);
    CLEANUP_FREE char *own = wild ? xasprintf("wildcard%s", host + 1) : xstrdup(host);
    struct json *port = path && service && !route_check_host(own) ? target_port(s, service) : NULL;
    if (!port) {
        return;
    }
    CLEANUP_FREE char *route = route_name(ingress, host, ingress_path, name);
    CLEANUP(json_free)
    struct json *r = obj_new("route.openshift.io/v1", "Route", obj_namespace(ingress), route);
    struct json *spec = json_ensure_object(r, "spec"), *to;
    set_metadata(r, ingress);
    json_set_string(spec, "host", own);
    if (*path) {
        json_set_string(spec, "path", path);
    }
    to = json_ensure_object(spec, "to");
    json_set_string(to, "kind", "Service");
    json_set_string(to, "name", name);
    json_set_int(to, "weight", ROUTE_DEFAULT_WEIGHT);
    json_set(json_ensure_object(spec, "port"), "targetPort", port);
    json_set_string(spec, "wildcardPolicy", wild ? "Subdomain" : "None");
    if (set_tls(spec, ingress, host, s)) {
        json_append(list, TAKE(r));
    }
}

struct json *route_ingress_plan(const struct json *ingress,
                                const struct route_ingress_sources *sources)
{
    const struct json *dflt = json_path(ingress, "spec", "defaultBackend", NULL), *rule, *p;
    struct json *list = json_array();
    JSON_FOREACH (rule, json_path(ingress, "spec", "rules", NULL)) {
        const char *host = json_get_text(rule, "host");
        const struct json *http = json_get(rule, "http");
        if (!*host) {
            continue; /* A route always has a host. */
        }
        if (!http && dflt) {
            add_route(list, ingress, host, "", "ImplementationSpecific", dflt, sources);
        }
        JSON_FOREACH (p, json_get(http, "paths")) {
            add_route(list, ingress, host, json_get_text(p, "path"), json_get_text(p, "pathType"),
                      json_get(p, "backend"), sources);
        }
    }
    return list;
}

/* ---- routes that exist ---- */

struct json *route_ingress_update(const struct json *have, const struct json *want)
{
    static const char *const fields[] = {"host", "path", "to", "port", "tls", "wildcardPolicy"};
    CLEANUP(json_free) struct json *out = json_clone(have);
    struct json *spec = json_ensure_object(out, "spec");
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        const struct json *v = json_path(want, "spec", fields[i], NULL);
        if (v) {
            json_set(spec, fields[i], json_clone(v));
        } else {
            (void) json_remove(spec, fields[i]);
        }
    }
    return json_equal(out, have) ? NULL : TAKE(out);
}

static void add_name(struct json *list, const char *hostname)
{
    const struct json *v;
    JSON_FOREACH (v, list) {
        if (streq(json_get_text(v, "hostname"), hostname)) {
            return;
        }
    }
    json_set_string(json_append(list, json_object()), "hostname", hostname);
}

static bool is_admitted(const struct json *entry)
{
    const struct json *c;
    JSON_FOREACH (c, json_get(entry, "conditions")) {
        if (streq(json_get_text(c, "type"), "Admitted")) {
            return streq(json_get_text(c, "status"), "True");
        }
    }
    return false;
}

struct json *route_ingress_status(const struct json *routes)
{
    struct json *out = json_object();
    CLEANUP(json_free) struct json *list = json_array();
    const struct json *r, *entry;
    JSON_FOREACH (r, routes) {
        JSON_FOREACH (entry, json_path(r, "status", "ingress", NULL)) {
            const char *name = json_get_text(entry, "routerCanonicalHostname");
            if (*name && is_admitted(entry)) {
                add_name(list, name);
            }
        }
    }
    if (json_count(list)) {
        json_set(out, "ingress", TAKE(list));
    }
    return out;
}
