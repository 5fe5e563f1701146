/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of the lab: host, Open vSwitch and "tenet node", whose readiness is its CNI
 * configuration. */
#include "api/condition.h"
#include "base/mem.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"
#include "wire/yaml.h"

#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#define FILE_MAX 262144

static struct daemon node_daemon(const struct lab *l, const char *node, char **dir, char **title)
{
    *dir = lab_path(l, "nodes/%s", node);
    *title = xasprintf("the agent of %s", node);
    return (struct daemon){*dir, "node", *title};
}

/* ---- state ---- */

int node_check(struct lab *l, const char *node, struct err *e)
{
    int r = lab_load(l, e);
    if (r < 0 || (r = lab_check_host_name(node, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s", node);
    return access(dir, F_OK) < 0
               ? err_set(e, -ENOENT, "node %s does not exist in lab %s", node, l->name)
               : 0;
}

int node_address(struct lab *l, const char *node, uint32_t *ret, struct err *e)
{
    CLEANUP_FREE char *path = lab_path(l, "nodes/%s/node-config.yaml", node);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *config = NULL;
    int r = file_read(path, FILE_MAX, &text, e);
    if (r < 0 || (r = yaml_parse(text.data, text.size, &config, e)) < 0) {
        return r;
    }
    const char *ip = json_path_string(config, "nodeIP", NULL);
    return ip && ip4_parse(ip, ret) == 0 ? 0 : err_set(e, -EINVAL, "%s: nodeIP", path);
}

char *node_datapath(const struct lab *l, uint32_t addr)
{
    const char *list = json_path_string(l->config, "datapath", NULL);
    list = list ? list : "ovs"; /* A lab made by a version with one datapath only. */
    const char *p = list;
    unsigned n = 1;
    for (const char *c = list; *c; c++) {
        n += *c == ',';
    }
    for (unsigned i = (addr - NODE_IP_FIRST) % n; i > 0; i--) {
        p = strchr(p, ',') + 1;
    }
    return xstrndup(p, strcspn(p, ","));
}

bool node_has_ovs(const struct lab *l, uint32_t addr)
{
    CLEANUP_FREE char *kind = node_datapath(l, addr);
    return streq(kind, "ovs");
}

struct node_entry {
    char name[IF_NAMESIZE]; /* Limited by lab_check_host_name. */
    uint32_t addr;
};

static int by_address(const void *a, const void *b)
{
    uint32_t x = ((const struct node_entry *) a)->addr, y = ((const struct node_entry *) b)->addr;
    return x < y ? -1 : x > y;
}

/* The nodes that have got an address already. */
static struct node_entry *node_entries(struct lab *l, size_t *ret_n)
{
    CLEANUP_FREE char *path = lab_path(l, "nodes");
    struct node_entry *list = NULL;
    size_t n = 0, cap = 0;
    DIR *d = opendir(path);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        struct node_entry entry;
        if (lab_check_host_name(ent->d_name, NULL) == 0 &&
            node_address(l, ent->d_name, &entry.addr, NULL) == 0) {
            memcpy(entry.name, ent->d_name, strlen(ent->d_name) + 1);
            list = grow(list, &cap, n + 1, sizeof *list);
            list[n++] = entry;
        }
    }
    if (d) {
        closedir(d);
    }
    if (n) {
        qsort(list, n, sizeof *list, by_address);
    }
    *ret_n = n;
    return list;
}

struct json *node_names(struct lab *l)
{
    size_t n;
    CLEANUP_FREE struct node_entry *list = node_entries(l, &n);
    struct json *names = json_array();
    for (size_t i = 0; i < n; i++) {
        json_append(names, json_string(list[i].name));
    }
    return names;
}

static int free_address(struct lab *l, uint32_t *ret, struct err *e)
{
    size_t n;
    CLEANUP_FREE struct node_entry *list = node_entries(l, &n);
    uint32_t addr = NODE_IP_FIRST;
    for (size_t i = 0; i < n && list[i].addr == addr; i++) {
        addr++;
    }
    if (addr > NODE_IP_LAST || n >= LAB_NODES_MAX) {
        return err_set(e, -ENOSPC, "lab %s has as many nodes as it can have (%zu)", l->name, n);
    }
    *ret = addr;
    return 0;
}

pid_t node_pid(struct lab *l, const char *node)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = node_daemon(l, node, &dir, &title);
    return daemon_pid(&d);
}

/* ---- the CNI configuration ---- */

/* Owned path of the first *.conf or *.conflist in name order, as kubelet takes it; NULL: none. */
static char *cni_config_path(struct lab *l, const char *node)
{
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s/cni", node);
    CLEANUP_FREE char *first = NULL;
    DIR *d = opendir(dir);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        if ((str_has_suffix(ent->d_name, ".conf") || str_has_suffix(ent->d_name, ".conflist")) &&
            ent->d_name[0] != '.' && (!first || strcmp(ent->d_name, first) < 0)) {
            free(first);
            first = xstrdup(ent->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    return first ? xasprintf("%s/%s", dir, first) : NULL;
}

int node_cni_config(struct lab *l, const char *node, char **ret, struct err *e)
{
    CLEANUP_FREE char *path = cni_config_path(l, node);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (!path) {
        return err_set(e, -EAGAIN,
                       "node %s is not ready: its agent has written no CNI configuration", node);
    }
    CLEANUP(json_free) struct json *v = NULL;
    int r = file_read(path, FILE_MAX, &text, e);
    if (r < 0 || (r = json_parse(text.data, text.size, &v, e)) < 0) {
        return r;
    }
    struct json *first = json_at(json_get(v, "plugins"), 0);
    if (!first) {
        *ret = strbuf_steal(&text);
        return 0;
    }
    json_set(first, "cniVersion", json_clone(json_get(v, "cniVersion")));
    json_set(first, "name", json_clone(json_get(v, "name")));
    *ret = json_to_text(first);
    return 0;
}

struct node_wait {
    struct lab *l;
    const char *node;
};

static int has_cni_config(void *ctx)
{
    struct node_wait *w = ctx;
    CLEANUP_FREE char *path = cni_config_path(w->l, w->node);
    return path != NULL;
}

/* ---- the agent ---- */

static int agent_start(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    CLEANUP_FREE char *tenet = NULL;
    CLEANUP(fd_close) int ns = -1;
    struct daemon d = node_daemon(l, node, &dir, &title);
    int r = program_find("tenet", &tenet, e);
    if (r < 0 || (r = host_open(l, node, &ns, e)) < 0) {
        return r;
    }
    if (!daemon_pid(&d)) {
        /* A killed agent has left its CNI configuration behind. */
        CLEANUP_FREE char *stale = cni_config_path(l, node);
        if (stale) {
            unlink(stale);
        }
    }
    CLEANUP_FREE char *config = xasprintf("%s/node-config.yaml", dir);
    const char *argv[] = {tenet, "node", "--config", config, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.netns_fd = ns;
    bool started;
    return daemon_start(&d, &s, &started, e);
}

/* Waits until 'cond' holds; 'what' describes it. */
static int agent_wait(struct lab *l, const char *node, const char *what, int (*cond)(void *ctx),
                      struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = node_daemon(l, node, &dir, &title);
    struct node_wait w = {.l = l, .node = node};
    return daemon_wait(&d, what, cond, &w, e);
}

int lab_node_action(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = node_daemon(l, node, &dir, &title);
    int r = node_check(l, node, e);
    if (r == 0 && action != LAB_START) {
        r = daemon_stop(&d, action == LAB_KILL, e);
    }
    if (r == 0 && (action == LAB_START || action == LAB_RESTART)) {
        r = agent_start(l, node, e);
        if (r == 0) {
            r = agent_wait(l, node, "get ready", has_cni_config, e);
        }
    }
    return r;
}

/* ---- making and removing ---- */

static int write_config(struct lab *l, const char *node, uint32_t addr, struct err *e)
{
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s", node);
    CLEANUP_FREE char *cni = xasprintf("%s/cni", dir);
    CLEANUP_FREE char *run = xasprintf("%s/run", dir);
    int r = dir_make(cni, 0755, e);
    if (r < 0 || (r = dir_make(run, 0755, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *more = master_more_servers(l, true);
    CLEANUP_FREE char *servers = more ? xasprintf("masterServers: %s\n", more) : xstrdup("");
    CLEANUP_FREE char *kubeconfig =
        lab_has_tls(l) ? xasprintf("masterKubeConfig: %s/node.kubeconfig\n"
                                   "bootstrapKubeConfig: %s/bootstrap.kubeconfig\n",
                                   dir, l->dir)
                       : xasprintf("masterKubeConfig: %s/node.kubeconfig\n", l->dir);
    CLEANUP_FREE char *datapath = node_datapath(l, addr);
    CLEANUP_FREE char *text =
        xasprintf("nodeName: %s\n"
                  "nodeIP: %s\n"
                  "%s"
                  "%s"
                  "runDir: %s\n"
                  "cniConfDir: %s\n"
                  "dnsNameservers: [%s]\n"
                  "networkConfig:\n"
                  "  datapath: %s\n"
                  "hostgw:\n"
                  "  subnetFile: %s/subnet.env\n"
                  "ovs:\n"
                  "  database: %s/ovs/db.sock\n"
                  "  runDir: %s/ovs\n"
                  "  datapathType: %s\n",
                  node, IP4_TEXT(addr), kubeconfig, servers, run, cni, IP4_TEXT(INTERNET_IP),
                  datapath, run, dir, dir, json_path_string(l->config, "datapathType", NULL));
    return lab_write(l, text, e, "nodes/%s/node-config.yaml", node);
}

int node_prepare(struct lab *l, const char *node, uint32_t addr, struct err *e)
{
    int r = write_config(l, node, addr, e);
    bool ovs = node_has_ovs(l, addr);
    if (r < 0 || (r = host_create(l, node, addr, ovs && !lab_switch_is_kernels(l), e)) < 0 ||
        (ovs && (r = ovs_start(l, node, addr, e)) < 0) ||
        (lab_has_containers(l) && (r = containers_create(l, node, e)) < 0)) {
        return err_prefix(e, "node %s", node), r;
    }
    return 0;
}

static int has_subnet(void *ctx)
{
    struct node_wait *w = ctx;
    return lab_get(w->l, NETWORK_API, "hostsubnets", NULL, w->node, NULL, NULL) == 0;
}

int node_join(struct lab *l, const char *node, struct err *e)
{
    int r = agent_start(l, node, e);
    if (r < 0 || (r = agent_wait(l, node, "get a subnet", has_subnet, e)) < 0) {
        return r;
    }
    if (!lab_has_containers(l)) {
        return 0;
    }
    /* The agent has the credentials by then, which the kubelet shares. */
    r = kubelet_configure(l, node, e);
    return r < 0 ? r : kubelet_start(l, node, e);
}

/* Unmounts the agent's mounts that outlive it on purpose: its bpffs with the pinned maps, and
 * the namespace of its ports' other ends. */
static void unmount(const char *dir)
{
    CLEANUP_FREE char *bpf = xasprintf("%s/run/bpf", dir);
    CLEANUP_FREE char *ends = xasprintf("%s/run/ports.netns", dir);
    umount2(bpf, MNT_DETACH | UMOUNT_NOFOLLOW);
    netns_release(ends, NULL);
}

int node_remove(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *ns = lab_ns(l, node);
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s", node);
    containers_kill(l, node);
    int r = netns_kill_processes(ns, e);
    if (r < 0 && r != -ENOENT && r != -EINVAL) {
        return r;
    }
    if ((r = lab_netns_delete(ns, e)) < 0) {
        return r;
    }
    unmount(dir);
    containers_unmount(l, node);
    return (r = containers_remove(l, node, e)) < 0 ? r : dir_remove(dir, e);
}

void nodes_unmount(struct lab *l)
{
    CLEANUP_FREE char *path = lab_path(l, "nodes");
    DIR *d = opendir(path);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        CLEANUP_FREE char *dir = xasprintf("%s/%s", path, ent->d_name);
        if (ent->d_name[0] != '.') {
            unmount(dir);
            containers_unmount(l, ent->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* ---- Ready ---- */

struct ready_wait {
    struct lab *l;
    const char *node;
    struct err err;
};

static int is_ready(void *ctx)
{
    struct ready_wait *w = ctx;
    CLEANUP(json_free) struct json *obj = NULL;
    int r = lab_get(w->l, "v1", "nodes", NULL, w->node, &obj, &w->err);
    if (r < 0) {
        return r == -ENOENT || r == -EAGAIN ? 0 : r;
    }
    if (lab_has_containers(w->l)) {
        /* Its kubelet has written the status when the runtime is known. */
        const char *version =
            json_path_string(obj, "status", "nodeInfo", "containerRuntimeVersion", NULL);
        r = kubelet_check(w->l, w->node, &w->err);
        if (r < 0 || !version || !*version) {
            return r;
        }
    }
    return condition_is_true(obj, "Ready");
}

int node_wait_ready(struct lab *l, const char *node, struct err *e)
{
    CLEANUP(json_free) struct json *subnet = NULL;
    struct ready_wait w = {.l = l, .node = node};
    int r = agent_wait(l, node, "get ready", has_cni_config, e);
    if (r < 0) {
        return r;
    }
    r = lab_wait(is_ready, &w, START_TIMEOUT_MS);
    if (r == -ETIMEDOUT) {
        return err_set(e, r, "node %s is not Ready after %d s", node, START_TIMEOUT_MS / 1000);
    }
    if (r < 0) {
        return err_set(e, r, "%s", w.err.text);
    }
    if ((r = lab_get(l, NETWORK_API, "hostsubnets", NULL, node, &subnet, e)) == 0) {
        lab_say(l, "%s is ready: %s, subnet %s", node, json_path_string(subnet, "hostIP", NULL),
                json_path_string(subnet, "subnet", NULL));
    }
    return r;
}

int lab_node_add(struct lab *l, const char *node, struct err *e)
{
    uint32_t addr = 0;
    int r = lab_check_host_name(node, e);
    if (r < 0 || (r = lab_load(l, e)) < 0 || (r = lab_lock(l, e)) < 0) {
        return r;
    }
    if (node_check(l, node, NULL) == 0) {
        return err_set(e, -EEXIST, "node %s exists already in lab %s", node, l->name);
    }
    if ((r = free_address(l, &addr, e)) < 0) {
        return r;
    }
    if ((r = node_prepare(l, node, addr, e)) < 0 || (r = node_join(l, node, e)) < 0 ||
        (r = node_wait_ready(l, node, e)) < 0) {
        node_remove(l, node, NULL);
        lab_delete(l, "v1", "nodes", NULL, node, NULL);
    }
    return r;
}

/* Deletes the node's pods, together with their ports. */
static int delete_pods(struct lab *l, const char *node, struct err *e)
{
    CLEANUP(json_free) struct json *pods = NULL;
    struct json *pod;
    int r = lab_get(l, "v1", "pods", NULL, NULL, &pods, e);
    JSON_FOREACH (pod, json_get(pods, "items")) {
        if (r == 0 && streq_null(json_path_string(pod, "spec", "nodeName", NULL), node)) {
            r = pod_remove(l, pod, true, e);
        }
    }
    return r;
}

struct pods_wait {
    struct lab *l;
    const char *node;
    struct err err;
};

static int has_no_pods(void *ctx)
{
    struct pods_wait *w = ctx;
    CLEANUP(json_free) struct json *pods = NULL;
    struct json *pod;
    int r = lab_get(w->l, "v1", "pods", NULL, NULL, &pods, &w->err);
    if (r < 0) {
        return r;
    }
    JSON_FOREACH (pod, json_get(pods, "items")) {
        if (streq_null(json_path_string(pod, "spec", "nodeName", NULL), w->node)) {
            return 0;
        }
    }
    return 1;
}

/* Pods with containers end while their kubelet and the network are there, which take them down. */
static int end_pods(struct lab *l, const char *node, struct err *e)
{
    struct pods_wait w = {.l = l, .node = node};
    int r = delete_pods(l, node, e);
    if (r < 0 || (r = lab_wait(has_no_pods, &w, START_TIMEOUT_MS)) == 1) {
        return r < 0 ? r : 0;
    }
    return r == -ETIMEDOUT ? err_set(e, r,
                                     "pods of node %s have not ended after %d s (its kubelet says "
                                     "why in %s/nodes/%s/kubelet.log)",
                                     node, START_TIMEOUT_MS / 1000, l->dir, node)
                           : err_set(e, r, "%s", w.err.text);
}

int lab_node_delete(struct lab *l, const char *node, struct err *e)
{
    int r = node_check(l, node, e);
    if (r < 0 || (r = lab_lock(l, e)) < 0 ||
        (lab_has_containers(l) && (r = end_pods(l, node, e)) < 0)) {
        return r;
    }
    /* The agents first: they would register the node again. */
    if ((lab_has_containers(l) && (r = lab_kubelet(l, node, LAB_STOP, e)) < 0) ||
        (r = lab_node_action(l, node, LAB_STOP, e)) < 0 || (r = delete_pods(l, node, e)) < 0 ||
        (r = lab_delete(l, "v1", "nodes", NULL, node, e)) < 0 ||
        (r = lab_wait_absent(l, NETWORK_API, "hostsubnets", node, e)) < 0) {
        return r;
    }
    return node_remove(l, node, e);
}
