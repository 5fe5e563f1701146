/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of a flow table's flows: each flow is packed (flow_pack.h) in one short record without
 * pointers, and found by its key and by its group. Pure.
 *
 * Records and groups have numbers; 0 means none.  A pointer to a record is valid until the record
 * is removed, a pointer to a group until the next record is added.  A group exists as long as it
 * has a record. Not thread-safe. */
#pragma once

#include "datapath/ovs/flow_pack.h"

struct flow_record {
    uint32_t hash;                 /* of_flow_hash */
    uint32_t next;                 /* Next record of the bucket. */
    uint32_t group, before, after; /* The group, and the neighbours in its list of records. */
    uint16_t shape;
    /* The flow table's. */
    uint8_t state : 2;
    uint8_t wanted : 1; /* The record's group wants the flow. */
    uint8_t marked : 1;
    uint8_t seen : 1;
    uint8_t dirty : 1, sent : 1; /* Whether the record is in the list of that name. */
    /* The packed flow; with shape FLOW_UNPACKED, a pointer to the flow. */
    uint8_t bytes[];
};

struct flow_group {
    uint64_t cookie;
    uint64_t generation; /* The flow table's. */
    uint32_t next;       /* Next group of the bucket, or next free group. */
    uint32_t first;      /* First record; 0: the group is free. */
};

#define FLOW_STORE_CLASSES ((offsetof(struct flow_record, bytes) + FLOW_PACK_MAX) / 8 + 2)

struct flow_store {
    struct flow_shapes shapes;
    uint32_t *buckets; /* Hash buckets of records. */
    uint32_t bucket_mask;
    size_t n; /* Number of records. */

    uint8_t **chunks;
    size_t n_chunks, chunks_cap;
    uint32_t unused;                   /* First unused unit of the last chunk. */
    uint32_t free[FLOW_STORE_CLASSES]; /* Free records by their size in units. */

    struct flow_group *groups;
    size_t groups_used, groups_cap;
    uint32_t free_group;
    uint32_t *group_buckets;
    uint32_t group_mask;
    size_t n_groups;

    struct of_flow *scratch[2];
};

void flow_store_init(struct flow_store *s);
void flow_store_done(struct flow_store *s);

struct flow_record *flow_store_at(const struct flow_store *s, uint32_t record);
/* 0: there is none. */
uint32_t flow_store_find_group(const struct flow_store *s, uint64_t cookie);
struct flow_group *flow_store_group(const struct flow_store *s, uint32_t group);
/* Adds a record for 'f' to the group of its cookie; 'hash' is of_flow_hash. */
uint32_t flow_store_add(struct flow_store *s, const struct of_flow *f, uint32_t hash);
void flow_store_remove(struct flow_store *s, uint32_t record);
/* Unpacks the flow of the record into 'slot', 0 or 1.  The result is valid until the next call with
 * this slot, or until the record is removed. */
const struct of_flow *flow_store_get(struct flow_store *s, uint32_t record, unsigned slot);

/* The first record with 'hash', and the next one; 0: none. */
uint32_t flow_store_first(const struct flow_store *s, uint32_t hash);
uint32_t flow_store_next(const struct flow_store *s, uint32_t record);

/* 'id' is each record with the hash. */
#define FLOW_STORE_WITH_HASH(id, s, hash) \
    for (uint32_t id = flow_store_first(s, hash); id; id = flow_store_next(s, id))
/* 'id' is each record.  The body may remove the record, but must not add one.  The macro is two
 * nested loops: do not use 'break'. */
#define FLOW_STORE_FOREACH(id, s)                                   \
    for (uint32_t id##_b = 0; id##_b <= (s)->bucket_mask; id##_b++) \
        for (uint32_t id = (s)->buckets[id##_b], id##_next;         \
             id && (id##_next = flow_store_at(s, id)->next, true); id = id##_next)
