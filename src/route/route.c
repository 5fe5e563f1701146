/* SPDX-License-Identifier: Apache-2.0 */
#include "route/route.h"

#include "api/kind.h"
#include "api/kinds/route_fields.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <errno.h>

/* The weight that routers give to a service without one; the API server always sets one. */
#define ABSENT_WEIGHT 1

static char *text_at(const struct json *obj, const char *key)
{
    return xstrdup(json_get_text(obj, key));
}

/* NULL when the text is absent or empty. */
static char *text_or_null(const struct json *obj, const char *key)
{
    const char *s = json_get_text(obj, key);
    return *s ? xstrdup(s) : NULL;
}

static void say_wrong(struct route *r, const char *field, const char *value, const char *rule)
{
    if (!r->wrong) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_addf(&b, "%s: Invalid value: ", field);
        json_write_string(value, strlen(value), &b);
        strbuf_addf(&b, ": %s", rule);
        r->wrong = strbuf_steal(&b);
    }
}

static void check(struct route *r, const char *field, const char *value, const char *rule)
{
    if (rule) {
        say_wrong(r, field, value, rule);
    }
}

/* ---- services ---- */

static void add_target(struct route *r, const char *field, const struct json *v)
{
    int64_t weight = json_get_int_or(json_get(v, "weight"), ABSENT_WEIGHT);
    const char *name = json_get_text(v, "name"), *kind = json_get_text(v, "kind");
    if (*kind && !streq(kind, "Service")) {
        say_wrong(r, field, kind, "must reference a Service");
    }
    check(r, field, name, api_check_dns_label(name));
    struct route_target *t = &r->targets[r->n_targets++];
    t->service = xstrdup(name);
    t->weight = (unsigned) MIN(MAX(weight, 0), ROUTE_MAX_WEIGHT);
}

static void read_targets(struct route *r, const struct json *spec)
{
    const struct json *others = json_get(spec, "alternateBackends"), *t;
    size_t n = MIN(json_count(others), (size_t) ROUTE_MAX_ALTERNATES);
    if (n < json_count(others)) {
        say_wrong(r, "spec.alternateBackends", "", "cannot specify more than 3 alternate backends");
    }
    r->targets = xcalloc(1 + n, sizeof *r->targets);
    add_target(r, "spec.to", json_get(spec, "to"));
    JSON_FOREACH (t, others) {
        if (t_i < n) {
            add_target(r, "spec.alternateBackends", t);
        }
    }
}

static void read_port(struct route *r, const struct json *spec)
{
    const struct json *v = json_path(spec, "port", "targetPort", NULL);
    const char *s = json_get_string(v);
    if (!v) {
        return;
    }
    s = s ? s : json_number_text(v);
    s = s ? s : "";
    check(r, "spec.port.targetPort", s, route_check_port(s));
    r->port = xstrdup(s);
}

/* ---- TLS ---- */

static void read_insecure(struct route *r, const char *s)
{
    r->insecure = streq(s, "Allow")      ? ROUTE_INSECURE_ALLOW
                  : streq(s, "Redirect") ? ROUTE_INSECURE_REDIRECT
                                         : ROUTE_INSECURE_NONE;
    if (*s && r->insecure == ROUTE_INSECURE_NONE && !streq(s, "None")) {
        say_wrong(r, "spec.tls.insecureEdgeTerminationPolicy", s,
                  "must be None, Allow, Redirect or empty");
    }
    if (r->insecure == ROUTE_INSECURE_ALLOW && r->termination == ROUTE_PASSTHROUGH) {
        say_wrong(r, "spec.tls.insecureEdgeTerminationPolicy", s,
                  "must be None, Redirect or empty with passthrough termination");
    }
}

static void read_tls(struct route *r, const struct json *tls)
{
    const char *end = json_get_text(tls, "termination");
    if (!json_is(tls, JSON_OBJECT)) {
        return;
    }
    r->termination = streq(end, "passthrough") ? ROUTE_PASSTHROUGH
                     : streq(end, "reencrypt") ? ROUTE_REENCRYPT
                                               : ROUTE_EDGE;
    if (r->termination == ROUTE_EDGE && *end && !streq(end, "edge")) {
        say_wrong(r, "spec.tls.termination", end, "must be edge, passthrough or reencrypt");
    }
    read_insecure(r, json_get_text(tls, "insecureEdgeTerminationPolicy"));
    if (r->termination == ROUTE_PASSTHROUGH) {
        return;
    }
    r->certificate = text_or_null(tls, "certificate");
    r->key = text_or_null(tls, "key");
    r->ca = text_or_null(tls, "caCertificate");
    r->destination_ca =
        r->termination == ROUTE_REENCRYPT ? text_or_null(tls, "destinationCACertificate") : NULL;
    r->external_certificate = text_or_null(json_get(tls, "externalCertificate"), "name");
    if (r->external_certificate) {
        check(r, "spec.tls.externalCertificate.name", r->external_certificate,
              api_check_dns_subdomain(r->external_certificate));
    }
}

/* ---- headers and annotations ---- */

static void read_headers(struct route *r, struct route_headers *ret, const struct json *list,
                         bool request)
{
    const char *field =
        request ? "spec.httpHeaders.actions.request" : "spec.httpHeaders.actions.response";
    const struct json *v;
    size_t n = MIN(json_count(list), (size_t) ROUTE_MAX_HEADERS);
    ret->list = n ? xcalloc(n, sizeof *ret->list) : NULL;
    JSON_FOREACH (v, list) {
        const char *name = json_get_text(v, "name");
        const char *type = json_path_string(v, "action", "type", NULL);
        const char *value = json_path_string(v, "action", "set", "value", NULL);
        if (ret->n == n) {
            say_wrong(r, field, name, "must have at most 20 headers");
            return;
        }
        check(r, field, name, route_check_header_name(name));
        struct route_header *h = &ret->list[ret->n++];
        h->name = xstrdup(name);
        if (type && streq(type, "Set") && value) {
            check(r, field, value, route_check_header_value(value, request));
            h->value = xstrdup(value);
        } else if (!type || !streq(type, "Delete")) {
            say_wrong(r, field, type ? type : "", "must be Delete, or Set with a value");
        }
    }
}

static bool concerns_routers(const char *name)
{
    return str_has_prefix(name, "router.openshift.io/") ||
           str_has_prefix(name, "haproxy.router.openshift.io/");
}

static void read_annotations(struct route *r, const struct json *map)
{
    const struct json *v;
    r->annotations = json_object();
    JSON_FOREACH (v, map) {
        const char *name = json_key_at(map, v_i);
        if (concerns_routers(name) && json_get_string(v)) {
            json_set_string(r->annotations, name, json_get_string(v));
        }
    }
}

/* ---- the whole ---- */

static void read_spec(struct route *r, const struct json *spec)
{
    const char *policy = json_get_text(spec, "wildcardPolicy");
    const struct json *actions = json_path(spec, "httpHeaders", "actions", NULL);
    r->host = text_at(spec, "host");
    r->subdomain = text_at(spec, "subdomain");
    r->path = text_at(spec, "path");
    r->wildcard = streq(policy, "None")        ? ROUTE_WILDCARD_NONE
                  : streq(policy, "Subdomain") ? ROUTE_WILDCARD_SUBDOMAIN
                                               : ROUTE_WILDCARD_UNKNOWN;
    read_tls(r, json_get(spec, "tls"));
    if (*r->subdomain) {
        check(r, "spec.subdomain", r->subdomain, route_check_subdomain(r->subdomain));
    }
    if (*r->path) {
        check(r, "spec.path", r->path, route_check_path(r->path));
    }
    if (*r->path && r->termination == ROUTE_PASSTHROUGH) {
        say_wrong(r, "spec.path", r->path, "passthrough termination does not support paths");
    }
    read_targets(r, spec);
    read_port(r, spec);
    read_headers(r, &r->request, json_get(actions, "request"), true);
    read_headers(r, &r->response, json_get(actions, "response"), false);
}

int route_parse(const struct json *obj, struct route **ret, struct err *e)
{
    const struct json *meta = json_get(obj, "metadata");
    const char *namespace = json_get_text(meta, "namespace"), *name = json_get_text(meta, "name");
    const char *uid = json_get_text(meta, "uid"),
               *created = json_get_text(meta, "creationTimestamp");
    int64_t created_ms;
    if (api_check_dns_label(namespace) || api_check_dns_subdomain(name) || !*uid) {
        return err_set(e, -EINVAL, "the route has no valid namespace, name or uid");
    }
    if (time_parse(created, &created_ms) < 0) {
        return err_set(e, -EINVAL, "route %s/%s: metadata.creationTimestamp is not a time",
                       namespace, name);
    }
    struct route *r = NEW(struct route);
    r->namespace = xstrdup(namespace);
    r->name = xstrdup(name);
    r->uid = xstrdup(uid);
    r->version = text_at(meta, "resourceVersion");
    r->created_s = created_ms / 1000;
    read_annotations(r, json_get(meta, "annotations"));
    read_spec(r, json_get(obj, "spec"));
    *ret = r;
    return 0;
}

static void headers_done(struct route_headers *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->list[i].name);
        free(h->list[i].value);
    }
    free(h->list);
}

struct route *route_free(struct route *r)
{
    if (!r) {
        return NULL;
    }
    for (size_t i = 0; i < r->n_targets; i++) {
        free(r->targets[i].service);
    }
    if (r->key) {
        explicit_bzero(r->key, strlen(r->key));
    }
    char *texts[] = {r->namespace,
                     r->name,
                     r->uid,
                     r->version,
                     r->host,
                     r->subdomain,
                     r->path,
                     r->port,
                     r->certificate,
                     r->key,
                     r->ca,
                     r->destination_ca,
                     r->external_certificate,
                     r->wrong};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        free(texts[i]);
    }
    headers_done(&r->request);
    headers_done(&r->response);
    json_free(r->annotations);
    free(r->targets);
    free(r);
    return NULL;
}

void route_set_host(struct route *r, const char *host)
{
    char *s = xstrdup(host);
    free(r->host);
    r->host = s;
}

const char *route_annotation(const struct route *r, const char *name)
{
    return json_get_string(json_get(r->annotations, name));
}

const char *route_domain(const struct route *r)
{
    const char *dot = strchr(r->host, '.');
    return dot ? dot + 1 : "";
}

int route_compare_age(const struct route *a, const struct route *b)
{
    if (a->created_s != b->created_s) {
        return a->created_s < b->created_s ? -1 : 1;
    }
    return strcmp(a->uid, b->uid);
}

bool route_is_same(const struct route *a, const struct route *b)
{
    return streq(a->uid, b->uid) && streq(a->version, b->version);
}
