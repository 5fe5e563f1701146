/* SPDX-License-Identifier: Apache-2.0 */
/* The power goes while the embedded store writes: of the WAL, what was synced for acknowledged
 * writes is there, and what came after it is there, cut off, or garbage; of the file, pages that
 * were being moved out of the WAL are garbage.  Whatever it is, opening shows one of the states
 * that the store has had, not older than the newest that was acknowledged.
 *
 * TENET_TORN_ROUNDS says how often (40 with five kinds of damage each; the long form: 5000). */
#include "harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEYS 40
#define BATCH_MAX 60
#define WAL_HEADER 32
#define FRAME_HEADER 24
#define PAGE 8192
#define FRAME (FRAME_HEADER + PAGE)

/* What each change did; index is the revision. */
struct change {
    int key;
    unsigned number, size; /* Of the value; size 0: deleted. */
};
static struct change *changes;
static size_t n_changes, cap_changes;

struct image {
    char *p;
    size_t size;
};

static struct image image_read(const char *path)
{
    struct stat st;
    struct image i = {0};
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return i;
    }
    assert_int_equal(fstat(fd, &st), 0);
    i.p = xmalloc((size_t) st.st_size + 1);
    ssize_t n = pread(fd, i.p, (size_t) st.st_size, 0);
    assert_true(n >= 0);
    i.size = (size_t) n;
    return i;
}

static void image_write(const char *path, const struct image *i)
{
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, i->p, i->size), i->size);
}

static struct image image_copy(const struct image *i)
{
    return (struct image){xmemdup(i->p ? i->p : "", i->size), i->size};
}

static uint32_t be32(const char *p)
{
    const unsigned char *u = (const unsigned char *) p;
    return (uint32_t) u[0] << 24 | (uint32_t) u[1] << 16 | (uint32_t) u[2] << 8 | u[3];
}

/* The end of the frames that belong to the WAL's present use: it is written over from its begin. */
static size_t wal_end(const struct image *wal)
{
    size_t end = WAL_HEADER;
    if (wal->size < WAL_HEADER) {
        return wal->size;
    }
    while (end + FRAME <= wal->size && memcmp(wal->p + end + 8, wal->p + 16, 8) == 0) {
        end += FRAME;
    }
    return end;
}

static int key_number(const char *key)
{
    uint64_t n = 0;
    assert_int_equal(str_to_u64(strrchr(key, '/') + 1, KEYS, &n), 0);
    return (int) n;
}

static void assert_value(const char *value, const struct change *c)
{
    char head[16];
    int n = snprintf(head, sizeof head, "%u:", c->number);
    assert_int_equal(strlen(value), c->size);
    assert_memory_equal(value, head, (size_t) MIN(n, (int) c->size));
}

/* The files in 'dir' hold the state of some revision from 'acknowledged' to 'last'. */
static void check_copy(const char *path, uint64_t acknowledged, uint64_t last)
{
    struct harness h;
    harness_init(&h, "sqlite");
    h.cfg.path = path;
    h.cfg.history = 1000;
    harness_open(&h);
    uint64_t r = h.snapshot_revision;
    assert_in_range(r, acknowledged, last);
    uint64_t at[KEYS] = {0};
    for (uint64_t i = 1; i <= r; i++) {
        at[changes[i].key] = changes[i].size ? i : 0;
    }
    size_t live = 0;
    for (int k = 0; k < KEYS; k++) {
        live += at[k] != 0;
    }
    assert_int_equal(h.n_items, live);
    for (size_t i = 0; i < h.n_items; i++) {
        int k = key_number(h.items[i].key);
        assert_int_equal(h.items[i].revision, at[k]);
        assert_value(h.items[i].value, &changes[at[k]]);
    }
    /* The history is that of the same changes, each once and in order. */
    for (size_t i = 0; i < h.n_history; i++) {
        const struct change *c = &changes[h.history[i].revision];
        assert_int_equal(h.history[i].revision, r - h.n_history + 1 + i);
        assert_int_equal(key_number(h.history[i].key), c->key);
        assert_int_equal(h.history[i].value != NULL, c->size != 0);
    }
    /* And it goes on. */
    uint64_t next = 0;
    assert_int_equal(put(&h, "/registry/torn/0", "0:", STORE_ANY, &next), 0);
    assert_int_equal(next, r + 1);
    harness_done(&h);
}

static unsigned seed = 20261121;

static unsigned below(size_t n)
{
    return n ? (unsigned) rand_r(&seed) % (unsigned) n : 0;
}

/* Writes of random sizes, some of them deletions, all acknowledged on return. */
static void write_batch(struct harness *h)
{
    struct result r[BATCH_MAX];
    struct change planned[BATCH_MAX];
    static unsigned number;
    size_t n = 1 + below(BATCH_MAX - 1);
    char *value = xmalloc(20000);
    for (size_t i = 0; i < n; i++) {
        char key[64];
        planned[i] = (struct change){.key = (int) below(KEYS)};
        snprintf(key, sizeof key, "/registry/torn/%d", planned[i].key);
        if (below(5) == 0) {
            begin_delete(h, &r[i], key, STORE_ANY);
            continue;
        }
        planned[i].number = number++;
        planned[i].size = below(8) ? 16 + below(500) : below(20000 - 16) + 16;
        memset(value, 'v', planned[i].size);
        int head = snprintf(value, 16, "%u:", planned[i].number);
        value[head] = 'v';
        begin_put_bytes(h, &r[i], key, value, planned[i].size, STORE_ANY);
    }
    wait_results(h, r, n);
    free(value);
    for (size_t i = 0; i < n; i++) {
        if (r[i].error == -ENOENT) {
            continue;
        }
        assert_int_equal(r[i].error, 0);
        changes = grow(changes, &cap_changes, r[i].revision + 1, sizeof *changes);
        changes[r[i].revision] = planned[i];
        n_changes = MAX(n_changes, (size_t) r[i].revision);
    }
}

enum damage { CUT, GARBAGE, ZEROS, FLIPPED, HALF_MOVED, N_DAMAGES };

/* 'safe': the WAL up to there was synced. */
static void damage(struct image *db, struct image *wal, size_t safe, enum damage kind)
{
    size_t from = safe + below(wal->size - safe + 1), n = below(wal->size - from + 1);
    switch (kind) {
    case CUT:
        wal->size = from;
        break;
    case GARBAGE:
        for (size_t i = 0; i < n; i++) {
            wal->p[from + i] = (char) below(256);
        }
        break;
    case ZEROS:
        if (n) {
            memset(wal->p + from, 0, n);
        }
        break;
    case FLIPPED:
        if (from < wal->size) {
            wal->p[from] ^= (char) (1 << below(8));
        }
        break;
    case HALF_MOVED:
    case N_DAMAGES:
        /* Of the pages that the WAL has synced, any may be half written in the file. */
        for (size_t at = WAL_HEADER; at + FRAME <= safe; at += FRAME) {
            size_t page = (size_t) (be32(wal->p + at) - 1) * PAGE;
            if (page + PAGE <= db->size && page && below(2)) {
                size_t begin = below(PAGE);
                for (size_t i = begin; i < PAGE; i++) {
                    db->p[page + i] = (char) below(256);
                }
            }
        }
    }
}

static void torn_writes_lose_nothing_that_was_acknowledged(void **state)
{
    struct harness h;
    const char *env = getenv("TENET_TORN_ROUNDS");
    uint64_t rounds = 40, tested = 0;
    if (env && *env) {
        assert_int_equal(str_to_u64(env, 1000000, &rounds), 0);
    }
    changes = NULL;
    n_changes = cap_changes = 0;
    harness_init(&h, "sqlite");
    h.cfg.history = 100000; /* So that all of it can be compared. */
    harness_open(&h);
    CLEANUP_FREE char *wal_path = xasprintf("%s-wal", h.path);
    CLEANUP_FREE char *copy_dir = xasprintf("%s/copy", h.dir);
    CLEANUP_FREE char *copy = xasprintf("%s/registry.db", copy_dir);
    CLEANUP_FREE char *copy_wal = xasprintf("%s-wal", copy);
    for (uint64_t round = 0; round < rounds; round++) {
        write_batch(&h);
        uint64_t acknowledged = n_changes;
        struct image wal = image_read(wal_path);
        size_t safe = wal_end(&wal);
        struct image header = {wal.p, MIN(wal.size, (size_t) WAL_HEADER)};
        write_batch(&h);
        struct image db = image_read(h.path), later = image_read(wal_path);
        /* Not when the WAL was begun anew meanwhile. */
        bool same = later.size >= WAL_HEADER && header.size == WAL_HEADER &&
                    memcmp(later.p, header.p, WAL_HEADER) == 0;
        for (int kind = 0; same && kind < N_DAMAGES; kind++) {
            struct image db_copy = image_copy(&db), wal_copy = image_copy(&later);
            damage(&db_copy, &wal_copy, safe, (enum damage) kind);
            remove_tree(copy_dir);
            assert_int_equal(mkdir(copy_dir, 0700), 0);
            image_write(copy, &db_copy);
            image_write(copy_wal, &wal_copy);
            check_copy(copy, acknowledged, n_changes);
            free(db_copy.p);
            free(wal_copy.p);
            tested++;
        }
        free(wal.p);
        free(db.p);
        free(later.p);
    }
    harness_close(&h);
    assert_true(tested > rounds * N_DAMAGES / 2);
    check_copy(h.path, n_changes, n_changes);
    harness_done(&h);
    free(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_writes_lose_nothing_that_was_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
