/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/table.h"

#include "base/mem.h"

#include <bpf/bpf.h>
#include <string.h>

#define BATCH 256 /* Rows per system call. */

/* ---- maintaining a map ---- */

static int by_key(const void *a, const void *b)
{
    const struct table_row *x = a, *y = b;
    return memcmp(x->key, y->key, sizeof x->key);
}

/* Sorts by key, then by value. */
static int by_row(const void *a, const void *b)
{
    int c = by_key(a, b);
    const struct table_row *x = a, *y = b;
    return c ? c : memcmp(x->value, y->value, sizeof x->value);
}

static struct table_row *add_row(struct table *t, size_t *cap)
{
    t->rows = grow(t->rows, cap, t->n + 1, sizeof *t->rows);
    struct table_row *row = &t->rows[t->n++];
    *row = (struct table_row){0};
    return row;
}

/* Keeps the row that was read, unless it is empty. */
static void keep_row(struct table *t, size_t *cap, const void *key, const void *value)
{
    static const unsigned char none[TABLE_VALUE_MAX];
    if (!t->is_array || memcmp(value, none, t->value_size) != 0) {
        struct table_row *row = add_row(t, cap);
        memcpy(row->key, key, t->key_size);
        memcpy(row->value, value, t->value_size);
    }
}

/* -ENOENT at the end. */
static int read_batches(struct table *t, size_t *cap)
{
    CLEANUP_FREE unsigned char *keys = xmalloc((size_t) BATCH * t->key_size);
    CLEANUP_FREE unsigned char *values = xmalloc((size_t) BATCH * t->value_size);
    unsigned char at[TABLE_KEY_MAX], next[TABLE_KEY_MAX];
    int r = 0;
    for (const void *from = NULL; r == 0; from = at) {
        uint32_t n = BATCH;
        r = bpf_map_lookup_batch(t->fd, (void *) from, next, keys, values, &n, NULL);
        for (size_t i = 0; (r == 0 || r == -ENOENT) && i < n; i++) {
            keep_row(t, cap, keys + i * t->key_size, values + i * t->value_size);
        }
        memcpy(at, next, sizeof at);
    }
    return r;
}

static int read_one_by_one(struct table *t, size_t *cap)
{
    unsigned char key[TABLE_KEY_MAX] = {0}, value[TABLE_VALUE_MAX];
    int r;
    for (const void *from = NULL; (r = bpf_map_get_next_key(t->fd, from, key)) == 0; from = key) {
        r = bpf_map_lookup_elem(t->fd, key, value);
        if (r < 0) {
            return r == -ENOENT ? -EAGAIN : r;
        }
        keep_row(t, cap, key, value);
    }
    return r;
}

int table_load(struct table *t, int fd, struct err *e)
{
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    size_t cap = 0;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0) {
        return err_sys(e, -errno, "ask for the sizes of an eBPF map");
    }
    struct table now = {.fd = fd,
                        .key_size = info.key_size,
                        .value_size = info.value_size,
                        .is_array = info.type == BPF_MAP_TYPE_ARRAY};
    int r = read_batches(&now, &cap);
    if (r != -ENOENT) { /* The map has no batch read (LPM tries before Linux 5.14). */
        now.n = 0;
        r = read_one_by_one(&now, &cap);
    }
    if (r != -ENOENT) {
        table_done(&now);
        return err_sys(e, r, "read an eBPF map");
    }
    if (now.n) {
        qsort(now.rows, now.n, sizeof *now.rows, by_key);
    }
    table_done(t);
    *t = now;
    return 0;
}

void table_done(struct table *t)
{
    free(TAKE(t->rows));
    t->n = 0;
}

/* Sorts, and keeps the last row of each key. */
static size_t normalize(struct table_row *rows, size_t n)
{
    size_t kept = 0;
    if (n) {
        qsort(rows, n, sizeof *rows, by_row);
    }
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || by_key(&rows[i], &rows[i + 1]) != 0) {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

static const struct table_row *find(const struct table_row *rows, size_t n,
                                    const struct table_row *like)
{
    return n ? bsearch(like, rows, n, sizeof *rows, by_key) : NULL;
}

/* Rows to be written, in the layout of the kernel's batch call. */
struct batch {
    const struct table *t;
    bool by_one; /* The map has no batch write (LPM tries before Linux 5.14). */
    struct table_row *rows[BATCH];
    unsigned char keys[BATCH * TABLE_KEY_MAX], values[BATCH * TABLE_VALUE_MAX];
    size_t n;
    size_t refused; /* Number of refused rows so far. */
    int error;      /* Errno of the last refusal, negative. */
};

/* A refused row is set to the map's present value, so that it can be removed later, or is
 * dropped. */
static void write_one(struct batch *b, struct table_row *row)
{
    int r = bpf_map_update_elem(b->t->fd, row->key, row->value, BPF_ANY);
    if (r < 0) {
        b->error = r;
        b->refused++;
        const struct table_row *there = find(b->t->rows, b->t->n, row);
        if (there) {
            memcpy(row->value, there->value, sizeof row->value);
        } else {
            row->refused = true;
        }
    }
}

static void write_batch(struct batch *b)
{
    for (size_t done = 0; done < b->n; done++) {
        uint32_t rest = (uint32_t) (b->n - done), count = rest;
        int r = b->by_one ? -EOPNOTSUPP
                          : bpf_map_update_batch(b->t->fd, b->keys + done * b->t->key_size,
                                                 b->values + done * b->t->value_size, &count, NULL);
        if (r == 0) {
            break;
        }
        /* 'count' returns how many rows preceded the failed one; unless all were refused. */
        if (b->by_one || count >= rest) {
            b->by_one = true;
        } else {
            done += count;
        }
        write_one(b, b->rows[done]);
    }
    b->n = 0;
}

static void add_to_batch(struct batch *b, struct table_row *row)
{
    memcpy(b->keys + b->n * b->t->key_size, row->key, b->t->key_size);
    memcpy(b->values + b->n * b->t->value_size, row->value, b->t->value_size);
    b->rows[b->n++] = row;
    if (b->n == BATCH) {
        write_batch(b);
    }
}

static void remove_row(const struct table *t, const struct table_row *row)
{
    static const unsigned char none[TABLE_VALUE_MAX];
    if (t->is_array) {
        bpf_map_update_elem(t->fd, row->key, none, BPF_ANY);
    } else {
        bpf_map_delete_elem(t->fd, row->key);
    }
}

void table_sync(struct table *t, struct table_row *rows, size_t n, size_t *ret_changes,
                size_t *ret_refused, struct err *e)
{
    CLEANUP_FREE struct batch *b = NEW(struct batch);
    size_t changes = 0, kept = 0;
    b->t = t;
    n = normalize(rows, n);
    for (size_t i = 0; i < n; i++) {
        const struct table_row *there = find(t->rows, t->n, &rows[i]);
        if (!there || memcmp(there->value, rows[i].value, sizeof there->value) != 0) {
            changes++;
            add_to_batch(b, &rows[i]);
        }
    }
    write_batch(b);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].refused) {
            rows[kept++] = rows[i];
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        if (!find(rows, kept, &t->rows[i])) {
            changes++;
            remove_row(t, &t->rows[i]);
        }
    }
    if (b->refused) {
        err_sys(e, b->error, "add to an eBPF map");
    }
    free(t->rows);
    t->rows = rows;
    t->n = kept;
    *ret_changes = changes;
    *ret_refused = b->refused;
}
