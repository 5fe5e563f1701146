/* SPDX-License-Identifier: Apache-2.0 */
/* The files of one container's log, oldest first, as one sequence of bytes.
 *
 *     0.log                       the file that the runtime writes
 *     0.log.20261123-101500       rotated, the newest of them
 *     0.log.20261123-100000.gz    rotated before, compressed
 *
 * A reader opens its files at once, so that it loses nothing when they are rotated, compressed or
 * removed while it reads.  At the end of the last file log_files_advance finds what a rotation has
 * put in its place.  Calls block for file access only.  Used on one thread at a time. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

struct log_files;
/* 'path' is that of the file that is written.  'tail': begin with the last so many lines; negative:
 * with the first. -ENOENT: there is no such file. */
int log_files_open(const char *path, int64_t tail, struct log_files **ret, struct err *e);
struct log_files *log_files_free(struct log_files *f);
DEFINE_CLEANUP(struct log_files *, log_files_free)
/* Reads on; 0: the end of what there is now. */
ssize_t log_files_read(struct log_files *f, void *buf, size_t size, struct err *e);
/* Whether another file is at the path now. */
bool log_files_is_rotated(const struct log_files *f);
/* Goes on with what came after the file, if it was rotated; its rest is read first.  The runtime may
 * write to the renamed file until it has opened the new one, so the caller waits a little. */
bool log_files_advance(struct log_files *f);
