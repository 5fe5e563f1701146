/* SPDX-License-Identifier: Apache-2.0 */
/* Bearer tokens: those of service accounts (signed by this server) and those of
 * nodes that join (Secrets of kube-system).
 *
 * A token of an account is valid as long as the account, and the object that
 * it is bound to, exist with the same uid. */
#include "apiserver/access/token.h"

#include "apiserver/access/authn.h"
#include "apiserver/access/oauth_token.h"
#include "base/base64.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "oauth/token.h"

#include <stdio.h>

#define LEGACY_ISSUER "kubernetes/serviceaccount"
#define LEGACY_PREFIX "kubernetes.io/serviceaccount/"
#define LEEWAY_S 10 /* Clock difference allowed between several masters. */
#define EXTRA_PREFIX "authentication.kubernetes.io/"

#define BOOTSTRAP_NS "kube-system"
#define BOOTSTRAP_TYPE "bootstrap.kubernetes.io/token"
#define BOOTSTRAP_ID 6
#define BOOTSTRAP_SECRET 16

static int refuse(struct err *e, const char *why)
{
    return err_set(e, -EPERM, "%s", why);
}

/* ---- bootstrap tokens ---- */

static bool is_bootstrap(const char *token)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    return strlen(token) == BOOTSTRAP_ID + 1 + BOOTSTRAP_SECRET && token[BOOTSTRAP_ID] == '.' &&
           strspn(token, letters) == BOOTSTRAP_ID &&
           strspn(token + BOOTSTRAP_ID + 1, letters) == BOOTSTRAP_SECRET;
}

/* A value of a Secret, decoded; '*b' empty when absent. */
static const char *secret_value(const struct json *secret, const char *key, struct strbuf *b)
{
    const struct json *v = json_path(secret, "data", key, NULL);
    strbuf_reset(b);
    if (json_is(v, JSON_STRING)) {
        (void) base64_decode(json_get_string(v), json_string_size(v), b);
    }
    return strbuf_cstr(b);
}

static void add_groups(struct user_info *u, const char *list)
{
    static const char prefix[] = GROUP_BOOTSTRAPPERS ":";
    user_add_group(u, GROUP_BOOTSTRAPPERS);
    while (*list) {
        size_t n = strcspn(list, ",");
        CLEANUP_FREE char *group = xstrndup(list, n);
        /* Only groups with this prefix can be granted by a bootstrap token. */
        if (str_has_prefix(group, prefix) && group[sizeof prefix - 1]) {
            user_add_group(u, group);
        }
        list += n + (list[n] == ',');
    }
}

static int bootstrap(struct security *s, const char *token, int64_t now_ms, struct user_info **ret,
                     struct err *e)
{
    CLEANUP_FREE char *id = xstrndup(token, BOOTSTRAP_ID);
    CLEANUP_FREE char *name = xasprintf("bootstrap-token-%s", id);
    CLEANUP(json_free)
    struct json *secret = security_live_object(s, "secrets", BOOTSTRAP_NS, name, NULL);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!secret || !streq_null(json_path_string(secret, "type", NULL), BOOTSTRAP_TYPE) ||
        !streq(secret_value(secret, "token-id", &b), id)) {
        return refuse(e, "no such bootstrap token");
    }
    const char *value = secret_value(secret, "token-secret", &b);
    if (!secret_equal(token + BOOTSTRAP_ID + 1, BOOTSTRAP_SECRET, value, b.size)) {
        return refuse(e, "the bootstrap token's secret is wrong");
    }
    int64_t until;
    const char *expiration = secret_value(secret, "expiration", &b);
    if (*expiration && (time_parse(expiration, &until) < 0 || until <= now_ms)) {
        return refuse(e, "the bootstrap token has expired");
    }
    if (!streq(secret_value(secret, "usage-bootstrap-authentication", &b), "true")) {
        return refuse(e, "the bootstrap token is not for authentication");
    }
    CLEANUP_FREE char *user = xasprintf("system:bootstrap:%s", id);
    struct user_info *u = user_new(user);
    add_groups(u, secret_value(secret, "auth-extra-groups", &b));
    user_add_group(u, GROUP_AUTHENTICATED);
    *ret = u;
    return 0;
}

/* ---- tokens of service accounts ---- */

/* The account with its groups; -EPERM: it does not exist, or has another uid. */
static int account(struct security *s, const char *ns, const char *name, const char *uid,
                   const char *subject, struct user_info **ret, struct err *e)
{
    CLEANUP_FREE char *full = xasprintf(SERVICE_ACCOUNT_PREFIX "%s:%s", ns, name);
    if (!*ns || !*name || !*uid || !streq(full, subject)) {
        return refuse(e, "the token's claims do not agree");
    }
    CLEANUP(json_free)
    struct json *sa = security_live_object(s, "serviceaccounts", ns, name, uid);
    if (!sa) {
        return refuse(e, "the token's service account is gone");
    }
    *ret = user_service_account(ns, name, uid);
    user_add_group(*ret, GROUP_AUTHENTICATED);
    return 0;
}

/* Checks a token that is stored in a Secret: it is valid as long as the Secret contains
 * exactly it. */
static int legacy(struct security *s, const char *token, const struct json *claims,
                  struct user_info **ret, struct err *e)
{
    const char *ns = json_get_text(claims, LEGACY_PREFIX "namespace");
    const char *name = json_get_text(claims, LEGACY_PREFIX "secret.name");
    CLEANUP(json_free) struct json *secret = security_live_object(s, "secrets", ns, name, NULL);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const char *value = secret_value(secret, "token", &b);
    if (!secret || !secret_equal(token, strlen(token), value, b.size)) {
        return refuse(e, "the token's secret is gone");
    }
    return account(s, ns, json_get_text(claims, LEGACY_PREFIX "service-account.name"),
                   json_get_text(claims, LEGACY_PREFIX "service-account.uid"),
                   json_get_text(claims, "sub"), ret, e);
}

static bool is_for(const struct json *aud, const char *audience)
{
    const struct json *item;
    if (json_is(aud, JSON_STRING)) {
        return streq(json_get_string(aud), audience);
    }
    JSON_FOREACH (item, aud) {
        if (streq_null(json_get_string(item), audience)) {
            return true;
        }
    }
    return false;
}

/* The audiences in 'wanted' that the token is for; NULL: none. */
static struct json *audiences_of(const struct security *s, const struct json *aud,
                                 const struct json *wanted)
{
    CLEANUP(json_free) struct json *list = json_array();
    const struct json *item;
    if (!json_count(wanted) && is_for(aud, s->issuer)) {
        json_append(list, json_string(s->issuer));
    }
    JSON_FOREACH (item, wanted) {
        if (json_is(item, JSON_STRING) && is_for(aud, json_get_string(item))) {
            json_append(list, json_string(json_get_string(item)));
        }
    }
    return json_count(list) ? TAKE(list) : NULL;
}

static int check_times(const struct json *claims, int64_t now_ms, struct err *e)
{
    int64_t now = now_ms / 1000, exp, nbf;
    if (json_get_int(json_get(claims, "exp"), &exp) < 0) {
        return refuse(e, "the token has no time of expiry");
    }
    if (exp <= now) {
        return refuse(e, "the token has expired");
    }
    if (json_get(claims, "nbf") &&
        (json_get_int(json_get(claims, "nbf"), &nbf) < 0 || nbf > now + LEEWAY_S)) {
        return refuse(e, "the token is not valid yet");
    }
    return 0;
}

/* The Pod, Secret or Node that the token is bound to must exist. */
static int check_binding(struct security *s, const struct json *private, const char *ns,
                         struct user_info *u, struct err *e)
{
    static const struct {
        const char *claim, *plural;
        bool namespaced;
    } kinds[] = {{"pod", "pods", true}, {"secret", "secrets", true}, {"node", "nodes", false}};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct json *ref = json_get(private, kinds[i].claim);
        const char *name = json_get_text(ref, "name"), *uid = json_get_text(ref, "uid");
        /* The node in a pod's token is informative only and is not checked. */
        bool informative = streq(kinds[i].claim, "node") && json_get(private, "pod");
        if (!ref) {
            continue;
        }
        CLEANUP(json_free)
        struct json *o = informative
                             ? NULL
                             : security_live_object(s, kinds[i].plural,
                                                    kinds[i].namespaced ? ns : NULL, name, uid);
        if (!*name || !*uid || (!o && !informative)) {
            return refuse(e, "what the token is bound to is gone");
        }
        CLEANUP_FREE char *name_key = xasprintf(EXTRA_PREFIX "%s-name", kinds[i].claim);
        CLEANUP_FREE char *uid_key = xasprintf(EXTRA_PREFIX "%s-uid", kinds[i].claim);
        user_add_extra(u, name_key, name);
        user_add_extra(u, uid_key, uid);
    }
    return 0;
}

static int bound(struct security *s, const struct json *claims, int64_t now_ms,
                 struct user_info **ret, struct err *e)
{
    CLEANUP(user_unref) struct user_info *u = NULL;
    const struct json *private = json_get(claims, "kubernetes.io");
    const struct json *sa = json_get(private, "serviceaccount");
    const char *ns = json_get_text(private, "namespace"), *id = json_get_text(claims, "jti");
    int r = check_times(claims, now_ms, e);
    if (r < 0 ||
        (r = account(s, ns, json_get_text(sa, "name"), json_get_text(sa, "uid"),
                     json_get_text(claims, "sub"), &u, e)) < 0 ||
        (r = check_binding(s, private, ns, u, e)) < 0) {
        return r;
    }
    if (*id) {
        CLEANUP_FREE char *credential = xasprintf("JTI=%s", id);
        user_add_extra(u, EXTRA_PREFIX "credential-id", credential);
    }
    *ret = TAKE(u);
    return 0;
}

int token_authenticate(struct security *s, const char *token, const struct json *audiences,
                       int64_t now_ms, struct user_info **ret, struct json **ret_audiences,
                       struct err *e)
{
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    CLEANUP(json_free) struct json *list = NULL;
    struct err why = {0};
    bool oauth = oauth_token_has_form(token);
    if (oauth || is_bootstrap(token) || !s->keys || jwt_parse(token, &t, &why) < 0) {
        /* OAuth and bootstrap tokens have no audiences of their own: they are valid for the API
         * server. */
        bool asked = audiences || ret_audiences;
        CLEANUP(json_free) struct json *us = asked ? json_string(s->issuer) : NULL;
        list = asked ? audiences_of(s, us, audiences) : NULL;
        if ((!oauth && !is_bootstrap(token)) || (asked && !list)) {
            return refuse(e, why.code ? why.text : "not a token of ours");
        }
        int r = (oauth ? oauth_token_authenticate : bootstrap)(s, token, now_ms, ret, e);
        if (r == 0 && ret_audiences) {
            *ret_audiences = TAKE(list);
        }
        return r;
    }
    if (jws_verify(s->keys, token, &t, &why) < 0) {
        return refuse(e, why.text);
    }
    const char *issuer = json_get_text(t.claims, "iss");
    bool old = streq(issuer, LEGACY_ISSUER);
    if (!old && !streq(issuer, s->issuer)) {
        return refuse(e, "the token is by another issuer");
    }
    CLEANUP(json_free) struct json *us = json_string(s->issuer);
    list = audiences_of(s, old ? us : json_get(t.claims, "aud"), audiences);
    if (!list) {
        return refuse(e, "the token is for another audience");
    }
    int r = old ? legacy(s, token, t.claims, ret, e) : bound(s, t.claims, now_ms, ret, e);
    if (r == 0 && ret_audiences) {
        *ret_audiences = TAKE(list);
    }
    return r;
}

/* ---- issuing ---- */

static const char *meta(const struct json *o, const char *key)
{
    return json_get_text(json_get(o, "metadata"), key);
}

static struct json *reference(const char *name, const char *uid)
{
    struct json *o = json_object();
    json_set_string(o, "name", name);
    json_set_string(o, "uid", uid);
    return o;
}

static void set_subject(struct json *claims, const struct json *sa)
{
    json_set(claims, "sub",
             json_stringf(SERVICE_ACCOUNT_PREFIX "%s:%s", meta(sa, "namespace"), meta(sa, "name")));
}

char *token_issue(const struct security *s, const struct json *sa, const struct json *audiences,
                  const struct token_binding *b, int64_t seconds, int64_t now_ms)
{
    CLEANUP(json_free) struct json *claims = json_object();
    int64_t now = now_ms / 1000;
    char hex[2 * 16 + 1];
    random_hex(hex, 16);
    json_set(claims, "aud", json_clone(audiences));
    json_set_int(claims, "exp", now + seconds);
    json_set_int(claims, "iat", now);
    json_set_string(claims, "iss", s->issuer);
    json_set_string(claims, "jti", hex);
    struct json *private = json_ensure_object(claims, "kubernetes.io");
    json_set_string(private, "namespace", meta(sa, "namespace"));
    if (b->kind) {
        const char *claim = streq(b->kind, "Pod")      ? "pod"
                            : streq(b->kind, "Secret") ? "secret"
                                                       : "node";
        json_set(private, claim, reference(b->name, b->uid));
    }
    if (b->node) {
        json_set(private, "node", reference(b->node, b->node_uid));
    }
    json_set(private, "serviceaccount", reference(meta(sa, "name"), meta(sa, "uid")));
    json_set_int(claims, "nbf", now);
    set_subject(claims, sa);
    return jws_sign(s->keys, claims);
}

char *satoken_issue(const struct jws_keys *keys, const struct json *sa, const char *secret)
{
    CLEANUP(json_free) struct json *claims = json_object();
    json_set_string(claims, "iss", LEGACY_ISSUER);
    json_set_string(claims, LEGACY_PREFIX "namespace", meta(sa, "namespace"));
    json_set_string(claims, LEGACY_PREFIX "secret.name", secret);
    json_set_string(claims, LEGACY_PREFIX "service-account.name", meta(sa, "name"));
    json_set_string(claims, LEGACY_PREFIX "service-account.uid", meta(sa, "uid"));
    set_subject(claims, sa);
    return jws_sign(keys, claims);
}
