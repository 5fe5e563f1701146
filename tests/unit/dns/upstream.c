/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream.h"

#include "base/mem.h"
#include "base/str.h"
#include "wire/dns.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(cond)    \
    do {               \
        if (!(cond)) { \
            abort();   \
        }              \
    } while (0)

union dns_endpoint loopback_endpoint(uint16_t port)
{
    return (union dns_endpoint){.v4 = {.sin_family = AF_INET,
                                       .sin_port = htons(port),
                                       .sin_addr = {htonl(INADDR_LOOPBACK)}}};
}

static int bound(int type, uint16_t port, uint16_t *ret_port)
{
    union dns_endpoint a = loopback_endpoint(port);
    socklen_t size = sizeof a.v4;
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    if (bind(fd, &a.any, sizeof a.v4) < 0) {
        close(fd);
        return -1;
    }
    CHECK(getsockname(fd, &a.any, &size) == 0);
    *ret_port = ntohs(a.v4.sin_port);
    return fd;
}

uint16_t closed_port(void)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        uint16_t port;
        int udp = bound(SOCK_DGRAM, 0, &port), tcp = bound(SOCK_STREAM, port, &port);
        close(udp);
        if (tcp >= 0) {
            close(tcp);
            return port;
        }
    }
    abort();
}

/* The answer to 'data'; its size, 0: none. */
static size_t answer(const uint8_t *data, size_t size, bool tcp, uint8_t *out)
{
    struct dns_query q;
    struct dns_writer w;
    struct dns_name other;
    char name[DNS_NAME_TEXT];
    CHECK(dns_query_parse(data, size, &q) == 0);
    dns_name_format(&q.name, name);
    if (str_has_prefix(name, "silent-")) {
        return 0;
    }
    if (str_has_prefix(name, "query-") && !tcp) {
        memcpy(out, data, size);
        return size;
    }
    q.id ^= str_has_prefix(name, "number-") && !tcp;
    dns_writer_answer(&w, &q, data + DNS_HEADER, out, DNS_MESSAGE_MAX);
    if (str_has_prefix(name, "refused-") || (str_has_prefix(name, "old-") && q.edns)) {
        return dns_writer_finish(&w, 0, name[0] == 'r' ? DNS_REFUSED : DNS_FORMERR);
    }
    if (str_has_prefix(name, "nx-")) {
        return dns_writer_finish(&w, 0, DNS_NXDOMAIN);
    }
    if ((str_has_prefix(name, "short-") && !tcp) || str_has_prefix(name, "close-")) {
        return dns_writer_finish(&w, DNS_TC, DNS_NOERROR);
    }
    w.section = DNS_ANSWER;
    CHECK(dns_name_parse(name, &other) == 0);
    if (str_has_prefix(name, "other-") && !tcp) {
        out[DNS_HEADER + 1] = 'x';
    }
    dns_writer_begin(&w, &other, DNS_A, 60);
    dns_writer_u32(&w, 0xc0000201);
    dns_writer_end(&w);
    return dns_writer_finish(&w, 0, DNS_NOERROR);
}

static void on_udp(void *ctx, unsigned events)
{
    struct upstream *u = ctx;
    union dns_endpoint from;
    socklen_t from_size = sizeof from;
    uint8_t in[2048];
    CLEANUP_FREE uint8_t *out = xmalloc(DNS_MESSAGE_MAX);
    ssize_t n = recvfrom(u->udp, in, sizeof in, 0, &from.any, &from_size);
    if (n < 0) {
        return;
    }
    u->n_udp++;
    size_t size = answer(in, (size_t) n, false, out);
    /* What is wrong comes until the other side has had enough. */
    for (int i = 0; size && i < 4; i++) {
        sendto(u->udp, out, size, 0, &from.any, from_size);
    }
}

static void on_connection(void *ctx, unsigned events)
{
    struct upstream *u = ctx;
    CLEANUP_FREE uint8_t *out = xmalloc(DNS_MESSAGE_MAX + 2);
    uint8_t in[2048];
    for (size_t i = 0; i < u->n_connections; i++) {
        ssize_t n = u->connection[i] < 0 ? -1 : recv(u->connection[i], in, sizeof in, 0);
        if (n <= 2) {
            continue;
        }
        u->n_tcp++;
        size_t size = answer(in + 2, (size_t) n - 2, true, out + 2);
        dns_put16(out, (unsigned) size);
        if (dns_get16(out + 2 + 2) & DNS_TC) {
            u->connection_watch[i] = loop_fd_free(u->connection_watch[i]);
            u->connection[i] = fd_close(u->connection[i]);
            return;
        }
        /* In two pieces, of which the first says nothing yet. */
        send(u->connection[i], out, 7, 0);
        send(u->connection[i], out + 7, size - 5, 0);
    }
}

static void on_tcp(void *ctx, unsigned events)
{
    struct upstream *u = ctx;
    int fd = accept4(u->tcp, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        CHECK(u->n_connections < UPSTREAM_CONNECTIONS);
        u->connection[u->n_connections] = fd;
        u->connection_watch[u->n_connections++] =
            loop_fd_new(u->loop, fd, LOOP_READ, on_connection, u);
    }
}

void upstream_start(struct upstream *u, struct loop *l)
{
    *u = (struct upstream){.loop = l, .udp = -1, .tcp = -1};
    while (u->tcp < 0) { /* A port that is free for both. */
        fd_close(u->udp);
        u->udp = bound(SOCK_DGRAM, 0, &u->port);
        u->tcp = bound(SOCK_STREAM, u->port, &u->port);
    }
    CHECK(listen(u->tcp, 16) == 0);
    u->udp_watch = loop_fd_new(l, u->udp, LOOP_READ, on_udp, u);
    u->tcp_watch = loop_fd_new(l, u->tcp, LOOP_READ, on_tcp, u);
}

void upstream_stop(struct upstream *u)
{
    for (size_t i = 0; i < u->n_connections; i++) {
        loop_fd_free(u->connection_watch[i]);
        fd_close(u->connection[i]);
    }
    loop_fd_free(u->udp_watch);
    loop_fd_free(u->tcp_watch);
    fd_close(u->udp);
    fd_close(u->tcp);
}
