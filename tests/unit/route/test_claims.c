/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a host name: the tables of the original's router as cases, every small set of
 * routes in every order, and random histories.  The two forms must agree after each change. */
#include "base/mem.h"
#include "rng.h"
#include "route/claims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

/* A route of tests: its texts are borrowed. */
static struct route make(const char *ns, const char *name, int64_t created, const char *host,
                         const char *path, bool wild)
{
    return (struct route){.namespace = (char *) ns,
                          .name = (char *) name,
                          .uid = (char *) name,
                          .version = (char *) "1",
                          .created_s = created,
                          .host = (char *) host,
                          .subdomain = (char *) "",
                          .path = (char *) path,
                          .wildcard = wild ? ROUTE_WILDCARD_SUBDOMAIN : ROUTE_WILDCARD_NONE};
}

static void same_verdict(const struct route_verdict *a, const struct route_verdict *b)
{
    assert_non_null(b);
    assert_int_equal(a->admitted, b->admitted);
    assert_true(streq_null(a->reason, b->reason));
    assert_true(streq_null(a->message, b->message));
}

/* Decides about the routes in both forms, the incremental one in the order given. */
static void decide_both(const struct route_claims_options *o, const struct route *const *routes,
                        size_t n, struct route_verdict *ret)
{
    CLEANUP(route_claims_free) struct route_claims *c = route_claims_new(o);
    route_claims_decide(o, routes, n, ret);
    for (size_t i = 0; i < n; i++) {
        route_claims_set(c, routes[i]);
    }
    for (size_t i = 0; i < n; i++) {
        same_verdict(&ret[i], route_claims_verdict(c, routes[i]->namespace, routes[i]->name));
    }
}

/* ---- tables ---- */

struct row {
    const char *ns, *name;
    int64_t created;
    const char *host, *path;
    bool wild;
    const char *want; /* The message; NULL: admitted. */
};

#define OTHER(host, name) "a route in another namespace holds " host " and is older than " name
#define OTHER_HOST(host) "a route in another namespace holds host " host

static void check_rows(const struct route_claims_options *o, const struct row *rows, size_t n)
{
    struct route *routes = xcalloc(n, sizeof *routes);
    const struct route **list = xcalloc(n, sizeof *list);
    struct route_verdict *v = xcalloc(n, sizeof *v);
    for (size_t i = 0; i < n; i++) {
        routes[i] = make(rows[i].ns, rows[i].name, rows[i].created, rows[i].host, rows[i].path,
                         rows[i].wild);
        list[i] = &routes[i];
    }
    decide_both(o, list, n, v);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].want) {
            assert_non_null(v[i].message);
            assert_string_equal(v[i].message, rows[i].want);
            assert_string_equal(v[i].reason, ROUTE_HOST_CLAIMED);
        } else {
            assert_true(v[i].admitted);
            assert_null(v[i].message);
        }
        route_verdict_done(&v[i]);
    }
    free(v);
    free(list);
    free(routes);
}

#define CHECK(o, rows) check_rows(o, rows, ARRAY_SIZE(rows))

static void the_oldest_route_has_the_host_for_its_namespace(void **state)
{
    static const struct row rows[] = {
        {"b", "late", 2, "www.x.test", "/free", false, OTHER("www.x.test", "late")},
        {"a", "first", 1, "www.x.test", "", false, NULL},
        {"a", "path", 3, "www.x.test", "/p", false, NULL},
        {"a", "again", 4, "www.x.test", "/p", false,
         "route path already exposes www.x.test and is older"},
        {"a", "slash", 5, "www.x.test", "/", false, NULL},
        {"b", "own", 5, "own.x.test", "", false, NULL},
    };
    CHECK(&(struct route_claims_options){0}, rows);
}

static void the_uid_decides_among_routes_of_one_second(void **state)
{
    static const struct row rows[] = {
        {"b", "r2", 1, "www.x.test", "", false, OTHER("www.x.test", "r2")},
        {"a", "r1", 1, "www.x.test", "", false, NULL},
    };
    CHECK(&(struct route_claims_options){0}, rows);
}

static void namespaces_share_a_host_without_the_check(void **state)
{
    static const struct row rows[] = {
        {"a", "first", 1, "www.x.test", "", false, NULL},
        {"b", "path", 2, "www.x.test", "/p", false, NULL},
        {"c", "again", 3, "www.x.test", "/p", false, OTHER("www.x.test", "again")},
    };
    CHECK(&(struct route_claims_options){.share_hosts = true}, rows);
}

static void wildcards_take_a_domain_for_their_namespace(void **state)
{
    static const struct row rows[] = {
        {"a", "w", 1, "wild.x.test", "", true, NULL},
        {"a", "own", 2, "www.x.test", "", false, NULL},
        {"a", "w2", 3, "other.x.test", "", true,
         "wildcard route a/w has host *.x.test, blocking other.x.test"},
        {"a", "wpath", 3, "other.x.test", "/p", true, NULL},
        {"b", "foreign", 4, "b.x.test", "", false, OTHER_HOST("b.x.test")},
        {"b", "fwild", 4, "b.x.test", "", true, OTHER_HOST("b.x.test")},
        {"b", "deep", 4, "a.b.x.test", "", false, NULL},
        {"b", "domain", 4, "x.test", "", false, NULL},
    };
    CHECK(&(struct route_claims_options){.wildcards = true}, rows);
}

static void one_older_host_of_another_namespace_blocks_a_wildcard(void **state)
{
    static const struct row rows[] = {
        {"b", "host", 1, "b.x.test", "", false, NULL},
        {"a", "w", 2, "wild.x.test", "", true, OTHER_HOST("wild.x.test")},
        {"c", "free", 3, "c.x.test", "", false, NULL},
    };
    CHECK(&(struct route_claims_options){.wildcards = true}, rows);
    static const struct row shared[] = {
        {"b", "host", 1, "b.x.test", "", false, NULL},
        {"a", "w", 2, "wild.x.test", "", true, NULL},
        {"c", "w2", 3, "c.x.test", "", true, OTHER_HOST("c.x.test")},
    };
    const struct route_claims_options both = {.wildcards = true, .share_hosts = true};
    CHECK(&both, shared);
}

static void a_wildcard_of_a_top_level_domain_takes_all_of_it(void **state)
{
    static const struct row rows[] = {
        {"a", "w", 1, "wild.play", "", true, NULL},
        {"b", "r", 2, "vinyl.play", "", false, OTHER_HOST("vinyl.play")},
    };
    CHECK(&(struct route_claims_options){.wildcards = true}, rows);
}

static void want_refusal(const struct route_claims_options *o, const struct route *r,
                         const char *reason, const char *message)
{
    struct route_verdict v = {0};
    decide_both(o, &r, 1, &v);
    assert_false(v.admitted);
    assert_string_equal(v.reason, reason);
    assert_string_equal(v.message, message);
    route_verdict_done(&v);
}

static void a_route_is_refused_for_what_it_is(void **state)
{
    struct route_domains denied, allowed;
    const struct route_claims_options none = {0};
    struct route r = make("a", "r", 1, "", "", false);
    route_domains_init(&denied, "ops.openshift.org, metrics.kates.net");
    route_domains_init(&allowed, "openshift.org, kates.net");
    const struct route_claims_options lists = {.denied = &denied, .allowed = &allowed};
    want_refusal(&none, &r, ROUTE_NO_HOST, "no host value was defined for the route");
    r.host = (char *) "UP.test";
    want_refusal(&none, &r, ROUTE_INVALID_HOST,
                 "host name validation errors: spec.host: Invalid value: \"UP.test\": host must "
                 "conform to DNS 952 subdomain conventions");
    r.host = (char *) "log.ops.openshift.org";
    want_refusal(&lists, &r, ROUTE_NOT_ADMITTED, "host in list of denied domains");
    r.host = (char *) "www.block.it";
    want_refusal(&lists, &r, ROUTE_NOT_ADMITTED, "host not in the allowed list of domains");
    r.wildcard = ROUTE_WILDCARD_SUBDOMAIN;
    want_refusal(&none, &r, ROUTE_NOT_ADMITTED, "wildcard routes are not allowed");
    r.wildcard = ROUTE_WILDCARD_UNKNOWN;
    want_refusal(&none, &r, ROUTE_NOT_ADMITTED, "unknown wildcard policy");
    r.wildcard = ROUTE_WILDCARD_NONE;
    r.wrong = (char *) "spec.path: wrong";
    want_refusal(&none, &r, ROUTE_INVALID, "spec.path: wrong");
    route_domains_done(&denied);
    route_domains_done(&allowed);
}

static void lists_of_domains_admit_as_documented(void **state)
{
    static const struct {
        const char *allowed, *denied, *host;
        bool want;
    } rows[] = {
        {"stickshift.org, kates.net", "", "stickshift.org", true},
        {"stickshift.org, kates.net", "", "www.stickshift.org", true},
        {"stickshift.org, kates.net", "", "erno.r.kube.kates.net", true},
        {"stickshift.org, kates.net", "", "www.open.header.test", false},
        {"stickshift.org, kates.net", "", "drive.ottomatic.org", false},
        {"", "open.header.test, openshift.org, block.it", "foo.header.test", true},
        {"", "open.header.test, openshift.org, block.it", "www.openshift.test", true},
        {"", "open.header.test, openshift.org, block.it", "www.open.header.test", false},
        {"", "open.header.test, openshift.org, block.it", "franco.baresi.block.it", false},
        {"openshift.org, kates.net", "ops.openshift.org, metrics.kates.net", "m.api.openshift.org",
         true},
        {"openshift.org, kates.net", "ops.openshift.org, metrics.kates.net", "ops.openshift.org",
         false},
        {"openshift.org, kates.net", "ops.openshift.org, metrics.kates.net",
         "int.metrics.kates.net", false},
        {"openshift.org, kates.net", "ops.openshift.org, metrics.kates.net", "www.block.it", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct route_domains allowed, denied;
        struct route r = make("a", "r", 1, rows[i].host, "", false);
        const struct route *list = &r;
        struct route_verdict v = {0};
        route_domains_init(&allowed, rows[i].allowed);
        route_domains_init(&denied, rows[i].denied);
        const struct route_claims_options o = {.allowed = &allowed, .denied = &denied};
        decide_both(&o, &list, 1, &v);
        assert_int_equal(v.admitted, rows[i].want);
        route_verdict_done(&v);
        route_domains_done(&allowed);
        route_domains_done(&denied);
    }
}

/* ---- changes ---- */

static bool is_admitted(const struct route_claims *c, const struct route *r)
{
    return route_claims_verdict(c, r->namespace, r->name)->admitted;
}

/* The original left B out: C was not the oldest route of the host. */
static void a_waiting_route_is_admitted_at_once_when_its_rival_goes(void **state)
{
    const struct route_claims_options o = {0};
    struct route a = make("n", "a", 1, "h.test", "/", false);
    struct route b = make("n", "b", 5, "h.test", "/a", false);
    struct route c = make("n", "c", 3, "h.test", "/a", false);
    CLEANUP(route_claims_free) struct route_claims *claims = route_claims_new(&o);
    route_claims_set(claims, &a);
    route_claims_set(claims, &b);
    assert_true(is_admitted(claims, &b));
    route_claims_set(claims, &c);
    assert_true(is_admitted(claims, &c));
    assert_false(is_admitted(claims, &b));
    assert_true(route_claims_remove(claims, "n", "c"));
    assert_true(is_admitted(claims, &b));
    assert_false(route_claims_remove(claims, "n", "c"));
}

static void a_claim_ends_with_the_route_that_made_it(void **state)
{
    const struct route_claims_options o = {0};
    struct route old = make("n1", "old", 1, "h.test", "", false);
    struct route mid = make("n2", "mid", 2, "h.test", "", false);
    struct route late = make("n1", "late", 3, "h.test", "/p", false);
    CLEANUP(route_claims_free) struct route_claims *c = route_claims_new(&o);
    route_claims_set(c, &old);
    route_claims_set(c, &mid);
    route_claims_set(c, &late);
    assert_true(is_admitted(c, &late));
    assert_false(is_admitted(c, &mid));
    route_claims_remove(c, "n1", "old");
    assert_true(is_admitted(c, &mid));
    assert_false(is_admitted(c, &late));
    struct route anew = make("n1", "old", 9, "h.test", "", false);
    route_claims_set(c, &anew);
    assert_false(is_admitted(c, &anew));
}

static void count_change(void *ctx, const struct route *r, const struct route_verdict *v)
{
    size_t *n = ctx;
    assert_true(v->admitted || v->message);
    assert_non_null(r->name);
    (*n)++;
}

static void changes_are_told_once(void **state)
{
    const struct route_claims_options o = {.wildcards = true};
    struct route a = make("a", "a", 2, "a.x.test", "", false);
    struct route b = make("b", "b", 3, "b.x.test", "", false);
    struct route w = make("c", "w", 1, "w.x.test", "", true);
    size_t n = 0;
    CLEANUP(route_claims_free) struct route_claims *c = route_claims_new(&o);
    route_claims_set(c, &a);
    route_claims_set(c, &b);
    route_claims_set(c, &b);
    route_claims_take_changes(c, count_change, &n);
    assert_int_equal(n, 2);
    n = 0;
    route_claims_set(c, &w); /* Refuses both. */
    route_claims_take_changes(c, count_change, &n);
    assert_int_equal(n, 3);
    n = 0;
    route_claims_remove(c, "c", "w");
    route_claims_take_changes(c, count_change, &n);
    assert_int_equal(n, 2);
    n = 0;
    route_claims_each(c, count_change, &n);
    assert_int_equal(n, 2);
    assert_int_equal(route_claims_size(c), 2);
}

/* ---- every small set, in every order ---- */

#define SMALL 4
/* Namespace, host, path and wildcard of one route. */
#define SHAPES 24

static struct route shape(size_t i, size_t age)
{
    static const char *const names[] = {"r0", "r1", "r2", "r3"};
    static const char *const hosts[] = {"a.x.t", "b.x.t", "c.x.t"};
    return make(i & 1 ? "n1" : "n2", names[age], (int64_t) (age / 2), hosts[(i >> 1) % 3],
                (i / 6) & 1 ? "/p" : "", (i / 12) & 1);
}

static void check_orders(const struct route_claims_options *o, const struct route *routes, size_t n)
{
    static const uint8_t orders[24][SMALL] = {
        {0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1},
        {1, 0, 2, 3}, {1, 0, 3, 2}, {1, 2, 0, 3}, {1, 2, 3, 0}, {1, 3, 0, 2}, {1, 3, 2, 0},
        {2, 0, 1, 3}, {2, 0, 3, 1}, {2, 1, 0, 3}, {2, 1, 3, 0}, {2, 3, 0, 1}, {2, 3, 1, 0},
        {3, 0, 1, 2}, {3, 0, 2, 1}, {3, 1, 0, 2}, {3, 1, 2, 0}, {3, 2, 0, 1}, {3, 2, 1, 0}};
    const struct route *list[SMALL];
    struct route_verdict v[SMALL] = {0};
    for (size_t i = 0; i < n; i++) {
        list[i] = &routes[i];
    }
    route_claims_decide(o, list, n, v);
    /* The oldest one always has its host. */
    assert_true(v[0].admitted);
    for (size_t k = 0; k < 24; k++) {
        CLEANUP(route_claims_free) struct route_claims *c = route_claims_new(o);
        for (size_t i = 0; i < SMALL; i++) {
            if (orders[k][i] < n) {
                route_claims_set(c, &routes[orders[k][i]]);
            }
        }
        for (size_t i = 0; i < n; i++) {
            same_verdict(&v[i], route_claims_verdict(c, routes[i].namespace, routes[i].name));
        }
    }
    for (size_t i = 0; i < n; i++) {
        route_verdict_done(&v[i]);
    }
}

static void every_set_of_three_routes_has_one_answer_in_every_order(void **state)
{
    for (unsigned share = 0; share < 2; share++) {
        const struct route_claims_options o = {.wildcards = true, .share_hosts = share};
        for (size_t i = 0; i < SHAPES; i++) {
            for (size_t j = 0; j < SHAPES; j++) {
                for (size_t k = 0; k < SHAPES; k++) {
                    struct route r[3] = {shape(i, 0), shape(j, 1), shape(k, 2)};
                    check_orders(&o, r, 3);
                }
            }
        }
    }
}

/* ---- random histories ---- */

#define POOL 40
#define STEPS 600

struct pool {
    struct route routes[2][POOL]; /* The version in use, and the next one. */
    char names[POOL][8];
    bool there[POOL];
    uint8_t used[POOL]; /* Which of the two. */
};

static void compare_all(const struct route_claims_options *o, struct pool *p,
                        const struct route_claims *c)
{
    const struct route *list[POOL];
    struct route_verdict v[POOL] = {0};
    size_t n = 0;
    for (size_t i = 0; i < POOL; i++) {
        if (p->there[i]) {
            list[n++] = &p->routes[p->used[i]][i];
        }
    }
    route_claims_decide(o, list, n, v);
    assert_int_equal(n, route_claims_size(c));
    for (size_t i = 0; i < n; i++) {
        same_verdict(&v[i], route_claims_verdict(c, list[i]->namespace, list[i]->name));
        route_verdict_done(&v[i]);
    }
}

static void change_one(struct pool *p, struct route_claims *c, bool one_host)
{
    static const char *const spaces[] = {"n1", "n2", "n3"};
    static const char *const hosts[] = {"a.x.t", "b.x.t", "c.x.t", "a.y.t", "x.t", "t", "BAD"};
    static const char *const paths[] = {"",   "/",  "/a", "/b", "/c", "/d", "/e", "/f",
                                        "/g", "/h", "/i", "/j", "/k", "/l", "/m", "/n"};
    size_t i = below(POOL);
    struct route *now = &p->routes[p->used[i]][i];
    if (p->there[i] && below(3) == 0) {
        assert_true(route_claims_remove(c, now->namespace, now->name));
        p->there[i] = false;
        return;
    }
    struct route *next = &p->routes[!p->used[i]][i];
    *next = make(spaces[i % 3], p->names[i], (int64_t) below(20),
                 hosts[one_host ? 0 : below(ARRAY_SIZE(hosts))],
                 paths[below(one_host ? ARRAY_SIZE(paths) : 3)], !one_host && below(4) == 0);
    route_claims_set(c, next);
    p->used[i] = !p->used[i];
    p->there[i] = true;
}

static void both_forms_agree_after_every_change(void **state)
{
    for (unsigned seed = 1; seed <= 12; seed++) {
        const struct route_claims_options o = {.wildcards = seed % 3 != 0,
                                               .share_hosts = seed % 2 == 0};
        CLEANUP(route_claims_free) struct route_claims *c = route_claims_new(&o);
        rng_start(seed);
        struct pool *p = NEW(struct pool);
        for (size_t i = 0; i < POOL; i++) {
            snprintf(p->names[i], sizeof p->names[i], "r%zu", i);
        }
        for (unsigned step = 0; step < STEPS; step++) {
            change_one(p, c, seed > 9);
            compare_all(&o, p, c);
        }
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_route_has_the_host_for_its_namespace),
        cmocka_unit_test(the_uid_decides_among_routes_of_one_second),
        cmocka_unit_test(namespaces_share_a_host_without_the_check),
        cmocka_unit_test(wildcards_take_a_domain_for_their_namespace),
        cmocka_unit_test(one_older_host_of_another_namespace_blocks_a_wildcard),
        cmocka_unit_test(a_wildcard_of_a_top_level_domain_takes_all_of_it),
        cmocka_unit_test(a_route_is_refused_for_what_it_is),
        cmocka_unit_test(lists_of_domains_admit_as_documented),
        cmocka_unit_test(a_waiting_route_is_admitted_at_once_when_its_rival_goes),
        cmocka_unit_test(a_claim_ends_with_the_route_that_made_it),
        cmocka_unit_test(changes_are_told_once),
        cmocka_unit_test(every_set_of_three_routes_has_one_answer_in_every_order),
        cmocka_unit_test(both_forms_agree_after_every_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
