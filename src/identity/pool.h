/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of threads for the hashes of passwords, apart from the loop's own workers.
 *
 * A check of a bcrypt hash takes 50 to 300 ms of a processor.  The loop's workers write the store
 * and must not wait for that, so that these threads are few, of low priority (nice 10), and start
 * with the first job.  The queue is bounded: a flood of logins is refused, not collected.
 *
 * The pool belongs to one loop; jobs are begun and end on its thread, 'work' runs on a thread of
 * the pool. */
#pragma once

#include "net/loop/loop.h"

struct identity_pool;
/* The pool of a loop's providers: 'threads' of them (0: half of the processors, 1 to 4), and 'queue'
 * jobs at most that wait or run (0: 64). */
struct identity_pool *identity_pool_new(struct loop *l, unsigned threads, unsigned queue);
/* Waits for jobs that run; 'done' is not called any more, and 'dropped' is, for each job that is
 * left. */
struct identity_pool *identity_pool_free(struct identity_pool *p);

struct identity_job_ops {
    void (*work)(void *ctx);    /* On a thread of the pool. */
    void (*done)(void *ctx);    /* On the loop's thread. */
    void (*dropped)(void *ctx); /* On the loop's thread, in place of 'done'; frees 'ctx'. */
};
/* -EBUSY: the queue is full, and nothing is called. */
int identity_pool_run(struct identity_pool *p, const struct identity_job_ops *ops, void *ctx);
