/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's queue of keys to reconcile.
 *
 * A key that is added while it waits is reconciled once; one added while it is being worked on is
 * reconciled again after that.  So there is at most one piece of work for a key at any time, it always sees
 * the newest state, and a controller that decides on the loop's thread decides one thing after the other.
 * Work that failed is tried again with a growing delay.
 *
 * The function given for a queue begins the work of one key.  It ends it with exactly one of work_done,
 * work_retry or work_wait, at once or from the answer to a request.  'struct work' is gone after that.
 * Everything runs on the loop's thread. */
#pragma once

#include "base/prom.h"
#include "client/client.h"

struct workqueue;
struct work;

typedef void work_fn(void *ctx, struct work *w, const char *key);

/* Nothing is begun before workqueue_start.  At most 'parallel' keys are worked on at once, in the order in
 * which they were added.  'client' serves work_request. */
struct workqueue *workqueue_new(struct loop *l, struct api_client *client, unsigned parallel,
                                work_fn *fn, void *ctx);
/* Requests under way are cancelled; no callback comes any more. */
struct workqueue *workqueue_free(struct workqueue *q);
void workqueue_start(struct workqueue *q);
/* The context of the queue's functions from now on.  Before workqueue_start. */
void workqueue_set_context(struct workqueue *q, void *ctx);
/* 'key' is copied. */
void workqueue_add(struct workqueue *q, const char *key);
/* Keys queued, being worked on, or waiting for another try. */
size_t workqueue_size(const struct workqueue *q);
/* Keys that wait for their turn: not those that are being worked on or that wait for another
 * try. */
size_t workqueue_depth(const struct workqueue *q);

/* What a queue has done. */
struct workqueue_stats {
    uint64_t adds;                /* Keys added; one that is added while it waits counts once. */
    uint64_t retries;             /* Calls of work_retry, */
    uint64_t errors;              /* and those that were no conflict with another writer. */
    struct prom_histogram waited; /* From when a key could be worked on to the begin of its work. */
    struct prom_histogram worked; /* From there to work_done, work_retry or work_wait. */
};
/* Counts go to 'stats', which must outlive the queue; before that they are not kept. */
void workqueue_count_into(struct workqueue *q, struct workqueue_stats *stats);

const char *work_key(const struct work *w);

/* The answer, as in api_done_fn; 'obj' lives until the callback returns. */
typedef void work_answer_fn(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj);
/* Sends a request; one at a time for a work.  'body' may be NULL. */
void work_request(struct work *w, const char *method, const char *path, const struct json *body,
                  work_answer_fn *fn);
/* As above, with the forms of the answer and of the body; NULL: application/json. */
void work_request_as(struct work *w, const char *method, const char *path, const char *accept,
                     const char *content_type, const struct json *body, work_answer_fn *fn);

void work_done(struct work *w);
/* Tries again after a delay that doubles from 20 ms to 30 s with each attempt in a row, or at once when
 * the key is added.  'what' and 'text' go to the log: at debug level for conflicts with other writers
 * (-ESTALE, -EEXIST), which are a matter of course, else as a warning. */
void work_retry(struct work *w, int error, const char *what, const char *text);
/* Looks again in 'ms' milliseconds, or when the key is added; nothing failed. */
void work_wait(struct work *w, uint64_t ms);
