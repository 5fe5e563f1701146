/* SPDX-License-Identifier: Apache-2.0 */
/* RouteHost: host names and certificates of routes; IngressAdmission: those of Ingresses.
 *
 * A new route without a host gets a generated one.  To name another one takes the right to "create"
 * routes/custom-host, and to change a host the right to "update" it; certificates need either when
 * they are set or changed, because they say who a host is.  The rights and texts are those of
 * openshift-apiserver (library-go, pkg/route/hostassignment).  Certificates and keys that no router
 * could read are refused here already.
 *
 * Routes are made from Ingresses with the rights of a controller, so the user's are asked for
 * here. */
#include "apiserver/admission/plugins.h"

#include "api/kinds/route_fields.h"
#include "apiserver/access/authz.h"
#include "net/tls/pki_check.h"
#include "route/host.h"

#define NO_HOST_RIGHT "you do not have permission to set the host field of the route"
#define NO_SUBDOMAIN_RIGHT "you do not have permission to set the subdomain field of the route"
#define NO_TLS_RIGHT "you do not have permission to set certificate fields on the route"

static const char *const pem_fields[] = {"caCertificate", "certificate", "destinationCACertificate",
                                         "key"};

static const char *spec_text(const struct json *obj, const char *key)
{
    return json_get_text(json_get(obj, "spec"), key);
}

static const struct json *tls_of(const struct json *obj)
{
    return json_path(obj, "spec", "tls", NULL);
}

static const char *external_of(const struct json *tls)
{
    return json_get_text(json_get(tls, "externalCertificate"), "name");
}

static int refuse_field(const struct request *q, const struct json *obj, struct api_causes *causes,
                        struct outcome *outcome)
{
    outcome_invalid(outcome, q->kind, json_path_string(obj, "metadata", "name", NULL), causes);
    return -EINVAL;
}

/* ---- the host ---- */

static char *generated_host(const struct request *q, const struct json *obj)
{
    const char *subdomain = q->server->cfg.routing_subdomain;
    return route_host_generate(json_get_text(json_get(obj, "metadata"), "name"), q->namespace,
                               subdomain ? subdomain : ROUTE_DEFAULT_SUBDOMAIN);
}

int route_admit(struct request *q, struct json *obj, const struct json *old,
                struct outcome *outcome)
{
    struct json *spec = json_get(obj, "spec");
    const char *name = json_get_text(json_get(obj, "metadata"), "name");
    if (old || *q->subresource || !json_is(spec, JSON_OBJECT) || !*name ||
        *spec_text(obj, "host") || *spec_text(obj, "subdomain") ||
        streq(spec_text(obj, "wildcardPolicy"), "Subdomain")) {
        return 0;
    }
    CLEANUP_FREE char *host = generated_host(q, obj);
    const char *wrong = route_check_host(host);
    if (wrong) {
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        CLEANUP(json_free) struct json *v = json_string(host);
        api_invalid(&causes, "spec.host", v,
                    "the host that is made from name and namespace %s; set spec.host, or choose a "
                    "shorter name",
                    wrong);
        return refuse_field(q, obj, &causes, outcome);
    }
    json_set_string(spec, "host", host);
    json_set_string(json_ensure_object(json_ensure_object(obj, "metadata"), "annotations"),
                    ROUTE_HOST_GENERATED, "true");
    return 1;
}

/* ---- rights ---- */

static bool may(struct request *q, const char *verb)
{
    return authz_may(q->server->security, q->user, verb, ROUTE_GROUP, "routes/custom-host",
                     q->namespace, NULL);
}

static bool has_certificate(const struct json *tls)
{
    bool any = *external_of(tls);
    for (size_t i = 0; i < ARRAY_SIZE(pem_fields); i++) {
        any |= *json_get_text(tls, pem_fields[i]) != '\0';
    }
    return any;
}

/* To take all certificates away needs no right. */
static bool sets_certificate(const struct json *now, const struct json *before)
{
    bool differs = !streq(external_of(now), external_of(before));
    for (size_t i = 0; i < ARRAY_SIZE(pem_fields); i++) {
        differs |= !streq(json_get_text(now, pem_fields[i]), json_get_text(before, pem_fields[i]));
    }
    return differs && has_certificate(now);
}

static void check_create(struct request *q, const struct json *obj, struct api_causes *causes)
{
    const char *host = spec_text(obj, "host");
    CLEANUP_FREE char *own = generated_host(q, obj);
    bool custom = *host && !streq(host, own);
    if ((!custom && !has_certificate(tls_of(obj))) || may(q, "create")) {
        return;
    }
    if (custom) {
        api_forbidden(causes, "spec.host", NO_HOST_RIGHT);
    } else {
        api_forbidden(causes, "spec.tls", NO_TLS_RIGHT);
    }
}

static void check_update(struct request *q, const struct json *obj, const struct json *old,
                         struct api_causes *causes)
{
    const struct json *spec = json_get(obj, "spec");
    bool host = !streq(spec_text(obj, "host"), spec_text(old, "host"));
    bool subdomain = !streq(spec_text(obj, "subdomain"), spec_text(old, "subdomain"));
    bool certificate = sets_certificate(tls_of(obj), tls_of(old));
    if ((!host && !subdomain && !certificate) || may(q, "update")) {
        return;
    }
    if (host) {
        api_invalid(causes, "spec.host", json_get(spec, "host"), NO_HOST_RIGHT);
    } else if (subdomain) {
        api_invalid(causes, "spec.subdomain", json_get(spec, "subdomain"), NO_SUBDOMAIN_RIGHT);
    } else if (!may(q, "create")) {
        api_forbidden(causes, "spec.tls", NO_TLS_RIGHT);
    }
}

/* ---- certificates ---- */

/* "spec.tls.key: Invalid value: "redacted key data": ..." */
static void refuse_pem(struct api_causes *causes, const char *key, const struct err *e)
{
    CLEANUP(json_free) struct json *v = json_stringf("redacted %s data", key);
    api_invalid(causes, API_FIELD("spec.tls.%s", key), v, "%s", e->text);
}

static void check_certificates(const struct json *tls, struct api_causes *causes)
{
    static const char *const authorities[] = {"caCertificate", "destinationCACertificate"};
    const char *cert = json_get_text(tls, "certificate"), *key = json_get_text(tls, "key");
    struct err e = {0};
    bool good = *cert && pki_check_certificate(cert, &e) == 0;
    if (*cert && !good) {
        refuse_pem(causes, "certificate", &e);
    }
    if (*key && pki_check_key(key, &e) < 0) {
        refuse_pem(causes, "key", &e);
    } else if (*key && good && pki_check_pair(cert, key, &e) < 0) {
        refuse_pem(causes, "key", &e);
    }
    for (size_t i = 0; i < ARRAY_SIZE(authorities); i++) {
        const char *pem = json_get_text(tls, authorities[i]);
        bool used = i == 0 || streq(json_get_text(tls, "termination"), "reencrypt");
        if (*pem && used && pki_check_authorities(pem, &e) < 0) {
            refuse_pem(causes, authorities[i], &e);
        }
    }
}

int route_validate(struct request *q, const struct json *obj, const struct json *old,
                   struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    const struct json *tls = tls_of(obj);
    const char *end = json_get_text(tls, "termination");
    if (*q->subresource) {
        return 0;
    }
    if (old) {
        check_update(q, obj, old, &causes);
    } else {
        check_create(q, obj, &causes);
    }
    /* The kind's own check says which terminations have certificates.  A stored certificate that an
     * older server accepted does not stop other changes. */
    bool has = streq(end, "edge") || streq(end, "reencrypt");
    if (causes.n == 0 && has && (!old || sets_certificate(tls, tls_of(old)))) {
        check_certificates(tls, &causes);
    }
    return causes.n ? refuse_field(q, obj, &causes, outcome) : 0;
}

/* ---- Ingresses ---- */

/* The host of the i-th rule; "" past the end. */
static const char *host_of_rule(const struct json *ingress, size_t i)
{
    return json_get_text(json_at(json_path(ingress, "spec", "rules", NULL), i), "host");
}

static bool has_host(const struct json *ingress, const char *host)
{
    const struct json *rule;
    JSON_FOREACH (rule, json_path(ingress, "spec", "rules", NULL)) {
        if (streq(json_get_text(rule, "host"), host)) {
            return true;
        }
    }
    return false;
}

int ingress_validate(struct request *q, const struct json *obj, const struct json *old,
                     struct outcome *outcome)
{
    const struct json *rules = json_path(obj, "spec", "rules", NULL);
    for (size_t i = 0; !*q->subresource && i < json_count(rules); i++) {
        const char *host = host_of_rule(obj, i);
        if (!*host || (old && has_host(old, host))) {
            continue;
        }
        if (old && !may(q, "update")) {
            return admission_refuse(q, obj, "cannot change hostname", outcome);
        }
        if (!old && !may(q, "create")) {
            CLEANUP(api_causes_done) struct api_causes causes = {0};
            api_forbidden(&causes, API_FIELD("spec.rules[%zu]", i),
                          "you do not have permission to set host fields in ingress rules");
            return refuse_field(q, obj, &causes, outcome);
        }
    }
    return 0;
}
