/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP server (HTTP/1.1 and HTTP/2 on one port) and HTTP/1.1 client on the loop (RFC 9110, 9112,
 * 9113).
 *
 * Server: HTTP/2 is spoken with clients that choose it by ALPN, or without TLS begin with its
 * preface. It is bounded everywhere. A request that is too large, too slow or malformed is
 * answered with an error and its connection (HTTP/2: its stream) closed; a response stream whose
 * client does not read is cut off when its queue is full; a client that sends too many HTTP/2
 * frames other than requests is disconnected. The handler is called when the request is
 * complete. It must answer each exchange, now or later: by http_respond, or by http_stream_begin
 * and then http_stream_end.
 *
 * Client: one 'http_client' a server address; connections are kept alive
 * and reused, a streaming call (watch) has a connection of its own while it lasts.
 *
 * Bodies are not parsed here. Everything runs on the loop's thread. */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/loop.h"
#include "net/tls/duplex.h"
#include "net/tls/tls.h"

/* ---- server ---- */

struct http_limits {
    size_t max_head; /* Bytes of request line and headers; more is 431; 0: 32 KiB. */
    size_t max_uri;  /* Bytes of the target; more is 414; 0: 16 KiB. */
    size_t max_body; /* More is 413; 0: 3 MiB, as kube-apiserver. */
    /* Bytes of all unanswered requests' bodies; more is 503; 0: 64 times max_body. One address
     * may use a quarter of it. */
    size_t max_bodies;
    size_t max_stream_queue; /* Unsent bytes of one stream before it is cut; 0: 4 MiB. */
    /* Unsent bytes of an HTTP/2 connection at which its further requests wait; 0: 8 MiB. */
    size_t max_conn_queue;
    /* Maximum of connections; above it the least important ones are closed; 0: 20,000. */
    unsigned max_conns;
    /* Maximum of connections from one address, others are closed at once; 0: any number. */
    unsigned max_conns_client;
    unsigned max_streams; /* Concurrent requests on an HTTP/2 connection; 0: 250. */
    uint64_t idle_ms;     /* Timeout between requests; 0: 90,000. */
    uint64_t head_ms; /* Timeout to receive a request's head, and for a TLS handshake; 0: 15,000. */
    uint64_t body_ms; /* Timeout to receive a request's body; 0: 30,000. */
    /* Timeout for the client to receive the next 16 KiB of queued data; 0: 30,000. */
    uint64_t send_ms;
};

/* Counters since the start, and present values. */
struct http_stats {
    /* Present numbers; streams: HTTP/2 requests not yet completely answered. */
    unsigned conns, h2_conns, streams;
    uint64_t accepted, refused; /* Connections; refused: over a limit. */
    uint64_t errors;     /* Requests that the server itself refused: too large, slow, malformed. */
    uint64_t floods;     /* HTTP/2 connections closed for too many frames. */
    uint64_t cut;        /* Streams and responses aborted: the client did not read. */
    uint64_t body_bytes; /* Bodies of unanswered requests, now. */
};

struct http_server;
struct http_exchange; /* One request and its response. */
typedef void http_handler_fn(void *ctx, struct http_exchange *x);

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits,
                                    http_handler_fn *fn, void *ctx);
/* Serves the listening socket 'fd'; takes ownership of it. */
int http_server_add_listener(struct http_server *s, int fd, struct err *e);
/* The same with HTTPS, by a server's context that must live as long as the server (NULL: plain
 * HTTP). */
int http_server_add_listener_tls(struct http_server *s, int fd, struct tls_context *tls,
                                 struct err *e);
/* The same as http_server_add_listener for clients in this process: their connections do not count
 * for their address. */
int http_server_add_own_listener(struct http_server *s, int fd, struct err *e);
/* Format of errors that the server itself answers: fills 'out' with the body for 'status', returns
 * its content type, and may set headers of 'x'. The request of 'x' may be incomplete: only its
 * headers may be read, of which there are none when the head could not be parsed. */
typedef const char *http_error_fn(struct http_exchange *x, int status, const char *why,
                                  struct strbuf *out);
/* 'fn' NULL: plain text. */
void http_server_set_errors(struct http_server *s, http_error_fn *fn);
struct http_stats http_server_stats(const struct http_server *s);
/* Closes the listening sockets; everything else continues. */
void http_server_stop_listening(struct http_server *s);
/* Stops accepting; ends streams (with their 'closed' call), finishes requests, sends GOAWAY to
 * HTTP/2 clients; calls 'done' when no connection is left, or after 'timeout_ms', when the
 * remaining ones were closed. */
void http_server_shutdown(struct http_server *s, uint64_t timeout_ms, loop_fn *done, void *ctx);
/* Closes all connections and calls 'closed' of streams. Unanswered exchanges stay valid, and
 * their answers are discarded. Not from within a callback of the server, except for 'done'. */
struct http_server *http_server_free(struct http_server *s);

/* Request.  All strings live until the exchange ends. */
const char *http_method(const struct http_exchange *x);
/* Percent-decoded, without the query; has no "..". */
const char *http_path(const struct http_exchange *x);
/* The parameter 'name' of the query, decoded; NULL: absent. */
const char *http_query(const struct http_exchange *x, const char *name);
/* The i-th parameter of the query, decoded; false: no more. */
bool http_query_at(const struct http_exchange *x, size_t i, const char **ret_name,
                   const char **ret_value);
/* The query as it was sent; "" when there is none. */
const char *http_query_raw(const struct http_exchange *x);
/* The header 'name', in any case; NULL: absent. */
const char *http_header(const struct http_exchange *x, const char *name);
/* The i-th header in the order of sending; false: no more. */
bool http_header_at(const struct http_exchange *x, size_t i, const char **ret_name,
                    const char **ret_value);
/* The whole body; ends in NUL. */
const char *http_body(const struct http_exchange *x, size_t *ret_size);
const char *http_peer(const struct http_exchange *x); /* "10.0.0.1:5000" or "unix". */
unsigned http_version(const struct http_exchange *x); /* 1 or 2. */
bool http_is_tls(const struct http_exchange *x);
/* The identity in the client's verified certificate; NULL: no certificate, or a proxy's. */
const struct tls_identity *http_peer_cert(const struct http_exchange *x);
/* The identity of the proxy that sent the request (tls_peer_proxy); NULL: none did. */
const struct tls_identity *http_peer_proxy(const struct http_exchange *x);

/* Response; each ends the exchange ('x' must not be used after). No body is sent to a HEAD
 * request. 'content_type' may be NULL. */
void http_respond(struct http_exchange *x, int status, const char *content_type, const void *body,
                  size_t size);
void http_respond_blob(struct http_exchange *x, int status, const char *content_type,
                       struct blob *body);
/* An extra response header, before responding.  Dropped when it is not a valid header. */
void http_set_header(struct http_exchange *x, const char *name, const char *value);

/* 'gone' is called once if the client disconnects before the answer, never from within a call;
 * the exchange must still be answered. Responding, and beginning a stream, cancel this. */
void http_on_gone(struct http_exchange *x, loop_fn *gone, void *ctx);
/* 'finished' is called once after the exchange was answered by http_respond: when the last of
 * the response was sent, or never will be. It may come from within any call, and must not call
 * the server. */
void http_on_finished(struct http_exchange *x, loop_fn *finished, void *ctx);

/* Streams (chunked, or HTTP/2's DATA). 'closed' is called once when the client went away or was
 * cut off; after it, and after http_stream_end, 'x' must not be used. It is not called from
 * within http_stream_write. */
void http_stream_begin(struct http_exchange *x, int status, const char *content_type,
                       loop_fn *closed, void *ctx);
/* Queues 'b' (a new reference is taken).  -ENOBUFS: the queue is full, the stream is being
 * closed; -EPIPE: the client has disconnected.  In both cases 'closed' follows.  Data queued in
 * one round of the loop is sent together. A caller with much data watches http_stream_queued,
 * pauses below max_stream_queue, and continues when 'drained' is called: each time that the
 * queue becomes empty. */
int http_stream_write(struct http_exchange *x, struct blob *b);
size_t http_stream_queued(const struct http_exchange *x);
void http_stream_on_drained(struct http_exchange *x, loop_fn *drained, void *ctx);
void http_stream_end(struct http_exchange *x);
/* Ends a stream that is not complete, in a way that its client can tell from http_stream_end: without
 * the last chunk, or by a reset. */
void http_stream_cut(struct http_exchange *x);

/* Upgrades (RFC 9110, 7.8): the connection is used for another protocol from now on. */

/* Whether the client asks to upgrade to 'protocol' ("websocket"), in any case. */
bool http_wants_upgrade(const struct http_exchange *x, const char *protocol);
/* Answers 101 with the headers of http_set_header, ends the exchange, and returns the connection,
 * with what the client has sent after its request.  The connection still counts for the limits of
 * the server, which breaks it (duplex_break) when it is freed or when its shutdown takes too long.
 * NULL: it is impossible, because the client has gone, uses HTTP/2 or HTTP/1.0, or the request has a
 * body; the exchange must then be answered. */
struct duplex *http_upgrade(struct http_exchange *x, const char *protocol);

/* ---- client ---- */

struct http_client;
struct http_call;

struct http_client_config {
    /* "http[s]://host:port[/prefix]" or "unix:///path". The host is an IPv4 address, "localhost"
     * or a name, which is looked up once, blocking. */
    const char *url;
    const struct tls_client_config *tls; /* For https; NULL: the defaults. */
    const char *user_agent;              /* NULL: "tenet/VERSION". */
    const char *host;                    /* For the header Host; NULL: that of the URL. */
    const char *bearer_token;            /* NULL: none. */
    uint64_t connect_ms;                 /* 0: 5,000. */
    /* Timeout for a complete non-streaming response; 0: 30,000. */
    uint64_t response_ms;
    /* Maximum of a non-streaming response's body; 0: 256 MiB. */
    size_t max_body;
};
int http_client_new(struct loop *l, const struct http_client_config *cfg, struct http_client **ret,
                    struct err *e);
/* Uses other certificates for new connections; idle ones are closed. -EINVAL: the server is not
 * HTTPS. */
int http_client_set_tls(struct http_client *c, const struct tls_client_config *tls, struct err *e);
/* Ends all streams soon, with -ECONNRESET. */
void http_client_break_streams(struct http_client *c);
/* Adds a header to all further requests. */
void http_client_add_header(struct http_client *c, const char *name, const char *value);
/* Outstanding calls are cancelled without a callback.  May be called from within any callback. */
struct http_client *http_client_free(struct http_client *c);

struct http_result {
    int error;                /* 0, or negative errno when there was no (complete) response. */
    const char *error_text;   /* "" or what failed, with the address. */
    int status;               /* HTTP status. */
    const char *content_type; /* "" when absent. */
    const char *location;     /* The same, for redirects. */
    const char *body;         /* NUL-terminated; valid in the callback only. */
    size_t size;
};
typedef void http_result_fn(void *ctx, const struct http_result *r);
/* Starts a call; 'fn' is called exactly once unless the call is cancelled, never from within
 * http_call, and the call is freed then.  'path' is escaped already and starts with "/".  'body'
 * is copied.  'accept' and 'content_type' may be NULL.  At most 16 calls are under way at once,
 * more wait. A call whose reused connection turns out to be dead is repeated once if that is
 * safe. */
struct http_call *http_call(struct http_client *c, const char *method, const char *path,
                            const char *accept, const char *content_type, const void *body,
                            size_t size, http_result_fn *fn, void *ctx);
/* Like http_call, with further complete header lines; 'headers' NULL: none. */
struct http_call *http_call_with(struct http_client *c, const char *method, const char *path,
                                 const char *accept, const char *content_type, const char *headers,
                                 const void *body, size_t size, http_result_fn *fn, void *ctx);

struct http1_head;
struct http_stream_ops {
    /* Head received with status 200; optional. */
    void (*opened)(void *ctx);
    /* Bytes of the body as they arrive. */
    void (*data)(void *ctx, const char *p, size_t size);
    /* The stream ended: error 0 = ended by the server in order. With a status other than 200 the
     * body (up to 64 KiB) is in 'r'. Called exactly once unless cancelled. */
    void (*ended)(void *ctx, const struct http_result *r);
    /* Head received, with any status; optional.  The body flows whatever the status is. */
    void (*head)(void *ctx, const struct http1_head *head);
};
/* 'idle_ms': without data for so long the stream ends with -ETIMEDOUT; 0: never. */
struct http_call *http_stream(struct http_client *c, const char *path, const char *accept,
                              uint64_t idle_ms, const struct http_stream_ops *ops, void *ctx);
/* Passes a request of any method on, and its response back: as http_stream with the member 'head'.
 * 'headers' are further complete header lines.  The time for the head is that of a response. */
struct http_call *http_forward(struct http_client *c, const char *method, const char *path,
                               const char *headers, const void *body, size_t size,
                               const struct http_stream_ops *ops, void *ctx);
/* Stops, or continues, to read the body of a stream. */
void http_call_pause(struct http_call *call, bool pause);

/* The answer to http_connect. */
struct http_connected {
    struct http_result result; /* As of a call; status 101 with 'stream'. */
    /* The connection, owned by the callback; NULL: the server did not upgrade. */
    struct duplex *stream;
    const struct http1_head *head; /* The head of a response; NULL: none came. */
};
typedef void http_connected_fn(void *ctx, const struct http_connected *r);
/* Asks the server to upgrade a connection of its own to 'protocol'.  'headers' are further complete
 * header lines.  'fn' is called exactly once unless the call is cancelled.  A response other than
 * 101 to that protocol is no upgrade; its body, up to 64 KiB, is in the result. */
struct http_call *http_connect(struct http_client *c, const char *method, const char *path,
                               const char *protocol, const char *headers, http_connected_fn *fn,
                               void *ctx);
void http_call_cancel(struct http_call *call); /* No callback any more; frees the call. */

/* Appends 's' percent-encoded for use in a path segment or query value. */
void http_escape(const char *s, struct strbuf *out);
