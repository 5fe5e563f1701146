/* SPDX-License-Identifier: Apache-2.0 */
/* Codes and tokens: made, exchanged and shown.
 *
 * A code is exchanged by one transaction that deletes it and creates the token, so that two
 * requests with one code get one token.  A code that was used before ends the token that was made
 * of it: one of its two owners was not meant to have it (RFC 6749, 4.1.2). */
#include "apiserver/oauth/oauth_priv.h"

#include "api/kinds/oauth.h"
#include "apiserver/cache/object.h"
#include "base/log.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "oauth/scope.h"

LOG_MODULE("oauth");

/* A new token in oauth_request.token; 'ret' gets the name of its object. */
static void draw(struct oauth_request *f, char ret[OAUTH_TOKEN_TEXT_SIZE])
{
    uint8_t random[OAUTH_TOKEN_RANDOM];
    do {
        random_bytes(random, sizeof random);
    } while (oauth_token_make(random, f->token) < 0);
    (void) oauth_token_name(f->token, ret);
    explicit_bzero(random, sizeof random);
}

/* The access token's object; sets oauth_request.token_s. */
static struct json *new_token(struct oauth_request *f, const struct cache_kind *ck,
                              const char *name, const struct json *scopes, const char *redirect)
{
    const struct oauth_client *c = &f->client;
    int64_t inactivity = c->has_inactivity ? c->inactivity_s : f->s->inactivity_s;
    struct json *obj = objects_new(ck, name);
    f->token_s = c->has_max_age ? c->max_age_s : f->s->token_s;
    json_set_string(obj, "clientName", c->name);
    json_set_int(obj, "expiresIn", f->token_s);
    json_set(obj, "scopes", json_clone(scopes));
    json_set_string(obj, "redirectURI", redirect);
    json_set_string(obj, "userName", f->user);
    json_set_string(obj, "userUID", f->uid);
    if (inactivity) {
        json_set_int(obj, "inactivityTimeoutSeconds", inactivity);
    }
    return obj;
}

static void log_failure(int error)
{
    static struct log_limit limit;
    log_limited(&limit, LOG_ERROR, "a token was not stored", "error=\"%s\"", strerror(-error));
}

/* ---- authorization ---- */

static void issued(void *ctx, int error, uint64_t revision)
{
    struct oauth_request *f = ctx;
    const struct oauth_authorization *a = &f->auth;
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
    CLEANUP_FREE char *scope = oauth_scopes_join(a->scopes);
    if (error < 0) {
        log_failure(error);
        oauth_redirect_error(&url, a->redirect, a->state, OAUTH_SERVER_ERROR, NULL, a->token);
    } else if (a->token) {
        oauth_redirect_token(&url, a->redirect, a->state, f->token, f->token_s, scope);
    } else {
        oauth_redirect_code(&url, a->redirect, a->state, f->token);
    }
    session_end(f); /* A session lasts for one authorization. */
    web_redirect(f, url.data);
    explicit_bzero(url.data, url.size);
}

void issue_for_authorization(struct oauth_request *f)
{
    const struct oauth_authorization *a = &f->auth;
    struct cache_kind *ck =
        objects_kind(f->s, OAUTH_GROUP, a->token ? "oauthaccesstokens" : "oauthauthorizetokens");
    char name[OAUTH_TOKEN_TEXT_SIZE];
    draw(f, name);
    CLEANUP(json_free) struct json *obj = NULL;
    if (a->token) {
        obj = new_token(f, ck, name, a->scopes, a->redirect);
    } else {
        obj = objects_new(ck, name);
        json_set_string(obj, "clientName", f->client.name);
        json_set_int(obj, "expiresIn", f->s->code_s);
        json_set(obj, "scopes", json_clone(a->scopes));
        json_set_string(obj, "redirectURI", a->redirect);
        json_set_string(obj, "userName", f->user);
        json_set_string(obj, "userUID", f->uid);
        json_set_string(obj, "codeChallenge", a->challenge);
        json_set_string(obj, "codeChallengeMethod", a->method);
    }
    objects_put(f->s, ck, name, obj, NULL, &(struct store_terms){0}, issued, f);
}

/* ---- exchange ---- */

/* A wrong secret or code delays the next attempt from the same address. */
static void note_failure(struct oauth_request *f)
{
    CLEANUP_FREE char *address = web_address(f);
    throttle_failed(&f->s->addresses, address, time_mono_ms());
}

static void refuse(struct oauth_request *f, enum oauth_error error, const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (f->shows) {
        web_error(f, 400, "grant_error");
        return;
    }
    if (error == OAUTH_INVALID_CLIENT && http_header(f->x, "authorization")) {
        http_set_header(f->x, "WWW-Authenticate", "Basic realm=\"openshift\"");
    }
    oauth_answer_error(&b, error, why);
    web_json(f, error == OAUTH_INVALID_CLIENT ? 401 : 400, &b);
}

static void show(struct oauth_request *f)
{
    web_csrf(f);
    /* Browsers hold form-action against the redirects that follow the form of the logout, and a
     * person who is sent to the only provider at once is often logged in there still. */
    const char *then = login_leaves_server(f->s) ? "" : "/oauth/token/request";
    const char *const pairs[][3] = {{"Then", "then", then}, {"CSRF", "csrf", f->csrf}, {NULL}};
    CLEANUP(json_free) struct json *data = web_fields(pairs);
    json_set_string(data, "Token", f->token);
    json_set_string(data, "Server", f->s->issuer);
    json_set_string(data, "RequestURL", "/oauth/token/request");
    json_set_string(data, "LogoutURL", "/logout");
    web_page(f, 200, PAGE_TOKEN, data, NULL);
}

static void ignore(void *ctx, int error, uint64_t revision)
{
}

/* Deletes the token that was made of the code with this name. */
static void end_token(const struct oauth_request *f, const char *code)
{
    struct cache_kind *ck = objects_kind(f->s, OAUTH_GROUP, "oauthaccesstokens");
    const char *name = codes_token(f->s, code);
    const struct object *o = name ? keyset_get(&ck->objects, name) : NULL;
    if (o) {
        CLEANUP_FREE char *key = cache_store_key(ck, name);
        log_warn("a code was used twice: the token that was made of it is revoked",
                 "client=\"%s\" token=%s address=%s", f->client.name, name, http_peer(f->x));
        store_delete(f->s->a->store, key, o->revision, ignore, NULL);
    }
}

static void exchanged(void *ctx, int error, uint64_t revision)
{
    struct oauth_request *f = ctx;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (error == -ESTALE || error == -ENOENT) {
        /* Another request with this code was first. */
        char code_name[OAUTH_TOKEN_TEXT_SIZE];
        if (oauth_token_name(f->exchange.code, code_name) == 0) {
            end_token(f, code_name);
        }
        refuse(f, OAUTH_INVALID_GRANT, "the code is not valid for this client and redirect_uri");
    } else if (error < 0) {
        log_failure(error);
        refuse(f, OAUTH_SERVER_ERROR, "the store is not available");
    } else if (f->shows) {
        show(f);
    } else {
        oauth_answer_token(&b, f->token, f->token_s, f->scope);
        web_json(f, 200, &b);
        explicit_bzero(b.data, b.size);
    }
}

/* Whether the user of the code still exists. */
static bool user_is_there(struct oauth_request *f, const struct json *code)
{
    const char *name = json_get_text(code, "userName"), *uid = json_get_text(code, "userUID");
    CLEANUP(json_free) struct json *user = objects_find(f->s, USER_GROUP, "users", name, NULL);
    if (!user || !streq_null(json_path_string(user, "metadata", "uid", NULL), uid)) {
        return false;
    }
    f->user = xstrdup(name);
    f->uid = xstrdup(uid);
    return true;
}

/* The client has been authenticated. */
static void exchange(struct oauth_request *f)
{
    struct cache_kind *codes = objects_kind(f->s, OAUTH_GROUP, "oauthauthorizetokens");
    struct cache_kind *tokens = objects_kind(f->s, OAUTH_GROUP, "oauthaccesstokens");
    char code_name[OAUTH_TOKEN_TEXT_SIZE] = "", name[OAUTH_TOKEN_TEXT_SIZE];
    const char *why = "the code is not valid for this client and redirect_uri";
    struct object *base = NULL;
    CLEANUP(json_free) struct json *code = NULL;
    if (oauth_token_name(f->exchange.code, code_name) == 0) {
        code = objects_find(f->s, OAUTH_GROUP, "oauthauthorizetokens", code_name, &base);
        if (!code) {
            end_token(f, code_name);
        }
    }
    enum oauth_error error =
        code ? oauth_exchange_check_code(&f->exchange, code, time_wall_ms(), &why)
             : OAUTH_INVALID_GRANT;
    if (!error && !user_is_there(f, code)) {
        error = OAUTH_INVALID_GRANT;
    }
    if (error) {
        note_failure(f);
        refuse(f, error, why);
        return;
    }
    draw(f, name);
    CLEANUP(json_free)
    struct json *obj =
        new_token(f, tokens, name, json_get(code, "scopes"), json_get_text(code, "redirectURI"));
    json_set_string(obj, "authorizeToken", code_name);
    f->scope = oauth_scopes_join(json_get(code, "scopes"));
    CLEANUP(blob_unref) struct blob *value = NULL;
    CLEANUP_FREE char *code_key = cache_store_key(codes, code_name);
    CLEANUP_FREE char *token_key = cache_store_key(tokens, name);
    (void) object_encode(tokens->kind, obj, &value);
    struct store_claim claim = {token_key, value, STORE_ABSENT};
    struct store_terms terms = {.claims = &claim, .n_claims = 1};
    store_write(f->s->a->store, code_key, NULL, base->revision, &terms, exchanged, f);
}

/* Answers 429 while the address has to wait after failures; false: it need not. */
static bool must_wait(struct oauth_request *f)
{
    CLEANUP_FREE char *address = web_address(f);
    if (!throttle_wait_ms(&f->s->addresses, address, time_mono_ms())) {
        return false;
    }
    http_set_header(f->x, "Retry-After", "1");
    web_text(f, 429, page_error_text("too_many_attempts"));
    return true;
}

static void synced(void *ctx, int error, uint64_t revision)
{
    struct oauth_request *f = ctx;
    if (error < 0) {
        refuse(f, OAUTH_SERVER_ERROR, "the store is not available");
    } else {
        exchange(f);
    }
}

/* Another master may have made the code a moment ago. */
static void exchange_newest(struct oauth_request *f)
{
    if (store_is_shared(f->s->a->store)) {
        store_sync(f->s->a->store, synced, f);
    } else {
        exchange(f);
    }
}

static bool is_form(const struct oauth_request *f)
{
    static const char type[] = "application/x-www-form-urlencoded";
    const char *given = http_header(f->x, "content-type");
    return given && strncasecmp(given, type, sizeof type - 1) == 0 &&
           strchr("; \t", given[sizeof type - 1]);
}

void issue_handle_token(struct oauth_request *f)
{
    if (!is_form(f)) {
        refuse(f, OAUTH_INVALID_REQUEST, "the body must be application/x-www-form-urlencoded");
        return;
    }
    oauth_exchange_read(&f->params, http_header(f->x, "authorization"), &f->exchange);
    if (f->exchange.fail) {
        refuse(f, f->exchange.fail, f->exchange.why);
        return;
    }
    if (must_wait(f)) {
        return;
    }
    if (objects_client(f->s, f->exchange.client, &f->client, NULL) < 0 ||
        !objects_secret_is_right(f->s, &f->client, f->exchange.secret)) {
        note_failure(f);
        refuse(f, OAUTH_INVALID_CLIENT, "unknown client or wrong secret");
        return;
    }
    exchange_newest(f);
}

/* ---- the page that shows a token ---- */

static void show_button(struct oauth_request *f)
{
    const char *code = oauth_param_text(&f->params, "code");
    const char *error = oauth_param_text(&f->params, "error");
    if (*error || !*code) {
        web_error(f, 400, *error ? error : "invalid_request");
        return;
    }
    web_csrf(f);
    const char *const pairs[][3] = {{"Code", "code", code}, {"CSRF", "csrf", f->csrf}, {NULL}};
    CLEANUP(json_free) struct json *data = web_fields(pairs);
    json_set_string(data, "Action", "/oauth/token/display");
    web_page(f, 200, PAGE_DISPLAY, data, NULL);
}

void issue_handle_display(struct oauth_request *f)
{
    if (!streq(http_method(f->x), "POST")) {
        show_button(f);
        return;
    }
    f->shows = true;
    if (!web_is_own_form(f)) {
        web_error(f, 403, "csrf_error");
        return;
    }
    if (must_wait(f)) {
        return;
    }
    f->exchange = (struct oauth_exchange){.code = oauth_param_text(&f->params, "code"),
                                          .redirect = "",
                                          .client = xstrdup(BROWSER_CLIENT),
                                          .secret = xstrdup("")};
    if (objects_client(f->s, BROWSER_CLIENT, &f->client, NULL) < 0) {
        refuse(f, OAUTH_INVALID_CLIENT, "");
        return;
    }
    exchange_newest(f);
}
