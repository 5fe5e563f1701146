/* SPDX-License-Identifier: Apache-2.0 */
/* tenet setup remove: takes away what setup made, and what the programs that it started have made
 * on this host. */
#include "base/mem.h"
#include "cli/explain/agents.h"
#include "cli/setup/setup.h"
#include "cli/setup/setup_api.h"
#include "cli/setup/setup_sample.h"
#include "datapath/ebpf/hook.h"
#include "kubelet/config.h"
#include "lab/lab.h"
#include "master/master_config.h"
#include "net/kernel/netns.h"
#include "net/kernel/redirect.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"
#include "node/cni/cni_conf.h"
#include "node/config.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#define TOOL_MS 30000

static const char help[] =
    "usage: tenet setup remove [master|node] [OPTIONS]\n"
    "\n"
    "Takes away what \"tenet setup\" made on this host: services are stopped and disabled,\n"
    "configurations and links are removed, and on a node the bridge, links, rules, mounts and the\n"
    "CNI configuration of the agent as well. Without an argument it does so for all that was set "
    "up.\n"
    "The registry, the cluster's authority and the kubelet's data stay, unless --purge is given, "
    "and\n"
    "so do files that were edited.\n";

enum { OPT_PURGE = OPT_FIRST_FREE, OPT_FORCE, OPT_PREFIX };

static const struct command_option options[] = {
    {"purge", OPT_PURGE, NULL,
     "removes the data as well: the registry, the cluster's authority, the kubelet's directory, "
     "and "
     "edited configurations"},
    {"force", OPT_FORCE, NULL, "goes on although pods are attached"},
    {"prefix", OPT_PREFIX, "DIR", "the DIR of the setup", COMPLETE_FILE},
    {0},
};

struct removal {
    struct setup s;
    bool purge, force;
};

/* ---- what is left of programs ---- */

/* Runs a tool; a tool that fails or is missing is reported, and the removal goes on. */
static void run_tool(const char *const argv[], const char *what)
{
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    int status = 0;
    spec.argv = argv;
    int r = process_run(&spec, TOOL_MS, &out, &out, &status, &e);
    if (r == 0 && status == 0) {
        setup_say("removed %s", what);
        return;
    }
    fprintf(stderr, "tenet: %s is not removed: %.*s\n", what,
            r < 0 ? (int) strlen(e.text) : (int) strcspn(strbuf_cstr(&out), "\n"),
            r < 0 ? e.text : strbuf_cstr(&out));
}

static void remove_bridge(const struct node_config *c)
{
    const char *bridge = smap_get(&c->datapath_settings, "ovs.bridge");
    const char *database = smap_get(&c->datapath_settings, "ovs.database");
    bridge = bridge ? bridge : "br0";
    database = database ? database : "/run/openvswitch/db.sock";
    CLEANUP_FREE char *db = xasprintf("--db=unix:%s", database);
    CLEANUP_FREE char *what = xasprintf("the bridge %s of Open vSwitch", bridge);
    const char *const argv[] = {"ovs-vsctl", db,  "--timeout=20", "--if-exists", "del-br",
                                bridge,      NULL};
    if (tool_exists("ovs-vsctl") && access(database, F_OK) == 0) {
        run_tool(argv, what);
    }
}

/* Removes the two tables, which nft accepts to delete only when they exist. */
static void remove_rules(void)
{
    static const char *const argv[] = {"nft", "-f", "-", NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct err e = {0};
    int status = 0;
    spec.argv = argv;
    spec.stdin_text = "table ip tenet\n"
                      "delete table ip tenet\n"
                      "table ip tenet-services\n"
                      "delete table ip tenet-services\n";
    int r = process_run(&spec, TOOL_MS, &out, &out, &status, &e);
    if (r == 0 && status == 0) {
        setup_say("removed the nftables tables ip tenet and ip tenet-services");
    } else {
        fprintf(stderr, "tenet: the nftables tables are not removed: %s\n",
                r < 0 ? e.text : strbuf_cstr(&out));
    }
}

static bool is_own_link(const struct rtnl_link *l)
{
    bool port = str_has_prefix(l->name, "tp") && streq(l->kind, "veth") &&
                strspn(l->name + 2, "0123456789") == strlen(l->name + 2);
    bool ebpf = streq(l->name, "vxlan_tenet") || (streq(l->name, "tun0") && streq(l->kind, "veth"));
    return port || ebpf;
}

static bool keep_none(void *ctx, const char *ifname)
{
    return false;
}

static void remove_links(void)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t n = 0, removed = 0;
    if (rtnl_open(&r, NULL) < 0 || rtnl_link_list(r, &links, &n, NULL) < 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        removed += is_own_link(&links[i]) && rtnl_link_del(r, links[i].name, NULL) == 0;
    }
    (void) redirect_sweep(r, REDIRECT_AMONG_OTHERS, HOOK_FILTER_NAME, keep_none, NULL, NULL);
    if (removed) {
        setup_say("removed %zu links of the pod network", removed);
    }
}

static int remove_mounts(const struct node_config *c, struct err *e)
{
    CLEANUP_FREE char *bpf = xasprintf("%s/bpf", c->run_dir);
    CLEANUP_FREE char *ends = xasprintf("%s/ports.netns", c->run_dir);
    umount2(bpf, MNT_DETACH | UMOUNT_NOFOLLOW);
    int r = netns_release(ends, e);
    return r < 0 ? r : dir_remove(c->run_dir, e);
}

/* ---- files ---- */

static void say_file(const char *path, const char *what)
{
    setup_say("%s %s", path, what);
}

static const char *sample_of(const char *path)
{
    return setup_sample(path);
}

/* Removes a folder of data, also behind the link that systemd makes for a DynamicUser. */
static int purge_dir(const char *path, struct err *e)
{
    CLEANUP_FREE char *real = realpath(path, NULL);
    if (!real) {
        return 0;
    }
    int r = dir_remove(real, e);
    if (r == 0) {
        setup_say("%s removed", path);
    }
    return r;
}

/* Removes a folder that is empty, and the link of a DynamicUser to it. */
static void drop_dir(const char *path)
{
    CLEANUP_FREE char *real = realpath(path, NULL);
    if (real && rmdir(real) == 0 && !streq(real, path)) {
        (void) unlink(path);
    }
}

static int purge_file(const char *path, const char *suffix, struct err *e)
{
    CLEANUP_FREE char *file = xasprintf("%s%s", path, suffix);
    if (unlink(file) < 0) {
        return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, -errno, "remove %s", file);
    }
    setup_say("%s removed", file);
    return 0;
}

/* ---- the node ---- */

/* Whether an agent works in 'run_dir'. */
static bool agent_runs(const char *run_dir)
{
    CLEANUP_FREE char *path = xasprintf("%s/agent.lock", run_dir);
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* The number of pods that the agent has; 0 if it does not answer. */
static size_t count_pods(const char *run_dir)
{
    CLEANUP_FREE char *socket = xasprintf("%s/agent.sock", run_dir);
    __attribute__((cleanup(agents_done))) struct agents a = {.loop = loop_new()};
    CLEANUP(json_free) struct json *state = NULL;
    return access(socket, F_OK) == 0 && agents_get(&a, socket, "/v1/state", &state, NULL) == 0
               ? json_count(json_get(state, "pods"))
               : 0;
}

static int stop_units(const struct setup *s, const char *const units[], struct err *e)
{
    int r = 0;
    for (size_t i = 0; units[i] && r == 0; i++) {
        if (setup_has_unit(s, units[i]) && (r = setup_stop_unit(units[i], e)) == 0) {
            setup_say("%s is stopped and disabled", units[i]);
        }
    }
    return r;
}

static int purge_kubelet(const struct removal *m, struct err *e)
{
    CLEANUP(kubelet_config_done) struct kubelet_config c;
    CLEANUP_FREE char *path = xasprintf("%s/kubelet-config.yaml", m->s.etc);
    kubelet_config_init(&c);
    int r = access(path, F_OK) < 0 ? 0 : kubelet_config_load(&c, path, e);
    if (r < 0 || *m->s.prefix) {
        return r;
    }
    char target[sizeof ROOT_DIR_DEFAULT];
    ssize_t n = readlink(ROOT_DIR_OF_0_1, target, sizeof target);
    if (n == (ssize_t) strlen(ROOT_DIR_DEFAULT) && !memcmp(target, ROOT_DIR_DEFAULT, (size_t) n) &&
        unlink(ROOT_DIR_OF_0_1) < 0) {
        return err_sys(e, -errno, "remove the link %s", ROOT_DIR_OF_0_1);
    }
    return purge_dir(c.root_dir, e);
}

static int remove_node(struct removal *m, struct err *e)
{
    static const char *const units[] = {"tenet-kubelet.service", "tenet-node.service", NULL};
    CLEANUP(node_config_done) struct node_config c;
    CLEANUP_FREE char *path = xasprintf("%s/node-config.yaml", m->s.etc);
    node_config_init(&c);
    int r = access(path, F_OK) < 0 ? 0 : node_config_load(&c, path, e);
    if (r < 0) {
        return r;
    }
    size_t pods = count_pods(c.run_dir);
    if (pods && !m->force) {
        return err_set(
            e, -EBUSY,
            "%zu pods are attached on this node: \"tenet adm drain %s\" first, or --force", pods,
            c.node_name ? c.node_name : "NODE");
    }
    if ((r = stop_units(&m->s, units, e)) < 0) {
        return r;
    }
    if (agent_runs(c.run_dir)) {
        return err_set(e, -EBUSY, "\"tenet node\" runs on this host: stop it first");
    }
    struct cni_conf conf = {.dir = c.cni_conf_dir, .name = c.cni_conf_name};
    cni_conf_remove(&conf);
    if (!streq(c.datapath, "ebpf")) {
        remove_bridge(&c);
    }
    remove_rules();
    if ((r = remove_mounts(&c, e)) < 0) {
        return r;
    }
    remove_links();
    if (m->purge && (r = purge_kubelet(m, e)) < 0) {
        return r;
    }
    r = setup_files_remove(m->s.files, "node", m->purge, sample_of, say_file, e);
    if (r == 0) {
        printf("\nThe cluster still has the node: on the master, \"kubectl delete node %s\"\n",
               c.node_name ? c.node_name : "NAME");
    }
    return r;
}

/* ---- the master ---- */

static int purge_master(const struct removal *m, const struct master_config *c, struct err *e)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", ".lock", ".reserve"};
    CLEANUP_FREE char *pki = xasprintf("%s/pki", m->s.state);
    int r = purge_dir(c->pki_dir ? c->pki_dir : pki, e);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(suffixes); i++) {
        r = purge_file(c->storage_path, suffixes[i], e);
    }
    return r;
}

static int remove_master(struct removal *m, struct err *e)
{
    static const char *const units[] = {"tenet-master.socket", "tenet-master.service", NULL};
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    CLEANUP_FREE char *path = xasprintf("%s/master-config.yaml", m->s.etc);
    master_config_init(&c);
    int r = access(path, F_OK) < 0 ? 0 : master_config_load(path, &c, e);
    if (r < 0 || (r = stop_units(&m->s, units, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *pki = xasprintf("%s/pki", m->s.state);
    CLEANUP_FREE char *admin = xasprintf("%s/admin.kubeconfig", c.pki_dir ? c.pki_dir : pki);
    if (access(admin, F_OK) == 0 && setup_api_answers(admin, 0, NULL)) {
        return err_set(e, -EBUSY, "\"tenet master\" runs on this host: stop it first");
    }
    if (m->purge && (r = purge_master(m, &c, e)) < 0) {
        return r;
    }
    r = setup_files_remove(m->s.files, "master", m->purge, sample_of, say_file, e);
    if (r == 0 && !m->purge) {
        setup_say("the registry and the cluster's authority are kept in %s (--purge removes them)",
                  m->s.state);
    }
    if (r == 0 && m->purge) {
        drop_dir(m->s.state); /* It stays when it has files of others, such as an audit log. */
    }
    if (r == 0 && m->purge && streq(c.storage_backend, "etcd")) {
        setup_say("the keys below /registry/ in etcd are not removed");
    }
    return r;
}

/* ---- the command ---- */

static int parse(struct removal *m, int argc, char **argv)
{
    int opt;
    optind = 0;
    while ((opt = command_getopt(&setup_remove_command, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_PURGE:
            m->purge = true;
            break;
        case OPT_FORCE:
            m->force = true;
            break;
        case OPT_PREFIX:
            m->s.prefix = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return -1;
}

static int remove_roles(struct removal *m, const char *role, struct err *e)
{
    bool node = !*role ? setup_files_has(m->s.files, "node") : streq(role, "node");
    bool master = !*role ? setup_files_has(m->s.files, "master") : streq(role, "master");
    int r = 0;
    if (!node && !master) {
        setup_say("there is nothing that setup has made");
        return 0;
    }
    r = node ? remove_node(m, e) : 0;
    return r == 0 && master ? remove_master(m, e) : r;
}

static int run(int argc, char **argv)
{
    struct removal m = {0};
    struct err e = {0};
    int status = parse(&m, argc, argv);
    if (status >= 0) {
        return status;
    }
    const char *role = optind < argc ? argv[optind++] : "";
    if (*role && !streq(role, "master") && !streq(role, "node")) {
        return command_usage(&setup_remove_command, "must be master or node, not \"%s\"", role);
    }
    if ((status = command_expect_end(&setup_remove_command, argc, argv)) >= 0) {
        return status;
    }
    if (geteuid() != 0 && !m.s.prefix) {
        return command_fail(NULL, "setup removes what is root's: run it as root");
    }
    int r = setup_open(&m.s, true, &e);
    r = r < 0 ? r : remove_roles(&m, role, &e);
    setup_done(&m.s);
    return r < 0 ? command_fail(&e, NULL) : 0;
}

const struct command setup_remove_command = {.name = "setup remove",
                                             .summary = "takes away what setup made",
                                             .help = help,
                                             .options = options,
                                             .complete = "master node",
                                             .run = run};
