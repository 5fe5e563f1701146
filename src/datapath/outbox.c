/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/outbox.h"

#include "base/mem.h"

#include <stdio.h>

struct call {
    struct list link;
    datapath_port_fn *port; /* One of the two is set; 'text' is then the port's name. */
    datapath_done_fn *done;
    void *ctx;
    int error;
    char text[OUTBOX_TEXT_SIZE];
    char host_if[16]; /* Set together with 'port'. */
};

void outbox_init(struct outbox *b, struct loop_task *task, const struct datapath_events *events,
                 void *ctx)
{
    *b = (struct outbox){.task = task, .events = events, .ctx = ctx};
    list_init(&b->calls);
}

bool outbox_close(struct outbox *b)
{
    struct list *link;
    while ((link = list_pop_front(&b->calls))) {
        free(CONTAINER_OF(link, struct call, link));
    }
    b->closed = true;
    return !b->delivering;
}

static struct call *add(struct outbox *b, void *ctx, const char *text)
{
    struct call *c = NEW(struct call);
    c->ctx = ctx;
    snprintf(c->text, sizeof c->text, "%s", text);
    list_push_back(&b->calls, &c->link);
    loop_task_queue(b->task);
    return c;
}

void outbox_add_done(struct outbox *b, datapath_done_fn *fn, void *ctx, int error, const char *text)
{
    struct call *c = add(b, ctx, text);
    c->done = fn;
    c->error = error;
}

void outbox_add_port(struct outbox *b, datapath_port_fn *fn, void *ctx, const char *port,
                     const char *host_if)
{
    struct call *c = add(b, ctx, port);
    c->port = fn;
    snprintf(c->host_if, sizeof c->host_if, "%s", host_if);
    b->has_port = true;
}

void outbox_add_trouble(struct outbox *b, enum outbox_trouble t, const char *reason)
{
    b->trouble = t;
    snprintf(b->trouble_reason, sizeof b->trouble_reason, "%s", reason);
    loop_task_queue(b->task);
}

static bool take(const struct outbox *b, bool *due)
{
    bool was = *due && !b->closed;
    *due = false;
    return was;
}

static void deliver_trouble(struct outbox *b)
{
    enum outbox_trouble t = b->trouble;
    b->trouble = OUTBOX_NO_TROUBLE;
    if (t == OUTBOX_LOST && !b->closed) {
        b->events->lost(b->ctx, b->trouble_reason);
    } else if (t == OUTBOX_REFUSED && !b->closed) {
        b->events->refused(b->ctx, b->trouble_reason);
    }
}

bool outbox_deliver(struct outbox *b)
{
    struct list *link;
    b->delivering = true;
    b->has_port = false;
    if (take(b, &b->inventory)) {
        b->events->inventory(b->ctx);
    }
    deliver_trouble(b);
    if (take(b, &b->fatal)) {
        b->events->fatal(b->ctx, b->fatal_reason);
    }
    if (take(b, &b->ready)) {
        b->events->ready(b->ctx);
    }
    while (!b->closed && (link = list_pop_front(&b->calls))) {
        struct call *c = CONTAINER_OF(link, struct call, link);
        if (c->port) {
            c->port(c->ctx, c->text, c->host_if);
        } else {
            c->done(c->ctx, c->error, c->text);
        }
        free(c);
    }
    b->delivering = false;
    return !b->closed;
}
