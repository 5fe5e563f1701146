/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/setup/setup_checks.h"

#include "api/kind.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "sdn/network.h"

#include <stdio.h>

#define MIB (1024 * 1024LL)
#define GIB (1024 * MIB)
#define CNI_NAME "80-openshift-network.conf"
#define VXLAN_LINK "vxlan_tenet"
#define TCP_LISTEN 0x0a
#define LINK_MTU 1500 /* The MTU that other hosts are expected to have. */

struct context {
    const struct setup_facts *f;
    const struct setup_wish *w;
    struct setup_finding *out;
    size_t n;
};

/* The next finding; the caller writes its texts.  The last one takes all that do not fit. */
static struct setup_finding *next(struct context *c, enum setup_level level, const char *what)
{
    struct setup_finding *r = &c->out[MIN(c->n, (size_t) SETUP_MAX_FINDINGS - 1)];
    c->n = MIN(c->n + 1, (size_t) SETUP_MAX_FINDINGS);
    *r = (struct setup_finding){.level = level};
    snprintf(r->what, sizeof r->what, "%s", what);
    return r;
}

#define FOUND(r, ...) snprintf((r)->found, sizeof(r)->found, __VA_ARGS__)
#define REMEDY(r, ...) snprintf((r)->todo, sizeof(r)->todo, __VA_ARGS__)

static uint32_t address_of(const struct context *c)
{
    return c->w->address ? c->w->address : c->f->address;
}

/* ---- the host ---- */

static void check_root(struct context *c)
{
    struct setup_finding *r = next(c, c->f->root ? SETUP_OK : SETUP_FAIL, "privileges");
    FOUND(r, "%s", c->f->root ? "root" : "not root");
    if (!c->f->root) {
        REMEDY(r, "run it as root");
    }
}

static void check_init(struct context *c)
{
    struct setup_finding *r = next(c, c->f->systemd ? SETUP_OK : SETUP_WARN, "service manager");
    FOUND(r, "%s", c->f->systemd ? "systemd" : "no systemd");
    if (!c->f->systemd) {
        REMEDY(r, "start the programs by hand; setup prints the commands");
    }
}

static void check_name(struct context *c)
{
    const char *name = c->f->host_name;
    const char *why = api_check_dns_subdomain(name);
    bool local = streq(name, "localhost") || str_has_prefix(name, "localhost.");
    struct setup_finding *r = next(c, why || local ? SETUP_FAIL : SETUP_OK, "host name");
    FOUND(r, "%.200s", *name ? name : "none");
    if (why || local) {
        REMEDY(r,
               "give the host a name of its own (hostnamectl set-hostname NAME), or --node-name%s",
               local ? ": the name of a node is unique in its cluster" : "");
    }
}

static void check_kernel(struct context *c)
{
    const struct setup_facts *f = c->f;
    bool old = f->kernel_major < 5 || (f->kernel_major == 5 && f->kernel_minor < 10);
    enum setup_level level = !old ? SETUP_OK : c->w->roles & SETUP_NODE ? SETUP_FAIL : SETUP_WARN;
    struct setup_finding *r = next(c, level, "kernel");
    FOUND(r, "%s", f->kernel);
    if (old) {
        REMEDY(r, "Linux 5.10 is the oldest that nodes run on: install a newer one");
    }
}

static void check_features(struct context *c)
{
    static const struct {
        const char *what, *missing;
        bool optional;
    } rows[SETUP_N_FEATURES] = {
        [SETUP_VETH] = {"kernel: veth", "load the module (modprobe veth)", false},
        [SETUP_VXLAN] = {"kernel: VXLAN", "load the module (modprobe vxlan)", false},
        [SETUP_MACVLAN] = {"kernel: macvlan",
                           "load the module (modprobe macvlan): pods are attached faster with it",
                           true},
        [SETUP_NFTABLES] = {"kernel: nftables", "load the modules (modprobe nf_tables nft_nat)",
                            false},
        [SETUP_BPF] = {"kernel: eBPF",
                       "the kernel refuses bpf(2): is it locked down, or a container?", false},
    };
    if (!c->f->features_tried) {
        struct setup_finding *r = next(c, SETUP_WARN, "kernel: features");
        FOUND(r, "not tried: %s", c->f->features_error);
        REMEDY(r, "run it as root, in the host's namespaces");
        return;
    }
    for (size_t i = 0; i < SETUP_N_FEATURES; i++) {
        /* Open vSwitch's userspace datapath needs no VXLAN of the kernel. */
        bool optional = rows[i].optional || (i == SETUP_VXLAN && !c->w->ebpf);
        bool has = c->f->features[i];
        struct setup_finding *r = next(c,
                                       has        ? SETUP_OK
                                       : optional ? SETUP_WARN
                                                  : SETUP_FAIL,
                                       rows[i].what);
        FOUND(r, "%s", has ? "works" : "missing");
        if (!has) {
            REMEDY(r, "%s", rows[i].missing);
        }
    }
}

static void check_tools(struct context *c)
{
    static const struct {
        const char *name, *package;
        bool ovs;
    } rows[SETUP_N_TOOLS] = {[SETUP_NFT] = {"nft", "nftables", false},
                             [SETUP_VSWITCHD] = {"ovs-vswitchd", "openvswitch-switch", true},
                             [SETUP_OVSDB_SERVER] = {"ovsdb-server", "openvswitch-switch", true},
                             [SETUP_VSCTL] = {"ovs-vsctl", "openvswitch-switch", true}};
    for (size_t i = 0; i < SETUP_N_TOOLS; i++) {
        if (rows[i].ovs && c->w->ebpf) {
            continue;
        }
        bool has = c->f->tools[i];
        struct setup_finding *r = next(c, has ? SETUP_OK : SETUP_FAIL, rows[i].name);
        FOUND(r, "%s", has ? "installed" : "not installed");
        if (!has) {
            REMEDY(r, "apt-get install %s%s", rows[i].package,
                   rows[i].ovs ? ", or --datapath ebpf" : "");
        }
    }
    struct setup_finding *r = next(c, c->f->cni_plugin ? SETUP_OK : SETUP_FAIL, "tenet-cni");
    FOUND(r, "%s", c->f->cni_plugin ? "installed" : "not installed");
    if (!c->f->cni_plugin) {
        REMEDY(r, "install it with tenet: the container runtime calls it");
    }
}

static void check_ovs(struct context *c)
{
    const struct setup_facts *f = c->f;
    if (c->w->ebpf || !f->tools[SETUP_VSWITCHD]) {
        return;
    }
    struct setup_finding *r = next(c, f->ovs_answers ? SETUP_OK : SETUP_WARN, "Open vSwitch");
    FOUND(r, "%s, %s", f->ovs_answers ? "runs" : "does not run",
          f->ovs_module ? "datapath in the kernel" : "datapath in userspace (no kernel module)");
    if (!f->ovs_answers) {
        REMEDY(r, "%s",
               f->systemd ? "tenet-node starts it (systemctl start openvswitch-switch)"
                          : "start ovsdb-server and ovs-vswitchd (ovs-ctl start)");
    }
}

/* ---- time ---- */

static void check_clock(struct context *c)
{
    char now[TIME_TEXT_SIZE];
    bool early = time_is_unset(c->f->now_ms);
    bool synced = c->f->clock_synced;
    struct setup_finding *r = next(c, early ? SETUP_FAIL : synced ? SETUP_OK : SETUP_WARN, "clock");
    time_format_s(c->f->now_ms, now);
    FOUND(r, "%s, %s", now, synced ? "synchronized" : "not synchronized");
    if (early) {
        REMEDY(r, "set the clock (date -s): certificates would be from the past");
    } else if (!synced) {
        REMEDY(r, "run systemd-timesyncd or chrony: certificates need clocks that agree");
    }
}

static void check_zone(struct context *c)
{
    const char *zone = c->f->zone;
    bool good = *zone && !c->f->rtc_local;
    struct setup_finding *r = next(c, good ? SETUP_OK : SETUP_WARN, "time zone");
    FOUND(r, "%s%s", *zone ? zone : "none (/etc/localtime)",
          c->f->rtc_local ? ", the hardware clock has local time" : "");
    if (c->f->rtc_local) {
        REMEDY(r, "timedatectl set-local-rtc 0: the clock jumps at each start otherwise");
    } else if (!good) {
        REMEDY(r, "timedatectl set-timezone Etc/UTC; logs are in UTC whatever the zone is");
    }
}

/* ---- room ---- */

static void check_disk(struct context *c)
{
    const struct setup_facts *f = c->f;
    bool master = c->w->roles & SETUP_MASTER;
    int64_t least = master ? 256 * MIB : 128 * MIB, good = 2 * GIB;
    bool inodes = f->inodes && f->inodes_free < f->inodes / 20;
    bool remote = f->disk_remote && master && !c->w->etcd;
    bool fail = f->disk_free < least || f->disk_read_only || remote;
    struct setup_finding *r = next(c,
                                   fail                            ? SETUP_FAIL
                                   : f->disk_free < good || inodes ? SETUP_WARN
                                                                   : SETUP_OK,
                                   "disk");
    FOUND(r, "%s: %lld MiB free%s%s%s", f->state_dir, (long long) (f->disk_free / MIB),
          f->disk_read_only ? ", read-only" : "", f->disk_remote ? ", of a file server" : "",
          inodes ? ", few inodes" : "");
    if (f->disk_read_only) {
        REMEDY(r, "mount it with write access");
    } else if (remote) {
        REMEDY(r, "the database needs a local disk: locks of file servers are not reliable");
    } else if (f->disk_free < good) {
        REMEDY(r, "make room: the registry, logs and images grow");
    } else if (inodes) {
        REMEDY(r, "remove small files, or make the file system anew with more inodes");
    }
}

static void check_memory(struct context *c)
{
    const struct setup_facts *f = c->f;
    int64_t least = 96 * MIB, good = 512 * MIB;
    struct setup_finding *r = next(c,
                                   f->memory_available < least ? SETUP_FAIL
                                   : f->memory < good          ? SETUP_WARN
                                                               : SETUP_OK,
                                   "memory");
    FOUND(r, "%lld MiB, %lld MiB available", (long long) (f->memory / MIB),
          (long long) (f->memory_available / MIB));
    if (f->memory_available < least) {
        REMEDY(r, "stop other programs, or give the host more memory");
    } else if (f->memory < good) {
        REMEDY(r, "512 MiB are the least for more than a few pods");
    }
}

/* ---- the network ---- */

static const struct netconf_host_net *net_of(const struct setup_facts *f, uint32_t address)
{
    for (size_t i = 0; i < f->n_nets; i++) {
        if (f->nets[i].addr == address) {
            return &f->nets[i];
        }
    }
    return NULL;
}

static void check_address(struct context *c)
{
    uint32_t address = address_of(c);
    const struct netconf_host_net *net = address ? net_of(c->f, address) : NULL;
    bool loopback = address >> 24 == 127;
    struct setup_finding *r = next(c, net && !loopback ? SETUP_OK : SETUP_FAIL, "address");
    if (!address) {
        FOUND(r, "no link has a default route");
        REMEDY(r, "give the address at which other hosts reach this one: --address ADDRESS");
    } else if (!net || loopback) {
        FOUND(r, "%s %s", IP4_TEXT(address),
              loopback ? "is loopback" : "is not an address of this host");
        REMEDY(r, "give one of this host's addresses: --address ADDRESS");
    } else {
        FOUND(r, "%s on %s", IP4_TEXT(address), net->ifname);
    }
}

static void check_networks(struct context *c)
{
    const struct netconf *n = c->w->network;
    struct err e = {0};
    int bad = netconf_check_host(n, c->f->nets, c->f->n_nets, &e);
    for (size_t i = 0; bad == 0 && i < c->f->n_routes; i++) {
        const struct setup_route *t = &c->f->routes[i];
        if (t->dst.len == 0 || netconf_is_own_interface(t->link)) {
            continue;
        }
        for (size_t k = 0; k < n->n_ranges && bad == 0; k++) {
            if (prefix_overlaps(n->ranges[k].cidr, t->dst)) {
                bad = err_set(&e, -EADDRINUSE,
                              "the route %s dev %s overlaps with the cluster network %s",
                              PREFIX_TEXT(t->dst), t->link, PREFIX_TEXT(n->ranges[k].cidr));
            }
        }
        if (bad == 0 && prefix_overlaps(n->service, t->dst)) {
            bad =
                err_set(&e, -EADDRINUSE, "the route %s dev %s overlaps with the service network %s",
                        PREFIX_TEXT(t->dst), t->link, PREFIX_TEXT(n->service));
        }
    }
    struct setup_finding *r = next(c, bad ? SETUP_FAIL : SETUP_OK, "networks");
    if (bad) {
        FOUND(r, "%.250s", e.text);
        REMEDY(r, "%s",
               c->w->roles & SETUP_MASTER
                   ? "choose others: --cluster-network CIDR:BITS, --service-network CIDR"
                   : "remove that network from this host, or set up the cluster with others");
    } else {
        FOUND(r, "%s for pods and %s for services are free",
              n->n_ranges ? PREFIX_TEXT(n->ranges[0].cidr) : "none", PREFIX_TEXT(n->service));
    }
}

static void check_mtu(struct context *c)
{
    const struct netconf_host_net *net = net_of(c->f, address_of(c));
    uint32_t pods = c->w->network->mtu, mtu = 0;
    for (size_t i = 0; net && i < c->f->n_links; i++) {
        if (streq(c->f->links[i].name, net->ifname)) {
            mtu = c->f->links[i].mtu;
        }
    }
    if (!mtu) {
        return; /* There is no address, which has its own finding. */
    }
    uint32_t most = mtu > SDN_VXLAN_OVERHEAD ? mtu - SDN_VXLAN_OVERHEAD : 0;
    bool less = !pods && mtu < LINK_MTU;
    struct setup_finding *r = next(c,
                                   pods > most ? SETUP_FAIL
                                   : less      ? SETUP_WARN
                                               : SETUP_OK,
                                   "MTU");
    if (!pods) {
        FOUND(r, "%u on %s: pods can have %u", mtu, net->ifname, most);
    } else {
        FOUND(r, "%u on %s, pods have %u", mtu, net->ifname, pods);
    }
    if (pods > most || less) {
        REMEDY(r, "pods need %u bytes less than the link: %s %u", SDN_VXLAN_OVERHEAD,
               c->w->roles & SETUP_MASTER ? "--mtu" : "networkConfig.mtu of the masters is to be",
               most);
    }
}

/* ---- ports ---- */

/* 'address' 0: all addresses of the host. */
static void check_port(struct context *c, bool udp, uint32_t address, uint16_t port,
                       const char *use, const char *option)
{
    char what[32];
    const struct setup_socket *taken = NULL;
    for (size_t i = 0; i < c->f->n_sockets; i++) {
        const struct setup_socket *s = &c->f->sockets[i];
        if (s->udp == udp && s->port == port && (!s->addr || !address || s->addr == address) &&
            (!taken || taken->tenet)) {
            taken = s;
        }
    }
    snprintf(what, sizeof what, "port %u/%s", port, udp ? "udp" : "tcp");
    struct setup_finding *r = next(c, taken && !taken->tenet ? SETUP_FAIL : SETUP_OK, what);
    if (!taken) {
        FOUND(r, "free for %s", use);
        return;
    }
    FOUND(r, "%s %s", taken->tenet ? "used by" : "taken by",
          *taken->owner ? taken->owner : "the kernel or another namespace's program");
    if (!taken->tenet) {
        REMEDY(r, "%s needs it: stop that program%s%s", use, *option ? ", or choose another: " : "",
               option);
    }
}

static void check_vxlan_port(struct context *c)
{
    uint16_t port = c->w->network->vxlan_port;
    char what[32], ovs[32];
    snprintf(what, sizeof what, "port %u/udp", port);
    snprintf(ovs, sizeof ovs, "vxlan_sys_%u", port);
    for (size_t i = 0; i < c->f->n_links; i++) {
        const struct setup_link *l = &c->f->links[i];
        if (!streq(l->kind, "vxlan") || l->vxlan_port != port) {
            continue;
        }
        bool own = streq(l->name, ovs) || streq(l->name, VXLAN_LINK);
        struct setup_finding *r = next(c, own ? SETUP_OK : SETUP_FAIL, what);
        FOUND(r, "used by the link %s", l->name);
        if (!own) {
            REMEDY(r,
                   "VXLAN needs it: ip link del %s, or set networkConfig.vxlanPort on the masters",
                   l->name);
        }
        return;
    }
    check_port(c, true, 0, port, "VXLAN", "networkConfig.vxlanPort on the masters");
}

static void check_master_ports(struct context *c)
{
    check_port(c, false, address_of(c), c->w->api_port, "the API", "--port PORT");
    if (c->w->dns) {
        check_port(c, true, address_of(c), 53, "the cluster's DNS", "--dns none");
        check_port(c, false, address_of(c), 53, "the cluster's DNS", "--dns none");
    }
}

static void check_kubelet_ports(struct context *c)
{
    if (c->w->kubelet) {
        check_port(c, false, 0, 10250, "the kubelet", "--kubelet no");
        check_port(c, false, 0x7f000001, 10248, "the kubelet's health", "--kubelet no");
    }
}

/* ---- other programs ---- */

static void check_cni(struct context *c)
{
    const char *own = CNI_NAME;
    bool any = false;
    for (size_t i = 0; i < c->f->n_cni; i++) {
        const char *name = c->f->cni[i];
        if (str_has_prefix(name, own)) {
            continue;
        }
        bool first = strcmp(name, own) < 0;
        struct setup_finding *r = next(c, first ? SETUP_FAIL : SETUP_WARN, "other CNI");
        FOUND(r, "/etc/cni/net.d/%.200s", name);
        REMEDY(r, "%s",
               first ? "move it away: the runtime takes the first file, and pods would not get "
                       "Tenet's network"
                     : "move it away: the runtime uses it while tenet-node is stopped");
        any = true;
    }
    static const struct {
        const char *prefix, *owner;
    } links[] = {
        {"cni0", "the plug-in bridge"}, {"flannel", "flannel"}, {"cali", "Calico"},
        {"cilium", "Cilium"},           {"weave", "Weave Net"}, {"kube-ipvs", "kube-proxy"},
        {"ovn-k8s", "OVN-Kubernetes"},  {"antrea", "Antrea"}};
    for (size_t i = 0; i < c->f->n_links; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(links); k++) {
            if (str_has_prefix(c->f->links[i].name, links[k].prefix)) {
                struct setup_finding *r = next(c, SETUP_WARN, "other network");
                FOUND(r, "link %s of %s", c->f->links[i].name, links[k].owner);
                REMEDY(r, "remove that network first: its rules may drop packets of pods");
                any = true;
            }
        }
    }
    if (!any) {
        FOUND(next(c, SETUP_OK, "other CNI"), "none");
    }
}

/* Whether Open vSwitch has the bridge: with its datapath in userspace, tun0 beside it is a tun
 * device. */
static bool has_own_bridge(const struct setup_facts *f)
{
    for (size_t i = 0; i < f->n_links; i++) {
        const struct setup_link *l = &f->links[i];
        if (streq(l->name, "br0") && (streq(l->kind, "openvswitch") || streq(l->kind, "tun"))) {
            return true;
        }
    }
    return false;
}

static void check_bridges(struct context *c)
{
    bool any = false, own = has_own_bridge(c->f);
    for (size_t i = 0; i < c->f->n_links; i++) {
        const struct setup_link *l = &c->f->links[i];
        bool bridge = streq(l->name, "br0") && streq(l->kind, "bridge");
        bool tun = streq(l->name, "tun0") && streq(l->kind, "tun") && !own;
        if (bridge || tun) {
            struct setup_finding *r = next(c, SETUP_FAIL, bridge ? "bridge" : "link");
            FOUND(r, "%s is %s", l->name,
                  bridge ? "a Linux bridge of this host" : "a tun device of another program (VPN)");
            REMEDY(r, bridge ? "rename it (ip link set br0 name NAME), or set ovs.bridge"
                             : "let that program use another name: the gateway of pods is tun0");
            any = true;
        }
    }
    if (!any) {
        FOUND(next(c, SETUP_OK, "bridges"), "the names br0 and tun0 are free, or Tenet's");
    }
}

static void check_firewall(struct context *c)
{
    bool any = c->f->firewalld || c->f->ufw;
    struct setup_finding *r = next(c, any ? SETUP_WARN : SETUP_OK, "host firewall");
    FOUND(r, "%s",
          c->f->firewalld ? "firewalld is active"
          : c->f->ufw     ? "ufw is active"
                          : "no firewalld, no ufw");
    if (any) {
        REMEDY(r, "open the ports that setup prints at its end");
    }
}

static void check_runtime(struct context *c)
{
    bool has = *c->f->runtime;
    struct setup_finding *r = next(c,
                                   has             ? SETUP_OK
                                   : c->w->kubelet ? SETUP_FAIL
                                                   : SETUP_WARN,
                                   "container runtime");
    FOUND(r, "%s", has ? c->f->runtime : "none");
    if (!has) {
        REMEDY(r, "install containerd or CRI-O and start it: without it the node has a network and "
                  "no containers");
    }
}

static void check_etcd(struct context *c)
{
    if (!c->w->etcd) {
        return;
    }
    bool bad = *c->f->etcd_error;
    struct setup_finding *r = next(c, bad ? SETUP_FAIL : SETUP_OK, "etcd");
    FOUND(r, "%s", bad ? c->f->etcd_error : "answers");
    if (bad) {
        REMEDY(r, "start etcd 3.4 or newer at the addresses of --etcd");
    }
}

/* ---- the rows ---- */

size_t setup_check(const struct setup_facts *f, const struct setup_wish *w,
                   struct setup_finding ret[SETUP_MAX_FINDINGS])
{
    enum { BOTH = SETUP_MASTER | SETUP_NODE };
    static const struct {
        unsigned roles;
        bool network; /* It looks at the cluster's network. */
        void (*check)(struct context *c);
    } rows[] = {
        {BOTH, false, check_root},
        {BOTH, false, check_init},
        {BOTH, false, check_name},
        {BOTH, false, check_kernel},
        {SETUP_NODE, false, check_features},
        {SETUP_NODE, false, check_tools},
        {SETUP_NODE, false, check_ovs},
        {BOTH, false, check_clock},
        {BOTH, false, check_zone},
        {BOTH, false, check_disk},
        {BOTH, false, check_memory},
        {BOTH, false, check_address},
        {BOTH, true, check_networks},
        {BOTH, true, check_mtu},
        {SETUP_MASTER, false, check_etcd},
        {SETUP_MASTER, false, check_master_ports},
        {SETUP_NODE, true, check_vxlan_port},
        {SETUP_NODE, false, check_kubelet_ports},
        {SETUP_NODE, false, check_cni},
        {SETUP_NODE, false, check_bridges},
        {BOTH, false, check_firewall},
        {SETUP_NODE, false, check_runtime},
    };
    struct context c = {.f = f, .w = w, .out = ret};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool wanted = w->part == SETUP_ALL || rows[i].network == (w->part == SETUP_NETWORK_ONLY);
        if (wanted && rows[i].roles & w->roles) {
            rows[i].check(&c);
        }
    }
    return c.n;
}

/* ---- sockets ---- */

/* Reads hexadecimal digits up to 'end'; false: another character, or none. */
static bool take_hex(const char **p, char end, uint64_t *ret)
{
    uint64_t v = 0;
    const char *s = *p;
    for (; *s && *s != end; s++) {
        const char *digits = "0123456789ABCDEF", *d = strchr(digits, *s);
        if (!d || v >> 60) {
            return false;
        }
        v = v << 4 | (uint64_t) (d - digits);
    }
    if (s == *p || *s != end) {
        return false;
    }
    *ret = v;
    *p = s + 1;
    return true;
}

/* The address of a hexadecimal text, whose words are in the byte order of this host.  The IPv6
 * address of all addresses is 0; false: another one that no IPv4 client reaches. */
static bool take_address(const char **p, uint32_t *ret)
{
    const char *s = *p;
    size_t n = strcspn(s, ":");
    uint64_t v = 0;
    if ((n != 8 && n != 32) || strspn(s, "0123456789ABCDEF") != n) {
        return false;
    }
    bool mapped = n == 32 && str_has_prefix(s, "0000000000000000FFFF0000");
    if (n == 32 && !mapped && strspn(s, "0") != n) {
        return false;
    }
    if (n == 8 || mapped) {
        const char *last = s + n - 8;
        if (!take_hex(&last, ':', &v)) {
            return false;
        }
    }
    *ret = __builtin_bswap32((uint32_t) v);
    *p = s + n + 1;
    return true;
}

static const char *skip_field(const char *p)
{
    p += strspn(p, " ");
    return p + strcspn(p, " \n");
}

/* A line is "0: 0100007F:20FB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4242". */
static bool read_socket(const char *line, bool udp, struct setup_socket *ret)
{
    uint64_t port, state, inode = 0;
    const char *p = strstr(line, ": ");
    if (!p || p > strchrnul(line, '\n')) {
        return false;
    }
    p += 2;
    if (!take_address(&p, &ret->addr) || !take_hex(&p, ' ', &port)) {
        return false;
    }
    p = skip_field(p);
    p += strspn(p, " ");
    if (!take_hex(&p, ' ', &state) || port > UINT16_MAX || (!udp && state != TCP_LISTEN)) {
        return false;
    }
    for (size_t i = 0; i < 5; i++) {
        p = skip_field(p);
    }
    p += strspn(p, " ");
    CLEANUP_FREE char *number = xstrndup(p, strcspn(p, " \n"));
    if (str_to_u64(number, UINT64_MAX, &inode) < 0) {
        return false;
    }
    ret->udp = udp;
    ret->port = (uint16_t) port;
    ret->inode = inode;
    return true;
}

void setup_sockets_add(struct setup_facts *f, const char *text, bool udp)
{
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line, '\n')) {
        struct setup_socket s = {0};
        line++;
        if (read_socket(line, udp, &s)) {
            f->sockets = grow(f->sockets, &f->sockets_cap, f->n_sockets + 1, sizeof *f->sockets);
            f->sockets[f->n_sockets++] = s;
        }
    }
}

void setup_facts_done(struct setup_facts *f)
{
    for (size_t i = 0; i < f->n_cni; i++) {
        free(f->cni[i]);
    }
    free(f->cni);
    free(f->nets);
    free(f->links);
    free(f->routes);
    free(f->sockets);
    *f = (struct setup_facts){0};
}
