/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_watch.h"

#include "base/mem.h"
#include "base/str.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define CUT_OFF "was cut off or written over"
#define MOST_RESTARTS 16 /* Between two checks. */

static sqlite3_int64 frame_offset(const struct sqlite_watch *w, int frame)
{
    return WAL_HEADER_SIZE +
           (sqlite3_int64) (frame - 1) * (WAL_FRAME_HEADER_SIZE + (sqlite3_int64) w->page_size);
}

/* SQLite's own descriptor; NULL: it is not open. */
static sqlite3_file *wal_file(sqlite3 *sql)
{
    sqlite3_file *wal = NULL;
    sqlite3_file_control(sql, NULL, SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    return wal && wal->pMethods ? wal : NULL;
}

static int wal_read(sqlite3 *sql, void *p, int size, sqlite3_int64 offset)
{
    sqlite3_file *wal = wal_file(sql);
    return wal && wal->pMethods->xRead(wal, p, size, offset) == SQLITE_OK ? 0 : -EIO;
}

/* Records the beginning and the end of the WAL. */
static int wal_note(struct sqlite_watch *w, int frames, sqlite3 *sql)
{
    bool first = !w->frames;
    w->frames = frames;
    if (!frames) {
        return 0;
    }
    int r = first ? wal_read(sql, w->header, sizeof w->header, 0) : 0;
    return r < 0 ? r : wal_read(sql, w->last_frame, sizeof w->last_frame, frame_offset(w, frames));
}

int sqlite_watch_begin(struct sqlite_watch *w, const char *path, size_t page_size, int frames,
                       sqlite3 *sql, struct err *e)
{
    w->path = xstrdup(path);
    w->wal_path = xasprintf("%s-wal", path);
    w->page_size = page_size;
    if (stat(path, &w->file) < 0) {
        return err_sys(e, -errno, "database %s", path);
    }
    w->has_wal = stat(w->wal_path, &w->wal) == 0;
    int r = wal_note(w, frames, sql);
    return r < 0 ? err_set(e, r, "database %s: its WAL cannot be read", path) : 0;
}

void sqlite_watch_done(struct sqlite_watch *w)
{
    free(w->path);
    free(w->wal_path);
}

/* Describes the change of the file at 'path' since 'was'; NULL: none. */
static const char *identity_check(const char *path, const struct stat *was, struct stat *ret_now)
{
    if (stat(path, ret_now) < 0) {
        return errno == ENOENT ? "was deleted" : "cannot be looked at any more";
    }
    if (ret_now->st_dev != was->st_dev || ret_now->st_ino != was->st_ino) {
        return "was replaced by another file";
    }
    return NULL;
}

static uint32_t be32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return be32toh(v);
}

/* Whether the WAL was restarted, as a commit does after a complete checkpoint: then the sequence
 * number and the first salt of its header have grown by the same number. */
static bool begun_anew(const char *before, const char *now)
{
    uint32_t grown = be32(now + 12) - be32(before + 12);
    return grown >= 1 && grown <= MOST_RESTARTS && be32(now + 16) - be32(before + 16) == grown &&
           memcmp(before, now, 12) == 0;
}

/* Whether the part seen by the last check is still in the WAL. */
static bool wal_continues(struct sqlite_watch *w, bool written, sqlite3 *sql)
{
    char header[WAL_HEADER_SIZE], frame[WAL_FRAME_HEADER_SIZE];
    if (wal_read(sql, header, sizeof header, 0) < 0) {
        return false;
    }
    if (written && begun_anew(w->header, header)) {
        memcpy(w->header, header, sizeof header);
        return true;
    }
    return memcmp(header, w->header, sizeof header) == 0 &&
           wal_read(sql, frame, sizeof frame, frame_offset(w, w->frames)) == 0 &&
           memcmp(frame, w->last_frame, sizeof frame) == 0;
}

/* The same for the WAL, which may only grow. */
static const char *wal_check(struct sqlite_watch *w, int frames, bool written, sqlite3 *sql)
{
    struct stat now;
    const char *what = NULL;
    if (!w->has_wal) { /* The first commit created it. */
        w->has_wal = stat(w->wal_path, &w->wal) == 0;
    }
    what = w->has_wal || !frames ? NULL : "was deleted";
    if (!what && w->has_wal) {
        what = identity_check(w->wal_path, &w->wal, &now);
    }
    if (what || !frames) {
        return what;
    }
    if (now.st_size < frame_offset(w, frames + 1)) {
        return CUT_OFF;
    }
    if (w->frames && !wal_continues(w, written, sql)) {
        return CUT_OFF;
    }
    return wal_note(w, frames, sql) < 0 ? "cannot be read" : NULL;
}

static int refuse(const char *path, const char *what, struct err *e)
{
    return err_set(e, -EIO,
                   "database %s %s while the master worked on it: nothing is written any more; put "
                   "the file back or restore a backup, then restart the master",
                   path, what);
}

static bool is_changed(const struct sqlite_watch *w, const struct stat *now)
{
    return now->st_size != w->file.st_size || now->st_mtim.tv_sec != w->file.st_mtim.tv_sec ||
           now->st_mtim.tv_nsec != w->file.st_mtim.tv_nsec;
}

int sqlite_watch_check(struct sqlite_watch *w, int frames, bool written, sqlite3 *sql,
                       struct err *e)
{
    struct stat now;
    const char *what = identity_check(w->path, &w->file, &now);
    if (!what && now.st_size < w->file.st_size) {
        what = "was cut off";
    }
    if (what) {
        return refuse(w->path, what, e);
    }
    what = wal_check(w, frames, written, sql);
    return what ? refuse(w->wal_path, what, e) : is_changed(w, &now);
}

int sqlite_watch_check_size(const struct sqlite_watch *w, int frames, sqlite3 *sql, struct err *e)
{
    sqlite3_int64 size = 0;
    sqlite3_file *wal = wal_file(sql);
    bool whole = !frames || (wal && wal->pMethods->xFileSize(wal, &size) == SQLITE_OK &&
                             size >= frame_offset(w, frames + 1));
    return whole ? 0 : refuse(w->wal_path, CUT_OFF, e);
}

bool sqlite_watch_file_changed(const struct sqlite_watch *w)
{
    struct stat now;
    return stat(w->path, &now) < 0 || is_changed(w, &now);
}

void sqlite_watch_settle(struct sqlite_watch *w)
{
    struct stat now;
    if (stat(w->path, &now) == 0) {
        w->file = now;
    }
}
