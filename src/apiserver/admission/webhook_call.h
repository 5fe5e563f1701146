/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of webhooks over HTTPS.
 *
 * A call is bounded by its time, and by the size of its answer.  Redirects are not followed, and
 * no credential is sent.  The name of a URL's host is resolved on a worker thread, one name at a
 * time, and kept for 30 seconds; a service is resolved to one of its pods at each call.
 * Connections are kept and reused while the webhook has the same address and authority.
 *
 * A call ends with exactly one call of 'fn', never from within webhook_call, or with
 * webhook_call_cancel.  Everything runs on the loop's thread. */
#pragma once

#include "apiserver/admission/webhook_match.h"
#include "apiserver/request/server_priv.h"

struct webhook_callers;
struct webhook_call;

struct webhook_callers *webhook_callers_new(struct apiserver *a);
/* All calls must have ended.  NULL is fine; returns NULL. */
struct webhook_callers *webhook_callers_free(struct webhook_callers *c);

/* 'body' of 'size' bytes is the answer with status 200; NULL: 'why' says why there is none. */
typedef void webhook_call_fn(void *ctx, const char *body, size_t size, const char *why);
/* Sends the review, and waits for at most 'timeout_ms'; the body is copied. */
struct webhook_call *webhook_call(struct webhook_callers *c, const struct webhook *h,
                                  uint64_t timeout_ms, const struct strbuf *body,
                                  webhook_call_fn *fn, void *ctx);
void webhook_call_cancel(struct webhook_call *call);
