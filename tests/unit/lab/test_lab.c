/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct lab *lab;
static struct err e;

#define NEEDS_ROOT        \
    if (geteuid() != 0) { \
        skip();           \
    }
#define OK(call)                    \
    do {                            \
        if ((call) != 0) {          \
            fail_msg("%s", e.text); \
        }                           \
    } while (0)

static int setup(void **state)
{
    char name[32];
    e = (struct err){0};
    snprintf(name, sizeof name, "ut%d", (int) getpid());
    return lab_new(name, NULL, NULL, &lab, &e);
}

static int teardown(void **state)
{
    bool found;
    if (geteuid() == 0) {
        lab_down(lab, &found, NULL);
    }
    lab = lab_free(lab);
    return 0;
}

/* A lab's directory and configuration, as lab_up makes them first. */
static void make_lab(void)
{
    OK(dir_make(lab->dir, 0755, &e));
    lab->config = json_object();
    json_set_string(lab->config, "plugin", "redhat/openshift-ovs-multitenant");
    json_set_string(lab->config, "datapath", "ovs");
    json_set_string(lab->config, "datapathType", "netdev");
    json_set_int(lab->config, "mtu", 1450);
    CLEANUP_FREE char *text = json_to_text(lab->config);
    OK(lab_write(lab, text, &e, "lab.json"));
}

static void make_wire(void)
{
    make_lab();
    OK(wire_create(lab, &e));
    OK(outside_create(lab, &e));
}

/* A node without an agent. */
static void make_node(const char *name, uint32_t addr)
{
    CLEANUP_FREE char *dir = lab_path(lab, "nodes/%s", name);
    CLEANUP_FREE char *config = xasprintf("nodeIP: %s\n", IP4_TEXT(addr));
    OK(dir_make(dir, 0755, &e));
    OK(lab_write(lab, config, &e, "nodes/%s/node-config.yaml", name));
    OK(host_create(lab, name, addr, true, &e));
    OK(ovs_start(lab, name, addr, &e));
}

static bool reaches(const char *host, uint32_t addr)
{
    const char *argv[] = {"ping", "-n", "-q", "-c", "1", "-W", "5", IP4_TEXT(addr), NULL};
    CLEANUP(fd_close) int ns = -1;
    OK(host_open(lab, host, &ns, &e));
    return tool_run(argv, ns, &e) == 0;
}

/* A process with 'arg' on its command line that does nothing, and has no child to outlive it. */
static pid_t start_idle(const char *ns, const char *arg)
{
    CLEANUP(fd_close) int fd = -1;
    const char *argv[] = {"sh", "-c", "kill -STOP $$; :", arg, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    pid_t pid = -1;
    s.argv = argv;
    if (ns) {
        OK(netns_open(ns, &fd, &e));
        s.netns_fd = fd;
    }
    OK(process_start(&s, &pid, &e));
    return pid;
}

/* ---- names ---- */

static void lab_names_are_letters_and_digits(void **state)
{
    static const char *const bad[] = {"",    "a-b", "A",   "a.b",
                                      "a/b", "..",  "a b", "0123456789012345678901234567890123"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct lab *l = NULL;
        assert_int_equal(lab_new(bad[i], NULL, NULL, &l, &e), -EINVAL);
        assert_null(l);
    }
}

static void node_names_fit_a_link_and_are_not_the_labs_own(void **state)
{
    static const char *const bad[] = {"",   "wire", "master", "outside", "pod-x",           "a/b",
                                      "-a", "a-",   "A",      "n_1",     "sixteen-letters-"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(lab_check_host_name(bad[i], &e), -EINVAL);
    }
    assert_int_equal(lab_check_host_name("node1", &e), 0);
    assert_int_equal(lab_check_host_name("rack-2-host-113", &e), 0);
}

static void pods_of_different_projects_never_share_a_namespace(void **state)
{
    CLEANUP_FREE char *a = lab_pod_ns(lab, "a-b", "c");
    CLEANUP_FREE char *b = lab_pod_ns(lab, "a", "b-c");
    CLEANUP_FREE char *c = lab_pod_ns(lab, "a", "b.c");
    assert_string_not_equal(a, b);
    assert_string_not_equal(b, c);
}

/* ---- absent and half there ---- */

static void absent_lab_is_told_with_the_command_that_makes_it(void **state)
{
    assert_int_equal(lab_load(lab, &e), -ENOENT);
    assert_non_null(strstr(e.text, lab->name));
    assert_non_null(strstr(e.text, "up"));
}

static void half_made_lab_is_told_with_the_command_that_removes_it(void **state)
{
    NEEDS_ROOT
    CLEANUP_FREE char *ns = lab_ns(lab, "wire");
    OK(netns_create(ns, &e));
    assert_int_equal(lab_load(lab, &e), -ENOENT);
    assert_non_null(strstr(e.text, "half there"));
    CLEANUP_FREE char *command = xasprintf("--name %s down", lab->name);
    assert_non_null(strstr(e.text, command));
}

/* ---- hosts ---- */

static void hosts_meet_on_the_wire(void **state)
{
    NEEDS_ROOT
    make_wire();
    OK(host_create(lab, "master", MASTER_IP, false, &e));
    assert_true(reaches("master", OUTSIDE_IP));
    assert_true(reaches("master", INTERNET_IP));
    assert_true(reaches("outside", MASTER_IP));
    assert_false(access("/run/netns/tenet", F_OK) == 0);
    assert_int_equal(host_create(lab, "master", MASTER_IP, false, &e), -EEXIST);
}

static void node_has_its_own_switch_and_gets_its_link_back_after_it_died(void **state)
{
    NEEDS_ROOT
    make_wire();
    make_node("node1", NODE_IP_FIRST);
    assert_true(ovs_running(lab, "node1"));
    assert_true(reaches("node1", INTERNET_IP));
    assert_true(reaches("outside", NODE_IP_FIRST));
    OK(lab_ovs(lab, "node1", LAB_KILL, &e));
    assert_false(ovs_running(lab, "node1"));
    OK(lab_ovs(lab, "node1", LAB_START, &e));
    assert_true(ovs_running(lab, "node1"));
    assert_true(reaches("node1", INTERNET_IP));
    OK(lab_ovs(lab, "node1", LAB_START, &e)); /* It runs already. */
    OK(lab_ovs(lab, "node1", LAB_RESTART, &e));
    assert_true(reaches("outside", NODE_IP_FIRST));
    OK(lab_ovs(lab, "node1", LAB_STOP, &e));
    assert_false(ovs_running(lab, "node1"));
    assert_int_equal(lab_ovs(lab, "node9", LAB_START, &e), -ENOENT);
    assert_non_null(strstr(e.text, "node9"));
}

static void nodes_are_listed_in_the_order_of_their_addresses(void **state)
{
    NEEDS_ROOT
    make_lab();
    static const char *const names[] = {"node10", "node2", "zebra", "half"};
    static const char *const texts[] = {"nodeIP: 10.245.2.12\n", "nodeIP: 10.245.2.4\n",
                                        "nodeIP: 10.245.2.3\n", "nodeName: half\n"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *dir = lab_path(lab, "nodes/%s", names[i]);
        OK(dir_make(dir, 0755, &e));
        OK(lab_write(lab, texts[i], &e, "nodes/%s/node-config.yaml", names[i]));
    }
    CLEANUP(json_free) struct json *list = node_names(lab);
    CLEANUP_FREE char *text = json_to_text(list);
    assert_string_equal(text, "[\"zebra\",\"node2\",\"node10\"]");
}

/* ---- daemons ---- */

static int never(void *ctx)
{
    return 0;
}

static void daemon_that_ends_early_is_told_with_the_end_of_its_log(void **state)
{
    NEEDS_ROOT
    make_lab();
    struct daemon d = {lab->dir, "test", "the test daemon"};
    CLEANUP_FREE char *script = xasprintf("echo one %s/; echo two; exit 1", lab->dir);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    bool started = false;
    s.argv = argv;
    OK(daemon_start(&d, &s, &started, &e));
    assert_true(started);
    assert_int_equal(daemon_wait(&d, "work", never, NULL, &e), -ESRCH);
    assert_non_null(strstr(e.text, "the test daemon ended"));
    assert_non_null(strstr(e.text, "| two"));
    assert_int_equal(daemon_pid(&d), 0);
    OK(daemon_stop(&d, false, &e)); /* Nothing to stop. */
}

static void daemon_is_started_once_and_stopped_also_when_it_ignores_it(void **state)
{
    NEEDS_ROOT
    make_lab();
    struct daemon d = {lab->dir, "test", "the test daemon"};
    CLEANUP_FREE char *script = xasprintf(": %s/; while :; do sleep 1; done", lab->dir);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    bool started = false;
    s.argv = argv;
    OK(daemon_start(&d, &s, &started, &e));
    pid_t pid = daemon_pid(&d);
    assert_true(started && pid > 0);
    OK(daemon_start(&d, &s, &started, &e));
    assert_false(started);
    assert_int_equal(daemon_pid(&d), pid);
    OK(daemon_stop(&d, true, &e));
    assert_int_equal(daemon_pid(&d), 0);
    waitpid(pid, NULL, 0);
}

static void stale_pid_file_names_no_daemon(void **state)
{
    NEEDS_ROOT
    make_lab();
    struct daemon d = {lab->dir, "test", "the test daemon"};
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int) getpid()); /* Runs, but is something else. */
    OK(lab_write(lab, pid, &e, "test.pid"));
    assert_int_equal(daemon_pid(&d), 0);
    OK(lab_write(lab, "not a number", &e, "test.pid"));
    assert_int_equal(daemon_pid(&d), 0);
}

/* ---- down ---- */

static void down_removes_namespaces_processes_and_files(void **state)
{
    NEEDS_ROOT
    make_wire();
    make_node("node1", NODE_IP_FIRST);
    CLEANUP_FREE char *ns = lab_ns(lab, "node1");
    pid_t pid = start_idle(ns, "x");
    bool found = false;
    OK(lab_down(lab, &found, &e));
    assert_true(found);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    CLEANUP(json_free) struct json *left = lab_namespaces(lab);
    assert_int_equal(json_count(left), 0);
    assert_int_equal(access(lab->dir, F_OK), -1);
    assert_false(ovs_running(lab, "node1"));
    OK(lab_down(lab, &found, &e));
    assert_false(found);
}

static void down_needs_no_file_of_the_lab(void **state)
{
    NEEDS_ROOT
    make_wire();
    OK(dir_remove(lab->dir, &e));
    CLEANUP_FREE char *half = xasprintf("%s/tenet-%s-node7", NETNS_DIR, lab->name);
    OK(file_write_atomic(half, "", 0, 0444, &e)); /* As a kill within netns_create leaves it. */
    bool found = false;
    OK(lab_down(lab, &found, &e));
    assert_true(found);
    CLEANUP(json_free) struct json *left = lab_namespaces(lab);
    assert_int_equal(json_count(left), 0);
}

static void down_finds_daemons_whose_namespace_lost_its_name(void **state)
{
    NEEDS_ROOT
    make_wire();
    make_node("node1", NODE_IP_FIRST);
    CLEANUP_FREE char *ns = lab_ns(lab, "node1");
    OK(netns_delete(ns, &e));
    assert_true(ovs_running(lab, "node1"));
    bool found = false;
    OK(lab_down(lab, &found, &e));
    assert_false(ovs_running(lab, "node1"));
}

static void down_leaves_other_labs_and_other_programs_alone(void **state)
{
    NEEDS_ROOT
    make_lab();
    CLEANUP_FREE char *other_name = xasprintf("%sx", lab->name);
    CLEANUP(lab_free) struct lab *other = NULL;
    OK(lab_new(other_name, NULL, NULL, &other, &e));
    CLEANUP_FREE char *other_ns = lab_ns(other, "node1");
    CLEANUP_FREE char *log = lab_path(lab, "nodes/node1/node.log");
    OK(netns_create(other_ns, &e));
    pid_t reader = start_idle(NULL, log), inside = start_idle(other_ns, "x");
    bool found = false;
    OK(lab_down(lab, &found, &e));
    assert_int_equal(waitpid(reader, NULL, WNOHANG), 0);
    assert_int_equal(waitpid(inside, NULL, WNOHANG), 0);
    kill(reader, SIGKILL);
    waitpid(reader, NULL, 0);
    OK(lab_down(other, &found, &e));
    assert_int_equal(waitpid(inside, NULL, 0), inside);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lab_names_are_letters_and_digits),
        T(node_names_fit_a_link_and_are_not_the_labs_own),
        T(pods_of_different_projects_never_share_a_namespace),
        T(absent_lab_is_told_with_the_command_that_makes_it),
        T(half_made_lab_is_told_with_the_command_that_removes_it),
        T(hosts_meet_on_the_wire),
        T(node_has_its_own_switch_and_gets_its_link_back_after_it_died),
        T(nodes_are_listed_in_the_order_of_their_addresses),
        T(daemon_that_ends_early_is_told_with_the_end_of_its_log),
        T(daemon_is_started_once_and_stopped_also_when_it_ignores_it),
        T(stale_pid_file_names_no_daemon),
        T(down_removes_namespaces_processes_and_files),
        T(down_needs_no_file_of_the_lab),
        T(down_finds_daemons_whose_namespace_lost_its_name),
        T(down_leaves_other_labs_and_other_programs_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
