/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests in a file or a directory, read when inotify reports a change and at a slow interval.
 *
 * All regular files of the directory itself are manifests but those whose names begin with a dot;
 * symbolic links are followed.  A path that does not exist has no manifests; one that cannot be read
 * changes nothing.  Everything runs on the loop's thread. */
#pragma once

#include "base/err.h"
#include "net/loop/loop.h"

/* One manifest as it was read. */
struct manifest_text {
    const char *path;
    const char *text; /* NUL follows it. */
    size_t size;
    const char *error; /* Why it was not read; NULL: it was. */
};
/* All manifests that there are now, in the order of their names; borrowed for the call. */
typedef void manifests_read_fn(void *ctx, const struct manifest_text *v, size_t n);

#define MANIFEST_MAX_SIZE (1 << 20)
#define MANIFEST_MAX_FILES 1000

struct file_source;
/* Reads 'path' soon, and then at changes and every 'interval_ms'. */
struct file_source *file_source_new(struct loop *l, const char *path, uint64_t interval_ms,
                                    manifests_read_fn *fn, void *ctx);
struct file_source *file_source_free(struct file_source *s);
