/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: the priority level of each user's requests, and what a request costs. */
#include "apiserver/access/security.h"
#include "apiserver/request/flow.h"
#include "apiserver/request/respond.h"
#include "harness.h"
#include "net/loop/sock.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define EXEMPT PRIORITY_MAX
#define RED "/api/v1/namespaces/red/"

static uint64_t begun(const struct harness *h, enum priority_level level)
{
    return level == EXEMPT ? flow_exempt(h->api->flow) : flow_stats(h->api->flow, level).begun;
}

/* The level at which the one request was begun that the counters 'before' do not have. */
static int level_since(const struct harness *h, const uint64_t before[EXEMPT + 1])
{
    int found = -1;
    for (int level = 0; level <= EXEMPT; level++) {
        uint64_t n = begun(h, (enum priority_level) level) - before[level];
        if (n) {
            assert_int_equal(n, 1);
            assert_int_equal(found, -1);
            found = level;
        }
    }
    return found;
}

static void count(const struct harness *h, uint64_t out[EXEMPT + 1])
{
    for (int level = 0; level <= EXEMPT; level++) {
        out[level] = begun(h, (enum priority_level) level);
    }
}

static void a_users_class_selects_the_level(void **state)
{
    static const struct {
        const char *who, *path;
        int level;
    } cases[] = {
        {"x system:masters", "/version", EXEMPT},
        {"system:node:n1 system:nodes", "/version", PRIORITY_SYSTEM},
        {"system:serviceaccount:kube-system:dns", "/version", PRIORITY_SYSTEM},
        {"system:sdn", "/version", PRIORITY_SYSTEM},
        {"system:serviceaccount:red:robot", "/version", PRIORITY_DEFAULT},
        {"jane", "/version", PRIORITY_DEFAULT},
        {"system:anonymous", "/version", PRIORITY_LOW},
        {"jane", "/healthz", EXEMPT},
        {"jane", "/healthz/ping", EXEMPT},
        {"jane", "/livez", EXEMPT},
        {"system:anonymous", "/readyz", EXEMPT},
        {"jane", "/api/v1/nodes", PRIORITY_DEFAULT},
    };
    struct harness *h = harness_new_secure((struct apiserver_security){.always_allow = true});
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t before[EXEMPT + 1];
        count(h, before);
        CLEANUP_ANSWER struct answer a = ask_as(h, cases[i].who, "GET", cases[i].path, NULL, NULL);
        if (level_since(h, before) != cases[i].level) {
            fail_msg("%s %s: %d", cases[i].who, cases[i].path, level_since(h, before));
        }
    }
    harness_free(h);
}

static void without_access_control_the_user_agent_selects_the_level(void **state)
{
    static const struct {
        const char *agent;
        int level;
    } cases[] = {
        {"tenet-master/1", PRIORITY_SYSTEM}, {"tenet-node/1", PRIORITY_SYSTEM},
        {"tenet-master", PRIORITY_DEFAULT},  {"xtenet-node/1", PRIORITY_DEFAULT},
        {"kubectl/1", PRIORITY_DEFAULT},     {"", PRIORITY_DEFAULT},
    };
    struct harness *h = harness_new(NULL, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t before[EXEMPT + 1];
        CLEANUP_FREE char *agent =
            *cases[i].agent ? xasprintf("User-Agent: %s\r\n", cases[i].agent) : xstrdup("");
        CLEANUP_FREE char *text =
            xasprintf("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", agent);
        count(h, before);
        CLEANUP_FREE char *answer = ask_raw(h, text);
        assert_int_equal(level_since(h, before), cases[i].level);
    }
    harness_free(h);
}

/* ---- costs ---- */

static struct harness *costs;
static unsigned cost;

static void measure(void *ctx, struct http_exchange *x)
{
    struct request *q = NEW(struct request);
    *q = (struct request){.server = costs->api, .x = x, .verb = VERB_OTHER, .subresource = ""};
    q->user = user_ref(costs->api->security->master);
    attributes_parse(&q->attributes, http_method(x), http_path(x), request_flag(q, "watch"),
                     http_query(x, "fieldSelector"));
    cost = flow_cost(q);
    respond_error(q, 409, "Measured", "measured");
}

static void a_list_costs_by_the_objects_that_it_reads(void **state)
{
#define MAPS "/api/v1/configmaps"
    static const struct {
        const char *method, *path;
        size_t objects;
        unsigned cost;
    } cases[] = {
        {"GET", MAPS, 0, 1},
        {"GET", MAPS, 99, 1},
        {"GET", MAPS, 100, 2},
        {"GET", MAPS, 250, 3},
        {"GET", MAPS, 3800, 39},
        {"GET", MAPS, 3900, 40},
        {"GET", MAPS, 4000, 40},
        {"GET", MAPS, 400000, 40},
        {"GET", MAPS "?limit=100", 250, 2},
        {"GET", MAPS "?limit=99", 250, 1},
        {"GET", MAPS "?limit=1000", 250, 3},
        {"GET", MAPS "?limit=0", 250, 3},
        {"GET", MAPS "?limit=x", 250, 3},
        {"GET", MAPS "?resourceVersion=5", 250, 3},
        {"GET", MAPS "?watch=1", 250, 3},
        {"GET", MAPS "?watch=1&resourceVersion=", 250, 3},
        {"GET", MAPS "?watch=1&resourceVersion=0", 250, 3},
        {"GET", MAPS "?watch=1&resourceVersion=5", 250, 1},
        {"GET", MAPS "?fieldSelector=metadata.name%3Da", 250, 1},
        {"GET", RED "configmaps/a", 250, 1},
        {"POST", RED "configmaps", 250, 1},
        {"DELETE", RED "configmaps", 250, 1},
        {"GET", "/api/v1/things", 250, 1},
        {"GET", "/version", 250, 1},
    };
    struct err e = {0};
    int fd;
    costs = harness_new(NULL, NULL);
    struct http_server *server = http_server_new(costs->loop, NULL, measure, NULL);
    uint16_t port = costs->port;
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    costs->port = (uint16_t) sock_local_port(fd);
    assert_int_equal(http_server_add_listener(server, fd, &e), 0);
    struct cache_kind *ck = cache_find(&costs->api->cache, api_kind_find("", "v1", "configmaps"));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ck->objects.n = cases[i].objects;
        CLEANUP_ANSWER struct answer a =
            ask_by(costs, &(struct sender){0}, cases[i].method, cases[i].path, NULL);
        if (cost != cases[i].cost) {
            fail_msg("%s %s of %zu: %u", cases[i].method, cases[i].path, cases[i].objects, cost);
        }
    }
    ck->objects.n = 0;
    costs->port = port;
    http_server_free(server);
    harness_free(costs);
}

/* ---- waiting ---- */

/* Sends a GET as 'who' with this agent, without reading its answer; the socket. */
static int begin(const struct harness *h, const char *who, const char *agent, const char *path)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CLEANUP_FREE char *user =
        who ? xasprintf(
                  "Authorization: Bearer " HARNESS_TOKEN "\r\nImpersonate-User: %s\r\n%s", who,
                  str_has_prefix(who, "system:node:") ? "Impersonate-Group: system:nodes\r\n" : "")
            : xstrdup("");
    CLEANUP_FREE char *text =
        xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n%s\r\n", path, agent, user);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
    return fd;
}

/* Ends the connection by a reset, which the server notices while it does not read from it. */
static void reset(int fd)
{
    struct linger now = {.l_onoff = 1};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    close(fd);
}

/* Runs the loop until so many requests run and wait at the level. */
static void expect_load(const struct harness *h, enum priority_level level, unsigned running,
                        unsigned waiting)
{
    bool never = false;
    struct priority_stats st = {0};
    for (int i = 0; i < 4000; i++) {
        st = flow_stats(h->api->flow, level);
        if (st.running == running && st.waiting == waiting) {
            return;
        }
        loop_run_until(h->loop, &never, 5);
    }
    fail_msg("%u run, %u wait", st.running, st.waiting);
}

/* Waits for the answer at the socket, which must begin with 'want'. */
static void expect_status(const struct harness *h, int fd, const char *want)
{
    char status[13] = "";
    bool never = false;
    for (int i = 0; i < 4000 && recv(fd, status, 12, MSG_PEEK | MSG_DONTWAIT) < 12; i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_string_equal(status, want);
}

/* A server with one seat at the default level, and with several MiB of objects at MAPS. */
static struct harness *small_server(const struct apiserver_security *security, uint64_t wait_ms)
{
    enum { SIZE = 900000, N = 10 };
    struct harness *h = harness_new(
        &(struct apiserver_config){
            .max_inflight = 2, .max_queued = 8, .queue_wait_ms = wait_ms, .security = security},
        NULL);
    CLEANUP_FREE char *big = xcalloc(1, SIZE + 1);
    memset(big, 'x', SIZE);
    for (int i = 0; i < N; i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'metadata': {'name': 'c%d'}, 'data': {'k': '%s'}}", i, big);
        put_in(h, "POST", "/api/v1/namespaces/default/configmaps", body, 201);
    }
    return h;
}

static void a_large_answer_holds_its_seat_until_it_has_left(void **state)
{
    struct harness *h = small_server(NULL, 200);
    int slow = begin(h, NULL, "slow", MAPS);
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    /* Others wait for their time at most. */
    CLEANUP_ANSWER struct answer late = ask(h, "GET", "/version", NULL);
    assert_int_equal(late.status, 429);
    assert_string_equal(at(&late, "message"), "too many requests, please try again later");
    CLEANUP_ANSWER struct answer again = ask(h, "GET", "/version", NULL);
    assert_int_equal(again.status, 429);
    assert_int_equal(flow_stats(h->api->flow, PRIORITY_DEFAULT).refused_late, 2);
    CLEANUP_ANSWER struct answer probe = ask(h, "GET", "/healthz", NULL);
    assert_int_equal(probe.status, 200);
    close(slow);
    expect_load(h, PRIORITY_DEFAULT, 0, 0);
    CLEANUP_ANSWER struct answer now = ask(h, "GET", "/version", NULL);
    assert_int_equal(now.status, 200);
    harness_free(h);
}

static void a_client_that_resets_its_connection_waits_no_more(void **state)
{
    struct harness *h = small_server(NULL, 60000);
    int slow = begin(h, NULL, "slow", MAPS);
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    int waiting = begin(h, NULL, "waiting", "/version");
    expect_load(h, PRIORITY_DEFAULT, 1, 1);
    reset(waiting);
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    close(slow);
    expect_load(h, PRIORITY_DEFAULT, 0, 0);
    harness_free(h);
}

static void one_flow_fills_a_quarter_of_the_queue(void **state)
{
    struct harness *h = small_server(NULL, 60000);
    int slow = begin(h, NULL, "slow", MAPS), waiting[4];
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    for (int i = 0; i < 2; i++) {
        waiting[i] = begin(h, NULL, "one", "/version");
    }
    expect_load(h, PRIORITY_DEFAULT, 1, 2);
    waiting[2] = begin(h, NULL, "one", "/version");
    bool never = false;
    for (int i = 0; i < 4000 && flow_stats(h->api->flow, PRIORITY_DEFAULT).refused_full == 0; i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_int_equal(flow_stats(h->api->flow, PRIORITY_DEFAULT).refused_full, 1);
    waiting[3] = begin(h, NULL, "two", "/version");
    expect_load(h, PRIORITY_DEFAULT, 1, 3);
    /* They are served when the seat is free. */
    close(slow);
    expect_load(h, PRIORITY_DEFAULT, 0, 0);
    assert_int_equal(flow_stats(h->api->flow, PRIORITY_DEFAULT).refused_full, 1);
    for (int i = 0; i < 4; i++) {
        expect_status(h, waiting[i], i == 2 ? "HTTP/1.1 429" : "HTTP/1.1 200");
        close(waiting[i]);
    }
    harness_free(h);
}

/* A flow is a user in a namespace; a node is one flow in all namespaces. */
static void users_and_namespaces_are_flows(void **state)
{
    static const struct apiserver_security security = {.always_allow = true,
                                                       .loopback_token = HARNESS_TOKEN};
    static const struct {
        const char *who, *path;
        enum priority_level level;
        unsigned flows;
    } cases[] = {
        {"jane", "/api/v1/namespaces/a/pods", PRIORITY_DEFAULT, 2},
        {"jane", "/api/v1/namespaces/a/services", PRIORITY_DEFAULT, 2},
        {"jane", "/api/v1/namespaces/b/pods", PRIORITY_DEFAULT, 3},
        {"joe", "/api/v1/namespaces/a/pods", PRIORITY_DEFAULT, 4},
        {"system:node:n1", "/api/v1/namespaces/a/pods", PRIORITY_SYSTEM, 2},
        {"system:node:n1", "/api/v1/namespaces/b/pods", PRIORITY_SYSTEM, 2},
        {"system:node:n2", "/api/v1/namespaces/b/pods", PRIORITY_SYSTEM, 3},
    };
    struct harness *h = small_server(&security, 60000);
    int fds[ARRAY_SIZE(cases)], slow = begin(h, "slow", "x", MAPS);
    int slow_node = begin(h, "system:node:slow", "x", MAPS);
    unsigned waiting[PRIORITY_MAX] = {0};
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    expect_load(h, PRIORITY_SYSTEM, 1, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fds[i] = begin(h, cases[i].who, "x", cases[i].path);
        expect_load(h, cases[i].level, 1, ++waiting[cases[i].level]);
        assert_int_equal(flow_stats(h->api->flow, cases[i].level).flows, cases[i].flows);
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        close(fds[i]);
    }
    close(slow);
    close(slow_node);
    expect_load(h, PRIORITY_DEFAULT, 0, 0);
    expect_load(h, PRIORITY_SYSTEM, 0, 0);
    harness_free(h);
}

static void waiting_requests_are_answered_when_the_server_ends(void **state)
{
    struct harness *h = small_server(NULL, 60000);
    int slow = begin(h, NULL, "slow", MAPS);
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    int waiting = begin(h, NULL, "waiting", "/version");
    expect_load(h, PRIORITY_DEFAULT, 1, 1);
    flow_drop_all(h->api->flow);
    expect_load(h, PRIORITY_DEFAULT, 1, 0);
    expect_status(h, waiting, "HTTP/1.1 429");
    close(waiting);
    close(slow);
    expect_load(h, PRIORITY_DEFAULT, 0, 0);
    harness_free(h);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_users_class_selects_the_level),
        T(without_access_control_the_user_agent_selects_the_level),
        T(a_list_costs_by_the_objects_that_it_reads),
        T(a_large_answer_holds_its_seat_until_it_has_left),
        T(a_client_that_resets_its_connection_waits_no_more),
        T(one_flow_fills_a_quarter_of_the_queue),
        T(users_and_namespaces_are_flows),
        T(waiting_requests_are_answered_when_the_server_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
