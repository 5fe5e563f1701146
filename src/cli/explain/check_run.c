/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/check.h"

#include "base/timeutil.h"
#include "net/kernel/netns.h"
#include "wire/dns.h"
#include "wire/ping.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define AGAIN_MS 400 /* Time until an unanswered probe is sent again. */
#define TRIES 4
#define DEADLINE_MS 4000 /* Time limit of probes that must be answered. */
#define SILENCE_MS 1800  /* Waiting time of probes that must not be answered. */
#define TICK_MS 20
#define SMALL 64 /* Size of an ICMP message when the size does not matter. */
#define PACKET_MAX 65535

/* The sockets of a pod: they live in its namespace, and are used from here. */
struct sockets {
    int ping, whole, listen; /* 'whole' sends packets that are not fragmented. */
};

/* The state of a probe. */
struct attempt {
    struct check_probe *probe;
    struct sockets *sockets;
    uint16_t seq;
    int fd;         /* TCP and DNS have one each. */
    bool connected; /* Or, with TCP, the connection is being made. */
    unsigned sent;
};

struct run {
    const struct check_set *set;
    struct sockets *sockets; /* One entry for each pod. */
    struct attempt *attempts;
    size_t n;
    uint16_t id;
    uint64_t began_ms;
};

static struct sockaddr_in address(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(ip), .sin_port = htons(port)};
}

/* ---- sockets ---- */

static int socket_new(int type, int protocol, int *ret, struct err *e)
{
    *ret = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    return *ret < 0 ? err_sys(e, -errno, "open a socket in a probe pod") : 0;
}

static int open_in_pod(struct sockets *s, struct err *e)
{
    int probe = IP_PMTUDISC_PROBE, one = 1;
    struct sockaddr_in any = address(INADDR_ANY, CHECK_TCP_PORT);
    int r = socket_new(SOCK_RAW, IPPROTO_ICMP, &s->ping, e);
    if (r == 0) {
        r = socket_new(SOCK_RAW, IPPROTO_ICMP, &s->whole, e);
    }
    if (r == 0) {
        r = socket_new(SOCK_STREAM, 0, &s->listen, e);
    }
    if (r < 0) {
        return r;
    }
    setsockopt(s->whole, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
    setsockopt(s->listen, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return bind(s->listen, (struct sockaddr *) &any, sizeof any) < 0 || listen(s->listen, 64) < 0
               ? err_sys(e, -errno, "listen in a probe pod")
               : 0;
}

/* Opens the sockets of pod 'i' and of its probes, in its namespace. */
static int open_pod(struct run *x, size_t i, struct err *e)
{
    CLEANUP(fd_close) int ns = -1;
    int back, r = netns_open(x->set->pods[i].netns, &ns, e);
    if (r < 0 || (r = netns_enter(ns, &back, e)) < 0) {
        return r;
    }
    r = open_in_pod(&x->sockets[i], e);
    for (size_t k = 0; r == 0 && k < x->n; k++) {
        struct attempt *a = &x->attempts[k];
        if (a->probe->pod == &x->set->pods[i] && a->probe->kind != CHECK_PING) {
            r = socket_new(a->probe->kind == CHECK_TCP ? SOCK_STREAM : SOCK_DGRAM, 0, &a->fd, e);
        }
    }
    netns_leave(back);
    return r;
}

/* ---- sending ---- */

static void fail(struct attempt *a, int error)
{
    snprintf(a->probe->detail, sizeof a->probe->detail, "%s",
             error == EMSGSIZE ? "the pod's own link has no room for a packet of its MTU"
                               : strerror(error));
}

static void send_ping(struct run *x, struct attempt *a)
{
    static uint8_t packet[PACKET_MAX];
    const struct check_probe *p = a->probe;
    size_t size = p->size ? p->size - (PING_OVERHEAD - PING_HEADER) : SMALL;
    struct sockaddr_in to = address(p->dst, 0);
    ping_put(packet, MIN(size, sizeof packet), x->id, a->seq);
    if (sendto(p->size ? a->sockets->whole : a->sockets->ping, packet, MIN(size, sizeof packet), 0,
               (struct sockaddr *) &to, sizeof to) < 0) {
        fail(a, errno);
    }
}

static void send_one(struct run *x, struct attempt *a)
{
    struct check_probe *p = a->probe;
    struct sockaddr_in to = address(p->dst, p->kind == CHECK_TCP ? CHECK_TCP_PORT : DNS_PORT);
    a->probe->tried = true;
    a->sent++;
    if (p->kind == CHECK_PING) {
        send_ping(x, a);
        return;
    }
    if (!a->connected && connect(a->fd, (struct sockaddr *) &to, sizeof to) < 0 &&
        errno != EINPROGRESS) {
        fail(a, errno);
        return;
    }
    a->connected = true;
    if (p->kind == CHECK_DNS) {
        /* A name for which every server has an answer without asking another server. */
        uint8_t query[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE];
        struct dns_name name;
        (void) dns_name_parse("localhost", &name);
        if (send(a->fd, query, dns_query_write(x->id, &name, DNS_A, false, false, query), 0) < 0) {
            fail(a, errno);
        }
    }
}

/* ---- receiving ---- */

static void on_reply(struct run *x, const struct sockets *s, const struct ping_reply *r)
{
    static const char *const codes[] = {"network unreachable", "host unreachable",
                                        "protocol unreachable", "port unreachable"};
    for (size_t k = 0; k < x->n; k++) {
        struct attempt *a = &x->attempts[k];
        if (a->sockets != s || a->seq != r->seq || a->probe->kind != CHECK_PING) {
            continue;
        }
        if (r->kind == PING_ANSWER) {
            a->probe->answered = true;
        } else {
            snprintf(a->probe->detail, sizeof a->probe->detail, "%s says: %s", IP4_TEXT(r->from),
                     r->code < ARRAY_SIZE(codes) ? codes[r->code] : "prohibited");
        }
    }
}

static void receive_pings(struct run *x, const struct sockets *s, int fd)
{
    static uint8_t packet[PACKET_MAX];
    ssize_t n;
    while ((n = recv(fd, packet, sizeof packet, 0)) > 0) {
        struct ping_reply r = ping_parse(packet, (size_t) n, x->id);
        if (r.kind != PING_NOT_OURS) {
            on_reply(x, s, &r);
        }
    }
}

static void look_at(struct run *x, struct attempt *a)
{
    struct check_probe *p = a->probe;
    struct pollfd w = {.fd = a->fd, .events = p->kind == CHECK_TCP ? POLLOUT : POLLIN};
    if (p->answered || a->fd < 0 || !a->connected || poll(&w, 1, 0) <= 0) {
        return;
    }
    if (p->kind == CHECK_TCP) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        p->answered = error == 0;
        if (error) {
            fail(a, error);
            a->fd = fd_close(a->fd);
        }
        return;
    }
    uint8_t message[512];
    ssize_t n = recv(a->fd, message, sizeof message, 0);
    if (n < 0 && errno != EAGAIN) {
        fail(a, errno);
    }
    struct dns_reader r;
    p->answered = n > 0 && dns_reader_init(&r, message, (size_t) n) == 0 && r.id == x->id &&
                  (r.flags & DNS_QR); /* Any answer counts. */
}

/* ---- the whole ---- */

static bool is_over(const struct run *x, bool whole, uint64_t t)
{
    bool waits = false, silent = false;
    for (size_t k = 0; k < x->n; k++) {
        const struct check_probe *p = x->attempts[k].probe;
        if ((p->size > 0) != whole) {
            continue;
        }
        waits = waits || (!p->forbidden && !p->answered);
        silent = silent || p->forbidden;
    }
    return t >= DEADLINE_MS || (!waits && (!silent || t >= SILENCE_MS));
}

/* Sends the packets of full size, or the others. */
static int go(struct run *x, bool whole, struct err *e)
{
    x->began_ms = time_mono_ms();
    for (;;) {
        uint64_t t = time_mono_ms() - x->began_ms;
        for (size_t k = 0; k < x->n; k++) {
            struct attempt *a = &x->attempts[k];
            if ((a->probe->size > 0) == whole && !a->probe->answered && a->sent < TRIES &&
                t >= a->sent * AGAIN_MS) {
                send_one(x, a);
            }
        }
        for (size_t i = 0; i < x->set->n; i++) {
            receive_pings(x, &x->sockets[i], x->sockets[i].ping);
            receive_pings(x, &x->sockets[i], x->sockets[i].whole);
        }
        for (size_t k = 0; k < x->n; k++) {
            look_at(x, &x->attempts[k]);
        }
        if (*x->set->stop) {
            return err_set(e, -EINTR, "interrupted");
        }
        if (is_over(x, whole, t)) {
            return 0;
        }
        poll(NULL, 0, TICK_MS);
    }
}

int check_run(const struct check_set *s, struct check_probe *p, size_t n, struct err *e)
{
    CLEANUP_FREE struct sockets *sockets = xcalloc(s->n + 1, sizeof *sockets);
    CLEANUP_FREE struct attempt *attempts = xcalloc(n + 1, sizeof *attempts);
    struct run x = {.set = s, .sockets = sockets, .attempts = attempts, .id = (uint16_t) getpid()};
    for (size_t i = 0; i < s->n; i++) {
        sockets[i] = (struct sockets){-1, -1, -1};
    }
    for (size_t k = 0; k < n; k++) {
        if (p[k].pod) {
            attempts[x.n] = (struct attempt){.probe = &p[k],
                                             .sockets = &sockets[p[k].pod - s->pods],
                                             .seq = (uint16_t) x.n,
                                             .fd = -1};
            x.n++;
        }
    }
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->n; i++) {
        r = open_pod(&x, i, e);
    }
    if (r == 0) {
        r = go(&x, false, e);
    }
    if (r == 0) {
        /* Sent alone: when a packet does not fit a link, others sent with it can be lost. */
        r = go(&x, true, e);
    }
    for (size_t k = 0; k < x.n; k++) {
        fd_close(attempts[k].fd);
    }
    for (size_t i = 0; i < s->n; i++) {
        fd_close(sockets[i].ping);
        fd_close(sockets[i].whole);
        fd_close(sockets[i].listen);
    }
    for (size_t k = 0; r == 0 && k < n; k++) {
        check_judge(&p[k]);
    }
    return r;
}
