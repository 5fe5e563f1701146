/* SPDX-License-Identifier: Apache-2.0 */
/* What only the embedded store must do: survive a crash at any moment, a full disk, and
 * files that it must not touch. */
#include "harness.h"
#include "store/sqlite/sqlite_sum.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leave_out.h"

static void sql(const struct harness *h, const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(h->path, &db), SQLITE_OK);
    assert_int_equal(sqlite_sum_register(db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void remove_database(const struct harness *h)
{
    CLEANUP_FREE char *lock = xasprintf("%s.lock", h->path);
    assert_int_equal(unlink(h->path), 0);
    assert_int_equal(unlink(lock), 0);
}

static int64_t sql_int(const struct harness *h, const char *text)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    assert_int_equal(sqlite3_open(h->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return v;
}

static void assert_refused(struct harness *h, int code, const char *why)
{
    struct err e = {0};
    struct store *s = NULL;
    assert_int_equal(store_open(h->loop, &h->cfg, &s, &e), code);
    assert_null(s);
    assert_non_null(strstr(e.text, h->path));
    if (!strstr(e.text, why)) {
        fail_msg("\"%s\" does not say \"%s\"", e.text, why);
    }
}

static void fill(struct harness *h, int n)
{
    struct result *r = xcalloc((size_t) n, sizeof *r);
    for (int i = 0; i < n; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/fill/%d", i);
        begin_put(h, &r[i], key, "some value", STORE_ANY);
    }
    wait_results(h, r, (size_t) n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(r[i].error, 0);
    }
    free(r);
}

static void file_is_for_its_owner_only(void **state)
{
    struct harness *h = *state;
    umask(0);
    harness_open(h);
    umask(022);
    fill(h, 10);
    struct stat st;
    assert_int_equal(stat(h->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    CLEANUP_FREE char *wal = xasprintf("%s-wal", h->path);
    assert_int_equal(stat(wal, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    harness_close(h);
    assert_int_equal(chmod(h->path, 0644), 0);
    harness_open(h);
    assert_int_equal(stat(h->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void foreign_files_are_refused_untouched(void **state)
{
    struct harness *h = *state;
    FILE *f = fopen(h->path, "w");
    fputs("This is the diary of somebody, and no database at all. Please leave it alone.\n"
          "It has more than one line, and in all more than a hundred bytes to be sure.\n",
          f);
    fclose(f);
    assert_refused(h, -EUCLEAN, "not a database");
    unlink(h->path);
    sql(h, "CREATE TABLE recipes (name)");
    assert_refused(h, -EMEDIUMTYPE, "belongs to another program");
    assert_int_equal(sql_int(h, "SELECT count(*) FROM sqlite_schema"), 1);
    unlink(h->path);
    assert_int_equal(mkdir(h->path, 0700), 0);
    assert_refused(h, -EINVAL, "not a regular file");
    rmdir(h->path);
    snprintf(h->path, sizeof h->path, "%s/absent/registry.db", h->dir);
    assert_refused(h, -ENOENT, "No such file or directory");
    struct store *s = NULL;
    h->cfg.path = NULL;
    assert_int_equal(store_open(h->loop, &h->cfg, &s, NULL), -EINVAL);
}

static void newer_schema_is_refused(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    fill(h, 3);
    harness_close(h);
    sql(h, "PRAGMA user_version = 3");
    assert_refused(h, -ENOTSUP, "newer version");
}

static void corrupt_file_is_refused(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    fill(h, 2000);
    harness_close(h);
    CLEANUP(fd_close) int fd = open(h->path, O_RDWR);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    /* The page after the first two, where the rows are. */
    char junk[4096];
    memset(junk, 0x5a, sizeof junk);
    assert_int_equal(pwrite(fd, junk, sizeof junk, st.st_size / 2), sizeof junk);
    assert_refused(h, -EUCLEAN, "corrupt");
    /* Cut off. */
    assert_int_equal(ftruncate(fd, st.st_size / 3), 0);
    assert_refused(h, -EUCLEAN, "corrupt");
}

static void rows_that_contradict_each_other_are_refused(void **state)
{
    static const char *const damage[] = {
        "UPDATE change SET prev_rev = 1 WHERE rev = 3",
        "UPDATE change SET key = 'other' WHERE rev = 2",
        "UPDATE change SET prev_rev = 9 WHERE rev = 2",
        "INSERT INTO change VALUES (100, 0, '/registry/x', NULL, 0)",
        "INSERT INTO change VALUES (9, 0, '/registry/a', x'31', 0)",
    };
    /* So that only the contradiction is left to be found. */
    static const char sums[] = "UPDATE change SET sum = row_sum(rev, prev_rev, key, value);"
                               "UPDATE state SET n = (SELECT count(*) FROM change),"
                               " total = (SELECT sum_of_sums(sum) FROM change)";
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_SIZE(damage); i++) {
        harness_forget(h);
        harness_open(h);
        for (int n = 0; n < 4; n++) {
            assert_int_equal(put(h, "/registry/a", "v", STORE_ANY, NULL), 0);
        }
        harness_close(h);
        sql(h, damage[i]);
        sql(h, sums);
        assert_refused(h, -EUCLEAN, "does not fit those before it");
        remove_database(h);
    }
}

static void second_process_is_refused(void **state)
{
    struct harness *h = *state;
    pid_t pid = 0;
    int up[2], down[2];
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        struct harness child;
        harness_init(&child, "sqlite");
        child.cfg.path = h->path;
        harness_open(&child);
        char c = 'x';
        bool ok = write(up[1], &c, 1) == 1 && read(down[0], &c, 1) == 1;
        harness_done(&child);
        _exit(ok ? 0 : 1);
    }
    char c;
    assert_int_equal(read(up[0], &c, 1), 1);
    assert_refused(h, -EBUSY, "in use by process ");
    assert_int_equal(write(down[1], &c, 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    harness_open(h);
    /* And by the same process. */
    assert_refused(h, -EBUSY, "in use by process ");
    fill(h, 1);
    for (int i = 0; i < 4; i++) {
        fd_close(i < 2 ? up[i] : down[i - 2]);
    }
}

/* As a backup does, or a curious administrator. */
static void others_may_read_while_we_write(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    fill(h, 500);
    CLEANUP_FREE char *copy = xasprintf("%s/copy.db", h->dir);
    CLEANUP_FREE char *vacuum = xasprintf("VACUUM INTO '%s'", copy);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(h->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, vacuum, NULL, NULL, NULL), SQLITE_OK);
    /* A reader that stays: the WAL cannot be reset, and nothing else suffers. */
    assert_int_equal(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM change", NULL, NULL, NULL),
                     SQLITE_OK);
    char value[8000];
    memset(value, 'v', sizeof value);
    for (int round = 0; round < 12; round++) {
        struct result r[500];
        for (int i = 0; i < 500; i++) {
            begin_put_bytes(h, &r[i], "/registry/hot", value, sizeof value, STORE_ANY);
        }
        wait_results(h, r, 500);
        assert_int_equal(r[499].error, 0);
    }
    sqlite3_close(db);
    assert_int_equal(h->n_lost, 0);
    harness_close(h);
    harness_forget(h);
    h->cfg.path = copy;
    harness_open(h);
    assert_int_equal(h->n_items, 500);
}

/* Nothing that it wrote can be trusted, and nothing of it is served. */
static void write_of_another_program_is_found_out(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "1", STORE_ABSENT, NULL), 0);
    sql(h, "INSERT INTO change VALUES (2, 0, '/registry/b', x'41', 0)");
    assert_int_equal(put(h, "/registry/c", "1", STORE_ABSENT, NULL), -EIO);
    harness_wait_lost(h, 1);
    assert_non_null(strstr(h->lost, "another program wrote to it"));
    harness_close(h);
    assert_refused(h, -EUCLEAN, "change 2 of the key \"/registry/b\"");
}

/* ---- crashes ---- */

struct acknowledged {
    uint64_t revision;
    int key, value; /* value -1: deleted */
};

#define CRASH_KEYS 50
#define CRASH_OPEN 16

struct crash_writer {
    struct store *store;
    int fd;
    unsigned seed, next;
    struct crash_op {
        struct crash_writer *c;
        int key, value;
    } op[CRASH_OPEN];
};

static void crash_next(struct crash_op *op);

static void crash_done(void *ctx, int error, uint64_t revision)
{
    struct crash_op *op = ctx;
    if (error == 0) {
        struct acknowledged a = {revision, op->key, op->value};
        if (write(op->c->fd, &a, sizeof a) != sizeof a) {
            _exit(2);
        }
    } else if (error != -ENOENT) {
        _exit(3);
    }
    crash_next(op);
}

static void crash_next(struct crash_op *op)
{
    struct crash_writer *c = op->c;
    char key[64], value[2048];
    op->key = (int) ((unsigned) rand_r(&c->seed) % CRASH_KEYS);
    snprintf(key, sizeof key, "/registry/crash/%d", op->key);
    if (rand_r(&c->seed) % 4 == 0) {
        op->value = -1;
        store_delete(c->store, key, STORE_ANY, crash_done, op);
        return;
    }
    op->value = (int) c->next++;
    int n = snprintf(value, sizeof value, "%d ", op->value);
    memset(value + n, 'p', 1500);
    CLEANUP(blob_unref) struct blob *b = blob_new(value, (size_t) n + 1500);
    store_put(c->store, key, b, STORE_ANY, crash_done, op);
}

static void crash_snapshot(void *ctx, struct store_item *items, size_t n, uint64_t revision)
{
    struct crash_writer *c = ctx;
    for (int i = 0; i < CRASH_OPEN; i++) {
        c->op[i].c = c;
        crash_next(&c->op[i]);
    }
}

static void crash_event(void *ctx, const struct store_event *ev)
{
}

static void crash_child(const char *path, int fd, unsigned seed)
{
    static const struct store_watcher watcher = {.snapshot = crash_snapshot, .event = crash_event};
    struct crash_writer c = {.fd = fd, .seed = seed, .next = seed * 100000};
    struct store_config cfg = {.backend = "sqlite", .path = path, .history = 20};
    struct loop *l = loop_new();
    if (store_open(l, &cfg, &c.store, NULL) < 0) {
        _exit(4);
    }
    store_start(c.store, &watcher, &c);
    loop_run(l);
    _exit(5);
}

/* Of a value: the number before its padding. */
static int number_of(const char *value)
{
    CLEANUP_FREE char *digits = xstrndup(value, strcspn(value, " "));
    uint64_t n = 0;
    assert_int_equal(str_to_u64(digits, INT32_MAX, &n), 0);
    return (int) n;
}

static void nothing_acknowledged_is_lost_by_kill_9(void **state)
{
    struct harness *h = *state;
    struct acknowledged last[CRASH_KEYS] = {0};
    uint64_t newest = 0;
    size_t total = 0;
    h->cfg.history = 20;
    for (unsigned round = 1; round <= 12; round++) {
        int p[2];
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
            fd_close(p[0]);
            crash_child(h->path, p[1], round);
        }
        fd_close(p[1]);
        struct acknowledged a;
        size_t n = 0;
        for (; read(p[0], &a, sizeof a) == sizeof a; n++) {
            assert_true(a.revision > newest); /* In order, and never a second time. */
            newest = a.revision;
            last[a.key] = a;
            if (n == 10 + round * 97) {
                kill(pid, SIGKILL); /* What it wrote before is still read. */
            }
        }
        fd_close(p[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_true(n >= 10 + round * 97);
        total += n;

        harness_forget(h);
        harness_open(h);
        assert_true(h->snapshot_revision >= newest);
        newest = h->snapshot_revision;
        for (int k = 0; k < CRASH_KEYS; k++) {
            char key[64];
            snprintf(key, sizeof key, "/registry/crash/%d", k);
            const struct seen_item *item = harness_item(h, key);
            /* A write that was not acknowledged may have come after. */
            if (item) {
                assert_true(item->revision >= last[k].revision);
                int value = number_of(item->value);
                if (item->revision == last[k].revision) {
                    assert_int_equal(value, last[k].value);
                }
                last[k] = (struct acknowledged){item->revision, k, value};
            } else if (last[k].revision && last[k].value >= 0) {
                bool deleted_later = false;
                for (size_t i = 0; i < h->n_history; i++) {
                    deleted_later |= streq(h->history[i].key, key) && !h->history[i].value &&
                                     h->history[i].revision > last[k].revision;
                }
                assert_true(deleted_later);
                last[k].value = -1;
            }
        }
        harness_close(h);
    }
    assert_true(total > 5000);
}

/* ---- compaction ---- */

static void compaction_keeps_live_values_and_history_only(void **state)
{
    struct harness *h = *state;
    h->cfg.history = 30;
    harness_open(h);
    fill(h, 100);
    for (int round = 0; round < 10; round++) {
        struct result r[40];
        for (int i = 0; i < 40; i++) {
            char key[64];
            snprintf(key, sizeof key, "/registry/fill/%d", i);
            if (i % 10 == 5 && round % 2) {
                begin_delete(h, &r[i], key, STORE_ANY);
            } else {
                begin_put(h, &r[i], key, "newer", STORE_ANY);
            }
        }
        wait_results(h, r, 40);
    }
    harness_close(h);
    /* 96 live ones, the newest 30 changes, and what those replaced. */
    int64_t rows = sql_int(h, "SELECT count(*) FROM change");
    assert_in_range(rows, 96, 96 + 30 + 30);
    assert_int_equal(sql_int(h, "SELECT max(rev) FROM change"), 500);
    assert_int_equal(sql_int(h, "SELECT count(*) FROM change WHERE value IS NULL AND rev <= 470"),
                     0);
    harness_forget(h);
    harness_open(h);
    assert_int_equal(h->n_items, 96);
    assert_int_equal(h->n_history, 30);
    assert_int_equal(h->history[0].revision, 471);
    for (size_t i = 0; i < 30; i++) {
        assert_true(h->history[i].prev != NULL);
    }
    harness_close(h);
    /* Shorter: the backlog is worked off while nothing is written. */
    h->cfg.history = 1;
    harness_forget(h);
    harness_open(h);
    assert_int_equal(h->n_history, 1);
    harness_close(h);
    bool done = false;
    for (int i = 0; i < 100 && !done; i++) {
        bool never = false;
        harness_open(h);
        loop_run_until(h->loop, &never, 150);
        harness_close(h);
        done = sql_int(h, "SELECT count(*) FROM change") <= 96 + 2;
    }
    assert_true(done);
    /* Longer again: what is gone does not come back as a wrong history. */
    h->cfg.history = 1000;
    harness_forget(h);
    harness_open(h);
    assert_int_equal(h->n_items, 96);
    assert_in_range(h->n_history, 1, 2);
    assert_int_equal(h->snapshot_revision, 500);
}

/* What a watch is told from the history on has no gap: neither a change nor what one
 * replaced is missing. */
static void history_begins_after_the_last_hole(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(h, "/registry/a", "v", STORE_ANY, NULL), 0);
    }
    harness_close(h);
    h->cfg.min_revision = 100; /* Revisions jump, as after a restored backup. */
    harness_forget(h);
    harness_open(h);
    assert_int_equal(put(h, "/registry/b", "v", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, "/registry/a", "w", STORE_ANY, NULL), 0);
    harness_close(h);
    h->cfg.min_revision = 0;
    harness_forget(h);
    harness_open(h);
    assert_int_equal(h->n_history, 2);
    assert_int_equal(h->history[0].revision, 101);
    assert_string_equal(h->history[1].prev, "v");
    harness_close(h);
    /* A change whose old value is not kept any more. */
    h->cfg.history = 1;
    harness_forget(h);
    harness_open(h);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(h, i % 2 ? "/registry/a" : "/registry/b", "x", STORE_ANY, NULL), 0);
    }
    harness_close(h);
    h->cfg.history = 1000;
    harness_forget(h);
    harness_open(h);
    for (size_t i = 0; i < h->n_history; i++) {
        assert_non_null(h->history[i].prev);
    }
    assert_in_range(h->n_history, 1, 2);
}

static void file_does_not_grow_with_the_number_of_changes(void **state)
{
    struct harness *h = *state;
    h->cfg.history = 50;
    harness_open(h);
    char value[4000];
    memset(value, 'v', sizeof value);
    int64_t first = 0, last = 0;
    CLEANUP_FREE char *wal = xasprintf("%s-wal", h->path);
    struct stat st;
    for (int round = 0; round < 20; round++) {
        struct result r[500];
        for (int i = 0; i < 500; i++) {
            char key[64];
            snprintf(key, sizeof key, "/registry/grow/%d", i % 20);
            begin_put_bytes(h, &r[i], key, value, sizeof value, STORE_ANY);
        }
        wait_results(h, r, 500);
        assert_int_equal(stat(wal, &st), 0);
        assert_in_range(st.st_size, 0, 80 << 20);
    }
    harness_close(h);
    assert_int_equal(stat(h->path, &st), 0);
    first = 120 * (int64_t) sizeof value;
    last = st.st_size;
    assert_true(last < 20 * first);
}

/* ---- a disk that fails ---- */

static void set_file_limit(rlim_t limit)
{
    struct rlimit rl;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &rl), 0);
    rl.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &rl), 0);
}

static void disk_trouble(struct harness *h, int error, void (*trouble)(void *ctx, bool on),
                         void *ctx)
{
    harness_open(h);
    fill(h, 50);
    uint64_t before = 0;
    assert_int_equal(put(h, "/registry/k", "good", STORE_ABSENT, &before), 0);
    trouble(ctx, true);
    /* In the end one cannot be written. */
    char *big = xcalloc(1, 1 << 20);
    int r = 0;
    unsigned acknowledged = 0;
    for (int i = 0; i < 100 && r == 0; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/big/%d", i);
        struct result one;
        begin_put_bytes(h, &one, key, big, 1 << 20, STORE_ANY);
        wait_results(h, &one, 1);
        r = one.error;
        acknowledged += r == 0;
    }
    assert_int_equal(r, error);
    harness_wait_lost(h, 1);
    assert_non_null(strstr(h->lost, h->path));
    assert_int_equal(put(h, "/registry/k", "bad", STORE_ANY, NULL), -EAGAIN);
    trouble(ctx, false);
    harness_wait_snapshots(h, h->n_snapshots + 1);
    free(big);
    assert_string_equal(harness_item(h, "/registry/k")->value, "good");
    assert_int_equal(h->n_items, 50 + 1 + acknowledged);
    assert_true(h->snapshot_revision >= before);
    uint64_t after = 0;
    assert_int_equal(put(h, "/registry/k", "better", before, &after), 0);
    assert_true(after > h->snapshot_revision);
    harness_close(h);
    harness_forget(h);
    harness_open(h);
    assert_string_equal(harness_item(h, "/registry/k")->value, "better");
}

static void file_limit_fail(void *ctx, bool on)
{
    set_file_limit(on ? 3 << 20 : RLIM_INFINITY);
}

static void failed_writes_are_reported_and_the_store_comes_back(void **state)
{
    signal(SIGXFSZ, SIG_IGN);
    disk_trouble(*state, -EFBIG, file_limit_fail, NULL);
}

/* Groups of writes that were taken together: when the first one fails, the database is closed for
 * the others. */
static void writes_behind_one_that_failed_are_refused(void **state)
{
    enum { N = 40 };
    struct harness *h = *state;
    struct result r[N];
    size_t acknowledged = 0;
    CLEANUP_FREE char *zeros = xcalloc(1, 1 << 20);
    CLEANUP(blob_unref) struct blob *big = blob_new(zeros, 1 << 20);
    signal(SIGXFSZ, SIG_IGN);
    harness_open(h);
    set_file_limit(3 << 20);
    /* One blob for all, so that the last write is queued long before the first has failed. */
    for (int i = 0; i < N; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/big/%d", i);
        begin_put_blob(h, &r[i], key, big, STORE_ANY);
    }
    wait_results(h, r, N);
    set_file_limit(RLIM_INFINITY);
    for (int i = 0; i < N; i++) {
        assert_true(r[i].error == 0 || r[i].error == -EFBIG || r[i].error == -EAGAIN);
        assert_true(i == 0 || r[i].error || !r[i - 1].error);
        acknowledged += r[i].error == 0;
    }
    assert_int_equal(r[N - 1].error, -EAGAIN);
    harness_wait_lost(h, 1);
    harness_wait_snapshots(h, 2);
    assert_int_equal(h->n_items, acknowledged);
    /* The store may have come back, and failed again, before the limit was lifted. */
    int error = -EAGAIN;
    for (int i = 0; i < 200 && error == -EAGAIN; i++) {
        bool never = false;
        error = put(h, "/registry/k", "good", STORE_ABSENT, NULL);
        if (error) {
            loop_run_until(h->loop, &never, 20);
        }
    }
    assert_int_equal(error, 0);
}

static void fill_disk(void *ctx, bool on)
{
    struct harness *h = ctx;
    CLEANUP_FREE char *path = xasprintf("%s/ballast", h->dir);
    if (!on) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    char junk[65536] = {0};
    while (write(fd, junk, sizeof junk) > 0) {
    }
}

/* Calls 'fn' in a child with a small disk of its own; its exit status is the result. */
static void on_small_disk(struct harness *h, const char *size, void (*fn)(struct harness *h))
{
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", h->dir, "tmpfs", 0, size) < 0) {
            _exit(77);
        }
        struct harness child;
        harness_init(&child, "sqlite");
        rmdir(child.dir);
        snprintf(child.dir, sizeof child.dir, "%s", h->dir);
        child.cfg.path = child.path;
        snprintf(child.path, sizeof child.path, "%s", h->path);
        fn(&child);
        harness_close(&child);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        LEAVE_OUT("a file system cannot be mounted here");
    }
    assert_int_equal(status, 0);
}

static void fill_and_empty_disk(struct harness *h)
{
    disk_trouble(h, -ENOSPC, fill_disk, h);
}

static void full_disk_is_survived(void **state)
{
    on_small_disk(*state, "size=6m", fill_and_empty_disk);
}

static int probe(struct harness *h)
{
    struct result r;
    begin_probe(h, &r);
    wait_results(h, &r, 1);
    return r.error;
}

static void use_reserve(struct harness *h)
{
    CLEANUP_FREE char *reserve = xasprintf("%s.reserve", h->path);
    char *value = xcalloc(1, 5001);
    struct stat st;
    h->cfg.reserve = 4 << 20;
    harness_open(h);
    assert_int_equal(stat(reserve, &st), 0);
    assert_int_equal(st.st_size, 4 << 20);
    assert_true(st.st_blocks * 512 >= 4 << 20);
    memset(value, 'v', 5000);
    for (int i = 0; i < 400; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/fill/%d", i);
        assert_int_equal(put(h, key, value, STORE_ABSENT, NULL), 0);
    }
    fill_disk(h, true);
    int r = 0;
    for (int i = 0; i < 2000 && r == 0; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/more/%d", i);
        r = put(h, key, value, STORE_ABSENT, NULL);
    }
    assert_int_equal(r, -ENOSPC);
    harness_wait_snapshots(h, 2); /* It works again, with the reserve's room. */
    assert_int_equal(stat(reserve, &st), 0);
    assert_int_equal(st.st_blocks, 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(put(h, "/registry/new", "v", STORE_ABSENT, NULL), -ENOSPC);
        assert_int_equal(put(h, "/registry/fill/0", "grow", STORE_ABSENT, NULL), -EEXIST);
        assert_int_equal(claiming(h, "/registry/fill/0", value, STORE_ANY,
                                  (const char *const[]){"/registry/claim", NULL}, NULL),
                         -ENOSPC);
        assert_int_equal(probe(h), -ENOSPC);
        /* Steps of a deletion grow within bounds, and make nothing new. */
        CLEANUP_FREE char *marked = xasprintf("%s%0*d", value, STORE_ENDING_GROWTH, 0);
        CLEANUP_FREE char *too_long = xasprintf("%s0", marked);
        assert_int_equal(put_ending(h, "/registry/fill/0", too_long), -ENOSPC);
        assert_int_equal(put_ending(h, "/registry/new", "v"), -ENOSPC);
        assert_int_equal(put_ending(h, "/registry/fill/0", marked), 0);
        /* A lease that is renewed, and deletions. */
        for (int i = 0; i < 300; i++) {
            assert_int_equal(put(h, "/registry/fill/0", value, STORE_ANY, NULL), 0);
        }
        for (int i = 1; i <= 100; i++) {
            char key[64];
            snprintf(key, sizeof key, "/registry/fill/%d", 100 * round + i);
            assert_int_equal(del(h, key, STORE_ANY, NULL), 0);
        }
        if (round == 0) { /* A restart does not forget it. */
            harness_close(h);
            harness_forget(h);
            harness_open(h);
        }
    }
    value[4999] = '\0';
    assert_int_equal(put(h, "/registry/fill/0", value, STORE_ANY, NULL), 0);
    value[4999] = 'v';
    assert_int_equal(put(h, "/registry/fill/0", value, STORE_ANY, NULL), -ENOSPC);
    fill_disk(h, false);
    while (probe(h) != 0) {
        bool never = false;
        loop_run_until(h->loop, &never, 50);
    }
    assert_int_equal(stat(reserve, &st), 0);
    assert_int_equal(st.st_size, 4 << 20);
    assert_int_equal(put(h, "/registry/new", "v", STORE_ABSENT, NULL), 0);
    free(value);
}

static void deletions_go_through_while_the_disk_is_full(void **state)
{
    on_small_disk(*state, "size=24m", use_reserve);
}

/* What deletions free in the file is used again, though the disk is full. */
static void make_room_in_the_file(struct harness *h)
{
    char *value = xcalloc(1, 5001);
    memset(value, 'v', 5000);
    h->cfg.reserve = 3 << 20;
    harness_open(h);
    for (int i = 0; i < 1000; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/fill/%d", i);
        assert_int_equal(put(h, key, value, STORE_ABSENT, NULL), 0);
    }
    fill_disk(h, true);
    int r = 0;
    for (int i = 0; i < 4000 && r == 0; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/more/%d", i);
        r = put(h, key, value, STORE_ABSENT, NULL);
    }
    assert_int_equal(r, -ENOSPC);
    harness_wait_snapshots(h, 2);
    for (int i = 0; i < 800; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/fill/%d", i);
        assert_int_equal(del(h, key, STORE_ANY, NULL), 0);
    }
    while (probe(h) != 0) {
        bool never = false;
        loop_run_until(h->loop, &never, 50);
    }
    assert_int_equal(put(h, "/registry/new", value, STORE_ABSENT, NULL), 0);
    free(value);
}

static void room_that_deletions_make_is_used(void **state)
{
    on_small_disk(*state, "size=24m", make_room_in_the_file);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, harness_set_up_sqlite, harness_tear_down)
    const struct CMUnitTest tests[] = {
        T(file_is_for_its_owner_only),
        T(foreign_files_are_refused_untouched),
        T(newer_schema_is_refused),
        T(corrupt_file_is_refused),
        T(rows_that_contradict_each_other_are_refused),
        T(second_process_is_refused),
        T(others_may_read_while_we_write),
        T(write_of_another_program_is_found_out),
        T(nothing_acknowledged_is_lost_by_kill_9),
        T(compaction_keeps_live_values_and_history_only),
        T(history_begins_after_the_last_hole),
        T(file_does_not_grow_with_the_number_of_changes),
        T(failed_writes_are_reported_and_the_store_comes_back),
        T(writes_behind_one_that_failed_are_refused),
        T(full_disk_is_survived),
        T(deletions_go_through_while_the_disk_is_full),
        T(room_that_deletions_make_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
