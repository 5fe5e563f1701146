/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in one SQLite file: its schema, transactions, compaction and loading.
 *
 * One table, one row per change, appended in revision order; a row with a NULL value is a
 * deletion.  The mod revision of each live key is kept in memory, so a write touches no index:
 * appending costs a page or two of WAL (docs/store.md has the comparison with an index and with
 * a table of live keys).
 *
 * Compaction is part of the writes.  When a change leaves the newest 'history' ones, the row
 * that it replaced is deleted, and a deletion deletes itself.  Each change does so once; nothing
 * is searched.
 *
 * Each row has a checksum, and the one row of the table "state" has the total of all rows
 * (sqlite_sum.h).  Rows are verified at opening, when a value is replaced, and by a permanent
 * scrub.
 *
 * Used by one thread at a time.  After any error of a function below, the object must be closed:
 * opening the file again shows its real contents. */
#pragma once

#include "store/backend.h"

struct sqlite_db;

/* The contents of the file. */
struct sqlite_content {
    struct store_item *items; /* Live keys, in key order. */
    size_t n_items;
    struct store_event *events; /* The newest changes without a gap, oldest first. */
    size_t n_events;
    uint64_t revision; /* Revision of the newest change; 0: none yet. */
};
void sqlite_content_free(struct sqlite_content *c);

/* Opens 'path' as the only writer (by PATH.lock), or creates it with mode 0600, and reads it.
 * 'history' is at least 1.  -EBUSY: another process has it, or locks it too long; -EUCLEAN:
 * damaged, not a database, or without changes that were acknowledged; -EMEDIUMTYPE: of another
 * program; -ENOTSUP: of a newer version; or the errno of the system.  '*e' names the file. */
int sqlite_db_open(const char *path, unsigned history, struct sqlite_db **ret,
                   struct sqlite_content **ret_content, struct err *e);
/* Drops an open transaction, moves the WAL into the file, closes. */
struct sqlite_db *sqlite_db_close(struct sqlite_db *db);
DEFINE_CLEANUP(struct sqlite_db *, sqlite_db_close)

/* Makes revisions continue after 'revision', unless they are higher. Durable with the next
 * committed change. */
void sqlite_db_advance(struct sqlite_db *db, uint64_t revision);
/* Bytes of the file, and of its free pages. */
int sqlite_db_space(struct sqlite_db *db, uint64_t *ret_size, uint64_t *ret_unused, struct err *e);
/* Rewrites the file without free pages. */
int sqlite_db_vacuum(struct sqlite_db *db, struct err *e);

/* Does 'w' within the open transaction, which it begins when there is none, and sets its error,
 * revision and prev; a failed condition is no error of this function. */
int sqlite_db_apply(struct sqlite_db *db, struct store_write *w, struct err *e);
/* Makes all applied changes durable; does nothing without a transaction. -EIO also when the
 * opened files were replaced: then nothing may be acknowledged, and sqlite_db_is_replaced
 * returns true. */
int sqlite_db_commit(struct sqlite_db *db, struct err *e);
/* The files were deleted, replaced or truncated. Opening the path again would not find the
 * contents that this object still has. */
bool sqlite_db_is_replaced(const struct sqlite_db *db);
/* Whether the file is writable: an empty transaction that reaches the disk. */
int sqlite_db_probe(struct sqlite_db *db, struct err *e);

/* Moves the WAL into the file if it has become long; after a commit. */
void sqlite_db_checkpoint(struct sqlite_db *db);
/* Whether there is work when no write waits: a WAL of some length, or compaction that is behind
 * because the history was shortened. */
bool sqlite_db_upkeep_due(const struct sqlite_db *db);
/* Time of the next step of the scrub, which reads all rows in turn, or of the next attempt to
 * create the reserve. */
uint64_t sqlite_db_upkeep_at_ms(const struct sqlite_db *db);
/* Does a short piece of the pending work. */
int sqlite_db_upkeep(struct sqlite_db *db, struct err *e);

/* Reserves so many bytes of the disk for deletions (0: none), if possible. While the disk has no
 * room for them the database is full: writes that grow fail with -ENOSPC, unless the file has as
 * much unused room itself. */
void sqlite_db_set_reserve(struct sqlite_db *db, uint64_t bytes);
bool sqlite_db_is_full(const struct sqlite_db *db);
