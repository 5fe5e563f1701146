/* SPDX-License-Identifier: Apache-2.0 */
#include "router/routes.h"

#include "api/selector.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "client/informer_set.h"
#include "client/services.h"
#include "route/claims.h"
#include "router/certificate.h"
#include "router/status.h"

#include <stdio.h>

LOG_MODULE("router");

#define ROUTE_API "route.openshift.io/v1"

/* A route of the API server. */
struct held {
    struct route *route;
    bool labels_match;
    bool claims; /* It is in the claims: the router's shard has it. */
    bool admitted;
    char *cert, *ca; /* The texts that HAProxy gets; owned. */
};

struct routes {
    struct routes_config cfg;
    struct informer_set *set;
    struct informer *routes, *namespaces;
    struct services_watch *services;
    struct api_selector *route_selector, *namespace_selector;
    struct smap held;    /* "NAMESPACE/NAME": struct held. */
    struct smap users;   /* "NAMESPACE/SERVICE": struct smap of keys of routes. */
    struct smap members; /* Namespaces that the selector chooses. */
    struct smap dirty;   /* Keys of routes whose endpoints changed. */
    struct route_domains allowed, denied, override;
    struct route_claims *claims;
    struct status_writer *status;
    struct loop_task settle;
    bool begun;
    size_t admitted, rejected;
};

static void held_free(void *p)
{
    struct held *h = p;
    route_free(h->route);
    if (h->cert) {
        explicit_bzero(h->cert, strlen(h->cert));
    }
    free(h->cert);
    free(h->ca);
    free(h);
}

static void users_free(void *p)
{
    smap_done(p);
    free(p);
}

static char *key_of(const struct route *r)
{
    return xasprintf("%s/%s", r->namespace, r->name);
}

/* ---- endpoints ---- */

static bool port_matches(const char *port, const struct sdn_service_port *p, uint16_t number)
{
    char text[8];
    if (!port || (p->name && streq(port, p->name))) {
        return true;
    }
    (void) snprintf(text, sizeof text, "%u", number);
    return streq(port, text);
}

static void add_endpoint(struct route_plan_service *s, uint32_t ip, uint16_t port)
{
    struct route_plan_endpoint *list =
        xreallocarray((void *) s->endpoints, s->n + 1, sizeof *s->endpoints);
    list[s->n++] = (struct route_plan_endpoint){ip, port};
    s->endpoints = list;
}

static void endpoints_of(const struct sdn_service *s, const char *port,
                         struct route_plan_service *ret)
{
    for (uint32_t i = 0; s && i < s->n_ports; i++) {
        const struct sdn_service_port *p = &s->ports[i];
        if (p->protocol != SDN_TCP) {
            continue;
        }
        if (sdn_service_waits(s, p) && s->cluster_ip) {
            if (port_matches(port, p, p->port)) {
                add_endpoint(ret, s->cluster_ip, p->port);
                ret->idle = true;
            }
            continue;
        }
        CLEANUP_FREE const struct sdn_backend **list = NULL;
        size_t n = sdn_service_choose(s, p, NULL, &list);
        for (size_t j = 0; j < n; j++) {
            if (list[j]->endpoint->ip && port_matches(port, p, list[j]->port)) {
                add_endpoint(ret, list[j]->endpoint->ip, list[j]->port);
            }
        }
    }
}

/* ---- plans ---- */

static int make_plan(struct routes *x, struct held *h, struct route_plan **ret, struct err *e)
{
    const struct route *r = h->route;
    struct route_plan_service *services = xcalloc(r->n_targets + 1, sizeof *services);
    for (size_t i = 0; i < r->n_targets; i++) {
        endpoints_of(services_watch_get(x->services, r->namespace, r->targets[i].service), r->port,
                     &services[i]);
    }
    int err = route_plan_make(x->cfg.options, r, services, h->cert, ret, e);
    for (size_t i = 0; i < r->n_targets; i++) {
        free((void *) services[i].endpoints);
    }
    free(services);
    return err;
}

static void serve(struct routes *x, struct held *h)
{
    struct err e = {0};
    struct route_plan *p = NULL;
    CLEANUP_FREE char *key = key_of(h->route);
    if (make_plan(x, h, &p, &e) < 0) {
        h->admitted = false;
        driver_set(x->cfg.driver, key, NULL);
        status_want(x->status, h->route, false, ROUTE_INVALID, e.text);
        return;
    }
    h->admitted = true;
    driver_set(x->cfg.driver, key, p);
    status_want(x->status, h->route, true, NULL, NULL);
}

static void on_verdict(void *ctx, const struct route *r, const struct route_verdict *v)
{
    struct routes *x = ctx;
    CLEANUP_FREE char *key = key_of(r);
    struct held *h = smap_get(&x->held, key);
    if (!h) {
        return;
    }
    if (v->admitted) {
        serve(x, h);
    } else {
        h->admitted = false;
        driver_set(x->cfg.driver, key, NULL);
        status_want(x->status, r, false, v->reason, v->message);
    }
    smap_remove(&x->dirty, key);
}

static bool all_synced(const struct routes *x)
{
    return informer_synced(x->routes) && services_watch_synced(x->services) &&
           (!x->namespaces || informer_synced(x->namespaces));
}

static void on_settle(void *ctx)
{
    struct routes *x = ctx;
    if (!all_synced(x)) {
        return;
    }
    route_claims_take_changes(x->claims, on_verdict, x);
    struct smap_entry *e;
    SMAP_FOREACH (e, &x->dirty) {
        struct held *h = smap_get(&x->held, e->key);
        if (h && h->admitted) {
            serve(x, h);
        }
    }
    smap_clear(&x->dirty);
    if (!x->begun) {
        x->begun = true;
        driver_begin(x->cfg.driver);
    }
}

/* ---- routes ---- */

static bool is_in_shard(const struct routes *x, const struct held *h)
{
    const struct router_config *c = x->cfg.config;
    return h->labels_match && (!c->namespace || streq(h->route->namespace, c->namespace)) &&
           (!x->namespace_selector || smap_get(&x->members, h->route->namespace));
}

static void add_user(struct routes *x, const struct route *r, const char *key, bool add)
{
    for (size_t i = 0; i < r->n_targets; i++) {
        CLEANUP_FREE char *service = xasprintf("%s/%s", r->namespace, r->targets[i].service);
        struct smap *keys = smap_get(&x->users, service);
        if (add && !keys) {
            keys = NEW(struct smap);
            smap_init(keys, NULL);
            smap_set(&x->users, service, keys);
        }
        if (add) {
            smap_set(keys, key, keys);
        } else if (keys && smap_remove(keys, key) && smap_size(keys) == 0) {
            smap_remove(&x->users, service);
        }
    }
}

static void leave(struct routes *x, struct held *h, const char *key)
{
    if (h->claims) {
        route_claims_remove(x->claims, h->route->namespace, h->route->name);
        h->claims = h->admitted = false;
        driver_set(x->cfg.driver, key, NULL);
        status_forget(x->status, key);
    }
}

static void enter(struct routes *x, struct held *h)
{
    if (is_in_shard(x, h)) {
        h->claims = true;
        route_claims_set(x->claims, h->route);
    }
}

/* "${name}-${namespace}.apps.example.com" */
static void set_host(const struct routes *x, struct route *r)
{
    const struct router_config *c = x->cfg.config;
    if (!c->subdomain ||
        (*r->host && !c->override_hostname && !route_domains_has(&x->override, r->host))) {
        return;
    }
    CLEANUP_STRBUF struct strbuf host = STRBUF_INIT;
    for (const char *p = c->subdomain; *p;) {
        if (str_has_prefix(p, "${name}")) {
            strbuf_adds(&host, r->name);
            p += strlen("${name}");
        } else if (str_has_prefix(p, "${namespace}")) {
            strbuf_adds(&host, r->namespace);
            p += strlen("${namespace}");
        } else {
            strbuf_addc(&host, *p++);
        }
    }
    route_set_host(r, strbuf_cstr(&host));
}

static void set_wrong(struct route *r, const struct err *e)
{
    if (!r->wrong) {
        r->wrong = xstrdup(e->text);
    }
}

/* HAProxy gets only what OpenSSL has read and written anew. */
static void verify_certificates(struct held *h)
{
    struct route *r = h->route;
    struct err e = {0};
    if (r->certificate && *r->certificate &&
        certificate_join(r->certificate, r->key, r->ca, &h->cert, &e) < 0) {
        set_wrong(r, &e);
    }
    if (r->destination_ca && *r->destination_ca) {
        char *ca = NULL;
        if (certificate_normalize(r->destination_ca, &ca, &e) < 0) {
            set_wrong(r, &e);
        } else {
            free(r->destination_ca);
            r->destination_ca = ca;
        }
    }
    if (r->external_certificate) {
        (void) err_set(&e, -EINVAL,
                       "spec.tls.externalCertificate: this router does not read "
                       "secrets; put the certificate into the route");
        set_wrong(r, &e);
    }
}

static bool selects(const struct api_selector *s, const struct json *obj)
{
    if (!s) {
        return true;
    }
    static const struct api_kind labels_only = {0};
    struct api_index *i = api_index_new(&labels_only, obj);
    bool yes = api_selector_matches(s, i);
    api_index_free(i);
    return yes;
}

static void on_route_gone(void *ctx, const char *key, const struct json *obj)
{
    struct routes *x = ctx;
    struct held *h = smap_get(&x->held, key);
    if (h) {
        leave(x, h, key);
        add_user(x, h->route, key, false);
        smap_remove(&x->held, key);
        loop_task_queue(&x->settle);
    }
}

static void on_route(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct routes *x = ctx;
    struct route *r = NULL;
    struct err e = {0};
    if (route_parse(obj, &r, &e) < 0) {
        log_warn("a route cannot be read", "route=%s error=\"%s\"", key, e.text);
        on_route_gone(ctx, key, obj);
        return;
    }
    struct held *h = NEW(struct held), *former = smap_get(&x->held, key);
    h->route = r;
    h->labels_match = selects(x->route_selector, obj);
    set_host(x, r);
    verify_certificates(h);
    bool stays = former && former->claims && is_in_shard(x, h);
    if (former) {
        add_user(x, former->route, key, false);
        if (!stays) {
            leave(x, former, key);
        }
    }
    add_user(x, r, key, true);
    if (is_in_shard(x, h)) {
        status_seen(x->status, key, obj);
    }
    /* The claims borrow the former route until they have the new one. */
    struct held *kept = smap_take(&x->held, key);
    smap_set(&x->held, key, h);
    h->admitted = stays && former->admitted;
    enter(x, h);
    if (kept) {
        held_free(kept);
    }
    loop_task_queue(&x->settle);
}

static void on_synced(void *ctx)
{
    loop_task_queue(&((struct routes *) ctx)->settle);
}

static void on_connection(void *ctx, const char *lost_reason)
{
    if (lost_reason) {
        log_warn("the API server is away; routes stay as they are", "error=\"%s\"", lost_reason);
    } else {
        log_info("the API server is back");
    }
}

static const struct informer_ops route_ops = {.changed = on_route,
                                              .deleted = on_route_gone,
                                              .synced = on_synced,
                                              .connection = on_connection};

/* ---- namespaces ---- */

static void move_routes(struct routes *x, const char *namespace)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &x->held) {
        struct held *h = e->value;
        if (streq(h->route->namespace, namespace)) {
            if (!is_in_shard(x, h)) {
                leave(x, h, e->key);
            } else if (!h->claims) {
                enter(x, h);
            }
        }
    }
    loop_task_queue(&x->settle);
}

static void on_namespace(void *ctx, const char *key, const struct json *old, const struct json *obj)
{
    struct routes *x = ctx;
    bool was = smap_get(&x->members, key) != NULL, is = selects(x->namespace_selector, obj);
    if (is && !was) {
        smap_set(&x->members, key, x);
        move_routes(x, key);
    } else if (!is && was) {
        smap_remove(&x->members, key);
        move_routes(x, key);
    }
}

static void on_namespace_gone(void *ctx, const char *key, const struct json *obj)
{
    struct routes *x = ctx;
    if (smap_remove(&x->members, key)) {
        move_routes(x, key);
    }
}

static const struct informer_ops namespace_ops = {
    .changed = on_namespace, .deleted = on_namespace_gone, .synced = on_synced, .metadata = true};

/* ---- services ---- */

static void on_service(void *ctx, const struct sdn_service *old, const struct sdn_service *s)
{
    struct routes *x = ctx;
    const struct sdn_service *any = s ? s : old;
    CLEANUP_FREE char *name = xasprintf("%s/%s", any->namespace, any->name);
    const struct smap *keys = smap_get(&x->users, name);
    struct smap_entry *e;
    if (keys) {
        SMAP_FOREACH (e, keys) {
            smap_set(&x->dirty, e->key, x);
        }
        loop_task_queue(&x->settle);
    }
}

static const struct services_listener service_ops = {.changed = on_service, .synced = on_synced};

/* ---- all ---- */

static int parse_selector(const char *option, const char *text, struct api_selector **ret,
                          struct err *e)
{
    int r = text && *text && !streq(text, "*") ? api_selector_parse_labels(text, ret, e) : 0;
    return r < 0 ? err_prefix(e, "--%s", option) : 0;
}

int routes_new(const struct routes_config *cfg, struct routes **ret, struct err *e)
{
    const struct router_config *c = cfg->config;
    CLEANUP(api_selector_free) struct api_selector *labels = NULL;
    CLEANUP(api_selector_free) struct api_selector *namespaces = NULL;
    int r = parse_selector("route-labels", c->route_labels, &labels, e);
    if (r == 0) {
        r = parse_selector("namespace-labels",
                           c->namespace_labels ? c->namespace_labels : c->project_labels,
                           &namespaces, e);
    }
    if (r < 0) {
        return r;
    }
    struct routes *x = NEW(struct routes);
    x->cfg = *cfg;
    x->route_selector = TAKE(labels);
    x->namespace_selector = TAKE(namespaces);
    smap_init(&x->held, held_free);
    smap_init(&x->users, users_free);
    smap_init(&x->members, NULL);
    smap_init(&x->dirty, NULL);
    route_domains_init(&x->allowed, c->allowed_domains ? c->allowed_domains : "");
    route_domains_init(&x->denied, c->denied_domains ? c->denied_domains : "");
    route_domains_init(&x->override, c->override_domains ? c->override_domains : "");
    const struct route_claims_options o = {.wildcards = c->wildcards,
                                           .share_hosts = c->share_hosts,
                                           .allowed = &x->allowed,
                                           .denied = &x->denied};
    const struct status_config s = {.loop = cfg->loop,
                                    .client = cfg->client,
                                    .router = c->name,
                                    .canonical_hostname = c->canonical_hostname,
                                    .writes = c->update_status};
    x->claims = route_claims_new(&o);
    x->status = status_writer_new(&s);
    loop_task_init(&x->settle, cfg->loop, on_settle, x);
    x->set = informer_set_new(cfg->loop, cfg->client);
    x->services = services_watch_new_in(cfg->loop, x->set);
    services_watch_add(x->services, &service_ops, x);
    if (x->namespace_selector) {
        x->namespaces = informer_set_add(x->set, "v1", "namespaces", NULL, &namespace_ops, x);
    }
    x->routes = informer_new_in(cfg->client, cfg->loop, c->namespace, ROUTE_API, "routes", NULL,
                                &route_ops, x);
    informer_keep_keys_only(x->routes);
    *ret = x;
    return 0;
}

bool routes_are_synced(const struct routes *x)
{
    return x->begun;
}

static void count(const struct routes *x, size_t *admitted, size_t *rejected)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &x->held) {
        const struct held *h = e->value;
        *admitted += h->admitted;
        *rejected += h->claims && !h->admitted;
    }
}

size_t routes_admitted(const struct routes *x)
{
    size_t admitted = 0, rejected = 0;
    count(x, &admitted, &rejected);
    return admitted;
}

size_t routes_rejected(const struct routes *x)
{
    size_t admitted = 0, rejected = 0;
    count(x, &admitted, &rejected);
    return rejected;
}

struct routes *routes_free(struct routes *x)
{
    if (!x) {
        return NULL;
    }
    loop_task_cancel(&x->settle);
    informer_free(x->routes);
    informer_free(x->namespaces);
    services_watch_free(x->services);
    informer_set_free(x->set);
    status_writer_free(x->status);
    route_claims_free(x->claims);
    smap_done(&x->held);
    smap_done(&x->users);
    smap_done(&x->members);
    smap_done(&x->dirty);
    route_domains_done(&x->allowed);
    route_domains_done(&x->denied);
    route_domains_done(&x->override);
    api_selector_free(x->route_selector);
    api_selector_free(x->namespace_selector);
    free(x);
    return NULL;
}
