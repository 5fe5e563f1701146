/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define WAIT_MS 20000

static void on_ready(void *ctx)
{
    struct harness *h = ctx;
    h->ready = true;
}

static void listen_on(struct harness *h, const struct http_limits *limits, uint16_t port)
{
    char address[32];
    struct err e = {0};
    int fd;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    if (sock_listen_tcp(address, &fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->port = (uint16_t) sock_local_port(fd);
    h->http = http_server_new(h->loop, limits, apiserver_handle, h->api);
    if (http_server_add_listener(h->http, fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

char *harness_url(const struct harness *h)
{
    return xasprintf("http://127.0.0.1:%u", h->port);
}

static struct http_client *new_client(struct harness *h)
{
    CLEANUP_FREE char *url = harness_url(h);
    struct http_client_config cfg = {.url = url, .bearer_token = h->token};
    struct http_client *c = NULL;
    struct err e = {0};
    if (http_client_new(h->loop, &cfg, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

struct harness *harness_new(const struct apiserver_config *given, const struct http_limits *limits)
{
    struct harness *h = NEW(struct harness);
    struct store_config store = {.backend = "memory"};
    struct apiserver_config cfg = given ? *given : (struct apiserver_config){0};
    struct err e = {0};
    cfg.ready = on_ready;
    cfg.ctx = h;
    h->loop = loop_new();
    if (store_open(h->loop, &store, &h->store, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->api = apiserver_new(h->loop, h->store, &cfg);
    listen_on(h, limits, 0);
    assert_int_equal(loop_run_until(h->loop, &h->ready, WAIT_MS), 0);
    h->token = cfg.security ? xstrdup(cfg.security->loopback_token) : NULL;
    h->client = new_client(h);
    free(make_namespace(h, "default"));
    return h;
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

void harness_stop_listening(struct harness *h)
{
    bool done = false;
    http_server_shutdown(h->http, WAIT_MS, set_flag, &done);
    assert_int_equal(loop_run_until(h->loop, &done, WAIT_MS), 0);
    h->http = http_server_free(h->http);
}

void harness_listen_again(struct harness *h)
{
    listen_on(h, NULL, h->port);
}

void harness_free(struct harness *h)
{
    http_client_free(h->client);
    apiserver_shutdown(h->api);
    if (h->http) {
        bool done = false;
        http_server_shutdown(h->http, WAIT_MS, set_flag, &done);
        assert_int_equal(loop_run_until(h->loop, &done, WAIT_MS), 0);
    }
    store_close(h->store);
    http_server_free(h->http);
    apiserver_free(h->api);
    loop_free(h->loop);
    free(h->token);
    free(h);
}

/* ---- requests ---- */

struct asking {
    bool done;
    struct answer answer;
};

static void answered(void *ctx, const struct http_result *r)
{
    struct asking *q = ctx;
    q->done = true;
    if (r->error < 0) {
        fail_msg("request failed: %s", r->error_text);
    }
    q->answer.status = r->status;
    q->answer.content_type = xstrdup(r->content_type);
    q->answer.text = xstrndup(r->body ? r->body : "", r->size);
    json_parse(q->answer.text, r->size, &q->answer.body, NULL);
}

struct answer ask_as(struct harness *h, const char *user, const char *method, const char *path,
                     const char *type, const char *body)
{
    struct http_client *master = h->client;
    h->client = new_client(h);
    http_client_add_header(h->client, "Impersonate-User", user);
    http_client_add_header(h->client, "Impersonate-Group", "system:authenticated");
    struct answer a = ask_full(h, method, path, NULL, type, body);
    http_client_free(h->client);
    h->client = master;
    return a;
}

struct answer ask_full(struct harness *h, const char *method, const char *path, const char *accept,
                       const char *type, const char *body)
{
    struct asking q = {0};
    http_call(h->client, method, path, accept, body ? (type ? type : "application/json") : NULL,
              body, body ? strlen(body) : 0, answered, &q);
    if (loop_run_until(h->loop, &q.done, WAIT_MS) < 0) {
        fail_msg("%s %s: no answer", method, path);
    }
    return q.answer;
}

struct answer ask(struct harness *h, const char *method, const char *path, const char *body)
{
    return ask_full(h, method, path, NULL, NULL, body);
}

struct answer ask_ok(struct harness *h, const char *method, const char *path, const char *body,
                     int want)
{
    struct answer a = ask(h, method, path, body);
    if (a.status != want) {
        fail_msg("%s %s: %d: %s", method, path, a.status, a.text);
    }
    return a;
}

void answer_done(struct answer *a)
{
    free(a->content_type);
    free(a->text);
    json_free(a->body);
}

const char *at(const struct answer *a, const char *path)
{
    const struct json *v = a->body;
    while (v && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int) n, path);
        uint64_t i;
        v = json_is(v, JSON_ARRAY) && str_to_u64(key, 1000, &i) == 0 ? json_at(v, i)
                                                                     : json_get(v, key);
        path += n + (path[n] == '.');
    }
    const char *s = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
    return s ? s : "";
}

static char *make(struct harness *h, const char *path, const char *body)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", path, body, 201);
    return xstrdup(at(&a, "metadata.resourceVersion"));
}

char *make_namespace(struct harness *h, const char *name)
{
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"%s\"}}", name);
    return make(h, "/api/v1/namespaces", body);
}

char *make_net(struct harness *h, const char *name, int netid, const char *labels)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"metadata\":{\"name\":\"%s\",\"labels\":%s},\"netname\":\"%s\",\"netid\":%d}",
                  name, labels ? labels : "{}", name, netid);
    return make(h, "/apis/network.openshift.io/v1/netnamespaces", body);
}

/* ---- watches ---- */

static void on_opened(void *ctx)
{
    struct watcher *w = ctx;
    w->opened = true;
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct watcher *w = ctx;
    strbuf_add(&w->text, p, size);
    for (;;) {
        const char *nl = w->text.size ? memchr(w->text.data, '\n', w->text.size) : NULL;
        struct json *v;
        if (!nl) {
            return;
        }
        size_t n = (size_t) (nl - w->text.data);
        if (json_parse(w->text.data, n, &v, NULL) < 0) {
            fail_msg("not JSON: %.*s", (int) n, w->text.data);
        }
        json_append(w->events, v);
        strbuf_consume(&w->text, n + 1);
    }
}

static void on_ended(void *ctx, const struct http_result *r)
{
    struct watcher *w = ctx;
    w->ended = true;
    w->call = NULL;
    w->status = r->error ? r->error : r->status;
    w->body = xstrndup(r->body ? r->body : "", r->size);
}

struct watcher *watcher_new(struct harness *h, const char *path, const char *accept)
{
    static const struct http_stream_ops ops = {
        .opened = on_opened, .data = on_data, .ended = on_ended};
    struct watcher *w = NEW(struct watcher);
    w->h = h;
    w->text = STRBUF_INIT;
    w->events = json_array();
    w->call = http_stream(h->client, path, accept, 0, &ops, w);
    bool *flag = &w->opened;
    while (!w->opened && !w->ended) {
        if (loop_run_until(h->loop, flag, 50) < 0 && w->ended) {
            break;
        }
    }
    return w;
}

void watcher_free(struct watcher *w)
{
    if (w->call) {
        http_call_cancel(w->call);
    }
    strbuf_done(&w->text);
    json_free(w->events);
    free(w->body);
    free(w);
}

void watcher_expect(struct watcher *w, size_t n)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS / 5 && json_count(w->events) < n; i++) {
        loop_run_until(w->h->loop, &never, 5);
    }
    if (json_count(w->events) != n) {
        CLEANUP_FREE char *s = watcher_summary(w);
        fail_msg("%zu events, not %zu: %s", json_count(w->events), n, s);
    }
}

void watcher_expect_end(struct watcher *w)
{
    assert_int_equal(loop_run_until(w->h->loop, &w->ended, WAIT_MS), 0);
}

char *watcher_summary(const struct watcher *w)
{
    struct strbuf b = STRBUF_INIT;
    const struct json *ev;
    JSON_FOREACH (ev, w->events) {
        const struct json *meta = json_path(ev, "object", "metadata", NULL);
        const char *name = json_path_string(meta, "name", NULL);
        const char *version = json_path_string(meta, "resourceVersion", NULL);
        strbuf_addf(&b, "%s%s %s@%s", b.size ? ", " : "", json_path_string(ev, "type", NULL),
                    name ? name : "", version ? version : "");
    }
    return strbuf_steal(&b);
}
