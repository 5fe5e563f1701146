/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's part for a route: keys of maps, weights, shapes, and texts that are refused. */
#include "base/mem.h"
#include "route/plan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct route_plan_options options = {.dir = "/d",
                                                  .tcp_balance = "source",
                                                  .cookie_name = "sess",
                                                  .cookie_key = "k",
                                                  .check_ms = 5000};
static const struct route_plan_endpoint four[] = {
    {0x0a000001, 80}, {0x0a000002, 80}, {0x0a000003, 80}, {0x0a000004, 80}};

/* The plan of a route with this spec and annotations; NULL: refused, with the reason in '*e'. */
static struct route_plan *plan_of(const char *spec, const char *annotations, size_t endpoints,
                                  struct err *e)
{
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"namespace\":\"red\",\"name\":\"r\",\"uid\":\"u\","
                  "\"creationTimestamp\":\"2026-11-28T10:00:00Z\",\"annotations\":%s},\"spec\":%s}",
                  annotations, spec);
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP(route_free) struct route *r = NULL;
    struct route_plan *p = NULL;
    assert_int_equal(json_parse(text, strlen(text), &v, e), 0);
    assert_int_equal(route_parse(v, &r, e), 0);
    struct route_plan_service s[4];
    for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
        s[i] = (struct route_plan_service){.endpoints = four + i, .n = i == 0 ? endpoints : 1};
    }
    (void) route_plan_make(&options, r, s, NULL, &p, e);
    return p;
}

static const char *value_of(const struct route_plan *p, enum route_plan_map map, const char *key)
{
    for (size_t i = 0; i < p->n_entries; i++) {
        const struct route_plan_entry *e = &p->entries[i];
        if (e->map == map && streq_null(e->key, key)) {
            return e->value ? e->value : "BACKEND";
        }
    }
    return NULL;
}

#define TO "\"to\":{\"kind\":\"Service\",\"name\":\"a\"}"

static void a_path_has_keys_for_itself_and_what_is_below(void **state)
{
    struct route_plan *p = plan_of("{\"host\":\"h.x\",\"path\":\"/sub\"," TO "}", "{}", 1, NULL);
    assert_string_equal(value_of(p, ROUTE_MAP_HTTP, "h.x/sub?"), "BACKEND");
    assert_string_equal(value_of(p, ROUTE_MAP_HTTP, "h.x/sub/"), "BACKEND");
    assert_null(value_of(p, ROUTE_MAP_HTTP, "h.x/"));
    route_plan_free(p);
    p = plan_of("{\"host\":\"h.x\",\"path\":\"/sub/\"," TO "}", "{}", 1, NULL);
    assert_string_equal(value_of(p, ROUTE_MAP_HTTP, "h.x/sub/"), "BACKEND");
    assert_null(value_of(p, ROUTE_MAP_HTTP, "h.x/sub?"));
    route_plan_free(p);
}

static void policies_choose_the_maps(void **state)
{
    static const struct {
        const char *tls, *http, *https, *sni;
    } rows[] = {
        {"{\"termination\":\"edge\"}", NULL, "BACKEND", NULL},
        {"{\"termination\":\"edge\",\"insecureEdgeTerminationPolicy\":\"Allow\"}", "BACKEND",
         "BACKEND", NULL},
        {"{\"termination\":\"edge\",\"insecureEdgeTerminationPolicy\":\"Redirect\"}", "redirect",
         "BACKEND", NULL},
        {"{\"termination\":\"passthrough\"}", NULL, NULL, "BACKEND"},
        {"{\"termination\":\"passthrough\",\"insecureEdgeTerminationPolicy\":\"Redirect\"}",
         "redirect", NULL, "BACKEND"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *spec = xasprintf("{\"host\":\"h.x\"," TO ",\"tls\":%s}", rows[i].tls);
        struct route_plan *p = plan_of(spec, "{}", 1, NULL);
        assert_true(streq_null(value_of(p, ROUTE_MAP_HTTP, "h.x/"), rows[i].http));
        assert_true(streq_null(value_of(p, ROUTE_MAP_HTTPS, "h.x/"), rows[i].https));
        assert_true(streq_null(value_of(p, ROUTE_MAP_SNI, "h.x"), rows[i].sni));
        route_plan_free(p);
    }
}

static void a_wildcard_is_a_key_of_its_domain(void **state)
{
    struct route_plan *p =
        plan_of("{\"host\":\"any.h.x\",\"wildcardPolicy\":\"Subdomain\"," TO "}", "{}", 1, NULL);
    assert_string_equal(value_of(p, ROUTE_MAP_HTTP_WILDCARD, "h.x/"), "BACKEND");
    assert_int_equal(p->n_entries, 1);
    route_plan_free(p);
}

static void weights_are_shares_of_the_endpoints(void **state)
{
    struct route_plan *p = plan_of("{\"host\":\"h.x\",\"to\":{\"kind\":\"Service\",\"name\":\"a\","
                                   "\"weight\":20},\"alternateBackends\":[{\"kind\":\"Service\","
                                   "\"name\":\"b\",\"weight\":20}]}",
                                   "{}", 2, NULL);
    /* 10.0.0.2 is an endpoint of both; the first service has two endpoints. */
    assert_int_equal(p->n_servers, 2);
    assert_int_equal(p->servers[0].weight, 128);
    assert_non_null(strstr(p->shape, "balance roundrobin"));
    assert_true(p->servers[0].check);
    route_plan_free(p);
    p = plan_of("{\"host\":\"h.x\"," TO "}", "{}", 1, NULL);
    assert_int_equal(p->servers[0].weight, 256);
    assert_string_equal(p->servers[0].args, "10.0.0.1:80");
    assert_non_null(strstr(p->shape, "balance leastconn"));
    route_plan_free(p);
}

static void timeouts_need_no_shape_of_their_own(void **state)
{
    struct route_plan *a = plan_of("{\"host\":\"h.x\"," TO "}",
                                   "{\"haproxy.router.openshift.io/timeout\":\"5500\"}", 1, NULL);
    struct route_plan *b = plan_of("{\"host\":\"i.x\"," TO "}",
                                   "{\"haproxy.router.openshift.io/timeout\":\"2m\"}", 1, NULL);
    assert_string_equal(value_of(a, ROUTE_MAP_TIMEOUT, NULL), "5500");
    assert_string_equal(value_of(b, ROUTE_MAP_TIMEOUT, NULL), "120000");
    assert_string_equal(a->shape_id, b->shape_id);
    assert_true(a->common);
    route_plan_free(a);
    route_plan_free(b);
}

static void texts_that_would_be_configuration_are_refused_or_ignored(void **state)
{
    static const struct {
        const char *path, *annotations, *refusal;
    } rows[] = {
        {"/a\\nbackend x", "{}", "spec.path"},
        {"/a b", "{}", "spec.path"},
        {"/", "{\"haproxy.router.openshift.io/ip_whitelist\":\"1.2.3.4 } http\"}", "ip_whitelist"},
        {"/a", "{\"haproxy.router.openshift.io/rewrite-target\":\"/b' if TRUE\"}",
         "rewrite-target"},
        {"/", "{\"router.openshift.io/cookie_name\":\"x insert\"}", NULL},
        {"/", "{\"haproxy.router.openshift.io/timeout\":\"5s\\nbackend x\"}", NULL},
        {"/", "{\"haproxy.router.openshift.io/hsts_header\":\"max-age=1;x\\r\\nSet-Cookie: a\"}",
         NULL},
        {"/", "{\"haproxy.router.openshift.io/balance\":\"leastconn\\n cookie y\"}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *spec =
            xasprintf("{\"host\":\"h.x\",\"path\":\"%s\"," TO "}", rows[i].path);
        struct err e = {0};
        struct route_plan *p = plan_of(spec, rows[i].annotations, 1, &e);
        if (rows[i].refusal) {
            assert_null(p);
            assert_non_null(strstr(e.text, rows[i].refusal));
        } else {
            struct route_plan *plain = plan_of("{\"host\":\"h.x\"," TO "}", "{}", 1, NULL);
            assert_string_equal(p->shape, plain->shape);
            route_plan_free(plain);
        }
        route_plan_free(p);
    }
}

/* The plan of a route with a header of this action; NULL: refused, with the reason in '*e'. */
static struct route_plan *plan_with_header(const char *direction, const char *name,
                                           const char *action, const char *tls, struct err *e)
{
    CLEANUP_FREE char *spec =
        xasprintf("{\"host\":\"h.x\"," TO ",\"tls\":%s,\"httpHeaders\":{\"actions\":{\"%s\":"
                  "[{\"name\":\"%s\",\"action\":%s}]}}}",
                  tls, direction, name, action);
    return plan_of(spec, "{}", 1, e);
}

#define SET(v) "{\"type\":\"Set\",\"set\":{\"value\":\"" v "\"}}"

static void headers_are_lines_of_the_shape(void **state)
{
    static const struct {
        const char *direction, *name, *action, *line;
    } rows[] = {
        {"request", "X-A", SET("a b"), "    http-request set-header 'X-A' 'a b'\n"},
        {"response", "X-A", SET("%[res.hdr(X-B),lower]"),
         "    http-response set-header 'X-A' '%[res.hdr(X-B),lower]'\n"},
        {"request", "X-A", SET("%{+Q}[ssl_c_der,base64]"),
         "    http-request set-header 'X-A' '%{+Q}[ssl_c_der,base64]'\n"},
        {"response", "Server", "{\"type\":\"Delete\"}", "    http-response del-header 'Server'\n"},
        /* Characters with a meaning outside of quotes are text. */
        {"request", "X'#$", SET("' if TRUE #\\\\ ${HOME} \\\""),
         "    http-request set-header 'X'\\''#$' ''\\'' if TRUE #\\ ${HOME} \"'\n"},
        {"response", "if", SET("100%% %%[x]"), "    http-response set-header 'if' '100%% %%[x]'\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct route_plan *p =
            plan_with_header(rows[i].direction, rows[i].name, rows[i].action, "null", NULL);
        assert_non_null(p);
        assert_non_null(strstr(p->shape, rows[i].line));
        assert_false(p->common);
        route_plan_free(p);
    }
}

static void headers_that_the_router_does_not_change_refuse_the_route(void **state)
{
    static const struct {
        const char *direction, *name, *action, *tls, *refusal;
    } rows[] = {
        {"request", "X", SET("a\\n    server x 10.0.0.9:1"), "null", "must be a value"},
        {"request", "X", SET("%[env(HOME)]"), "null", "must be a value"},
        {"response", "X", SET("%[req.hdr(a)]"), "null", "must be a value"},
        {"request", "X", SET("%[req.hdr(a),map(/etc/passwd)]"), "null", "must be a value"},
        {"request", "X", SET("%[req.hdr(a))]"), "null", "must be a value"},
        {"request", "X", SET("50%"), "null", "must be a value"},
        {"request", "X", SET(""), "null", "is empty"},
        {"request", "X\\nY", SET("a"), "null", "must be a valid"},
        {"request", "X Y", SET("a"), "null", "must be a valid"},
        {"request", "", SET("a"), "null", "must be a valid"},
        {"response", "Set-Cookie", SET("a"), "null", "may not be modified"},
        {"response", "Content-Length", SET("0"), "null", "content-length"},
        {"request", "TRANSFER-encoding", "{\"type\":\"Delete\"}", "null", "transfer-encoding"},
        {"request", "X", SET("a"), "{\"termination\":\"passthrough\"}", "passthrough"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        assert_null(
            plan_with_header(rows[i].direction, rows[i].name, rows[i].action, rows[i].tls, &e));
        if (!strstr(e.text, rows[i].refusal)) {
            fail_msg("row %zu: \"%s\"", i, e.text);
        }
    }
}

static void headers_that_would_not_fit_refuse_the_route(void **state)
{
    char value[4097];
    memset(value, 'v', sizeof value - 1);
    for (int extra = 0; extra < 2; extra++) {
        struct err e = {0};
        value[4095 + extra] = '\0';
        CLEANUP_FREE char *action =
            xasprintf("{\"type\":\"Set\",\"set\":{\"value\":\"%s\"}}", value);
        value[4095 + extra] = 'v';
        struct route_plan *p = plan_with_header("request", "X", action, "null", &e);
        assert_int_equal(!p, extra);
        assert_int_equal(!!strstr(e.text, "more than 4096 bytes"), extra);
        route_plan_free(p);
    }
}

static void times_have_units(void **state)
{
    uint64_t ms;
    assert_int_equal(route_plan_time("5500", &ms), 0);
    assert_int_equal(ms, 5500);
    assert_int_equal(route_plan_time("3h", &ms), 0);
    assert_int_equal(ms, 10800000);
    assert_int_equal(route_plan_time("1us", &ms), 0);
    assert_int_equal(ms, 1);
    static const char *const wrong[] = {"", "0s", "01s", "-1s", "1.5s", "5 s", "5sec", "s"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        assert_int_equal(route_plan_time(wrong[i], &ms), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_has_keys_for_itself_and_what_is_below),
        cmocka_unit_test(policies_choose_the_maps),
        cmocka_unit_test(a_wildcard_is_a_key_of_its_domain),
        cmocka_unit_test(weights_are_shares_of_the_endpoints),
        cmocka_unit_test(timeouts_need_no_shape_of_their_own),
        cmocka_unit_test(texts_that_would_be_configuration_are_refused_or_ignored),
        cmocka_unit_test(headers_are_lines_of_the_shape),
        cmocka_unit_test(headers_that_the_router_does_not_change_refuse_the_route),
        cmocka_unit_test(headers_that_would_not_fit_refuse_the_route),
        cmocka_unit_test(times_have_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
