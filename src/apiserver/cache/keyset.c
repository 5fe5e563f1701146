/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/cache/keyset.h"

void keyset_done(struct keyset *s)
{
    for (size_t c = 0; c < s->n_chunks; c++) {
        for (size_t i = 0; i < s->chunks[c]->n; i++) {
            object_unref(s->chunks[c]->at[i]);
        }
        free(s->chunks[c]);
    }
    free(s->chunks);
    *s = (struct keyset){0};
}

struct keyset_pos keyset_seek(const struct keyset *s, const char *key)
{
    /* Finds the last chunk that begins at or before 'key', then the position in it. */
    size_t lo = 0, hi = s->n_chunks;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(s->chunks[mid]->at[0]->key, key) <= 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == 0) {
        return (struct keyset_pos){0, 0};
    }
    const struct keyset_chunk *c = s->chunks[lo - 1];
    size_t a = 0, b = c->n;
    while (a < b) {
        size_t mid = a + (b - a) / 2;
        if (strcmp(c->at[mid]->key, key) < 0) {
            a = mid + 1;
        } else {
            b = mid;
        }
    }
    return (struct keyset_pos){lo - 1, a};
}

struct object *keyset_next(const struct keyset *s, struct keyset_pos *pos)
{
    if (pos->chunk < s->n_chunks && pos->i >= s->chunks[pos->chunk]->n) {
        pos->chunk++;
        pos->i = 0;
    }
    return pos->chunk < s->n_chunks ? s->chunks[pos->chunk]->at[pos->i++] : NULL;
}

size_t keyset_rank(const struct keyset *s, struct keyset_pos pos)
{
    size_t n = pos.i;
    for (size_t c = 0; c < pos.chunk && c < s->n_chunks; c++) {
        n += s->chunks[c]->n;
    }
    return n;
}

static bool found(const struct keyset *s, struct keyset_pos pos, const char *key)
{
    return pos.chunk < s->n_chunks && pos.i < s->chunks[pos.chunk]->n &&
           streq(s->chunks[pos.chunk]->at[pos.i]->key, key);
}

struct object *keyset_get(const struct keyset *s, const char *key)
{
    struct keyset_pos pos = keyset_seek(s, key);
    return found(s, pos, key) ? s->chunks[pos.chunk]->at[pos.i] : NULL;
}

static struct keyset_chunk *insert_chunk(struct keyset *s, size_t at)
{
    s->chunks = grow(s->chunks, &s->cap, s->n_chunks + 1, sizeof(struct keyset_chunk *));
    memmove(&s->chunks[at + 1], &s->chunks[at], (s->n_chunks - at) * sizeof *s->chunks);
    s->n_chunks++;
    return s->chunks[at] = NEW(struct keyset_chunk);
}

struct object *keyset_put(struct keyset *s, struct object *o)
{
    struct keyset_pos pos = keyset_seek(s, o->key);
    if (found(s, pos, o->key)) {
        struct object *old = s->chunks[pos.chunk]->at[pos.i];
        s->chunks[pos.chunk]->at[pos.i] = o;
        return old;
    }
    if (s->n_chunks == 0) {
        insert_chunk(s, 0);
    }
    struct keyset_chunk *c = s->chunks[pos.chunk];
    if (c->n == KEYSET_CHUNK) {
        /* Keys inserted in order fill chunks; other insertions split a full chunk in half. */
        bool append = pos.chunk + 1 == s->n_chunks && pos.i == c->n;
        size_t keep = append ? c->n : c->n / 2;
        struct keyset_chunk *upper = insert_chunk(s, pos.chunk + 1);
        upper->n = c->n - keep;
        memcpy(upper->at, &c->at[keep], upper->n * sizeof(struct object *));
        c->n = keep;
        if (pos.i > keep || append) {
            pos.i -= keep;
            c = upper;
        }
    }
    memmove(&c->at[pos.i + 1], &c->at[pos.i], (c->n - pos.i) * sizeof(struct object *));
    c->at[pos.i] = o;
    c->n++;
    s->n++;
    return NULL;
}

struct object *keyset_remove(struct keyset *s, const char *key)
{
    struct keyset_pos pos = keyset_seek(s, key);
    if (!found(s, pos, key)) {
        return NULL;
    }
    struct keyset_chunk *c = s->chunks[pos.chunk];
    struct object *o = c->at[pos.i];
    c->n--;
    s->n--;
    memmove(&c->at[pos.i], &c->at[pos.i + 1], (c->n - pos.i) * sizeof(struct object *));
    if (c->n == 0) {
        free(c);
        s->n_chunks--;
        memmove(&s->chunks[pos.chunk], &s->chunks[pos.chunk + 1],
                (s->n_chunks - pos.chunk) * sizeof *s->chunks);
    }
    return o;
}
