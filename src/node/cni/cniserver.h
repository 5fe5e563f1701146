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

struct cniserver;
struct cniserver_call;

/* Handles a complete, valid request.  The handler owns 'r' and 'netns_fd' (or -1), and answers
 * exactly once with cniserver_answer, at once or later. */
typedef void cniserver_fn(void *ctx, struct cniserver_call *call, struct cni_request *r,
                          int netns_fd);

int cniserver_new(struct loop *l, const char *path, cniserver_fn *fn, void *ctx,
                  struct cniserver **ret, struct err *e);
/* Sends 'text' and closes; does nothing when the peer is gone. 'call' must not be used after. */
void cniserver_answer(struct cniserver_call *call, const char *text, size_t size);
/* Removes the socket, so that no client can connect any more; accepted calls can still be
 * answered. */
void cniserver_close(struct cniserver *s);
/* All calls must be answered. */
struct cniserver *cniserver_free(struct cniserver *s);
