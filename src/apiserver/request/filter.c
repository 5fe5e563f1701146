/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/request/filter.h"

#include "apiserver/access/authn.h"
#include "apiserver/access/authz.h"
#include "apiserver/request/impersonate.h"
#include "apiserver/request/respond.h"
#include "base/log.h"
#include "base/timeutil.h"

LOG_MODULE("security");

/* ---- requests ---- */

static void begin_audit(struct request *q)
{
    struct security *s = q->server->security;
    q->audit = s->audit ? audit_begin(s->audit, q->x, q->audit_id, q->user, &q->attributes) : NULL;
}

/* Answers 401 without the reason, which is logged only. */
static void refuse_unauthenticated(struct request *q, const char *why, struct outcome *outcome)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_WARN, "not authenticated", "peer=%s reason=\"%s\"", http_peer(q->x),
                why);
    begin_audit(q);
    outcome_error(outcome, 401, "Unauthorized", "Unauthorized");
}

/* Clients older than OpenShift 4.6 delete a token by itself when they log out.  The name of its
 * object takes its place before the audit log sees it. */
static void replace_token(struct request *q)
{
    struct attributes *a = &q->attributes;
    const struct cache_kind *tokens = q->server->security->tokens;
    if (a->is_resource && streq(a->group, OAUTH_GROUP) && !a->name_is_demanded &&
        (streq(a->resource, "oauthaccesstokens") || streq(a->resource, "useroauthaccesstokens")) &&
        tokens && !keyset_get(&tokens->objects, a->name) &&
        oauth_token_name(a->name, q->token_name) == 0 &&
        keyset_get(&tokens->objects, q->token_name)) {
        a->name = q->token_name;
    }
}

/* Whether the request is a review that can be about the user alone, as far as its path says, and
 * the user may ask about that.  Its handler knows whom it is about. */
static bool may_ask_about_self(const struct request *q)
{
    const struct attributes *a = &q->attributes;
    return a->is_resource && streq(a->group, "authorization.openshift.io") &&
           streq(a->verb, verb_names[VERB_CREATE]) && !*a->name && !*a->subresource &&
           (streq(a->resource, "subjectaccessreviews") ||
            streq(a->resource, "localsubjectaccessreviews")) &&
           authz_may(q->server->security, q->user, "create", "authorization.k8s.io",
                     "selfsubjectaccessreviews", NULL, NULL);
}

static bool is_project_request(const struct attributes *a)
{
    return a->is_resource && streq(a->group, "project.openshift.io") &&
           streq(a->resource, "projectrequests") && streq(a->verb, verb_names[VERB_CREATE]);
}

void outcome_no_project(struct outcome *outcome, const struct request *q)
{
    const char *text = q->server->cfg.project_request_message;
    outcome_status(outcome, 403, "Forbidden", NULL, "%s",
                   text ? text : "You may not request a new project via this API.");
    outcome->kind = xstrdup("projectrequests");
    outcome->group = xstrdup("project.openshift.io");
    if (text) {
        outcome_add_cause(outcome, NULL, NULL, text);
    }
}

int filter_request(struct request *q, struct outcome *outcome)
{
    struct security *s = q->server->security;
    struct http_exchange *x = q->x;
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    struct err e = {0};
    audit_make_id(x, q->audit_id);
    attributes_parse(&q->attributes, http_method(x), http_path(x), request_flag(q, "watch"),
                     http_query(x, "fieldSelector"));
    replace_token(q);
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
        audit_impersonated(q->audit, q->user);
    }
    /* Roles are objects, too: without the cache only system:masters is known. */
    bool known = q->server->cache.ready || user_in_group(q->user, GROUP_MASTERS);
    /* The text about the binding that allows it is for the audit log only. */
    bool allowed = authz_allows(s, q->user, &q->attributes, q->audit ? &why : NULL);
    if (!allowed && !q->audit) {
        (void) authz_allows(s, q->user, &q->attributes, &why);
    }
    if (!allowed && may_ask_about_self(q)) {
        allowed = true;
        strbuf_reset(&why);
    }
    CLEANUP_FREE char *prefixed = why.size ? xasprintf("RBAC: %s", why.data) : NULL;
    if (q->audit) {
        audit_decision_set(q->audit, allowed, prefixed ? prefixed : "");
    }
    if (!allowed && !known) {
        outcome_error(outcome, 503, "ServiceUnavailable", "the registry is being loaded");
    } else if (!allowed && is_project_request(&q->attributes)) {
        outcome_no_project(outcome, q);
    } else if (!allowed) {
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
        audit_stage(q->audit, q->x, AUDIT_STARTED, 200, NULL, 0);
    }
}

void filter_done(struct request *q, int code, const char *body, size_t size)
{
    if (q->audit) {
        /* The exchange of a watch may be gone already; after an upgrade there is none. */
        audit_stage(q->audit, q->verb == VERB_WATCH ? NULL : q->x, AUDIT_COMPLETE, code, body,
                    size);
        q->audit = audit_event_free(q->audit);
    }
}

/* ---- refusing ---- */

/* Escapes HTML characters, as Kubernetes does, to protect browsers. */
static void escape(struct strbuf *out, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            strbuf_adds(out, "&amp;");
            break;
        case '<':
            strbuf_adds(out, "&lt;");
            break;
        case '>':
            strbuf_adds(out, "&gt;");
            break;
        default:
            strbuf_addc(out, *s);
        }
    }
}

static void quote(struct strbuf *out, const char *s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    json_write_string(s, strlen(s), &b);
    escape(out, strbuf_cstr(&b));
}

static void describe(struct strbuf *out, const struct user_info *u, const struct attributes *a)
{
    CLEANUP_FREE char *resource = attributes_resource_text(a);
    strbuf_adds(out, "User ");
    quote(out, u->name);
    strbuf_adds(out, " cannot ");
    escape(out, a->verb);
    if (!a->is_resource) {
        strbuf_adds(out, " path ");
        quote(out, a->path);
        return;
    }
    strbuf_adds(out, " resource ");
    quote(out, resource);
    strbuf_adds(out, " in API group ");
    quote(out, a->group);
    if (*a->namespace) {
        strbuf_adds(out, " in the namespace ");
        quote(out, a->namespace);
    } else {
        strbuf_adds(out, " at the cluster scope");
    }
}

void outcome_forbidden(struct outcome *outcome, const struct user_info *u,
                       const struct attributes *a, const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (a->is_resource) {
        strbuf_addf(&b, "%s%s%s ", a->resource, *a->group ? "." : "", a->group);
        if (*a->name) {
            json_write_string(a->name, strlen(a->name), &b);
            strbuf_addc(&b, ' ');
        }
        strbuf_adds(&b, "is ");
    }
    strbuf_adds(&b, "forbidden: ");
    describe(&b, u, a);
    if (why && *why) {
        strbuf_addf(&b, ": %s", why);
    }
    outcome_status(outcome, 403, "Forbidden", *a->name ? a->name : NULL, "%s", strbuf_cstr(&b));
    if (a->is_resource) {
        outcome->kind = xstrdup(a->resource);
        outcome->group = xstrdup(a->group);
    }
}
