/* SPDX-License-Identifier: Apache-2.0 */
/* /oauth/authorize and the form by which a person allows what a client asks for. */
#include "apiserver/oauth/oauth_priv.h"

#include "api/kinds/oauth.h"
#include "base/log.h"
#include "oauth/redirect.h"
#include "oauth/scope.h"

LOG_MODULE("oauth");

#define AUTHORIZE "/oauth/authorize"
#define APPROVE "/oauth/authorize/approve"

static void answer_error(struct oauth_request *f, int status, enum oauth_error error,
                         const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    oauth_answer_error(&b, error, why);
    web_json(f, status, &b);
}

static void redirect_error(struct oauth_request *f, enum oauth_error error, const char *why)
{
    CLEANUP_STRBUF struct strbuf url = STRBUF_INIT;
    oauth_redirect_error(&url, f->auth.redirect, f->auth.state, error, why, false);
    web_redirect(f, url.data);
}

/* The request again, as a path of this server, with these scopes (NULL: those it has). */
static void write_again(const struct oauth_params *p, const char *scopes, struct strbuf *url)
{
    char separator = '?';
    strbuf_adds(url, AUTHORIZE);
    for (size_t i = 0; i < p->n; i++) {
        bool skipped = streq(p->names[i], "idp") || (scopes && streq(p->names[i], "scope"));
        if (!skipped) {
            oauth_param_add(url, separator, p->names[i], p->values[i]);
            separator = '&';
        }
    }
    if (scopes) {
        oauth_param_add(url, separator, "scope", scopes);
    }
}

/* ---- who asks ---- */

static bool takes_challenges(const struct oauth_server *s)
{
    for (size_t i = 0; i < s->n_providers; i++) {
        if (s->providers[i].challenge && s->providers[i].provider->kind->password) {
            return true;
        }
    }
    return false;
}

/* Sends a client that takes challenges to a proxy that authenticates, if a provider names one. */
static bool go_to_proxy(struct oauth_request *f)
{
    struct oauth_server *s = f->s;
    CLEANUP_STRBUF struct strbuf again = STRBUF_INIT, url = STRBUF_INIT;
    strbuf_adds(&again, s->issuer);
    write_again(&f->params, NULL, &again);
    for (size_t i = 0; i < s->n_providers; i++) {
        const struct oauth_provider *p = &s->providers[i];
        if (p->challenge && p->provider->kind->proxy_login &&
            p->provider->kind->proxy_login(p->provider, again.data, true, &url, NULL) == 0) {
            web_redirect(f, url.data);
            return true;
        }
    }
    return false;
}

/* 401: with a challenge, or with the reason why there is none. */
static void challenge(struct oauth_request *f)
{
    struct oauth_server *s = f->s;
    const char *token = http_header(f->x, "x-csrf-token");
    CLEANUP_FREE char *text = NULL;
    if (takes_challenges(s) && token && *token) {
        http_set_header(f->x, "WWW-Authenticate", "Basic realm=\"openshift\"");
        web_text(f, 401, "");
        return;
    }
    if (go_to_proxy(f)) {
        return;
    }
    if (takes_challenges(s)) {
        text = xstrdup("A non-empty X-CSRF-Token header is required to receive basic-auth "
                       "challenges");
    } else {
        CLEANUP_FREE char *link = xasprintf("<%s/oauth/token/request>; rel=\"related\"", s->issuer);
        text =
            xasprintf("You must obtain an API token by visiting %s/oauth/token/request", s->issuer);
        http_set_header(f->x, "Link", link);
    }
    CLEANUP_FREE char *warning = xasprintf("199 Origin \"%s\"", text);
    http_set_header(f->x, "Warning", warning);
    web_text(f, 401, text);
}

static void nobody(struct oauth_request *f)
{
    if (f->client.challenges) {
        challenge(f);
        return;
    }
    CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
    write_again(&f->params, NULL, &again);
    login_begin(f, again.data);
}

/* ---- whether the person lets the client ---- */

static struct json *find_grant(const struct oauth_request *f, struct object **ret_base)
{
    CLEANUP_FREE char *name = xasprintf("%s:%s", f->user, f->client.name);
    return objects_find(f->s, OAUTH_GROUP, "oauthclientauthorizations", name, ret_base);
}

static void ask(struct oauth_request *f, const struct json *missing)
{
    CLEANUP_STRBUF struct strbuf then = STRBUF_INIT, url = STRBUF_INIT;
    CLEANUP_FREE char *scopes = oauth_scopes_join(missing);
    write_again(&f->params, NULL, &then);
    strbuf_adds(&url, APPROVE);
    oauth_param_add(&url, '?', "scope", scopes);
    oauth_param_add(&url, '&', "then", then.data);
    session_begin(f);
    web_redirect(f, url.data);
}

static void known(struct oauth_request *f)
{
    CLEANUP(json_free) struct json *allowed = find_grant(f, NULL), *missing = NULL;
    audit_annotate(f->audit, "authentication.openshift.io/username", f->user);
    switch (oauth_grant_decide(&f->client, allowed, f->uid, f->auth.scopes, &missing)) {
    case OAUTH_GRANTED:
        issue_for_authorization(f);
        break;
    case OAUTH_GRANT_ASK:
        ask(f, missing);
        break;
    case OAUTH_GRANT_REFUSE:
        redirect_error(f, OAUTH_ACCESS_DENIED, "the user has not allowed this client");
        break;
    }
}

static void checked(struct oauth_request *f, const char *error)
{
    if (!error) {
        known(f);
    } else if (streq(error, "too_many_attempts")) {
        http_set_header(f->x, "Retry-After", "1");
        web_text(f, 429, page_error_text(error));
    } else if (streq(error, "access_denied") || streq(error, "user_required")) {
        nobody(f);
    } else {
        web_text(f, streq(error, "authentication_error") ? 500 : 403, page_error_text(error));
    }
}

static void proved_by_proxy(struct oauth_request *f, const char *error)
{
    if (!error) {
        log_info("login", "user=\"%s\" provider=\"%s\"", f->user, f->provider_name);
        known(f);
    } else {
        web_text(f, 403, page_error_text(error));
    }
}

/* Finds the person by headers of a trusted proxy.  Whether it went on. */
static bool by_headers(struct oauth_request *f)
{
    static struct log_limit limit;
    struct oauth_server *s = f->s;
    bool is_proxy = false;
    for (f->provider = 0; f->provider < s->n_providers; f->provider++) {
        struct identity_provider *p = s->providers[f->provider].provider;
        struct identity id = {0};
        struct err e = {0};
        int r = p->kind->headers ? p->kind->headers(p, f->x, &id, &e) : -ENOENT;
        if (r == 0) {
            map_take(f, &id);
            map_identity(f, proved_by_proxy);
            return true;
        }
        if (r != -ENOENT) {
            log_limited(&limit, LOG_WARN, "headers of a request name nobody",
                        "provider=\"%s\" peer=%s reason=\"%s\"", s->providers[f->provider].name,
                        http_peer(f->x), e.text);
            is_proxy |= http_peer_proxy(f->x) != NULL;
        }
    }
    f->provider = 0;
    if (is_proxy) {
        /* Another redirect to the proxy would lead here again. */
        web_text(f, 403, "The proxy has not named a user.\n");
    }
    return is_proxy;
}

static void find_person(struct oauth_request *f)
{
    if (by_headers(f)) {
        return;
    }
    if (session_read(f)) {
        known(f);
    } else if (oauth_basic_parse(http_header(f->x, "authorization"), false, &f->username,
                                 &f->password) == 0) {
        login_check(f, checked);
    } else {
        nobody(f);
    }
}

void authorize_handle(struct oauth_request *f)
{
    CLEANUP_STRBUF struct strbuf problems = STRBUF_INIT;
    int r =
        objects_client_asks(f->s, oauth_param_text(&f->params, "client_id"), &f->client, &problems);
    if (r < 0) {
        if (problems.size) {
            log_warn("a service account cannot be an OAuth client",
                     "client=\"%.120s\" reason=\"%s\"", oauth_param_text(&f->params, "client_id"),
                     problems.data);
        }
        answer_error(f, 400, OAUTH_UNAUTHORIZED_CLIENT,
                     "The client is not authorized to request a token using this method.");
        return;
    }
    oauth_authorization_read(&f->params, &f->client, &f->auth);
    const char *error = oauth_param_text(&f->params, "error");
    if (!f->auth.redirect) {
        answer_error(f, 400, f->auth.fail, f->auth.why);
    } else if (f->auth.fail) {
        redirect_error(f, f->auth.fail, f->auth.why);
    } else if (*error) {
        redirect_error(f,
                       oauth_error_find(error) == OAUTH_ERROR_MAX ? OAUTH_SERVER_ERROR
                                                                  : oauth_error_find(error),
                       NULL);
    } else {
        find_person(f);
    }
}

/* ---- the form ---- */

/* Reads and judges the request for authorization that 'then' is. */
static int parse_then(const struct oauth_server *s, const char *then, struct oauth_params *params,
                      struct oauth_client *client, struct oauth_authorization *auth)
{
    const char *query = str_has_prefix(then, AUTHORIZE "?") ? then + sizeof AUTHORIZE : NULL;
    if (!query || !oauth_then_is_local(then) ||
        oauth_params_parse(query, strlen(query), params, NULL) < 0 ||
        objects_client(s, oauth_param_text(params, "client_id"), client, NULL) < 0) {
        return -EINVAL;
    }
    oauth_authorization_read(params, client, auth);
    return 0;
}

/* Reads the request for authorization to which the form belongs.  Negative: it was answered. */
static int read_then(struct oauth_request *f, struct oauth_params *ret)
{
    const char *then = oauth_param_text(&f->params, "then");
    if (parse_then(f->s, then, ret, &f->client, &f->auth) < 0 || f->auth.fail) {
        web_error(f, 400, "invalid_request");
        return -EINVAL;
    }
    return 0;
}

static void add_origin(const struct oauth_authorization *auth, struct strbuf *out)
{
    __attribute__((cleanup(oauth_uri_donep))) struct oauth_uri target = {0};
    if (auth->redirect && oauth_uri_parse(auth->redirect, &target, NULL) == 0) {
        oauth_redirect_origin(&target, out);
    }
}

void authorize_target(const struct oauth_server *s, const char *then, struct strbuf *out)
{
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params params = {0};
    __attribute__((cleanup(oauth_client_donep))) struct oauth_client client = {0};
    __attribute__((cleanup(oauth_authorization_donep))) struct oauth_authorization auth = {0};
    if (parse_then(s, then, &params, &client, &auth) == 0) {
        add_origin(&auth, out);
    }
}

static void show_form(struct oauth_request *f)
{
    CLEANUP(json_free) struct json *allowed = find_grant(f, NULL), *missing = NULL;
    CLEANUP_STRBUF struct strbuf origin = STRBUF_INIT;
    const struct json *item;
    (void) oauth_grant_decide(&f->client, allowed, f->uid, f->auth.scopes, &missing);
    web_csrf(f);
    const char *const pairs[][3] = {{"Then", "then", oauth_param_text(&f->params, "then")},
                                    {"CSRF", "csrf", f->csrf},
                                    {"ClientID", "client_id", f->client.name},
                                    {"UserName", "user_name", f->user},
                                    {"RedirectURI", "redirect_uri", f->auth.redirect},
                                    {NULL}};
    CLEANUP(json_free) struct json *data = web_fields(pairs);
    json_set_string(data, "Action", APPROVE);
    json_set_string(data, "Client", f->client.name);
    json_set_string(data, "Account", f->client.account);
    json_set_string(data, "Namespace", f->client.namespace);
    json_set_string(data, "User", f->user);
    json_set_string(data, "Redirect", f->auth.redirect);
    struct json *scopes = json_ensure_array(data, "Scopes");
    JSON_FOREACH (item, missing) {
        struct json *row = json_append(scopes, json_object());
        CLEANUP_FREE char *text = page_scope_text(json_get_string(item));
        json_set_string(row, "Name", json_get_string(item));
        json_set_string(row, "Text", text);
    }
    /* Browsers apply form-action to the redirect that follows the form. */
    add_origin(&f->auth, &origin);
    web_page(f, 200, PAGE_APPROVE, data, origin.size ? origin.data : NULL);
}

static void grant_stored(void *ctx, int error, uint64_t revision)
{
    struct oauth_request *f = ctx;
    CLEANUP_FREE char *then = TAKE(f->then);
    if (error < 0) {
        web_error(f, 500, "grant_error");
    } else {
        web_redirect(f, then);
    }
}

/* Stores what was allowed so far and now, and goes back to the request with the scopes of it that
 * are allowed. */
static void allow(struct oauth_request *f, const struct oauth_params *request)
{
    struct cache_kind *ck = objects_kind(f->s, OAUTH_GROUP, "oauthclientauthorizations");
    CLEANUP_FREE char *name = xasprintf("%s:%s", f->user, f->client.name);
    struct object *base;
    CLEANUP(json_free) struct json *obj = find_grant(f, &base), *approved = json_array();
    CLEANUP(json_free) struct json *kept = json_array();
    const struct json *item;
    bool ours = obj && streq(json_get_text(obj, "userUID"), f->uid);
    for (size_t i = 0; i < f->params.n; i++) {
        /* Only what the request asks for can be approved. */
        CLEANUP(json_free) struct json *one = oauth_scopes_split(f->params.values[i]);
        if (streq(f->params.names[i], "scope") && json_count(one) == 1 &&
            oauth_scopes_cover(f->auth.scopes, one)) {
            json_append(approved, json_clone(json_at(one, 0)));
        }
    }
    CLEANUP(json_free)
    struct json *all = oauth_scopes_union(ours ? json_get(obj, "scopes") : NULL, approved);
    JSON_FOREACH (item, f->auth.scopes) {
        CLEANUP(json_free) struct json *one = json_array();
        json_append(one, json_clone(item));
        if (oauth_scopes_cover(all, one)) {
            json_append(kept, json_clone(item));
        }
    }
    if (!json_count(kept)) {
        redirect_error(f, OAUTH_ACCESS_DENIED, "the user has not allowed this client");
        return;
    }
    CLEANUP_FREE char *scopes = oauth_scopes_join(kept);
    CLEANUP_STRBUF struct strbuf then = STRBUF_INIT;
    write_again(request, scopes, &then);
    f->then = strbuf_steal(&then);
    if (!obj) {
        obj = objects_new(ck, name);
    }
    json_set_string(obj, "clientName", f->client.name);
    json_set_string(obj, "userName", f->user);
    json_set_string(obj, "userUID", f->uid);
    json_set(obj, "scopes", TAKE(all));
    objects_put(f->s, ck, name, obj, base, &(struct store_terms){0}, grant_stored, f);
}

void approve_handle(struct oauth_request *f)
{
    __attribute__((cleanup(oauth_params_donep))) struct oauth_params request = {0};
    bool post = streq(http_method(f->x), "POST");
    if (read_then(f, &request) < 0) {
        return;
    }
    if (!session_read(f)) {
        /* The request for authorization leads here again after the login. */
        CLEANUP_STRBUF struct strbuf again = STRBUF_INIT;
        write_again(&request, NULL, &again);
        web_redirect(f, again.data);
    } else if (!post) {
        show_form(f);
    } else if (!web_is_own_form(f) || !streq(oauth_param_text(&f->params, "user_name"), f->user) ||
               !streq(oauth_param_text(&f->params, "client_id"), f->client.name)) {
        web_error(f, 403, "csrf_error");
    } else if (*oauth_param_text(&f->params, "approve")) {
        allow(f, &request);
    } else {
        session_end(f);
        redirect_error(f, OAUTH_ACCESS_DENIED, "the user has denied access");
    }
}
