/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to HAProxy's runtime API, on which commands wait for nothing: each is sent at once,
 * and answers come in the same order.
 *
 * A connection is made once; when it ends, the owner frees it and makes another.  An answer that
 * does not come in time ends it, because a HAProxy that is stopped accepts connections but
 * answers none. The owner owns the connection.  Everything runs on the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct haproxy_conn;
/* 'answer' is NULL when the connection ended before the answer came. */
typedef void haproxy_conn_fn(void *ctx, const char *answer, size_t size);

/* Connects to the socket 'path'.  'lost' is called once, when the connection has ended, never from
 * within a call; all commands without an answer were reported before. */
int haproxy_conn_open(struct loop *l, const char *path, loop_fn *lost, void *ctx,
                      struct haproxy_conn **ret, struct err *e);
/* Sends one command, which has no line end; 'payload' (NULL: none) follows it, and has no empty
 * line.  'fn' NULL: the answer is not wanted. */
void haproxy_conn_send(struct haproxy_conn *r, const char *command, const char *payload,
                       haproxy_conn_fn *fn, void *ctx);
/* Whether the connection ended because an answer did not come in time. */
bool haproxy_conn_is_silent(const struct haproxy_conn *r);
/* Commands that wait get no call. */
struct haproxy_conn *haproxy_conn_free(struct haproxy_conn *r);
