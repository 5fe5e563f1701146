/* SPDX-License-Identifier: Apache-2.0 */
#include "router/haproxy_conn.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/loop/sock.h"
#include "wire/haproxy.h"

#include <sys/socket.h>

#define ANSWER_MAX (64u << 20) /* "show servers state" of 50,000 routes has 10 MB. */
#define ANSWER_MS 3000
#define READ_SIZE 65536

struct question {
    struct list order;
    haproxy_conn_fn *fn;
    void *ctx;
};

struct haproxy_conn {
    struct loop *loop;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *timer;
    struct loop_task ended;
    struct list questions; /* In the order of sending. */
    struct strbuf out, in;
    size_t scanned; /* Bytes of 'in' that hold no prompt. */
    loop_fn *lost;
    void *ctx;
    bool is_over, is_silent;
};

static void drop_questions(struct haproxy_conn *r, bool report)
{
    struct list *first;
    while ((first = list_pop_front(&r->questions))) {
        struct question *q = CONTAINER_OF(first, struct question, order);
        if (report && q->fn) {
            q->fn(q->ctx, NULL, 0);
        }
        free(q);
    }
}

static void on_ended(void *ctx)
{
    struct haproxy_conn *r = ctx;
    drop_questions(r, true);
    r->lost(r->ctx);
}

static void end(struct haproxy_conn *r)
{
    if (!r->is_over) {
        r->is_over = true;
        loop_fd_set(r->watch, 0);
        loop_timer_disarm(r->timer);
        loop_task_queue(&r->ended);
    }
}

static void on_late(void *ctx)
{
    struct haproxy_conn *r = ctx;
    r->is_silent = true;
    end(r);
}

bool haproxy_conn_is_silent(const struct haproxy_conn *r)
{
    return r->is_silent;
}

static void flush(struct haproxy_conn *r)
{
    while (r->out.size > 0) {
        ssize_t n = send(r->fd, r->out.data, r->out.size, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                end(r);
                return;
            }
            break;
        }
        strbuf_consume(&r->out, (size_t) n);
    }
    loop_fd_set(r->watch, LOOP_READ | (r->out.size > 0 ? LOOP_WRITE : 0u));
}

/* Where the search for a prompt begins: answers of megabytes come in many parts. */
static size_t quick_end(struct haproxy_conn *r)
{
    size_t from = r->scanned > 1 ? r->scanned - 2 : 0;
    bool first = r->in.size > 0 && (r->in.data[0] == '>' || r->in.data[0] == '+');
    if (!first && !memmem(r->in.data + from, r->in.size - from, "\n> ", 3)) {
        r->scanned = r->in.size;
        return 0;
    }
    return r->in.size;
}

static void take_answers(struct haproxy_conn *r)
{
    size_t done = 0;
    while (!r->is_over && quick_end(r) > 0) {
        size_t skip, size, used;
        if (haproxy_answer(r->in.data + done, r->in.size - done, &skip, &size, &used) < 0) {
            break;
        }
        struct list *first = list_pop_front(&r->questions);
        if (!first) {
            end(r);
            break;
        }
        struct question *q = CONTAINER_OF(first, struct question, order);
        if (q->fn) {
            q->fn(q->ctx, r->in.data + done + skip, size);
        }
        free(q);
        done += used;
    }
    if (done > 0) {
        strbuf_consume(&r->in, done);
        r->scanned = 0;
        if (list_is_empty(&r->questions)) {
            loop_timer_disarm(r->timer);
        } else {
            loop_timer_arm(r->timer, ANSWER_MS);
        }
    }
}

static void on_ready(void *ctx, unsigned events)
{
    struct haproxy_conn *r = ctx;
    if (events & LOOP_WRITE) {
        flush(r);
    }
    while (!r->is_over && (events & LOOP_READ)) {
        char *to = strbuf_reserve(&r->in, READ_SIZE);
        ssize_t n = to ? recv(r->fd, to, READ_SIZE, 0) : 0;
        if (n <= 0) {
            if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
                end(r);
            }
            break;
        }
        r->in.size += (size_t) n;
        r->in.data[r->in.size] = '\0';
        if (n < READ_SIZE) {
            break;
        }
    }
    take_answers(r);
}

int haproxy_conn_open(struct loop *l, const char *path, loop_fn *lost, void *ctx,
                      struct haproxy_conn **ret, struct err *e)
{
    int fd;
    int err = sock_connect_unix(path, &fd, e);
    if (err < 0) {
        return err;
    }
    struct haproxy_conn *r = NEW(struct haproxy_conn);
    r->loop = l;
    r->fd = fd;
    r->lost = lost;
    r->ctx = ctx;
    r->in = STRBUF_INIT_MAX(ANSWER_MAX);
    r->out = STRBUF_INIT;
    list_init(&r->questions);
    loop_task_init(&r->ended, l, on_ended, r);
    r->timer = loop_timer_new(l, on_late, r);
    r->watch = loop_fd_new(l, fd, LOOP_READ, on_ready, r);
    haproxy_conn_send(r, "prompt", NULL, NULL, NULL);
    *ret = r;
    return 0;
}

void haproxy_conn_send(struct haproxy_conn *r, const char *command, const char *payload,
                       haproxy_conn_fn *fn, void *ctx)
{
    struct question *q = NEW(struct question);
    q->fn = fn;
    q->ctx = ctx;
    list_push_back(&r->questions, &q->order);
    bool idle = r->out.size == 0;
    strbuf_adds(&r->out, command);
    if (payload) {
        strbuf_addf(&r->out, " <<\n%s%s", payload, str_has_suffix(payload, "\n") ? "" : "\n");
    }
    strbuf_addc(&r->out, '\n');
    if (!r->is_over && !loop_timer_armed(r->timer)) {
        loop_timer_arm(r->timer, ANSWER_MS);
    }
    if (!r->is_over && idle) {
        flush(r);
    }
}

struct haproxy_conn *haproxy_conn_free(struct haproxy_conn *r)
{
    if (r) {
        drop_questions(r, false);
        loop_task_cancel(&r->ended);
        loop_fd_free(r->watch);
        loop_timer_free(r->timer);
        fd_close(r->fd);
        if (r->out.data) {
            explicit_bzero(r->out.data, r->out.cap); /* Private keys pass here. */
        }
        strbuf_done(&r->out);
        strbuf_done(&r->in);
        free(r);
    }
    return NULL;
}
