/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/subnet_alloc.h"

#include "base/mem.h"

#define HOST_BITS_MIN 2
#define HOST_BITS_MAX 30
#define DEPTH_MAX 32
#define NIL 0u /* No node; the root is 1. */
/* A trie node stands for one prefix; its depth is the prefix length. It exists as long as the
 * prefix itself or one below it is marked. */
#define ROOT 1u
struct node {
    uint32_t child[2];
    uint32_t refs; /* Marks of exactly this prefix. */
    uint32_t
        blocked; /* Slots below that overlap a mark; valid from a range's depth to its slots'. */
};

struct range {
    struct ip4_prefix cidr;
    uint8_t slot_len; /* Prefix length of a slot. */
    uint32_t n;       /* Slots. */
    uint32_t next;    /* Cursor: the slot to try first; may be 'n'. */
};

struct subnet_alloc {
    struct range *ranges;
    size_t n_ranges;
    struct node *nodes; /* The pool of nodes; free ones are chained by child[0]. */
    size_t cap;
    uint32_t used; /* Nodes ever used, NIL included. */
    uint32_t free_list;
};

int subnet_ranges_check(const struct subnet_range *ranges, size_t n, struct err *e)
{
    if (n == 0) {
        return err_set(e, -EINVAL, "no cluster network given");
    }
    for (size_t i = 0; i < n; i++) {
        const struct subnet_range *r = &ranges[i];
        if (r->cidr.len > 32 || (r->cidr.addr & ~prefix_mask(r->cidr.len)) != 0) {
            return err_set(e, -EINVAL, "%s: has bits set below its length", PREFIX_TEXT(r->cidr));
        }
        int max = MIN(32 - r->cidr.len, HOST_BITS_MAX);
        if (max < HOST_BITS_MIN) {
            return err_set(e, -EINVAL, "%s: too small to be a cluster network",
                           PREFIX_TEXT(r->cidr));
        }
        if (r->host_bits < HOST_BITS_MIN || r->host_bits > max) {
            return err_set(e, -EINVAL, "%s: host subnet length %u is not in %d-%d",
                           PREFIX_TEXT(r->cidr), r->host_bits, HOST_BITS_MIN, max);
        }
        for (size_t j = 0; j < i; j++) {
            if (prefix_overlaps(r->cidr, ranges[j].cidr)) {
                return err_set(e, -EINVAL, "%s: overlaps %s", PREFIX_TEXT(r->cidr),
                               PREFIX_TEXT(ranges[j].cidr));
            }
        }
    }
    return 0;
}

static uint32_t node_new(struct subnet_alloc *a)
{
    uint32_t i = a->free_list;
    if (i != NIL) {
        a->free_list = a->nodes[i].child[0];
    } else {
        a->nodes = grow(a->nodes, &a->cap, (size_t) a->used + 1, sizeof(*a->nodes));
        i = a->used++;
    }
    a->nodes[i] = (struct node){0};
    return i;
}

static void node_free(struct subnet_alloc *a, uint32_t i)
{
    a->nodes[i].child[0] = a->free_list;
    a->free_list = i;
}

static unsigned bit_at(uint32_t addr, unsigned depth)
{
    return addr >> (31 - depth) & 1;
}

int subnet_alloc_new(const struct subnet_range *ranges, size_t n, struct subnet_alloc **ret,
                     struct err *e)
{
    int r = subnet_ranges_check(ranges, n, e);
    if (r < 0) {
        return r;
    }
    struct subnet_alloc *a = NEW(struct subnet_alloc);
    a->ranges = xcalloc(n, sizeof(*a->ranges));
    a->n_ranges = n;
    for (size_t i = 0; i < n; i++) {
        uint8_t slot_len = (uint8_t) (32 - ranges[i].host_bits);
        a->ranges[i] = (struct range){.cidr = ranges[i].cidr,
                                      .slot_len = slot_len,
                                      .n = (uint32_t) 1 << (slot_len - ranges[i].cidr.len)};
    }
    (void) node_new(a); /* NIL: a node of zeros. */
    (void) node_new(a); /* The root, which is never freed. */
    return *ret = a, 0;
}

struct subnet_alloc *subnet_alloc_free(struct subnet_alloc *a)
{
    if (a) {
        free(a->ranges);
        free(a->nodes);
        free(a);
    }
    return NULL;
}

/* The range that contains 'p', or NULL. */
static struct range *range_of(const struct subnet_alloc *a, struct ip4_prefix p)
{
    for (size_t i = 0; i < a->n_ranges; i++) {
        if (p.len >= a->ranges[i].cidr.len && prefix_contains(a->ranges[i].cidr, p.addr)) {
            return &a->ranges[i];
        }
    }
    return NULL;
}

/* Slots blocked by node 'i' at 'depth', computed from its children. */
static uint32_t count_blocked(const struct subnet_alloc *a, const struct range *rg, uint32_t i,
                              unsigned depth)
{
    const struct node *n = &a->nodes[i];
    if (n->refs > 0 || depth >= rg->slot_len) {
        return depth >= rg->slot_len ? 1 : (uint32_t) 1 << (rg->slot_len - depth);
    }
    return a->nodes[n->child[0]].blocked + a->nodes[n->child[1]].blocked;
}

/* Recounts the path to 'p', deepest first. */
static void recount(struct subnet_alloc *a, const uint32_t *path, struct ip4_prefix p)
{
    const struct range *rg = range_of(a, p);
    if (!rg) {
        return;
    }
    for (unsigned d = MIN(p.len, rg->slot_len) + 1; d-- > rg->cidr.len;) {
        if (path[d] != NIL) {
            a->nodes[path[d]].blocked = count_blocked(a, rg, path[d], d);
        }
    }
}

void subnet_alloc_mark(struct subnet_alloc *a, struct ip4_prefix p)
{
    assert(p.len <= 32 && (p.addr & ~prefix_mask(p.len)) == 0);
    uint32_t path[DEPTH_MAX + 1] = {ROOT};
    for (unsigned d = 0; d < p.len; d++) {
        unsigned b = bit_at(p.addr, d);
        uint32_t next = a->nodes[path[d]].child[b];
        if (next == NIL) {
            next = node_new(a); /* May move the pool. */
            a->nodes[path[d]].child[b] = next;
        }
        path[d + 1] = next;
    }
    a->nodes[path[p.len]].refs++;
    recount(a, path, p);
}

int subnet_alloc_release(struct subnet_alloc *a, struct ip4_prefix p)
{
    uint32_t path[DEPTH_MAX + 1] = {ROOT};
    for (unsigned d = 0; d < p.len; d++) {
        path[d + 1] = a->nodes[path[d]].child[bit_at(p.addr, d)];
        if (path[d + 1] == NIL) {
            return -ENOENT;
        }
    }
    if (a->nodes[path[p.len]].refs == 0) {
        return -ENOENT;
    }
    a->nodes[path[p.len]].refs--;
    for (unsigned d = p.len; d > 0; d--) {
        const struct node *n = &a->nodes[path[d]];
        if (n->refs > 0 || n->child[0] != NIL || n->child[1] != NIL) {
            break;
        }
        a->nodes[path[d - 1]].child[bit_at(p.addr, d - 1)] = NIL;
        node_free(a, path[d]);
        path[d] = NIL;
    }
    recount(a, path, p);
    return 0;
}

/* Whether a prefix that contains all of 'cidr' (or is it) is marked; '*ret' is the node of
 * 'cidr', NIL when nothing within it is marked. */
static bool covered(const struct subnet_alloc *a, struct ip4_prefix cidr, uint32_t *ret)
{
    uint32_t i = ROOT;
    for (unsigned d = 0; i != NIL; d++) {
        if (a->nodes[i].refs > 0) {
            return true;
        }
        if (d == cidr.len) {
            break;
        }
        i = a->nodes[i].child[bit_at(cidr.addr, d)];
    }
    return *ret = i, false;
}

/* The first free slot of number 'from' or above within the node 'i', of which 'first' is the first
 * slot and which has 2^height of them; UINT32_MAX: none. */
static uint32_t find_free(const struct subnet_alloc *a, uint32_t i, unsigned height, uint32_t first,
                          uint32_t from)
{
    uint32_t n = (uint32_t) 1 << height;
    if (from > first && from - first >= n) {
        return UINT32_MAX;
    }
    if (i == NIL) {
        return MAX(from, first);
    }
    if (a->nodes[i].blocked == n) {
        return UINT32_MAX;
    }
    uint32_t slot = find_free(a, a->nodes[i].child[0], height - 1, first, from);
    if (slot == UINT32_MAX) {
        slot = find_free(a, a->nodes[i].child[1], height - 1, first + n / 2, from);
    }
    return slot;
}

int subnet_alloc_allocate(struct subnet_alloc *a, struct ip4_prefix *ret)
{
    for (size_t i = 0; i < a->n_ranges; i++) {
        struct range *rg = &a->ranges[i];
        uint32_t top = NIL;
        if (covered(a, rg->cidr, &top)) {
            continue;
        }
        unsigned height = rg->slot_len - rg->cidr.len;
        uint32_t slot = find_free(a, top, height, 0, rg->next);
        if (slot == UINT32_MAX) {
            slot = find_free(a, top, height, 0, 0);
        }
        if (slot == UINT32_MAX) {
            continue;
        }
        struct ip4_prefix p = {rg->cidr.addr + (uint32_t) ((uint64_t) slot << (32 - rg->slot_len)),
                               rg->slot_len};
        subnet_alloc_mark(a, p);
        rg->next = slot + 1;
        return *ret = p, 0;
    }
    return -ENOSPC;
}

void subnet_alloc_seek(struct subnet_alloc *a, struct ip4_prefix p)
{
    struct range *rg = range_of(a, p);
    if (rg) {
        rg->next = ((prefix_last(p) - rg->cidr.addr) >> (32 - rg->slot_len)) + 1;
    }
}

unsigned subnet_alloc_marks(const struct subnet_alloc *a, struct ip4_prefix p)
{
    uint32_t i = ROOT;
    for (unsigned d = 0; d < p.len && i != NIL; d++) {
        i = a->nodes[i].child[bit_at(p.addr, d)];
    }
    return i == NIL ? 0 : a->nodes[i].refs;
}

bool subnet_alloc_overlaps(const struct subnet_alloc *a, struct ip4_prefix p)
{
    uint32_t i = NIL;
    if (covered(a, p, &i)) {
        return true;
    }
    /* The root exists without a mark, too. */
    return i == ROOT ? a->nodes[i].child[0] != NIL || a->nodes[i].child[1] != NIL : i != NIL;
}

bool subnet_alloc_in_range(const struct subnet_alloc *a, struct ip4_prefix p)
{
    return range_of(a, p) != NULL;
}

uint64_t subnet_alloc_slots(const struct subnet_alloc *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->n_ranges; i++) {
        n += a->ranges[i].n;
    }
    return n;
}

uint64_t subnet_alloc_free_slots(const struct subnet_alloc *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->n_ranges; i++) {
        uint32_t top = NIL;
        if (!covered(a, a->ranges[i].cidr, &top)) {
            n += a->ranges[i].n - a->nodes[top].blocked;
        }
    }
    return n;
}

size_t subnet_alloc_memory(const struct subnet_alloc *a)
{
    return sizeof(*a) + a->n_ranges * sizeof(*a->ranges) + a->cap * sizeof(*a->nodes);
}
