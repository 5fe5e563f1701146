/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls against a server that answers as each test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/grpc/rpc.h"
#include "net/loop/sock.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>

#define FRAME(n, text) "\0\0\0\0" n text

/* ---- the server ---- */

struct script {
    const char *http_status; /* NULL: no answer at all. */
    const char *body;
    size_t body_size;
    const char *grpc_status, *grpc_message; /* Trailers; NULL: none. */
    bool trailers_only;                     /* All in the header. */
    bool reset, go_away, garbage, hang_up;
};

struct server {
    struct loop *loop;
    int listen_fd, fd;
    struct loop_fd *listen_watch, *watch;
    nghttp2_session *session;
    const struct script *script;
    size_t body_sent;
    unsigned requests, resets, pings, ends;
    char path[64], seen_fields[512];
    struct strbuf received;
};

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *) (uintptr_t) name, (uint8_t *) (uintptr_t) value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static size_t trailers(const struct script *s, nghttp2_nv *out)
{
    size_t n = 0;
    if (s->grpc_status) {
        out[n++] = nv("grpc-status", s->grpc_status);
    }
    if (s->grpc_message) {
        out[n++] = nv("grpc-message", s->grpc_message);
    }
    return n;
}

static ssize_t server_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct server *s = ctx;
    const struct script *sc = s->script;
    size_t n = MIN(size, sc->body_size - s->body_sent);
    memcpy(buf, sc->body + s->body_sent, n);
    s->body_sent += n;
    if (s->body_sent == sc->body_size) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        nghttp2_nv fields[2];
        size_t n_fields = trailers(sc, fields);
        if (n_fields) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(session, id, fields, n_fields);
        }
    }
    return (ssize_t) n;
}

static void server_respond(struct server *s, int32_t id)
{
    const struct script *sc = s->script;
    nghttp2_nv fields[4] = {nv(":status", sc->http_status ? sc->http_status : "")};
    size_t n = 1;
    if (sc->go_away) {
        nghttp2_submit_goaway(s->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_ENHANCE_YOUR_CALM, NULL,
                              0);
    } else if (sc->reset) {
        nghttp2_submit_rst_stream(s->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    } else if (sc->trailers_only) {
        n += trailers(sc, fields + 1);
        nghttp2_submit_response(s->session, id, fields, n, NULL);
    } else if (sc->http_status) {
        nghttp2_data_provider body = {.read_callback = server_body};
        nghttp2_submit_response(s->session, id, fields, n, &body);
    }
}

static int server_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                         void *ctx)
{
    struct server *s = ctx;
    size_t used = strlen(s->seen_fields);
    snprintf(s->seen_fields + used, sizeof s->seen_fields - used, "%s=%s\n", name, value);
    return 0;
}

static int server_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p,
                       size_t size, void *ctx)
{
    struct server *s = ctx;
    strbuf_add(&s->received, p, size);
    return 0;
}

static int server_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct server *s = ctx;
    s->ends += frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
    if (frame->hd.type == NGHTTP2_DATA && !s->requests) {
        s->requests++;
        server_respond(s, frame->hd.stream_id);
    }
    s->resets += frame->hd.type == NGHTTP2_RST_STREAM;
    return 0;
}

static void server_flush(struct server *s)
{
    const uint8_t *p;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(s->session, &p)) > 0) {
        assert_int_equal(send(s->fd, p, (size_t) n, MSG_NOSIGNAL), n);
    }
}

static void server_hang_up(struct server *s)
{
    s->watch = loop_fd_free(s->watch);
    s->fd = fd_close(s->fd);
}

static void server_read(void *ctx, unsigned events)
{
    struct server *s = ctx;
    uint8_t buf[65536];
    ssize_t n = recv(s->fd, buf, sizeof buf, 0);
    if (n <= 0 || nghttp2_session_mem_recv(s->session, buf, (size_t) n) < 0) {
        server_hang_up(s);
        return;
    }
    server_flush(s);
    if (s->requests && s->script->garbage) {
        send(s->fd, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10, MSG_NOSIGNAL);
    }
    if (s->requests && s->script->hang_up) {
        server_hang_up(s);
    }
}

static void server_accept(void *ctx, unsigned events)
{
    struct server *s = ctx;
    s->fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(s->fd >= 0);
    nghttp2_session_callbacks *cb;
    nghttp2_session_callbacks_new(&cb);
    nghttp2_session_callbacks_set_on_header_callback(cb, server_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, server_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, server_frame);
    nghttp2_session_server_new(&s->session, cb, s);
    nghttp2_session_callbacks_del(cb);
    nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, NULL, 0);
    s->watch = loop_fd_new(s->loop, s->fd, LOOP_READ, server_read, s);
    server_flush(s);
}

/* ---- the client ---- */

struct client {
    struct loop *loop;
    struct server server;
    struct rpc *rpc;
    struct rpc_call *call;
    bool up, down, finished;
    bool free_in_callback;
    unsigned n_ended, n_messages;
    char messages[256];
    struct rpc_result result; /* Strings below. */
    char text[256], message[64];
    char down_reason[256];
};

static void on_up(void *ctx)
{
    struct client *c = ctx;
    c->up = true;
}

static void on_down(void *ctx, const char *reason)
{
    struct client *c = ctx;
    assert_false(c->down);
    c->down = c->finished = true;
    snprintf(c->down_reason, sizeof c->down_reason, "%s", reason);
    c->rpc = rpc_free(c->rpc);
}

static void on_ended(void *ctx, const struct rpc_result *r)
{
    struct client *c = ctx;
    c->n_ended++;
    c->call = NULL;
    c->result = *r;
    snprintf(c->text, sizeof c->text, "%s", r->text);
    snprintf(c->message, sizeof c->message, "%.*s", (int) r->size, r->message ? r->message : "");
    c->finished = true;
    if (c->free_in_callback) {
        c->rpc = rpc_free(c->rpc);
    }
}

static void on_message(void *ctx, const char *p, size_t size)
{
    struct client *c = ctx;
    size_t used = strlen(c->messages);
    c->n_messages++;
    snprintf(c->messages + used, sizeof c->messages - used, "[%.*s]", (int) size, p);
    if (c->free_in_callback) {
        c->rpc = rpc_free(c->rpc);
        c->finished = true;
    }
}

static int setup(void **state)
{
    struct client *c = NEW(struct client);
    c->loop = loop_new();
    struct server *s = &c->server;
    s->loop = c->loop;
    s->fd = -1;
    s->received = STRBUF_INIT;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &s->listen_fd, NULL), 0);
    s->listen_watch = loop_fd_new(s->loop, s->listen_fd, LOOP_READ, server_accept, s);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    struct client *c = *state;
    struct server *s = &c->server;
    rpc_free(c->rpc);
    nghttp2_session_del(s->session);
    server_hang_up(s);
    loop_fd_free(s->listen_watch);
    fd_close(s->listen_fd);
    strbuf_done(&s->received);
    loop_free(c->loop);
    free(c);
    return 0;
}

static void connect_to(struct client *c, const struct script *script)
{
    static const struct h2_ops ops = {on_up, on_down};
    c->server.script = script;
    struct h2_address a = {.address = "127.0.0.1",
                           .port = (uint16_t) sock_local_port(c->server.listen_fd),
                           .name = "127.0.0.1"};
    assert_int_equal(rpc_connect(c->loop, &a, &ops, c, &c->rpc, NULL), 0);
    assert_int_equal(loop_run_until(c->loop, &c->up, 5000), 0);
}

static void unary(struct client *c, const struct script *script, uint64_t timeout_ms)
{
    connect_to(c, script);
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "hello");
    c->call = rpc_begin(c->rpc, "/a.B/C", &b, timeout_ms, 100, on_ended, c);
    assert_int_equal(loop_run_until(c->loop, &c->finished, 5000), 0);
}

static void stream(struct client *c, const struct script *script)
{
    static const struct rpc_stream_ops ops = {on_message, on_ended};
    connect_to(c, script);
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "one");
    c->call = rpc_stream(c->rpc, "/a.B/S", &b, 100, &ops, c);
    assert_int_equal(loop_run_until(c->loop, &c->finished, 5000), 0);
}

#define BODY(literal) .body = (literal), .body_size = sizeof(literal) - 1

static void call_gets_its_answer(void **state)
{
    struct client *c = *state;
    static const struct script s = {
        .http_status = "200", BODY(FRAME("\x05", "world")), .grpc_status = "0"};
    unary(c, &s, 3000);
    assert_int_equal(c->n_ended, 1);
    assert_int_equal(c->result.status, GRPC_OK);
    assert_string_equal(c->message, "world");
    assert_int_equal(c->server.received.size, 10);
    assert_memory_equal(c->server.received.data, "\0\0\0\0\5hello", 10);
    static const char *const expected[] = {":method=POST\n", ":path=/a.B/C\n", "te=trailers\n",
                                           "content-type=application/grpc\n",
                                           "grpc-timeout=3000m\n"};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_non_null(strstr(c->server.seen_fields, expected[i]));
    }
}

static void errors_carry_status_and_text(void **state)
{
    struct client *c = *state;
    static const struct script s = {.http_status = "200",
                                    .trailers_only = true,
                                    .grpc_status = "14",
                                    .grpc_message = "etcdserver: no%20leader"};
    unary(c, &s, 3000);
    assert_int_equal(c->result.status, GRPC_UNAVAILABLE);
    assert_string_equal(c->text, "etcdserver: no leader");
    assert_null(c->result.message);
}

static void http_errors_are_statuses(void **state)
{
    struct client *c = *state;
    static const struct script s = {.http_status = "503", BODY("<html>out of order</html>")};
    unary(c, &s, 3000);
    assert_int_equal(c->result.status, GRPC_UNAVAILABLE);
    assert_string_equal(c->text, "HTTP status 503");
}

static void answers_out_of_form_are_errors(void **state)
{
    struct client *c = *state;
    static const struct script no_message = {.http_status = "200", BODY(""), .grpc_status = "0"};
    static const struct script cut_off = {
        .http_status = "200", BODY(FRAME("\x05", "wor")), .grpc_status = "0"};
    static const struct script two = {
        .http_status = "200", BODY(FRAME("\1", "a") FRAME("\1", "b")), .grpc_status = "0"};
    static const struct script compressed = {
        .http_status = "200", BODY("\1\0\0\0\1x"), .grpc_status = "0"};
    static const struct script large = {
        .http_status = "200", BODY("\0\0\0\0\x65"), .grpc_status = "0"};
    static const struct script no_status = {.http_status = "200", BODY(FRAME("\1", "a"))};
    static const struct script odd_status = {
        .http_status = "200", BODY(FRAME("\1", "a")), .grpc_status = "seven"};
    static const struct script reset = {.reset = true};
    static const struct {
        const struct script *script;
        enum grpc_status status;
    } cases[] = {
        {&no_message, GRPC_INTERNAL},
        {&cut_off, GRPC_INTERNAL},
        {&two, GRPC_INTERNAL},
        {&compressed, GRPC_INTERNAL},
        {&large, GRPC_RESOURCE_EXHAUSTED},
        {&no_status, GRPC_UNAVAILABLE},
        {&odd_status, GRPC_UNKNOWN},
        {&reset, GRPC_UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (i) {
            teardown(state);
            setup(state);
            c = *state;
        }
        unary(c, cases[i].script, 3000);
        assert_int_equal(c->n_ended, 1);
        assert_int_equal(c->result.status, cases[i].status);
        assert_int_equal(c->result.too_large, cases[i].script == &large);
        assert_true(c->text[0] || cases[i].script == &odd_status);
        assert_null(c->result.message);
        assert_false(c->down);
    }
}

static void call_without_answer_times_out_and_is_reset(void **state)
{
    struct client *c = *state;
    static const struct script s = {0};
    unary(c, &s, 50);
    assert_int_equal(c->result.status, GRPC_DEADLINE_EXCEEDED);
    for (int i = 0; i < 100 && !c->server.resets; i++) {
        bool never = false;
        loop_run_until(c->loop, &never, 10);
    }
    assert_int_equal(c->server.resets, 1);
    assert_int_equal(c->n_ended, 1);
}

static void broken_connections_are_down_once(void **state)
{
    static const struct script cases[] = {{.go_away = true}, {.garbage = true}, {.hang_up = true}};
    struct client *c = *state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (i) {
            teardown(state);
            setup(state);
            c = *state;
        }
        unary(c, &cases[i], 3000);
        assert_true(c->down);
        assert_int_equal(c->n_ended, 0);
        assert_non_null(strstr(c->down_reason, "127.0.0.1:"));
    }
}

static void stream_gets_each_message(void **state)
{
    struct client *c = *state;
    static const struct script s = {.http_status = "200",
                                    BODY(FRAME("\1", "a") FRAME("\0", "") FRAME("\2", "bc")),
                                    .grpc_status = "11",
                                    .grpc_message = "over"};
    stream(c, &s);
    assert_string_equal(c->messages, "[a][][bc]");
    assert_int_equal(c->n_ended, 1);
    assert_int_equal(c->result.status, GRPC_OUT_OF_RANGE);
    assert_string_equal(c->text, "over");
    assert_null(strstr(c->server.seen_fields, "grpc-timeout"));
    assert_non_null(strstr(c->server.seen_fields, "hasleader=true\n"));
}

/* A server may end a stream whose client has ended its side; a call has nothing more to say. */
static void the_clients_side_of_a_stream_stays_open(void **state)
{
    struct client *c = *state;
    static const struct script silent = {0};
    static const struct rpc_stream_ops ops = {on_message, on_ended};
    bool never = false;
    for (int is_stream = 1; is_stream >= 0; is_stream--) {
        struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "one");
        connect_to(c, &silent);
        c->call = is_stream ? rpc_stream(c->rpc, "/a.B/S", &b, 100, &ops, c)
                            : rpc_begin(c->rpc, "/a.B/C", &b, 5000, 100, on_ended, c);
        while (!c->server.requests) {
            loop_run_until(c->loop, &never, 5);
        }
        assert_int_equal(c->server.ends, !is_stream);
        c->call = rpc_cancel(c->call);
        teardown(state);
        setup(state);
        c = *state;
    }
}

static void all_may_be_freed_in_a_callback(void **state)
{
    struct client *c = *state;
    static const struct script s = {
        .http_status = "200", BODY(FRAME("\1", "a") FRAME("\1", "b")), .grpc_status = "0"};
    c->free_in_callback = true;
    stream(c, &s);
    assert_int_equal(c->n_messages, 1);
    assert_int_equal(c->n_ended, 0);
    teardown(state);
    setup(state);
    c = *state;
    static const struct script one = {
        .http_status = "200", BODY(FRAME("\1", "a")), .grpc_status = "0"};
    c->free_in_callback = true;
    unary(c, &one, 3000);
    assert_int_equal(c->n_ended, 1);
}

static void cancelled_call_is_never_heard_of(void **state)
{
    struct client *c = *state;
    static const struct script s = {
        .http_status = "200", BODY(FRAME("\1", "a")), .grpc_status = "0"};
    connect_to(c, &s);
    struct rpc_call *calls[3];
    for (int i = 0; i < 3; i++) {
        struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "x");
        calls[i] = rpc_begin(c->rpc, "/a.B/C", &b, 3000, 100, on_ended, c);
    }
    rpc_cancel(calls[0]);
    rpc_cancel(calls[2]);
    assert_int_equal(loop_run_until(c->loop, &c->finished, 5000), 0);
    assert_int_equal(c->n_ended, 1);
    assert_string_equal(c->message, "a");
    assert_int_equal(c->server.received.size, 6);
}

static void refused_connection_is_down(void **state)
{
    struct client *c = *state;
    static const struct h2_ops ops = {on_up, on_down};
    int port = sock_local_port(c->server.listen_fd);
    c->server.listen_watch = loop_fd_free(c->server.listen_watch);
    c->server.listen_fd = fd_close(c->server.listen_fd);
    struct err e = {0};
    struct h2_address a = {.address = "127.0.0.1", .port = (uint16_t) port, .name = "127.0.0.1"};
    if (rpc_connect(c->loop, &a, &ops, c, &c->rpc, &e) == 0) {
        assert_int_equal(loop_run_until(c->loop, &c->finished, 5000), 0);
        assert_true(c->down);
        assert_non_null(strstr(c->down_reason, "Connection refused"));
    } else {
        assert_non_null(strstr(e.text, "Connection refused"));
    }
    assert_false(c->up);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(call_gets_its_answer),
        T(errors_carry_status_and_text),
        T(http_errors_are_statuses),
        T(answers_out_of_form_are_errors),
        T(call_without_answer_times_out_and_is_reset),
        T(broken_connections_are_down_once),
        T(stream_gets_each_message),
        T(the_clients_side_of_a_stream_stays_open),
        T(all_may_be_freed_in_a_callback),
        T(cancelled_call_is_never_heard_of),
        T(refused_connection_is_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
