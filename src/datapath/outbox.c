/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/outbox.h"

#include "base/mem.h"

#include <stdio.h>

struct call {
    struct list link;
    datapath_port_fn *port; /* Either: 'text' is the port. */
    datapath_done_fn *done;
    void *ctx;
    int error;
    char text[OUTBOX_TEXT_SIZE];
    char host_if[16]; /* With 'port'. */
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

void outbox_add_lost(struct outbox *b, const char *reason)
{
    b->lost = true;
    snprintf(b->lost_reason, sizeof b->lost_reason, "%s", reason);
    loop_task_queue(b->task);
}

static bool take(const struct outbox *b, bool *due)
{
    bool was = *due && !b->closed;
    *due = false;
    return was;
}

bool outbox_deliver(struct outbox *b)
{
    struct list *link;
    b->delivering = true;
    b->has_port = false;
    if (take(b, &b->inventory)) {
        b->events->inventory(b->ctx);
    }
    if (take(b, &b->lost)) {
        b->events->lost(b->ctx, b->lost_reason);
    }
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
