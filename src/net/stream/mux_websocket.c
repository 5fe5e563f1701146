/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' channels in WebSocket messages as a multiplexer: the first byte of a message is the
 * number of its channel.  In v5 a message of 255 and a number says that the channel has ended. */
#include "base/base64.h"
#include "base/mem.h"
#include "net/stream/mux_priv.h"
#include "wire/websocket.h"

#define CLOSE_CHANNEL 255
/* Text of base64 that is decoded at once; a multiple of four. */
#define TEXT_SIZE 4096
/* Bytes of the messages that we send. */
#define MESSAGE_SIZE 32768u
#define MAX_REPLIES 1048576u
#define MAX_CHANNELS 128

const struct mux_protocol mux_protocols[] = {
    {"v5.channel.k8s.io", false, true},
    {"v4.channel.k8s.io", false, false},
    {"v4.base64.channel.k8s.io", true, false},
    {NULL, false, false},
};

struct websocket {
    struct mux m;
    const struct mux_protocol *protocol;
    struct ws_reader reader;
    size_t n_channels;
    /* The message that arrives: its channel, -1: not known yet, and of base64 the rest of text. */
    int channel;
    bool closing_channel; /* It says that a channel has ended. */
    bool skipped;         /* It is for no channel of ours. */
    char text[TEXT_SIZE];
    size_t n_text;
};

static struct websocket *mine(struct mux *m)
{
    return CONTAINER_OF(m, struct websocket, m);
}

/* Channels have the numbers of streams less one, as 0 is none. */
static struct mux_stream *stream_of(struct websocket *w, int channel)
{
    return mux_stream_find(&w->m, (uint32_t) channel + 1);
}

static void send_out(struct mux *m, const struct strbuf *b)
{
    duplex_write(m->duplex, b->data, b->size);
}

/* ---- messages of the client ---- */

static int got_text(struct websocket *w, bool last, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    size_t whole = last ? w->n_text : w->n_text / 4 * 4;
    struct mux_stream *s = stream_of(w, w->channel);
    if (base64_decode(w->text, whole, &b) < 0) {
        return err_set(e, -EPROTO, "malformed base64 in a message");
    }
    if (s) {
        mux_got_data(s, b.data, b.size);
    }
    memmove(w->text, w->text + whole, w->n_text - whole);
    w->n_text -= whole;
    return 0;
}

static int add_text(struct websocket *w, const char *p, size_t size, bool last, struct err *e)
{
    int r = 0;
    while (size && r == 0) {
        size_t part = MIN(size, TEXT_SIZE - w->n_text);
        memcpy(w->text + w->n_text, p, part);
        w->n_text += part;
        p += part;
        size -= part;
        r = w->n_text == TEXT_SIZE ? got_text(w, last && !size, e) : 0;
    }
    return r == 0 && last ? got_text(w, true, e) : r;
}

static int got_binary(struct websocket *w, const char *p, size_t size)
{
    struct mux_stream *s = NULL;
    if (w->closing_channel) {
        s = size ? stream_of(w, (unsigned char) *p) : NULL;
        w->closing_channel = !size;
        w->skipped = size;
        if (s) {
            mux_got_end(s);
        }
        return 0;
    }
    s = stream_of(w, w->channel);
    if (s) {
        mux_got_data(s, p, size);
    }
    return 0;
}

/* Takes the byte or digit of the channel; data for a channel that the client has not is refused. */
static int take_channel(struct websocket *w, char c, struct err *e)
{
    unsigned char n = (unsigned char) c;
    w->closing_channel = w->protocol->closing && n == CLOSE_CHANNEL;
    if (w->closing_channel) {
        w->channel = CLOSE_CHANNEL;
        return 0;
    }
    w->channel = w->protocol->base64 ? n - '0' : n;
    return w->channel < 0 || (size_t) w->channel >= w->n_channels
               ? err_set(e, -EPROTO, "a message for channel %u", n)
               : 0;
}

static int got_message(struct websocket *w, const struct ws_piece *f, struct err *e)
{
    const char *p = f->data;
    size_t size = f->size;
    if (f->first) {
        w->channel = -1;
        w->closing_channel = w->skipped = false;
        w->n_text = 0;
    }
    if (w->channel < 0 && size) {
        int r = take_channel(w, *p, e);
        if (r < 0) {
            return r;
        }
        p++;
        size--;
    }
    if (w->channel < 0 || w->skipped) {
        return 0;
    }
    return w->protocol->base64 ? add_text(w, p, size, f->last, e) : got_binary(w, p, size);
}

static int got_piece(struct websocket *w, const struct ws_piece *f, struct err *e)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    switch (f->opcode) {
    case WS_PING:
        ws_write(WS_PONG, NULL, f->data, f->size, &b);
        send_out(&w->m, &b);
        return 0;
    case WS_PONG:
        return 0;
    case WS_CLOSE:
        if (!w->m.closing) {
            ws_write_close(WS_NORMAL, NULL, "", &b);
            send_out(&w->m, &b);
            duplex_end(w->m.duplex);
        }
        mux_got_goodbye(&w->m);
        return 0;
    case WS_TEXT:
    case WS_BINARY:
        break;
    }
    return got_message(w, f, e);
}

static int websocket_input(struct mux *m, const char *data, size_t size, struct err *e)
{
    struct websocket *w = mine(m);
    int r = 1;
    while (r == 1 && !m->over) {
        struct ws_piece f;
        size_t used;
        r = ws_read(&w->reader, data, size, &used, &f, e);
        data += used;
        size -= used;
        if (r == 1) {
            int failed = got_piece(w, &f, e);
            r = failed < 0 ? failed : r;
        }
    }
    if (r >= 0 && duplex_queued(m->duplex) > MAX_REPLIES + DUPLEX_HIGH * 4) {
        return err_set(e, -ENOBUFS, "the peer does not read");
    }
    return MIN(r, 0);
}

/* ---- our messages ---- */

static void send_message(struct websocket *w, int channel, const char *p, size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT, text = STRBUF_INIT;
    char head = (char) channel;
    if (w->protocol->base64) {
        head = (char) (channel + '0');
        base64_encode(p, size, &text);
        p = strbuf_cstr(&text);
        size = text.size;
    }
    ws_write_parts(w->protocol->base64 ? WS_TEXT : WS_BINARY, NULL, &head, 1, p, size, &b);
    send_out(&w->m, &b);
}

static void websocket_write(struct mux *m, struct mux_stream *s, const char *data, size_t size)
{
    while (size) {
        size_t part = MIN(size, (size_t) MESSAGE_SIZE);
        send_message(mine(m), (int) s->id - 1, data, part);
        data += part;
        size -= part;
    }
}

/* Clients of v5 close channels; the end of ours shows when the connection is closed, as in
 * Kubernetes. */
static void websocket_end(struct mux *m, struct mux_stream *s)
{
}

static void websocket_reset(struct mux *m, struct mux_stream *s)
{
}

static void websocket_goodbye(struct mux *m, const char *why)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    ws_write_close(why ? WS_FAILED : WS_NORMAL, NULL, why ? why : "", &b);
    send_out(m, &b);
}

static void websocket_free(struct mux *m)
{
    free(mine(m));
}

static const struct mux_proto proto = {
    .input = websocket_input,
    .write = websocket_write,
    .end = websocket_end,
    .reset = websocket_reset,
    .goodbye = websocket_goodbye,
    .free = websocket_free,
};

const struct mux_protocol *mux_protocol_choose(const char *offered)
{
    while (*offered) {
        offered += strspn(offered, " \t,");
        size_t n = strcspn(offered, " \t,");
        for (const struct mux_protocol *p = mux_protocols; p->name; p++) {
            if (strlen(p->name) == n && strncmp(p->name, offered, n) == 0) {
                return p;
            }
        }
        offered += n;
    }
    return NULL;
}

struct mux *mux_websocket_new(struct loop *l, struct duplex *d, const struct mux_protocol *protocol,
                              const struct mux_channel *channels, size_t n,
                              const struct mux_ops *ops, void *ctx)
{
    struct websocket *w = NEW(struct websocket);
    assert(n <= MAX_CHANNELS);
    w->protocol = protocol;
    w->n_channels = n;
    w->channel = -1;
    ws_reader_init(&w->reader, true);
    mux_init(&w->m, l, d, &proto, ops, ctx);
    for (size_t i = 0; i < n; i++) {
        if (!channels[i].n) {
            continue;
        }
        struct mux_stream *s = mux_stream_new(&w->m, (uint32_t) i + 1);
        for (size_t k = 0; k < channels[i].n; k++) {
            mux_stream_add_header(s, channels[i].headers[2 * k], channels[i].headers[2 * k + 1]);
        }
        s->peer_ended = !channels[i].from_client;
        s->we_ended = !channels[i].to_client;
        mux_got_stream(s);
        if (channels[i].n_greeting) {
            send_message(w, (int) i, channels[i].greeting, channels[i].n_greeting);
        }
    }
    return &w->m;
}
