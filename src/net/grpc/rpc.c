/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/rpc.h"

#include "base/list.h"
#include "base/mem.h"

#include <stdio.h>

#define TIMEOUT_MAX 99999999u

struct rpc {
    struct loop *loop;
    struct h2 *h2;
    struct list calls;
};

struct rpc_call {
    struct rpc *rpc;
    struct list node;
    struct h2_stream *stream;
    struct loop_timer *timeout; /* NULL: none. */
    struct grpc_reader reader;
    unsigned depth; /* In a callback of the call: freeing must wait. */
    bool gone;      /* Ended or cancelled meanwhile. */
    int http_status;
    bool has_status;
    enum grpc_status status;
    char *text;                /* Of the trailer "grpc-message"; NULL: none. */
    struct rpc_stream_ops ops; /* 'message' NULL: unary. */
    void *ctx;
};

int rpc_connect(struct loop *l, const struct h2_address *a, const struct h2_ops *ops, void *ctx,
                struct rpc **ret, struct err *e)
{
    struct h2 *h2;
    int r = h2_connect(l, a, ops, ctx, &h2, e);
    if (r < 0) {
        return r;
    }
    struct rpc *rpc = NEW(struct rpc);
    rpc->loop = l;
    rpc->h2 = h2;
    list_init(&rpc->calls);
    *ret = rpc;
    return 0;
}

static void call_free(struct rpc_call *call)
{
    grpc_reader_done(&call->reader);
    free(call->text);
    free(call);
}

/* Releases everything but the memory, which an outer callback may still use. */
static void call_drop(struct rpc_call *call)
{
    call->gone = true;
    call->timeout = loop_timer_free(call->timeout);
    list_remove(&call->node);
    if (!call->depth) {
        call_free(call);
    }
}

struct rpc *rpc_free(struct rpc *r)
{
    if (!r) {
        return NULL;
    }
    struct rpc_call *call;
    LIST_FOREACH (call, struct rpc_call, node, &r->calls) {
        call_drop(call);
    }
    h2_free(r->h2);
    free(r);
    return NULL;
}

struct rpc_call *rpc_cancel(struct rpc_call *call)
{
    if (call) {
        if (call->stream) {
            h2_cancel(call->stream);
        }
        call_drop(call);
    }
    return NULL;
}

/* Reports the end and frees the call. */
static void call_end(struct rpc_call *call, const struct rpc_result *result)
{
    rpc_done_fn *fn = call->ops.ended;
    void *ctx = call->ctx;
    call->depth++;
    if (call->stream) {
        h2_cancel(call->stream);
        call->stream = NULL;
    }
    call_drop(call);
    fn(ctx, result);
    call->depth--;
    if (!call->depth) {
        call_free(call);
    }
}

static void call_fail(struct rpc_call *call, enum grpc_status status, const char *text)
{
    call_end(call, &(struct rpc_result){.status = status, .text = text});
}

static void on_timeout(void *ctx)
{
    call_fail(ctx, GRPC_DEADLINE_EXCEEDED, "no answer in time");
}

/* ---- the stream's callbacks ---- */

static bool name_is(const char *name, size_t size, const char *expected)
{
    return size == strlen(expected) && memcmp(name, expected, size) == 0;
}

static void on_header(void *ctx, const char *name, size_t name_size, const char *value,
                      size_t value_size)
{
    struct rpc_call *call = ctx;
    if (name_is(name, name_size, ":status")) {
        char text[8];
        uint64_t status;
        snprintf(text, sizeof text, "%.*s", (int) MIN(value_size, sizeof text - 1), value);
        if (str_to_u64(text, 999, &status) == 0) {
            call->http_status = (int) status;
        }
    } else if (name_is(name, name_size, "grpc-status")) {
        call->has_status = true;
        call->status = grpc_status_parse(value, value_size);
    } else if (name_is(name, name_size, "grpc-message")) {
        size_t text_size = MIN(value_size, RPC_TEXT_MAX) + 1;
        free(call->text);
        call->text = xmalloc(text_size);
        grpc_message_decode(value, value_size, call->text, text_size);
    }
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct rpc_call *call = ctx;
    if (call->http_status != 200) {
        return; /* An error page. */
    }
    grpc_reader_add(&call->reader, p, size);
    const char *message;
    size_t message_size;
    int r = 0;
    call->depth++;
    if (call->ops.message) {
        while (!call->gone && (r = grpc_reader_next(&call->reader, &message, &message_size)) > 0) {
            call->ops.message(call->ctx, message, message_size);
        }
    } else {
        /* Kept until the status arrives; but a message that is too large, or a second one, is
         * detected now. */
        struct grpc_reader peek = call->reader;
        r = grpc_reader_next(&peek, &message, &message_size);
        if (r > 0 && grpc_reader_partial(&peek)) {
            r = -EBADMSG;
        }
    }
    call->depth--;
    if (call->gone) {
        if (!call->depth) {
            call_free(call);
        }
    } else if (r < 0) {
        call_end(call, &(struct rpc_result){
                           .status = r == -EMSGSIZE ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL,
                           .text = r == -EMSGSIZE ? "the answer is too large"
                                                  : "the answer is not framed as gRPC",
                           .too_large = r == -EMSGSIZE});
    }
}

static void on_closed(void *ctx, uint32_t error)
{
    struct rpc_call *call = ctx;
    call->stream = NULL;
    struct rpc_result result = {.status = call->status, .text = call->text ? call->text : ""};
    char text[64];
    if (!call->has_status) {
        bool http = call->http_status && call->http_status != 200;
        snprintf(text, sizeof text, http ? "HTTP status %d" : "the call broke off (%u)",
                 http ? call->http_status : (int) error);
        result.status = http ? grpc_status_of_http(call->http_status) : GRPC_UNAVAILABLE;
        result.text = text;
    } else if (result.status == GRPC_OK && !call->ops.message &&
               grpc_reader_next(&call->reader, &result.message, &result.size) != 1) {
        result.status = GRPC_INTERNAL;
        result.text = "there is no answer in the answer";
    }
    call_end(call, &result);
}

/* ---- interface ---- */

static struct rpc_call *call_new(struct rpc *r, const char *path, struct strbuf *message,
                                 uint64_t timeout_ms, size_t max_size,
                                 const struct rpc_stream_ops *ops, void *ctx)
{
    static const struct h2_stream_ops stream_ops = {on_header, on_data, on_closed};
    struct rpc_call *call = NEW(struct rpc_call);
    call->rpc = r;
    call->reader = GRPC_READER_INIT(max_size);
    call->ops = *ops;
    call->ctx = ctx;
    list_push_back(&r->calls, &call->node);
    struct strbuf body = STRBUF_INIT;
    size_t mark = grpc_frame_begin(&body);
    strbuf_add(&body, strbuf_cstr(message), message->size);
    grpc_frame_end(&body, mark);
    strbuf_done(message);

    char timeout[24];
    struct h2_field fields[6] = {
        {"te", "trailers"},
        {"content-type", "application/grpc"},
        {"user-agent", "tenet/" TENET_VERSION},
    };
    size_t n = 3;
    if (timeout_ms) {
        /* The number may have eight digits. */
        bool fits = timeout_ms <= TIMEOUT_MAX;
        uint64_t value = fits ? timeout_ms : MIN(timeout_ms / 1000, TIMEOUT_MAX);
        snprintf(timeout, sizeof timeout, "%llu%c", (unsigned long long) value, fits ? 'm' : 'S');
        fields[n++] = (struct h2_field){"grpc-timeout", timeout};
        call->timeout = loop_timer_new(r->loop, on_timeout, call);
        loop_timer_arm(call->timeout, timeout_ms);
    }
    if (!ops->request_ends) {
        fields[n++] = (struct h2_field){"hasleader", "true"};
    }
    call->stream = h2_post(r->h2, path, fields, n, &body, ops->request_ends, &stream_ops, call);
    return call;
}

struct rpc_call *rpc_begin(struct rpc *r, const char *path, struct strbuf *message,
                           uint64_t timeout_ms, size_t max_size, rpc_done_fn *fn, void *ctx)
{
    return call_new(r, path, message, timeout_ms, max_size,
                    &(struct rpc_stream_ops){.ended = fn, .request_ends = true}, ctx);
}

struct rpc_call *rpc_stream(struct rpc *r, const char *path, struct strbuf *message,
                            size_t max_size, const struct rpc_stream_ops *ops, void *ctx)
{
    return call_new(r, path, message, 0, max_size, ops, ctx);
}
