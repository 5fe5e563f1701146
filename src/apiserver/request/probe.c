/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/request/probe.h"

#include "apiserver/request/respond.h"
#include "base/log.h"

#include <stdio.h>

LOG_MODULE("apiserver");

#define LIMIT_MS 1000 /* Time limit for an answer of the store. */
#define GOOD_MS 1000  /* Time for which an answer is reused. */

struct probe {
    struct apiserver *server;
    struct list waiting; /* struct waiting */
    struct loop_timer *limit;
    bool under_way, late;
    bool answered; /* The store has answered at least once. */
    uint64_t answered_ms;
    int error; /* The error of the last answer. */
    char text[320];
};

struct waiting {
    struct list node;
    struct request *q;
    char *path;
    probe_fn *fn;
};

static void waiting_free(struct waiting *w)
{
    free(w->path);
    free(w);
}

/* Continues the requests that wait now, not those that their handlers add. */
static void go_on(struct probe *p)
{
    struct list now = LIST_INIT(&now);
    for (struct list *node; (node = list_pop_front(&p->waiting));) {
        list_push_back(&now, node);
    }
    for (struct list *node; (node = list_pop_front(&now));) {
        struct waiting *w = CONTAINER_OF(node, struct waiting, node);
        CLEANUP(outcome_done) struct outcome outcome = {0};
        w->fn(w->q, w->path, &outcome);
        request_answer(w->q, &outcome);
        waiting_free(w);
    }
}

static void on_late(void *ctx)
{
    struct probe *p = ctx;
    p->late = true;
    log_warn("the store does not answer", "after_ms=%d", LIMIT_MS);
    go_on(p);
}

static void on_answer(void *ctx, int error, uint64_t revision)
{
    struct probe *p = ctx;
    if (p->late) {
        log_info("the store answers again", "error=\"%s\"", strerror(-error));
    }
    p->under_way = p->late = false;
    p->answered = true;
    p->answered_ms = loop_now_ms(p->server->loop);
    p->error = error;
    loop_timer_disarm(p->limit);
    go_on(p);
}

static bool is_fresh(const struct probe *p)
{
    return p->answered && p->error == 0 && loop_now_ms(p->server->loop) - p->answered_ms < GOOD_MS;
}

void probe_then(struct probe *p, struct request *q, const char *path, probe_fn *fn,
                struct outcome *outcome)
{
    const struct apiserver *a = p->server;
    if (a->lost || !a->cache.ready || a->stopping || p->late || is_fresh(p)) {
        fn(q, path, outcome);
        return;
    }
    outcome_take_over(outcome);
    struct waiting *w = NEW(struct waiting);
    *w = (struct waiting){.q = q, .path = xstrdup(path), .fn = fn};
    list_push_back(&p->waiting, &w->node);
    if (!p->under_way) {
        p->under_way = true;
        loop_timer_arm(p->limit, LIMIT_MS);
        store_probe(a->store, on_answer, p);
    }
}

const char *probe_error(struct probe *p)
{
    const struct apiserver *a = p->server;
    if (a->lost) {
        snprintf(p->text, sizeof p->text, "the store is not available%s%s", a->reason ? ": " : "",
                 a->reason ? a->reason : "");
    } else if (p->late) {
        snprintf(p->text, sizeof p->text, "the store has not answered a write for %d ms", LIMIT_MS);
    } else if (p->answered && (p->error == -ENOSPC || p->error == -EDQUOT)) {
        snprintf(p->text, sizeof p->text, "the store is full: only deletions go through");
    } else if (p->answered && p->error < 0) {
        snprintf(p->text, sizeof p->text, "the store takes no writes: %s", strerror(-p->error));
    } else {
        return NULL;
    }
    return p->text;
}

struct probe *probe_new(struct apiserver *a)
{
    struct probe *p = NEW(struct probe);
    p->server = a;
    list_init(&p->waiting);
    p->limit = loop_timer_new(a->loop, on_late, p);
    return p;
}

struct probe *probe_free(struct probe *p)
{
    if (p) {
        for (struct list *node; (node = list_pop_front(&p->waiting));) {
            struct waiting *w = CONTAINER_OF(node, struct waiting, node);
            request_free(w->q);
            waiting_free(w);
        }
        loop_timer_free(p->limit);
        free(p);
    }
    return NULL;
}
