/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/throttle.h"

#include "base/mem.h"

struct throttle_entry {
    struct list node;
    char *key; /* The map's own. */
    unsigned failures;
    uint64_t last_ms, until_ms;
};

static void entry_free(void *entry)
{
    struct throttle_entry *n = entry;
    list_remove(&n->node);
    free(n->key);
    free(n);
}

void throttle_init(struct throttle *t, size_t max, unsigned free_failures, uint64_t first_ms,
                   uint64_t max_ms, uint64_t forget_ms)
{
    *t = (struct throttle){.max = max,
                           .free_failures = free_failures,
                           .first_ms = first_ms,
                           .max_ms = max_ms,
                           .forget_ms = forget_ms};
    smap_init(&t->entries, entry_free);
    list_init(&t->by_age);
}

void throttle_done(struct throttle *t)
{
    smap_done(&t->entries);
}

/* The entry, unless it is forgotten by now. */
static struct throttle_entry *find(struct throttle *t, const char *key, uint64_t now_ms)
{
    struct throttle_entry *n = smap_get(&t->entries, key);
    if (n && now_ms - n->last_ms >= t->forget_ms) {
        (void) smap_remove(&t->entries, key);
        n = NULL;
    }
    return n;
}

uint64_t throttle_wait_ms(struct throttle *t, const char *key, uint64_t now_ms)
{
    const struct throttle_entry *n = find(t, key, now_ms);
    return n && n->until_ms > now_ms ? n->until_ms - now_ms : 0;
}

static struct throttle_entry *make(struct throttle *t, const char *key)
{
    if (smap_size(&t->entries) >= t->max) {
        struct throttle_entry *oldest = CONTAINER_OF(t->by_age.next, struct throttle_entry, node);
        (void) smap_remove(&t->entries, oldest->key);
    }
    struct throttle_entry *n = NEW(struct throttle_entry);
    n->key = xstrdup(key);
    list_push_back(&t->by_age, &n->node);
    smap_set(&t->entries, key, n);
    return n;
}

void throttle_failed(struct throttle *t, const char *key, uint64_t now_ms)
{
    struct throttle_entry *n = find(t, key, now_ms);
    n = n ? n : make(t, key);
    list_remove(&n->node);
    list_push_back(&t->by_age, &n->node);
    n->last_ms = now_ms;
    n->failures++;
    if (n->failures > t->free_failures) {
        unsigned doublings = MIN(n->failures - t->free_failures - 1, 30u);
        n->until_ms = now_ms + MIN(t->first_ms << doublings, t->max_ms);
    }
}

void throttle_succeeded(struct throttle *t, const char *key)
{
    (void) smap_remove(&t->entries, key);
}
