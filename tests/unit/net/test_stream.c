/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over one connection: SPDY against itself, WebSocket against frames made here, joined
 * connections, and HTTP upgrades. */
#include "base/mem.h"
#include "net/http/http.h"
#include "net/loop/sock.h"
#include "net/stream/bridge.h"
#include "net/stream/mux.h"
#include "net/stream/splice.h"
#include "wire/http1.h"
#include "wire/websocket.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define STREAMS 50

/* ---- both ends of SPDY ---- */

struct end;
struct one {
    struct end *end;
    struct mux_stream *s;
    struct strbuf got;
    bool ended, reset;
};

/* One side, with the streams that it has opened or accepted. */
struct end {
    struct mux *mux;
    struct one list[MUX_MAX_STREAMS + 10];
    size_t n;
    bool echo; /* Sends back what it gets, and its end. */
    int error;
    bool closed;
    size_t total;
};

static void one_data(void *ctx, const char *p, size_t size)
{
    struct one *o = ctx;
    o->end->total += size;
    if (o->end->echo) {
        mux_stream_write(o->s, p, size);
    } else if (o->got.size < 1 << 20) {
        strbuf_add(&o->got, p, size);
    }
}

static void one_end(void *ctx)
{
    struct one *o = ctx;
    o->ended = true;
    if (o->end->echo) {
        mux_stream_end(o->s);
    }
}

static void one_reset(void *ctx)
{
    struct one *o = ctx;
    o->reset = true;
    o->s = mux_stream_free(o->s);
}

static const struct mux_stream_ops one_ops = {.data = one_data, .end = one_end, .reset = one_reset};

static struct one *add(struct end *e, struct mux_stream *s)
{
    struct one *o = &e->list[e->n++];
    *o = (struct one){.end = e, .s = s, .got = STRBUF_INIT};
    mux_stream_start(s, &one_ops, o);
    return o;
}

static void end_opened(void *ctx, struct mux_stream *s)
{
    add(ctx, s);
}

static void end_closed(void *ctx, int error, const char *why)
{
    struct end *e = ctx;
    e->closed = true;
    e->error = error;
}

static const struct mux_ops end_ops = {.opened = end_opened, .closed = end_closed};

static void end_done(struct end *e)
{
    e->mux = mux_free(e->mux);
    for (size_t i = 0; i < e->n; i++) {
        strbuf_done(&e->list[i].got);
    }
    free(e);
}

static void make_pair(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

static void make_ends(struct loop *l, struct end **client, struct end **server)
{
    int fds[2];
    make_pair(fds);
    *client = NEW(struct end);
    *server = NEW(struct end);
    (*client)->mux = mux_spdy_new(l, duplex_new(l, fds[0], NULL, "", 0), false, &end_ops, *client);
    (*server)->mux = mux_spdy_new(l, duplex_new(l, fds[1], NULL, "", 0), true, &end_ops, *server);
}

/* Runs the loop until the condition holds. */
#define UNTIL(l, condition)                        \
    for (int round_ = 0; !(condition); round_++) { \
        bool never_ = false;                       \
        assert_true(round_ < WAIT_MS);             \
        (void) loop_run_until(l, &never_, 1);      \
    }

static struct one *open_one(struct end *e, const char *type)
{
    const char *headers[] = {"streamtype", type};
    struct mux_stream *s = mux_open(e->mux, headers, 1);
    return s ? add(e, s) : NULL;
}

static size_t count_ended(const struct end *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        n += e->list[i].ended;
    }
    return n;
}

static void fifty_streams_go_both_ways_at_once(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct end *client, *server;
    make_ends(l, &client, &server);
    server->echo = true;
    for (int i = 0; i < STREAMS; i++) {
        char text[32];
        snprintf(text, sizeof text, "stream %d;", i);
        struct one *o = open_one(client, "data");
        for (int k = 0; k < 1000; k++) {
            mux_stream_write(o->s, text, strlen(text));
        }
        mux_stream_end(o->s);
    }
    UNTIL(l, count_ended(client) == STREAMS);
    for (size_t i = 0; i < STREAMS; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "stream %zu;", i);
        const struct one *o = &client->list[i];
        assert_int_equal(o->got.size, n * 1000);
        assert_memory_equal(o->got.data, text, n);
        assert_memory_equal(o->got.data + o->got.size - n, text, n);
        assert_string_equal(mux_stream_header(server->list[i].s, "streamtype"), "data");
    }
    mux_close(client->mux, NULL);
    UNTIL(l, server->closed);
    end_done(client);
    end_done(server);
}

static void one_direction_ends_alone(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct end *client, *server;
    make_ends(l, &client, &server);
    struct one *o = open_one(client, "data");
    mux_stream_write(o->s, "question", 8);
    mux_stream_end(o->s);
    UNTIL(l, server->n && server->list[0].ended);
    assert_string_equal(server->list[0].got.data, "question");
    assert_false(o->ended);
    mux_stream_write(server->list[0].s, "answer", 6);
    mux_stream_end(server->list[0].s);
    UNTIL(l, o->ended);
    assert_string_equal(o->got.data, "answer");
    assert_true(mux_stream_is_done(o->s));
    end_done(client);
    end_done(server);
}

/* Also: what was sent before the reset arrives. */
static void a_reset_ends_one_stream_only(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct end *client, *server;
    make_ends(l, &client, &server);
    struct one *a = open_one(client, "a"), *b = open_one(client, "b");
    UNTIL(l, server->n == 2);
    mux_stream_write(server->list[0].s, "last words", 10);
    server->list[0].s = mux_stream_free(server->list[0].s);
    UNTIL(l, a->reset);
    assert_string_equal(a->got.data, "last words");
    mux_stream_write(b->s, "still", 5);
    UNTIL(l, server->list[1].got.size == 5);
    assert_false(b->reset || server->list[1].reset || client->closed);
    end_done(client);
    end_done(server);
}

/* The paused stream keeps a bounded amount; what is over stays with the sender. */
static void a_slow_reader_has_bounded_memory(void **state)
{
    static char block[65536];
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct end *client, *server;
    bool never = false;
    make_ends(l, &client, &server);
    struct one *o = open_one(client, "data");
    UNTIL(l, server->n == 1);
    mux_stream_pause(server->list[0].s, true);
    for (int i = 0; i < 320; i++) { /* 20 MiB */
        mux_stream_write(o->s, block, sizeof block);
    }
    mux_stream_end(o->s);
    (void) loop_run_until(l, &never, 300);
    assert_int_equal(server->total, 0);
    size_t held = 320 * sizeof block - mux_queued(client->mux);
    assert_true(held < 4 * MUX_HELD);
    mux_stream_pause(server->list[0].s, false);
    UNTIL(l, server->list[0].ended);
    assert_int_equal(server->total, 320 * sizeof block);
    end_done(client);
    end_done(server);
}

static void a_flood_of_streams_is_refused(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct end *client, *server;
    make_ends(l, &client, &server);
    for (size_t i = 0; i < MUX_MAX_STREAMS; i++) {
        assert_non_null(open_one(client, "x"));
    }
    assert_null(open_one(client, "x"));
    UNTIL(l, server->n == MUX_MAX_STREAMS);
    /* The client forgets one, and opens another while the server still has all. */
    client->list[0].s = mux_stream_free(client->list[0].s);
    struct one *more = open_one(client, "x");
    UNTIL(l, server->list[0].reset);
    assert_non_null(more);
    assert_false(client->closed);
    end_done(client);
    end_done(server);
}

static void junk_ends_the_connection(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    int fds[2];
    make_pair(fds);
    struct end *server = NEW(struct end);
    server->mux = mux_spdy_new(l, duplex_new(l, fds[1], NULL, "", 0), true, &end_ops, server);
    assert_int_equal(write(fds[0], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    UNTIL(l, server->closed);
    assert_true(server->error < 0);
    end_done(server);
    close(fds[0]);
}

/* ---- WebSocket ---- */

static const unsigned char mask[4] = {1, 2, 3, 4};
static const char *const stdin_headers[] = {"streamtype", "stdin"};
static const char *const stdout_headers[] = {"streamtype", "stdout"};

static struct end *websocket_end(struct loop *l, int fd, const char *protocol)
{
    struct mux_channel channels[] = {{.headers = stdin_headers, .n = 1, .from_client = true},
                                     {.headers = stdout_headers, .n = 1, .to_client = true}};
    struct end *e = NEW(struct end);
    e->mux = mux_websocket_new(l, duplex_new(l, fd, NULL, "", 0), mux_protocol_choose(protocol),
                               channels, 2, &end_ops, e);
    return e;
}

static void send_text(int fd, const struct strbuf *b)
{
    assert_int_equal(write(fd, b->data, b->size), b->size);
}

static void channels_are_streams(void **state)
{
    static const struct {
        const char *protocol, *message;
        enum ws_opcode opcode;
        size_t size;
        bool closing;
        const char *answer;
    } cases[] = {
        {"none, v5.channel.k8s.io", "\0hello", WS_BINARY, 6, true, "\x82\3\1ok"},
        {"v4.channel.k8s.io", "\0hello", WS_BINARY, 6, false, "\x82\3\1ok"},
        {"v4.base64.channel.k8s.io", "0aGVsbG8=", WS_TEXT, 9, false,
         "\x81\5"
         "1b2s="},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(loop_free) struct loop *l = loop_new();
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        char answer[64] = "";
        int fds[2];
        make_pair(fds);
        struct end *e = websocket_end(l, fds[1], cases[i].protocol);
        ws_write(cases[i].opcode, mask, cases[i].message, cases[i].size, &b);
        if (cases[i].closing) {
            ws_write(WS_BINARY, mask, "\xff\0", 2, &b);
        }
        send_text(fds[0], &b);
        UNTIL(l, e->n == 2 && e->list[0].got.size == 5);
        assert_string_equal(e->list[0].got.data, "hello");
        if (cases[i].closing) {
            UNTIL(l, e->list[0].ended);
        }
        assert_false(e->closed);
        mux_stream_write(e->list[1].s, "ok", 2);
        ssize_t n = -1;
        UNTIL(l, (n = read(fds[0], answer, sizeof answer)) > 0);
        assert_int_equal(n, 2 + answer[1]);
        assert_memory_equal(answer, cases[i].answer, n);
        strbuf_reset(&b);
        ws_write_close(WS_NORMAL, mask, "", &b);
        send_text(fds[0], &b);
        UNTIL(l, e->closed);
        assert_int_equal(e->error, 0);
        end_done(e);
        close(fds[0]);
    }
    assert_null(mux_protocol_choose("v9.channel.k8s.io, channel"));
}

static void messages_for_no_channel_end_the_connection(void **state)
{
    static const struct {
        const char *protocol, *message;
        size_t size;
    } cases[] = {{"v5.channel.k8s.io", "\7x", 2},
                 {"v4.channel.k8s.io", "\xff\0", 2},
                 {"v4.base64.channel.k8s.io", "9aGk=", 5},
                 {"v4.base64.channel.k8s.io", "0a*k=", 5}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(loop_free) struct loop *l = loop_new();
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        int fds[2];
        make_pair(fds);
        struct end *e = websocket_end(l, fds[1], cases[i].protocol);
        ws_write(WS_BINARY, mask, cases[i].message, cases[i].size, &b);
        send_text(fds[0], &b);
        UNTIL(l, e->closed);
        assert_int_equal(e->error, -EPROTO);
        end_done(e);
        close(fds[0]);
    }
}

/* ---- bridges ---- */

struct joined {
    bool done;
    int error;
};

static void bridge_done(void *ctx, int error, const char *why)
{
    struct joined *j = ctx;
    j->done = true;
    j->error = error;
}

/* A client of WebSocket, a bridge, and a server of SPDY that knows the process. */
static void websocket_meets_spdy(void **state)
{
    for (int answered = 0; answered < 2; answered++) {
        CLEANUP(loop_free) struct loop *l = loop_new();
        CLEANUP_STRBUF struct strbuf seen = STRBUF_INIT;
        static const char *const error_headers[] = {"streamtype", "error"};
        struct mux_channel channels[] = {{.headers = stdin_headers, .n = 1, .from_client = true},
                                         {.headers = stdout_headers, .n = 1, .to_client = true},
                                         {.n = 0},
                                         {.headers = error_headers, .n = 1, .to_client = true}};
        struct joined joined = {0};
        int front[2], back[2];
        char buf[4096];
        make_pair(front);
        make_pair(back);
        struct end *server = NEW(struct end);
        server->mux = mux_spdy_new(l, duplex_new(l, back[1], NULL, "", 0), true, &end_ops, server);
        struct bridge *b = bridge_new("LOST", bridge_done, &joined);
        struct mux *m =
            mux_spdy_new(l, duplex_new(l, back[0], NULL, "", 0), false, &bridge_back_ops, b);
        bridge_start(b,
                     mux_websocket_new(l, duplex_new(l, front[1], NULL, "", 0),
                                       mux_protocol_choose("v5.channel.k8s.io"), channels, 4,
                                       &bridge_front_ops, b),
                     m);
        UNTIL(l, server->n == 3);
        mux_stream_write(server->list[1].s, "output", 6);
        if (answered) {
            mux_stream_write(server->list[2].s, "RESULT", 6);
        }
        /* As Go does: all streams are reset, and the connection is closed. */
        for (size_t i = 0; i < 3; i++) {
            server->list[i].s = mux_stream_free(server->list[i].s);
        }
        mux_close(server->mux, NULL);
        ssize_t n = -1;
        UNTIL(l, (n = read(front[0], buf, sizeof buf)) == 0 ||
                     (n > 0 && strbuf_add(&seen, buf, (size_t) n) < 0));
        assert_non_null(memmem(seen.data, seen.size, "\1output", 7));
        assert_int_equal(memmem(seen.data, seen.size, "\3RESULT", 7) != NULL, answered);
        assert_int_equal(memmem(seen.data, seen.size, "\3LOST", 5) == NULL, answered);
        close(front[0]);
        UNTIL(l, joined.done);
        end_done(server);
    }
}

/* ---- splices ---- */

static void splice_done(void *ctx, int error, const char *why, uint64_t sent, uint64_t received)
{
    bridge_done(ctx, error, why);
}

static void a_splice_passes_both_ways_and_ends(void **state)
{
    static char block[65536], buf[65536];
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct joined joined = {0};
    int a[2], b[2];
    bool never = false;
    make_pair(a);
    make_pair(b);
    splice_new(l, duplex_new(l, a[1], NULL, "early ", 6), duplex_new(l, b[1], NULL, "", 0), 5000,
               splice_done, &joined);
    assert_int_equal(write(a[0], "hello", 5), 5);
    size_t got = 0;
    ssize_t n;
    UNTIL(l, (n = read(b[0], buf + got, sizeof buf - got), got += n > 0 ? (size_t) n : 0) == 11);
    assert_memory_equal(buf, "early hello", 11);
    /* Nobody reads: what is sent stays with the sender beyond a bounded amount. */
    size_t sent = 0;
    for (int i = 0; i < 2000; i++) {
        n = write(a[0], block, sizeof block);
        sent += n > 0 ? (size_t) n : 0;
        (void) loop_run_until(l, &never, n > 0 ? 1 : 2);
        if (n < 0 && i > 100) {
            break;
        }
    }
    assert_true(sent < 8 * DUPLEX_HIGH);
    for (got = 0; got < sent;) {
        n = read(b[0], buf, sizeof buf);
        got += n > 0 ? (size_t) n : 0;
        (void) loop_run_until(l, &never, 1);
    }
    shutdown(a[0], SHUT_WR);
    UNTIL(l, read(b[0], buf, sizeof buf) == 0);
    assert_int_equal(write(b[0], "bye", 3), 3);
    close(b[0]);
    UNTIL(l, (n = read(a[0], buf, sizeof buf)) > 0);
    assert_memory_equal(buf, "bye", 3);
    UNTIL(l, joined.done);
    assert_int_equal(joined.error, 0);
    close(a[0]);
}

/* ---- upgrades ---- */

struct upgrade {
    struct http_server *server;
    struct duplex *at_server, *at_client;
    struct strbuf server_got, client_got;
    int status, error;
    bool done, eof, failed, refuse;
};

static void server_data(void *ctx, const char *p, size_t size)
{
    struct upgrade *u = ctx;
    strbuf_add(&u->server_got, p, size);
    duplex_write(u->at_server, p, size);
}

static void client_data(void *ctx, const char *p, size_t size)
{
    struct upgrade *u = ctx;
    strbuf_add(&u->client_got, p, size);
}

static void any_eof(void *ctx)
{
    ((struct upgrade *) ctx)->eof = true;
}

static void any_failed(void *ctx, int error, const char *why)
{
    ((struct upgrade *) ctx)->failed = true;
}

static const struct duplex_ops server_ops = {
    .data = server_data, .eof = any_eof, .failed = any_failed};
static const struct duplex_ops client_ops = {
    .data = client_data, .eof = any_eof, .failed = any_failed};

static void handle(void *ctx, struct http_exchange *x)
{
    struct upgrade *u = ctx;
    if (u->refuse || !http_wants_upgrade(x, "Test/1")) {
        http_respond(x, 418, "text/plain", "no", 2);
        return;
    }
    http_set_header(x, "X-Extra", "yes");
    u->at_server = http_upgrade(x, "test/1");
    if (!u->at_server) {
        http_respond(x, 400, "text/plain", "impossible", 10);
        return;
    }
    duplex_write(u->at_server, "first ", 6);
    duplex_start(u->at_server, &server_ops, u);
}

static void connected(void *ctx, const struct http_connected *r)
{
    struct upgrade *u = ctx;
    u->done = true;
    u->status = r->result.status;
    u->error = r->result.error;
    u->at_client = r->stream;
    if (r->stream) {
        assert_string_equal(http1_header(r->head, "x-extra"), "yes");
        duplex_start(r->stream, &client_ops, u);
    }
}

static int serve(struct loop *l, struct upgrade *u)
{
    int fd;
    *u = (struct upgrade){.server_got = STRBUF_INIT, .client_got = STRBUF_INIT};
    u->server = http_server_new(l, NULL, handle, u);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    assert_int_equal(http_server_add_listener(u->server, fd, NULL), 0);
    return sock_local_port(fd);
}

static void upgrade_done(struct upgrade *u)
{
    duplex_free(u->at_server);
    duplex_free(u->at_client);
    http_server_free(u->server);
    strbuf_done(&u->server_got);
    strbuf_done(&u->client_got);
}

static struct http_client *client_of(struct loop *l, int port)
{
    struct http_client *c = NULL;
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", port);
    struct http_client_config cfg = {.url = url};
    assert_int_equal(http_client_new(l, &cfg, &c, NULL), 0);
    return c;
}

static void both_sides_upgrade(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct upgrade u;
    struct http_client *c = client_of(l, serve(l, &u));
    http_connect(c, "POST", "/x", "Test/1", "X-A: b\r\n", connected, &u);
    UNTIL(l, u.done);
    assert_int_equal(u.status, 101);
    duplex_write(u.at_client, "hello", 5);
    UNTIL(l, u.client_got.size == 11);
    assert_string_equal(u.client_got.data, "first hello");
    assert_int_equal(http_server_stats(u.server).conns, 1);
    duplex_end(u.at_client);
    UNTIL(l, u.eof);
    u.at_server = duplex_free(u.at_server);
    assert_int_equal(http_server_stats(u.server).conns, 0);
    http_client_free(c);
    upgrade_done(&u);
}

static void a_refusal_is_an_answer(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct upgrade u;
    struct http_client *c = client_of(l, serve(l, &u));
    u.refuse = true;
    http_connect(c, "GET", "/x", "Test/1", "", connected, &u);
    UNTIL(l, u.done);
    assert_int_equal(u.status, 418);
    assert_null(u.at_client);
    http_client_free(c);
    upgrade_done(&u);
}

/* A connection, raw; the answer's first bytes, and what the upgraded side got. */
static void raw(struct loop *l, int port, const char *request, struct strbuf *ret)
{
    int fd;
    char buf[4096];
    ssize_t n;
    assert_int_equal(sock_connect_tcp("127.0.0.1", (uint16_t) port, &fd, NULL), 0);
    UNTIL(l, write(fd, request, strlen(request)) > 0);
    for (int quiet = 0; quiet < 100;) {
        bool never = false;
        (void) loop_run_until(l, &never, 1);
        n = read(fd, buf, sizeof buf);
        quiet = n > 0 ? 0 : quiet + 1;
        if (n > 0) {
            strbuf_add(ret, buf, (size_t) n);
        }
    }
    close(fd);
}

#define HEAD "Host: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: test/1\r\n"

static void requests_that_cannot_upgrade_are_answered(void **state)
{
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HEAD "\r\nearly", "HTTP/1.1 101 "},
        {"POST / HTTP/1.1\r\n" HEAD "Content-Length: 0\r\n\r\nearly", "HTTP/1.1 101 "},
        {"POST / HTTP/1.1\r\n" HEAD "Content-Length: 1\r\n\r\nx", "HTTP/1.1 400 "},
        {"GET / HTTP/1.0\r\n" HEAD "\r\n", "HTTP/1.1 400 "},
        {"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: test/1\r\n\r\n", "HTTP/1.1 418 "},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: test/10\r\n\r\n",
         "HTTP/1.1 418 "},
        {"GET / HTTP/1.1\r\n" HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
         "HTTP/1.1 400 "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(loop_free) struct loop *l = loop_new();
        CLEANUP_STRBUF struct strbuf answer = STRBUF_INIT;
        struct upgrade u;
        raw(l, serve(l, &u), cases[i].request, &answer);
        assert_memory_equal(answer.data, cases[i].answer, strlen(cases[i].answer));
        if (str_has_prefix(cases[i].answer, "HTTP/1.1 101")) {
            assert_string_equal(u.server_got.data, "early");
            assert_true(str_has_suffix(answer.data, "\r\n\r\nfirst early"));
        } else {
            assert_null(u.at_server);
        }
        upgrade_done(&u);
    }
}

static void a_server_that_is_freed_breaks_what_it_has_upgraded(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct upgrade u;
    struct http_client *c = client_of(l, serve(l, &u));
    http_connect(c, "GET", "/x", "test/1", "", connected, &u);
    UNTIL(l, u.done && u.at_server);
    u.server = http_server_free(u.server);
    UNTIL(l, u.failed);
    http_client_free(c);
    upgrade_done(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifty_streams_go_both_ways_at_once),
        cmocka_unit_test(one_direction_ends_alone),
        cmocka_unit_test(a_reset_ends_one_stream_only),
        cmocka_unit_test(a_slow_reader_has_bounded_memory),
        cmocka_unit_test(a_flood_of_streams_is_refused),
        cmocka_unit_test(junk_ends_the_connection),
        cmocka_unit_test(channels_are_streams),
        cmocka_unit_test(messages_for_no_channel_end_the_connection),
        cmocka_unit_test(websocket_meets_spdy),
        cmocka_unit_test(a_splice_passes_both_ways_and_ends),
        cmocka_unit_test(both_sides_upgrade),
        cmocka_unit_test(a_refusal_is_an_answer),
        cmocka_unit_test(requests_that_cannot_upgrade_are_answered),
        cmocka_unit_test(a_server_that_is_freed_breaks_what_it_has_upgraded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
