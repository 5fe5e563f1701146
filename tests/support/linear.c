/* SPDX-License-Identifier: Apache-2.0 */
#include "linear.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* A call or a return, in the order of time. */
struct entry {
    struct entry *prev, *next;
    struct entry *match; /* Of a call: its return; NULL: this is the return. */
    const struct linear_op *op;
    size_t id;
    uint64_t time;
};

/* Which operations have taken effect, and what is in the register then. */
struct config {
    struct hmap_node node;
    int64_t value;
    uint64_t done[];
};

struct check {
    size_t words;
    struct hmap seen;
    struct config *now; /* 'done' and 'value' of the search. */
};

static bool step(const struct linear_op *op, int64_t value, int64_t *ret)
{
    bool unknown = op->end == LINEAR_UNKNOWN;
    switch (op->kind) {
    case LINEAR_READ:
        *ret = value;
        return unknown || value == op->value;
    case LINEAR_WRITE:
        *ret = op->value;
        return true;
    case LINEAR_SWAP:
        *ret = value == op->from && (unknown || op->done) ? op->value : value;
        return unknown || op->done == (value == op->from);
    }
    return false;
}

/* Notes the configuration; false: the search was there before. */
static bool remember(struct check *c, int64_t value)
{
    size_t size = c->words * sizeof(uint64_t);
    uint32_t hash = (uint32_t) (hash_bytes(c->now->done, size) ^ hash_bytes(&value, sizeof value));
    struct config *k;
    HMAP_FOREACH_WITH_HASH (k, struct config, node, hash, &c->seen) {
        if (k->value == value && memcmp(k->done, c->now->done, size) == 0) {
            return false;
        }
    }
    k = xmalloc(sizeof *k + size);
    k->value = value;
    memcpy(k->done, c->now->done, size);
    hmap_insert(&c->seen, &k->node, hash);
    return true;
}

static void flip(struct check *c, size_t id)
{
    c->now->done[id / 64] ^= UINT64_C(1) << id % 64;
}

static void lift_one(struct entry *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
}

static void put_back_one(struct entry *e)
{
    e->prev->next = e;
    e->next->prev = e;
}

/* Begins come before ends of the same time: no order is taken for granted that the clock does not show. */
static int by_time(const void *x, const void *y)
{
    const struct entry *a = *(const struct entry *const *) x, *b = *(const struct entry *const *) y;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return !a->match - !b->match;
}

static void link_entries(struct entry *head, struct entry *all, const struct linear_op *ops,
                         size_t n)
{
    CLEANUP_FREE struct entry **order = xcalloc(2 * n + 1, sizeof(struct entry *));
    for (size_t i = 0; i < n; i++) {
        struct entry *call = &all[2 * i], *ret = &all[2 * i + 1];
        *call = (struct entry){.match = ret, .op = &ops[i], .id = i, .time = ops[i].begin};
        *ret = (struct entry){.op = &ops[i], .id = i, .time = ops[i].end};
        order[2 * i] = call;
        order[2 * i + 1] = ret;
    }
    if (n) {
        qsort(order, 2 * n, sizeof(struct entry *), by_time);
    }
    head->prev = head->next = head;
    for (size_t i = 0; i < 2 * n; i++) {
        order[i]->prev = head->prev;
        order[i]->next = head;
        put_back_one(order[i]);
    }
}

static bool search(struct check *c, struct entry *head, size_t n, size_t n_known, int64_t initial)
{
    struct move {
        struct entry *call;
        int64_t before;
    };
    CLEANUP_FREE struct move *stack = xcalloc(n + 1, sizeof *stack);
    size_t depth = 0;
    int64_t value = initial, next;
    struct entry *e = head->next;
    while (n_known) { /* Those with an unknown outcome need not have happened. */
        if (e != head && e->match) {
            flip(c, e->id);
            if (step(e->op, value, &next) && remember(c, next)) {
                stack[depth++] = (struct move){e, value};
                value = next;
                n_known -= e->op->end != LINEAR_UNKNOWN;
                lift_one(e);
                lift_one(e->match);
                e = head->next;
            } else {
                flip(c, e->id);
                e = e->next;
            }
            continue;
        }
        /* Something must have happened before this return: the last choice was wrong. */
        if (depth == 0) {
            return false;
        }
        struct move m = stack[--depth];
        put_back_one(m.call->match);
        put_back_one(m.call);
        flip(c, m.call->id);
        n_known += m.call->op->end != LINEAR_UNKNOWN;
        value = m.before;
        e = m.call->next;
    }
    return true;
}

bool linear_check(const struct linear_op *ops, size_t n, int64_t initial)
{
    struct check c = {.words = n / 64 + 1};
    struct entry head;
    CLEANUP_FREE struct entry *all = xcalloc(2 * n + 1, sizeof *all);
    size_t n_known = 0;
    for (size_t i = 0; i < n; i++) {
        n_known += ops[i].end != LINEAR_UNKNOWN;
    }
    hmap_init(&c.seen);
    c.now = xcalloc(1, sizeof *c.now + c.words * sizeof(uint64_t));
    link_entries(&head, all, ops, n);
    bool ok = search(&c, &head, n, n_known, initial);
    struct config *k;
    HMAP_FOREACH (k, struct config, node, &c.seen) {
        hmap_remove(&c.seen, &k->node);
        free(k);
    }
    hmap_done(&c.seen);
    free(c.now);
    return ok;
}
