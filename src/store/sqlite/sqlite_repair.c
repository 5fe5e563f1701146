/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_repair.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_file.h"
#include "store/sqlite/sqlite_lock.h"
#include "store/sqlite/sqlite_sum.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS 5000
#define MAX_TEXT 600
#define SUBNETS STORE_PREFIX "network.openshift.io/hostsubnets/"
#define VNIDS STORE_PREFIX "network.openshift.io/netnamespaces/"
/* After an unreadable page, this many revisions are tried one by one. */
#define STEP_BY_ONE 4096

struct found {
    uint64_t revision, prev_revision;
    char *key;
    struct blob *value; /* NULL: a deletion, or damaged. */
    bool deletion, good;
};

struct scan {
    const char *path;
    sqlite3 *sql;
    struct found *v;
    size_t n, cap;
    struct sqlite_total total; /* Total of the good rows. */
    bool keeps_values;
    bool missing; /* Some rows are unreadable or missing. */
    size_t n_findings;
    sqlite_finding_fn *fn;
    void *ctx;
};

static void finding(struct scan *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void finding(struct scan *s, const char *fmt, ...)
{
    char text[MAX_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->n_findings++;
    s->fn(s->ctx, text);
}

static void scan_done(struct scan *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].key);
        blob_unref(s->v[i].value);
    }
    free(s->v);
    sqlite3_close(s->sql);
}

/* ---- reading ---- */

static void row_take(struct scan *s, sqlite3_stmt *st)
{
    struct sqlite_row row = sqlite_row_of(st, 0);
    struct found f = {.revision = row.revision,
                      .prev_revision = row.prev_revision,
                      .key = xstrndup(row.key, row.key_size),
                      .deletion = row.deletion,
                      .good = sqlite_row_sum(&row) == (uint64_t) sqlite3_column_int64(st, 4)};
    if (f.good) {
        sqlite_total_add(&s->total, (uint64_t) sqlite3_column_int64(st, 4));
    } else {
        finding(s, "change %" PRIu64 " of the key \"%.300s\" is not what was written", f.revision,
                f.key);
    }
    if (f.good && !f.deletion && s->keeps_values) {
        f.value = blob_new(row.value, row.value_size);
    }
    s->v = grow(s->v, &s->cap, s->n + 1, sizeof *s->v);
    s->v[s->n++] = f;
}

/* Reads rows in order from 'from' until the end or an unreadable one: SQLite's code. */
static int rows_from(struct scan *s, uint64_t from)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(
        s->sql, "SELECT rev, prev_rev, key, value, sum FROM change WHERE rev >= ?1 ORDER BY rev",
        -1, &st, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, (int64_t) from);
        while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
            row_take(s, st);
        }
    }
    sqlite3_finalize(st);
    return rc;
}

/* The newest revision, searched from the end. */
static uint64_t last_revision(struct scan *s)
{
    sqlite3_stmt *st = NULL;
    uint64_t last = 0;
    if (sqlite3_prepare_v2(s->sql, "SELECT rev FROM change ORDER BY rev DESC LIMIT 1", -1, &st,
                           NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW) {
        last = (uint64_t) sqlite3_column_int64(st, 0);
    }
    sqlite3_finalize(st);
    return last;
}

static bool is_damage(int rc)
{
    return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

/* All readable rows, in order. */
static int rows_read(struct scan *s, struct err *e)
{
    int rc = rows_from(s, 0);
    uint64_t at = s->n ? s->v[s->n - 1].revision + 1 : 1, step = 0;
    uint64_t last = is_damage(rc) ? last_revision(s) : 0;
    if (is_damage(rc)) {
        s->missing = true;
        finding(s, "changes from %" PRIu64 " on: %s", at, sqlite3_errmsg(s->sql));
    }
    while (is_damage(rc) && at <= last) {
        size_t before = s->n;
        rc = rows_from(s, at);
        if (s->n > before) {
            at = s->v[s->n - 1].revision + 1;
            step = 0;
            continue;
        }
        step++;
        at += step < STEP_BY_ONE ? 1 : step;
    }
    return rc == SQLITE_DONE || is_damage(rc)
               ? 0
               : err_set(e, -EIO, "database %s: read: %s", s->path, sqlite3_errmsg(s->sql));
}

static int query(struct scan *s, const char *text, int64_t *ret)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->sql, text, -1, &st, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        *ret = sqlite3_column_int64(st, 0);
    }
    sqlite3_finalize(st);
    return rc == SQLITE_ROW ? 0 : -EUCLEAN;
}

/* Finds missing rows without a trace, and damage to the total's row. */
static void total_check(struct scan *s)
{
    int64_t n = 0, sum = 0;
    size_t damaged = 0;
    for (size_t i = 0; i < s->n; i++) {
        damaged += !s->v[i].good;
    }
    if (query(s, "SELECT n FROM state WHERE id = 1", &n) < 0 ||
        query(s, "SELECT total FROM state WHERE id = 1", &sum) < 0) {
        s->missing = true;
        finding(s, "how many changes there were cannot be read");
        return;
    }
    struct sqlite_total stored = {(uint64_t) n, (uint64_t) sum};
    if (stored.n != s->n) {
        s->missing = true;
        finding(s, "%zu changes are there, %" PRId64 " were written", s->n, n);
    } else if (!damaged && !sqlite_total_equal(&stored, &s->total)) {
        s->missing = true;
        finding(s, "the changes are not those that were written");
    }
}

static void mark_check(struct scan *s, uint64_t mark)
{
    uint64_t newest = s->n ? s->v[s->n - 1].revision : 0;
    if (newest < mark) {
        s->missing = true;
        finding(s, "changes up to %" PRIu64 " were acknowledged, the newest here is %" PRIu64, mark,
                newest);
    }
}

static int pages_check(struct scan *s, struct err *e)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->sql, "PRAGMA integrity_check(20)", -1, &st, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *text = (const char *) sqlite3_column_text(st, 0);
        if (!streq_null(text, "ok")) {
            finding(s, "SQLite: %.400s", text ? text : "");
        }
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    if (is_damage(rc)) {
        finding(s, "SQLite: %s", sqlite3_errmsg(s->sql));
        return 0;
    }
    return rc == SQLITE_DONE
               ? 0
               : err_set(e, -EIO, "database %s: read: %s", s->path, sqlite3_errmsg(s->sql));
}

static int scan_open(struct scan *s, struct err *e)
{
    struct stat st;
    int64_t version = 0;
    if (stat(s->path, &st) < 0) {
        return err_sys(e, -errno, "database %s", s->path);
    }
    if (sqlite3_open_v2(s->path, &s->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
        SQLITE_OK) {
        return err_set(e, -EIO, "database %s: %s", s->path, sqlite3_errmsg(s->sql));
    }
    sqlite3_busy_timeout(s->sql, BUSY_MS);
    if (query(s, "PRAGMA user_version", &version) < 0) {
        return err_set(e, -EUCLEAN, "database %s: nothing of it can be read: %s", s->path,
                       sqlite3_errmsg(s->sql));
    }
    return version == 1 ? err_set(e, -ENOTSUP,
                                  "database %s: it has no checksums yet: the master adds them when "
                                  "it starts",
                                  s->path)
                        : 0;
}

/* 'mark': the newest change known to have been acknowledged. */
static int scan_run(struct scan *s, uint64_t mark, struct err *e)
{
    int r = scan_open(s, e);
    if (r < 0 || (r = pages_check(s, e)) < 0 || (r = rows_read(s, e)) < 0) {
        return r;
    }
    total_check(s);
    mark_check(s, mark);
    return 0;
}

int sqlite_scan(const char *path, sqlite_finding_fn *fn, void *ctx, size_t *ret_n, struct err *e)
{
    struct scan s = {.path = path, .fn = fn, .ctx = ctx};
    int r = scan_run(&s, sqlite_mark_of(path), e);
    *ret_n = s.n_findings;
    scan_done(&s);
    return r == -ENOTSUP ? 0 : r;
}

/* ---- repair ---- */

/* The part of a key that names its kind: "/registry/pods/", "/registry/apps/deployments/". */
static size_t kind_size(const char *key)
{
    const char *slash =
        str_has_prefix(key, STORE_PREFIX) ? strchr(key + sizeof STORE_PREFIX - 1, '/') : NULL;
    bool group = slash && memchr(key + sizeof STORE_PREFIX - 1, '.',
                                 (size_t) (slash - key) - (sizeof STORE_PREFIX - 1));
    if (group) {
        slash = strchr(slash + 1, '/');
    }
    return slash ? (size_t) (slash - key) + 1 : 0;
}

/* Whether a good row has a key of the same kind: a kind that results from damage has none.
 * Damage does not produce the names of the two kinds that matter here. */
static bool kind_is_known(const struct scan *s, const char *key)
{
    size_t n = kind_size(key);
    if (str_has_prefix(key, SUBNETS) || str_has_prefix(key, VNIDS)) {
        return true;
    }
    for (size_t i = 0; n && i < s->n; i++) {
        if (s->v[i].good && strncmp(s->v[i].key, key, n) == 0) {
            return true;
        }
    }
    return false;
}

static const char *key_at(const struct scan *s, uint64_t revision)
{
    for (size_t i = 0; revision && i < s->n; i++) {
        if (s->v[i].revision == revision) {
            return s->v[i].key;
        }
    }
    return NULL;
}

/* The keys that are dropped, in 'ret', and the kinds of numbers that may be lost. */
static void find_dropped(const struct scan *s, struct smap *ret, struct sqlite_repair *result)
{
    bool unknown = s->missing;
    for (size_t i = 0; i < s->n; i++) {
        const struct found *f = &s->v[i];
        if (f->good) {
            continue;
        }
        const char *before = key_at(s, f->prev_revision);
        smap_set(ret, f->key, ret);
        if (before) {
            smap_set(ret, before, ret);
        }
        unknown |= !kind_is_known(s, f->key);
        result->holds_subnets |= str_has_prefix(f->key, SUBNETS);
        result->holds_vnids |= str_has_prefix(f->key, VNIDS);
    }
    result->holds_subnets |= unknown;
    result->holds_vnids |= unknown;
}

static int write_key(struct sqlite_db *db, const char *key, struct blob *value, uint64_t after,
                     struct err *e)
{
    struct store_write w = {.key = (char *) key, .value = value, .expect = STORE_ANY};
    sqlite_db_advance(db, after);
    int r = sqlite_db_apply(db, &w, e);
    blob_unref(w.prev);
    return r;
}

static int hold(struct sqlite_db *db, const char *key, struct err *e)
{
    static const char text[] = "{\"reason\":\"tenet store repair took damaged changes out\"}";
    CLEANUP(blob_unref) struct blob *value = blob_new(text, sizeof text - 1);
    return write_key(db, key, value, 0, e);
}

/* Writes the newest row of each key that is not dropped, at its revision; then the record of the
 * repair. */
static int write_rest(const struct scan *s, const struct smap *dropped, struct sqlite_db *db,
                      uint64_t mark, struct sqlite_repair *ret, struct err *e)
{
    struct smap newest;
    uint64_t last = mark;
    int r = 0;
    smap_init(&newest, NULL);
    for (size_t i = 0; i < s->n; i++) {
        smap_set(&newest, s->v[i].key, &s->v[i]);
        last = MAX(last, s->v[i].revision);
    }
    for (size_t i = 0; i < s->n && r == 0; i++) {
        const struct found *f = &s->v[i];
        if (f->value && smap_get(&newest, f->key) == f && !smap_get(dropped, f->key)) {
            ret->n_keys++;
            r = write_key(db, f->key, f->value, f->revision - 1, e);
        }
    }
    smap_done(&newest);
    sqlite_db_advance(db, last);
    if (r == 0 && ret->holds_subnets) {
        r = hold(db, STORE_HOLD_SUBNETS, e);
    }
    if (r == 0 && ret->holds_vnids) {
        r = hold(db, STORE_HOLD_VNIDS, e);
    }
    /* In any case: revisions continue after the lost ones, and watches cannot be resumed from
     * before. */
    if (r == 0 && (r = hold(db, STORE_REPAIR_KEY, e)) == 0) {
        r = write_key(db, STORE_REPAIR_KEY, NULL, 0, e);
    }
    return r < 0 ? r : sqlite_db_commit(db, e);
}

/* Renames 'path' and its WAL, and returns the new name. */
static int set_aside(const char *path, char **ret, struct err *e)
{
    struct stat st;
    CLEANUP_FREE char *to = xasprintf("%s.damaged", path);
    for (unsigned i = 2; stat(to, &st) == 0; i++) {
        free(to);
        to = xasprintf("%s.damaged-%u", path, i);
    }
    CLEANUP_FREE char *wal = xasprintf("%s-wal", path);
    CLEANUP_FREE char *to_wal = xasprintf("%s-wal", to);
    if (link(path, to) < 0) {
        return err_sys(e, -errno, "keep the damaged database as %s", to);
    }
    (void) rename(wal, to_wal);
    *ret = TAKE(to);
    return 0;
}

static int rebuild(struct scan *s, uint64_t mark, struct sqlite_repair *ret, struct err *e)
{
    CLEANUP_FREE char *copy = xasprintf("%s.repair", s->path);
    CLEANUP(sqlite_db_close) struct sqlite_db *db = NULL;
    struct sqlite_content *content = NULL;
    struct smap dropped;
    sqlite_file_remove(copy);
    int r = sqlite_db_open(copy, 1, &db, &content, e);
    sqlite_content_free(content);
    smap_init(&dropped, NULL);
    if (r == 0) {
        find_dropped(s, &dropped, ret);
        ret->n_dropped = dropped.map.n;
        r = write_rest(s, &dropped, db, mark, ret, e);
    }
    smap_done(&dropped);
    db = sqlite_db_close(db);
    /* The damaged file stays unchanged. */
    sqlite3_db_config(s->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(TAKE(s->sql));
    if (r == 0 && (r = set_aside(s->path, &ret->kept, e)) == 0) {
        r = sqlite_file_replace(copy, s->path, e);
    }
    sqlite_file_remove(copy);
    return r;
}

int sqlite_repair(const char *path, sqlite_finding_fn *fn, void *ctx, struct sqlite_repair *ret,
                  struct err *e)
{
    struct scan s = {.path = path, .fn = fn, .ctx = ctx, .keeps_values = true};
    CLEANUP(fd_close) int lock = -1;
    int r = sqlite_lock(path, &lock, e);
    if (r < 0) {
        return r;
    }
    uint64_t mark = sqlite_mark_read(lock);
    r = scan_run(&s, mark, e);
    lock = fd_close(lock); /* sqlite_file_replace takes the lock itself. */
    *ret = (struct sqlite_repair){.n_findings = s.n_findings};
    if (r == 0 && s.n_findings) {
        r = rebuild(&s, mark, ret, e);
    }
    scan_done(&s);
    return r;
}
