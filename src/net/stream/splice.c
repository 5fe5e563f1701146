/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream/splice.h"

#include "base/mem.h"
#include "wire/websocket.h"

#define MESSAGE_SIZE 32768u

struct side {
    struct splice *splice;
    struct duplex *d;
    struct side *other;
    uint64_t bytes; /* That it has sent us. */
    bool eof;       /* It has ended its direction. */
    bool dead;      /* Its connection has failed. */
};

struct splice {
    struct side a, b;
    struct ws_reader *websocket; /* Of 'a'; NULL: its bytes are passed on as they are. */
    bool said_goodbye;
    int error; /* Of the connection that failed; 0: none. */
    struct err why;
    struct loop_timer *timer;
    uint64_t linger_ms;
    splice_done_fn *done;
    void *ctx;
};

static void finish(struct splice *s, int error, const char *why)
{
    splice_done_fn *done = s->done;
    void *ctx = s->ctx;
    uint64_t sent = s->a.bytes, received = s->b.bytes;
    struct err copy = {0};
    (void) err_set(&copy, -EIO, "%s", why);
    splice_free(s);
    done(ctx, error, copy.text, sent, received);
}

/* Ends when nothing can follow; otherwise a silent rest is limited in time. */
static void advance(struct splice *s)
{
    bool a_done = s->a.eof && (s->b.dead || duplex_is_flushed(s->b.d));
    bool b_done = s->b.eof && (s->a.dead || duplex_is_flushed(s->a.d));
    if (a_done && b_done) {
        finish(s, s->error, s->why.text);
    } else if (a_done || b_done) {
        loop_timer_arm(s->timer, s->linger_ms);
    }
}

static void say_goodbye(struct splice *s, unsigned code, const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (!s->said_goodbye) {
        s->said_goodbye = true;
        ws_write_close(code, NULL, why, &b);
        duplex_write(s->a.d, b.data, b.size);
    }
}

static void got_piece(struct splice *s, const struct ws_piece *f)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    switch (f->opcode) {
    case WS_PING:
        ws_write(WS_PONG, NULL, f->data, f->size, &b);
        duplex_write(s->a.d, b.data, b.size);
        break;
    case WS_CLOSE:
        say_goodbye(s, WS_NORMAL, "");
        duplex_end(s->a.d);
        s->a.eof = true;
        duplex_end(s->b.d);
        break;
    case WS_BINARY:
        duplex_write(s->b.d, f->data, f->size);
        break;
    case WS_TEXT:
    case WS_PONG:
        break;
    }
}

/* Takes the frames of 'a' apart; false: the connection cannot go on. */
static bool from_websocket(struct splice *s, const char *p, size_t size)
{
    int r = 1;
    while (r == 1) {
        struct ws_piece f;
        struct err e = {0};
        size_t used;
        r = ws_read(s->websocket, p, size, &used, &f, &e);
        p += used;
        size -= used;
        if (r == 1) {
            got_piece(s, &f);
        } else if (r < 0) {
            say_goodbye(s, WS_PROTOCOL_ERROR, e.text);
        }
    }
    return r == 0;
}

static void to_websocket(struct splice *s, const char *p, size_t size)
{
    while (size) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        size_t part = MIN(size, (size_t) MESSAGE_SIZE);
        ws_write(WS_BINARY, NULL, p, part, &b);
        duplex_write(s->a.d, b.data, b.size);
        p += part;
        size -= part;
    }
}

/* Passes bytes on; false: the sender has broken its protocol. */
static bool pass(struct side *from, const char *p, size_t size)
{
    struct splice *s = from->splice;
    if (!s->websocket) {
        duplex_write(from->other->d, p, size);
        return true;
    }
    if (from == &s->a) {
        return s->a.eof || from_websocket(s, p, size);
    }
    to_websocket(s, p, size);
    return true;
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct side *from = ctx;
    struct duplex *to = from->other->d;
    from->bytes += size;
    if (!pass(from, p, size)) {
        from->eof = true;
        duplex_end(from->d);
        duplex_end(to);
    }
    /* The second: answers to pings that the sender does not read. */
    if (duplex_queued(to) > DUPLEX_HIGH || duplex_queued(from->d) > DUPLEX_HIGH * 4) {
        duplex_pause(from->d, true);
    }
    if (loop_timer_armed(from->splice->timer)) {
        loop_timer_arm(from->splice->timer, from->splice->linger_ms);
    }
}

static void on_eof(void *ctx)
{
    struct side *from = ctx;
    from->eof = true;
    if (from->splice->websocket && from == &from->splice->b) {
        say_goodbye(from->splice, WS_NORMAL, "");
    }
    duplex_end(from->other->d);
    advance(from->splice);
}

static void on_drained(void *ctx)
{
    struct side *to = ctx;
    duplex_pause(to->other->d, false);
    if (duplex_queued(to->other->d) <= DUPLEX_HIGH) {
        duplex_pause(to->d, false);
    }
    advance(to->splice);
}

/* What the side has sent before is for the other side still.  One that had ended its direction may
 * well reset its connection when it gets more. */
static void on_failed(void *ctx, int error, const char *why)
{
    struct side *side = ctx;
    struct splice *s = side->splice;
    side->dead = true;
    if (!side->eof && !s->error) {
        s->error = error;
        (void) err_set(&s->why, error, "%s", why);
    }
    side->eof = true;
    side->other->eof = true;
    duplex_end(side->other->d);
    advance(s);
}

static const struct duplex_ops ops = {
    .data = on_data, .eof = on_eof, .drained = on_drained, .failed = on_failed};

static void silent(void *ctx)
{
    finish(ctx, 0, "");
}

struct splice *splice_new(struct loop *l, struct duplex *a, struct duplex *b, uint64_t linger_ms,
                          splice_done_fn *done, void *ctx)
{
    struct splice *s = NEW(struct splice);
    s->a = (struct side){.splice = s, .d = a, .other = &s->b};
    s->b = (struct side){.splice = s, .d = b, .other = &s->a};
    s->timer = loop_timer_new(l, silent, s);
    s->linger_ms = linger_ms;
    s->done = done;
    s->ctx = ctx;
    duplex_start(a, &ops, &s->a);
    duplex_start(b, &ops, &s->b);
    return s;
}

struct splice *splice_websocket_new(struct loop *l, struct duplex *a, struct duplex *b,
                                    uint64_t linger_ms, splice_done_fn *done, void *ctx)
{
    struct splice *s = splice_new(l, a, b, linger_ms, done, ctx);
    s->websocket = NEW(struct ws_reader);
    ws_reader_init(s->websocket, true);
    return s;
}

struct splice *splice_free(struct splice *s)
{
    if (s) {
        duplex_free(s->a.d);
        duplex_free(s->b.d);
        loop_timer_free(s->timer);
        free(s->websocket);
        free(s);
    }
    return NULL;
}
