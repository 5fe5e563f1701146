/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/table.h"

#include "base/mem.h"

#include <bpf/bpf.h>
#include <string.h>

/* ---- keeping a map ---- */

static int by_key(const void *a, const void *b)
{
    const struct table_row *x = a, *y = b;
    return memcmp(x->key, y->key, sizeof x->key);
}

/* By key, and those of one key by value. */
static int by_row(const void *a, const void *b)
{
    int c = by_key(a, b);
    const struct table_row *x = a, *y = b;
    return c ? c : memcmp(x->value, y->value, sizeof x->value);
}

int table_load(struct table *t, int fd, struct err *e)
{
    struct table_row *rows = NULL;
    size_t n = 0, cap = 0;
    unsigned char key[TABLE_KEY_MAX] = {0}, next[TABLE_KEY_MAX] = {0};
    const void *at = NULL;
    while (bpf_map_get_next_key(fd, at, next) == 0) {
        struct table_row row = {0};
        memcpy(row.key, next, sizeof next);
        memcpy(key, next, sizeof key);
        at = key;
        if (bpf_map_lookup_elem(fd, row.key, row.value) < 0) {
            int r = -errno;
            free(rows);
            return err_sys(e, r, "read an eBPF map");
        }
        rows = grow(rows, &cap, n + 1, sizeof *rows);
        rows[n++] = row;
    }
    if (errno != ENOENT) {
        int r = -errno;
        free(rows);
        return err_sys(e, r, "list an eBPF map");
    }
    if (n) {
        qsort(rows, n, sizeof *rows, by_key);
    }
    table_done(t);
    *t = (struct table){.fd = fd, .rows = rows, .n = n};
    return 0;
}

void table_done(struct table *t)
{
    free(TAKE(t->rows));
    t->n = 0;
}

/* Sorts, and keeps the last one of each key. */
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

void table_sync(struct table *t, struct table_row *rows, size_t n, size_t *ret_changes,
                size_t *ret_refused, struct err *e)
{
    size_t changes = 0, refused = 0, kept = 0;
    n = normalize(rows, n);
    for (size_t i = 0; i < n; i++) {
        const struct table_row *there = find(t->rows, t->n, &rows[i]);
        if (!there || memcmp(there->value, rows[i].value, sizeof there->value) != 0) {
            changes++;
            if (bpf_map_update_elem(t->fd, rows[i].key, rows[i].value, BPF_ANY) < 0) {
                err_sys(e, -errno, "add to an eBPF map");
                refused++;
                if (!there) {
                    continue; /* What is there stays known, so that it can go. */
                }
                memcpy(rows[i].value, there->value, sizeof there->value);
            }
        }
        rows[kept++] = rows[i];
    }
    for (size_t i = 0; i < t->n; i++) {
        if (!find(rows, kept, &t->rows[i])) {
            changes++;
            bpf_map_delete_elem(t->fd, t->rows[i].key);
        }
    }
    free(t->rows);
    t->rows = rows;
    t->n = kept;
    *ret_changes = changes;
    *ret_refused = refused;
}
