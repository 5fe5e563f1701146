/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/sources/url_source.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/said.h"
#include "net/http/http.h"
#include "net/loop/sock.h"

LOG_MODULE("static");

#define RESPONSE_MS 15000

/* A look-up on a worker thread, which outlives its source if it must. */
struct lookup {
    struct url_source *source; /* NULL: it was freed. */
    char *host;
    int error;
    struct err err;
};

struct url_source {
    struct loop *loop;
    char *url;             /* Without its query, which may have a secret. */
    char *server, *target; /* "https://host:port" and "/path?query" */
    char *const *headers;
    uint64_t interval_ms;
    manifests_read_fn *fn;
    void *ctx;
    struct http_client *http; /* NULL: there is none, or it has failed. */
    struct http_call *call;
    struct lookup *lookup;
    struct loop_timer *timer;
    struct said failure;
};

static void failed(struct url_source *s, const char *text)
{
    if (said_is_news(&s->failure, text)) {
        log_warn("the manifest of static pods cannot be read; those that run go on",
                 "url=%s error=\"%s\"", s->url, text);
    }
}

static void answered(void *ctx, const struct http_result *r)
{
    struct url_source *s = ctx;
    s->call = NULL;
    loop_timer_arm(s->timer, s->interval_ms);
    if (r->error < 0 || r->status != 200) {
        /* The error has the whole target before the reason. */
        const char *reason = strstr(r->error_text, s->target);
        reason = reason ? reason + strlen(s->target) + strspn(reason + strlen(s->target), ": ")
                        : r->error_text;
        CLEANUP_FREE char *text =
            r->error < 0 ? xstrdup(reason) : xasprintf("the status is %d", r->status);
        failed(s, text);
        s->http = r->error < 0 ? http_client_free(s->http) : s->http;
        return;
    }
    if (s->failure.text) {
        log_info("the manifest of static pods is read again", "url=%s", s->url);
        said_done(&s->failure);
    }
    struct manifest_text m = {.path = s->url, .text = r->body, .size = r->size};
    s->fn(s->ctx, &m, 1);
}

static void ask(struct url_source *s)
{
    s->call = http_call(s->http, "GET", s->target, "application/yaml, application/json, */*", NULL,
                        NULL, 0, answered, s);
}

static void connect_server(struct url_source *s)
{
    struct http_client_config c = {
        .url = s->server, .response_ms = RESPONSE_MS, .max_body = MANIFEST_MAX_SIZE};
    struct err e = {0};
    if (http_client_new(s->loop, &c, &s->http, &e) < 0) {
        failed(s, e.text);
        loop_timer_arm(s->timer, s->interval_ms);
        return;
    }
    for (char *const *h = s->headers; h && *h; h++) {
        const char *value = strchr(*h, ':') + 1;
        CLEANUP_FREE char *name = xstrndup(*h, strcspn(*h, ":"));
        http_client_add_header(s->http, name, value + strspn(value, " "));
    }
    ask(s);
}

static void look_up(void *ctx)
{
    struct lookup *l = ctx;
    CLEANUP_FREE char *address = NULL;
    l->error = sock_resolve(l->host, &address, &l->err);
}

static void looked_up(void *ctx)
{
    struct lookup *l = ctx;
    struct url_source *s = l->source;
    if (s) {
        s->lookup = NULL;
        if (l->error < 0) {
            failed(s, l->err.text);
            loop_timer_arm(s->timer, s->interval_ms);
        } else {
            connect_server(s);
        }
    }
    free(l->host);
    free(l);
}

static void poll_server(void *ctx)
{
    struct url_source *s = ctx;
    if (s->http) {
        ask(s);
        return;
    }
    const char *host = strstr(s->server, "://") + 3;
    s->lookup = NEW(struct lookup);
    s->lookup->source = s;
    s->lookup->host = xstrndup(host, strcspn(host, ":"));
    loop_work(s->loop, look_up, looked_up, s->lookup);
}

struct url_source *url_source_new(struct loop *l, const char *url, char *const *headers,
                                  uint64_t interval_ms, manifests_read_fn *fn, void *ctx)
{
    struct url_source *s = NEW(struct url_source);
    const char *host = strstr(url, "://") + 3, *path = host + strcspn(host, "/?#");
    s->loop = l;
    s->url = xstrndup(url, strcspn(url, "?#"));
    s->server = xstrndup(url, (size_t) (path - url));
    s->target = xasprintf("%s%.*s", *path == '/' ? "" : "/", (int) strcspn(path, "#"), path);
    s->headers = headers;
    s->interval_ms = interval_ms;
    s->fn = fn;
    s->ctx = ctx;
    s->timer = loop_timer_new(l, poll_server, s);
    loop_timer_arm(s->timer, 0);
    return s;
}

struct url_source *url_source_free(struct url_source *s)
{
    if (s) {
        if (s->lookup) {
            s->lookup->source = NULL;
        }
        if (s->call) {
            http_call_cancel(s->call);
        }
        http_client_free(s->http);
        loop_timer_free(s->timer);
        said_done(&s->failure);
        free(s->url);
        free(s->server);
        free(s->target);
        free(s);
    }
    return NULL;
}
