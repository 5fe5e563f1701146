/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of SPDY/3.1 (draft-mbelshe-httpbis-spdy-00, and flow control of 3.1), as Kubernetes uses
 * them for exec, attach and port-forward; pure codec.
 *
 * A reader takes bytes as they come.  Data is handed out in pieces of what has arrived, so that its
 * memory does not depend on the peer: at most a control frame of SPDY_MAX_CONTROL bytes, and
 * headers that fill SPDY_MAX_BLOCK bytes when decompressed, are kept.  Header blocks of one
 * direction share one zlib stream, so an error ends the connection.
 *
 * Reader and writer belong to their caller; no state beyond them.  Thread rule: none. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define SPDY_MAX_CONTROL 65536u /* Payload of a control frame. */
#define SPDY_MAX_BLOCK 32768u   /* Decompressed headers of a frame. */
#define SPDY_MAX_HEADERS 64u
#define SPDY_MAX_DATA 0xffffffu /* Payload of a data frame. */
#define SPDY_MAX_STREAM 0x7fffffffu

enum spdy_type {
    SPDY_DATA = 0,
    SPDY_SYN_STREAM = 1,
    SPDY_SYN_REPLY = 2,
    SPDY_RST_STREAM = 3,
    SPDY_SETTINGS = 4,
    SPDY_PING = 6,
    SPDY_GOAWAY = 7,
    SPDY_HEADERS = 8,
    SPDY_WINDOW_UPDATE = 9,
};

/* Codes of RST_STREAM. */
enum { SPDY_PROTOCOL_ERROR = 1, SPDY_INVALID_STREAM = 2, SPDY_REFUSED = 3, SPDY_CANCEL = 5 };

struct spdy_frame {
    enum spdy_type type;
    uint32_t stream;  /* Of the types that have one; otherwise 0. */
    bool fin;         /* The sender sends nothing more on this stream. */
    uint32_t code;    /* Of RST_STREAM and GOAWAY. */
    uint32_t id;      /* Of PING; the last good stream of GOAWAY. */
    const char *data; /* A piece of DATA. */
    size_t size;
    /* "name\0value\0" repeated; of a header with several values the first. */
    const char *headers;
    size_t n_headers;
};
/* The value of the header 'name' (lower case); NULL: absent. */
const char *spdy_header(const struct spdy_frame *f, const char *name);

struct spdy_reader;
struct spdy_reader *spdy_reader_new(void);
struct spdy_reader *spdy_reader_free(struct spdy_reader *r);
DEFINE_CLEANUP(struct spdy_reader *, spdy_reader_free)
/* Takes bytes from 'p'; '*ret_used' were taken.  1: '*ret' is a frame, or a piece of data, that
 * lives until the next call; 0: all bytes were taken, and no frame is complete.  Frames of unknown
 * types are skipped.  -EPROTO: malformed, -EMSGSIZE: over a limit; the connection cannot go on
 * then. */
int spdy_read(struct spdy_reader *r, const char *p, size_t size, size_t *ret_used,
              struct spdy_frame *ret, struct err *e);

struct spdy_writer;
struct spdy_writer *spdy_writer_new(void);
struct spdy_writer *spdy_writer_free(struct spdy_writer *w);
DEFINE_CLEANUP(struct spdy_writer *, spdy_writer_free)
/* Append frames.  'headers' has 'n' names in lower case, each followed by its value. */
void spdy_write_open(struct spdy_writer *w, uint32_t stream, bool fin, const char *const *headers,
                     size_t n, struct strbuf *out);
void spdy_write_reply(struct spdy_writer *w, uint32_t stream, struct strbuf *out);
/* The head of a data frame, after which 'size' bytes follow; at most SPDY_MAX_DATA. */
void spdy_write_data(uint32_t stream, bool fin, size_t size, struct strbuf *out);
void spdy_write_reset(uint32_t stream, uint32_t code, struct strbuf *out);
void spdy_write_ping(uint32_t id, struct strbuf *out);
void spdy_write_goaway(uint32_t last_stream, uint32_t code, struct strbuf *out);
