/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/oauth_priv.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/http/http.h"
#include "oauth/pkce.h"
#include "wire/http1.h"

#include <strings.h>

#define DISCOVERY "/.well-known/oauth-authorization-server"
#define MAX_REDIRECTS 10
#define MAX_TOKEN 4096
#define MAX_QUOTED 300 /* Bytes of a server's text in an error. */

void oauth_server_done(struct oauth_server *o)
{
    free(o->issuer);
    location_done(&o->authorize);
    location_done(&o->token);
    *o = (struct oauth_server){0};
}

/* ---- parts ---- */

void oauth_random(char out[OAUTH_VERIFIER_SIZE])
{
    unsigned char bytes[32];
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    random_bytes(bytes, sizeof bytes);
    base64url_encode(bytes, sizeof bytes, &text);
    assert(text.size + 1 == OAUTH_VERIFIER_SIZE);
    memcpy(out, text.data, OAUTH_VERIFIER_SIZE);
    explicit_bzero(text.data, text.size);
    explicit_bzero(bytes, sizeof bytes);
}

/* An endpoint of the document: an address of the issuer's origin. */
static int endpoint(const struct json *doc, const char *key, const struct location *issuer,
                    struct location *ret, struct err *e)
{
    struct location l;
    int r = web_parse(json_get_text(doc, key), &l, e);
    if (r < 0) {
        return err_prefix(e, "%s", key), r;
    }
    if (!web_same_origin(&l, issuer)) {
        location_done(&l);
        return err_set(e, -EPROTO, "%s is at another server than the issuer: \"%.200s\"", key,
                       json_get_text(doc, key));
    }
    *ret = l;
    return 0;
}

static bool has_method(const struct json *doc, const char *wanted)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(doc, "code_challenge_methods_supported")) {
        if (streq_null(json_get_string(item), wanted)) {
            return true;
        }
    }
    return false;
}

static int parse_document(const struct location *server, const struct json *doc,
                          struct oauth_server *o, struct err *e)
{
    __attribute__((cleanup(location_done))) struct location issuer = {0};
    const char *text = json_get_text(doc, "issuer");
    int r = web_parse(text, &issuer, e);
    if (r < 0) {
        return err_prefix(e, "issuer"), r;
    }
    if (server->https && !issuer.https) {
        return err_set(e, -EPROTO, "issuer: \"%.200s\" is not HTTPS, but the server is", text);
    }
    if (!issuer.https && !web_is_loopback(&issuer)) {
        return err_set(e, -EPROTO, "issuer: \"%.200s\" is not HTTPS: a password would be readable",
                       text);
    }
    size_t size = strlen(text);
    o->issuer = xstrndup(text, size - (size && text[size - 1] == '/'));
    if ((r = endpoint(doc, "authorization_endpoint", &issuer, &o->authorize, e)) < 0 ||
        (r = endpoint(doc, "token_endpoint", &issuer, &o->token, e)) < 0) {
        return r;
    }
    return has_method(doc, "S256") ? 0
                                   : err_set(e, -EPROTO,
                                             "the server does not know PKCE with S256: log in with "
                                             "--token");
}

int oauth_parse_discovery(const struct location *server, const char *text, size_t size,
                          struct oauth_server *ret, struct err *e)
{
    CLEANUP(json_free) struct json *doc = NULL;
    struct oauth_server o = {0};
    int r = json_parse(text, size, &doc, e);
    r = r < 0 ? r : parse_document(server, doc, &o, e);
    if (r < 0) {
        oauth_server_done(&o);
        return r;
    }
    *ret = o;
    return 0;
}

static void add_parameter(struct strbuf *out, char before, const char *key, const char *value)
{
    strbuf_addf(out, "%c%s=", before, key);
    http_escape(value, out);
}

char *oauth_authorize_path(const struct oauth_server *o, const char *client, const char *redirect,
                           const char *challenge, const char *state)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, o->authorize.path);
    add_parameter(&b, strchr(o->authorize.path, '?') ? '&' : '?', "client_id", client);
    add_parameter(&b, '&', "code_challenge", challenge);
    add_parameter(&b, '&', "code_challenge_method", "S256");
    add_parameter(&b, '&', "redirect_uri", redirect);
    add_parameter(&b, '&', "response_type", "code");
    if (state) {
        add_parameter(&b, '&', "state", state);
    }
    return strbuf_steal(&b);
}

/* The value of realm="..." in a challenge; owned. */
static char *realm_of(const char *challenge, size_t size)
{
    struct strbuf out = STRBUF_INIT;
    CLEANUP_FREE char *text = xstrndup(challenge, size);
    const char *p = strcasestr(text, "realm=\"");
    for (p = p ? p + strlen("realm=\"") : ""; *p && *p != '"'; p++) {
        p += *p == '\\' && p[1];
        strbuf_addc(&out, *p);
    }
    return strbuf_steal(&out);
}

char *oauth_basic_realm(const char *authenticate)
{
    static const char scheme[] = "Basic";
    for (const char *line = authenticate; line && *line;) {
        size_t size = strcspn(line, "\n"), n = strlen(scheme);
        if (strncasecmp(line, scheme, n) == 0 && (size == n || line[n] == ' ')) {
            return realm_of(line, size);
        }
        line += size + (line[size] == '\n');
    }
    return NULL;
}

int oauth_parse_redirect(const char *path, const char *state, char **ret_code, struct err *e)
{
    CLEANUP_FREE char *buf = xmalloc(http1_target_size(path));
    struct http1_target t;
    int r = http1_target_parse(path, buf, &t, e);
    if (r < 0) {
        return err_prefix(e, "the redirect of the server"), r;
    }
    const char *error = http1_param(&t, "error"), *text = http1_param(&t, "error_description");
    const char *code = http1_param(&t, "code");
    if (state && !streq_null(http1_param(&t, "state"), state)) {
        return err_set(e, -EPROTO, "the answer is not to this login: its state differs");
    }
    if (error) {
        return err_set(e, -EACCES, "the server refused the login: %.*s%s%.*s", MAX_QUOTED, error,
                       text ? ": " : "", MAX_QUOTED, text ? text : "");
    }
    if (!code || !*code) {
        return err_set(e, -EPROTO, "the server's redirect has no code");
    }
    *ret_code = xstrdup(code);
    return 0;
}

/* A token goes into a header, and into a file: visible characters alone. */
static bool is_token(const char *s)
{
    size_t n = strlen(s);
    for (const char *p = s; *p; p++) {
        if (*p <= ' ' || (unsigned char) *p >= 0x7f) {
            return false;
        }
    }
    return n > 0 && n <= MAX_TOKEN;
}

int oauth_parse_token(int status, const char *text, size_t size, char **ret_token, struct err *e)
{
    CLEANUP(json_free) struct json *o = NULL;
    struct err bad = {0};
    int r = json_parse(text, size, &o, &bad);
    if (r == 0 && *json_get_text(o, "error")) {
        return err_set(e, -EACCES, "the server gives no token: %.*s: %.*s", MAX_QUOTED,
                       json_get_text(o, "error"), MAX_QUOTED,
                       json_get_text(o, "error_description"));
    }
    if (status != 200) {
        return err_set(e, -EPROTO, "the server gives no token: unexpected response: %d", status);
    }
    if (r < 0) {
        return err_set(e, -EPROTO, "the server's answer with the token: %s", bad.text);
    }
    if (strcasecmp(json_get_text(o, "token_type"), "Bearer") != 0 ||
        !is_token(json_get_text(o, "access_token"))) {
        return err_set(e, -EPROTO, "the server's answer has no bearer token");
    }
    *ret_token = xstrdup(json_get_text(o, "access_token"));
    return 0;
}

/* ---- requests ---- */

int oauth_discover(const struct web *w, const struct location *server, struct oauth_server *ret,
                   struct err *e)
{
    CLEANUP_WEB_ANSWER struct web_answer a = {0};
    struct location at = *server;
    CLEANUP_FREE char *path = xasprintf("%s" DISCOVERY, streq(at.path, "/") ? "" : at.path);
    at.path = path;
    int r = web_ask(w, "GET", &at, "Accept: application/json\r\n", NULL, &a, e);
    if (r < 0) {
        return r;
    }
    if (a.status == 404 || a.status == 403 || a.status == 401) {
        return err_set(e, -ENOENT,
                       "the server has no OAuth server, so it takes no passwords: log in with "
                       "--token, or use a kubeconfig with a certificate");
    }
    if (a.status != 200) {
        return err_set(e, -EPROTO, DISCOVERY ": unexpected response: %d", a.status);
    }
    r = oauth_parse_discovery(server, a.body, a.size, ret, e);
    return r < 0 ? (err_prefix(e, DISCOVERY), r) : 0;
}

int oauth_exchange(const struct oauth_login *l, const struct oauth_server *o, const char *client,
                   const char *redirect, const char *verifier, const char *code, char **ret,
                   struct err *e)
{
    CLEANUP_STRBUF struct strbuf body = STRBUF_INIT;
    CLEANUP_WEB_ANSWER struct web_answer a = {0};
    strbuf_adds(&body, "grant_type=authorization_code");
    add_parameter(&body, '&', "client_id", client);
    add_parameter(&body, '&', "code", code);
    add_parameter(&body, '&', "code_verifier", verifier);
    add_parameter(&body, '&', "redirect_uri", redirect);
    int r = web_ask(l->web, "POST", &o->token,
                    "Accept: application/json\r\n"
                    "Content-Type: application/x-www-form-urlencoded\r\n",
                    strbuf_cstr(&body), &a, e);
    r = r < 0 ? r : oauth_parse_token(a.status, a.body, a.size, ret, e);
    explicit_bzero(body.data, body.size);
    if (a.body) {
        explicit_bzero(a.body, a.size);
    }
    return r;
}

/* ---- by a password ---- */

/* One walk from the request to authorize to the redirect with the code. */
struct walk {
    struct oauth_login *l;
    const struct oauth_server *o;
    struct location at, back; /* Where the next request goes, and where the code has to come. */
    char *credentials;        /* A header line; NULL: none so far. */
    char *credentials_for;    /* The origin that may have them. */
    char *visited[MAX_REDIRECTS];
    size_t n_visited;
};

static void walk_done(struct walk *w)
{
    location_done(&w->at);
    location_done(&w->back);
    if (w->credentials) {
        explicit_bzero(w->credentials, strlen(w->credentials));
    }
    free(w->credentials);
    free(w->credentials_for);
    for (size_t i = 0; i < w->n_visited; i++) {
        free(w->visited[i]);
    }
}

static int visit(struct walk *w, struct err *e)
{
    CLEANUP_FREE char *origin = web_origin(&w->at);
    CLEANUP_FREE char *url = xasprintf("%s%s", origin, w->at.path);
    for (size_t i = 0; i < w->n_visited; i++) {
        if (streq(w->visited[i], url)) {
            return err_set(e, -ELOOP, "redirect loop: %.*s", MAX_QUOTED, url);
        }
    }
    if (w->n_visited == MAX_REDIRECTS) {
        return err_set(e, -ELOOP, "more than %d redirects; the last one to %.*s", MAX_REDIRECTS,
                       MAX_QUOTED, url);
    }
    w->visited[w->n_visited++] = TAKE(url);
    return 0;
}

/* The answer leads elsewhere.  1: it leads back to the client, with a code. */
static int follow(struct walk *w, const struct web_answer *a, char **ret_code, struct err *e)
{
    struct location next;
    int r = location_resolve(&w->at, a->location ? a->location : "", &next, e);
    if (r < 0) {
        return err_prefix(e, "redirect"), r;
    }
    size_t path = strcspn(next.path, "?");
    bool back = web_same_origin(&next, &w->back) && strlen(w->back.path) == path &&
                strncmp(next.path, w->back.path, path) == 0;
    if (back) {
        r = oauth_parse_redirect(next.path, NULL, ret_code, e);
        location_done(&next);
        return r < 0 ? r : 1;
    }
    if (w->at.https && !next.https) {
        location_done(&next);
        return err_set(e, -EPROTO, "the server leads from HTTPS to HTTP: \"%.200s\"", a->location);
    }
    location_done(&w->at);
    w->at = next;
    return visit(w, e);
}

static char *basic_header(const char *user, const char *password)
{
    CLEANUP_STRBUF struct strbuf pair = STRBUF_INIT, text = STRBUF_INIT;
    strbuf_addf(&pair, "%s:%s", user, password);
    base64_encode(pair.data, pair.size, &text);
    char *line = xasprintf("Authorization: Basic %s\r\n", strbuf_cstr(&text));
    explicit_bzero(pair.data, pair.size);
    explicit_bzero(text.data, text.size);
    return line;
}

static int ask_user(struct walk *w, const char *where, const char *realm, struct err *e)
{
    CLEANUP_FREE char *user = NULL, *password = NULL;
    int r = w->l->ask(w->l->ctx, where, realm, &user, &password, e);
    if (r == 0 && strchr(user, ':')) {
        r = err_set(e, -EINVAL, "username %.*s is invalid for basic auth", MAX_QUOTED, user);
    }
    if (r == 0) {
        w->credentials = basic_header(user, password);
        w->credentials_for = xstrdup(where);
    }
    if (password) {
        explicit_bzero(password, strlen(password));
    }
    return r;
}

/* The server's message to the user: its body, and the addresses of its headers. */
static char *notice_of(const struct web_answer *a)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_addn(&b, a->body, WEB_MAX_BODY / 64);
    while (b.size && b.data[b.size - 1] == '\n') {
        b.data[--b.size] = '\0';
    }
    if (a->warning) {
        strbuf_addf(&b, "%sWarning: %s", b.size ? "\n" : "", a->warning);
    }
    if (a->link) {
        strbuf_addf(&b, "%sLink: %s", b.size ? "\n" : "", a->link);
    }
    return strbuf_steal(&b);
}

static int challenged(struct walk *w, const struct web_answer *a, struct err *e)
{
    CLEANUP_FREE char *realm = oauth_basic_realm(a->authenticate);
    CLEANUP_FREE char *where = web_origin(&w->at);
    if (!realm) {
        free(w->l->notice);
        w->l->notice = notice_of(a);
        return err_set(e, -ENOTSUP, "the server takes no name and password here");
    }
    if (w->credentials) {
        return err_set(e, -EACCES, "Login failed (401 Unauthorized)");
    }
    if (!web_same_origin(&w->at, &w->o->authorize) && !w->l->trusts(w->l->ctx, where)) {
        return err_set(e, -ECANCELED,
                       "the server sends the login to %.200s, which asks for the password; it was "
                       "not sent there: log in with --web, or with --token",
                       where);
    }
    return ask_user(w, where, realm, e);
}

/* One request.  1: '*ret_code' is the code; 0: go on. */
static int step(struct walk *w, char **ret_code, struct err *e)
{
    CLEANUP_WEB_ANSWER struct web_answer a = {0};
    CLEANUP_FREE char *origin = web_origin(&w->at);
    bool known = w->credentials && streq(w->credentials_for, origin);
    CLEANUP_FREE char *headers =
        xasprintf("X-CSRF-Token: 1\r\nAccept: application/json\r\n%s", known ? w->credentials : "");
    int r = web_ask(w->l->web, "GET", &w->at, headers, NULL, &a, e);
    explicit_bzero(headers, strlen(headers));
    if (r < 0) {
        return r;
    }
    if (a.status == 301 || a.status == 302 || a.status == 303 || a.status == 307 ||
        a.status == 308) {
        return follow(w, &a, ret_code, e);
    }
    if (a.status == 401) {
        return challenged(w, &a, e);
    }
    CLEANUP(json_free) struct json *o = NULL;
    struct err bad = {0};
    (void) json_parse(a.body, a.size, &o, &bad);
    const char *text = json_get_text(o, "error_description");
    return err_set(e, -EPROTO, "unexpected response: %d%s%.*s", a.status, *text ? ": " : "",
                   MAX_QUOTED, text);
}

int oauth_by_password(struct oauth_login *l, const struct oauth_server *o, char **ret_token,
                      struct err *e)
{
    char verifier[OAUTH_VERIFIER_SIZE];
    oauth_random(verifier);
    CLEANUP_FREE char *challenge = pkce_challenge(verifier), *code = NULL;
    CLEANUP_FREE char *redirect = xasprintf("%s/oauth/token/implicit", o->issuer);
    struct walk w = {.l = l, .o = o};
    int r = web_parse(redirect, &w.back, e);
    w.at = (struct location){
        .https = o->authorize.https,
        .host = xstrdup(o->authorize.host),
        .port = o->authorize.port,
        .path = oauth_authorize_path(o, OAUTH_CHALLENGING_CLIENT, redirect, challenge, NULL)};
    r = r < 0 ? r : visit(&w, e);
    while (r == 0) {
        r = step(&w, &code, e);
    }
    if (r == 1) {
        r = oauth_exchange(l, o, OAUTH_CHALLENGING_CLIENT, redirect, verifier, code, ret_token, e);
    }
    walk_done(&w);
    explicit_bzero(verifier, sizeof verifier);
    return r;
}
