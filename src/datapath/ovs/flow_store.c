/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/flow_store.h"

#include "base/mem.h"
#include "sdn/pipeline.h"

/* Records are made of units of 8 bytes and lie in chunks, which do not move. */
#define UNIT 8u
#define CHUNK_BITS 13
#define CHUNK_UNITS (1u << CHUNK_BITS)
#define MIN_BUCKETS 64u

static void reset(struct flow_store *s)
{
    s->buckets = xcalloc(MIN_BUCKETS, sizeof *s->buckets);
    s->bucket_mask = MIN_BUCKETS - 1;
    s->group_buckets = xcalloc(MIN_BUCKETS, sizeof *s->group_buckets);
    s->group_mask = MIN_BUCKETS - 1;
    s->unused = CHUNK_UNITS;
    s->groups_used = 1; /* Number 0 means no group. */
}

void flow_store_init(struct flow_store *s)
{
    *s = (struct flow_store){0};
    flow_shapes_init(&s->shapes);
    for (size_t i = 0; i < ARRAY_SIZE(s->scratch); i++) {
        s->scratch[i] = xmalloc(FLOW_UNPACK_SIZE);
    }
    reset(s);
}

struct flow_record *flow_store_at(const struct flow_store *s, uint32_t record)
{
    uint8_t *chunk = s->chunks[record >> CHUNK_BITS];
    return (struct flow_record *) (void *) (chunk + (record & (CHUNK_UNITS - 1)) * (size_t) UNIT);
}

static struct of_flow *unpacked(const struct flow_record *r)
{
    struct of_flow *f;
    memcpy(&f, r->bytes, sizeof f);
    return f;
}

void flow_store_done(struct flow_store *s)
{
    FLOW_STORE_FOREACH(id, s)
    {
        const struct flow_record *r = flow_store_at(s, id);
        if (r->shape == FLOW_UNPACKED) {
            of_flow_free(unpacked(r));
        }
    }
    for (size_t i = 0; i < s->n_chunks; i++) {
        free(s->chunks[i]);
    }
    free(s->chunks);
    free(s->buckets);
    free(s->groups);
    free(s->group_buckets);
    for (size_t i = 0; i < ARRAY_SIZE(s->scratch); i++) {
        free(s->scratch[i]);
    }
    flow_shapes_done(&s->shapes);
}

/* ---- room ---- */

static uint32_t units_of(size_t size)
{
    return (uint32_t) ((offsetof(struct flow_record, bytes) + size + UNIT - 1) / UNIT);
}

static uint32_t take_room(struct flow_store *s, uint32_t units)
{
    uint32_t id = s->free[units];
    if (id) {
        s->free[units] = flow_store_at(s, id)->next;
        return id;
    }
    if (s->unused + units > CHUNK_UNITS) {
        assert(s->n_chunks < UINT32_MAX >> CHUNK_BITS);
        s->chunks = grow(s->chunks, &s->chunks_cap, s->n_chunks + 1, sizeof *s->chunks);
        s->chunks[s->n_chunks++] = xmalloc(CHUNK_UNITS * (size_t) UNIT);
        s->unused = s->n_chunks == 1; /* Number 0 means no record. */
    }
    id = (uint32_t) (s->n_chunks - 1) << CHUNK_BITS | s->unused;
    s->unused += units;
    return id;
}

static void give_room_back(struct flow_store *s, uint32_t id, uint32_t units)
{
    flow_store_at(s, id)->next = s->free[units];
    s->free[units] = id;
    if (s->n) {
        return;
    }
    for (size_t i = 0; i < s->n_chunks; i++) {
        free(s->chunks[i]);
    }
    s->n_chunks = 0;
    memset(s->free, 0, sizeof s->free);
    free(s->buckets);
    free(s->group_buckets);
    free(TAKE(s->groups));
    s->groups_cap = 0;
    s->free_group = 0;
    reset(s);
}

/* ---- groups ---- */

static uint32_t *group_bucket(const struct flow_store *s, uint64_t cookie)
{
    return &s->group_buckets[hash32(&cookie, sizeof cookie) & s->group_mask];
}

uint32_t flow_store_find_group(const struct flow_store *s, uint64_t cookie)
{
    uint32_t g = *group_bucket(s, cookie);
    while (g && s->groups[g].cookie != cookie) {
        g = s->groups[g].next;
    }
    return g;
}

struct flow_group *flow_store_group(const struct flow_store *s, uint32_t group)
{
    return &s->groups[group];
}

static void rehash_groups(struct flow_store *s)
{
    free(s->group_buckets);
    s->group_mask = s->group_mask * 2 + 1;
    s->group_buckets = xcalloc(s->group_mask + (size_t) 1, sizeof *s->group_buckets);
    for (uint32_t g = 1; g < s->groups_used; g++) {
        if (s->groups[g].first) {
            uint32_t *b = group_bucket(s, s->groups[g].cookie);
            s->groups[g].next = *b;
            *b = g;
        }
    }
}

static uint32_t get_group(struct flow_store *s, uint64_t cookie)
{
    uint32_t g = flow_store_find_group(s, cookie);
    if (g) {
        return g;
    }
    if (s->n_groups > s->group_mask) {
        rehash_groups(s);
    }
    g = s->free_group;
    if (g) {
        s->free_group = s->groups[g].next;
    } else {
        s->groups = grow(s->groups, &s->groups_cap, s->groups_used + 1, sizeof *s->groups);
        g = (uint32_t) s->groups_used++;
    }
    uint32_t *b = group_bucket(s, cookie);
    s->groups[g] = (struct flow_group){.cookie = cookie, .next = *b};
    *b = g;
    s->n_groups++;
    return g;
}

static void remove_group(struct flow_store *s, uint32_t g)
{
    uint32_t *p = group_bucket(s, s->groups[g].cookie);
    while (*p != g) {
        p = &s->groups[*p].next;
    }
    *p = s->groups[g].next;
    s->groups[g] = (struct flow_group){.next = s->free_group};
    s->free_group = g;
    s->n_groups--;
}

/* ---- records ---- */

static void rehash(struct flow_store *s)
{
    uint32_t mask = s->bucket_mask * 2 + 1;
    uint32_t *buckets = xcalloc(mask + (size_t) 1, sizeof *buckets);
    FLOW_STORE_FOREACH(id, s)
    {
        struct flow_record *r = flow_store_at(s, id);
        r->next = buckets[r->hash & mask];
        buckets[r->hash & mask] = id;
    }
    free(s->buckets);
    s->buckets = buckets;
    s->bucket_mask = mask;
}

uint32_t flow_store_add(struct flow_store *s, const struct of_flow *f, uint32_t hash)
{
    uint8_t bytes[FLOW_PACK_MAX];
    uint64_t cookie = pipeline_group(f->cookie);
    uint16_t shape = flow_pack(&s->shapes, f, cookie, bytes);
    size_t size;
    if (shape == FLOW_UNPACKED) {
        struct of_flow *copy = of_flow_clone(f);
        size = sizeof copy;
        memcpy(bytes, &copy, size);
    } else {
        size = flow_packed_size(&s->shapes, shape);
    }
    if (s->n > s->bucket_mask) {
        rehash(s);
    }
    uint32_t g = get_group(s, cookie), id = take_room(s, units_of(size));
    uint32_t *b = &s->buckets[hash & s->bucket_mask];
    struct flow_record *r = flow_store_at(s, id);
    *r = (struct flow_record){
        .hash = hash, .next = *b, .group = g, .after = s->groups[g].first, .shape = shape};
    memcpy(r->bytes, bytes, size);
    *b = id;
    if (r->after) {
        flow_store_at(s, r->after)->before = id;
    }
    s->groups[g].first = id;
    s->n++;
    return id;
}

void flow_store_remove(struct flow_store *s, uint32_t id)
{
    struct flow_record *r = flow_store_at(s, id);
    uint32_t *p = &s->buckets[r->hash & s->bucket_mask];
    while (*p != id) {
        p = &flow_store_at(s, *p)->next;
    }
    *p = r->next;
    if (r->before) {
        flow_store_at(s, r->before)->after = r->after;
    } else {
        s->groups[r->group].first = r->after;
    }
    if (r->after) {
        flow_store_at(s, r->after)->before = r->before;
    }
    if (!s->groups[r->group].first) {
        remove_group(s, r->group);
    }
    size_t size = sizeof(struct of_flow *);
    if (r->shape == FLOW_UNPACKED) {
        of_flow_free(unpacked(r));
    } else {
        size = flow_packed_size(&s->shapes, r->shape);
    }
    s->n--;
    give_room_back(s, id, units_of(size));
}

const struct of_flow *flow_store_get(struct flow_store *s, uint32_t id, unsigned slot)
{
    const struct flow_record *r = flow_store_at(s, id);
    if (r->shape == FLOW_UNPACKED) {
        return unpacked(r);
    }
    flow_unpack(&s->shapes, r->shape, s->groups[r->group].cookie, r->bytes, s->scratch[slot]);
    return s->scratch[slot];
}

uint32_t flow_store_first(const struct flow_store *s, uint32_t hash)
{
    uint32_t id = s->buckets[hash & s->bucket_mask];
    while (id && flow_store_at(s, id)->hash != hash) {
        id = flow_store_at(s, id)->next;
    }
    return id;
}

uint32_t flow_store_next(const struct flow_store *s, uint32_t id)
{
    const struct flow_record *r = flow_store_at(s, id);
    uint32_t hash = r->hash;
    do {
        id = r->next;
        r = id ? flow_store_at(s, id) : NULL;
    } while (id && r->hash != hash);
    return id;
}
