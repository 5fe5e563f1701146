/* SPDX-License-Identifier: Apache-2.0 */
/* What the multiplexers share: streams, what waits for them, their callbacks. */
#include "net/stream/mux_priv.h"

#include "base/mem.h"

#define LINGER_MS 10000

/* ---- the connection ---- */

static bool must_wait(const struct mux *m)
{
    return m->held > MUX_HELD;
}

static void finish(struct mux *m, int error, const char *why)
{
    if (!m->over) {
        m->over = true;
        m->error = error;
        (void) err_set(&m->why, -EIO, "%s", why);
        loop_task_queue(&m->task);
    }
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct mux *m = ctx;
    struct err e = {0};
    if (m->over) {
        return;
    }
    int r = m->proto->input(m, p, size, &e);
    if (r < 0) {
        m->proto->goodbye(m, e.text);
        duplex_end(m->duplex);
        finish(m, r, e.text);
    }
    loop_task_queue(&m->task);
}

static void on_eof(void *ctx)
{
    struct mux *m = ctx;
    finish(m, m->closing ? 0 : -ECONNRESET, m->closing ? "" : "the peer has closed the connection");
}

static void on_drained(void *ctx)
{
    struct mux *m = ctx;
    if (m->ops->drained && !m->over) {
        m->ops->drained(m->ctx);
    }
}

static void on_failed(void *ctx, int error, const char *why)
{
    finish(ctx, error, why);
}

static const struct duplex_ops duplex_ops = {
    .data = on_data, .eof = on_eof, .drained = on_drained, .failed = on_failed};

void mux_got_goodbye(struct mux *m)
{
    finish(m, 0, "");
}

/* ---- callbacks ---- */

/* Runs the callbacks of one stream; false: the multiplexer was freed. */
static bool deliver(struct mux *m, struct mux_stream *s)
{
    bool gone = false;
    m->gone = &gone;
    if (s->held.size) {
        CLEANUP_STRBUF struct strbuf b = s->held;
        s->held = STRBUF_INIT;
        m->held -= b.size;
        if (s->peer_ended || s->was_reset) { /* Its end follows in the next round. */
            list_push_back(&m->ready, &s->ready);
        }
        s->ops->data(s->ctx, b.data, b.size);
    } else if (s->was_reset) {
        s->reset_told = true;
        s->ops->reset(s->ctx);
    } else if (s->peer_ended && !s->end_told) {
        s->end_told = true;
        s->ops->end(s->ctx);
    }
    if (!gone) {
        m->gone = NULL;
    }
    return !gone;
}

static bool has_news(const struct mux_stream *s)
{
    if (!s->ops || s->held.size) {
        return s->ops && !s->paused;
    }
    return s->was_reset ? !s->reset_told : s->peer_ended && !s->end_told;
}

static void note(struct mux_stream *s)
{
    if (has_news(s) && list_is_empty(&s->ready)) {
        list_push_back(&s->mux->ready, &s->ready);
        loop_task_queue(&s->mux->task);
    }
}

static bool call_opened(struct mux *m, struct mux_stream *s)
{
    bool gone = false;
    m->gone = &gone;
    m->ops->opened(m->ctx, s);
    if (!gone) {
        m->gone = NULL;
    }
    return !gone;
}

static void run(void *ctx)
{
    struct mux *m = ctx;
    while (!list_is_empty(&m->fresh)) {
        if (!call_opened(m, CONTAINER_OF(list_pop_front(&m->fresh), struct mux_stream, fresh))) {
            return;
        }
    }
    while (!list_is_empty(&m->ready)) {
        struct mux_stream *s = CONTAINER_OF(list_pop_front(&m->ready), struct mux_stream, ready);
        if (has_news(s) && !deliver(m, s)) {
            return;
        }
    }
    duplex_pause(m->duplex, must_wait(m) && !m->over);
    /* What was received before the end is for the streams' users still. */
    if (m->over && !m->told && !m->held) {
        m->told = true;
        m->ops->closed(m->ctx, m->error, m->why.text);
    }
}

/* ---- what the peer did ---- */

struct mux_stream *mux_stream_new(struct mux *m, uint32_t id)
{
    struct mux_stream *s = NEW(struct mux_stream);
    s->mux = m;
    s->id = id;
    s->held = STRBUF_INIT;
    list_init(&s->fresh);
    list_init(&s->ready);
    hmap_insert(&m->streams, &s->node, hash32(&id, sizeof id));
    return s;
}

void mux_stream_add_header(struct mux_stream *s, const char *name, const char *value)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    size_t size = 0;
    for (size_t i = 0; i < s->n_headers * 2; i++) {
        size += strlen(s->headers + size) + 1;
    }
    strbuf_add(&b, s->headers ? s->headers : "", size);
    strbuf_add(&b, name, strlen(name) + 1);
    strbuf_add(&b, value, strlen(value) + 1);
    free(s->headers);
    s->headers = strbuf_steal(&b);
    s->n_headers++;
}

struct mux_stream *mux_stream_find(struct mux *m, uint32_t id)
{
    struct mux_stream *s;
    HMAP_FOREACH_WITH_HASH (s, struct mux_stream, node, hash32(&id, sizeof id), &m->streams) {
        if (s->id == id) {
            return s;
        }
    }
    return NULL;
}

void mux_got_stream(struct mux_stream *s)
{
    list_push_back(&s->mux->fresh, &s->fresh);
    loop_task_queue(&s->mux->task);
}

void mux_got_data(struct mux_stream *s, const char *p, size_t size)
{
    if (size && !s->peer_ended && !s->was_reset) {
        strbuf_add(&s->held, p, size);
        s->mux->held += size;
        note(s);
    }
}

void mux_got_end(struct mux_stream *s)
{
    s->peer_ended = true;
    note(s);
}

void mux_got_reset(struct mux_stream *s)
{
    s->was_reset = true;
    note(s);
}

/* ---- streams ---- */

struct mux_stream *mux_open(struct mux *m, const char *const *headers, size_t n)
{
    if (m->over || m->closing || !m->proto->open || m->streams.n >= MUX_MAX_STREAMS) {
        return NULL;
    }
    uint32_t id = m->proto->open(m, headers, n);
    struct mux_stream *s = id ? mux_stream_new(m, id) : NULL;
    for (size_t i = 0; s && i < n; i++) {
        mux_stream_add_header(s, headers[2 * i], headers[2 * i + 1]);
    }
    return s;
}

void mux_stream_start(struct mux_stream *s, const struct mux_stream_ops *ops, void *ctx)
{
    s->ops = ops;
    s->ctx = ctx;
    note(s);
}

bool mux_stream_header_at(const struct mux_stream *s, size_t i, const char **ret_name,
                          const char **ret_value)
{
    const char *p = s->headers;
    if (i >= s->n_headers) {
        return false;
    }
    while (i-- > 0) {
        p += strlen(p) + 1;
        p += strlen(p) + 1;
    }
    *ret_name = p;
    *ret_value = p + strlen(p) + 1;
    return true;
}

const char *mux_stream_header(const struct mux_stream *s, const char *name)
{
    const char *found, *value;
    for (size_t i = 0; mux_stream_header_at(s, i, &found, &value); i++) {
        if (streq(found, name)) {
            return value;
        }
    }
    return NULL;
}

struct mux *mux_of(const struct mux_stream *s)
{
    return s->mux;
}

static bool can_send(const struct mux_stream *s)
{
    return !s->we_ended && !s->was_reset && !s->mux->over && !s->mux->closing;
}

void mux_stream_write(struct mux_stream *s, const char *p, size_t size)
{
    if (size && can_send(s)) {
        s->mux->proto->write(s->mux, s, p, size);
    }
}

void mux_stream_end(struct mux_stream *s)
{
    if (can_send(s)) {
        s->mux->proto->end(s->mux, s);
    }
    s->we_ended = true;
}

void mux_stream_pause(struct mux_stream *s, bool pause)
{
    s->paused = pause;
    note(s);
}

bool mux_stream_is_done(const struct mux_stream *s)
{
    return s->reset_told || (s->peer_ended && s->we_ended);
}

struct mux_stream *mux_stream_free(struct mux_stream *s)
{
    if (s) {
        struct mux *m = s->mux;
        if (!mux_stream_is_done(s) && !s->was_reset && !m->over && !m->closing) {
            m->proto->reset(m, s);
        }
        m->held -= s->held.size;
        loop_task_queue(&m->task); /* The connection may be read again. */
        list_remove(&s->fresh);
        list_remove(&s->ready);
        hmap_remove(&m->streams, &s->node);
        strbuf_done(&s->held);
        free(s->headers);
        free(s);
    }
    return NULL;
}

/* ---- the multiplexer ---- */

/* The peer should have closed by now, unless it is still reading. */
static void lingered(void *ctx)
{
    struct mux *m = ctx;
    size_t queued = duplex_queued(m->duplex);
    if (queued && queued < m->unsent) {
        m->unsent = queued;
        loop_timer_arm(m->timer, LINGER_MS);
    } else {
        finish(m, queued ? -ETIMEDOUT : 0, queued ? "the peer does not read" : "");
    }
}

void mux_init(struct mux *m, struct loop *l, struct duplex *d, const struct mux_proto *proto,
              const struct mux_ops *ops, void *ctx)
{
    m->loop = l;
    m->duplex = d;
    m->proto = proto;
    m->ops = ops;
    m->ctx = ctx;
    hmap_init(&m->streams);
    list_init(&m->fresh);
    list_init(&m->ready);
    loop_task_init(&m->task, l, run, m);
    m->timer = loop_timer_new(l, lingered, m);
    duplex_start(d, &duplex_ops, m);
}

size_t mux_queued(const struct mux *m)
{
    return duplex_queued(m->duplex);
}

void mux_close(struct mux *m, const char *why)
{
    if (!m->closing && !m->over) {
        m->proto->goodbye(m, why);
        duplex_end(m->duplex);
        m->unsent = duplex_queued(m->duplex);
        loop_timer_arm(m->timer, LINGER_MS);
    }
    m->closing = true;
}

struct mux *mux_free(struct mux *m)
{
    if (!m) {
        return NULL;
    }
    if (m->gone) {
        *m->gone = true;
    }
    m->over = true;
    struct mux_stream *s;
    HMAP_FOREACH (s, struct mux_stream, node, &m->streams) {
        mux_stream_free(s);
    }
    loop_task_cancel(&m->task);
    loop_timer_free(m->timer);
    hmap_done(&m->streams);
    duplex_free(m->duplex);
    m->proto->free(m);
    return NULL;
}
