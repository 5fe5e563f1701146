/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/loop.h"

#include "base/ip.h"
#include "base/mem.h"
#include "base/str.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

struct loop {
    uv_loop_t uv;
    /* Runs the tasks last before the loop polls. It is always active, which also keeps uv_run
     * from returning when nothing else is. */
    uv_prepare_t before_poll;
    uv_idle_t no_wait; /* Active while tasks are left over: the poll then returns at once. */
    uv_timer_t until_timer;
    struct loop_task tasks; /* Head of the ring of queued tasks. */
    const bool *until;      /* The flag of loop_run_until. */
    bool until_expired;
    bool running;
    bool stop;
};

/* For errors that only a mistake of the caller, or a lack of descriptors, can cause. */
static void must(int r, const char *what)
{
    if (r < 0) {
        fprintf(stderr, "tenet: event loop: %s: %s\n", what, strerror(-r));
        abort();
    }
}

static void task_unlink(struct loop_task *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

static void idle_noop(uv_idle_t *h)
{
}

/* Runs the tasks queued so far.  Tasks that they queue run in the next round, after descriptors
 * and timers, so that a task which queues itself again does not starve others. */
static void tasks_run(uv_prepare_t *h)
{
    struct loop *l = h->data;
    struct loop_task *ring = &l->tasks;
    if (ring->next != ring) {
        struct loop_task batch = {.prev = ring->prev, .next = ring->next};
        batch.prev->next = batch.next->prev = &batch;
        ring->prev = ring->next = ring;
        while (batch.next != &batch) {
            struct loop_task *t = batch.next;
            task_unlink(t);
            t->fn(t->ctx);
        }
    }
    if (ring->next != ring) {
        uv_idle_start(&l->no_wait, idle_noop);
    } else {
        uv_idle_stop(&l->no_wait);
    }
    if (l->until && *l->until) {
        uv_stop(&l->uv);
    }
}

struct loop *loop_new(void)
{
    struct loop *l = NEW(struct loop);
    must(uv_loop_init(&l->uv), "uv_loop_init");
    l->tasks.prev = l->tasks.next = &l->tasks;
    uv_prepare_init(&l->uv, &l->before_poll);
    uv_idle_init(&l->uv, &l->no_wait);
    uv_timer_init(&l->uv, &l->until_timer);
    l->before_poll.data = l->until_timer.data = l;
    uv_prepare_start(&l->before_poll, tasks_run);
    return l;
}

static void check_closing(uv_handle_t *h, void *ctx)
{
    if (!uv_is_closing(h)) {
        fprintf(stderr, "tenet: event loop: freed with a %s handle in use\n",
                uv_handle_type_name(h->type));
        abort();
    }
}

struct loop *loop_free(struct loop *l)
{
    if (!l) {
        return NULL;
    }
    uv_close((uv_handle_t *) &l->before_poll, NULL);
    uv_close((uv_handle_t *) &l->no_wait, NULL);
    uv_close((uv_handle_t *) &l->until_timer, NULL);
    uv_walk(&l->uv, check_closing, NULL);
    /* Runs close callbacks, and waits for work on worker threads. */
    while (uv_run(&l->uv, UV_RUN_DEFAULT)) {
    }
    must(uv_loop_close(&l->uv), "uv_loop_close");
    free(l);
    return NULL;
}

void loop_run(struct loop *l)
{
    assert(!l->running);
    l->running = true;
    while (!l->stop) {
        uv_run(&l->uv, UV_RUN_DEFAULT);
    }
    l->running = l->stop = false;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
    uv_stop(&l->uv);
}

static void until_expired(uv_timer_t *h)
{
    ((struct loop *) h->data)->until_expired = true;
    uv_stop(h->loop);
}

int loop_run_until(struct loop *l, const bool *flag, uint64_t timeout_ms)
{
    assert(!l->running);
    l->running = true;
    l->until = flag;
    l->until_expired = false;
    if (timeout_ms) {
        uv_update_time(&l->uv);
        uv_timer_start(&l->until_timer, until_expired, timeout_ms, 0);
    }
    while (!*flag && !l->stop && !l->until_expired) {
        uv_run(&l->uv, UV_RUN_ONCE);
    }
    uv_timer_stop(&l->until_timer);
    l->until = NULL;
    int r = *flag ? 0 : l->stop ? -ECANCELED : -ETIMEDOUT;
    l->running = l->stop = false;
    return r;
}

uint64_t loop_now_ms(struct loop *l)
{
    return uv_now(&l->uv);
}

/* ---- descriptors ---- */

struct loop_fd {
    uv_poll_t uv; /* First member: the close callback frees the whole struct by it. */
    unsigned events;
    loop_fd_fn *fn;
    void *ctx;
};

static void handle_gone(uv_handle_t *h)
{
    free(h);
}

static void fd_ready(uv_poll_t *h, int status, int events);

static void fd_watch(struct loop_fd *w)
{
    if (!w->events) {
        uv_poll_stop(&w->uv);
        return;
    }
    int events =
        (w->events & LOOP_READ ? UV_READABLE : 0) | (w->events & LOOP_WRITE ? UV_WRITABLE : 0);
    must(uv_poll_start(&w->uv, events, fd_ready), "uv_poll_start");
}

static void fd_ready(uv_poll_t *h, int status, int events)
{
    struct loop_fd *w = (struct loop_fd *) h;
    unsigned ready;
    if (status < 0) {
        /* The descriptor has an error, and libuv has stopped watching it. The callback finds the
         * error by reading or writing. */
        fd_watch(w);
        ready = w->events;
    } else {
        ready = (events & UV_READABLE ? LOOP_READ : 0u) | (events & UV_WRITABLE ? LOOP_WRITE : 0u);
    }
    if (ready) {
        w->fn(w->ctx, ready);
    }
}

struct loop_fd *loop_fd_new(struct loop *l, int fd, unsigned events, loop_fd_fn *fn, void *ctx)
{
    struct loop_fd *w = NEW(struct loop_fd);
    w->events = events;
    w->fn = fn;
    w->ctx = ctx;
    must(uv_poll_init(&l->uv, &w->uv, fd), "uv_poll_init");
    if (events) {
        fd_watch(w);
    }
    return w;
}

void loop_fd_set(struct loop_fd *w, unsigned events)
{
    /* Each change costs two system calls in libuv. */
    if (events != w->events) {
        w->events = events;
        fd_watch(w);
    }
}

struct loop_fd *loop_fd_free(struct loop_fd *w)
{
    if (w) {
        uv_close((uv_handle_t *) &w->uv, handle_gone);
    }
    return NULL;
}

/* ---- timers ---- */

struct loop_timer {
    uv_timer_t uv;
    loop_fn *fn;
    void *ctx;
};

static void timer_fire(uv_timer_t *h)
{
    struct loop_timer *t = (struct loop_timer *) h;
    t->fn(t->ctx);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_fn *fn, void *ctx)
{
    struct loop_timer *t = NEW(struct loop_timer);
    uv_timer_init(&l->uv, &t->uv);
    t->fn = fn;
    t->ctx = ctx;
    return t;
}

void loop_timer_arm(struct loop_timer *t, uint64_t delay_ms)
{
    /* The loop's clock stood still while the callback ran. And a timer that arms itself with 0
     * would keep uv_run in its timers for ever. */
    uv_update_time(t->uv.loop);
    uv_timer_start(&t->uv, timer_fire, MAX(delay_ms, (uint64_t) 1), 0);
}

void loop_timer_disarm(struct loop_timer *t)
{
    uv_timer_stop(&t->uv);
}

bool loop_timer_armed(const struct loop_timer *t)
{
    return uv_is_active((const uv_handle_t *) &t->uv);
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
    if (t) {
        uv_close((uv_handle_t *) &t->uv, handle_gone);
    }
    return NULL;
}

/* ---- tasks ---- */

void loop_task_init(struct loop_task *t, struct loop *l, loop_fn *fn, void *ctx)
{
    *t = (struct loop_task){.loop = l, .fn = fn, .ctx = ctx};
}

void loop_task_queue(struct loop_task *t)
{
    if (!t->next) {
        struct loop_task *ring = &t->loop->tasks;
        t->prev = ring->prev;
        t->next = ring;
        ring->prev->next = t;
        ring->prev = t;
    }
}

void loop_task_cancel(struct loop_task *t)
{
    if (t->next) {
        task_unlink(t);
    }
}

/* ---- signals ---- */

struct loop_signal {
    uv_signal_t uv;
    loop_fn *fn;
    void *ctx;
};

static void signal_caught(uv_signal_t *h, int signo)
{
    struct loop_signal *s = (struct loop_signal *) h;
    s->fn(s->ctx);
}

struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_fn *fn, void *ctx)
{
    struct loop_signal *s = NEW(struct loop_signal);
    s->fn = fn;
    s->ctx = ctx;
    must(uv_signal_init(&l->uv, &s->uv), "uv_signal_init");
    must(uv_signal_start(&s->uv, signal_caught, signo), "uv_signal_start");
    return s;
}

struct loop_signal *loop_signal_free(struct loop_signal *s)
{
    if (s) {
        uv_close((uv_handle_t *) &s->uv, handle_gone);
    }
    return NULL;
}

/* ---- worker threads ---- */

struct work {
    uv_work_t uv;
    loop_fn *work, *done;
    void *ctx;
};

static void work_run(uv_work_t *req)
{
    struct work *w = (struct work *) req;
    w->work(w->ctx);
}

static void work_done(uv_work_t *req, int status)
{
    struct work *w = (struct work *) req;
    loop_fn *done = w->done;
    void *ctx = w->ctx;
    free(w);
    done(ctx);
}

void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *ctx)
{
    struct work *w = NEW(struct work);
    w->work = work;
    w->done = done;
    w->ctx = ctx;
    must(uv_queue_work(&l->uv, &w->uv, work_run, work_done), "uv_queue_work");
}

/* ---- names of hosts ---- */

struct loop_lookup {
    uv_getaddrinfo_t uv;
    struct loop_task at_once; /* For an address that needs no resolver. */
    uint32_t ip;
    loop_lookup_fn *fn; /* NULL: cancelled. */
    void *ctx;
};

static void lookup_end(struct loop_lookup *k, uint32_t ip, const char *why)
{
    loop_lookup_fn *fn = k->fn;
    void *ctx = k->ctx;
    free(k);
    if (fn) {
        fn(ctx, ip, why);
    }
}

static void lookup_at_once(void *ctx)
{
    struct loop_lookup *k = ctx;
    lookup_end(k, k->ip, NULL);
}

static void lookup_done(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct loop_lookup *k = (struct loop_lookup *) req;
    uint32_t ip = 0;
    if (status == 0 && found) {
        ip = ntohl(((struct sockaddr_in *) (void *) found->ai_addr)->sin_addr.s_addr);
    }
    uv_freeaddrinfo(found);
    lookup_end(k, ip, status < 0 ? uv_strerror(status) : ip ? NULL : "no IPv4 address");
}

struct loop_lookup *loop_lookup_new(struct loop *l, const char *host, loop_lookup_fn *fn, void *ctx)
{
    static const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct loop_lookup *k = NEW(struct loop_lookup);
    k->fn = fn;
    k->ctx = ctx;
    loop_task_init(&k->at_once, l, lookup_at_once, k);
    k->ip = INADDR_LOOPBACK;
    if (streq(host, "localhost") || ip4_parse(host, &k->ip) == 0) {
        loop_task_queue(&k->at_once);
    } else {
        must(uv_getaddrinfo(&l->uv, &k->uv, lookup_done, host, NULL, &hints), "uv_getaddrinfo");
    }
    return k;
}

struct loop_lookup *loop_lookup_cancel(struct loop_lookup *k)
{
    if (k && k->at_once.prev) {
        loop_task_cancel(&k->at_once);
        free(k);
    } else if (k) {
        k->fn = NULL;
        (void) uv_cancel((uv_req_t *) &k->uv);
    }
    return NULL;
}

/* ---- wake-ups ---- */

struct loop_wakeup {
    uv_async_t uv;
    loop_fn *fn;
    void *ctx;
};

static void wakeup_run(uv_async_t *h)
{
    struct loop_wakeup *w = (struct loop_wakeup *) h;
    w->fn(w->ctx);
}

struct loop_wakeup *loop_wakeup_new(struct loop *l, loop_fn *fn, void *ctx)
{
    struct loop_wakeup *w = NEW(struct loop_wakeup);
    w->fn = fn;
    w->ctx = ctx;
    must(uv_async_init(&l->uv, &w->uv, wakeup_run), "uv_async_init");
    return w;
}

void loop_wakeup_trigger(struct loop_wakeup *w)
{
    uv_async_send(&w->uv);
}

struct loop_wakeup *loop_wakeup_free(struct loop_wakeup *w)
{
    if (w) {
        uv_close((uv_handle_t *) &w->uv, handle_gone);
    }
    return NULL;
}

/* ---- child processes ---- */

struct loop_child {
    struct loop_fd *watch;
    int pidfd;
    pid_t pid;
    loop_child_fn *fn;
    void *ctx;
};

static void child_ended(void *ctx, unsigned events)
{
    struct loop_child *c = ctx;
    int status = 0;
    pid_t r = waitpid(c->pid, &status, WNOHANG);
    if (r == 0 || (r < 0 && errno == EINTR)) {
        return;
    }
    c->watch = loop_fd_free(c->watch);
    c->pidfd = fd_close(c->pidfd);
    c->fn(c->ctx, r < 0 ? 0 : status);
}

struct loop_child *loop_child_new(struct loop *l, pid_t pid, loop_child_fn *fn, void *ctx)
{
    struct loop_child *c = NEW(struct loop_child);
    c->pid = pid;
    c->fn = fn;
    c->ctx = ctx;
    c->pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
    must(c->pidfd < 0 ? -errno : 0, "pidfd_open");
    c->watch = loop_fd_new(l, c->pidfd, LOOP_READ, child_ended, c);
    return c;
}

struct loop_child *loop_child_free(struct loop_child *c)
{
    if (c) {
        loop_fd_free(c->watch);
        fd_close(c->pidfd);
        free(c);
    }
    return NULL;
}
