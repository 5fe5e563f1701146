/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: descriptors, timers, deferred calls, signals, child processes and worker
 * threads.
 *
 * It wraps libuv so that the rest of the tree sees four things fixed once: a handle can be freed
 * at any moment, also inside its own callback, and its callback is never called after that;
 * errors are negative errno; every handle belongs to one loop and one thread; loop_run returns
 * when loop_stop was called. Only loop_wakeup_trigger may be called from another thread. Handles
 * must be freed before the loop. A call that could only fail by a mistake of the caller, or for
 * want of descriptors, aborts. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <signal.h>
#include <sys/types.h>

struct loop;
struct loop *loop_new(void);
struct loop *loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop *, loop_free)
void loop_run(struct loop *l); /* Until loop_stop. */
void loop_stop(struct loop *l);
/* Runs until '*flag' is true or 'timeout_ms' has passed (0: no limit); for command-line programs
 * and tests. 0, -ETIMEDOUT, or -ECANCELED when loop_stop was called. */
int loop_run_until(struct loop *l, const bool *flag, uint64_t timeout_ms);
uint64_t loop_now_ms(struct loop *l); /* Monotonic, as of this iteration. */

enum { LOOP_READ = 1, LOOP_WRITE = 2 };
struct loop_fd;
typedef void loop_fd_fn(void *ctx, unsigned events);
/* Watches 'fd' (not owned; must stay open until loop_fd_free). Errors and hang-ups are reported
 * as the events that were asked for. One watcher a descriptor. */
struct loop_fd *loop_fd_new(struct loop *l, int fd, unsigned events, loop_fd_fn *fn, void *ctx);
void loop_fd_set(struct loop_fd *w, unsigned events);
struct loop_fd *loop_fd_free(struct loop_fd *w);

struct loop_timer;
typedef void loop_fn(void *ctx);
struct loop_timer *loop_timer_new(struct loop *l, loop_fn *fn, void *ctx); /* Not armed. */
/* Fires once; arming again moves the time. */
void loop_timer_arm(struct loop_timer *t, uint64_t delay_ms);
void loop_timer_disarm(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
struct loop_timer *loop_timer_free(struct loop_timer *t);

/* A call before the loop next waits; queueing a task twice calls it once. Embed and initialize
 * with loop_task_init; cancel before the memory goes. */
struct loop_task {
    struct loop *loop;
    loop_fn *fn;
    void *ctx;
    struct loop_task *prev, *next; /* Linked while queued. */
};
void loop_task_init(struct loop_task *t, struct loop *l, loop_fn *fn, void *ctx);
void loop_task_queue(struct loop_task *t);
void loop_task_cancel(struct loop_task *t);

struct loop_signal;
struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_fn *fn, void *ctx);
struct loop_signal *loop_signal_free(struct loop_signal *s);

/* Runs 'work' on a worker thread, then 'done' on the loop's. Cannot be cancelled: 'ctx' must
 * live until 'done'. At most four run at once. */
void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *ctx);

/* Looks up the IPv4 address of 'host' (an address, "localhost" or a name, by the system's resolver).
 * Lookups take at most half of the worker threads.  'fn' is called once, never from within the call
 * that began it: 'why' is NULL, or the reason why there is no address. */
struct loop_lookup;
typedef void loop_lookup_fn(void *ctx, uint32_t ip, const char *why);
struct loop_lookup *loop_lookup_new(struct loop *l, const char *host, loop_lookup_fn *fn,
                                    void *ctx);
/* No callback any more; a resolver that is slow ends by itself. */
struct loop_lookup *loop_lookup_cancel(struct loop_lookup *k);

/* A wake-up that any thread may trigger; 'fn' runs on the loop, once for several triggers. */
struct loop_wakeup;
struct loop_wakeup *loop_wakeup_new(struct loop *l, loop_fn *fn, void *ctx);
void loop_wakeup_trigger(struct loop_wakeup *w); /* Thread-safe. */
struct loop_wakeup *loop_wakeup_free(struct loop_wakeup *w);

/* Child processes. */
struct loop_child;
/* 'status' as in waitpid(2). */
typedef void loop_child_fn(void *ctx, int status);
/* Watches the child 'pid' (pidfd); 'fn' is called once when it ended and was reaped. */
struct loop_child *loop_child_new(struct loop *l, pid_t pid, loop_child_fn *fn, void *ctx);
struct loop_child *loop_child_free(struct loop_child *c); /* Stops watching, does not kill. */
