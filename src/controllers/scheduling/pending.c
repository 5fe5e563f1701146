/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/scheduling/pending.h"

#include "base/mem.h"
#include "base/str.h"

enum state { ACTIVE, BACKING_OFF, WAITING, TAKEN };

struct waiter {
    char *key, *created;
    int32_t priority;
    uint64_t number; /* The order of arrival. */
    enum state state;
    uint32_t reasons; /* While it waits. */
    bool moved;       /* While it is taken: an event may have helped. */
    unsigned attempts;
    uint64_t ready_ms; /* The end of its delay. */
    uint64_t due_ms;   /* BACKING_OFF, WAITING: when it becomes active by itself. */
    size_t at;         /* ACTIVE: its place in the heap. */
};

struct pending {
    struct smap waiters;
    struct waiter **heap;
    size_t n, cap;
    uint64_t next_number;
    uint64_t earliest_ms; /* No pod is due before. */
};

static void waiter_free(void *p)
{
    struct waiter *w = p;
    free(w->key);
    free(w->created);
    free(w);
}

struct pending *pending_new(void)
{
    struct pending *p = NEW(struct pending);
    smap_init(&p->waiters, waiter_free);
    p->earliest_ms = UINT64_MAX;
    return p;
}

struct pending *pending_free(struct pending *p)
{
    if (p) {
        smap_done(&p->waiters);
        free(p->heap);
        free(p);
    }
    return NULL;
}

/* ---- the heap of active pods ---- */

static bool is_before(const struct waiter *a, const struct waiter *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority;
    }
    int d = strcmp(a->created, b->created);
    return d ? d < 0 : a->number < b->number;
}

static void put_at(struct pending *p, size_t i, struct waiter *w)
{
    p->heap[i] = w;
    w->at = i;
}

static void sift_up(struct pending *p, size_t i)
{
    struct waiter *w = p->heap[i];
    for (; i > 0 && is_before(w, p->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        put_at(p, i, p->heap[(i - 1) / 2]);
    }
    put_at(p, i, w);
}

static void sift_down(struct pending *p, size_t i)
{
    struct waiter *w = p->heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < p->n && is_before(p->heap[child + 1], p->heap[child])) {
            child++;
        }
        if (child >= p->n || !is_before(p->heap[child], w)) {
            break;
        }
        put_at(p, i, p->heap[child]);
        i = child;
    }
    put_at(p, i, w);
}

static void activate(struct pending *p, struct waiter *w)
{
    if (w->state != ACTIVE) {
        p->heap = grow(p->heap, &p->cap, p->n + 1, sizeof(struct waiter *));
        w->state = ACTIVE;
        put_at(p, p->n++, w);
    }
    sift_up(p, w->at);
    sift_down(p, w->at);
}

static void deactivate(struct pending *p, struct waiter *w, enum state state)
{
    if (w->state == ACTIVE) {
        struct waiter *last = p->heap[--p->n];
        if (last != w) {
            put_at(p, w->at, last);
            sift_up(p, last->at);
            sift_down(p, last->at);
        }
    }
    w->state = state;
}

/* ---- pods ---- */

void pending_add(struct pending *p, const char *key, int32_t priority, const char *created)
{
    struct waiter *w = smap_get(&p->waiters, key);
    if (!w) {
        w = NEW(struct waiter);
        w->key = xstrdup(key);
        w->created = xstrdup(created);
        w->number = p->next_number++;
        w->state = WAITING;
        smap_set(&p->waiters, key, w);
    }
    w->priority = priority;
    w->attempts = 0;
    if (w->state == TAKEN) {
        w->moved = true;
        w->ready_ms = 0;
    } else {
        activate(p, w);
    }
}

void pending_remove(struct pending *p, const char *key)
{
    struct waiter *w = smap_get(&p->waiters, key);
    if (w) {
        deactivate(p, w, TAKEN);
        (void) smap_remove(&p->waiters, key);
    }
}

bool pending_has(const struct pending *p, const char *key)
{
    return smap_get(&p->waiters, key);
}

void pending_count(const struct pending *p, size_t *ret_active, size_t *ret_backoff,
                   size_t *ret_waiting)
{
    const struct smap_entry *e;
    *ret_active = *ret_backoff = *ret_waiting = 0;
    SMAP_FOREACH (e, &p->waiters) {
        enum state state = ((const struct waiter *) e->value)->state;
        *ret_backoff += state == BACKING_OFF;
        *ret_waiting += state == WAITING;
        *ret_active += state == ACTIVE || state == TAKEN;
    }
}

size_t pending_size(const struct pending *p)
{
    return smap_size(&p->waiters);
}

static void activate_due(struct pending *p, uint64_t now_ms)
{
    struct smap_entry *e;
    p->earliest_ms = UINT64_MAX;
    SMAP_FOREACH (e, &p->waiters) {
        struct waiter *w = e->value;
        if (w->state != BACKING_OFF && w->state != WAITING) {
            continue;
        }
        if (w->due_ms <= now_ms) {
            activate(p, w);
        } else {
            p->earliest_ms = MIN(p->earliest_ms, w->due_ms);
        }
    }
}

const char *pending_take(struct pending *p, uint64_t now_ms)
{
    if (p->earliest_ms <= now_ms) {
        activate_due(p, now_ms);
    }
    if (!p->n) {
        return NULL;
    }
    struct waiter *w = p->heap[0];
    deactivate(p, w, TAKEN);
    w->moved = false;
    return w->key;
}

static void set_due(struct pending *p, struct waiter *w, enum state state, uint64_t due_ms)
{
    w->state = state;
    w->due_ms = due_ms;
    p->earliest_ms = MIN(p->earliest_ms, due_ms);
}

static void delay(struct waiter *w, uint64_t now_ms)
{
    uint64_t ms = PENDING_BACKOFF_MIN_MS;
    for (unsigned i = 0; i < w->attempts && ms < PENDING_BACKOFF_MAX_MS; i++) {
        ms *= 2;
    }
    w->attempts++;
    w->ready_ms = now_ms + MIN(ms, PENDING_BACKOFF_MAX_MS);
}

void pending_retry(struct pending *p, const char *key, uint64_t now_ms)
{
    struct waiter *w = smap_get(&p->waiters, key);
    if (w && w->state == TAKEN) {
        delay(w, now_ms);
        set_due(p, w, BACKING_OFF, w->ready_ms);
    }
}

void pending_put_back(struct pending *p, const char *key, uint32_t reasons, uint64_t now_ms)
{
    struct waiter *w = smap_get(&p->waiters, key);
    if (w && w->state == TAKEN && w->moved) {
        pending_retry(p, key, now_ms);
    } else if (w && w->state == TAKEN) {
        delay(w, now_ms);
        w->reasons = reasons;
        set_due(p, w, WAITING, now_ms + PENDING_WAIT_MAX_MS);
    }
}

void pending_hold(struct pending *p, const char *key, uint32_t reasons, uint64_t now_ms)
{
    struct waiter *w = smap_get(&p->waiters, key);
    if (w && w->state == TAKEN && w->moved) {
        activate(p, w);
    } else if (w && w->state == TAKEN) {
        w->ready_ms = now_ms;
        w->reasons = reasons;
        set_due(p, w, WAITING, now_ms + PENDING_WAIT_MAX_MS);
    }
}

void pending_move(struct pending *p, uint32_t reasons, uint64_t now_ms)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &p->waiters) {
        struct waiter *w = e->value;
        if (w->state == TAKEN) {
            w->moved = true;
        } else if (w->state == WAITING && w->reasons & reasons) {
            if (w->ready_ms <= now_ms) {
                activate(p, w);
            } else {
                set_due(p, w, BACKING_OFF, w->ready_ms);
            }
        }
    }
}

uint64_t pending_due_ms(const struct pending *p)
{
    return p->n ? 0 : p->earliest_ms;
}
