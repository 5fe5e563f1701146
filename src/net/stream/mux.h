/* SPDX-License-Identifier: Apache-2.0 */
/* Several streams over one connection: one interface for SPDY/3.1 and for Kubernetes' channels in
 * WebSocket messages.
 *
 * A stream has headers ("streamtype": "stdin"), and two directions that end separately.  A reset ends
 * one stream in both directions and no other.  Callbacks come from the loop, never from within a
 * call.  A stream that was paused keeps up to MUX_HELD bytes of its data, beyond which the whole
 * connection is not read: its peers know no flow control but TCP's.  Writers look at mux_queued and
 * continue when 'drained' is called, so memory is bounded in both directions.
 *
 * The multiplexer owns its connection and its streams.  Everything runs on the loop's thread. */
#pragma once

#include "net/tls/duplex.h"

#define MUX_HELD 262144u
#define MUX_MAX_STREAMS 1000u

struct mux;
struct mux_stream;

struct mux_ops {
    /* The peer has opened a stream.  Its data waits until mux_stream_start. */
    void (*opened)(void *ctx, struct mux_stream *s);
    /* At most DUPLEX_LOW bytes are queued; NULL: not wanted. */
    void (*drained)(void *ctx);
    /* The connection has ended: in order (error 0) or not.  Its streams are still there, and get no
     * callback any more.  Called once. */
    void (*closed)(void *ctx, int error, const char *why);
};

struct mux_stream_ops {
    void (*data)(void *ctx, const char *p, size_t size);
    /* The peer has ended its direction. */
    void (*end)(void *ctx);
    /* The peer has reset the stream, or refused to open it.  What it sent before was delivered: Go's
     * servers reset their streams at an orderly end, too. */
    void (*reset)(void *ctx);
};

/* SPDY/3.1.  'server': the peer opens streams with odd numbers. */
struct mux *mux_spdy_new(struct loop *l, struct duplex *d, bool server, const struct mux_ops *ops,
                         void *ctx);

/* A channel of a WebSocket connection (v4.channel.k8s.io and v5), of the server's side. */
struct mux_channel {
    /* Names and values in turn; 'n' of each.  0: there is no such channel, and messages for it are
     * discarded. */
    const char *const *headers;
    size_t n;
    bool from_client, to_client; /* Its directions. */
    const char *greeting;        /* Sent first; 'n_greeting' bytes. */
    size_t n_greeting;
};
/* The sub-protocols; "" when none is known. */
struct mux_protocol {
    const char *name;
    bool base64;  /* Messages are texts: a digit for the channel, then base64. */
    bool closing; /* v5: a message says that a channel has ended. */
};
extern const struct mux_protocol mux_protocols[];
/* The first of the client's comma-separated 'offered' protocols that is known; NULL: none. */
const struct mux_protocol *mux_protocol_choose(const char *offered);
/* Each channel is reported by 'opened' at first, in order.  Headers of channels are copied. */
struct mux *mux_websocket_new(struct loop *l, struct duplex *d, const struct mux_protocol *protocol,
                              const struct mux_channel *channels, size_t n,
                              const struct mux_ops *ops, void *ctx);

struct mux *mux_free(struct mux *m);
DEFINE_CLEANUP(struct mux *, mux_free)
/* Sends what is queued, says goodbye, and ends our direction; 'closed' follows.  'why' NULL: in
 * order; else the reason of the failure, where the protocol has one. */
void mux_close(struct mux *m, const char *why);
/* Bytes that wait for the peer. */
size_t mux_queued(const struct mux *m);

/* Opens a stream (SPDY only); 'headers' has 'n' names in lower case, each followed by its value.
 * NULL: the connection has ended, or has MUX_MAX_STREAMS. */
struct mux_stream *mux_open(struct mux *m, const char *const *headers, size_t n);
/* Begins to receive.  Until then nothing is called. */
void mux_stream_start(struct mux_stream *s, const struct mux_stream_ops *ops, void *ctx);
/* The value of a header of a stream; NULL: absent. */
const char *mux_stream_header(const struct mux_stream *s, const char *name);
/* The i-th header; false: no more. */
bool mux_stream_header_at(const struct mux_stream *s, size_t i, const char **ret_name,
                          const char **ret_value);
struct mux *mux_of(const struct mux_stream *s);
void mux_stream_write(struct mux_stream *s, const char *p, size_t size);
void mux_stream_end(struct mux_stream *s);
/* Stops, or continues, to get data. */
void mux_stream_pause(struct mux_stream *s, bool pause);
/* Whether both directions have ended. */
bool mux_stream_is_done(const struct mux_stream *s);
/* Frees the stream, and resets it if it is not done. */
struct mux_stream *mux_stream_free(struct mux_stream *s);
