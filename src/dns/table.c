/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/table.h"

#include "base/mem.h"

#define SLOTS_MIN 64

struct dns_item dns_table_gone;

/* ---- epochs ---- */

void dns_epochs_init(struct dns_epochs *e)
{
    *e = (struct dns_epochs){.now = 1};
    e->last = &e->first;
}

int dns_epochs_add_reader(struct dns_epochs *e)
{
    for (int i = 0; i < DNS_READERS_MAX; i++) {
        if (!e->readers[i].used) {
            e->readers[i].used = true;
            return i;
        }
    }
    return -ENOSPC;
}

void dns_epochs_remove_reader(struct dns_epochs *e, int i)
{
    if (i >= 0) {
        e->readers[i].used = false;
    }
}

/* The oldest epoch of an active reader. */
static uint64_t oldest(const struct dns_epochs *e)
{
    uint64_t min = UINT64_MAX;
    for (size_t i = 0; i < DNS_READERS_MAX; i++) {
        uint64_t entered = atomic_load(&e->readers[i].entered);
        min = entered ? MIN(min, entered) : min;
    }
    return min;
}

static void reclaim(struct dns_epochs *e, uint64_t before)
{
    struct dns_retired *r;
    while ((r = e->first) != NULL && r->epoch <= before) {
        e->first = r->next;
        e->last = e->first ? e->last : &e->first;
        free(r->memory);
        free(r);
    }
}

void dns_epochs_done(struct dns_epochs *e)
{
    reclaim(e, UINT64_MAX);
}

void dns_epochs_retire(struct dns_epochs *e, void *p)
{
    if (!p) {
        return;
    }
    struct dns_retired *r = NEW(struct dns_retired);
    r->memory = p;
    /* A reader that enters from now on, in the new epoch, cannot find it any more. */
    atomic_thread_fence(memory_order_seq_cst);
    r->epoch = atomic_fetch_add(&e->now, 1) + 1;
    *e->last = r;
    e->last = &r->next;
    reclaim(e, oldest(e));
}

/* ---- tables ---- */

static struct dns_slots *slots_new(size_t n)
{
    struct dns_slots *s = xcalloc(1, sizeof *s + n * sizeof s->slot[0]);
    s->mask = n - 1;
    return s;
}

static struct dns_slots *own_slots(const struct dns_table *t)
{
    return atomic_load_explicit(&t->slots, memory_order_relaxed);
}

static void set_slot(struct dns_slots *s, size_t i, struct dns_item *item)
{
    atomic_store_explicit(&s->slot[i], item, memory_order_release);
}

static struct dns_item *get_slot(struct dns_slots *s, size_t i)
{
    return atomic_load_explicit(&s->slot[i], memory_order_relaxed);
}

void dns_table_init(struct dns_table *t, struct dns_epochs *e)
{
    *t = (struct dns_table){.epochs = e, .slots = slots_new(SLOTS_MIN)};
}

void dns_table_done(struct dns_table *t)
{
    struct dns_slots *s = own_slots(t);
    for (size_t i = 0; i <= s->mask; i++) {
        if (get_slot(s, i) != &dns_table_gone) {
            free(get_slot(s, i));
        }
    }
    free(s);
}

static void insert(struct dns_slots *s, struct dns_item *item)
{
    size_t i = item->hash & s->mask;
    while (get_slot(s, i)) {
        i = (i + 1) & s->mask;
    }
    set_slot(s, i, item);
}

/* At most half of the slots are used, so that an unsuccessful search ends soon. */
static void make_room(struct dns_table *t)
{
    struct dns_slots *old = own_slots(t);
    if (2 * (t->used + 1) <= old->mask + 1) {
        return;
    }
    size_t size = SLOTS_MIN;
    while (size < 4 * t->n) {
        size *= 2;
    }
    struct dns_slots *s = slots_new(size);
    for (size_t i = 0; i <= old->mask; i++) {
        struct dns_item *item = get_slot(old, i);
        if (item && item != &dns_table_gone) {
            insert(s, item);
        }
    }
    t->used = t->n;
    atomic_store_explicit(&t->slots, s, memory_order_release);
    dns_epochs_retire(t->epochs, old);
}

void dns_table_put(struct dns_table *t, struct dns_item *item)
{
    make_room(t);
    insert(own_slots(t), item);
    t->n++;
    t->used++;
}

static void set(struct dns_table *t, struct dns_item *old, struct dns_item *item)
{
    struct dns_slots *s = own_slots(t);
    size_t i = old->hash & s->mask;
    while (get_slot(s, i) != old) {
        i = (i + 1) & s->mask;
    }
    set_slot(s, i, item);
    dns_epochs_retire(t->epochs, old);
}

void dns_table_replace(struct dns_table *t, struct dns_item *old, struct dns_item *item)
{
    set(t, old, item);
}

void dns_table_remove(struct dns_table *t, struct dns_item *old)
{
    set(t, old, &dns_table_gone);
    t->n--;
}
