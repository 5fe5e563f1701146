/* SPDX-License-Identifier: Apache-2.0 */
/* HTTPS on loopback: our server and our client, with certificates made here. */
#include "base/log.h"
#include "base/timeutil.h"
#include "http_bench.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "net/tls/pki.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/socket.h>

#define DAY_MS (24 * 3600000LL)

static char *dir; /* For the files of a server. */
static struct pki_ca *ca, *other_ca;
static int64_t now;

static char *in_dir(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static int set_up(void **state)
{
    char template[] = "/tmp/tenet-tls-XXXXXX";
    dir = xstrdup(mkdtemp(template));
    now = time_wall_ms();
    ca = pki_ca_new(now, now + DAY_MS);
    other_ca = pki_ca_new(now - 1000, now + DAY_MS);
    return 0;
}

static int tear_down(void **state)
{
    pki_ca_free(ca);
    pki_ca_free(other_ca);
    int r = dir_remove(dir, NULL);
    free(dir);
    return r;
}

#define CLEANUP_PAIR __attribute__((cleanup(pki_pair_done)))

static struct pki_pair issue(const struct pki_ca *by, struct pki_request q)
{
    struct pki_pair p;
    struct err e = {0};
    q.cn = q.cn ? q.cn : "test";
    q.from_ms = q.from_ms ? q.from_ms : now - DAY_MS;
    q.until_ms = q.until_ms ? q.until_ms : now + DAY_MS;
    if (pki_issue(by, &q, &p, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return p;
}

static const char *const loopback[] = {"127.0.0.1", "localhost"};
static const struct pki_request for_loopback = {.names = loopback, .n_names = 2};

static void write_file(const char *name, const char *text)
{
    CLEANUP_FREE char *path = in_dir(name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static int server_context(const struct pki_pair *p, const char *client_ca, struct tls_context **ret,
                          struct err *e)
{
    CLEANUP_FREE char *cert = in_dir("s.crt");
    CLEANUP_FREE char *key = in_dir("s.key");
    CLEANUP_FREE char *clients = in_dir("c.crt");
    write_file("s.crt", p->cert);
    write_file("s.key", p->key);
    if (client_ca) {
        write_file("c.crt", client_ca);
    }
    struct tls_server_config cfg = {cert, key, client_ca ? clients : NULL};
    return *ret ? tls_server_reload(*ret, &cfg, e) : tls_server_new(&cfg, ret, e);
}

/* A server whose certificate is as 'q' says; it knows clients by certificates of 'ca'. */
static struct bench *serve(const struct pki_ca *by, struct pki_request q,
                           const struct http_limits *limits)
{
    CLEANUP_PAIR struct pki_pair p = issue(by, q);
    struct tls_context *t = NULL;
    struct err e = {0};
    if (server_context(&p, pki_ca_pem(ca), &t, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return bench_new_tls(limits, t);
}

static struct http_client *client(struct bench *b, const char *host, struct tls_client_config tls)
{
    CLEANUP_FREE char *url = xasprintf("https://%s:%d", host, b->port);
    struct http_client_config cfg = {.url = url, .tls = &tls};
    struct http_client *c;
    struct err e = {0};
    tls.ca = tls.ca || tls.insecure ? tls.ca : pki_ca_pem(ca);
    if (http_client_new(b->loop, &cfg, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

struct got {
    bool done;
    int error, status;
    char *text, *error_text;
    size_t size;
    struct strbuf data;
};
#define GOT                 \
    {                       \
        .data = STRBUF_INIT \
    }
#define CLEANUP_GOT __attribute__((cleanup(got_done)))

static void got_done(struct got *g)
{
    free(g->text);
    free(g->error_text);
    strbuf_done(&g->data);
}

static void got_result(void *ctx, const struct http_result *r)
{
    struct got *g = ctx;
    g->done = true;
    g->error = r->error;
    g->status = r->status;
    free(g->text);
    free(g->error_text);
    g->text = xmemdup(r->body, r->size + 1);
    g->size = r->size;
    g->error_text = xstrdup(r->error_text);
}

static void got_data(void *ctx, const char *p, size_t size)
{
    strbuf_add(&((struct got *) ctx)->data, p, size);
}

static const struct http_stream_ops stream_ops = {NULL, got_data, got_result};

static void call(struct bench *b, struct http_client *c, const char *path, struct got *g)
{
    g->done = false;
    http_call(c, "GET", path, NULL, NULL, NULL, 0, got_result, g);
    WAIT_FLAG(b, g->done);
}

static void requests_and_responses_pass(void **state)
{
    struct bench *b = serve(ca, for_loopback, NULL);
    CLEANUP_GOT struct got g = GOT;
    struct http_client *c = client(b, "localhost", (struct tls_client_config){0});
    call(b, c, "/x?q=1", &g);
    assert_string_equal(g.error_text, "");
    assert_string_equal(g.text, "GET /x q=1 []");
    char peer[32];
    memcpy(peer, b->last_peer, sizeof peer);
    call(b, c, "/error", &g);
    assert_int_equal(g.status, 403);
    assert_string_equal(b->last_peer, peer); /* The connection is kept. */
    call(b, c, "/cert", &g);
    assert_string_equal(g.text, "1 -");
    http_client_free(c);
    bench_free(b);
}

static void large_bodies_pass_both_ways(void **state)
{
    static const struct http_limits limits = {.max_body = 20 << 20};
    struct bench *b = serve(ca, for_loopback, &limits);
    CLEANUP_GOT struct got g = GOT;
    struct http_client *c = client(b, "127.0.0.1", (struct tls_client_config){0});
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (int i = 0; text.size < 8 << 20; i++) {
        strbuf_addf(&text, "%d,", i);
    }
    b->big = blob_new(text.data, text.size);
    call(b, c, "/big", &g);
    assert_string_equal(g.error_text, "");
    assert_int_equal(g.size, text.size);
    assert_memory_equal(g.text, text.data, text.size);
    g.done = false;
    http_call(c, "PUT", "/up", NULL, "text/plain", text.data, text.size, got_result, &g);
    WAIT_FLAG(b, g.done);
    assert_string_equal(g.error_text, "");
    assert_true(str_has_prefix(g.text, "PUT /up q=- [0,1,2,3,"));
    http_client_free(c);
    bench_free(b);
}

struct filled {
    struct got *g;
    size_t size;
};

static bool has_size(void *ctx)
{
    struct filled *f = ctx;
    return f->g->data.size >= f->size || f->g->done;
}

static void streams_deliver_bytes_as_they_come(void **state)
{
    struct bench *b = serve(ca, for_loopback, NULL);
    CLEANUP_GOT struct got g = GOT;
    CLEANUP_STRBUF struct strbuf sent = STRBUF_INIT;
    struct http_client *c = client(b, "127.0.0.1", (struct tls_client_config){0});
    http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
    WAIT_POINTER(b, b->stream);
    /* Small ones by many a record, and large ones by many records each. */
    for (size_t size = 1; size < 2 << 20; size = size * 3 + 1) {
        CLEANUP_FREE char *text = xmalloc(size);
        memset(text, 'a' + (int) (size % 26), size);
        CLEANUP(blob_unref) struct blob *one = blob_new(text, size);
        for (int i = 0; i < 3; i++) {
            strbuf_add(&sent, text, size);
            assert_int_equal(http_stream_write(b->stream, one), 0);
        }
        struct filled f = {&g, sent.size};
        bench_turn(b, has_size, &f);
    }
    http_stream_end(TAKE(b->stream));
    WAIT_FLAG(b, g.done);
    assert_string_equal(g.error_text, "");
    assert_int_equal(g.error, 0);
    assert_int_equal(g.data.size, sent.size);
    assert_memory_equal(g.data.data, sent.data, sent.size);
    /* A client that goes is noticed. */
    struct http_call *going = http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
    WAIT_POINTER(b, b->stream);
    http_call_cancel(going);
    WAIT_FLAG(b, b->stream_closed);
    http_client_free(c);
    bench_free(b);
}

static void a_stream_whose_client_does_not_read_is_cut(void **state)
{
    static const struct http_limits limits = {.max_stream_queue = 1 << 20};
    struct bench *b = serve(ca, for_loopback, &limits);
    struct loop *elsewhere = loop_new(); /* Which stops running. */
    CLEANUP_FREE char *url = xasprintf("https://127.0.0.1:%d", b->port);
    struct tls_client_config tls = {.ca = pki_ca_pem(ca)};
    struct http_client_config cfg = {.url = url, .tls = &tls};
    CLEANUP_GOT struct got g = GOT;
    struct http_client *c;
    assert_int_equal(http_client_new(elsewhere, &cfg, &c, NULL), 0);
    http_stream(c, "/stream", NULL, 0, &stream_ops, &g);
    while (!b->stream) {
        static const bool never = false;
        bench_run_for(b, 2);
        loop_run_until(elsewhere, &never, 2);
    }
    CLEANUP_FREE char *text = xcalloc(1, 100000);
    CLEANUP(blob_unref) struct blob *one = blob_new(text, 100000);
    int r = 0;
    for (int i = 0; i < 10000 && r == 0; i++) {
        r = http_stream_write(b->stream, one);
        bench_run_for(b, 1);
    }
    assert_int_equal(r, -ENOBUFS);
    WAIT_FLAG(b, b->stream_closed);
    http_client_free(c);
    loop_free(elsewhere);
    bench_free(b);
}

/* The server's certificate and name, and what the client says. */
static void bad_server_certificates_are_refused(void **state)
{
    static const char *const elsewhere[] = {"api.example.org", "192.0.2.1"};
    const struct {
        const struct pki_ca *by;
        struct pki_request q;
        const char *host, *why;
    } cases[] = {
        {ca,
         {.names = loopback, .n_names = 2, .from_ms = now - 2 * DAY_MS, .until_ms = now - 60000},
         "127.0.0.1",
         "TLS: the server's certificate expired at 20"},
        {ca,
         {.names = loopback, .n_names = 2, .from_ms = now + 60000},
         "127.0.0.1",
         "TLS: the server's certificate is not valid before 20"},
        {other_ca, for_loopback, "127.0.0.1",
         "TLS: the server's certificate is signed by an unknown authority"},
        {ca,
         {.names = elsewhere, .n_names = 2},
         "127.0.0.1",
         "TLS: the server's certificate is for api.example.org, 192.0.2.1, not for 127.0.0.1"},
        {ca, {.names = elsewhere, .n_names = 2}, "localhost", "not for localhost"},
        {ca, {.cn = "127.0.0.1"}, "127.0.0.1", "TLS: the server's certificate is not valid: "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench *b = serve(cases[i].by, cases[i].q, NULL);
        CLEANUP_GOT struct got g = GOT;
        struct http_client *c = client(b, cases[i].host, (struct tls_client_config){0});
        call(b, c, "/x", &g);
        if (g.error != -EKEYREJECTED || !strstr(g.error_text, cases[i].why)) {
            fail_msg("%zu: %d %s", i, g.error, g.error_text);
        }
        http_client_free(c);
        /* Who does not want to know is served. */
        c = client(b, cases[i].host, (struct tls_client_config){.insecure = true});
        call(b, c, "/x", &g);
        assert_int_equal(g.status, 200);
        http_client_free(c);
        assert_int_equal(b->requests, 1);
        bench_free(b);
    }
    /* Another name may be told to be expected. */
    struct bench *b = serve(ca, (struct pki_request){.names = elsewhere, .n_names = 2}, NULL);
    for (int i = 0; i < 2; i++) {
        CLEANUP_GOT struct got g = GOT;
        struct http_client *c =
            client(b, "127.0.0.1", (struct tls_client_config){.server_name = elsewhere[i]});
        call(b, c, "/x", &g);
        assert_string_equal(g.error_text, "");
        http_client_free(c);
    }
    bench_free(b);
}

static void clients_are_known_by_their_certificates(void **state)
{
    static const char *const groups[] = {"system:masters", "gr\xc3\xbcn"};
    struct bench *b = serve(ca, for_loopback, NULL);
    CLEANUP_PAIR struct pki_pair p =
        issue(ca, (struct pki_request){.cn = "system:admin", .o = groups, .n_o = 2});
    CLEANUP_GOT struct got g = GOT;
    struct http_client *c =
        client(b, "127.0.0.1", (struct tls_client_config){.cert = p.cert, .key = p.key});
    for (int i = 0; i < 2; i++) {
        call(b, c, "/cert", &g);
        assert_string_equal(g.error_text, "");
        assert_string_equal(g.text, "1 system:admin system:masters gr\xc3\xbcn");
    }
    /* The exchange keeps it when the connection is gone. */
    g.done = false;
    struct http_call *going = http_call(c, "GET", "/hold", NULL, NULL, NULL, 0, got_result, &g);
    WAIT_POINTER(b, b->held);
    http_call_cancel(going);
    bench_run_for(b, 20);
    assert_string_equal(http_peer_cert(b->held)->cn, "system:admin");
    http_client_free(c);
    bench_free(b);
}

/* With and without an authority of users beside that of proxies. */
static void a_certificate_of_a_proxy_names_no_user(void **state)
{
    static const char *const groups[] = {"system:masters"};
    CLEANUP_PAIR struct pki_pair own = issue(ca, for_loopback);
    CLEANUP_PAIR struct pki_pair proxy =
        issue(other_ca, (struct pki_request){.cn = "proxy", .o = groups, .n_o = 1});
    CLEANUP_PAIR struct pki_pair user = issue(ca, (struct pki_request){.cn = "jane"});
    CLEANUP_FREE char *cert = in_dir("s.crt"), *key = in_dir("s.key"), *users = in_dir("c.crt");
    char digest[TLS_AUTHORITY_SIZE];
    tls_authority_digest(pki_ca_pem(other_ca), digest);
    write_file("s.crt", own.cert);
    write_file("s.key", own.key);
    write_file("c.crt", pki_ca_pem(ca));
    for (int with_users = 0; with_users < 2; with_users++) {
        const char *const proxies[] = {pki_ca_pem(other_ca), NULL};
        struct tls_server_config cfg = {.cert_file = cert,
                                        .key_file = key,
                                        .client_ca_file = with_users ? users : NULL,
                                        .proxy_cas = proxies};
        struct tls_context *t = NULL;
        assert_int_equal(tls_server_new(&cfg, &t, NULL), 0);
        struct bench *b = bench_new_tls(NULL, t);
        CLEANUP_GOT struct got g = GOT;
        struct http_client *c = client(
            b, "127.0.0.1", (struct tls_client_config){.cert = proxy.cert, .key = proxy.key});
        call(b, c, "/cert", &g);
        assert_string_equal(g.text, "1 -");
        g.done = false;
        struct http_call *going = http_call(c, "GET", "/hold", NULL, NULL, NULL, 0, got_result, &g);
        WAIT_POINTER(b, b->held);
        assert_string_equal(http_peer_proxy(b->held)->cn, "proxy");
        assert_string_equal(http_peer_proxy(b->held)->authority, digest);
        assert_null(http_peer_cert(b->held));
        http_call_cancel(going);
        bench_run_for(b, 20);
        http_client_free(c);
        c = client(b, "127.0.0.1", (struct tls_client_config){.cert = user.cert, .key = user.key});
        call(b, c, "/cert", &g);
        assert_int_equal(g.error, with_users ? 0 : -EKEYREJECTED);
        assert_true(!with_users || streq(g.text, "1 jane"));
        http_client_free(c);
        bench_free(b);
    }
    /* An authority of both would make users of proxies, or the other way round. */
    const char *const both[] = {pki_ca_pem(ca), NULL};
    struct tls_server_config cfg = {
        .cert_file = cert, .key_file = key, .client_ca_file = users, .proxy_cas = both};
    struct tls_context *t = NULL;
    struct err e = {0};
    assert_int_equal(tls_server_new(&cfg, &t, &e), -EINVAL);
    assert_non_null(strstr(e.text, "is also one of users"));
}

static void bad_client_certificates_end_the_connection(void **state)
{
    const struct {
        const struct pki_ca *by;
        struct pki_request q;
        const char *why;
    } cases[] = {
        {ca, {.from_ms = now - 2 * DAY_MS, .until_ms = now - 60000}, "it has expired"},
        {other_ca, {0}, "it is signed by an unknown authority"},
        {ca, for_loopback, "the server refuses our certificate"}, /* A server's. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench *b = serve(ca, for_loopback, NULL);
        CLEANUP_PAIR struct pki_pair p = issue(cases[i].by, cases[i].q);
        CLEANUP_GOT struct got g = GOT;
        struct http_client *c =
            client(b, "127.0.0.1", (struct tls_client_config){.cert = p.cert, .key = p.key});
        call(b, c, "/cert", &g);
        if (g.error != -EKEYREJECTED || !strstr(g.error_text, cases[i].why)) {
            fail_msg("%zu: %d %s", i, g.error, g.error_text);
        }
        assert_int_equal(b->requests, 0);
        http_client_free(c);
        bench_free(b);
    }
}

static void a_plain_client_is_told_so(void **state)
{
    struct bench *b = serve(ca, for_loopback, NULL);
    struct raw r = raw_connect(b);
    raw_send(&r, "GET / HTTP/1.1\r\n" H "\r\n");
    raw_expect_end(&r);
    assert_true(str_has_prefix(strbuf_cstr(&r.in), "HTTP/1.1 400 "));
    assert_non_null(strstr(r.in.data, "HTTPS"));
    assert_false(r.reset);
    raw_done(&r);
    /* Other noise is no reason to say anything in particular. */
    struct raw noise = raw_connect(b);
    raw_send(&noise, "SSH-2.0-OpenSSH_9.2 and what more there is to say\r\n");
    raw_expect_end(&noise);
    raw_done(&noise);
    assert_int_equal(b->requests, 0);
    bench_free(b);
}

static void a_plain_server_is_recognized(void **state)
{
    struct bench *b = bench_new(NULL);
    CLEANUP_GOT struct got g = GOT;
    struct http_client *c = client(b, "127.0.0.1", (struct tls_client_config){0});
    call(b, c, "/x", &g);
    assert_int_equal(g.error, -EPROTONOSUPPORT);
    assert_non_null(strstr(g.error_text, "the server does not speak TLS"));
    assert_int_equal(b->requests, 0);
    http_client_free(c);
    bench_free(b);
}

static void a_slow_handshake_is_cut_off(void **state)
{
    static const struct http_limits limits = {.head_ms = 60, .idle_ms = 60000};
    /* The beginning of a handshake record, byte by byte. */
    static const char hello[] = {0x16, 0x03, 0x01, 0x01, 0x00, 0x01, 0x00, 0x00};
    struct bench *b = serve(ca, for_loopback, &limits);
    uint64_t before = time_mono_ms();
    struct raw silent = raw_connect(b), slow = raw_connect(b);
    for (size_t i = 0; i < sizeof hello; i++) {
        raw_send_n(&slow, hello + i, 1);
        bench_run_for(b, 2);
    }
    raw_expect_end(&silent);
    raw_expect_end(&slow);
    assert_true(time_mono_ms() - before < 30000);
    raw_done(&silent);
    raw_done(&slow);
    /* Others are not touched by it. */
    CLEANUP_GOT struct got g = GOT;
    struct http_client *c = client(b, "127.0.0.1", (struct tls_client_config){0});
    call(b, c, "/x", &g);
    assert_int_equal(g.status, 200);
    http_client_free(c);
    bench_free(b);
}

/* A server that accepts and says nothing. */
static void a_handshake_that_is_not_answered_times_out(void **state)
{
    struct bench *b = serve(ca, for_loopback, NULL);
    b->server = http_server_free(b->server);
    struct err e = {0};
    char address[32];
    int fd;
    (void) snprintf(address, sizeof address, "127.0.0.1:%d", b->port);
    assert_int_equal(sock_listen_tcp(address, &fd, &e), 0);
    CLEANUP_FREE char *url = xasprintf("https://127.0.0.1:%d", b->port);
    struct http_client_config cfg = {.url = url, .connect_ms = 50};
    struct http_client *c;
    assert_int_equal(http_client_new(b->loop, &cfg, &c, &e), 0);
    CLEANUP_GOT struct got g = GOT;
    call(b, c, "/x", &g);
    assert_int_equal(g.error, -ETIMEDOUT);
    http_client_free(c);
    fd_close(fd);
    bench_free(b);
}

/* The error of the socket's own call is told, for reading and writing. */
static void errors_of_the_socket_are_told(void **state)
{
    CLEANUP(tls_context_free) struct tls_context *t = NULL;
    struct tls_client_config cfg = {.ca = pki_ca_pem(ca)};
    struct err e = {0};
    int pair[2];
    assert_int_equal(tls_client_new(&cfg, &t, &e), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
    struct tls *c = tls_connect(t, pair[0], "localhost");
    assert_int_equal(tls_handshake(c, &e), -EPIPE);
    assert_string_equal(e.text, "connection: Broken pipe");
    tls_free(c);
    fd_close(pair[0]);
    fd_close(pair[1]);

    CLEANUP_PAIR struct pki_pair p = issue(ca, for_loopback);
    CLEANUP(tls_context_free) struct tls_context *server = NULL;
    assert_int_equal(server_context(&p, NULL, &server, &e), 0);
    CLEANUP(fd_close) int file = open("/dev/null", O_RDWR | O_CLOEXEC);
    c = tls_accept(server, file);
    assert_int_equal(tls_handshake(c, &e), -ENOTSOCK);
    tls_free(c);
}

static void reloading_changes_new_connections_only(void **state)
{
    struct bench *b = serve(ca, for_loopback, NULL);
    CLEANUP_PAIR struct pki_pair next = issue(other_ca, for_loopback);
    struct http_client *old = client(b, "127.0.0.1", (struct tls_client_config){0});
    struct http_client *new =
        client(b, "127.0.0.1", (struct tls_client_config){.ca = pki_ca_pem(other_ca)});
    CLEANUP_GOT struct got g = GOT;
    struct err e = {0};
    call(b, old, "/x", &g);
    assert_int_equal(g.status, 200);
    assert_int_equal(server_context(&next, NULL, &b->tls, &e), 0);
    call(b, old, "/x", &g); /* On the connection that is there. */
    assert_int_equal(g.status, 200);
    call(b, new, "/x", &g);
    assert_int_equal(g.status, 200);
    /* What cannot be loaded changes nothing. */
    struct pki_pair broken = {next.cert, (char *) "x"};
    assert_int_equal(server_context(&broken, NULL, &b->tls, &e), -EINVAL);
    http_client_free(new);
    new = client(b, "127.0.0.1", (struct tls_client_config){.ca = pki_ca_pem(other_ca)});
    call(b, new, "/x", &g);
    assert_int_equal(g.status, 200);
    http_client_free(old);
    http_client_free(new);
    bench_free(b);
}

static void contexts_say_what_is_wrong_with_their_files(void **state)
{
    CLEANUP_PAIR struct pki_pair p = issue(ca, for_loopback), q = issue(ca, for_loopback);
    const struct {
        struct pki_pair pair;
        const char *ca, *why;
    } cases[] = {
        {{(char *) "", p.key}, NULL, "s.crt, "},
        {{(char *) "", p.key}, NULL, "certificate: there is none in PEM form"},
        {{p.cert, (char *) ""}, NULL, "private key: there is none in PEM form"},
        {{p.cert, q.key}, NULL, "the private key does not belong to the certificate"},
        {{p.cert, p.key}, "x", "c.crt: certificate authority: there is none"},
        {{(char *) "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", p.key},
         NULL,
         "certificate: "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct tls_context *t = NULL;
        struct err e = {0};
        if (server_context(&cases[i].pair, cases[i].ca, &t, &e) != -EINVAL ||
            !strstr(e.text, cases[i].why)) {
            fail_msg("%zu: %s", i, e.text);
        }
    }
    struct tls_server_config none = {"/nonexistent/a", "/nonexistent/b", NULL};
    struct tls_client_config half = {.cert = p.cert};
    struct tls_context *t;
    struct err e = {0};
    assert_int_equal(tls_server_new(&none, &t, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/a"));
    assert_int_equal(tls_client_new(&half, &t, &e), -EINVAL);
}

int main(void)
{
    log_set_levels("error", NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_responses_pass),
        cmocka_unit_test(large_bodies_pass_both_ways),
        cmocka_unit_test(streams_deliver_bytes_as_they_come),
        cmocka_unit_test(a_stream_whose_client_does_not_read_is_cut),
        cmocka_unit_test(bad_server_certificates_are_refused),
        cmocka_unit_test(clients_are_known_by_their_certificates),
        cmocka_unit_test(a_certificate_of_a_proxy_names_no_user),
        cmocka_unit_test(bad_client_certificates_end_the_connection),
        cmocka_unit_test(a_plain_client_is_told_so),
        cmocka_unit_test(a_plain_server_is_recognized),
        cmocka_unit_test(a_slow_handshake_is_cut_off),
        cmocka_unit_test(a_handshake_that_is_not_answered_times_out),
        cmocka_unit_test(errors_of_the_socket_are_told),
        cmocka_unit_test(reloading_changes_new_connections_only),
        cmocka_unit_test(contexts_say_what_is_wrong_with_their_files),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
