/* SPDX-License-Identifier: Apache-2.0 */
/* KeystonePasswordIdentityProvider: asks Keystone's Identity API v3 for a token with the name and
 * the password in one domain (POST /v3/auth/tokens).  The token itself is not used. */
#include "identity/kinds.h"
#include "identity/peer_attempt.h"
#include "identity/remote.h"
#include "identity/secret.h"

struct keystone {
    struct identity_provider base;
    struct loop *loop;
    struct remote *remote;
    char *domain;
    bool use_id;
    struct list attempts;
};

struct keystone_attempt {
    struct peer_attempt base;
    struct keystone *provider;
    struct remote_call *call;
    char *user;
};

static const struct config_row rows[] = {{"url", CONFIG_TEXT, true, NULL},
                                         {"ca", CONFIG_TEXT, false, NULL},
                                         {"certFile", CONFIG_TEXT, false, NULL},
                                         {"keyFile", CONFIG_TEXT, false, NULL},
                                         {"domainName", CONFIG_TEXT, true, NULL},
                                         {"useKeystoneIdentity", CONFIG_BOOL, false, NULL},
                                         {0}};

/* The URL of tokens: 'url' may end with the version of the API. */
static char *token_url(const char *url)
{
    size_t n = strlen(url);
    while (n && url[n - 1] == '/') {
        n--;
    }
    bool has_version = n >= 3 && strncmp(url + n - 3, "/v3", 3) == 0;
    return xasprintf("%.*s%s/auth/tokens", (int) n, url, has_version ? "" : "/v3");
}

static int check(const struct json *provider, struct err *e)
{
    const char *url = json_get_text(provider, "url");
    int r = config_rows_check(provider, rows, e);
    if (r == 0 && (r = remote_check_url(url, true, e)) < 0) {
        err_prefix(e, "url");
    }
    if (r == 0 && strchr(url, '?')) {
        r = err_set(e, -EINVAL, "url: must have no query");
    }
    if (r == 0 && !*json_get_text(provider, "certFile") != !*json_get_text(provider, "keyFile")) {
        r = err_set(e, -EINVAL, "certFile: needs keyFile, and keyFile needs certFile");
    }
    return r;
}

static int open_keystone(struct loop *l, const struct json *config, struct identity_provider **ret,
                         struct err *e)
{
    CLEANUP_FREE char *url = token_url(json_get_text(config, "url"));
    struct remote_config cfg = {.url = url,
                                .https_only = true,
                                .ca = json_get_text(config, "ca"),
                                .cert = json_get_text(config, "certFile"),
                                .key = json_get_text(config, "keyFile")};
    struct remote *remote = NULL;
    int r = remote_new(l, &cfg, &remote, e);
    if (r < 0) {
        return r;
    }
    struct keystone *p = NEW(struct keystone);
    p->base.kind = &identity_keystone;
    p->loop = l;
    p->remote = remote;
    p->domain = xstrdup(json_get_text(config, "domainName"));
    p->use_id = json_get_bool(json_get(config, "useKeystoneIdentity"), false);
    list_init(&p->attempts);
    *ret = &p->base;
    return 0;
}

static void close_keystone(struct identity_provider *base)
{
    struct keystone *p = CONTAINER_OF(base, struct keystone, base);
    peer_attempts_cancel(&p->attempts);
    remote_free(p->remote);
    free(p->domain);
    free(p);
}

static void answered(void *ctx, const struct http_result *r)
{
    struct keystone_attempt *a = ctx;
    CLEANUP(json_free) struct json *o = NULL;
    a->call = NULL;
    if (r->error) {
        peer_attempt_fail(&a->base, "%s", r->error_text);
        return;
    }
    if (r->status == 401) {
        peer_attempt_refuse(&a->base, "Keystone refused name and password");
        return;
    }
    if (r->status != 201) {
        peer_attempt_fail(&a->base, "Keystone answered %d", r->status);
        return;
    }
    if (json_parse(r->body, r->size, &o, NULL) < 0) {
        peer_attempt_fail(&a->base, "Keystone's answer is no JSON");
        return;
    }
    const char *id = json_path_string(o, "token", "user", "id", NULL);
    const char *name = json_path_string(o, "token", "user", "name", NULL);
    if (!id || !*id || !name || !*name) {
        peer_attempt_fail(&a->base, "Keystone's answer names no user");
        return;
    }
    struct identity person = {.user = xstrdup(a->provider->use_id ? id : a->user),
                              .preferred = xstrdup(a->user),
                              .name = xstrdup(name)};
    peer_attempt_prove(&a->base, &person);
    identity_done(&person);
}

static void stop(struct peer_attempt *base)
{
    struct keystone_attempt *a = CONTAINER_OF(base, struct keystone_attempt, base);
    a->call = remote_call_cancel(a->call);
    free(TAKE(a->user));
}

/* Owned; has the password. */
static char *request_text(const struct keystone *p, const char *user, const char *password)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "{\"auth\":{\"identity\":{\"methods\":[\"password\"],\"password\":{\"user\":"
                    "{\"name\":");
    json_write_string(user, strlen(user), &b);
    strbuf_adds(&b, ",\"domain\":{\"name\":");
    json_write_string(p->domain, strlen(p->domain), &b);
    strbuf_adds(&b, "},\"password\":");
    json_write_string(password, strlen(password), &b);
    strbuf_adds(&b, "}}}}}");
    return strbuf_steal(&b);
}

static struct identity_attempt *password(struct identity_provider *base, const char *user,
                                         const char *text, identity_fn *fn, void *ctx)
{
    struct keystone *p = CONTAINER_OF(base, struct keystone, base);
    struct keystone_attempt *a = NEW(struct keystone_attempt);
    a->provider = p;
    a->user = xstrdup(user);
    peer_attempt_begin(&a->base, p->loop, &p->attempts, stop, fn, ctx);
    if (!*user || !*text) {
        peer_attempt_refuse(&a->base, "empty name or password");
    } else if (!peer_attempts_full(&a->base, &p->attempts)) {
        char *body = request_text(p, user, text);
        a->base.stage = "answer of Keystone";
        a->call = remote_call(p->remote, "POST", NULL, NULL, "application/json", body, answered, a);
        secret_text_free(body);
    }
    return &a->base.base;
}

const struct identity_kind identity_keystone = {.name = "KeystonePasswordIdentityProvider",
                                                .check = check,
                                                .open = open_keystone,
                                                .close = close_keystone,
                                                .password = password};
