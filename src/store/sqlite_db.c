/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_db.h"

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("store");

#define APPLICATION_ID 0x54656e65 /* "Tene", in the file's header. */
#define SCHEMA_VERSION 1
#define PAGE_SIZE 8192
#define BUSY_MS 5000
#define CHECKPOINT_IDLE_PAGES 1000
#define CHECKPOINT_PAGES 4000
#define COMPACT_PER_WRITE 2 /* More than one, so that a backlog gets shorter. */
#define COMPACT_PER_TRANSACTION 500

struct live_key {
    struct hmap_node node;
    uint64_t revision;
    char key[];
};

enum statement {
    ST_BEGIN,
    ST_COMMIT,
    ST_INSERT,
    ST_VALUE,
    ST_COMPACT,
    ST_DELETE,
    ST_PROBE,
    N_STATEMENTS
};
static const char *const statement_text[N_STATEMENTS] = {
    [ST_BEGIN] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_INSERT] = "INSERT INTO change (rev, prev_rev, key, value) VALUES (?1, ?2, ?3, ?4)",
    [ST_VALUE] = "SELECT value FROM change WHERE rev = ?1",
    [ST_COMPACT] = "SELECT prev_rev, value IS NULL FROM change WHERE rev = ?1",
    [ST_DELETE] = "DELETE FROM change WHERE rev = ?1",
    [ST_PROBE] = "PRAGMA user_version = 1", /* Writes the first page, with what it says already. */
};
static_assert(SCHEMA_VERSION == 1, "ST_PROBE writes it");

struct sqlite_db {
    char *path;
    int lock_fd;
    sqlite3 *sql;
    sqlite3_stmt *st[N_STATEMENTS];
    struct hmap live;
    uint64_t revision;
    uint64_t compacted; /* No change up to this one has work left for compaction. */
    uint64_t history;
    int wal_pages;
    int wal_failed_pages; /* wal_pages when a checkpoint failed last. */
    bool in_transaction;
};

/* Of the last operation that failed on the WAL or the file.  (sqlite3_system_errno is often overwritten by
 * what SQLite does after the failure.) */
static int last_errno(sqlite3 *sql)
{
    sqlite3_file *wal = NULL;
    int value = 0;
    sqlite3_file_control(sql, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    if (wal && wal->pMethods) {
        wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &value);
    }
    if (!value) {
        sqlite3_file_control(sql, NULL, SQLITE_FCNTL_LAST_ERRNO, &value);
    }
    if (!value) {
        value = sqlite3_system_errno(sql);
    }
    return value > 0 ? -value : -EIO;
}

static int errno_of(sqlite3 *sql, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return -EUCLEAN;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return -EROFS;
    case SQLITE_TOOBIG:
        return -E2BIG;
    case SQLITE_CONSTRAINT:
        return -EIO;
    default:
        return sql ? last_errno(sql) : -EIO;
    }
}

static int db_fail(const struct sqlite_db *db, int rc, const char *what, struct err *e)
{
    int code = errno_of(db->sql, rc);
    if ((rc & 0xff) == SQLITE_CONSTRAINT) {
        return err_set(e, code, "database %s: another program wrote to it", db->path);
    }
    if (code == -EUCLEAN) {
        return err_set(e, code, "database %s: %s: %s", db->path, what,
                       (rc & 0xff) == SQLITE_NOTADB ? "not a database" : "the file is corrupt");
    }
    const char *text = db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(rc);
    return err_sys(e, code, "database %s: %s: %s", db->path, what, text);
}

static int db_exec(struct sqlite_db *db, const char *sql, const char *what, struct err *e)
{
    int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : db_fail(db, rc, what, e);
}

/* Steps a statement that gives at most one row and resets it: 1 with a row, 0 without.  With 'keep' the row
 * stays readable until the next use. */
static int db_step(struct sqlite_db *db, enum statement which, bool keep, const char *what,
                   struct err *e)
{
    sqlite3_stmt *st = db->st[which];
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW && keep) {
        return 1;
    }
    int r = rc == SQLITE_ROW || rc == SQLITE_DONE ? rc == SQLITE_ROW : db_fail(db, rc, what, e);
    sqlite3_reset(st);
    return r;
}

static struct live_key *live_find(const struct sqlite_db *db, const char *key)
{
    struct live_key *k;
    HMAP_FOREACH_WITH_HASH (k, struct live_key, node, hash_string(key), &db->live) {
        if (streq(k->key, key)) {
            return k;
        }
    }
    return NULL;
}

/* Notes that 'key' is at 'revision' now; 0: deleted.  'k': its entry if it has one. */
static void live_set(struct sqlite_db *db, struct live_key *k, const char *key, uint64_t revision)
{
    if (!revision) {
        if (k) {
            hmap_remove(&db->live, &k->node);
            free(k);
        }
        return;
    }
    if (!k) {
        size_t size = strlen(key) + 1;
        k = xmalloc(sizeof *k + size);
        memcpy(k->key, key, size);
        hmap_insert(&db->live, &k->node, hash_string(key));
    }
    k->revision = revision;
}

/* ---- opening ---- */

/* One that exists is not opened here: closing it would drop the locks that SQLite holds on it (fcntl(2)). */
static int file_check(const char *path, bool *ret_exists, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        *ret_exists = false;
        return errno == ENOENT ? 0 : err_sys(e, -errno, "database %s", path);
    }
    *ret_exists = true;
    return S_ISREG(st.st_mode) ? 0 : err_set(e, -EINVAL, "database %s: not a regular file", path);
}

/* SQLite's own locks let other processes in between two transactions; this one keeps a second master out
 * and still lets others read, as for a backup. */
int sqlite_db_lock(const char *path, int *ret_fd, struct err *e)
{
    CLEANUP_FREE char *lock = xasprintf("%s.lock", path);
    CLEANUP(fd_close) int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_sys(e, -errno, "database %s: open %s", path, lock);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        char pid[16] = {0};
        if (errno != EWOULDBLOCK) {
            return err_sys(e, -errno, "database %s: lock %s", path, lock);
        }
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
        return err_set(e, -EBUSY, "database %s: in use by process %s", path, pid[0] ? pid : "?");
    }
    /* For that message only: it does not matter when the disk is full. */
    char pid[16];
    int n = snprintf(pid, sizeof pid, "%d\n", getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t) n, 0) < 0) {
        log_debug("cannot note the process id", "file=%s", lock);
    }
    *ret_fd = fd_take(&fd);
    return 0;
}

/* With the right mode before SQLite sees it. */
static int file_create(const char *path, struct err *e)
{
    CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return err_sys(e, -errno, "database %s: create", path);
    }
    const char *slash = strrchr(path, '/');
    CLEANUP_FREE char *dir = slash ? xstrndup(path, (size_t) (slash - path) + 1) : xstrdup(".");
    CLEANUP(fd_close) int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0 || fsync(dirfd) < 0) {
        return err_sys(e, -errno, "database %s: sync its directory", path);
    }
    return 0;
}

static int query_int(struct sqlite_db *db, const char *sql, int64_t *ret, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->sql, sql, -1, &st, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        *ret = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    return rc == SQLITE_OK ? 0 : db_fail(db, rc, "read", e);
}

/* Whether the file is ours, before anything is written to it. */
static int schema_check(struct sqlite_db *db, bool *ret_empty, struct err *e)
{
    int64_t app = 0, version = 0, tables = 0;
    int r;
    if ((r = query_int(db, "PRAGMA application_id", &app, e)) < 0 ||
        (r = query_int(db, "PRAGMA user_version", &version, e)) < 0 ||
        (r = query_int(db, "SELECT count(*) FROM sqlite_schema", &tables, e)) < 0) {
        return r;
    }
    *ret_empty = app == 0 && version == 0 && tables == 0;
    if (*ret_empty) {
        return 0;
    }
    if (app != APPLICATION_ID) {
        return err_set(e, -EMEDIUMTYPE, "database %s: belongs to another program", db->path);
    }
    if (version > SCHEMA_VERSION) {
        return err_set(
            e, -ENOTSUP,
            "database %s: written by a newer version of tenet (schema %lld, this one knows "
            "%d)",
            db->path, (long long) version, SCHEMA_VERSION);
    }
    return 0;
}

static int on_commit(void *ctx, sqlite3 *sql, const char *name, int pages)
{
    struct sqlite_db *db = ctx;
    db->wal_pages = pages;
    return SQLITE_OK;
}

static int schema_create(struct sqlite_db *db, struct err *e)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE;"
             "CREATE TABLE change (rev INTEGER PRIMARY KEY, prev_rev INTEGER NOT NULL,"
             " key TEXT NOT NULL, value BLOB) STRICT;"
             "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "COMMIT",
             APPLICATION_ID, SCHEMA_VERSION);
    return db_exec(db, sql, "create the schema", e);
}

static int db_setup(struct sqlite_db *db, struct err *e)
{
    int rc =
        sqlite3_open_v2(db->path, &db->sql,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
    if (rc != SQLITE_OK) {
        return db_fail(db, rc, "open", e);
    }
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    bool empty;
    char sql[512];
    int r;
    /* A backup, or somebody with a shell, may hold a lock for a moment. */
    sqlite3_busy_timeout(db->sql, BUSY_MS);
    if ((r = schema_check(db, &empty, e)) < 0) {
        return r;
    }
    if (chmod(db->path, 0600) < 0) {
        return err_sys(e, -errno, "database %s: chmod 0600", db->path);
    }
    snprintf(
        sql, sizeof sql,
        "PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = %d;"
        "PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;",
        PAGE_SIZE, CHECKPOINT_PAGES * PAGE_SIZE);
    if ((r = db_exec(db, sql, "set up", e)) < 0 || (empty && (r = schema_create(db, e)) < 0)) {
        return r;
    }
    sqlite3_wal_hook(db->sql, on_commit, db);
    for (int i = 0; i < N_STATEMENTS; i++) {
        rc = sqlite3_prepare_v3(db->sql, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                                &db->st[i], NULL);
        if (rc != SQLITE_OK) {
            return db_fail(db, rc, "read the schema", e);
        }
    }
    /* Busy: somebody reads. */
    rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? 0 : db_fail(db, rc, "checkpoint", e);
}

/* ---- reading ---- */

struct row {
    uint64_t revision, prev_revision;
    char *key;
    struct blob *value;
};
struct rows {
    struct row *v;
    size_t n, cap;
    size_t filled; /* Rows whose values were read. */
};

static void rows_done(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->v[i].key);
        blob_unref(rows->v[i].value);
    }
    free(rows->v);
}

void sqlite_content_free(struct sqlite_content *c)
{
    if (!c) {
        return;
    }
    for (size_t i = 0; i < c->n_items; i++) {
        free((char *) c->items[i].key);
        blob_unref(c->items[i].value);
    }
    for (size_t i = 0; i < c->n_events; i++) {
        free((char *) c->events[i].key);
        blob_unref(c->events[i].value);
        blob_unref(c->events[i].prev);
    }
    free(c->items);
    free(c->events);
    free(c);
}

static const struct row *row_find(const struct rows *rows, uint64_t revision)
{
    size_t lo = 0, hi = rows->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rows->v[mid].revision == revision) {
            return &rows->v[mid];
        }
        if (rows->v[mid].revision < revision) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}

static struct blob *column_value(sqlite3_stmt *st, int column)
{
    if (sqlite3_column_type(st, column) == SQLITE_NULL) {
        return NULL;
    }
    const void *p = sqlite3_column_blob(st, column);
    return blob_new(p, (size_t) sqlite3_column_bytes(st, column));
}

/* Takes the row that 'st' is at, if it can follow those before it. */
static int row_take(struct sqlite_db *db, sqlite3_stmt *st, struct rows *rows, struct err *e)
{
    int64_t revision = sqlite3_column_int64(st, 0), prev = sqlite3_column_int64(st, 1);
    const char *key = (const char *) sqlite3_column_text(st, 2);
    struct live_key *k = key ? live_find(db, key) : NULL;
    bool deletion = sqlite3_column_int(st, 3);
    if (!key || strlen(key) != (size_t) sqlite3_column_bytes(st, 2) ||
        !str_has_prefix(key, STORE_PREFIX) || revision <= (int64_t) db->revision || prev < 0 ||
        prev >= revision || (deletion && !prev) || (k && k->revision != (uint64_t) prev)) {
        return err_set(e, -EUCLEAN,
                       "database %s: change %lld does not fit those before it: the file is corrupt",
                       db->path, (long long) revision);
    }
    db->revision = (uint64_t) revision;
    live_set(db, k, key, deletion ? 0 : db->revision);
    rows->v = grow(rows->v, &rows->cap, rows->n + 1, sizeof *rows->v);
    rows->v[rows->n++] = (struct row){db->revision, (uint64_t) prev, xstrdup(key), NULL};
    return 0;
}

/* Calls 'row' for each row of 'text'. */
static int rows_query(struct sqlite_db *db, const char *text, struct rows *rows,
                      int (*row)(struct sqlite_db *db, sqlite3_stmt *st, struct rows *rows,
                                 struct err *e),
                      struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->sql, text, -1, &st, NULL);
    int r = 0;
    while (rc == SQLITE_OK && r == 0 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        r = row(db, st, rows, e);
        rc = SQLITE_OK;
    }
    if (r == 0 && rc != SQLITE_DONE) {
        r = db_fail(db, rc, "read", e);
    }
    sqlite3_finalize(st);
    return r;
}

static int row_fill(struct sqlite_db *db, sqlite3_stmt *st, struct rows *rows, struct err *e)
{
    if (rows->filled == rows->n) {
        return err_set(e, -EUCLEAN, "database %s: it was changed while it was read", db->path);
    }
    rows->v[rows->filled++].value = column_value(st, 0);
    return 0;
}

/* The values are read when all keys have been: what is kept does not lie between what is given back, so that its
 * pages can be. */
static int rows_read(struct sqlite_db *db, struct rows *rows, struct err *e)
{
    int r = rows_query(db, "SELECT rev, prev_rev, key, value IS NULL FROM change ORDER BY rev",
                       rows, row_take, e);
    return r < 0 ? r : rows_query(db, "SELECT value FROM change ORDER BY rev", rows, row_fill, e);
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct store_item *) a)->key, ((const struct store_item *) b)->key);
}

/* Index of the first row of the history: from there on nothing is missing, neither a change nor the value
 * that one of them replaced. */
static size_t history_start(const struct sqlite_db *db, const struct rows *rows)
{
    size_t i = rows->n;
    while (i > 0 && rows->n - i < db->history) {
        const struct row *row = &rows->v[i - 1];
        if ((i < rows->n && rows->v[i].revision != row->revision + 1) ||
            (row->prev_revision && !row_find(rows, row->prev_revision))) {
            break;
        }
        i--;
    }
    return i;
}

static struct sqlite_content *content_of(const struct sqlite_db *db, const struct rows *rows)
{
    struct sqlite_content *c = NEW(struct sqlite_content);
    c->revision = db->revision;
    c->items = xcalloc(db->live.n, sizeof *c->items);
    size_t start = history_start(db, rows);
    c->events = xcalloc(rows->n - start, sizeof *c->events);
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *row = &rows->v[i];
        const struct live_key *k = live_find(db, row->key);
        if (k && k->revision == row->revision) {
            c->items[c->n_items++] =
                (struct store_item){xstrdup(row->key), blob_ref(row->value), row->revision};
        }
        if (i >= start) {
            const struct row *prev = row->prev_revision ? row_find(rows, row->prev_revision) : NULL;
            c->events[c->n_events++] = (struct store_event){
                .key = xstrdup(row->key),
                .value = row->value ? blob_ref(row->value) : NULL,
                .prev = prev && prev->value ? blob_ref(prev->value) : NULL,
                .revision = row->revision,
            };
        }
    }
    qsort(c->items, c->n_items, sizeof *c->items, compare_items);
    return c;
}

/* Where compaction stopped is not stored: it is before the first change that has work left. */
static uint64_t compacted_of(const struct sqlite_db *db, const struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *row = &rows->v[i];
        if (!row->value || (row->prev_revision && row_find(rows, row->prev_revision))) {
            return row->revision - 1;
        }
    }
    return db->revision > db->history ? db->revision - db->history : 0;
}

int sqlite_db_open(const char *path, unsigned history, struct sqlite_db **ret,
                   struct sqlite_content **ret_content, struct err *e)
{
    CLEANUP(fd_close) int lock = -1;
    bool exists;
    int r = file_check(path, &exists, e);
    if (r < 0 || (r = sqlite_db_lock(path, &lock, e)) < 0 ||
        (!exists && (r = file_create(path, e)) < 0)) {
        return r;
    }
    CLEANUP(sqlite_db_close) struct sqlite_db *db = NEW(struct sqlite_db);
    db->path = xstrdup(path);
    db->lock_fd = fd_take(&lock);
    db->history = history;
    hmap_init(&db->live);
    struct rows rows = {0};
    if ((r = db_setup(db, e)) == 0 && (r = rows_read(db, &rows, e)) == 0) {
        db->compacted = compacted_of(db, &rows);
        *ret_content = content_of(db, &rows);
        *ret = TAKE(db);
    }
    rows_done(&rows);
    return r;
}

struct sqlite_db *sqlite_db_close(struct sqlite_db *db)
{
    if (!db) {
        return NULL;
    }
    for (int i = 0; i < N_STATEMENTS; i++) {
        sqlite3_finalize(db->st[i]);
    }
    /* The last connection to close checkpoints and removes the WAL. */
    sqlite3_close(db->sql);
    struct live_key *k;
    HMAP_FOREACH (k, struct live_key, node, &db->live) {
        free(k);
    }
    hmap_done(&db->live);
    fd_close(db->lock_fd);
    free(db->path);
    free(db);
    return NULL;
}

/* ---- the file as a whole ---- */

void sqlite_db_advance(struct sqlite_db *db, uint64_t revision)
{
    db->revision = MAX(db->revision, revision);
}

int sqlite_db_space(struct sqlite_db *db, uint64_t *ret_size, uint64_t *ret_unused, struct err *e)
{
    int64_t page = 0, pages = 0, unused = 0;
    int r;
    if ((r = query_int(db, "PRAGMA page_size", &page, e)) < 0 ||
        (r = query_int(db, "PRAGMA page_count", &pages, e)) < 0 ||
        (r = query_int(db, "PRAGMA freelist_count", &unused, e)) < 0) {
        return r;
    }
    *ret_size = (uint64_t) (page * pages);
    *ret_unused = (uint64_t) (page * unused);
    return 0;
}

int sqlite_db_vacuum(struct sqlite_db *db, struct err *e)
{
    int r = db_exec(db, "VACUUM", "defragment", e);
    return r < 0 ? r : db_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", "checkpoint", e);
}

/* ---- writing ---- */

static int transaction_begin(struct sqlite_db *db, struct err *e)
{
    if (db->in_transaction) {
        return 0;
    }
    int r = db_step(db, ST_BEGIN, false, "begin", e);
    if (r == 0) {
        db->in_transaction = true;
    }
    return r;
}

/* Does the work that change db->compacted + 1 left behind when it left the history. */
static int compact_one(struct sqlite_db *db, struct err *e)
{
    uint64_t change = db->compacted + 1;
    sqlite3_bind_int64(db->st[ST_COMPACT], 1, (int64_t) change);
    int r = db_step(db, ST_COMPACT, true, "compact", e);
    if (r < 0) {
        return r;
    }
    int64_t prev = r ? sqlite3_column_int64(db->st[ST_COMPACT], 0) : 0;
    bool deletion = r && sqlite3_column_int(db->st[ST_COMPACT], 1);
    sqlite3_reset(db->st[ST_COMPACT]);
    r = 0;
    if (prev) {
        sqlite3_bind_int64(db->st[ST_DELETE], 1, prev);
        r = db_step(db, ST_DELETE, false, "compact", e);
    }
    if (r == 0 && deletion) {
        sqlite3_bind_int64(db->st[ST_DELETE], 1, (int64_t) change);
        r = db_step(db, ST_DELETE, false, "compact", e);
    }
    if (r == 0) {
        db->compacted = change;
    }
    return r;
}

static bool needs_compaction(const struct sqlite_db *db)
{
    return db->compacted + db->history < db->revision;
}

static int compact_some(struct sqlite_db *db, unsigned max, struct err *e)
{
    int r = 0;
    for (unsigned i = 0; i < max && r == 0 && needs_compaction(db); i++) {
        r = compact_one(db, e);
    }
    return r;
}

static int value_read(struct sqlite_db *db, uint64_t revision, struct blob **ret, struct err *e)
{
    sqlite3_bind_int64(db->st[ST_VALUE], 1, (int64_t) revision);
    int r = db_step(db, ST_VALUE, true, "read", e);
    if (r < 0) {
        return r;
    }
    struct blob *value = r ? column_value(db->st[ST_VALUE], 0) : NULL;
    sqlite3_reset(db->st[ST_VALUE]);
    if (!value) {
        return err_set(e, -EUCLEAN, "database %s: change %llu is gone: the file is corrupt",
                       db->path, (unsigned long long) revision);
    }
    *ret = value;
    return 0;
}

static int check(struct sqlite_db *db, const struct store_write *w)
{
    const struct live_key *k = live_find(db, w->key);
    const struct live_key *guard = w->guard ? live_find(db, w->guard) : NULL;
    if (w->guard && (guard ? guard->revision : 0) != w->guard_at) {
        return -EPERM;
    }
    int r = store_check(w, k ? k->revision : 0);
    for (size_t i = 0; r == 0 && i < w->n_claims; i++) {
        r = w->claims[i].value && live_find(db, w->claims[i].key) ? -EADDRINUSE : 0;
    }
    return r;
}

/* One change; 'value' NULL: the key goes. */
static int change(struct sqlite_db *db, const char *key, const struct blob *value,
                  uint64_t *ret_revision, struct blob **ret_prev, struct err *e)
{
    struct live_key *k = live_find(db, key);
    uint64_t current = k ? k->revision : 0, revision = db->revision + 1;
    int r = current ? value_read(db, current, ret_prev, e) : 0;
    if (r < 0) {
        return r;
    }
    sqlite3_stmt *st = db->st[ST_INSERT];
    sqlite3_bind_int64(st, 1, (int64_t) revision);
    sqlite3_bind_int64(st, 2, (int64_t) current);
    sqlite3_bind_text(st, 3, key, -1, SQLITE_STATIC);
    if (value) {
        sqlite3_bind_blob64(st, 4, value->data, value->size, SQLITE_STATIC);
    } else {
        sqlite3_bind_null(st, 4);
    }
    r = db_step(db, ST_INSERT, false, "write", e);
    sqlite3_clear_bindings(st);
    if (r < 0) {
        return r;
    }
    *ret_revision = db->revision = revision;
    live_set(db, k, key, value ? revision : 0);
    return compact_some(db, COMPACT_PER_WRITE, e);
}

int sqlite_db_apply(struct sqlite_db *db, struct store_write *w, struct err *e)
{
    w->error = check(db, w);
    if (w->error < 0) {
        return 0;
    }
    int r = transaction_begin(db, e);
    if (r == 0) {
        r = change(db, w->key, w->value, &w->revision, &w->prev, e);
    }
    for (size_t i = 0; r == 0 && i < w->n_claims; i++) {
        struct store_write_claim *claim = &w->claims[i];
        if (claim->value || live_find(db, claim->key)) {
            r = change(db, claim->key, claim->value, &claim->revision, &claim->prev, e);
        }
    }
    return r;
}

int sqlite_db_commit(struct sqlite_db *db, struct err *e)
{
    if (!db->in_transaction) {
        return 0;
    }
    int r = db_step(db, ST_COMMIT, false, "commit", e);
    if (r == 0) {
        db->in_transaction = false;
    }
    return r;
}

int sqlite_db_probe(struct sqlite_db *db, struct err *e)
{
    int r = transaction_begin(db, e);
    if (r == 0 && (r = db_step(db, ST_PROBE, false, "write", e)) == 0) {
        r = sqlite_db_commit(db, e);
    }
    return r;
}

/* ---- upkeep ---- */

static void checkpoint(struct sqlite_db *db)
{
    int pages = 0, moved = 0;
    int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
    if (rc == SQLITE_OK && moved == pages) {
        db->wal_pages = db->wal_failed_pages = 0;
        return;
    }
    /* Somebody reads, or the disk is full.  The writes are safe in the WAL; try again when it has grown. */
    db->wal_failed_pages = db->wal_pages;
    log_warn("checkpoint did not finish", "database=%s reason=\"%s\" pages=%d moved=%d", db->path,
             rc == SQLITE_OK ? "another program reads" : sqlite3_errmsg(db->sql), pages, moved);
}

void sqlite_db_checkpoint(struct sqlite_db *db)
{
    if (db->wal_pages >= CHECKPOINT_PAGES + db->wal_failed_pages) {
        checkpoint(db);
    }
}

bool sqlite_db_upkeep_due(const struct sqlite_db *db)
{
    return needs_compaction(db) || db->wal_pages >= CHECKPOINT_IDLE_PAGES + db->wal_failed_pages;
}

int sqlite_db_upkeep(struct sqlite_db *db, struct err *e)
{
    if (!needs_compaction(db)) {
        checkpoint(db);
        return 0;
    }
    int r = transaction_begin(db, e);
    if (r == 0 && (r = compact_some(db, COMPACT_PER_TRANSACTION, e)) == 0) {
        r = sqlite_db_commit(db, e);
    }
    return r;
}
