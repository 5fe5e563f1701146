/* SPDX-License-Identifier: Apache-2.0 */
/* Administrators' operations on the embedded store's file as a whole: copy, check, shrink.
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
    uint64_t size, unused;    /* Bytes of the file, and of its free pages. */
};

/* Removes the database 'path', which must not be in use, and all files beside it. */
void sqlite_file_remove(const char *path);

/* Writes the state of 'path' at one moment to 'to', also while a master works on it.  'to' must not
 * exist; it appears complete, checked, synced, with mode 0600, or not at all. */
int sqlite_file_backup(const char *path, const char *to, struct sqlite_file_info *ret,
                       struct err *e);
/* Reads everything, also while a master works on it: SQLite's own structure, the checksum of each
 * row, then that each change follows from those before it.  -EUCLEAN: damaged; 'fn' was called
 * for each damage. Needs as much disk space as the file. */
int sqlite_file_check(const char *path, sqlite_finding_fn *fn, void *ctx,
                      struct sqlite_file_info *ret, struct err *e);
/* Checks the backup 'from' and puts it in the place of 'path' (which may be absent), with the owner
 * that the file, or else its folder, has. Revisions continue after the newest one of both.
 * -EBUSY: a master works on 'path'; -EEXIST: it has keys, and not 'force'. */
int sqlite_file_restore(const char *from, const char *path, bool force,
                        struct sqlite_file_info *ret, struct err *e);
/* Whether the file at 'path' may be replaced, and its newest revision (0: no file). -EBUSY: a
 * master works on it; -EEXIST: it has keys, and not 'force'; -EUCLEAN: damaged, and not 'force'. */
int sqlite_file_replaceable(const char *path, bool force, uint64_t *ret_revision, struct err *e);
/* Puts the database 'from', which nobody has open, in the place of 'path'.  -EBUSY: a
 * master works on 'path'. */
int sqlite_file_replace(const char *from, const char *path, struct err *e);
/* Returns free pages to the disk. -EBUSY: a master works on it. Needs room for a second file. */
int sqlite_file_defrag(const char *path, struct sqlite_file_info *before,
                       struct sqlite_file_info *after, struct err *e);
