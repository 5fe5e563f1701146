/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "http_bench.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct got {
    bool done;
    unsigned calls;
    int error, status;
    char *text, *error_text, *type;
    struct strbuf data;
    unsigned opened;
    struct http_client *free_client; /* To be freed by the callback. */
    struct http_call *cancel;        /* To be cancelled by it. */
};

static void got_result(void *ctx, const struct http_result *r)
{
    struct got *g = ctx;
    g->done = true;
    g->calls++;
    g->error = r->error;
    g->status = r->status;
    free(g->text);
    free(g->error_text);
    free(g->type);
    g->text = xstrdup(r->body);
    assert_int_equal(strlen(r->body), r->size);
    g->error_text = xstrdup(r->error_text);
    g->type = xstrdup(r->content_type);
    http_client_free(TAKE(g->free_client));
}

static void got_data(void *ctx, const char *p, size_t size)
{
    struct got *g = ctx;
    strbuf_add(&g->data, p, size);
    if (g->cancel) {
        http_call_cancel(TAKE(g->cancel));
    }
    http_client_free(TAKE(g->free_client));
}

static void got_opened(void *ctx)
{
    ((struct got *) ctx)->opened++;
}

static const struct http_stream_ops stream_ops = {got_opened, got_data, got_result};

#define GOT                 \
    {                       \
        .data = STRBUF_INIT \
    }

static void got_done(struct got *g)
{
    free(g->text);
    free(g->error_text);
    free(g->type);
    strbuf_done(&g->data);
}

static struct http_client *client_with(struct bench *b, struct http_client_config cfg)
{
    char url[64];
    struct http_client *c;
    struct err e = {0};
    snprintf(url, sizeof url, "http://localhost:%d/", b->port);
    cfg.url = cfg.url ? cfg.url : url;
    if (http_client_new(b->loop, &cfg, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

static struct http_client *client(struct bench *b)
{
    return client_with(b, (struct http_client_config){0});
}

static void get(struct bench *b, struct http_client *c, const char *path, struct got *g)
{
    g->done = false;
    http_call(c, "GET", path, NULL, NULL, NULL, 0, got_result, g);
    WAIT_FLAG(b, g->done);
}

static void calls_bring_responses(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client_with(
        b, (struct http_client_config){.bearer_token = "secret", .user_agent = "agent/1"});
    struct got g = GOT;
    get(b, c, "/x?q=%C3%A9", &g);
    assert_int_equal(g.error, 0);
    assert_int_equal(g.status, 200);
    assert_string_equal(g.text, "GET /x q=\xc3\xa9 []");
    assert_string_equal(g.type, "text/plain");
    assert_string_equal(g.error_text, "");
    char first_peer[32];
    memcpy(first_peer, b->last_peer, sizeof first_peer);
    get(b, c, "/headers", &g);
    CLEANUP_FREE char *expect = xasprintf("Bearer secret|agent/1|localhost:%d", b->port);
    assert_string_equal(g.text, expect);
    get(b, c, "/error", &g);
    assert_int_equal(g.status, 403);
    assert_string_equal(g.text, "no");
    get(b, c, "/none", &g);
    assert_int_equal(g.status, 204);
    assert_string_equal(g.text, "");
    assert_string_equal(g.type, "");
    g.done = false;
    http_call(c, "POST", "/y", "application/json", "text/plain", "body", 4, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_string_equal(g.text, "POST /y q=- [body]");
    g.done = false;
    http_call(c, "HEAD", "/y", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.status, 200);
    assert_string_equal(g.text, "");
    get(b, c, "/again", &g);
    assert_string_equal(b->last_peer, first_peer); /* All on one connection. */
    assert_int_equal(g.calls, 7);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void calls_at_once_share_few_connections(void **state)
{
    enum { CALLS = 100 };
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    static struct got g[CALLS];
    for (int i = 0; i < CALLS; i++) {
        g[i] = (struct got) GOT;
        char path[32];
        snprintf(path, sizeof path, "/%d", i);
        http_call(c, "GET", path, NULL, NULL, NULL, 0, got_result, &g[i]);
        assert_int_equal(g[i].calls, 0);
    }
    for (int i = 0; i < CALLS; i++) {
        WAIT_FLAG(b, g[i].done);
        char expect[32];
        snprintf(expect, sizeof expect, "GET /%d q=- []", i);
        assert_string_equal(g[i].text, expect);
        assert_int_equal(g[i].calls, 1);
        got_done(&g[i]);
    }
    assert_int_equal(b->requests, CALLS);
    http_client_free(c);
    bench_free(b);
}

static void bad_calls_fail_from_the_loop(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    static const char *const paths[] = {"", "x", "/a b", "/a\r\nX: y"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        get(b, c, paths[i], &g);
        assert_int_equal(g.error, -EINVAL);
    }
    g.done = false;
    http_call(c, "GET", "/", "a\r\nb: c", NULL, NULL, 0, got_result, &g);
    assert_false(g.done);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -EINVAL);
    assert_int_equal(b->requests, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void a_server_that_is_not_there_is_an_error(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    b->server = http_server_free(b->server);
    struct got g = GOT;
    get(b, c, "/x", &g);
    assert_int_equal(g.error, -ECONNREFUSED);
    assert_int_equal(g.status, 0);
    CLEANUP_FREE char *where = xasprintf("GET http://localhost:%d/x: connect", b->port);
    assert_non_null(strstr(g.error_text, where));
    assert_non_null(strstr(g.error_text, "Connection refused"));
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void calls_survive_a_restart_of_the_server(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    for (int i = 0; i < 3; i++) {
        get(b, c, "/x", &g);
        assert_int_equal(g.error, 0);
        /* Either the client saw that the kept connection was closed, or it has to find out. */
        http_server_free(b->server);
        bench_serve(b, NULL);
        if (i == 1) {
            bench_run_for(b, 20);
        }
    }
    g.done = false;
    http_call(c, "POST", "/x", NULL, NULL, "x", 1, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void answers_that_do_not_come_time_out(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client_with(b, (struct http_client_config){.response_ms = 50});
    struct got g = GOT;
    get(b, c, "/hold", &g);
    assert_int_equal(g.error, -ETIMEDOUT);
    assert_non_null(strstr(g.error_text, "timed out"));
    http_respond(TAKE(b->held), 200, NULL, "", 0);
    get(b, c, "/x", &g);
    assert_int_equal(g.error, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void responses_over_the_limit_are_refused(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client_with(b, (struct http_client_config){.max_body = 20});
    struct got g = GOT;
    get(b, c, "/123", &g);
    assert_int_equal(g.error, 0);
    get(b, c, "/12345678901234567890", &g);
    assert_int_equal(g.error, -EMSGSIZE);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void calls_can_be_cancelled_at_any_time(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_call_cancel(http_call(c, "GET", "/x", NULL, NULL, NULL, 0, got_result, &g));
    struct http_call *call = http_call(c, "GET", "/hold", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_POINTER(b, b->held);
    http_call_cancel(call);
    bench_run_for(b, 10);
    http_respond(TAKE(b->held), 200, NULL, "", 0);
    /* More than may run at once, then the client goes with all of them. */
    for (int i = 0; i < 40; i++) {
        http_call(c, "GET", "/x", NULL, NULL, NULL, 0, got_result, &g);
        if (i % 10 == 5) {
            bench_run_for(b, 1);
        }
    }
    unsigned calls = g.calls;
    http_client_free(c);
    bench_run_for(b, 20);
    assert_int_equal(g.calls, calls);
    /* From within the callback. */
    g.free_client = client(b);
    g.done = false;
    http_call(g.free_client, "GET", "/x", NULL, NULL, NULL, 0, got_result, &g);
    http_call(g.free_client, "GET", "/hold", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.calls, calls + 1);
    got_done(&g);
    bench_free(b);
}

static bool has_data(void *ctx)
{
    struct got *g = ctx;
    return g->data.size > 0 || g->done;
}

static void streams_deliver_bytes_as_they_come(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_stream(c, "/stream", "application/json", 0, &stream_ops, &g);
    WAIT_POINTER(b, b->stream);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4);
    for (int i = 0; i < 3; i++) {
        http_stream_write(b->stream, one);
        strbuf_reset(&g.data);
        bench_turn(b, has_data, &g);
        assert_string_equal(g.data.data, "one\n");
    }
    assert_int_equal(g.opened, 1);
    /* Calls go on meanwhile. */
    struct got other = GOT;
    get(b, c, "/x", &other);
    assert_int_equal(other.status, 200);
    http_stream_end(TAKE(b->stream));
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, 0);
    assert_int_equal(g.status, 200);
    assert_int_equal(g.calls, 1);
    http_client_free(c);
    got_done(&g);
    got_done(&other);
    bench_free(b);
}

static void streams_that_are_refused_tell_why(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_stream(c, "/error", NULL, 0, &stream_ops, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, 0);
    assert_int_equal(g.status, 403);
    assert_string_equal(g.text, "no");
    assert_int_equal(g.opened, 0);
    assert_int_equal(g.data.size, 0);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void streams_that_break_are_errors(void **state)
{
    struct bench *b = bench_new(NULL);
    struct http_client *c = client(b);
    struct got g = GOT;
    http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
    WAIT_POINTER(b, b->stream);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4);
    http_stream_write(b->stream, one);
    bench_turn(b, has_data, &g);
    b->server = http_server_free(b->server);
    assert_true(b->stream_closed);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -ECONNRESET);
    /* Silence. */
    b->stream = NULL;
    bench_serve(b, NULL);
    g.done = false;
    http_stream(c, "/stream", NULL, 60, &stream_ops, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -ETIMEDOUT);
    WAIT_FLAG(b, b->stream_closed);
    http_client_free(c);
    got_done(&g);
    bench_free(b);
}

static void streams_can_be_cancelled_from_their_data(void **state)
{
    struct bench *b = bench_new(NULL);
    CLEANUP(blob_unref) struct blob *one = blob_new("one\n", 4);
    for (int i = 0; i < 2; i++) {
        struct http_client *c = client(b);
        struct got g = GOT;
        struct http_call *call = http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
        WAIT_POINTER(b, b->stream);
        if (i) {
            g.free_client = c;
        } else {
            g.cancel = call;
        }
        http_stream_write(b->stream, one);
        http_stream_write(b->stream, one);
        WAIT_FLAG(b, b->stream_closed);
        assert_string_equal(g.data.data, "one\n");
        assert_false(g.done);
        if (!i) {
            http_client_free(c);
        }
        got_done(&g);
    }
    bench_free(b);
}

/* A server of one answer, byte for byte. */
struct canned {
    struct bench *b;
    int listen_fd;
    struct loop_fd *watch;
    struct loop_fd *conn_watch;
    int conn_fd;
    const char *answer;
    bool reset;
    bool keeps; /* The connection stays after its first answer, and ends at the next request. */
    unsigned accepted, answered;
};

static void canned_answer(void *ctx, unsigned events)
{
    struct canned *s = ctx;
    char buf[4096];
    ssize_t n = recv(s->conn_fd, buf, sizeof buf, MSG_DONTWAIT);
    (void) n;
    if (!s->keeps || s->answered < s->accepted) {
        send(s->conn_fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
        s->answered++;
        if (s->keeps) {
            return;
        }
    }
    if (s->reset) {
        struct linger now = {.l_onoff = 1};
        setsockopt(s->conn_fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    s->conn_watch = loop_fd_free(s->conn_watch);
    s->conn_fd = fd_close(s->conn_fd);
}

static void canned_accept(void *ctx, unsigned events)
{
    struct canned *s = ctx;
    s->conn_fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s->conn_fd >= 0) {
        s->accepted++;
        s->conn_watch = loop_fd_new(s->b->loop, s->conn_fd, LOOP_READ, canned_answer, s);
    }
}

static void responses_of_other_servers_are_understood(void **state)
{
    static const struct {
        const char *answer;
        int error, status;
        const char *text;
    } table[] = {
        {"HTTP/1.0 200 OK\r\n\r\nuntil the end", 0, 200, "until the end"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 0, 200, ""},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: y\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
         0, 200, "ok"},
        {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
         0, 201, "abc"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore than asked for", 0, 200, "ok"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", -ECONNRESET, 200, "ok"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", -ECONNRESET, 200,
         "ab"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", -EPROTO, 200, "ab"},
        {"HTTP/1.1 200 OK\r\nContent-Le", -ECONNRESET, 0, ""},
        {"", -ECONNRESET, 0, ""},
        {"SSH-2.0-OpenSSH\r\n\r\n", -EPROTO, 0, ""},
        {"HTTP/1.1 200 OK\n\n", -EPROTO, 0, ""},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", -EPROTO, 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", -EPROTO, 0, ""},
    };
    struct bench *b = bench_new(NULL);
    struct canned s = {.b = b, .conn_fd = -1};
    struct err e = {0};
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &s.listen_fd, &e), 0);
    s.watch = loop_fd_new(b->loop, s.listen_fd, LOOP_READ, canned_accept, &s);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d/prefix", sock_local_port(s.listen_fd));
    struct http_client *c = client_with(b, (struct http_client_config){.url = url});
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct got g = GOT;
        s.answer = table[i].answer;
        get(b, c, "/x", &g);
        if (g.error != table[i].error || g.status != table[i].status ||
            !streq(g.text, table[i].text)) {
            fail_msg("%s: %d %s, %d, \"%s\"", table[i].answer, g.error, g.error_text, g.status,
                     g.text);
        }
        assert_int_equal(s.accepted, i + 1); /* Nothing was repeated. */
        got_done(&g);
    }
    /* A body cut by a reset is no end, though no length was announced. */
    struct got g = GOT;
    s.answer = "HTTP/1.1 200 OK\r\n\r\npart";
    s.reset = true;
    get(b, c, "/x", &g);
    assert_true(g.error == -ECONNRESET || streq(g.text, "part"));
    got_done(&g);
    http_client_free(c);
    loop_fd_free(s.watch);
    fd_close(s.listen_fd);
    bench_free(b);
}

/* The server closes a kept connection at the moment at which a call is sent. */
static void a_call_on_a_kept_connection_that_ends_is_repeated_when_it_may(void **state)
{
    struct bench *b = bench_new(NULL);
    struct canned s = {
        .b = b, .answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", .keeps = true};
    struct err e = {0};
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &s.listen_fd, &e), 0);
    s.watch = loop_fd_new(b->loop, s.listen_fd, LOOP_READ, canned_accept, &s);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d", sock_local_port(s.listen_fd));
    struct http_client *c = client_with(b, (struct http_client_config){.url = url});
    struct got g = GOT;
    for (unsigned i = 1; i <= 3; i++) {
        get(b, c, "/x", &g);
        assert_int_equal(g.error, 0);
        assert_string_equal(g.text, "x");
        assert_int_equal(s.accepted, i);
    }
    g.done = false;
    http_call(c, "POST", "/x", NULL, NULL, "x", 1, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_int_equal(g.error, -ECONNRESET);
    assert_int_equal(s.accepted, 3);
    got_done(&g);
    http_client_free(c);
    loop_fd_free(s.watch);
    fd_close(s.listen_fd);
    bench_free(b);
}

static void urls_are_checked(void **state)
{
    static const struct {
        const char *url;
        int r;
        const char *why;
    } table[] = {
        {"http://127.0.0.1", 0, ""},
        {"HTTP://localhost:8080/a/b/", 0, ""},
        {"unix:///run/x.sock", 0, ""},
        {"https://127.0.0.1:8443", 0, ""},
        {"HTTPS://localhost", 0, ""},
        {"127.0.0.1:80", -EINVAL, "not a URL"},
        {"ftp://x", -EINVAL, "not a URL"},
        {"http://", -EINVAL, "not a URL"},
        {"http://:80", -EINVAL, "not a URL"},
        {"http://127.0.0.1:0", -EINVAL, "not a URL"},
        {"http://127.0.0.1:65536", -EINVAL, "not a URL"},
        {"http://127.0.0.1:x", -EINVAL, "not a URL"},
        {"http://[::1]:80", -EINVAL, "not a URL"},
        {"http://u@127.0.0.1", -EINVAL, "not a URL"},
        {"http://127.0.0.1/?q", -EINVAL, "not a URL"},
        {"http://127.0.0.1\r\nX:80", -EINVAL, ""},
        {"unix://x", -EINVAL, "absolute path"},
    };
    struct loop *l = loop_new();
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct http_client_config cfg = {.url = table[i].url};
        struct http_client *c = NULL;
        struct err e = {0};
        int r = http_client_new(l, &cfg, &c, &e);
        if ((r < 0) != (table[i].r < 0) || !strstr(e.text, table[i].why)) {
            fail_msg("%s: %d %s", table[i].url, r, e.text);
        }
        http_client_free(c);
    }
    struct http_client_config cfg = {.url = "http://127.0.0.1", .bearer_token = "a\nb"};
    struct http_client *c = NULL;
    assert_int_equal(http_client_new(l, &cfg, &c, NULL), -EINVAL);
    loop_free(l);
}

static void unix_sockets_work_too(void **state)
{
    char dir[] = "/tmp/tenet-http-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/s", dir), *url = xasprintf("unix://%s", path);
    struct bench *b = bench_new(NULL);
    int fd;
    struct err e = {0};
    assert_int_equal(sock_listen_unix(path, 0600, &fd, &e), 0);
    assert_int_equal(http_server_add_listener(b->server, fd, &e), 0);
    struct http_client *c = client_with(b, (struct http_client_config){.url = url});
    struct got g = GOT;
    get(b, c, "/x", &g);
    assert_string_equal(g.text, "GET /x q=- []");
    assert_string_equal(b->last_peer, "unix");
    http_client_free(c);
    got_done(&g);
    bench_free(b);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    log_set_levels("error", NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_bring_responses),
        cmocka_unit_test(calls_at_once_share_few_connections),
        cmocka_unit_test(bad_calls_fail_from_the_loop),
        cmocka_unit_test(a_server_that_is_not_there_is_an_error),
        cmocka_unit_test(calls_survive_a_restart_of_the_server),
        cmocka_unit_test(answers_that_do_not_come_time_out),
        cmocka_unit_test(responses_over_the_limit_are_refused),
        cmocka_unit_test(calls_can_be_cancelled_at_any_time),
        cmocka_unit_test(streams_deliver_bytes_as_they_come),
        cmocka_unit_test(streams_that_are_refused_tell_why),
        cmocka_unit_test(streams_that_break_are_errors),
        cmocka_unit_test(streams_can_be_cancelled_from_their_data),
        cmocka_unit_test(responses_of_other_servers_are_understood),
        cmocka_unit_test(a_call_on_a_kept_connection_that_ends_is_repeated_when_it_may),
        cmocka_unit_test(urls_are_checked),
        cmocka_unit_test(unix_sockets_work_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
