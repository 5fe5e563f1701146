/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void out_of_memory(void)
{
    static const char text[] = "tenet: out of memory\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void) n;
    abort();
}

void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p) {
        out_of_memory();
    }
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p) {
        out_of_memory();
    }
    return p;
}

void *xreallocarray(void *p, size_t n, size_t size)
{
    void *q = reallocarray(p, n ? n : 1, size ? size : 1);
    if (!q) {
        out_of_memory();
    }
    return q;
}

char *xstrdup(const char *s)
{
    return xmemdup(s, strlen(s) + 1);
}

char *xstrndup(const char *s, size_t size)
{
    size_t n = strnlen(s, size);
    char *p = xmalloc(n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

void *xmemdup(const void *src, size_t size)
{
    void *p = xmalloc(size);
    if (size) {
        memcpy(p, src, size);
    }
    return p;
}

char *xasprintf(const char *fmt, ...)
{
    char *s;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0) {
        out_of_memory();
    }
    return s;
}

void *grow(void *p, size_t *cap, size_t n, size_t size)
{
    if (n <= *cap) {
        return p;
    }
    size_t want = *cap ? *cap : 4;
    while (want < n) {
        if (want > SIZE_MAX / 2) {
            out_of_memory();
        }
        want *= 2;
    }
    p = xreallocarray(p, want, size);
    *cap = want;
    return p;
}

struct blob *blob_new(const void *data, size_t size)
{
    struct blob *b = xmalloc(sizeof *b + size + 1);
    b->refs = 1;
    b->reserved = 0;
    b->size = size;
    if (size) {
        memcpy(b->data, data, size);
    }
    b->data[size] = '\0';
    return b;
}

struct blob *blob_ref(struct blob *b)
{
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

struct blob *blob_unref(struct blob *b)
{
    if (b && __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        free(b);
    }
    return NULL;
}

int fd_close(int fd)
{
    if (fd >= 0) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return -1;
}
