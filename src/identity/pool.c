/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/pool.h"

#include "base/list.h"
#include "base/mem.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_THREADS 4
#define DEFAULT_QUEUE 64
#define NICE 10

struct job {
    struct list node;
    const struct identity_job_ops *ops;
    void *ctx;
};

struct identity_pool {
    struct loop_wakeup *wakeup;
    unsigned n_threads, max_jobs;
    unsigned jobs; /* Begun and not done yet; of the loop's thread. */
    pthread_t threads[MAX_THREADS];
    unsigned started;
    pthread_mutex_t lock; /* Guards the rest. */
    pthread_cond_t more;
    struct list waiting, finished;
    bool stop;
};

static struct job *take(struct list *l)
{
    struct list *node = list_pop_front(l);
    return node ? CONTAINER_OF(node, struct job, node) : NULL;
}

static void *run(void *pool)
{
    struct identity_pool *p = pool;
    /* On Linux the priority is the thread's own. */
    (void) setpriority(PRIO_PROCESS, (id_t) gettid(), NICE);
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct job *j = take(&p->waiting);
        if (!j) {
            pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        j->ops->work(j->ctx);
        pthread_mutex_lock(&p->lock);
        list_push_back(&p->finished, &j->node);
        loop_wakeup_trigger(p->wakeup);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static struct job *take_finished(struct identity_pool *p)
{
    pthread_mutex_lock(&p->lock);
    struct job *j = take(&p->finished);
    pthread_mutex_unlock(&p->lock);
    return j;
}

static void on_finished(void *pool)
{
    struct identity_pool *p = pool;
    struct job *j;
    while ((j = take_finished(p))) {
        p->jobs--;
        j->ops->done(j->ctx);
        free(j);
    }
}

struct identity_pool *identity_pool_new(struct loop *l, unsigned threads, unsigned queue)
{
    struct identity_pool *p = NEW(struct identity_pool);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned half = processors > 2 ? (unsigned) processors / 2 : 1;
    p->n_threads = MIN(threads ? threads : half, MAX_THREADS);
    p->max_jobs = queue ? queue : DEFAULT_QUEUE;
    p->wakeup = loop_wakeup_new(l, on_finished, p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    list_init(&p->waiting);
    list_init(&p->finished);
    return p;
}

static void drop_all(struct list *l)
{
    struct job *j;
    while ((j = take(l))) {
        j->ops->dropped(j->ctx);
        free(j);
    }
}

struct identity_pool *identity_pool_free(struct identity_pool *p)
{
    if (p) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->more);
        pthread_mutex_unlock(&p->lock);
        for (unsigned i = 0; i < p->started; i++) {
            pthread_join(p->threads[i], NULL);
        }
        drop_all(&p->waiting);
        drop_all(&p->finished);
        pthread_cond_destroy(&p->more);
        pthread_mutex_destroy(&p->lock);
        loop_wakeup_free(p->wakeup);
        free(p);
    }
    return NULL;
}

int identity_pool_run(struct identity_pool *p, const struct identity_job_ops *ops, void *ctx)
{
    if (p->jobs >= p->max_jobs) {
        return -EBUSY;
    }
    while (p->started < p->n_threads &&
           pthread_create(&p->threads[p->started], NULL, run, p) == 0) {
        p->started++;
    }
    if (!p->started) {
        return -EBUSY;
    }
    struct job *j = NEW(struct job);
    *j = (struct job){.ops = ops, .ctx = ctx};
    p->jobs++;
    pthread_mutex_lock(&p->lock);
    list_push_back(&p->waiting, &j->node);
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
    return 0;
}
