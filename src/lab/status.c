/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a lab, and how to enter it. */
#include "api/condition.h"
#include "base/mem.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

static const struct json *find_named(const struct json *list, const char *name)
{
    struct json *item;
    JSON_FOREACH (item, json_get(list, "items")) {
        if (streq_null(json_path_string(item, "metadata", "name", NULL), name)) {
            return item;
        }
    }
    return NULL;
}

static struct json *node_status(struct lab *l, const char *node, const struct json *nodes,
                                const struct json *subnets)
{
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s", node);
    CLEANUP_FREE char *ns = lab_ns(l, node);
    uint32_t addr = 0;
    node_address(l, node, &addr, NULL);
    const char *subnet = json_path_string(find_named(subnets, node), "subnet", NULL);
    struct json *v = json_object();
    json_set_string(v, "name", node);
    json_set_string(v, "hostIP", IP4_TEXT(addr));
    json_set_string(v, "subnet", subnet ? subnet : "");
    json_set_bool(v, "ready", condition_is_true(find_named(nodes, node), "Ready"));
    json_set_int(v, "pid", node_pid(l, node));
    CLEANUP_FREE char *datapath = node_datapath(l, addr);
    json_set_string(v, "datapath", datapath);
    json_set_bool(v, "ovsRunning", ovs_running(l, node));
    json_set(v, "netns", json_stringf("%s/%s", NETNS_DIR, ns));
    json_set(v, "config", json_stringf("%s/node-config.yaml", dir));
    json_set(v, "log", json_stringf("%s/node.log", dir));
    json_set(v, "agentSocket", json_stringf("%s/run/agent.sock", dir));
    json_set(v, "cniConfDir", json_stringf("%s/cni", dir));
    json_set(v, "ovsRunDir", json_stringf("%s/ovs", dir));
    if (lab_has_containers(l)) {
        CLEANUP_FREE char *socket = containerd_socket(l, node);
        json_set_int(v, "kubeletPid", kubelet_pid(l, node));
        json_set(v, "kubeletConfig", json_stringf("%s/kubelet-config.yaml", dir));
        json_set(v, "kubeletLog", json_stringf("%s/kubelet.log", dir));
        json_set_int(v, "containerdPid", containerd_pid(l, node));
        json_set(v, "runtimeEndpoint", json_stringf("unix://%s", socket));
        json_set(v, "mountns", json_stringf("%s/mnt/ns", dir));
    }
    return v;
}

static struct json *pod_status(struct lab *l, const struct json *pod)
{
    const char *project = json_path_string(pod, "metadata", "namespace", NULL);
    const char *name = json_path_string(pod, "metadata", "name", NULL);
    const char *node = json_path_string(pod, "spec", "nodeName", NULL);
    const char *ip = json_path_string(pod, "status", "podIP", NULL);
    CLEANUP_FREE char *ns = lab_pod_ns(l, project ? project : "", name ? name : "");
    struct json *v = json_object();
    json_set_string(v, "project", project ? project : "");
    json_set_string(v, "name", name ? name : "");
    json_set_string(v, "podIP", ip ? ip : "");
    json_set_string(v, "node", node ? node : "");
    json_set(v, "netns", json_stringf("%s/%s", NETNS_DIR, ns));
    return v;
}

int lab_status(struct lab *l, struct json **ret, struct err *e)
{
    int r = lab_load(l, e);
    if (r < 0) {
        return r;
    }
    /* Without a master these stay NULL, and their information is left out. */
    CLEANUP(json_free) struct json *nodes = NULL;
    CLEANUP(json_free) struct json *subnets = NULL;
    CLEANUP(json_free) struct json *pods = NULL;
    CLEANUP(json_free) struct json *names = node_names(l);
    struct err api = {0};
    struct json *item, *v = json_object();
    json_set_string(v, "name", l->name);
    json_set(v, "kubeconfig", json_stringf("%s/kubeconfig", l->dir));
    struct json *masters = master_status(l);
    json_set_string(v, "server", json_path_string(json_at(masters, 0), "server", NULL));
    static const char *const copied[] = {"plugin",           "store",        "clusterNetwork",
                                         "hostSubnetLength", "mtu",          "vxlanPort",
                                         "datapath",         "datapathType", "containers"};
    for (size_t i = 0; i < ARRAY_SIZE(copied); i++) {
        json_set(v, copied[i], json_clone(json_get(l->config, copied[i])));
    }
    json_set(v, "oauth", master_login(l));
    json_set_bool(v, "complete", json_get_bool(json_get(l->config, "up"), false));
    json_set_string(v, "outside", IP4_TEXT(INTERNET_IP));
    if (!master_runs(l)) {
        err_set(&api, -ECONNREFUSED, "it does not run");
    } else if (lab_get(l, "v1", "nodes", NULL, NULL, &nodes, &api) == 0 &&
               lab_get(l, NETWORK_API, "hostsubnets", NULL, NULL, &subnets, &api) == 0) {
        lab_get(l, "v1", "pods", NULL, NULL, &pods, &api);
    }
    /* The first one also by itself, for clients that know only one. */
    struct json *master = json_clone(json_at(masters, 0));
    json_set_string(master, "error", api.code ? api.text : "");
    json_set(v, "master", master);
    json_set(v, "masters", masters);
    struct json *list = json_array();
    JSON_FOREACH (item, names) {
        json_append(list, node_status(l, json_get_string(item), nodes, subnets));
    }
    json_set(v, "nodes", list);
    list = json_array();
    JSON_FOREACH (item, json_get(pods, "items")) {
        json_append(list, pod_status(l, item));
    }
    json_set(v, "pods", list);
    *ret = v;
    return 0;
}

/* ---- exec ---- */

/* Mounts the namespace's /sys and its resolv.conf, as "ip netns exec" does: otherwise
 * /sys/class/net would show the machine's own links. If that is impossible, the program runs
 * nevertheless. */
static void enter_mounts(const char *ns)
{
    CLEANUP_FREE char *resolv_conf = xasprintf("%s/%s/resolv.conf", NETNS_ETC, ns);
    if (unshare(CLONE_NEWNS) < 0 || mount("", "/", "none", MS_SLAVE | MS_REC, NULL) < 0) {
        return;
    }
    if (umount2("/sys", MNT_DETACH) == 0) {
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
    }
    mount(resolv_conf, "/etc/resolv.conf", "none", MS_BIND, NULL);
}

static int exec_in(const char *ns, char *const argv[], struct err *e)
{
    int fd = -1, back;
    int r = netns_open(ns, &fd, e);
    if (r < 0 || (r = netns_enter(fd, &back, e)) < 0) {
        fd_close(fd);
        return r;
    }
    fd_close(fd);
    enter_mounts(ns);
    signal(SIGPIPE, SIG_DFL); /* This program ignores it, and exec would inherit that. */
    execvp(argv[0], argv);
    return errno == ENOENT ? err_set(e, -ENOENT, "%s: no such program", argv[0])
                           : err_sys(e, -errno, "%s", argv[0]);
}

int lab_pod_exec(struct lab *l, const char *project, const char *name, char *const argv[],
                 struct err *e)
{
    int r = lab_load(l, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *ns = lab_pod_ns(l, project, name);
    CLEANUP_FREE char *path = xasprintf("%s/%s", NETNS_DIR, ns);
    if (access(path, F_OK) < 0 && lab_has_containers(l)) {
        return err_set(e, -EOPNOTSUPP,
                       "the nodes of lab %s run containers: KUBECONFIG=%s/kubeconfig kubectl exec "
                       "-n %s %s -- COMMAND",
                       l->name, l->dir, project, name);
    }
    if (access(path, F_OK) < 0) {
        return err_set(e, -ENOENT, "pod %s/%s does not exist in lab %s", project, name, l->name);
    }
    pod_enter_environment(ns);
    return exec_in(ns, argv, e);
}

int lab_node_exec(struct lab *l, const char *node, char *const argv[], struct err *e)
{
    bool other = streq(node, "master") || streq(node, "outside") || streq(node, "wire");
    int r = other ? lab_load(l, e) : node_check(l, node, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *ns = lab_ns(l, node);
    if (!other) {
        CLEANUP_FREE char *run_dir = lab_path(l, "nodes/%s/ovs", node);
        CLEANUP_FREE char *kubeconfig = lab_path(l, "node.kubeconfig");
        setenv("OVS_RUNDIR", run_dir, 1);
        setenv("OVS_DBDIR", run_dir, 1);
        setenv("KUBECONFIG", kubeconfig, 1);
    }
    return exec_in(ns, argv, e);
}
