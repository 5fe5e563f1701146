/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side against the real kernel, in namespaces of its own (needs root). */
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ops.h"
#include "datapath/ovs/ovs.h"
#include "net/kernel/netns.h"
#include "net/kernel/nft.h"
#include "net/kernel/redirect.h"
#include "node/cni/pod_link.h"
#include "node/host/host.h"
#include "node/host/host_sync.h"
#include "node/host/monitor.h"
#include "node/host/nat.h"
#include "nspair.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static uint32_t ip(const char *s)
{
    uint32_t a;
    assert_int_equal(ip4_parse(s, &a), 0);
    return a;
}

static struct ip4_prefix prefix(const char *s)
{
    struct ip4_prefix p;
    assert_int_equal(prefix_parse_host(s, &p, NULL), 0);
    return p;
}

static struct sdn_network network(void)
{
    return (struct sdn_network){.plugin = SDN_MULTITENANT,
                                .cluster = {prefix("10.128.0.0/14"), prefix("10.1.0.0/16")},
                                .n_cluster = 2,
                                .service = prefix("172.30.0.0/16"),
                                .local = prefix("10.128.0.0/23"),
                                .host_ip = ip("192.168.7.1"),
                                .vxlan_port = 4789,
                                .mtu = 1450};
}

static void sh(const char *command)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    struct err e = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    int status = -1;
    spec.argv = argv;
    if (process_run(&spec, 10000, &out, &text, &status, &e) < 0 || status != 0) {
        fail_msg("%s: %s%s", command, e.text, strbuf_cstr(&text));
    }
}

static int check(const struct sdn_network *n, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    char warning[256];
    assert_int_equal(rtnl_open(&r, NULL), 0);
    return host_check(r, n, NULL, warning, e);
}

static int fresh_host(void **state)
{
    if (nspair_setup(state) < 0) {
        return -1;
    }
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    uint32_t a;
    if (rtnl_open(&r, NULL) < 0 || host_default_address(r, &a, &e) != -ENOENT ||
        !strstr(e.text, "nodeIP")) {
        return -1;
    }
    sh("ip link add nic0 type bridge && ip addr add 192.168.7.1/24 dev nic0 && "
       "ip link set nic0 mtu 1500 up && ip route add default via 192.168.7.254");
    return 0;
}

static void a_good_host_passes(void **state)
{
    struct sdn_network n = network();
    struct err e = {0};
    (void) state;
    assert_int_equal(check(&n, &e), 0);
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    uint32_t a = 0;
    assert_int_equal(rtnl_open(&r, NULL), 0);
    assert_int_equal(host_default_address(r, &a, &e), 0);
    assert_int_equal(a, ip("192.168.7.1"));
    assert_int_equal(host_check_privileges(&e), 0);
}

static void an_address_that_is_not_ours_is_refused(void **state)
{
    struct sdn_network n = network();
    struct err e = {0};
    (void) state;
    n.host_ip++;
    assert_int_equal(check(&n, &e), -EADDRNOTAVAIL);
    assert_non_null(strstr(e.text, "nodeIP: 192.168.7.2"));
}

static void a_link_too_small_for_the_tunnel_is_refused(void **state)
{
    struct sdn_network n = network();
    struct err e = {0};
    (void) state;
    n.mtu = 1451;
    assert_int_equal(check(&n, &e), -EMSGSIZE);
    assert_non_null(strstr(e.text, "nic0"));
    assert_non_null(strstr(e.text, "at most 1450"));
}

static void clashing_addresses_and_routes_are_named(void **state)
{
    static const struct {
        const char *add, *del;
        const char *needles[3];
    } cases[] = {
        {"ip addr add 10.129.0.7/16 dev nic0",
         "ip addr del 10.129.0.7/16 dev nic0",
         {"10.129.0.7/16", "nic0", "cluster network 10.128.0.0/14"}},
        {"ip addr add 10.1.2.3/32 dev lo",
         "ip addr del 10.1.2.3/32 dev lo",
         {"10.1.2.3/32", "lo", "10.1.0.0/16"}},
        {"ip addr add 172.30.9.9/24 dev nic0",
         "ip addr del 172.30.9.9/24 dev nic0",
         {"172.30.9.9/24", "nic0", "service network 172.30.0.0/16"}},
        {"ip addr add 10.0.0.1/8 dev nic0",
         "ip addr del 10.0.0.1/8 dev nic0",
         {"10.0.0.1/8", "nic0", "10.128.0.0/14"}},
        {"ip route add 10.130.0.0/24 via 192.168.7.9",
         "ip route del 10.130.0.0/24",
         {"route 10.130.0.0/24", "nic0", "10.128.0.0/14"}},
        {"ip route add 10.0.0.0/8 dev nic0",
         "ip route del 10.0.0.0/8",
         {"route 10.0.0.0/8", "nic0", "10.128.0.0/14"}},
    };
    (void) state;
    struct sdn_network n = network();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        sh(cases[i].add);
        assert_int_equal(check(&n, &e), -EADDRINUSE);
        sh(cases[i].del);
        for (size_t k = 0; k < 3; k++) {
            assert_non_null(strstr(e.text, cases[i].needles[k]));
        }
    }
}

static void a_wider_route_by_way_of_a_router_is_only_odd(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    char warning[256];
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    sh("ip route add 10.0.0.0/8 via 192.168.7.9");
    assert_int_equal(rtnl_open(&r, NULL), 0);
    assert_int_equal(host_check(r, &n, NULL, warning, &e), 0);
    assert_non_null(strstr(warning, "10.0.0.0/8"));
    sh("ip route del 10.0.0.0/8");
}

static void what_is_on_tun0_is_ours_and_no_clash(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    sh("ip link add tun0 type bridge && ip addr add 10.128.0.1/23 dev tun0 && "
       "ip link set tun0 up && ip route add 10.128.0.0/14 dev tun0");
    assert_int_equal(check(&n, &e), 0);
    sh("ip link del tun0");
}

static void a_foreign_vxlan_link_is_named(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    sh("ip link add foreign0 type vxlan id 7 dstport 4789 dev lo");
    assert_int_equal(check(&n, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, "VXLAN port 4789 is taken by the link foreign0"));
    n.vxlan_port = 4790;
    assert_int_equal(check(&n, &e), 0);
    sh("ip link del foreign0; ip link add vxlan_sys_4789 type vxlan external dstport 4789; "
       "ip link set vxlan_sys_4789 up");
    n.vxlan_port = 4789;
    assert_int_equal(check(&n, &e), 0);
    sh("ip link del vxlan_sys_4789");
}

static void a_bound_udp_port_is_found(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(4789)};
    assert_int_equal(bind(fd, (struct sockaddr *) &sa, sizeof sa), 0);
    assert_int_equal(check(&n, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, "VXLAN port 4789 is taken by a UDP socket"));
}

static void udp_tables_are_read(void **state)
{
    (void) state;
    static const char text[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                               "retrnsmt   uid  timeout "
                               "inode ref pointer drops\n"
                               "  421: 00000000:12B5 00000000:0000 07 00000000:00000000 "
                               "00:00000000 00000000     0        0 "
                               "0 2 0000000000000000 0\n"
                               "  999: 0100007F:0035 00000000:0000 07 00000000:00000000 "
                               "00:00000000 00000000     0        0 "
                               "5151 2 0000000000000000 0\n";
    assert_true(host_udp_port_taken(text, 4789));
    assert_true(host_udp_port_taken(text, 53));
    assert_false(host_udp_port_taken(text, 54));
    assert_false(host_udp_port_taken("", 53));
    assert_false(host_udp_port_taken("x\ngarbage", 53));
}

static bool has(const char *command)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    int status = -1;
    spec.argv = argv;
    return process_run(&spec, 10000, &out, &text, &status, NULL) == 0 && status == 0;
}

static void tun0_is_made_right_and_put_back(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    unsigned changes = 99;
    assert_int_equal(host_apply(&n, &changes, &e), -ENODEV);
    sh("ip link add tun0 type bridge");
    assert_int_equal(host_apply(&n, &changes, &e), 0);
    assert_true(changes >= 4);
    assert_true(has("ip -4 addr show tun0 | grep -q 'inet 10.128.0.1/23'"));
    assert_true(has("ip route show dev tun0 | grep '^10.128.0.0/14' | grep -q 'scope link'"));
    assert_true(has("ip route show dev tun0 | grep -q '^10.1.0.0/16'"));
    assert_false(has("ip route show dev tun0 | grep -q '/23'"));
    assert_true(has("test $(cat /proc/sys/net/ipv4/ip_forward) = 1"));
    assert_int_equal(host_apply(&n, &changes, &e), 0);
    assert_int_equal(changes, 0);

    sh("ip route del 10.128.0.0/14; ip route add 10.131.0.0/16 dev tun0; "
       "ip addr add 10.128.9.1/23 dev tun0; echo 1 > /proc/sys/net/ipv4/conf/tun0/rp_filter");
    assert_int_equal(host_apply(&n, &changes, &e), 0);
    assert_true(changes >= 4);
    assert_true(has("ip route show dev tun0 | grep -q '^10.128.0.0/14'"));
    assert_false(has("ip route show dev tun0 | grep -q '10.131'"));
    assert_false(has("ip addr show tun0 | grep -q '10.128.9.1'"));
    sh("ip link del tun0");
}

/* What pods could talk the host into, one setting after the other. */
static void settings_of_tun0_are_put_back(void **state)
{
    (void) state;
    static const struct {
        const char *file, *wanted, *wrong;
    } cases[] = {
        {"ipv4/ip_forward", "1", "0"},
        {"ipv4/conf/tun0/rp_filter", "0", "1"},
        {"ipv4/conf/tun0/send_redirects", "0", "1"},
        {"ipv4/conf/tun0/accept_redirects", "0", "1"},
        {"ipv4/conf/tun0/accept_source_route", "0", "1"},
        {"ipv4/conf/tun0/accept_local", "0", "1"},
        {"ipv4/conf/tun0/arp_accept", "0", "1"},
        {"ipv4/conf/tun0/drop_gratuitous_arp", "1", "0"},
        {"ipv4/conf/tun0/proxy_arp", "0", "1"},
        {"ipv4/conf/tun0/bc_forwarding", "0", "1"},
        {"ipv6/conf/tun0/disable_ipv6", "1", "0"},
        {"ipv6/conf/tun0/accept_ra", "0", "2"},
        {"ipv6/conf/tun0/accept_redirects", "0", "1"},
        {"ipv6/conf/tun0/accept_source_route", "0", "1"},
    };
    struct sdn_network n = network();
    struct err e = {0};
    unsigned changes = 0;
    sh("ip link add tun0 type bridge");
    assert_int_equal(host_apply(&n, &changes, &e), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *file = xasprintf("/proc/sys/net/%s", cases[i].file);
        CLEANUP_FREE char *spoil = xasprintf("echo %s > %s", cases[i].wrong, file);
        CLEANUP_FREE char *is_right = xasprintf("test $(cat %s) = %s", file, cases[i].wanted);
        if (access(file, F_OK) < 0 && errno == ENOENT) {
            continue; /* A kernel without IPv6. */
        }
        print_message("%s\n", cases[i].file);
        assert_true(has(is_right));
        sh(spoil);
        assert_int_equal(host_apply(&n, &changes, &e), 0);
        assert_int_equal(changes, 1);
        assert_true(has(is_right));
    }
    sh("ip link del tun0");
}

static void packets_that_the_table_drops_are_counted(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    struct nat nat = {0};
    struct nat_drops drops = {0};
    bool changed = false;
    CLEANUP_STRBUF struct strbuf rules = STRBUF_INIT;
    assert_int_equal(nat_drops_update(&drops), 0); /* No table yet. */
    nat_write_rules(&n, NULL, 0, &rules);
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    /* Packets with a pod's source that came by a link which is not br0's. */
    sh("ip link add spoof0 address 02:00:00:00:00:01 type veth peer name spoof1; "
       "ip addr add 10.129.1.1/32 dev spoof1; ip link set spoof0 up; ip link set spoof1 up; "
       "ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:01 dev spoof1; "
       "ip route add 192.0.2.9 dev spoof1 src 10.129.1.1; "
       "ping -c 3 -i 0.01 -W 1 192.0.2.9 || true");
    assert_int_equal(nat_drops_update(&drops), 0);
    assert_int_equal(drops.total[NAT_DROP_SPOOFED], 3);
    /* The table is made anew; what was counted stays. */
    sh("nft flush ruleset");
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_true(changed);
    sh("ping -c 2 -i 0.01 -W 1 192.0.2.9 || true");
    assert_int_equal(nat_drops_update(&drops), 0);
    assert_int_equal(drops.total[NAT_DROP_SPOOFED], 5);
    assert_int_equal(drops.total[NAT_DROP_INBOUND], 0);
    sh("ip link del spoof0; nft flush ruleset");
    nat_done(&nat);
}

static void the_table_is_written_watched_and_put_back(void **state)
{
    (void) state;
    struct sdn_network n = network();
    struct err e = {0};
    struct nat nat = {0};
    bool changed = false;
    CLEANUP_STRBUF struct strbuf rules = STRBUF_INIT;
    nat_write_rules(&n, NULL, 0, &rules);
    assert_int_equal(nat_check(rules.data, &e), 0);
    assert_false(has("nft list table ip tenet"));
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_true(changed);
    assert_true(has("nft list table ip tenet | grep -q masquerade"));
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_false(changed);

    sh("nft add table ip other"); /* Somebody else's: no reason to write ours. */
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_false(changed);
    sh("nft flush chain ip tenet postrouting");
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_true(changed);
    assert_true(has("nft list table ip tenet | grep -q masquerade"));
    sh("nft flush ruleset");
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_true(changed);

    n.n_cluster = 1;
    strbuf_reset(&rules);
    nat_write_rules(&n, NULL, 0, &rules);
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_true(changed);
    assert_false(has("nft list table ip tenet | grep -q 10.1.0.0"));

    const struct nat_port ports[] = {
        {{{CNI_TCP, 0, 8080, 80}, 0x0a800002}, false},
        {{{CNI_UDP, 0x0a000001, 53, 5353}, 0x0a800003}, true},
        {{{CNI_SCTP, 0, 9, 10}, 0x0a800003}, true},
    };
    strbuf_reset(&rules);
    nat_write_rules(&n, ports, ARRAY_SIZE(ports), &rules);
    assert_int_equal(nat_sync(&nat, rules.data, &changed, &e), 0);
    assert_true(has("nft list table ip tenet | grep -q 'tcp dport 8080 dnat to 10.128.0.2:80'"));
    assert_true(has("nft list table ip tenet | "
                    "grep -q 'ip daddr 10.0.0.1 udp dport 53 dnat to 10.128.0.3:5353'"));
    assert_true(has("nft list table ip tenet | "
                    "grep -q 'ip daddr != 127.0.0.0/8 sctp dport 9 dnat to 10.128.0.3:10'"));
    /* Neither for pods nor at the gateway's address. */
    assert_true(has("nft list chain ip tenet prerouting | "
                    "grep -q 'iifname != \"tun0\" ip daddr != 10.128.0.1 fib daddr type local'"));
    assert_true(has("nft list chain ip tenet output | "
                    "grep -q '\tip daddr != 10.128.0.1 fib daddr type local jump host_ports'"));

    assert_int_equal(nat_sync(&nat, "table ip tenet {\n\tnonsense\n}\n", &changed, &e), -EIO);
    assert_non_null(strstr(e.text, "nft"));
    assert_true(has("nft list table ip tenet | grep -q masquerade"));
    nat_done(&nat);
}

/* ---- keeping it so ---- */

struct watching {
    struct host_sync *host_sync;
    unsigned looks;
    int error;
    bool flag, gone;
};

static void on_host_synced(void *ctx, int error, const char *text)
{
    struct watching *w = ctx;
    w->looks++;
    w->error = error;
    w->flag = true;
}

static void on_changed(void *ctx, unsigned what)
{
    struct watching *w = ctx;
    host_sync_changed(w->host_sync, what);
}

static void on_link_gone(void *ctx, const char *name)
{
    struct watching *w = ctx;
    w->gone = w->gone || streq(name, "going0");
}

/* Lets the host sync look until 'command' succeeds. */
static void wait_until(struct loop *l, struct watching *w, const char *command)
{
    for (unsigned i = 0; i < 100 && !has(command); i++) {
        w->flag = false;
        loop_run_until(l, &w->flag, 10000);
    }
    assert_true(has(command));
}

static void what_others_change_is_noticed_and_put_back(void **state)
{
    (void) state;
    static const struct monitor_ops ops = {.changed = on_changed, .link_gone = on_link_gone};
    struct sdn_network n = network();
    struct err e = {0};
    struct watching w = {0};
    struct monitor *m = NULL;
    log_set_levels("error", NULL);
    sh("nft flush ruleset");
    struct loop *l = loop_new();
    w.host_sync = host_sync_new(l, on_host_synced, &w);
    assert_int_equal(monitor_new(l, "tun0", &ops, &w, &m, &e), 0);
    assert_int_equal(host_sync_check(&n, &e), 0);
    bool never = false;
    host_sync_begin(w.host_sync, &n);
    while (host_sync_busy(w.host_sync)) {
        loop_run_until(l, &never, 5);
    }
    assert_true(has("nft list table ip tenet"));
    assert_int_equal(w.looks, 0); /* That tun0 is not there is no fault yet. */
    host_sync_set(w.host_sync, &n);
    assert_int_equal(loop_run_until(l, &w.flag, 10000), 0);
    assert_int_equal(w.error, -ENODEV); /* No tun0 yet. */
    assert_true(has("nft list table ip tenet"));

    sh("ip link add tun0 type bridge; ip link add going0 type bridge; ip link del going0");
    wait_until(l, &w, "ip route show dev tun0 | grep -q '^10.128.0.0/14'");
    assert_true(w.gone);
    sh("nft delete table ip tenet");
    wait_until(l, &w, "nft list table ip tenet");
    sh("ip route del 10.1.0.0/16");
    wait_until(l, &w, "ip route show dev tun0 | grep -q '^10.1.0.0/16'");
    sh("ip link del tun0; ip link add tun0 type bridge");
    wait_until(l, &w, "ip addr show tun0 | grep -q 10.128.0.1/23");

    /* Nothing to do: it comes to rest. */
    loop_run_until(l, &never, 300);
    unsigned looks = w.looks;
    loop_run_until(l, &never, 1500);
    assert_true(w.looks - looks <= 1);
    /* After such a rest the next change is looked at soon, too. */
    sh("nft delete table ip tenet");
    wait_until(l, &w, "nft list table ip tenet");
    while (host_sync_busy(w.host_sync)) {
        loop_run_until(l, &never, 5);
    }
    monitor_free(m);
    host_sync_free(w.host_sync);
    loop_free(l);
    sh("ip link del tun0; nft flush ruleset");
}

struct told {
    unsigned what;
    bool flag;
};

static void on_told(void *ctx, unsigned what)
{
    struct told *t = ctx;
    t->what |= what;
    t->flag = true;
}

static void on_other_link_gone(void *ctx, const char *name)
{
}

/* What the monitor tells when 'command' has been run; a table of another name ends the wait. */
static unsigned told_of(struct loop *l, struct told *t, const char *command)
{
    *t = (struct told){0};
    sh(command);
    sh("nft add table ip tenet; nft delete table ip tenet");
    while (!(t->what & MONITOR_NFT)) {
        t->flag = false;
        assert_int_equal(loop_run_until(l, &t->flag, 10000), 0);
    }
    return t->what & ~(unsigned) MONITOR_NFT;
}

static void the_monitor_tells_tables_apart(void **state)
{
    (void) state;
    static const struct monitor_ops ops = {.changed = on_told, .link_gone = on_other_link_gone};
    struct told t = {0};
    struct err e = {0};
    struct monitor *m = NULL;
    struct nft *own = NULL;
    struct nft_batch b = {0};
    sh("nft flush ruleset");
    struct loop *l = loop_new();
    assert_int_equal(monitor_new(l, "tun0", &ops, &t, &m, &e), 0);
    assert_int_equal(nft_open(&own, &e), 0);
    assert_int_equal(monitor_ignore(m, nft_port(own), &e), 0);
    assert_int_equal(told_of(l, &t, "nft add table ip other; nft add chain ip other tenet"), 0);
    assert_int_equal(told_of(l, &t, "nft add table ip tenet-services"), MONITOR_SERVICES);
    assert_int_equal(told_of(l, &t, "nft add chain ip tenet-services c"), MONITOR_SERVICES);
    assert_int_equal(told_of(l, &t, "nft add rule ip tenet-services c counter"), MONITOR_SERVICES);
    assert_int_equal(told_of(l, &t, "nft add set ip tenet-services s '{ type mark; }'"),
                     MONITOR_SERVICES);
    assert_int_equal(told_of(l, &t, "nft add element ip tenet-services s '{ 7 }'"),
                     MONITOR_SERVICES);
    /* The agent's own changes are none. */
    nft_batch_begin(&b, "tenet-services");
    nft_delete_table(&b);
    nft_batch_end(&b);
    assert_int_equal(nft_send(own, &b, &e), 0);
    assert_int_equal(told_of(l, &t, "true"), 0);
    assert_false(has("nft list table ip tenet-services"));
    /* A refused batch says why. */
    assert_int_equal(nft_send(own, &b, &e), -ENOENT);
    assert_non_null(strstr(e.text, "deleting the table"));
    nft_batch_done(&b);
    nft_close(own);
    monitor_free(m);
    loop_free(l);
}

/* ---- links of pods ---- */

static struct ovs_dp ovs = {.dp.ops = &datapath_ovs};

/* A port of the switch is a link; that the switch has it open makes no difference here. */
static struct pod_link link_of(const char *id, unsigned attempt)
{
    struct pod_link p = {.host_ns_fd = -1,
                         .netns_fd = pod_ns,
                         .port = "tp3",
                         .datapath = &ovs.dp,
                         .ifname = "eth0",
                         .host_mac = pod_link_host_mac(ip("10.128.0.2")),
                         .mac = mac_from_ip4(ip("10.128.0.2")),
                         .address = prefix("10.128.0.2/23"),
                         .gateway = ip("10.128.0.1"),
                         .mtu = 1450};
    pod_link_name(id, "eth0", attempt, p.host_if);
    return p;
}

static void a_pods_link_is_made_checked_and_removed(void **state)
{
    (void) state;
    sh("ip link add tp3 type veth peer name tp3x; ip link set tp3 up; ip link set tp3x up; "
       "ip link add tp4 type veth peer name tp4x; ip link set tp4 up; ip link set tp4x up");
    for (int userspace = 0; userspace < 2; userspace++) {
        struct pod_link p = link_of("abc", 0);
        struct err e = {0};
        p.userspace_switch = userspace;
        assert_true(pod_link_check(&p, &e) < 0);
        assert_int_equal(pod_link_create(&p, &e), 0);
        assert_int_equal(pod_link_check(&p, &e), 0);

        CLEANUP(rtnl_close) struct rtnl *pod = NULL;
        struct rtnl_link l;
        assert_int_equal(rtnl_open_at(pod_ns, &pod, NULL), 0);
        assert_int_equal(rtnl_link_get(pod, "eth0", &l, NULL), 0);
        assert_int_equal(l.mtu, 1450);
        assert_true(mac_equal(l.mac, p.mac));

        struct pod_link other = p;
        other.address = prefix("10.128.0.3/23");
        assert_true(pod_link_check(&other, &e) < 0);
        assert_non_null(strstr(e.text, "eth0: has not the address 10.128.0.3/23"));
        other = p;
        other.gateway++;
        assert_true(pod_link_check(&other, &e) < 0);
        assert_non_null(strstr(e.text, "default route via 10.128.0.2"));
        other = p;
        other.mac.b[5]++;
        assert_true(pod_link_check(&other, &e) < 0);
        assert_non_null(strstr(e.text, "MAC"));
        other = p;
        snprintf(other.port, sizeof other.port, "tp4");
        assert_true(pod_link_check(&other, &e) < 0);
        assert_non_null(strstr(e.text, "to port tp4"));

        CLEANUP_FREE char *down = xasprintf("ip link set %s down", p.host_if);
        CLEANUP_FREE char *up = xasprintf("ip link set %s up", p.host_if);
        CLEANUP_FREE char *is_down = xasprintf("%s: is down", p.host_if);
        sh(down);
        assert_int_equal(pod_link_check(&p, &e), -ENOENT);
        assert_string_equal(e.text, is_down);
        sh(up);
        assert_int_equal(pod_link_check(&p, &e), 0);

        assert_int_equal(pod_link_delete(&p, &e), 0);
        assert_int_equal(pod_link_delete(&p, &e), 0);
        assert_int_equal(rtnl_link_get(pod, "eth0", &l, NULL), -ENODEV);
    }
}

static bool has_default_route(const char *ifname)
{
    CLEANUP(rtnl_close) struct rtnl *pod = NULL;
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    size_t n = 0;
    struct rtnl_link l;
    assert_int_equal(rtnl_open_at(pod_ns, &pod, NULL), 0);
    assert_int_equal(rtnl_link_get(pod, ifname, &l, NULL), 0);
    assert_int_equal(rtnl_route_list(pod, l.ifindex, &routes, &n, NULL), 0);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        found = found || (routes[i].dst.len == 0 && routes[i].gateway == ip("10.128.0.1"));
    }
    return found;
}

static void each_interface_of_a_pod_keeps_its_default_route(void **state)
{
    (void) state;
    struct pod_link first = link_of("abc", 0), second = link_of("abc", 1);
    struct err e = {0};
    snprintf(second.ifname, sizeof second.ifname, "net1");
    snprintf(second.port, sizeof second.port, "tp4");
    second.mac = mac_from_ip4(ip("10.128.0.3"));
    second.address = prefix("10.128.0.3/23");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(pod_link_create(&first, &e), 0);
        assert_int_equal(pod_link_create(&second, &e), 0);
        assert_int_equal(pod_link_check(&first, &e), 0);
        assert_int_equal(pod_link_check(&second, &e), 0);
        const struct pod_link *gone = round ? &first : &second, *stays = round ? &second : &first;
        assert_int_equal(pod_link_delete(gone, &e), 0);
        assert_true(has_default_route(stays->ifname));
        assert_int_equal(pod_link_check(stays, &e), 0);
        assert_int_equal(pod_link_delete(stays, &e), 0);
    }
}

static void an_abandoned_link_is_replaced_a_foreign_one_is_not(void **state)
{
    (void) state;
    struct pod_link p = link_of("abc", 0), taken = link_of("abc", 1);
    struct err e = {0};
    assert_string_not_equal(p.host_if, taken.host_if);
    assert_int_equal(pod_link_create(&p, &e), 0);
    assert_int_equal(pod_link_create(&p, &e), 0); /* As after a crash between the steps. */
    assert_int_equal(pod_link_create(&taken, &e), -EBUSY);
    assert_non_null(strstr(e.text, "eth0"));

    CLEANUP_FREE char *enslave =
        xasprintf("ip link add foreign type bridge && ip link set %s master foreign", p.host_if);
    sh(enslave);
    struct pod_link again = p;
    assert_int_equal(pod_link_create(&again, &e), -EEXIST);
    assert_int_equal(pod_link_delete_abandoned(p.host_if, &e), 0);
    assert_int_equal(pod_link_check(&p, &e), 0);
    sh("ip link del foreign");
    assert_int_equal(pod_link_delete_abandoned(p.host_if, &e), 0);
    assert_true(pod_link_check(&p, &e) < 0);
}

/* ---- links on the other ends of ports ---- */

static unsigned ends_freed;

static void on_free(void *ctx, const char *name)
{
    ends_freed += streq(name, "tp3x");
}

static struct rtnl *make_port(struct loop *l, const char *dir)
{
    struct err e = {0};
    struct rtnl *host = NULL, *r = NULL;
    struct rtnl_link end;
    struct mac own = port_peers_mac("tp3x");
    if (!ovs.pool.ends) {
        assert_int_equal(port_peers_open(l, dir, on_free, NULL, &ovs.pool.ends, &e), 0);
    }
    assert_int_equal(rtnl_open(&host, &e), 0);
    assert_int_equal(rtnl_open_at(port_peers_fd(ovs.pool.ends), &r, &e), 0);
    struct rtnl_veth v = {.name = "tp3",
                          .peer_name = "tp3x",
                          .peer_ns_fd = port_peers_fd(ovs.pool.ends),
                          .mtu = 1400,
                          .peer_mac = &own,
                          .up = true};
    assert_int_equal(rtnl_veth_add(host, &v, &e), 0);
    assert_int_equal(rtnl_link_get(r, "tp3x", &end, &e), 0);
    assert_int_equal(redirect_accept_own(r, end.ifindex, &e), 0);
    struct rtnl_link_set up = RTNL_LINK_SET_INIT("tp3x");
    up.up = 1;
    assert_int_equal(rtnl_link_set(r, &up, &e), 0);
    rtnl_close(host);
    return r;
}

static void wait_freed(struct loop *l)
{
    bool freed = false;
    for (int i = 0; i < 200 && !(freed = ends_freed); i++) {
        bool never = false;
        loop_run_until(l, &never, 20);
    }
    assert_true(freed);
}

static bool is_in_pod(const char *name)
{
    CLEANUP(rtnl_close) struct rtnl *pod = NULL;
    struct rtnl_link l;
    assert_int_equal(rtnl_open_at(pod_ns, &pod, NULL), 0);
    return rtnl_link_get(pod, name, &l, NULL) == 0;
}

static void a_link_on_the_other_end_of_a_port_is_made_checked_and_removed(void **state)
{
    (void) state;
    char dir[] = "/tmp/tenet-test-ends-XXXXXX";
    assert_non_null(mkdtemp(dir));
    sh("ip link del tp3 2>/dev/null; true");
    struct loop *l = loop_new();
    struct err e = {0};
    CLEANUP(rtnl_close) struct rtnl *r = make_port(l, dir);
    struct rtnl_link end;
    struct pod_link p = link_of("abc", 0);
    snprintf(p.host_if, sizeof p.host_if, "tp3x");
    p.userspace_switch = true;

    assert_true(pod_link_check(&p, &e) < 0);
    assert_int_equal(pod_link_create(&p, &e), 0);
    assert_int_equal(pod_link_check(&p, &e), 0);
    assert_int_equal(rtnl_link_get(r, "tp3x", &end, &e), 0);
    assert_int_equal(end.mtu, 1450);
    assert_true(mac_equal(end.mac, p.mac));
    assert_int_equal(pod_link_create(&p, &e), -EBUSY); /* Its eth0 is there. */
    assert_int_equal(redirect_clear(r, end.ifindex, &e), 0);
    assert_true(pod_link_check(&p, &e) < 0); /* Frames of others would reach it. */

    ends_freed = 0;
    assert_int_equal(pod_link_delete(&p, &e), 0);
    assert_int_equal(pod_link_delete(&p, &e), 0);
    wait_freed(l);
    assert_false(is_in_pod("eth0"));
    assert_int_equal(rtnl_link_get(r, "tp3x", &end, &e), 0);
    assert_true(mac_equal(end.mac, port_peers_mac("tp3x")));

    /* Left by an agent that died: no pod has it. */
    assert_int_equal(pod_link_create(&p, &e), 0);
    p.known = " tp3x ";
    assert_int_equal(pod_link_delete_stray(&p, &e), 0);
    assert_true(is_in_pod("eth0"));
    p.known = " tp33x tp4x ";
    assert_int_equal(pod_link_delete_stray(&p, &e), 1);
    assert_int_equal(pod_link_delete_stray(&p, &e), 0);
    assert_false(is_in_pod("eth0"));

    /* Left on the port by a pod that nobody knows: a port is nobody else's as long. */
    assert_int_equal(pod_link_create(&p, &e), 0);
    struct pod_link other = p;
    snprintf(other.ifname, sizeof other.ifname, "eth1");
    assert_int_equal(pod_link_create(&other, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, "port tp3 had a link"));
    assert_int_equal(rtnl_link_get(r, "tp3x", &end, NULL), -ENODEV);
    assert_false(is_in_pod("eth0"));

    /* The runtime does not say where the pod is: its link goes with the port's device. */
    CLEANUP(rtnl_close) struct rtnl *again = make_port(l, dir);
    assert_int_equal(pod_link_create(&p, &e), 0);
    other = p;
    other.netns_fd = -1;
    other.netns = "/tmp/no-such-namespace";
    assert_int_equal(pod_link_delete(&other, &e), 0);
    assert_false(is_in_pod("eth0"));
    assert_int_equal(pod_link_delete(&p, &e), 0);

    ovs.pool.ends = port_peers_close(ovs.pool.ends);
    loop_free(l);
    CLEANUP_FREE char *path = xasprintf("%s/ports.netns", dir);
    assert_int_equal(netns_release(path, &e), 0);
    assert_int_equal(netns_release(path, &e), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    if (geteuid() != 0) {
        puts("skipped: needs root");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_host_passes),
        cmocka_unit_test(an_address_that_is_not_ours_is_refused),
        cmocka_unit_test(a_link_too_small_for_the_tunnel_is_refused),
        cmocka_unit_test(clashing_addresses_and_routes_are_named),
        cmocka_unit_test(a_wider_route_by_way_of_a_router_is_only_odd),
        cmocka_unit_test(what_is_on_tun0_is_ours_and_no_clash),
        cmocka_unit_test(a_foreign_vxlan_link_is_named),
        cmocka_unit_test(a_bound_udp_port_is_found),
        cmocka_unit_test(udp_tables_are_read),
        cmocka_unit_test(tun0_is_made_right_and_put_back),
        cmocka_unit_test(settings_of_tun0_are_put_back),
        cmocka_unit_test(the_table_is_written_watched_and_put_back),
        cmocka_unit_test(packets_that_the_table_drops_are_counted),
        cmocka_unit_test(what_others_change_is_noticed_and_put_back),
        cmocka_unit_test(the_monitor_tells_tables_apart),
        cmocka_unit_test(a_pods_link_is_made_checked_and_removed),
        cmocka_unit_test(each_interface_of_a_pod_keeps_its_default_route),
        cmocka_unit_test(an_abandoned_link_is_replaced_a_foreign_one_is_not),
        cmocka_unit_test(a_link_on_the_other_end_of_a_port_is_made_checked_and_removed),
    };
    return cmocka_run_group_tests(tests, fresh_host, NULL);
}
