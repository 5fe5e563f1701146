/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

#define BLOCK_SIZE 4000

struct arena_block {
    struct arena_block *next;
    size_t size;
    max_align_t data[];
};

void arena_done(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *b = a->blocks;
        a->blocks = b->next;
        free(b);
    }
    a->used = 0;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    if (size && n > (SIZE_MAX / 2) / size) {
        abort();
    }
    size_t want = (n * size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!a->blocks || a->blocks->size - a->used < want) {
        size_t room = MAX(want, (size_t) BLOCK_SIZE);
        struct arena_block *b = xcalloc(1, sizeof *b + room);
        b->size = room;
        b->next = a->blocks;
        a->blocks = b;
        a->used = 0;
    }
    void *p = (char *) a->blocks->data + a->used;
    a->used += want;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t size)
{
    char *p = arena_alloc(a, size + 1, 1);
    memcpy(p, s, size);
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    return arena_strndup(a, strbuf_cstr(&b), b.size);
}
