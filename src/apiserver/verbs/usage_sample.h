/* SPDX-License-Identifier: Apache-2.0 */
/* What one node uses, as its kubelet reports it in /metrics/resource; and what it used between two
 * such reports.
 *
 * The text is the node's, which may be hostile: its size is bounded by the caller, its points here,
 * and amounts that cannot be are left out.  The caller checks which pods a node may speak of.
 * Pure. */
#pragma once

#include "base/err.h"
#include "base/map.h"
#include "wire/json.h"

#define USAGE_MAX_POINTS 5000 /* Containers of a node; further ones are left out. */

/* The counters of the node, or of a container.  -1: not reported. */
struct usage_point {
    int64_t time_ms, cpu_ns, memory_bytes;
    int64_t started_ms;
};

struct usage_sample {
    struct usage_point node;
    struct smap containers; /* struct usage_point by "NAMESPACE/POD/CONTAINER". */
    uint64_t read_ms;       /* When it came, on the monotonic clock. */
};

/* 'now_ms': the wall clock, for points without a time.  -EINVAL: malformed. */
int usage_sample_read(const char *text, size_t size, int64_t now_ms, struct usage_sample **ret,
                      struct err *e);
struct usage_sample *usage_sample_free(struct usage_sample *s);
DEFINE_CLEANUP(struct usage_sample *, usage_sample_free)

/* The use between two points. */
struct usage_window {
    int64_t nano_cores, memory_bytes;
    int64_t end_ms, length_ms;
};
/* False: the points do not follow each other (within 10 minutes), or the container was started
 * again between them.  'before' and 'now' may be NULL. */
bool usage_between(const struct usage_point *before, const struct usage_point *now,
                   struct usage_window *ret);
/* {"cpu": "1234567n", "memory": "5120Ki"}; owned. */
struct json *usage_amounts(const struct usage_window *w);
