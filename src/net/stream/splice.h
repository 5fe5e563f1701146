/* SPDX-License-Identifier: Apache-2.0 */
/* Joins two connections: what one side sends goes to the other, unchanged, in both directions.
 *
 * Memory is bounded: while one side does not read, at most DUPLEX_HIGH bytes and one read wait for
 * it, and the other side is not read.  When one side ends its direction, so does the other side's
 * connection; the splice ends when both directions have ended, when one connection fails, or when
 * after one end the other direction is silent for 'linger_ms'.
 *
 * The splice owns both connections.  Everything runs on the loop's thread. */
#pragma once

#include "net/tls/duplex.h"

struct splice;
/* The splice has ended, and everything was sent (error 0), or it broke.  'sent': bytes from the
 * first to the second connection, 'received': the other way.  The splice is freed after it. */
typedef void splice_done_fn(void *ctx, int error, const char *why, uint64_t sent,
                            uint64_t received);
struct splice *splice_new(struct loop *l, struct duplex *a, struct duplex *b, uint64_t linger_ms,
                          splice_done_fn *done, void *ctx);
/* The same, where 'a' is the server's side of a WebSocket connection whose binary messages carry the
 * bytes ("SPDY/3.1+portforward.k8s.io"). */
struct splice *splice_websocket_new(struct loop *l, struct duplex *a, struct duplex *b,
                                    uint64_t linger_ms, splice_done_fn *done, void *ctx);
/* Closes both connections at once, without a callback. */
struct splice *splice_free(struct splice *s);
