/* SPDX-License-Identifier: Apache-2.0 */
/* The socket at which tenet-cni finds the agent.
 *
 * A unix stream socket of mode 0600 in a folder of mode 0700; peers that are not root are
 * refused.  One connection carries one request line with (at most) one descriptor, and
 * one answer line.  Everything is bounded: size, time to send it, and number of
 * connections.  On the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "wire/cni.h"

struct cni_server;
struct cni_server_call;

/* Handles a complete, valid request.  The handler owns 'r' and 'netns_fd' (or -1), and answers
 * exactly once with cni_server_answer, at once or later. */
typedef void cni_server_fn(void *ctx, struct cni_server_call *call, struct cni_request *r,
                           int netns_fd);

int cni_server_new(struct loop *l, const char *path, cni_server_fn *fn, void *ctx,
                   struct cni_server **ret, struct err *e);
/* Sends 'text' and closes; does nothing when the peer is gone. 'call' must not be used after. */
void cni_server_answer(struct cni_server_call *call, const char *text, size_t size);
/* Removes the socket, so that no client can connect any more; accepted calls can still be
 * answered. */
void cni_server_close(struct cni_server *s);
/* All calls must be answered. */
struct cni_server *cni_server_free(struct cni_server *s);
