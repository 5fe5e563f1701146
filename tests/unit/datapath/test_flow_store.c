/* SPDX-License-Identifier: Apache-2.0 */
/* Flows are kept packed: whatever they are, what comes out is what went in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "datapath/ovs/flow_store.h"
#include "sdn/pipeline.h"

static uint32_t rnd(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

/* Of few sorts, or of any; with bytes that are mostly alike, or not at all; larger than
 * what can be packed, too. */
static struct of_flow *random_flow(uint32_t *x)
{
    struct of_builder b;
    bool wild = rnd(x, 8) == 0;
    uint64_t cookie = wild ? (uint64_t) rnd(x, 1 << 24) << 40 | rnd(x, 1 << 24)
                           : pipeline_cookie(PIPELINE_POD, rnd(x, 50));
    cookie |= rnd(x, 4) ? 0 : PIPELINE_DROPS;
    of_begin(&b, (uint8_t) (wild ? rnd(x, 200) : 7), (uint16_t) (wild ? rnd(x, 65536) : 100),
             cookie);
    if (rnd(x, 10)) {
        of_match_in_port(&b, rnd(x, 4000));
    }
    if (rnd(x, 3) == 0) {
        of_match_reg(&b, 3, rnd(x, 2) ? rnd(x, 3) : rnd(x, 1 << 24) * 251u);
    }
    uint32_t n = wild ? rnd(x, 40) : rnd(x, 4);
    for (uint32_t i = 0; i < n; i++) {
        of_act_load_reg(&b, i % 8, rnd(x, 2) ? i : rnd(x, 1 << 24) * 251u);
    }
    return of_end(&b);
}

static void assert_same(struct flow_store *s, uint32_t id, const struct of_flow *f)
{
    const struct of_flow *x = flow_store_get(s, id, 1);
    assert_true(of_flow_equal(x, f));
    assert_int_equal(flow_store_at(s, id)->hash, of_flow_hash(f));
    uint32_t g = flow_store_find_group(s, pipeline_group(f->cookie));
    assert_int_equal(g, flow_store_at(s, id)->group);
    bool found = false;
    FLOW_STORE_WITH_HASH(other, s, of_flow_hash(f))
    {
        found |= other == id;
    }
    assert_true(found);
}

#define N 3000

static void what_comes_out_is_what_went_in(void **state)
{
    struct of_flow **flows = xcalloc(N, sizeof *flows);
    uint32_t *ids = xcalloc(N, sizeof *ids), x = 7;
    size_t there = 0;
    struct flow_store s;
    flow_store_init(&s);
    for (int step = 0; step < 40000; step++) {
        uint32_t i = rnd(&x, N);
        if (flows[i]) {
            assert_same(&s, ids[i], flows[i]);
            flow_store_remove(&s, ids[i]);
            flows[i] = of_flow_free(flows[i]);
            there--;
        } else if (step < 30000) {
            flows[i] = random_flow(&x);
            ids[i] = flow_store_add(&s, flows[i], of_flow_hash(flows[i]));
            assert_int_not_equal(ids[i], 0);
            there++;
        }
        assert_int_equal(s.n, there);
    }
    size_t seen = 0, of_groups = 0, groups = 0;
    FLOW_STORE_FOREACH(id, &s)
    {
        seen++;
    }
    for (uint32_t g = 1; g < s.groups_used; g++) {
        groups += s.groups[g].first != 0;
        for (uint32_t id = s.groups[g].first; id; id = flow_store_at(&s, id)->after) {
            assert_int_equal(flow_store_at(&s, id)->group, g);
            of_groups++;
        }
    }
    assert_int_equal(seen, there);
    assert_int_equal(of_groups, there);
    assert_int_equal(groups, s.n_groups);
    for (size_t i = 0; i < N; i++) {
        if (flows[i]) {
            assert_same(&s, ids[i], flows[i]);
        }
    }
    /* All at once, while they are walked: nothing is left, and it can begin again. */
    FLOW_STORE_FOREACH(id, &s)
    {
        flow_store_remove(&s, id);
    }
    assert_int_equal(s.n, 0);
    assert_int_equal(s.n_groups, 0);
    assert_int_equal(s.n_chunks, 0);
    struct of_flow *f = random_flow(&x);
    assert_same(&s, flow_store_add(&s, f, of_flow_hash(f)), f);
    of_flow_free(f);
    flow_store_done(&s);
    for (size_t i = 0; i < N; i++) {
        of_flow_free(flows[i]);
    }
    free(flows);
    free(ids);
}

/* Whoever fills the switch with flows of ever new sorts does not fill our memory with shapes. */
static void there_are_not_more_shapes_than_a_pipeline_needs(void **state)
{
    struct flow_store s;
    flow_store_init(&s);
    for (uint32_t i = 0; i < 20000; i++) {
        struct of_builder b;
        of_begin(&b, (uint8_t) (i & 0x3f), (uint16_t) (i >> 6), i);
        of_match_reg(&b, 1, i * 0x9e3779b9u);
        of_match_reg(&b, 2, UINT32_C(1) << i % 32);
        of_act_load_reg(&b, 3, i);
        struct of_flow *f = of_end(&b);
        uint32_t id = flow_store_add(&s, f, of_flow_hash(f));
        assert_true(of_flow_equal(flow_store_get(&s, id, 0), f));
        of_flow_free(f);
    }
    assert_true(s.shapes.n < 512 * 17 + 1);
    assert_true(s.shapes.kinds.n <= 512);
    flow_store_done(&s);
}

/* Of one sort: not more shapes than it takes to find out what differs. */
static void shapes_of_one_sort_settle(void **state)
{
    struct flow_store s;
    struct of_flow_list l = {0};
    flow_store_init(&s);
    size_t before = 0;
    for (uint32_t i = 0; i < 50000; i++) {
        pipeline_service_endpoint(0x0a800000 + i * 77, 8080, true, false, &l);
        flow_store_add(&s, l.flows[0], of_flow_hash(l.flows[0]));
        of_flow_list_done(&l);
        before = i == 40000 ? s.shapes.n : before;
    }
    assert_int_equal(s.shapes.n, before);
    assert_true(s.shapes.n < 8);
    assert_true(s.n_chunks * 65536 / s.n < 40); /* Bytes a flow. */
    flow_store_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_out_is_what_went_in),
        cmocka_unit_test(there_are_not_more_shapes_than_a_pipeline_needs),
        cmocka_unit_test(shapes_of_one_sort_settle),
    };
    return cmocka_run_group_tests_name("datapath/flow_store", tests, NULL, NULL);
}
