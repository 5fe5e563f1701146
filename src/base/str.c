/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

void strbuf_done(struct strbuf *b)
{
    free(b->data);
    *b = STRBUF_INIT_MAX(b->max);
}

void strbuf_reset(struct strbuf *b)
{
    b->size = 0;
    b->failed = false;
    if (b->data) {
        b->data[0] = '\0';
    }
}

char *strbuf_reserve(struct strbuf *b, size_t size)
{
    if (size > b->max || b->size > b->max - size) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->size + size + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < need) {
            cap *= 2;
        }
        b->data = xreallocarray(b->data, cap, 1);
        b->cap = cap;
    }
    b->data[b->size] = '\0';
    return b->data + b->size;
}

int strbuf_add(struct strbuf *b, const void *p, size_t size)
{
    char *at = strbuf_reserve(b, size);
    if (!at) {
        return -ENOBUFS;
    }
    if (size) {
        memcpy(at, p, size);
    }
    b->size += size;
    b->data[b->size] = '\0';
    return 0;
}

int strbuf_adds(struct strbuf *b, const char *s)
{
    return strbuf_add(b, s, strlen(s));
}

int strbuf_addn(struct strbuf *b, const char *s, size_t max)
{
    return strbuf_add(b, s, strnlen(s, max));
}

int strbuf_addc(struct strbuf *b, char c)
{
    return strbuf_add(b, &c, 1);
}

int strbuf_vaddf(struct strbuf *b, const char *fmt, va_list ap)
{
    /* Most texts fit into what is allocated already. */
    size_t room = b->data ? b->cap - b->size : 0;
    va_list copy;
    va_copy(copy, ap);
    int n = vsnprintf(room ? b->data + b->size : NULL, room, fmt, copy);
    va_end(copy);
    if (n >= 0 && (size_t) n < room && (size_t) n <= b->max - b->size) {
        b->size += (size_t) n;
        return 0;
    }
    if (room) {
        b->data[b->size] = '\0';
    }
    if (n < 0) {
        b->failed = true;
        return -EINVAL;
    }
    char *at = strbuf_reserve(b, (size_t) n);
    if (!at) {
        return -ENOBUFS;
    }
    vsnprintf(at, (size_t) n + 1, fmt, ap);
    b->size += (size_t) n;
    return 0;
}

int strbuf_addf(struct strbuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = strbuf_vaddf(b, fmt, ap);
    va_end(ap);
    return r;
}

void strbuf_consume(struct strbuf *b, size_t n)
{
    assert(n <= b->size);
    if (n == 0) {
        return;
    }
    b->size -= n;
    memmove(b->data, b->data + n, b->size);
    b->data[b->size] = '\0';
}

char *strbuf_steal(struct strbuf *b)
{
    char *s = b->data ? b->data : xstrdup("");
    *b = STRBUF_INIT_MAX(b->max);
    return s;
}

bool streq_null(const char *a, const char *b)
{
    return a == b || (a && b && streq(a, b));
}

bool str_has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && streq(s + n - m, suffix);
}

int str_to_u64(const char *s, uint64_t max, uint64_t *ret)
{
    if (!*s) {
        return -EINVAL;
    }
    uint64_t v = 0;
    bool over = false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') {
            return -EINVAL;
        }
        uint64_t d = (uint64_t) (*s - '0');
        if (v > (UINT64_MAX - d) / 10) {
            over = true;
        } else {
            v = v * 10 + d;
        }
    }
    if (over || v > max) {
        return -ERANGE;
    }
    *ret = v;
    return 0;
}

int str_to_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = *s == '-';
    uint64_t u;
    int r = str_to_u64(s + negative, UINT64_MAX, &u);
    if (r < 0) {
        return r;
    }
    if (u > (uint64_t) INT64_MAX + negative) {
        return -ERANGE;
    }
    int64_t v = negative ? (int64_t) (0 - u) : (int64_t) u;
    if (v < min || v > max) {
        return -ERANGE;
    }
    *ret = v;
    return 0;
}

uint64_t hash_bytes(const void *p, size_t size)
{
    const unsigned char *s = p;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ s[i]) * 0x100000001b3u;
    }
    return h;
}

uint32_t hash32(const void *p, size_t size)
{
    uint64_t h = hash_bytes(p, size);
    return (uint32_t) (h ^ (h >> 32));
}

uint32_t hash_string(const char *s)
{
    return hash32(s, strlen(s));
}
