/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of drops: they go on when the flows they come from are made anew or go. */
#include "datapath/ovs/drops.h"
#include "sdn/pipeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct report {
    struct of_flow_list flows;
    struct of_counters counters[8];
};

static void add(struct report *r, uint8_t table, uint64_t cookie, uint32_t port, uint64_t packets)
{
    struct of_builder b;
    of_begin(&b, table, 50, cookie);
    of_match_in_port(&b, port);
    r->counters[r->flows.n] = (struct of_counters){packets, packets * 100};
    of_end_into(&b, &r->flows);
}

static void update(struct drop_counts *d, struct report *r)
{
    drop_counts_update(d, &r->flows, r->counters);
    of_flow_list_done(&r->flows);
}

static void totals_go_on_whatever_becomes_of_the_flows(void **state)
{
    const uint64_t pod = PIPELINE_DROPS | pipeline_pod_cookie(0x0a800002);
    const uint64_t base = PIPELINE_DROPS | PIPELINE_BASE_COOKIE | MODEL_VNID_MISMATCH;
    struct drop_counts d;
    drop_counts_init(&d);
    struct report r = {0};
    add(&r, 20, pod, 3, 5);
    add(&r, 70, pod, 3, 2);
    add(&r, 80, base, 4, 7);
    add(&r, 80, PIPELINE_BASE_COOKIE, 5, 1000); /* Drops nothing. */
    add(&r, 0, UINT64_MAX, 6, 1000);            /* None of ours. */
    update(&d, &r);
    assert_int_equal(d.total[MODEL_SPOOFED_SOURCE], 5);
    assert_int_equal(d.total[MODEL_OWN_ADDRESS], 2);
    assert_int_equal(d.total[MODEL_VNID_MISMATCH], 7);

    add(&r, 20, pod, 3, 6); /* One more. */
    add(&r, 20, pod, 9, 4); /* Another pod. */
    add(&r, 80, base, 4, 7);
    update(&d, &r);
    assert_int_equal(d.total[MODEL_SPOOFED_SOURCE], 10);
    assert_int_equal(d.total[MODEL_VNID_MISMATCH], 7);

    add(&r, 80, base, 4, 3); /* Open vSwitch was started anew. */
    update(&d, &r);
    assert_int_equal(d.total[MODEL_SPOOFED_SOURCE], 10);
    assert_int_equal(d.total[MODEL_VNID_MISMATCH], 10);
    assert_int_equal(d.total[MODEL_OWN_ADDRESS], 2);

    add(&r, 20, pod, 3, 1); /* The port has a pod again. */
    update(&d, &r);
    assert_int_equal(d.total[MODEL_SPOOFED_SOURCE], 11);
    drop_counts_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_go_on_whatever_becomes_of_the_flows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
