/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/protobuf.h"

#define VARINT_MAX_SIZE 10
#define NUMBER_MAX ((1u << 29) - 1)

int pb_read_varint(struct pb_reader *r, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_MAX_SIZE && r->p < r->end; i++) {
        uint64_t byte = *r->p++;
        if (i == VARINT_MAX_SIZE - 1 && byte > 1) {
            break; /* More than 64 bits. */
        }
        v |= (byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *ret = v;
            return 0;
        }
    }
    return -EBADMSG;
}

static int read_fixed(struct pb_reader *r, unsigned size, uint64_t *ret)
{
    if ((size_t) (r->end - r->p) < size) {
        return -EBADMSG;
    }
    uint64_t v = 0;
    for (unsigned i = 0; i < size; i++) {
        v |= (uint64_t) r->p[i] << (8 * i);
    }
    r->p += size;
    *ret = v;
    return 0;
}

int pb_next(struct pb_reader *r, struct pb_field *ret)
{
    if (r->p == r->end) {
        return 0;
    }
    uint64_t tag, v = 0;
    if (pb_read_varint(r, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX) {
        return -EBADMSG;
    }
    struct pb_field f = {.number = (uint32_t) (tag >> 3)};
    int error;
    switch (tag & 7) {
    case PB_VARINT:
        f.type = PB_VARINT;
        error = pb_read_varint(r, &f.value);
        break;
    case PB_FIXED64:
        f.type = PB_FIXED64;
        error = read_fixed(r, 8, &f.value);
        break;
    case PB_FIXED32:
        f.type = PB_FIXED32;
        error = read_fixed(r, 4, &f.value);
        break;
    case PB_BYTES:
        f.type = PB_BYTES;
        error = pb_read_varint(r, &v);
        if (error == 0 && v > (uint64_t) (r->end - r->p)) {
            error = -EBADMSG;
        }
        if (error == 0) {
            f.data = (const char *) r->p;
            f.size = (size_t) v;
            r->p += v;
        }
        break;
    default:
        return -EBADMSG;
    }
    if (error < 0) {
        return error;
    }
    *ret = f;
    return 1;
}

static size_t format_varint(unsigned char out[VARINT_MAX_SIZE], uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) {
        out[n++] = (unsigned char) (v | 0x80);
    }
    out[n++] = (unsigned char) v;
    return n;
}

void pb_add_varint(struct strbuf *b, uint64_t v)
{
    unsigned char text[VARINT_MAX_SIZE];
    strbuf_add(b, text, format_varint(text, v));
}

static void put_tag(struct strbuf *b, uint32_t number, enum pb_type type)
{
    pb_add_varint(b, (uint64_t) number << 3 | (unsigned) type);
}

void pb_put_uint(struct strbuf *b, uint32_t number, uint64_t value)
{
    put_tag(b, number, PB_VARINT);
    pb_add_varint(b, value);
}

void pb_put_bytes(struct strbuf *b, uint32_t number, const void *p, size_t size)
{
    put_tag(b, number, PB_BYTES);
    pb_add_varint(b, size);
    strbuf_add(b, p, size);
}

void pb_put_double(struct strbuf *b, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_tag(b, number, PB_FIXED64);
    for (int i = 0; i < 64; i += 8) {
        strbuf_addc(b, (char) (bits >> i & 0xff));
    }
}

/* The length precedes the content and is known only after it: one byte is reserved, and the
 * content moved if that is not enough. */
size_t pb_begin(struct strbuf *b, uint32_t number)
{
    put_tag(b, number, PB_BYTES);
    strbuf_addc(b, 0);
    return b->size;
}

void pb_end(struct strbuf *b, size_t mark)
{
    if (b->failed) {
        return;
    }
    unsigned char text[VARINT_MAX_SIZE];
    size_t size = b->size - mark;
    size_t n = format_varint(text, size);
    if (n > 1) {
        if (strbuf_add(b, text, n - 1) < 0) {
            return;
        }
        memmove(b->data + mark + n - 1, b->data + mark, size);
    }
    memcpy(b->data + mark - 1, text, n);
}
