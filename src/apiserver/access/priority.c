/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/priority.h"

#include "base/mem.h"

#include <errno.h>

/* For each level: its share of all seats in percent, and the cost that it may start in one
 * round. */
static const struct {
    unsigned seats_percent, round;
} shares[PRIORITY_MAX] = {
    [PRIORITY_SYSTEM] = {40, 64}, [PRIORITY_DEFAULT] = {40, 32}, [PRIORITY_LOW] = {20, 8}};

const char *const priority_level_names[PRIORITY_MAX] = {"system", "default", "low"};

#define FLOW_SEATS_PERCENT 75 /* Share of its level's seats that one flow may occupy. */
#define MAX_IDLE_FLOWS 1024   /* Idle flows kept to account for what they used. */

/* Exists while it has requests, and until the other flows of its level have used as much as
 * it did. */
struct priority_flow {
    struct hmap_node node;
    uint32_t hash;
    struct list waiting;
    unsigned n_waiting, n_running, seats;
    uint64_t start; /* Virtual time at which its next request starts. */
};

struct level {
    struct hmap flows;
    struct list ages;
    unsigned seats, seats_taken, running, waiting, round_left;
    uint64_t now; /* Virtual time: the start of the most recently started request. */
    struct priority_stats stats;
};

struct priority {
    struct priority_config cfg;
    struct level levels[PRIORITY_MAX];
};

static unsigned percent(unsigned n, unsigned p)
{
    return MAX(1u, (unsigned) ((uint64_t) n * p / 100));
}

void priority_new_round(struct priority *p)
{
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        p->levels[i].round_left = shares[i].round;
    }
}

struct priority *priority_new(const struct priority_config *cfg)
{
    struct priority *p = NEW(struct priority);
    p->cfg = *cfg;
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        struct level *l = &p->levels[i];
        hmap_init(&l->flows);
        list_init(&l->ages);
        l->seats = percent(cfg->seats, shares[i].seats_percent);
    }
    priority_new_round(p);
    return p;
}

static void flow_free(struct level *l, struct priority_flow *f)
{
    hmap_remove(&l->flows, &f->node);
    free(f);
}

struct priority *priority_free(struct priority *p)
{
    for (size_t i = 0; p && i < PRIORITY_MAX; i++) {
        struct level *l = &p->levels[i];
        struct priority_flow *f;
        assert(!l->waiting && !l->running);
        HMAP_FOREACH (f, struct priority_flow, node, &l->flows) {
            flow_free(l, f);
        }
        hmap_done(&l->flows);
    }
    free(p);
    return NULL;
}

static bool is_idle(const struct priority_flow *f)
{
    return !f->n_waiting && !f->n_running;
}

/* Removes idle flows whose account is settled, and all idle flows when there are too many. */
static void forget_flows(struct level *l)
{
    struct priority_flow *f;
    HMAP_FOREACH (f, struct priority_flow, node, &l->flows) {
        if (is_idle(f) && (f->start <= l->now || l->flows.n > MAX_IDLE_FLOWS)) {
            flow_free(l, f);
        }
    }
}

static struct priority_flow *flow_find(struct level *l, uint32_t hash)
{
    struct priority_flow *f;
    HMAP_FOREACH_WITH_HASH (f, struct priority_flow, node, hash, &l->flows) {
        return f;
    }
    return NULL;
}

static struct priority_flow *flow_of(struct level *l, uint32_t hash)
{
    struct priority_flow *f = flow_find(l, hash);
    if (f) {
        return f;
    }
    if (l->flows.n >= MAX_IDLE_FLOWS) {
        forget_flows(l);
    }
    f = NEW(struct priority_flow);
    f->hash = hash;
    f->start = l->now;
    list_init(&f->waiting);
    hmap_insert(&l->flows, &f->node, hash);
    return f;
}

static void stop_waiting(struct level *l, struct priority_ticket *t)
{
    list_remove(&t->node);
    list_remove(&t->age_node);
    t->flow->n_waiting--;
    l->waiting--;
}

void priority_leave(struct priority *p, struct priority_ticket *t)
{
    struct priority_flow *f = TAKE(t->flow);
    struct level *l = &p->levels[t->level];
    if (!f) {
        return;
    }
    if (t->running) {
        t->running = false;
        f->n_running--;
        f->seats -= t->cost;
        l->running--;
        l->seats_taken -= t->cost;
    } else {
        t->flow = f;
        stop_waiting(l, t);
        t->flow = NULL;
    }
    if (is_idle(f) && f->start <= l->now) {
        flow_free(l, f);
    }
}

static struct priority_flow *longest(struct level *l)
{
    struct priority_flow *f, *best = NULL;
    HMAP_FOREACH (f, struct priority_flow, node, &l->flows) {
        if (!best || f->n_waiting > best->n_waiting) {
            best = f;
        }
    }
    return best;
}

int priority_enter(struct priority *p, struct priority_ticket *t, enum priority_level level,
                   uint32_t flow, unsigned cost, uint64_t now_ms,
                   struct priority_ticket **ret_evicted)
{
    struct level *l = &p->levels[level];
    struct priority_flow *f = flow_find(l, flow);
    unsigned mine = f ? f->n_waiting : 0;
    *ret_evicted = NULL;
    if (mine >= p->cfg.max_flow) {
        l->stats.refused_full++;
        return -EBUSY;
    }
    if (l->waiting >= p->cfg.max_waiting) {
        struct priority_flow *most = longest(l);
        l->stats.refused_full++;
        if (!most || most->n_waiting <= mine + 1) {
            return -EBUSY;
        }
        *ret_evicted = CONTAINER_OF(most->waiting.prev, struct priority_ticket, node);
        priority_leave(p, *ret_evicted);
    }
    f = flow_of(l, flow);
    if (is_idle(f)) {
        f->start = MAX(f->start, l->now);
    }
    *t = (struct priority_ticket){.flow = f,
                                  .level = level,
                                  .cost = MIN(MAX(cost, 1u), percent(l->seats, FLOW_SEATS_PERCENT)),
                                  .since_ms = now_ms};
    list_push_back(&f->waiting, &t->node);
    list_push_back(&l->ages, &t->age_node);
    f->n_waiting++;
    l->waiting++;
    return 0;
}

static const struct priority_ticket *first_of(const struct priority_flow *f)
{
    return CONTAINER_OF(f->waiting.next, struct priority_ticket, node);
}

/* The flow that is next; NULL: none can run, because too few seats are free. */
static struct priority_flow *next_flow(const struct level *l)
{
    unsigned flow_seats = percent(l->seats, FLOW_SEATS_PERCENT);
    struct priority_flow *f, *best = NULL;
    HMAP_FOREACH (f, struct priority_flow, node, &l->flows) {
        if (!f->n_waiting || f->seats + first_of(f)->cost > flow_seats) {
            continue;
        }
        if (!best || f->start < best->start ||
            (f->start == best->start && first_of(f)->since_ms < first_of(best)->since_ms)) {
            best = f;
        }
    }
    /* The request waits until enough seats are free; cheaper requests do not overtake it. */
    return best && l->seats_taken + first_of(best)->cost <= l->seats ? best : NULL;
}

struct priority_ticket *priority_next(struct priority *p, uint64_t now_ms)
{
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        struct level *l = &p->levels[i];
        struct priority_flow *f = l->waiting && l->round_left ? next_flow(l) : NULL;
        if (!f) {
            continue;
        }
        struct priority_ticket *t = CONTAINER_OF(f->waiting.next, struct priority_ticket, node);
        stop_waiting(l, t);
        t->running = true;
        f->n_running++;
        f->seats += t->cost;
        l->running++;
        l->seats_taken += t->cost;
        l->round_left -= MIN(l->round_left, t->cost);
        l->now = MAX(l->now, f->start);
        f->start += t->cost;
        l->stats.begun++;
        l->stats.waited_ms += now_ms - t->since_ms;
        return t;
    }
    return NULL;
}

bool priority_wants_round(const struct priority *p)
{
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        const struct level *l = &p->levels[i];
        if (l->waiting && !l->round_left && next_flow(l)) {
            return true;
        }
    }
    return false;
}

uint64_t priority_deadline_ms(const struct priority *p)
{
    uint64_t first = 0;
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        const struct list *ages = &p->levels[i].ages;
        if (!list_is_empty(ages)) {
            uint64_t at = CONTAINER_OF(ages->next, struct priority_ticket, age_node)->since_ms +
                          p->cfg.max_wait_ms;
            first = first ? MIN(first, at) : at;
        }
    }
    return first;
}

struct priority_ticket *priority_any_waiting(const struct priority *p)
{
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        const struct list *ages = &p->levels[i].ages;
        if (!list_is_empty(ages)) {
            return CONTAINER_OF(ages->next, struct priority_ticket, age_node);
        }
    }
    return NULL;
}

struct priority_ticket *priority_expire(struct priority *p, uint64_t now_ms)
{
    for (size_t i = 0; i < PRIORITY_MAX; i++) {
        struct level *l = &p->levels[i];
        if (list_is_empty(&l->ages)) {
            continue;
        }
        struct priority_ticket *t = CONTAINER_OF(l->ages.next, struct priority_ticket, age_node);
        if (t->since_ms + p->cfg.max_wait_ms <= now_ms) {
            l->stats.refused_late++;
            priority_leave(p, t);
            return t;
        }
    }
    return NULL;
}

struct priority_stats priority_stats(const struct priority *p, enum priority_level level)
{
    const struct level *l = &p->levels[level];
    struct priority_stats s = l->stats;
    s.seats = l->seats;
    s.running_seats = l->seats_taken;
    s.running = l->running;
    s.waiting = l->waiting;
    s.flows = (unsigned) l->flows.n;
    return s;
}
