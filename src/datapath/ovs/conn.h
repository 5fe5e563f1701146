/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a unix socket of Open vSwitch that is made again whenever it breaks.
 *
 * It owns the descriptor, the buffers and the timers; the user of the module interprets the bytes.
 * After a failure the next attempt comes in 20 ms, then up to 200 ms apart: connecting costs next
 * to nothing, and traffic of the node may be waiting. When nothing was received for 5 s the user
 * sends a probe, and after 10 s more the peer counts as dead. Callbacks come on the loop's thread;
 * conn_free may not be called from them. */
#pragma once

#include "base/str.h"
#include "net/loop/loop.h"

struct conn;

struct conn_ops {
    /* Called when connected; both buffers are empty. */
    void (*opened)(void *ctx);
    /* Takes received bytes; sets '*ret_used' to the number consumed (the rest comes again, with
     * more). A negative return closes the connection, with the reason in '*e'. */
    int (*received)(void *ctx, const char *data, size_t size, size_t *ret_used, struct err *e);
    /* Called when the connection was closed, or an attempt failed. */
    void (*closed)(void *ctx, const char *reason);
    void (*probe)(void *ctx); /* Appends a message that the peer answers. */
    /* Called when all appended bytes were sent, to append the next part of a long message.
     * Optional. */
    void (*drained)(void *ctx);
};

/* 'max_in' bounds a message from the peer, 'max_out' the bytes that wait to be sent: beyond either,
 * the connection is closed. 'path' is copied. Idle until conn_start. */
struct conn *conn_new(struct loop *l, const char *path, size_t max_in, size_t max_out,
                      const struct conn_ops *ops, void *ctx);
struct conn *conn_free(struct conn *c);
void conn_start(struct conn *c);
/* Tries to connect at once unless connected, because the peer is probably running. */
void conn_kick(struct conn *c);
bool conn_is_open(const struct conn *c);
/* The buffer to which the user appends; its bytes are sent before the loop next waits. Only while
 * open. */
struct strbuf *conn_out(struct conn *c);
/* Closes (calling 'closed') and tries again later. */
void conn_reset(struct conn *c, const char *reason);
