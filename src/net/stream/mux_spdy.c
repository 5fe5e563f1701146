/* SPDX-License-Identifier: Apache-2.0 */
/* SPDY/3.1 as a multiplexer.  Go's peers have no flow control, so windows are neither kept nor
 * announced. */
#include "base/mem.h"
#include "net/stream/mux_priv.h"
#include "wire/spdy.h"

/* Payload of the data frames that we send. */
#define FRAME_SIZE 32768u
/* Unanswered bytes of replies (to pings and refused streams) of a peer that does not read. */
#define MAX_REPLIES 1048576u

struct spdy {
    struct mux m;
    struct spdy_reader *reader;
    struct spdy_writer *writer;
    bool server;
    uint32_t next, last_peer; /* The next stream of ours, the last of the peer. */
};

static struct spdy *mine(struct mux *m)
{
    return CONTAINER_OF(m, struct spdy, m);
}

static void send_out(struct mux *m, const struct strbuf *b)
{
    duplex_write(m->duplex, b->data, b->size);
}

static void send_reset(struct mux *m, uint32_t stream, uint32_t code)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    spdy_write_reset(stream, code, &b);
    send_out(m, &b);
}

/* ---- frames of the peer ---- */

static int got_open(struct spdy *p, const struct spdy_frame *f, struct err *e)
{
    struct mux *m = &p->m;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if ((f->stream & 1) != p->server || f->stream <= p->last_peer) {
        return err_set(e, -EPROTO, "stream %u opened after stream %u", f->stream, p->last_peer);
    }
    p->last_peer = f->stream;
    if (m->streams.n >= MUX_MAX_STREAMS || m->closing) {
        send_reset(m, f->stream, SPDY_REFUSED);
        return 0;
    }
    struct mux_stream *s = mux_stream_new(m, f->stream);
    const char *at = f->headers;
    for (size_t i = 0; i < f->n_headers; i++) {
        const char *value = at + strlen(at) + 1;
        mux_stream_add_header(s, at, value);
        at = value + strlen(value) + 1;
    }
    spdy_write_reply(p->writer, f->stream, &b);
    send_out(m, &b);
    mux_got_stream(s);
    if (f->fin) {
        mux_got_end(s);
    }
    return 0;
}

/* Only what the peer asks for is echoed: odd pings are a client's. */
static void got_ping(struct spdy *p, uint32_t id)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if ((id & 1) == p->server) {
        spdy_write_ping(id, &b);
        send_out(&p->m, &b);
    }
}

/* Whether the stream was ever opened, by either side. */
static bool was_opened(const struct spdy *p, uint32_t stream)
{
    return (stream & 1) == p->server ? stream <= p->last_peer : stream < p->next;
}

static int got_frame(struct spdy *p, const struct spdy_frame *f, struct err *e)
{
    struct mux *m = &p->m;
    /* A stream that we have reset may still get frames. */
    struct mux_stream *s = f->stream ? mux_stream_find(m, f->stream) : NULL;
    switch (f->type) {
    case SPDY_SYN_STREAM:
        return got_open(p, f, e);
    case SPDY_DATA:
        if (!was_opened(p, f->stream)) {
            return err_set(e, -EPROTO, "data of stream %u, which was not opened", f->stream);
        }
        if (s) {
            mux_got_data(s, f->data, f->size);
        }
        break;
    case SPDY_RST_STREAM:
        if (s) {
            mux_got_reset(s);
        }
        return 0;
    case SPDY_PING:
        got_ping(p, f->id);
        return 0;
    case SPDY_GOAWAY:
    case SPDY_SETTINGS:
    case SPDY_WINDOW_UPDATE:
        return 0;
    case SPDY_SYN_REPLY:
    case SPDY_HEADERS:
        break;
    }
    if (s && f->fin) {
        mux_got_end(s);
    }
    return 0;
}

static int spdy_input(struct mux *m, const char *data, size_t size, struct err *e)
{
    struct spdy *p = mine(m);
    while (size) {
        struct spdy_frame f;
        size_t used;
        int r = spdy_read(p->reader, data, size, &used, &f, e);
        if (r == 1) {
            r = got_frame(p, &f, e);
        }
        if (r < 0) {
            return r;
        }
        data += used;
        size -= used;
    }
    return duplex_queued(m->duplex) > MAX_REPLIES + DUPLEX_HIGH * 4
               ? err_set(e, -ENOBUFS, "the peer does not read")
               : 0;
}

/* ---- our frames ---- */

static uint32_t spdy_open(struct mux *m, const char *const *headers, size_t n)
{
    struct spdy *p = mine(m);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    uint32_t id = p->next;
    if (id > SPDY_MAX_STREAM) {
        return 0;
    }
    p->next += 2;
    spdy_write_open(p->writer, id, false, headers, n, &b);
    send_out(m, &b);
    return id;
}

static void spdy_write(struct mux *m, struct mux_stream *s, const char *data, size_t size)
{
    while (size) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        size_t part = MIN(size, (size_t) FRAME_SIZE);
        spdy_write_data(s->id, false, part, &b);
        send_out(m, &b);
        duplex_write(m->duplex, data, part);
        data += part;
        size -= part;
    }
}

static void spdy_end(struct mux *m, struct mux_stream *s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    spdy_write_data(s->id, true, 0, &b);
    send_out(m, &b);
}

static void spdy_reset(struct mux *m, struct mux_stream *s)
{
    send_reset(m, s->id, SPDY_CANCEL);
}

static void spdy_goodbye(struct mux *m, const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    spdy_write_goaway(mine(m)->last_peer, why ? 1 : 0, &b);
    send_out(m, &b);
}

static void spdy_free(struct mux *m)
{
    struct spdy *p = mine(m);
    spdy_reader_free(p->reader);
    spdy_writer_free(p->writer);
    free(p);
}

static const struct mux_proto proto = {
    .input = spdy_input,
    .open = spdy_open,
    .write = spdy_write,
    .end = spdy_end,
    .reset = spdy_reset,
    .goodbye = spdy_goodbye,
    .free = spdy_free,
};

struct mux *mux_spdy_new(struct loop *l, struct duplex *d, bool server, const struct mux_ops *ops,
                         void *ctx)
{
    struct spdy *p = NEW(struct spdy);
    p->reader = spdy_reader_new();
    p->writer = spdy_writer_new();
    p->server = server;
    p->next = server ? 2 : 1;
    mux_init(&p->m, l, d, &proto, ops, ctx);
    return &p->m;
}
