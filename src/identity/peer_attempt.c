/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/peer_attempt.h"

#include "base/str.h"

#include <stdio.h>

void secret_text_free(char *s)
{
    if (s) {
        explicit_bzero(s, strlen(s));
        free(s);
    }
}

static void attempt_free(struct peer_attempt *a)
{
    list_remove(&a->node);
    loop_task_cancel(&a->task);
    loop_timer_free(a->deadline);
    identity_done(&a->id);
    free(a);
}

static void report(void *ctx)
{
    struct peer_attempt *a = ctx;
    struct identity id = a->id;
    struct err why = a->why;
    enum identity_outcome outcome = a->outcome;
    identity_fn *fn = a->fn;
    void *fn_ctx = a->ctx;
    a->id = (struct identity){0};
    attempt_free(a);
    fn(fn_ctx, outcome, &id, &why);
    identity_done(&id);
}

static void end(struct peer_attempt *a, enum identity_outcome outcome)
{
    a->ended = true;
    a->outcome = outcome;
    loop_timer_disarm(a->deadline);
    a->stop(a);
    loop_task_queue(&a->task);
}

static void expired(void *ctx)
{
    struct peer_attempt *a = ctx;
    peer_attempt_fail(a, "%s: no answer within %d ms", a->stage, IDENTITY_DEADLINE_MS);
}

static void cancel(struct identity_attempt *base)
{
    struct peer_attempt *a = CONTAINER_OF(base, struct peer_attempt, base);
    if (!a->ended) {
        a->ended = true;
        a->stop(a);
    }
    attempt_free(a);
}

void peer_attempt_begin(struct peer_attempt *a, struct loop *l, struct list *attempts,
                        void (*stop)(struct peer_attempt *a), identity_fn *fn, void *ctx)
{
    a->base.cancel = cancel;
    a->fn = fn;
    a->ctx = ctx;
    a->stop = stop;
    a->stage = "begin";
    list_push_back(attempts, &a->node);
    loop_task_init(&a->task, l, report, a);
    a->deadline = loop_timer_new(l, expired, a);
    loop_timer_arm(a->deadline, IDENTITY_DEADLINE_MS);
}

bool peer_attempts_full(struct peer_attempt *a, const struct list *attempts)
{
    if (list_size(attempts) <= IDENTITY_MAX_ATTEMPTS) {
        return false;
    }
    peer_attempt_fail(a, "%d attempts wait for the provider already", IDENTITY_MAX_ATTEMPTS);
    return true;
}

void peer_attempt_prove(struct peer_attempt *a, struct identity *id)
{
    if (!a->ended) {
        a->id = *id;
        *id = (struct identity){0};
        end(a, IDENTITY_PROVED);
    }
}

static void end_why(struct peer_attempt *a, enum identity_outcome outcome, const char *fmt,
                    va_list ap)
{
    if (!a->ended) {
        a->why.code = outcome == IDENTITY_REFUSED ? -EACCES : -EIO;
        vsnprintf(a->why.text, sizeof a->why.text, fmt, ap);
        end(a, outcome);
    }
}

void peer_attempt_refuse(struct peer_attempt *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    end_why(a, IDENTITY_REFUSED, fmt, ap);
    va_end(ap);
}

void peer_attempt_fail(struct peer_attempt *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    end_why(a, IDENTITY_FAILED, fmt, ap);
    va_end(ap);
}

void peer_attempts_cancel(struct list *attempts)
{
    while (!list_is_empty(attempts)) {
        cancel(&CONTAINER_OF(attempts->next, struct peer_attempt, node)->base);
    }
}
