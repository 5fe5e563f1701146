/* SPDX-License-Identifier: Apache-2.0 */
/* DNS over TCP (RFC 7766), on the loop's thread. */
#include "dns/server_priv.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128
#define OUT_HIGH (256u << 10) /* Bytes of unread answers, above which no more questions are read. */
#define READ_SIZE 4096

struct dns_tcp_connection {
    struct list node;
    struct dns_server *server;
    int fd;
    struct loop_fd *watch;
    struct loop_timer *idle;
    struct sockaddr_in from;
    struct strbuf in, out;
    unsigned waiting; /* Number of questions being forwarded. */
    bool ended;       /* The client has ended its side. */
};

static void connection_free(struct dns_tcp_connection *c)
{
    struct dns_server *s = c->server;
    struct dns_job *job;
    LIST_FOREACH (job, struct dns_job, node, &s->jobs) {
        if (job->connection == c) {
            dns_forwarder_forget(s->forwarder, job);
            list_remove(&job->node);
            free(job);
        }
    }
    loop_fd_free(c->watch);
    loop_timer_free(c->idle);
    fd_close(c->fd);
    strbuf_done(&c->in);
    strbuf_done(&c->out);
    list_remove(&c->node);
    s->n_connections--;
    free(c);
}

static void touch(struct dns_tcp_connection *c)
{
    list_remove(&c->node);
    list_push_back(&c->server->connections, &c->node);
    loop_timer_arm(c->idle, DNS_TCP_IDLE_MS);
}

static void put_message(struct dns_tcp_connection *c, const uint8_t *data, size_t size)
{
    uint8_t length[2];
    dns_put16(length, (unsigned) size);
    strbuf_add(&c->out, length, sizeof length);
    strbuf_add(&c->out, data, size);
}

static void ask_elsewhere(struct dns_tcp_connection *c, const uint8_t *data, size_t size,
                          const struct dns_key *key)
{
    struct dns_job *job = xmalloc(sizeof *job + size);
    *job = (struct dns_job){
        .server = c->server, .key = *key, .from = c->from, .fd = -1, .connection = c, .size = size};
    memcpy(job->data, data, size);
    c->waiting++;
    dns_server_ask(c->server, job);
}

/* false: close the connection. */
static bool answer_one(struct dns_tcp_connection *c, const uint8_t *data, size_t size)
{
    struct dns_server *s = c->server;
    struct dns_key key;
    size_t out = 0;
    struct dns_request rq = {.data = data,
                             .size = size,
                             .client = ntohl(c->from.sin_addr.s_addr),
                             .tcp = true,
                             .turn = s->turn++,
                             .now_ms = loop_now_ms(s->loop)};
    switch (dns_respond(&s->responder, &s->counters, &rq, s->out, &out, &key)) {
    case DNS_SEND:
        put_message(c, s->out, out);
        return true;
    case DNS_ASK:
        ask_elsewhere(c, data, size, &key);
        return true;
    case DNS_SILENCE:
        break;
    }
    return false;
}

/* Sends as much as possible; false: the client is gone. */
static bool flush(struct dns_tcp_connection *c)
{
    while (c->out.size) {
        ssize_t n = send(c->fd, c->out.data, c->out.size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        strbuf_consume(&c->out, n > 0 ? (size_t) n : 0);
    }
    return true;
}

static bool is_busy(const struct dns_tcp_connection *c)
{
    return c->out.size >= OUT_HIGH || c->waiting >= DNS_TCP_WAITING_MAX;
}

/* Answers all complete questions that were read; false: close. */
static bool answer_all(struct dns_tcp_connection *c)
{
    size_t at = 0;
    bool ok = true;
    while (ok && !is_busy(c) && c->in.size - at >= 2) {
        const uint8_t *p = (const uint8_t *) c->in.data + at;
        size_t size = dns_get16(p);
        if (size < DNS_HEADER || size > DNS_TCP_QUERY_MAX) {
            return false;
        }
        if (c->in.size - at < 2 + size) {
            break;
        }
        ok = answer_one(c, p + 2, size);
        at += 2 + size;
    }
    strbuf_consume(&c->in, at);
    return ok;
}

/* After any event: continues, waits for the next needed event, or closes. */
static void step(struct dns_tcp_connection *c)
{
    if (!answer_all(c) || !flush(c) || (c->ended && !c->waiting && !c->out.size)) {
        connection_free(c);
        return;
    }
    loop_fd_set(c->watch,
                (c->ended || is_busy(c) ? 0u : LOOP_READ) | (c->out.size ? LOOP_WRITE : 0u));
}

static void on_ready(void *ctx, unsigned events)
{
    struct dns_tcp_connection *c = ctx;
    char buf[READ_SIZE];
    if ((events & LOOP_READ) && !c->ended && !is_busy(c)) {
        ssize_t n = recv(c->fd, buf, sizeof buf, 0);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            connection_free(c);
            return;
        }
        c->ended = n == 0;
        if (n > 0) {
            touch(c);
            strbuf_add(&c->in, buf, (size_t) n);
        }
    }
    step(c);
}

static void on_idle(void *ctx)
{
    connection_free(ctx);
}

void dns_tcp_answer(struct dns_tcp_connection *c, const uint8_t *data, size_t size)
{
    c->waiting--;
    if (size) {
        put_message(c, data, size);
    }
    touch(c);
    /* Not from within answer_all, which uses the buffer; the loop continues when the socket is
     * writable. */
    loop_fd_set(c->watch, LOOP_WRITE);
}

static size_t count_of(const struct dns_server *s, const struct sockaddr_in *from)
{
    struct dns_tcp_connection *c;
    size_t n = 0;
    LIST_FOREACH (c, struct dns_tcp_connection, node, &s->connections) {
        n += c->from.sin_addr.s_addr == from->sin_addr.s_addr;
    }
    return n;
}

static void on_accept(void *ctx, unsigned events)
{
    (void) events;
    struct dns_server *s = ctx;
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    CLEANUP(fd_close)
    int fd = accept4(s->tcp_fd, (struct sockaddr *) &from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 || count_of(s, &from) >= DNS_TCP_CLIENT_MAX) {
        return;
    }
    if (s->n_connections >= DNS_TCP_MAX) {
        connection_free(CONTAINER_OF(s->connections.next, struct dns_tcp_connection, node));
    }
    struct dns_tcp_connection *c = NEW(struct dns_tcp_connection);
    c->server = s;
    c->from = from;
    c->fd = fd_take(&fd);
    c->in = STRBUF_INIT_MAX(2 + DNS_TCP_QUERY_MAX + READ_SIZE);
    c->out = STRBUF_INIT;
    c->idle = loop_timer_new(s->loop, on_idle, c);
    c->watch = loop_fd_new(s->loop, c->fd, LOOP_READ, on_ready, c);
    list_push_back(&s->connections, &c->node);
    s->n_connections++;
    loop_timer_arm(c->idle, DNS_TCP_IDLE_MS);
}

int dns_tcp_listen(struct dns_server *s, struct err *e)
{
    int one = 1;
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(s->port), .sin_addr = {htonl(s->address)}};
    socklen_t size = sizeof a;
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof one) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0) {
        return err_sys(e, -errno, "make a TCP socket");
    }
    if (bind(fd, (struct sockaddr *) &a, sizeof a) < 0 || listen(fd, BACKLOG) < 0) {
        return errno == EADDRINUSE
                   ? err_set(e, -EADDRINUSE, "TCP port %u of %s is taken by another program",
                             s->port, IP4_TEXT(s->address))
                   : err_sys(e, -errno, "listen at %s:%u", IP4_TEXT(s->address), s->port);
    }
    if (getsockname(fd, (struct sockaddr *) &a, &size) < 0) {
        return err_sys(e, -errno, "ask for the port of a socket");
    }
    s->port = ntohs(a.sin_port);
    s->tcp_fd = fd_take(&fd);
    s->tcp_watch = loop_fd_new(s->loop, s->tcp_fd, LOOP_READ, on_accept, s);
    return 0;
}

void dns_tcp_close(struct dns_server *s)
{
    struct dns_tcp_connection *c;
    LIST_FOREACH (c, struct dns_tcp_connection, node, &s->connections) {
        connection_free(c);
    }
    s->tcp_watch = loop_fd_free(s->tcp_watch);
    s->tcp_fd = fd_close(s->tcp_fd);
}
