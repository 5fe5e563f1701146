/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/firewall.h"

#include "base/log.h"
#include "base/mem.h"
#include "datapath/ebpf/bpf/maps.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>

LOG_MODULE("ebpf");

struct firewall {
    struct hmap_node node; /* In 'wanted' by VNID, in 'found' by list. */
    uint32_t vnid;
    uint32_t list;                 /* List of its rows; 0: none. */
    bool in_force;                 /* EBPF_FIREWALLS names the list. */
    bool closed;                   /* It did not fit. */
    struct firewall_block *blocks; /* With the rows of 'list', one of the length 0 included. */
    size_t n, cap;
};

static void free_firewall(struct hmap *m, struct firewall *f)
{
    hmap_remove(m, &f->node);
    free(f->blocks);
    free(f);
}

static struct firewall *find(const struct hmap *m, uint32_t key)
{
    struct firewall *f;
    HMAP_FOREACH_WITH_HASH (f, struct firewall, node, key, m) {
        return f;
    }
    return NULL;
}

/* ---- rows ---- */

static struct ebpf_firewall_key key_of(uint32_t list, struct ip4_prefix to)
{
    return (struct ebpf_firewall_key){
        .len = EBPF_FIREWALL_LIST_BITS + to.len, .list = list, .addr = htonl(to.addr)};
}

static int compare_lengths(const void *a, const void *b)
{
    const struct firewall_block *x = a, *y = b;
    return (int) x->to.len - (int) y->to.len;
}

/* Removes the rows of a list that is not in force: shorter prefixes first, so that a packet which
 * still looks for the list finds its own block or none. */
static void remove_rows(struct firewall_maps *m, uint32_t list, struct firewall_block *blocks,
                        size_t n)
{
    if (n) {
        qsort(blocks, n, sizeof *blocks, compare_lengths);
    }
    for (size_t i = 0; i < n; i++) {
        struct ebpf_firewall_key key = key_of(list, blocks[i].to);
        m->applied += bpf_map_delete_elem(m->program->firewall_blocks, &key) == 0;
    }
}

/* Writes all rows of a list; on failure none is left. */
static int write_rows(struct firewall_maps *m, struct firewall *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct ebpf_firewall_key key = key_of(f->list, f->blocks[i].to);
        uint32_t action = f->blocks[i].allow ? EBPF_ALLOW : EBPF_DENY;
        if (bpf_map_update_elem(m->program->firewall_blocks, &key, &action, BPF_ANY) < 0) {
            int r = -errno;
            remove_rows(m, f->list, f->blocks, i);
            return r;
        }
        m->applied++;
    }
    return 0;
}

static uint32_t take_list(struct firewall_maps *m)
{
    struct firewall *f;
    bool taken = true;
    while (taken) {
        m->last_list++;
        taken = m->last_list == 0 || find(&m->found, m->last_list);
        HMAP_FOREACH (f, struct firewall, node, &m->wanted) {
            taken |= f->list == m->last_list;
        }
    }
    return m->last_list;
}

/* Puts a firewall into force whose rows are not there yet. */
static void write_firewall(struct firewall_maps *m, struct firewall *f)
{
    static struct log_limit limit;
    f->list = take_list(m);
    int r = write_rows(m, f);
    f->closed = r < 0;
    struct ebpf_firewall head = {.list = f->list, .closed = f->closed};
    f->in_force = bpf_map_update_elem(m->program->firewalls, &f->vnid, &head, BPF_ANY) == 0;
    r = f->in_force ? r : -errno;
    m->applied += f->in_force;
    if (r < 0) {
        m->refused++;
        log_limited(&limit, LOG_ERROR, "an egress firewall does not fit into the maps",
                    "vnid=%u blocks=%zu error=\"%s\" now=\"%s\"", f->vnid, f->n, strerror(-r),
                    f->in_force ? "nothing leaves the cluster from this VNID"
                                : "nothing leaves the cluster from any pod");
    }
}

static void update_closed(struct firewall_maps *m)
{
    struct firewall *f;
    m->closed = false;
    HMAP_FOREACH (f, struct firewall, node, &m->wanted) {
        m->closed |= m->program && !f->in_force;
    }
}

/* ---- blocks ---- */

static void add_block(struct firewall *f, struct firewall_block b)
{
    f->blocks = grow(f->blocks, &f->cap, f->n + 1, sizeof *f->blocks);
    f->blocks[f->n++] = b;
}

/* Copies the blocks, and completes them by one for all destinations. */
static void set_blocks(struct firewall *f, const struct firewall_block *blocks, size_t n)
{
    f->n = 0;
    if (!blocks[0].to.addr && !blocks[0].to.len) {
        add_block(f, blocks[0]);
        blocks++;
        n--;
    } else {
        add_block(f, (struct firewall_block){.allow = true});
    }
    for (size_t i = 0; i < n; i++) {
        add_block(f, blocks[i]);
    }
}

static int compare_blocks(const void *a, const void *b)
{
    const struct firewall_block *x = a, *y = b;
    if (x->to.addr != y->to.addr) {
        return x->to.addr < y->to.addr ? -1 : 1;
    }
    return (int) x->to.len - (int) y->to.len;
}

static bool same_blocks(struct firewall *a, struct firewall *b)
{
    qsort(a->blocks, a->n, sizeof *a->blocks, compare_blocks);
    qsort(b->blocks, b->n, sizeof *b->blocks, compare_blocks);
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++) {
        same = prefix_equal(a->blocks[i].to, b->blocks[i].to) &&
               a->blocks[i].allow == b->blocks[i].allow;
    }
    return same;
}

/* ---- loading ---- */

static struct firewall *found_list(struct firewall_maps *m, uint32_t list)
{
    struct firewall *f = find(&m->found, list);
    if (!f) {
        f = NEW(struct firewall);
        f->list = list;
        hmap_insert(&m->found, &f->node, list);
        m->last_list = MAX(m->last_list, list);
    }
    return f;
}

static int read_maps(struct firewall_maps *m, struct err *e)
{
    uint32_t vnid, next_vnid;
    struct ebpf_firewall_key key, next_key;
    int r = bpf_map_get_next_key(m->program->firewalls, NULL, &next_vnid);
    for (; r == 0; r = bpf_map_get_next_key(m->program->firewalls, &vnid, &next_vnid)) {
        struct ebpf_firewall head;
        vnid = next_vnid;
        if (bpf_map_lookup_elem(m->program->firewalls, &vnid, &head) == 0) {
            struct firewall *f = found_list(m, head.list);
            f->vnid = vnid;
            f->in_force = true;
            f->closed = head.closed;
        }
    }
    if (r != -ENOENT) {
        return err_sys(e, r, "read the map " EBPF_FIREWALLS);
    }
    r = bpf_map_get_next_key(m->program->firewall_blocks, NULL, &next_key);
    for (; r == 0; r = bpf_map_get_next_key(m->program->firewall_blocks, &key, &next_key)) {
        uint32_t action;
        key = next_key;
        if (bpf_map_lookup_elem(m->program->firewall_blocks, &key, &action) == 0) {
            struct firewall_block b = {
                {ntohl(key.addr), (uint8_t) (key.len - EBPF_FIREWALL_LIST_BITS)},
                action == EBPF_ALLOW};
            add_block(found_list(m, key.list), b);
        }
    }
    return r == -ENOENT ? 0 : err_sys(e, r, "read the map " EBPF_FIREWALL_BLOCKS);
}

/* The firewall in the maps for this VNID; NULL: there is none. */
static struct firewall *found_for(const struct firewall_maps *m, uint32_t vnid)
{
    struct firewall *f;
    HMAP_FOREACH (f, struct firewall, node, &m->found) {
        if (f->in_force && f->vnid == vnid) {
            return f;
        }
    }
    return NULL;
}

/* Replaces the firewall 'old' of the same VNID, if there is one, by 'f'. */
static void replace(struct firewall_maps *m, struct firewall *f, struct firewall *old)
{
    if (old && !old->closed && same_blocks(old, f)) {
        f->list = old->list;
        f->in_force = true;
    } else {
        write_firewall(m, f);
        if (old && f->in_force) {
            remove_rows(m, old->list, old->blocks, old->n);
        }
    }
}

int firewall_maps_load(struct firewall_maps *m, const struct program *p, struct err *e)
{
    struct firewall *f;
    m->program = p;
    int r = read_maps(m, e);
    if (r < 0) {
        return r;
    }
    HMAP_FOREACH (f, struct firewall, node, &m->wanted) {
        struct firewall *old = found_for(m, f->vnid);
        replace(m, f, old);
        if (old) {
            free_firewall(&m->found, old);
        }
    }
    update_closed(m);
    return 0;
}

/* ---- public ---- */

void firewall_maps_init(struct firewall_maps *m)
{
    *m = (struct firewall_maps){0};
    hmap_init(&m->wanted);
    hmap_init(&m->found);
}

static void free_all(struct hmap *m)
{
    struct firewall *f;
    HMAP_FOREACH (f, struct firewall, node, m) {
        free_firewall(m, f);
    }
    hmap_done(m);
}

void firewall_maps_done(struct firewall_maps *m)
{
    free_all(&m->wanted);
    free_all(&m->found);
}

static void remove_firewall(struct firewall_maps *m, struct firewall *f)
{
    if (m->program && f->in_force) {
        m->applied += bpf_map_delete_elem(m->program->firewalls, &f->vnid) == 0;
    }
    if (m->program && f->list) {
        remove_rows(m, f->list, f->blocks, f->n);
    }
}

void firewall_maps_set(struct firewall_maps *m, uint32_t vnid, const struct firewall_block *blocks,
                       size_t n)
{
    struct firewall *old = find(&m->wanted, vnid), *f = NULL;
    if (n) {
        f = NEW(struct firewall);
        f->vnid = vnid;
        set_blocks(f, blocks, n);
    }
    if (old) {
        hmap_remove(&m->wanted, &old->node);
    }
    if (f && m->program) {
        replace(m, f, old);
    } else if (!f && old) {
        remove_firewall(m, old);
    }
    if (f) {
        hmap_insert(&m->wanted, &f->node, vnid);
    }
    if (old) {
        free(old->blocks);
        free(old);
    }
    update_closed(m);
}

void firewall_maps_put(struct firewall_maps *m)
{
    struct firewall *f;
    HMAP_FOREACH (f, struct firewall, node, &m->wanted) {
        if (m->program && (f->closed || !f->in_force)) {
            write_firewall(m, f);
        }
    }
    update_closed(m);
}

void firewall_maps_clean(struct firewall_maps *m)
{
    struct firewall *f;
    HMAP_FOREACH (f, struct firewall, node, &m->found) {
        remove_firewall(m, f);
        free_firewall(&m->found, f);
    }
}
