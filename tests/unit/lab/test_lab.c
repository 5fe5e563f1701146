/* SPDX-License-Identifier: Apache-2.0 */
#include "../apiserver/harness.h"
#include "base/mem.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

static struct lab *lab;
static struct err e;

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

static void a_handle_closes_only_what_it_opened(void **state)
{
    struct lab *l = NULL;
    int fd = dup(STDERR_FILENO);
    assert_true(fd >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    OK(lab_new("fresh", NULL, NULL, &l, &e));
    lab_free(l);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
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
    NEEDS_ROOT();
    CLEANUP_FREE char *ns = lab_ns(lab, "wire");
    OK(netns_create(ns, &e));
    assert_int_equal(lab_load(lab, &e), -ENOENT);
    assert_non_null(strstr(e.text, "half there"));
    CLEANUP_FREE char *command = xasprintf("--name %s down", lab->name);
    assert_non_null(strstr(e.text, command));
}

static void labs_of_other_versions_are_refused(void **state)
{
    NEEDS_ROOT();
    static const struct {
        const char *text;
        int error;
    } cases[] = {
        {"{\"ports\":[1],\"plugin\":\"p\",\"datapath\":\"d\",\"datapathType\":\"t\"}", 0},
        {"{\"plugin\":\"p\",\"datapath\":\"d\",\"datapathType\":\"t\"}", -EPROTO},
        {"{\"ports\":[],\"plugin\":\"p\",\"datapath\":\"d\",\"datapathType\":\"t\"}", -EPROTO},
        {"{\"ports\":[1],\"datapath\":\"d\",\"datapathType\":\"t\"}", -EPROTO},
        {"{\"ports\":[1],\"plugin\":\"p\",\"datapathType\":\"t\"}", -EPROTO},
        {"{\"ports\":[1],\"plugin\":\"p\",\"datapath\":\"d\"}", -EPROTO},
    };
    OK(dir_make(lab->dir, 0755, &e));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        OK(lab_write(lab, cases[i].text, &e, "lab.json"));
        assert_int_equal(lab_load(lab, &e), cases[i].error);
        json_free(TAKE(lab->config));
    }
    assert_non_null(strstr(e.text, "another version of tenet"));
    OK(lab_write(lab, "{", &e, "lab.json"));
    assert_true(lab_load(lab, &e) < 0);
    assert_null(lab->config);
}

static const char *own_program; /* Where this test claims to be; NULL: where it is. */

/* In place of libc's. */
ssize_t readlink(const char *path, char *buf, size_t size)
{
    if (own_program && streq(path, "/proc/self/exe")) {
        size_t n = MIN(size, strlen(own_program));
        memcpy(buf, own_program, n);
        return (ssize_t) n;
    }
    return syscall(SYS_readlinkat, AT_FDCWD, path, buf, size);
}

static void up_takes_no_name_that_is_taken_and_removes_what_it_made(void **state)
{
    NEEDS_ROOT();
    static const char ends[] = "#!/bin/sh\necho no master here; exit 1\n";
    char dir[] = "/tmp/tenet-ut-lab-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *self = xasprintf("%s/test", dir);
    CLEANUP_FREE char *tenet = xasprintf("%s/tenet", dir);
    CLEANUP_FREE char *cni = xasprintf("%s/tenet-cni", dir);
    struct lab_options o = LAB_OPTIONS_INIT;
    o.nodes = 0;
    assert_int_equal(lab_up(lab, &o, &e), -ENOENT);
    assert_true(str_has_prefix(e.text, "tenet is not installed"));
    OK(file_write_atomic(tenet, ends, strlen(ends), 0700, &e));
    OK(file_write_atomic(cni, ends, strlen(ends), 0700, &e));
    own_program = self;
    OK(dir_make(lab->dir, 0755, &e));
    assert_int_equal(lab_up(lab, &o, &e), -EEXIST);
    assert_non_null(strstr(e.text, "half made by a start that was broken off"));
    OK(dir_remove(lab->dir, &e));
    assert_int_equal(lab_up(lab, &o, &e), -ESRCH);
    own_program = NULL;
    assert_non_null(strstr(e.text, "the master ended"));
    assert_non_null(strstr(e.text, "no master here"));
    CLEANUP(json_free) struct json *left = lab_namespaces(lab);
    assert_int_equal(json_count(left), 0);
    assert_int_equal(access(lab->dir, F_OK), -1);
    OK(dir_remove(dir, &e));
}

/* ---- hosts ---- */

static void hosts_meet_on_the_wire(void **state)
{
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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
    NEEDS_ROOT();
    make_lab();
    struct daemon d = {lab->dir, "test", "the test daemon"};
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int) getpid()); /* Runs, but is something else. */
    OK(lab_write(lab, pid, &e, "test.pid"));
    assert_int_equal(daemon_pid(&d), 0);
    OK(lab_write(lab, "not a number", &e, "test.pid"));
    assert_int_equal(daemon_pid(&d), 0);
}

/* ---- nodes and pods ---- */

static void a_node_is_prepared_with_its_folders_and_its_switch(void **state)
{
    NEEDS_ROOT();
    make_wire();
    OK(node_prepare(lab, "node1", NODE_IP_FIRST, &e));
    assert_string_equal(e.text, "");
    static const char *const folders[] = {"cni", "run", "ovs"};
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        CLEANUP_FREE char *path = lab_path(lab, "nodes/node1/%s", folders[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
    uint32_t addr = 0;
    OK(node_address(lab, "node1", &addr, &e));
    assert_int_equal(addr, NODE_IP_FIRST);
    assert_true(ovs_running(lab, "node1"));
    /* Its agent is not beside this test. */
    assert_int_equal(lab_node_action(lab, "node1", LAB_START, &e), -ENOENT);
    assert_true(str_has_prefix(e.text, "tenet is not installed"));
}

/* A daemon that runs, as far as its pid file tells. */
static struct daemon pretend(const char *dir, const char *name)
{
    struct daemon d = {dir, name, name};
    CLEANUP_FREE char *script = xasprintf(": %s/; while :; do sleep 1; done", dir);
    const char *argv[] = {"sh", "-c", script, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    bool started;
    s.argv = argv;
    OK(dir_make(dir, 0755, &e));
    OK(daemon_start(&d, &s, &started, &e));
    return d;
}

static void end_pretence(const struct daemon *d)
{
    pid_t pid = daemon_pid(d);
    assert_true(pid > 0);
    OK(daemon_stop(d, true, &e));
    waitpid(pid, NULL, 0);
}

/* The plug-in of the node is a script. */
static void write_plugin(const char *script)
{
    CLEANUP_FREE char *path = lab_path(lab, "plugin");
    OK(file_write_atomic(path, script, strlen(script), 0700, &e));
}

#define GOOD_PLUGIN                                                                        \
    "#!/bin/sh\n[ $CNI_COMMAND = DEL ] || echo "                                           \
    "'{\"ips\":[{\"address\":\"10.128.0.9/23\"}],\"dns\":{\"nameservers\":[\"10.0.0.1\"]," \
    "\"search\":[\"a\",\"b\"]}}'\n"

static void pods_are_added_shown_and_deleted_as_a_kubelet_does(void **state)
{
    NEEDS_ROOT();
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *url = harness_url(h);
    CLEANUP_FREE char *nodes = lab_path(lab, "nodes/node1");
    CLEANUP_FREE char *cni = lab_path(lab, "nodes/node1/cni");
    CLEANUP_FREE char *master = lab_path(lab, "master");
    free(make_namespace(h, "red"));
    free(make_net(h, "red", 10, "{}"));
    make_wire();
    OK(host_create(lab, "node1", NODE_IP_FIRST, false, &e));
    OK(dir_make(cni, 0755, &e));
    OK(lab_write(lab, "nodeIP: 10.245.2.3\n", &e, "nodes/node1/node-config.yaml"));
    CLEANUP_FREE char *conf =
        xasprintf("{\"type\":\"../../../../../../../../../../../../../../..%s/plugin\"}", lab->dir);
    OK(lab_write(lab, conf, &e, "nodes/node1/cni/x.conf"));
    json_append(json_ensure_array(lab->config, "ports"), json_int(h->port));
    lab->loop = h->loop; /* Which serves while the lab waits. */
    OK(api_client_new(h->loop, url, "test", &lab->api, &e));

    CLEANUP(json_free) struct json *labels = json_object(), *ports = json_array();
    struct json *v = NULL;
    write_plugin(GOOD_PLUGIN);
    assert_int_equal(lab_pod_add(lab, "red", "a", NULL, labels, ports, true, &v, &e), -ENOENT);
    assert_non_null(strstr(e.text, "has no node whose agent runs"));
    assert_int_equal(lab_pod_add(lab, "blue", "a", "node1", labels, ports, true, &v, &e), -ENOENT);
    assert_non_null(strstr(e.text, "project blue does not exist"));
    assert_int_equal(lab_pod_add(lab, "red", "a", "node9", labels, ports, true, &v, &e), -ENOENT);
    struct daemon agent = pretend(nodes, "node"), server = pretend(master, "master");
    OK(lab_pod_add(lab, "red", "a", NULL, labels, ports, true, &v, &e));
    assert_string_equal(json_path_string(v, "podIP", NULL), "10.128.0.9");
    assert_string_equal(json_path_string(v, "node", NULL), "node1");
    assert_int_equal(json_get_int_or(json_get(v, "vnid"), 0), 10);
    const char *id = json_path_string(v, "containerID", NULL);
    assert_int_equal(strlen(id), 64);
    assert_int_equal(strspn(id, "0123456789abcdef"), 64);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", "/api/v1/namespaces/red/pods/a", NULL, 200);
    assert_string_equal(at(&a, "status.podIP"), "10.128.0.9");
    assert_string_equal(at(&a, "status.hostIP"), "10.245.2.3");
    assert_string_equal(at(&a, "status.phase"), "Running");
    const struct json *container =
        json_at(json_path(a.body, "status", "containerStatuses", NULL), 0);
    CLEANUP_FREE char *container_id = xasprintf("netns://%s", id);
    assert_string_equal(json_path_string(container, "containerID", NULL), container_id);
    assert_string_equal(json_path_string(container, "name", NULL), "sandbox");
    CLEANUP_FREE char *ns = lab_pod_ns(lab, "red", "a");
    CLEANUP_FREE char *resolv = xasprintf("/etc/netns/%s/resolv.conf", ns);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    OK(file_read(resolv, 4096, &text, &e));
    assert_string_equal(strbuf_cstr(&text), "nameserver 10.0.0.1\nsearch a b\n");
    json_free(TAKE(v));
    assert_int_equal(lab_pod_add(lab, "red", "a", NULL, labels, ports, true, &v, &e), -EEXIST);

    OK(lab_status(lab, &v, &e));
    const struct json *node = json_at(json_get(v, "nodes"), 0);
    assert_string_equal(json_path_string(node, "name", NULL), "node1");
    assert_string_equal(json_path_string(node, "hostIP", NULL), "10.245.2.3");
    assert_true(json_get_int_or(json_get(node, "pid"), 0) > 0);
    assert_int_equal(json_count(json_get(v, "nodes")), 1);
    const struct json *pod = json_at(json_get(v, "pods"), 0);
    assert_string_equal(json_path_string(pod, "podIP", NULL), "10.128.0.9");
    assert_string_equal(json_path_string(v, "master", "error", NULL), "");
    json_free(TAKE(v));

    /* A plug-in that fails leaves nothing. */
    write_plugin("#!/bin/sh\necho '{\"msg\":\"no\",\"details\":\"never\"}'; exit 1\n");
    assert_int_equal(lab_pod_add(lab, "red", "b", "node1", labels, ports, true, &v, &e), -EIO);
    assert_string_equal(e.text, "CNI ADD of red/b on node1: no: never");
    write_plugin("#!/bin/sh\necho '{}'\n");
    assert_int_equal(lab_pod_add(lab, "red", "b", "node1", labels, ports, true, &v, &e), -EIO);
    assert_non_null(strstr(e.text, "ips[0].address"));
    answer_done((struct answer[]){ask_ok(h, "GET", "/api/v1/namespaces/red/pods/b", NULL, 404)});
    CLEANUP_FREE char *other = lab_pod_ns(lab, "red", "b");
    CLEANUP_FREE char *path = xasprintf("%s/%s", NETNS_DIR, other);
    assert_int_equal(access(path, F_OK), -1);

    write_plugin(GOOD_PLUGIN);
    OK(lab_pod_delete(lab, "red", "a", &e));
    answer_done((struct answer[]){ask_ok(h, "GET", "/api/v1/namespaces/red/pods/a", NULL, 404)});
    assert_int_equal(lab_pod_delete(lab, "red", "a", &e), -ENOENT);
    OK(lab_pod_add(lab, "red", "c", "node1", labels, ports, false, &v, &e));
    json_free(TAKE(v));
    write_plugin("#!/bin/sh\nexit 3\n");
    assert_int_equal(lab_project_delete(lab, "red", &e), -EIO); /* Its pod cannot be detached. */
    assert_string_equal(e.text, "CNI DEL of red/c on node1: exit status 3: ");
    end_pretence(&agent);
    end_pretence(&server);
    lab->loop = NULL;
    lab->api = api_client_free(lab->api);
    harness_free(h);
}

/* ---- down ---- */

static void down_removes_namespaces_processes_and_files(void **state)
{
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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
    NEEDS_ROOT();
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

/* Where /etc cannot be written, the files of pods go to a folder that ends with this test. */
static int make_etc_writable(void **state)
{
    if (geteuid() == 0 && access("/etc", W_OK) < 0 && unshare(CLONE_NEWNS) == 0 &&
        mount("", "/", "none", MS_SLAVE | MS_REC, NULL) == 0) {
        mount("tmpfs", "/etc/netns", "tmpfs", 0, NULL);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lab_names_are_letters_and_digits),
        T(node_names_fit_a_link_and_are_not_the_labs_own),
        T(pods_of_different_projects_never_share_a_namespace),
        T(a_handle_closes_only_what_it_opened),
        T(labs_of_other_versions_are_refused),
        T(up_takes_no_name_that_is_taken_and_removes_what_it_made),
        T(a_node_is_prepared_with_its_folders_and_its_switch),
        T(pods_are_added_shown_and_deleted_as_a_kubelet_does),
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
    return cmocka_run_group_tests(tests, make_etc_writable, NULL);
}
