/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of HTTP: a server whose answers the test steers, and a client that sends any bytes, all on
 * one loop.  The tests' helpers fail the test when something does not happen in time. */
#pragma once

#include "net/http/http.h"

#define PATIENCE_MS 20000

/* /hold keeps the exchange in 'held', /stream begins one in 'stream', /big sends 'big', /none is 204,
 * /headers shows what came, /cert whose certificate, /error is 403, all else echoes the request. */
struct bench {
    struct loop *loop;
    struct http_server *server;
    struct tls_context *tls; /* The server's; NULL: plain HTTP. */
    int port;
    unsigned requests, conns_closed;
    struct http_exchange *held;   /* Of /hold. */
    struct http_exchange *stream; /* Of /stream, until it ends. */
    bool stream_closed;
    bool drained;
    struct blob *big;
    char last_peer[32];
};

struct bench *bench_new(const struct http_limits *limits);
/* HTTPS; 'tls' becomes the bench's. */
struct bench *bench_new_tls(const struct http_limits *limits, struct tls_context *tls);
void bench_free(struct bench *b);
/* Starts the server (again), on the same port. */
void bench_serve(struct bench *b, const struct http_limits *limits);
void bench_stream_closed(void *ctx); /* Of /stream. */
void bench_run_for(struct bench *b, uint64_t ms);
/* Runs the loop until the condition holds. */
void bench_turn(struct bench *b, bool (*condition)(void *), void *ctx);
bool bench_pointer_set(void *p);
bool bench_flag_set(void *p);
#define WAIT_POINTER(b, p) bench_turn(b, bench_pointer_set, &(p))
#define WAIT_FLAG(b, f) bench_turn(b, bench_flag_set, &(f))

struct raw {
    struct bench *b;
    int fd;
    struct strbuf in;
    bool eof, reset;
    const char *wanted;
};

struct raw raw_connect(struct bench *b);
void raw_done(struct raw *r);
void raw_send_n(struct raw *r, const char *p, size_t size);
void raw_send(struct raw *r, const char *text);
/* Until 'text' was received, or the end. */
void raw_expect(struct raw *r, const char *text);
void raw_expect_end(struct raw *r);

#define H "Host: t\r\n"
