/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of containers' logs: a file above a size is renamed, the runtime opens a new one, older
 * files are compressed, and the oldest are removed.
 *
 *     0.log  →  0.log.20261123-101500  →  0.log.20261123-101500.gz
 *
 * The newest rotated file stays as it is, because its readers may not be at its end, and the runtime
 * may write to it until it has opened the new one.  If the runtime does not, the file gets its name
 * back.  Compression runs on a worker thread, one file at a time.
 *
 * Everything else runs on the loop's thread. */
#pragma once

#include "net/loop/loop.h"
#include "runtime/runtime.h"

struct log_rotation_config {
    uint64_t max_bytes;      /* 0: 10 MiB. */
    unsigned max_files;      /* The one that is written included, at least 2; 0: 5. */
    uint64_t period_ms;      /* Between looks at the sizes; 0: 10,000. */
    struct runtime *runtime; /* Borrowed. */
    /* Calls 'add' for each running container; texts are borrowed for the call. */
    void (*each)(void *ctx, void (*add)(void *rotation, const char *id, const char *log_path),
                 void *rotation);
    void *ctx;
};

struct log_rotation;
/* Looks at the sizes from now on. */
struct log_rotation *log_rotation_new(struct loop *l, const struct log_rotation_config *cfg);
/* Waits for a file that is being compressed. */
struct log_rotation *log_rotation_free(struct log_rotation *r);
