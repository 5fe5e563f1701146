/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/2 client for tests: nghttp2's, over a 'struct raw', so that a test may also send frames that no
 * client would. */
#pragma once

#include "http_bench.h"

#include <nghttp2/nghttp2.h>

struct h2_reply {
    int32_t id;
    int status;
    struct strbuf head; /* "name: value\n" of all fields. */
    struct strbuf body;
    bool ended;  /* By END_STREAM. */
    bool closed; /* Either way. */
    uint32_t error;
    const char *upload; /* What is left of the request's body; it ends with it. */
    size_t upload_size;
    bool upload_hangs; /* It does not end. */
};

struct h2_client {
    struct bench *b;
    struct raw r;
    nghttp2_session *session;
    struct h2_reply *replies[512];
    size_t n;
    bool goaway;
    uint32_t goaway_error;
    int32_t goaway_last;
    bool keep_window; /* What is received is not given back to the stream's window. */
};

/* Connects; 'window': of each stream; 0: 65,535. */
struct h2_client *h2_client_new(struct bench *b, uint32_t window);
void h2_client_free(struct h2_client *c);
/* Begins a request; 'fields': name, value, ..., NULL after the pseudo fields (may be NULL itself);
 * 'body' NULL: none. */
struct h2_reply *h2_ask(struct h2_client *c, const char *method, const char *path,
                        const char *const *fields, const char *body, size_t size);
struct h2_reply *h2_get(struct h2_client *c, const char *path);
/* Sends and receives what there is. */
void h2_pump(struct h2_client *c);
/* Until the reply has ended, or was reset, or the connection is gone. */
void h2_wait(struct h2_client *c, struct h2_reply *r);
/* Until its status is known. */
void h2_wait_head(struct h2_client *c, struct h2_reply *r);
void h2_wait_goaway(struct h2_client *c);
/* A frame as it is. */
void h2_frame(struct h2_client *c, uint8_t type, uint8_t flags, int32_t id, const void *p,
              size_t size);
