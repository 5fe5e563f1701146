/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of attempts that ask a peer: their one end, their deadline, their number.
 *
 * A kind embeds a 'struct peer_attempt' as the first member of its own and allocates that by
 * NEW.  An attempt ends by one of peer_attempt_prove, _refuse, _fail, or its deadline; 'stop' is
 * called then, or when it is cancelled, and the callback comes later from the loop. */
#pragma once

#include "base/list.h"
#include "base/mem.h"
#include "identity/attempt.h"

/* A provider's answer must be there after so long. */
#define IDENTITY_DEADLINE_MS 10000
/* Attempts of one provider at a time; more fail at once. */
#define IDENTITY_MAX_ATTEMPTS 64

struct peer_attempt {
    struct identity_attempt base;
    struct list node; /* In the provider's attempts. */
    struct loop_task task;
    struct loop_timer *deadline;
    const char *stage; /* What it waits for, for the reason of a timeout: "bind". */
    bool ended;
    enum identity_outcome outcome;
    struct identity id;
    struct err why;
    /* Cancels what is under way and erases secrets. */
    void (*stop)(struct peer_attempt *a);
    identity_fn *fn;
    void *ctx;
};

/* The attempts of a provider: zero is not valid, list_init. */
void peer_attempt_begin(struct peer_attempt *a, struct loop *l, struct list *attempts,
                        void (*stop)(struct peer_attempt *a), identity_fn *fn, void *ctx);
/* Each of these ends the attempt; a second end has no effect. */
void peer_attempt_prove(struct peer_attempt *a, struct identity *id); /* Takes members. */
void peer_attempt_refuse(struct peer_attempt *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
void peer_attempt_fail(struct peer_attempt *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
void peer_attempts_cancel(struct list *attempts);
/* Whether one more is too many; the new one then fails with a reason. */
bool peer_attempts_full(struct peer_attempt *a, const struct list *attempts);

/* Owned text, erased before it is freed; NULL is fine. */
void secret_text_free(char *s);
