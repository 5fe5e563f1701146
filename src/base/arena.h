/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed at once: for values with many small texts and arrays of one lifetime, such
 * as a container's specification.
 *
 * A zeroed arena is empty and valid.  All that comes from it lives until arena_done.  As in mem.h,
 * allocation cannot fail.  Not thread-safe. */
#pragma once

#include "base/macro.h"

#include <stdarg.h>

struct arena_block;
struct arena {
    struct arena_block *blocks;
    size_t used; /* Bytes of the newest block. */
};

void arena_done(struct arena *a); /* Frees everything; the arena is empty then. */
#define CLEANUP_ARENA __attribute__((cleanup(arena_done)))

/* Zeroed memory for 'n' elements of 'size' bytes, aligned for any type. */
void *arena_alloc(struct arena *a, size_t n, size_t size) __attribute__((returns_nonnull));
#define ARENA_NEW(a, type, n) ((type *) arena_alloc(a, n, sizeof(type)))
char *arena_strndup(struct arena *a, const char *s, size_t size) __attribute__((returns_nonnull));
/* NULL gives NULL. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3)
    __attribute__((returns_nonnull));
