/* SPDX-License-Identifier: Apache-2.0 */
/* pods/proxy and services/proxy, with a server at the address of a pod, in a network namespace of
 * this test.  What a hostile node or pod says leads nowhere else. */
#include "harness.h"

#include "base/str.h"
#include "net/http/http.h"
#include "net/kernel/rtnl.h"
#include "net/loop/sock.h"
#include "oauth/token.h"
#include "sdn/address.h"

#include <arpa/inet.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define NS "/api/v1/namespaces/default/"
#define PODS NS "pods"
#define PROXY PODS "/web:8080/proxy"
#define POD_IP 0x0a800005u /* 10.128.0.5 */
#define BIG ((size_t) 3 << 20)

static struct harness *h;
static struct http_server *pod;
static unsigned asked;
static struct apiserver_security security = {.loopback_token = HARNESS_TOKEN};
static struct node_rules rules;

/* ---- the server in the pod ---- */

static void echo(struct http_exchange *x)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const char *name, *value;
    size_t size;
    const char *body = http_body(x, &size);
    strbuf_addf(&b, "%s %s?%s\n", http_method(x), http_path(x), http_query_raw(x));
    for (size_t i = 0; http_header_at(x, i, &name, &value); i++) {
        strbuf_addf(&b, "%s: %s\n", name, value);
    }
    strbuf_addf(&b, "[%.*s]", (int) size, body);
    http_respond(x, 200, "text/x-echo", b.data, b.size);
}

static void on_data(void *ctx, const char *p, size_t size)
{
    (void) ctx;
}

static void on_eof(void *ctx)
{
    duplex_free(ctx);
}

static void on_failed(void *ctx, int error, const char *why)
{
    duplex_free(ctx);
}

static void begun_gone(void *ctx)
{
    (void) ctx;
}

static void held_gone(void *ctx)
{
    http_respond(ctx, 500, NULL, "", 0);
}

static const struct duplex_ops ended = {.data = on_data, .eof = on_eof, .failed = on_failed};

static void serve(void *ctx, struct http_exchange *x)
{
    const char *path = http_path(x);
    bool stays = streq(path, "/held");
    asked++;
    if (streq(path, "/redirect")) {
        http_set_header(x, "Location", http_query(x, "to"));
        http_respond(x, 302, NULL, "", 0);
    } else if (streq(path, "/cookies")) {
        http_set_header(x, "Set-Cookie", "a=b");
        http_set_header(x, "Access-Control-Allow-Origin", "*");
        http_set_header(x, "Strict-Transport-Security", "max-age=1");
        http_set_header(x, "X-App", "mine");
        http_respond(x, 418, "text/html", "<p>", 3);
    } else if (streq(path, "/none")) {
        http_respond(x, 204, NULL, "", 0);
    } else if (streq(path, "/big")) {
        CLEANUP_FREE char *p = xcalloc(BIG, 1);
        memset(p, 'x', BIG);
        http_respond(x, 200, "text/plain", p, BIG);
    } else if (stays && !http_wants_upgrade(x, "websocket")) {
        http_on_gone(x, held_gone, x);
    } else if (streq(path, "/begun")) {
        CLEANUP(blob_unref) struct blob *hello = blob_new("hello", 5);
        http_stream_begin(x, 200, "text/plain", begun_gone, NULL);
        (void) http_stream_write(x, hello);
    } else if (http_wants_upgrade(x, "websocket")) {
        http_set_header(x, "Sec-WebSocket-Accept", http_header(x, "sec-websocket-key"));
        http_set_header(x, "X-Protocols", http_header(x, "sec-websocket-protocol"));
        struct duplex *d = http_upgrade(x, "websocket");
        duplex_write(d, "hello", 5);
        if (!stays) {
            duplex_end(d);
        }
        duplex_start(d, &ended, d);
    } else {
        echo(x);
    }
}

/* ---- objects ---- */

static void make_pod(const char *name, const char *more, const char *ip, const char *phase)
{
    CLEANUP_FREE char *path = xasprintf(PODS "/%s/status", name);
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata': {'name': '%s'}, 'spec': {'nodeName': 'n1', 'containers': [{'name': 'c', "
        "'image': 'i', 'ports': [{'name': 'web', 'containerPort': 8080}]}]%s}}",
        name, more);
    put_in(h, "POST", PODS, body, 201);
    body[strlen(body) - 1] = '\0';
    CLEANUP_FREE char *put =
        xasprintf("%s, 'status': {'phase': '%s', 'podIP': '%s'}}", body, phase, ip);
    put_in(h, "PUT", path, put, 200);
}

static int set_up(void **state)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link_set lo = RTNL_LINK_SET_INIT("lo");
    lo.up = 1;
    int fd;
    if (unshare(CLONE_NEWNET | (geteuid() ? CLONE_NEWUSER : 0)) < 0 || rtnl_open(&r, NULL) < 0 ||
        rtnl_link_set(r, &lo, NULL) < 0 ||
        rtnl_addr_add(r, 1, (struct ip4_prefix){POD_IP, 32}, false, NULL) < 0) {
        return -1;
    }
    assert_int_equal(address_ranges_parse("10.128.0.0/14", false, &rules.cluster, NULL), 0);
    assert_int_equal(address_ranges_parse("10.9.0.0/16", false, &rules.foreign, NULL), 0);
    assert_int_equal(address_ranges_parse("10.9.0.7", true, &rules.masters, NULL), 0);
    struct apiserver_config cfg = {.security = &security, .addresses = &rules};
    h = harness_new(&cfg, NULL);
    harness_listen_tls(h);
    make_constraints(h);
    pod = http_server_new(h->loop, NULL, serve, NULL);
    assert_int_equal(sock_listen_tcp("10.128.0.5:8080", &fd, NULL), 0);
    assert_int_equal(http_server_add_listener(pod, fd, NULL), 0);
    put_in(h, "POST", "/apis/network.openshift.io/v1/hostsubnets",
           "{'metadata': {'name': 'n1'}, 'host': 'n1', 'hostIP': '192.0.2.1', 'subnet': "
           "'10.128.0.0/23'}",
           201);
    make_pod("web", "", "10.128.0.5", "Running");
    return 0;
}

static int tear_down(void **state)
{
    http_server_free(pod);
    harness_free(h);
    return 0;
}

/* The whole answer to a request with the master's token and these header lines. */
static char *raw(const char *request, const char *headers)
{
    CLEANUP_FREE char *text =
        xasprintf("%s HTTP/1.1\r\nHost: api:1\r\nAuthorization: Bearer " HARNESS_TOKEN "\r\n%s\r\n",
                  request, headers);
    return ask_raw(h, text);
}

#define CLOSE "Connection: close\r\n"

static void has(const char *text, const char *part)
{
    if (!strcasestr(text, part)) {
        fail_msg("no \"%s\" in: %s", part, text);
    }
}

static void lacks(const char *text, const char *part)
{
    if (strcasestr(text, part)) {
        fail_msg("\"%s\" in: %s", part, text);
    }
}

/* Sends the request of an upgrade, reads up to the bytes 'until', and ends the connection; returns
 * what came. */
static char *converse(const char *request, const char *headers, const char *until)
{
    CLEANUP_FREE char *text =
        xasprintf("%s HTTP/1.1\r\nHost: api:1\r\nAuthorization: Bearer " HARNESS_TOKEN "\r\n%s\r\n",
                  request, headers);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct strbuf b = STRBUF_INIT;
    bool never = false;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
    for (int i = 0; i < 4000; i++) {
        char part[4096];
        ssize_t n = recv(fd, part, sizeof part, MSG_DONTWAIT);
        if (n == 0) {
            break;
        }
        if (n > 0) {
            strbuf_add(&b, part, (size_t) n);
        } else {
            loop_run_until(h->loop, &never, 5);
        }
        if (strstr(strbuf_cstr(&b), until)) {
            (void) shutdown(fd, SHUT_WR);
        }
    }
    close(fd);
    return strbuf_steal(&b);
}

/* ---- requests ---- */

static void requests_and_answers_pass_unchanged(void **state)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
        const char *body = streq(methods[i], "GET") ? "" : "some body";
        CLEANUP_FREE char *request =
            xasprintf("%s " PROXY "/a%%20b/c/?watch=1&timeoutSeconds=x&y=%%26", methods[i]);
        CLEANUP_FREE char *text = xasprintf(
            "%s HTTP/1.1\r\nHost: api:1\r\nAuthorization: Bearer " HARNESS_TOKEN
            "\r\nAccept: text/html\r\nX-Mine: 1\r\n" CLOSE "Content-Length: %zu\r\n\r\n%s",
            request, strlen(body), body);
        CLEANUP_FREE char *got = ask_raw(h, text);
        CLEANUP_FREE char *first =
            xasprintf("%s /a b/c/?watch=1&timeoutSeconds=x&y=%%26\n", methods[i]);
        CLEANUP_FREE char *last = xasprintf("[%s]", body);
        has(got, "HTTP/1.1 200 ");
        has(got, "Content-Type: text/x-echo\r\n");
        has(got, first);
        has(got, last);
        has(got, "accept: text/html\n");
        has(got, "x-mine: 1\n");
        has(got, "X-Forwarded-Host: api:1\n");
    }
    CLEANUP_FREE char *head = raw("HEAD " PROXY "/x", CLOSE);
    has(head, "HTTP/1.1 200 ");
    has(head, "\r\n\r\n");
    assert_null(strstr(strstr(head, "\r\n\r\n") + 4, "HEAD"));
    CLEANUP_FREE char *none = raw("GET " PROXY "/none", CLOSE);
    has(none, "HTTP/1.1 204 ");
    lacks(none, "chunked");
}

static void pods_are_named_with_or_without_a_port(void **state)
{
    static const struct {
        const char *name;
        int want;
    } cases[] = {{"web", 200},       {"web:web", 200},       {"web:8080", 200},
                 {"http:web", 200},  {"http:web:8080", 200}, {":web:8080", 200},
                 {"web:other", 400}, {"web:0", 400},         {"web:99999", 400},
                 {"ftp:web:1", 400}, {"web:8080:1:2", 400},  {"nobody:8080", 404},
                 {"web:81", 503},    {"https:web:8080", 503}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = xasprintf(PODS "/%s/proxy/x", cases[i].name);
        CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
        if (a.status != cases[i].want) {
            fail_msg("%s: %d %s", cases[i].name, a.status, a.text);
        }
    }
}

static void credentials_and_headers_of_one_connection_stay(void **state)
{
    CLEANUP_FREE char *got =
        raw("GET " PROXY "/x?access_token=secret1&a=1",
            "Connection: close, X-Hop\r\nX-Hop: 1\r\nCookie: secret2\r\nTE: trailers\r\n"
            "Impersonate-User: alice\r\nProxy-Authorization: secret3\r\nX-Remote-User: secret4\r\n"
            "Keep-Alive: timeout=5\r\nX-Forwarded-For: secret5\r\n");
    /* Alice has no rights; see below. */
    has(got, "HTTP/1.1 403 ");
    CLEANUP_FREE char *again =
        raw("GET " PROXY "/x?access_token=secret1&a=1",
            "Connection: close, X-Hop\r\nX-Hop: 1\r\nCookie: secret2\r\nTE: trailers\r\n"
            "Proxy-Authorization: secret3\r\nX-Remote-User: secret4\r\n"
            "Keep-Alive: timeout=5\r\nX-Forwarded-For: secret5\r\n");
    has(again, "/x?a=1\n");
    lacks(again, "secret");
    lacks(again, HARNESS_TOKEN);
    lacks(again, "x-hop");
    lacks(again, "trailers");
    lacks(again, "timeout=5");
    CLEANUP_FREE char *cookies = raw("GET " PROXY "/cookies", CLOSE);
    has(cookies, "HTTP/1.1 418 ");
    has(cookies, "X-App: mine\r\n");
    has(cookies, "Content-Security-Policy: sandbox");
    lacks(cookies, "set-cookie");
    lacks(cookies, "access-control");
    lacks(cookies, "strict-transport");
}

static void redirects_lead_through_the_server_again(void **state)
{
    static const struct {
        const char *to, *want;
    } cases[] = {{"/there?a", PROXY "/there?a"},
                 {"http://10.128.0.5:8080/there", PROXY "/there"},
                 {"http://10.128.0.5:8080", PROXY "/"},
                 {"//10.128.0.5:8080/x", PROXY "/x"},
                 {"there", "there"},
                 {"http://169.254.169.254/latest", "http://169.254.169.254/latest"},
                 {"http://10.128.0.5:80801/x", "http://10.128.0.5:80801/x"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "GET " PROXY "/redirect?to=");
        http_escape(cases[i].to, &b);
        CLEANUP_FREE char *got = raw(b.data, CLOSE);
        CLEANUP_FREE char *want = xasprintf("\r\nLocation: %s\r\n", cases[i].want);
        has(got, "HTTP/1.1 302 ");
        has(got, want);
    }
    unsigned before = asked;
    CLEANUP_FREE char *root = raw("GET " PROXY "?a=b", CLOSE);
    has(root, "HTTP/1.1 301 ");
    has(root, "\r\nLocation: " PROXY "/?a=b\r\n");
    assert_int_equal(asked, before);
}

static void large_answers_are_complete(void **state)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", PROXY "/big", NULL, 200);
    assert_int_equal(strlen(a.text), BIG);
}

static void connections_are_upgraded(void **state)
{
    static const char upgrade[] =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: "
        "base64url.bearer.authorization.k8s.io.c2VjcmV0, mine\r\n";
    CLEANUP_FREE char *got = converse("GET " PROXY "/ws", upgrade, "hello");
    has(got, "HTTP/1.1 101 ");
    has(got, "Sec-WebSocket-Accept: k\r\n");
    has(got, "X-Protocols: mine\r\n");
    has(got, "\r\n\r\nhello");
    CLEANUP_FREE char *site = xasprintf("Origin: http://evil.example\r\n%s", upgrade);
    CLEANUP_FREE char *foreign = converse("GET " PROXY "/ws", site, "HTTP/1.1");
    has(foreign, "HTTP/1.1 403 ");
}

/* ---- the end of a token ---- */

#define TOKENS "/apis/oauth.openshift.io/v1/oauthaccesstokens"

/* A request with a token of its own, in another way than the requests above: by HTTPS. */
struct with_token {
    char text[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    char *headers;
    struct loop_timer *timer;
    struct http_client *client;
    struct duplex *stream;
    bool upgraded, ended;
};

static void make_token(struct with_token *w, unsigned seconds)
{
    static uint8_t made;
    uint8_t random[OAUTH_TOKEN_RANDOM] = {++made, 7};
    CLEANUP_ANSWER struct answer user =
        ask_ok(h, "GET", "/apis/user.openshift.io/v1/users/jane", NULL, 200);
    assert_int_equal(oauth_token_make(random, w->text), 0);
    assert_int_equal(oauth_token_name(w->text, w->name), 0);
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata': {'name': '%s'}, 'userName': 'jane', 'userUID': '%s', 'clientName': 'c', "
        "'redirectURI': 'https://c/', 'scopes': ['user:full'], 'expiresIn': %u}",
        w->name, at(&user, "metadata.uid"), seconds);
    put_in(h, "POST", TOKENS, body, 201);
    w->headers = xasprintf("Bearer %s", w->text);
}

static void on_deleted(void *ctx, const struct http_result *r)
{
    assert_int_equal(r->status, 200);
}

static void delete_token(void *ctx)
{
    struct with_token *w = ctx;
    CLEANUP_FREE char *path = xasprintf(TOKENS "/%s", w->name);
    (void) http_call(h->client, "DELETE", path, NULL, NULL, NULL, 0, on_deleted, NULL);
}

static void delete_soon(struct with_token *w)
{
    w->timer = loop_timer_new(h->loop, delete_token, w);
    loop_timer_arm(w->timer, 100);
}

static void with_token_done(struct with_token *w)
{
    loop_timer_free(w->timer);
    free(w->headers);
}

/* Asks for the path with the token, which is deleted then, or ends after two seconds. */
static int ask_until_the_end(const char *path, bool deleted, struct answer *ret)
{
    struct with_token w = {0};
    make_token(&w, deleted ? 3600 : 2);
    const char *headers[] = {"Authorization", w.headers, NULL};
    if (deleted) {
        delete_soon(&w);
    }
    int r = try_by(h, &(struct sender){.tls = true, .headers = headers}, "GET", path, NULL, ret);
    with_token_done(&w);
    return r;
}

static void requests_end_with_their_token(void **state)
{
    free(make_object(h, "/apis/user.openshift.io/v1/users", "{'metadata': {'name': 'jane'}}"));
    give_rules(h, "default", "jane",
               "{'verbs': ['get', 'create'], 'apiGroups': [''], 'resources': ['pods/proxy']}");
    for (int deleted = 0; deleted < 2; deleted++) {
        CLEANUP_ANSWER struct answer none = {0}, cut = {0};
        assert_int_equal(ask_until_the_end(PROXY "/held", deleted, &none), 0);
        assert_int_equal(none.status, 401);
        assert_string_equal(at(&none, "message"), "Unauthorized");
        assert_true(ask_until_the_end(PROXY "/begun", deleted, &cut) < 0);
    }
    /* The control: a request whose token stays is answered. */
    struct with_token w = {0};
    make_token(&w, 3600);
    const char *headers[] = {"Authorization", w.headers, NULL};
    CLEANUP_ANSWER struct answer good =
        ask_by(h, &(struct sender){.tls = true, .headers = headers}, "GET", PROXY "/x", NULL);
    assert_int_equal(good.status, 200);
    with_token_done(&w);
}

static void no_data(void *ctx, const char *p, size_t size)
{
    (void) ctx;
}

static void stream_ended(void *ctx)
{
    struct with_token *w = ctx;
    w->ended = true;
}

static void stream_failed(void *ctx, int error, const char *why)
{
    stream_ended(ctx);
}

static const struct duplex_ops watched = {
    .data = no_data, .eof = stream_ended, .failed = stream_failed};

static void on_upgraded(void *ctx, const struct http_connected *r)
{
    struct with_token *w = ctx;
    w->stream = r->stream;
    w->upgraded = true;
    if (w->stream) {
        duplex_start(w->stream, &watched, w);
    }
}

static void an_upgraded_connection_ends_with_its_token(void **state)
{
    for (int deleted = 0; deleted < 2; deleted++) {
        struct with_token w = {0};
        make_token(&w, deleted ? 3600 : 2);
        CLEANUP_FREE char *headers =
            xasprintf("Authorization: %s\r\nSec-WebSocket-Key: k\r\n"
                      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mine\r\n",
                      w.headers);
        w.client = harness_client(h, &(struct sender){.tls = true});
        (void) http_connect(w.client, "GET", PROXY "/held", "websocket", headers, on_upgraded, &w);
        assert_int_equal(loop_run_until(h->loop, &w.upgraded, 30000), 0);
        assert_non_null(w.stream);
        assert_false(w.ended);
        if (deleted) {
            delete_soon(&w);
        }
        assert_int_equal(loop_run_until(h->loop, &w.ended, 30000), 0);
        duplex_free(w.stream);
        http_client_free(w.client);
        with_token_done(&w);
    }
}

/* ---- rights ---- */

static void the_verb_of_the_method_on_the_subresource_is_needed(void **state)
{
    static const struct {
        const char *who, *method;
        int want;
    } cases[] = {{"reader", "GET", 403},  {"getter", "GET", 200},  {"getter", "POST", 403},
                 {"getter", "PUT", 403},  {"poster", "POST", 200}, {"poster", "GET", 403},
                 {"other", "DELETE", 403}};
    give_rules(h, "default", "reader",
               "{'verbs': ['*'], 'apiGroups': [''], 'resources': ['pods']}");
    give_rules(h, "default", "getter",
               "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods/proxy']}");
    give_rules(h, "default", "poster",
               "{'verbs': ['create'], 'apiGroups': [''], 'resources': ['pods/proxy']}");
    unsigned before = asked;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a =
            ask_as(h, cases[i].who, cases[i].method, PROXY "/x?watch=1", NULL, NULL);
        if (a.status != cases[i].want) {
            fail_msg("%s %s: %d %s", cases[i].who, cases[i].method, a.status, a.text);
        }
    }
    assert_int_equal(asked - before, 2);
}

/* ---- hostile statuses ---- */

static void a_forged_address_leads_nowhere(void **state)
{
    static const struct {
        const char *name, *more, *ip, *phase, *why;
    } cases[] = {
        {"p1", "", "127.0.0.1", "Running", "a loopback address"},
        {"p2", "", "169.254.169.254", "Running", "a link-local address"},
        {"p3", "", "192.0.2.1", "Running", "is not in 10.128.0.0/23"},
        {"p4", "", "10.128.0.1", "Running", "gateway's"},
        {"p5", "", "10.130.0.5", "Running", "is not in 10.128.0.0/23"},
        {"p6", ", 'hostNetwork': true", "192.0.2.1", "Running", "the network of its node"},
        {"p7", "", "10.9.0.7", "Running", "an address of a master"},
        {"p8", "", "2001:db8::1", "Running", "not an IPv4 address"},
        {"p9", "", "10.128.0.5", "Succeeded", "has ended"},
        {"p10", "", "::ffff:127.0.0.1", "Running", "not an IPv4 address"},
    };
    unsigned before = asked;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = xasprintf(PODS "/%s:8080/proxy/x", cases[i].name);
        make_pod(cases[i].name, cases[i].more, cases[i].ip, cases[i].phase);
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 400);
        has(a.text, cases[i].why);
    }
    assert_int_equal(asked, before);
}

static void a_master_outside_of_the_pod_network_says_so(void **state)
{
    make_pod("far", "", "10.128.0.9", "Running");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", PODS "/far:8080/proxy/x", NULL, 503);
    has(a.text, "error trying to reach 10.128.0.9:8080");
    has(a.text, "the host of the master is not in the pod network");
}

/* ---- services ---- */

#define ENDPOINTS(ip, ref)                                                       \
    "{'metadata': {'name': 's'}, 'subsets': [{'addresses': [{'ip': '" ip "'" ref \
    "}], 'ports': [{'name': 'http', 'port': 8080}]}]}"
#define REF(name) ", 'targetRef': {'kind': 'Pod', 'namespace': 'default', 'name': '" name "'}"

static void services_lead_to_their_pods_only(void **state)
{
    static const struct {
        const char *endpoints, *name;
        int want;
    } cases[] = {
        {ENDPOINTS("10.128.0.5", REF("web")), "s:http", 200},
        {ENDPOINTS("10.128.0.5", REF("web")), "s:80", 200},
        {ENDPOINTS("10.128.0.5", REF("web")), "s", 200},
        {ENDPOINTS("10.128.0.5", REF("web")), "s:81", 503},
        {ENDPOINTS("10.128.0.5", REF("web")), "t:80", 404},
        {ENDPOINTS("10.128.0.5", ""), "s:http", 503},         /* No pod's. */
        {ENDPOINTS("10.128.0.6", REF("web")), "s:http", 503}, /* Another address than the pod's. */
        {ENDPOINTS("192.0.2.77", REF("nobody")), "s:http", 503},
        {ENDPOINTS("192.0.2.1", REF("p3")), "s:http", 400}, /* See above. */
    };
    put_in(h, "POST", NS "services",
           "{'metadata': {'name': 's'}, 'spec': {'ports': [{'name': 'http', 'port': 80}]}}", 201);
    put_in(h, "POST", NS "endpoints", ENDPOINTS("10.128.0.5", REF("web")), 201);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = xasprintf(NS "services/%s/proxy/x", cases[i].name);
        put_in(h, "PUT", NS "endpoints/s", cases[i].endpoints, 200);
        CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
        if (a.status != cases[i].want) {
            fail_msg("%zu: %d %s", i, a.status, a.text);
        }
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(requests_and_answers_pass_unchanged),
        T(pods_are_named_with_or_without_a_port),
        T(credentials_and_headers_of_one_connection_stay),
        T(redirects_lead_through_the_server_again),
        T(large_answers_are_complete),
        T(connections_are_upgraded),
        T(requests_end_with_their_token),
        T(an_upgraded_connection_ends_with_its_token),
        T(the_verb_of_the_method_on_the_subresource_is_needed),
        T(a_forged_address_leads_nowhere),
        T(a_master_outside_of_the_pod_network_says_so),
        T(services_lead_to_their_pods_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
