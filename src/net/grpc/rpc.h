/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls over one HTTP/2 connection.
 *
 * A unary call sends one message and gets one; a stream sends and receives many. 'fn' of a call
 * is called exactly once with its result, unless the call was cancelled, the client freed, or
 * the connection went down: then only 'down' is called, and the owner, which knows its calls,
 * frees the client.  Messages are valid in the callback only.  Everything may be freed from
 * within a callback. */
#pragma once

#include "net/grpc/h2.h"
#include "wire/grpc.h"

struct rpc;
struct rpc_call;

int rpc_connect(struct loop *l, const struct h2_address *a, const struct h2_ops *ops, void *ctx,
                struct rpc **ret, struct err *e);
/* Ends all calls without a callback. */
struct rpc *rpc_free(struct rpc *r);

struct rpc_result {
    enum grpc_status status;
    const char *text;    /* The server's message or the local failure; may be "". */
    bool too_large;      /* The answer was larger than 'max_size', and was not read. */
    const char *message; /* For a unary call that succeeded; else NULL. */
    size_t size;
};
typedef void rpc_done_fn(void *ctx, const struct rpc_result *result);

/* Begins a unary call of 'path' with 'message' (without the frame; taken over and emptied).  After
 * 'timeout_ms' it ends with GRPC_DEADLINE_EXCEEDED. */
struct rpc_call *rpc_begin(struct rpc *r, const char *path, struct strbuf *message,
                           uint64_t timeout_ms, size_t max_size, rpc_done_fn *fn, void *ctx);

struct rpc_stream_ops {
    void (*message)(void *ctx, const char *p, size_t size);
    rpc_done_fn *ended;
};
struct rpc_call *rpc_stream(struct rpc *r, const char *path, struct strbuf *message,
                            size_t max_size, const struct rpc_stream_ops *ops, void *ctx);
void rpc_stream_send(struct rpc_call *call, const struct strbuf *message);

/* No callback any more; the call is gone.  NULL is fine; returns NULL. */
struct rpc_call *rpc_cancel(struct rpc_call *call);
