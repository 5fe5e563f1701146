/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/grpc.h"

#define KEEP_SIZE ((size_t) 1 << 20) /* A larger buffer is freed when it is empty. */

size_t grpc_frame_begin(struct strbuf *b)
{
    static const char header[GRPC_FRAME_HEADER_SIZE];
    strbuf_add(b, header, sizeof header);
    return b->size;
}

void grpc_frame_end(struct strbuf *b, size_t mark)
{
    if (b->failed) {
        return;
    }
    size_t size = b->size - mark;
    for (unsigned i = 0; i < 4; i++) {
        b->data[mark - 4 + i] = (char) (size >> (24 - 8 * i));
    }
}

void grpc_reader_done(struct grpc_reader *r)
{
    strbuf_done(&r->buf);
    r->used = 0;
}

void grpc_reader_add(struct grpc_reader *r, const void *p, size_t size)
{
    if (r->used == r->buf.size && r->buf.cap > KEEP_SIZE) {
        strbuf_done(&r->buf);
    } else {
        strbuf_consume(&r->buf, r->used);
    }
    r->used = 0;
    strbuf_add(&r->buf, p, size);
}

int grpc_reader_next(struct grpc_reader *r, const char **ret, size_t *ret_size)
{
    size_t left = r->buf.size - r->used;
    if (left < GRPC_FRAME_HEADER_SIZE) {
        return 0;
    }
    const unsigned char *h = (const unsigned char *) r->buf.data + r->used;
    size_t size = (size_t) h[1] << 24 | (size_t) h[2] << 16 | (size_t) h[3] << 8 | h[4];
    if (h[0] != 0) {
        return -EBADMSG;
    }
    if (size > r->max) {
        return -EMSGSIZE;
    }
    if (left - GRPC_FRAME_HEADER_SIZE < size) {
        return 0;
    }
    *ret = (const char *) h + GRPC_FRAME_HEADER_SIZE;
    *ret_size = size;
    r->used += GRPC_FRAME_HEADER_SIZE + size;
    return 1;
}

bool grpc_reader_partial(const struct grpc_reader *r)
{
    return r->used < r->buf.size;
}

static const char *const status_names[] = {
    "ok",
    "cancelled",
    "unknown",
    "invalid argument",
    "deadline exceeded",
    "not found",
    "already exists",
    "permission denied",
    "resource exhausted",
    "failed precondition",
    "aborted",
    "out of range",
    "unimplemented",
    "internal error",
    "unavailable",
    "data loss",
    "unauthenticated",
};

enum grpc_status grpc_status_parse(const char *value, size_t size)
{
    char text[8];
    uint64_t code;
    if (size >= sizeof text) {
        return GRPC_UNKNOWN;
    }
    memcpy(text, value, size);
    text[size] = '\0';
    if (str_to_u64(text, ARRAY_SIZE(status_names) - 1, &code) < 0) {
        return GRPC_UNKNOWN;
    }
    return (enum grpc_status) code;
}

enum grpc_status grpc_status_of_http(int http_status)
{
    switch (http_status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

const char *grpc_status_name(enum grpc_status s)
{
    return (size_t) s < ARRAY_SIZE(status_names) ? status_names[s] : "unknown";
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

void grpc_message_decode(const char *value, size_t size, char *out, size_t out_size)
{
    size_t n = 0;
    for (size_t i = 0; i < size && n + 1 < out_size; i++) {
        char c = value[i];
        if (c == '%' && i + 2 < size && hex_digit(value[i + 1]) >= 0 &&
            hex_digit(value[i + 2]) >= 0) {
            c = (char) (hex_digit(value[i + 1]) << 4 | hex_digit(value[i + 2]));
            i += 2;
        }
        out[n++] = c ? c : '?';
    }
    if (out_size) {
        out[n] = '\0';
    }
}
