/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask the kubelet's server for what.
 *
 * The API server answers both questions, TokenReview and SubjectAccessReview; its answers are kept for
 * a short time, bounded in number, so that it is not asked for each request of a monitoring system.
 * Without an answer access is refused.  Internal to the server; loop's thread only. */
#pragma once

#include "client/client.h"
#include "net/http/http.h"

struct access;
/* 'always_allow': every authenticated client may do what reviews would decide.  'node' is the node's
 * name; 'master' the user that may begin processes.  Strings are copied. */
struct access *access_new(struct loop *l, struct api_client *api, const char *node,
                          const char *master, bool always_allow);
/* Checks that are under way end without a callback. */
struct access *access_free(struct access *a);

struct access_check;
/* 0; -EPERM: the client is not known (401); -EACCES: it may not (403); -EAGAIN: the API server cannot
 * be asked now (503); with the text for the client. */
typedef void access_done_fn(void *ctx, int error, const char *text);
/* 'part' is the subresource of nodes: "log"; NULL: a process in a container is begun, which only the
 * master may.  'other' is one that is enough as well; NULL: there is none.  'done' is called once,
 * never from within the call; 'x' is not used after it. */
struct access_check *access_begin(struct access *a, const struct http_exchange *x, const char *verb,
                                  const char *part, const char *other, access_done_fn *done,
                                  void *ctx);
/* No callback any more. */
void access_cancel(struct access_check *c);
