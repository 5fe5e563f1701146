/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream/bridge.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"

/* One end of a pair of streams. */
struct end {
    struct pair *pair;
    struct mux_stream *s;
    struct end *other;
};

struct pair {
    struct bridge *bridge;
    struct list node;
    struct end front, back;
    bool is_result; /* The stream of type "error". */
    bool answered;  /* The back has sent something on it, or has ended it. */
};

struct bridge {
    struct mux *front, *back;
    struct list pairs;
    int error;
    struct err why;
    bool back_over;
    const char *lost;
    bridge_done_fn *done;
    void *ctx;
};

static void pair_free(struct pair *p)
{
    list_remove(&p->node);
    mux_stream_free(p->front.s);
    mux_stream_free(p->back.s);
    free(p);
}

static void pair_check(struct pair *p)
{
    if (mux_stream_is_done(p->front.s) && mux_stream_is_done(p->back.s)) {
        pair_free(p);
    }
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct end *from = ctx;
    from->pair->answered |= from == &from->pair->back;
    mux_stream_write(from->other->s, p, size);
    if (mux_queued(mux_of(from->other->s)) > DUPLEX_HIGH) {
        mux_stream_pause(from->s, true);
    }
}

static void on_end(void *ctx)
{
    struct end *from = ctx;
    from->pair->answered |= from == &from->pair->back;
    mux_stream_end(from->other->s);
    pair_check(from->pair);
}

/* Tells the client that there is no result. */
static void tell_lost(struct pair *p)
{
    const char *lost = p->bridge->lost;
    if (lost && p->is_result && !p->answered) {
        p->answered = true;
        mux_stream_write(p->front.s, lost, strlen(lost));
        mux_stream_end(p->front.s);
    }
}

/* The other stream is reset when it is freed. */
static void on_reset(void *ctx)
{
    struct end *from = ctx;
    if (from == &from->pair->back) {
        tell_lost(from->pair);
    }
    pair_free(from->pair);
}

static const struct mux_stream_ops stream_ops = {.data = on_data, .end = on_end, .reset = on_reset};

static void front_opened(void *ctx, struct mux_stream *s)
{
    struct bridge *b = ctx;
    const char *headers[32], *name, *value;
    size_t n = 0;
    while (n < ARRAY_SIZE(headers) / 2 && mux_stream_header_at(s, n, &name, &value)) {
        headers[2 * n] = name;
        headers[2 * n + 1] = value;
        n++;
    }
    struct mux_stream *back = mux_open(b->back, headers, n);
    if (!back) {
        mux_stream_free(s);
        return;
    }
    struct pair *p = NEW(struct pair);
    p->bridge = b;
    p->front = (struct end){.pair = p, .s = s, .other = &p->back};
    p->back = (struct end){.pair = p, .s = back, .other = &p->front};
    const char *type = mux_stream_header(s, "streamtype");
    p->is_result = type && streq(type, "error");
    list_push_back(&b->pairs, &p->node);
    mux_stream_start(s, &stream_ops, &p->front);
    mux_stream_start(back, &stream_ops, &p->back);
}

/* The back has no reason to open streams. */
static void back_opened(void *ctx, struct mux_stream *s)
{
    mux_stream_free(s);
}

static void front_drained(void *ctx)
{
    struct bridge *b = ctx;
    struct pair *p;
    LIST_FOREACH (p, struct pair, node, &b->pairs) {
        mux_stream_pause(p->back.s, false);
    }
}

static void back_drained(void *ctx)
{
    struct bridge *b = ctx;
    struct pair *p;
    LIST_FOREACH (p, struct pair, node, &b->pairs) {
        mux_stream_pause(p->front.s, false);
    }
}

static void finish(struct bridge *b)
{
    bridge_done_fn *done = b->done;
    void *ctx = b->ctx;
    int error = b->error;
    struct err why = b->why;
    bridge_free(b);
    done(ctx, error, why.text);
}

/* The back is closed, by which the runtime ends what it has begun. */
static void front_closed(void *ctx, int error, const char *why)
{
    struct bridge *b = ctx;
    if (!b->back_over) {
        b->error = error ? error : -ECONNRESET;
        (void) err_set(&b->why, b->error, "%s", *why ? why : "the client has gone");
    }
    finish(b);
}

/* Everything of the back is in the front's queue, which mux_close sends first.  A runtime closes its
 * connection at the end, whether or not it says goodbye. */
static void back_closed(void *ctx, int error, const char *why)
{
    struct bridge *b = ctx;
    bool reset = error && error != -ECONNRESET;
    struct pair *p;
    b->back_over = true;
    LIST_FOREACH (p, struct pair, node, &b->pairs) {
        tell_lost(p);
    }
    b->error = reset ? error : 0;
    (void) err_set(&b->why, -EIO, "%s", reset ? why : "");
    mux_close(b->front, reset ? why : NULL);
}

const struct mux_ops bridge_front_ops = {
    .opened = front_opened, .drained = front_drained, .closed = front_closed};
const struct mux_ops bridge_back_ops = {
    .opened = back_opened, .drained = back_drained, .closed = back_closed};

struct bridge *bridge_new(const char *lost, bridge_done_fn *done, void *ctx)
{
    struct bridge *b = NEW(struct bridge);
    b->lost = lost;
    list_init(&b->pairs);
    b->done = done;
    b->ctx = ctx;
    return b;
}

void bridge_start(struct bridge *b, struct mux *front, struct mux *back)
{
    b->front = front;
    b->back = back;
}

struct bridge *bridge_free(struct bridge *b)
{
    if (b) {
        while (!list_is_empty(&b->pairs)) {
            pair_free(CONTAINER_OF(b->pairs.next, struct pair, node));
        }
        mux_free(b->front);
        mux_free(b->back);
        free(b);
    }
    return NULL;
}
