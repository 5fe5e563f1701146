/* SPDX-License-Identifier: Apache-2.0 */
/* Who is served next: priority levels with shares of the server, and fair queues between flows in
 * each level.
 *
 * After Kubernetes' API Priority and Fairness.  A request has a level, a flow (who asks, and about
 * what) and a cost.  A running request occupies as many of its level's seats as it costs; when they
 * are taken, or much was run in this round of the loop already, it waits.  In a level the flow that
 * has had least is served next (start-time fair queueing by cost), so that a thousand requests of
 * one client stand behind one of another.  When a level's queue is full, the newest request of the
 * flow that has most in it gives way.
 *
 * Pure: the time is given, nothing is called back.  A ticket belongs to its user and must be given
 * to priority_leave before it goes. */
#pragma once

#include "base/list.h"
#include "base/map.h"

enum priority_level { PRIORITY_SYSTEM, PRIORITY_DEFAULT, PRIORITY_LOW, PRIORITY_MAX };
extern const char *const priority_level_names[PRIORITY_MAX];

struct priority_config {
    unsigned seats;       /* Of all levels together; each gets at least one. */
    unsigned max_waiting; /* Requests waiting in a level. */
    unsigned max_flow;    /* Of one flow in it. */
    uint64_t max_wait_ms; /* Longest wait. */
};

struct priority_flow;
struct priority_ticket {
    struct list node;           /* Its flow's. */
    struct list age_node;       /* Its level's, in order of arrival. */
    struct priority_flow *flow; /* NULL: neither waiting nor running. */
    enum priority_level level;
    unsigned cost; /* Clamped to what its level has. */
    bool running;
    uint64_t since_ms;
};

struct priority_stats {
    unsigned seats, running_seats, running, waiting, flows;
    uint64_t begun, refused_full, refused_late;
    uint64_t waited_ms; /* Of all that were begun. */
};

struct priority *priority_new(const struct priority_config *cfg);
struct priority *priority_free(struct priority *p); /* No ticket may be in it. */

/* Queues 't' (zeroed, or left): 0, or -EBUSY: the queue is full for it.  '*ret_evicted' is another
 * ticket that lost its place to it and has left, or NULL. */
int priority_enter(struct priority *p, struct priority_ticket *t, enum priority_level level,
                   uint32_t flow, unsigned cost, uint64_t now_ms,
                   struct priority_ticket **ret_evicted);
/* The next to run, which is running then; NULL: none in this round. */
struct priority_ticket *priority_next(struct priority *p, uint64_t now_ms);
/* The loop has looked at its descriptors: what one round may begin starts anew. */
void priority_new_round(struct priority *p);
/* Whether a new round would let something run that waits now. */
bool priority_wants_round(const struct priority *p);
/* A ticket that has waited too long and has left, or NULL; and when the next will have (0: none
 * waits). */
struct priority_ticket *priority_expire(struct priority *p, uint64_t now_ms);
uint64_t priority_deadline_ms(const struct priority *p);
/* 't' has run, or does not wait any more; harmless when it is in no queue. */
void priority_leave(struct priority *p, struct priority_ticket *t);
/* Any ticket that waits, or NULL. */
struct priority_ticket *priority_any_waiting(const struct priority *p);

struct priority_stats priority_stats(const struct priority *p, enum priority_level level);
