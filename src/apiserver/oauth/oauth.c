/* SPDX-License-Identifier: Apache-2.0 */
/* The OAuth server's life, and which path is whose. */
#include "apiserver/oauth/oauth_priv.h"

#include "apiserver/access/security.h"
#include "base/log.h"
#include "base/timeutil.h"
#include "oauth/discovery.h"
#include "oauth/redirect.h"
#include "wire/yaml.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("oauth");

/* Delays after wrong passwords: an address may have many people behind it. */
#define THROTTLE_KEYS 10000
#define USER_FREE 3
#define ADDRESS_FREE 20
#define FIRST_MS 500
#define USER_MAX_MS 4000
#define ADDRESS_MAX_MS 16000
#define FORGET_MS 300000
#define FILE_MAX ((size_t) 1 << 20)

/* ---- files ---- */

static int read_file(const char *path, bool secret, struct strbuf *b, struct err *e)
{
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return err_sys(e, -errno, "%s", path);
    }
    if (!S_ISREG(st.st_mode) || (size_t) st.st_size > FILE_MAX) {
        return err_set(e, -EINVAL, "%s: is no file of at most %zu bytes", path, FILE_MAX);
    }
    if (secret && st.st_mode & S_IROTH) {
        return err_set(e, -EACCES, "%s: has secrets, and every user of this host can read it",
                       path);
    }
    char *p = strbuf_reserve(b, (size_t) st.st_size + 1);
    ssize_t n = read(fd, p, (size_t) st.st_size);
    if (n < 0) {
        return err_sys(e, -errno, "%s", path);
    }
    b->size = (size_t) n;
    p[n] = '\0';
    return 0;
}

static int read_page(const char *path, const char *key, const char *source, struct template **ret,
                     struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    int r = path ? read_file(path, false, &b, e) : strbuf_adds(&b, source);
    if (r == 0 && (r = template_parse(strbuf_cstr(&b), b.size, ret, e)) < 0 && path) {
        err_prefix(e, "%s", path);
    }
    return r < 0 ? (err_prefix(e, "templates.%s", key), r) : 0;
}

static int read_secrets(const char *path, struct seal_ring *ring, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(json_free) struct json *doc = NULL;
    int r = read_file(path, true, &b, e);
    if (r == 0 && (r = yaml_parse(strbuf_cstr(&b), b.size, &doc, e)) < 0) {
        err_prefix(e, "%s", path);
    }
    const struct json *list = json_get(doc, "secrets"), *item;
    if (r == 0 && (!streq(json_get_text(doc, "kind"), "SessionSecrets") || !json_count(list))) {
        r = err_set(e, -EINVAL, "%s: must be of kind SessionSecrets, with secrets", path);
    }
    JSON_FOREACH (item, list) {
        const char *authentication = json_get_text(item, "authentication");
        const char *encryption = json_get_text(item, "encryption");
        size_t a = strlen(authentication), n = strlen(encryption);
        if (r == 0 && ((a != 32 && a != 64) || (n != 16 && n != 24 && n != 32))) {
            r = err_set(e, -EINVAL,
                        "%s: secrets[%zu]: authentication must have 32 or 64 characters, "
                        "encryption 16, 24 or 32",
                        path, item_i);
        }
        seal_ring_add_secrets(ring, authentication, encryption);
    }
    if (b.data) {
        explicit_bzero(b.data, b.size);
    }
    return r < 0 ? (err_prefix(e, "sessionConfig.sessionSecretsFile"), r) : 0;
}

/* ---- configuration ---- */

/* A proxy to which clients are sent needs a URL. */
static int check_proxy_urls(const struct identity_kind *k, const struct json *v, struct err *e)
{
    const struct {
        const char *use, *key;
    } urls[] = {{"challenge", k->challenge_key}, {"login", k->login_key}};
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        if (urls[i].key && json_get_bool(json_get(v, urls[i].use), false) &&
            !*json_get_text(json_get(v, "provider"), urls[i].key)) {
            return err_set(e, -EINVAL, "%s: must be given with %s", urls[i].key, urls[i].use);
        }
    }
    return 0;
}

int oauth_check_config(const struct oauth_config *c, struct err *e)
{
    for (size_t i = 0; i < json_count(c->providers); i++) {
        const struct json *provider = json_get(json_at(c->providers, i), "provider");
        const char *kind = json_get_text(provider, "kind");
        const struct identity_kind *k = identity_kind_find(kind);
        if (!k) {
            return err_set(e, -EINVAL,
                           "identityProviders[%zu].provider.kind: \"%.80s\" is not known", i, kind);
        }
        int r = k->check(provider, e);
        r = r < 0 ? r : check_proxy_urls(k, json_at(c->providers, i), e);
        if (r < 0) {
            return err_prefix(e, "identityProviders[%zu].provider", i), r;
        }
    }
    return 0;
}

static void config_done(struct oauth_server *s)
{
    for (size_t i = 0; i < s->n_providers; i++) {
        s->providers[i].provider->kind->close(s->providers[i].provider);
        free(s->providers[i].name);
    }
    free(TAKE(s->providers));
    s->n_providers = 0;
    for (size_t i = 0; i < PAGE_MAX; i++) {
        s->pages[i] = template_free(s->pages[i]);
    }
    free(TAKE(s->issuer));
    free(TAKE(s->asset_url));
    free(TAKE(s->session_name));
    seal_ring_done(&s->ring);
}

static enum oauth_grant_method grant_of(const char *s)
{
    return streq_null(s, "auto")   ? OAUTH_GRANT_AUTO
           : streq_null(s, "deny") ? OAUTH_GRANT_DENY
                                   : OAUTH_GRANT_PROMPT;
}

static int open_provider(struct oauth_server *s, const struct json *v, struct err *e)
{
    static const char *const methods[] = {[MAP_CLAIM] = "claim",
                                          [MAP_ADD] = "add",
                                          [MAP_GENERATE] = "generate",
                                          [MAP_LOOKUP] = "lookup"};
    const struct json *config = json_get(v, "provider");
    const struct identity_kind *k = identity_kind_find(json_get_text(config, "kind"));
    struct oauth_provider p = {.challenge = json_get_bool(json_get(v, "challenge"), false),
                               .login = json_get_bool(json_get(v, "login"), false)};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        if (streq(json_get_text(v, "mappingMethod"), methods[i])) {
            p.method = (enum mapping_method) i;
        }
    }
    int r = k->open(s->a->loop, config, &p.provider, e);
    if (r < 0) {
        return r;
    }
    p.name = xstrdup(json_get_text(v, "name"));
    s->providers = xreallocarray(s->providers, s->n_providers + 1, sizeof *s->providers);
    s->providers[s->n_providers++] = p;
    return 0;
}

/* Fills the members of 's' that come from the configuration. */
static int config_read(struct oauth_server *s, const struct oauth_settings *cfg, struct err *e)
{
    const struct oauth_config *c = cfg->config;
    const struct {
        const char *path, *key;
    } files[PAGE_MAX] = {[PAGE_LOGIN] = {c->login_template, "login"},
                         [PAGE_PROVIDERS] = {c->selection_template, "providerSelection"},
                         [PAGE_ERROR] = {c->error_template, "error"}};
    s->issuer = xstrdup(cfg->public_url);
    s->asset_url = c->asset_url ? xstrdup(c->asset_url) : NULL;
    s->session_name = xstrdup(c->session_name);
    s->always_select = c->always_select;
    s->grant = grant_of(c->grant);
    s->sa_grant = grant_of(c->sa_grant);
    s->session_s = c->session_s;
    s->code_s = c->code_s;
    s->token_s = c->token_s;
    s->inactivity_s = c->inactivity_s;
    s->ring_is_ours = !c->session_secrets;
    int r = oauth_check_config(c, e);
    r = r == 0 && c->session_secrets ? read_secrets(c->session_secrets, &s->ring, e) : r;
    for (size_t i = 0; r == 0 && i < PAGE_MAX; i++) {
        r = read_page(files[i].path, files[i].key, page_source((enum page) i), &s->pages[i], e);
    }
    for (size_t i = 0; r == 0 && i < json_count(c->providers); i++) {
        if ((r = open_provider(s, json_at(c->providers, i), e)) < 0) {
            err_prefix(e, "identityProviders[%zu].provider", i);
        }
    }
    return r < 0 ? (err_prefix(e, "oauthConfig"), r) : 0;
}

int oauth_server_new(struct apiserver *a, const struct oauth_settings *cfg,
                     struct oauth_server **ret, struct err *e)
{
    struct oauth_server *s = NEW(struct oauth_server);
    s->a = a;
    list_init(&s->requests);
    throttle_init(&s->users, THROTTLE_KEYS, USER_FREE, FIRST_MS, USER_MAX_MS, FORGET_MS);
    throttle_init(&s->addresses, THROTTLE_KEYS, ADDRESS_FREE, FIRST_MS, ADDRESS_MAX_MS, FORGET_MS);
    int r = config_read(s, cfg, e);
    if (r < 0) {
        oauth_server_free(s);
        return r;
    }
    *ret = s;
    codes_begin(s);
    clients_begin(s);
    log_info("the OAuth server is on", "issuer=%s providers=%zu", s->issuer, s->n_providers);
    return 0;
}

/* Ends what waits for a provider: the providers are about to go. */
static void drop_logins(struct oauth_server *s)
{
    struct oauth_request *f;
    LIST_FOREACH (f, struct oauth_request, node, &s->requests) {
        if (f->timer) {
            s->waiting--;
        }
        if (f->timer || f->attempt) {
            web_text(f, 503, page_error_text("authentication_error"));
        }
    }
}

int oauth_server_reload(struct oauth_server *s, const struct oauth_settings *cfg, struct err *e)
{
    struct oauth_server next = {.a = s->a};
    int r = config_read(&next, cfg, e);
    if (r < 0) {
        config_done(&next);
        return r;
    }
    drop_logins(s);
    config_done(s);
    /* The members of the configuration stand before those of the server's life. */
    s->issuer = next.issuer;
    s->asset_url = next.asset_url;
    s->session_name = next.session_name;
    s->always_select = next.always_select;
    s->grant = next.grant;
    s->sa_grant = next.sa_grant;
    s->session_s = next.session_s;
    s->code_s = next.code_s;
    s->token_s = next.token_s;
    s->inactivity_s = next.inactivity_s;
    s->providers = next.providers;
    s->n_providers = next.n_providers;
    memcpy(s->pages, next.pages, sizeof s->pages);
    s->ring = next.ring;
    s->ring_is_ours = next.ring_is_ours;
    seal_ring_done(&next.ring);
    clients_changed(s);
    log_info("identity providers read again", "providers=%zu", s->n_providers);
    return 0;
}

size_t oauth_server_proxy_cas(const struct oauth_server *s, const char ***ret)
{
    const char **list = xcalloc(s->n_providers + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < s->n_providers; i++) {
        const struct identity_provider *p = s->providers[i].provider;
        const char *ca = p->kind->client_ca ? p->kind->client_ca(p) : NULL;
        bool known = !ca;
        for (size_t k = 0; !known && k < n; k++) {
            known = streq(list[k], ca);
        }
        if (!known) {
            list[n++] = ca;
        }
    }
    *ret = list;
    return n;
}

struct oauth_server *oauth_server_free(struct oauth_server *s)
{
    if (s) {
        if (s->pages[PAGE_ERROR]) {
            drop_logins(s);
        }
        if (s->settle) {
            clients_end(s);
            codes_end(s);
        }
        config_done(s);
        throttle_done(&s->users);
        throttle_done(&s->addresses);
        free(s);
    }
    return NULL;
}

/* ---- simple answers ---- */

static void handle_discovery(struct oauth_request *f)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    oauth_discovery_write(f->s->issuer, &b);
    http_set_header(f->x, "Audit-Id", f->audit_id);
    http_set_header(f->x, "Cache-Control", "public, max-age=60");
    http_set_header(f->x, "X-Content-Type-Options", "nosniff");
    http_respond(f->x, 200, "application/json", b.data, b.size);
    web_end(f);
}

static void handle_request(struct oauth_request *f)
{
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT, redirect = STRBUF_INIT;
    strbuf_addf(&redirect, "%s/oauth/token/display", f->s->issuer);
    strbuf_adds(&url, "/oauth/authorize?client_id=" BROWSER_CLIENT);
    oauth_param_add(&url, '&', "redirect_uri", redirect.data);
    strbuf_adds(&url, "&response_type=code");
    web_redirect(f, url.data);
}

static void handle_implicit(struct oauth_request *f)
{
    CLEANUP_FREE char *text =
        xasprintf("You have reached this page by following a redirect Location header from an "
                  "OAuth authorize request.\n\nIf a response_type=token parameter was passed to "
                  "the /oauth/authorize endpoint, that requested an\n\"Implicit Grant\" OAuth "
                  "flow (see https://tools.ietf.org/html/rfc6749#section-4.2).\n\nThat flow "
                  "requires the access token to be returned in the fragment portion of a redirect "
                  "header.\nRather than following the redirect here, you can obtain the access "
                  "token from the Location header\n(see "
                  "https://tools.ietf.org/html/rfc6749#section-4.2.2).\n\nTo get a token by a web "
                  "browser, visit %s/oauth/token/request\n",
                  f->s->issuer);
    web_text(f, 200, text);
}

static void answer_file(struct oauth_request *f, const char *type, const char *text)
{
    http_set_header(f->x, "Cache-Control", "public, max-age=3600");
    http_set_header(f->x, "X-Content-Type-Options", "nosniff");
    http_respond(f->x, 200, type, text, strlen(text));
    web_end(f);
}

static void handle_style(struct oauth_request *f)
{
    answer_file(f, "text/css; charset=utf-8", page_style);
}

static void handle_icon(struct oauth_request *f)
{
    answer_file(f, "image/svg+xml", page_icon);
}

static void handle_logout(struct oauth_request *f)
{
    const char *then = oauth_param_text(&f->params, "then");
    if (!web_is_own_form(f)) {
        web_error(f, 403, "csrf_error");
        return;
    }
    session_end(f);
    if (oauth_then_is_for_logout(then, f->s->asset_url)) {
        web_redirect(f, then);
    } else {
        web_text(f, 200, "Logged out.\n");
    }
}

static void handle_login(struct oauth_request *f, const char *provider)
{
    (streq(http_method(f->x), "POST") ? login_submit : login_page)(f, provider);
}

static void handle_login_alone(struct oauth_request *f)
{
    handle_login(f, "");
}

/* ---- paths ---- */

static const struct route {
    const char *path;
    bool get, post, prefix; /* 'prefix': a provider's name follows. */
    bool session;           /* It may read or begin a session. */
    void (*handle)(struct oauth_request *f);
    void (*handle_named)(struct oauth_request *f, const char *name);
} routes[] = {
    {OAUTH_DISCOVERY_PATH, true, false, false, false, handle_discovery, NULL},
    {"/oauth/authorize", true, true, false, true, authorize_handle, NULL},
    {"/oauth/authorize/approve", true, true, false, true, approve_handle, NULL},
    {"/oauth/token", false, true, false, false, issue_handle_token, NULL},
    {"/oauth/token/request", true, false, false, false, handle_request, NULL},
    {"/oauth/token/display", true, true, false, false, issue_handle_display, NULL},
    {"/oauth/token/implicit", true, false, false, false, handle_implicit, NULL},
    {PAGE_STYLE_PATH, true, false, false, false, handle_style, NULL},
    {PAGE_ICON_PATH, true, false, false, false, handle_icon, NULL},
    {"/login", true, true, false, true, handle_login_alone, NULL},
    {"/login/", true, true, true, true, NULL, handle_login},
    {"/oauth2callback/", true, false, true, true, NULL, login_callback},
    {"/logout", false, true, false, false, handle_logout, NULL},
};

bool oauth_owns_path(const char *path)
{
    static const char *const trees[] = {"/oauth", "/login", "/oauth2callback", "/logout"};
    for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
        size_t n = strlen(trees[i]);
        if (strncmp(path, trees[i], n) == 0 && (!path[n] || path[n] == '/')) {
            return true;
        }
    }
    return streq(path, OAUTH_DISCOVERY_PATH);
}

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        const struct route *r = &routes[i];
        bool below = r->prefix && str_has_prefix(path, r->path) && path[strlen(r->path)];
        if (below || (!r->prefix && streq(path, r->path))) {
            return r;
        }
    }
    return NULL;
}

static struct oauth_request *request_begin(struct oauth_server *s, struct http_exchange *x)
{
    struct security *security = s->a->security;
    struct oauth_request *f = NEW(struct oauth_request);
    f->s = s;
    f->x = x;
    list_push_back(&s->requests, &f->node);
    audit_make_id(x, f->audit_id);
    attributes_parse(&f->attributes, http_method(x), http_path(x), false, NULL);
    if (security->audit) {
        f->audit = audit_begin(security->audit, x, f->audit_id, security->nobody, &f->attributes);
    }
    return f;
}

static int read_params(struct oauth_request *f, bool post)
{
    size_t size = 0;
    const char *body = post ? http_body(f->x, &size) : http_query_raw(f->x);
    size = post ? size : strlen(body);
    return oauth_params_parse(body, size, &f->params, NULL);
}

static void dispatch(struct oauth_request *f)
{
    const struct route *r = find_route(http_path(f->x));
    if (r->session && !session_keys(f->s)) {
        /* The cluster's key is being made: without it a login could not be remembered. */
        http_set_header(f->x, "Retry-After", "1");
        web_text(f, 503, "The server is starting.\n");
    } else if (read_params(f, streq(http_method(f->x), "POST")) < 0) {
        web_error(f, 400, "invalid_request");
    } else if (r->prefix) {
        r->handle_named(f, http_path(f->x) + strlen(r->path));
    } else {
        r->handle(f);
    }
}

static void synced(void *ctx, int error, uint64_t revision)
{
    struct oauth_request *f = ctx;
    if (error < 0) {
        http_set_header(f->x, "Retry-After", "1");
        web_text(f, 503, "The store is not available.\n");
    } else {
        dispatch(f);
    }
}

void oauth_handle(struct oauth_server *s, struct http_exchange *x)
{
    static const char none[] = "There is no OAuth server here: the master's configuration has no "
                               "oauthConfig.\n";
    const struct route *r = find_route(http_path(x));
    bool post = streq(http_method(x), "POST");
    bool get = streq(http_method(x), "GET") || streq(http_method(x), "HEAD");
    if (!s || !http_is_tls(x)) {
        http_respond(x, 404, "text/plain; charset=utf-8", none, sizeof none - 1);
        return;
    }
    struct oauth_request *f = request_begin(s, x);
    if (!r) {
        web_text(f, 404, "404 page not found\n");
    } else if (!(post && r->post) && !(get && r->get)) {
        http_set_header(x, "Allow", !r->get ? "POST" : r->post ? "GET, POST" : "GET");
        web_text(f, 405, "The method is not allowed here.\n");
    } else if (!s->a->cache.ready || s->a->stopping) {
        web_text(f, 503, "The server is starting or stopping.\n");
    } else if (r->session && store_is_shared(s->a->store)) {
        /* The session may be of another master, with a key, a user or a grant made a moment ago. */
        store_sync(s->a->store, synced, f);
    } else {
        dispatch(f);
    }
}
