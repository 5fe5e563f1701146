/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of Protocol Buffers as tables: a row says which member of a C struct has which field,
 * and the same rows write a message and read one (proto3: a field with its default value is left
 * out).
 *
 * A message that is a part of another needs no struct of its own: its rows may name members of the
 * same struct (PB_ROW_PART at offset 0).  What a parsed struct points to is in a pb_store and lives
 * as long as that. No I/O; not thread-safe per store. */
#pragma once

#include "wire/protobuf.h"

enum pb_row_kind {
    PB_ROW_BOOL,
    PB_ROW_NOT_BOOL, /* An enum of which 0 is true and anything else false. */
    PB_ROW_U16,
    PB_ROW_U32,
    PB_ROW_I32,
    PB_ROW_I64,
    PB_ROW_U64,
    PB_ROW_ENUM,         /* An enum without negative values. */
    PB_ROW_TEXT,         /* const char *; read as "" when it is absent. NULL is written as "". */
    PB_ROW_TEXT_OR_NULL, /* The same; read as NULL when it is absent or empty. */
    PB_ROW_BYTES,        /* const char * at 'at', size_t at 'count_at'. */
    PB_ROW_TEXTS,        /* const char *const * at 'at', size_t at 'count_at'. */
    PB_ROW_I64S,         /* const int64_t * at 'at', size_t at 'count_at'; written packed. */
    PB_ROW_LIST,         /* An array of structs of 'shape' at 'at', size_t at 'count_at'. */
    PB_ROW_PART,         /* A message whose members begin at 'at'. */
    PB_ROW_REF,          /* A pointer to a struct of 'shape'; NULL: absent. */
};

enum {
    PB_ROW_ALWAYS = 1, /* Written even when it has its default. */
    PB_ROW_HAS = 2,    /* A part is there when the bool at 'count_at' is true. */
};

#define PB_SHAPE_ROWS_MAX 32

struct pb_shape {
    size_t size; /* Of the struct. */
    const struct pb_row *rows;
    size_t n_rows; /* At most PB_SHAPE_ROWS_MAX. */
};

struct pb_row {
    uint32_t number;
    enum pb_row_kind kind;
    size_t at, count_at; /* Offsets of members. */
    const struct pb_shape *shape;
    unsigned flags;
};

#define PB_SHAPE(type, rows_)                  \
    {                                          \
        sizeof(type), rows_, ARRAY_SIZE(rows_) \
    }

/* What parsed structs point to. */
struct pb_store {
    struct pb_chunk *chunks;
    size_t left; /* Bytes that may still be allocated. */
};
#define PB_STORE_INIT(max) ((struct pb_store){NULL, (max)})
void pb_store_done(struct pb_store *s);
static inline UNUSED void pb_store_donep(struct pb_store *s)
{
    pb_store_done(s);
}
#define CLEANUP_PB_STORE __attribute__((cleanup(pb_store_donep)))
/* Zeroed memory; NULL: more than the store may hold. */
void *pb_store_alloc(struct pb_store *s, size_t size);
/* A copy of a text; NULL: more than the store may hold. */
const char *pb_store_text(struct pb_store *s, const char *p, size_t size);

/* Appends the fields of '*from', a struct of 'shape'. */
void pb_format(struct strbuf *b, const struct pb_shape *shape, const void *from);
/* Reads a message into '*ret', a struct of 'shape', which is zeroed first.  Unknown fields are
 * skipped; of a field that comes twice the last counts; a text ends at its first NUL.
 * -EBADMSG: not such a message; -EMSGSIZE: more than the store may hold.  After an error '*ret' has
 * no meaning. */
int pb_parse(struct pb_store *s, const struct pb_shape *shape, const void *data, size_t size,
             void *ret);
