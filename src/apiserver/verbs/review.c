/* SPDX-License-Identifier: Apache-2.0 */
/* Create-only kinds, which are evaluated and answered, never stored: reviews of tokens, users and
 * access; templates to be processed; and tokens for service accounts. */
#include "apiserver/verbs/review.h"

#include "api/typed.h"
#include "apiserver/access/authz.h"
#include "apiserver/access/token.h"
#include "apiserver/request/respond.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/openshift_review.h"
#include "apiserver/verbs/process.h"
#include "apiserver/verbs/scc_review.h"
#include "apiserver/verbs/write.h"
#include "base/timeutil.h"
#include "pod/scc.h"

#define MIN_SECONDS 600
#define MAX_SECONDS (INT64_C(1) << 32)
#define DEFAULT_SECONDS 3600

/* ---- attributes and users of access reviews ---- */

/* The texts of the attributes belong to 'spec'. */
static struct attributes attributes_of(const struct json *spec)
{
    const struct json *r = json_get(spec, "resourceAttributes");
    const struct json *p = json_get(spec, "nonResourceAttributes");
    bool is_resource = json_is(r, JSON_OBJECT);
    return (struct attributes){.is_resource = is_resource,
                               .verb = json_get_text(is_resource ? r : p, "verb"),
                               .path = json_get_text(p, "path"),
                               .group = json_get_text(r, "group"),
                               .version = json_get_text(r, "version"),
                               .resource = json_get_text(r, "resource"),
                               .subresource = json_get_text(r, "subresource"),
                               .namespace = json_get_text(r, "namespace"),
                               .name = json_get_text(r, "name"),
                               .node = ""};
}

static struct user_info *user_of(const struct json *spec)
{
    const char *uid = json_path_string(spec, "uid", NULL);
    const struct json *extra = json_get(spec, "extra"), *item;
    struct user_info *u = user_new(json_get_text(spec, "user"));
    u->uid = uid ? xstrdup(uid) : NULL;
    JSON_FOREACH (item, json_get(spec, "groups")) {
        user_add_group(u, json_get_string(item));
    }
    for (size_t i = 0; i < json_count(extra); i++) {
        JSON_FOREACH (item, json_at(extra, i)) {
            if (json_is(item, JSON_STRING)) {
                user_add_extra(u, json_key_at(extra, i), json_get_string(item));
            }
        }
    }
    return u;
}

static struct json *access_status(struct security *s, const struct user_info *u,
                                  const struct json *spec)
{
    const struct attributes a = attributes_of(spec);
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    struct json *st = json_object();
    json_set_bool(st, "allowed", authz_allows(s, u, &a, &why));
    if (why.size) {
        json_set(st, "reason", json_stringf("RBAC: %s", why.data));
    }
    return st;
}

/* ---- SelfSubjectRulesReview ---- */

static void add_rule(void *ctx, const struct rbac_rule *rule)
{
    struct json *st = ctx;
    const char *key = rule->urls.n ? "nonResourceRules" : "resourceRules";
    json_append(json_ensure_array(st, key), rbac_rule_object(rule));
}

static struct json *rules_status(struct security *s, const struct user_info *u,
                                 const struct json *spec)
{
    const char *ns = json_get_text(spec, "namespace");
    struct json *st = json_object();
    json_ensure_array(st, "resourceRules");
    json_ensure_array(st, "nonResourceRules");
    bool all = authz_each_rule(s, u, ns, add_rule, st);
    json_set_bool(st, "incomplete", !all);
    if (!all) {
        json_set_string(st, "evaluationError",
                        "node authorizer does not support user rule "
                        "resolution");
    }
    return st;
}

/* ---- TokenReview and the requesting user ---- */

static struct json *token_status(struct security *s, const struct json *spec)
{
    CLEANUP(user_unref) struct user_info *u = NULL;
    CLEANUP(json_free) struct json *audiences = NULL;
    struct err e = {0};
    struct json *st = json_object();
    const char *token = json_path_string(spec, "token", NULL);
    int r = token_authenticate(s, token, json_get(spec, "audiences"), time_wall_ms(), &u,
                               &audiences, &e);
    json_set_bool(st, "authenticated", r == 0);
    if (r == 0) {
        json_set(st, "user", user_object(u));
        json_set(st, "audiences", TAKE(audiences));
    } else {
        json_set(st, "user", json_object());
        /* Why an OAuth token is not valid is for the log alone. */
        json_set_string(st, "error",
                        token && oauth_token_has_form(token) ? "not a valid OAuth token" : e.text);
    }
    return st;
}

/* ---- tokens for service accounts ---- */

static void validate_token_request(const struct json *spec, struct api_causes *c)
{
    const struct json *seconds = json_get(spec, "expirationSeconds");
    const struct json *ref = json_get(spec, "boundObjectRef"), *list = json_get(spec, "audiences");
    const struct json *item;
    int64_t n = DEFAULT_SECONDS;
    if (seconds && !json_is(seconds, JSON_NULL) &&
        (json_get_int(seconds, &n) < 0 || n < MIN_SECONDS)) {
        api_invalid(c, "spec.expirationSeconds", seconds,
                    "may not specify a duration less than 10 minutes");
    } else if (n > MAX_SECONDS) {
        api_invalid(c, "spec.expirationSeconds", seconds,
                    "may not specify a duration larger than 2^32 seconds");
    }
    if (list && !json_is(list, JSON_ARRAY) && !json_is(list, JSON_NULL)) {
        api_invalid(c, "spec.audiences", list, "must be a list");
    }
    JSON_FOREACH (item, list) {
        if (!json_is(item, JSON_STRING)) {
            api_invalid(c, "spec.audiences", item, "must be a string");
        }
    }
    if (ref && !json_is(ref, JSON_NULL)) {
        static const char *const kinds[] = {"Pod", "Secret", "Node", NULL};
        const char *kind = json_path_string(ref, "kind", NULL);
        bool known = false;
        for (size_t i = 0; kind && kinds[i]; i++) {
            known |= streq(kinds[i], kind);
        }
        if (!known || !streq_null(json_path_string(ref, "apiVersion", NULL), "v1")) {
            api_invalid(c, "spec.boundObjectRef", ref,
                        "cannot bind token for serviceaccount to this type of object");
        }
    }
}

/* The object to which the token is to be bound.  The strings of '*ret'
 * belong to '*ret_obj', '*ret_node' and 'ref'. */
static int find_bound(struct request *q, const struct json *ref, struct token_binding *ret,
                      struct json **ret_obj, struct json **ret_node, struct outcome *outcome)
{
    struct security *s = q->server->security;
    const char *kind = json_path_string(ref, "kind", NULL), *node = user_node(q->user);
    if (!kind) {
        if (!node || s->always_allow) {
            return 0;
        }
        outcome_error(outcome, 403, "Forbidden", "node requested token not bound to a pod");
        return -EACCES;
    }
    const char *plural = streq(kind, "Pod") ? "pods" : streq(kind, "Secret") ? "secrets" : "nodes";
    const char *name = json_path_string(ref, "name", NULL);
    const char *uid = json_path_string(ref, "uid", NULL), *account;
    struct json *o =
        name
            ? security_live_object(s, plural, streq(kind, "Node") ? NULL : q->namespace, name, NULL)
            : NULL;
    *ret_obj = o;
    const char *has = json_path_string(o, "metadata", "uid", NULL);
    if (!o) {
        outcome_error(outcome, 404, "NotFound", "%s \"%s\" not found", plural, name ? name : "");
        return -ENOENT;
    }
    if (uid && *uid && !streq_null(has, uid)) {
        outcome_error(outcome, 409, "Conflict",
                      "Operation cannot be fulfilled on %s \"%s\": the UID in the bound object "
                      "reference (%.64s) does not match the UID in record. The object might have "
                      "been deleted and then recreated",
                      plural, name, uid);
        return -ESTALE;
    }
    *ret = (struct token_binding){.kind = kind, .name = name, .uid = has ? has : ""};
    if (!streq(kind, "Pod")) {
        if (node && !s->always_allow) {
            outcome_error(outcome, 403, "Forbidden", "node requested token not bound to a pod");
            return -EACCES;
        }
        return 0;
    }
    const char *on = json_path_string(o, "spec", "nodeName", NULL);
    account = json_path_string(o, "spec", "serviceAccountName", NULL);
    if (!streq(account && *account ? account : "default", q->name)) {
        outcome_error(outcome, 400, "BadRequest",
                      "cannot bind token for serviceaccount \"%s\" to pod running with different "
                      "serviceaccount name.",
                      q->name);
        return -EINVAL;
    }
    if (node && !s->always_allow && !streq_null(on, node)) {
        outcome_error(outcome, 403, "Forbidden",
                      "node requested token bound to a pod scheduled on a different node");
        return -EACCES;
    }
    *ret_node = on && *on ? security_object(s, "", "nodes", NULL, on) : NULL;
    const char *node_uid = json_path_string(*ret_node, "metadata", "uid", NULL);
    if (node_uid) {
        ret->node = on;
        ret->node_uid = node_uid;
    }
    return 0;
}

/* Evaluates 'body', a TokenRequest. */
static int issue_token(struct request *q, struct json *body, struct outcome *outcome)
{
    struct security *s = q->server->security;
    CLEANUP(json_free)
    struct json *sa = security_live_object(s, "serviceaccounts", q->namespace, q->name, NULL);
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(json_free) struct json *node = NULL;
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct token_binding binding = {0};
    struct json *spec = json_ensure_object(body, "spec");
    if (!sa) {
        outcome_not_found(outcome, q->kind, q->name);
        return -ENOENT;
    }
    if (!s->keys) {
        outcome_error(outcome, 503, "ServiceUnavailable", "this server has no key for tokens");
        return -ENOKEY;
    }
    validate_token_request(spec, &causes);
    if (causes.n) {
        outcome_invalid(outcome, q->kind, q->name, &causes);
        return -EINVAL;
    }
    int r = find_bound(q, json_get(spec, "boundObjectRef"), &binding, &obj, &node, outcome);
    if (r < 0) {
        return r;
    }
    int64_t seconds = json_get_int_or(json_get(spec, "expirationSeconds"), DEFAULT_SECONDS);
    int64_t now = time_wall_ms();
    json_set_int(spec, "expirationSeconds", seconds);
    if (!json_count(json_get(spec, "audiences"))) {
        json_set(spec, "audiences", list_of(json_string(s->issuer)));
    }
    char time[TIME_TEXT_SIZE];
    CLEANUP_FREE char *token =
        token_issue(s, sa, json_get(spec, "audiences"), &binding, seconds, now);
    time_format_s(now + seconds * 1000, time);
    struct json *st = json_object(), *meta = json_ensure_object(body, "metadata");
    json_set_string(st, "token", token);
    json_set_string(st, "expirationTimestamp", time);
    json_set(body, "status", st);
    json_set_string(body, "kind", "TokenRequest");
    json_set_string(body, "apiVersion", "authentication.k8s.io/v1");
    json_set_string(meta, "name", q->name);
    json_set_string(meta, "namespace", q->namespace);
    return 0;
}

static struct json *issuer_document(const struct security *s)
{
    struct json *o = json_object();
    json_set_string(o, "issuer", s->issuer);
    json_set(o, "jwks_uri", json_stringf("%s/openid/v1/jwks", s->issuer));
    json_set(o, "response_types_supported", list_of(json_string("id_token")));
    json_set(o, "subject_types_supported", list_of(json_string("public")));
    json_set(o, "id_token_signing_alg_values_supported", jws_algorithms(s->keys));
    return o;
}

bool handle_issuer(struct request *q, struct outcome *outcome)
{
    struct security *s = q->server->security;
    const char *path = http_path(q->x);
    bool keys = streq(path, "/openid/v1/jwks") || streq(path, "/openid/v1/jwks/");
    if (!s->keys || (!keys && !streq(path, "/.well-known/openid-configuration") &&
                     !streq(path, "/.well-known/openid-configuration/"))) {
        return false;
    }
    CLEANUP(json_free) struct json *o = keys ? jws_public_set(s->keys) : issuer_document(s);
    if (!streq(http_method(q->x), "GET")) {
        outcome_error(outcome, 405, "MethodNotAllowed", "only GET is possible");
    } else {
        outcome_json(outcome, 200, keys ? "application/jwk-set+json" : "application/json", TAKE(o));
    }
    return true;
}

/* ---- dispatch ---- */

/* Refuses a malformed request with causes. */
static int validate(struct request *q, const struct json *body, struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    api_schema_validate(api_kind_schema(q->kind), body, &causes);
    if (!causes.n && q->kind->validate) {
        q->kind->validate(body, NULL, &causes);
    }
    if (causes.n) {
        outcome_invalid(outcome, q->kind, "", &causes);
        return -EINVAL;
    }
    return 0;
}

static struct json *status_of(struct request *q, const struct json *spec)
{
    struct security *s = q->server->security;
    const char *kind = q->kind->kind;
    if (streq(q->kind->group, SCC_GROUP)) {
        return scc_review_status(q, spec);
    }
    if (streq(kind, "TokenReview")) {
        return token_status(s, spec);
    }
    if (streq(kind, "SelfSubjectReview")) {
        struct json *st = json_object();
        json_set(st, "userInfo", user_object(q->user));
        return st;
    }
    if (streq(kind, "SelfSubjectRulesReview")) {
        return rules_status(s, q->user, spec);
    }
    if (streq(kind, "SelfSubjectAccessReview")) {
        return access_status(s, q->user, spec);
    }
    CLEANUP(user_unref) struct user_info *u = user_of(spec);
    return access_status(s, u, spec);
}

void handle_review(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    struct err e = {0};
    struct object_target target = {.kind = q->kind, .namespace = q->namespace};
    if (write_read_body(q, &body, outcome) < 0) {
        return;
    }
    bool token = q->subresource[0];
    if (token ? !json_is(body, JSON_OBJECT) ||
                    (json_get(body, "spec") && !json_is(json_get(body, "spec"), JSON_OBJECT))
              : object_check_target(body, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s",
                      token ? "the body is not a TokenRequest" : e.text);
        return;
    }
    if (token) {
        if (issue_token(q, body, outcome) == 0) {
            outcome_json(outcome, 201, NULL, TAKE(body));
        }
        return;
    }
    /* Only the server sets the status; a status sent by the client is ignored. */
    json_remove(body, "status");
    if (fields_prune(q, body, false, outcome) < 0) {
        return;
    }
    api_typed_normalize(q->kind->schema, body);
    object_complete(q->kind, body);
    if (validate(q, body, outcome) < 0) {
        return;
    }
    CLEANUP_FREE char *version = request_api_version(q);
    json_set_string(body, "kind", q->kind->kind);
    json_set_string(body, "apiVersion", version);
    if (openshift_review_is_asked(q)) {
        if (openshift_review_body(q, &body, outcome) < 0) {
            return;
        }
        outcome_json(outcome, 201, NULL, TAKE(body));
        return;
    }
    if (!process_is_asked(q)) {
        json_set(body, "status", status_of(q, json_get(body, "spec")));
    } else if (process_body(q, &body, outcome) < 0) {
        return;
    }
    object_complete(q->kind, body);
    outcome_json(outcome, 201, NULL, TAKE(body));
}
