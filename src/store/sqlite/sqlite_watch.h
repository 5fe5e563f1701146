/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the database's files are still those that the master writes to.
 *
 * A deleted or replaced file still accepts writes, which are lost when the process ends.  After
 * each commit, before it is acknowledged, the watch compares: device, inode and links of the
 * file and of its WAL, the sizes, the header of the WAL and of the last frame before the commit.
 * These are two calls of stat and two short reads. Used by the writing thread. */
#pragma once

#include "base/err.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define WAL_HEADER_SIZE 32
#define WAL_FRAME_HEADER_SIZE 24

struct sqlite_watch {
    char *path, *wal_path;
    size_t page_size;
    struct stat file, wal;
    bool has_wal;
    int frames; /* Frames in the WAL at the last check. */
    char header[WAL_HEADER_SIZE];
    char last_frame[WAL_FRAME_HEADER_SIZE]; /* Its header. */
};

/* 'sql' has opened 'path', and its WAL is empty or has 'frames' frames. */
int sqlite_watch_begin(struct sqlite_watch *w, const char *path, size_t page_size, int frames,
                       sqlite3 *sql, struct err *e);
void sqlite_watch_done(struct sqlite_watch *w);
/* The WAL has 'frames' frames now; 'written': by commits since the last check.  0; 1: no loss
 * detected, but another process wrote to the file itself; -EIO: a file was replaced, deleted,
 * truncated or overwritten. */
int sqlite_watch_check(struct sqlite_watch *w, int frames, bool written, sqlite3 *sql,
                       struct err *e);
/* Before a commit: -EIO: the WAL is shorter than 'frames' frames. */
int sqlite_watch_check_size(const struct sqlite_watch *w, int frames, sqlite3 *sql, struct err *e);
/* Whether another process has written to the file itself since sqlite_watch_settle. */
bool sqlite_watch_file_changed(const struct sqlite_watch *w);
/* The file has its expected content now: after a checkpoint. */
void sqlite_watch_settle(struct sqlite_watch *w);
