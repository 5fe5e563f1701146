/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP/2 connection of a client (RFC 9113; over TLS, or cleartext with prior
 * knowledge), by nghttp2 on the loop.
 *
 * It handles streams and bytes; rpc.c interprets them.  While streams are open, a PING that is
 * not answered in time ends the connection.  There are no PINGs on a unix socket: the kernel says
 * when the peer ends, and a server of grpc-go ends a connection with PINGs more often than every
 * five minutes while a call is silent.  When the connection fails, 'down' is called once
 * and nothing after it; the owner then frees the connection, and with it all streams, which get
 * no callback of their own.  Everything may be freed from within its callbacks. */
#pragma once

#include "base/str.h"
#include "net/loop/loop.h"
#include "net/tls/tls.h"

struct h2;
struct h2_stream;

struct h2_ops {
    void (*up)(void *ctx); /* Connected, including the TLS handshake. */
    void (*down)(void *ctx, const char *reason);
};
struct h2_stream_ops {
    /* A field of the header or the trailer; neither string ends in NUL. */
    void (*header)(void *ctx, const char *name, size_t name_size, const char *value,
                   size_t value_size);
    void (*data)(void *ctx, const char *p, size_t size);
    /* The stream has ended; 'error': HTTP/2's code, 0 for a normal end. Not called after
     * h2_cancel. */
    void (*closed)(void *ctx, uint32_t error);
};
struct h2_field {
    const char *name, *value;
};

struct h2_address {
    const char *address; /* IPv4, or "localhost". */
    uint16_t port;
    const char *name;        /* Name of the server: in requests, and in its certificate. */
    struct tls_context *tls; /* A client's context, for HTTP/2; NULL: cleartext. */
    const char *path;        /* Of a unix socket, and then only 'name' counts; NULL: TCP. */
};
/* 'a' is not needed after it, but the TLS context is. */
int h2_connect(struct loop *l, const struct h2_address *a, const struct h2_ops *ops, void *ctx,
               struct h2 **ret, struct err *e);
struct h2 *h2_free(struct h2 *c);

/* Sends a POST of 'body' (taken over and emptied).  'end': with END_STREAM; without it this side of
 * the stream stays open, as the server may take its end for the call's. */
struct h2_stream *h2_post(struct h2 *c, const char *path, const struct h2_field *fields,
                          size_t n_fields, struct strbuf *body, bool end,
                          const struct h2_stream_ops *ops, void *ctx);
/* Resets the stream: no more callbacks, 's' is gone. */
void h2_cancel(struct h2_stream *s);
