/* SPDX-License-Identifier: Apache-2.0 */
/* The output queue of an HTTP server's connection: texts and shared blobs, written with one
 * system call for many.  Blobs are referenced, never copied.  An empty queue uses no memory.
 * Internal to the server; used on the loop's thread. */
#pragma once

#include "base/mem.h"
#include "net/tls/tls.h"

struct http_out_segment;
struct http_out {
    struct http_out_segment *segments;
    size_t first, n, cap;
    size_t sent;  /* Bytes of the first segment already sent. */
    size_t bytes; /* Not yet sent. */
};

void http_out_text(struct http_out *o, const char *text, size_t size); /* Copied. */
void http_out_blob(struct http_out *o, struct blob *b);                /* Takes a reference. */
/* 'size' bytes of 'b' from 'at' on, after 'head' (up to HTTP_OUT_HEAD_SIZE bytes, copied). */
#define HTTP_OUT_HEAD_SIZE 9
void http_out_slice(struct http_out *o, const void *head, size_t head_size, struct blob *b,
                    size_t at, size_t size);
void http_out_chunk(struct http_out *o, struct blob *b); /* Framed as a chunk. */
void http_out_last_chunk(struct http_out *o);
/* Writes to 'fd', or to 'tls' if there is one, up to some megabytes. 0: all is sent; -EAGAIN:
 * the rest when the socket is writable; else the error. '*ret_progress': something was sent. */
int http_out_send(struct http_out *o, int fd, struct tls *tls, bool *ret_progress);
void http_out_clear(struct http_out *o);
