/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls over one HTTP/2 connection.
 *
 * A unary call sends one message and gets one; a stream sends one and receives many. A call ends by
 * its callback: 'fn' of a unary call, 'ended' of a stream. The callback comes exactly once, with the
 * result, and frees the call; but not after rpc_cancel or rpc_free, and not when the connection goes
 * down. In the latter case only 'down' of struct h2_ops is called, for all calls at once; the owner,
 * which knows its calls, then frees the client.
 *
 * Messages are valid in the callback only. Everything may be freed from within a callback. All
 * calls and callbacks are on the loop's thread. */
#pragma once

#include "net/grpc/h2.h"
#include "wire/grpc.h"

#define RPC_TEXT_MAX 4096

struct rpc;
struct rpc_call;

/* Connects to 'a'; 'ops' and 'ctx' as for h2_connect, including its errors. */
int rpc_connect(struct loop *l, const struct h2_address *a, const struct h2_ops *ops, void *ctx,
                struct rpc **ret, struct err *e);
/* Ends all calls without a callback, and closes the connection. NULL is fine; returns NULL. */
struct rpc *rpc_free(struct rpc *r);

struct rpc_result {
    enum grpc_status status; /* The server's, or the one that says what failed here. */
    const char *text;        /* The server's message or the local failure; may be "". At most
                              * RPC_TEXT_MAX bytes. */
    bool too_large;          /* The answer was larger than 'max_size', and was not read. */
    const char *message;     /* For a unary call that succeeded; else NULL. */
    size_t size;             /* Bytes of 'message'. */
};
typedef void rpc_done_fn(void *ctx, const struct rpc_result *result);

/* Begins a unary call of 'path' ("/package.Service/Method") with 'message' (protobuf, without
 * gRPC's frame; taken over and emptied).  After 'timeout_ms' (0: never) it ends with
 * GRPC_DEADLINE_EXCEEDED. 'max_size': largest message accepted, in bytes. */
struct rpc_call *rpc_begin(struct rpc *r, const char *path, struct strbuf *message,
                           uint64_t timeout_ms, size_t max_size, rpc_done_fn *fn, void *ctx);

struct rpc_stream_ops {
    /* A message from the server, without gRPC's frame. */
    void (*message)(void *ctx, const char *p, size_t size);
    rpc_done_fn *ended;
    /* The method takes one message: the request ends with it.  Else it stays open, and etcd is asked
     * to end the stream when its member has lost the cluster. */
    bool request_ends;
};
/* Begins a stream, which has no timeout; otherwise as rpc_begin. 'ops' is copied. */
struct rpc_call *rpc_stream(struct rpc *r, const char *path, struct strbuf *message,
                            size_t max_size, const struct rpc_stream_ops *ops, void *ctx);

/* Ends the call without a callback and frees it.  NULL is fine; returns NULL. */
struct rpc_call *rpc_cancel(struct rpc_call *call);
