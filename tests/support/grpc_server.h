/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC server on a unix socket, on the loop of the test: requests of one message, answers of any
 * number of messages and a status.  Mistakes of the test abort.
 *
 * A request lives from 'begun' to 'gone', which comes after its end was sent, when the client gives
 * up, and when the connection ends; 'gone' comes for each request, and the server frees it then. */
#pragma once

#include "net/loop/loop.h"
#include "wire/grpc.h"

struct grpc_server;
struct grpc_request;

struct grpc_server_ops {
    void (*begun)(void *ctx, struct grpc_request *q);
    void (*gone)(void *ctx, struct grpc_request *q);
};

/* Listens at 'path', which must be free; its folder exists. */
struct grpc_server *grpc_server_new(struct loop *l, const char *path,
                                    const struct grpc_server_ops *ops, void *ctx);
/* Closes the connections, all requests are gone, and removes the socket.  Not from within 'begun'
 * and 'gone'. */
struct grpc_server *grpc_server_free(struct grpc_server *s);

const char *grpc_request_path(const struct grpc_request *q); /* "/package.Service/Method" */
const char *grpc_request_message(const struct grpc_request *q, size_t *ret_size);
/* The value of "grpc-timeout", "" if there is none. */
const char *grpc_request_timeout(const struct grpc_request *q);
void grpc_request_send(struct grpc_request *q, const struct strbuf *message);
/* Nothing may follow.  'text' NULL: "". */
void grpc_request_end(struct grpc_request *q, enum grpc_status status, const char *text);
