/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "datapath/ovs/flow_table.h"
#include "sdn/service_flows.h"

#include <malloc.h>
#include <stdio.h>

/* Keys are numbers (table 0, in_port), what a flow does is another number (output). */
#define KEYS 10
#define GROUPS 6
#define COOKIE(g) ((uint64_t) (g) + 1)

static struct of_flow *flow(uint64_t cookie, unsigned key, unsigned what)
{
    struct of_builder b;
    of_begin(&b, 0, 100, cookie);
    of_match_in_port(&b, key);
    of_act_output(&b, what);
    return of_end(&b);
}

static uint64_t set(struct flow_table *t, unsigned group, size_t n, const unsigned (*flows)[2])
{
    struct of_flow_list l = {0};
    for (size_t i = 0; i < n; i++) {
        of_flow_list_add(&l, flow(COOKIE(group), flows[i][0], flows[i][1]));
    }
    uint64_t generation = flow_table_set_group(t, COOKIE(group), &l);
    assert_null(l.flows);
    return generation;
}
#define SET(t, group, ...)                                                       \
    set(t, group, sizeof((unsigned[][2]){__VA_ARGS__}) / (2 * sizeof(unsigned)), \
        (unsigned[][2]){__VA_ARGS__})

/* ---- a switch ---- */

struct fake {
    struct of_flow *flows[KEYS]; /* By key. */
};

static unsigned key_of(const struct of_flow *f)
{
    for (unsigned k = 0; k < KEYS; k++) {
        struct of_flow *x = flow(f->cookie, k, 0);
        bool same = of_flow_same_key(x, f);
        of_flow_free(x);
        if (same) {
            return k;
        }
    }
    fail_msg("a flow with a key that nobody made");
    return 0;
}

static void fake_apply(struct fake *s, struct flow_table *t, const struct flow_change *c, size_t n)
{
    bool deletes_are_over = false;
    for (size_t i = 0; i < n; i++) {
        const struct of_flow *f = flow_table_flow(t, &c[i]);
        unsigned k = key_of(f);
        if (c[i].command == OF_FLOW_ADD) {
            deletes_are_over = true;
            /* A change that changes nothing would be a waste. */
            assert_false(s->flows[k] && of_flow_equal(s->flows[k], f));
            of_flow_free(s->flows[k]);
            s->flows[k] = of_flow_clone(f);
        } else {
            assert_int_equal(c[i].command, OF_FLOW_DELETE_STRICT);
            assert_false(deletes_are_over);
            assert_non_null(s->flows[k]);
            s->flows[k] = of_flow_free(s->flows[k]);
        }
    }
}

static void fake_dump(struct fake *s, struct flow_table *t)
{
    flow_table_dump_begin(t);
    for (unsigned k = 0; k < KEYS; k++) {
        if (s->flows[k]) {
            flow_table_dump_flow(t, s->flows[k]);
        }
    }
    flow_table_dump_end(t);
}

static void fake_done(struct fake *s)
{
    for (unsigned k = 0; k < KEYS; k++) {
        of_flow_free(s->flows[k]);
    }
}

/* Sends what is due until nothing is; returns how many changes there were. */
static size_t sync(struct flow_table *t, struct fake *s)
{
    size_t total = 0, n;
    struct flow_change *c = NULL;
    while ((n = flow_table_build(t, &c)) > 0) {
        fake_apply(s, t, c, n);
        free(c);
        flow_table_built_done(t, true);
        total += n;
    }
    return total;
}

/* What is under key 'k': cookie * 100 + output; 0: nothing. */
static uint64_t at(const struct fake *s, unsigned k)
{
    const struct of_flow *f = s->flows[k];
    for (unsigned what = 0; f && what < 100; what++) {
        struct of_flow *x = flow(f->cookie, k, what);
        bool same = of_flow_equal(x, f);
        of_flow_free(x);
        if (same) {
            return f->cookie * 100 + what;
        }
    }
    return 0;
}

struct world {
    struct flow_table t;
    struct fake s;
};

static int setup(void **state)
{
    struct world *w = NEW(struct world);
    flow_table_init(&w->t);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    flow_table_done(&w->t);
    fake_done(&w->s);
    free(w);
    return 0;
}

/* ---- tests ---- */

static void nothing_is_sent_before_a_dump(void **state)
{
    struct world *w = *state;
    struct flow_change *c = NULL;
    uint64_t g = SET(&w->t, 0, {1, 1});
    assert_int_equal(flow_table_build(&w->t, &c), 0);
    assert_false(flow_table_in_place(&w->t, g));
    assert_false(flow_table_in_place(&w->t, 0));
    fake_dump(&w->s, &w->t);
    assert_int_equal(sync(&w->t, &w->s), 1);
    assert_true(flow_table_in_place(&w->t, g));
    assert_int_equal(at(&w->s, 1), 101);
}

static void replaced_group_changes_only_what_differs(void **state)
{
    struct world *w = *state;
    fake_dump(&w->s, &w->t);
    SET(&w->t, 0, {1, 1}, {2, 1}, {3, 1});
    assert_int_equal(sync(&w->t, &w->s), 3);
    uint64_t same = SET(&w->t, 0, {3, 1}, {2, 1}, {1, 1});
    assert_true(flow_table_in_place(&w->t, same));
    assert_int_equal(sync(&w->t, &w->s), 0);
    SET(&w->t, 0, {1, 1}, {2, 5}, {4, 1});
    assert_int_equal(sync(&w->t, &w->s), 3); /* 2 overwritten, 3 deleted, 4 added. */
    assert_int_equal(at(&w->s, 2), 105);
    assert_int_equal(at(&w->s, 3), 0);
    uint64_t g = flow_table_remove_group(&w->t, COOKIE(0));
    assert_false(flow_table_in_place(&w->t, g));
    assert_int_equal(sync(&w->t, &w->s), 3);
    assert_true(flow_table_in_place(&w->t, g));
    assert_int_equal(w->t.n_wanted, 0);
    assert_int_equal(flow_table_remove_group(&w->t, COOKIE(3)), 0);
}

static void change_taken_back_before_it_is_sent_costs_nothing(void **state)
{
    struct world *w = *state;
    fake_dump(&w->s, &w->t);
    SET(&w->t, 0, {1, 1});
    assert_int_equal(sync(&w->t, &w->s), 1);
    SET(&w->t, 0, {1, 2});
    SET(&w->t, 1, {5, 5});
    flow_table_remove_group(&w->t, COOKIE(1));
    SET(&w->t, 0, {1, 1});
    assert_int_equal(sync(&w->t, &w->s), 0);
    flow_table_remove_group(&w->t, COOKIE(0));
    SET(&w->t, 0, {1, 1});
    assert_int_equal(sync(&w->t, &w->s), 0);
}

static void changes_during_a_bundle_come_in_the_next(void **state)
{
    struct world *w = *state;
    struct flow_change *c = NULL;
    fake_dump(&w->s, &w->t);
    uint64_t first = SET(&w->t, 0, {1, 1}, {2, 1});
    size_t n = flow_table_build(&w->t, &c);
    assert_int_equal(n, 2);
    uint64_t second = SET(&w->t, 0, {2, 2});
    assert_int_equal(flow_table_build(&w->t, &(struct flow_change *){NULL}), 0);
    fake_apply(&w->s, &w->t, c, n);
    free(c);
    flow_table_built_done(&w->t, true);
    assert_true(flow_table_in_place(&w->t, first));
    assert_false(flow_table_in_place(&w->t, second));
    assert_int_equal(sync(&w->t, &w->s), 2);
    assert_true(flow_table_in_place(&w->t, second));
    assert_int_equal(at(&w->s, 1), 0);
    assert_int_equal(at(&w->s, 2), 102);
}

static void of_two_groups_with_one_key_the_lower_cookie_has_it(void **state)
{
    struct world *w = *state;
    fake_dump(&w->s, &w->t);
    SET(&w->t, 3, {1, 3});
    sync(&w->t, &w->s);
    SET(&w->t, 2, {1, 2});
    assert_int_equal(sync(&w->t, &w->s), 1);
    assert_int_equal(at(&w->s, 1), 302);
    SET(&w->t, 4, {1, 4});
    assert_int_equal(sync(&w->t, &w->s), 0);
    flow_table_remove_group(&w->t, COOKIE(2));
    assert_int_equal(sync(&w->t, &w->s), 1);
    assert_int_equal(at(&w->s, 1), 403);
    /* Two that swap keys in one step. */
    SET(&w->t, 0, {5, 0});
    SET(&w->t, 1, {6, 1});
    sync(&w->t, &w->s);
    SET(&w->t, 0, {6, 0});
    SET(&w->t, 1, {5, 1});
    assert_int_equal(sync(&w->t, &w->s), 2);
    assert_int_equal(at(&w->s, 6), 100);
    assert_int_equal(at(&w->s, 5), 201);
}

static void dump_finds_foreign_missing_and_changed_flows(void **state)
{
    struct world *w = *state;
    SET(&w->t, 0, {1, 1}, {2, 1}, {3, 1});
    w->s.flows[1] = flow(COOKIE(0), 1, 1); /* As it should be. */
    w->s.flows[2] = flow(COOKIE(0), 2, 9); /* Changed. */
    w->s.flows[4] = flow(0xdead, 4, 1);    /* Foreign. */
    fake_dump(&w->s, &w->t);
    assert_int_equal(w->t.foreign, 2);
    assert_int_equal(sync(&w->t, &w->s), 3);
    assert_int_equal(at(&w->s, 2), 101);
    assert_int_equal(at(&w->s, 3), 101);
    assert_int_equal(at(&w->s, 4), 0);
    fake_dump(&w->s, &w->t);
    assert_int_equal(w->t.foreign, 0);
    assert_int_equal(sync(&w->t, &w->s), 0);
    /* Found by an audit: one is gone. */
    w->s.flows[1] = of_flow_free(w->s.flows[1]);
    fake_dump(&w->s, &w->t);
    assert_int_equal(w->t.foreign, 1);
    assert_int_equal(sync(&w->t, &w->s), 1);
    assert_int_equal(at(&w->s, 1), 101);
}

static unsigned rnd(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* Whatever happens in between, in the end the switch has for each key the flow of the lowest
 * cookie that wants it, and nothing else. */
static void random_histories_end_in_what_is_wanted(void **state)
{
    for (unsigned seed = 1; seed <= 400; seed++) {
        struct world w = {0};
        flow_table_init(&w.t);
        unsigned x = seed, want[GROUPS][KEYS] = {{0}}; /* 0: not wanted, else output + 1. */
        struct flow_change *c = NULL;
        size_t n = 0;
        for (int step = 0; step < 120; step++) {
            unsigned g = rnd(&x, GROUPS);
            switch (rnd(&x, 8)) {
            case 0:
            case 1:
            case 2: {
                struct of_flow_list l = {0};
                for (unsigned k = 0; k < KEYS; k++) {
                    want[g][k] = rnd(&x, 3) ? 0 : 1 + rnd(&x, 2);
                    if (want[g][k]) {
                        of_flow_list_add(&l, flow(COOKIE(g), k, want[g][k] - 1));
                    }
                }
                flow_table_set_group(&w.t, COOKIE(g), &l);
                break;
            }
            case 3:
                flow_table_remove_group(&w.t, COOKIE(g));
                memset(want[g], 0, sizeof want[g]);
                break;
            case 4:
                if (!c) {
                    n = flow_table_build(&w.t, &c);
                }
                break;
            case 5:
                if (n) {
                    fake_apply(&w.s, &w.t, c, n);
                    flow_table_built_done(&w.t, true);
                    free(TAKE(c));
                    n = 0;
                }
                break;
            case 6:
                if (n && rnd(&x, 2)) { /* Refused. */
                    flow_table_built_done(&w.t, false);
                } else if (n) { /* Lost, and nobody knows whether it was taken. */
                    if (rnd(&x, 2)) {
                        fake_apply(&w.s, &w.t, c, n);
                    }
                    flow_table_disconnect(&w.t);
                } else if (rnd(&x, 4) == 0) {
                    flow_table_disconnect(&w.t);
                }
                free(TAKE(c));
                n = 0;
                break;
            case 7:
                if (!n) {
                    unsigned k = rnd(&x, KEYS);
                    of_flow_free(w.s.flows[k]);
                    w.s.flows[k] = rnd(&x, 2) ? flow(COOKIE(rnd(&x, GROUPS)), k, rnd(&x, 2)) : NULL;
                    fake_dump(&w.s, &w.t);
                }
                break;
            }
        }
        if (n) {
            fake_apply(&w.s, &w.t, c, n);
            flow_table_built_done(&w.t, true);
        }
        free(c);
        if (!w.t.dumped) {
            fake_dump(&w.s, &w.t);
        }
        sync(&w.t, &w.s);
        size_t wanted = 0;
        for (unsigned k = 0; k < KEYS; k++) {
            uint64_t expected = 0;
            for (unsigned g = 0; g < GROUPS; g++) {
                wanted += want[g][k] != 0;
                if (want[g][k] && !expected) {
                    expected = COOKIE(g) * 100 + want[g][k] - 1;
                }
            }
            if (at(&w.s, k) != expected) {
                fail_msg("seed %u key %u: %lu instead of %lu", seed, k, at(&w.s, k), expected);
            }
        }
        assert_int_equal(w.t.n_wanted, wanted);
        fake_dump(&w.s, &w.t);
        assert_int_equal(sync(&w.t, &w.s), 0);
        flow_table_done(&w.t);
        fake_done(&w.s);
    }
}

/* The one change that is due. */
static struct flow_change only_change(struct flow_table *t)
{
    struct flow_change *c = NULL;
    assert_int_equal(flow_table_build(t, &c), 1);
    struct flow_change one = *c;
    free(c);
    return one;
}

/* Connections of an endpoint that serves no more may go on: its flow ends by itself,
 * when they are silent. */
static void flow_of_an_endpoint_that_went_lingers(void **state)
{
    struct flow_table *t = &((struct world *) *state)->t;
    uint64_t cookie = pipeline_service_endpoint_cookie(0x0a800002, 8080);
    struct of_flow_list l = {0};
    pipeline_service_endpoint(0x0a800002, 8080, true, false, &l);
    struct of_flow *in_switch = of_flow_clone(l.flows[0]);
    flow_table_set_group(t, cookie, &l);
    /* Nothing is sent before the flows of the switch are known. */
    assert_int_equal(flow_table_build(t, &(struct flow_change *){NULL}), 0);
    flow_table_dump_begin(t);
    flow_table_dump_end(t);
    struct flow_change c = only_change(t);
    assert_int_equal(c.command, OF_FLOW_ADD);
    assert_int_equal(c.idle_s, 0);
    flow_table_built_done(t, true);

    flow_table_remove_group(t, cookie);
    c = only_change(t);
    assert_int_equal(c.command, OF_FLOW_ADD);
    assert_int_equal(c.idle_s, pipeline_linger_s(cookie));
    assert_true(c.idle_s > 0 && of_flow_equal(flow_table_flow(t, &c), in_switch));
    flow_table_built_done(t, true);
    assert_int_equal(t->store.n, 0);

    /* As it expires, it is nobody's: found, and left alone. */
    struct of_flow *found = of_flow_clone(in_switch);
    found->expires = 1;
    flow_table_dump_begin(t);
    flow_table_dump_flow(t, found);
    of_flow_free(found);
    flow_table_dump_end(t);
    assert_int_equal(t->foreign, 0);
    struct flow_change *none = NULL;
    assert_int_equal(flow_table_build(t, &none), 0);

    /* It comes back: for good, in place of that. */
    pipeline_service_endpoint(0x0a800002, 8080, true, false, &l);
    flow_table_set_group(t, cookie, &l);
    c = only_change(t);
    assert_int_equal(c.command, OF_FLOW_ADD);
    assert_int_equal(c.idle_s, 0);
    flow_table_built_done(t, true);

    /* Another agent finds it, and does not want it. */
    flow_table_done(t);
    flow_table_init(t);
    flow_table_dump_begin(t);
    flow_table_dump_flow(t, in_switch);
    flow_table_dump_end(t);
    c = only_change(t);
    assert_true(c.command == OF_FLOW_ADD && c.idle_s > 0);
    flow_table_built_done(t, true);
    of_flow_free(in_switch);
}

/* Only what our pipeline makes for endpoints: those flows never drop. */
static void flow_that_only_looks_like_an_endpoints_goes_at_once(void **state)
{
    struct flow_table *t = &((struct world *) *state)->t;
    struct of_flow *f =
        flow(pipeline_service_endpoint_cookie(0x0a800002, 8080) | PIPELINE_DROPS, 1, 1);
    flow_table_dump_begin(t);
    flow_table_dump_flow(t, f);
    flow_table_dump_end(t);
    of_flow_free(f);
    assert_int_equal(only_change(t).command, OF_FLOW_DELETE_STRICT);
    flow_table_built_done(t, true);
    assert_int_equal(t->store.n, 0);
}

/* Where nobody learns, a flow that expires is somebody else's. */
static void other_flows_that_expire_are_removed(void **state)
{
    struct flow_table *t = &((struct world *) *state)->t;
    struct of_flow *f = flow(COOKIE(0), 1, 1);
    f->expires = 1;
    flow_table_dump_begin(t);
    flow_table_dump_flow(t, f);
    of_flow_free(f);
    flow_table_dump_end(t);
    assert_int_equal(t->foreign, 1);
    assert_int_equal(only_change(t).command, OF_FLOW_DELETE_STRICT);
    flow_table_built_done(t, true);
}

/* ASan's allocator counts elsewhere. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* Bytes that are allocated. */
static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                   : m.uordblks + m.hblkhd;
}

static void set_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    flow_table_set_group(ctx, cookie, flows);
}

/* The flows, and what is known of the services beside them. */
static void thirty_thousand_services_take_little_memory(void **state)
{
    static const struct service_flows_ops ops = {.set_group = set_group};
    size_t before = allocated();
    struct flow_table t;
    flow_table_init(&t);
    struct sdn_network n = {.plugin = SDN_MULTITENANT,
                            .cluster = {{0x0a800000, 14}},
                            .n_cluster = 1,
                            .service = {0xac1e0000, 16},
                            .vxlan_port = SDN_VXLAN_PORT};
    struct service_flows *f = service_flows_new("node1", &ops, &t);
    service_flows_set_network(f, &n);
    for (uint32_t i = 0; i < 30000; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        struct sdn_endpoint endpoints[] = {
            {.ip = 0x0a800000 + 4 * i, .flags = SDN_ENDPOINT_READY | SDN_ENDPOINT_SERVING},
            {.ip = 0x0a800001 + 4 * i, .flags = SDN_ENDPOINT_READY | SDN_ENDPOINT_SERVING}};
        struct sdn_backend backends[] = {{&endpoints[0], 8080}, {&endpoints[1], 8080}};
        struct sdn_service_port port = {
            .protocol = SDN_TCP, .port = 80, .backends = backends, .n_backends = 2};
        struct sdn_service s = {.namespace = "red",
                                .name = name,
                                .cluster_ip = 0xac1e0001 + i,
                                .ports = &port,
                                .n_ports = 1};
        service_flows_set(f, &s, &(struct sdn_vnids){.id = 10 + i % 500});
    }
    service_flows_flush(f);
    size_t used = allocated() - before;
    print_message("%zu flows of services in %zu KiB\n", t.n_wanted, used >> 10);
    assert_true(t.n_wanted > 150000);
    assert_true(used < t.n_wanted * 110);
    service_flows_free(f);
    flow_table_done(&t);
}

static void thousand_nodes_and_hundred_pods_take_little_memory(void **state)
{
    size_t before = allocated();
    struct flow_table t;
    flow_table_init(&t);
    struct sdn_network n = {.plugin = SDN_MULTITENANT,
                            .cluster = {{0x0a800000, 14}},
                            .n_cluster = 1,
                            .local = {0x0a800000, 23},
                            .vxlan_port = SDN_VXLAN_PORT};
    struct of_flow_list l = {0};
    pipeline_base(&n, &l);
    flow_table_set_group(&t, PIPELINE_BASE_COOKIE, &l);
    for (unsigned i = 1; i <= 1000; i++) {
        struct sdn_remote r = {.host_ip = 0xc0a80000 + i,
                               .subnet = {0x0a810000 + i * 64, 26},
                               .id = i * 0x9e3779b97f4a7c15u};
        pipeline_remote(&n, &r, &l);
        flow_table_set_group(&t, pipeline_remote_cookie(&r), &l);
    }
    for (unsigned i = 0; i < 100; i++) {
        struct pipeline_pod p = {.ofport = 3 + i, .ip = 0x0a800002 + i, .vnid = 10 + i};
        pipeline_pod(&n, &p, &l);
        flow_table_set_group(&t, pipeline_pod_cookie(p.ip), &l);
        pipeline_vnid(&n, p.vnid, &l);
        flow_table_set_group(&t, pipeline_vnid_cookie(p.vnid), &l);
    }
    size_t used = allocated() - before;
    print_message("%zu flows in %zu KiB\n", t.n_wanted, used >> 10);
    assert_true(used < 400 << 10);
    flow_table_done(&t);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nothing_is_sent_before_a_dump),
        T(replaced_group_changes_only_what_differs),
        T(flow_of_an_endpoint_that_went_lingers),
        T(flow_that_only_looks_like_an_endpoints_goes_at_once),
        T(other_flows_that_expire_are_removed),
        T(change_taken_back_before_it_is_sent_costs_nothing),
        T(changes_during_a_bundle_come_in_the_next),
        T(of_two_groups_with_one_key_the_lower_cookie_has_it),
        T(dump_finds_foreign_missing_and_changed_flows),
        cmocka_unit_test(random_histories_end_in_what_is_wanted),
        cmocka_unit_test(thirty_thousand_services_take_little_memory),
        cmocka_unit_test(thousand_nodes_and_hundred_pods_take_little_memory),
    };
    return cmocka_run_group_tests_name("datapath/flow_table", tests, NULL, NULL);
}
