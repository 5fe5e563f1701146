/* SPDX-License-Identifier: Apache-2.0 */
/* Route (route.openshift.io/v1): the rules beyond its description, in the words of
 * openshift-apiserver.  Host generation, rights to hosts and certificates are admission
 * (apiserver/admission/admit_route.c). */
#include "api/condition.h"
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/route_fields.h"

#include "base/mem.h"

/* ---- cells ---- */

static const char *spec_text(const struct json *obj, const char *key)
{
    return json_get_text(json_get(obj, "spec"), key);
}

/* The condition Admitted of one router. */
static const struct json *admission_of(const struct json *ingress)
{
    const struct json *c;
    JSON_FOREACH (c, json_get(ingress, "conditions")) {
        if (streq(json_get_text(c, "type"), "Admitted")) {
            return c;
        }
    }
    return NULL;
}

/* "web.example.com ... 1 rejected", as oc prints it. */
struct json *kind_route_cell_host(const struct json *obj, int64_t now_ms)
{
    const struct json *list = json_path(obj, "status", "ingress", NULL), *in;
    const char *own = spec_text(obj, "host"), *host = own, *reason = "";
    size_t admitted = 0, refused = 0;
    bool matched = false;
    JSON_FOREACH (in, list) {
        const struct json *c = admission_of(in);
        const char *status = json_get_text(c, "status");
        if (streq(status, "True")) {
            admitted++;
            if (!matched) {
                host = json_get_text(in, "host");
                matched = streq(host, own);
            }
        } else if (streq(status, "False")) {
            refused++;
            reason = json_get_text(c, "reason");
        }
    }
    if (json_count(list) == 0) {
        return json_string(own);
    }
    if (admitted == 0) {
        return json_string(refused ? reason : "Pending");
    }
    return refused        ? json_stringf("%s ... %zu rejected", host, refused)
           : admitted > 1 ? json_stringf("%s ... %zu more", host, admitted - 1)
                          : json_string(host);
}

static int64_t weight_of(const struct json *target)
{
    return json_get_int_or(json_get(target, "weight"), -1);
}

static void add_service(struct strbuf *b, const struct json *target, bool alone, int64_t total)
{
    int64_t weight = weight_of(target);
    const char *comma = b->size ? "," : "", *name = json_get_text(target, "name");
    if (weight < 0 || (alone && total > 0)) {
        strbuf_addf(b, "%s%s", comma, name);
    } else {
        strbuf_addf(b, "%s%s(%lld%%)", comma, name,
                    total > 0 ? (long long) (weight * 100 / total) : 0LL);
    }
}

/* "blue(75%),green(25%)" */
struct json *kind_route_cell_services(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *to = json_path(obj, "spec", "to", NULL), *t;
    const struct json *others = json_path(obj, "spec", "alternateBackends", NULL);
    bool alone = json_count(others) == 0;
    int64_t total = MAX(weight_of(to), 0);
    JSON_FOREACH (t, others) {
        total += MAX(weight_of(t), 0);
    }
    add_service(&b, to, alone, total);
    JSON_FOREACH (t, others) {
        add_service(&b, t, alone, total);
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_route_cell_port(const struct json *obj, int64_t now_ms)
{
    const struct json *port = json_path(obj, "spec", "port", "targetPort", NULL);
    const char *s = json_get_string(port), *number = json_number_text(port);
    return json_string(s ? s : number ? number : "<all>");
}

/* "edge/Redirect" */
struct json *kind_route_cell_termination(const struct json *obj, int64_t now_ms)
{
    const struct json *tls = json_path(obj, "spec", "tls", NULL);
    const char *end = json_get_text(tls, "termination");
    const char *insecure = json_get_text(tls, "insecureEdgeTerminationPolicy");
    if (!*insecure) {
        return json_string(end);
    }
    return json_stringf("%s/%s", *end ? end : "default", insecure);
}

struct json *kind_route_cell_wildcard(const struct json *obj, int64_t now_ms)
{
    return json_string(spec_text(obj, "wildcardPolicy"));
}

/* ---- what the server decides ---- */

void kind_route_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = json_get(obj, "spec");
    const char *host = spec_text(old, "host");
    if (!old) {
        json_remove(obj, "status"); /* A copy of a route says nothing about the new one. */
    }
    /* A manifest without a host, which was generated, can be applied again. */
    if (json_is(spec, JSON_OBJECT) && *host && !*json_get_text(spec, "host")) {
        json_set_string(spec, "host", host);
    }
}

void kind_route_defaults(struct json *obj)
{
    static const char *const terminations[][2] = {
        {"Edge", "edge"}, {"Reencrypt", "reencrypt"}, {"Passthrough", "passthrough"}};
    struct json *tls = json_path(obj, "spec", "tls", NULL);
    const char *end = json_get_text(tls, "termination");
    if (!json_is(tls, JSON_OBJECT)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(terminations); i++) {
        if (streq(end, terminations[i][0])) {
            json_set_string(tls, "termination", terminations[i][1]);
        }
    }
    if (json_string_size(json_get(tls, "destinationCACertificate")) == 0) {
        api_default_string(tls, "termination", "edge");
    }
}

/* ---- validation ---- */

static void check_target(struct api_causes *c, const char *field, const struct json *target)
{
    const struct json *weight = json_get(target, "weight");
    int64_t w = json_get_int_or(weight, 0);
    if (!*json_get_text(target, "name")) {
        api_required(c, API_FIELD("%s.name", field), "");
    } else if (api_check_dns_label(json_get_text(target, "name"))) {
        api_invalid(c, API_FIELD("%s.name", field), json_get(target, "name"), "%s",
                    api_check_dns_label(json_get_text(target, "name")));
    }
    if (!streq(json_get_text(target, "kind"), "Service")) {
        api_invalid(c, API_FIELD("%s.kind", field), json_get(target, "kind"),
                    "must reference a Service");
    }
    if (w < 0 || w > ROUTE_MAX_WEIGHT) {
        api_invalid(c, API_FIELD("%s.weight", field), weight,
                    "weight must be an integer between 0 and 256");
    }
}

static void check_services(struct api_causes *c, const struct json *spec)
{
    const struct json *others = json_get(spec, "alternateBackends"), *t;
    check_target(c, "spec.to", json_get(spec, "to"));
    if (json_count(others) > ROUTE_MAX_ALTERNATES) {
        api_required(c, "spec.alternateBackends", "cannot specify more than 3 alternate backends");
        return;
    }
    JSON_FOREACH (t, others) {
        check_target(c, API_FIELD("spec.alternateBackends[%zu]", t_i), t);
    }
}

static void check_port(struct api_causes *c, const struct json *spec)
{
    static const char field[] = "spec.port.targetPort";
    const struct json *port = json_path(spec, "port", "targetPort", NULL);
    const char *s = json_get_string(port);
    int64_t n = json_get_int_or(port, 0);
    if (!json_get(spec, "port")) {
        return;
    }
    if (s ? !*s : n == 0) {
        api_required(c, field, "");
    } else if (route_check_port(s ? s : json_number_text(port))) {
        api_invalid(c, field, port, "%s", route_check_port(s ? s : json_number_text(port)));
    }
}

/* The value of a certificate or key is not shown. */
static void refuse_pem(struct api_causes *c, const struct json *tls, const char *key,
                       const char *what, const char *why)
{
    if (json_string_size(json_get(tls, key))) {
        CLEANUP(json_free) struct json *redacted = json_stringf("redacted %s data", what);
        api_invalid(c, API_FIELD("spec.tls.%s", key), redacted, "%s", why);
    }
}

static void check_insecure(struct api_causes *c, const struct json *tls, bool passthrough)
{
    const struct json *v = json_get(tls, "insecureEdgeTerminationPolicy");
    const char *s = json_get_text(tls, "insecureEdgeTerminationPolicy");
    if (!*s || streq(s, "None") || streq(s, "Redirect") || (!passthrough && streq(s, "Allow"))) {
        return;
    }
    api_invalid(c, "spec.tls.insecureEdgeTerminationPolicy", v,
                "invalid value for InsecureEdgeTerminationPolicy option, acceptable values are %s, "
                "or empty",
                passthrough ? "None, Redirect" : "None, Allow, Redirect");
}

static void check_external(struct api_causes *c, const struct json *tls, bool passthrough)
{
    static const char field[] = "spec.tls.externalCertificate";
    const struct json *name = json_path(tls, "externalCertificate", "name", NULL);
    const char *s = json_get_string(name);
    if (!s || !*s) {
        return;
    }
    if (passthrough) {
        api_invalid(c, field, name, "passthrough termination does not support certificates");
    } else if (*json_get_text(tls, "certificate") || *json_get_text(tls, "key")) {
        api_invalid(c, field, name,
                    "cannot specify both tls.certificate and tls.externalCertificate");
    } else if (api_check_dns_subdomain(s)) {
        api_invalid(c, API_FIELD("%s.name", field), name, "%s", api_check_dns_subdomain(s));
    }
}

static void check_tls(struct api_causes *c, const struct json *tls)
{
    static const char *const values[] = {"edge", "passthrough", "reencrypt", NULL};
    static const char no_pem[] = "passthrough termination does not support certificates";
    const char *end = json_get_text(tls, "termination");
    bool passthrough = streq(end, "passthrough");
    if (!json_is(tls, JSON_OBJECT)) {
        return;
    }
    if (!passthrough && !streq(end, "edge") && !streq(end, "reencrypt")) {
        CLEANUP(json_free) struct json *v = json_string(end);
        api_unsupported(c, "spec.tls.termination", v, values);
        return;
    }
    if (passthrough) {
        refuse_pem(c, tls, "certificate", "certificate", no_pem);
        refuse_pem(c, tls, "key", "key", no_pem);
        refuse_pem(c, tls, "caCertificate", "ca certificate", no_pem);
        refuse_pem(c, tls, "destinationCACertificate", "destination ca certificate", no_pem);
    } else if (streq(end, "edge")) {
        refuse_pem(c, tls, "destinationCACertificate", "destination ca certificate",
                   "edge termination does not support destination certificates");
    }
    check_external(c, tls, passthrough);
    check_insecure(c, tls, passthrough);
}

static void check_action(struct api_causes *c, const char *field, const struct json *action,
                         bool request)
{
    const char *type = json_get_text(action, "type");
    const struct json *set = json_get(action, "set"), *value = json_get(set, "value");
    const char *wrong;
    if (!streq(type, "Set") && !streq(type, "Delete")) {
        CLEANUP(json_free) struct json *v = json_string(type);
        api_invalid(c, API_FIELD("%s.type", field), v, "type must be \"Set\" or \"Delete\"");
    }
    if (streq(type, "Set") != !!set) {
        api_required(c, API_FIELD("%s.set", field),
                     "set is required when type is Set, and forbidden otherwise");
    }
    if (set && json_string_size(value) == 0) {
        api_required(c, API_FIELD("%s.set.value", field), "");
    } else if (set && (wrong = route_check_header_value(json_get_string(value), request))) {
        api_invalid(c, API_FIELD("%s.set.value", field), value, "%s", wrong);
    }
}

static void check_headers(struct api_causes *c, const struct json *actions, const char *direction)
{
    const struct json *list = json_get(actions, direction), *h;
    if (json_count(list) > ROUTE_MAX_HEADERS) {
        api_too_many(c, API_FIELD("spec.httpHeaders.actions.%s", direction), json_count(list),
                     ROUTE_MAX_HEADERS);
        return;
    }
    JSON_FOREACH (h, list) {
        const char *field = API_FIELD("spec.httpHeaders.actions.%s[%zu]", direction, h_i);
        const struct json *name = json_get(h, "name");
        const char *s = json_get_text(h, "name"), *wrong = route_check_header_name(s);
        for (size_t i = 0; i < h_i; i++) {
            if (strcasecmp(json_get_text(json_at(list, i), "name"), s) == 0) {
                api_duplicate(c, API_FIELD("%s.name", field), name);
                break;
            }
        }
        if (!*s) {
            api_required(c, API_FIELD("%s.name", field), "");
        } else if (wrong) {
            api_invalid(c, API_FIELD("%s.name", field), name, "%s", wrong);
        }
        check_action(c, API_FIELD("%s.action", field), json_get(h, "action"),
                     streq(direction, "request"));
    }
}

static void check_wildcard(struct api_causes *c, const struct json *spec, const struct json *old)
{
    static const char *const values[] = {"None", "Subdomain", NULL};
    const struct json *policy = json_get(spec, "wildcardPolicy");
    const char *s = json_get_text(spec, "wildcardPolicy");
    if (old && !streq(s, spec_text(old, "wildcardPolicy"))) {
        api_invalid(c, "spec.wildcardPolicy", policy, "field is immutable");
    }
    if (!api_field_enum(c, "spec.wildcardPolicy", policy, false, values)) {
        return;
    }
    if (streq(s, "Subdomain") && !*json_get_text(spec, "host")) {
        api_invalid(c, "spec.wildcardPolicy", policy,
                    "host name not specified for wildcard policy");
    }
}

void kind_route_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *tls = json_get(spec, "tls");
    const struct json *actions = json_path(spec, "httpHeaders", "actions", NULL);
    bool passthrough = streq(json_get_text(tls, "termination"), "passthrough");
    check_wildcard(c, spec, old);
    if (*json_get_text(spec, "path") && passthrough) {
        api_invalid(c, "spec.path", json_get(spec, "path"),
                    "passthrough termination does not support paths");
    }
    check_services(c, spec);
    check_port(c, spec);
    check_tls(c, tls);
    if (passthrough &&
        json_count(json_get(actions, "response")) + json_count(json_get(actions, "request"))) {
        api_invalid(c, "spec.tls.termination", json_get(tls, "termination"),
                    "only edge and re-encrypt routes are supported for providing customized "
                    "headers.");
    }
    check_headers(c, actions, "response");
    check_headers(c, actions, "request");
}

/* Routers' status says nothing about spec, which may be that of an older server. */
void kind_route_validate_part(const char *subresource, const struct json *obj,
                              const struct json *old, struct api_causes *c)
{
    (void) subresource;
    (void) obj;
    (void) old;
    (void) c;
}
