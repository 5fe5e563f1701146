/* SPDX-License-Identifier: Apache-2.0 */
/* A connected socket, plain or with TLS, as a stream of bytes in each direction, with back-pressure.
 *
 * This is what is left of an HTTP connection after an upgrade (RFC 9110, 7.8), on either side.  Each
 * side can end its direction and continue to read.  Calls only queue: callbacks come from the loop,
 * never from within a call, and may free the duplex.  The memory is what its user queues: a user
 * that looks at duplex_queued and pauses the source of its data has bounded memory.
 *
 * The duplex owns the socket and its TLS.  Everything runs on the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "net/tls/tls.h"

struct duplex;

/* At most this many queued bytes count as drained. */
#define DUPLEX_LOW 65536u
/* More than this queued: a user that copies from another connection pauses that. */
#define DUPLEX_HIGH 262144u

struct duplex_ops {
    /* Bytes of the peer; borrowed.  Not called while paused. */
    void (*data)(void *ctx, const char *p, size_t size);
    /* The peer has ended its direction: no data will follow. */
    void (*eof)(void *ctx);
    /* At most DUPLEX_LOW bytes are queued now, after some were sent; NULL: not wanted. */
    void (*drained)(void *ctx);
    /* The connection has failed, or duplex_break was called; nothing else is called after it. */
    void (*failed)(void *ctx, int error, const char *why);
};

/* Takes ownership of 'fd' and 'tls' (NULL: plain), which is connected.  'early' are bytes that were
 * read from the peer already; copied. */
struct duplex *duplex_new(struct loop *l, int fd, struct tls *tls, const void *early, size_t size);
/* Begins to read; until then nothing is called.  'ops' must outlive the duplex. */
void duplex_start(struct duplex *d, const struct duplex_ops *ops, void *ctx);
/* Queues a copy of the bytes; no effect after duplex_end or a failure. */
void duplex_write(struct duplex *d, const void *p, size_t size);
size_t duplex_queued(const struct duplex *d);
/* Whether every queued byte, and our end if duplex_end was called, were given to the kernel. */
bool duplex_is_flushed(const struct duplex *d);
/* Stops, or continues, to read. */
void duplex_pause(struct duplex *d, bool pause);
/* Ends our direction after what is queued. */
void duplex_end(struct duplex *d);
/* Makes the connection fail soon with 'error', which 'failed' reports. */
void duplex_break(struct duplex *d, int error);
/* 'fn' is called when the duplex is freed: for the account of the part that made it. */
void duplex_on_free(struct duplex *d, loop_fn *fn, void *ctx);
/* Closes at once. */
struct duplex *duplex_free(struct duplex *d);
DEFINE_CLEANUP(struct duplex *, duplex_free)
