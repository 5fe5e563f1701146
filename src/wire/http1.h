/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 messages (RFC 9110, RFC 9112): heads, targets, chunked bodies; pure codec.
 *
 * Strict, because request smuggling depends on lenient parsers.  Refused: lines that do not end
 * in CR LF, folded headers, blanks before the colon, control characters, Content-Length that is
 * repeated, not a number or beside Transfer-Encoding, codings other than chunked, a missing or
 * repeated Host.  Heads are parsed in place: the caller's text is rewritten to strings that the
 * result points into.  Thread rule: none, no state. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <sys/types.h>

#define HTTP1_MAX_HEADERS 100

enum http1_framing {
    HTTP1_NO_BODY,
    HTTP1_LENGTH,
    HTTP1_CHUNKED,
    HTTP1_UNTIL_CLOSE, /* Responses only. */
};

struct http1_head {
    const char *method, *target; /* Requests. */
    int status;                  /* Responses. */
    const char *reason;
    unsigned minor; /* HTTP/1.'minor' of the sender. */
    enum http1_framing framing;
    uint64_t length;      /* With HTTP1_LENGTH. */
    bool keep_alive;      /* The connection can be reused after this message. */
    bool expect_continue; /* The client waits for 100 before it sends the body. */
    const char *headers;  /* "name\0value\0" repeated; see http1_header. */
    size_t n_headers;
};

/* Finds the end of a head that arrives in pieces.  '*at' is the position to continue at (start
 * with 0), 'p' the whole text so far.  Returns the size of the head with its blank line, 0 when
 * it is not complete, or -EINVAL when a line ends in a bare LF.  An empty first line counts as a
 * head of two bytes, which a server skips. */
ssize_t http1_head_end(const char *p, size_t size, size_t *at);

/* Parse the head in 'text', of 'size' bytes as found by http1_head_end, which is rewritten.
 * Errors: -EINVAL malformed, -EMSGSIZE over HTTP1_MAX_HEADERS, -EPROTONOSUPPORT another HTTP
 * version, -ENOTSUP unknown transfer coding; http1_error_status gives the status to answer. */
int http1_parse_request(char *text, size_t size, struct http1_head *ret, struct err *e);
/* 'to_head': the response is to a HEAD request, so that it has no body. */
int http1_parse_response(char *text, size_t size, bool to_head, struct http1_head *ret,
                         struct err *e);
int http1_error_status(int code);

/* First value of header 'name' (any case), or NULL. */
const char *http1_header(const struct http1_head *h, const char *name);
/* The i-th header; false: no more. */
bool http1_header_at(const struct http1_head *h, size_t i, const char **ret_name,
                     const char **ret_value);

/* A parsed request target: the decoded path, the query unchanged and as "name\0value\0" pairs. */
struct http1_target {
    char *path;        /* Starts with "/", or is "*". */
    const char *query; /* "" when there is none. */
    const char *params;
    size_t n_params;
};
/* 'buf' of http1_target_size bytes holds the strings of '*ret'.  -EINVAL: bad escapes,
 * control characters, "." or ".." segments, a fragment, or not origin-form or
 * absolute-form (RFC 9112, 3.2). */
size_t http1_target_size(const char *target);
int http1_target_parse(const char *target, char *buf, struct http1_target *ret, struct err *e);
/* First value of parameter 'name' ("" when it has none), or NULL. */
const char *http1_param(const struct http1_target *t, const char *name);
/* The i-th parameter; false: no more. */
bool http1_param_at(const struct http1_target *t, size_t i, const char **ret_name,
                    const char **ret_value);

/* Appends 's' percent-encoded for use in a path segment or query value. */
void http1_escape(const char *s, struct strbuf *out);

/* ---- chunked bodies ---- */

/* Decoder of a body that arrives in pieces.  Zero-initialize. */
struct http1_chunked {
    uint8_t state;
    bool done;       /* The end of the body was reached. */
    uint64_t left;   /* Bytes of the current chunk. */
    uint32_t digits; /* Digits of the chunk's size so far. */
    uint32_t
        overhead; /* Bytes of extensions and trailers so far, which are skipped; at most 8 KiB. */
};
/* Takes bytes from 'p' up to the end of a run of data: '*ret_used' bytes were taken, and
 * '*ret_data' of '*ret_size' bytes (may be 0) in 'p' is body.  Call again with the rest until none
 * is left or c->done; after that the rest belongs to the next message.  -EINVAL: malformed. */
int http1_chunked_feed(struct http1_chunked *c, const char *p, size_t size, size_t *ret_used,
                       const char **ret_data, size_t *ret_size);
/* Text before a chunk of 'size' bytes; after it comes "\r\n".  Returns its length. */
#define HTTP1_CHUNK_HEAD_SIZE 20
size_t http1_chunk_head(char out[HTTP1_CHUNK_HEAD_SIZE], uint64_t size);
#define HTTP1_LAST_CHUNK "0\r\n\r\n"

/* ---- writing heads ---- */

/* First lines.  -EINVAL and nothing written: the method is not a token, or the target has blanks or
 * control characters or does not begin with "/". */
int http1_start_request(struct strbuf *out, const char *method, const char *target);
void http1_start_response(struct strbuf *out, int status);
/* -EINVAL and nothing written: the name is not a token, or the value has control characters. */
int http1_add_header(struct strbuf *out, const char *name, const char *value);
const char *http1_reason(int status); /* "Not Found"; "Unknown". */
