/* SPDX-License-Identifier: Apache-2.0 */
/* What pods use of memory, processes and local storage, as eviction counts it.
 *
 * Memory and processes are read from control groups, storage by walking the pods' emptyDirs and logs.
 * Both happen on a worker thread; all functions are called on the loop's.  Writable layers of
 * containers are not part of it. */
#pragma once

#include "net/loop/loop.h"
#include "pod/evict.h"
#include "pod/observed.h"
#include "pod/spec.h"

struct usage;

/* One measurement. 'disk': storage is measured too.  'node' and 'root_dir' are borrowed until
 * measurement_start. */
struct measurement *measurement_new(struct loop *l, const struct pod_node *node,
                                    const char *root_dir, bool disk);
/* Adds a pod, which is copied. */
void measurement_add(struct measurement *u, const struct json *pod, const struct pod_observed *o);
size_t measurement_count(const struct measurement *u);

/* 'pods' is borrowed for the callback, in the order in which they were added. */
typedef void measurement_done_fn(void *ctx, const struct evict_usage *pods, size_t n);
/* Ends by 'done' exactly once and later, which frees it, unless measurement_free comes before. */
void measurement_start(struct measurement *u, measurement_done_fn *done, void *ctx);
/* Gives it up, also while the thread runs. NULL is fine. */
struct measurement *measurement_free(struct measurement *u);
