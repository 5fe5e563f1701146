/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the multiplexers: what SPDY and WebSocket share.  Loop's thread only. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "net/stream/mux.h"

/* What a protocol does; every function only queues. */
struct mux_proto {
    /* Takes received bytes: 0, or a negative errno that ends the connection. */
    int (*input)(struct mux *m, const char *p, size_t size, struct err *e);
    /* Opens a stream and returns its number, 0: no more; NULL: the peer alone opens streams. */
    uint32_t (*open)(struct mux *m, const char *const *headers, size_t n);
    void (*write)(struct mux *m, struct mux_stream *s, const char *p, size_t size);
    void (*end)(struct mux *m, struct mux_stream *s);
    void (*reset)(struct mux *m, struct mux_stream *s);
    void (*goodbye)(struct mux *m, const char *why);
    void (*free)(struct mux *m);
};

struct mux_stream {
    struct mux *mux;
    struct hmap_node node; /* In mux->streams, by id. */
    struct list fresh;     /* In mux->fresh, until 'opened' was called. */
    struct list ready;     /* In mux->ready while it has something to deliver. */
    uint32_t id;
    char *headers; /* "name\0value\0" repeated. */
    size_t n_headers;
    const struct mux_stream_ops *ops; /* NULL: not started. */
    void *ctx;
    struct strbuf held; /* Data that waits. */
    bool paused;
    bool peer_ended, end_told, we_ended, was_reset, reset_told;
};

struct mux {
    struct loop *loop;
    struct duplex *duplex;
    const struct mux_proto *proto;
    const struct mux_ops *ops;
    void *ctx;
    struct hmap streams;
    struct list fresh, ready;
    struct loop_task task;
    struct loop_timer *timer; /* Limits the time in which the peer closes after us. */
    size_t unsent;            /* When the timer was armed. */
    size_t held;              /* Of all streams. */
    int error;
    struct err why;
    bool closing, over, told; /* over: the connection has ended; told: 'closed' was called. */
    bool *gone;               /* Set when it is freed during a callback. */
};

/* Initializes the shared part, and begins to read. */
void mux_init(struct mux *m, struct loop *l, struct duplex *d, const struct mux_proto *proto,
              const struct mux_ops *ops, void *ctx);
/* A new stream with copied headers. */
struct mux_stream *mux_stream_new(struct mux *m, uint32_t id);
void mux_stream_add_header(struct mux_stream *s, const char *name, const char *value);
struct mux_stream *mux_stream_find(struct mux *m, uint32_t id);
/* What the peer did, which the stream's user hears of by a task. */
void mux_got_stream(struct mux_stream *s);
void mux_got_data(struct mux_stream *s, const char *p, size_t size);
void mux_got_end(struct mux_stream *s);
void mux_got_reset(struct mux_stream *s);
/* The peer has ended the connection in order. */
void mux_got_goodbye(struct mux *m);
