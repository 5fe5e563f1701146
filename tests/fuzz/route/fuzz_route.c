/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: routes as routers read them, and routes of Ingresses.  The bytes are a list of a Route, an
 * Ingress, a Service and a Secret.  No text of a route that a router may serve has a character that
 * could end a word or a line of a proxy's configuration; a route of an Ingress is one that a router
 * may serve. */
#include "base/mem.h"
#include "route/claims.h"
#include "route/host.h"
#include "route/ingress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *s, bool blanks)
{
    for (const char *p = s ? s : ""; *p; p++) {
        unsigned char c = (unsigned char) *p;
        if (c < ' ' || c == 0x7f || (!blanks && (c == ' ' || c == '"' || c == '#' || c == '\\'))) {
            __builtin_trap();
        }
    }
}

static void check_headers(const struct route_headers *h)
{
    for (size_t i = 0; i < h->n; i++) {
        check_text(h->list[i].name, true);
        check_text(h->list[i].value, true);
    }
}

static void check_route(const struct route *r)
{
    const struct route_claims_options o = {.wildcards = true};
    struct route_verdict v = {0};
    CLEANUP(route_claims_free) struct route_claims *c = route_claims_new(&o);
    route_claims_decide(&o, &r, 1, &v);
    route_claims_set(c, r);
    if (route_claims_verdict(c, r->namespace, r->name)->admitted != v.admitted ||
        v.admitted != !v.message) {
        __builtin_trap();
    }
    if (v.admitted) {
        const char *texts[] = {r->namespace,           r->name, r->host,
                               r->subdomain,           r->path, r->port,
                               r->external_certificate};
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
            check_text(texts[i], false);
        }
        for (size_t i = 0; i < r->n_targets; i++) {
            check_text(r->targets[i].service, false);
        }
        check_headers(&r->request);
        check_headers(&r->response);
    }
    route_verdict_done(&v);
}

static void parse(const struct json *obj)
{
    CLEANUP(route_free) struct route *r = NULL;
    struct err e;
    if (route_parse(obj, &r, &e) == 0) {
        check_route(r);
    }
}

static const struct json *service(void *ctx, const char *name)
{
    return json_at(ctx, 2);
}

static const struct json *secret(void *ctx, const char *name)
{
    return json_at(ctx, 3);
}

static void plan(struct json *v)
{
    const struct route_ingress_sources s = {service, secret, v};
    CLEANUP(json_free) struct json *list = route_ingress_plan(json_at(v, 1), &s);
    const struct json *r;
    json_free(route_ingress_status(list));
    JSON_FOREACH (r, list) {
        if (route_ingress_update(r, r)) {
            __builtin_trap();
        }
        parse(r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    free(route_host_expand(text, "name", "namespace"));
    if (json_parse((const char *) data, size, &v, NULL) == 0 && json_count(v) >= 4) {
        parse(json_at(v, 0));
        plan(v);
    }
    return 0;
}
