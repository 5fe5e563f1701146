/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/workqueue.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"

LOG_MODULE("controllers");

#define RETRY_MIN_MS 20
#define RETRY_MAX_MS 30000

enum work_state { WORK_QUEUED, WORK_RUNNING, WORK_DELAYED };

struct work {
    struct workqueue *q;
    struct hmap_node node;
    struct list list; /* In q->ready, q->delayed (by 'due') or q->running. */
    enum work_state state;
    bool again; /* The key was added while it was in work. */
    struct backoff backoff;
    uint64_t due;      /* When a delayed key is due, in monotonic ms. */
    uint64_t since_ns; /* When the current state began, in monotonic ns. */
    struct api_call *call;
    work_answer_fn *answer;
    char key[];
};

struct workqueue {
    struct loop *loop;
    struct api_client *client;
    work_fn *fn;
    void *ctx;
    struct hmap works;
    struct list ready, delayed, running;
    unsigned n_running, parallel;
    bool started;
    struct loop_task task;
    struct loop_timer *timer;
    struct log_limit limit;
    struct workqueue_stats *stats; /* NULL: no metrics. */
};

/* Adds the time since 'w' entered its current state to 'h', and starts the time of the next
 * state. */
static void count_state(struct work *w, struct prom_histogram *h)
{
    uint64_t now = time_mono_ns();
    if (h) {
        prom_histogram_add(h, now - w->since_ns);
    }
    w->since_ns = now;
}

static void run_ready(void *ctx)
{
    struct workqueue *q = ctx;
    /* Work that ends at once may queue its key again; such keys wait for the next round, so
     * that the loop also polls its descriptors. */
    for (size_t budget = q->works.n; budget > 0 && q->n_running < q->parallel; budget--) {
        struct list *first = list_pop_front(&q->ready);
        if (!first) {
            return;
        }
        struct work *w = CONTAINER_OF(first, struct work, list);
        w->state = WORK_RUNNING;
        w->again = false;
        count_state(w, q->stats ? &q->stats->waited : NULL);
        list_push_back(&q->running, &w->list);
        q->n_running++;
        q->fn(q->ctx, w, w->key);
    }
    if (!list_is_empty(&q->ready) && q->n_running < q->parallel) {
        loop_task_queue(&q->task);
    }
}

static void make_ready(struct work *w)
{
    list_remove(&w->list);
    w->state = WORK_QUEUED;
    count_state(w, NULL);
    list_push_back(&w->q->ready, &w->list);
    if (w->q->started) {
        loop_task_queue(&w->q->task);
    }
}

static void arm_timer(struct workqueue *q)
{
    if (list_is_empty(&q->delayed)) {
        loop_timer_disarm(q->timer);
        return;
    }
    uint64_t now = time_mono_ms();
    uint64_t due = CONTAINER_OF(q->delayed.next, struct work, list)->due;
    loop_timer_arm(q->timer, due > now ? due - now : 0);
}

static void delay_over(void *ctx)
{
    struct workqueue *q = ctx;
    uint64_t now = time_mono_ms();
    struct work *w;
    LIST_FOREACH (w, struct work, list, &q->delayed) {
        if (w->due > now) {
            break;
        }
        make_ready(w);
    }
    arm_timer(q);
}

struct workqueue *workqueue_new(struct loop *l, struct api_client *client, unsigned parallel,
                                work_fn *fn, void *ctx)
{
    struct workqueue *q = NEW(struct workqueue);
    q->loop = l;
    q->client = client;
    q->parallel = parallel;
    q->fn = fn;
    q->ctx = ctx;
    hmap_init(&q->works);
    list_init(&q->ready);
    list_init(&q->delayed);
    list_init(&q->running);
    loop_task_init(&q->task, l, run_ready, q);
    q->timer = loop_timer_new(l, delay_over, q);
    return q;
}

static void work_free(struct work *w)
{
    hmap_remove(&w->q->works, &w->node);
    list_remove(&w->list);
    free(w);
}

struct workqueue *workqueue_free(struct workqueue *q)
{
    if (q) {
        loop_task_cancel(&q->task);
        loop_timer_free(q->timer);
        struct work *w;
        HMAP_FOREACH (w, struct work, node, &q->works) {
            if (w->call) {
                api_call_cancel(w->call);
            }
            work_free(w);
        }
        hmap_done(&q->works);
        free(q);
    }
    return NULL;
}

void workqueue_start(struct workqueue *q)
{
    q->started = true;
    loop_task_queue(&q->task);
}

static void count_add(struct workqueue *q, bool is_new)
{
    if (q->stats) {
        q->stats->adds += is_new;
    }
}

void workqueue_add(struct workqueue *q, const char *key)
{
    struct work *w;
    HMAP_FOREACH_WITH_HASH (w, struct work, node, hash_string(key), &q->works) {
        if (!streq(w->key, key)) {
            continue;
        }
        if (w->state == WORK_RUNNING) {
            count_add(q, !w->again);
            w->again = true;
        } else if (w->state == WORK_DELAYED) {
            count_add(q, true);
            make_ready(w);
            arm_timer(q);
        }
        return;
    }
    count_add(q, true);
    size_t size = strlen(key) + 1;
    w = xcalloc(1, sizeof(*w) + size);
    w->backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    memcpy(w->key, key, size);
    w->q = q;
    list_init(&w->list);
    hmap_insert(&q->works, &w->node, hash_string(key));
    make_ready(w);
}

size_t workqueue_size(const struct workqueue *q)
{
    return q->works.n;
}

size_t workqueue_depth(const struct workqueue *q)
{
    return list_size(&q->ready);
}

void workqueue_set_context(struct workqueue *q, void *ctx)
{
    q->ctx = ctx;
}

void workqueue_count_into(struct workqueue *q, struct workqueue_stats *stats)
{
    q->stats = stats;
}

const char *work_key(const struct work *w)
{
    return w->key;
}

static void request_done(void *ctx, int error, const char *text, struct json *obj)
{
    struct work *w = ctx;
    w->call = NULL;
    w->answer(w->q->ctx, w, error, text ? text : "", obj);
}

void work_request(struct work *w, const char *method, const char *path, const struct json *body,
                  work_answer_fn *fn)
{
    work_request_as(w, method, path, NULL, NULL, body, fn);
}

void work_request_as(struct work *w, const char *method, const char *path, const char *accept,
                     const char *content_type, const struct json *body, work_answer_fn *fn)
{
    assert(w->state == WORK_RUNNING && !w->call);
    w->answer = fn;
    w->call =
        api_request_as(w->q->client, method, path, accept, content_type, body, request_done, w);
}

void work_request_by(struct work *w, struct api_client *client, const char *method,
                     const char *path, const struct json *body, work_answer_fn *fn)
{
    assert(w->state == WORK_RUNNING && !w->call);
    w->answer = fn;
    w->call = api_request(client, method, path, NULL, body, request_done, w);
}

/* The work is no longer under way. */
static struct workqueue *stop_running(struct work *w)
{
    assert(w->state == WORK_RUNNING && !w->call);
    count_state(w, w->q->stats ? &w->q->stats->worked : NULL);
    w->q->n_running--;
    if (!list_is_empty(&w->q->ready)) {
        loop_task_queue(&w->q->task);
    }
    return w->q;
}

static void delay(struct work *w, uint64_t ms)
{
    struct workqueue *q = stop_running(w);
    list_remove(&w->list);
    w->state = WORK_DELAYED;
    w->due = time_mono_ms() + ms;
    struct list *before = &q->delayed;
    while (before->prev != &q->delayed &&
           CONTAINER_OF(before->prev, struct work, list)->due > w->due) {
        before = before->prev;
    }
    list_insert_before(before, &w->list);
    arm_timer(q);
}

void work_done(struct work *w)
{
    backoff_reset(&w->backoff);
    (void) stop_running(w);
    if (w->again) {
        make_ready(w);
    } else {
        work_free(w);
    }
}

void work_retry(struct work *w, int error, const char *what, const char *text)
{
    bool usual = error == -ESTALE || error == -EEXIST;
    log_limited(&w->q->limit, usual ? LOG_DEBUG : LOG_WARN, "request failed, trying again",
                "what=\"%s\" key=%s error=\"%s\" attempt=%u", what, w->key, text,
                w->backoff.failures + 1);
    uint64_t ms = backoff_fail(&w->backoff, loop_now_ms(w->q->loop), hash_string(w->key));
    if (w->q->stats) {
        w->q->stats->retries++;
        w->q->stats->errors += !usual;
    }
    if (w->again) { /* The state has changed in the meantime. */
        (void) stop_running(w);
        make_ready(w);
    } else {
        delay(w, ms);
    }
}

void work_wait(struct work *w, uint64_t ms)
{
    backoff_reset(&w->backoff);
    if (w->again) {
        (void) stop_running(w);
        make_ready(w);
    } else {
        delay(w, ms);
    }
}
