/* SPDX-License-Identifier: Apache-2.0 */
/* What streams to nodes (stream.c) and requests that are passed on to pods (proxy.c) share. */
#pragma once

#include "apiserver/request/request.h"

#define STREAM_LINGER_MS 30000
/* Unsent bytes of a response at which its source is no longer read. */
#define STREAM_QUEUE_PAUSE ((size_t) 256 << 10)

/* Whether the request comes from a page of another site: a browser sends the certificates and
 * cookies of its user from any. */
bool stream_is_foreign_origin(const struct http_exchange *x);
/* Appends the header line with the WebSocket protocols that the client offers, without a token
 * among them, which is for nobody but the API server. */
void stream_add_protocols(struct strbuf *b, const struct http_exchange *x);
/* Appends the rest of the path of a subresource proxy, escaped, at least "/", and the client's
 * parameters without a token among them. */
void stream_add_target(const struct request *q, struct strbuf *path);
