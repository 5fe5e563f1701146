/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"

#include <stdio.h>

#define MAX_SERVERS 16
#define QUIET_MS 90000u

struct server {
    char *url;
    struct http_client *http;
};

struct api_client {
    api_trace_fn *trace; /* NULL: none. */
    struct loop *loop;
    struct server servers[MAX_SERVERS];
    size_t n_servers, now;
    char *ns;
    uint64_t quiet_ms;
    struct list calls;
    struct api_client *base; /* The client whose connections are used; NULL: its own. */
    char *headers;           /* Further header lines of each request; NULL: none. */
};

struct api_call {
    struct list node; /* In the list of the client's calls. */
    struct api_client *client;
    const struct http_client *used;
    struct http_call *http;
    api_done_fn *done;
    void *ctx;
};

LOG_MODULE("client");

static struct tls_client_config tls_of(const struct kubeconfig *k)
{
    return (struct tls_client_config){.ca = k->ca,
                                      .cert = k->cert,
                                      .key = k->key,
                                      .server_name = k->server_name,
                                      .insecure = k->insecure};
}

int api_client_set_tls(struct api_client *c, const struct kubeconfig *k, struct err *e)
{
    struct tls_client_config tls = tls_of(k);
    int r = 0;
    for (size_t i = 0; i < c->n_servers && r == 0; i++) {
        r = http_client_set_tls(c->servers[i].http, &tls, e);
    }
    return r;
}

/* Takes the next of 'urls', which are separated by commas: owned; NULL: there is none. */
static char *url_next(const char **urls)
{
    size_t n = strcspn(*urls, ",");
    char *url = n ? xstrndup(*urls, n) : NULL;
    *urls += n + ((*urls)[n] == ',');
    return url;
}

static int servers_open(struct api_client *c, const struct http_client_config *first,
                        const char *more, struct err *e)
{
    struct http_client_config cfg = *first;
    char *url = xstrdup(first->url);
    while (url) {
        if (c->n_servers == MAX_SERVERS) {
            free(url);
            return err_set(e, -E2BIG, "more than %d servers", MAX_SERVERS);
        }
        struct server *s = &c->servers[c->n_servers];
        cfg.url = s->url = url;
        int r = http_client_new(c->loop, &cfg, &s->http, e);
        c->n_servers++;
        if (r < 0) {
            return r;
        }
        url = more ? url_next(&more) : NULL;
    }
    return 0;
}

int api_client_with(struct loop *l, const struct kubeconfig *k, const char *user_agent,
                    struct api_client **ret, struct err *e)
{
    struct tls_client_config tls = tls_of(k);
    struct http_client_config cfg = {
        .url = k->server, .tls = &tls, .user_agent = user_agent, .bearer_token = k->token};
    struct api_client *c = NEW(struct api_client);
    c->loop = l;
    c->quiet_ms = QUIET_MS;
    c->ns = xstrdup(k->ns ? k->ns : "default");
    list_init(&c->calls);
    int r = servers_open(c, &cfg, k->more_servers, e);
    if (r < 0) {
        api_client_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

int api_client_new(struct loop *l, const char *url, const char *user_agent, struct api_client **ret,
                   struct err *e)
{
    struct kubeconfig k = {.server = (char *) url};
    return api_client_with(l, &k, user_agent, ret, e);
}

int api_client_from_kubeconfig(struct loop *l, const char *path, const char *user_agent,
                               struct api_client **ret, struct err *e)
{
    struct kubeconfig k = {0};
    int r = kubeconfig_load(path, &k, e);
    if (r < 0) {
        return r;
    }
    r = api_client_with(l, &k, user_agent, ret, e);
    kubeconfig_done(&k);
    return r;
}

/* 'headers' is taken over. */
static struct api_client *client_with_headers(struct api_client *base, char *headers)
{
    struct api_client *c = NEW(struct api_client);
    c->loop = base->loop;
    c->base = base;
    c->ns = xstrdup(base->ns);
    c->headers = headers;
    list_init(&c->calls);
    return c;
}

struct api_client *api_client_as(struct api_client *base, const char *user)
{
    return client_with_headers(base, xasprintf("Impersonate-User: %s\r\n", user));
}

/* Appends a header; a value with a control character could end it and begin another one. */
static int add_header(struct strbuf *out, const char *name, const struct json *value, struct err *e)
{
    const char *s = json_get_string(value);
    for (const char *p = s; p && *p; p++) {
        if ((unsigned char) *p < ' ' || *p == 0x7f) {
            return err_set(e, -EINVAL, "a control character in the value of %s", name);
        }
    }
    return !s ? err_set(e, -EINVAL, "the value of %s is not a text", name)
              : strbuf_addf(out, "%s: %s\r\n", name, s);
}

/* "Impersonate-Extra-KEY", whose key is percent-encoded; owned. */
static char *extra_name(const char *key)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "Impersonate-Extra-");
    http_escape(key, &b);
    return strbuf_steal(&b);
}

int api_client_as_user(struct api_client *base, const struct json *user, struct api_client **ret,
                       struct err *e)
{
    const struct json *extra = json_get(user, "extra"), *v, *uid = json_get(user, "uid");
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!*json_get_text(user, "username")) {
        return err_set(e, -EINVAL, "the user has no name");
    }
    int r = add_header(&b, "Impersonate-User", json_get(user, "username"), e);
    if (r == 0 && json_string_size(uid)) {
        r = add_header(&b, "Impersonate-Uid", uid, e);
    }
    JSON_FOREACH (v, json_get(user, "groups")) {
        r = r < 0 ? r : add_header(&b, "Impersonate-Group", v, e);
    }
    for (size_t i = 0; i < json_count(extra); i++) {
        CLEANUP_FREE char *name = extra_name(json_key_at(extra, i));
        JSON_FOREACH (v, json_at(extra, i)) {
            r = r < 0 ? r : add_header(&b, name, v, e);
        }
    }
    if (r < 0) {
        return r;
    }
    *ret = client_with_headers(base, strbuf_steal(&b));
    return 0;
}

struct api_client *api_client_free(struct api_client *c)
{
    if (c) {
        for (size_t i = 0; i < c->n_servers; i++) {
            http_client_free(c->servers[i].http);
            free(c->servers[i].url);
        }
        struct api_call *call;
        LIST_FOREACH (call, struct api_call, node, &c->calls) {
            if (c->base) { /* The connections stay, so the call has to be ended. */
                http_call_cancel(call->http);
            }
            free(call);
        }
        free(c->ns);
        free(c->headers);
        free(c);
    }
    return NULL;
}

const char *api_client_namespace(const struct api_client *c)
{
    return c->ns;
}

const char *api_client_server(const struct api_client *c)
{
    return c->base ? api_client_server(c->base) : c->servers[c->now].url;
}

struct http_client *api_client_http(struct api_client *c)
{
    return c->base ? api_client_http(c->base) : c->servers[c->now].http;
}

uint64_t api_client_quiet_ms(const struct api_client *c)
{
    return c->quiet_ms;
}

void api_client_set_quiet_ms(struct api_client *c, uint64_t ms)
{
    c->quiet_ms = ms;
}

void api_client_ended(struct api_client *c, const struct http_client *used,
                      const struct http_result *r)
{
    if (c->base) {
        api_client_ended(c->base, used, r);
        return;
    }
    bool failed = r->error < 0 || r->status == 502 || r->status == 503;
    /* When many calls fail together, only the first one changes the server. */
    if (!failed || c->n_servers < 2 || used != c->servers[c->now].http) {
        return;
    }
    static struct log_limit limit = {.burst = 5};
    size_t next = (c->now + 1) % c->n_servers;
    log_limited(&limit, LOG_WARN, "switching to another server", "from=%s to=%s reason=\"%s\"",
                c->servers[c->now].url, c->servers[next].url,
                r->error < 0 ? r->error_text : "it is not available");
    http_client_break_streams(c->servers[c->now].http);
    c->now = next;
}

/* Maps an HTTP status as described in client.h; 'reason' is that of the Status, or NULL. */
static int status_errno(int status, const char *reason)
{
    switch (status) {
    case 400:
    case 415:
    case 422:
        return -EINVAL;
    case 401:
        return -EPERM;
    case 403:
        return -EACCES;
    case 404:
        return -ENOENT;
    case 405:
        return -EOPNOTSUPP;
    case 409:
        return streq_null(reason, "AlreadyExists") ? -EEXIST : -ESTALE;
    case 410:
        return -ESTALE;
    default:
        return status == 429 || status >= 500 ? -EAGAIN : -EPROTO;
    }
}

/* Decodes a complete response: '*ret' is owned, or NULL with an error and its text. */
static int decode(const struct api_client *c, const struct http_result *r, struct json **ret,
                  struct err *e)
{
    *ret = NULL;
    if (r->error < 0) {
        return err_set(e, r->error, "%s", r->error_text);
    }
    struct json *obj = NULL;
    struct err bad = {0};
    int parsed = r->size ? json_parse(r->body, r->size, &obj, &bad) : 0;
    if (r->status >= 200 && r->status < 300) {
        if (parsed < 0 && str_has_prefix(r->content_type, "text/plain")) {
            obj = json_string_n(r->body, r->size); /* Such as the text "ok" of /readyz. */
        } else if (parsed < 0) {
            return err_set(e, -EPROTO, "%s answered with bad JSON: %s", api_client_server(c),
                           bad.text);
        }
        *ret = obj;
        return 0;
    }
    const char *message = json_path_string(obj, "message", NULL);
    int code = status_errno(r->status, json_path_string(obj, "reason", NULL));
    if (message) {
        err_set(e, code, "%s", message);
    } else {
        err_set(e, code, "%s answered with status %d", api_client_server(c), r->status);
    }
    json_free(obj);
    return code;
}

static void request_done(void *ctx, const struct http_result *r)
{
    struct api_call *call = ctx;
    struct err e = {0};
    CLEANUP(json_free) struct json *obj = NULL;
    int error = decode(call->client, r, &obj, &e);
    api_client_ended(call->client, call->used, r);
    api_done_fn *done = call->done;
    void *done_ctx = call->ctx;
    list_remove(&call->node);
    free(call);
    done(done_ctx, error, e.text, obj);
}

struct api_call *api_request(struct api_client *c, const char *method, const char *path,
                             const char *content_type, const struct json *body, api_done_fn *done,
                             void *ctx)
{
    return api_request_as(c, method, path, NULL, content_type, body, done, ctx);
}

struct api_call *api_request_as(struct api_client *c, const char *method, const char *path,
                                const char *accept, const char *content_type,
                                const struct json *body, api_done_fn *done, void *ctx)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (body) {
        json_write(body, 0, &text);
        content_type = content_type ? content_type : "application/json";
    }
    struct api_call *call = NEW(struct api_call);
    call->client = c;
    list_push_back(&c->calls, &call->node);
    call->done = done;
    call->ctx = ctx;
    call->used = api_client_http(c);
    call->http =
        http_call_with(api_client_http(c), method, path, accept ? accept : "application/json",
                       content_type, c->headers, text.data, text.size, request_done, call);
    return call;
}

void api_call_cancel(struct api_call *call)
{
    if (call) {
        http_call_cancel(call->http);
        list_remove(&call->node);
        free(call);
    }
}

/* ---- synchronous ---- */

struct waiting {
    struct api_client *client;
    const struct http_client *used;
    bool finished;
    int error;
    struct json *obj;
    struct err *e;
};

static void waiting_done(void *ctx, const struct http_result *r)
{
    struct waiting *w = ctx;
    w->error = decode(w->client, r, &w->obj, w->e);
    api_client_ended(w->client, w->used, r);
    w->finished = true;
}

int api_request_sync(struct api_client *c, const char *method, const char *path, const char *accept,
                     const char *content_type, const struct json *body, struct json **ret,
                     struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (body) {
        json_write(body, 0, &text);
        content_type = content_type ? content_type : "application/json";
    }
    struct waiting w = {.client = c, .used = api_client_http(c), .e = e};
    uint64_t begin = time_mono_ms();
    struct http_call *call =
        http_call_with(api_client_http(c), method, path, accept ? accept : "application/json",
                       content_type, c->headers, text.data, text.size, waiting_done, &w);
    int r = loop_run_until(c->loop, &w.finished, 0);
    if (c->trace) {
        c->trace(c, method, path, r < 0 ? r : w.error, time_mono_ms() - begin);
    }
    if (r < 0) {
        http_call_cancel(call);
        return err_set(e, r, "%s %s: interrupted", method, path);
    }
    if (w.error == 0 && ret) {
        *ret = w.obj;
    } else {
        json_free(w.obj);
    }
    return w.error;
}

void api_client_set_trace(struct api_client *c, api_trace_fn *fn)
{
    c->trace = fn;
}

char *api_path(const char *api_version, const char *plural, const char *ns, const char *name,
               const char *subresource)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "/%s/%s", strchr(api_version, '/') ? "apis" : "api", api_version);
    if (ns) {
        strbuf_adds(&b, "/namespaces/");
        http_escape(ns, &b);
    }
    strbuf_addf(&b, "/%s", plural);
    if (name) {
        strbuf_addc(&b, '/');
        http_escape(name, &b);
    }
    if (subresource) {
        strbuf_addf(&b, "/%s", subresource);
    }
    return strbuf_steal(&b);
}
