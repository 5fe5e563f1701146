/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol Buffers' wire format (protobuf.dev/programming-guides/encoding): fields of a
 * message, one by one.
 *
 * There is no schema here: the users, such as wire/etcd.c, know the field numbers. A reader
 * points into the caller's bytes and allocates nothing; its results are valid as long as those
 * bytes.  Not thread-safe per reader. */
#pragma once

#include "base/str.h"

#include <errno.h>

enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_field {
    uint32_t number; /* 1 to 2^29-1 */
    enum pb_type type;
    uint64_t value;   /* Value of a varint or a fixed number; 0 for bytes. */
    const char *data; /* Content of bytes, strings and nested messages; else NULL. */
    size_t size;
};

struct pb_reader {
    const unsigned char *p, *end;
};

static inline struct pb_reader pb_reader_of(const void *data, size_t size)
{
    /* C forbids adding even 0 to a null pointer. */
    return (struct pb_reader){data, size ? (const unsigned char *) data + size : data};
}
/* The next field: 1; at the end: 0; -EBADMSG: truncated, a number out of range, or a group
 * (which proto3 does not have).  '*ret' untouched unless 1. */
int pb_next(struct pb_reader *r, struct pb_field *ret);

/* A number of a packed field: 0; -EBADMSG: truncated, or more than 64 bits. */
int pb_read_varint(struct pb_reader *r, uint64_t *ret);
void pb_add_varint(struct strbuf *b, uint64_t value);

/* Appends a field.  Fields that have their default (0, false, empty) may be left out by
 * the caller. */
void pb_put_uint(struct strbuf *b, uint32_t number, uint64_t value);
void pb_put_bytes(struct strbuf *b, uint32_t number, const void *p, size_t size);
void pb_put_double(struct strbuf *b, uint32_t number, double value);
/* A nested message is the bytes appended between the two; 'mark' is the result of pb_begin. */
size_t pb_begin(struct strbuf *b, uint32_t number);
void pb_end(struct strbuf *b, size_t mark);
