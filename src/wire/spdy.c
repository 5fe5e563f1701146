/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/spdy.h"

#include "base/mem.h"

#include <zlib.h>

#define HEAD_SIZE 8
#define VERSION 3
#define FLAG_FIN 1
#define DICTIONARY_SIZE 1423
/* Of the compressor: little memory, and the headers of Kubernetes' streams are short. */
#define WINDOW_BITS 11
#define MEM_LEVEL 1

/* ---- the dictionary of header blocks (section 2.6.10.1) ---- */

/* Each word is in the dictionary with its length before it. */
static const char *const words[] = {
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
};
/* Its end, without lengths. */
static const char tail[] =
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static void put_u32(char *p, uint32_t v)
{
    p[0] = (char) (v >> 24);
    p[1] = (char) (v >> 16);
    p[2] = (char) (v >> 8);
    p[3] = (char) v;
}

static uint32_t get_u32(const char *p)
{
    const unsigned char *u = (const unsigned char *) p;
    return (uint32_t) u[0] << 24 | (uint32_t) u[1] << 16 | (uint32_t) u[2] << 8 | u[3];
}

static void make_dictionary(char out[DICTIONARY_SIZE])
{
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        size_t n = strlen(words[i]);
        put_u32(out + at, (uint32_t) n);
        memcpy(out + at + 4, words[i], n);
        at += n + 4;
    }
    assert(at + sizeof tail - 1 == DICTIONARY_SIZE);
    memcpy(out + at, tail, sizeof tail - 1);
}

/* ---- reading ---- */

struct spdy_reader {
    char head[HEAD_SIZE];
    size_t n_head;
    bool is_data;          /* The frame whose data is being handed out. */
    struct spdy_frame now; /* Its type, stream and flags. */
    size_t left;           /* Bytes of its payload, or of one that is skipped. */
    bool skipping;
    struct strbuf control; /* Payload so far of a control frame. */
    z_stream zlib;
    struct strbuf block; /* The last decompressed headers. */
};

struct spdy_reader *spdy_reader_new(void)
{
    struct spdy_reader *r = NEW(struct spdy_reader);
    r->control = STRBUF_INIT_MAX(SPDY_MAX_CONTROL);
    r->block = STRBUF_INIT_MAX(SPDY_MAX_BLOCK);
    if (inflateInit(&r->zlib) != Z_OK) {
        abort(); /* Out of memory. */
    }
    return r;
}

struct spdy_reader *spdy_reader_free(struct spdy_reader *r)
{
    if (r) {
        (void) inflateEnd(&r->zlib);
        strbuf_done(&r->control);
        strbuf_done(&r->block);
        free(r);
    }
    return NULL;
}

const char *spdy_header(const struct spdy_frame *f, const char *name)
{
    const char *p = f->headers;
    for (size_t i = 0; i < f->n_headers; i++) {
        const char *value = p + strlen(p) + 1;
        if (streq(p, name)) {
            return value;
        }
        p = value + strlen(value) + 1;
    }
    return NULL;
}

/* Decompresses the header block 'p' to r->block. */
static int expand(struct spdy_reader *r, const char *p, size_t size, struct err *e)
{
    char dictionary[DICTIONARY_SIZE], buf[4096];
    z_stream *z = &r->zlib;
    strbuf_reset(&r->block);
    z->next_in = (Bytef *) p;
    z->avail_in = (uInt) size;
    for (;;) {
        z->next_out = (Bytef *) buf;
        z->avail_out = sizeof buf;
        int n = inflate(z, Z_SYNC_FLUSH);
        if (n == Z_NEED_DICT) {
            make_dictionary(dictionary);
            n = inflateSetDictionary(z, (const Bytef *) dictionary, sizeof dictionary);
            if (n == Z_OK) {
                continue;
            }
        }
        if (n != Z_OK && n != Z_BUF_ERROR) {
            return err_set(e, -EPROTO, "malformed compressed headers");
        }
        if (strbuf_add(&r->block, buf, sizeof buf - z->avail_out) < 0) {
            return err_set(e, -EMSGSIZE, "headers of more than %u bytes", SPDY_MAX_BLOCK);
        }
        if (z->avail_out) {
            return z->avail_in ? err_set(e, -EPROTO, "malformed compressed headers") : 0;
        }
    }
}

/* Takes the length at '*at', and checks that so many bytes follow. */
static int take_length(const struct strbuf *b, size_t *at, size_t *ret)
{
    if (b->size - *at < 4) {
        return -EPROTO;
    }
    *ret = get_u32(b->data + *at);
    *at += 4;
    return *ret > b->size - *at ? -EPROTO : 0;
}

/* Rewrites r->block in place to strings, for 'f'; a text never grows, as its length before it takes
 * more than the NUL after it. */
static int read_pairs(struct spdy_reader *r, struct spdy_frame *f, struct err *e)
{
    struct strbuf *b = &r->block;
    size_t at = 4, to = 0;
    uint32_t pairs = b->size >= 4 ? get_u32(b->data) : UINT32_MAX;
    if (pairs > SPDY_MAX_HEADERS) {
        return err_set(e, pairs == UINT32_MAX ? -EPROTO : -EMSGSIZE, "more than %u headers",
                       SPDY_MAX_HEADERS);
    }
    for (uint32_t i = 0; i < pairs * 2; i++) {
        size_t n;
        if (take_length(b, &at, &n) < 0 || (i % 2 == 0 && (!n || memchr(b->data + at, 0, n)))) {
            return err_set(e, -EPROTO, "malformed headers");
        }
        size_t keep = strnlen(b->data + at, n);
        memmove(b->data + to, b->data + at, keep);
        b->data[to + keep] = '\0';
        to += keep + 1;
        at += n;
    }
    if (at != b->size) {
        return err_set(e, -EPROTO, "bytes after the headers");
    }
    f->headers = strbuf_cstr(b);
    f->n_headers = pairs;
    return 0;
}

static int read_headers(struct spdy_reader *r, struct spdy_frame *f, size_t skip, struct err *e)
{
    int n = expand(r, r->control.data + skip, r->control.size - skip, e);
    return n < 0 ? n : read_pairs(r, f, e);
}

/* Parses the complete control frame. */
static int read_control(struct spdy_reader *r, struct spdy_frame *f, struct err *e)
{
    static const struct {
        enum spdy_type type;
        size_t size;  /* Of the fixed part. */
        bool headers; /* Follow it. */
    } forms[] = {
        {SPDY_SYN_STREAM, 10, true}, {SPDY_SYN_REPLY, 4, true},      {SPDY_HEADERS, 4, true},
        {SPDY_RST_STREAM, 8, false}, {SPDY_PING, 4, false},          {SPDY_GOAWAY, 8, false},
        {SPDY_SETTINGS, 4, false},   {SPDY_WINDOW_UPDATE, 8, false},
    };
    size_t i = 0;
    while (forms[i].type != f->type) {
        i++;
    }
    const char *p = strbuf_cstr(&r->control);
    if (r->control.size < forms[i].size ||
        (!forms[i].headers && f->type != SPDY_SETTINGS && r->control.size != forms[i].size)) {
        return err_set(e, -EPROTO, "a frame of type %d with %zu bytes", (int) f->type,
                       r->control.size);
    }
    if (f->type == SPDY_PING) {
        f->id = get_u32(p);
    } else if (f->type == SPDY_GOAWAY) {
        f->id = get_u32(p) & SPDY_MAX_STREAM;
        f->code = get_u32(p + 4);
    } else if (f->type != SPDY_SETTINGS) {
        f->stream = get_u32(p) & SPDY_MAX_STREAM;
        f->code = f->type == SPDY_RST_STREAM ? get_u32(p + 4) : 0;
        if (!f->stream && f->type != SPDY_WINDOW_UPDATE) {
            return err_set(e, -EPROTO, "a frame of stream 0");
        }
    }
    return forms[i].headers ? read_headers(r, f, forms[i].size, e) : 1;
}

/* Begins the frame whose head is complete. */
static int begin(struct spdy_reader *r, struct err *e)
{
    const unsigned char *h = (const unsigned char *) r->head;
    r->n_head = 0;
    r->left = (size_t) h[5] << 16 | (size_t) h[6] << 8 | h[7];
    r->now = (struct spdy_frame){.fin = h[4] & FLAG_FIN};
    r->is_data = !(h[0] & 0x80);
    r->skipping = false;
    strbuf_reset(&r->control);
    if (r->is_data) {
        r->now.stream = get_u32(r->head);
        return r->now.stream ? 0 : err_set(e, -EPROTO, "data of stream 0");
    }
    unsigned version = (h[0] & 0x7fu) << 8 | h[1], type = (unsigned) h[2] << 8 | h[3];
    if (version != VERSION) {
        return err_set(e, -EPROTO, "SPDY version %u is not 3", version);
    }
    if (r->left > SPDY_MAX_CONTROL) {
        return err_set(e, -EMSGSIZE, "a control frame of %zu bytes", r->left);
    }
    r->skipping = type < SPDY_SYN_STREAM || type > SPDY_WINDOW_UPDATE || type == 5;
    r->now.type = (enum spdy_type) type;
    return 0;
}

/* Hands out the piece of data that has arrived. */
static int read_piece(struct spdy_reader *r, const char *p, size_t size, struct spdy_frame *ret)
{
    *ret = r->now;
    ret->data = p;
    ret->size = size;
    r->left -= size;
    ret->fin = r->now.fin && !r->left;
    return 1;
}

/* Whether the payload of the frame that has begun is not complete yet. */
static bool in_payload(const struct spdy_reader *r)
{
    return r->left > 0;
}

/* The frame without further payload: 1 if it is one for the caller. */
static int complete(struct spdy_reader *r, struct spdy_frame *ret, struct err *e)
{
    if (r->skipping) {
        return 0;
    }
    *ret = r->now;
    if (r->is_data) {
        ret->data = "";
        return 1;
    }
    int n = read_control(r, ret, e);
    return n < 0 ? n : 1;
}

int spdy_read(struct spdy_reader *r, const char *p, size_t size, size_t *ret_used,
              struct spdy_frame *ret, struct err *e)
{
    size_t at = 0;
    int n = 0;
    while (n == 0 && at < size) {
        if (!in_payload(r)) {
            size_t part = MIN(size - at, (size_t) HEAD_SIZE - r->n_head);
            memcpy(r->head + r->n_head, p + at, part);
            r->n_head += part;
            at += part;
            if (r->n_head < HEAD_SIZE) {
                break;
            }
            n = begin(r, e);
            if (n == 0 && !r->left) {
                n = complete(r, ret, e);
            }
            continue;
        }
        size_t part = MIN(size - at, r->left);
        if (r->is_data) {
            n = read_piece(r, p + at, part, ret);
            at += part;
            continue;
        }
        if (!r->skipping) {
            strbuf_add(&r->control, p + at, part);
        }
        r->left -= part;
        at += part;
        if (!r->left) {
            n = complete(r, ret, e);
        }
    }
    *ret_used = at;
    return n;
}

/* ---- writing ---- */

struct spdy_writer {
    z_stream zlib;
};

struct spdy_writer *spdy_writer_new(void)
{
    struct spdy_writer *w = NEW(struct spdy_writer);
    char dictionary[DICTIONARY_SIZE];
    make_dictionary(dictionary);
    if (deflateInit2(&w->zlib, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS, MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        abort(); /* Out of memory. */
    }
    (void) deflateSetDictionary(&w->zlib, (const Bytef *) dictionary, sizeof dictionary);
    return w;
}

struct spdy_writer *spdy_writer_free(struct spdy_writer *w)
{
    if (w) {
        (void) deflateEnd(&w->zlib);
        free(w);
    }
    return NULL;
}

static void add_u32(struct strbuf *out, uint32_t v)
{
    char p[4];
    put_u32(p, v);
    strbuf_add(out, p, sizeof p);
}

/* The head of a control frame with 'size' bytes of payload. */
static void add_control(struct strbuf *out, enum spdy_type type, bool fin, size_t size)
{
    add_u32(out, 0x80000000u | VERSION << 16 | (uint32_t) type);
    add_u32(out, (fin ? FLAG_FIN << 24 : 0) | (uint32_t) size);
}

static void compress_block(struct spdy_writer *w, const struct strbuf *plain, struct strbuf *out)
{
    char buf[1024];
    z_stream *z = &w->zlib;
    z->next_in = (Bytef *) plain->data;
    z->avail_in = (uInt) plain->size;
    do {
        z->next_out = (Bytef *) buf;
        z->avail_out = sizeof buf;
        (void) deflate(z, Z_SYNC_FLUSH);
        strbuf_add(out, buf, sizeof buf - z->avail_out);
    } while (!z->avail_out);
}

static void write_headers(struct spdy_writer *w, enum spdy_type type, uint32_t stream, bool fin,
                          const char *const *headers, size_t n, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf plain = STRBUF_INIT, packed = STRBUF_INIT;
    add_u32(&plain, (uint32_t) n);
    for (size_t i = 0; i < n * 2; i++) {
        add_u32(&plain, (uint32_t) strlen(headers[i]));
        strbuf_adds(&plain, headers[i]);
    }
    compress_block(w, &plain, &packed);
    size_t fixed = type == SPDY_SYN_STREAM ? 10 : 4;
    add_control(out, type, fin, fixed + packed.size);
    add_u32(out, stream);
    if (type == SPDY_SYN_STREAM) {
        add_u32(out, 0);            /* No associated stream. */
        strbuf_add(out, "\0\0", 2); /* Priority and slot. */
    }
    strbuf_add(out, packed.data, packed.size);
}

void spdy_write_open(struct spdy_writer *w, uint32_t stream, bool fin, const char *const *headers,
                     size_t n, struct strbuf *out)
{
    write_headers(w, SPDY_SYN_STREAM, stream, fin, headers, n, out);
}

void spdy_write_reply(struct spdy_writer *w, uint32_t stream, struct strbuf *out)
{
    write_headers(w, SPDY_SYN_REPLY, stream, false, NULL, 0, out);
}

void spdy_write_data(uint32_t stream, bool fin, size_t size, struct strbuf *out)
{
    assert(size <= SPDY_MAX_DATA);
    add_u32(out, stream);
    add_u32(out, (fin ? FLAG_FIN << 24 : 0) | (uint32_t) size);
}

void spdy_write_reset(uint32_t stream, uint32_t code, struct strbuf *out)
{
    add_control(out, SPDY_RST_STREAM, false, 8);
    add_u32(out, stream);
    add_u32(out, code);
}

void spdy_write_ping(uint32_t id, struct strbuf *out)
{
    add_control(out, SPDY_PING, false, 4);
    add_u32(out, id);
}

void spdy_write_goaway(uint32_t last_stream, uint32_t code, struct strbuf *out)
{
    add_control(out, SPDY_GOAWAY, false, 8);
    add_u32(out, last_stream);
    add_u32(out, code);
}
