/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/stream/proxy.h"

#include "apiserver/admission/addresses.h"
#include "apiserver/admission/admission.h"
#include "apiserver/admission/backends.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/respond.h"
#include "apiserver/stream/stream_priv.h"
#include "base/timeutil.h"
#include "net/stream/splice.h"
#include "wire/http1.h"

#include <strings.h>

#define CONNECT_MS 10000
#define ANSWER_MS 300000
#define TICK_MS 1000 /* Between checks whether tokens have ended. */
#define MAX_PROXIED 1000
#define MAX_OF_NAMESPACE 100
#define HTTP_PORT 80
#define HTTPS_PORT 443

/* "[https:]NAME[:PORT]" */
struct target {
    bool tls;
    char *name, *port; /* 'port' "": none. */
};

struct proxied {
    struct list node; /* In apiserver->proxied. */
    struct apiserver *server;
    struct request *q;
    char *namespace;
    char *base; /* Path of the request up to "/proxy". */
    char *host; /* "10.128.0.5:8080" */
    struct http_client *client;
    struct http_call *call; /* Until it has ended; NULL. */
    struct splice *splice;  /* Of an upgrade; NULL: none. */
    char *protocol;         /* Of an upgrade; NULL: none. */
    bool begun;             /* The response has begun. */
};

bool proxy_is_passed(const struct request *q)
{
    return streq(q->subresource, "proxy") && !*q->kind->group;
}

bool proxy_is_asked(const struct request *q)
{
    return proxy_is_passed(q) && !streq(q->kind->plural, "nodes");
}

/* ---- the target ---- */

static void target_donep(struct target *t)
{
    free(t->name);
    free(t->port);
}

static int target_parse(const char *text, struct target *ret, struct outcome *outcome)
{
    const char *at = text, *first = strchr(text, ':');
    const char *second = first ? strchr(first + 1, ':') : NULL;
    bool tls = false;
    if (second || (first && (str_has_prefix(text, "https:") || str_has_prefix(text, "http:")))) {
        tls = str_has_prefix(text, "https:");
        if (!tls && !str_has_prefix(text, "http:") && *text != ':') {
            outcome_error(outcome, 400, "BadRequest",
                          "invalid request \"%.200s\": the scheme is http or https", text);
            return -EINVAL;
        }
        at = first + 1;
        first = second;
    }
    const char *port = first ? first + 1 : "";
    if (!*at || *at == ':' || strchr(port, ':')) {
        outcome_error(outcome, 400, "BadRequest",
                      "invalid request \"%.200s\": [https:]NAME[:PORT] is expected", text);
        return -EINVAL;
    }
    *ret = (struct target){.tls = tls,
                           .name = first ? xstrndup(at, (size_t) (first - at)) : xstrdup(at),
                           .port = xstrdup(port)};
    return 0;
}

static struct json *find(const struct request *q, const char *plural, const char *name)
{
    return backends_find(q->server, plural, q->namespace, name);
}

static bool is_number(const char *port, uint64_t *ret)
{
    return str_to_u64(port, UINT16_MAX, ret) == 0 && *ret;
}

/* The port of a pod by number or name; "": its first one. */
static uint16_t pod_port(const struct json *pod, const struct target *t)
{
    const struct json *container, *port;
    uint64_t number;
    if (is_number(t->port, &number)) {
        return (uint16_t) number;
    }
    JSON_FOREACH (container, json_path(pod, "spec", "containers", NULL)) {
        JSON_FOREACH (port, json_get(container, "ports")) {
            if (!*t->port || streq(json_get_text(port, "name"), t->port)) {
                return (uint16_t) json_get_int_or(json_get(port, "containerPort"), 0);
            }
        }
    }
    return *t->port ? 0 : t->tls ? HTTPS_PORT : HTTP_PORT;
}

/* The address and port of the pod: "10.128.0.5:8080"; NULL: the outcome is filled. */
static char *host_of(const struct request *q, const struct json *pod, uint16_t port,
                     struct outcome *outcome)
{
    const char *name = json_path_string(pod, "metadata", "name", NULL);
    struct err e = {0};
    uint32_t ip;
    if (addresses_of_pod(q->server->addresses, pod, &ip, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "pod %s cannot be reached: %s", name, e.text);
        return NULL;
    }
    return xasprintf("%s:%u", IP4_TEXT(ip), port);
}

static char *find_pod_host(const struct request *q, const struct target *t, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *pod = find(q, "pods", t->name);
    if (!pod) {
        outcome_not_found(outcome, q->kind, t->name);
        return NULL;
    }
    uint16_t port = pod_port(pod, t);
    if (!port) {
        outcome_error(outcome, 400, "BadRequest", "pod %s has no port %.64s", t->name, t->port);
        return NULL;
    }
    return admission_check_entry(q, pod, outcome) < 0 ? NULL : host_of(q, pod, port, outcome);
}

static char *find_service_host(const struct request *q, const struct target *t,
                               struct outcome *outcome)
{
    CLEANUP(json_free) struct json *service = find(q, "services", t->name);
    CLEANUP(json_free) struct json *endpoints = find(q, "endpoints", t->name);
    if (!service) {
        outcome_not_found(outcome, q->kind, t->name);
        return NULL;
    }
    const struct json *port = backends_port(service, t->port);
    if (!port) {
        outcome_error(outcome, 503, "ServiceUnavailable",
                      "no service port \"%.64s\" found for service \"%s\"", t->port, t->name);
        return NULL;
    }
    uint16_t number;
    CLEANUP(json_free)
    struct json *pod = backends_choose(q->server, endpoints, json_get_text(port, "name"), &number);
    if (!pod) {
        outcome_error(outcome, 503, "ServiceUnavailable",
                      "no endpoints available for service \"%s\"", t->name);
        return NULL;
    }
    return admission_check_entry(q, pod, outcome) < 0 ? NULL : host_of(q, pod, number, outcome);
}

/* ---- headers ---- */

/* Headers of one connection (RFC 9110, 7.6.1). */
static const char *const hop_by_hop[] = {"connection",
                                         "keep-alive",
                                         "proxy-authenticate",
                                         "proxy-authorization",
                                         "proxy-connection",
                                         "te",
                                         "trailer",
                                         "transfer-encoding",
                                         "upgrade",
                                         NULL};
/* Headers of a request that are for the API server alone, or that the client's side sets. */
static const char *const not_sent[] = {"authorization",          "cookie",    "host",
                                       "content-length",         "expect",    "user-agent",
                                       "sec-websocket-protocol", "forwarded", NULL};
static const char *const not_sent_prefixes[] = {"impersonate-", "x-remote-", "x-forwarded-", NULL};
/* Headers of a response that would be about the API server's own origin, or that it sets itself. */
static const char *const not_passed[] = {
    "content-length",  "content-type",    "date",     "set-cookie",
    "set-cookie2",     "audit-id",        "alt-svc",  "strict-transport-security",
    "public-key-pins", "clear-site-data", "location", NULL};
static const char *const not_passed_prefixes[] = {"access-control-", NULL};

static bool is_among(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcasecmp(name, *list) == 0) {
            return true;
        }
    }
    return false;
}

static bool begins_with(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strncasecmp(name, *list, strlen(*list)) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the header Connection names this one. */
static bool is_named(const char *connection, const char *name)
{
    size_t size = strlen(name);
    while (connection && *connection) {
        connection += strspn(connection, " \t,");
        size_t n = strcspn(connection, " \t,");
        if (n == size && n && strncasecmp(connection, name, n) == 0) {
            return true;
        }
        connection += n;
    }
    return false;
}

static void add_request_headers(const struct proxied *p, struct strbuf *b)
{
    const struct http_exchange *x = p->q->x;
    const char *name, *value, *connection = http_header(x, "connection");
    for (size_t i = 0; http_header_at(x, i, &name, &value); i++) {
        if (!is_among(name, hop_by_hop) && !is_among(name, not_sent) &&
            !begins_with(name, not_sent_prefixes) && !is_named(connection, name)) {
            (void) http1_add_header(b, name, value);
        }
    }
    (void) http1_add_header(b, "X-Forwarded-Uri", http_path(x));
    const char *host = http_header(x, "host");
    if (host) {
        (void) http1_add_header(b, "X-Forwarded-Host", host);
    }
    (void) http1_add_header(b, "X-Forwarded-Proto", http_is_tls(x) ? "https" : "http");
}

/* A redirect to the pod itself leads through the API server again; one to elsewhere stays. */
static void set_location(struct proxied *p, const char *location)
{
    const char *path = location;
    if (str_has_prefix(location, "http://") || str_has_prefix(location, "https://") ||
        str_has_prefix(location, "//")) {
        const char *host = strstr(location, "//") + 2;
        size_t n = strcspn(host, "/?#");
        if (n != strlen(p->host) || strncasecmp(host, p->host, n) != 0) {
            http_set_header(p->q->x, "Location", location);
            return;
        }
        path = host + n;
    } else if (*location != '/') {
        http_set_header(p->q->x, "Location", location); /* Relative to the request's path. */
        return;
    }
    CLEANUP_FREE char *to = xasprintf("%s%s%s", p->base, *path == '/' ? "" : "/", path);
    http_set_header(p->q->x, "Location", to);
}

static void set_response_headers(struct proxied *p, const struct http1_head *head)
{
    struct http_exchange *x = p->q->x;
    const char *name, *value, *connection = http1_header(head, "connection");
    for (size_t i = 0; http1_header_at(head, i, &name, &value); i++) {
        if (!is_among(name, hop_by_hop) && !is_among(name, not_passed) &&
            !begins_with(name, not_passed_prefixes) && !is_named(connection, name)) {
            http_set_header(x, name, value);
        }
    }
    if ((value = http1_header(head, "location"))) {
        set_location(p, value);
    }
    /* In a browser the scripts of a pod's page must not act as its user: they get an origin of
     * their own. */
    http_set_header(x, "Content-Security-Policy", "sandbox allow-forms allow-popups allow-scripts");
    p->q->cacheable = http1_header(head, "cache-control") != NULL;
}

/* ---- the end ---- */

static void proxied_free(struct proxied *p)
{
    list_remove(&p->node);
    p->server->n_proxied--;
    splice_free(p->splice);
    http_client_free(p->client);
    free(p->namespace);
    free(p->base);
    free(p->host);
    free(p->protocol);
    free(p);
}

static void refuse(struct proxied *p, int code, const char *reason, const char *text)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    struct request *q = TAKE(p->q);
    outcome_error(&outcome, code, reason, "%s", text);
    proxied_free(p);
    request_answer(q, &outcome);
}

static void refuse_error(struct proxied *p, int error, const char *why)
{
    bool away = error == -EHOSTUNREACH || error == -ENETUNREACH || error == -ETIMEDOUT;
    CLEANUP_FREE char *text = xasprintf(
        "error trying to reach %s: %s%s", p->host, why,
        away ? "; if other pods cannot be reached either, the host of the master is not in the pod "
               "network: run a node on it"
             : "");
    refuse(p, 503, "ServiceUnavailable", text);
}

/* The client has gone before the pod answered. */
static void on_gone(void *ctx)
{
    refuse(ctx, 499, "Timeout", "the client has gone");
}

/* ---- requests ---- */

static void closed(void *ctx)
{
    struct proxied *p = ctx;
    respond_streamed(TAKE(p->q));
    proxied_free(p);
}

static void drained(void *ctx)
{
    struct proxied *p = ctx;
    if (p->call) {
        http_call_pause(p->call, false);
    }
}

static void on_head(void *ctx, const struct http1_head *head)
{
    struct proxied *p = ctx;
    const char *type = http1_header(head, "content-type");
    set_response_headers(p, head);
    filter_streaming(p->q);
    if (head->framing == HTTP1_NO_BODY) {
        struct request *q = TAKE(p->q);
        int status = head->status;
        CLEANUP_FREE char *copy = type ? xstrdup(type) : NULL;
        proxied_free(p);
        respond_bodyless(q, status, copy);
        return;
    }
    p->begun = true;
    respond_stream(p->q, head->status, type, closed, p);
    http_stream_on_drained(p->q->x, drained, p);
}

static void on_data(void *ctx, const char *data, size_t size)
{
    struct proxied *p = ctx;
    CLEANUP(blob_unref) struct blob *b = blob_new(data, size);
    if (http_stream_write(p->q->x, b) < 0) {
        return; /* 'closed' follows. */
    }
    if (http_stream_queued(p->q->x) > STREAM_QUEUE_PAUSE) {
        http_call_pause(p->call, true);
    }
}

static void on_end(void *ctx, const struct http_result *r)
{
    struct proxied *p = ctx;
    p->call = NULL;
    if (!p->begun) {
        refuse_error(p, r->error, r->error_text);
        return;
    }
    struct request *q = TAKE(p->q);
    struct http_exchange *x = q->x;
    respond_streamed(q);
    if (r->error) {
        http_stream_cut(x);
    } else {
        http_stream_end(x);
    }
    proxied_free(p);
}

static const struct http_stream_ops ops = {.head = on_head, .data = on_data, .ended = on_end};

/* ---- upgrades ---- */

static void spliced(void *ctx, int error, const char *why, uint64_t sent, uint64_t received)
{
    struct proxied *p = ctx;
    p->splice = NULL;
    respond_streamed(TAKE(p->q));
    proxied_free(p);
}

static void on_connected(void *ctx, const struct http_connected *r)
{
    struct proxied *p = ctx;
    p->call = NULL;
    if (!r->stream) {
        CLEANUP_FREE char *why =
            r->result.error
                ? xstrdup(r->result.error_text)
                : xasprintf("it answered %d to the request to upgrade", r->result.status);
        refuse_error(p, r->result.error, why);
        return;
    }
    CLEANUP(duplex_free) struct duplex *pod = r->stream;
    set_response_headers(p, r->head);
    filter_streaming(p->q);
    struct duplex *client = http_upgrade(p->q->x, p->protocol);
    if (!client) {
        refuse(p, 400, "BadRequest", "the connection cannot be upgraded");
        return;
    }
    p->q->x = NULL;
    p->splice = splice_new(p->server->loop, client, TAKE(pod), STREAM_LINGER_MS, spliced, p);
}

/* The protocol that the client wants to change to; NULL: none. */
static char *wanted_protocol(const struct http_exchange *x)
{
    const char *upgrade = http_header(x, "upgrade");
    return http_version(x) == 1 && upgrade && *upgrade && http_wants_upgrade(x, upgrade)
               ? xstrdup(upgrade)
               : NULL;
}

/* ---- begin ---- */

/* The path of the request up to and with "/proxy". */
static char *base_of(const struct request *q)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "/api/v1/namespaces/");
    http_escape(q->namespace, &b);
    strbuf_addf(&b, "/%s/", q->kind->plural);
    for (const char *at = q->name; *at;) {
        size_t n = strcspn(at, ":");
        CLEANUP_FREE char *part = xstrndup(at, n);
        http_escape(part, &b);
        strbuf_adds(&b, at[n] ? ":" : "");
        at += n + (at[n] == ':');
    }
    strbuf_adds(&b, "/proxy");
    return strbuf_steal(&b);
}

/* A page at ".../proxy" would take links as those of another path. */
static bool redirect_to_root(struct request *q, const char *base, struct outcome *outcome)
{
    const char *method = http_method(q->x), *query = http_query_raw(q->x);
    if (*q->attributes.rest || !(streq(method, "GET") || streq(method, "HEAD")) ||
        http_header(q->x, "upgrade")) {
        return false;
    }
    CLEANUP_FREE char *to = xasprintf("%s/%s%s", base, *query ? "?" : "", query);
    http_set_header(q->x, "Location", to);
    outcome_take_over(outcome);
    respond_bodyless(q, 301, NULL);
    return true;
}

static bool has_room(const struct request *q)
{
    const struct proxied *p;
    size_t n = 0;
    LIST_FOREACH (p, struct proxied, node, &q->server->proxied) {
        n += streq(p->namespace, q->namespace);
    }
    return q->server->n_proxied < MAX_PROXIED && n < MAX_OF_NAMESPACE;
}

static int make_client(struct proxied *p, bool tls, struct outcome *outcome)
{
    /* Nobody says which certificate a pod has; Kubernetes does not verify it either. */
    const struct tls_client_config any = {.insecure = true};
    CLEANUP_FREE char *url = xasprintf("%s://%s", tls ? "https" : "http", p->host);
    struct http_client_config http = {.url = url,
                                      .tls = &any,
                                      .user_agent = "tenet-apiserver/" TENET_VERSION,
                                      .connect_ms = CONNECT_MS,
                                      .response_ms = ANSWER_MS};
    struct err e = {0};
    int r = http_client_new(p->server->loop, &http, &p->client, &e);
    if (r < 0) {
        outcome_error(outcome, 500, "InternalError", "Internal error occurred: %s", e.text);
    }
    return r;
}

static void begin(struct proxied *p, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT, headers = STRBUF_INIT;
    struct request *q = p->q;
    size_t size;
    const char *body = http_body(q->x, &size);
    stream_add_target(q, &path);
    add_request_headers(p, &headers);
    outcome_take_over(outcome);
    flow_release(q);
    if (p->protocol) {
        stream_add_protocols(&headers, q->x);
        p->call = http_connect(p->client, http_method(q->x), path.data, p->protocol,
                               strbuf_cstr(&headers), on_connected, p);
    } else {
        p->call = http_forward(p->client, http_method(q->x), path.data, strbuf_cstr(&headers), body,
                               size, &ops, p);
    }
    http_on_gone(q->x, on_gone, p);
}

void handle_proxy(struct request *q, struct outcome *outcome)
{
    CLEANUP(target_done) struct target t = {0};
    CLEANUP_FREE char *base = base_of(q);
    CLEANUP_FREE char *protocol = wanted_protocol(q->x);
    if (target_parse(q->name, &t, outcome) < 0 || redirect_to_root(q, base, outcome)) {
        return;
    }
    if (!has_room(q)) {
        outcome_error(outcome, 429, "TooManyRequests",
                      "too many requests are being passed on to pods, please try again later");
        return;
    }
    if (protocol && stream_is_foreign_origin(q->x)) {
        outcome_error(outcome, 403, "Forbidden", "a connection of the site %.200s is not allowed",
                      http_header(q->x, "origin"));
        return;
    }
    char *host = streq(q->kind->plural, "pods") ? find_pod_host(q, &t, outcome)
                                                : find_service_host(q, &t, outcome);
    if (!host) {
        return;
    }
    struct proxied *p = NEW(struct proxied);
    *p = (struct proxied){.server = q->server,
                          .q = q,
                          .namespace = xstrdup(q->namespace),
                          .base = TAKE(base),
                          .host = host,
                          .protocol = TAKE(protocol)};
    list_push_back(&q->server->proxied, &p->node);
    if (q->server->n_proxied++ == 0) {
        loop_timer_arm(q->server->proxy_timer, TICK_MS);
    }
    if (make_client(p, t.tls, outcome) < 0) {
        proxied_free(p);
        return;
    }
    begin(p, outcome);
}

/* ---- all ---- */

static void end(struct proxied *p, int code, const char *reason, const char *text)
{
    if (p->splice || p->begun) {
        struct http_exchange *x = p->q->x;
        respond_streamed(TAKE(p->q));
        if (x) {
            http_stream_cut(x);
        }
        proxied_free(p);
    } else {
        refuse(p, code, reason, text);
    }
}

static void end_of_token(struct proxied *p)
{
    end(p, 401, "Unauthorized", "Unauthorized");
}

static void on_tick(void *server)
{
    struct apiserver *a = server;
    int64_t now = time_wall_ms();
    struct proxied *p;
    LIST_FOREACH (p, struct proxied, node, &a->proxied) {
        if (request_has_ended_token(p->q, now)) {
            end_of_token(p);
        }
    }
    if (a->n_proxied) {
        loop_timer_arm(a->proxy_timer, TICK_MS);
    }
}

void proxy_init(struct apiserver *a)
{
    list_init(&a->proxied);
    a->proxy_timer = loop_timer_new(a->loop, on_tick, a);
}

void proxy_end_all(struct apiserver *a)
{
    while (!list_is_empty(&a->proxied)) {
        end(CONTAINER_OF(a->proxied.next, struct proxied, node), 503, "ServiceUnavailable",
            "the server is shutting down");
    }
}

void proxy_end_of_token(struct apiserver *a, const char *name)
{
    struct proxied *p;
    LIST_FOREACH (p, struct proxied, node, &a->proxied) {
        if (request_has_token(p->q, name)) {
            end_of_token(p);
        }
    }
}
