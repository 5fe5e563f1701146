/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/vnid_alloc.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#define PAGE_IDS 4096u
#define PAGE_WORDS (PAGE_IDS / 64)
#define N_PAGES ((SDN_VNID_MAX + 1) / PAGE_IDS)

struct page {
    uint32_t n; /* Bits set. */
    uint64_t used[PAGE_WORDS];
};

/* Users of a VNID beyond the first. */
struct shared {
    struct hmap_node node;
    uint32_t vnid;
    unsigned extra;
};

struct vnid_alloc {
    struct page *pages[N_PAGES]; /* NULL: no VNID of the page is in use. */
    struct hmap shared;
    uint32_t in_use;
    uint32_t next; /* Cursor: the VNID to try first. */
};

struct vnid_alloc *vnid_alloc_new(void)
{
    struct vnid_alloc *a = NEW(struct vnid_alloc);
    hmap_init(&a->shared);
    a->next = SDN_VNID_MIN;
    return a;
}

struct vnid_alloc *vnid_alloc_free(struct vnid_alloc *a)
{
    if (a) {
        struct shared *s;
        HMAP_FOREACH (s, struct shared, node, &a->shared) {
            hmap_remove(&a->shared, &s->node);
            free(s);
        }
        hmap_done(&a->shared);
        for (size_t i = 0; i < N_PAGES; i++) {
            free(a->pages[i]);
        }
        free(a);
    }
    return NULL;
}

static bool allocatable(uint32_t vnid)
{
    return vnid >= SDN_VNID_MIN && vnid <= SDN_VNID_MAX;
}

static uint64_t bit_of(uint32_t vnid)
{
    return (uint64_t) 1 << (vnid % 64);
}

static bool is_used(const struct vnid_alloc *a, uint32_t vnid)
{
    const struct page *p = a->pages[vnid / PAGE_IDS];
    return p && (p->used[vnid % PAGE_IDS / 64] & bit_of(vnid));
}

static void set_used(struct vnid_alloc *a, uint32_t vnid)
{
    struct page **p = &a->pages[vnid / PAGE_IDS];
    if (!*p) {
        *p = NEW(struct page);
    }
    (*p)->used[vnid % PAGE_IDS / 64] |= bit_of(vnid);
    (*p)->n++;
    a->in_use++;
}

static void set_free(struct vnid_alloc *a, uint32_t vnid)
{
    struct page **p = &a->pages[vnid / PAGE_IDS];
    (*p)->used[vnid % PAGE_IDS / 64] &= ~bit_of(vnid);
    a->in_use--;
    if (--(*p)->n == 0) {
        free(*p);
        *p = NULL;
    }
}

static struct shared *shared_find(const struct vnid_alloc *a, uint32_t vnid)
{
    struct shared *s;
    HMAP_FOREACH_WITH_HASH (s, struct shared, node, hash32(&vnid, sizeof(vnid)), &a->shared) {
        if (s->vnid == vnid) {
            return s;
        }
    }
    return NULL;
}

/* The first free VNID in 'from'..'to'; 0: none. */
static uint32_t find_free(const struct vnid_alloc *a, uint32_t from, uint32_t to)
{
    for (uint32_t id = from; id <= to;) {
        const struct page *p = a->pages[id / PAGE_IDS];
        if (!p) {
            return id;
        }
        if (p->n < PAGE_IDS) {
            /* The free bits in the word of 'id', without those before it. */
            uint64_t open = ~p->used[id % PAGE_IDS / 64] & ~(bit_of(id) - 1);
            if (open) {
                id = id / 64 * 64 + (uint32_t) __builtin_ctzll(open);
                return id <= to ? id : 0;
            }
            id = (id / 64 + 1) * 64;
        } else {
            id = (id / PAGE_IDS + 1) * PAGE_IDS;
        }
    }
    return 0;
}

int vnid_alloc_allocate(struct vnid_alloc *a, uint32_t *ret)
{
    uint32_t id = find_free(a, a->next, SDN_VNID_MAX);
    if (id == 0) {
        id = find_free(a, SDN_VNID_MIN, SDN_VNID_MAX);
    }
    if (id == 0) {
        return -ENOSPC;
    }
    set_used(a, id);
    vnid_alloc_seek(a, id);
    return *ret = id, 0;
}

int vnid_alloc_claim(struct vnid_alloc *a, uint32_t vnid)
{
    if (!allocatable(vnid)) {
        return -ERANGE;
    }
    if (is_used(a, vnid)) {
        return -EEXIST;
    }
    set_used(a, vnid);
    return 0;
}

int vnid_alloc_share(struct vnid_alloc *a, uint32_t vnid)
{
    int r = vnid_alloc_claim(a, vnid);
    if (r != -EEXIST) {
        return r;
    }
    struct shared *s = shared_find(a, vnid);
    if (!s) {
        s = NEW(struct shared);
        s->vnid = vnid;
        hmap_insert(&a->shared, &s->node, hash32(&vnid, sizeof(vnid)));
    }
    s->extra++;
    return 0;
}

int vnid_alloc_release(struct vnid_alloc *a, uint32_t vnid)
{
    if (!allocatable(vnid)) {
        return -ERANGE;
    }
    if (!is_used(a, vnid)) {
        return -ENOENT;
    }
    struct shared *s = shared_find(a, vnid);
    if (!s) {
        set_free(a, vnid);
    } else if (--s->extra == 0) {
        hmap_remove(&a->shared, &s->node);
        free(s);
    }
    return 0;
}

void vnid_alloc_seek(struct vnid_alloc *a, uint32_t vnid)
{
    if (allocatable(vnid)) {
        a->next = vnid == SDN_VNID_MAX ? SDN_VNID_MIN : vnid + 1;
    }
}

unsigned vnid_alloc_users(const struct vnid_alloc *a, uint32_t vnid)
{
    if (!allocatable(vnid) || !is_used(a, vnid)) {
        return 0;
    }
    const struct shared *s = shared_find(a, vnid);
    return 1 + (s ? s->extra : 0);
}

uint32_t vnid_alloc_in_use(const struct vnid_alloc *a)
{
    return a->in_use;
}
