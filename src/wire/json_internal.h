/* SPDX-License-Identifier: Apache-2.0 */
/* The memory layout of JSON values: shared by the tree (json.c), the parsers and the writers only.
 *
 * A string or number is one allocation with its text in it; null, true and false are shared
 * constants. An array or object is a node and one vector. Keys of up to 15 bytes are stored in
 * the vector itself. Objects above JSON_INDEX_MIN members have a hash index behind their vector,
 * with a keyed hash against flooding. */
#pragma once

#include "base/mem.h"
#include "wire/json.h"

struct json {
    uint8_t type;
    bool value;     /* of a JSON_BOOL */
    bool permanent; /* A constant, or shared: not freed with what has it. */
    bool shared;    /* A part of a pool (json_pool.c). */
    uint32_t n;     /* Bytes of text, or number of live children. */
};

struct json_text {
    struct json head;
    char text[];
};

/* Zero-padded, so that short keys compare as two words. tag 0: the key is in 'text', whose NUL
 * is 'tag'; 1: the key is in '*ptr'. */
#define JSON_KEY_INLINE 15
union json_key {
    struct {
        char text[JSON_KEY_INLINE];
        uint8_t tag;
    };
    char *ptr;
    uint64_t word[2];
};

struct json_member {
    union json_key key;
    struct json *v; /* NULL: removed, the place not yet reused. */
};

struct json_vec {
    struct json head;
    union {
        struct json **items;
        struct json_member *members;
    };
    uint32_t cap;
    uint32_t dead; /* Removed members still in the vector, which has n + dead places in use. */
};

#define JSON_INDEX_MIN 16

static inline const char *json_key_text(const union json_key *k)
{
    return k->tag ? k->ptr : k->text;
}

/* A key with an owned copy of 's'. */
union json_key json_key_make(const char *s, size_t size);
/* Whether one of the eight bytes at 's' needs more than copying in a string: the quote, the
 * backslash, controls, all but ASCII.  A subtraction sets the highest bit of a byte that is too
 * small for it.  As it borrows from the next byte, the answer may also be true without need. */
static inline bool json_any_special(const void *s)
{
    const uint64_t ones = 0x0101010101010101, high = 0x80 * ones;
    uint64_t x;
    memcpy(&x, s, sizeof x);
    uint64_t quotes = x ^ '"' * ones, slashes = x ^ '\\' * ones;
    return (x | (x - 0x20 * ones) | (quotes - ones) | (slashes - ones)) & high;
}

static inline void json_key_free(union json_key *k)
{
    if (k->tag) {
        free(k->ptr);
    }
}

/* A string or number node with room for 'size' bytes of text and a NUL, which is set. */
struct json_text *json_text_new(enum json_type type, size_t size);
/* Makes containers of children that are moved out of 'from'. */
struct json *json_array_from(const struct json_member *from, size_t n);
/* '*ret_dup' is the index of the first member with a repeated key, or SIZE_MAX. */
struct json *json_object_from(const struct json_member *from, size_t n, size_t *ret_dup);
/* Gives a reference to a shared part back. */
void json_part_release(struct json *v);
/* A hash with a random key per process, so that a client cannot prepare colliding texts. */
uint64_t json_hash(const char *text, size_t size);
/* Compacts the vector after removals; required before access by position. */
void json_settle(const struct json *v);

/* Bytes of the UTF-8 character at 'p'; 0: invalid; -1: cut short by 'end'. */
int json_utf8(const unsigned char *p, const unsigned char *end);
/* Appends 's', bytes that are not UTF-8 as U+FFFD. */
void json_add_utf8(const char *s, size_t size, struct strbuf *out);
/* Bytes of the number at 'p', 0 when it is not one.  '*ret_open' is set when it runs to 'end', so
 * that more text could continue or complete it. */
size_t json_number_scan(const char *p, const char *end, bool *ret_open);

/* A path through a tree, in place of recursion. */
struct json_frame {
    const struct json *v;
    const struct json *other; /* For walks over two trees. */
    size_t i;
};
struct json_walk {
    struct json_frame first[JSON_MAX_DEPTH];
    struct json_frame *frames;
    size_t n, cap;
};
static inline void json_walk_init(struct json_walk *w)
{
    w->frames = w->first;
    w->n = 0;
    w->cap = JSON_MAX_DEPTH;
}
void json_walk_push(struct json_walk *w, const struct json *v, const struct json *other);
void json_walk_done(struct json_walk *w);
