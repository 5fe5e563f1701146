/* SPDX-License-Identifier: Apache-2.0 */
/* A node's Open vSwitch: its own ovsdb-server and ovs-vswitchd, and the bridge br-phy, which holds
 * the host's link and its address.  An administrator sets these up on a real host; the lab uses
 * the same tools, and the node's agent uses none of them. */
#include "base/mem.h"
#include "lab/lab_internal.h"
#include "net/loop/sock.h"

#include <unistd.h>

#define SCHEMA "/usr/share/openvswitch/vswitch.ovsschema"
#define PHY "br-phy"

/* The names of one node's Open vSwitch. */
struct ovs {
    char *dir;     /* Directory of the node. */
    char *run_dir; /* DIR/ovs */
    char *db, *db_socket, *remote;
    char *titles[2];
    struct daemon server, vswitchd;
};

static void ovs_done(struct ovs *o)
{
    free(o->dir);
    free(o->run_dir);
    free(o->db);
    free(o->db_socket);
    free(o->remote);
    free(o->titles[0]);
    free(o->titles[1]);
}

static void ovs_init(struct lab *l, const char *node, struct ovs *o)
{
    o->dir = lab_path(l, "nodes/%s", node);
    o->run_dir = xasprintf("%s/ovs", o->dir);
    o->db = xasprintf("%s/conf.db", o->run_dir);
    o->db_socket = xasprintf("%s/db.sock", o->run_dir);
    o->remote = xasprintf("unix:%s", o->db_socket);
    o->titles[0] = xasprintf("ovsdb-server of %s", node);
    o->titles[1] = xasprintf("ovs-vswitchd of %s", node);
    o->server = (struct daemon){o->dir, "ovsdb-server", o->titles[0]};
    o->vswitchd = (struct daemon){o->dir, "ovs-vswitchd", o->titles[1]};
}

static int answers(void *ctx)
{
    int fd = -1;
    int r = sock_connect_unix(ctx, &fd, NULL);
    fd_close(fd);
    return r == 0;
}

static int start_server(struct ovs *o, const struct process_spec *base, struct err *e)
{
    int r = dir_make(o->run_dir, 0755, e);
    if (r == 0 && access(o->db, F_OK) < 0) {
        const char *create[] = {"ovsdb-tool", "create", o->db, SCHEMA, NULL};
        r = tool_run(create, base->netns_fd, e);
    }
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *remote = xasprintf("--remote=punix:%s", o->db_socket);
    const char *argv[] = {"ovsdb-server", o->db, remote, "--pidfile", "-vsyslog:off", NULL};
    struct process_spec s = *base;
    bool started;
    s.argv = argv;
    if ((r = daemon_start(&o->server, &s, &started, e)) < 0) {
        return r;
    }
    return daemon_wait(&o->server, "answer", answers, o->db_socket, e);
}

static int start_vswitchd(struct ovs *o, const struct process_spec *base, struct err *e)
{
    const char *argv[] = {"ovs-vswitchd", o->remote, "--pidfile", "-vsyslog:off", NULL};
    struct process_spec s = *base;
    bool started;
    s.argv = argv;
    return daemon_start(&o->vswitchd, &s, &started, e);
}

/* Packets from eth0 go to the switch's socket there, but to the kernel's stack as well, which
 * would answer everything a second time. So they are dropped right after the socket. */
static int keep_from_kernel(int ns, struct err *e)
{
    static const char rules[] = "table netdev lab\n"
                                "delete table netdev lab\n"
                                "table netdev lab {\n"
                                "    chain ingress {\n"
                                "        type filter hook ingress device eth0 priority 0\n"
                                "        policy drop\n"
                                "    }\n"
                                "}\n";
    const char *argv[] = {"nft", "-f", "-", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    s.netns_fd = ns;
    s.stdin_text = rules;
    return tool_run_spec(&s, e);
}

/* ovs-vsctl returns when ovs-vswitchd has applied the change. */
static int set_up_phy(struct lab *l, const char *node, uint32_t addr, struct ovs *o, int ns,
                      struct err *e)
{
    struct mac mac = host_mac(addr);
    CLEANUP_FREE char *db = xasprintf("--db=%s", o->remote);
    CLEANUP_FREE char *hwaddr = xasprintf("other_config:hwaddr=\"%s\"", MAC_TEXT(mac));
    CLEANUP_FREE char *mtu = xasprintf("mtu_request=%u", wire_mtu(l));
    /* clang-format off */
    const char *argv[] = {"ovs-vsctl", db, "--timeout=20",
                          "--", "--may-exist", "add-br", PHY,
                          "--", "set", "bridge", PHY, "datapath_type=netdev", hwaddr,
                          "--", "set", "interface", PHY, mtu,
                          "--", "--may-exist", "add-port", PHY, "eth0", NULL};
    /* clang-format on */
    int r = tool_run(argv, ns, e);
    if (r < 0) {
        return daemon_pid(&o->vswitchd) ? err_prefix(e, "%s of %s", PHY, node)
                                        : daemon_ended(&o->vswitchd, e);
    }
    return (r = keep_from_kernel(ns, e)) < 0 ? r : host_address(l, node, PHY, addr, e);
}

/* Creates the row that all others belong to, as ovs-ctl does first on a host. */
static int init_database(const struct ovs *o, int ns, struct err *e)
{
    CLEANUP_FREE char *db = xasprintf("--db=%s", o->remote);
    const char *argv[] = {"ovs-vsctl", db, "--timeout=20", "--no-wait", "init", NULL};
    return tool_run(argv, ns, e);
}

bool lab_switch_is_kernels(const struct lab *l)
{
    return streq_null(json_path_string(l->config, "datapathType", NULL), "system");
}

int ovs_start(struct lab *l, const char *node, uint32_t addr, struct err *e)
{
    __attribute__((cleanup(ovs_done))) struct ovs o;
    ovs_init(l, node, &o);
    CLEANUP_FREE char *run_dir = xasprintf("OVS_RUNDIR=%s", o.run_dir);
    CLEANUP_FREE char *db_dir = xasprintf("OVS_DBDIR=%s", o.run_dir);
    CLEANUP_FREE char *log_dir = xasprintf("OVS_LOGDIR=%s", o.run_dir);
    const char *env[] = {run_dir, db_dir, log_dir, NULL};
    CLEANUP(fd_close) int ns = -1;
    int r = host_open(l, node, &ns, e);
    struct process_spec base = PROCESS_SPEC_INIT;
    base.env = env;
    base.netns_fd = ns;
    if (r < 0 || (r = start_server(&o, &base, e)) < 0 || (r = start_vswitchd(&o, &base, e)) < 0) {
        return r;
    }
    return lab_switch_is_kernels(l) ? init_database(&o, ns, e)
                                    : set_up_phy(l, node, addr, &o, ns, e);
}

int ovs_stop(struct lab *l, const char *node, bool hard, struct err *e)
{
    __attribute__((cleanup(ovs_done))) struct ovs o;
    ovs_init(l, node, &o);
    int r = daemon_stop(&o.vswitchd, hard, e);
    return r < 0 ? r : daemon_stop(&o.server, hard, e);
}

bool ovs_running(struct lab *l, const char *node)
{
    __attribute__((cleanup(ovs_done))) struct ovs o;
    ovs_init(l, node, &o);
    return daemon_pid(&o.vswitchd) && daemon_pid(&o.server);
}

int lab_ovs(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    uint32_t addr = 0;
    int r = node_check(l, node, e);
    if (r == 0) {
        r = node_address(l, node, &addr, e);
    }
    if (r == 0 && !node_has_ovs(l, addr)) {
        r = err_set(e, -ENOENT, "node %s has the datapath ebpf, and no Open vSwitch", node);
    }
    if (r == 0 && action != LAB_START) {
        r = ovs_stop(l, node, action == LAB_KILL, e);
    }
    if (r == 0 && (action == LAB_START || action == LAB_RESTART)) {
        r = ovs_start(l, node, addr, e);
    }
    return r;
}
