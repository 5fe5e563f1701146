/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/jobs.h"

#include "base/list.h"
#include "base/mem.h"

#include <pthread.h>
#include <time.h>

#define STACK_SIZE (256 << 10)

struct jobs {
    struct loop *loop;
    struct loop_wakeup *wakeup; /* NULL: jobs_free was called. */
    pthread_mutex_t mutex;      /* Guards all below, and 'wakeup'. */
    pthread_cond_t ended;
    struct list finished; /* List of 'struct job'. */
    size_t running;
    size_t refs; /* The owner's, and one for each running job. */
};

struct job {
    struct jobs *jobs;
    struct list node;
    loop_fn *work, *done;
    void *ctx;
};

static void unref_unlock(struct jobs *j)
{
    bool last = --j->refs == 0;
    pthread_mutex_unlock(&j->mutex);
    if (last) {
        pthread_mutex_destroy(&j->mutex);
        pthread_cond_destroy(&j->ended);
        free(j);
    }
}

static void *run(void *arg)
{
    struct job *job = arg;
    struct jobs *j = job->jobs;
    job->work(job->ctx);
    pthread_mutex_lock(&j->mutex);
    j->running--;
    list_push_back(&j->finished, &job->node);
    if (j->wakeup) {
        loop_wakeup_trigger(j->wakeup);
    }
    pthread_cond_signal(&j->ended);
    unref_unlock(j);
    return NULL;
}

static void deliver(void *ctx)
{
    struct jobs *j = ctx;
    for (;;) {
        pthread_mutex_lock(&j->mutex);
        struct list *node = list_pop_front(&j->finished);
        pthread_mutex_unlock(&j->mutex);
        if (!node) {
            return;
        }
        struct job *job = CONTAINER_OF(node, struct job, node);
        loop_fn *done = job->done;
        void *job_ctx = job->ctx;
        free(job);
        done(job_ctx);
    }
}

struct jobs *jobs_new(struct loop *l)
{
    struct jobs *j = NEW(struct jobs);
    pthread_condattr_t attr;
    j->loop = l;
    j->refs = 1;
    list_init(&j->finished);
    pthread_mutex_init(&j->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&j->ended, &attr);
    pthread_condattr_destroy(&attr);
    j->wakeup = loop_wakeup_new(l, deliver, j);
    return j;
}

/* Starts a detached thread; false: the system has no room for one. */
static bool start_thread(struct job *job)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    /* Signals are for the loop's thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&thread, &attr, run, job);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return r == 0;
}

static void run_in_pool(void *ctx)
{
    run(ctx);
}

static void ignore(void *ctx)
{
}

void jobs_start(struct jobs *j, loop_fn *work, loop_fn *done, void *ctx)
{
    struct job *job = NEW(struct job);
    *job = (struct job){.jobs = j, .work = work, .done = done, .ctx = ctx};
    list_init(&job->node);
    pthread_mutex_lock(&j->mutex);
    j->running++;
    j->refs++;
    pthread_mutex_unlock(&j->mutex);
    if (!start_thread(job)) {
        loop_work(j->loop, run_in_pool, ignore, job);
    }
}

struct jobs *jobs_free(struct jobs *j, unsigned limit_ms)
{
    if (!j) {
        return NULL;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000 + 1;
    pthread_mutex_lock(&j->mutex);
    while (j->running && pthread_cond_timedwait(&j->ended, &j->mutex, &until) == 0) {
    }
    pthread_mutex_unlock(&j->mutex);
    deliver(j);
    pthread_mutex_lock(&j->mutex);
    j->wakeup = loop_wakeup_free(j->wakeup);
    unref_unlock(j);
    return NULL;
}
