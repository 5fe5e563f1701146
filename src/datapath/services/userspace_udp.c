/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/services/userspace_priv.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_SESSIONS 4096
#define IDLE_MS 30000 /* The timeout of connection tracking for datagrams without an answer. */
#define SWEEP_MS 5000
#define DATAGRAMS 32 /* Datagrams before others have a turn. */

/* A client's datagrams to one frontend. */
struct session {
    struct hmap_node node;
    struct served *owner;
    struct sockaddr_in client;
    struct in_addr at; /* The address that the client was redirected to: answers come from there. */
    struct sdn_target target;
    int fd;
    struct loop_fd *watch;
    uint64_t used_ms;
};

static char datagram[65536];

static void session_free(struct session *x)
{
    loop_fd_free(x->watch);
    fd_close(x->fd);
    hmap_remove(&x->owner->sessions, &x->node);
    x->owner->owner->stats.sessions--;
    free(x);
}

static uint32_t hash_client(const struct sockaddr_in *a)
{
    const uint32_t parts[] = {a->sin_addr.s_addr, a->sin_port};
    return hash32(parts, sizeof parts);
}

static struct session *find(struct served *s, const struct sockaddr_in *client)
{
    struct session *x;
    HMAP_FOREACH_WITH_HASH (x, struct session, node, hash_client(client), &s->sessions) {
        if (x->client.sin_addr.s_addr == client->sin_addr.s_addr &&
            x->client.sin_port == client->sin_port) {
            return x;
        }
    }
    return NULL;
}

/* Receives with the destination address. */
static ssize_t receive(int fd, struct sockaddr_in *from, struct in_addr *at)
{
    struct iovec iov = {datagram, sizeof datagram};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control;
    struct msghdr m = {.msg_name = from,
                       .msg_namelen = sizeof *from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.buf,
                       .msg_controllen = sizeof control.buf};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
    for (struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
            *at = ((struct in_pktinfo *) (void *) CMSG_DATA(h))->ipi_addr;
        }
    }
    return n;
}

static void send_back(const struct session *x, size_t size)
{
    struct iovec iov = {datagram, size};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control = {0};
    struct sockaddr_in to = x->client;
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof to,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.buf,
                       .msg_controllen = sizeof control.buf};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = IPPROTO_IP;
    h->cmsg_type = IP_PKTINFO;
    h->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
    ((struct in_pktinfo *) (void *) CMSG_DATA(h))->ipi_spec_dst = x->at;
    sendmsg(x->owner->fd, &m, MSG_DONTWAIT); /* A datagram may be lost. */
}

static void on_answer(void *ctx, unsigned events)
{
    struct session *x = ctx;
    (void) events;
    for (int i = 0; i < DATAGRAMS; i++) {
        ssize_t n = recv(x->fd, datagram, sizeof datagram, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            if (errno != EAGAIN) {
                /* Nothing listens there: the next datagram goes to another endpoint. */
                session_free(x);
            }
            return;
        }
        x->used_ms = loop_now_ms(x->owner->owner->loop);
        send_back(x, (size_t) n);
    }
}

static struct session *begin(struct served *s, const struct sockaddr_in *client, struct in_addr at)
{
    struct userspace *u = s->owner;
    uint32_t ip = ntohl(client->sin_addr.s_addr);
    enum sdn_view v = userspace_view(u, s->frontend, ip, ntohl(at.s_addr));
    if (s->frontend->idle) {
        u->need_pods(u->ctx, s->frontend);
    }
    if (!s->frontend->n[v] || u->stats.sessions >= MAX_SESSIONS) {
        u->stats.refused++;
        return NULL;
    }
    uint32_t n = s->frontend->n[v], first = userspace_first(s, v, ip), skipped = 0;
    struct sdn_target t = sdn_frontend_targets(s->frontend, v)[first];
    while (skipped < n && !userspace_may_use(s, &t)) {
        t = sdn_frontend_targets(s->frontend, v)[(first + ++skipped) % n];
    }
    if (skipped == n) {
        u->stats.refused++;
        return NULL;
    }
    struct sockaddr_in sa = userspace_address(t.ip, t.port);
    CLEANUP(fd_close) int fd = userspace_socket(SOCK_DGRAM);
    if (fd < 0 || connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0) {
        u->stats.failed++;
        return NULL;
    }
    struct session *x = NEW(struct session);
    x->owner = s;
    x->client = *client;
    x->at = at;
    x->target = t;
    x->fd = fd_take(&fd);
    x->watch = loop_fd_new(u->loop, x->fd, LOOP_READ, on_answer, x);
    hmap_insert(&s->sessions, &x->node, hash_client(client));
    u->stats.sessions++;
    u->stats.accepted++;
    userspace_remember(s, ip, &t);
    if (!loop_timer_armed(u->sweep)) {
        loop_timer_arm(u->sweep, SWEEP_MS);
    }
    return x;
}

/* Sends to the session's endpoint; to another when nothing listens there, each once. */
static void pass_on(struct served *s, const struct sockaddr_in *client, struct in_addr at,
                    size_t size)
{
    struct session *x = find(s, client);
    if (x && (x->at.s_addr != at.s_addr ||
              !sdn_frontend_has(s->frontend, x->target.ip, x->target.port))) {
        session_free(x);
        x = NULL;
    }
    uint32_t tries = s->frontend->n[SDN_FROM_ANYWHERE] + s->frontend->n[SDN_FROM_OUTSIDE] + 1;
    for (uint32_t i = 0; i < tries; i++) {
        x = x ? x : begin(s, client, at);
        if (!x) {
            return;
        }
        x->used_ms = loop_now_ms(s->owner->loop);
        if (send(x->fd, datagram, size, MSG_DONTWAIT) >= 0 || errno == EAGAIN || errno == ENOBUFS) {
            return;
        }
        s->owner->stats.retried++;
        smap_remove(&s->clients, IP4_TEXT(ntohl(client->sin_addr.s_addr)));
        session_free(TAKE(x));
    }
}

static void on_datagram(void *ctx, unsigned events)
{
    struct served *s = ctx;
    (void) events;
    for (int i = 0; i < DATAGRAMS; i++) {
        struct sockaddr_in from = {0};
        struct in_addr at = {0};
        ssize_t n = receive(s->fd, &from, &at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return;
        }
        pass_on(s, &from, at, (size_t) n);
    }
}

void userspace_udp_sweep(void *ctx)
{
    struct userspace *u = ctx;
    uint64_t now = loop_now_ms(u->loop);
    struct served *s;
    struct session *x;
    HMAP_FOREACH (s, struct served, node, &u->served) {
        HMAP_FOREACH (x, struct session, node, &s->sessions) {
            if (now - x->used_ms > IDLE_MS) {
                session_free(x);
            }
        }
    }
    if (u->stats.sessions) {
        loop_timer_arm(u->sweep, SWEEP_MS);
    }
}

int userspace_udp_open(struct served *s, struct err *e)
{
    int r = userspace_bind(SOCK_DGRAM, &s->fd, &s->port, e);
    if (r < 0) {
        return r;
    }
    setsockopt(s->fd, IPPROTO_IP, IP_PKTINFO, &(int){1}, sizeof(int));
    s->watch = loop_fd_new(s->owner->loop, s->fd, LOOP_READ, on_datagram, s);
    return 0;
}

void userspace_udp_close(struct served *s)
{
    struct session *x;
    HMAP_FOREACH (x, struct session, node, &s->sessions) {
        session_free(x);
    }
    s->watch = loop_fd_free(s->watch);
    s->fd = fd_close(s->fd);
}
