/* SPDX-License-Identifier: Apache-2.0 */
/* Hash maps.
 *
 * 'struct hmap' is intrusive: members embed a 'struct hmap_node' and stay owned by the user;
 * several members may have one hash.  'struct smap' maps owned strings to pointers, in insertion
 * order as long as nothing is removed.  Neither is thread-safe.  Members may be removed while
 * iterating with the macros below, and nothing may be inserted. */
#pragma once

#include "base/list.h"
#include "base/macro.h"

struct hmap_node {
    struct hmap_node *next;
    uint32_t hash;
};

struct hmap {
    struct hmap_node **buckets;
    size_t mask; /* Buckets minus one. */
    size_t n;
    struct hmap_node *one; /* The bucket of an empty map. */
};

void hmap_init(struct hmap *m);
void hmap_done(struct hmap *m); /* Frees the buckets, not the members. */
void hmap_insert(struct hmap *m, struct hmap_node *node, uint32_t hash);
void hmap_remove(struct hmap *m, struct hmap_node *node); /* 'node' must be in 'm'. */
/* First member with 'hash', and the next one after 'node' with the same hash; NULL at the end. */
struct hmap_node *hmap_first_with_hash(const struct hmap *m, uint32_t hash);
struct hmap_node *hmap_next_with_hash(const struct hmap_node *node);
/* Iteration over all members; order is arbitrary. */
struct hmap_node *hmap_next_(const struct hmap *m, size_t *bucket, struct hmap_node *after);

#define HMAP_FOREACH_WITH_HASH(iter, type, member, hashv, m)                      \
    for (struct hmap_node *iter##_node = hmap_first_with_hash(m, hashv);          \
         iter##_node && ((iter) = CONTAINER_OF(iter##_node, type, member), true); \
         iter##_node = hmap_next_with_hash(iter##_node))

#define HMAP_FOREACH(iter, type, member, m)                                              \
    for (size_t iter##_b = 0, iter##_once = 1; iter##_once; iter##_once = 0)             \
        for (struct hmap_node *iter##_node = hmap_next_(m, &iter##_b, NULL), *iter##_nx; \
             iter##_node && (iter##_nx = hmap_next_(m, &iter##_b, iter##_node),          \
                            (iter) = CONTAINER_OF(iter##_node, type, member), true);     \
             iter##_node = iter##_nx)

/* String map. */
struct smap_entry {
    struct hmap_node node;
    struct list order;
    char *key;
    void *value;
};
struct smap {
    struct hmap map;
    struct list order;
    void (*free_value)(void *); /* NULL: values are not owned. */
};

void smap_init(struct smap *m, void (*free_value)(void *));
void smap_done(struct smap *m);
void smap_clear(struct smap *m);
size_t smap_size(const struct smap *m);
void *smap_get(const struct smap *m, const char *key); /* NULL: absent. */
/* Sets 'key' (copied) to 'value'; an old value is freed. */
void smap_set(struct smap *m, const char *key, void *value);
/* Removes 'key' and frees its value; false: was absent. */
bool smap_remove(struct smap *m, const char *key);
/* Removes 'key' and returns its value, which the caller owns. */
void *smap_take(struct smap *m, const char *key);

/* 'e' of type 'struct smap_entry *' walks the map in insertion order; the current one
 * may be removed. */
#define SMAP_FOREACH(e, m) LIST_FOREACH (e, struct smap_entry, order, &(m)->order)
