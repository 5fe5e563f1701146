/* SPDX-License-Identifier: Apache-2.0 */
/* GitHubIdentityProvider, and GitLabIdentityProvider with "legacy": OAuth 2.0, and who the token's
 * account is by the API of the site.
 *
 * Memberships are read page by page until one that is asked for is found. */
#include "identity/kinds.h"
#include "identity/oauth_client.h"
#include "identity/peer_attempt.h"
#include "identity/remote.h"
#include "identity/secret.h"
#include "wire/http1.h"

#include <strings.h>

#define PAGE_SIZE 100
#define MAX_PAGES 20

enum question { USER, ORGANIZATIONS, TEAMS, N_QUESTIONS };

/* Differences between the sites. */
struct site {
    const char *name;  /* For reasons in the log. */
    const char *scope; /* The scope of a login that needs no memberships. */
    const char *login; /* The member of an account that is its name. */
};
static const struct site github_site = {"GitHub", "user:email", "login"};
static const struct site gitlab_site = {"GitLab", "read_user", "username"};

struct github {
    struct identity_provider base;
    const struct site *site;
    struct loop *loop;
    struct json *config;
    char *secret;
    char *authorize;
    struct remote *token, *api[N_QUESTIONS];
    struct list attempts;
};

struct github_attempt {
    struct peer_attempt base;
    struct github *provider;
    struct remote_call *call;
    char *header; /* With the access token. */
    struct identity id;
    enum question question;
    unsigned page;
};

/* ---- configuration ---- */

static const struct config_row rows[] = {{"clientID", CONFIG_TEXT, true, NULL},
                                         {"clientSecret", CONFIG_SECRET, true, NULL},
                                         {"organizations", CONFIG_TEXTS, false, NULL},
                                         {"teams", CONFIG_TEXTS, false, NULL},
                                         {"hostname", CONFIG_TEXT, false, NULL},
                                         {"ca", CONFIG_TEXT, false, NULL},
                                         {0}};

static int check(const struct json *provider, struct err *e)
{
    const char *host = json_get_text(provider, "hostname");
    const struct json *item;
    int r = config_rows_check(provider, rows, e);
    if (r < 0) {
        return r;
    }
    if (*host) {
        CLEANUP_FREE char *url = xasprintf("https://%s", host);
        if (strpbrk(host, "/?") || remote_check_url(url, true, e) < 0) {
            return err_set(e, -EINVAL, "hostname: \"%.100s\" is no name of a host", host);
        }
    } else if (*json_get_text(provider, "ca")) {
        return err_set(e, -EINVAL, "ca: has an effect with hostname only");
    }
    JSON_FOREACH (item, json_get(provider, "organizations")) {
        if (strchr(json_get_string(item), '/')) {
            return err_set(e, -EINVAL, "organizations: \"%.100s\" has a \"/\"; see teams",
                           json_get_string(item));
        }
    }
    JSON_FOREACH (item, json_get(provider, "teams")) {
        const char *slash = strchr(json_get_string(item), '/');
        if (!slash || slash == json_get_string(item) || !slash[1] || strchr(slash + 1, '/')) {
            return err_set(e, -EINVAL, "teams: \"%.100s\" is not ORGANIZATION/TEAM",
                           json_get_string(item));
        }
    }
    return 0;
}

static void close_github(struct identity_provider *base)
{
    struct github *p = CONTAINER_OF(base, struct github, base);
    peer_attempts_cancel(&p->attempts);
    for (size_t i = 0; i < N_QUESTIONS; i++) {
        remote_free(p->api[i]);
    }
    remote_free(p->token);
    free(p->authorize);
    secret_text_free(p->secret);
    json_free(p->config);
    free(p);
}

static int make_remote(struct github *p, const char *base, const char *path, struct remote **ret,
                       struct err *e)
{
    CLEANUP_FREE char *url = xasprintf("%s%s", base, path);
    struct remote_config cfg = {
        .url = url, .https_only = true, .ca = json_get_text(p->config, "ca")};
    return remote_new(p->loop, &cfg, ret, e);
}

static int open_github(struct loop *l, const struct json *config, struct identity_provider **ret,
                       struct err *e)
{
    static const char *const paths[] = {
        [USER] = "/user", [ORGANIZATIONS] = "/user/orgs", [TEAMS] = "/user/teams"};
    const char *host = json_get_text(config, "hostname");
    CLEANUP_FREE char *site = xasprintf("https://%s", *host ? host : "github.com");
    CLEANUP_FREE char *api =
        *host ? xasprintf("%s/api/v3", site) : xstrdup("https://api.github.com");
    struct github *p = NEW(struct github);
    p->base.kind = &identity_github;
    p->site = &github_site;
    p->loop = l;
    p->config = json_clone(config);
    p->authorize = xasprintf("%s/login/oauth/authorize", site);
    list_init(&p->attempts);
    int r = secret_read(json_get(config, "clientSecret"), &p->secret, e);
    if (r < 0) {
        err_prefix(e, "clientSecret");
    }
    r = r < 0 ? r : make_remote(p, site, "/login/oauth/access_token", &p->token, e);
    for (size_t i = 0; r == 0 && i < N_QUESTIONS; i++) {
        r = make_remote(p, api, paths[i], &p->api[i], e);
    }
    if (r < 0) {
        close_github(&p->base);
        return r;
    }
    *ret = &p->base;
    return 0;
}

static int redirect(struct identity_provider *base, const struct identity_redirect *r,
                    struct strbuf *url, struct err *e)
{
    const struct github *p = CONTAINER_OF(base, struct github, base);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    bool needs_members = json_count(json_get(p->config, "organizations")) ||
                         json_count(json_get(p->config, "teams"));
    strbuf_adds(&out, p->authorize);
    oauth_client_add_parameter(&out, "response_type", "code");
    oauth_client_add_parameter(&out, "client_id", json_get_text(p->config, "clientID"));
    oauth_client_add_parameter(&out, "redirect_uri", r->callback);
    oauth_client_add_parameter(&out, "scope",
                               needs_members ? "user:email read:org" : p->site->scope);
    oauth_client_add_parameter(&out, "state", r->state);
    oauth_client_add_challenge(&out, r->verifier);
    return strbuf_adds(url, out.data);
}

/* ---- attempts ---- */

static void answered(void *ctx, const struct http_result *r);

static void ask(struct github_attempt *a, enum question question, unsigned page)
{
    static const char *const stages[] = {
        [USER] = "user", [ORGANIZATIONS] = "organizations", [TEAMS] = "teams"};
    CLEANUP_FREE char *query =
        question == USER ? NULL : xasprintf("per_page=%d&page=%u", PAGE_SIZE, page);
    a->question = question;
    a->page = page;
    a->base.stage = stages[question];
    a->call =
        remote_call(a->provider->api[question], "GET", query, a->header, NULL, NULL, answered, a);
}

/* Whether a membership that was read is one that the configuration asks for. */
static bool is_wanted(const struct github_attempt *a, const struct json *member)
{
    const struct json *wanted =
        json_get(a->provider->config, a->question == ORGANIZATIONS ? "organizations" : "teams");
    const char *organization = json_path_string(member, "organization", "login", NULL);
    CLEANUP_FREE char *name =
        a->question == ORGANIZATIONS
            ? xstrdup(json_get_text(member, "login"))
            : xasprintf("%s/%s", organization ? organization : "", json_get_text(member, "slug"));
    const struct json *item;
    JSON_FOREACH (item, wanted) {
        if (strcasecmp(json_get_string(item), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Goes on after the list of organizations, or after the account: false: nothing is left to ask. */
static bool ask_next(struct github_attempt *a)
{
    const struct json *config = a->provider->config;
    if (a->question == USER && json_count(json_get(config, "organizations"))) {
        ask(a, ORGANIZATIONS, 1);
        return true;
    }
    if (a->question != TEAMS && json_count(json_get(config, "teams"))) {
        ask(a, TEAMS, 1);
        return true;
    }
    return false;
}

static void got_members(struct github_attempt *a, const struct json *list)
{
    const struct json *member;
    JSON_FOREACH (member, list) {
        if (is_wanted(a, member)) {
            peer_attempt_prove(&a->base, &a->id);
            return;
        }
    }
    if (json_count(list) >= PAGE_SIZE && a->page < MAX_PAGES) {
        ask(a, a->question, a->page + 1);
    } else if (!ask_next(a)) {
        peer_attempt_refuse(&a->base,
                            "account \"%.100s\" is in none of the organizations and teams",
                            a->id.preferred);
    }
}

static void got_user(struct github_attempt *a, const struct json *o)
{
    const char *number = json_number_text(json_get(o, "id"));
    const char *login = json_get_text(o, a->provider->site->login),
               *name = json_get_text(o, "name");
    const char *email = json_get_text(o, "email");
    if (!number || streq(number, "0") || !*login) {
        peer_attempt_fail(&a->base, "user: the answer has no id and %s", a->provider->site->login);
        return;
    }
    a->id = (struct identity){.user = xstrdup(number),
                              .preferred = xstrdup(login),
                              .name = *name ? xstrdup(name) : NULL,
                              .email = *email ? xstrdup(email) : NULL};
    if (!ask_next(a)) {
        peer_attempt_prove(&a->base, &a->id);
    }
}

/* The answer as JSON of the type (owned); NULL: the attempt has ended. */
static struct json *parse(struct github_attempt *a, const struct http_result *r,
                          enum json_type type)
{
    struct json *v = NULL;
    a->call = NULL;
    if (r->error) {
        peer_attempt_fail(&a->base, "%s: %s", a->base.stage, r->error_text);
    } else if (r->status != 200) {
        peer_attempt_fail(&a->base, "%s: status %d", a->base.stage, r->status);
    } else if (json_parse(r->body, r->size, &v, NULL) < 0 || !json_is(v, type)) {
        peer_attempt_fail(&a->base, "%s: the answer is not the JSON expected", a->base.stage);
    } else {
        return v;
    }
    json_free(v);
    return NULL;
}

static void answered(void *ctx, const struct http_result *r)
{
    struct github_attempt *a = ctx;
    CLEANUP(json_free)
    struct json *v = parse(a, r, a->question == USER ? JSON_OBJECT : JSON_ARRAY);
    if (v && a->question == USER) {
        got_user(a, v);
    } else if (v) {
        got_members(a, v);
    }
}

static void got_token(void *ctx, const struct http_result *r)
{
    struct github_attempt *a = ctx;
    CLEANUP(json_free) struct json *o = parse(a, r, JSON_OBJECT);
    if (!o) {
        return;
    }
    const char *token = json_get_text(o, "access_token");
    CLEANUP_STRBUF struct strbuf header = STRBUF_INIT;
    char *value = xasprintf("Bearer %s", token);
    if (json_get(o, "error")) { /* With status 200. */
        peer_attempt_fail(&a->base, "token: error \"%.100s\"", json_get_text(o, "error"));
    } else if (!*token || http1_add_header(&header, "Authorization", value) < 0) {
        peer_attempt_fail(&a->base, "token: the answer has no usable access_token");
    } else {
        a->header = strbuf_steal(&header);
        ask(a, USER, 1);
    }
    secret_text_free(value);
}

static void stop(struct peer_attempt *base)
{
    struct github_attempt *a = CONTAINER_OF(base, struct github_attempt, base);
    a->call = remote_call_cancel(a->call);
    secret_text_free(TAKE(a->header));
    identity_done(&a->id);
}

static void ask_token(struct github_attempt *a, const struct identity_redirect *r, const char *code)
{
    struct github *p = a->provider;
    struct strbuf body = STRBUF_INIT;
    oauth_client_add_field(&body, "grant_type", "authorization_code");
    oauth_client_add_field(&body, "client_id", json_get_text(p->config, "clientID"));
    oauth_client_add_field(&body, "client_secret", p->secret);
    oauth_client_add_field(&body, "code", code);
    oauth_client_add_field(&body, "redirect_uri", r->callback);
    oauth_client_add_field(&body, "code_verifier", r->verifier);
    a->base.stage = "token";
    a->call = remote_call(p->token, "POST", NULL, NULL, "application/x-www-form-urlencoded",
                          body.data, got_token, a);
    explicit_bzero(body.data, body.size);
    strbuf_done(&body);
}

static struct identity_attempt *callback(struct identity_provider *base,
                                         const struct identity_redirect *r,
                                         const struct http_exchange *x, identity_fn *fn, void *ctx)
{
    struct github *p = CONTAINER_OF(base, struct github, base);
    struct github_attempt *a = NEW(struct github_attempt);
    const char *error = http_query(x, "error"), *code = http_query(x, "code");
    a->provider = p;
    peer_attempt_begin(&a->base, p->loop, &p->attempts, stop, fn, ctx);
    if (error && streq(error, "access_denied")) {
        peer_attempt_refuse(&a->base, "%s answered access_denied", p->site->name);
    } else if (error) {
        peer_attempt_fail(&a->base, "%s answered the error \"%.100s\"", p->site->name, error);
    } else if (!code || !*code) {
        peer_attempt_fail(&a->base, "the answer has no code");
    } else if (!peer_attempts_full(&a->base, &p->attempts)) {
        ask_token(a, r, code);
    }
    return &a->base.base;
}

const struct identity_kind identity_github = {.name = "GitHubIdentityProvider",
                                              .check = check,
                                              .open = open_github,
                                              .close = close_github,
                                              .redirect = redirect,
                                              .callback = callback};

/* ---- GitLab before 11.1 ---- */

static const struct identity_kind gitlab_legacy = {.name = "GitLabIdentityProvider",
                                                   .close = close_github,
                                                   .redirect = redirect,
                                                   .callback = callback};

int identity_open_gitlab_legacy(struct loop *l, const struct json *config,
                                struct identity_provider **ret, struct err *e)
{
    const char *url = json_get_text(config, "url");
    size_t n = strlen(url);
    while (n && url[n - 1] == '/') {
        n--;
    }
    CLEANUP_FREE char *site = xstrndup(url, n);
    struct github *p = NEW(struct github);
    p->base.kind = &gitlab_legacy;
    p->site = &gitlab_site;
    p->loop = l;
    p->config = json_clone(config);
    p->authorize = xasprintf("%s/oauth/authorize", site);
    list_init(&p->attempts);
    int r = secret_read(json_get(config, "clientSecret"), &p->secret, e);
    if (r < 0) {
        err_prefix(e, "clientSecret");
    }
    r = r < 0 ? r : make_remote(p, site, "/oauth/token", &p->token, e);
    r = r < 0 ? r : make_remote(p, site, "/api/v4/user", &p->api[USER], e);
    if (r < 0) {
        close_github(&p->base);
        return r;
    }
    *ret = &p->base;
    return 0;
}
