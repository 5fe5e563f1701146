/* SPDX-License-Identifier: Apache-2.0 */
/* Egress firewalls in the kernel's maps. */
#include "datapath/ebpf/firewall.h"

#include "datapath/ebpf/bpf/maps.h"
#include "ebpf_fixture.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct program_features features;
static struct program program;
static struct firewall_maps maps;

static const struct firewall_block deny_all[] = {{{0, 0}, false}};
static const struct firewall_block deny_some[] = {{{0x08000000, 8}, false},
                                                  {{0x08080808, 32}, true}};

static int setup(void **state)
{
    struct err e = {0};
    struct program_features f = features;
    f.max_entries = 4;
    f.ringbuf = false;
    if (program_load(NULL, &f, true, &program, &e) < 0) {
        fail_msg("%s", e.text);
    }
    firewall_maps_init(&maps);
    return 0;
}

static int teardown(void **state)
{
    firewall_maps_done(&maps);
    program_done(&program);
    return 0;
}

static void load(void)
{
    struct err e = {0};
    assert_int_equal(firewall_maps_load(&maps, &program, &e), 0);
}

/* The program's answer: 'a'llow, 'd'eny, or '-': the VNID has no firewall. */
static char verdict(uint32_t vnid, uint32_t ip)
{
    struct ebpf_firewall head;
    uint32_t action = EBPF_DENY;
    if (bpf_map_lookup_elem(program.firewalls, &vnid, &head) < 0) {
        return '-';
    }
    struct ebpf_firewall_key key = {EBPF_FIREWALL_LIST_BITS + 32, head.list, htonl(ip)};
    if (!head.closed) {
        (void) bpf_map_lookup_elem(program.firewall_blocks, &key, &action);
    }
    return action == EBPF_ALLOW ? 'a' : 'd';
}

static size_t rows(int fd, size_t key_size)
{
    unsigned char key[16], next[16];
    size_t n = 0;
    int r = bpf_map_get_next_key(fd, NULL, next);
    for (; r == 0; n++) {
        memcpy(key, next, key_size);
        r = bpf_map_get_next_key(fd, key, next);
    }
    return n;
}

static size_t n_rows(void)
{
    return rows(program.firewalls, 4) + rows(program.firewall_blocks, 12);
}

static void a_change_is_seen_as_a_whole(void **state)
{
    load();
    firewall_maps_set(&maps, 42, deny_some, 2);
    assert_int_equal(verdict(42, 0x08080808), 'a');
    assert_int_equal(verdict(42, 0x08080809), 'd');
    assert_int_equal(verdict(42, 0x09090909), 'a');
    assert_int_equal(verdict(43, 0x08080809), '-');
    /* The new list is there before it is named, so one of the old number stays for no packet. */
    struct ebpf_firewall before, after;
    uint32_t vnid = 42;
    assert_int_equal(bpf_map_lookup_elem(program.firewalls, &vnid, &before), 0);
    firewall_maps_set(&maps, 42, deny_all, 1);
    assert_int_equal(bpf_map_lookup_elem(program.firewalls, &vnid, &after), 0);
    assert_int_not_equal(before.list, after.list);
    assert_int_equal(verdict(42, 0x08080808), 'd');
    assert_int_equal(n_rows(), 2);
    firewall_maps_set(&maps, 42, NULL, 0);
    assert_int_equal(verdict(42, 0x08080808), '-');
    assert_int_equal(n_rows(), 0);
}

static void a_restarted_agent_changes_only_what_differs(void **state)
{
    load();
    firewall_maps_set(&maps, 42, deny_some, 2);
    firewall_maps_set(&maps, 43, deny_all, 1);
    firewall_maps_done(&maps);
    firewall_maps_init(&maps);
    firewall_maps_set(&maps, 42, deny_some, 2);
    load();
    assert_int_equal(maps.applied, 0);
    /* Entries that no firewall needs any more go at the end. */
    assert_int_equal(verdict(43, 1), 'd');
    firewall_maps_clean(&maps);
    assert_int_equal(verdict(43, 1), '-');
    assert_int_equal(verdict(42, 0x08080809), 'd');
    assert_int_equal(n_rows(), 1 + 3);
}

static void what_does_not_fit_denies_everything(void **state)
{
    static const struct firewall_block many[] = {{{0x01000000, 8}, false},
                                                 {{0x02000000, 8}, false},
                                                 {{0x03000000, 8}, false},
                                                 {{0x04000000, 8}, false}};
    load();
    firewall_maps_set(&maps, 42, many, 4); /* With the block for all destinations: five. */
    assert_int_equal(verdict(42, 0x09090909), 'd');
    assert_int_equal(maps.refused, 1);
    assert_false(maps.closed);
    firewall_maps_set(&maps, 43, deny_all, 1);
    assert_int_equal(verdict(43, 0x09090909), 'd');
    firewall_maps_set(&maps, 42, many, 3);
    assert_int_equal(verdict(42, 0x09090909), 'd');
    firewall_maps_set(&maps, 43, NULL, 0);
    firewall_maps_put(&maps);
    assert_int_equal(verdict(42, 0x09090909), 'a');
    assert_int_equal(verdict(42, 0x03090909), 'd');
}

static void a_vnid_too_many_closes_all(void **state)
{
    load();
    for (uint32_t vnid = 42; vnid < 46; vnid++) {
        firewall_maps_set(&maps, vnid, deny_all, 1);
        assert_false(maps.closed);
    }
    firewall_maps_set(&maps, 46, deny_all, 1);
    assert_true(maps.closed);
    firewall_maps_set(&maps, 42, NULL, 0);
    firewall_maps_put(&maps);
    assert_false(maps.closed);
    assert_int_equal(verdict(46, 1), 'd');
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_change_is_seen_as_a_whole),
        TEST(a_restarted_agent_changes_only_what_differs),
        TEST(what_does_not_fit_denies_everything),
        TEST(a_vnid_too_many_closes_all),
    };
    return EBPF_TESTS(&features, tests, NULL, NULL);
}
