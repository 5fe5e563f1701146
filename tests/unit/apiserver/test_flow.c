/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control: the priority level of each user's requests, and what a request costs. */
#include "apiserver/security.h"
#include "harness.h"
#include "net/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_users_class_selects_the_level),
        T(without_access_control_the_user_agent_selects_the_level),
        T(a_list_costs_by_the_objects_that_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
