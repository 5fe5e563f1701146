/* SPDX-License-Identifier: Apache-2.0 */
/* Completed calls and events of a datapath that wait to be delivered to the agent.
 *
 * A callback never runs before the call that it was given to has returned, so all wait here until
 * the datapath's own task delivers them. A callback may close the datapath, whose memory must then
 * last until outbox_deliver has returned. On the loop's thread. */
#pragma once

#include "base/list.h"
#include "datapath/datapath.h"

#define OUTBOX_TEXT_SIZE sizeof(((struct err *) 0)->text)

/* datapath_events.lost or datapath_events.refused */
enum outbox_trouble { OUTBOX_NO_TROUBLE, OUTBOX_LOST, OUTBOX_REFUSED };

struct outbox {
    const struct datapath_events *events;
    void *ctx;
    struct loop_task *task; /* The task that delivers; the functions below queue it. */
    struct list calls;
    /* Events, in the order in which they are delivered. */
    bool inventory;
    enum outbox_trouble trouble; /* The trouble to deliver; OUTBOX_NO_TROUBLE after that. */
    bool fatal, ready;
    char trouble_reason[OUTBOX_TEXT_SIZE]; /* The last trouble, delivered or not. */
    char fatal_reason[OUTBOX_TEXT_SIZE];
    bool has_port;   /* A call of 'port' waits: a worker thread can begin with the link. */
    bool delivering; /* A callback is on the stack. */
    bool closed;     /* The outbox delivers nothing any more. */
};

/* 'events' and 'task' are borrowed. */
void outbox_init(struct outbox *b, struct loop_task *task, const struct datapath_events *events,
                 void *ctx);
/* Discards calls and events that were not delivered.  Returns false if it runs within a callback:
 * outbox_deliver then ends the outbox. */
bool outbox_close(struct outbox *b);

/* 'text' is copied. */
void outbox_add_done(struct outbox *b, datapath_done_fn *fn, void *ctx, int error,
                     const char *text);
void outbox_add_port(struct outbox *b, datapath_port_fn *fn, void *ctx, const char *port,
                     const char *host_if);
/* Queues trouble; it replaces earlier trouble that was not delivered yet. */
void outbox_add_trouble(struct outbox *b, enum outbox_trouble t, const char *reason);

/* Delivers all.  Returns false if a callback closed the datapath, whose memory can be freed now. */
bool outbox_deliver(struct outbox *b);
