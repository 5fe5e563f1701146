/* SPDX-License-Identifier: Apache-2.0 */
/* Work that may block for ever: each job has a thread of its own.
 *
 * The four threads of loop_work are shared by the process; a dead file server would take them all,
 * since a thread in the kernel's uninterruptible sleep cannot be ended.  Functions of this header are
 * called on the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct jobs;
struct jobs *jobs_new(struct loop *l);
/* Runs 'work' on a thread, then 'done' on the loop's. */
void jobs_start(struct jobs *j, loop_fn *work, loop_fn *done, void *ctx);
/* Waits at most 'limit_ms' for the running jobs, and calls 'done' of those that have ended.  The others
 * keep their memory until the process ends, and their 'done' is not called. */
struct jobs *jobs_free(struct jobs *j, unsigned limit_ms);
