/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/filter.h"

#include "apiserver/access/security.h"
#include "base/log.h"
#include "base/timeutil.h"

LOG_MODULE("security");

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    security_changed(ctx, ck, ev);
}

static void on_loaded(void *ctx)
{
    security_changed(ctx, NULL, NULL);
}

struct security *security_new(struct apiserver *a, const struct apiserver_security *cfg)
{
    static const struct apiserver_security trusting = {.always_allow = true};
    static const char rbac[] = "rbac.authorization.k8s.io";
    struct security *s = NEW(struct security);
    s->server = a;
    s->open = !cfg;
    cfg = cfg ? cfg : &trusting;
    s->always_allow = cfg->always_allow;
    s->anonymous = cfg->anonymous;
    s->loopback_token = cfg->loopback_token ? xstrdup(cfg->loopback_token) : NULL;
    s->keys = cfg->keys;
    s->issuer = xstrdup(cfg->issuer ? cfg->issuer : DEFAULT_ISSUER);
    s->audit = cfg->audit;
    s->rbac = rbac_new();
    s->master = user_new("system:admin");
    user_add_group(s->master, GROUP_MASTERS);
    user_add_group(s->master, GROUP_AUTHENTICATED);
    s->nobody = user_new(USER_ANONYMOUS);
    user_add_group(s->nobody, GROUP_UNAUTHENTICATED);
    s->roles = cache_find(&a->cache, api_kind_find(rbac, "v1", "roles"));
    s->cluster_roles = cache_find(&a->cache, api_kind_find(rbac, "v1", "clusterroles"));
    s->role_bindings = cache_find(&a->cache, api_kind_find(rbac, "v1", "rolebindings"));
    s->cluster_role_bindings =
        cache_find(&a->cache, api_kind_find(rbac, "v1", "clusterrolebindings"));
    s->subscriber = (struct cache_subscriber){
        .rank = CACHE_RANK_ACCESS, .ctx = s, .changed = on_changed, .loaded = on_loaded};
    cache_subscribe(&a->cache, &s->subscriber);
    return s;
}

struct security *security_free(struct security *s)
{
    if (s) {
        if (s->loopback_token) {
            explicit_bzero(s->loopback_token, strlen(s->loopback_token));
        }
        cache_unsubscribe(&s->subscriber);
        free(s->loopback_token);
        free(s->issuer);
        rbac_free(s->rbac);
        user_unref(s->master);
        user_unref(s->nobody);
        free(s);
    }
    return NULL;
}

/* ---- requests ---- */

static void begin_audit(struct request *q)
{
    struct security *s = q->server->security;
    q->audit = s->audit ? audit_begin(s->audit, q) : NULL;
}

/* 401, and nothing about why: that is in the log. */
static void refuse_unauthenticated(struct request *q, const char *why, struct outcome *outcome)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "not authenticated", "peer=%s reason=\"%s\"", http_peer(q->x),
                why);
    begin_audit(q);
    outcome_error(outcome, 401, "Unauthorized", "Unauthorized");
}

int filter_request(struct request *q, struct outcome *outcome)
{
    struct security *s = q->server->security;
    struct http_exchange *x = q->x;
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    struct err e = {0};
    attributes_parse(&q->attributes, http_method(x), http_path(x), request_flag(q, "watch"),
                     http_query(x, "fieldSelector"));
    int r = authn_request(s, x, &q->user, &e);
    if (r == -EAGAIN) {
        outcome_error(outcome, 503, "ServiceUnavailable", "%s", e.text);
        return r;
    }
    if (r < 0) {
        refuse_unauthenticated(q, e.text, outcome);
        return r;
    }
    begin_audit(q);
    r = impersonate(q, outcome);
    if (r < 0) {
        return r;
    }
    if (q->impersonator && q->audit) {
        audit_impersonated(q->audit, q);
    }
    /* The roles are objects, too. */
    bool known = q->server->cache.ready || user_in_group(q->user, GROUP_MASTERS);
    bool allowed = authz_allows(s, q->user, &q->attributes, &why);
    if (q->audit) {
        audit_decision_set(q->audit, allowed, strbuf_cstr(&why));
    }
    if (!allowed && !known) {
        outcome_error(outcome, 503, "ServiceUnavailable", "the registry is being loaded");
    } else if (!allowed) {
        CLEANUP_FREE char *prefixed = why.size ? xasprintf("RBAC: %s", why.data) : NULL;
        outcome_forbidden(outcome, q->user, &q->attributes, prefixed);
    }
    return allowed ? 0 : -EACCES;
}

int filter_may_create(struct request *q, struct outcome *outcome)
{
    struct attributes a = q->attributes;
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    a.verb = verb_names[VERB_CREATE];
    if (authz_allows(q->server->security, q->user, &a, &why)) {
        return 0;
    }
    CLEANUP_FREE char *prefixed = why.size ? xasprintf("RBAC: %s", why.data) : NULL;
    outcome_forbidden(outcome, q->user, &a, prefixed);
    return -EACCES;
}

void filter_streaming(struct request *q)
{
    if (q->audit) {
        audit_stage(q->audit, q, AUDIT_STARTED, 200, NULL, 0);
    }
}

void filter_done(struct request *q, int code, const char *body, size_t size)
{
    if (q->audit) {
        audit_stage(q->audit, q, AUDIT_COMPLETE, code, body, size);
        q->audit = audit_event_free(q->audit);
    }
}
