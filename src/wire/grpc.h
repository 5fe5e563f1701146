/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over HTTP/2 (grpc.github.io/grpc/core/md_doc__p_r_o_t_o_c_o_l-_h_t_t_p2.html):
 * the framing of messages in a body, and the status that the trailers carry.  No I/O;
 * the reader owns its buffer. */
#pragma once

#include "base/str.h"

#include <errno.h>

#define GRPC_FRAME_HEADER_SIZE 5

/* google.rpc.Code */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

/* A message is what is appended to 'b' between the two; 'mark' is what grpc_frame_begin
 * returned. */
size_t grpc_frame_begin(struct strbuf *b);
void grpc_frame_end(struct strbuf *b, size_t mark);

/* Takes a body in pieces and returns its messages. */
struct grpc_reader {
    struct strbuf buf;
    size_t used; /* Bytes of 'buf' already returned. */
    size_t max;  /* Largest message. */
};
#define GRPC_READER_INIT(max_) ((struct grpc_reader){.buf = STRBUF_INIT, .max = (max_)})
void grpc_reader_done(struct grpc_reader *r);
void grpc_reader_add(struct grpc_reader *r, const void *p, size_t size);
/* The next whole message, valid until the next call with 'r': 1; more bytes needed: 0;
 * -EMSGSIZE: larger than 'max', known as soon as its header is there; -EBADMSG:
 * compressed, which was not asked for. */
int grpc_reader_next(struct grpc_reader *r, const char **ret, size_t *ret_size);
/* Whether the added bytes end within a message. */
bool grpc_reader_partial(const struct grpc_reader *r);

/* Value of the trailer "grpc-status"; GRPC_UNKNOWN when it is not a code. */
enum grpc_status grpc_status_parse(const char *value, size_t size);
/* The status that an HTTP status means when there is no grpc-status. */
enum grpc_status grpc_status_of_http(int http_status);
const char *grpc_status_name(enum grpc_status s); /* "unavailable" */
/* Decodes the percent-encoding of the trailer "grpc-message" into 'out' (cut off if need be). */
void grpc_message_decode(const char *value, size_t size, char *out, size_t out_size);
