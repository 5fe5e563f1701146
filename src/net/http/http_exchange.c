/* SPDX-License-Identifier: Apache-2.0 */
/* A request and its response, as seen by the user of the server. */
#include "base/log.h"
#include "net/http/http_server_priv.h"

#include <strings.h>

LOG_MODULE("http");

static struct log_limit header_limit;

static void exchange_task(void *ctx)
{
    struct http_exchange *x = ctx;
    if (x->is_streaming) {
        x->closed(x->closed_ctx);
        http_exchange_free(x);
    } else if (x->gone) {
        x->gone(x->gone_ctx);
    }
}

struct http_exchange *http_exchange_new(struct http_conn *c, size_t size)
{
    struct http_exchange *x = xcalloc(1, size);
    x->conn = c;
    x->loop = c->server->loop;
    x->body = STRBUF_INIT_MAX(c->server->limits.max_body);
    x->extra = STRBUF_INIT;
    x->is_h2 = c->proto == &http_h2;
    x->is_tls = c->tls;
    x->identity = tls_identity_ref(c->identity);
    x->proxy = tls_identity_ref(c->proxy);
    memcpy(x->peer, c->peer, sizeof x->peer);
    loop_task_init(&x->task, x->loop, exchange_task, x);
    return x;
}

void http_exchange_free(struct http_exchange *x)
{
    http_exchange_drop_body(x);
    loop_task_cancel(&x->task);
    tls_identity_unref(x->identity);
    tls_identity_unref(x->proxy);
    free(x->head_text);
    free(x->target_text);
    strbuf_done(&x->extra);
    if (x->finished) {
        x->finished(x->finished_ctx);
    }
    free(x);
}

int http_exchange_target(struct http_exchange *x, const char *target, struct err *e)
{
    size_t max = x->conn->server->limits.max_uri;
    if (strlen(target) > max) {
        (void) err_set(e, -EMSGSIZE, "the target is longer than %zu bytes", max);
        return 414;
    }
    x->target_text = xmalloc(http1_target_size(target));
    return http1_target_parse(target, x->target_text, &x->target, e) < 0 ? 400 : 0;
}

int http_exchange_body(struct http_exchange *x, const char *p, size_t size)
{
    struct http_server *s = x->conn->server;
    struct http_source *src = x->conn->source;
    size_t max = s->limits.max_bodies;
    if (strbuf_add(&x->body, p, size) < 0) {
        return 413;
    }
    s->body_bytes += size;
    src->body_bytes += size;
    return s->body_bytes > max || src->body_bytes > MAX(max / 4, s->limits.max_body) ? 503 : 0;
}

void http_exchange_drop_body(struct http_exchange *x)
{
    if (x->conn) {
        x->conn->server->body_bytes -= x->body.size;
        x->conn->source->body_bytes -= x->body.size;
    }
    strbuf_done(&x->body);
}

void http_exchange_orphan(struct http_exchange *x)
{
    x->conn->server->body_bytes -= x->body.size;
    x->conn->source->body_bytes -= x->body.size;
    x->conn = NULL;
}

void http_exchange_tell(struct http_exchange *x, bool now)
{
    if (now && x->is_streaming) {
        exchange_task(x);
    } else if (x->is_streaming || x->gone) {
        loop_task_queue(&x->task);
    }
}

char *http_error_text(struct http_exchange *x, int status, const char *why, const char **ret_type)
{
    struct strbuf out = STRBUF_INIT;
    http_error_fn *fn = x->conn->server->error_fn;
    *ret_type = fn ? fn(x, status, why, &out) : NULL;
    if (!*ret_type) {
        *ret_type = "text/plain; charset=utf-8";
        strbuf_addf(&out, "%d %s: %s\n", status, http1_reason(status), why);
    }
    return strbuf_steal(&out);
}

/* ---- the request ---- */

const char *http_method(const struct http_exchange *x)
{
    return x->head.method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->target.path;
}

const char *http_query(const struct http_exchange *x, const char *name)
{
    return http1_param(&x->target, name);
}

bool http_query_at(const struct http_exchange *x, size_t i, const char **ret_name,
                   const char **ret_value)
{
    return http1_param_at(&x->target, i, ret_name, ret_value);
}

const char *http_query_raw(const struct http_exchange *x)
{
    return x->target.query;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    return http1_header(&x->head, name);
}

bool http_header_at(const struct http_exchange *x, size_t i, const char **ret_name,
                    const char **ret_value)
{
    return http1_header_at(&x->head, i, ret_name, ret_value);
}

const char *http_body(const struct http_exchange *x, size_t *ret_size)
{
    *ret_size = x->body.size;
    return strbuf_cstr(&x->body);
}

const char *http_peer(const struct http_exchange *x)
{
    return x->peer;
}

unsigned http_version(const struct http_exchange *x)
{
    return x->is_h2 ? 2 : 1;
}

bool http_is_tls(const struct http_exchange *x)
{
    return x->is_tls;
}

const struct tls_identity *http_peer_cert(const struct http_exchange *x)
{
    return x->identity;
}

const struct tls_identity *http_peer_proxy(const struct http_exchange *x)
{
    return x->proxy;
}

void http_on_gone(struct http_exchange *x, loop_fn *gone, void *ctx)
{
    x->gone = gone;
    x->gone_ctx = ctx;
    if (!x->conn && gone) {
        loop_task_queue(&x->task);
    }
}

void http_on_finished(struct http_exchange *x, loop_fn *finished, void *ctx)
{
    x->finished = finished;
    x->finished_ctx = ctx;
}

/* ---- the response ---- */

void http_set_header(struct http_exchange *x, const char *name, const char *value)
{
    if (http1_add_header(&x->extra, name, value) < 0) {
        log_limited(&header_limit, LOG_WARN, "malformed response header dropped", "name=%s", name);
    }
}

static void respond(struct http_exchange *x, int status, const char *content_type, const void *body,
                    struct blob *blob, size_t size)
{
    x->gone = NULL;
    loop_task_cancel(&x->task);
    if (x->conn) {
        x->conn->proto->respond(x, status, content_type, body, blob, size);
    } else {
        http_exchange_free(x);
    }
}

void http_respond(struct http_exchange *x, int status, const char *content_type, const void *body,
                  size_t size)
{
    respond(x, status, content_type, body, NULL, size);
}

void http_respond_blob(struct http_exchange *x, int status, const char *content_type,
                       struct blob *body)
{
    respond(x, status, content_type, NULL, body, body->size);
}

void http_stream_begin(struct http_exchange *x, int status, const char *content_type,
                       loop_fn *closed, void *ctx)
{
    x->gone = NULL;
    x->closed = closed;
    x->closed_ctx = ctx;
    x->is_streaming = true;
    http_exchange_drop_body(x);
    if (x->conn) {
        x->conn->proto->stream_begin(x, status, content_type);
        strbuf_done(&x->extra);
    } else {
        loop_task_queue(&x->task);
    }
}

int http_stream_write(struct http_exchange *x, struct blob *b)
{
    return x->conn ? x->conn->proto->stream_write(x, b) : -EPIPE;
}

size_t http_stream_queued(const struct http_exchange *x)
{
    return x->conn ? x->conn->proto->stream_queued(x) : 0;
}

void http_stream_on_drained(struct http_exchange *x, loop_fn *drained, void *ctx)
{
    x->drained = drained;
    x->drained_ctx = ctx;
}

void http_stream_cut(struct http_exchange *x)
{
    if (x->conn) {
        x->conn->proto->stream_cut(x);
    } else {
        http_exchange_free(x);
    }
}

/* Whether the comma-separated list has the word, in any case. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    while (list && *list) {
        list += strspn(list, " \t,");
        size_t size = strcspn(list, " \t,");
        if (size == n && strncasecmp(list, word, n) == 0) {
            return true;
        }
        list += size;
    }
    return false;
}

bool http_wants_upgrade(const struct http_exchange *x, const char *protocol)
{
    return has_word(http_header(x, "connection"), "upgrade") &&
           has_word(http_header(x, "upgrade"), protocol);
}

struct duplex *http_upgrade(struct http_exchange *x, const char *protocol)
{
    if (!x->conn || !x->conn->proto->upgrade) {
        return NULL;
    }
    x->gone = NULL;
    loop_task_cancel(&x->task);
    return x->conn->proto->upgrade(x, protocol);
}

void http_stream_end(struct http_exchange *x)
{
    if (x->conn) {
        x->conn->proto->stream_end(x);
    } else {
        http_exchange_free(x);
    }
}
