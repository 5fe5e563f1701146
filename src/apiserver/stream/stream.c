/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/stream/stream.h"
#include "api/obj.h"
#include "apiserver/admission/admission.h"
#include "apiserver/request/filter.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/respond.h"
#include "apiserver/stream/node.h"
#include "apiserver/stream/options.h"
#include "apiserver/stream/proxy.h"
#include "apiserver/stream/stream_priv.h"
#include "base/timeutil.h"
#include "net/stream/splice.h"
#include "wire/http1.h"

#include <inttypes.h>
#include <strings.h>

#define MAX_STREAMS 2000
#define TICK_MS 1000 /* Between checks whether tokens have ended. */
#define BEARER_PROTOCOL "base64url.bearer.authorization.k8s.io."

/* What a subresource of a pod needs. */
struct stream_kind {
    const char *name;
    const char *path; /* At the node. */
    const struct stream_options *options;
    bool upgrade;
    bool container; /* It is about one container. */
};
static const struct stream_kind kinds[] = {
    {"exec", "exec", &stream_exec_options, true, true},
    {"attach", "attach", &stream_attach_options, true, true},
    {"portforward", "portForward", &stream_forward_options, true, false},
    {"log", "containerLogs", &stream_log_options, false, true},
};

struct stream {
    struct list node; /* In apiserver->streams. */
    struct apiserver *server;
    struct request *q;
    struct http_client *client; /* Of the node. */
    struct http_call *call;     /* Until it has ended; NULL. */
    struct splice *splice;      /* Of an upgrade; NULL: not yet. */
    char *protocol;             /* Of an upgrade: "SPDY/3.1" or "websocket". */
    char *node_name;
    bool begun; /* A log's response has begun. */
};

static const struct stream_kind *kind_of(const struct request *q)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (streq(q->subresource, kinds[i].name)) {
            return &kinds[i];
        }
    }
    return NULL;
}

static bool is_proxy(const struct request *q)
{
    return proxy_is_passed(q) && !proxy_is_asked(q);
}

bool stream_is_asked(const struct request *q)
{
    return !*q->kind->group && (is_proxy(q) || (streq(q->kind->plural, "pods") && kind_of(q)));
}

/* ---- the end ---- */

static void stream_free(struct stream *s)
{
    list_remove(&s->node);
    s->server->n_streams--;
    splice_free(s->splice);
    http_client_free(s->client);
    free(s->protocol);
    free(s->node_name);
    free(s);
}

/* Answers the request, whose exchange the stream still has, with an error. */
static void refuse(struct stream *s, struct outcome *outcome)
{
    struct request *q = TAKE(s->q);
    stream_free(s);
    request_answer(q, outcome);
}

static void refuse_text(struct stream *s, int code, const char *reason, const char *text)
{
    CLEANUP(outcome_done) struct outcome outcome = {0};
    outcome_error(&outcome, code, reason, "%s", text);
    refuse(s, &outcome);
}

/* The answer of the node, other than what was asked for: its Status or text, with its code. */
static void refuse_answer(struct stream *s, const struct http_result *r)
{
    static const struct {
        int code;
        const char *reason;
    } reasons[] = {{400, "BadRequest"}, {403, "Forbidden"}, {404, "NotFound"},
                   {409, "Conflict"},   {422, "Invalid"},   {429, "TooManyRequests"}};
    CLEANUP(json_free) struct json *status = NULL;
    const char *reason = "InternalError";
    int code = 500;
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (reasons[i].code == r->status) {
            code = r->status;
            reason = reasons[i].reason;
        }
    }
    if (r->error) {
        CLEANUP_FREE char *text = xasprintf("error dialing backend: %s", r->error_text);
        refuse_text(s, 500, reason, text);
        return;
    }
    if (r->status == 401 || r->status == 403) {
        CLEANUP_FREE char *text =
            xasprintf("node %s refuses the API server: %.300s", s->node_name, r->body);
        refuse_text(s, 500, "InternalError", text);
        return;
    }
    if (json_parse(r->body, r->size, &status, NULL) == 0 &&
        json_path_string(status, "message", NULL)) {
        refuse_text(s, code, reason, json_path_string(status, "message", NULL));
        return;
    }
    CLEANUP_FREE char *body = xstrndup(r->body, r->size);
    body[strcspn(body, "\r\n")] = '\0';
    refuse_text(s, code, reason, *body ? body : "the node answered with no reason");
}

static struct stream *stream_new(struct request *q, const char *node)
{
    struct stream *s = NEW(struct stream);
    s->server = q->server;
    s->q = q;
    s->node_name = xstrdup(node);
    list_push_back(&q->server->streams, &s->node);
    if (q->server->n_streams++ == 0) {
        loop_timer_arm(q->server->stream_timer, TICK_MS);
    }
    return s;
}

/* ---- upgrades ---- */

static void spliced(void *ctx, int error, const char *why, uint64_t sent, uint64_t received)
{
    struct stream *s = ctx;
    s->splice = NULL;
    respond_streamed(TAKE(s->q));
    stream_free(s);
}

/* Passes the node's choice of a protocol to the client. */
static void copy_headers(struct http_exchange *x, const struct http1_head *head)
{
    static const char *const names[] = {"X-Stream-Protocol-Version", "Sec-WebSocket-Accept",
                                        "Sec-WebSocket-Protocol"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *value = http1_header(head, names[i]);
        if (value) {
            http_set_header(x, names[i], value);
        }
    }
}

static void on_connected(void *ctx, const struct http_connected *r)
{
    struct stream *s = ctx;
    s->call = NULL;
    if (!r->stream) {
        refuse_answer(s, &r->result);
        return;
    }
    CLEANUP(duplex_free) struct duplex *node = r->stream;
    copy_headers(s->q->x, r->head);
    filter_streaming(s->q);
    struct duplex *client = http_upgrade(s->q->x, s->protocol);
    if (!client) {
        refuse_text(s, 400, "BadRequest", "the connection cannot be upgraded");
        return;
    }
    s->q->x = NULL;
    s->splice = splice_new(s->server->loop, client, TAKE(node), STREAM_LINGER_MS, spliced, s);
}

/* The client has gone before the node answered. */
static void on_gone(void *ctx)
{
    refuse_text(ctx, 499, "Timeout", "the client has gone");
}

bool stream_is_foreign_origin(const struct http_exchange *x)
{
    const char *origin = http_header(x, "origin"), *host = http_header(x, "host");
    if (!origin || !*origin) {
        return false;
    }
    const char *at = strstr(origin, "://");
    return !at || !host || strcasecmp(at + 3, host) != 0;
}

static void add_header(struct strbuf *b, const struct http_exchange *x, const char *name)
{
    const char *value = http_header(x, name);
    if (value) {
        (void) http1_add_header(b, name, value);
    }
}

void stream_add_protocols(struct strbuf *b, const struct http_exchange *x)
{
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    const char *name, *value;
    for (size_t i = 0; http_header_at(x, i, &name, &value); i++) {
        while (strcasecmp(name, "sec-websocket-protocol") == 0 && *value) {
            value += strspn(value, " \t,");
            size_t n = strcspn(value, " \t,");
            if (n && !str_has_prefix(value, BEARER_PROTOCOL)) {
                strbuf_addf(&list, "%s%.*s", list.size ? ", " : "", (int) n, value);
            }
            value += n;
        }
    }
    if (list.size) {
        (void) http1_add_header(b, "Sec-WebSocket-Protocol", list.data);
    }
}

/* Headers for the node; the client's others, like its credentials, do not leave the master. */
static int read_upgrade(struct stream *s, struct strbuf *headers, struct outcome *outcome)
{
    const struct http_exchange *x = s->q->x;
    const char *name, *value;
    if (http_wants_upgrade(x, "websocket")) {
        if (stream_is_foreign_origin(x)) {
            outcome_error(outcome, 403, "Forbidden",
                          "a WebSocket of the site %.200s is not allowed",
                          http_header(x, "origin"));
            return -EACCES;
        }
        s->protocol = xstrdup("websocket");
        add_header(headers, x, "Sec-WebSocket-Key");
        add_header(headers, x, "Sec-WebSocket-Version");
        stream_add_protocols(headers, x);
        return 0;
    }
    if (http_wants_upgrade(x, "SPDY/3.1")) {
        s->protocol = xstrdup("SPDY/3.1");
        for (size_t i = 0; http_header_at(x, i, &name, &value); i++) {
            if (strcasecmp(name, "x-stream-protocol-version") == 0) {
                (void) http1_add_header(headers, "X-Stream-Protocol-Version", value);
            }
        }
        return 0;
    }
    outcome_error(outcome, 400, "BadRequest",
                  http_version(x) == 2
                      ? "Upgrade request required: HTTP/2 has no upgrades, use HTTP/1.1"
                      : "Upgrade request required");
    return -EINVAL;
}

static void begin_upgrade(struct stream *s, const char *path, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf headers = STRBUF_INIT;
    struct request *q = s->q;
    if (read_upgrade(s, &headers, outcome) < 0 ||
        stream_node_client(q->server, s->node_name, NULL, &s->client, outcome) < 0) {
        stream_free(s);
        return;
    }
    const char *method = streq(s->protocol, "websocket") ? "GET" : "POST";
    outcome_take_over(outcome);
    flow_release(q);
    s->call =
        http_connect(s->client, method, path, s->protocol, strbuf_cstr(&headers), on_connected, s);
    http_on_gone(q->x, on_gone, s);
}

/* ---- logs and nodes/proxy ---- */

static void log_closed(void *ctx)
{
    struct stream *s = ctx;
    s->begun = false;
    respond_streamed(TAKE(s->q));
    stream_free(s);
}

static void log_drained(void *ctx)
{
    struct stream *s = ctx;
    if (s->call) {
        http_call_pause(s->call, false);
    }
}

static void begin_response(struct stream *s)
{
    s->begun = true;
    filter_streaming(s->q);
    respond_stream(s->q, 200, is_proxy(s->q) ? NULL : "text/plain", log_closed, s);
    http_stream_on_drained(s->q->x, log_drained, s);
}

static void log_opened(void *ctx)
{
    begin_response(ctx);
}

static void log_data(void *ctx, const char *p, size_t size)
{
    struct stream *s = ctx;
    CLEANUP(blob_unref) struct blob *b = blob_new(p, size);
    if (http_stream_write(s->q->x, b) < 0) {
        return; /* log_closed follows. */
    }
    if (http_stream_queued(s->q->x) > STREAM_QUEUE_PAUSE) {
        http_call_pause(s->call, true);
    }
}

static void log_ended(void *ctx, const struct http_result *r)
{
    struct stream *s = ctx;
    s->call = NULL;
    if (!s->begun) {
        refuse_answer(s, r);
        return;
    }
    struct request *q = TAKE(s->q);
    struct http_exchange *x = q->x;
    respond_streamed(q);
    if (r->error) {
        /* The client must see that the log is not complete. */
        http_stream_cut(x);
    } else {
        http_stream_end(x);
    }
    stream_free(s);
}

static const struct http_stream_ops log_ops = {
    .opened = log_opened, .data = log_data, .ended = log_ended};

static void begin_log(struct stream *s, const char *path, struct outcome *outcome)
{
    struct request *q = s->q;
    if (stream_node_client(q->server, s->node_name, NULL, &s->client, outcome) < 0) {
        stream_free(s);
        return;
    }
    outcome_take_over(outcome);
    flow_release(q);
    s->call = http_stream(s->client, path, NULL, 0, &log_ops, s);
    http_on_gone(q->x, on_gone, s);
}

/* The client's parameters, but for a token among them, which is not for the node. */
static void add_query(const struct request *q, struct strbuf *path)
{
    const char *name, *value;
    char separator = '?';
    for (size_t i = 0; http_query_at(q->x, i, &name, &value); i++) {
        if (!streq(name, "access_token")) {
            strbuf_addc(path, separator);
            http_escape(name, path);
            strbuf_addc(path, '=');
            http_escape(value, path);
            separator = '&';
        }
    }
}

void stream_add_target(const struct request *q, struct strbuf *path)
{
    size_t before = path->size;
    for (const char *at = q->attributes.rest; *at;) {
        size_t n = strcspn(at + 1, "/");
        CLEANUP_FREE char *segment = xstrndup(at + 1, n);
        strbuf_addc(path, '/');
        http_escape(segment, path);
        at += n + 1;
    }
    if (path->size == before) {
        strbuf_addc(path, '/');
    }
    add_query(q, path);
}

static void handle_node(struct request *q, struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    if (!streq(http_method(q->x), "GET")) {
        outcome_error(outcome, 405, "MethodNotAllowed", "nodes/proxy passes on GET only");
        return;
    }
    stream_add_target(q, &path);
    begin_log(stream_new(q, q->name), path.data, outcome);
}

/* ---- pods ---- */

static void add_names(const struct json *list, struct strbuf *b)
{
    const struct json *item;
    strbuf_addc(b, '[');
    JSON_FOREACH (item, list) {
        strbuf_addf(b, "%s%s", b->data[b->size - 1] == '[' ? "" : " ", json_get_text(item, "name"));
    }
    strbuf_addc(b, ']');
}

static bool has_name(const struct json *list, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq(json_get_text(item, "name"), name)) {
            return true;
        }
    }
    return false;
}

/* The container that the client names, or the only one; NULL: the outcome is filled. */
static const char *choose_container(const struct request *q, const struct json *pod,
                                    struct outcome *outcome)
{
    const char *pod_name = obj_name(pod);
    const struct json *spec = json_get(pod, "spec"), *list = json_get(spec, "containers");
    const struct json *init = json_get(spec, "initContainers");
    const char *name = http_query(q->x, "container");
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (name && *name) {
        if (has_name(list, name) || has_name(init, name) ||
            has_name(json_get(spec, "ephemeralContainers"), name)) {
            return name;
        }
        outcome_error(outcome, 400, "BadRequest", "container %s is not valid for pod %s", name,
                      pod_name);
        return NULL;
    }
    if (json_count(list) == 1) {
        return json_path_string(json_at(list, 0), "name", NULL);
    }
    add_names(list, &b);
    if (json_count(init)) {
        strbuf_adds(&b, " or one of the init containers: ");
        add_names(init, &b);
    }
    outcome_error(outcome, 400, "BadRequest",
                  "a container name must be specified for pod %s, choose one of: %s", pod_name,
                  b.data);
    return NULL;
}

static void answer_empty(struct outcome *outcome)
{
    struct strbuf none = STRBUF_INIT;
    outcome_text(outcome, 200, "text/plain", &none);
}

static void add_segment(struct strbuf *path, const char *s)
{
    strbuf_addc(path, '/');
    http_escape(s, path);
}

static void handle_pod(struct request *q, const struct stream_kind *kind, const struct json *pod,
                       struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    const char *node = json_path_string(pod, "spec", "nodeName", NULL), *container = NULL;
    const char *uid = json_path_string(pod, "metadata", "uid", NULL);
    if (kind->upgrade && admission_check_entry(q, pod, outcome) < 0) {
        return;
    }
    if (kind->container && !(container = choose_container(q, pod, outcome))) {
        return;
    }
    strbuf_addf(&path, "/%s", kind->path);
    add_segment(&path, q->namespace);
    add_segment(&path, obj_name(pod));
    if (kind->upgrade) {
        /* A pod of the same name that comes later is another one. */
        add_segment(&path, uid ? uid : "");
    }
    if (container) {
        add_segment(&path, container);
    }
    if (stream_options_read(kind->options, q, &path, outcome) < 0) {
        return;
    }
    if (!node || !*node) {
        if (kind->upgrade) {
            outcome_error(outcome, 400, "BadRequest", "pod %s does not have a host assigned",
                          obj_name(pod));
        } else {
            answer_empty(outcome);
        }
        return;
    }
    (kind->upgrade ? begin_upgrade : begin_log)(stream_new(q, node), path.data, outcome);
}

static bool is_full(const struct request *q, struct outcome *outcome)
{
    if (q->server->n_streams < MAX_STREAMS) {
        return false;
    }
    outcome_error(outcome, 429, "TooManyRequests", "too many streams, please try again later");
    return true;
}

void stream_rollout_log(struct request *q, const struct json *pod, struct outcome *outcome)
{
    static const struct stream_kind log = {"log", "containerLogs", &stream_rollout_log_options,
                                           false, true};
    if (!is_full(q, outcome)) {
        handle_pod(q, &log, pod, outcome);
    }
}

void handle_stream(struct request *q, struct outcome *outcome)
{
    const char *method = http_method(q->x);
    if (is_full(q, outcome)) {
        return;
    }
    if (is_proxy(q)) {
        handle_node(q, outcome);
        return;
    }
    const struct stream_kind *kind = kind_of(q);
    if (!streq(method, "GET") && !(kind->upgrade && streq(method, "POST"))) {
        outcome_error(outcome, 405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
        return;
    }
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    const struct object *o = keyset_get(&q->ck->objects, key);
    CLEANUP(json_free) struct json *pod = o ? object_parse(o) : NULL;
    if (!pod) {
        outcome_not_found(outcome, q->kind, q->name);
        return;
    }
    handle_pod(q, kind, pod, outcome);
}

/* ---- all streams ---- */

/* 'status', 'reason' and 'text' answer a request whose stream has not begun. */
static void stream_end(struct stream *s, int status, const char *reason, const char *text)
{
    if (s->splice) {
        s->splice = splice_free(s->splice);
        respond_streamed(TAKE(s->q));
        stream_free(s);
    } else if (s->begun) {
        struct http_exchange *x = s->q->x;
        respond_streamed(TAKE(s->q));
        http_stream_cut(x);
        stream_free(s);
    } else {
        refuse_text(s, status, reason, text);
    }
}

static void on_tick(void *server)
{
    struct apiserver *a = server;
    int64_t now = time_wall_ms();
    struct stream *s;
    LIST_FOREACH (s, struct stream, node, &a->streams) {
        if (request_has_ended_token(s->q, now)) {
            stream_end(s, 401, "Unauthorized", "Unauthorized");
        }
    }
    if (a->n_streams) {
        loop_timer_arm(a->stream_timer, TICK_MS);
    }
}

void stream_init(struct apiserver *a)
{
    list_init(&a->streams);
    a->stream_timer = loop_timer_new(a->loop, on_tick, a);
}

void stream_end_all(struct apiserver *a)
{
    while (!list_is_empty(&a->streams)) {
        stream_end(CONTAINER_OF(a->streams.next, struct stream, node), 503, "ServiceUnavailable",
                   "the server is shutting down");
    }
}

void stream_end_of_token(struct apiserver *a, const char *name)
{
    struct stream *s;
    LIST_FOREACH (s, struct stream, node, &a->streams) {
        if (request_has_token(s->q, name)) {
            stream_end(s, 401, "Unauthorized", "Unauthorized");
        }
    }
}
