/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "answers.h"
#include "dns/dns.h"
#include "upstream.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 20000
#define LOOPBACK INADDR_LOOPBACK
#define IS(name) "NOERROR | " name ". A 192.0.2.1"

struct bench {
    struct loop *loop;
    struct upstream upstream;
    struct dns *dns;
};

static void setup_at(struct bench *b, uint32_t address)
{
    *b = (struct bench){.loop = loop_new()};
    upstream_start(&b->upstream, b->loop);
    struct dns_servers servers = {.n = 1, .at = {loopback_endpoint(b->upstream.port)}};
    assert_int_equal(
        dns_new(b->loop, &(struct dns_options){.servers = &servers, .threads = 1}, &b->dns, NULL),
        0);
    struct dns_zone *z = dns_zone_of(b->dns);
    dns_zone_set_complete(z);
    set_service(z,
                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"web\"},"
                "\"spec\":{\"clusterIP\":\"172.30.0.10\"}}",
                NULL);
    struct err e = {0};
    assert_int_equal(dns_listen(b->dns, address, 0, &e), 0);
}

static void setup(struct bench *b)
{
    setup_at(b, LOOPBACK);
}

static void teardown(struct bench *b)
{
    dns_free(b->dns);
    upstream_stop(&b->upstream);
    loop_free(b->loop);
}

/* ---- a client ---- */

static int dial(uint16_t port, uint32_t address, int type)
{
    union dns_endpoint a = loopback_endpoint(port);
    a.v4.sin_addr.s_addr = htonl(address);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &a.any, sizeof a.v4), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

struct inbox {
    int fd;
    bool enough, ended;
    size_t want; /* Bytes; 0: until the end. */
    struct strbuf in;
};

static void on_bytes(void *ctx, unsigned events)
{
    struct inbox *x = ctx;
    char buf[65536];
    ssize_t n = recv(x->fd, buf, sizeof buf, 0);
    if (n > 0) {
        strbuf_add(&x->in, buf, (size_t) n);
    }
    x->ended = n == 0 || (n < 0 && errno != EAGAIN);
    x->enough = x->ended || (x->want && x->in.size >= x->want);
}

/* Runs the loop until 'want' bytes came, or the connection ended (0). */
static struct strbuf receive(struct bench *b, int fd, size_t want, bool *ret_ended)
{
    struct inbox x = {.fd = fd, .want = want, .in = STRBUF_INIT};
    struct loop_fd *watch = loop_fd_new(b->loop, fd, LOOP_READ, on_bytes, &x);
    assert_int_equal(loop_run_until(b->loop, &x.enough, PATIENCE_MS), 0);
    loop_fd_free(watch);
    *ret_ended = x.ended;
    return x.in;
}

/* What a message over UDP is answered.  Owned. */
static char *udp_answer(struct bench *b, uint32_t address, const uint8_t *query, size_t size)
{
    CLEANUP(fd_close) int fd = dial(dns_port(b->dns), address, SOCK_DGRAM);
    bool ended;
    assert_int_equal(send(fd, query, size, 0), size);
    CLEANUP_STRBUF struct strbuf in = receive(b, fd, 1, &ended);
    assert_false(ended);
    return message_text((const uint8_t *) in.data, in.size, true);
}

static char *udp_ask(struct bench *b, const char *name)
{
    uint8_t query[600];
    return udp_answer(b, LOOPBACK, query, make_query(name, DNS_A, true, query, sizeof query));
}
#define EXPECT(b, name, want)                      \
    do {                                           \
        CLEANUP_FREE char *got = udp_ask(b, name); \
        assert_string_equal(got, want);            \
    } while (0)

/* A query as it goes over TCP. */
static size_t tcp_query(const char *name, uint8_t *out)
{
    size_t size = make_query(name, DNS_A, true, out + 2, 600);
    dns_put16(out, (unsigned) size);
    return size + 2;
}

/* The messages of a connection, "; " between them.  Owned. */
static char *messages_text(const struct strbuf *in)
{
    struct strbuf out = STRBUF_INIT;
    const uint8_t *p = (const uint8_t *) in->data;
    for (size_t at = 0; at + 2 <= in->size; at += 2u + dns_get16(p + at)) {
        CLEANUP_FREE char *text = message_text(p + at + 2, dns_get16(p + at), true);
        strbuf_addf(&out, "%s%s", at ? "; " : "", text);
    }
    return strbuf_steal(&out);
}

static uint64_t metric(struct bench *b, const char *name)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    CLEANUP_FREE char *line = xasprintf("\n%s ", name);
    uint64_t n = UINT64_MAX;
    dns_write_metrics(b->dns, &out);
    const char *at = strstr(strbuf_cstr(&out), line);
    assert_non_null(at);
    at += strlen(line);
    CLEANUP_FREE char *number = xstrndup(at, strcspn(at, "\n"));
    assert_int_equal(str_to_u64(number, UINT64_MAX, &n), 0);
    return n;
}

/* ---- tests ---- */

static void names_of_the_cluster_and_others_are_answered(void **state)
{
    struct bench b;
    setup(&b);
    EXPECT(&b, "web.default.svc.cluster.local",
           "NOERROR aa | web.default.svc.cluster.local. A 172.30.0.10");
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    EXPECT(&b, "ok-a.test", IS("ok-a.test"));
    assert_int_equal(b.upstream.n_udp, 1);
    EXPECT(&b, "refused-a.test", "SERVFAIL");
    assert_int_equal(metric(&b, "tenet_dns_queries_total{transport=\"udp\"}"), 4);
    assert_int_equal(metric(&b, "tenet_dns_cluster_answers_total"), 1);
    assert_int_equal(metric(&b, "tenet_dns_cached_answers_total"), 1);
    assert_int_equal(metric(&b, "tenet_dns_forwarded_total"), 2);
    assert_int_equal(metric(&b, "tenet_dns_answers_total{rcode=\"NOERROR\"}"), 3);
    assert_int_equal(metric(&b, "tenet_dns_answers_total{rcode=\"SERVFAIL\"}"), 1);
    assert_int_equal(metric(&b, "tenet_dns_upstreams"), 1);
    assert_int_equal(metric(&b, "tenet_dns_services"), 1);
    assert_int_equal(metric(&b, "tenet_dns_master_connected"), 0);
    teardown(&b);
}

static void what_is_no_good_query_is_told_so(void **state)
{
    struct bench b;
    uint8_t query[600];
    setup(&b);
    size_t size = make_query("ok-a.test", DNS_A, true, query, sizeof query);
    CLEANUP_FREE char *cut = udp_answer(&b, LOOPBACK, query, size - 1);
    assert_string_equal(cut, "FORMERR");
    query[2] |= 0x28; /* The opcode UPDATE. */
    CLEANUP_FREE char *update = udp_answer(&b, LOOPBACK, query, size);
    assert_string_equal(update, "NOTIMP");
    /* An answer is not answered: what comes is that to the question after it. */
    CLEANUP(fd_close) int fd = dial(dns_port(b.dns), LOOPBACK, SOCK_DGRAM);
    make_query("ok-a.test", DNS_A, true, query, sizeof query);
    query[2] |= 0x80;
    assert_int_equal(send(fd, query, size, 0), size);
    query[2] &= 0x7f;
    query[1] ^= 0xff;
    assert_int_equal(send(fd, query, size, 0), size);
    bool ended;
    CLEANUP_STRBUF struct strbuf in = receive(&b, fd, 1, &ended);
    assert_int_equal((uint8_t) in.data[1], query[1]);
    assert_int_equal(metric(&b, "tenet_dns_dropped_total"), 1);
    teardown(&b);
}

/* A socket that is connected takes answers from there only. */
static void it_answers_from_the_address_that_was_asked(void **state)
{
    static const char *const names[] = {"web.default.svc.cluster.local", "ok-a.test"};
    struct bench b;
    uint8_t query[600];
    setup_at(&b, 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t size = make_query(names[i], DNS_A, true, query, sizeof query);
        CLEANUP_FREE char *got = udp_answer(&b, LOOPBACK + 1, query, size);
        assert_true(str_has_prefix(got, "NOERROR"));
    }
    teardown(&b);
}

static void questions_of_a_connection_are_all_answered(void **state)
{
    struct bench b;
    uint8_t query[3 * 600];
    bool ended;
    setup(&b);
    CLEANUP(fd_close) int fd = dial(dns_port(b.dns), LOOPBACK, SOCK_STREAM);
    size_t size = tcp_query("web.default.svc.cluster.local", query);
    size += tcp_query("ok-a.test", query + size);
    size += tcp_query("ok-b.test", query + size);
    assert_int_equal(send(fd, query, size, 0), size);
    /* It asks no more, and has yet to be told. */
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    CLEANUP_STRBUF struct strbuf in = receive(&b, fd, 0, &ended);
    assert_true(ended);
    CLEANUP_FREE char *got = messages_text(&in);
    assert_string_equal(got, "NOERROR aa | web.default.svc.cluster.local. A 172.30.0.10; " IS(
                                 "ok-a.test") "; " IS("ok-b.test"));
    assert_int_equal(metric(&b, "tenet_dns_queries_total{transport=\"tcp\"}"), 3);
    teardown(&b);
}

/* Whose connection is gone is told nothing; the others are. */
static void a_connection_that_ends_while_others_wait(void **state)
{
    struct bench b;
    uint8_t query[600];
    bool ended;
    setup(&b);
    int first = dial(dns_port(b.dns), LOOPBACK, SOCK_STREAM);
    CLEANUP(fd_close) int second = dial(dns_port(b.dns), LOOPBACK, SOCK_STREAM);
    size_t size = tcp_query("silent-a.test", query);
    assert_int_equal(send(first, query, size, 0), size);
    while (b.upstream.n_udp == 0) {
        bool never = false;
        loop_run_until(b.loop, &never, 10);
    }
    static const struct linger hard = {.l_onoff = 1};
    assert_int_equal(setsockopt(first, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    close(first);
    size = tcp_query("ok-a.test", query);
    assert_int_equal(send(second, query, size, 0), size);
    CLEANUP_STRBUF struct strbuf in = receive(&b, second, 3, &ended);
    CLEANUP_FREE char *got = messages_text(&in);
    assert_string_equal(got, IS("ok-a.test"));
    teardown(&b);
}

static void a_connection_that_sends_no_queries_is_closed(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"\0\13aaaaaaaaaaa", 13},             /* Less than a header. */
        {"\x10\1", 2},                        /* More than 4096 bytes. */
        {"\0\14\1\2\x80\0\0\1\0\0\0\0\0", 14} /* An answer. */
    };
    struct bench b;
    bool ended;
    setup(&b);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(fd_close) int fd = dial(dns_port(b.dns), LOOPBACK, SOCK_STREAM);
        assert_int_equal(send(fd, rows[i].bytes, rows[i].size, 0), rows[i].size);
        CLEANUP_STRBUF struct strbuf in = receive(&b, fd, 0, &ended);
        assert_true(ended);
        assert_int_equal(in.size, 0);
    }
    /* A question of twelve bytes is one, if a bad one. */
    CLEANUP(fd_close) int fd = dial(dns_port(b.dns), LOOPBACK, SOCK_STREAM);
    assert_int_equal(send(fd, "\0\14\1\2\0\0\0\1\0\0\0\0\0\0", 14, 0), 14);
    CLEANUP_STRBUF struct strbuf in = receive(&b, fd, 14, &ended);
    CLEANUP_FREE char *got = messages_text(&in);
    assert_string_equal(got, "FORMERR");
    teardown(&b);
}

/* Sixteen connections of one client; another is closed at once. */
static void a_client_has_so_many_connections(void **state)
{
    struct bench b;
    uint8_t query[600];
    int fds[17];
    bool ended;
    setup(&b);
    size_t size = tcp_query("web.default.svc.cluster.local", query);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(dns_port(b.dns), LOOPBACK, SOCK_STREAM);
        (void) !send(fds[i], query, size, MSG_NOSIGNAL);
        CLEANUP_STRBUF struct strbuf in = receive(&b, fds[i], 1, &ended);
        assert_int_equal(ended, i == 16);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        close(fds[i]);
    }
    teardown(&b);
}

static void a_port_that_is_taken_is_an_error(void **state)
{
    struct bench b;
    struct err e = {0};
    struct dns *other = NULL;
    setup(&b);
    static const struct dns_servers none = {0};
    const struct dns_options o = {.servers = &none, .threads = 1};
    assert_int_equal(dns_new(b.loop, &o, &other, NULL), 0);
    assert_int_equal(dns_port(other), 0);
    assert_int_equal(dns_listen(other, LOOPBACK, dns_port(b.dns), &e), -EADDRINUSE);
    CLEANUP_FREE char *want =
        xasprintf("TCP port %u of 127.0.0.1 is taken by another program", dns_port(b.dns));
    assert_string_equal(e.text, want);
    assert_int_equal(dns_port(other), 0);
    /* The other address has that port free; and what listens there goes on when a port is taken. */
    assert_int_equal(dns_listen(other, LOOPBACK + 1, dns_port(b.dns), &e), 0);
    assert_int_equal(dns_listen(other, LOOPBACK, dns_port(b.dns), &e), -EADDRINUSE);
    assert_int_equal(dns_port(other), dns_port(b.dns));
    /* Without servers nothing is forwarded. */
    uint8_t query[600];
    size_t size = make_query("ok-a.test", DNS_A, true, query, sizeof query);
    CLEANUP_FREE char *got = udp_answer(&b, LOOPBACK + 1, query, size);
    assert_string_equal(got, "REFUSED");
    assert_int_equal(b.upstream.n_udp, 0);
    dns_free(other);
    teardown(&b);
}

static uint16_t udp_port_only(int *ret_fd)
{
    uint16_t port = closed_port();
    union dns_endpoint a = loopback_endpoint(port);
    *ret_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*ret_fd, &a.any, sizeof a.v4), 0);
    return port;
}

static void a_port_that_is_taken_for_udp_is_an_error(void **state)
{
    struct bench b;
    struct err e = {0};
    int fd;
    setup(&b);
    uint16_t port = udp_port_only(&fd);
    assert_int_equal(dns_listen(b.dns, LOOPBACK, port, &e), -EADDRINUSE);
    CLEANUP_FREE char *want =
        xasprintf("UDP port %u of 127.0.0.1 is taken by another program", port);
    assert_string_equal(e.text, want);
    close(fd);
    teardown(&b);
}

/* Sets up a server at 'address' whose only upstream is its own port.  Another process
 * may take that port first: the caller tries again when this returns false, and nothing
 * is left of the attempt. */
static bool setup_own_upstream(struct bench *b, uint32_t address)
{
    *b = (struct bench){.loop = loop_new()};
    upstream_start(&b->upstream, b->loop);
    uint16_t port = closed_port();
    struct dns_servers servers = {.n = 1, .at = {loopback_endpoint(port)}};
    const struct dns_options o = {.servers = &servers, .threads = 1};
    struct err e = {0};
    assert_int_equal(dns_new(b->loop, &o, &b->dns, NULL), 0);
    assert_int_equal(metric(b, "tenet_dns_upstreams"), 1);
    int r = dns_listen(b->dns, address, port, &e);
    if (r == -EADDRINUSE) {
        teardown(b);
        return false;
    }
    assert_int_equal(r, 0);
    return true;
}

/* Wherever it listens, the address of that is none to ask. */
static void it_never_asks_itself(void **state)
{
    static const uint32_t addresses[] = {LOOPBACK, 0};
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        struct bench b;
        bool up = false;
        for (int attempt = 0; attempt < 20 && !up; attempt++) {
            up = setup_own_upstream(&b, addresses[i]);
        }
        assert_true(up);
        assert_int_equal(metric(&b, "tenet_dns_upstreams"), 0);
        EXPECT(&b, "ok-a.test", "SERVFAIL");
        assert_int_equal(metric(&b, "tenet_dns_queries_total{transport=\"udp\"}"), 1);
        teardown(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_the_cluster_and_others_are_answered),
        cmocka_unit_test(what_is_no_good_query_is_told_so),
        cmocka_unit_test(it_answers_from_the_address_that_was_asked),
        cmocka_unit_test(questions_of_a_connection_are_all_answered),
        cmocka_unit_test(a_connection_that_ends_while_others_wait),
        cmocka_unit_test(a_connection_that_sends_no_queries_is_closed),
        cmocka_unit_test(a_client_has_so_many_connections),
        cmocka_unit_test(a_port_that_is_taken_is_an_error),
        cmocka_unit_test(a_port_that_is_taken_for_udp_is_an_error),
        cmocka_unit_test(it_never_asks_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
