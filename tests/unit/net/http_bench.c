/* SPDX-License-Identifier: Apache-2.0 */
#include "http_bench.h"

#include "base/timeutil.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/socket.h>

void bench_stream_closed(void *ctx)
{
    struct bench *b = ctx;
    b->stream = NULL;
    b->stream_closed = true;
}

static void handle(void *ctx, struct http_exchange *x)
{
    struct bench *b = ctx;
    size_t size;
    const char *path = http_path(x), *body = http_body(x, &size);
    b->requests++;
    snprintf(b->last_peer, sizeof b->last_peer, "%s", http_peer(x));
    if (streq(path, "/hold")) {
        b->held = x;
    } else if (streq(path, "/stream")) {
        b->stream = x;
        b->stream_closed = false;
        http_stream_begin(x, 200, "application/json", bench_stream_closed, b);
    } else if (streq(path, "/big")) {
        http_respond_blob(x, 200, "application/octet-stream", b->big);
    } else if (streq(path, "/none")) {
        http_respond(x, 204, NULL, "x", 1);
    } else if (streq(path, "/headers")) {
        http_set_header(x, "Warning", "299 - \"w\"");
        http_set_header(x, "Evil", "a\r\nInjected: yes");
        const char *token = http_header(x, "authorization"), *agent = http_header(x, "user-agent");
        const char *cookie = http_header(x, "cookie");
        CLEANUP_FREE char *text =
            xasprintf("%s|%s|%s%s%s", token ? token : "-", agent ? agent : "-",
                      http_header(x, "host"), cookie ? "|" : "", cookie ? cookie : "");
        http_respond(x, 200, "text/plain", text, strlen(text));
    } else if (streq(path, "/cert")) {
        const struct tls_identity *id = http_peer_cert(x);
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        strbuf_addf(&text, "%d %s", http_is_tls(x), id ? id->cn : "-");
        for (size_t i = 0; id && i < id->n_o; i++) {
            strbuf_addf(&text, " %s", id->o[i]);
        }
        http_respond(x, 200, "text/plain", text.data, text.size);
    } else if (streq(path, "/error")) {
        http_respond(x, 403, "text/plain", "no", 2);
    } else {
        const char *q = http_query(x, "q");
        CLEANUP_FREE char *text = xasprintf("%s %s q=%s [%.*s]", http_method(x), path, q ? q : "-",
                                            (int) MIN(size, 1000), body);
        http_respond(x, 200, "text/plain", text, strlen(text));
    }
}

void bench_serve(struct bench *b, const struct http_limits *limits)
{
    struct err e = {0};
    char address[32];
    int fd;
    snprintf(address, sizeof address, "127.0.0.1:%d", b->port);
    if (sock_listen_tcp(address, &fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    b->port = sock_local_port(fd);
    b->server = http_server_new(b->loop, limits, handle, b);
    assert_int_equal(http_server_add_listener_tls(b->server, fd, b->tls, &e), 0);
}

struct bench *bench_new(const struct http_limits *limits)
{
    return bench_new_tls(limits, NULL);
}

struct bench *bench_new_tls(const struct http_limits *limits, struct tls_context *tls)
{
    struct bench *b = NEW(struct bench);
    b->loop = loop_new();
    b->tls = tls;
    bench_serve(b, limits);
    return b;
}

void bench_free(struct bench *b)
{
    http_server_free(b->server);
    if (b->held) {
        http_respond(b->held, 200, NULL, "", 0);
    }
    loop_free(b->loop);
    tls_context_free(b->tls);
    blob_unref(b->big);
    free(b);
}

void bench_run_for(struct bench *b, uint64_t ms)
{
    static const bool never = false;
    loop_run_until(b->loop, &never, ms);
}

void bench_turn(struct bench *b, bool (*condition)(void *), void *ctx)
{
    uint64_t end = time_mono_ms() + PATIENCE_MS;
    while (!condition(ctx)) {
        bench_run_for(b, 2);
        if (time_mono_ms() > end) {
            fail_msg("waited in vain");
        }
    }
}

bool bench_pointer_set(void *p)
{
    return *(void **) p;
}

bool bench_flag_set(void *p)
{
    return *(bool *) p;
}

struct raw raw_connect(struct bench *b)
{
    struct raw r = {.b = b, .in = STRBUF_INIT};
    struct err e = {0};
    if (sock_connect_tcp("127.0.0.1", (uint16_t) b->port, &r.fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return r;
}

void raw_done(struct raw *r)
{
    fd_close(r->fd);
    strbuf_done(&r->in);
}

static void raw_poll(struct raw *r)
{
    char buf[65536];
    for (;;) {
        ssize_t n = recv(r->fd, buf, sizeof buf, MSG_DONTWAIT);
        if (n > 0) {
            strbuf_add(&r->in, buf, (size_t) n);
            continue;
        }
        r->eof = n == 0 || (errno != EAGAIN && errno != EINTR);
        r->reset = r->eof && n < 0;
        return;
    }
}

struct sending {
    struct raw *r;
    const char *p;
    size_t size;
};

static bool sent_all(void *ctx)
{
    struct sending *s = ctx;
    ssize_t n = send(s->r->fd, s->p, s->size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != ENOTCONN) {
        return true; /* The server may have had enough. */
    }
    if (n > 0) {
        s->p += n;
        s->size -= (size_t) n;
    }
    return s->size == 0;
}

void raw_send_n(struct raw *r, const char *p, size_t size)
{
    struct sending s = {r, p, size};
    bench_turn(r->b, sent_all, &s);
}

void raw_send(struct raw *r, const char *text)
{
    raw_send_n(r, text, strlen(text));
}

static bool raw_has(void *ctx)
{
    struct raw *r = ctx;
    raw_poll(r);
    return r->eof || (r->wanted && strstr(strbuf_cstr(&r->in), r->wanted));
}

void raw_expect(struct raw *r, const char *text)
{
    r->wanted = text;
    bench_turn(r->b, raw_has, r);
    if (!strstr(strbuf_cstr(&r->in), text)) {
        fail_msg("\"%s\" is not in \"%s\"", text, strbuf_cstr(&r->in));
    }
}

void raw_expect_end(struct raw *r)
{
    r->wanted = NULL;
    bench_turn(r->b, raw_has, r);
}
