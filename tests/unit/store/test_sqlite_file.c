/* SPDX-License-Identifier: Apache-2.0 */
/* Backups, checks, restores and defragmentation of a database as a whole. */
#include "store/sqlite/sqlite_file.h"

#include "harness.h"
#include "leave_out.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "/registry/namespaces/"

/* A path in the test's folder; owned. */
static char *in(const struct harness *h, const char *name)
{
    return xasprintf("%s/%s", h->dir, name);
}

/* Fills the database with keys k0 ... and closes it. */
static void fill(struct harness *h, unsigned n)
{
    harness_open(h);
    for (unsigned i = 0; i < n; i++) {
        CLEANUP_FREE char *key = xasprintf(KEY "k%u", i);
        assert_int_equal(put(h, key, "{}", STORE_ANY, NULL), 0);
    }
    harness_close(h);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void ignore(void *ctx, const char *text)
{
    (*(size_t *) ctx)++;
}

static void a_backup_has_all_and_appears_whole(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info info = {0}, checked = {0};
    struct err e = {0};
    struct stat st;
    size_t findings = 0;
    CLEANUP_FREE char *to = in(h, "copy.db");
    CLEANUP_FREE char *part = in(h, "copy.db.part");
    fill(h, 5);
    harness_open(h); /* While a master works on it. */
    assert_int_equal(sqlite_file_backup(h->path, to, &info, &e), 0);
    assert_int_equal(info.n_keys, 5);
    assert_int_equal(info.revision, h->snapshot_revision);
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(info.size, st.st_size);
    assert_false(exists(part));
    /* It is not replaced. */
    assert_int_equal(sqlite_file_backup(h->path, to, &info, &e), -EEXIST);
    assert_non_null(strstr(e.text, "exists: give another name, or remove it"));
    assert_int_equal(sqlite_file_check(to, ignore, &findings, &checked, &e), 0);
    assert_int_equal(checked.n_keys, 5);
    assert_int_equal(checked.revision, info.revision);
    assert_int_equal(findings, 0);
    harness_close(h);
}

static void a_backup_of_what_is_no_database_fails_and_leaves_nothing(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info info = {0};
    struct err e = {0};
    CLEANUP_FREE char *to = in(h, "copy.db");
    CLEANUP_FREE char *part = in(h, "copy.db.part");
    CLEANUP_FREE char *absent = in(h, "absent.db");
    CLEANUP_FREE char *text = in(h, "text.db");
    CLEANUP_FREE char *bad_place = in(h, "no-such-folder/copy.db");
    assert_int_equal(sqlite_file_backup(absent, to, &info, &e), -ENOENT);
    assert_non_null(strstr(e.text, absent));
    assert_false(exists(absent));
    assert_int_equal(
        file_write_atomic(text, "no database at all, but long enough to look at", 46, 0600, &e), 0);
    assert_int_equal(sqlite_file_backup(text, to, &info, &e), -EUCLEAN);
    assert_non_null(strstr(e.text, "not a database"));
    assert_int_equal(sqlite_file_backup(h->dir, to, &info, &e), -EACCES);
    assert_non_null(strstr(e.text, "unable to open database file"));
    fill(h, 1);
    assert_int_equal(sqlite_file_backup(h->path, bad_place, &info, &e), -ENOENT);
    assert_false(exists(to));
    assert_false(exists(part));
    /* A part that a backup left behind when it was killed is in nobody's way. */
    assert_int_equal(file_write_atomic(part, "x", 1, 0600, &e), 0);
    assert_int_equal(sqlite_file_backup(h->path, to, &info, &e), 0);
    assert_false(exists(part));
}

/* Changes one byte of the row of the key k1. */
static void damage(const struct harness *h)
{
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    struct err e = {0};
    assert_int_equal(file_read(h->path, SIZE_MAX / 4, &bytes, &e), 0);
    char *found = memmem(bytes.data, bytes.size, KEY "k1", sizeof KEY + 1);
    assert_non_null(found);
    found[sizeof KEY]++;
    assert_int_equal(file_write_atomic(h->path, bytes.data, bytes.size, 0600, &e), 0);
}

static void a_check_names_the_file_and_what_it_found(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info info = {0};
    struct err e = {0};
    size_t findings = 0;
    CLEANUP_FREE char *copy = in(h, "registry.db.check");
    fill(h, 3);
    assert_int_equal(sqlite_file_check(h->path, ignore, &findings, &info, &e), 0);
    assert_int_equal(info.n_keys, 3);
    struct stat st;
    assert_int_equal(stat(h->path, &st), 0);
    assert_int_equal(info.size, st.st_size);
    assert_false(exists(copy));
    damage(h);
    assert_int_equal(sqlite_file_check(h->path, ignore, &findings, &info, &e), -EUCLEAN);
    assert_true(findings > 0);
    CLEANUP_FREE char *want =
        xasprintf("database %s: the file is corrupt: %zu findings", h->path, findings);
    assert_string_equal(e.text, want);
}

static void a_restore_goes_on_after_the_newest_revision(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info saved = {0}, info = {0};
    struct err e = {0};
    CLEANUP_FREE char *to = in(h, "copy.db");
    fill(h, 2);
    assert_int_equal(sqlite_file_backup(h->path, to, &saved, &e), 0);
    fill(h, 6);
    /* Keys are replaced only by force, and never below a master. */
    assert_int_equal(sqlite_file_restore(to, h->path, false, &info, &e), -EEXIST);
    assert_non_null(strstr(e.text, "has 6 keys: --force replaces them"));
    harness_open(h);
    uint64_t newest = h->snapshot_revision;
    assert_int_equal(sqlite_file_restore(to, h->path, true, &info, &e), -EBUSY);
    harness_close(h);
    assert_int_equal(sqlite_file_restore(to, h->path, true, &info, &e), 0);
    assert_int_equal(info.n_keys, 2);
    assert_true(info.revision > newest);
    harness_open(h);
    assert_int_equal(h->n_items, 2);
    assert_int_equal(h->snapshot_revision, info.revision);
    harness_close(h);
    /* Into a place where nothing is, the backup keeps its revision. */
    CLEANUP_FREE char *fresh = in(h, "fresh.db");
    assert_int_equal(sqlite_file_restore(to, fresh, false, &info, &e), 0);
    assert_int_equal(info.revision, saved.revision);
    assert_true(exists(fresh));
    assert_true(exists(to));
}

/* "tenet store" runs as root, and a master as its own user. */
static void a_restore_leaves_the_files_to_the_owner_of_the_registry(void **state)
{
    struct harness *h = *state;
    NEEDS_ROOT();
    struct sqlite_file_info info = {0};
    struct err e = {0};
    struct stat st;
    CLEANUP_FREE char *to = in(h, "copy.db");
    CLEANUP_FREE char *sub = in(h, "state");
    CLEANUP_FREE char *fresh = in(h, "state/registry.db");
    CLEANUP_FREE char *lock = in(h, "state/registry.db.lock");
    CLEANUP_FREE char *victim = in(h, "victim");
    fill(h, 2);
    assert_int_equal(sqlite_file_backup(h->path, to, &info, &e), 0);
    assert_int_equal(mkdir(sub, 0700), 0);
    assert_int_equal(chown(sub, 61234, 61235), 0);
    for (int round = 0; round < 2; round++) { /* Without a database, then with one. */
        assert_int_equal(sqlite_file_restore(to, fresh, true, &info, &e), 0);
        assert_int_equal(stat(fresh, &st), 0);
        assert_int_equal(st.st_uid, 61234);
        assert_int_equal(st.st_gid, 61235);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_int_equal(stat(lock, &st), 0);
        assert_int_equal(st.st_uid, 61234);
    }
    /* The owner of the folder gets no file of another folder by a link in place of the lock. */
    for (int hard = 0; hard < 2; hard++) {
        int fd = open(victim, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(unlink(lock), 0);
        assert_int_equal(hard ? link(victim, lock) : symlink(victim, lock), 0);
        int r = sqlite_file_restore(to, fresh, true, &info, &e);
        assert_int_equal(r, hard ? -EMLINK : -ELOOP);
        assert_int_equal(stat(victim, &st), 0);
        assert_int_equal(st.st_uid, 0);
        assert_int_equal(st.st_size, 0);
    }
}

static void a_damaged_database_is_replaced_by_force_only(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info info = {0};
    struct err e = {0};
    uint64_t revision = 0;
    CLEANUP_FREE char *to = in(h, "copy.db");
    CLEANUP_FREE char *absent = in(h, "absent.db");
    fill(h, 2);
    assert_int_equal(sqlite_file_backup(h->path, to, &info, &e), 0);
    assert_int_equal(sqlite_file_replaceable(absent, false, &revision, &e), 0);
    assert_int_equal(revision, 0);
    assert_int_equal(sqlite_file_replaceable(h->path, true, &revision, &e), 0);
    assert_int_equal(revision, info.revision);
    assert_int_equal(sqlite_file_replaceable(h->path, false, &revision, &e), -EEXIST);
    CLEANUP_STRBUF struct strbuf bytes = STRBUF_INIT;
    assert_int_equal(file_read(h->path, SIZE_MAX / 4, &bytes, &e), 0);
    memset(bytes.data + 100, 0x55, bytes.size - 100);
    assert_int_equal(file_write_atomic(h->path, bytes.data, bytes.size, 0600, &e), 0);
    assert_int_equal(sqlite_file_replaceable(h->path, false, &revision, &e), -EUCLEAN);
    assert_int_equal(sqlite_file_restore(to, h->path, false, &info, &e), -EUCLEAN);
    assert_int_equal(sqlite_file_restore(to, h->path, true, &info, &e), 0);
    assert_int_equal(info.n_keys, 2);
    /* A damaged backup replaces nothing. */
    assert_int_equal(file_write_atomic(to, bytes.data, bytes.size, 0600, &e), 0);
    assert_int_equal(sqlite_file_restore(to, h->path, true, &info, &e), -EUCLEAN);
    assert_non_null(strstr(e.text, to));
    harness_open(h);
    assert_int_equal(h->n_items, 2);
    harness_close(h);
}

/* A connection that stays open holds locks, and the file's room after it was replaced. */
static void nothing_stays_open(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info a = {0}, b = {0};
    struct err e = {0};
    size_t findings = 0;
    CLEANUP_FREE char *to = in(h, "copy.db");
    CLEANUP_FREE char *text = in(h, "text.db");
    fill(h, 3);
    assert_int_equal(
        file_write_atomic(text, "no database at all, but long enough to look at", 46, 0600, &e), 0);
    unsigned before = open_descriptors();
    assert_int_equal(sqlite_file_backup(h->path, to, &a, &e), 0);
    assert_int_equal(sqlite_file_check(to, ignore, &findings, &a, &e), 0);
    assert_int_equal(sqlite_file_defrag(h->path, &a, &b, &e), 0);
    assert_int_equal(sqlite_file_restore(to, h->path, true, &a, &e), 0);
    struct sqlite_repair repair = {0};
    assert_int_equal(sqlite_repair(h->path, ignore, &findings, &repair, &e), 0);
    free(repair.kept);
    damage(h);
    assert_int_equal(sqlite_repair(h->path, ignore, &findings, &repair, &e), 0);
    assert_true(repair.n_findings > 0);
    free(repair.kept);
    assert_int_equal(sqlite_file_check(text, ignore, &findings, &a, &e), -EUCLEAN);
    unlink(to);
    assert_int_equal(sqlite_file_backup(text, to, &a, &e), -EUCLEAN);
    assert_int_equal(open_descriptors(), before);
}

static void free_pages_are_given_back(void **state)
{
    struct harness *h = *state;
    struct sqlite_file_info before = {0}, after = {0};
    struct err e = {0};
    CLEANUP_FREE char *absent = in(h, "absent.db");
    h->cfg.history = 1;
    harness_open(h);
    char *large = xcalloc(1, 200001);
    memset(large, 'x', 200000);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(put(h, KEY "large", large, STORE_ANY, NULL), 0);
    }
    assert_int_equal(put(h, KEY "large", "{}", STORE_ANY, NULL), 0);
    assert_int_equal(put(h, KEY "large", "{}", STORE_ANY, NULL), 0);
    free(large);
    assert_int_equal(sqlite_file_defrag(h->path, &before, &after, &e), -EBUSY);
    harness_close(h);
    assert_int_equal(sqlite_file_defrag(h->path, &before, &after, &e), 0);
    assert_int_equal(before.n_keys, 1);
    assert_int_equal(after.n_keys, 1);
    assert_int_equal(after.revision, before.revision);
    assert_true(after.size <= before.size);
    assert_int_equal(after.unused, 0);
    struct stat st;
    assert_int_equal(stat(h->path, &st), 0);
    assert_int_equal(st.st_size, after.size);
    assert_int_equal(sqlite_file_defrag(absent, &before, &after, &e), -ENOENT);
    assert_false(exists(absent));
}

#define T(f) cmocka_unit_test_setup_teardown(f, harness_set_up_sqlite, harness_tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_backup_has_all_and_appears_whole),
        T(a_backup_of_what_is_no_database_fails_and_leaves_nothing),
        T(a_check_names_the_file_and_what_it_found),
        T(a_restore_goes_on_after_the_newest_revision),
        T(a_restore_leaves_the_files_to_the_owner_of_the_registry),
        T(a_damaged_database_is_replaced_by_force_only),
        T(nothing_stays_open),
        T(free_pages_are_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
