/* SPDX-License-Identifier: Apache-2.0 */
/* The registry in one SQLite file: its schema, transactions, compaction and what is read at start.
 *
 * One table, one row a change, appended in revision order; a row with a NULL value is a
 * deletion.  The mod revision of each live key is kept in memory, so a write touches no
 * index: appending costs a page or two of WAL (docs/store.md has the comparison with an
 * index and with a table of live keys).
 *
 * Compaction goes along with the writes.  When a change leaves the newest 'history'
 * ones, the row that it replaced is deleted, and a deletion deletes itself.  Each
 * change does so once; nothing is searched.
 *
 * Each row has a checksum, and the one row of the table "state" has the total of all rows
 * (sqlite_sum.h).  What is read is compared with them: at opening, when a value is replaced, and
 * by a scrub that goes on all the time.
 *
 * Used by one thread at a time.  After any error of a function below, the object must be closed:
 * opening the file again tells what really is in it. */
#pragma once

#include "store/backend.h"

struct sqlite_db;

/* All that the file holds. */
struct sqlite_content {
    struct store_item *items; /* Live keys, in key order. */
    size_t n_items;
    struct store_event *events; /* The newest changes without a gap, oldest first. */
    size_t n_events;
    uint64_t revision; /* Of the newest change; 0: none yet. */
};
void sqlite_content_free(struct sqlite_content *c);

/* Opens 'path' as the only one who writes (PATH.lock sees to that), or makes it with mode
 * 0600, and reads it.  'history' is at least 1.  -EBUSY: another process has it, or locks
 * it too long; -EUCLEAN: damaged, not a database, or without changes that were
 * acknowledged; -EMEDIUMTYPE: of another program; -ENOTSUP: of a newer version; or the
 * errno of the system.  '*e' names the file. */
int sqlite_db_open(const char *path, unsigned history, struct sqlite_db **ret,
                   struct sqlite_content **ret_content, struct err *e);
/* Drops an open transaction, moves the WAL into the file, closes. */
struct sqlite_db *sqlite_db_close(struct sqlite_db *db);
DEFINE_CLEANUP(struct sqlite_db *, sqlite_db_close)

/* Revisions go on after 'revision', if they are not further yet.  Lasts from the next
 * change that is committed. */
void sqlite_db_advance(struct sqlite_db *db, uint64_t revision);
/* Bytes of the file, and of those the free pages. */
int sqlite_db_space(struct sqlite_db *db, uint64_t *ret_size, uint64_t *ret_unused, struct err *e);
/* Writes the file anew, without free pages. */
int sqlite_db_vacuum(struct sqlite_db *db, struct err *e);

/* Does 'w' within the open transaction, which it begins when there is none, and sets its error,
 * revision and prev; a condition that does not hold is no error of this function. */
int sqlite_db_apply(struct sqlite_db *db, struct store_write *w, struct err *e);
/* Makes all that was applied durable; does nothing without a transaction.  -EIO also
 * when the files are not those any more that were opened: then nothing may be
 * acknowledged, and sqlite_db_is_replaced tells. */
int sqlite_db_commit(struct sqlite_db *db, struct err *e);
/* The files were deleted, replaced or cut off.  Opening the path again would not find
 * what this object still has. */
bool sqlite_db_is_replaced(const struct sqlite_db *db);
/* Whether the file is writable: an empty transaction that reaches the disk. */
int sqlite_db_probe(struct sqlite_db *db, struct err *e);

/* Moves the WAL into the file if it has become long; after a commit. */
void sqlite_db_checkpoint(struct sqlite_db *db);
/* Whether there is something to do when no write waits: a WAL of some length, or compaction that is
 * behind because the history was made shorter. */
bool sqlite_db_upkeep_due(const struct sqlite_db *db);
/* When the scrub goes on, which reads all rows in turn, or when the reserve is to be
 * tried again. */
uint64_t sqlite_db_upkeep_at_ms(const struct sqlite_db *db);
/* A short piece of what is due. */
int sqlite_db_upkeep(struct sqlite_db *db, struct err *e);

/* Keeps so many bytes of the disk for deletions (0: none), or tries to.  While the disk has
 * no room for them the database is full: writes that grow fail with -ENOSPC, unless the
 * file has as much unused room itself. */
void sqlite_db_set_reserve(struct sqlite_db *db, uint64_t bytes);
bool sqlite_db_is_full(const struct sqlite_db *db);
