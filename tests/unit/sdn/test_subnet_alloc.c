/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/subnet_alloc.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t rng_state;
static uint32_t rng(void)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (rng_state >> 33);
}

static struct ip4_prefix pfx(const char *s)
{
    struct ip4_prefix p = {0};
    struct err e = {0};
    if (prefix_parse(s, &p, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return p;
}

static struct subnet_alloc *make(const char *cidr, uint8_t host_bits)
{
    struct subnet_alloc *a = NULL;
    struct subnet_range rg = {pfx(cidr), host_bits};
    assert_int_equal(subnet_alloc_new(&rg, 1, &a, NULL), 0);
    return a;
}

static struct ip4_prefix next(struct subnet_alloc *a)
{
    struct ip4_prefix p = {0};
    assert_int_equal(subnet_alloc_allocate(a, &p), 0);
    return p;
}

static void assert_next(struct subnet_alloc *a, const char *want)
{
    assert_string_equal(PREFIX_TEXT(next(a)), want);
}

static void assert_full(struct subnet_alloc *a)
{
    struct ip4_prefix p = {1, 2};
    assert_int_equal(subnet_alloc_allocate(a, &p), -ENOSPC);
    assert_true(prefix_equal(p, (struct ip4_prefix){1, 2}));
    assert_int_equal(subnet_alloc_free_slots(a), 0);
}

/* SDN-M-06, SDN-M-07. */
static void default_network_gives_512_subnets_in_order(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.128.0.0/14", 9);
    assert_int_equal(subnet_alloc_slots(a), 512);
    assert_next(a, "10.128.0.0/23");
    assert_next(a, "10.128.2.0/23");
    assert_next(a, "10.128.4.0/23");
    struct ip4_prefix p = {0};
    for (int i = 3; i < 512; i++) {
        assert_int_equal(subnet_alloc_free_slots(a), 512 - i);
        p = next(a);
        assert_int_equal(p.addr, 0x0a800000 + i * 512);
        assert_int_equal(p.len, 23);
    }
    assert_string_equal(PREFIX_TEXT(p), "10.131.254.0/23");
    assert_full(a);
}

/* SDN-M-09, SDN-M-10. */
static void oldest_network_gives_256_subnets(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.1.0.0/16", 8);
    for (int i = 0; i < 256; i++) {
        char want[PREFIX_TEXT_SIZE + 8];
        snprintf(want, sizeof(want), "10.1.%d.0/24", i);
        assert_next(a, want);
    }
    assert_full(a);
}

static void whole_range_as_one_subnet(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.1.0.0/16", 16);
    assert_next(a, "10.1.0.0/16");
    assert_full(a);
    assert_int_equal(subnet_alloc_release(a, pfx("10.1.0.0/16")), 0);
    assert_next(a, "10.1.0.0/16");
}

static void the_whole_address_space_works(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("0.0.0.0/0", 2);
    assert_int_equal(subnet_alloc_slots(a), 1u << 30);
    assert_next(a, "0.0.0.0/30");
    subnet_alloc_mark(a, pfx("0.0.0.0/1"));
    assert_next(a, "128.0.0.0/30");
    assert_int_equal(subnet_alloc_free_slots(a), (1u << 29) - 1);
    subnet_alloc_mark(a, pfx("0.0.0.0/0"));
    assert_full(a);
    assert_int_equal(subnet_alloc_release(a, pfx("0.0.0.0/0")), 0);
    assert_int_equal(subnet_alloc_free_slots(a), (1u << 29) - 1);
    subnet_alloc_seek(a, pfx("255.255.255.252/30"));
    assert_next(a, "128.0.0.4/30");
}

static void second_range_is_used_when_the_first_is_full(void **state)
{
    const struct subnet_range rg[] = {{pfx("10.1.0.0/30"), 2}, {pfx("10.0.0.0/24"), 7}};
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = NULL;
    assert_int_equal(subnet_alloc_new(rg, 2, &a, NULL), 0);
    assert_next(a, "10.1.0.0/30");
    assert_next(a, "10.0.0.0/25");
    assert_int_equal(subnet_alloc_release(a, pfx("10.1.0.0/30")), 0);
    assert_next(a, "10.1.0.0/30");
    assert_next(a, "10.0.0.128/25");
    assert_full(a);
}

static void freed_subnet_is_reused_only_after_the_others(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.0.0.0/24", 6);
    assert_next(a, "10.0.0.0/26");
    assert_next(a, "10.0.0.64/26");
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.0/26")), 0);
    assert_next(a, "10.0.0.128/26");
    assert_next(a, "10.0.0.192/26");
    assert_next(a, "10.0.0.0/26");
    assert_full(a);
}

static void seek_puts_the_cursor_back_after_a_restart(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.0.0.0/24", 5);
    subnet_alloc_mark(a, pfx("10.0.0.64/27"));
    subnet_alloc_mark(a, pfx("10.0.0.96/27"));
    subnet_alloc_seek(a, pfx("10.0.0.64/27"));
    assert_next(a, "10.0.0.128/27");
    subnet_alloc_seek(a, pfx("10.9.0.0/27")); /* Outside: no effect. */
    assert_next(a, "10.0.0.160/27");
    subnet_alloc_seek(a, pfx("10.0.0.192/30")); /* Part of a slot: after that slot. */
    assert_next(a, "10.0.0.224/27");
    subnet_alloc_seek(a, pfx("10.0.0.128/25")); /* Several slots, to the end: around. */
    assert_next(a, "10.0.0.0/27");
}

static void marks_of_other_sizes_block_what_they_overlap(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.0.0.0/22", 8);
    subnet_alloc_mark(a, pfx("10.0.0.128/26")); /* Host subnet length was 6 ... */
    subnet_alloc_mark(a, pfx("10.0.0.192/26"));
    subnet_alloc_mark(a, pfx("10.0.2.0/23")); /* ... and 9. */
    assert_int_equal(subnet_alloc_free_slots(a), 1);
    assert_true(subnet_alloc_overlaps(a, pfx("10.0.0.0/24")));
    assert_false(subnet_alloc_overlaps(a, pfx("10.0.0.0/25")));
    assert_true(subnet_alloc_overlaps(a, pfx("10.0.3.7/32")));
    assert_false(subnet_alloc_overlaps(a, pfx("10.0.1.0/24")));
    assert_next(a, "10.0.1.0/24");
    assert_full(a);
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.128/26")), 0);
    assert_full(a); /* The other half of that slot is still there. */
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.192/26")), 0);
    assert_next(a, "10.0.0.0/24");
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.2.0/23")), 0);
    assert_next(a, "10.0.2.0/24");
    assert_next(a, "10.0.3.0/24");
    assert_full(a);
}

static void marks_outside_are_kept_and_block_nothing_else(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.0.0.0/24", 7);
    subnet_alloc_mark(a, pfx("192.168.0.0/24"));
    assert_false(subnet_alloc_in_range(a, pfx("192.168.0.0/24")));
    assert_true(subnet_alloc_in_range(a, pfx("10.0.0.0/30")));
    assert_false(subnet_alloc_in_range(a, pfx("10.0.0.0/23")));
    assert_int_equal(subnet_alloc_marks(a, pfx("192.168.0.0/24")), 1);
    assert_int_equal(subnet_alloc_free_slots(a), 2);
    /* One that contains the whole range blocks all of it. */
    subnet_alloc_mark(a, pfx("10.0.0.0/8"));
    assert_full(a);
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.0/8")), 0);
    assert_next(a, "10.0.0.0/25");
}

static void marks_are_counted(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.0.0.0/24", 8);
    subnet_alloc_mark(a, pfx("10.0.0.0/24"));
    subnet_alloc_mark(a, pfx("10.0.0.0/24"));
    assert_int_equal(subnet_alloc_marks(a, pfx("10.0.0.0/24")), 2);
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.0/24")), 0);
    assert_full(a);
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.0/24")), 0);
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.0/24")), -ENOENT);
    assert_int_equal(subnet_alloc_release(a, pfx("10.0.0.0/16")), -ENOENT);
    assert_next(a, "10.0.0.0/24");
}

static void bad_ranges_are_refused(void **state)
{
    const struct {
        struct subnet_range rg[2];
        size_t n;
        const char *text;
    } bad[] = {
        {.n = 0, .text = "no cluster network given"},
        {{{pfx("10.128.0.0/14"), 19}}, 1, "10.128.0.0/14: host subnet length 19 is not in 2-18"},
        {{{pfx("10.128.0.0/14"), 1}}, 1, "10.128.0.0/14: host subnet length 1 is not in 2-18"},
        {{{pfx("0.0.0.0/0"), 31}}, 1, "0.0.0.0/0: host subnet length 31 is not in 2-30"},
        {{{pfx("10.0.0.0/31"), 2}}, 1, "10.0.0.0/31: too small to be a cluster network"},
        {{{{0x0a000001, 24}, 2}}, 1, "10.0.0.1/24: has bits set below its length"},
        {{{pfx("10.0.0.0/8"), 9}, {pfx("10.3.0.0/16"), 8}}, 2, "10.3.0.0/16: overlaps 10.0.0.0/8"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct subnet_alloc *a = NULL;
        struct err e = {0};
        assert_int_equal(subnet_alloc_new(bad[i].rg, bad[i].n, &a, &e), -EINVAL);
        assert_string_equal(e.text, bad[i].text);
        assert_null(a);
    }
}

static void memory_grows_with_marks_and_not_with_ranges(void **state)
{
    CLEANUP(subnet_alloc_free) struct subnet_alloc *a = make("10.0.0.0/8", 2);
    assert_true(subnet_alloc_memory(a) < 1024);
    for (int i = 0; i < 10000; i++) {
        (void) next(a);
    }
    size_t full = subnet_alloc_memory(a);
    assert_true(full < 1024 * 1024);
    for (int round = 0; round < 10; round++) { /* Nodes of the trie are used again. */
        for (uint32_t i = 0; i < 10000; i++) {
            struct ip4_prefix p = {0x0a000000 + (round * 10000 + i) * 4, 30};
            assert_int_equal(subnet_alloc_release(a, p), 0);
        }
        for (int i = 0; i < 10000; i++) {
            (void) next(a);
        }
    }
    assert_true(subnet_alloc_memory(a) <= full * 2);
}

/* ---- random histories against a model that compares every pair ---- */

#define MAX_NODES 4000
#define MAX_RANGES 3

struct model {
    struct subnet_range rg[MAX_RANGES];
    size_t n_rg;
    struct ip4_prefix subnet[MAX_NODES]; /* The registry. */
    bool has[MAX_NODES];
    size_t n;
    struct ip4_prefix newest;
};

static bool model_overlaps(const struct model *m, struct ip4_prefix p, size_t except)
{
    for (size_t i = 0; i < m->n; i++) {
        if (i != except && m->has[i] && prefix_overlaps(m->subnet[i], p)) {
            return true;
        }
    }
    return false;
}

static uint64_t model_free_slots(const struct model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n_rg; i++) {
        uint8_t len = (uint8_t) (32 - m->rg[i].host_bits);
        for (uint64_t off = 0; off < prefix_size(m->rg[i].cidr); off += 1u << m->rg[i].host_bits) {
            struct ip4_prefix p = {m->rg[i].cidr.addr + (uint32_t) off, len};
            n += !model_overlaps(m, p, SIZE_MAX);
        }
    }
    return n;
}

static bool model_is_slot(const struct model *m, struct ip4_prefix p)
{
    for (size_t i = 0; i < m->n_rg; i++) {
        if (prefix_contains(m->rg[i].cidr, p.addr) && p.len == 32 - m->rg[i].host_bits) {
            return true;
        }
    }
    return false;
}

/* What a master does when it starts: everything it knows is in the registry. */
static struct subnet_alloc *restart(struct model *m, struct subnet_alloc *a)
{
    subnet_alloc_free(a);
    assert_int_equal(subnet_alloc_new(m->rg, m->n_rg, &a, NULL), 0);
    for (size_t i = 0; i < m->n; i++) {
        if (m->has[i]) {
            subnet_alloc_mark(a, m->subnet[i]);
        }
    }
    subnet_alloc_seek(a, m->newest);
    return a;
}

static void agrees_with_a_model_over_random_histories(void **state)
{
    const char *const cidrs[MAX_RANGES] = {"10.128.0.0/20", "172.16.0.0/22", "192.168.8.0/21"};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rng_state = seed;
        CLEANUP_FREE struct model *m = NEW(struct model);
        m->n = 20 + rng() % 300;
        m->n_rg = 1 + rng() % MAX_RANGES;
        for (size_t i = 0; i < MAX_RANGES; i++) {
            m->rg[i] = (struct subnet_range){pfx(cidrs[i]), (uint8_t) (4 + rng() % 5)};
        }
        struct subnet_alloc *a = restart(m, NULL);
        for (int step = 0; step < 1500; step++) {
            size_t i = rng() % m->n;
            unsigned op = rng() % 1000;
            if (op <
                5) { /* The host subnet length of a range is changed, or a range added or removed. */
                m->rg[rng() % m->n_rg].host_bits = (uint8_t) (2 + rng() % 8);
                m->n_rg = 1 + rng() % MAX_RANGES;
                a = restart(m, a);
            } else if (op < 15) {
                a = restart(m, a);
            } else if (op < 30 &&
                       !m->has[i]) { /* A subnet made by hand: any size, anywhere near. */
                uint8_t len = (uint8_t) (18 + rng() % 14);
                uint32_t addr = pfx(cidrs[rng() % MAX_RANGES]).addr + rng() % 8192;
                struct ip4_prefix p = {addr & prefix_mask(len), len};
                assert_int_equal(subnet_alloc_overlaps(a, p), model_overlaps(m, p, SIZE_MAX));
                subnet_alloc_mark(a, p);
                m->subnet[i] = p;
                m->has[i] = true;
            } else if (!m->has[i]) {
                struct ip4_prefix p = {0};
                if (subnet_alloc_allocate(a, &p) == 0) {
                    assert_true(model_is_slot(m, p));
                    assert_true(subnet_alloc_in_range(a, p));
                    assert_false(model_overlaps(m, p, SIZE_MAX));
                    m->subnet[i] = m->newest = p;
                    m->has[i] = true;
                } else {
                    assert_int_equal(model_free_slots(m), 0);
                }
            } else if (op < 600) {
                assert_int_equal(subnet_alloc_release(a, m->subnet[i]), 0);
                m->has[i] = false;
            }
            if (step % 100 == 0) {
                assert_int_equal(subnet_alloc_free_slots(a), model_free_slots(m));
            }
        }
        for (size_t i = 0; i < m->n; i++) {
            if (m->has[i]) {
                assert_int_equal(subnet_alloc_release(a, m->subnet[i]), 0);
            }
        }
        assert_int_equal(subnet_alloc_free_slots(a), subnet_alloc_slots(a));
        assert_false(subnet_alloc_overlaps(a, (struct ip4_prefix){0, 0}));
        subnet_alloc_free(a);
    }
}

/* Thousands of nodes: registration, churn and restarts, each subnet owned by one node at most. */
static void thousands_of_nodes_never_share_a_subnet(void **state)
{
    const struct subnet_range rg[] = {{pfx("10.128.0.0/14"), 9}, {pfx("10.64.0.0/13"), 8}};
    CLEANUP_FREE struct model *m = NEW(struct model);
    CLEANUP_FREE uint32_t *owner = xcalloc(1u << 16, sizeof(*owner)); /* Of each /24 of 10/8. */
    memcpy(m->rg, rg, sizeof(rg));
    m->n_rg = 2;
    m->n = MAX_NODES;
    rng_state = 7;
    size_t live = 0, refused = 0;
    struct subnet_alloc *a = restart(m, NULL);
    for (int step = 0; step < 100000; step++) {
        size_t i = rng() % MAX_NODES;
        if (step % 20000 == 19999) {
            a = restart(m, a);
        }
        if (m->has[i] && rng() % 4 != 0) {
            continue; /* Registered again: keeps what it has. */
        }
        if (!m->has[i]) {
            if (subnet_alloc_allocate(a, &m->subnet[i]) < 0) {
                assert_int_equal(live, 512 + 2048);
                refused++;
                continue;
            }
            m->newest = m->subnet[i];
        }
        for (uint64_t x = m->subnet[i].addr; x <= prefix_last(m->subnet[i]); x += 256) {
            uint32_t *o = &owner[x >> 8 & 0xffff];
            assert_int_equal(*o, m->has[i] ? i + 1 : 0);
            *o = m->has[i] ? 0 : (uint32_t) i + 1;
        }
        if (m->has[i]) {
            assert_int_equal(subnet_alloc_release(a, m->subnet[i]), 0);
        }
        live += m->has[i] ? -1 : 1;
        m->has[i] = !m->has[i];
        assert_int_equal(subnet_alloc_free_slots(a), 512 + 2048 - live);
    }
    assert_true(refused > 0);
    subnet_alloc_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_network_gives_512_subnets_in_order),
        cmocka_unit_test(oldest_network_gives_256_subnets),
        cmocka_unit_test(whole_range_as_one_subnet),
        cmocka_unit_test(the_whole_address_space_works),
        cmocka_unit_test(second_range_is_used_when_the_first_is_full),
        cmocka_unit_test(freed_subnet_is_reused_only_after_the_others),
        cmocka_unit_test(seek_puts_the_cursor_back_after_a_restart),
        cmocka_unit_test(marks_of_other_sizes_block_what_they_overlap),
        cmocka_unit_test(marks_outside_are_kept_and_block_nothing_else),
        cmocka_unit_test(marks_are_counted),
        cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(memory_grows_with_marks_and_not_with_ranges),
        cmocka_unit_test(agrees_with_a_model_over_random_histories),
        cmocka_unit_test(thousands_of_nodes_never_share_a_subnet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
