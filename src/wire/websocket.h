/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of WebSocket (RFC 6455), of either side; pure codec.
 *
 * A reader takes bytes as they come and hands out pieces of messages, unmasked, so that its memory
 * does not depend on the peer.  Strict: no extensions, minimal lengths, masks from clients only.
 * Text is not checked for UTF-8; its user decides what it is.  Thread rule: none, no state but the
 * reader's. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum ws_opcode { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

/* Codes of WS_CLOSE (section 7.4.1). */
enum {
    WS_NORMAL = 1000,
    WS_GOING_AWAY = 1001,
    WS_PROTOCOL_ERROR = 1002,
    WS_TOO_LARGE = 1009,
    WS_FAILED = 1011
};

#define WS_MAX_CONTROL 125
#define WS_PIECE 16384

struct ws_piece {
    enum ws_opcode opcode;
    bool first, last; /* Of its message; a control frame is one piece. */
    const char *data;
    size_t size;
};

struct ws_reader {
    bool masked; /* The peer masks: it is a client. */
    unsigned char head[14];
    size_t n_head;
    uint64_t left;         /* Bytes of the payload to come. */
    uint64_t taken;        /* Of the payload, for the mask. */
    enum ws_opcode opcode; /* Of the frame. */
    bool fin, in_frame;
    enum ws_opcode message; /* Of the message whose frames arrive; 0: none. */
    bool begun;             /* A piece of the message was handed out. */
    size_t n_control;
    char control[WS_MAX_CONTROL];
    char buf[WS_PIECE];
};
/* 'masked': the peer is a client. */
void ws_reader_init(struct ws_reader *r, bool masked);
/* Takes bytes from 'p'; '*ret_used' were taken.  1: '*ret' is a piece that lives until the next
 * call; 0: all bytes were taken.  -EPROTO: malformed; the connection cannot go on then. */
int ws_read(struct ws_reader *r, const char *p, size_t size, size_t *ret_used, struct ws_piece *ret,
            struct err *e);

/* Appends a whole message; 'mask' (four bytes) is for clients, NULL for servers. */
void ws_write(enum ws_opcode opcode, const unsigned char *mask, const void *p, size_t size,
              struct strbuf *out);
/* Appends a message of two parts. */
void ws_write_parts(enum ws_opcode opcode, const unsigned char *mask, const void *head,
                    size_t head_size, const void *p, size_t size, struct strbuf *out);
void ws_write_close(unsigned code, const unsigned char *mask, const char *reason,
                    struct strbuf *out);

/* The value of Sec-WebSocket-Accept for the client's Sec-WebSocket-Key.  -EINVAL: the key is not
 * 16 bytes in base64. */
#define WS_ACCEPT_SIZE 29
int ws_accept_key(const char *key, char out[WS_ACCEPT_SIZE]);
