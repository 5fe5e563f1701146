/* SPDX-License-Identifier: Apache-2.0 */
/* Making and removing a whole lab. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"
#include "net/loop/sock.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The API's port on 127.0.0.1 is searched from here: outside the kernel's ephemeral range, and
 * reproducible for a lab's name, when it is free. */
#define PORT_FIRST 20000
#define PORT_COUNT 10000

/* ---- up ---- */

static int check_machine(const struct lab_options *o, struct err *e)
{
    static const char *const tools[][2] = {{"ovsdb-tool", "openvswitch-switch"},
                                           {"ovsdb-server", "openvswitch-switch"},
                                           {"ovs-vswitchd", "openvswitch-switch"},
                                           {"ovs-vsctl", "openvswitch-switch"},
                                           {"nft", "nftables"},
                                           {"etcd", "etcd-server"}};
    if (geteuid() != 0) {
        return err_set(e, -EPERM, "a lab makes network namespaces: run it as root");
    }
    size_t n = ARRAY_SIZE(tools) - (streq(o->store, "etcd") ? 0 : 1);
    for (size_t i = 0; i < n; i++) {
        if (!tool_exists(tools[i][0])) {
            return err_set(e, -ENOENT, "%s is not installed (Debian package %s)", tools[i][0],
                           tools[i][1]);
        }
    }
    CLEANUP_FREE char *tenet = NULL;
    CLEANUP_FREE char *cni = NULL;
    int r = o->containers ? containers_check(e) : 0;
    if (r < 0 || (r = program_find("tenet", &tenet, e)) < 0) {
        return r;
    }
    return program_find("tenet-cni", &cni, e);
}

/* '*at': number of ports tried so far; updated. */
static int free_port(const struct lab *l, uint32_t *at, int *ret, struct err *e)
{
    uint32_t first = hash_string(l->name) % PORT_COUNT;
    while (*at < PORT_COUNT) {
        uint32_t i = (*at)++;
        int port = PORT_FIRST + (int) ((first + i) % PORT_COUNT), fd = -1;
        CLEANUP_FREE char *address = xasprintf("127.0.0.1:%d", port);
        int r = sock_listen_tcp(address, &fd, e);
        fd_close(fd);
        if (r == 0) {
            *ret = port;
            return 0;
        }
        if (r != -EADDRINUSE) {
            return r;
        }
    }
    return err_set(e, -EADDRINUSE, "no port from %d to %d of 127.0.0.1 is free", PORT_FIRST,
                   PORT_FIRST + PORT_COUNT - 1);
}

/* Reserves the name; -EEXIST when there is any part of a lab with this name. */
static int claim(struct lab *l, const struct lab_options *o, struct err *e)
{
    CLEANUP(json_free) struct json *left = lab_namespaces(l);
    int r = dir_make(LAB_ROOT, 0755, e);
    if (r < 0) {
        return r;
    }
    if (json_count(left) || (mkdir(l->dir, 0755) < 0 && errno == EEXIST)) {
        bool whole = lab_load(l, NULL) == 0 && json_get_bool(json_get(l->config, "up"), false);
        const char *how = whole              ? ""
                          : lab_is_locked(l) ? ", and just being made or removed"
                                             : ", half made by a start that was broken off";
        return err_set(e, -EEXIST,
                       "lab %s is there already%s; remove it with \"tenet lab --name %s down\", or "
                       "give this one another name",
                       l->name, how, l->name);
    }
    if (access(l->dir, F_OK) < 0) {
        return err_sys(e, -errno, "make the directory %s", l->dir);
    }
    if ((r = lab_lock(l, e)) < 0) {
        return r;
    }
    l->config = json_object();
    json_set_string(l->config, "plugin", o->plugin);
    json_set_string(l->config, "store", o->store);
    json_set_string(l->config, "datapath", o->datapath);
    json_set_string(l->config, "datapathType", o->datapath_type);
    json_set_string(l->config, "clusterNetwork", o->cluster_network);
    json_set_int(l->config, "hostSubnetLength", o->host_subnet_length);
    json_set_int(l->config, "mtu", o->mtu);
    json_set_int(l->config, "vxlanPort", o->vxlan_port);
    struct json *ports = json_ensure_array(l->config, "ports");
    uint32_t at = 0;
    for (unsigned i = 0; i < o->masters && r == 0; i++) {
        int port = 0;
        r = free_port(l, &at, &port, e);
        json_append(ports, json_int(port));
    }
    json_set_bool(l->config, "tls", o->tls);
    json_set_bool(l->config, "oauth", o->oauth);
    json_set_bool(l->config, "containers", o->containers);
    return r;
}

static int save_config(struct lab *l, struct err *e)
{
    CLEANUP_FREE char *text = json_to_text(l->config);
    return lab_write(l, text, e, "lab.json");
}

struct node_job {
    struct lab *l;
    char name[16];
    uint32_t addr;
    pthread_t thread;
    int result;
    struct err err;
};

static void *run_node_job(void *ctx)
{
    struct node_job *j = ctx;
    j->result = node_prepare(j->l, j->name, j->addr, &j->err);
    return NULL;
}

/* Hosts and switches all at once, as each waits most of the time. Then they join one by one,
 * which determines their subnets, and get ready in parallel again. */
static int create_nodes(struct lab *l, unsigned n, struct err *e)
{
    CLEANUP_FREE struct node_job *jobs = xcalloc(n, sizeof *jobs);
    unsigned started = 0;
    int r = 0;
    for (; started < n && r == 0; started++) {
        struct node_job *j = &jobs[started];
        j->l = l;
        j->addr = NODE_IP_FIRST + started;
        snprintf(j->name, sizeof j->name, "node%u", started + 1);
        r = -pthread_create(&j->thread, NULL, run_node_job, j);
        if (r < 0) {
            err_sys(e, r, "start a thread");
            break;
        }
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(jobs[i].thread, NULL);
        if (r == 0 && jobs[i].result < 0) {
            r = jobs[i].result;
            if (e) {
                *e = jobs[i].err;
            }
        }
    }
    for (unsigned i = 0; i < n && r == 0; i++) {
        r = node_join(l, jobs[i].name, e);
    }
    for (unsigned i = 0; i < n && r == 0; i++) {
        r = node_wait_ready(l, jobs[i].name, e);
    }
    return r;
}

static int create_all(struct lab *l, const struct lab_options *o, struct err *e)
{
    int r = save_config(l, e);
    if (r < 0 || (r = wire_create(l, e)) < 0 || (r = outside_create(l, e)) < 0 ||
        (r = master_create(l, e)) < 0) {
        return r;
    }
    if (o->masters > 1) {
        lab_say(l, "starting %u masters on %s, store %s", o->masters, IP4_TEXT(MASTER_IP),
                o->store);
    } else {
        lab_say(l, "starting the master on %s, store %s", IP4_TEXT(MASTER_IP), o->store);
    }
    if ((r = master_start(l, e)) < 0) {
        return r;
    }
    if (o->tls && (r = master_write_join(l, e)) < 0) {
        return r;
    }
    /* After a reboot there are layers of a lab whose other files are gone. */
    if ((r = containers_remove(l, NULL, e)) < 0 ||
        (o->containers && (r = containers_write_images(l, e)) < 0)) {
        return r;
    }
    if (o->nodes) {
        lab_say(l, "starting %u node%s, datapath %s%s", o->nodes, o->nodes == 1 ? "" : "s",
                o->datapath, o->containers ? ", each with a kubelet and containerd" : "");
    }
    if ((r = create_nodes(l, o->nodes, e)) < 0) {
        return r;
    }
    json_set_bool(l->config, "up", true);
    return save_config(l, e);
}

static int remove_all(struct lab *l, bool *ret_found, struct err *e);

int lab_up(struct lab *l, const struct lab_options *o, struct err *e)
{
    uint64_t start = time_mono_ms();
    int r = check_machine(o, e);
    if (r < 0 || (r = claim(l, o, e)) < 0) {
        return r;
    }
    if ((r = create_all(l, o, e)) < 0) {
        bool found;
        if (o->keep) {
            lab_say(l, "it failed; what there is of lab %s stays", l->name);
        } else if (remove_all(l, &found, NULL) == 0) {
            lab_say(l, "it failed; lab %s is removed again (--keep leaves it to be looked into)",
                    l->name);
        }
        return r;
    }
    lab_say(l, "lab %s is up after %.1f s", l->name, (double) (time_mono_ms() - start) / 1000);
    lab_say(l, "export KUBECONFIG=%s/kubeconfig", l->dir);
    return 0;
}

/* ---- down ---- */

/* Whether 'pid' is a daemon of the lab whose namespace was removed: by its program's name and
 * the lab's directory in its arguments. A user's "less LOG" does not match. */
static bool is_orphan(const struct lab *l, pid_t pid)
{
    static const char *const names[] = {"ovsdb-server", "ovs-vswitchd", "etcd", "tenet",
                                        "containerd"};
    CLEANUP_FREE char *path = xasprintf("/proc/%d/comm", (int) pid);
    CLEANUP_FREE char *needle = xasprintf("%s/", l->dir);
    CLEANUP_STRBUF struct strbuf comm = STRBUF_INIT;
    if (pid == getpid() || file_read(path, 64, &comm, NULL) < 0) {
        return false;
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t n = strlen(names[i]);
        if (comm.size == n + 1 && strncmp(comm.data, names[i], n) == 0) {
            return process_is(pid, needle);
        }
    }
    return false;
}

static int kill_orphans(const struct lab *l)
{
    DIR *proc = opendir("/proc");
    struct dirent *ent;
    int n = 0;
    while (proc && (ent = readdir(proc))) {
        uint64_t pid;
        if (str_to_u64(ent->d_name, INT32_MAX, &pid) < 0 || !is_orphan(l, (pid_t) pid)) {
            continue;
        }
        CLEANUP(fd_close) int pidfd = (int) syscall(SYS_pidfd_open, (pid_t) pid, 0);
        if (pidfd >= 0 && is_orphan(l, (pid_t) pid) &&
            syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0) {
            struct pollfd p = {.fd = pidfd, .events = POLLIN};
            poll(&p, 1, STOP_TIMEOUT_MS);
            n++;
        }
    }
    if (proc) {
        closedir(proc);
    }
    return n;
}

/* Processes first, and the names last: after an interruption at any point it can be repeated. */
static int remove_all(struct lab *l, bool *ret_found, struct err *e)
{
    CLEANUP(json_free) struct json *spaces = lab_namespaces(l);
    struct json *ns;
    *ret_found = json_count(spaces) > 0 || access(l->dir, F_OK) == 0;
    containers_kill(l, NULL);
    JSON_FOREACH (ns, spaces) {
        int r = netns_kill_processes(json_get_string(ns), e);
        if (r < 0 && r != -ENOENT && r != -EINVAL) { /* -EINVAL: only the file, not mounted yet. */
            return r;
        }
    }
    if (kill_orphans(l)) {
        *ret_found = true;
    }
    JSON_FOREACH (ns, spaces) {
        int r = lab_netns_delete(json_get_string(ns), e);
        if (r < 0) {
            return r;
        }
    }
    nodes_unmount(l);
    int r = containers_remove(l, NULL, e);
    return r < 0 ? r : dir_remove(l->dir, e);
}

int lab_down(struct lab *l, bool *ret_found, struct err *e)
{
    if (geteuid() != 0) {
        return err_set(e, -EPERM, "a lab is made of network namespaces: run it as root");
    }
    int r = access(l->dir, F_OK) < 0 ? 0 : lab_lock(l, e);
    if (r < 0 && r != -ENOENT) {
        return r;
    }
    return remove_all(l, ret_found, e);
}
