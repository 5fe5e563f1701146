/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_file.h"

#include "base/str.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_lock.h"
#include "store/sqlite/sqlite_owner.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000
/* Its two changes mark that revisions continue from another registry. */
#define MARK_KEY STORE_OWN_PREFIX "restored"

static int sync_path(const char *path, int flags, struct err *e)
{
    CLEANUP(fd_close) int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? err_sys(e, -errno, "sync %s", path) : 0;
}

static int sync_folder_of(const char *path, struct err *e)
{
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *dir = slash ? xstrndup(path, (size_t) (slash - path) + 1) : xstrdup(".");
    return sync_path(dir, O_RDONLY | O_DIRECTORY, e);
}

void sqlite_file_remove(const char *path)
{
    static const char *const parts[] = {"", "-wal", "-shm", "-journal", ".lock", ".reserve"};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *part = xasprintf("%s%s", path, parts[i]);
        (void) unlink(part);
    }
}

/* Runs a statement on a separate connection that reads 'path'. */
static int read_only_run(const char *path, const char *statement, const char *argument,
                         char **ret_text, struct err *e)
{
    sqlite3 *sql = NULL;
    sqlite3_stmt *st = NULL;
    struct stat file;
    if (stat(path, &file) < 0) {
        return err_sys(e, -errno, "database %s", path);
    }
    int rc = sqlite3_open_v2(path, &sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(sql, BUSY_MS);
        rc = sqlite3_prepare_v2(sql, statement, -1, &st, NULL);
    }
    if (rc == SQLITE_OK && argument) {
        rc = sqlite3_bind_text(st, 1, argument, -1, SQLITE_STATIC);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_ROW && ret_text) {
        const char *text = (const char *) sqlite3_column_text(st, 0);
        *ret_text = xstrdup(text ? text : "");
    }
    int r = 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        bool damaged = (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
        int code = damaged                          ? -EUCLEAN
                   : (rc & 0xff) == SQLITE_FULL     ? -ENOSPC
                   : (rc & 0xff) == SQLITE_BUSY     ? -EBUSY
                   : (rc & 0xff) == SQLITE_CANTOPEN ? -EACCES
                                                    : -EIO;
        r = err_set(e, code, "database %s: %s", path,
                    (rc & 0xff) == SQLITE_NOTADB ? "not a database"
                    : damaged                    ? "the file is corrupt"
                                                 : sqlite3_errmsg(sql));
    }
    sqlite3_finalize(st);
    sqlite3_close(sql);
    return r;
}

/* Opens the private file 'copy', and reports its contents; errors name 'path'. */
static int read_copy(const char *copy, const char *path, struct sqlite_db **ret_db,
                     struct sqlite_file_info *ret, struct err *e)
{
    CLEANUP(sqlite_db_close) struct sqlite_db *db = NULL;
    struct sqlite_content *content = NULL;
    struct err mine = {0};
    int r = sqlite_db_open(copy, STORE_DEFAULT_HISTORY, &db, &content, &mine);
    if (r < 0) {
        const char *what = strstr(mine.text, ": ");
        return err_set(e, r, "database %s%s", path, what ? what : "");
    }
    *ret = (struct sqlite_file_info){
        .revision = content->revision, .n_keys = content->n_items, .n_history = content->n_events};
    sqlite_content_free(content);
    r = sqlite_db_space(db, &ret->size, &ret->unused, e);
    if (r == 0 && ret_db) {
        *ret_db = TAKE(db);
    }
    return r;
}

/* Copies 'path' to the new file 'copy'; syncs only its data. */
static int copy_database(const char *path, const char *copy, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return err_sys(e, -errno, "database %s", path);
    }
    CLEANUP(fd_close) int fd = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_sys(e, -errno, "create %s", copy);
    }
    return read_only_run(path, "VACUUM INTO ?1", copy, NULL, e);
}

int sqlite_file_backup(const char *path, const char *to, struct sqlite_file_info *ret,
                       struct err *e)
{
    CLEANUP_FREE char *copy = xasprintf("%s.part", to);
    struct stat st;
    if (lstat(to, &st) == 0) {
        return err_set(e, -EEXIST, "%s exists: give another name, or remove it", to);
    }
    sqlite_file_remove(copy);
    int r = copy_database(path, copy, e);
    if (r == 0) {
        r = read_copy(copy, path, NULL, ret, e);
    }
    if (r == 0 && (r = sync_path(copy, O_RDONLY, e)) == 0 && rename(copy, to) < 0) {
        r = err_sys(e, -errno, "rename %s to %s", copy, to);
    }
    if (r == 0) {
        r = sync_folder_of(to, e);
    }
    sqlite_file_remove(copy);
    return r;
}

int sqlite_file_check(const char *path, sqlite_finding_fn *fn, void *ctx,
                      struct sqlite_file_info *ret, struct err *e)
{
    CLEANUP_FREE char *copy = xasprintf("%s.check", path);
    struct stat st;
    size_t n = 0;
    sqlite_file_remove(copy);
    int r = sqlite_scan(path, fn, ctx, &n, e);
    if (r == 0 && n) {
        r = err_set(e, -EUCLEAN, "database %s: the file is corrupt: %zu findings", path, n);
    }
    if (r == 0) {
        r = copy_database(path, copy, e);
    }
    if (r == 0 && (r = read_copy(copy, path, NULL, ret, e)) == 0 && stat(path, &st) == 0) {
        uint64_t all = (uint64_t) st.st_size;
        ret->unused = all > ret->size ? all - ret->size : 0;
        ret->size = all;
    }
    sqlite_file_remove(copy);
    return r;
}

int sqlite_file_replaceable(const char *path, bool force, uint64_t *ret_revision, struct err *e)
{
    struct sqlite_file_info info = {0};
    struct stat st;
    *ret_revision = 0;
    if (stat(path, &st) < 0 && errno != ENOENT) {
        return err_sys(e, -errno, "database %s", path);
    }
    *ret_revision = sqlite_mark_of(path); /* Also for a file that is missing or cannot be read. */
    if (stat(path, &st) < 0) {
        return 0;
    }
    int r = read_copy(path, path, NULL, &info, e);
    if (r == -EUCLEAN && force) {
        return 0;
    }
    if (r == 0 && info.n_keys && !force) {
        r = err_set(e, -EEXIST, "database %s has %zu keys: --force replaces them", path,
                    info.n_keys);
    }
    *ret_revision = MAX(*ret_revision, info.revision);
    return r;
}

/* Makes revisions of 'db' continue after 'revision'. */
static int advance(struct sqlite_db *db, uint64_t revision, struct err *e)
{
    CLEANUP(blob_unref) struct blob *value = blob_new("{}", 2);
    sqlite_db_advance(db, revision);
    for (int i = 0; i < 2; i++) {
        struct store_write w = {.key = (char *) MARK_KEY, .expect = STORE_ANY};
        w.value = i == 0 ? value : NULL;
        int r = sqlite_db_apply(db, &w, e);
        blob_unref(w.prev);
        if (r < 0) {
            return r;
        }
    }
    return sqlite_db_commit(db, e);
}

int sqlite_file_replace(const char *from, const char *path, struct err *e)
{
    CLEANUP(fd_close) int lock = -1;
    int r = sqlite_lock(path, &lock, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "open %s", from);
    }
    r = sqlite_owner_give(fd, path, e);
    if (r < 0 || fsync(fd) < 0) {
        return r < 0 ? r : err_sys(e, -errno, "sync %s", from);
    }
    CLEANUP_FREE char *wal = xasprintf("%s-wal", path);
    CLEANUP_FREE char *shm = xasprintf("%s-shm", path);
    /* They belong to the old file; beside the new one they would count as a part of it. */
    (void) unlink(wal);
    (void) unlink(shm);
    if (rename(from, path) < 0) {
        return err_sys(e, -errno, "rename %s to %s", from, path);
    }
    return sync_folder_of(path, e);
}

int sqlite_file_restore(const char *from, const char *path, bool force,
                        struct sqlite_file_info *ret, struct err *e)
{
    CLEANUP_FREE char *copy = xasprintf("%s.restore", path);
    struct sqlite_db *db = NULL;
    uint64_t old = 0;
    int r = sqlite_file_replaceable(path, force, &old, e);
    if (r < 0) {
        return r;
    }
    sqlite_file_remove(copy);
    r = copy_database(from, copy, e);
    if (r == 0) {
        r = read_copy(copy, from, &db, ret, e);
    }
    if (r == 0 && old > ret->revision) {
        r = advance(db, old, e);
        ret->revision = old + 2;
    }
    sqlite_db_close(db);
    if (r == 0) {
        r = sqlite_file_replace(copy, path, e);
    }
    sqlite_file_remove(copy);
    return r;
}

int sqlite_file_defrag(const char *path, struct sqlite_file_info *before,
                       struct sqlite_file_info *after, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return err_sys(e, -errno, "database %s", path);
    }
    CLEANUP(sqlite_db_close) struct sqlite_db *db = NULL;
    int r = read_copy(path, path, &db, before, e);
    if (r < 0 || (r = sqlite_db_vacuum(db, e)) < 0) {
        return r;
    }
    *after = *before;
    return sqlite_db_space(db, &after->size, &after->unused, e);
}
