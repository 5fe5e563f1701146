/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the HTTP server: the interfaces between its parts.
 *
 *     http_server.c    listeners, deadlines, limits by client address, shutdown
 *     http_conn.c      a connection: its socket, TLS, which protocol it speaks
 *     http_h1.c        HTTP/1.1 on it        http_h2.c    HTTP/2 on it
 *     http_exchange.c  a request and its response, as the user sees them
 *
 * A connection is one small struct; buffers exist only while there is something in them. Calls
 * of the user (http_respond, http_stream_*) only queue; connections are written and closed by
 * tasks, timers and socket events. So no connection is freed during a caller's call. Loop's
 * thread only. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/http/http.h"
#include "net/http/http_out.h"
#include "wire/http1.h"

#define HTTP_PEER_SIZE 24

struct http_conn;
struct h2_conn;

/* ---- deadlines ---- */

/* Kinds of deadlines. Each has a fixed time, so that its list is in order of deadline. */
enum http_wait {
    HTTP_WAIT_IDLE,
    HTTP_WAIT_HEAD, /* Also for a TLS handshake. */
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
/* (Re)starts the deadline, or with HTTP_WAIT_NONE stops it. */
void http_deadline_set(struct http_server *s, struct http_deadline *d, enum http_wait kind);
static inline bool http_deadline_is_set(const struct http_deadline *d)
{
    return !list_is_empty(&d->node);
}
/* A peer that reads byte by byte must not keep them for ever: only this much counts as progress. */
#define HTTP_PROGRESS_BYTES 16384u

/* ---- the server ---- */

/* Resources used by all connections from one address; freed with the last of them. */
struct http_source {
    struct hmap_node node;
    uint32_t addr; /* IPv4; 0: a Unix socket; INADDR_NONE: this process. */
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
    struct list upgraded; /* Connections that were handed over. */
    unsigned n_conns;
    struct hmap sources;
    uint64_t body_bytes; /* Bodies of all unanswered requests. */
    struct list waiting[HTTP_WAIT_MAX];
    struct loop_timer *timer; /* Armed for the first of all deadlines. */
    uint64_t timer_at;        /* 0: not armed. */
    struct loop_timer *accept_timer;
    bool accept_paused;
    struct list handshakes; /* Connections whose TLS handshake can continue. */
    struct loop_task handshake_task;
    bool draining;
    struct loop_timer *drain_timer;
    struct loop_task drained;
    loop_fn *done;
    void *done_ctx;
    struct http_stats stats;
    int64_t date_s; /* The second that 'date' shows. */
    char date[TIME_TEXT_SIZE];
};

/* The value of the header Date, made once a second. */
const char *http_server_date(struct http_server *s);
/* Accounts for a connection that is handed over, until the duplex is freed. */
void http_server_conn_upgraded(struct http_server *s, struct http_source *src, struct duplex *d);
/* Accounts for a freed connection. */
void http_server_conn_gone(struct http_server *s, struct http_source *src);

/* ---- a connection ---- */

/* The protocol of a connection, once it is known. */
struct http_proto {
    /* Takes all received bytes. */
    void (*input)(struct http_conn *c, const char *p, size_t size);
    /* The client has shut down its side. false: close the connection. */
    bool (*eof)(struct http_conn *c);
    /* Adds data that can be sent now to c->out; NULL: it is there already. */
    void (*fill)(struct http_conn *c);
    /* All of c->out was sent. The last use of 'c' by a task; it may be freed by this. */
    void (*sent)(struct http_conn *c);
    /* Whether more input can be processed. */
    bool (*wants_input)(const struct http_conn *c);
    /* HTTP_WAIT_IDLE, _HEAD or _BODY has passed. 'c' may be freed by this. */
    void (*expired)(struct http_conn *c);
    /* The server shuts down: begins no further request and ends streams. */
    void (*drain)(struct http_conn *c);
    /* 'c' is being freed: detaches its exchanges. */
    void (*detach)(struct http_conn *c);

    /* The user's calls, with x->conn. */
    void (*respond)(struct http_exchange *x, int status, const char *content_type, const void *body,
                    struct blob *blob, size_t size);
    void (*stream_begin)(struct http_exchange *x, int status, const char *content_type);
    int (*stream_write)(struct http_exchange *x, struct blob *b);
    /* See http_upgrade; NULL: the protocol has no upgrades. */
    struct duplex *(*upgrade)(struct http_exchange *x, const char *protocol);
    size_t (*stream_queued)(const struct http_exchange *x);
    void (*stream_end)(struct http_exchange *x);
    void (*stream_cut)(struct http_exchange *x);
};
extern const struct http_proto http_h1, http_h2;

enum h1_state {
    H1_IDLE,      /* Between requests; 'in' is empty. */
    H1_HEAD,      /* Part of a head is in 'in'. */
    H1_BODY,      /* Receiving the body. */
    H1_READY,     /* The request is complete. */
    H1_HANDLER,   /* The handler has the request and has not answered. */
    H1_STREAMING, /* The user is sending a stream. */
    H1_SENDING,   /* The whole response is queued. */
    H1_UPGRADED,  /* The socket was handed over; the rest is freed by the task. */
};

/* One request at a time: further requests of the client wait in 'in', or in the kernel. */
struct h1_conn {
    enum h1_state state;
    bool keep_alive; /* Keep the connection open after the current response. */
    bool is_head;    /* The request is HEAD: no body is sent. */
    bool begun;      /* The client's protocol is known. */
    unsigned minor;
    struct strbuf in;
    size_t scanned; /* Bytes of 'in' searched for the end of the head. */
    uint64_t body_left;
    struct http_exchange *x;
};

enum http_conn_state {
    HTTP_CONN_HANDSHAKE, /* The TLS handshake. */
    HTTP_CONN_OPEN,
    /* We have sent everything and shut down; waits until the client has read it and closes. */
    HTTP_CONN_LINGERING,
};

struct http_conn {
    struct http_server *server;
    struct http_source *source;
    int fd;
    struct tls *tls; /* NULL: plain. */
    struct tls_identity *identity, *proxy;
    struct loop_fd *watch;
    struct loop_task task;      /* Sends, and continues with the next possible step. */
    struct list node;           /* In server->conns. */
    struct list handshake_node; /* In server->handshakes. */
    struct http_deadline deadline;
    size_t progress; /* Bytes sent since HTTP_WAIT_SEND began. */
    enum http_conn_state state;
    bool eof; /* The client has shut down its side. */
    bool cut; /* To be closed by the task, because its queue is full. */
    const struct http_proto *proto;
    struct http_out out;
    struct h1_conn h1;  /* Used until the protocol is known, too. */
    struct h2_conn *h2; /* With http_h2. */
    char peer[HTTP_PEER_SIZE];
};

/* Takes ownership of 'fd'; 'addr' is the client's (0: a Unix socket). */
void http_conn_new(struct http_listener *l, int fd, struct http_source *src, const char *peer);
/* Closes and frees 'c'. */
void http_conn_close(struct http_conn *c);
/* Hands the socket over, with the bytes that were read already.  The task frees 'c' soon. */
struct duplex *http_conn_upgrade(struct http_conn *c, const void *early, size_t size);
/* Everything was sent. */
void http_conn_linger(struct http_conn *c);
void http_conn_wait(struct http_conn *c, enum http_wait kind);
/* Tells the loop which events to watch; after anything that may change them. */
void http_conn_watch(struct http_conn *c);
/* Callback of server->handshake_task. */
void http_handshakes_run(void *server);

/* Every connection begins with HTTP/1.1, and changes to HTTP/2 when the client uses it. */
void h1_begin(struct http_conn *c);
void h2_begin(struct http_conn *c);

/* ---- an exchange ---- */

struct http_exchange {
    struct http_conn *conn; /* NULL: the connection is gone, and the answer is discarded. */
    struct loop *loop;
    struct http1_head head;
    struct http1_target target;
    char *head_text, *target_text; /* Memory of the strings of 'head' and 'target'. */
    struct strbuf body;
    struct strbuf extra; /* Headers of http_set_header, in HTTP/1.1 format. */
    bool is_streaming;   /* http_stream_begin was called. */
    loop_fn *closed, *drained, *gone, *finished;
    void *closed_ctx, *drained_ctx, *gone_ctx, *finished_ctx;
    struct loop_task task; /* Calls 'closed' or 'gone'. */
    bool is_tls, is_h2;
    struct tls_identity *identity, *proxy;
    char peer[HTTP_PEER_SIZE];
};

/* In the first bytes of a struct of 'size' bytes. */
struct http_exchange *http_exchange_new(struct http_conn *c, size_t size);
void http_exchange_free(struct http_exchange *x);
/* Parses the target and checks its size: 0, or the status of the error. */
int http_exchange_target(struct http_exchange *x, const char *target, struct err *e);
/* Adds to the body: 0, or the status of the error. */
int http_exchange_body(struct http_exchange *x, const char *p, size_t size);
/* The body is no longer needed. */
void http_exchange_drop_body(struct http_exchange *x);
/* Detaches an exchange that the user has from its connection, and notifies the user: by a task,
 * or for a stream with 'now' at once. */
void http_exchange_orphan(struct http_exchange *x);
void http_exchange_tell(struct http_exchange *x, bool now);
/* The text of an error of the server itself, whose headers 'x' gets; '*ret_type' is its type. */
char *http_error_text(struct http_exchange *x, int status, const char *why, const char **ret_type);
