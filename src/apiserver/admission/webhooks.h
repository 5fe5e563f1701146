/* SPDX-License-Identifier: Apache-2.0 */
/* Admission by webhooks: servers that MutatingWebhookConfigurations and
 * ValidatingWebhookConfigurations name are asked about writes.
 *
 * Calls are asynchronous.  A write asks in two steps: webhooks_mutate after the plug-ins that
 * change the object, webhooks_validate after the object was validated.  While calls are under way
 * the attempt ends, and is made again when they have been answered: it computes the object anew,
 * and gets the judged object in its place if it is still based on the same version.  Otherwise the
 * webhooks are asked again, as Kubernetes does after a conflict.
 *
 * Mutating webhooks are called one after the other, by names of configurations; then the plug-ins
 * change the object once more, and webhooks with the reinvocationPolicy IfNeeded are called again
 * if the object has changed since.  Validating webhooks are called at the same time.  The kinds of
 * the configurations themselves are never asked about, so that a broken webhook can be removed.
 *
 * All calls of one write take at most 60 s together, and at most 1,000 writes wait at once.
 * Without any webhook a write pays for two comparisons.  Everything runs on the loop's thread. */
#pragma once

#include "apiserver/admission/webhook_match.h"
#include "apiserver/request/request.h"

struct webhooks;
struct webhook_run; /* The calls for one write. */

struct webhooks *webhooks_new(struct apiserver *a);
/* Ends all waiting: the writes are refused with 503. */
void webhooks_end_all(struct webhooks *hs);
/* All runs must have been freed.  NULL is fine; returns NULL. */
struct webhooks *webhooks_free(struct webhooks *hs);
/* Whether there is a webhook of either kind. */
bool webhooks_exist(struct webhooks *hs);

/* The body of a subresource, which is asked about in place of the object; it is not patched. */
struct webhook_part {
    const char *group, *version, *kind;
    const struct json *body;
};

struct webhook_question {
    struct request *q;
    enum webhook_operation operation;
    struct json *obj;                /* NULL: deletion, or a part. */
    const struct json *old;          /* NULL: creation. */
    const struct webhook_part *part; /* NULL: the object itself. */
    loop_fn *again;                  /* Called when the attempt is to be made again. */
    void *ctx;
};
/* '*run' is the run of the write, NULL at first; free it with webhook_run_free.  Returns 0: no
 * webhook is to be asked; 1: all have been asked, and 'obj' is now the object that they judged;
 * -EINPROGRESS: calls are under way; otherwise the write is refused and the outcome filled. */
int webhooks_mutate(struct webhooks *hs, struct webhook_run **run,
                    const struct webhook_question *question, struct outcome *outcome);
/* The same for validating webhooks, without a change of 'obj': 0 when none refuses. */
int webhooks_validate(struct webhooks *hs, struct webhook_run **run,
                      const struct webhook_question *question, struct outcome *outcome);
/* Whether the run was about another version than 'old' (NULL: none), so that it begins anew. */
bool webhooks_is_stale(const struct webhook_run *run, const struct json *old);
/* Cancels the calls.  NULL is fine; returns NULL. */
struct webhook_run *webhook_run_free(struct webhook_run *run);

/* Continues with 'handler' when the webhooks allow a request that writes no object of its own
 * kind: exec and its like, the proxies, evictions and tokens.  At once for other requests. */
void webhooks_then(struct request *q, request_fn *handler, struct outcome *outcome);
