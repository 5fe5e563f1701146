/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server as a whole: listeners, deadlines, limits per client address, shutdown. */
#include "base/log.h"
#include "base/timeutil.h"
#include "net/http/http_server_priv.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("http");

#define ACCEPTS_AT_ONCE 64
#define LINGER_MS 2000
#define ACCEPT_PAUSE_MS 1000
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 15
#define BODIES_AT_ONCE 64 /* Bodies of the largest size. */
#define VICTIMS_LOOKED_AT 64

static struct log_limit accept_limit, client_limit;

/* ---- deadlines ---- */

static uint64_t wait_ms(const struct http_server *s, enum http_wait kind)
{
    switch (kind) {
    case HTTP_WAIT_HEAD:
        return s->limits.head_ms;
    case HTTP_WAIT_BODY:
        return s->limits.body_ms;
    case HTTP_WAIT_SEND:
        return s->limits.send_ms;
    case HTTP_WAIT_LINGER:
        return LINGER_MS;
    case HTTP_WAIT_IDLE:
    case HTTP_WAIT_MAX:
        break;
    }
    return s->limits.idle_ms;
}

static void arm(struct http_server *s, uint64_t deadline)
{
    if (!s->timer_at || deadline < s->timer_at) {
        uint64_t now = loop_now_ms(s->loop);
        s->timer_at = deadline;
        loop_timer_arm(s->timer, deadline > now ? deadline - now : 0);
    }
}

void http_deadline_init(struct http_deadline *d, void (*expired)(struct http_deadline *d))
{
    list_init(&d->node);
    d->expired = expired;
}

void http_deadline_set(struct http_server *s, struct http_deadline *d, enum http_wait kind)
{
    list_remove(&d->node);
    if (kind != HTTP_WAIT_NONE) {
        d->at = loop_now_ms(s->loop) + wait_ms(s, kind);
        list_push_back(&s->waiting[kind], &d->node);
        arm(s, d->at);
    }
}

static void server_tick(void *ctx)
{
    struct http_server *s = ctx;
    uint64_t now = loop_now_ms(s->loop);
    s->timer_at = 0;
    for (int kind = 0; kind < HTTP_WAIT_MAX; kind++) {
        struct list *l = &s->waiting[kind];
        while (!list_is_empty(l)) {
            struct http_deadline *d = CONTAINER_OF(l->next, struct http_deadline, node);
            if (d->at > now) {
                arm(s, d->at);
                break;
            }
            list_remove(&d->node);
            d->expired(d);
        }
    }
}

/* ---- connections ---- */

static void accept_pause(struct http_server *s, bool pause)
{
    s->accept_paused = pause;
    for (size_t i = 0; i < s->n_listeners; i++) {
        loop_fd_set(s->listeners[i]->watch, pause ? 0 : LOOP_READ);
    }
    if (pause) {
        loop_timer_arm(s->accept_timer, ACCEPT_PAUSE_MS);
    } else {
        loop_timer_disarm(s->accept_timer);
    }
}

static void accept_resume(void *ctx)
{
    accept_pause(ctx, false);
}

static struct http_source *source_of(struct http_server *s, uint32_t addr)
{
    struct http_source *src;
    uint32_t hash = hash32(&addr, sizeof addr);
    HMAP_FOREACH_WITH_HASH (src, struct http_source, node, hash, &s->sources) {
        if (src->addr == addr) {
            return src;
        }
    }
    src = NEW(struct http_source);
    src->addr = addr;
    hmap_insert(&s->sources, &src->node, hash);
    return src;
}

static void source_check(struct http_server *s, struct http_source *src)
{
    if (!src->n_conns) {
        hmap_remove(&s->sources, &src->node);
        free(src);
    }
}

void http_server_conn_gone(struct http_server *s, struct http_source *src)
{
    s->n_conns--;
    src->n_conns--;
    source_check(s, src);
    if (s->accept_paused && !s->draining) {
        accept_pause(s, false);
    }
    if (s->draining && !s->n_conns) {
        loop_task_queue(&s->drained);
    }
}

/* A connection that was handed over; 'server' is NULL once that is freed. */
struct upgraded {
    struct list node;
    struct http_server *server;
    struct http_source *source;
    struct duplex *stream;
};

static void upgraded_gone(void *ctx)
{
    struct upgraded *u = ctx;
    list_remove(&u->node);
    if (u->server) {
        http_server_conn_gone(u->server, u->source);
    }
    free(u);
}

void http_server_conn_upgraded(struct http_server *s, struct http_source *src, struct duplex *d)
{
    struct upgraded *u = NEW(struct upgraded);
    *u = (struct upgraded){.server = s, .source = src, .stream = d};
    s->n_conns++;
    src->n_conns++;
    list_push_back(&s->upgraded, &u->node);
    duplex_on_free(d, upgraded_gone, u);
}

/* The least important connection: one that is being closed, has been idle for longest, or has
 * not sent a request; among the first few of a kind, one whose client has most. NULL: none. */
static struct http_conn *least_missed(struct http_server *s)
{
    static const enum http_wait kinds[] = {HTTP_WAIT_LINGER, HTTP_WAIT_IDLE, HTTP_WAIT_HEAD};
    struct http_conn *best = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(kinds) && !best; i++) {
        struct http_conn *c;
        int looked = 0;
        LIST_FOREACH (c, struct http_conn, deadline.node, &s->waiting[kinds[i]]) {
            if (!best || c->source->n_conns > best->source->n_conns) {
                best = c;
            }
            if (++looked == VICTIMS_LOOKED_AT) {
                break;
            }
        }
    }
    return best;
}

static void conn_accepted(struct http_listener *l, int fd, const struct sockaddr_in *sa)
{
    struct http_server *s = l->server;
    char host[INET_ADDRSTRLEN], peer[HTTP_PEER_SIZE] = "unix";
    uint32_t addr = 0;
    if (sa->sin_family == AF_INET) {
        addr = ntohl(sa->sin_addr.s_addr);
        inet_ntop(AF_INET, &sa->sin_addr, host, sizeof host);
        snprintf(peer, sizeof peer, "%s:%u", host, ntohs(sa->sin_port));
    }
    struct http_source *src = source_of(s, l->own ? INADDR_NONE : addr);
    if (s->limits.max_conns_client && !l->own && src->n_conns >= s->limits.max_conns_client) {
        log_limited(&client_limit, LOG_WARN, "too many connections from one address",
                    "peer=%s max=%u", peer, s->limits.max_conns_client);
        s->stats.refused++;
        fd_close(fd);
        source_check(s, src);
        return;
    }
    s->stats.accepted++;
    s->n_conns++;
    src->n_conns++;
    http_conn_new(l, fd, src, peer);
}

static void accept_ready(void *ctx, unsigned events)
{
    struct http_listener *l = ctx;
    struct http_server *s = l->server;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        bool full = s->n_conns >= s->limits.max_conns;
        if (full && !least_missed(s)) {
            log_limited(&accept_limit, LOG_WARN, "too many connections", "max=%u",
                        s->limits.max_conns);
            accept_pause(s, true);
            return;
        }
        struct sockaddr_in sa = {0};
        socklen_t n = sizeof sa;
        int fd = accept4(l->fd, (struct sockaddr *) &sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (full) {
                s->stats.refused++;
                http_conn_close(least_missed(s));
            }
            conn_accepted(l, fd, &sa);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            struct http_conn *victim = least_missed(s);
            log_limited(&accept_limit, LOG_WARN, "cannot accept connections", "error=\"%s\"",
                        strerror(errno));
            if (victim) {
                http_conn_close(victim);
            } else {
                accept_pause(s, true);
            }
            return;
        }
    }
}

/* ---- the server ---- */

void http_server_stop_listening(struct http_server *s)
{
    for (size_t i = 0; i < s->n_listeners; i++) {
        loop_fd_free(s->listeners[i]->watch);
        fd_close(s->listeners[i]->fd);
        free(s->listeners[i]);
    }
    s->n_listeners = 0;
    s->accept_paused = false;
    loop_timer_disarm(s->accept_timer);
}

/* Breaks what was handed over; its users free it. */
static void upgraded_break(struct http_server *s)
{
    struct upgraded *u;
    LIST_FOREACH (u, struct upgraded, node, &s->upgraded) {
        duplex_break(u->stream, -ESHUTDOWN);
    }
}

/* What was handed over is no longer accounted for. */
static void upgraded_forget(struct http_server *s)
{
    struct upgraded *u;
    upgraded_break(s);
    LIST_FOREACH (u, struct upgraded, node, &s->upgraded) {
        list_remove(&u->node);
        u->server = NULL;
        http_server_conn_gone(s, u->source);
    }
}

static void conns_close(struct http_server *s)
{
    while (!list_is_empty(&s->conns)) {
        http_conn_close(CONTAINER_OF(s->conns.next, struct http_conn, node));
    }
}

static void server_drained(void *ctx)
{
    struct http_server *s = ctx;
    loop_timer_disarm(s->drain_timer);
    loop_fn *done = s->done;
    s->done = NULL;
    if (done) {
        done(s->done_ctx);
    }
}

static void drain_expired(void *ctx)
{
    struct http_server *s = ctx;
    conns_close(s);
    upgraded_break(s);
    loop_task_queue(&s->drained);
}

const char *http_server_date(struct http_server *s)
{
    int64_t now_ms = time_wall_ms();
    if (s->date_s != now_ms / 1000) {
        s->date_s = now_ms / 1000;
        time_format_http(now_ms, s->date);
    }
    return s->date;
}

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits,
                                    http_handler_fn *fn, void *ctx)
{
    struct http_server *s = NEW(struct http_server);
    s->loop = l;
    s->date_s = -1;
    s->limits = limits ? *limits : (struct http_limits){0};
    struct http_limits *m = &s->limits;
    m->max_head = m->max_head ? m->max_head : 32 << 10;
    m->max_uri = m->max_uri ? m->max_uri : 16 << 10;
    m->max_body = m->max_body ? m->max_body : 3 << 20;
    m->max_bodies = m->max_bodies ? m->max_bodies : m->max_body * BODIES_AT_ONCE;
    m->max_stream_queue = m->max_stream_queue ? m->max_stream_queue : 4 << 20;
    m->max_conn_queue = m->max_conn_queue ? m->max_conn_queue : 8 << 20;
    m->max_conns = m->max_conns ? m->max_conns : 20000;
    m->max_streams = m->max_streams ? m->max_streams : 250;
    m->idle_ms = m->idle_ms ? m->idle_ms : 90000;
    m->head_ms = m->head_ms ? m->head_ms : 15000;
    m->body_ms = m->body_ms ? m->body_ms : 30000;
    m->send_ms = m->send_ms ? m->send_ms : 30000;
    s->fn = fn;
    s->ctx = ctx;
    list_init(&s->conns);
    list_init(&s->upgraded);
    list_init(&s->handshakes);
    hmap_init(&s->sources);
    for (int i = 0; i < HTTP_WAIT_MAX; i++) {
        list_init(&s->waiting[i]);
    }
    s->timer = loop_timer_new(l, server_tick, s);
    s->accept_timer = loop_timer_new(l, accept_resume, s);
    s->drain_timer = loop_timer_new(l, drain_expired, s);
    loop_task_init(&s->drained, l, server_drained, s);
    loop_task_init(&s->handshake_task, l, http_handshakes_run, s);
    return s;
}

void http_server_set_errors(struct http_server *s, http_error_fn *fn)
{
    s->error_fn = fn;
}

struct http_stats http_server_stats(const struct http_server *s)
{
    struct http_stats stats = s->stats;
    stats.conns = s->n_conns;
    stats.body_bytes = s->body_bytes;
    return stats;
}

static int add_listener(struct http_server *s, int fd, struct tls_context *tls, bool own,
                        struct err *e)
{
    CLEANUP(fd_close) int owned = fd;
    int listening = 0, one = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S;
    socklen_t n = sizeof listening;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) < 0) {
        return err_sys(e, -errno, "descriptor %d", fd);
    }
    if (!listening) {
        return err_set(e, -EINVAL, "descriptor %d does not listen", fd);
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return err_sys(e, -errno, "descriptor %d", fd);
    }
    /* Accepted sockets inherit these.  Keep-alive finds streams whose client vanished. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    struct http_listener *l = NEW(struct http_listener);
    l->server = s;
    l->tls = tls;
    l->own = own;
    l->fd = fd_take(&owned);
    l->watch = loop_fd_new(s->loop, fd, LOOP_READ, accept_ready, l);
    s->listeners = grow(s->listeners, &s->listeners_cap, s->n_listeners + 1, sizeof *s->listeners);
    s->listeners[s->n_listeners++] = l;
    return 0;
}

int http_server_add_listener(struct http_server *s, int fd, struct err *e)
{
    return add_listener(s, fd, NULL, false, e);
}

int http_server_add_listener_tls(struct http_server *s, int fd, struct tls_context *tls,
                                 struct err *e)
{
    return add_listener(s, fd, tls, false, e);
}

int http_server_add_own_listener(struct http_server *s, int fd, struct err *e)
{
    return add_listener(s, fd, NULL, true, e);
}

void http_server_shutdown(struct http_server *s, uint64_t timeout_ms, loop_fn *done, void *ctx)
{
    s->draining = true;
    s->done = done;
    s->done_ctx = ctx;
    http_server_stop_listening(s);
    struct http_conn *c;
    LIST_FOREACH (c, struct http_conn, node, &s->conns) {
        if (c->state == HTTP_CONN_HANDSHAKE) {
            http_conn_close(c);
        } else if (c->state == HTTP_CONN_OPEN) {
            c->proto->drain(c);
        }
    }
    if (s->n_conns) {
        loop_timer_arm(s->drain_timer, timeout_ms);
    } else {
        loop_task_queue(&s->drained);
    }
}

struct http_server *http_server_free(struct http_server *s)
{
    if (!s) {
        return NULL;
    }
    s->draining = true;
    http_server_stop_listening(s);
    conns_close(s);
    upgraded_forget(s);
    free(s->listeners);
    hmap_done(&s->sources);
    loop_task_cancel(&s->drained);
    loop_task_cancel(&s->handshake_task);
    loop_timer_free(s->timer);
    loop_timer_free(s->accept_timer);
    loop_timer_free(s->drain_timer);
    free(s);
    return NULL;
}
