/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/webhook_call.h"

#include "apiserver/admission/backends.h"
#include "apiserver/admission/webhook_review.h"
#include "base/ip.h"
#include "base/timeutil.h"
#include "net/http/http.h"
#include "net/loop/sock.h"

#include <inttypes.h>
#include <stdio.h>

#define NAME_TTL_MS 30000
#define MAX_CLIENTS 256 /* Idle connections to more servers than that are not kept. */
#define MAX_NAMES 256
#define CONNECT_MS 10000

/* The connections to one address, for one name and authority. */
struct client {
    unsigned calls;
    bool doomed; /* It is freed when its last call has ended. */
    struct http_client *http;
};

/* The address of a name; the worker thread reads 'host' and writes 'address' and 'why'. */
struct name {
    struct webhook_callers *callers; /* NULL: they have gone; the worker's end frees the name. */
    char *host;
    char *address; /* NULL: it is not resolved. */
    struct err why;
    uint64_t expires_ms;
    bool resolving;
};

struct webhook_callers {
    struct apiserver *server;
    struct smap clients; /* By "ADDRESS:PORT HOST CA": struct client. */
    struct smap names;   /* By host: struct name. */
    struct name *busy;   /* The name that the worker resolves. */
    struct list waiting; /* Calls that wait for an address. */
};

struct webhook_call {
    struct list node; /* In 'waiting', or unlinked. */
    struct webhook_callers *callers;
    char *host, *path, *ca, *location;
    uint16_t port, named; /* The port of the server, and that of the service or URL. */
    struct strbuf body;
    uint64_t timeout_ms;
    struct loop_timer *timer;
    struct loop_task failed; /* Reports a failure that webhook_call met. */
    struct err why;
    struct client *client;
    struct http_call *http;
    webhook_call_fn *fn;
    void *ctx;
};

/* ---- clients ---- */

static struct client *client_free(struct client *c)
{
    http_client_free(c->http);
    free(c);
    return NULL;
}

static void client_drop(void *client)
{
    struct client *c = client;
    if (c->calls) {
        c->doomed = true;
    } else {
        client_free(c);
    }
}

static void client_release(struct client *c)
{
    if (c && --c->calls == 0 && c->doomed) {
        client_free(c);
    }
}

static struct client *client_get(const struct webhook_call *call, const char *address,
                                 struct err *e)
{
    struct webhook_callers *w = call->callers;
    CLEANUP_FREE char *key = xasprintf("%s:%u %s:%u %s", address, call->port, call->host,
                                       call->named, call->ca ? call->ca : "-");
    struct client *c = smap_get(&w->clients, key);
    if (!c) {
        CLEANUP_FREE char *url = xasprintf("https://%s:%u", address, call->port);
        CLEANUP_FREE char *host = xasprintf("%s:%u", call->host, call->named);
        const struct tls_client_config tls = {.ca = call->ca, .server_name = call->host};
        const struct http_client_config cfg = {.url = url,
                                               .tls = &tls,
                                               .host = host,
                                               .connect_ms = CONNECT_MS,
                                               .response_ms = CONNECT_MS * 6,
                                               .max_body = WEBHOOK_MAX_ANSWER};
        struct http_client *http;
        if (http_client_new(w->server->loop, &cfg, &http, e) < 0) {
            return NULL;
        }
        if (smap_size(&w->clients) >= MAX_CLIENTS) {
            smap_clear(&w->clients);
        }
        c = NEW(struct client);
        c->http = http;
        smap_set(&w->clients, key, c);
    }
    c->calls++;
    return c;
}

/* ---- a call ---- */

static void call_free(struct webhook_call *call)
{
    list_remove(&call->node);
    loop_timer_free(call->timer);
    loop_task_cancel(&call->failed);
    strbuf_done(&call->body);
    free(call->host);
    free(call->path);
    free(call->ca);
    free(call->location);
    free(call);
}

void webhook_call_cancel(struct webhook_call *call)
{
    if (call->http) {
        http_call_cancel(call->http);
    }
    client_release(call->client);
    call_free(call);
}

/* Ends the call, and reports; 'why' NULL: there is an answer. */
static void call_end(struct webhook_call *call, const char *body, size_t size, const char *why)
{
    webhook_call_fn *fn = call->fn;
    void *ctx = call->ctx;
    client_release(TAKE(call->client));
    call_free(call);
    fn(ctx, body, size, why);
}

static void call_fail(struct webhook_call *call, const char *why)
{
    CLEANUP_FREE char *text = xasprintf("%s: %s", call->location, why);
    call_end(call, NULL, 0, text);
}

static void on_failed(void *ctx)
{
    struct webhook_call *call = ctx;
    struct err why = call->why;
    call_fail(call, why.text);
}

static void on_timeout(void *ctx)
{
    struct webhook_call *call = ctx;
    CLEANUP_FREE char *why = xasprintf("no answer within %" PRIu64 " ms", call->timeout_ms);
    if (call->http) {
        http_call_cancel(TAKE(call->http));
    }
    call_fail(call, why);
}

static void on_answer(void *ctx, const struct http_result *r)
{
    struct webhook_call *call = ctx;
    call->http = NULL;
    if (r->error < 0) {
        call_fail(call, *r->error_text ? r->error_text : strerror(-r->error));
    } else if (r->status != 200) {
        CLEANUP_FREE char *why =
            xasprintf("the server answered with status %d%s", r->status,
                      r->status >= 300 && r->status < 400 ? "; redirects are not followed" : "");
        call_fail(call, why);
    } else {
        call_end(call, r->body, r->size, NULL);
    }
}

/* Sends the call to the address. */
static void call_send(struct webhook_call *call, const char *address)
{
    call->client = client_get(call, address, &call->why);
    if (!call->client) {
        loop_task_queue(&call->failed);
        return;
    }
    call->http = http_call(call->client->http, "POST", call->path, "application/json",
                           "application/json", call->body.data, call->body.size, on_answer, call);
    strbuf_done(&call->body);
}

/* ---- names ---- */

static void name_free(void *name)
{
    struct name *n = name;
    if (n->resolving) {
        n->callers = NULL;
        return;
    }
    free(n->host);
    free(n->address);
    free(n);
}

static void resolve(void *ctx)
{
    struct name *n = ctx;
    free(TAKE(n->address));
    (void) sock_resolve(n->host, &n->address, &n->why);
}

static void resolve_next(struct webhook_callers *w);

static void on_resolved(void *ctx)
{
    struct name *n = ctx;
    struct webhook_callers *w = n->callers;
    struct webhook_call *call;
    n->resolving = false;
    if (!w) {
        name_free(n);
        return;
    }
    w->busy = NULL;
    n->expires_ms = time_mono_ns() / 1000000 + NAME_TTL_MS;
    LIST_FOREACH (call, struct webhook_call, node, &w->waiting) {
        if (!streq(call->host, n->host)) {
            continue;
        }
        list_remove(&call->node);
        if (n->address) {
            call_send(call, n->address);
        } else {
            call->why = n->why;
            loop_task_queue(&call->failed);
        }
    }
    if (!n->address) {
        name_free(smap_take(&w->names, n->host)); /* It is asked for again next time. */
    }
    resolve_next(w);
}

/* Begins to resolve the name of the first waiting call. */
static void resolve_next(struct webhook_callers *w)
{
    if (w->busy || list_is_empty(&w->waiting)) {
        return;
    }
    const struct webhook_call *call = CONTAINER_OF(w->waiting.next, struct webhook_call, node);
    struct name *n = smap_get(&w->names, call->host);
    if (!n) {
        if (smap_size(&w->names) >= MAX_NAMES) {
            smap_clear(&w->names);
        }
        n = NEW(struct name);
        n->host = xstrdup(call->host);
        smap_set(&w->names, n->host, n);
    }
    n->callers = w;
    n->resolving = true;
    w->busy = n;
    loop_work(w->server->loop, resolve, on_resolved, n);
}

static void find_name(struct webhook_call *call)
{
    struct webhook_callers *w = call->callers;
    const struct name *n = smap_get(&w->names, call->host);
    uint32_t ip;
    if (ip4_parse(call->host, &ip) == 0) {
        call_send(call, call->host);
    } else if (n && n != w->busy && n->address && n->expires_ms > time_mono_ns() / 1000000) {
        call_send(call, n->address);
    } else {
        list_push_back(&w->waiting, &call->node);
        resolve_next(w);
    }
}

/* ---- the interface ---- */

struct webhook_callers *webhook_callers_new(struct apiserver *a)
{
    struct webhook_callers *w = NEW(struct webhook_callers);
    w->server = a;
    smap_init(&w->clients, client_drop);
    smap_init(&w->names, name_free);
    list_init(&w->waiting);
    return w;
}

struct webhook_callers *webhook_callers_free(struct webhook_callers *w)
{
    if (w) {
        smap_done(&w->clients);
        smap_done(&w->names);
        free(w);
    }
    return NULL;
}

struct webhook_call *webhook_call(struct webhook_callers *w, const struct webhook *h,
                                  uint64_t timeout_ms, const struct strbuf *body,
                                  webhook_call_fn *fn, void *ctx)
{
    struct webhook_call *call = NEW(struct webhook_call);
    uint16_t port = h->port;
    uint32_t ip;
    list_init(&call->node);
    call->callers = w;
    call->host = xstrdup(h->host);
    call->named = h->port;
    call->ca = h->ca ? xstrdup(h->ca) : NULL;
    call->location = xstrdup(h->location);
    call->path = xasprintf("%s?timeout=%us", h->path, h->timeout_s);
    call->body = STRBUF_INIT;
    strbuf_add(&call->body, body->data, body->size);
    call->timeout_ms = timeout_ms;
    call->fn = fn;
    call->ctx = ctx;
    loop_task_init(&call->failed, w->server->loop, on_failed, call);
    call->timer = loop_timer_new(w->server->loop, on_timeout, call);
    loop_timer_arm(call->timer, timeout_ms);
    if (!h->by_service) {
        call->port = port;
        find_name(call);
    } else if (backends_resolve(w->server, h->namespace, h->service, h->port, &ip, &port,
                                &call->why) < 0) {
        loop_task_queue(&call->failed);
    } else {
        call->port = port;
        call_send(call, IP4_TEXT(ip));
    }
    return call;
}
