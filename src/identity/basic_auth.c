/* SPDX-License-Identifier: Apache-2.0 */
/* BasicAuthPasswordIdentityProvider: a GET with the name and the password to a server, which answers
 * 401, or 200 and who that is. */
#include "base/base64.h"
#include "identity/kinds.h"
#include "identity/peer_attempt.h"
#include "identity/remote.h"
#include "identity/secret.h"

struct basic_auth {
    struct identity_provider base;
    struct loop *loop;
    struct remote *remote;
    struct list attempts;
};

struct basic_attempt {
    struct peer_attempt base;
    struct remote_call *call;
};

static const struct config_row rows[] = {{"url", CONFIG_TEXT, true, NULL},
                                         {"ca", CONFIG_TEXT, false, NULL},
                                         {"certFile", CONFIG_TEXT, false, NULL},
                                         {"keyFile", CONFIG_TEXT, false, NULL},
                                         {0}};

static int check(const struct json *provider, struct err *e)
{
    int r = config_rows_check(provider, rows, e);
    if (r == 0 && (r = remote_check_url(json_get_text(provider, "url"), false, e)) < 0) {
        err_prefix(e, "url");
    }
    if (r == 0 && !*json_get_text(provider, "certFile") != !*json_get_text(provider, "keyFile")) {
        r = err_set(e, -EINVAL, "certFile: needs keyFile, and keyFile needs certFile");
    }
    return r;
}

static int open_basic(struct loop *l, const struct json *config, struct identity_provider **ret,
                      struct err *e)
{
    struct remote_config cfg = {.url = json_get_text(config, "url"),
                                .ca = json_get_text(config, "ca"),
                                .cert = json_get_text(config, "certFile"),
                                .key = json_get_text(config, "keyFile")};
    struct remote *remote = NULL;
    int r = remote_new(l, &cfg, &remote, e);
    if (r < 0) {
        return r;
    }
    struct basic_auth *p = NEW(struct basic_auth);
    p->base.kind = &identity_basic_auth;
    p->loop = l;
    p->remote = remote;
    list_init(&p->attempts);
    *ret = &p->base;
    return 0;
}

static void close_basic(struct identity_provider *base)
{
    struct basic_auth *p = CONTAINER_OF(base, struct basic_auth, base);
    peer_attempts_cancel(&p->attempts);
    remote_free(p->remote);
    free(p);
}

static char *text_of(const struct json *o, const char *key)
{
    const char *s = json_get_text(o, key);
    return *s ? xstrdup(s) : NULL;
}

static void answered(void *ctx, const struct http_result *r)
{
    struct basic_attempt *a = ctx;
    CLEANUP(json_free) struct json *o = NULL;
    a->call = NULL;
    if (r->error) {
        peer_attempt_fail(&a->base, "%s", r->error_text);
    } else if (r->status == 401) {
        peer_attempt_refuse(&a->base, "the server refused name and password");
    } else if (r->status >= 300 && r->status < 400) {
        peer_attempt_fail(&a->base, "the server answered a redirect (%d), which is not followed",
                          r->status);
    } else if (r->status != 200) {
        peer_attempt_fail(&a->base, "the server answered %d", r->status);
    } else if (json_parse(r->body, r->size, &o, NULL) < 0 || !json_is(o, JSON_OBJECT)) {
        peer_attempt_fail(&a->base, "the answer is no JSON object");
    } else if (json_get(o, "error")) {
        peer_attempt_fail(&a->base, "the server answered the error \"%.200s\"",
                          json_get_text(o, "error"));
    } else if (!*json_get_text(o, "sub")) {
        peer_attempt_fail(&a->base, "the answer has no \"sub\"");
    } else {
        struct identity id = {.user = text_of(o, "sub"),
                              .preferred = text_of(o, "preferred_username"),
                              .name = text_of(o, "name"),
                              .email = text_of(o, "email")};
        peer_attempt_prove(&a->base, &id);
        identity_done(&id);
    }
}

static void stop(struct peer_attempt *base)
{
    struct basic_attempt *a = CONTAINER_OF(base, struct basic_attempt, base);
    a->call = remote_call_cancel(a->call);
}

static struct identity_attempt *password(struct identity_provider *base, const char *user,
                                         const char *text, identity_fn *fn, void *ctx)
{
    struct basic_auth *p = CONTAINER_OF(base, struct basic_auth, base);
    struct basic_attempt *a = NEW(struct basic_attempt);
    peer_attempt_begin(&a->base, p->loop, &p->attempts, stop, fn, ctx);
    if (strchr(user, ':')) {
        peer_attempt_refuse(&a->base, "a name with \":\" cannot be sent (RFC 7617)");
        return &a->base.base;
    }
    if (!*user || !*text) {
        peer_attempt_refuse(&a->base, "empty name or password");
        return &a->base.base;
    }
    if (peer_attempts_full(&a->base, &p->attempts)) {
        return &a->base.base;
    }
    char *pair = xasprintf("%s:%s", user, text);
    struct strbuf header = STRBUF_INIT;
    strbuf_adds(&header, "Authorization: Basic ");
    base64_encode(pair, strlen(pair), &header);
    strbuf_adds(&header, "\r\n");
    secret_text_free(pair);
    a->base.stage = "answer of the server";
    a->call = remote_call(p->remote, "GET", NULL, header.data, NULL, NULL, answered, a);
    explicit_bzero(header.data, header.size);
    strbuf_done(&header);
    return &a->base.base;
}

const struct identity_kind identity_basic_auth = {.name = "BasicAuthPasswordIdentityProvider",
                                                  .check = check,
                                                  .open = open_basic,
                                                  .close = close_basic,
                                                  .password = password};
