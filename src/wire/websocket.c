/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/websocket.h"

#include "base/base64.h"

#include <openssl/evp.h>

#define FIN 0x80u
#define RSV 0x70u
#define MASK 0x80u
#define KEY_SIZE 16
#define SHA1_SIZE 20
#define CONTINUATION 0

void ws_reader_init(struct ws_reader *r, bool masked)
{
    *r = (struct ws_reader){.masked = masked};
}

/* ---- heads ---- */

/* Bytes of the head, as far as the bytes so far say. */
static size_t head_size(const struct ws_reader *r)
{
    if (r->n_head < 2) {
        return 2;
    }
    unsigned length = r->head[1] & 0x7fu;
    size_t extended = length == 126 ? 2 : length == 127 ? 8 : 0;
    return 2 + extended + (r->head[1] & MASK ? 4 : 0);
}

static int check_opcode(struct ws_reader *r, struct err *e)
{
    unsigned opcode = r->head[0] & 0xfu;
    bool control = opcode & 8;
    if (r->head[0] & RSV) {
        return err_set(e, -EPROTO, "a frame with reserved bits");
    }
    if (control) {
        r->opcode = (enum ws_opcode) opcode;
        return opcode > WS_PONG || !r->fin
                   ? err_set(e, -EPROTO, "a control frame of opcode %u", opcode)
                   : 0;
    }
    if (opcode > WS_BINARY || (opcode == CONTINUATION) != (r->message != 0)) {
        return err_set(e, -EPROTO, "a frame of opcode %u out of order", opcode);
    }
    if (opcode) {
        r->message = (enum ws_opcode) opcode;
        r->begun = false;
    }
    r->opcode = r->message;
    return 0;
}

/* Parses the complete head. */
static int begin(struct ws_reader *r, struct err *e)
{
    r->fin = r->head[0] & FIN;
    bool masked = r->head[1] & MASK;
    unsigned length = r->head[1] & 0x7fu;
    uint64_t size = length;
    if (length >= 126) {
        size = 0;
        for (size_t i = 0; i < (length == 126 ? 2 : 8); i++) {
            size = size << 8 | r->head[2 + i];
        }
    }
    if (check_opcode(r, e) < 0) {
        return -EPROTO;
    }
    if (masked != r->masked) {
        return err_set(e, -EPROTO, masked ? "a server masks its frames" : "a frame without mask");
    }
    if ((length == 126 && size < 126) || (length == 127 && size <= UINT16_MAX) ||
        size > INT64_MAX || ((r->opcode & 8) && size > WS_MAX_CONTROL)) {
        return err_set(e, -EPROTO, "a malformed length");
    }
    r->left = size;
    r->taken = 0;
    r->n_control = 0;
    r->in_frame = true;
    return 0;
}

/* ---- payloads ---- */

static void unmask(struct ws_reader *r, char *to, const char *p, size_t size)
{
    const unsigned char *key = r->head + r->n_head - 4;
    for (size_t i = 0; i < size; i++) {
        to[i] = r->masked ? (char) (p[i] ^ key[(r->taken + i) & 3]) : p[i];
    }
    r->taken += size;
    r->left -= size;
}

static void frame_done(struct ws_reader *r)
{
    r->in_frame = false;
    r->n_head = 0;
}

/* Takes bytes of a control frame; 1: it is complete. */
static int take_control(struct ws_reader *r, const char *p, size_t size, struct ws_piece *ret)
{
    unmask(r, r->control + r->n_control, p, size);
    r->n_control += size;
    if (r->left) {
        return 0;
    }
    *ret = (struct ws_piece){
        .opcode = r->opcode, .first = true, .last = true, .data = r->control, .size = r->n_control};
    frame_done(r);
    return 1;
}

/* Hands out the piece of a message; an empty frame within a message is skipped. */
static int take_data(struct ws_reader *r, const char *p, size_t size, struct ws_piece *ret)
{
    unmask(r, r->buf, p, size);
    bool last = r->fin && !r->left;
    *ret = (struct ws_piece){
        .opcode = r->opcode, .first = !r->begun, .last = last, .data = r->buf, .size = size};
    r->begun = true;
    if (!r->left) {
        frame_done(r);
    }
    if (last) {
        r->message = 0;
    }
    return 1;
}

int ws_read(struct ws_reader *r, const char *p, size_t size, size_t *ret_used, struct ws_piece *ret,
            struct err *e)
{
    size_t at = 0;
    int n = 0;
    while (n == 0 && (at < size || (r->in_frame && !r->left))) {
        if (!r->in_frame) {
            size_t part = MIN(size - at, head_size(r) - r->n_head);
            memcpy(r->head + r->n_head, p + at, part);
            r->n_head += part;
            at += part;
            if (r->n_head == head_size(r)) {
                n = begin(r, e);
            }
            continue;
        }
        bool control = r->opcode & 8;
        size_t part = (size_t) MIN((uint64_t) (size - at), r->left);
        part = MIN(part, (size_t) WS_PIECE);
        n = (control ? take_control : take_data)(r, p + at, part, ret);
        at += part;
    }
    *ret_used = at;
    return n;
}

/* ---- writing ---- */

static void add_masked(const unsigned char *mask, size_t at, const void *p, size_t size,
                       struct strbuf *out)
{
    char *to = strbuf_reserve(out, size);
    if (!to || !size) {
        return;
    }
    memcpy(to, p, size);
    for (size_t i = 0; mask && i < size; i++) {
        to[i] = (char) (to[i] ^ mask[(at + i) & 3]);
    }
    out->size += size;
}

void ws_write_parts(enum ws_opcode opcode, const unsigned char *mask, const void *head,
                    size_t first, const void *p, size_t size, struct strbuf *out)
{
    uint64_t total = first + size;
    size_t extended = total > UINT16_MAX ? 8 : total >= 126 ? 2 : 0;
    unsigned length = extended == 8 ? 127 : extended == 2 ? 126 : (unsigned) total;
    strbuf_addc(out, (char) (FIN | opcode));
    strbuf_addc(out, (char) (length | (mask ? MASK : 0)));
    for (size_t i = extended; i-- > 0;) {
        strbuf_addc(out, (char) (total >> (8 * i)));
    }
    if (mask) {
        strbuf_add(out, mask, 4);
    }
    add_masked(mask, 0, head, first, out);
    add_masked(mask, first, p, size, out);
}

void ws_write(enum ws_opcode opcode, const unsigned char *mask, const void *p, size_t size,
              struct strbuf *out)
{
    ws_write_parts(opcode, mask, "", 0, p, size, out);
}

void ws_write_close(unsigned code, const unsigned char *mask, const char *reason,
                    struct strbuf *out)
{
    char head[2] = {(char) (code >> 8), (char) code};
    ws_write_parts(WS_CLOSE, mask, head, sizeof head, reason,
                   strnlen(reason, WS_MAX_CONTROL - sizeof head), out);
}

/* ---- the handshake ---- */

int ws_accept_key(const char *key, char out[WS_ACCEPT_SIZE])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* Section 1.3. */
    CLEANUP_STRBUF struct strbuf raw = STRBUF_INIT_MAX(KEY_SIZE), text = STRBUF_INIT;
    unsigned char digest[SHA1_SIZE];
    if (strlen(key) != 24 || base64_decode(key, 24, &raw) < 0 || raw.size != KEY_SIZE) {
        return -EINVAL;
    }
    strbuf_addf(&text, "%s%s", key, guid);
    if (EVP_Digest(text.data, text.size, digest, NULL, EVP_sha1(), NULL) != 1) {
        return -EINVAL;
    }
    strbuf_reset(&text);
    base64_encode(digest, sizeof digest, &text);
    memcpy(out, text.data, WS_ACCEPT_SIZE);
    return 0;
}
