/* SPDX-License-Identifier: Apache-2.0 */
/* OpenIDIdentityProvider, and Google's and GitLab's, which are OpenID Connect with a fixed issuer
 * (OpenID Connect Core 1.0, Discovery 1.0): code flow with PKCE (RFC 7636).
 *
 * The provider's metadata is read at start, again after failures, and once an hour; its keys when a
 * token is signed by one that is not known, at most every KEYS_MIN_MS. */
#include "base/backoff.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "identity/id_token.h"
#include "identity/kinds.h"
#include "identity/oauth_client.h"
#include "identity/peer_attempt.h"
#include "identity/remote.h"
#include "identity/secret.h"
#include "net/tls/jws.h"
#include "wire/http1.h"

LOG_MODULE("identity");

#define REFRESH_MS 3600000
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 60000
#define KEYS_MIN_MS 5000

struct openid {
    struct identity_provider base;
    struct loop *loop;
    struct json *config;
    char *secret;
    const char *hosted_domain; /* Google's; "": any. */
    /* URLs in force; NULL: not known yet, or there is none. */
    char *authorize;
    struct remote *token, *user_info, *jwks;
    bool post_secret; /* The token's URL takes the secret in the body only. */
    bool has_metadata;
    struct err problem; /* Why there is no metadata. */
    struct remote *discovery;
    struct remote_call *discovering;
    struct loop_timer *timer;
    struct backoff backoff;
    struct jws_keys *keys;
    uint64_t keys_ms; /* When they were read; 0: never. */
    struct list attempts;
};

struct openid_attempt {
    struct peer_attempt base;
    struct openid *provider;
    struct remote_call *call;
    char *nonce;
    char *id_token, *access_token;
    struct json *claims;
    bool keys_are_fresh; /* They were read for this attempt. */
};

static const struct config_row claim_rows[] = {
    {"id", CONFIG_TEXTS, true, NULL},      {"preferredUsername", CONFIG_TEXTS, false, NULL},
    {"name", CONFIG_TEXTS, false, NULL},   {"email", CONFIG_TEXTS, false, NULL},
    {"groups", CONFIG_TEXTS, false, NULL}, {0}};
static const struct config_row url_rows[] = {{"authorize", CONFIG_TEXT, false, NULL},
                                             {"token", CONFIG_TEXT, false, NULL},
                                             {"userInfo", CONFIG_TEXT, false, NULL},
                                             {"jwks", CONFIG_TEXT, false, NULL},
                                             {0}};
static const struct config_row rows[] = {{"clientID", CONFIG_TEXT, true, NULL},
                                         {"clientSecret", CONFIG_SECRET, true, NULL},
                                         {"issuer", CONFIG_TEXT, true, NULL},
                                         {"ca", CONFIG_TEXT, false, NULL},
                                         {"extraScopes", CONFIG_TEXTS, false, NULL},
                                         {"extraAuthorizeParameters", CONFIG_MAP, false, NULL},
                                         {"claims", CONFIG_OBJECT, true, claim_rows},
                                         {"urls", CONFIG_OBJECT, false, url_rows},
                                         {0}};

/* Parameters of an authorization request that the configuration cannot change. */
static bool is_ours(const char *name)
{
    static const char *const names[] = {
        "response_type", "client_id", "redirect_uri",   "scope",
        "state",         "nonce",     "code_challenge", "code_challenge_method",
        "response_mode", "request",   "request_uri"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(names[i], name)) {
            return true;
        }
    }
    return false;
}

static int check(const struct json *provider, struct err *e)
{
    int r = config_rows_check(provider, rows, e);
    if (r < 0) {
        return r;
    }
    const char *issuer = json_get_text(provider, "issuer");
    if (strchr(issuer, '?') || remote_check_url(issuer, true, e) < 0) {
        return err_set(e, -EINVAL, "issuer: \"%.200s\" is no https URL without a query", issuer);
    }
    const struct json *urls = json_get(provider, "urls");
    for (size_t i = 0; i < json_count(urls); i++) {
        if (remote_check_url(json_get_string(json_at(urls, i)), true, e) < 0) {
            return err_prefix(e, "urls.%s", json_key_at(urls, i));
        }
    }
    const struct json *extra = json_get(provider, "extraAuthorizeParameters");
    for (size_t i = 0; i < json_count(extra); i++) {
        if (is_ours(json_key_at(extra, i))) {
            return err_set(e, -EINVAL, "extraAuthorizeParameters.%s: is set by the server",
                           json_key_at(extra, i));
        }
    }
    return 0;
}

/* ---- metadata ---- */

static void forget_metadata(struct openid *p)
{
    free(TAKE(p->authorize));
    p->token = remote_free(p->token);
    p->user_info = remote_free(p->user_info);
    p->jwks = remote_free(p->jwks);
}

static const char *url_of(const struct openid *p, const struct json *metadata, const char *key,
                          const char *member)
{
    const char *configured = json_path_string(p->config, "urls", key, NULL);
    return configured ? configured : json_get_text(metadata, member);
}

static int make_remote(struct openid *p, const char *url, struct remote **ret, struct err *e)
{
    struct remote_config cfg = {
        .url = url, .https_only = true, .ca = json_get_text(p->config, "ca")};
    return *url ? remote_new(p->loop, &cfg, ret, e) : 0;
}

static bool has_text(const struct json *list, const char *text)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), text)) {
            return true;
        }
    }
    return false;
}

/* Takes the metadata in force; nothing changes on failure. */
static int use_metadata(struct openid *p, const struct json *metadata, struct err *e)
{
    const char *authorize = url_of(p, metadata, "authorize", "authorization_endpoint");
    const char *token = url_of(p, metadata, "token", "token_endpoint");
    const char *jwks = url_of(p, metadata, "jwks", "jwks_uri");
    struct remote *made[3] = {NULL};
    int r = remote_check_url(authorize, true, e);
    r = r < 0 ? err_prefix(e, "authorization_endpoint") : make_remote(p, token, &made[0], e);
    r = r < 0 ? r : make_remote(p, jwks, &made[1], e);
    r = r < 0 ? r
              : make_remote(p, url_of(p, metadata, "userInfo", "userinfo_endpoint"), &made[2], e);
    if (r == 0 && (!made[0] || !made[1])) {
        r = err_set(e, -EINVAL, "no token_endpoint or no jwks_uri");
    }
    if (r < 0) {
        for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
            remote_free(made[i]);
        }
        return r;
    }
    const struct json *methods = json_get(metadata, "token_endpoint_auth_methods_supported");
    forget_metadata(p);
    p->authorize = xstrdup(authorize);
    p->token = made[0];
    p->jwks = made[1];
    p->user_info = made[2];
    p->post_secret =
        has_text(methods, "client_secret_post") && !has_text(methods, "client_secret_basic");
    p->has_metadata = true;
    return 0;
}

static void discovery_failed(struct openid *p, const char *why)
{
    uint32_t seed;
    random_bytes(&seed, sizeof seed);
    err_set(&p->problem, -EAGAIN, "metadata of %s: %s", json_get_text(p->config, "issuer"), why);
    log_warn("identity provider: cannot read its metadata, trying again", "error=\"%s\"",
             p->problem.text);
    loop_timer_arm(p->timer, backoff_fail(&p->backoff, loop_now_ms(p->loop), seed));
}

static void discovered(void *ctx, const struct http_result *r)
{
    struct openid *p = ctx;
    CLEANUP(json_free) struct json *o = NULL;
    struct err e = {0};
    p->discovering = NULL;
    if (r->error) {
        err_set(&e, -EIO, "%s", r->error_text);
    } else if (r->status != 200) {
        err_set(&e, -EIO, "status %d", r->status);
    } else if (json_parse(r->body, r->size, &o, &e) == 0) {
        if (!streq(json_get_text(o, "issuer"), json_get_text(p->config, "issuer"))) {
            err_set(&e, -EIO, "it names the issuer \"%.100s\"", json_get_text(o, "issuer"));
        } else if (!list_is_empty(&p->attempts)) {
            loop_timer_arm(p->timer, RETRY_MIN_MS); /* Attempts use the URLs in force. */
            return;
        } else {
            (void) use_metadata(p, o, &e);
        }
    }
    if (e.code) {
        discovery_failed(p, e.text);
        return;
    }
    backoff_reset(&p->backoff);
    loop_timer_arm(p->timer, REFRESH_MS);
}

static void discover(void *ctx)
{
    struct openid *p = ctx;
    p->discovering = remote_call(p->discovery, "GET", NULL, NULL, NULL, NULL, discovered, p);
}

/* ---- providers ---- */

static void close_openid(struct identity_provider *base)
{
    struct openid *p = CONTAINER_OF(base, struct openid, base);
    peer_attempts_cancel(&p->attempts);
    remote_call_cancel(p->discovering);
    forget_metadata(p);
    remote_free(p->discovery);
    loop_timer_free(p->timer);
    jws_keys_free(p->keys);
    secret_text_free(p->secret);
    json_free(p->config);
    free(p);
}

static int begin_metadata(struct openid *p, struct err *e)
{
    const struct json *urls = json_get(p->config, "urls");
    if (json_get(urls, "authorize") && json_get(urls, "token") && json_get(urls, "jwks")) {
        return use_metadata(p, NULL, e);
    }
    const char *issuer = json_get_text(p->config, "issuer");
    size_t n = strlen(issuer);
    n -= n && issuer[n - 1] == '/';
    CLEANUP_FREE char *url = xasprintf("%.*s/.well-known/openid-configuration", (int) n, issuer);
    err_set(&p->problem, -EAGAIN, "the metadata of %s was not read yet", issuer);
    int r = make_remote(p, url, &p->discovery, e);
    if (r == 0) {
        discover(p);
    }
    return r;
}

static int open_kind(struct loop *l, const struct identity_kind *kind, struct json *config,
                     const char *hosted_domain, struct identity_provider **ret, struct err *e)
{
    struct openid *p = NEW(struct openid);
    p->base.kind = kind;
    p->loop = l;
    p->config = config;
    p->hosted_domain = hosted_domain;
    p->backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    p->timer = loop_timer_new(l, discover, p);
    list_init(&p->attempts);
    int r = secret_read(json_get(config, "clientSecret"), &p->secret, e);
    r = r < 0 ? err_prefix(e, "clientSecret") : begin_metadata(p, e);
    if (r < 0) {
        close_openid(&p->base);
        return r;
    }
    *ret = &p->base;
    return 0;
}

static int open_openid(struct loop *l, const struct json *config, struct identity_provider **ret,
                       struct err *e)
{
    return open_kind(l, &identity_openid, json_clone(config), "", ret, e);
}

/* ---- redirects ---- */

static int redirect(struct identity_provider *base, const struct identity_redirect *r,
                    struct strbuf *url, struct err *e)
{
    struct openid *p = CONTAINER_OF(base, struct openid, base);
    if (!p->has_metadata) {
        return err_set(e, -EAGAIN, "%s", p->problem.text);
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, scope = STRBUF_INIT;
    strbuf_adds(&scope, "openid");
    const struct json *item;
    JSON_FOREACH (item, json_get(p->config, "extraScopes")) {
        strbuf_addf(&scope, " %s", json_get_string(item));
    }
    strbuf_adds(&out, p->authorize);
    oauth_client_add_parameter(&out, "response_type", "code");
    oauth_client_add_parameter(&out, "client_id", json_get_text(p->config, "clientID"));
    oauth_client_add_parameter(&out, "redirect_uri", r->callback);
    oauth_client_add_parameter(&out, "scope", scope.data);
    oauth_client_add_parameter(&out, "state", r->state);
    oauth_client_add_parameter(&out, "nonce", r->nonce);
    oauth_client_add_challenge(&out, r->verifier);
    const struct json *extra = json_get(p->config, "extraAuthorizeParameters");
    for (size_t i = 0; i < json_count(extra); i++) {
        oauth_client_add_parameter(&out, json_key_at(extra, i), json_get_string(json_at(extra, i)));
    }
    return strbuf_adds(url, out.data);
}

/* ---- attempts ---- */

static void fetch_keys(struct openid_attempt *a);

/* The call's answer as an object; NULL: the attempt has ended. */
static struct json *answer(struct openid_attempt *a, const struct http_result *r, const char *what)
{
    struct json *o = NULL;
    a->call = NULL;
    if (r->error) {
        peer_attempt_fail(&a->base, "%s: %s", what, r->error_text);
        return NULL;
    }
    int parsed = json_parse(r->body, r->size, &o, NULL);
    if (r->status != 200) {
        peer_attempt_fail(&a->base, "%s: status %d, error \"%.100s\"", what, r->status,
                          json_get_text(o, "error"));
    } else if (parsed < 0 || !json_is(o, JSON_OBJECT)) {
        peer_attempt_fail(&a->base, "%s: no JSON object", what);
    } else {
        return o;
    }
    json_free(o);
    return NULL;
}

static void prove(struct openid_attempt *a, const struct json *user_info)
{
    struct openid *p = a->provider;
    struct identity id = {0};
    struct err e = {0};
    if (*p->hosted_domain && !streq(json_get_text(a->claims, "hd"), p->hosted_domain)) {
        peer_attempt_refuse(&a->base, "\"hd\" is \"%.100s\", not \"%.100s\"",
                            json_get_text(a->claims, "hd"), p->hosted_domain);
    } else if (id_token_identity(a->claims, user_info, json_get(p->config, "claims"), &id, &e) <
               0) {
        peer_attempt_fail(&a->base, "%s", e.text);
    } else {
        peer_attempt_prove(&a->base, &id);
    }
    identity_done(&id);
}

static void got_user_info(void *ctx, const struct http_result *r)
{
    struct openid_attempt *a = ctx;
    CLEANUP(json_free) struct json *o = answer(a, r, "userInfo");
    if (o && !streq(json_get_text(o, "sub"), json_get_text(a->claims, "sub"))) {
        /* OpenID Connect Core, 5.3.2. */
        peer_attempt_fail(&a->base, "userInfo: \"sub\" is not that of the id_token");
    } else if (o) {
        prove(a, o);
    }
}

static void verified(struct openid_attempt *a)
{
    struct openid *p = a->provider;
    struct err e = {0};
    struct id_token_rules rules = {.issuer = json_get_text(p->config, "issuer"),
                                   .client_id = json_get_text(p->config, "clientID"),
                                   .nonce = a->nonce,
                                   .access_token = a->access_token,
                                   .now_s = time_wall_ms() / 1000};
    if (id_token_check(a->claims, &rules, &e) < 0) {
        peer_attempt_fail(&a->base, "%s", e.text);
        return;
    }
    if (!p->user_info || !a->access_token) {
        prove(a, NULL);
        return;
    }
    struct strbuf header = STRBUF_INIT;
    char *value = xasprintf("Bearer %s", a->access_token);
    if (http1_add_header(&header, "Authorization", value) < 0) {
        peer_attempt_fail(&a->base, "the access token cannot be sent in a header");
    } else {
        a->base.stage = "userInfo";
        a->call = remote_call(p->user_info, "GET", NULL, header.data, NULL, NULL, got_user_info, a);
        explicit_bzero(header.data, header.size);
    }
    strbuf_done(&header);
    secret_text_free(value);
}

/* Verifies the signature, with newer keys if it is by none of those that are known. */
static void verify(struct openid_attempt *a)
{
    struct openid *p = a->provider;
    CLEANUP(jwt_done) struct jwt t = {.signature = STRBUF_INIT};
    struct err e = {0};
    if (jwt_parse(a->id_token, &t, &e) < 0) {
        peer_attempt_fail(&a->base, "id_token: %s", e.text);
        return;
    }
    if (p->keys && jws_verify(p->keys, a->id_token, &t, &e) == 0) {
        a->claims = TAKE(t.claims);
        verified(a);
        return;
    }
    bool recent = p->keys && loop_now_ms(p->loop) - p->keys_ms < KEYS_MIN_MS;
    if (a->keys_are_fresh || recent) {
        peer_attempt_fail(&a->base, "id_token: alg \"%.20s\": %s", json_get_text(t.header, "alg"),
                          e.text);
        return;
    }
    fetch_keys(a);
}

static void got_keys(void *ctx, const struct http_result *r)
{
    struct openid_attempt *a = ctx;
    struct openid *p = a->provider;
    CLEANUP(json_free) struct json *o = answer(a, r, "keys (jwks)");
    if (!o) {
        return;
    }
    struct jws_keys *keys = jws_keys_new();
    const struct json *item;
    size_t n = 0;
    JSON_FOREACH (item, json_get(o, "keys")) {
        const char *use = json_get_text(item, "use");
        /* Keys of other kinds and for encryption may be among them. */
        n += (!*use || streq(use, "sig")) && jws_keys_add_jwk(keys, item, NULL) == 0;
    }
    if (!n) {
        jws_keys_free(keys);
        peer_attempt_fail(&a->base,
                          "keys (jwks): no RSA key of 2,048 bits or more and none on P-256");
        return;
    }
    jws_keys_free(p->keys);
    p->keys = keys;
    p->keys_ms = loop_now_ms(p->loop);
    a->keys_are_fresh = true;
    verify(a);
}

static void fetch_keys(struct openid_attempt *a)
{
    a->base.stage = "keys (jwks)";
    a->call = remote_call(a->provider->jwks, "GET", NULL, NULL, NULL, NULL, got_keys, a);
}

static void got_token(void *ctx, const struct http_result *r)
{
    struct openid_attempt *a = ctx;
    CLEANUP(json_free) struct json *o = answer(a, r, "token");
    if (!o) {
        return;
    }
    const char *id_token = json_get_text(o, "id_token"), *access = json_get_text(o, "access_token");
    if (!*id_token) {
        peer_attempt_fail(&a->base, "token: the answer has no id_token");
        return;
    }
    a->id_token = xstrdup(id_token);
    a->access_token = *access ? xstrdup(access) : NULL;
    verify(a);
}

static void stop(struct peer_attempt *base)
{
    struct openid_attempt *a = CONTAINER_OF(base, struct openid_attempt, base);
    a->call = remote_call_cancel(a->call);
    secret_text_free(TAKE(a->nonce));
    secret_text_free(TAKE(a->id_token));
    secret_text_free(TAKE(a->access_token));
    a->claims = json_free(a->claims);
}

/* RFC 6749, 2.3.1: name and secret are escaped before they are joined. */
static void add_basic(struct strbuf *header, const char *id, const char *secret)
{
    struct strbuf pair = STRBUF_INIT;
    http1_escape(id, &pair);
    strbuf_addc(&pair, ':');
    http1_escape(secret, &pair);
    strbuf_adds(header, "Authorization: Basic ");
    base64_encode(pair.data, pair.size, header);
    strbuf_adds(header, "\r\n");
    explicit_bzero(pair.data, pair.size);
    strbuf_done(&pair);
}

static void ask_token(struct openid_attempt *a, const struct identity_redirect *r, const char *code)
{
    struct openid *p = a->provider;
    const char *id = json_get_text(p->config, "clientID");
    struct strbuf body = STRBUF_INIT, header = STRBUF_INIT;
    oauth_client_add_field(&body, "grant_type", "authorization_code");
    oauth_client_add_field(&body, "code", code);
    oauth_client_add_field(&body, "redirect_uri", r->callback);
    oauth_client_add_field(&body, "code_verifier", r->verifier);
    if (p->post_secret) {
        oauth_client_add_field(&body, "client_id", id);
        oauth_client_add_field(&body, "client_secret", p->secret);
    } else {
        add_basic(&header, id, p->secret);
    }
    a->base.stage = "token";
    a->call = remote_call(p->token, "POST", NULL, strbuf_cstr(&header),
                          "application/x-www-form-urlencoded", body.data, got_token, a);
    explicit_bzero(body.data, body.size);
    if (header.data) {
        explicit_bzero(header.data, header.size);
    }
    strbuf_done(&body);
    strbuf_done(&header);
}

static struct identity_attempt *callback(struct identity_provider *base,
                                         const struct identity_redirect *r,
                                         const struct http_exchange *x, identity_fn *fn, void *ctx)
{
    struct openid *p = CONTAINER_OF(base, struct openid, base);
    struct openid_attempt *a = NEW(struct openid_attempt);
    const char *error = http_query(x, "error"), *code = http_query(x, "code");
    const char *iss = http_query(x, "iss");
    a->provider = p;
    a->nonce = xstrdup(r->nonce);
    peer_attempt_begin(&a->base, p->loop, &p->attempts, stop, fn, ctx);
    if (iss && !streq(iss, json_get_text(p->config, "issuer"))) {
        /* RFC 9207: an answer of another provider. */
        peer_attempt_fail(&a->base, "\"iss\" of the answer is not the issuer");
    } else if (error && streq(error, "access_denied")) {
        peer_attempt_refuse(&a->base, "the provider answered access_denied");
    } else if (error) {
        peer_attempt_fail(&a->base, "the provider answered the error \"%.100s\"", error);
    } else if (!code || !*code) {
        peer_attempt_fail(&a->base, "the answer has no code");
    } else if (!p->has_metadata) {
        peer_attempt_fail(&a->base, "%s", p->problem.text);
    } else if (!peer_attempts_full(&a->base, &p->attempts)) {
        ask_token(a, r, code);
    }
    return &a->base.base;
}

const struct identity_kind identity_openid = {.name = "OpenIDIdentityProvider",
                                              .check = check,
                                              .open = open_openid,
                                              .close = close_openid,
                                              .redirect = redirect,
                                              .callback = callback};

/* ---- Google and GitLab ---- */

static struct json *texts(const char *a, const char *b)
{
    struct json *list = json_array();
    json_append(list, json_string(a));
    json_append(list, b ? json_string(b) : NULL);
    return list;
}

/* The configuration as one of OpenID; owned. */
static struct json *as_openid(const struct json *config, const char *issuer)
{
    struct json *o = json_object(), *claims = json_ensure_object(o, "claims");
    json_set_string(o, "clientID", json_get_text(config, "clientID"));
    json_set(o, "clientSecret", json_clone(json_get(config, "clientSecret")));
    json_set_string(o, "issuer", issuer);
    if (json_get(config, "ca")) {
        json_set_string(o, "ca", json_get_text(config, "ca"));
    }
    json_set(o, "extraScopes", texts("profile", "email"));
    json_set(claims, "id", texts("sub", NULL));
    json_set(claims, "name", texts("name", NULL));
    json_set(claims, "email", texts("email", NULL));
    return o;
}

static const struct config_row google_rows[] = {{"clientID", CONFIG_TEXT, true, NULL},
                                                {"clientSecret", CONFIG_SECRET, true, NULL},
                                                {"hostedDomain", CONFIG_TEXT, false, NULL},
                                                {0}};

static int google_check(const struct json *provider, struct err *e)
{
    return config_rows_check(provider, google_rows, e);
}

static int google_open(struct loop *l, const struct json *config, struct identity_provider **ret,
                       struct err *e)
{
    struct json *o = as_openid(config, "https://accounts.google.com");
    const char *domain = json_get_text(config, "hostedDomain");
    json_set(json_get(o, "claims"), "preferredUsername", texts("email", NULL));
    json_set_string(o, "hostedDomain", domain);
    if (*domain) { /* Only accounts of the domain are offered; the answer is checked as well. */
        json_set_string(json_ensure_object(o, "extraAuthorizeParameters"), "hd", domain);
    }
    return open_kind(l, &identity_google, o, json_get_text(o, "hostedDomain"), ret, e);
}

const struct identity_kind identity_google = {.name = "GoogleIdentityProvider",
                                              .check = google_check,
                                              .open = google_open,
                                              .close = close_openid,
                                              .redirect = redirect,
                                              .callback = callback};

static const struct config_row gitlab_rows[] = {
    {"clientID", CONFIG_TEXT, true, NULL}, {"clientSecret", CONFIG_SECRET, true, NULL},
    {"url", CONFIG_TEXT, true, NULL},      {"ca", CONFIG_TEXT, false, NULL},
    {"legacy", CONFIG_BOOL, false, NULL},  {0}};

static int gitlab_check(const struct json *provider, struct err *e)
{
    int r = config_rows_check(provider, gitlab_rows, e);
    const char *url = json_get_text(provider, "url");
    if (r == 0 && (r = remote_check_url(url, true, e)) < 0) {
        err_prefix(e, "url");
    }
    if (r == 0 && strchr(url, '?')) {
        r = err_set(e, -EINVAL, "url: must have no query");
    }
    return r;
}

static int gitlab_open(struct loop *l, const struct json *config, struct identity_provider **ret,
                       struct err *e)
{
    if (json_get_bool(json_get(config, "legacy"), false)) {
        return identity_open_gitlab_legacy(l, config, ret, e);
    }
    const char *url = json_get_text(config, "url");
    size_t n = strlen(url);
    while (n && url[n - 1] == '/') {
        n--;
    }
    CLEANUP_FREE char *issuer = xstrndup(url, n);
    struct json *o = as_openid(config, issuer), *claims = json_get(o, "claims");
    json_set(claims, "preferredUsername", texts("nickname", "preferred_username"));
    json_set(claims, "groups", texts("groups", NULL));
    return open_kind(l, &identity_gitlab, o, "", ret, e);
}

const struct identity_kind identity_gitlab = {.name = "GitLabIdentityProvider",
                                              .check = gitlab_check,
                                              .open = gitlab_open,
                                              .close = close_openid,
                                              .redirect = redirect,
                                              .callback = callback};
