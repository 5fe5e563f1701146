/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the HTTP server: what its parts know of each other.
 *
 *     http_server.c    listeners, deadlines, limits by client address, shutdown
 *     http_conn.c      a connection: its socket, TLS, which protocol it speaks
 *     http_h1.c        HTTP/1.1 on it        http_h2.c    HTTP/2 on it
 *     http_exchange.c  a request and its response, as the user sees them
 *
 * A connection is one small struct; buffers exist only while there is something in them.  Calls of the user
 * (http_respond, http_stream_*) only queue; connections are written and closed by tasks, timers and socket
 * events.  So no connection goes away under the feet of a caller.  Loop's thread only. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/http/http.h"
#include "net/http/http_out.h"
#include "wire/http1.h"

#define HTTP_PEER_SIZE 24

struct http_conn;
struct h2_conn;

/* ---- deadlines ---- */

/* What is waited for.  Each kind has a fixed time, so that its list is in order of deadline. */
enum http_wait {
    HTTP_WAIT_IDLE,
    HTTP_WAIT_HEAD, /* And for a TLS handshake. */
    HTTP_WAIT_BODY,
    HTTP_WAIT_SEND,
    HTTP_WAIT_LINGER,
    HTTP_WAIT_MAX,
    HTTP_WAIT_NONE = HTTP_WAIT_MAX
};

struct http_deadline {
    struct list node;
    uint64_t at;
    void (*expired)(struct http_deadline *d);
};
void http_deadline_init(struct http_deadline *d, void (*expired)(struct http_deadline *d));
/* (Re)starts it, or with HTTP_WAIT_NONE stops it. */
void http_deadline_set(struct http_server *s, struct http_deadline *d, enum http_wait kind);
static inline bool http_deadline_is_set(const struct http_deadline *d)
{
    return !list_is_empty(&d->node);
}
/* A peer that takes its bytes one by one must not hold them for ever: only this much is progress. */
#define HTTP_PROGRESS_BYTES 16384u

/* ---- the server ---- */

/* What all connections from one address have in use; freed with the last of them. */
struct http_source {
    struct hmap_node node;
    uint32_t addr; /* IPv4; 0: a Unix socket; INADDR_NONE: the process's own. */
    unsigned n_conns;
    uint64_t body_bytes;
};

struct http_listener {
    struct http_server *server;
    struct tls_context *tls; /* NULL: plain. */
    bool own;                /* See http_server_add_own_listener. */
    int fd;
    struct loop_fd *watch;
};

struct http_server {
    struct loop *loop;
    struct http_limits limits;
    http_handler_fn *fn;
    void *ctx;
    http_error_fn *error_fn;
    struct http_listener **listeners;
    size_t n_listeners, listeners_cap;
    struct list conns;
    unsigned n_conns;
    struct hmap sources;
    uint64_t body_bytes; /* Of all requests that are not answered. */
    struct list waiting[HTTP_WAIT_MAX];
    struct loop_timer *timer; /* The first of all deadlines. */
    uint64_t timer_at;        /* 0: not armed. */
    struct loop_timer *accept_timer;
    bool accept_paused;
    struct list handshakes; /* Connections whose TLS handshake can go on. */
    struct loop_task handshake_task;
    bool draining;
    struct loop_timer *drain_timer;
    struct loop_task drained;
    loop_fn *done;
    void *done_ctx;
    struct http_stats stats;
};

/* The connection was freed. */
void http_server_conn_gone(struct http_server *s, struct http_source *src);

/* ---- a connection ---- */

/* How a connection speaks once that is known. */
struct http_proto {
    /* Takes all bytes that came. */
    void (*input)(struct http_conn *c, const char *p, size_t size);
    /* The client has shut down its side.  false: the connection is to be closed. */
    bool (*eof)(struct http_conn *c);
    /* Adds to c->out what can be sent now; NULL: it is there already. */
    void (*fill)(struct http_conn *c);
    /* All of c->out was sent.  The last thing that a task does with 'c', which may be gone after it. */
    void (*sent)(struct http_conn *c);
    /* Whether more input is welcome. */
    bool (*wants_input)(const struct http_conn *c);
    /* HTTP_WAIT_IDLE, _HEAD or _BODY has passed.  'c' may be gone after it. */
    void (*expired)(struct http_conn *c);
    /* The server shuts down: no request is begun any more, streams are ended. */
    void (*drain)(struct http_conn *c);
    /* 'c' goes: its exchanges lose it. */
    void (*detach)(struct http_conn *c);

    /* The user's calls, with x->conn. */
    void (*respond)(struct http_exchange *x, int status, const char *content_type, const void *body,
                    struct blob *blob, size_t size);
    void (*stream_begin)(struct http_exchange *x, int status, const char *content_type);
    int (*stream_write)(struct http_exchange *x, struct blob *b);
    size_t (*stream_queued)(const struct http_exchange *x);
    void (*stream_end)(struct http_exchange *x);
};
extern const struct http_proto http_h1, http_h2;

enum h1_state {
    H1_IDLE,      /* Between requests; 'in' is empty. */
    H1_HEAD,      /* Part of a head is in 'in'. */
    H1_BODY,      /* Receiving the body. */
    H1_READY,     /* The request is complete. */
    H1_HANDLER,   /* The user has the request and has not answered. */
    H1_STREAMING, /* The user is sending a stream. */
    H1_SENDING,   /* All of the response is queued. */
};

/* One request at a time: what a client sends ahead waits in 'in', or in the kernel. */
struct h1_conn {
    enum h1_state state;
    bool keep_alive; /* After the current response. */
    bool is_head;    /* The request is HEAD: no body is sent. */
    bool begun;      /* What the client speaks is known. */
    unsigned minor;
    struct strbuf in;
    size_t scanned; /* Of 'in', for the end of the head. */
    uint64_t body_left;
    struct http_exchange *x;
};

enum http_conn_state {
    HTTP_CONN_HANDSHAKE, /* Of TLS. */
    HTTP_CONN_OPEN,
    HTTP_CONN_LINGERING, /* We have said all and shut down; until the client has read it and closes. */
};

struct http_conn {
    struct http_server *server;
    struct http_source *source;
    int fd;
    struct tls *tls; /* NULL: plain. */
    struct tls_identity *identity;
    struct loop_fd *watch;
    struct loop_task task;      /* Sends, and goes on with what can be done then. */
    struct list node;           /* In server->conns. */
    struct list handshake_node; /* In server->handshakes. */
    struct http_deadline deadline;
    size_t progress; /* Bytes sent since HTTP_WAIT_SEND began. */
    enum http_conn_state state;
    bool eof; /* The client has shut down its side. */
    bool cut; /* To be closed by the task, for its queue is full. */
    const struct http_proto *proto;
    struct http_out out;
    struct h1_conn h1;  /* Also until the protocol is known. */
    struct h2_conn *h2; /* With http_h2. */
    char peer[HTTP_PEER_SIZE];
};

/* 'fd' is taken over; 'addr' is the client's (0: a Unix socket). */
void http_conn_new(struct http_listener *l, int fd, struct http_source *src, const char *peer);
/* Closes and frees 'c'. */
void http_conn_close(struct http_conn *c);
/* We have said all. */
void http_conn_linger(struct http_conn *c);
void http_conn_wait(struct http_conn *c, enum http_wait kind);
/* Tells the loop which events to watch; after anything that may change them. */
void http_conn_watch(struct http_conn *c);
/* Of server->handshake_task. */
void http_handshakes_run(void *server);

/* Every connection begins with HTTP/1.1, and goes over to HTTP/2 when the client turns out to speak it. */
void h1_begin(struct http_conn *c);
void h2_begin(struct http_conn *c);

/* ---- an exchange ---- */

struct http_exchange {
    struct http_conn *conn; /* NULL: the connection is gone, nobody waits for the answer. */
    struct loop *loop;
    struct http1_head head;
    struct http1_target target;
    char *head_text, *target_text; /* What the strings of 'head' and 'target' are in. */
    struct strbuf body;
    struct strbuf extra; /* Headers of http_set_header, as in HTTP/1.1. */
    bool is_streaming;   /* http_stream_begin was called. */
    loop_fn *closed, *drained, *gone, *finished;
    void *closed_ctx, *drained_ctx, *gone_ctx, *finished_ctx;
    struct loop_task task; /* Tells 'closed' or 'gone'. */
    bool is_tls, is_h2;
    struct tls_identity *identity;
    char peer[HTTP_PEER_SIZE];
};

/* In the first bytes of a struct of 'size' bytes. */
struct http_exchange *http_exchange_new(struct http_conn *c, size_t size);
void http_exchange_free(struct http_exchange *x);
/* Parses the target and checks its size: 0, or the status of the error. */
int http_exchange_target(struct http_exchange *x, const char *target, struct err *e);
/* Adds to the body: 0, or the status of the error. */
int http_exchange_body(struct http_exchange *x, const char *p, size_t size);
/* The body is needed no more. */
void http_exchange_drop_body(struct http_exchange *x);
/* Loses its connection while the user has it; then the user is told: by a task, or if it streams and 'now',
 * at once. */
void http_exchange_orphan(struct http_exchange *x);
void http_exchange_tell(struct http_exchange *x, bool now);
/* The text of an error of the server's own; '*ret_type' is its type. */
char *http_error_text(const struct http_server *s, int status, const char *why,
                      const char **ret_type);
