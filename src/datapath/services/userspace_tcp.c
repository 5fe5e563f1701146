/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/userspace_priv.h"

#include "base/log.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

LOG_MODULE("proxy");

#define MAX_CONNECTIONS 4096
#define ACCEPTS 32 /* Accepted connections before others have a turn; likewise below. */
#define ACCEPT_AGAIN_MS 100
#define SPLICE_SIZE 65536 /* Size of a pipe. */
#define SPLICES 8
#define MAX_TRIES 16
#define HOLD_MS 120000 /* Time for an idle service to get pods. */
#define MAX_PENDING 16 /* Maximum of pending connections per frontend. */

/* Time for an endpoint to answer: shorter for the first ones, as others remain. */
static const unsigned try_ms[] = {250, 500, 1000, 2000};

enum side { CLIENT, SERVER };

/* One direction of a connection. */
struct direction {
    int pipe[2];
    size_t buffered;  /* Bytes in the pipe. */
    bool ended, shut; /* The sender has ended; and the end was forwarded. */
};

struct connection {
    struct list node;
    struct userspace *owner;
    struct sdn_frontend_key key;
    enum sdn_view view;
    uint32_t client;
    struct sdn_target target;
    uint32_t next, tries;
    bool pending; /* The connection waits for endpoints. */
    int fd[2];
    struct loop_fd *watch[2];
    struct direction direction[2]; /* The directions from CLIENT and from SERVER. */
    struct loop_timer *timer;
};

static void drop(struct connection *c)
{
    for (int i = 0; i < 2; i++) {
        loop_fd_free(c->watch[i]);
        fd_close(c->fd[i]);
        fd_close(c->direction[i].pipe[0]);
        fd_close(c->direction[i].pipe[1]);
    }
    loop_timer_free(c->timer);
    list_remove(&c->node);
    c->owner->stats.held -= c->pending;
    c->owner->stats.connections--;
    free(c);
}

/* Resets both sides, so that they see a failure and not a normal end. */
static void reset(struct connection *c)
{
    for (int i = 0; i < 2; i++) {
        if (c->fd[i] >= 0) {
            setsockopt(c->fd[i], SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                       sizeof(struct linger));
        }
    }
    drop(c);
}

static void refuse(struct connection *c)
{
    c->owner->stats.failed++;
    reset(c);
}

/* ---- moving ---- */

/* Moves as much as possible; false: the connection is broken. */
static bool move(struct connection *c, enum side from)
{
    struct direction *w = &c->direction[from];
    int in = c->fd[from], out = c->fd[!from];
    for (int i = 0; i < SPLICES; i++) {
        ssize_t got = 0, sent = 0;
        if (!w->ended && w->buffered < SPLICE_SIZE) {
            got = splice(in, NULL, w->pipe[1], NULL, SPLICE_SIZE - w->buffered,
                         SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
            if (got < 0 && errno != EAGAIN && errno != EINTR) {
                return false;
            }
            w->ended = got == 0;
            w->buffered += got > 0 ? (size_t) got : 0;
        }
        if (w->buffered) {
            sent =
                splice(w->pipe[0], NULL, out, NULL, w->buffered, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
            if (sent < 0 && errno != EAGAIN && errno != EINTR) {
                return false;
            }
            w->buffered -= sent > 0 ? (size_t) sent : 0;
        }
        if (got <= 0 && sent <= 0) {
            break;
        }
    }
    if (w->ended && !w->buffered && !w->shut) {
        w->shut = true;
        shutdown(out, SHUT_WR);
    }
    return true;
}

static void wait_more(struct connection *c)
{
    for (int i = 0; i < 2; i++) {
        const struct direction *in = &c->direction[i], *out = &c->direction[!i];
        /* A pipe may be full with fewer bytes than its size: it is filled only when it is empty. */
        loop_fd_set(c->watch[i], (!in->ended && !in->buffered ? LOOP_READ : 0) |
                                     (out->buffered ? LOOP_WRITE : 0));
    }
}

static void on_socket(void *ctx, unsigned events)
{
    struct connection *c = ctx;
    (void) events;
    if (!move(c, CLIENT) || !move(c, SERVER)) {
        reset(c);
    } else if (c->direction[CLIENT].shut && c->direction[SERVER].shut) {
        drop(c);
    } else {
        wait_more(c);
    }
}

/* ---- connecting to an endpoint ---- */

static void try_next(struct connection *c);

static void on_connected(void *ctx, unsigned events)
{
    struct connection *c = ctx;
    int code = 0;
    socklen_t size = sizeof code;
    (void) events;
    getsockopt(c->fd[SERVER], SOL_SOCKET, SO_ERROR, &code, &size);
    if (code) {
        try_next(c);
        return;
    }
    struct served *s = userspace_find(c->owner, &c->key);
    if (s) {
        userspace_remember(s, c->client, &c->target);
    }
    loop_timer_disarm(c->timer);
    c->watch[SERVER] = loop_fd_free(c->watch[SERVER]);
    for (int i = 0; i < 2; i++) {
        if (pipe2(c->direction[i].pipe, O_NONBLOCK | O_CLOEXEC) < 0) {
            c->direction[i].pipe[0] = c->direction[i].pipe[1] = -1;
            refuse(c);
            return;
        }
        c->watch[i] = loop_fd_new(c->owner->loop, c->fd[i], LOOP_READ, on_socket, c);
    }
}

static void on_slow(void *ctx)
{
    struct connection *c = ctx;
    if (c->pending) {
        refuse(c); /* Nobody came. */
    } else {
        try_next(c);
    }
}

/* Wakes the service and lets the connection wait; above the limit the oldest one is closed. */
static void hold(struct connection *c, const struct sdn_frontend *f)
{
    struct connection *other, *oldest = NULL;
    size_t n = 0;
    LIST_FOREACH (other, struct connection, node, &c->owner->connections) {
        if (other->pending && sdn_frontend_key_equal(&other->key, &c->key)) {
            oldest = oldest ? oldest : other;
            n++;
        }
    }
    if (n >= MAX_PENDING) {
        refuse(oldest);
    }
    c->pending = true;
    c->owner->stats.held++;
    loop_timer_arm(c->timer, HOLD_MS);
    c->owner->need_pods(c->owner->ctx, f);
}

void userspace_tcp_wake(struct served *s)
{
    struct connection *c;
    LIST_FOREACH (c, struct connection, node, &s->owner->connections) {
        if (c->pending && !s->frontend->idle &&
            sdn_frontend_key_equal(&c->key, &s->frontend->key)) {
            c->pending = false;
            s->owner->stats.held--;
            loop_timer_arm(c->timer, 0); /* Then the first endpoint is tried. */
        }
    }
}

/* Tries the next of the present endpoints; each may be tried again until the attempts are used
 * up. */
static void try_next(struct connection *c)
{
    struct served *s = userspace_find(c->owner, &c->key);
    c->watch[SERVER] = loop_fd_free(c->watch[SERVER]);
    c->fd[SERVER] = fd_close(c->fd[SERVER]);
    uint32_t n = s ? s->frontend->n[c->view] : 0;
    if (s && s->frontend->idle) {
        hold(c, s->frontend);
        return;
    }
    if (!n || c->tries >= MAX(MIN(n, MAX_TRIES), (uint32_t) ARRAY_SIZE(try_ms))) {
        refuse(c);
        return;
    }
    const struct sdn_target *targets = sdn_frontend_targets(s->frontend, c->view);
    uint32_t skipped = 0;
    c->next = c->tries ? c->next + 1 : userspace_first(s, c->view, c->client);
    while (skipped < n && !userspace_may_use(s, &targets[c->next % n])) {
        c->next++;
        skipped++;
    }
    if (skipped == n) {
        refuse(c);
        return;
    }
    c->owner->stats.retried += c->tries > 0;
    c->target = targets[c->next % n];
    unsigned wait_ms = try_ms[MIN(c->tries, ARRAY_SIZE(try_ms) - 1)];
    c->tries++;
    struct sockaddr_in sa = userspace_address(c->target.ip, c->target.port);
    int fd = userspace_socket(SOCK_STREAM);
    c->fd[SERVER] = fd;
    loop_timer_arm(c->timer, wait_ms);
    if (fd < 0) {
        return; /* The timer tries again. */
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    if (connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0 && errno != EINPROGRESS) {
        loop_timer_arm(c->timer, 0);
        return;
    }
    c->watch[SERVER] = loop_fd_new(c->owner->loop, fd, LOOP_WRITE, on_connected, c);
}

/* The original destination, before the redirection. */
static struct served *find_wanted(struct userspace *u, int fd)
{
    struct sockaddr_in to;
    socklen_t size = sizeof to;
    if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &to, &size) < 0) {
        return NULL;
    }
    struct sdn_frontend_key key = {ntohl(to.sin_addr.s_addr), ntohs(to.sin_port), SDN_TCP};
    struct served *s = userspace_find(u, &key);
    key.ip = 0;
    return s ? s : userspace_find(u, &key);
}

static void take(struct userspace *u, int fd, uint32_t client)
{
    struct sockaddr_in at = {0};
    socklen_t size = sizeof at;
    struct served *s = find_wanted(u, fd);
    if (!s || u->stats.connections >= MAX_CONNECTIONS) {
        u->stats.refused++;
        fd_close(fd); /* It was sent here directly, or there are too many. */
        return;
    }
    getsockname(fd, (struct sockaddr *) &at, &size);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    struct connection *c = NEW(struct connection);
    c->owner = u;
    c->key = s->frontend->key;
    c->client = client;
    c->view = userspace_view(u, s->frontend, client, ntohl(at.sin_addr.s_addr));
    c->fd[CLIENT] = fd;
    c->fd[SERVER] = -1;
    for (int i = 0; i < 2; i++) {
        c->direction[i].pipe[0] = c->direction[i].pipe[1] = -1;
    }
    c->timer = loop_timer_new(u->loop, on_slow, c);
    list_push_back(&u->connections, &c->node);
    u->stats.connections++;
    u->stats.accepted++;
    try_next(c);
}

static void on_accept(void *ctx, unsigned events)
{
    static struct log_limit limit;
    struct userspace *u = ctx;
    (void) events;
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        int fd =
            accept4(u->listener, (struct sockaddr *) &from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
                loop_fd_set(u->accept, 0); /* It would be called again and again. */
                loop_timer_arm(u->accept_again, ACCEPT_AGAIN_MS);
                log_limited(&limit, LOG_WARN, "the service proxy cannot accept", "error=\"%s\"",
                            strerror(errno));
            }
            return;
        }
        take(u, fd, ntohl(from.sin_addr.s_addr));
    }
}

static void accept_again(void *ctx)
{
    struct userspace *u = ctx;
    loop_fd_set(u->accept, LOOP_READ);
}

int userspace_tcp_open(struct userspace *u, struct err *e)
{
    int r = userspace_bind(SOCK_STREAM, &u->listener, &u->port, e);
    if (r == 0 && listen(u->listener, 4096) < 0) {
        r = err_sys(e, -errno, "listen on a socket of the service proxy");
    }
    if (r == 0) {
        u->accept_again = loop_timer_new(u->loop, accept_again, u);
        u->accept = loop_fd_new(u->loop, u->listener, LOOP_READ, on_accept, u);
    }
    return r;
}

void userspace_tcp_close(struct userspace *u)
{
    struct connection *c;
    LIST_FOREACH (c, struct connection, node, &u->connections) {
        drop(c);
    }
    u->accept = loop_fd_free(u->accept);
    u->accept_again = loop_timer_free(u->accept_again);
    u->listener = fd_close(u->listener);
}
