/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_db.h"

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "store/sqlite/sqlite_lock.h"
#include "store/sqlite/sqlite_reserve.h"
#include "store/sqlite/sqlite_sum.h"
#include "store/sqlite/sqlite_watch.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("store");

#define APPLICATION_ID 0x54656e65 /* "Tene", in the file's header. */
#define SCHEMA_VERSION 2          /* Version 1 had no checksums. */
#define PAGE_SIZE 8192
#define BUSY_MS 5000
#define CHECKPOINT_IDLE_PAGES 1000
#define CHECKPOINT_PAGES 4000
#define COMPACT_PER_WRITE 2 /* More than one, so that a backlog shrinks. */
#define COMPACT_PER_TRANSACTION 500
#define SCRUB_ROWS 64
#define SCRUB_BYTES (1 << 20)
#define SCRUB_STEP_MS 100
#define SCRUB_PAUSE_MS (10 * 60 * 1000)
/* ---- limits while the disk is full ---- */
#define FULL_HISTORY 100
#define FULL_CHECKPOINT_PAGES 64
#define FULL_COMPACT_PER_TRANSACTION 32
#define RESERVE_RETRY_MS 1000

struct live_key {
    struct hmap_node node;
    uint64_t revision;
    uint64_t sum; /* Checksum of its row. */
    char key[];
};

/* A change that needs compaction when it leaves the history: of a row that it replaced, or of
 * itself. */
struct leftover {
    uint64_t revision, sum;           /* The change's; 'sum' is used for a deletion only. */
    uint64_t prev_revision, prev_sum; /* 0: that row does not exist any more. */
    bool deletion;
};

enum statement {
    ST_BEGIN,
    ST_COMMIT,
    ST_INSERT,
    ST_VALUE,
    ST_DELETE,
    ST_PROBE,
    ST_TOTAL,
    ST_SCRUB,
    N_STATEMENTS
};
static const char *const statement_text[N_STATEMENTS] = {
    [ST_BEGIN] = "BEGIN IMMEDIATE",
    [ST_COMMIT] = "COMMIT",
    [ST_INSERT] = "INSERT INTO change (rev, prev_rev, key, value, sum) VALUES (?1, ?2, ?3, ?4, ?5)",
    [ST_VALUE] = "SELECT rev, prev_rev, key, value, sum FROM change WHERE rev = ?1",
    [ST_DELETE] = "DELETE FROM change WHERE rev = ?1",
    [ST_PROBE] = "PRAGMA user_version = 2", /* Writes the first page with unchanged content. */
    [ST_TOTAL] = "UPDATE state SET n = ?1, total = ?2 WHERE id = 1",
    [ST_SCRUB] = "SELECT rev, prev_rev, key, value, sum FROM change WHERE rev > ?1 ORDER BY rev",
};
static_assert(SCHEMA_VERSION == 2, "ST_PROBE writes it");

struct sqlite_db {
    char *path;
    int lock_fd;
    sqlite3 *sql;
    sqlite3_stmt *st[N_STATEMENTS];
    struct hmap live;
    uint64_t revision;
    uint64_t history;
    struct leftover *leftovers; /* A ring, oldest first from 'first_leftover'. */
    size_t n_leftovers, cap_leftovers, first_leftover;
    uint64_t newest; /* Revision of the newest row. */
    int wal_pages;
    int wal_failed_pages; /* wal_pages at the last failed checkpoint. */
    bool in_transaction;
    struct sqlite_total total; /* Total of the rows, including the open transaction. */
    bool total_changed;        /* The open transaction has to store it. */
    uint64_t n_commits;
    struct sqlite_watch watch;
    int wal_frames;   /* Frames in the WAL, checkpointed or not. */
    bool wal_written; /* Written since the last check of the watch. */
    bool replaced;    /* The watch found other files. */
    /* The scrub: reads all rows, a few at a time. */
    uint64_t scrub_at;            /* The last row that was read. */
    uint64_t scrub_ms;            /* When the next pass begins. */
    uint64_t scrub_commits;       /* n_commits when the pass began. */
    struct sqlite_total scrubbed; /* In this pass. */
    /* Disk space for deletions when the disk is full. */
    uint64_t reserve;    /* Bytes; 0: none. */
    uint64_t reserve_ms; /* Time of the next attempt to create it. */
    bool full;           /* It was released. */
};

/* Errno of the last failed operation on the WAL or the file. (sqlite3_system_errno is often
 * overwritten by SQLite's later actions.) */
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

/* Advice after damage; ends the message. */
#define DAMAGE_HELP                                                                               \
    "nothing was changed; restore a backup (tenet store restore), or let \"tenet store repair\" " \
    "show what is damaged and take it out"

static int db_fail(const struct sqlite_db *db, int rc, const char *what, struct err *e)
{
    int code = errno_of(db->sql, rc);
    if ((rc & 0xff) == SQLITE_CONSTRAINT) {
        return err_set(e, code, "database %s: another program wrote to it", db->path);
    }
    if (code == -EUCLEAN) {
        return err_set(e, code, "database %s: %s: %s: " DAMAGE_HELP, db->path, what,
                       (rc & 0xff) == SQLITE_NOTADB ? "not a database" : "the file is corrupt");
    }
    const char *text = db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(rc);
    return err_sys(e, code, "database %s: %s: %s", db->path, what, text);
}

static int row_damaged(const struct sqlite_db *db, uint64_t revision, const char *key,
                       struct err *e)
{
    return err_set(
        e, -EUCLEAN,
        "database %s: the file is corrupt: change %llu of the key \"%.200s\" is not what "
        "was written: " DAMAGE_HELP,
        db->path, (unsigned long long) revision, key);
}

static int db_exec(struct sqlite_db *db, const char *sql, const char *what, struct err *e)
{
    int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : db_fail(db, rc, what, e);
}

/* Steps a statement that returns at most one row, and resets it: 1 with a row, 0 without. With
 * 'keep' the row stays readable until the next use. */
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

/* Records that 'key' is at 'revision' now, in a row with that sum; 0: deleted. 'k': its entry,
 * if any. */
static void live_set(struct sqlite_db *db, struct live_key *k, const char *key, uint64_t revision,
                     uint64_t sum)
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
    k->sum = sum;
}

static struct leftover *leftover_first(const struct sqlite_db *db)
{
    return db->n_leftovers ? &db->leftovers[db->first_leftover] : NULL;
}

static void leftover_push(struct sqlite_db *db, const struct leftover *l)
{
    if (db->n_leftovers == db->cap_leftovers) {
        size_t cap = MAX(db->cap_leftovers * 2, (size_t) 64);
        struct leftover *ring = xcalloc(cap, sizeof *ring);
        for (size_t i = 0; i < db->n_leftovers; i++) {
            ring[i] = db->leftovers[(db->first_leftover + i) % db->cap_leftovers];
        }
        free(db->leftovers);
        db->leftovers = ring;
        db->cap_leftovers = cap;
        db->first_leftover = 0;
    }
    db->leftovers[(db->first_leftover + db->n_leftovers++) % db->cap_leftovers] = *l;
}

static void leftover_pop(struct sqlite_db *db)
{
    db->first_leftover = (db->first_leftover + 1) % db->cap_leftovers;
    db->n_leftovers--;
}

/* ---- opening ---- */

/* An existing file is not opened here: closing it would drop SQLite's locks on it (fcntl(2)). */
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

/* Creates it with the right mode before SQLite opens it. */
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

/* Whether the file is ours, checked before the first write. '*ret_version' 0: it is empty. */
static int schema_check(struct sqlite_db *db, int64_t *ret_version, struct err *e)
{
    int64_t app = 0, version = 0, tables = 0;
    int r;
    if ((r = query_int(db, "PRAGMA application_id", &app, e)) < 0 ||
        (r = query_int(db, "PRAGMA user_version", &version, e)) < 0 ||
        (r = query_int(db, "SELECT count(*) FROM sqlite_schema", &tables, e)) < 0) {
        return r;
    }
    *ret_version = version;
    if (app == 0 && version == 0 && tables == 0) {
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
    return version < 1
               ? err_set(e, -EUCLEAN,
                         "database %s: the file is corrupt: there is no schema %lld: " DAMAGE_HELP,
                         db->path, (long long) version)
               : 0;
}

static int on_commit(void *ctx, sqlite3 *sql, const char *name, int pages)
{
    struct sqlite_db *db = ctx;
    db->wal_pages = db->wal_frames = pages;
    db->wal_written = true;
    return SQLITE_OK;
}

#define TABLE_CHANGE                                                          \
    "(rev INTEGER PRIMARY KEY, prev_rev INTEGER NOT NULL, key TEXT NOT NULL," \
    " value BLOB, sum INTEGER NOT NULL) STRICT;"
#define TABLE_STATE                                                                     \
    "CREATE TABLE state (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, total INTEGER NOT" \
    " NULL) STRICT;"

static int schema_create(struct sqlite_db *db, struct err *e)
{
    char sql[512];
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE;"
             "CREATE TABLE change " TABLE_CHANGE TABLE_STATE "INSERT INTO state VALUES (1, 0, 0);"
             "PRAGMA application_id = %d; PRAGMA user_version = %d;"
             "COMMIT",
             APPLICATION_ID, SCHEMA_VERSION);
    return db_exec(db, sql, "create the schema", e);
}

/* Adds the checksums to a file of schema 1, in a transaction that sqlite_db_open
 * commits when it has read the rows. */
static int schema_upgrade(struct sqlite_db *db, struct err *e)
{
    int64_t damages = 0;
    int r = query_int(db,
                      "SELECT count(*) FROM pragma_integrity_check(1) WHERE integrity_check"
                      " <> 'ok'",
                      &damages, e);
    if (r < 0 || damages) {
        return r < 0 ? r
                     : err_set(e, -EUCLEAN, "database %s: the file is corrupt: " DAMAGE_HELP,
                               db->path);
    }
    log_info("database gets checksums", "database=%s", db->path);
    r = db_exec(db,
                "BEGIN IMMEDIATE;"
                "CREATE TABLE change2 " TABLE_CHANGE TABLE_STATE
                "INSERT INTO change2 SELECT rev, prev_rev, key, value,"
                " row_sum(rev, prev_rev, key, value) FROM change ORDER BY rev;"
                "DROP TABLE change; ALTER TABLE change2 RENAME TO change;"
                "INSERT INTO state SELECT 1, count(*), sum_of_sums(sum) FROM change;"
                "PRAGMA user_version = 2;",
                "add checksums", e);
    db->in_transaction = r == 0;
    return r;
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
    int64_t version;
    char sql[512];
    int r;
    /* A backup, or an administrator's shell, may hold a lock for a short time. */
    sqlite3_busy_timeout(db->sql, BUSY_MS);
    if ((rc = sqlite_sum_register(db->sql)) != SQLITE_OK) {
        return db_fail(db, rc, "add functions", e);
    }
    if ((r = schema_check(db, &version, e)) < 0) {
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
    if ((r = db_exec(db, sql, "set up", e)) < 0 || (!version && (r = schema_create(db, e)) < 0)) {
        return r;
    }
    /* Busy: there is a reader. Full: the data is safe in the WAL. */
    rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if (rc != SQLITE_OK && rc != SQLITE_BUSY && rc != SQLITE_FULL) {
        return db_fail(db, rc, "checkpoint", e);
    }
    sqlite3_wal_hook(db->sql, on_commit, db);
    if (version == 1 && (r = schema_upgrade(db, e)) < 0) {
        return r;
    }
    for (int i = 0; i < N_STATEMENTS; i++) {
        rc = sqlite3_prepare_v3(db->sql, statement_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                                &db->st[i], NULL);
        if (rc != SQLITE_OK) {
            return db_fail(db, rc, "read the schema", e);
        }
    }
    return 0;
}

/* ---- reading ---- */

struct row {
    uint64_t revision, prev_revision, sum;
    char *key;
    struct blob *value;
};
struct rows {
    struct row *v;
    size_t n, cap;
    size_t filled; /* Number of rows whose values were read. */
    struct sqlite_total total;
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

/* Takes the present row of 'st', if it can follow the earlier rows. */
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
                       "database %s: change %lld does not fit those before it: the file is "
                       "corrupt: " DAMAGE_HELP,
                       db->path, (long long) revision);
    }
    db->revision = db->newest = (uint64_t) revision;
    uint64_t sum = (uint64_t) sqlite3_column_int64(st, 4);
    live_set(db, k, key, deletion ? 0 : db->revision, sum);
    rows->v = grow(rows->v, &rows->cap, rows->n + 1, sizeof *rows->v);
    rows->v[rows->n++] = (struct row){db->revision, (uint64_t) prev, sum, xstrdup(key), NULL};
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

/* The statement reads rev, prev_rev, key, value, sum. */
static int row_verify(const struct sqlite_db *db, sqlite3_stmt *st, struct sqlite_total *total,
                      struct err *e)
{
    struct sqlite_row row = sqlite_row_of(st, 0);
    uint64_t sum = (uint64_t) sqlite3_column_int64(st, 4);
    if (sqlite_row_sum(&row) != sum) {
        return row_damaged(db, row.revision, row.key, e);
    }
    if (total) {
        sqlite_total_add(total, sum);
    }
    return 0;
}

static int row_fill(struct sqlite_db *db, sqlite3_stmt *st, struct rows *rows, struct err *e)
{
    if (rows->filled == rows->n) {
        return err_set(e, -EUCLEAN, "database %s: it was changed while it was read", db->path);
    }
    int r = row_verify(db, st, &rows->total, e);
    if (r == 0) {
        rows->v[rows->filled++].value = column_value(st, 3);
    }
    return r;
}

static int total_verify(struct sqlite_db *db, const struct sqlite_total *found, struct err *e)
{
    /* Without a row: -1 and 0. */
    int64_t n = 0, sum = 0;
    int r;
    if ((r = query_int(db, "SELECT coalesce(max(n), -1) FROM state WHERE id = 1", &n, e)) < 0 ||
        (r = query_int(db, "SELECT coalesce(max(total), 0) FROM state WHERE id = 1", &sum, e)) <
            0) {
        return r;
    }
    struct sqlite_total stored = {(uint64_t) n, (uint64_t) sum};
    return sqlite_total_equal(&stored, found)
               ? 0
               : err_set(
                     e, -EUCLEAN,
                     "database %s: the file is corrupt: it has %llu changes, and they are not the "
                     "%lld that were written: some are missing: " DAMAGE_HELP,
                     db->path, (unsigned long long) found->n, (long long) n);
}

/* Whether the file has all acknowledged changes. */
static int mark_verify(const struct sqlite_db *db, uint64_t mark, struct err *e)
{
    return db->newest >= mark
               ? 0
               : err_set(
                     e, -EUCLEAN,
                     "database %s: its newest change is %llu, but changes up to %llu were "
                     "acknowledged: the file is an older one, or its WAL was lost: put the right "
                     "one back, " DAMAGE_HELP,
                     db->path, (unsigned long long) db->newest, (unsigned long long) mark);
}

/* Values are read after all keys: the long-lived memory is then not mixed with temporary memory,
 * whose pages can be freed. */
static int rows_read(struct sqlite_db *db, struct rows *rows, struct err *e)
{
    int r = rows_query(db, "SELECT rev, prev_rev, key, value IS NULL, sum FROM change ORDER BY rev",
                       rows, row_take, e);
    if (r < 0 ||
        (r = rows_query(db, "SELECT rev, prev_rev, key, value, sum FROM change ORDER BY rev", rows,
                        row_fill, e)) < 0) {
        return r;
    }
    db->total = rows->total;
    return total_verify(db, &rows->total, e);
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const struct store_item *) a)->key, ((const struct store_item *) b)->key);
}

/* Index of the first row of the complete history: after it no change and no replaced value is
 * missing. */
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

/* The position of compaction is not stored: the remaining rows show it. */
static void leftovers_find(struct sqlite_db *db, const struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *row = &rows->v[i];
        const struct row *prev = row->prev_revision ? row_find(rows, row->prev_revision) : NULL;
        if (prev || !row->value) {
            leftover_push(db, &(struct leftover){.revision = row->revision,
                                                 .sum = row->sum,
                                                 .prev_revision = prev ? prev->revision : 0,
                                                 .prev_sum = prev ? prev->sum : 0,
                                                 .deletion = !row->value});
        }
    }
}

/* Reads the rows, finishes an upgrade, and begins to watch the files. */
static int db_load(struct sqlite_db *db, struct rows *rows, struct err *e)
{
    int64_t page_size = 0;
    int r = rows_read(db, rows, e);
    if (r < 0 || (r = mark_verify(db, sqlite_mark_read(db->lock_fd), e)) < 0 ||
        (r = query_int(db, "PRAGMA page_size", &page_size, e)) < 0 ||
        (r = sqlite_watch_begin(&db->watch, db->path, (size_t) page_size, db->wal_frames, db->sql,
                                e)) < 0) {
        return r;
    }
    leftovers_find(db, rows);
    db->scrub_ms = time_mono_ms() + SCRUB_PAUSE_MS;
    return sqlite_db_commit(db, e);
}

/* A missing file with acknowledged changes was lost. */
static int absent_check(const char *path, int lock_fd, struct err *e)
{
    uint64_t mark = sqlite_mark_read(lock_fd);
    return mark ? err_set(
                      e, -EUCLEAN,
                      "database %s: the file is gone, but changes up to %llu were acknowledged in "
                      "it: put it back, or restore a backup (tenet store restore); only to begin "
                      "with an empty registry remove %s.lock",
                      path, (unsigned long long) mark, path)
                : 0;
}

int sqlite_db_open(const char *path, unsigned history, struct sqlite_db **ret,
                   struct sqlite_content **ret_content, struct err *e)
{
    CLEANUP(fd_close) int lock = -1;
    bool exists;
    int r = file_check(path, &exists, e);
    if (r < 0 || (r = sqlite_lock(path, &lock, e)) < 0 ||
        (!exists && ((r = absent_check(path, lock, e)) < 0 || (r = file_create(path, e)) < 0))) {
        return r;
    }
    CLEANUP(sqlite_db_close) struct sqlite_db *db = NEW(struct sqlite_db);
    db->path = xstrdup(path);
    db->lock_fd = fd_take(&lock);
    db->history = history;
    hmap_init(&db->live);
    struct rows rows = {0};
    if ((r = db_setup(db, e)) == 0 && (r = db_load(db, &rows, e)) == 0) {
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
    if (db->replaced) { /* Other files have the names now. */
        sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    /* The last connection to close checkpoints and removes the WAL. */
    sqlite3_close(db->sql);
    sqlite_watch_done(&db->watch);
    struct live_key *k;
    HMAP_FOREACH (k, struct live_key, node, &db->live) {
        free(k);
    }
    hmap_done(&db->live);
    free(db->leftovers);
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
    /* Checked before, as new frames would hide that the WAL had become shorter. */
    int r = sqlite_watch_check_size(&db->watch, db->wal_frames, db->sql, e);
    db->replaced |= r < 0;
    if (r == 0 && (r = db_step(db, ST_BEGIN, false, "begin", e)) == 0) {
        db->in_transaction = true;
    }
    return r;
}

static int row_delete(struct sqlite_db *db, uint64_t revision, uint64_t sum, struct err *e)
{
    sqlite3_bind_int64(db->st[ST_DELETE], 1, (int64_t) revision);
    int r = db_step(db, ST_DELETE, false, "compact", e);
    if (r == 0) {
        sqlite_total_remove(&db->total, sum);
        db->total_changed = true;
    }
    return r;
}

/* Does the compaction of the oldest change when it leaves the history. */
static int compact_one(struct sqlite_db *db, struct err *e)
{
    struct leftover l = *leftover_first(db);
    int r = l.prev_revision ? row_delete(db, l.prev_revision, l.prev_sum, e) : 0;
    if (r == 0 && l.deletion) {
        r = row_delete(db, l.revision, l.sum, e);
    }
    leftover_pop(db);
    return r;
}

static bool needs_compaction(const struct sqlite_db *db)
{
    const struct leftover *l = leftover_first(db);
    uint64_t history = db->full ? MIN(db->history, (uint64_t) FULL_HISTORY) : db->history;
    return l && l->revision + history <= db->revision;
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
    struct blob *value = NULL;
    r = r ? row_verify(db, db->st[ST_VALUE], NULL, e) : 0;
    if (r == 0) {
        value = column_value(db->st[ST_VALUE], 3);
    }
    sqlite3_reset(db->st[ST_VALUE]);
    if (r == 0 && !value) {
        return err_set(e, -EUCLEAN,
                       "database %s: change %llu is gone: the file is corrupt: " DAMAGE_HELP,
                       db->path, (unsigned long long) revision);
    }
    *ret = value;
    return r;
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
        k = live_find(db, w->claims[i].key);
        r = store_check_claim(&w->claims[i], k ? k->revision : 0);
    }
    return r;
}

/* One change; 'value' NULL: deletes the key. */
static int change(struct sqlite_db *db, const char *key, const struct blob *value,
                  uint64_t *ret_revision, struct blob **ret_prev, struct err *e)
{
    struct live_key *k = live_find(db, key);
    uint64_t current = k ? k->revision : 0, current_sum = k ? k->sum : 0,
             revision = db->revision + 1;
    int r = current ? value_read(db, current, ret_prev, e) : 0;
    if (r < 0) {
        return r;
    }
    struct sqlite_row row = {.revision = revision,
                             .prev_revision = current,
                             .key = key,
                             .key_size = strlen(key),
                             .deletion = !value};
    if (value) {
        row.value = value->data;
        row.value_size = value->size;
    }
    uint64_t sum = sqlite_row_sum(&row);
    sqlite3_stmt *st = db->st[ST_INSERT];
    sqlite3_bind_int64(st, 1, (int64_t) revision);
    sqlite3_bind_int64(st, 2, (int64_t) current);
    sqlite3_bind_text(st, 3, key, -1, SQLITE_STATIC);
    if (value) {
        sqlite3_bind_blob64(st, 4, value->data, value->size, SQLITE_STATIC);
    } else {
        sqlite3_bind_null(st, 4);
    }
    sqlite3_bind_int64(st, 5, (int64_t) sum);
    r = db_step(db, ST_INSERT, false, "write", e);
    sqlite3_clear_bindings(st);
    if (r < 0) {
        return r;
    }
    sqlite_total_add(&db->total, sum);
    db->total_changed = true;
    *ret_revision = db->revision = db->newest = revision;
    live_set(db, k, key, value ? revision : 0, sum);
    if (current) {
        leftover_push(db, &(struct leftover){.revision = revision,
                                             .sum = sum,
                                             .prev_revision = current,
                                             .prev_sum = current_sum,
                                             .deletion = !value});
    }
    return db->full ? 0 : compact_some(db, COMPACT_PER_WRITE, e);
}

/* Whether the file has enough free pages for growing writes though the disk is full. */
static int has_room(struct sqlite_db *db, bool *ret, struct err *e)
{
    uint64_t size = 0, unused = 0;
    int r = sqlite_db_space(db, &size, &unused, e);
    *ret = r == 0 && unused >= db->reserve;
    return r;
}

/* Checks whether 'value' (NULL: a deletion) needs more room than the key's present value and 'more'
 * bytes; '*ret' becomes true then. */
static int value_growth_check(struct sqlite_db *db, const char *key, const struct blob *value,
                              size_t more, bool *ret, struct err *e)
{
    const struct live_key *k = live_find(db, key);
    CLEANUP(blob_unref) struct blob *now = NULL;
    int r = k && value ? value_read(db, k->revision, &now, e) : 0;
    *ret |= value && (!now || value->size > now->size + more);
    return r;
}

/* Checks whether 'w' needs more room than it frees. */
static int growth_check(struct sqlite_db *db, const struct store_write *w, bool *ret, struct err *e)
{
    *ret = false;
    size_t more = w->ending ? STORE_ENDING_GROWTH : 0;
    int r = value_growth_check(db, w->key, w->value, more, ret, e);
    for (size_t i = 0; r == 0 && i < w->n_claims; i++) {
        r = value_growth_check(db, w->claims[i].key, w->claims[i].value, more, ret, e);
    }
    return r;
}

/* While the disk is full, allows only writes that do not grow: sets w->error otherwise. */
static int full_check(struct sqlite_db *db, struct store_write *w, struct err *e)
{
    bool grows = w->probe, room = true;
    int r = w->probe ? 0 : growth_check(db, w, &grows, e);
    if (r == 0 && grows && (r = has_room(db, &room, e)) == 0 && !room) {
        w->error = -ENOSPC;
    }
    return r;
}

int sqlite_db_apply(struct sqlite_db *db, struct store_write *w, struct err *e)
{
    w->error = w->probe ? 0 : check(db, w);
    int r = db->full && w->error == 0 ? full_check(db, w, e) : 0;
    if (r < 0 || w->error < 0 || (r = transaction_begin(db, e)) < 0) {
        return r;
    }
    if (w->probe) {
        return db_step(db, ST_PROBE, false, "write", e);
    }
    r = change(db, w->key, w->value, &w->revision, &w->prev, e);
    for (size_t i = 0; r == 0 && i < w->n_claims; i++) {
        struct store_write_claim *claim = &w->claims[i];
        if (claim->value || live_find(db, claim->key)) {
            r = change(db, claim->key, claim->value, &claim->revision, &claim->prev, e);
        }
    }
    return r;
}

static int total_store(struct sqlite_db *db, struct err *e)
{
    if (!db->total_changed) {
        return 0;
    }
    sqlite3_bind_int64(db->st[ST_TOTAL], 1, (int64_t) db->total.n);
    sqlite3_bind_int64(db->st[ST_TOTAL], 2, (int64_t) db->total.sum);
    int r = db_step(db, ST_TOTAL, false, "write", e);
    db->total_changed = false;
    return r;
}

static int scrub_all(struct sqlite_db *db, struct err *e);

/* Whether the committed changes are in files that exist after a restart. */
static int files_check(struct sqlite_db *db, struct err *e)
{
    int r = sqlite_watch_check(&db->watch, db->wal_frames, db->wal_written, db->sql, e);
    db->wal_written = false;
    db->replaced |= r < 0;
    if (r > 0) {
        log_warn("another process wrote to the database: it is read again", "database=%s",
                 db->path);
        r = scrub_all(db, e);
        sqlite_watch_settle(&db->watch);
    }
    return r;
}

int sqlite_db_commit(struct sqlite_db *db, struct err *e)
{
    if (!db->in_transaction) {
        return 0;
    }
    int r = total_store(db, e);
    if (r < 0 || (r = db_step(db, ST_COMMIT, false, "commit", e)) < 0) {
        return r;
    }
    db->in_transaction = false;
    db->n_commits++;
    if ((r = files_check(db, e)) == 0) {
        sqlite_mark_write(db->lock_fd, db->newest);
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

bool sqlite_db_is_replaced(const struct sqlite_db *db)
{
    return db->replaced;
}

/* ---- scrub ---- */

/* Reads a limited number of rows after db->scrub_at; '*ret_end': there are no more. */
static int scrub_rows(struct sqlite_db *db, unsigned max, bool *ret_end, struct err *e)
{
    sqlite3_stmt *st = db->st[ST_SCRUB];
    size_t bytes = 0;
    int rc = SQLITE_ROW, r = 0;
    sqlite3_bind_int64(st, 1, (int64_t) db->scrub_at);
    while (r == 0 && max-- > 0 && bytes < SCRUB_BYTES && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        db->scrub_at = (uint64_t) sqlite3_column_int64(st, 0);
        bytes += (size_t) sqlite3_column_bytes(st, 3);
        r = row_verify(db, st, &db->scrubbed, e);
    }
    *ret_end = rc == SQLITE_DONE;
    if (r == 0 && rc != SQLITE_ROW && rc != SQLITE_DONE) {
        r = db_fail(db, rc, "read", e);
    }
    sqlite3_reset(st);
    return r;
}

static void scrub_begin(struct sqlite_db *db)
{
    sqlite3_db_release_memory(db->sql); /* The cached pages may differ from the file. */
    db->scrub_at = 0;
    db->scrub_commits = db->n_commits;
    db->scrubbed = (struct sqlite_total){0};
}

/* All rows were read; their completeness can be checked if none was written meanwhile. */
static int scrub_end(struct sqlite_db *db, struct err *e)
{
    db->scrub_at = 0;
    db->scrub_ms = time_mono_ms() + SCRUB_PAUSE_MS;
    return db->scrub_commits == db->n_commits ? total_verify(db, &db->scrubbed, e) : 0;
}

static int scrub_all(struct sqlite_db *db, struct err *e)
{
    bool end = false;
    int r = 0;
    scrub_begin(db);
    while (r == 0 && !end) {
        r = scrub_rows(db, SCRUB_ROWS, &end, e);
    }
    return r < 0 ? r : scrub_end(db, e);
}

/* Reads a few rows; sets the time of the next step. */
static int scrub_step(struct sqlite_db *db, uint64_t now_ms, struct err *e)
{
    bool end = false;
    if (!db->scrub_at) {
        scrub_begin(db);
    }
    int r = scrub_rows(db, SCRUB_ROWS, &end, e);
    db->scrub_ms = now_ms + SCRUB_STEP_MS;
    return r == 0 && end ? scrub_end(db, e) : r;
}

/* ---- reserve ---- */

void sqlite_db_set_reserve(struct sqlite_db *db, uint64_t bytes)
{
    struct err e = {0};
    bool was_full = db->full;
    int r = sqlite_reserve_make(db->path, bytes, &e);
    db->reserve = bytes;
    db->full = r < 0 && sqlite_reserve_is_released(db->path);
    db->reserve_ms = time_mono_ms() + RESERVE_RETRY_MS;
    if (db->full && !was_full) {
        log_error(
            "the disk of the database is full: only deletions and writes that do not grow are "
            "done",
            "error=\"%s\"", e.text);
    } else if (was_full && !db->full) {
        log_info("the disk of the database has room again", "database=%s", db->path);
    } else if (r < 0 && !db->full) {
        log_warn("no disk space is reserved for deletions", "error=\"%s\"", e.text);
    }
}

bool sqlite_db_is_full(const struct sqlite_db *db)
{
    return db->full;
}

/* ---- upkeep ---- */

static void checkpoint(struct sqlite_db *db)
{
    int pages = 0, moved = 0;
    bool changed = sqlite_watch_file_changed(&db->watch);
    int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
    if (!changed) { /* Otherwise the next commit checks it. */
        sqlite_watch_settle(&db->watch);
    }
    if (rc == SQLITE_OK && moved == pages) {
        db->wal_pages = db->wal_failed_pages = 0;
        return;
    }
    /* There is a reader, or the disk is full. The writes are safe in the WAL; try again when it
     * has grown. */
    db->wal_failed_pages = db->wal_pages;
    log_warn("checkpoint did not finish", "database=%s reason=\"%s\" pages=%d moved=%d", db->path,
             rc == SQLITE_OK ? "another program reads" : sqlite3_errmsg(db->sql), pages, moved);
}

/* Maximum length of the WAL: half of the reserve must suffice to checkpoint it. */
static int checkpoint_pages(const struct sqlite_db *db, int usual)
{
    uint64_t most = db->reserve ? db->reserve / 2 / PAGE_SIZE : UINT64_MAX;
    return db->full ? FULL_CHECKPOINT_PAGES : (int) MIN((uint64_t) usual, most);
}

void sqlite_db_checkpoint(struct sqlite_db *db)
{
    if (db->wal_pages >= checkpoint_pages(db, CHECKPOINT_PAGES) + db->wal_failed_pages) {
        checkpoint(db);
    }
}

static bool checkpoint_due(const struct sqlite_db *db)
{
    return db->wal_pages >= checkpoint_pages(db, CHECKPOINT_IDLE_PAGES) + db->wal_failed_pages;
}

bool sqlite_db_upkeep_due(const struct sqlite_db *db)
{
    return needs_compaction(db) || checkpoint_due(db);
}

uint64_t sqlite_db_upkeep_at_ms(const struct sqlite_db *db)
{
    return db->full ? MIN(db->scrub_ms, db->reserve_ms) : db->scrub_ms;
}

int sqlite_db_upkeep(struct sqlite_db *db, struct err *e)
{
    uint64_t now = time_mono_ms();
    if (db->full && now >= db->reserve_ms) {
        sqlite_db_set_reserve(db, db->reserve);
    }
    if (now >= db->scrub_ms) {
        return scrub_step(db, now, e);
    }
    if (!needs_compaction(db)) {
        if (checkpoint_due(db)) {
            checkpoint(db);
        }
        return 0;
    }
    unsigned most = db->full ? FULL_COMPACT_PER_TRANSACTION : COMPACT_PER_TRANSACTION;
    int r = transaction_begin(db, e);
    if (r == 0 && (r = compact_some(db, most, e)) == 0) {
        r = sqlite_db_commit(db, e);
    }
    return r;
}
