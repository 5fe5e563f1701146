/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/policy.h"

#include "base/log.h"
#include "base/mem.h"
#include "datapath/ebpf/bpf/maps.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

LOG_MODULE("ebpf");

/* The maps, in the order of writing. */
enum map { MAP_PORTS, MAP_CLASSES, MAP_BLOCKS, MAP_PAIRS, N_MAPS };
#define KEY_SIZE 16
#define VALUE_SIZE 20
struct policy_change {
    enum map map;
    bool there;
    unsigned char key[KEY_SIZE], value[VALUE_SIZE]; /* Unused bytes at the end are zero. */
    size_t number;
};

static const struct {
    const char *what;
    size_t key, value;
    bool versioned; /* The parts of a row are: since, now, before. */
} maps[N_MAPS] = {
    [MAP_PORTS] = {"ports", sizeof(struct ebpf_port_key), sizeof(struct ebpf_port_verdict), false},
    [MAP_CLASSES] = {"addresses", sizeof(__be32), sizeof(struct ebpf_classes), true},
    [MAP_BLOCKS] = {"address blocks", sizeof(struct ebpf_block_key), sizeof(uint32_t), true},
    [MAP_PAIRS] = {"pairs", sizeof(struct ebpf_pair_key), sizeof(struct ebpf_pair), true},
};
static_assert(sizeof(struct ebpf_classes) == VALUE_SIZE, "the longest value fits");
static_assert(sizeof(struct ebpf_pair_key) <= KEY_SIZE, "keys fit");
/* 'now' follows 'since', and 'before' follows 'now'. */
static_assert(sizeof(struct ebpf_classes_row) == 8 + 2 * sizeof(struct ebpf_classes), "");
static_assert(sizeof(struct ebpf_block_row) == 8 + 2 * sizeof(uint32_t), "");
static_assert(sizeof(struct ebpf_pair_row) == 8 + 2 * sizeof(struct ebpf_pair), "");
#define ROW_SIZE (8 + 2 * VALUE_SIZE)

/* ---- changes from the compiler ---- */

static struct policy_change *add_change(struct policy_change **list, size_t *n, size_t *cap)
{
    *list = grow(*list, cap, *n + 1, sizeof **list);
    (*list)[*n] = (struct policy_change){.number = *n};
    return &(*list)[(*n)++];
}

static void tell(struct policy_maps *m, enum map map, bool there, const void *key,
                 const void *value)
{
    struct policy_change *c = add_change(&m->changes, &m->n_changes, &m->cap_changes);
    c->map = map;
    c->there = there;
    memcpy(c->key, key, maps[map].key);
    if (value) {
        memcpy(c->value, value, maps[map].value);
    }
    m->whole = false;
}

static void set_address(void *ctx, uint32_t ip, const struct policy_classes *c)
{
    __be32 key = htonl(ip);
    struct ebpf_classes v = {0};
    if (c) {
        v = (struct ebpf_classes){.subject = {c->subject[0], c->subject[1]},
                                  .peer = {c->peer[0], c->peer[1]},
                                  .unknown = c->unknown};
    }
    tell(ctx, MAP_CLASSES, c != NULL, &key, &v);
}

static struct ebpf_block_key block_key(enum policy_direction d, struct ip4_prefix p)
{
    return (struct ebpf_block_key){
        .len = EBPF_BLOCK_DIR_BITS + p.len, .dir = d, .addr = htonl(p.addr)};
}

static void set_block(void *ctx, enum policy_direction d, struct ip4_prefix p, uint32_t id,
                      bool there)
{
    struct ebpf_block_key key = block_key(d, p);
    tell(ctx, MAP_BLOCKS, there, &key, &id);
}

static void set_pair(void *ctx, const struct policy_pair_key *k, const struct policy_pair *v)
{
    struct ebpf_pair_key key = {
        .subject = k->subject, .peer = k->peer, .dir = k->dir, .kind = k->kind};
    struct ebpf_pair value = {0};
    if (v) {
        value =
            (struct ebpf_pair){.ports = v->ports, .flags = v->isolated ? EBPF_PAIR_ISOLATED : 0};
    }
    tell(ctx, MAP_PAIRS, v != NULL, &key, &value);
}

static void set_ports(void *ctx, uint32_t id, const struct policy_port_verdict *rows, size_t n,
                      bool there)
{
    for (size_t i = 0; i < n; i++) {
        const struct policy_port_verdict *r = &rows[i];
        struct ebpf_port_key key = {.len = r->proto ? EBPF_PORT_PROTO_BITS + r->len
                                                    : EBPF_PORT_ANY_BITS,
                                    .ports = id,
                                    .protocol = r->proto,
                                    .port = htons(r->port)};
        struct ebpf_port_verdict v = {.admin = r->verdict.admin,
                                      .baseline = r->verdict.baseline,
                                      .admin_action = r->verdict.admin_action,
                                      .baseline_action = r->verdict.baseline_action,
                                      .allowed = r->verdict.allowed};
        tell(ctx, MAP_PORTS, there, &key, &v);
    }
}

static void set_done(void *ctx)
{
    struct policy_maps *m = ctx;
    m->whole = true;
    if (m->n_changes && m->changed) {
        m->changed(m->ctx);
    }
}

const struct policy_table_ops policy_maps_ops = {.set_address = set_address,
                                                 .set_block = set_block,
                                                 .set_pair = set_pair,
                                                 .set_ports = set_ports,
                                                 .done = set_done};

/* ---- rows in the kernel ---- */

static int fd_of(const struct policy_maps *m, enum map map)
{
    const struct program *p = m->program;
    const int fds[N_MAPS] = {[MAP_PORTS] = p->port_sets,
                             [MAP_CLASSES] = p->classes,
                             [MAP_BLOCKS] = p->blocks,
                             [MAP_PAIRS] = p->pairs};
    return fds[map];
}

static struct ebpf_generation generation_of(const struct policy_maps *m)
{
    struct ebpf_generation g = {0};
    uint32_t zero = 0;
    bpf_map_lookup_elem(m->program->generation, &zero, &g);
    return g;
}

static const void *row_in(const unsigned char *row, size_t size, uint64_t generation)
{
    uint64_t since;
    memcpy(&since, row, sizeof since);
    return row + sizeof since + (since <= generation ? 0 : size);
}

/* Writing one generation. */
struct commit {
    struct policy_maps *maps;
    struct ebpf_generation now;
    size_t written, removed;
    size_t n_refused;
    uint32_t (*cut)[2];
    size_t n_cut, cap_cut;
    bool closed;
    int error; /* The error of the first row that did not fit. */
    enum map of;
    struct policy_change *gone;
    size_t n_gone, cap_gone;
};

static int compare_subjects(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : x[1] < y[1] ? -1 : x[1] > y[1];
}

static void cut_off(struct commit *c, uint32_t dir, uint32_t subject)
{
    c->cut = grow(c->cut, &c->cap_cut, c->n_cut + 1, sizeof *c->cut);
    c->cut[c->n_cut][0] = dir;
    c->cut[c->n_cut++][1] = subject;
}

static void refuse(struct commit *c, const struct policy_change *x, int error)
{
    struct policy_maps *m = c->maps;
    m->refused = grow(m->refused, &m->cap_refused, m->n_refused + 1, sizeof *m->refused);
    m->refused[m->n_refused++] = *x;
    if (c->n_refused++ == 0) {
        c->error = error;
        c->of = x->map;
    }
}

/* A missing dependency: a set of ports, or the class of a peer. */
struct missing {
    uint32_t kind; /* enum ebpf_peer; EBPF_ANYBODY: ports. */
    uint32_t dir, id;
};
struct missings {
    struct missing *list;
    size_t n, cap;
};

static void miss(struct missings *m, uint32_t kind, uint32_t dir, uint32_t id)
{
    if (id) {
        m->list = grow(m->list, &m->cap, m->n + 1, sizeof *m->list);
        m->list[m->n++] = (struct missing){kind, dir, id};
    }
}

/* Subjects that must not work without the row: its own subject, or those with a pair in the
 * kernel that needs it. */
static void find_concerned(struct commit *c, const struct policy_change *x, struct missings *m)
{
    struct ebpf_pair_key pair;
    struct ebpf_port_key ports;
    struct ebpf_block_key block;
    struct ebpf_classes classes;
    uint32_t id;
    switch (x->map) {
    case MAP_PAIRS:
        memcpy(&pair, x->key, sizeof pair);
        cut_off(c, pair.dir, pair.subject);
        return;
    case MAP_PORTS:
        memcpy(&ports, x->key, sizeof ports);
        miss(m, EBPF_ANYBODY, 0, ports.ports);
        return;
    case MAP_BLOCKS:
        memcpy(&block, x->key, sizeof block);
        memcpy(&id, x->value, sizeof id);
        miss(m, EBPF_BLOCK, block.dir, id);
        return;
    case MAP_CLASSES:
        memcpy(&classes, x->value, sizeof classes);
        c->closed |= classes.subject[0] || classes.subject[1] || classes.unknown;
        miss(m, EBPF_POD, EBPF_EGRESS, classes.peer[0]);
        miss(m, EBPF_POD, EBPF_INGRESS, classes.peer[1]);
        return;
    case N_MAPS:
        return;
    }
}

static int compare_missing(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct missing));
}

static bool is_missing(const struct missings *m, uint32_t kind, uint32_t dir, uint32_t id)
{
    struct missing key = {kind, dir, id};
    return id && bsearch(&key, m->list, m->n, sizeof *m->list, compare_missing);
}

static void cut_off_concerned(struct commit *c)
{
    struct missings m = {0};
    struct ebpf_pair_key key, last, *at = NULL;
    for (size_t i = 0; i < c->maps->n_refused; i++) {
        find_concerned(c, &c->maps->refused[i], &m);
    }
    if (m.n) {
        qsort(m.list, m.n, sizeof *m.list, compare_missing);
    }
    while (m.n && bpf_map_get_next_key(c->maps->program->pairs, at, &key) == 0) {
        struct ebpf_pair_row row = {0};
        last = key;
        at = &last;
        bpf_map_lookup_elem(c->maps->program->pairs, &key, &row);
        if (is_missing(&m, EBPF_ANYBODY, 0, row.now.ports) ||
            is_missing(&m, EBPF_ANYBODY, 0, row.before.ports) ||
            (key.kind != EBPF_ANYBODY && is_missing(&m, key.kind, key.dir, key.peer))) {
            cut_off(c, key.dir, key.subject);
        }
    }
    if (c->n_cut) {
        qsort(c->cut, c->n_cut, sizeof *c->cut, compare_subjects);
    }
    free(m.list);
}

/* A lookup by longest prefix may return the surrounding row: only sets of ports that are known
 * to exist are looked up. */
static void write_ports(struct commit *c, const struct policy_change *x, bool there)
{
    struct ebpf_port_verdict v;
    int fd = fd_of(c->maps, MAP_PORTS);
    if (there && bpf_map_lookup_elem(fd, x->key, &v) == 0 && memcmp(&v, x->value, sizeof v) == 0) {
        return;
    }
    if (bpf_map_update_elem(fd, x->key, x->value, BPF_ANY) < 0) {
        refuse(c, x, -errno);
        return;
    }
    c->written++;
}

static void write_row(struct commit *c, const struct policy_change *x)
{
    unsigned char row[ROW_SIZE] = {0}, next[ROW_SIZE] = {0};
    int fd = fd_of(c->maps, x->map);
    size_t size = maps[x->map].value;
    uint64_t since = 0, generation = c->now.current + 1;
    bool exists = bpf_map_lookup_elem(fd, x->key, row) == 0;
    const void *now = row_in(row, size, c->now.current);
    memcpy(&since, row, sizeof since);
    if (!exists && !x->there) {
        return;
    }
    /* A row of a later generation was left by an agent that ended before the commit. */
    if (exists && since <= c->now.current && memcmp(now, x->value, size) == 0) {
        return;
    }
    memcpy(next, &generation, sizeof generation);
    memcpy(next + sizeof generation, x->value, size);
    memcpy(next + sizeof generation + size, now, size);
    if (bpf_map_update_elem(fd, x->key, next, BPF_ANY) < 0) {
        refuse(c, x, -errno);
        return;
    }
    c->written++;
}

/* ---- committing ---- */

static int by_key(const void *a, const void *b)
{
    const struct policy_change *x = a, *y = b;
    return x->map != y->map ? (int) x->map - (int) y->map : memcmp(x->key, y->key, KEY_SIZE);
}

static int by_number(const void *a, const void *b)
{
    int c = by_key(a, b);
    const struct policy_change *x = a, *y = b;
    return c ? c : x->number < y->number ? -1 : x->number > y->number;
}

/* Returns refused and new changes, the last one of each row; owned by the caller. */
static struct policy_change *take_changes(struct policy_maps *m, size_t *ret_n)
{
    struct policy_change *list = TAKE(m->refused);
    size_t n = m->n_refused, cap = m->cap_refused, kept = 0;
    for (size_t i = 0; i < m->n_changes; i++) {
        *add_change(&list, &n, &cap) = m->changes[i];
    }
    for (size_t i = 0; i < n; i++) {
        list[i].number = i;
    }
    if (n) {
        qsort(list, n, sizeof *list, by_number);
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || by_key(&list[i], &list[i + 1]) != 0) {
            list[kept++] = list[i];
        }
    }
    free(TAKE(m->changes));
    m->n_changes = m->cap_changes = m->n_refused = m->cap_refused = 0;
    *ret_n = kept;
    return list;
}

static const struct policy_change *find_change(const struct policy_change *list, size_t n,
                                               const struct policy_change *like)
{
    return n ? bsearch(like, list, n, sizeof *list, by_key) : NULL;
}

/* The class of the smallest block around 'x', or 0. */
static uint32_t block_around(const struct policy_change *list, size_t n,
                             const struct policy_change *x)
{
    struct ebpf_block_key key;
    uint32_t id = 0;
    memcpy(&key, x->key, sizeof key);
    uint32_t addr = ntohl(key.addr);
    for (unsigned len = key.len - EBPF_BLOCK_DIR_BITS; len-- > 0;) {
        struct ip4_prefix wider = {addr & prefix_mask((uint8_t) len), (uint8_t) len};
        struct ebpf_block_key at = block_key((enum policy_direction) key.dir, wider);
        struct policy_change like = {.map = MAP_BLOCKS};
        memcpy(like.key, &at, sizeof at);
        const struct policy_change *found = find_change(list, n, &like);
        if (found && found->there) {
            memcpy(&id, found->value, sizeof id);
            return id;
        }
    }
    return 0;
}

/* Takes over the rows of an earlier agent process; rows that are not in 'list' are removed. */
static void take_over(struct commit *c, const struct policy_change *list, size_t n,
                      struct policy_change **ret_there, size_t *ret_n)
{
    size_t cap = 0;
    *ret_there = NULL;
    *ret_n = 0;
    for (enum map map = 0; map < N_MAPS; map++) {
        unsigned char key[KEY_SIZE] = {0}, last[KEY_SIZE];
        const void *at = NULL;
        while (bpf_map_get_next_key(fd_of(c->maps, map), at, key) == 0) {
            struct policy_change *x = add_change(ret_there, ret_n, &cap);
            memcpy(last, key, sizeof last);
            at = last;
            x->map = map;
            memcpy(x->key, key, maps[map].key);
        }
    }
    if (*ret_n) {
        qsort(*ret_there, *ret_n, sizeof **ret_there, by_key);
    }
    for (size_t i = 0; i < *ret_n; i++) {
        struct policy_change *x = &(*ret_there)[i];
        if (!find_change(list, n, x)) {
            struct policy_change *gone = add_change(&c->gone, &c->n_gone, &c->cap_gone);
            *gone = *x;
            uint32_t id = x->map == MAP_BLOCKS ? block_around(list, n, x) : 0;
            memcpy(gone->value, &id, sizeof id);
        }
    }
}

static bool is_cut_off(const uint32_t (*list)[2], size_t n, uint32_t dir, uint32_t subject)
{
    uint32_t key[2] = {dir, subject};
    return n && bsearch(key, list, n, sizeof *list, compare_subjects);
}

/* The row of a subject and EBPF_ANYBODY, with the present state of the subject. */
static void write_subject(struct commit *c, const struct policy_change *x)
{
    struct policy_change y = *x;
    struct ebpf_pair_key key;
    struct ebpf_pair v;
    memcpy(&key, x->key, sizeof key);
    memcpy(&v, x->value, sizeof v);
    v.flags &= ~(uint32_t) EBPF_PAIR_CUT_OFF;
    if (is_cut_off((const uint32_t(*)[2]) c->cut, c->n_cut, key.dir, key.subject)) {
        v.flags |= EBPF_PAIR_CUT_OFF;
    }
    memcpy(y.value, &v, sizeof v);
    write_row(c, &y);
}

/* Subjects that are cut off, or were, and have no change of their own. */
static void write_other_subjects(struct commit *c, const struct policy_change *list, size_t n,
                                 const uint32_t (*subjects)[2], size_t n_subjects)
{
    for (size_t i = 0; i < n_subjects; i++) {
        struct ebpf_pair_key key = {
            .subject = subjects[i][1], .dir = (__u8) subjects[i][0], .kind = EBPF_ANYBODY};
        struct policy_change x = {.map = MAP_PAIRS, .there = true};
        struct ebpf_pair_row row;
        memcpy(x.key, &key, sizeof key);
        if (!find_change(list, n, &x) &&
            bpf_map_lookup_elem(c->maps->program->pairs, &key, &row) == 0) {
            memcpy(x.value, row_in((unsigned char *) &row, sizeof row.now, c->now.current),
                   sizeof row.now);
            write_subject(c, &x);
        }
    }
}

static bool is_of_anybody(const struct policy_change *x)
{
    struct ebpf_pair_key key;
    memcpy(&key, x->key, sizeof key);
    return x->map == MAP_PAIRS && key.kind == EBPF_ANYBODY;
}

/* Rows that others refer to come first; a subject's own rows last, as they mark what is missing. */
static void write_all(struct commit *c, const struct policy_change *list, size_t n,
                      const struct policy_change *there, size_t n_there)
{
    struct policy_maps *m = c->maps;
    for (size_t i = 0; i < n; i++) {
        const struct policy_change *x = &list[i];
        if (!x->there) {
            struct policy_change *gone = add_change(&c->gone, &c->n_gone, &c->cap_gone);
            *gone = *x;
        } else if (x->map == MAP_PORTS) {
            write_ports(c, x, find_change(there, n_there, x));
        } else if (!is_of_anybody(x)) {
            write_row(c, x);
        }
    }
    for (size_t i = 0; i < c->n_gone; i++) {
        if (maps[c->gone[i].map].versioned) {
            write_row(c, &c->gone[i]);
        }
    }
    cut_off_concerned(c);
    for (size_t i = 0; i < n; i++) {
        if (list[i].there && is_of_anybody(&list[i])) {
            write_subject(c, &list[i]);
        }
    }
    write_other_subjects(c, list, n, (const uint32_t(*)[2]) c->cut, c->n_cut);
    write_other_subjects(c, list, n, (const uint32_t(*)[2]) m->cut_off, m->n_cut_off);
}

static int put_generation(struct commit *c, struct err *e)
{
    uint32_t zero = 0;
    struct ebpf_generation next = {.current = c->now.current + 1, .closed = c->closed};
    if (c->written == 0 && c->now.closed == c->closed) {
        return 0;
    }
    return bpf_map_update_elem(c->maps->program->generation, &zero, &next, BPF_ANY) < 0
               ? err_sys(e, -errno, "bring network policies into force")
               : 0;
}

static int commit_once(struct policy_maps *m, struct err *e)
{
    struct commit c = {.maps = m, .now = generation_of(m)};
    struct policy_change *there = NULL;
    size_t n = 0, n_there = 0;
    struct policy_change *list = take_changes(m, &n);
    if (!m->begun) {
        take_over(&c, list, n, &there, &n_there);
    }
    write_all(&c, list, n, there, n_there);
    int r = put_generation(&c, e);
    for (size_t i = 0; r == 0 && i < c.n_gone; i++) {
        c.removed += bpf_map_delete_elem(fd_of(m, c.gone[i].map), c.gone[i].key) == 0;
    }
    m->applied += c.written + c.removed;
    m->begun = true;
    free(m->cut_off);
    m->cut_off = c.cut;
    m->n_cut_off = c.n_cut;
    free(c.gone);
    free(there);
    if (r < 0) { /* Nothing of the change is in force. */
        free(m->refused);
        m->refused = list;
        m->n_refused = m->cap_refused = n;
        return r;
    }
    free(list);
    if (c.n_refused) {
        return err_set(e, -ENOSPC, "%zu rows of network policy do not fit into the maps (%s): %s",
                       c.n_refused, maps[c.of].what, strerror(-c.error));
    }
    return r;
}

int policy_maps_commit(struct policy_maps *m, struct err *e)
{
    if (!policy_maps_due(m)) {
        return 0;
    }
    struct err first = {0};
    int r = commit_once(m, &first);
    if (r == -ENOSPC) { /* The removal made room. */
        err_clear(&first);
        r = commit_once(m, &first);
    }
    return r < 0 ? err_set(e, r, "%s", first.text) : 0;
}

void policy_maps_put(struct policy_maps *m)
{
    static struct log_limit limit;
    struct err e = {0};
    size_t before = m->n_refused;
    int r = policy_maps_commit(m, &e);
    m->refused_ever += m->n_refused > before ? m->n_refused - before : 0;
    if (r < 0) {
        log_limited(&limit, LOG_ERROR,
                    "network policy does not all come into force; the pods it is about are cut off",
                    "error=\"%s\"", e.text);
    } else if (before) {
        log_info("network policy is all in force again", "rows=%zu", before);
    }
}

bool policy_maps_due(const struct policy_maps *m)
{
    return m->program && m->whole && (m->n_changes || m->n_refused || !m->begun);
}

/* ---- connections ---- */

#define BATCH 4096

static int compare_addresses(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return x < y ? -1 : x > y;
}

static bool is_gone(const struct policy_sweep *s, uint32_t ip)
{
    return prefix_contains(s->local, ip) && ip != s->gateway &&
           (s->n_pods == 0 || !bsearch(&ip, s->pods, s->n_pods, sizeof ip, compare_addresses));
}

static bool is_forgotten(const struct policy_sweep *s, const struct ebpf_tracked_key *k,
                         const struct ebpf_tracked *t, uint32_t now)
{
    return ebpf_tracked_is_over(t, k->protocol, now) || is_gone(s, ntohl(k->addr[0])) ||
           is_gone(s, ntohl(k->addr[1]));
}

size_t policy_maps_sweep(struct policy_maps *m, const struct policy_sweep *s)
{
    CLEANUP_FREE struct ebpf_tracked_key *keys = xcalloc(BATCH, sizeof *keys);
    CLEANUP_FREE struct ebpf_tracked *values = xcalloc(BATCH, sizeof *values);
    CLEANUP_FREE uint64_t *counts = xcalloc(EBPF_SHARES_MAX, sizeof *counts);
    struct timespec ts;
    uint32_t in = 0, out = 0, all = EBPF_SHARES_MAX - 1;
    size_t left = 0;
    int r = 0;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    qsort(s->pods, s->n_pods, sizeof *s->pods, compare_addresses);
    for (bool first = true; r == 0; first = false) {
        uint32_t n = BATCH;
        r = bpf_map_lookup_batch(m->program->tracked, first ? NULL : &in, &out, keys, values, &n,
                                 NULL);
        in = out;
        for (uint32_t i = 0; (r == 0 || r == -ENOENT) && i < n; i++) {
            bool over = is_forgotten(s, &keys[i], &values[i], (uint32_t) ts.tv_sec);
            if (!over) {
                counts[values[i].owner]++;
                left++;
            } else if (bpf_map_delete_elem(m->program->tracked, &keys[i]) == 0 && !s->recount) {
                __atomic_fetch_sub(&m->shares[values[i].owner], 1, __ATOMIC_RELAXED);
                __atomic_fetch_sub(&m->shares[all], 1, __ATOMIC_RELAXED);
            }
        }
    }
    bool recount = s->recount && r == -ENOENT; /* All were seen. */
    for (uint32_t i = 0; recount && i < all; i++) {
        __atomic_store_n(&m->shares[i], counts[i], __ATOMIC_RELAXED);
    }
    if (recount) {
        __atomic_store_n(&m->shares[all], left, __ATOMIC_RELAXED);
    }
    free(s->pods);
    return left;
}

void policy_maps_forget_connections(struct policy_maps *m)
{
    CLEANUP_FREE struct ebpf_tracked_key *keys = xcalloc(BATCH, sizeof *keys);
    CLEANUP_FREE struct ebpf_tracked *values = xcalloc(BATCH, sizeof *values);
    uint32_t in = 0, out = 0;
    int r = 0;
    for (bool first = true; r == 0; first = false) {
        uint32_t n = BATCH;
        r = bpf_map_lookup_and_delete_batch(m->program->tracked, first ? NULL : &in, &out, keys,
                                            values, &n, NULL);
        in = out;
    }
    for (size_t i = 0; i < EBPF_SHARES_MAX; i++) {
        __atomic_store_n(&m->shares[i], 0, __ATOMIC_RELAXED);
    }
}

/* ---- the whole commit ---- */

void policy_maps_init(struct policy_maps *m, void (*changed)(void *ctx), void *ctx)
{
    *m = (struct policy_maps){.changed = changed, .ctx = ctx, .whole = true};
}

int policy_maps_load(struct policy_maps *m, const struct program *p, struct err *e)
{
    void *at = mmap(NULL, EBPF_SHARES_MAX * sizeof *m->shares, PROT_READ | PROT_WRITE, MAP_SHARED,
                    p->shares, 0);
    if (at == MAP_FAILED) {
        return err_sys(e, -errno, "map the shares of connections");
    }
    m->shares = at;
    m->program = p;
    return 0;
}

void policy_maps_done(struct policy_maps *m)
{
    if (m->shares) {
        munmap(m->shares, EBPF_SHARES_MAX * sizeof *m->shares);
    }
    free(m->changes);
    free(m->refused);
    free(m->cut_off);
    *m = (struct policy_maps){0};
}
