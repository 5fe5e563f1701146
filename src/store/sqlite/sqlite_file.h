/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators do with the embedded store's file as a whole: copies, checks,
 * making it small.
 *
 * All block; errors name the file. */
#pragma once

#include "base/err.h"
#include "store/sqlite/sqlite_repair.h"

#include <stddef.h>
#include <stdint.h>

struct sqlite_file_info {
    uint64_t revision;
    size_t n_keys, n_history; /* Live keys; changes that watches can resume from. */
    uint64_t size, unused;    /* Bytes of the file, and of free pages in it. */
};

/* Removes the database 'path', which is nobody's, with all that stands beside it. */
void sqlite_file_remove(const char *path);

/* Writes the state of 'path' at one moment to 'to', also while a master works on it.  'to' must not
 * exist; it appears whole, checked, synced, with mode 0600, or not at all. */
int sqlite_file_backup(const char *path, const char *to, struct sqlite_file_info *ret,
                       struct err *e);
/* Reads everything, also while a master works on it: SQLite's own structure, the checksum of each
 * row, then that each change follows from those before it.  -EUCLEAN: damaged; 'fn' was called for
 * each thing that is.  Needs as much room beside the file as it is large. */
int sqlite_file_check(const char *path, sqlite_finding_fn *fn, void *ctx,
                      struct sqlite_file_info *ret, struct err *e);
/* Puts the backup 'from' in the place of 'path' (which may be absent), with the backup checked
 * before.  Revisions go on after the newest that either of the two has had.  -EBUSY: a master works
 * on 'path'; -EEXIST: it has keys, and not 'force'. */
int sqlite_file_restore(const char *from, const char *path, bool force,
                        struct sqlite_file_info *ret, struct err *e);
/* Whether what is at 'path' may be replaced, and the newest revision that it has had (0:
 * nothing is there).  -EBUSY: a master works on it; -EEXIST: it has keys, and not 'force';
 * -EUCLEAN: damaged, and not 'force'. */
int sqlite_file_replaceable(const char *path, bool force, uint64_t *ret_revision, struct err *e);
/* Puts the database 'from', which nobody has open, in the place of 'path'.  -EBUSY: a
 * master works on 'path'. */
int sqlite_file_replace(const char *from, const char *path, struct err *e);
/* Gives free pages back to the disk.  -EBUSY: a master works on it.  Needs room for a
 * second file. */
int sqlite_file_defrag(const char *path, struct sqlite_file_info *before,
                       struct sqlite_file_info *after, struct err *e);
