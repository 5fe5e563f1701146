/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the request that runs next: priority levels share the server's seats, and each
 * level has fair queues between its flows.
 *
 * Follows Kubernetes' API Priority and Fairness.  A request has a level, a flow (its user and
 * its resource or namespace) and a cost.  A running request occupies as many of its level's
 * seats as it costs.  A request waits when too few seats are free, or when this round of the
 * loop has already started its share of work.  Within a level the flow that has used least is
 * served next (start-time fair queueing by cost), so that a thousand requests of one client do
 * not delay a request of another.  When a level's queue is full, the newest request of the flow
 * with the most queued requests is evicted.
 *
 * Pure: the time is an argument and there are no callbacks.  The caller owns each ticket and must
 * pass it to priority_leave before freeing it. */
#pragma once

#include "base/list.h"
#include "base/map.h"

enum priority_level { PRIORITY_SYSTEM, PRIORITY_DEFAULT, PRIORITY_LOW, PRIORITY_MAX };
extern const char *const priority_level_names[PRIORITY_MAX];

struct priority_config {
    unsigned seats;       /* Seats of all levels together; each level gets at least one. */
    unsigned max_waiting; /* Requests waiting in a level. */
    unsigned max_flow;    /* Most waiting requests of one flow in a level. */
    uint64_t max_wait_ms; /* Longest time that a request waits. */
};

struct priority_flow;
struct priority_ticket {
    struct list node;           /* In the queue of its flow. */
    struct list age_node;       /* In the queue of its level, in order of arrival. */
    struct priority_flow *flow; /* NULL: neither waiting nor running. */
    enum priority_level level;
    unsigned cost; /* Limited to the seats of its level. */
    bool running;
    uint64_t since_ms;
};

struct priority_stats {
    unsigned seats, running_seats, running, waiting, flows;
    uint64_t begun, refused_full, refused_late;
    uint64_t waited_ms; /* Total waiting time of all started requests. */
};

struct priority *priority_new(const struct priority_config *cfg);
struct priority *priority_free(struct priority *p); /* No ticket may be queued or running. */

/* Queues 't', which is zeroed or has left: 0, or -EBUSY: the queue is full.  '*ret_evicted' is a
 * ticket that was evicted in favour of 't' and has left, or NULL. */
int priority_enter(struct priority *p, struct priority_ticket *t, enum priority_level level,
                   uint32_t flow, unsigned cost, uint64_t now_ms,
                   struct priority_ticket **ret_evicted);
/* Starts and returns the next request; NULL: none can start in this round. */
struct priority_ticket *priority_next(struct priority *p, uint64_t now_ms);
/* Begins a new round after the loop has polled its descriptors: the work
 * started so far no longer counts. */
void priority_new_round(struct priority *p);
/* Whether a new round would start a request that waits now. */
bool priority_wants_round(const struct priority *p);
/* A ticket that has exceeded the longest wait and has left, or NULL.  '*ret_next_ms' is when the
 * next one will exceed it (0: none waits). */
struct priority_ticket *priority_expire(struct priority *p, uint64_t now_ms);
uint64_t priority_deadline_ms(const struct priority *p);
/* Removes 't', which has run or does not wait any more; no effect if it is not queued or
 * running. */
void priority_leave(struct priority *p, struct priority_ticket *t);
/* Any waiting ticket, or NULL. */
struct priority_ticket *priority_any_waiting(const struct priority *p);

struct priority_stats priority_stats(const struct priority *p, enum priority_level level);
