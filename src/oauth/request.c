/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/request.h"

#include "api/kinds/oauth.h"
#include "base/base64.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "oauth/pkce.h"
#include "oauth/redirect.h"
#include "oauth/scope.h"
#include "oauth/session.h"

#include <inttypes.h>
#include <strings.h>

#define SCOPES_MAX 64
#define STATE_MAX 8192
#define CREDENTIAL_MAX 8192

const char *const oauth_error_names[OAUTH_ERROR_MAX] = {
    [OAUTH_OK] = "",
    [OAUTH_INVALID_REQUEST] = "invalid_request",
    [OAUTH_UNAUTHORIZED_CLIENT] = "unauthorized_client",
    [OAUTH_ACCESS_DENIED] = "access_denied",
    [OAUTH_UNSUPPORTED_RESPONSE_TYPE] = "unsupported_response_type",
    [OAUTH_INVALID_SCOPE] = "invalid_scope",
    [OAUTH_SERVER_ERROR] = "server_error",
    [OAUTH_TEMPORARILY_UNAVAILABLE] = "temporarily_unavailable",
    [OAUTH_INVALID_CLIENT] = "invalid_client",
    [OAUTH_INVALID_GRANT] = "invalid_grant",
    [OAUTH_UNSUPPORTED_GRANT_TYPE] = "unsupported_grant_type",
};

enum oauth_error oauth_error_find(const char *name)
{
    for (size_t i = OAUTH_INVALID_REQUEST; i < OAUTH_ERROR_MAX; i++) {
        if (streq(name, oauth_error_names[i])) {
            return (enum oauth_error) i;
        }
    }
    return OAUTH_ERROR_MAX;
}

/* ---- authorization ---- */

void oauth_authorization_done(struct oauth_authorization *a)
{
    free(a->redirect);
    free(a->state);
    json_free(a->scopes);
    free(a->challenge);
    free(a->why);
    *a = (struct oauth_authorization){0};
}

static void refuse(struct oauth_authorization *a, enum oauth_error fail, const char *why)
{
    a->fail = fail;
    free(a->why);
    a->why = xstrdup(why);
}

/* Finds where the browser goes.  Negative: refused. */
static int read_redirect(struct oauth_authorization *a, const struct oauth_params *p,
                         const struct oauth_client *client)
{
    const char *given = oauth_param_text(p, "redirect_uri");
    if (!client->redirects[0]) {
        refuse(a, OAUTH_INVALID_REQUEST, "the client has no redirect URI");
        return -EINVAL;
    }
    if (*given && !oauth_redirect_is_allowed(client->redirects, given)) {
        refuse(a, OAUTH_INVALID_REQUEST, "the redirect_uri is not one of the client's");
        return -EINVAL;
    }
    a->redirect = xstrdup(*given ? given : client->redirects[0]);
    return 0;
}

static int read_type(struct oauth_authorization *a, const struct oauth_params *p)
{
    const char *type = oauth_param_text(p, "response_type");
    a->token = streq(type, "token");
    if (!a->token && !streq(type, "code")) {
        refuse(a, *type ? OAUTH_UNSUPPORTED_RESPONSE_TYPE : OAUTH_INVALID_REQUEST,
               "response_type must be code or token");
        return -EINVAL;
    }
    return 0;
}

static int read_challenge(struct oauth_authorization *a, const struct oauth_params *p)
{
    const char *challenge = oauth_param(p, "code_challenge");
    struct err e = {0};
    if (pkce_check_challenge(challenge, oauth_param(p, "code_challenge_method"), &a->method, &e) <
        0) {
        refuse(a, OAUTH_INVALID_REQUEST, e.text);
        return -EINVAL;
    }
    if (a->method && a->token) {
        /* A token in a fragment is not exchanged, so that nothing would be proved. */
        a->method = NULL;
    }
    a->challenge = a->method ? xstrdup(challenge) : NULL;
    return 0;
}

static int read_scopes(struct oauth_authorization *a, const struct oauth_params *p,
                       const struct oauth_client *client)
{
    const struct json *item;
    struct err e = {0};
    a->scopes = oauth_scopes_split(oauth_param_text(p, "scope"));
    if (!json_count(a->scopes)) {
        json_append(a->scopes, json_string(OAUTH_SCOPE_FULL_TEXT));
    }
    if (json_count(a->scopes) > SCOPES_MAX) {
        refuse(a, OAUTH_INVALID_SCOPE, "too many scopes");
        return -EINVAL;
    }
    JSON_FOREACH (item, a->scopes) {
        if (oauth_check_scope(json_get_string(item))) {
            refuse(a, OAUTH_INVALID_SCOPE, "a requested scope is unknown or malformed");
            return -EINVAL;
        }
    }
    if (oauth_client_check_scopes(client, a->scopes, &e) < 0) {
        refuse(a, OAUTH_ACCESS_DENIED, e.text);
        return -EACCES;
    }
    return 0;
}

void oauth_authorization_read(const struct oauth_params *p, const struct oauth_client *client,
                              struct oauth_authorization *ret)
{
    struct oauth_authorization a = {0};
    struct err e = {0};
    /* A parameter that is there twice could be read in two ways by two parts of a system. */
    if (oauth_params_check_single(p, NULL, &e) < 0) {
        refuse(&a, OAUTH_INVALID_REQUEST, e.text);
    } else if (read_redirect(&a, p, client) == 0) {
        const char *state = oauth_param(p, "state");
        if (state && strlen(state) > STATE_MAX) {
            refuse(&a, OAUTH_INVALID_REQUEST, "state is too long");
        } else {
            a.state = state ? xstrdup(state) : NULL;
            (void) (read_type(&a, p) == 0 && read_challenge(&a, p) == 0 &&
                    read_scopes(&a, p, client) == 0);
        }
    }
    *ret = a;
}

static void add_state(struct strbuf *url, const char *state)
{
    if (state) {
        oauth_param_add(url, '&', "state", state);
    }
}

void oauth_redirect_error(struct strbuf *url, const char *redirect, const char *state,
                          enum oauth_error error, const char *why, bool in_fragment)
{
    strbuf_adds(url, redirect);
    oauth_param_add(url, in_fragment ? '#' : oauth_query_separator(redirect), "error",
                    oauth_error_names[error]);
    if (why && *why) {
        oauth_param_add(url, '&', "error_description", why);
    }
    add_state(url, state);
}

void oauth_redirect_code(struct strbuf *url, const char *redirect, const char *state,
                         const char *code)
{
    strbuf_adds(url, redirect);
    oauth_param_add(url, oauth_query_separator(redirect), "code", code);
    add_state(url, state);
}

void oauth_redirect_token(struct strbuf *url, const char *redirect, const char *state,
                          const char *token, int64_t expires_s, const char *scope)
{
    strbuf_adds(url, redirect);
    oauth_param_add(url, '#', "access_token", token);
    strbuf_addf(url, "&expires_in=%" PRId64, expires_s);
    oauth_param_add(url, '&', "scope", scope);
    add_state(url, state);
    strbuf_adds(url, "&token_type=Bearer");
}

/* ---- grants ---- */

enum oauth_grant oauth_grant_decide(const struct oauth_client *client, const struct json *allowed,
                                    const char *uid, const struct json *scopes,
                                    struct json **ret_missing)
{
    bool ours = allowed && streq(json_get_text(allowed, "userUID"), uid);
    const struct json *has = ours ? json_get(allowed, "scopes") : NULL;
    *ret_missing = NULL;
    if (client->grant == OAUTH_GRANT_AUTO || (ours && oauth_scopes_cover(has, scopes))) {
        return OAUTH_GRANTED;
    }
    if (client->grant == OAUTH_GRANT_DENY) {
        return OAUTH_GRANT_REFUSE;
    }
    *ret_missing = oauth_scopes_minus(scopes, has);
    return OAUTH_GRANT_ASK;
}

/* ---- tokens ---- */

void oauth_exchange_done(struct oauth_exchange *x)
{
    free(TAKE(x->client));
    if (x->secret) {
        explicit_bzero(x->secret, strlen(x->secret));
        free(TAKE(x->secret));
    }
}

static void fail(struct oauth_exchange *x, enum oauth_error error, const char *why)
{
    x->fail = error;
    x->why = why;
}

static void read_client(struct oauth_exchange *x, const struct oauth_params *p,
                        const char *authorization)
{
    int r = oauth_basic_parse(authorization, true, &x->client, &x->secret);
    const char *id = oauth_param(p, "client_id"), *secret = oauth_param(p, "client_secret");
    if (authorization && r < 0) {
        fail(x, OAUTH_INVALID_CLIENT, "the Authorization header is no Basic credential");
    } else if (r == 0 && ((id && !streq(id, x->client)) || (secret && !streq(secret, x->secret)))) {
        fail(x, OAUTH_INVALID_REQUEST, "the form and the Authorization header disagree");
    } else if (r < 0) {
        x->client = xstrdup(id ? id : "");
        x->secret = xstrdup(secret ? secret : "");
    }
    if (!x->fail && !*x->client) {
        fail(x, OAUTH_INVALID_CLIENT, "client_id is missing");
    }
}

void oauth_exchange_read(const struct oauth_params *p, const char *authorization,
                         struct oauth_exchange *ret)
{
    struct oauth_exchange x = {.code = oauth_param_text(p, "code"),
                               .redirect = oauth_param_text(p, "redirect_uri"),
                               .verifier = oauth_param(p, "code_verifier")};
    const char *type = oauth_param_text(p, "grant_type");
    if (oauth_params_check_single(p, NULL, NULL) < 0) {
        fail(&x, OAUTH_INVALID_REQUEST, "a parameter is there twice");
    } else if (!*type) {
        fail(&x, OAUTH_INVALID_REQUEST, "grant_type is missing");
    } else if (!streq(type, "authorization_code")) {
        fail(&x, OAUTH_UNSUPPORTED_GRANT_TYPE, "grant_type must be authorization_code");
    } else {
        read_client(&x, p, authorization);
        if (!x.fail && !*x.code) {
            fail(&x, OAUTH_INVALID_REQUEST, "code is missing");
        }
    }
    *ret = x;
}

enum oauth_error oauth_exchange_check_code(const struct oauth_exchange *x, const struct json *code,
                                           int64_t now_ms, const char **ret_why)
{
    const char *created = json_get_text(json_get(code, "metadata"), "creationTimestamp");
    const char *redirect = json_get_text(code, "redirectURI");
    int64_t made_ms = 0, seconds = json_get_int_or(json_get(code, "expiresIn"), 0);
    /* One text for all of these: a wrong code and somebody else's code look alike. */
    *ret_why = "the code is not valid for this client and redirect_uri";
    if (!streq(json_get_text(code, "clientName"), x->client) ||
        json_get(json_get(code, "metadata"), "deletionTimestamp") ||
        (*x->redirect && !streq(x->redirect, redirect)) || time_parse(created, &made_ms) < 0 ||
        made_ms + seconds * 1000 <= now_ms) {
        return OAUTH_INVALID_GRANT;
    }
    if (pkce_verify(json_get_text(code, "codeChallenge"),
                    json_get_text(code, "codeChallengeMethod"), x->verifier, NULL) < 0) {
        *ret_why = "code_verifier does not match code_challenge";
        return OAUTH_INVALID_GRANT;
    }
    return OAUTH_OK;
}

void oauth_answer_token(struct strbuf *out, const char *token, int64_t expires_s, const char *scope)
{
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "access_token", token);
    json_set_int(o, "expires_in", expires_s);
    json_set_string(o, "scope", scope);
    json_set_string(o, "token_type", "Bearer");
    json_write(o, 0, out);
}

void oauth_answer_error(struct strbuf *out, enum oauth_error error, const char *why)
{
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "error", oauth_error_names[error]);
    json_set_string(o, "error_description", why);
    json_write(o, 0, out);
}

/* ---- Basic ---- */

/* The form-decoded text, owned; NULL: it is malformed.  'text' is freed. */
static char *form_decode(char *text)
{
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params p = {0};
    CLEANUP_FREE char *pair = xasprintf("v=%s", text);
    bool plain = strchr(text, '&') || oauth_params_parse(pair, strlen(pair), &p, NULL) < 0;
    explicit_bzero(pair, strlen(pair));
    /* Clients that do not encode are common: what cannot be decoded is taken as it is. */
    char *out = xstrdup(plain ? text : p.n ? p.values[0] : "");
    explicit_bzero(text, strlen(text));
    free(text);
    return out;
}

int oauth_basic_parse(const char *header, bool form, char **ret_user, char **ret_password)
{
    static const char scheme[] = "basic";
    if (!header) {
        return -ENOENT;
    }
    header += strspn(header, " \t");
    if (strncasecmp(header, scheme, sizeof scheme - 1) != 0 || header[sizeof scheme - 1] != ' ') {
        return -ENOENT;
    }
    header += sizeof scheme - 1;
    header += strspn(header, " ");
    struct strbuf b = STRBUF_INIT_MAX(CREDENTIAL_MAX);
    int r = base64_decode(header, strlen(header), &b);
    const char *text = strbuf_cstr(&b), *colon = strchr(text, ':');
    if (r == 0 && (!colon || strlen(text) != b.size)) {
        r = -EINVAL;
    }
    for (size_t i = 0; r == 0 && i < b.size; i++) {
        r = (unsigned char) text[i] < 0x20 || text[i] == 0x7f ? -EINVAL : 0;
    }
    if (r == 0) {
        *ret_user = xstrndup(text, (size_t) (colon - text));
        *ret_password = xstrdup(colon + 1);
        *ret_user = form ? form_decode(*ret_user) : *ret_user;
        *ret_password = form ? form_decode(*ret_password) : *ret_password;
    }
    if (b.data) {
        explicit_bzero(b.data, b.size);
    }
    strbuf_done(&b);
    return r < 0 ? -EINVAL : 0;
}
