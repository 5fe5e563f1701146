/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of "tenet setup" as a function of facts, and its pure parts. */
#include "base/mem.h"
#include "cli/setup/setup.h"
#include "cli/setup/setup_facts.h"
#include "cli/setup/setup_sample.h"
#include "json_text.h"
#include "master/master_config.h"
#include "net/loop/process.h"
#include "node/config.h"

#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1024 * 1024LL)
#define ADDRESS 0xc0000201u /* 192.0.2.1 */
#define GOOD_MS 1785000000000LL

static struct netconf_host_net nets[2];
static struct setup_link links[3];
static struct setup_route routes[2];
static struct setup_socket sockets[2];
static char *cni[2];
static struct netconf network;

/* A host on which nothing is wrong, and which is to become both. */
static void good(struct setup_facts *f, struct setup_wish *w)
{
    nets[0] = (struct netconf_host_net){"eth0", {0xc0000200u, 24}, ADDRESS};
    links[0] = (struct setup_link){"eth0", "", 1500, 0};
    routes[0] = (struct setup_route){{0, 0}, "eth0", true};
    netconf_defaults(&network);
    *f = (struct setup_facts){.root = true,
                              .systemd = true,
                              .host_name = "node1",
                              .kernel_major = 6,
                              .kernel_minor = 1,
                              .kernel = "6.1.0",
                              .tools = {true, true, true, true},
                              .features = {true, true, true, true, true},
                              .features_tried = true,
                              .ovs_answers = true,
                              .cni_plugin = true,
                              .now_ms = GOOD_MS,
                              .clock_synced = true,
                              .zone = "Etc/UTC",
                              .nets = nets,
                              .n_nets = 1,
                              .links = links,
                              .n_links = 1,
                              .routes = routes,
                              .n_routes = 1,
                              .sockets = sockets,
                              .address = ADDRESS,
                              .state_dir = "/var/lib/tenet",
                              .disk_free = 10000 * MIB,
                              .inodes = 1000,
                              .inodes_free = 900,
                              .memory = 2048 * MIB,
                              .memory_available = 1024 * MIB,
                              .cni = cni,
                              .runtime = "/run/containerd/containerd.sock"};
    *w = (struct setup_wish){.roles = SETUP_MASTER | SETUP_NODE,
                             .api_port = 8443,
                             .dns = true,
                             .network = &network,
                             .kubelet = true};
}

static void a_good_host_has_no_warning(void **state)
{
    struct setup_finding found[SETUP_MAX_FINDINGS];
    struct setup_facts f;
    struct setup_wish w;
    good(&f, &w);
    size_t n = setup_check(&f, &w, found);
    assert_in_range(n, 25, 40);
    for (size_t i = 0; i < n; i++) {
        if (found[i].level != SETUP_OK || *found[i].todo || !*found[i].found) {
            fail_msg("%s: %s: %s", found[i].what, found[i].found, found[i].todo);
        }
    }
}

/* One thing that is wrong; what it is, is the name. */
static void no_root(struct setup_facts *f, struct setup_wish *w)
{
    f->root = false;
}
static void no_systemd(struct setup_facts *f, struct setup_wish *w)
{
    f->systemd = false;
}
static void localhost(struct setup_facts *f, struct setup_wish *w)
{
    snprintf(f->host_name, sizeof f->host_name, "localhost");
}
static void underscore(struct setup_facts *f, struct setup_wish *w)
{
    snprintf(f->host_name, sizeof f->host_name, "node_1");
}
static void kernel_5_9(struct setup_facts *f, struct setup_wish *w)
{
    f->kernel_major = 5;
    f->kernel_minor = 9;
}
static void kernel_5_9_of_a_master(struct setup_facts *f, struct setup_wish *w)
{
    kernel_5_9(f, w);
    w->roles = SETUP_MASTER;
}
static void kernel_4_19(struct setup_facts *f, struct setup_wish *w)
{
    f->kernel_major = 4;
    f->kernel_minor = 19;
}
static void kernel_5_10(struct setup_facts *f, struct setup_wish *w)
{
    f->kernel_major = 5;
    f->kernel_minor = 10;
}
static void no_veth(struct setup_facts *f, struct setup_wish *w)
{
    f->features[SETUP_VETH] = false;
}
static void no_vxlan_with_ovs(struct setup_facts *f, struct setup_wish *w)
{
    f->features[SETUP_VXLAN] = false;
}
static void no_vxlan_with_ebpf(struct setup_facts *f, struct setup_wish *w)
{
    f->features[SETUP_VXLAN] = false;
    w->ebpf = true;
}
static void no_macvlan(struct setup_facts *f, struct setup_wish *w)
{
    f->features[SETUP_MACVLAN] = false;
}
static void no_nftables(struct setup_facts *f, struct setup_wish *w)
{
    f->features[SETUP_NFTABLES] = false;
}
static void no_bpf(struct setup_facts *f, struct setup_wish *w)
{
    f->features[SETUP_BPF] = false;
}
static void nothing_tried(struct setup_facts *f, struct setup_wish *w)
{
    f->features_tried = false;
    snprintf(f->features_error, sizeof f->features_error, "Operation not permitted");
}
static void no_nft(struct setup_facts *f, struct setup_wish *w)
{
    f->tools[SETUP_NFT] = false;
}
static void no_vswitchd(struct setup_facts *f, struct setup_wish *w)
{
    f->tools[SETUP_VSWITCHD] = false;
}
static void no_vswitchd_with_ebpf(struct setup_facts *f, struct setup_wish *w)
{
    no_vswitchd(f, w);
    w->ebpf = true;
}
static void no_cni_plugin(struct setup_facts *f, struct setup_wish *w)
{
    f->cni_plugin = false;
}
static void ovs_stopped(struct setup_facts *f, struct setup_wish *w)
{
    f->ovs_answers = false;
}
static void clock_of_1970(struct setup_facts *f, struct setup_wish *w)
{
    f->now_ms = 60000;
}
static void clock_not_synced(struct setup_facts *f, struct setup_wish *w)
{
    f->clock_synced = false;
}
static void no_zone(struct setup_facts *f, struct setup_wish *w)
{
    *f->zone = '\0';
}
static void rtc_in_local_time(struct setup_facts *f, struct setup_wish *w)
{
    f->rtc_local = true;
}
static void disk_full(struct setup_facts *f, struct setup_wish *w)
{
    f->disk_free = 255 * MIB;
}
static void disk_small(struct setup_facts *f, struct setup_wish *w)
{
    f->disk_free = 257 * MIB;
}
static void disk_of_a_node(struct setup_facts *f, struct setup_wish *w)
{
    f->disk_free = 127 * MIB;
    w->roles = SETUP_NODE;
}
static void disk_read_only(struct setup_facts *f, struct setup_wish *w)
{
    f->disk_read_only = true;
}
static void disk_of_a_server(struct setup_facts *f, struct setup_wish *w)
{
    f->disk_remote = true;
}
static void disk_of_a_server_with_etcd(struct setup_facts *f, struct setup_wish *w)
{
    f->disk_remote = true;
    w->etcd = true;
}
static void few_inodes(struct setup_facts *f, struct setup_wish *w)
{
    f->inodes_free = 49;
}
static void no_memory(struct setup_facts *f, struct setup_wish *w)
{
    f->memory_available = 95 * MIB;
}
static void little_memory(struct setup_facts *f, struct setup_wish *w)
{
    f->memory = 511 * MIB;
}
static void no_default_route(struct setup_facts *f, struct setup_wish *w)
{
    f->address = 0;
}
static void foreign_address(struct setup_facts *f, struct setup_wish *w)
{
    w->address = ADDRESS + 1;
}
static void loopback_address(struct setup_facts *f, struct setup_wish *w)
{
    nets[0].addr = w->address = 0x7f000001;
    nets[0].net = (struct ip4_prefix){0x7f000000, 8};
}
static void network_in_the_pods(struct setup_facts *f, struct setup_wish *w)
{
    nets[1] = (struct netconf_host_net){"eth1", {0x0a810000, 16}, 0x0a810001};
    f->n_nets = 2;
}
static void tun0_in_the_pods(struct setup_facts *f, struct setup_wish *w)
{
    nets[1] = (struct netconf_host_net){"tun0", {0x0a800000, 23}, 0x0a800001};
    f->n_nets = 2;
}
static void route_in_the_services(struct setup_facts *f, struct setup_wish *w)
{
    routes[1] = (struct setup_route){{0xac1e0000, 24}, "vpn0", false};
    f->n_routes = 2;
}
static void route_of_tun0(struct setup_facts *f, struct setup_wish *w)
{
    routes[1] = (struct setup_route){{0x0a800000, 14}, "tun0", false};
    f->n_routes = 2;
}
static void small_link(struct setup_facts *f, struct setup_wish *w)
{
    links[0].mtu = 1499;
}
static void small_link_chosen_later(struct setup_facts *f, struct setup_wish *w)
{
    links[0].mtu = 1400;
    network.mtu = 0;
}
static void api_port_taken(struct setup_facts *f, struct setup_wish *w)
{
    sockets[0] = (struct setup_socket){.port = 8443, .owner = "nginx (pid 12)"};
    f->n_sockets = 1;
}
static void api_port_ours(struct setup_facts *f, struct setup_wish *w)
{
    api_port_taken(f, w);
    sockets[0].tenet = true;
}
static void api_port_elsewhere(struct setup_facts *f, struct setup_wish *w)
{
    api_port_taken(f, w);
    sockets[0].addr = 0x7f000001;
}
static void api_port_udp(struct setup_facts *f, struct setup_wish *w)
{
    api_port_taken(f, w);
    sockets[0].udp = true;
}
static void api_port_ours_and_taken(struct setup_facts *f, struct setup_wish *w)
{
    api_port_ours(f, w);
    sockets[1] = (struct setup_socket){.port = 8443, .addr = ADDRESS};
    f->n_sockets = 2;
}
static void dns_port_taken(struct setup_facts *f, struct setup_wish *w)
{
    sockets[0] = (struct setup_socket){.udp = true, .port = 53, .owner = "named (pid 3)"};
    f->n_sockets = 1;
}
static void dns_port_of_a_stub(struct setup_facts *f, struct setup_wish *w)
{
    dns_port_taken(f, w);
    sockets[0].addr = 0x7f000035;
}
static void dns_port_not_wanted(struct setup_facts *f, struct setup_wish *w)
{
    dns_port_taken(f, w);
    w->dns = false;
}
static void kubelet_port_taken(struct setup_facts *f, struct setup_wish *w)
{
    sockets[0] = (struct setup_socket){.port = 10250, .owner = "kubelet (pid 9)"};
    f->n_sockets = 1;
}
static void kubelet_port_not_wanted(struct setup_facts *f, struct setup_wish *w)
{
    kubelet_port_taken(f, w);
    w->kubelet = false;
}
static void vxlan_socket(struct setup_facts *f, struct setup_wish *w)
{
    sockets[0] = (struct setup_socket){.udp = true, .port = 4789};
    f->n_sockets = 1;
}
static void vxlan_of_flannel(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"vx7", "vxlan", 1450, 4789};
    f->n_links = 2;
}
static void vxlan_on_another_port(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"vx7", "vxlan", 1450, 8472};
    f->n_links = 2;
}
static void vxlan_of_ovs(struct setup_facts *f, struct setup_wish *w)
{
    vxlan_socket(f, w);
    links[1] = (struct setup_link){"vxlan_sys_4789", "vxlan", 65000, 4789};
    f->n_links = 2;
}
static void earlier_cni(struct setup_facts *f, struct setup_wish *w)
{
    static char name[] = "10-flannel.conflist";
    cni[0] = name;
    f->n_cni = 1;
}
static void later_cni(struct setup_facts *f, struct setup_wish *w)
{
    static char name[] = "87-podman-bridge.conflist";
    cni[0] = name;
    f->n_cni = 1;
}
static void own_cni(struct setup_facts *f, struct setup_wish *w)
{
    static char name[] = "80-openshift-network.conf";
    cni[0] = name;
    f->n_cni = 1;
}
static void flannel(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"flannel.1", "vxlan", 1450, 8472};
    f->n_links = 2;
}
static void bridge_br0(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"br0", "bridge", 1500, 0};
    f->n_links = 2;
}
static void bridge_of_ovs(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"br0", "openvswitch", 1500, 0};
    f->n_links = 2;
}
static void tun0_of_ovs_in_userspace(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"tun0", "tun", 1450, 0};
    links[2] = (struct setup_link){"br0", "tun", 1500, 0};
    f->n_links = 3;
}
static void vpn_tun0(struct setup_facts *f, struct setup_wish *w)
{
    links[1] = (struct setup_link){"tun0", "tun", 1500, 0};
    f->n_links = 2;
}
static void firewalld(struct setup_facts *f, struct setup_wish *w)
{
    f->firewalld = true;
}
static void ufw(struct setup_facts *f, struct setup_wish *w)
{
    f->ufw = true;
}
static void no_runtime(struct setup_facts *f, struct setup_wish *w)
{
    *f->runtime = '\0';
}
static void no_runtime_wanted(struct setup_facts *f, struct setup_wish *w)
{
    no_runtime(f, w);
    w->kubelet = false;
}
static void etcd_away(struct setup_facts *f, struct setup_wish *w)
{
    snprintf(f->etcd_error, sizeof f->etcd_error, "connect to http://x:2379: refused");
    w->etcd = true;
}
static void etcd_not_wanted(struct setup_facts *f, struct setup_wish *w)
{
    etcd_away(f, w);
    w->etcd = false;
}
static void unknown_network(struct setup_facts *f, struct setup_wish *w)
{
    network_in_the_pods(f, w);
    vxlan_of_flannel(f, w);
    links[0].mtu = 600;
    w->part = SETUP_HOST_ONLY;
}
static void only_the_network(struct setup_facts *f, struct setup_wish *w)
{
    no_root(f, w);
    network_in_the_pods(f, w);
    w->part = SETUP_NETWORK_ONLY;
}

static void each_fault_is_one_finding(void **state)
{
#define CASE(fn, level, what, found, todo) \
    {                                      \
#fn, fn, level, what, found, todo  \
    }
#define OK SETUP_OK
#define WARN SETUP_WARN
#define FAIL SETUP_FAIL
    static const struct {
        const char *name;
        void (*fault)(struct setup_facts *f, struct setup_wish *w);
        enum setup_level level; /* OK: no finding at all. */
        const char *what, *found, *todo;
    } cases[] = {
        CASE(no_root, FAIL, "privileges", "not root", "root"),
        CASE(no_systemd, WARN, "service manager", "no systemd", "by hand"),
        CASE(localhost, FAIL, "host name", "localhost", "unique"),
        CASE(underscore, FAIL, "host name", "node_1", "hostnamectl"),
        CASE(kernel_5_9, FAIL, "kernel", "6.1.0", "5.10"),
        CASE(kernel_5_9_of_a_master, WARN, "kernel", "6.1.0", "5.10"),
        CASE(kernel_4_19, FAIL, "kernel", "6.1.0", "5.10"),
        CASE(kernel_5_10, OK, "", "", ""),
        CASE(no_veth, FAIL, "kernel: veth", "missing", "modprobe veth"),
        CASE(no_vxlan_with_ovs, WARN, "kernel: VXLAN", "missing", "modprobe vxlan"),
        CASE(no_vxlan_with_ebpf, FAIL, "kernel: VXLAN", "missing", "modprobe vxlan"),
        CASE(no_macvlan, WARN, "kernel: macvlan", "missing", "modprobe macvlan"),
        CASE(no_nftables, FAIL, "kernel: nftables", "missing", "nf_tables"),
        CASE(no_bpf, FAIL, "kernel: eBPF", "missing", "bpf(2)"),
        CASE(nothing_tried, WARN, "kernel: features", "Operation not permitted", "root"),
        CASE(no_nft, FAIL, "nft", "not installed", "apt-get install nftables"),
        CASE(no_vswitchd, FAIL, "ovs-vswitchd", "not installed", "--datapath ebpf"),
        CASE(no_vswitchd_with_ebpf, OK, "", "", ""),
        CASE(no_cni_plugin, FAIL, "tenet-cni", "not installed", "runtime"),
        CASE(ovs_stopped, WARN, "Open vSwitch", "does not run", "openvswitch-switch"),
        CASE(clock_of_1970, FAIL, "clock", "1970-01-01", "date -s"),
        CASE(clock_not_synced, WARN, "clock", "not synchronized", "chrony"),
        CASE(no_zone, WARN, "time zone", "/etc/localtime", "timedatectl"),
        CASE(rtc_in_local_time, WARN, "time zone", "local time", "set-local-rtc 0"),
        CASE(disk_full, FAIL, "disk", "255 MiB", "room"),
        CASE(disk_small, WARN, "disk", "257 MiB", "room"),
        CASE(disk_of_a_node, FAIL, "disk", "127 MiB", "room"),
        CASE(disk_read_only, FAIL, "disk", "read-only", "write access"),
        CASE(disk_of_a_server, FAIL, "disk", "file server", "local disk"),
        CASE(disk_of_a_server_with_etcd, OK, "", "", ""),
        CASE(few_inodes, WARN, "disk", "few inodes", "inodes"),
        CASE(no_memory, FAIL, "memory", "95 MiB available", "stop other"),
        CASE(little_memory, WARN, "memory", "511 MiB", "512 MiB"),
        CASE(no_default_route, FAIL, "address", "default route", "--address"),
        CASE(foreign_address, FAIL, "address", "192.0.2.2 is not an address", "--address"),
        CASE(loopback_address, FAIL, "address", "loopback", "--address"),
        CASE(network_in_the_pods, FAIL, "networks", "10.129.0.0/16", "--cluster-network"),
        CASE(tun0_in_the_pods, OK, "", "", ""),
        CASE(route_in_the_services, FAIL, "networks", "172.30.0.0/24 dev vpn0",
             "--service-network"),
        CASE(route_of_tun0, OK, "", "", ""),
        CASE(small_link, FAIL, "MTU", "1499 on eth0, pods have 1450", "--mtu 1449"),
        CASE(small_link_chosen_later, WARN, "MTU", "pods can have 1350", "--mtu 1350"),
        CASE(api_port_taken, FAIL, "port 8443/tcp", "nginx (pid 12)", "--port"),
        CASE(api_port_ours, OK, "", "", ""),
        CASE(api_port_elsewhere, OK, "", "", ""),
        CASE(api_port_udp, OK, "", "", ""),
        CASE(api_port_ours_and_taken, FAIL, "port 8443/tcp", "the kernel", "--port"),
        CASE(dns_port_taken, FAIL, "port 53/udp", "named (pid 3)", "--dns none"),
        CASE(dns_port_of_a_stub, OK, "", "", ""),
        CASE(dns_port_not_wanted, OK, "", "", ""),
        CASE(kubelet_port_taken, FAIL, "port 10250/tcp", "kubelet (pid 9)", "--kubelet no"),
        CASE(kubelet_port_not_wanted, OK, "", "", ""),
        CASE(vxlan_socket, FAIL, "port 4789/udp", "the kernel", "vxlanPort"),
        CASE(vxlan_of_flannel, FAIL, "port 4789/udp", "the link vx7", "ip link del vx7"),
        CASE(vxlan_on_another_port, OK, "", "", ""),
        CASE(vxlan_of_ovs, OK, "", "", ""),
        CASE(earlier_cni, FAIL, "other CNI", "10-flannel.conflist", "move it away"),
        CASE(later_cni, WARN, "other CNI", "87-podman", "move it away"),
        CASE(own_cni, OK, "", "", ""),
        CASE(flannel, WARN, "other network", "flannel.1 of flannel", "remove"),
        CASE(bridge_br0, FAIL, "bridge", "br0 is a Linux bridge", "ovs.bridge"),
        CASE(bridge_of_ovs, OK, "", "", ""),
        CASE(tun0_of_ovs_in_userspace, OK, "", "", ""),
        CASE(vpn_tun0, FAIL, "link", "tun0 is a tun device", "another name"),
        CASE(firewalld, WARN, "host firewall", "firewalld", "ports"),
        CASE(ufw, WARN, "host firewall", "ufw", "ports"),
        CASE(no_runtime, FAIL, "container runtime", "none", "containerd"),
        CASE(no_runtime_wanted, WARN, "container runtime", "none", "containerd"),
        CASE(etcd_away, FAIL, "etcd", "refused", "--etcd"),
        CASE(etcd_not_wanted, OK, "", "", ""),
        CASE(unknown_network, OK, "", "", ""),
        CASE(only_the_network, FAIL, "networks", "10.129.0.0/16", "--cluster-network"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct setup_finding found[SETUP_MAX_FINDINGS];
        struct setup_facts f;
        struct setup_wish w;
        size_t bad = 0;
        good(&f, &w);
        cases[i].fault(&f, &w);
        size_t n = setup_check(&f, &w, found);
        for (size_t k = 0; k < n; k++) {
            if (found[k].level == SETUP_OK) {
                continue;
            }
            bad++;
            if (found[k].level != cases[i].level || !streq(found[k].what, cases[i].what) ||
                !strstr(found[k].found, cases[i].found) || !strstr(found[k].todo, cases[i].todo)) {
                fail_msg("%s: %d %s: %s: %s", cases[i].name, found[k].level, found[k].what,
                         found[k].found, found[k].todo);
            }
        }
        if (bad != (cases[i].level != SETUP_OK)) {
            fail_msg("%s: %zu findings", cases[i].name, bad);
        }
    }
}

static void more_findings_than_room_do_not_overflow(void **state)
{
    struct setup_finding found[SETUP_MAX_FINDINGS];
    struct setup_link many[200];
    struct setup_facts f;
    struct setup_wish w;
    good(&f, &w);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
        many[i] = (struct setup_link){.mtu = 1500};
        snprintf(many[i].name, sizeof many[i].name, "cali%zu", i);
    }
    f.links = many;
    f.n_links = ARRAY_SIZE(many);
    assert_int_equal(setup_check(&f, &w, found), SETUP_MAX_FINDINGS);
}

/* ---- sockets ---- */

#define REST " 00000000:00000000 00:00000000 00000000     0        0 "
static void listening_sockets_are_read(void **state)
{
    static const char tcp[] = "  sl  local_address rem_address   st tx_queue\n"
                              "   0: 010200C0:20FB 00000000:0000 0A" REST "4242 1 0 100 0 0 10 0\n"
                              "   1: 00000000:0016 00000000:0000 0A" REST "7 1\n"
                              "   2: 010200C0:20FB 090200C0:C350 01" REST "8 1\n"
                              "   3: nonsense\n"
                              "\n"
                              "   4: 0100007F:10000 00000000:0000 0A" REST "9 1\n"
                              "   5: 0100007F:0035 00000000:0000 0A" REST "x 1\n"
                              "   6: 0100007F:0035";
    static const char tcp6[] = "  sl\n"
                               "   0: 00000000000000000000000000000000:1F90 0:0 0A" REST "10 1\n"
                               "   1: 0000000000000000FFFF0000010200C0:1F91 0:0 0A" REST "11 1\n"
                               "   2: 00000000000000000000000001000000:1F92 0:0 0A" REST "12 1\n";
    static const char udp[] = "  sl\n  421: 00000000:12B5 00000000:0000 07" REST "13 2\n";
    static const struct setup_socket want[] = {
        {.addr = ADDRESS, .port = 8443, .inode = 4242},
        {.port = 22, .inode = 7},
        {.port = 8080, .inode = 10},
        {.addr = ADDRESS, .port = 8081, .inode = 11},
        {.udp = true, .port = 4789, .inode = 13},
    };
    struct setup_facts f = {0};
    setup_sockets_add(&f, tcp, false);
    setup_sockets_add(&f, tcp6, false);
    setup_sockets_add(&f, udp, true);
    setup_sockets_add(&f, "", false);
    assert_int_equal(f.n_sockets, ARRAY_SIZE(want));
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const struct setup_socket *s = &f.sockets[i];
        if (s->udp != want[i].udp || s->addr != want[i].addr || s->port != want[i].port ||
            s->inode != want[i].inode) {
            fail_msg("%zu: %08x:%u inode %llu", i, s->addr, s->port, (unsigned long long) s->inode);
        }
    }
    setup_facts_done(&f);
}

/* ---- configuration ---- */

static void keys_are_set_by_their_rows(void **state)
{
    static const struct {
        const struct option_table *t;
        const char *path, *value, *want; /* NULL: refused. */
    } cases[] = {
        {&master_options, "networkConfig.mtu", "1400", "{'networkConfig': {'mtu': 1400}}"},
        {&master_options, "servingInfo.names", "a,b", "{'servingInfo': {'names': ['a', 'b']}}"},
        {&master_options, "authorization.anonymous", "false",
         "{'authorization': {'anonymous': false}}"},
        {&master_options, "storage.path", "/x: y", "{'storage': {'path': '/x: y'}}"},
        {&master_options, "networkConfig.clusterNetworks",
         "[{cidr: 10.0.0.0/8, hostSubnetLength: 8}]",
         "{'networkConfig': {'clusterNetworks': [{'cidr': '10.0.0.0/8', 'hostSubnetLength': 8}]}}"},
        {&master_options, "networkConfig", "1", NULL},
        {&master_options, "none.such", "1", NULL},
        {&master_options, "networkConfig.mtu", "[", NULL},
        {&node_options, "ovs.database", "/run/x.sock", "{'ovs': {'database': '/run/x.sock'}}"},
        {&node_options, "dnsIsolateProjects", "true", "{'dnsIsolateProjects': true}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *doc = json_object();
        struct err e = {0};
        int r = setup_config_set(doc, cases[i].t, cases[i].path, cases[i].value, &e);
        assert_int_equal(r, cases[i].want ? 0 : -EINVAL);
        if (cases[i].want) {
            assert_json(doc, cases[i].want);
        } else {
            assert_non_null(strstr(e.text, cases[i].path));
        }
    }
}

/* ---- files ---- */

static char dir[] = "/tmp/tenet-setup-XXXXXX";

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/tenet-setup-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return dir_remove(dir, NULL);
}

static char *at(const char *name)
{
    return xasprintf("%s/%s", dir, name);
}

static void write_text(const char *path, const char *text)
{
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0644, NULL), 0);
}

static void assert_text(const char *path, const char *want)
{
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT;
    int r = file_read(path, 4096, &now, NULL);
    assert_int_equal(r, want ? 0 : -ENOENT);
    if (want) {
        assert_string_equal(strbuf_cstr(&now), want);
    }
}

static unsigned n_said;
static char last_said[64];
static void said(const char *path, const char *what)
{
    n_said++;
    snprintf(last_said, sizeof last_said, "%s", what);
}
static const char *sample_of(const char *path)
{
    return "sample";
}

static void only_own_and_unedited_files_are_changed(void **state)
{
    CLEANUP_FREE char *path = at("a.yaml");
    CLEANUP(setup_files_free) struct setup_files *f = NULL;
    enum setup_written w;
    assert_int_equal(setup_files_open(dir, &f, NULL), 0);
#define WRITE(text, want)                                                                    \
    assert_int_equal(setup_files_write(f, "node", path, text, 0600, "sample", &w, NULL), 0); \
    assert_int_equal(w, want)
    WRITE("one", SETUP_MADE);
    WRITE("one", SETUP_SAME);
    WRITE("two", SETUP_CHANGED);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    write_text(path, "mine");
    WRITE("three", SETUP_KEPT);
    assert_text(path, "mine");
    write_text(path, "sample");
    WRITE("four", SETUP_CHANGED);
    assert_int_equal(setup_files_remove(f, "master", false, sample_of, said, NULL), 0);
    assert_text(path, "four");
    assert_int_equal(setup_files_remove(f, "node", false, sample_of, said, NULL), 0);
    assert_text(path, "sample");
    assert_false(setup_files_has(f, "node"));
}

static void removal_takes_just_what_was_made(void **state)
{
    CLEANUP_FREE char *own = at("own"), *edited = at("edited"), *link = at("link");
    CLEANUP_FREE char *other = at("other-link"), *noted = at("noted"), *foreign = at("foreign");
    CLEANUP_FREE char *list = at("setup.json");
    CLEANUP(setup_files_free) struct setup_files *f = NULL;
    enum setup_written w;
    assert_int_equal(setup_files_open(dir, &f, NULL), 0);
    write_text(foreign, "f");
    assert_int_equal(setup_files_write(f, "node", own, "x", 0644, NULL, &w, NULL), 0);
    assert_int_equal(setup_files_write(f, "node", edited, "x", 0644, NULL, &w, NULL), 0);
    assert_int_equal(setup_files_write(f, "node", foreign, "x", 0644, NULL, &w, NULL), 0);
    assert_int_equal(w, SETUP_KEPT);
    assert_int_equal(setup_files_link(f, "node", link, "/bin/true", &w, NULL), 0);
    assert_int_equal(symlink("/bin/false", other), 0);
    assert_int_equal(setup_files_link(f, "node", other, "/bin/true", &w, NULL), 0);
    assert_int_equal(w, SETUP_KEPT);
    assert_int_equal(setup_files_note(f, "node", noted, NULL), 0);
    write_text(noted, "whatever");
    write_text(edited, "y");
    /* Another process goes on with the list. */
    f = setup_files_free(f);
    assert_int_equal(setup_files_open(dir, &f, NULL), 0);
    struct setup_files *second = NULL;
    assert_int_equal(setup_files_open(dir, &second, NULL), -EBUSY);
    n_said = 0;
    assert_int_equal(setup_files_remove(f, "node", false, sample_of, said, NULL), 0);
    assert_int_equal(n_said, 4);
    assert_text(own, NULL);
    assert_text(noted, NULL);
    assert_text(edited, "y");
    assert_text(foreign, "f");
    assert_int_equal(access(link, F_OK), -1);
    struct stat st;
    assert_int_equal(lstat(other, &st), 0);
    assert_int_equal(access(list, F_OK), -1);
}

static void leftovers_of_killed_writes_are_removed(void **state)
{
    CLEANUP_FREE char *path = at("a.yaml"), *left = at("a.yaml.aB3xYz"),
                      *list = at("setup.json.123456");
    CLEANUP_FREE char *longer = at("a.yaml.aB3xYz7"), *other = at("b.yaml.aB3xYz");
    CLEANUP(setup_files_free) struct setup_files *f = NULL;
    enum setup_written w;
    assert_int_equal(setup_files_open(dir, &f, NULL), 0);
    assert_int_equal(setup_files_write(f, "node", path, "x", 0644, NULL, &w, NULL), 0);
    f = setup_files_free(f);
    write_text(left, "secret");
    write_text(list, "{");
    write_text(longer, "l");
    write_text(other, "o");
    assert_int_equal(setup_files_open(dir, &f, NULL), 0);
    assert_text(left, NULL);
    assert_text(list, NULL);
    assert_text(longer, "l");
    assert_text(other, "o");
    assert_text(path, "x");
}

static void a_malformed_list_is_refused(void **state)
{
    static const char *const texts[] = {"", "{", "[]", "{\"files\": {}}", "{\"files\": 1}"};
    CLEANUP_FREE char *list = at("setup.json");
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct setup_files *f = NULL;
        struct err e = {0};
        write_text(list, texts[i]);
        assert_int_equal(setup_files_open(dir, &f, &e), -EINVAL);
        assert_non_null(strstr(e.text, "setup.json"));
        assert_text(list, texts[i]);
    }
}

static void samples_are_those_of_the_tree(void **state)
{
    static const char *const names[] = {"master-config.yaml", "node-config.yaml",
                                        "kubelet-config.yaml"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *file = xasprintf("packaging/config/%s", names[i]);
        CLEANUP_FREE char *path = xasprintf("/etc/tenet/%s", names[i]);
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        assert_int_equal(file_read(file, 1 << 20, &text, NULL), 0);
        assert_string_equal(setup_sample(path), strbuf_cstr(&text));
    }
    assert_null(setup_sample("/etc/tenet/node.kubeconfig"));
    assert_null(setup_sample("tenet.1"));
}

#define T(name) cmocka_unit_test(name)
#define IN_DIR(name) cmocka_unit_test_setup_teardown(name, make_dir, remove_dir)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_good_host_has_no_warning),
        T(each_fault_is_one_finding),
        T(more_findings_than_room_do_not_overflow),
        T(listening_sockets_are_read),
        T(keys_are_set_by_their_rows),
        IN_DIR(only_own_and_unedited_files_are_changed),
        IN_DIR(removal_takes_just_what_was_made),
        IN_DIR(leftovers_of_killed_writes_are_removed),
        IN_DIR(a_malformed_list_is_refused),
        T(samples_are_those_of_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
