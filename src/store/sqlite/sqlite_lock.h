/* SPDX-License-Identifier: Apache-2.0 */
/* PATH.lock beside a database: it excludes a second master, and stores the mark.
 *
 * The mark is the revision of the newest change that was acknowledged.  It is written after the
 * change is on the disk, and not synced itself: a crash of the master does not lose it, and after a
 * loss of power it is at most too low, never too high.  A database with a lower revision than
 * its mark has lost acknowledged changes, whatever the cause: its WAL was deleted or damaged, or
 * the file was replaced by an older one.  Blocking; one thread at a time. */
#pragma once

#include "base/err.h"

#include <stdint.h>

/* Closing '*ret_fd' releases the lock. -EBUSY: another process has it, which the error names. */
int sqlite_lock(const char *path, int *ret_fd, struct err *e);
/* 0: there is none, or it cannot be read. */
uint64_t sqlite_mark_read(int lock_fd);
/* Without the lock; also while a master has it. */
uint64_t sqlite_mark_of(const char *path);
/* Does not fail: without a mark, fewer losses are detected. */
void sqlite_mark_write(int lock_fd, uint64_t revision);
