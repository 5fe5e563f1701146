/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_out.h"

#include "wire/http1.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define MAX_IOV 96
#define MAX_ROUNDS 16
#define MAX_RECORDS 128

/* The framing text, a part of the blob, and CR LF for a chunk. */
struct http_out_segment {
    struct blob *b; /* NULL: only the text. */
    size_t at, size;
    char text[HTTP1_CHUNK_HEAD_SIZE];
    uint8_t text_size;
    bool is_chunk;
};

static size_t segment_size(const struct http_out_segment *seg)
{
    return seg->text_size + seg->size + (seg->is_chunk ? 2u : 0u);
}

static void push(struct http_out *o, struct http_out_segment seg)
{
    if (o->n == o->cap && o->first) {
        o->n -= o->first;
        memmove(o->segments, o->segments + o->first, o->n * sizeof *o->segments);
        o->first = 0;
    }
    o->segments = grow(o->segments, &o->cap, o->n + 1, sizeof *o->segments);
    o->segments[o->n++] = seg;
    o->bytes += segment_size(&seg);
}

void http_out_text(struct http_out *o, const char *text, size_t size)
{
    push(o, (struct http_out_segment){.b = blob_new(text, size), .size = size});
}

void http_out_blob(struct http_out *o, struct blob *b)
{
    push(o, (struct http_out_segment){.b = blob_ref(b), .size = b->size});
}

void http_out_slice(struct http_out *o, const void *head, size_t head_size, struct blob *b,
                    size_t at, size_t size)
{
    struct http_out_segment seg = {.b = blob_ref(b), .at = at, .size = size};
    static_assert(HTTP_OUT_HEAD_SIZE <= sizeof seg.text, "a frame's head fits");
    assert(head_size <= HTTP_OUT_HEAD_SIZE);
    memcpy(seg.text, head, head_size);
    seg.text_size = (uint8_t) head_size;
    push(o, seg);
}

void http_out_chunk(struct http_out *o, struct blob *b)
{
    struct http_out_segment seg = {.b = blob_ref(b), .size = b->size, .is_chunk = true};
    seg.text_size = (uint8_t) http1_chunk_head(seg.text, b->size);
    push(o, seg);
}

void http_out_last_chunk(struct http_out *o)
{
    push(o, (struct http_out_segment){.text = HTTP1_LAST_CHUNK,
                                      .text_size = sizeof HTTP1_LAST_CHUNK - 1});
}

/* The parts, up to three, of 'seg' without its first 'skip' bytes. */
static size_t segment_iov(const struct http_out_segment *seg, size_t skip, struct iovec iov[3])
{
    const struct iovec parts[] = {
        {(void *) seg->text, seg->text_size},
        {seg->b ? seg->b->data + seg->at : NULL, seg->size},
        {(void *) "\r\n", seg->is_chunk ? 2 : 0},
    };
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        iov[n].iov_base = (char *) parts[i].iov_base + skip;
        iov[n++].iov_len = parts[i].iov_len - skip;
        skip = 0;
    }
    return n;
}

static void consume(struct http_out *o, size_t n)
{
    o->bytes -= n;
    n += o->sent;
    while (o->first < o->n && n >= segment_size(&o->segments[o->first])) {
        n -= segment_size(&o->segments[o->first]);
        blob_unref(o->segments[o->first++].b);
    }
    o->sent = n;
    if (o->first == o->n) {
        http_out_clear(o);
    }
}

static ssize_t send_plain(struct http_out *o, int fd)
{
    struct iovec iov[MAX_IOV];
    struct msghdr m = {.msg_iov = iov};
    for (size_t i = o->first; i < o->n && m.msg_iovlen + 3 <= MAX_IOV; i++) {
        m.msg_iovlen +=
            segment_iov(&o->segments[i], i == o->first ? o->sent : 0, iov + m.msg_iovlen);
    }
    ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

/* Sends one record, filled from as many segments as fit. A retry begins with the same bytes, as
 * the queue changes at its end only. */
static ssize_t send_record(struct http_out *o, struct tls *tls)
{
    char record[TLS_RECORD_SIZE];
    size_t size = 0;
    for (size_t i = o->first; i < o->n && size < sizeof record; i++) {
        struct iovec iov[3];
        size_t n = segment_iov(&o->segments[i], i == o->first ? o->sent : 0, iov);
        for (size_t k = 0; k < n && size < sizeof record; k++) {
            size_t part = MIN(iov[k].iov_len, sizeof record - size);
            memcpy(record + size, iov[k].iov_base, part);
            size += part;
        }
    }
    return tls_write(tls, record, size, NULL);
}

int http_out_send(struct http_out *o, int fd, struct tls *tls, bool *ret_progress)
{
    int max = tls ? MAX_RECORDS : MAX_ROUNDS;
    *ret_progress = false;
    for (int round = 0; o->first < o->n; round++) {
        ssize_t n = round == max ? -EAGAIN : tls ? send_record(o, tls) : send_plain(o, fd);
        if (n < 0) {
            return (int) n;
        }
        *ret_progress = true;
        consume(o, (size_t) n);
    }
    return 0;
}

void http_out_clear(struct http_out *o)
{
    for (size_t i = o->first; i < o->n; i++) {
        blob_unref(o->segments[i].b);
    }
    free(o->segments);
    *o = (struct http_out){0};
}
