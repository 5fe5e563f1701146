/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables that threads read while one thread changes them, without locks.
 *
 * An item found by a reader is valid until the reader calls dns_epochs_leave: removed items are
 * freed only when every reader that may have seen them has left (epoch-based reclamation). One
 * thread changes (put, remove, retire); it may also read, without entering. An item is one
 * allocation from malloc, and is immutable in the table; it can only be replaced. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <stdatomic.h>

#define DNS_READERS_MAX 32

struct dns_retired {
    struct dns_retired *next;
    void *memory;
    uint64_t epoch;
};

struct dns_epochs {
    _Atomic uint64_t now;
    struct {
        _Alignas(64) _Atomic uint64_t entered; /* 0: not reading. */
        bool used;
    } readers[DNS_READERS_MAX];
    struct dns_retired *first, **last;
};

void dns_epochs_init(struct dns_epochs *e);
void dns_epochs_done(struct dns_epochs *e); /* No reader must be left. */
/* The number of a new reader that is not reading; -ENOSPC. On the changing thread. */
int dns_epochs_add_reader(struct dns_epochs *e);
void dns_epochs_remove_reader(struct dns_epochs *e, int i); /* Nothing when negative. */
/* Frees 'p' when no reader can use it. */
void dns_epochs_retire(struct dns_epochs *e, void *p);
/* Reader 'i' begins to read, or has finished with all items that it found. */
static inline void dns_epochs_enter(struct dns_epochs *e, int i)
{
    atomic_store(&e->readers[i].entered, atomic_load(&e->now));
    atomic_thread_fence(memory_order_seq_cst);
}
static inline void dns_epochs_leave(struct dns_epochs *e, int i)
{
    atomic_store_explicit(&e->readers[i].entered, 0, memory_order_release);
}

/* Bytes of an item that a search reads; the rest is in the same or the next cache line. */
#define DNS_ITEM_HEAD 48

/* First member of an item in a table. */
struct dns_item {
    uint32_t hash;
};

struct dns_slots {
    size_t mask;
    _Atomic(struct dns_item *) slot[];
};

struct dns_table {
    struct dns_epochs *epochs;
    _Atomic(struct dns_slots *) slots;
    size_t n, used; /* Number of items, and of slots that are or were used. */
};

void dns_table_init(struct dns_table *t, struct dns_epochs *e);
void dns_table_done(struct dns_table *t); /* Frees all items; no reader must be left. */
void dns_table_put(struct dns_table *t, struct dns_item *item);
/* Puts 'item', with the same hash, in the place of 'old', which is retired. */
void dns_table_replace(struct dns_table *t, struct dns_item *old, struct dns_item *item);
void dns_table_remove(struct dns_table *t, struct dns_item *old); /* Retires it. */

/* Walks the items of one hash. */
struct dns_cursor {
    const struct dns_slots *slots;
    size_t at;
    uint32_t hash;
};
static inline struct dns_cursor dns_table_cursor(const struct dns_table *t, uint32_t hash)
{
    return (struct dns_cursor){atomic_load_explicit(&t->slots, memory_order_acquire), hash, hash};
}
extern struct dns_item dns_table_gone; /* Marks slots whose item was removed. */
static inline struct dns_item *dns_cursor_next(struct dns_cursor *c)
{
    for (;;) {
        struct dns_item *item =
            atomic_load_explicit(&c->slots->slot[c->at++ & c->slots->mask], memory_order_acquire);
        if (!item || (item->hash == c->hash && item != &dns_table_gone)) {
            return item;
        }
    }
}
/* Prefetches the slot of 'hash', and then the first item there. */
static inline void dns_table_announce(const struct dns_table *t, uint32_t hash)
{
    const struct dns_slots *s = atomic_load_explicit(&t->slots, memory_order_acquire);
    __builtin_prefetch(&s->slot[hash & s->mask]);
}
static inline void dns_table_fetch(const struct dns_table *t, uint32_t hash)
{
    const struct dns_slots *s = atomic_load_explicit(&t->slots, memory_order_acquire);
    const char *item =
        (const char *) atomic_load_explicit(&s->slot[hash & s->mask], memory_order_relaxed);
    if (item) {
        __builtin_prefetch(item);
        __builtin_prefetch(item + DNS_ITEM_HEAD);
    }
}
