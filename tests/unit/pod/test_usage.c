/* SPDX-License-Identifier: Apache-2.0 */
/* Files of control groups and of /proc. */
#include "pod/usage.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_usage(const struct pod_usage *u, const struct pod_usage *want)
{
    assert_int_equal(u->cpu_ns, want->cpu_ns);
    assert_int_equal(u->memory_bytes, want->memory_bytes);
    assert_int_equal(u->working_set_bytes, want->working_set_bytes);
    assert_int_equal(u->rss_bytes, want->rss_bytes);
    assert_int_equal(u->page_faults, want->page_faults);
    assert_int_equal(u->major_page_faults, want->major_page_faults);
}

static void files_of_v1(void **state)
{
    struct pod_usage_files f = {
        .cpu = "27364892\n",
        .memory = "1048576\n",
        .memory_stat = "cache 1\nrss 2\ninactive_file 7\npgfault 9\ntotal_cache 5\ntotal_rss 4096\n"
                       "total_pgfault 11\ntotal_pgmajfault 3\ntotal_inactive_file 48576\n"};
    struct pod_usage u;
    pod_usage_read(&f, false, &u);
    assert_usage(&u, &(struct pod_usage){27364892, 1048576, 1000000, 4096, 11, 3});
}

static void files_of_v2(void **state)
{
    struct pod_usage_files f = {
        .cpu = "usage_usec 27364\nuser_usec 20000\nsystem_usec 7364\n",
        .memory = "1048576\n",
        .memory_stat = "anon 8192\nfile 100\ninactive_anon 1\ninactive_file 48576\nworkingset 1\n"
                       "pgfault 12\npgmajfault 0\n"};
    struct pod_usage u;
    pod_usage_read(&f, true, &u);
    assert_usage(&u, &(struct pod_usage){27364000, 1048576, 1000000, 8192, 12, 0});
}

static void what_is_not_there_is_unknown(void **state)
{
    struct pod_usage u;
    pod_usage_read(&(struct pod_usage_files){0}, false, &u);
    assert_usage(&u, &pod_usage_unknown);
    pod_usage_read(&(struct pod_usage_files){"", "", ""}, true, &u);
    assert_usage(&u, &pod_usage_unknown);
    /* Numbers that do not fit, and words in the place of numbers. */
    pod_usage_read(&(struct pod_usage_files){"usage_usec 9223372036854775807\n",
                                             "99999999999999999999\n", "anon x\npgfault -1\n"},
                   true, &u);
    assert_usage(&u, &pod_usage_unknown);
    /* The files are read one after the other: the part can exceed the whole. */
    pod_usage_read(&(struct pod_usage_files){NULL, "10", "inactive_file 20"}, true, &u);
    assert_int_equal(u.working_set_bytes, 0);
    pod_usage_read(&(struct pod_usage_files){NULL, "10", "inactive_file_x 20"}, true, &u);
    assert_int_equal(u.working_set_bytes, 10);
}

static void host(void **state)
{
    static const char stat[] = "cpu  10 20 30 1000 500 1 2 3 40 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
    static const char memory[] = "MemTotal:     1000 kB\nMemFree:  300 kB\nMemAvailable: 600 kB\n"
                                 "Inactive(file):  200 kB\nAnonPages: 50 kB\n";
    struct pod_usage u;
    pod_usage_read_host(stat, memory, 100, &u);
    assert_usage(
        &u, &(struct pod_usage){INT64_C(660000000), 700 * 1024, 500 * 1024, 50 * 1024, -1, -1});
    pod_usage_read_host("cpu 1 2 3\n", NULL, 100, &u);
    assert_usage(&u, &pod_usage_unknown);
    pod_usage_read_host(stat, "MemTotal: 5 kB\n", 0, &u);
    assert_usage(&u, &pod_usage_unknown);
}

static void links(void **state)
{
    static const char text[] =
        "Inter-|   Receive                         |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n"
        "    lo: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
        "  eth0:100 2 3 4 0 0 0 0 500 6 7 8 0 0 0 0\n"
        "a-name-that-is-too-long: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"
        "short: 1 2 3\n"
        "net1: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0";
    struct pod_link l[4];
    assert_int_equal(pod_usage_links(text, l, 4), 2);
    assert_string_equal(l[0].name, "eth0");
    assert_int_equal(l[0].rx_bytes, 100);
    assert_int_equal(l[0].rx_dropped, 4);
    assert_int_equal(l[0].tx_bytes, 500);
    assert_int_equal(l[0].tx_packets, 6);
    assert_int_equal(l[0].tx_errors, 7);
    assert_string_equal(l[1].name, "net1");
    assert_int_equal(l[1].tx_bytes, 2);
    assert_int_equal(pod_usage_links(text, l, 1), 1);
    assert_int_equal(pod_usage_links("", l, 4), 0);
}

static void rates(void **state)
{
    assert_int_equal(pod_usage_rate(1500, 2000000000, 500, 1000000000), 1000);
    assert_int_equal(pod_usage_rate(500, 2000000000, 500, 1000000000), 0);
    assert_int_equal(pod_usage_rate(400, 2000000000, 500, 1000000000), -1);
    assert_int_equal(pod_usage_rate(600, 1000000000, 500, 1000000000), -1);
    assert_int_equal(pod_usage_rate(600, 1000000000, -1, 1), -1);
    assert_int_equal(pod_usage_rate(INT64_MAX, 2, 0, 1), -1);
}

static void slices(void **state)
{
    struct arena a = {0};
    assert_string_equal(pod_slice_path("kubepods.slice", &a), "/kubepods.slice");
    assert_string_equal(
        pod_slice_path("kubepods-besteffort-pod1_2.slice", &a),
        "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_v1),
        cmocka_unit_test(files_of_v2),
        cmocka_unit_test(what_is_not_there_is_unknown),
        cmocka_unit_test(host),
        cmocka_unit_test(links),
        cmocka_unit_test(rates),
        cmocka_unit_test(slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
