/* SPDX-License-Identifier: Apache-2.0 */
/* A controller's queue of keys to reconcile.
 *
 * A key that is added while it waits is reconciled once; a key that is added while it is in work
 * is reconciled again afterwards.  So there is at most one work for a key at any time, it always
 * sees the newest state, and decisions on the loop's thread are made one after the other.
 * Failed work is retried with a growing delay.
 *
 * The queue's function begins the work on one key.  It ends the work with exactly one of work_done,
 * work_retry or work_wait, at once or from the answer to a request.  The 'struct work' is invalid
 * afterwards.  Everything runs on the loop's thread. */
#pragma once

#include "base/prom.h"
#include "client/client.h"

struct workqueue;
struct work;

typedef void work_fn(void *ctx, struct work *w, const char *key);

/* Makes a queue; no work begins before workqueue_start.  At most 'parallel' keys are in work at
 * once, in the order in which they were added.  'client' serves work_request. */
struct workqueue *workqueue_new(struct loop *l, struct api_client *client, unsigned parallel,
                                work_fn *fn, void *ctx);
/* Cancels requests under way; there are no further callbacks. */
struct workqueue *workqueue_free(struct workqueue *q);
void workqueue_start(struct workqueue *q);
/* Sets the context of the queue's functions.  Call it before workqueue_start. */
void workqueue_set_context(struct workqueue *q, void *ctx);
/* 'key' is copied. */
void workqueue_add(struct workqueue *q, const char *key);
/* The number of keys that are queued, in work, or waiting for a retry. */
size_t workqueue_size(const struct workqueue *q);
/* The number of keys that wait for their turn, without those in work or waiting for a retry. */
size_t workqueue_depth(const struct workqueue *q);

/* Counters of a queue. */
struct workqueue_stats {
    uint64_t adds;    /* Keys added; a key that is added while it waits counts once. */
    uint64_t retries; /* Calls of work_retry. */
    /* Calls of work_retry other than for conflicts with another writer. */
    uint64_t errors;
    struct prom_histogram waited; /* Time from when a key was ready to the beginning of its work. */
    /* Time from the beginning of the work to work_done, work_retry or work_wait. */
    struct prom_histogram worked;
};
/* Counts into 'stats', which must outlive the queue; earlier events are not counted. */
void workqueue_count_into(struct workqueue *q, struct workqueue_stats *stats);

const char *work_key(const struct work *w);

/* The response, as in api_done_fn; 'obj' lives until the callback returns. */
typedef void work_answer_fn(void *ctx, struct work *w, int error, const char *text,
                            struct json *obj);
/* Sends a request; a work has at most one at a time.  'body' may be NULL. */
void work_request(struct work *w, const char *method, const char *path, const struct json *body,
                  work_answer_fn *fn);
/* Like work_request, with the media types of the response and of the body; NULL:
 * application/json. */
void work_request_as(struct work *w, const char *method, const char *path, const char *accept,
                     const char *content_type, const struct json *body, work_answer_fn *fn);

/* Like work_request, through another client than the queue's, which must outlive the request. */
void work_request_by(struct work *w, struct api_client *client, const char *method,
                     const char *path, const struct json *body, work_answer_fn *fn);

void work_done(struct work *w);
/* Retries after a delay that doubles from 20 ms to 30 s with each consecutive attempt, or at once
 * when the key is added.  'what' and 'text' are logged: at debug level for conflicts with other
 * writers (-ESTALE, -EEXIST), which are expected, otherwise as a warning. */
void work_retry(struct work *w, int error, const char *what, const char *text);
/* Reconciles the key again in 'ms' milliseconds, or when it is added; this is no failure. */
void work_wait(struct work *w, uint64_t ms);
