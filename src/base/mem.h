/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: allocation that cannot fail, and blobs.
 *
 * Small allocations abort the process when memory is out: no code path of ours could do better, and
 * a restart loses nothing (state is in the store, in OVSDB and in the kernel).  The code that
 * reads from a peer bounds sizes that the peer chooses, before it allocates.
 *
 * A blob is an immutable, reference-counted run of bytes: a stored object, an encoded watch event.
 * It is shared by pointer and never copied.  The count is atomic: blobs may cross threads. */
#pragma once

#include "base/macro.h"

#include <stdlib.h>

void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));
/* Aborts when n * size overflows, too. */
void *xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t size) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t size) __attribute__((malloc, returns_nonnull));
/* 'p' as an owned formatted string. */
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2) __attribute__((returns_nonnull));

#define NEW(type) ((type *) xcalloc(1, sizeof(type)))

/* Grows the array 'p' (of capacity '*cap' elements of 'size' bytes) so that it holds 'n' elements;
 * returns the array, doubling as needed. */
void *grow(void *p, size_t *cap, size_t n, size_t size);

static inline UNUSED void freep_(void *p)
{
    free(*(void **) p);
}
/* CLEANUP_FREE char *s = xstrdup(...); */
#define CLEANUP_FREE __attribute__((cleanup(freep_)))

struct blob {
    uint32_t refs;
    uint32_t reserved;
    size_t size;
    char data[]; /* 'size' bytes, then one NUL that is not counted. */
};

struct blob *blob_new(const void *data, size_t size); /* The caller owns one reference. */
struct blob *blob_ref(struct blob *b);
struct blob *blob_unref(struct blob *b); /* NULL is fine; returns NULL. */
DEFINE_CLEANUP(struct blob *, blob_unref)
