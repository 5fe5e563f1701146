/* SPDX-License-Identifier: Apache-2.0 */
/* Damage to the embedded store's files: bytes that flip, rows that vanish, files that
 * are deleted, replaced or cut off, at rest and under a running master.  What is served
 * is what was written, or nothing is.
 *
 * TENET_FLIP_ROUNDS says how many files are damaged at random (150; the long form: 20000). */
#include "harness.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_sum.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite_sum_register(db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void assert_says(const char *text, const char *expected)
{
    if (!strstr(text, expected)) {
        fail_msg("\"%s\" does not say \"%s\"", text, expected);
    }
}

static void assert_refused(struct harness *h, const char *why)
{
    struct err e = {0};
    struct store *s = NULL;
    assert_int_equal(store_open(h->loop, &h->cfg, &s, &e), -EUCLEAN);
    assert_says(e.text, h->path);
    assert_says(e.text, why);
}

/* ---- at rest ---- */

static void changed_rows_are_refused_and_named(void **state)
{
    static const struct {
        const char *damage, *why;
    } cases[] = {
        {"UPDATE change SET value = x'76317776' WHERE rev = 2",
         "change 2 of the key \"/registry/b\""},
        {"UPDATE change SET value = NULL WHERE rev = 3", "change 3 "},
        {"UPDATE change SET key = '/registry/bb' WHERE rev = 2",
         "change 2 of the key \"/registry/bb\""},
        {"UPDATE change SET sum = sum + 1 WHERE rev = 2", "change 2 "},
        {"UPDATE change SET rev = 20 WHERE rev = 2", "change 20 "},
        {"UPDATE change SET value = CAST(value AS TEXT) || 'x' WHERE rev = 1", "corrupt"},
        {"DELETE FROM change WHERE rev = 2", "some are missing"},
        {"DELETE FROM change WHERE rev = 4", "some are missing"},
        {"UPDATE state SET total = total + 1", "some are missing"},
        {"UPDATE state SET n = n + 1", "some are missing"},
        {"DELETE FROM state", "some are missing"},
        {"PRAGMA user_version = 0", "there is no schema 0"},
    };
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        harness_forget(h);
        harness_open(h);
        assert_int_equal(put(h, "/registry/a", "v1", STORE_ANY, NULL), 0);
        assert_int_equal(put(h, "/registry/b", "v1", STORE_ANY, NULL), 0);
        assert_int_equal(put(h, "/registry/c", "v1", STORE_ANY, NULL), 0);
        assert_int_equal(del(h, "/registry/c", STORE_ANY, NULL), 0);
        harness_close(h);
        sqlite3 *db = NULL;
        assert_int_equal(sqlite3_open(h->path, &db), SQLITE_OK);
        int rc = sqlite3_exec(db, cases[i].damage, NULL, NULL, NULL);
        sqlite3_close(db);
        if (rc == SQLITE_OK) { /* A strict table takes no value of another type at all. */
            assert_refused(h, cases[i].why);
        }
        remove_tree(h->dir);
        assert_int_equal(mkdir(h->dir, 0700), 0);
    }
}

static void database_without_checksums_gets_them_once(void **state)
{
    struct harness *h = *state;
    sql(h->path,
        "PRAGMA journal_mode = WAL;"
        "CREATE TABLE change (rev INTEGER PRIMARY KEY, prev_rev INTEGER NOT NULL,"
        " key TEXT NOT NULL, value BLOB) STRICT;"
        "PRAGMA application_id = 0x54656e65; PRAGMA user_version = 1;"
        "INSERT INTO change VALUES (3, 0, '/registry/a', x'31'), (5, 3, '/registry/a', x'32'),"
        " (6, 0, '/registry/b', x'33'), (7, 6, '/registry/b', NULL);");
    harness_open(h);
    assert_int_equal(h->n_items, 1);
    assert_string_equal(harness_item(h, "/registry/a")->value, "2");
    assert_int_equal(h->snapshot_revision, 7);
    assert_int_equal(put(h, "/registry/c", "4", STORE_ABSENT, NULL), 0);
    harness_close(h);
    harness_forget(h);
    harness_open(h);
    assert_int_equal(h->n_items, 2);
    harness_close(h);
    sql(h->path, "UPDATE change SET value = x'39' WHERE rev = 5");
    assert_refused(h, "change 5 ");
}

static void old_database_that_contradicts_itself_is_left_as_it_is(void **state)
{
    struct harness *h = *state;
    sql(h->path,
        "CREATE TABLE change (rev INTEGER PRIMARY KEY, prev_rev INTEGER NOT NULL,"
        " key TEXT NOT NULL, value BLOB) STRICT;"
        "PRAGMA application_id = 0x54656e65; PRAGMA user_version = 1;"
        "INSERT INTO change VALUES (3, 0, '/registry/a', x'31'), (5, 4, '/registry/a', x'32')");
    assert_refused(h, "change 5 does not fit");
    /* Still one of the old form. */
    sql(h->path,
        "INSERT INTO change (rev, prev_rev, key, value) VALUES (9, 0, '/registry/z', x'31')");
}

static void copy_file(const char *from, const char *to)
{
    char buf[65536];
    ssize_t n;
    CLEANUP(fd_close) int in = open(from, O_RDONLY | O_CLOEXEC);
    CLEANUP(fd_close) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, buf, sizeof buf)) > 0) {
        assert_int_equal(write(out, buf, (size_t) n), n);
    }
}

/* What a master that is killed leaves behind, in 'dir'. */
static void copy_files(const struct harness *h, const char *dir)
{
    static const char *const parts[] = {"", "-wal", ".lock"};
    remove_tree(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *from = xasprintf("%s%s", h->path, parts[i]);
        CLEANUP_FREE char *to = xasprintf("%s/registry.db%s", dir, parts[i]);
        copy_file(from, to);
    }
}

static void lost_changes_are_noticed_at_the_next_start(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *dir = xasprintf("%s/copy", h->dir);
    CLEANUP_FREE char *path = xasprintf("%s/registry.db", dir);
    CLEANUP_FREE char *wal = xasprintf("%s-wal", path);
    struct harness copy;
    harness_open(h);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(put(h, "/registry/a", "v", STORE_ANY, NULL), 0);
    }
    harness_init(&copy, "sqlite");
    copy.cfg.path = path;
    snprintf(copy.path, sizeof copy.path, "%s", path);
    /* The WAL is gone, or begins with something else. */
    copy_files(h, dir);
    assert_int_equal(unlink(wal), 0);
    assert_refused(&copy, "changes up to 5 were acknowledged");
    copy_files(h, dir);
    assert_int_equal(truncate(wal, 20), 0);
    assert_refused(&copy, "changes up to 5 were acknowledged");
    /* The file is gone: no empty registry takes its place. */
    copy_files(h, dir);
    assert_int_equal(unlink(path), 0);
    assert_refused(&copy, "the file is gone");
    assert_int_equal(access(path, F_OK), -1);
    /* An older one, which is whole. */
    copy_files(h, dir);
    assert_int_equal(put(h, "/registry/a", "v", STORE_ANY, NULL), 0);
    CLEANUP_FREE char *lock = xasprintf("%s.lock", path);
    CLEANUP_FREE char *newer = xasprintf("%s.lock", h->path);
    copy_file(newer, lock);
    assert_refused(&copy, "its newest change is 5, but changes up to 6");
    harness_done(&copy);
}

/* ---- bytes at random ---- */

#define FLIP_KEYS 40
static unsigned seed = 20261123;

static unsigned below(size_t n)
{
    return (unsigned) rand_r(&seed) % (unsigned) n;
}

static void flip_fill(struct harness *h)
{
    char *value = xmalloc(30000);
    for (int i = 0; i < 400; i++) {
        char key[64];
        struct result r;
        snprintf(key, sizeof key, "/registry/flip/%u", below(FLIP_KEYS));
        if (below(6) == 0) {
            begin_delete(h, &r, key, STORE_ANY);
        } else {
            size_t size = below(10) ? 20 + below(300) : 20 + below(29000);
            memset(value, 'a' + (int) below(26), size);
            begin_put_bytes(h, &r, key, value, size, STORE_ANY);
        }
        wait_results(h, &r, 1);
    }
    free(value);
}

static void assert_same_items(const struct harness *expected, const struct harness *found)
{
    assert_int_equal(found->n_items, expected->n_items);
    for (size_t i = 0; i < found->n_items; i++) {
        assert_string_equal(found->items[i].key, expected->items[i].key);
        assert_string_equal(found->items[i].value, expected->items[i].value);
        assert_int_equal(found->items[i].revision, expected->items[i].revision);
    }
    assert_int_equal(found->snapshot_revision, expected->snapshot_revision);
}

/* Whether the damaged copy is refused; if not, it shows what was written. */
static bool is_refused_or_right(const char *path, const struct harness *expected)
{
    struct harness h;
    struct err e = {0};
    struct store *s = NULL;
    harness_init(&h, "sqlite");
    h.cfg.path = path;
    bool refused = store_open(h.loop, &h.cfg, &s, &e) < 0;
    if (!refused) {
        s = store_close(s);
        harness_open(&h);
        assert_same_items(expected, &h);
    }
    harness_done(&h);
    return refused;
}

static void flip(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t at = (off_t) below((size_t) st.st_size);
    unsigned char c = 0;
    assert_int_equal(pread(fd, &c, 1, at), 1);
    /* A bit, or all of them. */
    unsigned by = below(2) ? 1u << below(8) : 1 + below(255);
    c ^= (unsigned char) by;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
}

static void flipped_bytes_never_change_what_is_served(void **state)
{
    struct harness *h = *state;
    struct harness expected;
    const char *env = getenv("TENET_FLIP_ROUNDS");
    uint64_t rounds = 150, refused = 0;
    if (env && *env) {
        assert_int_equal(str_to_u64(env, 10000000, &rounds), 0);
    }
    CLEANUP_FREE char *dir = xasprintf("%s/copy", h->dir);
    CLEANUP_FREE char *path = xasprintf("%s/registry.db", dir);
    CLEANUP_FREE char *wal = xasprintf("%s-wal", path);
    h->cfg.history = 50;
    harness_open(h);
    flip_fill(h);
    harness_close(h); /* All of it is in the file, */
    harness_forget(h);
    harness_open(h);
    flip_fill(h); /* and some in the WAL. */
    copy_files(h, dir);
    harness_init(&expected, "sqlite");
    expected.cfg.path = path;
    harness_open(&expected);
    harness_close(&expected);
    for (uint64_t i = 0; i < rounds; i++) {
        copy_files(h, dir);
        flip(below(2) ? path : wal);
        refused += is_refused_or_right(path, &expected);
    }
    /* Free room in pages, and pages that the WAL has anew, matter to nobody. */
    assert_true(refused > rounds / 10);
    harness_done(&expected);
}

/* ---- while a master works on them ---- */

static void damage_found_by_a_write_stops_writing(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    assert_int_equal(put(h, "/registry/a", "v1", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, "/registry/b", "v1", STORE_ANY, NULL), 0);
    sql(h->path, "UPDATE change SET value = x'00' WHERE rev = 1");
    assert_int_equal(put(h, "/registry/a", "v2", STORE_ANY, NULL), -EUCLEAN);
    harness_wait_lost(h, 1);
    assert_says(h->lost, "change 1 of the key \"/registry/a\" is not what was written");
    assert_int_equal(put(h, "/registry/b", "v2", STORE_ANY, NULL), -EAGAIN);
    harness_close(h);
    assert_refused(h, "change 1 ");
}

static struct result probe_result;

static int probe(struct harness *h)
{
    begin_probe(h, &probe_result);
    wait_results(h, &probe_result, 1);
    return probe_result.error;
}

/* Somebody writes into the file itself: what nobody asks for is read, too. */
static void file_that_was_written_over_is_read_again(void **state)
{
    struct harness *h = *state;
    harness_open(h);
    for (int i = 0; i < 300; i++) {
        char key[64], value[1000];
        memset(value, 'v', sizeof value);
        value[sizeof value - 1] = '\0';
        snprintf(key, sizeof key, "/registry/fill/%d", i);
        assert_int_equal(put(h, key, value, STORE_ANY, NULL), 0);
    }
    harness_close(h); /* Moves the WAL into the file. */
    harness_forget(h);
    harness_open(h);
    assert_int_equal(probe(h), 0);
    CLEANUP(fd_close) int fd = open(h->path, O_RDWR | O_CLOEXEC);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pwrite(fd, "xxxx", 4, st.st_size / 2), 4);
    assert_int_equal(probe(h), -EUCLEAN);
    harness_wait_lost(h, 1);
    assert_says(h->lost, "the file is corrupt");
}

static void delete_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void replace_file(const char *path)
{
    CLEANUP_FREE char *other = xasprintf("%s.other", path);
    copy_file(path, other);
    assert_int_equal(rename(other, path), 0);
}

static void cut_file(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void cut_end(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 100), 0);
}

static void overwrite_begin(const char *path)
{
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "garbage garbage garbage garbage ", 32, 0), 32);
}

static void files_that_go_under_a_running_master_are_noticed(void **state)
{
    static const struct {
        const char *part;
        void (*damage)(const char *path);
        const char *why;
    } cases[] = {
        {"", delete_file, "was deleted"},
        {"", replace_file, "was replaced"},
        {"", cut_file, "was cut off"},
        {"", cut_end, "was cut off"},
        {"-wal", delete_file, "was deleted"},
        {"-wal", replace_file, "was replaced"},
        {"-wal", cut_file, "was cut off or written over"},
        {"-wal", cut_end, "was cut off or written over"},
        {"-wal", overwrite_begin, "was cut off or written over"},
    };
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *victim = xasprintf("%s%s", h->path, cases[i].part);
        CLEANUP_FREE char *says = xasprintf("%s %s", victim, cases[i].why);
        remove_tree(h->dir);
        assert_int_equal(mkdir(h->dir, 0700), 0);
        harness_forget(h);
        h->n_lost = 0;
        harness_open(h);
        assert_int_equal(put(h, "/registry/a", "v1", STORE_ANY, NULL), 0);
        assert_int_equal(put(h, "/registry/b", "v1", STORE_ANY, NULL), 0);
        assert_int_equal(probe(h), 0);
        cases[i].damage(victim);
        assert_int_equal(put(h, "/registry/a", "v2", STORE_ANY, NULL), -EIO);
        harness_wait_lost(h, 1);
        assert_says(h->lost, says);
        assert_int_equal(put(h, "/registry/a", "v3", STORE_ANY, NULL), -EAGAIN);
        assert_int_equal(h->n_snapshots, 1);
        harness_close(h);
        /* The next start does not take what is left for the registry. */
        struct store *s = NULL;
        struct err e = {0};
        if (store_open(h->loop, &h->cfg, &s, &e) == 0) {
            s = store_close(s);
            harness_forget(h);
            harness_open(h);
            assert_string_equal(harness_item(h, "/registry/b")->value, "v1");
            harness_close(h);
        }
    }
}

/* ---- check and repair ---- */

#define SUBNET_KEY "/registry/network.openshift.io/hostsubnets/"
#define NET_KEY "/registry/network.openshift.io/netnamespaces/"

static void add_text(void *ctx, const char *text)
{
    strbuf_addf(ctx, "%s\n", text);
}

/* Keys of three kinds, two of each, in revisions 1 to 6; then /registry/pods/p/a again, 7. */
static void fill_kinds(struct harness *h)
{
    static const char *const keys[] = {"/registry/pods/p/a", "/registry/pods/p/b", SUBNET_KEY "n1",
                                       SUBNET_KEY "n2",      NET_KEY "p1",         NET_KEY "p2",
                                       "/registry/pods/p/a"};
    harness_forget(h);
    harness_open(h);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        assert_int_equal(put(h, keys[i], i < 6 ? "v" : "w", STORE_ANY, NULL), 0);
    }
    harness_close(h);
}

static void reopen(struct harness *h)
{
    harness_forget(h);
    harness_open(h);
    harness_close(h);
}

static void repair_takes_out_what_is_damaged_and_holds_numbers(void **state)
{
    static const struct {
        const char *damage, *says;
        const char *dropped[3];
        bool subnets, vnids;
    } cases[] = {
        /* What the key was before does not come back. */
        {"UPDATE change SET value = x'00' WHERE rev = 7",
         "change 7 of the key \"/registry/pods/p/a\"",
         {"/registry/pods/p/a"},
         false,
         false},
        {"UPDATE change SET value = NULL WHERE rev = 2",
         "change 2 of the key \"/registry/pods/p/b\"",
         {"/registry/pods/p/b"},
         false,
         false},
        {"UPDATE change SET value = x'00' WHERE rev = 3",
         "hostsubnets/n1\"",
         {SUBNET_KEY "n1"},
         true,
         false},
        {"UPDATE change SET value = x'00' WHERE rev = 6",
         "netnamespaces/p2\"",
         {NET_KEY "p2"},
         false,
         true},
        /* What it was cannot be told. */
        {"UPDATE change SET key = '/registry/network.openshift.io/hostsubnetz/n1' WHERE rev = 3",
         "hostsubnetz/n1\"",
         {SUBNET_KEY "n1"},
         true,
         true},
        {"UPDATE change SET key = '/registry/pods/p/x' WHERE rev = 7",
         "/registry/pods/p/x\"",
         {"/registry/pods/p/a"},
         false,
         false},
        {"DELETE FROM change WHERE rev = 4",
         "6 changes are there, 7 were written",
         {SUBNET_KEY "n2"},
         true,
         true},
        {"UPDATE state SET total = 0", "not those that were written", {NULL}, true, true},
        {"DELETE FROM state", "how many changes there were", {NULL}, true, true},
        {"DELETE FROM change WHERE rev = 7; UPDATE state SET n = 6, total = (SELECT "
         "sum_of_sums(sum)"
         " FROM change)",
         "changes up to 7 were acknowledged",
         {NULL},
         true,
         true},
    };
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sqlite_repair result = {0};
        struct sqlite_file_info info;
        struct err e = {0};
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        size_t n = 0;
        remove_tree(h->dir);
        assert_int_equal(mkdir(h->dir, 0700), 0);
        fill_kinds(h);
        sql(h->path, cases[i].damage);
        /* Looking changes nothing. */
        assert_int_equal(sqlite_file_check(h->path, add_text, &text, &info, &e), -EUCLEAN);
        assert_says(strbuf_cstr(&text), cases[i].says);
        assert_int_equal(sqlite_scan(h->path, add_text, &text, &n, &e), 0);
        assert_true(n > 0);
        assert_refused(h, "");
        if (sqlite_repair(h->path, add_text, &text, &result, &e) < 0) {
            fail_msg("%s", e.text);
        }
        assert_int_equal(result.holds_subnets, cases[i].subnets);
        assert_int_equal(result.holds_vnids, cases[i].vnids);
        assert_int_equal(access(result.kept, F_OK), 0);
        free(result.kept);
        reopen(h);
        assert_int_equal(harness_item(h, STORE_HOLD_SUBNETS) != NULL, cases[i].subnets);
        assert_int_equal(harness_item(h, STORE_HOLD_VNIDS) != NULL, cases[i].vnids);
        assert_true(h->snapshot_revision > 7);
        for (size_t k = 0; cases[i].dropped[k]; k++) {
            assert_null(harness_item(h, cases[i].dropped[k]));
        }
        assert_string_equal(harness_item(h, NET_KEY "p1")->value, "v");
        assert_int_equal(harness_item(h, NET_KEY "p1")->revision, 5);
        assert_int_equal(sqlite_file_check(h->path, add_text, &text, &info, &e), 0);
    }
}

static void repair_of_a_good_file_changes_nothing(void **state)
{
    struct harness *h = *state;
    struct sqlite_repair result;
    struct err e = {0};
    struct stat before, after;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    fill_kinds(h);
    assert_int_equal(stat(h->path, &before), 0);
    assert_int_equal(sqlite_repair(h->path, add_text, &text, &result, &e), 0);
    assert_int_equal(result.n_findings, 0);
    assert_int_equal(stat(h->path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(text.size, 0);
    harness_forget(h);
    harness_open(h);
    assert_int_equal(sqlite_repair(h->path, add_text, &text, &result, &e), -EBUSY);
}

/* Rows before and behind a page that cannot be read are saved. */
static void repair_reads_around_broken_pages(void **state)
{
    struct harness *h = *state;
    struct sqlite_repair result;
    struct err e = {0};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    char value[1001];
    memset(value, 'v', 1000);
    value[1000] = '\0';
    harness_open(h);
    for (int i = 0; i < 500; i++) {
        char key[64];
        snprintf(key, sizeof key, "/registry/pods/p/%03d", i);
        assert_int_equal(put(h, key, value, STORE_ANY, NULL), 0);
    }
    harness_close(h);
    CLEANUP(fd_close) int fd = open(h->path, O_RDWR | O_CLOEXEC);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char junk[8192];
    memset(junk, 0x5a, sizeof junk);
    assert_int_equal(pwrite(fd, junk, sizeof junk, st.st_size / 2 / 8192 * 8192), sizeof junk);
    assert_refused(h, "corrupt");
    unsigned before = open_descriptors();
    assert_int_equal(sqlite_repair(h->path, add_text, &text, &result, &e), 0);
    assert_int_equal(open_descriptors(), before);
    free(result.kept);
    assert_true(result.holds_subnets && result.holds_vnids);
    reopen(h);
    assert_in_range(h->n_items, 480, 500);
    assert_non_null(harness_item(h, "/registry/pods/p/000"));
    assert_non_null(harness_item(h, "/registry/pods/p/499"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, harness_set_up_sqlite, harness_tear_down)
    const struct CMUnitTest tests[] = {
        T(changed_rows_are_refused_and_named),
        T(database_without_checksums_gets_them_once),
        T(old_database_that_contradicts_itself_is_left_as_it_is),
        T(lost_changes_are_noticed_at_the_next_start),
        T(flipped_bytes_never_change_what_is_served),
        T(damage_found_by_a_write_stops_writing),
        T(file_that_was_written_over_is_read_again),
        T(repair_takes_out_what_is_damaged_and_holds_numbers),
        T(repair_of_a_good_file_changes_nothing),
        T(repair_reads_around_broken_pages),
        T(files_that_go_under_a_running_master_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
