/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: a growing buffer with a maximum, and bounded parsers of numbers.
 *
 * A strbuf is made with the largest size it may ever reach; an append that does not fit is
 * refused with -ENOBUFS, leaves the buffer unchanged and sets 'failed', so that a chain of
 * appends needs one check at its end.  STRBUF_INIT has no practical limit and is for text made
 * by our own code. Not thread-safe; the owner of the struct owns the bytes. */
#pragma once

#include "base/macro.h"

#include <stdarg.h>
#include <string.h>

struct strbuf {
    char *data;  /* NUL-terminated when not NULL. */
    size_t size; /* Bytes used, without the NUL. */
    size_t cap;
    size_t max;  /* Largest 'size'. */
    bool failed; /* An append was refused since the last strbuf_reset. */
};

#define STRBUF_INIT_MAX(m) ((struct strbuf){.max = (m)})
#define STRBUF_INIT STRBUF_INIT_MAX(SIZE_MAX / 4)

void strbuf_done(struct strbuf *b); /* Frees the bytes; the struct can be used again. */
static inline UNUSED void strbuf_donep(struct strbuf *b)
{
    strbuf_done(b);
}
/* CLEANUP_STRBUF struct strbuf b = STRBUF_INIT; */
#define CLEANUP_STRBUF __attribute__((cleanup(strbuf_donep)))

void strbuf_reset(struct strbuf *b); /* Empties it, keeps the memory. */
int strbuf_add(struct strbuf *b, const void *p, size_t size);
int strbuf_adds(struct strbuf *b, const char *s);
/* At most 'max' bytes of 's'. */
int strbuf_addn(struct strbuf *b, const char *s, size_t max);
int strbuf_addc(struct strbuf *b, char c);
int strbuf_addf(struct strbuf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
int strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
/* Room for 'size' more bytes; returns where they start, or NULL.  Does not change 'size'. */
char *strbuf_reserve(struct strbuf *b, size_t size);
void strbuf_consume(struct strbuf *b, size_t n); /* Drops the first 'n' bytes. */
char *strbuf_steal(struct strbuf *b); /* Owned string (never NULL); the buffer is empty. */
static inline const char *strbuf_cstr(const struct strbuf *b)
{
    return b->data ? b->data : "";
}

static inline bool streq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}
/* Like streq, where NULL equals only NULL. */
bool streq_null(const char *a, const char *b);
bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);

/* Whole of 's' as a decimal number in min..max: no sign (but '-' for i64), no blanks, no leading
 * '+'.  -EINVAL: not a number; -ERANGE: outside.  '*ret' untouched on failure. */
int str_to_u64(const char *s, uint64_t max, uint64_t *ret);
int str_to_i64(const char *s, int64_t min, int64_t max, int64_t *ret);

/* 64-bit FNV-1a, and the 32-bit fold for hmap. */
uint64_t hash_bytes(const void *p, size_t size);
uint32_t hash32(const void *p, size_t size);
uint32_t hash_string(const char *s);
