/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded backend: a writer thread in front of the database file.
 *
 * The loop queues writes; the thread takes all queued ones, does them in one transaction, and so
 * shares one sync of the disk among them (group commit): the more load, the larger the groups.
 * The results go back in reports, in order. When the disk fails, the thread closes the file,
 * reopens it until that works, and reports its contents. When the file was deleted or replaced,
 * it stays open, and nothing is written until the master is restarted. */
#include "base/log.h"
#include "base/timeutil.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_reserve.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

LOG_MODULE("store");

#define GROUP_MAX_WRITES 1000
#define GROUP_MAX_BYTES ((size_t) 16 << 20)
#define RETRY_MIN_MS 250
#define RETRY_MAX_MS 30000
#define IDLE_MS 100     /* Idle time without a write, after which maintenance begins. */
#define LATE_MS 1000    /* Time without maintenance because of writes, after which it is forced. */
#define STABLE_MS 60000 /* Time without failures after which the next retry is quick again. */

/* From the thread to the loop. The parts that are set are reported in this order. */
struct report {
    struct list node;
    char *lost;
    struct sqlite_content *content;
    struct list writes; /* Finished, or failed, in the order of processing. */
};

struct sqlite_store {
    struct store base;
    char *path;
    unsigned history;
    uint64_t reserve;
    struct sqlite_content *first; /* Read by store_open, until store_start reports it. */
    struct loop_task start;
    struct loop_wakeup *wakeup;
    pthread_t thread;

    /* Shared, under 'lock'. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* 'queue' or 'stop'. */
    struct list queue;
    struct list reports;
    bool stop;

    /* The thread's own. */
    struct sqlite_db *db; /* NULL: broken, to be reopened at 'retry_ms'. */
    /* The files of 'db' were removed: it stays open, as it has the only copy, but is not used
     * any more. */
    bool replaced;
    unsigned attempt;
    uint64_t retry_ms, recovered_ms;
};

/* ---- the writer thread ---- */

static struct report *report_new(void)
{
    struct report *r = NEW(struct report);
    list_init(&r->node);
    list_init(&r->writes);
    return r;
}

static void report_send(struct sqlite_store *s, struct report *r)
{
    pthread_mutex_lock(&s->lock);
    list_push_back(&s->reports, &r->node);
    pthread_mutex_unlock(&s->lock);
    loop_wakeup_trigger(s->wakeup);
}

static void set_broken(struct sqlite_store *s, const struct err *e, struct report *r)
{
    log_error("database failed", "error=\"%s\"", e->text);
    uint64_t now = time_mono_ms();
    if (now - s->recovered_ms > STABLE_MS) {
        s->attempt = 0;
    }
    s->retry_ms = now + time_backoff_ms(s->attempt++, RETRY_MIN_MS, RETRY_MAX_MS, (uint32_t) now);
    r->lost = xstrdup(e->text);
    s->replaced = sqlite_db_is_replaced(s->db);
    if (!s->replaced) {
        s->db = sqlite_db_close(s->db);
    }
}

/* Opens the file; when the disk is too full for that, releases the reserve. */
static int file_open(const char *path, unsigned history, uint64_t reserve, struct sqlite_db **ret,
                     struct sqlite_content **ret_content, struct err *e)
{
    int r = sqlite_db_open(path, history, ret, ret_content, e);
    if (r == -ENOSPC && sqlite_reserve_release(path)) {
        r = sqlite_db_open(path, history, ret, ret_content, e);
    }
    if (r == 0) {
        sqlite_db_set_reserve(*ret, reserve);
    }
    return r;
}

static void recover(struct sqlite_store *s)
{
    struct err e = {0};
    CLEANUP(sqlite_db_close) struct sqlite_db *db = NULL;
    struct sqlite_content *content = NULL;
    int r = file_open(s->path, s->history, s->reserve, &db, &content, &e);
    if (r == 0) {
        r = sqlite_db_probe(db, &e);
    }
    uint64_t now = time_mono_ms();
    if (r < 0) {
        static struct log_limit limit = {.burst = 3};
        log_limited(&limit, LOG_WARN, "database still fails", "error=\"%s\"", e.text);
        s->retry_ms =
            now + time_backoff_ms(s->attempt++, RETRY_MIN_MS, RETRY_MAX_MS, (uint32_t) now);
        sqlite_content_free(content);
        return;
    }
    log_info("database works again", "database=%s revision=%llu", s->path,
             (unsigned long long) content->revision);
    s->recovered_ms = now;
    s->db = TAKE(db);
    struct report *report = report_new();
    report->content = content;
    report_send(s, report);
}

/* The next group of writes: moves some of 'todo' into 'group', both in order. */
static void group_take(struct list *todo, struct list *group)
{
    list_init(group);
    size_t bytes = 0;
    for (unsigned n = 0; n < GROUP_MAX_WRITES && bytes < GROUP_MAX_BYTES; n++) {
        struct list *node = list_pop_front(todo);
        if (!node) {
            return;
        }
        struct store_write *w = CONTAINER_OF(node, struct store_write, node);
        bytes += w->value ? w->value->size : 0;
        list_push_back(group, node);
    }
}

static void group_fail(struct list *group, int error)
{
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, group) {
        w->error = error;
    }
}

/* One transaction. */
static void group_write(struct sqlite_store *s, struct list *group)
{
    struct report *report = report_new();
    if (!s->db || s->replaced) {
        group_fail(group, -EAGAIN);
    } else {
        struct err e = {0};
        int r = 0;
        struct store_write *w;
        LIST_FOREACH (w, struct store_write, node, group) {
            if ((r = sqlite_db_apply(s->db, w, &e)) < 0) {
                break;
            }
        }
        if (r == 0) {
            r = sqlite_db_commit(s->db, &e);
        }
        if (r < 0) {
            /* Also those whose condition failed: it was checked against changes that are undone
             * now. */
            group_fail(group, r);
            set_broken(s, &e, report);
            if (r == -ENOSPC || r == -EDQUOT) {
                (void) sqlite_reserve_release(s->path);
            }
        }
    }
    store_list_take(&report->writes, group);
    report_send(s, report);
}

static void idle_work(struct sqlite_store *s)
{
    struct err e = {0};
    if (!s->db) {
        recover(s);
    } else if (!s->replaced && sqlite_db_upkeep(s->db, &e) < 0) {
        struct report *report = report_new();
        set_broken(s, &e, report);
        report_send(s, report);
    }
}

/* Forces maintenance even when writes never pause. */
static bool upkeep_is_late(const struct sqlite_store *s)
{
    return s->db && !s->replaced && time_mono_ms() > sqlite_db_upkeep_at_ms(s->db) + LATE_MS;
}

/* The time for idle work if no write comes before; 0: there is none. */
static uint64_t idle_work_at(const struct sqlite_store *s)
{
    if (!s->db) {
        return s->retry_ms;
    }
    return s->replaced                   ? 0
           : sqlite_db_upkeep_due(s->db) ? time_mono_ms() + IDLE_MS
                                         : sqlite_db_upkeep_at_ms(s->db);
}

/* Waits for writes and takes them; none: idle work is due. False: stop, and nothing is left. */
static bool work_wait(struct sqlite_store *s, struct list *ret_writes)
{
    uint64_t at = idle_work_at(s);
    struct timespec until = {(time_t) (at / 1000), (long) (at % 1000) * 1000000};
    int r = 0;
    pthread_mutex_lock(&s->lock);
    while (list_is_empty(&s->queue) && !s->stop && r != ETIMEDOUT) {
        r = at ? pthread_cond_timedwait(&s->changed, &s->lock, &until)
               : pthread_cond_wait(&s->changed, &s->lock);
    }
    store_list_take(ret_writes, &s->queue);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return !stop || !list_is_empty(ret_writes);
}

static void *writer_main(void *ctx)
{
    struct sqlite_store *s = ctx;
    struct list todo, group;
    while (work_wait(s, &todo)) {
        if (list_is_empty(&todo) || upkeep_is_late(s)) {
            idle_work(s);
        }
        while (!list_is_empty(&todo)) {
            group_take(&todo, &group);
            group_write(s, &group);
            if (s->db && !s->replaced) {
                sqlite_db_checkpoint(s->db);
            }
        }
    }
    s->db = sqlite_db_close(s->db);
    return NULL;
}

/* ---- the loop's side ---- */

static void report_content(struct sqlite_store *s, struct sqlite_content *c, bool with_history)
{
    for (size_t i = 0; with_history && i < c->n_events; i++) {
        store_report_history(&s->base, &c->events[i]);
        c->events[i].value = blob_unref(c->events[i].value);
        c->events[i].prev = blob_unref(c->events[i].prev);
    }
    store_report_snapshot(&s->base, c->items, c->n_items, c->revision);
    sqlite_content_free(c);
}

static void report_deliver(struct sqlite_store *s, struct report *r)
{
    if (r->lost) {
        store_report_lost(&s->base, r->lost);
        free(r->lost);
    }
    if (r->content) {
        report_content(s, r->content, false);
    }
    struct store_write *w;
    LIST_FOREACH (w, struct store_write, node, &r->writes) {
        if (w->error == 0 && !w->probe) {
            store_write_report(&s->base, w);
        }
        store_write_finish(w, w->error, w->error ? 0 : w->revision);
    }
    free(r);
}

static void reports_run(void *ctx)
{
    struct sqlite_store *s = ctx;
    if (!s->base.watcher || s->first) {
        return; /* The start task calls this again. */
    }
    struct list now;
    pthread_mutex_lock(&s->lock);
    store_list_take(&now, &s->reports);
    pthread_mutex_unlock(&s->lock);
    for (struct list *node; (node = list_pop_front(&now));) {
        report_deliver(s, CONTAINER_OF(node, struct report, node));
    }
}

static void start_run(void *ctx)
{
    struct sqlite_store *s = ctx;
    report_content(s, TAKE(s->first), true);
    reports_run(s);
}

static void sqlite_start(struct store *base)
{
    struct sqlite_store *s = CONTAINER_OF(base, struct sqlite_store, base);
    loop_task_queue(&s->start);
}

static void sqlite_write(struct store *base, struct store_write *w)
{
    struct sqlite_store *s = CONTAINER_OF(base, struct sqlite_store, base);
    pthread_mutex_lock(&s->lock);
    list_push_back(&s->queue, &w->node);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void store_parts_free(struct sqlite_store *s)
{
    loop_task_cancel(&s->start);
    loop_wakeup_free(s->wakeup);
    sqlite_content_free(s->first);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
}

static void sqlite_close(struct store *base)
{
    struct sqlite_store *s = CONTAINER_OF(base, struct sqlite_store, base);
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    reports_run(s);
    for (struct list *node; (node = list_pop_front(&s->reports));) {
        /* A store that was never started has no writes. */
        struct report *r = CONTAINER_OF(node, struct report, node);
        sqlite_content_free(r->content);
        free(r->lost);
        free(r);
    }
    store_parts_free(s);
}

static int thread_start(struct sqlite_store *s)
{
    /* Signals belong to the loop's thread. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&s->thread, NULL, writer_main, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int store_open_sqlite(struct loop *l, const struct store_config *cfg, struct store **ret,
                      struct err *e)
{
    static const struct store_ops ops = {
        .start = sqlite_start, .write = sqlite_write, .close = sqlite_close};
    if (!cfg->path || !cfg->path[0]) {
        return err_set(e, -EINVAL, "store sqlite: no path of the database file");
    }
    unsigned history = cfg->history ? cfg->history : STORE_DEFAULT_HISTORY;
    struct sqlite_db *db = NULL;
    struct sqlite_content *content = NULL;
    int r = file_open(cfg->path, history, cfg->reserve, &db, &content, e);
    if (r < 0) {
        return r;
    }
    struct sqlite_store *s = NEW(struct sqlite_store);
    store_init(&s->base, &ops, l);
    s->path = xstrdup(cfg->path);
    s->history = history;
    s->reserve = cfg->reserve;
    s->db = db;
    sqlite_db_advance(db, cfg->min_revision);
    s->first = content;
    list_init(&s->queue);
    list_init(&s->reports);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    loop_task_init(&s->start, l, start_run, s);
    s->wakeup = loop_wakeup_new(l, reports_run, s);
    if ((r = thread_start(s)) < 0) {
        store_parts_free(s);
        sqlite_db_close(db);
        free(s);
        return err_sys(e, r, "database %s: start its writer thread", cfg->path);
    }
    *ret = &s->base;
    return 0;
}
