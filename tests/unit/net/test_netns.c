/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "net/kernel/netns.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

static char name[64];

static int set_name(void **state)
{
    snprintf(name, sizeof name, "tenet-ut-net-%d-ns", (int) getpid());
    return 0;
}

static int remove_ns(void **state)
{
    netns_kill_processes(name, NULL);
    return netns_delete(name, NULL);
}

static ino_t current_ns(void)
{
    struct stat st;
    assert_int_equal(stat("/proc/thread-self/ns/net", &st), 0);
    return st.st_ino;
}

static void created_namespace_is_new_has_lo_up_and_we_stay_outside(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    ino_t home = current_ns();
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(current_ns(), home);
    CLEANUP(fd_close) int ns = -1;
    assert_int_equal(netns_open(name, &ns, &e), 0);
    struct stat st;
    assert_int_equal(fstat(ns, &st), 0);
    assert_int_not_equal(st.st_ino, home);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    assert_int_equal(rtnl_open_at(ns, &r, &e), 0);
    struct rtnl_link lo;
    assert_int_equal(rtnl_link_get(r, "lo", &lo, &e), 0);
    assert_true(lo.flags & IFF_UP);
    assert_int_equal(netns_create(name, &e), -EEXIST);
    assert_non_null(strstr(e.text, name));
}

static void enter_and_leave_come_back_to_where_we_were(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    ino_t home = current_ns();
    CLEANUP(fd_close) int ns = -1;
    int back = -1;
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(netns_open(name, &ns, &e), 0);
    assert_int_equal(netns_enter(ns, &back, &e), 0);
    assert_int_not_equal(current_ns(), home);
    netns_leave(back);
    assert_int_equal(current_ns(), home);

    /* With what was open before, which stays open. */
    CLEANUP(fd_close) int known = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(netns_enter_from(known, ns, &back, &e), 0);
        assert_int_not_equal(current_ns(), home);
        netns_leave(back);
        assert_int_equal(current_ns(), home);
    }
}

static void deleted_namespace_is_gone_and_deleting_again_is_fine(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    int ns = -1;
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(netns_delete(name, &e), 0);
    assert_int_equal(netns_open(name, &ns, &e), -ENOENT);
    assert_int_equal(netns_delete(name, &e), 0);
    assert_int_equal(netns_create(name, &e), 0);
}

static void left_over_file_without_namespace_is_deleted(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    CLEANUP_FREE char *path = xasprintf("%s/%s", NETNS_DIR, name);
    assert_int_equal(dir_make(NETNS_DIR, 0755, &e), 0);
    assert_int_equal(file_write_atomic(path, "", 0, 0444, &e), 0);
    int ns = -1;
    assert_int_equal(netns_open(name, &ns, &e), -EINVAL);
    assert_int_equal(netns_delete(name, &e), 0);
    assert_int_equal(access(path, F_OK), -1);
}

static void names_that_are_paths_are_refused(void **state)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "/run/netns/x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err e = {0};
        assert_int_equal(netns_create(bad[i], &e), -EINVAL);
        assert_int_equal(netns_delete(bad[i], &e), -EINVAL);
    }
}

static void only_network_namespaces_are_opened(void **state)
{
    struct err e = {0};
    int ns = -1;
    assert_int_equal(netns_open("/dev/null", &ns, &e), -EINVAL);
    assert_int_equal(netns_open("/proc/self/ns/mnt", &ns, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a network namespace"));
    assert_int_equal(netns_open("/proc/self/ns/net", &ns, &e), 0);
    fd_close(ns);
}

static void kill_takes_the_processes_of_the_namespace_and_no_other(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    CLEANUP(fd_close) int ns = -1;
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(netns_open(name, &ns, &e), 0);
    assert_int_equal(netns_kill_processes(name, &e), 0);
    const char *argv[] = {"sh", "-c", "sleep 61 & sleep 62", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    pid_t outside, inside;
    const char *out_argv[] = {"sleep", "63", NULL};
    struct process_spec o = PROCESS_SPEC_INIT;
    o.argv = out_argv;
    s.netns_fd = ns;
    assert_int_equal(process_start(&o, &outside, &e), 0);
    assert_int_equal(process_start(&s, &inside, &e), 0);
    /* The shell itself, and what it may have forked by now. */
    assert_in_range(netns_kill_processes(name, &e), 1, 3);
    int status = 0;
    assert_int_equal(waitpid(inside, &status, 0), inside);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(netns_kill_processes(name, &e), 0);
    assert_int_equal(kill(outside, 0), 0);
    assert_true(process_is(outside, "sleep 63"));
    kill(outside, SIGKILL);
    waitpid(outside, NULL, 0);
}

static void program_is_started_in_the_namespace(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    CLEANUP(fd_close) int ns = -1;
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(netns_open(name, &ns, &e), 0);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *argv[] = {"stat", "-L", "-c", "%i", "/proc/self/ns/net", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.netns_fd = ns;
    int status = -1;
    assert_int_equal(process_run(&s, 10000, &out, NULL, &status, &e), 0);
    assert_int_equal(status, 0);
    struct stat st;
    assert_int_equal(fstat(ns, &st), 0);
    uint64_t inode = 0;
    out.data[out.size - 1] = '\0';
    assert_int_equal(str_to_u64(out.data, UINT64_MAX, &inode), 0);
    assert_int_equal(inode, st.st_ino);
}

static void sysctl_is_set_in_the_thread_s_namespace(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    CLEANUP(fd_close) int ns = -1;
    int back = -1;
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(netns_open(name, &ns, &e), 0);
    CLEANUP_STRBUF struct strbuf home = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf inside = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf home_after = STRBUF_INIT;
    static const char key[] = "/proc/sys/net/ipv4/ip_default_ttl";
    assert_int_equal(file_read(key, 64, &home, &e), 0);
    assert_int_equal(netns_enter(ns, &back, &e), 0);
    int r = sysctl_set("net/ipv4/ip_default_ttl", "77", &e);
    int r2 = file_read(key, 64, &inside, NULL);
    netns_leave(back);
    assert_int_equal(r, 0);
    assert_int_equal(r2, 0);
    assert_string_equal(strbuf_cstr(&inside), "77\n");
    assert_int_equal(file_read(key, 64, &home_after, &e), 0);
    assert_string_equal(strbuf_cstr(&home), strbuf_cstr(&home_after));
    assert_int_equal(sysctl_set("net/ipv4/no_such_key", "1", &e), -ENOENT);
    assert_non_null(strstr(e.text, "net/ipv4/no_such_key"));
}

#define T(f) cmocka_unit_test_teardown(f, remove_ns)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(created_namespace_is_new_has_lo_up_and_we_stay_outside),
        T(enter_and_leave_come_back_to_where_we_were),
        T(deleted_namespace_is_gone_and_deleting_again_is_fine),
        T(left_over_file_without_namespace_is_deleted),
        T(names_that_are_paths_are_refused),
        T(only_network_namespaces_are_opened),
        T(kill_takes_the_processes_of_the_namespace_and_no_other),
        T(program_is_started_in_the_namespace),
        T(sysctl_is_set_in_the_thread_s_namespace),
    };
    return cmocka_run_group_tests(tests, set_name, NULL);
}
