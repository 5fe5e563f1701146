/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the HTTP server: its socket and TLS; the protocol on it is in http_h1.c and
 * http_h2.c. */
#include "base/log.h"
#include "net/http/http_server_priv.h"
#include "net/tls/tls.h"

#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("http");

#define READ_SIZE 65536
#define HANDSHAKES_AT_ONCE 16 /* Handshake steps per round of the loop: each is expensive. */
#define FILLS_AT_ONCE 8       /* Fills per round, then other connections continue. */

static struct log_limit handshake_limit;

void http_conn_wait(struct http_conn *c, enum http_wait kind)
{
    c->progress = 0;
    http_deadline_set(c->server, &c->deadline, kind);
}

/* ---- closing ---- */

void http_conn_close(struct http_conn *c)
{
    struct http_server *s = c->server;
    loop_task_cancel(&c->task);
    loop_fd_free(c->watch);
    if (c->tls && c->state != HTTP_CONN_LINGERING) {
        tls_shutdown(c->tls);
    }
    tls_free(c->tls);
    fd_close(c->fd);
    list_remove(&c->deadline.node);
    list_remove(&c->handshake_node);
    list_remove(&c->node);
    http_out_clear(&c->out);
    c->proto->detach(c);
    tls_identity_unref(c->identity);
    tls_identity_unref(c->proxy);
    http_server_conn_gone(s, c->source);
    free(c);
}

/* Closing now, with unread bytes of the client, would reset the connection, and the client might
 * lose the end of the response. */
void http_conn_linger(struct http_conn *c)
{
    if (c->tls) {
        tls_shutdown(c->tls);
    }
    shutdown(c->fd, SHUT_WR);
    c->state = HTTP_CONN_LINGERING;
    http_conn_wait(c, HTTP_WAIT_LINGER);
}

/* Closes at once and discards unsent data: the client does not read. */
static void conn_abort(struct http_conn *c)
{
    struct linger now = {.l_onoff = 1};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    c->server->stats.cut++;
    http_conn_close(c);
}

static void conn_expired(struct http_deadline *d)
{
    struct http_conn *c = CONTAINER_OF(d, struct http_conn, deadline);
    if (c->state != HTTP_CONN_OPEN) {
        http_conn_close(c);
    } else if (c->out.n) {
        conn_abort(c);
    } else {
        c->proto->expired(c);
    }
}

/* ---- sending ---- */

/* Sends as much of the queue as possible; result as of http_out_send. */
static int conn_send(struct http_conn *c)
{
    for (int i = 0;; i++) {
        bool progress;
        if (i == FILLS_AT_ONCE) {
            loop_task_queue(&c->task);
            return -EAGAIN;
        }
        if (c->proto->fill) {
            c->proto->fill(c);
        }
        size_t before = c->out.bytes;
        int r = http_out_send(&c->out, c->fd, c->tls, &progress);
        c->progress += before - c->out.bytes;
        if (r == -EAGAIN &&
            (c->progress >= HTTP_PROGRESS_BYTES || !http_deadline_is_set(&c->deadline))) {
            http_conn_wait(c, HTTP_WAIT_SEND);
        }
        if (r < 0 || !c->proto->fill || !before) {
            return r;
        }
    }
}

struct duplex *http_conn_upgrade(struct http_conn *c, const void *early, size_t size)
{
    c->watch = loop_fd_free(c->watch);
    http_conn_wait(c, HTTP_WAIT_NONE);
    struct duplex *d = duplex_new(c->server->loop, fd_take(&c->fd), TAKE(c->tls), early, size);
    http_server_conn_upgraded(c->server, c->source, d);
    loop_task_queue(&c->task);
    return d;
}

void http_conn_watch(struct http_conn *c)
{
    if (!c->watch) { /* It was handed over. */
        return;
    }
    unsigned events = 0;
    /* While a request is being handled, reading detects that the client disconnects. */
    if (!c->eof && (c->state != HTTP_CONN_OPEN || c->proto->wants_input(c))) {
        events |= LOOP_READ;
    }
    if (c->out.n) {
        events |= LOOP_WRITE;
    }
    /* Input while lingering is ignored. */
    bool tls = c->tls && c->state != HTTP_CONN_LINGERING;
    loop_fd_set(c->watch, tls ? tls_watch(c->tls, events) : events);
}

static void conn_task(void *ctx)
{
    struct http_conn *c = ctx;
    if (!c->watch) {
        http_conn_close(c);
        return;
    }
    if (c->cut) {
        conn_abort(c);
        return;
    }
    int r = c->state == HTTP_CONN_LINGERING ? 0 : conn_send(c);
    if (r < 0 && r != -EAGAIN) {
        http_conn_close(c);
        return;
    }
    http_conn_watch(c);
    if (r == 0 && c->state == HTTP_CONN_OPEN) {
        c->proto->sent(c);
    }
}

/* ---- reading ---- */

/* Like recv, with negative errno. */
static ssize_t conn_recv(struct http_conn *c, char *buf, size_t size)
{
    if (c->tls && c->state != HTTP_CONN_LINGERING) {
        return tls_read(c->tls, buf, size, NULL);
    }
    ssize_t n = recv(c->fd, buf, size, MSG_DONTWAIT);
    return n >= 0 ? n : errno == EINTR ? -EAGAIN : -errno;
}

/* Reads once; false: 'c' is freed. */
static bool conn_read(struct http_conn *c)
{
    UNINITIALIZED char buf[READ_SIZE];
    ssize_t n = conn_recv(c, buf, sizeof buf);
    if (n == -EAGAIN) {
        return true;
    }
    if (n <= 0) {
        c->eof = true;
        if (n < 0 || c->state != HTTP_CONN_OPEN || !c->proto->eof(c)) {
            http_conn_close(c);
            return false;
        }
        return true;
    }
    if (c->state == HTTP_CONN_OPEN) {
        c->proto->input(c, buf, (size_t) n);
    }
    return true;
}

/* A step of the handshake. A failure is sent to the client, as an alert or as a plain HTTP
 * error. */
static void conn_handshake(struct http_conn *c)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "Connection: close\r\n\r\n"
                               "400 Bad Request: this port speaks HTTPS, not HTTP\n";
    struct err e = {0};
    int r = tls_handshake(c->tls, &e);
    if (r == 0) {
        c->identity = tls_peer_identity(c->tls);
        c->proxy = tls_peer_proxy(c->tls);
        c->state = HTTP_CONN_OPEN;
        http_conn_wait(c, HTTP_WAIT_IDLE);
        if (tls_speaks_h2(c->tls)) {
            h2_begin(c);
        }
    } else if (r == -ECONNRESET) {
        http_conn_close(c);
        return;
    } else if (r != -EAGAIN) {
        log_limited(&handshake_limit, LOG_INFO, "TLS handshake failed", "peer=%s error=\"%s\"",
                    c->peer, e.text);
        if (tls_peer_spoke_http(c->tls)) {
            (void) send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        http_conn_linger(c);
    }
    http_conn_watch(c);
}

void http_handshakes_run(void *server)
{
    struct http_server *s = server;
    for (int i = 0; i < HANDSHAKES_AT_ONCE && !list_is_empty(&s->handshakes); i++) {
        conn_handshake(
            CONTAINER_OF(list_pop_front(&s->handshakes), struct http_conn, handshake_node));
    }
    if (!list_is_empty(&s->handshakes)) {
        loop_task_queue(&s->handshake_task);
    }
}

static void conn_ready(void *ctx, unsigned events)
{
    struct http_conn *c = ctx;
    if (c->state == HTTP_CONN_HANDSHAKE) {
        loop_fd_set(c->watch, 0);
        list_push_back(&c->server->handshakes, &c->handshake_node);
        loop_task_queue(&c->server->handshake_task);
        return;
    }
    if (c->tls && c->state != HTTP_CONN_LINGERING) {
        events = tls_ready(c->tls, events);
    }
    if ((events & LOOP_READ) && !conn_read(c)) {
        return;
    }
    if (events & LOOP_WRITE) {
        loop_task_queue(&c->task);
    }
    http_conn_watch(c);
}

void http_conn_new(struct http_listener *l, int fd, struct http_source *src, const char *peer)
{
    struct http_server *s = l->server;
    struct http_conn *c = NEW(struct http_conn);
    c->server = s;
    c->source = src;
    c->fd = fd;
    memcpy(c->peer, peer, sizeof c->peer);
    http_deadline_init(&c->deadline, conn_expired);
    list_init(&c->handshake_node);
    list_push_back(&s->conns, &c->node);
    loop_task_init(&c->task, s->loop, conn_task, c);
    c->watch = loop_fd_new(s->loop, fd, LOOP_READ, conn_ready, c);
    h1_begin(c);
    if (l->tls) {
        c->tls = tls_accept(l->tls, fd);
        c->state = HTTP_CONN_HANDSHAKE;
    } else {
        c->state = HTTP_CONN_OPEN;
    }
    http_conn_wait(c, l->tls ? HTTP_WAIT_HEAD : HTTP_WAIT_IDLE);
}
