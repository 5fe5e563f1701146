/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/mem.h"
#include "base/str.h"

size_t list_size(const struct list *l)
{
    size_t n = 0;
    for (const struct list *i = l->next; i != l; i = i->next) {
        n++;
    }
    return n;
}

void hmap_init(struct hmap *m)
{
    m->one = NULL;
    m->buckets = &m->one;
    m->mask = 0;
    m->n = 0;
}

void hmap_done(struct hmap *m)
{
    if (m->buckets && m->buckets != &m->one) {
        free(m->buckets);
    }
    hmap_init(m);
}

static void hmap_resize(struct hmap *m, size_t mask)
{
    struct hmap_node **buckets = xcalloc(mask + 1, sizeof *buckets);
    for (size_t i = 0; i <= m->mask; i++) {
        for (struct hmap_node *node = m->buckets[i], *next; node; node = next) {
            next = node->next;
            struct hmap_node **b = &buckets[node->hash & mask];
            node->next = *b;
            *b = node;
        }
    }
    if (m->buckets != &m->one) {
        free(m->buckets);
    }
    m->buckets = buckets;
    m->mask = mask;
}

void hmap_insert(struct hmap *m, struct hmap_node *node, uint32_t hash)
{
    if (m->buckets == NULL) {
        hmap_init(m);
    }
    if (m->n > m->mask) {
        hmap_resize(m, m->mask * 2 + 1);
    }
    struct hmap_node **b = &m->buckets[hash & m->mask];
    node->hash = hash;
    node->next = *b;
    *b = node;
    m->n++;
}

void hmap_remove(struct hmap *m, struct hmap_node *node)
{
    struct hmap_node **p = &m->buckets[node->hash & m->mask];
    while (*p != node) {
        assert(*p);
        p = &(*p)->next;
    }
    *p = node->next;
    node->next = NULL;
    m->n--;
}

static struct hmap_node *same_hash(struct hmap_node *node, uint32_t hash)
{
    while (node && node->hash != hash) {
        node = node->next;
    }
    return node;
}

struct hmap_node *hmap_first_with_hash(const struct hmap *m, uint32_t hash)
{
    return m->buckets ? same_hash(m->buckets[hash & m->mask], hash) : NULL;
}

struct hmap_node *hmap_next_with_hash(const struct hmap_node *node)
{
    return same_hash(node->next, node->hash);
}

struct hmap_node *hmap_next_(const struct hmap *m, size_t *bucket, struct hmap_node *after)
{
    if (after) {
        if (after->next) {
            return after->next;
        }
        (*bucket)++;
    }
    for (; m->buckets && *bucket <= m->mask; (*bucket)++) {
        if (m->buckets[*bucket]) {
            return m->buckets[*bucket];
        }
    }
    return NULL;
}

void smap_init(struct smap *m, void (*free_value)(void *))
{
    hmap_init(&m->map);
    list_init(&m->order);
    m->free_value = free_value;
}

static struct smap_entry *smap_find(const struct smap *m, const char *key)
{
    struct smap_entry *e;
    HMAP_FOREACH_WITH_HASH (e, struct smap_entry, node, hash_string(key), &m->map) {
        if (streq(e->key, key)) {
            return e;
        }
    }
    return NULL;
}

static void *smap_unlink(struct smap *m, struct smap_entry *e)
{
    void *value = e->value;
    hmap_remove(&m->map, &e->node);
    list_remove(&e->order);
    free(e->key);
    free(e);
    return value;
}

void smap_clear(struct smap *m)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, m) {
        void *value = smap_unlink(m, e);
        if (m->free_value && value) {
            m->free_value(value);
        }
    }
}

void smap_done(struct smap *m)
{
    smap_clear(m);
    hmap_done(&m->map);
}

size_t smap_size(const struct smap *m)
{
    return m->map.n;
}

void *smap_get(const struct smap *m, const char *key)
{
    struct smap_entry *e = smap_find(m, key);
    return e ? e->value : NULL;
}

void smap_set(struct smap *m, const char *key, void *value)
{
    struct smap_entry *e = smap_find(m, key);
    if (e) {
        if (m->free_value && e->value && e->value != value) {
            m->free_value(e->value);
        }
        e->value = value;
        return;
    }
    e = NEW(struct smap_entry);
    e->key = xstrdup(key);
    e->value = value;
    hmap_insert(&m->map, &e->node, hash_string(key));
    list_push_back(&m->order, &e->order);
}

void *smap_take(struct smap *m, const char *key)
{
    struct smap_entry *e = smap_find(m, key);
    return e ? smap_unlink(m, e) : NULL;
}

bool smap_remove(struct smap *m, const char *key)
{
    struct smap_entry *e = smap_find(m, key);
    if (!e) {
        return false;
    }
    void *value = smap_unlink(m, e);
    if (m->free_value && value) {
        m->free_value(value);
    }
    return true;
}
