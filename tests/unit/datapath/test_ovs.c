/* SPDX-License-Identifier: Apache-2.0 */
/* The "ovs" datapath on a real Open vSwitch; ovs-ofctl and ovs-vsctl say what became of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leave_out.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "ovs_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Far less than the 10 s that an attachment may take. */
#define AT_ONCE_MS 5000

#define NEEDS_OVS                     \
    struct fixture *f = *state;       \
    if (ovs_unavailable()) {          \
        LEAVE_OUT(ovs_unavailable()); \
    }

/* As assert_string_equal, but shows the lines that differ. */
static void assert_same_flows(const char *got, const char *expected)
{
    if (streq(got, expected)) {
        return;
    }
    for (const char *a = got, *b = expected; *a || *b;) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        int order = !*a ? 1 : !*b ? -1 : strncmp(a, b, MAX(na, nb) + 1);
        if (order < 0) {
            print_error("unexpected:%.*s\n", (int) na, a);
        } else if (order > 0) {
            print_error("missing:   %.*s\n", (int) nb, b);
        }
        a += order <= 0 ? na + (a[na] != '\0') : 0;
        b += order >= 0 ? nb + (b[nb] != '\0') : 0;
    }
    fail();
}

/* The switch may need a moment to remove flows. */
static void assert_flows_become(struct fixture *f, const char *expected)
{
    uint64_t end = time_mono_ms() + WAIT_MS;
    CLEANUP_FREE char *got = fixture_flows(f);
    while (!streq(got, expected) && time_mono_ms() < end) {
        bool never = false;
        loop_run_until(f->loop, &never, 5);
        free(got);
        got = fixture_flows(f);
    }
    assert_same_flows(got, expected);
}

#define assert_vsctl(f, expected, ...)                           \
    do {                                                         \
        CLEANUP_FREE char *got_ = FIXTURE_VSCTL(f, __VA_ARGS__); \
        assert_string_equal(got_, expected);                     \
    } while (0)

#define assert_links(f, expected)                   \
    do {                                            \
        CLEANUP_FREE char *got_ = fixture_links(f); \
        assert_string_equal(got_, expected);        \
    } while (0)

static void assert_no_traces(struct fixture *f)
{
    assert_vsctl(f, "", "list-br");
}

/* ---- set-up ---- */

static void bridge_is_set_up_from_nothing(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    assert_vsctl(f, "secure", "get-fail-mode", "br0");
    assert_vsctl(f, "netdev", "get", "bridge", "br0", "datapath_type");
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_int_equal(fixture_count(ports, "tun0"), 1);
    assert_int_equal(fixture_count(ports, "vxlan0"), 1);
    assert_vsctl(f, "1", "get", "interface", "vxlan0", "ofport");
    assert_vsctl(f, "{dst_port=\"4789\", key=flow, remote_ip=flow}", "get", "interface", "vxlan0",
                 "options");
    assert_vsctl(f, "2", "get", "interface", "tun0", "ofport");
    assert_vsctl(f, "\"0a:58:0a:80:00:01\"", "get", "interface", "tun0", "mac_in_use");
    assert_vsctl(f, "1450", "get", "interface", "tun0", "mtu");
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "tun_src=192.168.0.2"), 3);
    assert_int_equal(fixture_count(flows, "->tun_dst"), 2);
    CLEANUP_STRBUF struct strbuf frags = STRBUF_INIT;
    OVS_RUN(&f->ovs, &frags, "ovs-ofctl", "-O", "OpenFlow14", "get-frags", "br0");
    assert_non_null(strstr(strbuf_cstr(&frags), "nx-match"));
    struct datapath_status s;
    datapath_get_status(f->dp, &s);
    assert_true(s.connected && s.in_place);
    assert_int_equal(s.rules, fixture_count(flows, "\n"));
    assert_int_equal(f->n_lost, 0);
    assert_int_equal(f->n_ready, 1);
}

static void second_start_changes_nothing(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    for (unsigned n = 0; n < 5; n++) {
        fixture_make_veth(f, n);
        assert_int_equal(fixture_attach(f, n), 0);
    }
    CLEANUP_FREE char *flows = fixture_flows(f);
    CLEANUP_FREE char *cfg = FIXTURE_VSCTL(f, "get", "open_vswitch", ".", "next_cfg");

    fixture_restart_agent(f);
    struct ovs_counters c = ovs_get_counters(f->dp);
    assert_int_equal(c.transactions, 0);
    assert_int_equal(c.bundles, 0);
    assert_int_equal(c.flow_mods, 0);
    assert_int_equal(c.dumps, 1);
    CLEANUP_FREE char *again = fixture_flows(f);
    assert_same_flows(again, flows);
    assert_vsctl(f, cfg, "get", "open_vswitch", ".", "next_cfg");
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(f->dp, &n);
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) {
        assert_true(pods[i]->ready);
    }
}

static void inventory_comes_before_the_network_is_set(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 7);
    assert_int_equal(fixture_attach(f, 7), 0);
    fixture_close(f);
    fixture_open(f);
    fixture_wait(f, &f->inventory);
    struct dp_pod want;
    fixture_pod(7, &want);
    const struct dp_pod *p = datapath_find(f->dp, "container-7", "eth0");
    assert_non_null(p);
    assert_true(str_has_prefix(p->port, "tp"));
    snprintf(want.port, sizeof want.port, "%s", p->port);
    assert_true(pod_equal(p, &want));
    assert_null(datapath_find(f->dp, "container-8", "eth0"));
    assert_int_equal(f->n_inventory, 1);
    assert_int_equal(f->n_ready, 0);
}

static void changed_remotes_touch_their_flows_only(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP_FREE char *before = fixture_flows(f);
    struct ovs_counters a = ovs_get_counters(f->dp);
    fixture_add_remote(f, 3);
    f->ready = false;
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->ready);
    struct ovs_counters b = ovs_get_counters(f->dp);
    assert_int_equal(b.flow_mods - a.flow_mods, 5);
    assert_int_equal(b.bundles - a.bundles, 1);
    assert_int_equal(b.transactions, a.transactions);
    CLEANUP_FREE char *with = fixture_flows(f);
    assert_int_equal(fixture_count(with, "tun_src=192.168.0.4"), 3);

    f->net.n_remotes--;
    f->ready = false;
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->ready);
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_same_flows(after, before);

    /* Nothing to do is 'ready' too. */
    b = ovs_get_counters(f->dp);
    f->ready = false;
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->ready);
    assert_int_equal(ovs_get_counters(f->dp).bundles, b.bundles);
}

/* ---- pods ---- */

static void attached_pod_has_port_identity_and_flows(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP_FREE char *without = fixture_flows(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    assert_vsctl(f, "container-1", "get", "interface", fixture_port_of(f, 1),
                 "external_ids:sandbox");
    assert_vsctl(f, "\"10.128.0.3\"", "get", "interface", fixture_port_of(f, 1), "external_ids:ip");
    assert_vsctl(f, "\"101\"", "get", "interface", fixture_port_of(f, 1),
                 "external_ids:tenet-vnid");
    CLEANUP_FREE char *number =
        FIXTURE_VSCTL(f, "get", "interface", fixture_port_of(f, 1), "ofport");
    assert_string_equal(number, fixture_port_of(f, 1) + strlen("tp"));
    CLEANUP_FREE char *in_port = xasprintf("in_port=%s,", number);
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, in_port), 4);
    assert_int_equal(fixture_count(flows, "reg0=0x65,reg1=0x65"), 1);
    const struct dp_pod *p = datapath_find(f->dp, "container-1", "eth0");
    assert_true(p && p->ready);

    assert_int_equal(fixture_detach(f, 1), 0);
    assert_flows_become(f, without);
    assert_links(f, "");
    assert_null(datapath_find(f->dp, "container-1", "eth0"));
    assert_int_equal(fixture_detach(f, 1), 0);
    assert_int_equal(fixture_detach(f, 2), 0);
}

static void fifty_pods_at_once_share_transactions_and_bundles(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP_FREE char *without = fixture_flows(f);
    struct outcome o[50] = {0};
    for (unsigned n = 0; n < 50; n++) {
        fixture_make_veth(f, n);
    }
    struct ovs_counters a = ovs_get_counters(f->dp);
    uint64_t t = time_mono_ns();
    for (unsigned n = 0; n < 50; n++) {
        struct dp_pod p;
        fixture_pod(n, &p);
        datapath_attach(f->dp, &p, fixture_port, fixture_done, &o[n]);
    }
    for (unsigned n = 0; n < 50; n++) {
        fixture_wait(f, &o[n].done);
        assert_int_equal(o[n].error, 0);
    }
    print_message("50 pods attached in %.1f ms\n", (double) (time_mono_ns() - t) / 1e6);
    struct ovs_counters b = ovs_get_counters(f->dp);
    assert_true(b.transactions - a.transactions <= 25); /* Most wait for ports to be made. */
    assert_true(b.bundles - a.bundles <= 25);
    assert_int_equal(b.flow_mods - a.flow_mods, 50 * 7 + 4);
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "\n"), fixture_count(without, "\n") + 50 * 7 + 4);

    struct outcome d[50] = {0};
    for (unsigned n = 0; n < 50; n++) {
        struct dp_pod p;
        fixture_pod(n, &p);
        datapath_detach(f->dp, p.container_id, p.ifname, fixture_done, &d[n]);
    }
    for (unsigned n = 0; n < 50; n++) {
        fixture_wait(f, &d[n].done);
        assert_int_equal(d[n].error, 0);
    }
    assert_flows_become(f, without);
    assert_links(f, "");
}

static void pods_may_be_attached_before_all_is_ready(void **state)
{
    NEEDS_OVS
    fixture_open(f);
    fixture_make_veth(f, 1);
    struct outcome o = {0};
    struct dp_pod p;
    fixture_pod(1, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &o.done);
    assert_int_equal(o.error, 0);
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "nw_src=10.128.0.3"), 1);
}

static void names_and_addresses_in_use_are_refused(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_make_veth(f, 2);
    assert_int_equal(fixture_attach(f, 1), 0);
    struct dp_pod p;
    struct outcome ip = {0}, port = {0};
    fixture_pod(1, &p);
    p.container_id = (char *) "other";
    snprintf(p.host_if, sizeof p.host_if, "vp2");
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &ip);
    fixture_wait(f, &ip.done);
    assert_int_equal(ip.error, -EADDRINUSE);
    assert_non_null(strstr(ip.text, "10.128.0.3 is attached to red/pod-1"));
    p.ip++;
    snprintf(p.host_if, sizeof p.host_if, "vp1");
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &port);
    fixture_wait(f, &port.done);
    assert_int_equal(port.error, -EEXIST);
    assert_links(f, "vp1");
    size_t n;
    datapath_pods(f->dp, &n);
    assert_int_equal(n, 1);
}

static void second_attach_of_a_container_replaces_the_first(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_make_veth(f, 9);
    assert_int_equal(fixture_attach(f, 1), 0);
    /* The same again needs no change at all. */
    struct ovs_counters a = ovs_get_counters(f->dp);
    assert_int_equal(fixture_attach(f, 1), 0);
    struct ovs_counters b = ovs_get_counters(f->dp);
    assert_int_equal(a.transactions, b.transactions);
    assert_int_equal(a.flow_mods, b.flow_mods);
    /* Another port and address. */
    struct dp_pod p;
    struct outcome o = {0};
    fixture_pod(1, &p);
    p.ip = 0x0a800050;
    p.mac = mac_from_ip4(p.ip);
    snprintf(p.host_if, sizeof p.host_if, "vp9");
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    fixture_wait(f, &o.done);
    assert_int_equal(o.error, 0);
    assert_links(f, "vp9");
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "nw_src=10.128.0.3"), 0);
    assert_int_equal(fixture_count(flows, "nw_src=10.128.0.80"), 1);
}

static void attach_right_after_detach_works(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    for (int i = 0; i < 5; i++) {
        struct dp_pod p;
        struct outcome d = {0}, a = {0};
        fixture_pod(1, &p);
        datapath_detach(f->dp, p.container_id, p.ifname, fixture_done, &d);
        if (i % 2) {
            fixture_wait(f, &d.done);
        }
        datapath_attach(f->dp, &p, fixture_port, fixture_done, &a);
        fixture_wait(f, &d.done);
        fixture_wait(f, &a.done);
        assert_int_equal(d.error, 0);
        assert_int_equal(a.error, 0);
        assert_true(datapath_find(f->dp, p.container_id, p.ifname)->ready);
    }
    assert_links(f, "vp1");
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "nw_src=10.128.0.3"), 1);
}

static void detach_during_attach_cancels_it(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP_FREE char *without = fixture_flows(f);
    fixture_make_veth(f, 1);
    struct dp_pod p;
    struct outcome a = {0}, d = {0};
    fixture_pod(1, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &a);
    datapath_detach(f->dp, p.container_id, p.ifname, fixture_done, &d);
    fixture_wait(f, &a.done);
    fixture_wait(f, &d.done);
    assert_int_equal(a.error, -ECANCELED);
    assert_int_equal(d.error, 0);
    assert_flows_become(f, without);
    assert_links(f, "");
}

static void changed_vnid_moves_flows_and_identity_in_one_bundle(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    for (unsigned n = 1; n <= 4; n++) {
        fixture_make_veth(f, n);
        assert_int_equal(fixture_attach(f, n), 0);
    }
    fixture_wait_for_ports(f); /* Whose transactions are not to be counted. */
    struct ovs_counters a = ovs_get_counters(f->dp);
    datapath_set_vnids(f->dp, "red", &(struct sdn_vnids){.id = 555});
    while (ovs_get_counters(f->dp).transactions == a.transactions ||
           !datapath_find(f->dp, "container-1", "eth0")->ready) {
        bool never = false;
        loop_run_until(f->loop, &never, 5);
    }
    struct ovs_counters b = ovs_get_counters(f->dp);
    assert_int_equal(b.bundles - a.bundles, 1);
    assert_int_equal(b.transactions - a.transactions, 1);
    assert_vsctl(f, "\"555\"", "get", "interface", fixture_port_of(f, 1),
                 "external_ids:tenet-vnid");
    assert_vsctl(f, "\"102\"", "get", "interface", fixture_port_of(f, 2),
                 "external_ids:tenet-vnid");
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "reg0=0x22b,reg1=0x22b"), 1);
    assert_int_equal(fixture_count(flows, "reg0=0x65,reg1=0x65"), 0);
    fixture_restart_agent(f);
    assert_int_equal(datapath_find(f->dp, "container-3", "eth0")->vnid, 555);
    assert_int_equal(ovs_get_counters(f->dp).flow_mods, 0);
}

static void pod_without_device_stays_listed_but_not_ready(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_make_veth(f, 2);
    assert_int_equal(fixture_attach(f, 1), 0);
    assert_int_equal(fixture_attach(f, 2), 0);
    CLEANUP_FREE char *port = xstrdup(fixture_port_of(f, 1));
    fixture_close(f);
    fixture_kill_vswitchd(f);
    assert_int_equal(rtnl_link_del(f->rtnl, port, NULL), 0);
    fixture_start_vswitchd(f);
    fixture_up(f);
    size_t n;
    datapath_pods(f->dp, &n);
    assert_int_equal(n, 2);
    assert_false(datapath_find(f->dp, "container-1", "eth0")->ready);
    assert_true(datapath_find(f->dp, "container-2", "eth0")->ready);
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "nw_src=10.128.0.3"), 0);
    assert_int_equal(fixture_count(flows, "nw_src=10.128.0.4"), 1);
    /* The same container gets another port. */
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *again = fixture_flows(f);
    assert_int_equal(fixture_count(again, "nw_src=10.128.0.3"), 1);
}

/* ---- the pool of ports ---- */

static size_t spare_ports(struct fixture *f)
{
    struct datapath_status s;
    datapath_get_status(f->dp, &s);
    return s.spare_ports;
}

static void wait_for_spare_ports(struct fixture *f, size_t min, size_t max)
{
    bool never = false;
    for (uint64_t end = time_mono_ms() + WAIT_MS; spare_ports(f) < min || spare_ports(f) > max;) {
        loop_run_until(f->loop, &never, 5);
        if (time_mono_ms() >= end) {
            fail_msg("%zu spare ports after %d ms instead of %zu to %zu", spare_ports(f), WAIT_MS,
                     min, max);
        }
    }
}

static void port_goes_back_to_the_pool_and_is_used_again(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    size_t spare = spare_ports(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    assert_int_equal(spare_ports(f), spare - 1);
    CLEANUP_FREE char *before = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_int_equal(fixture_detach(f, 1), 0);
    wait_for_spare_ports(f, spare, spare);
    assert_vsctl(f, before, "list-ports", "br0");
    for (unsigned n = 0; n < 60; n++) { /* More than there are. */
        assert_int_equal(fixture_attach(f, n % 3), 0);
        assert_int_equal(fixture_detach(f, n % 3), 0);
    }
    wait_for_spare_ports(f, spare, spare);
    assert_vsctl(f, before, "list-ports", "br0");
}

static void address_does_not_get_its_port_again_at_once(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    size_t spare = spare_ports(f);
    for (unsigned n = 0; n < 5; n++) {
        assert_int_equal(fixture_attach(f, 1), 0);
        CLEANUP_FREE char *port = xstrdup(fixture_port_of(f, 1));
        assert_int_equal(fixture_detach(f, 1), 0);
        assert_int_equal(fixture_attach(f, 1), 0);
        assert_string_not_equal(fixture_port_of(f, 1), port);
        assert_int_equal(fixture_detach(f, 1), 0);
        wait_for_spare_ports(f, spare, spare);
    }
}

static void device_of_a_spare_port_comes_back(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    size_t spare = spare_ports(f);
    assert_int_equal(rtnl_link_del(f->rtnl, "tp3", NULL), 0);
    datapath_link_gone(f->dp, "tp3");
    assert_int_equal(spare_ports(f), spare - 1);
    /* Another port takes its place in time, and all have a device. */
    unsigned n = 0;
    for (; n < spare + 2; n++) {
        assert_int_equal(fixture_attach(f, n), 0);
        struct rtnl_link l;
        assert_int_equal(rtnl_link_get(f->rtnl, fixture_port_of(f, n), &l, NULL), 0);
    }
    fixture_wait_for_ports(f);
}

static void foreign_port_with_a_name_of_the_pool_is_left_alone(void **state)
{
    NEEDS_OVS
    struct rtnl_veth v = {.name = "tp3", .peer_name = "other", .peer_ns_fd = -1, .up = true};
    assert_int_equal(rtnl_veth_add(f->rtnl, &v, NULL), 0);
    OVS_VSCTL(&f->ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "--",
              "add-port", "br0", "tp3", "--", "set", "interface", "tp3", "ofport_request=77");
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    assert_string_not_equal(fixture_port_of(f, 1), "tp3");
    assert_vsctl(f, "77", "get", "interface", "tp3", "ofport");
    assert_vsctl(f, "{}", "get", "interface", "tp3", "external_ids");
}

static void many_spare_ports_go_when_it_is_quiet(void **state)
{
    NEEDS_OVS
    enum { N = 70 };
    fixture_up(f);
    struct outcome o[N] = {0};
    struct dp_pod p;
    for (unsigned n = 0; n < N; n++) {
        fixture_pod(n, &p);
        datapath_attach(f->dp, &p, fixture_port, fixture_done, &o[n]);
    }
    for (unsigned n = 0; n < N; n++) {
        fixture_wait(f, &o[n].done);
        assert_int_equal(o[n].error, 0);
    }
    for (unsigned n = 0; n < N; n++) {
        assert_int_equal(fixture_detach(f, n), 0);
    }
    wait_for_spare_ports(f, N, SIZE_MAX);
    size_t many = spare_ports(f);
    ovs_set_quiet_ms(f->dp, 100);
    wait_for_spare_ports(f, 1, many - 2);
    CLEANUP_FREE char *rows = FIXTURE_VSCTL(f, "list-ports", "br0");
    struct rtnl_link *links;
    size_t n_links, devices = 0;
    /* Rows and devices go together; the last one's row or device may be on its way. */
    assert_int_equal(rtnl_link_list(f->rtnl, &links, &n_links, NULL), 0);
    for (size_t i = 0; i < n_links; i++) {
        devices += str_has_prefix(links[i].name, "tp") && !str_has_suffix(links[i].name, "x");
    }
    free(links);
    assert_in_range(devices, fixture_count(rows, "tp") - 1, fixture_count(rows, "tp") + 1);
}

static void pods_of_an_earlier_version_stay_until_they_go(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_close(f);
    OVS_VSCTL(
        &f->ovs, "add-port", "br0", "vp1", "--", "set", "interface", "vp1",
        "external_ids={tenet-container=container-1,tenet-ifname=eth0,tenet-namespace=red,"
        "tenet-pod=pod-1,tenet-ip=10.128.0.3,tenet-mac=\"0a:58:0a:80:00:03\",tenet-vnid=101}");
    fixture_up(f);
    const struct dp_pod *p = datapath_find(f->dp, "container-1", "eth0");
    assert_true(p && p->ready);
    assert_string_equal(p->port, "vp1");
    assert_string_equal(p->host_if, "vp1");
    CLEANUP_FREE char *with = fixture_flows(f);
    assert_int_equal(fixture_count(with, "nw_src=10.128.0.3"), 1);
    assert_int_equal(fixture_detach(f, 1), 0);
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_int_equal(fixture_count(ports, "vp1"), 0);
}

/* ---- faults ---- */

static void flows_and_ports_return_after_the_switch_restarted(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    for (unsigned n = 0; n < 3; n++) {
        fixture_make_veth(f, n);
        assert_int_equal(fixture_attach(f, n), 0);
    }
    CLEANUP_FREE char *before = fixture_flows(f);
    f->ready = false;
    fixture_kill_vswitchd(f);
    fixture_wait(f, &f->lost);
    assert_non_null(strstr(f->reason, "ovs-vswitchd"));
    bool never = false;
    loop_run_until(f->loop, &never, 400);
    assert_int_equal(f->n_lost, 1);
    uint64_t t = time_mono_ms();
    fixture_start_vswitchd(f);
    uint64_t back = time_mono_ms();
    fixture_wait(f, &f->ready);
    uint64_t now = time_mono_ms();
    print_message("in place %u ms after the switch was started, %u ms after it was back\n",
                  (unsigned) (now - t), (unsigned) (now - back));
    assert_true(now - back < 1000);
    assert_flows_become(f, before); /* The pods' come as their ports get numbers. */
    assert_true(datapath_find(f->dp, "container-2", "eth0")->ready);
    assert_int_equal(f->n_lost, 1);
}

static void database_server_restart_disturbs_nothing(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *before = fixture_flows(f);
    struct ovs_counters a = ovs_get_counters(f->dp);
    f->ready = false;
    fixture_kill_ovsdb(f);
    fixture_wait(f, &f->lost);
    /* A pod cannot be served meanwhile; one that goes is detached when it is back. */
    fixture_make_veth(f, 2);
    struct outcome o = {0}, d = {0};
    struct dp_pod p;
    fixture_pod(2, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    datapath_detach(f->dp, "container-1", "eth0", fixture_done, &d);
    fixture_wait(f, &o.done);
    assert_int_equal(o.error, -ENOTCONN);
    assert_false(d.done);
    fixture_start_ovsdb(f);
    fixture_wait(f, &f->ready);
    fixture_wait(f, &d.done);
    assert_int_equal(d.error, 0);
    assert_int_equal(f->n_lost, 1);
    assert_int_equal(fixture_attach(f, 2), 0);
    assert_links(f, "vp2");
    assert_int_equal(ovs_get_counters(f->dp).dumps, a.dumps);
    assert_int_equal(fixture_detach(f, 2), 0);
}

static void empty_database_after_a_restart_is_filled_again(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *before = fixture_flows(f);
    f->ready = false;
    fixture_kill_vswitchd(f);
    fixture_kill_ovsdb(f);
    fixture_wait(f, &f->lost);
    char conf[64];
    snprintf(conf, sizeof conf, "%s/conf.db", f->ovs.dir);
    assert_int_equal(unlink(conf), 0);
    OVS_RUN(&f->ovs, NULL, "ovsdb-tool", "create", conf,
            "/usr/share/openvswitch/vswitch.ovsschema");
    fixture_start_ovsdb(f);
    OVS_VSCTL(&f->ovs, "--no-wait", "init");
    fixture_start_vswitchd(f);
    fixture_wait(f, &f->ready);
    while (!datapath_find(f->dp, "container-1", "eth0")->ready) {
        bool never = false;
        loop_run_until(f->loop, &never, 5);
    }
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_same_flows(after, before);
    assert_links(f, "vp1");
    assert_int_equal(f->n_lost, 1);
}

static void missing_ovs_is_said_once(void **state)
{
    NEEDS_OVS
    fixture_kill_vswitchd(f);
    fixture_kill_ovsdb(f);
    fixture_open(f);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->lost);
    assert_non_null(strstr(f->reason, "db.sock"));
    bool never = false;
    loop_run_until(f->loop, &never, 300);
    assert_int_equal(f->n_lost, 1);
    fixture_start_ovsdb(f);
    fixture_start_vswitchd(f);
    fixture_wait(f, &f->ready);
    assert_int_equal(f->n_inventory, 1);
}

static void attach_without_switch_ends_at_once_and_leaves_nothing(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_kill_vswitchd(f);
    fixture_wait(f, &f->lost);
    uint64_t start = time_mono_ms();
    assert_int_equal(fixture_attach(f, 1), -ENOTCONN);
    assert_true(time_mono_ms() - start < AT_ONCE_MS);
    assert_int_equal(f->n_refused, 0);
    assert_links(f, "");
    assert_null(datapath_find(f->dp, "container-1", "eth0"));
}

/* The request is under way when the switch goes. */
static void attach_that_loses_the_switch_ends_at_once(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_signal(f, "vswitchd", SIGSTOP);
    struct dp_pod p;
    struct outcome o = {0};
    fixture_pod(1, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    bool never = false;
    loop_run_until(f->loop, &never, 50);
    assert_false(o.done);
    uint64_t start = time_mono_ms();
    fixture_kill_vswitchd(f);
    fixture_wait(f, &o.done);
    assert_true(time_mono_ms() - start < AT_ONCE_MS);
    assert_int_equal(o.error, -ENOTCONN);
    assert_int_equal(f->n_lost, 1);
    assert_non_null(strstr(f->reason, "ovs-vswitchd"));
    assert_null(datapath_find(f->dp, "container-1", "eth0"));
}

/* A refused flow is no loss of the switch, and the pods that need it fail at once. */
static void refused_flow_fails_its_pod_at_once_and_is_no_loss(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP_FREE char *flows = fixture_flows(f);
    fixture_make_veth(f, 1);
    OVS_VSCTL(&f->ovs, "--", "--id=@t", "create", "Flow_Table", "flow_limit=2",
              "overflow_policy=refuse", "--", "set", "bridge", "br0", "flow_tables:20=@t");
    f->ready = false;
    uint64_t start = time_mono_ms();
    struct dp_pod p;
    struct outcome o = {0};
    fixture_pod(1, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    fixture_wait(f, &f->refused);
    assert_non_null(strstr(f->reason, "the switch refused the flows: flow "));
    assert_non_null(strstr(f->reason, "table=20,from-pod"));
    assert_non_null(strstr(f->reason, "table full"));
    fixture_wait(f, &o.done);
    assert_true(time_mono_ms() - start < AT_ONCE_MS);
    assert_int_equal(o.error, -EIO);
    assert_int_equal(f->n_refused, 1);
    assert_int_equal(f->n_lost, 0);
    /* What the pod asked for is no more: the rest is in place again. */
    fixture_wait(f, &f->ready);
    assert_links(f, "");
    CLEANUP_FREE char *refused = fixture_flows(f);
    assert_same_flows(refused, flows);
    fixture_make_veth(f, 3);
    f->ready = false;
    assert_int_equal(fixture_attach(f, 3), -EIO);
    assert_int_equal(f->n_refused, 2);
    assert_int_equal(f->n_lost, 0);
    OVS_VSCTL(&f->ovs, "clear", "bridge", "br0", "flow_tables");
    fixture_wait(f, &f->ready);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_int_equal(fixture_count(after, "nw_src=10.128.0.3"), 1);
}

/* After the first pod the commit is sent together with the flows. */
static void refused_flows_of_a_later_pod_are_taken_back(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_make_veth(f, 3);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *flows = fixture_flows(f);
    OVS_VSCTL(&f->ovs, "--", "--id=@t", "create", "Flow_Table", "flow_limit=2",
              "overflow_policy=refuse", "--", "set", "bridge", "br0", "flow_tables:70=@t");
    f->ready = false;
    assert_int_equal(fixture_attach(f, 3), -EIO);
    assert_non_null(strstr(f->reason, "table=70,local"));
    fixture_wait(f, &f->ready);
    CLEANUP_FREE char *refused = fixture_flows(f);
    assert_same_flows(refused, flows);
    OVS_VSCTL(&f->ovs, "clear", "bridge", "br0", "flow_tables");
    assert_int_equal(fixture_attach(f, 3), 0);
}

static void hung_switch_is_said_and_survived(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_signal(f, "vswitchd", SIGSTOP);
    f->ready = false;
    f->net.mtu = 1400; /* Needs ovs-vswitchd to do something. */
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->lost);
    assert_non_null(strstr(f->reason, "ovs-vswitchd does not answer"));
    fixture_signal(f, "vswitchd", SIGCONT);
    fixture_wait(f, &f->ready);
    assert_vsctl(f, "1400", "get", "interface", "tun0", "mtu");
    assert_int_equal(f->n_lost, 1);
}

static unsigned rnd(unsigned *seed, unsigned n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static void random_faults_end_in_what_was_asked_for_last(void **state)
{
    NEEDS_OVS
    enum { PODS = 12, STEPS = 150 };
    static struct outcome outcomes[STEPS];
    memset(outcomes, 0, sizeof outcomes);
    const struct outcome *last[PODS] = {NULL};
    bool wanted[PODS] = {false}, vswitchd = true, ovsdb = true;
    fixture_up(f);
    for (unsigned n = 0; n < PODS; n++) {
        fixture_make_veth(f, n);
    }
    unsigned seed = 20261121;
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned what = rnd(&seed, 20), n = rnd(&seed, PODS);
        outcomes[i].done = true;
        if (what == 0 && vswitchd) {
            fixture_kill_vswitchd(f);
            vswitchd = false;
        } else if (what == 1 && ovsdb) {
            fixture_kill_ovsdb(f);
            ovsdb = false;
        } else if (what < 6 && !ovsdb) {
            fixture_start_ovsdb(f);
            ovsdb = true;
        } else if (what < 6 && !vswitchd && ovsdb) {
            fixture_start_vswitchd(f);
            vswitchd = true;
        } else {
            struct dp_pod p;
            fixture_pod(n, &p);
            outcomes[i].done = false;
            last[n] = &outcomes[i];
            wanted[n] = what % 3 != 0;
            if (wanted[n]) {
                datapath_attach(f->dp, &p, fixture_port, fixture_done, &outcomes[i]);
            } else {
                datapath_detach(f->dp, p.container_id, p.ifname, fixture_done, &outcomes[i]);
            }
        }
        bool never = false;
        loop_run_until(f->loop, &never, 1 + rnd(&seed, 8));
    }
    if (!ovsdb) {
        fixture_start_ovsdb(f);
    }
    if (!vswitchd) {
        fixture_start_vswitchd(f);
    }
    for (unsigned i = 0; i < STEPS; i++) {
        fixture_wait(f, &outcomes[i].done);
    }
    for (unsigned n = 0; n < PODS; n++) {
        char id[32];
        snprintf(id, sizeof id, "container-%u", n);
        const struct dp_pod *p = datapath_find(f->dp, id, "eth0");
        if (wanted[n] && last[n]->error == -ENOTCONN) {
            wanted[n] = false; /* It could not be served just then, and nothing of it stays. */
        } else {
            assert_true(!last[n] || last[n]->error == 0);
        }
        assert_int_equal(p != NULL, wanted[n]);
        assert_true(!p || p->ready);
        if (!wanted[n]) {
            continue;
        }
        assert_vsctl(f, "br0", "port-to-br", fixture_port_of(f, n));
    }
    size_t n_pods;
    datapath_pods(f->dp, &n_pods);
    CLEANUP_FREE char *links = fixture_links(f);
    while (fixture_count(links, "vp") != n_pods) { /* Ports of pods that failed go afterwards. */
        bool never = false;
        loop_run_until(f->loop, &never, 20);
        links = (free(links), fixture_links(f));
    }
    /* A fresh agent finds nothing to change. */
    struct datapath_status s;
    datapath_get_status(f->dp, &s);
    while (fixture_count_flows(f) != s.rules || !ovs_ports_are_settled(f->dp)) {
        bool never = false;
        loop_run_until(f->loop, &never, 5);
        datapath_get_status(f->dp, &s);
    }
    fixture_restart_agent(f);
    assert_int_equal(ovs_get_counters(f->dp).flow_mods, 0);
    /* Spare ports may be too few, or too many, after attachments that failed without
     * the database. */
    for (int i = 0; i < 3 && ovs_get_counters(f->dp).transactions; i++) {
        while (!ovs_ports_are_settled(f->dp)) {
            bool never = false;
            loop_run_until(f->loop, &never, 5);
        }
        fixture_restart_agent(f);
    }
    assert_int_equal(ovs_get_counters(f->dp).flow_mods, 0);
    assert_int_equal(ovs_get_counters(f->dp).transactions, 0);
}

static void close_and_say(void *ctx, int error, const char *text)
{
    struct fixture *f = ctx;
    f->dp = datapath_close(f->dp);
    f->fatal = true;
}

static void datapath_may_be_closed_from_a_callback(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    struct outcome never = {0};
    struct dp_pod p;
    fixture_pod(1, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &never);
    datapath_detach(f->dp, "nobody", "eth0", close_and_say, f);
    fixture_wait(f, &f->fatal);
    assert_null(f->dp);
    assert_false(never.done);
}

/* ---- leftovers ---- */

static void wrong_flows_are_mended_at_start(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *before = fixture_flows(f);
    fixture_close(f);
    OVS_RUN(&f->ovs, NULL, "ovs-ofctl", "add-flow", "br0", "table=7,priority=3,ip,actions=drop");
    OVS_RUN(&f->ovs, NULL, "ovs-ofctl", "del-flows", "br0", "table=40");
    OVS_RUN(&f->ovs, NULL, "ovs-ofctl", "mod-flows", "br0", "table=20,actions=drop");
    fixture_up(f);
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_same_flows(after, before);
    assert_int_equal(ovs_get_counters(f->dp).bundles, 1);
}

static void flows_changed_by_others_are_mended_by_the_audit(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP_FREE char *before = fixture_flows(f);
    OVS_RUN(&f->ovs, NULL, "ovs-ofctl", "del-flows", "br0");
    ovs_set_audit_ms(f->dp, 50);
    struct ovs_counters a = ovs_get_counters(f->dp);
    bool never = false;
    while (ovs_get_counters(f->dp).dumps < a.dumps + 3) {
        loop_run_until(f->loop, &never, 20);
    }
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_same_flows(after, before);
    /* The later audits found nothing. */
    assert_int_equal(ovs_get_counters(f->dp).bundles, a.bundles + 1);
    assert_int_equal(f->n_lost, 0);
}

static void changed_bridge_is_mended_at_once(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    f->ready = false;
    OVS_VSCTL(&f->ovs, "--no-wait", "set", "interface", "vxlan0", "options:dst_port=1234",
              "options:csum=true");
    fixture_wait(f, &f->ready);
    assert_vsctl(f, "{dst_port=\"4789\", key=flow, remote_ip=flow}", "get", "interface", "vxlan0",
                 "options");
    f->ready = false;
    OVS_VSCTL(&f->ovs, "--no-wait", "del-port", "tun0", "--", "set-fail-mode", "br0", "standalone");
    fixture_wait(f, &f->ready);
    assert_vsctl(f, "2", "get", "interface", "tun0", "ofport");
    assert_vsctl(f, "secure", "get-fail-mode", "br0");
    assert_true(datapath_find(f->dp, "container-1", "eth0")->ready);
    assert_int_equal(f->n_lost, 0);
    /* This one makes the switch drop our connection. */
    f->ready = false;
    OVS_VSCTL(&f->ovs, "--no-wait", "set", "bridge", "br0", "protocols=OpenFlow13");
    fixture_wait(f, &f->ready);
    assert_vsctl(f, "[OpenFlow13, OpenFlow14]", "get", "bridge", "br0", "protocols");
}

static void half_a_bridge_is_completed_and_foreign_ports_stay(void **state)
{
    NEEDS_OVS
    fixture_make_veth(f, 3);
    OVS_VSCTL(&f->ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "--",
              "add-port", "br0", "vp3", "--", "set", "interface", "vp3", "ofport_request=77", "--",
              "add-port", "br0", "vxlan0", "--", "set", "interface", "vxlan0", "type=vxlan",
              "options:remote_ip=1.2.3.4");
    fixture_up(f);
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_int_equal(fixture_count(ports, "vp3"), 1);
    assert_vsctl(f, "{dst_port=\"4789\", key=flow, remote_ip=flow}", "get", "interface", "vxlan0",
                 "options");
    assert_vsctl(f, "1", "get", "interface", "vxlan0", "ofport");
    assert_vsctl(f, "secure", "get-fail-mode", "br0");
    size_t n;
    datapath_pods(f->dp, &n);
    assert_int_equal(n, 0);
}

static void port_removed_by_hand_comes_back(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *before = fixture_flows(f);
    OVS_VSCTL(&f->ovs, "--no-wait", "del-port", fixture_port_of(f, 1));
    struct ovs_counters a = ovs_get_counters(f->dp);
    bool never = false;
    while (ovs_get_counters(f->dp).transactions == a.transactions ||
           !datapath_find(f->dp, "container-1", "eth0")->ready) {
        loop_run_until(f->loop, &never, 5);
    }
    CLEANUP_FREE char *after = fixture_flows(f);
    assert_same_flows(after, before);
}

static void bridge_deleted_by_hand_comes_back_with_its_pods(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    fixture_make_veth(f, 2);
    assert_int_equal(fixture_attach(f, 1), 0);
    assert_int_equal(fixture_attach(f, 2), 0);
    CLEANUP_FREE char *before = fixture_flows(f);
    f->ready = false;
    OVS_VSCTL(&f->ovs, "--no-wait", "del-br", "br0");
    fixture_wait(f, &f->ready);
    bool never = false;
    while (!datapath_find(f->dp, "container-1", "eth0")->ready ||
           !datapath_find(f->dp, "container-2", "eth0")->ready) {
        loop_run_until(f->loop, &never, 5);
    }
    assert_flows_become(f, before);
    assert_links(f, "vp1 vp2");
}

/* ---- what cannot be ---- */

static void fatal_is_said_and_nothing_left(struct fixture *f, const char *reason)
{
    fixture_open(f);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->fatal);
    if (!strstr(f->reason, reason)) {
        fail_msg("\"%s\" does not say \"%s\"", f->reason, reason);
    }
    assert_int_equal(f->n_ready, 0);
}

static void taken_device_name_is_fatal_and_undone(void **state)
{
    NEEDS_OVS
    struct rtnl_veth v = {.name = "tun0", .peer_name = "other", .peer_ns_fd = -1, .up = true};
    assert_int_equal(rtnl_veth_add(f->rtnl, &v, NULL), 0);
    fatal_is_said_and_nothing_left(f, "tun0: could not open network device tun0");
    assert_no_traces(f);
    /* Once the reason is gone the same network can be set. */
    assert_int_equal(rtnl_link_del(f->rtnl, "tun0", NULL), 0);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->ready);
}

static void taken_tunnel_is_fatal_and_undone(void **state)
{
    NEEDS_OVS
    OVS_VSCTL(&f->ovs, "add-br", "br9", "--", "set", "bridge", "br9", "datapath_type=netdev", "--",
              "add-port", "br9", "vx9", "--", "set", "interface", "vx9", "type=vxlan",
              "options:remote_ip=flow", "options:key=flow", "options:dst_port=4789");
    fatal_is_said_and_nothing_left(f, "vxlan0: could not add network device vxlan0");
    assert_vsctl(f, "br9", "list-br");
}

static void port_of_another_bridge_is_fatal_and_nothing_written(void **state)
{
    NEEDS_OVS
    OVS_VSCTL(&f->ovs, "add-br", "br9", "--", "set", "bridge", "br9", "datapath_type=netdev", "--",
              "add-port", "br9", "tun0", "--", "set", "interface", "tun0", "type=internal");
    fatal_is_said_and_nothing_left(f, "tun0 is a port of another bridge");
    assert_int_equal(ovs_get_counters(f->dp).transactions, 0);
    assert_vsctl(f, "br9", "list-br");
}

static void missing_kernel_datapath_is_fatal(void **state)
{
    NEEDS_OVS
    if (kernel_has_datapath()) {
        LEAVE_OUT("this kernel has the openvswitch datapath");
    }
    f->datapath_type = "system";
    fatal_is_said_and_nothing_left(f, "the kernel has no openvswitch datapath");
    assert_no_traces(f);
    fixture_close(f);
    f->datapath_type = NULL;
    fixture_up(f);
    assert_vsctl(f, "netdev", "get", "bridge", "br0", "datapath_type");
}

static void changes_of_an_existing_bridge_are_taken_back(void **state)
{
    NEEDS_OVS
    struct rtnl_veth v = {.name = "tun0", .peer_name = "other", .peer_ns_fd = -1, .up = true};
    assert_int_equal(rtnl_veth_add(f->rtnl, &v, NULL), 0);
    OVS_VSCTL(&f->ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
              "fail_mode=standalone", "--", "add-port", "br0", "vxlan0", "--", "set", "interface",
              "vxlan0", "type=vxlan", "options:remote_ip=1.2.3.4", "ofport_request=9");
    fatal_is_said_and_nothing_left(f, "tun0: could not open network device tun0");
    assert_vsctl(f, "vxlan0", "list-ports", "br0");
    assert_vsctl(f, "{remote_ip=\"1.2.3.4\"}", "get", "interface", "vxlan0", "options");
    assert_vsctl(f, "9", "get", "interface", "vxlan0", "ofport_request");
    assert_vsctl(f, "standalone", "get-fail-mode", "br0");
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_string_equal(flows, " priority=0 actions=NORMAL\n");
}

static void bad_configuration_is_refused(void **state)
{
    NEEDS_OVS
    struct err e = {0};
    struct datapath *dp = NULL;
    struct datapath_config cfg = {.kind = "sneaker"};
    assert_int_equal(datapath_open(f->loop, &cfg, &(struct datapath_events){0}, NULL, &dp, &e),
                     -EINVAL);
    assert_non_null(strstr(e.text, "sneaker"));
    assert_int_equal(datapath_check_setting("ovs.datapathType", "carrier", &e), -EINVAL);
    assert_int_equal(datapath_check_setting("ovs.datapathType", "netdev", &e), 0);
    assert_int_equal(datapath_check_setting("ovs.bridge", "a-name-that-is-too-long", &e), -EINVAL);
    assert_int_equal(datapath_check_setting("ovs.colour", "red", &e), -ENOENT);
    assert_null(dp);
}

/* ---- size and speed ---- */

static void five_thousand_remotes_are_compared_in_milliseconds(void **state)
{
    NEEDS_OVS
    enum { N = 5000 };
    fixture_up(f);
    size_t base = fixture_count_flows(f) - 2 * 5;
    struct sdn_remote *remotes = xcalloc(N, sizeof *remotes);
    for (unsigned i = 0; i < N; i++) {
        remotes[i] = (struct sdn_remote){.host_ip = 0xc0000000 + i,
                                         .subnet = {0x0a810000 + i * 32, 27},
                                         .id = (uint64_t) i * 0x9e3779b97f4a7c15u};
    }
    f->net.remotes = remotes;
    f->net.n_remotes = N;
    f->ready = false;
    uint64_t t = time_mono_ns();
    datapath_set_network(f->dp, &f->net);
    uint64_t made = time_mono_ns() - t;
    fixture_wait(f, &f->ready);
    print_message("%d remotes: %.1f ms to make, %.0f ms until in place\n", N, (double) made / 1e6,
                  (double) (time_mono_ns() - t) / 1e6);
    assert_int_equal(fixture_count_flows(f), base + N * 5);

    struct ovs_counters a = ovs_get_counters(f->dp);
    remotes[77].host_ip += 2 * N;
    remotes[4711] = remotes[N - 1];
    f->net.n_remotes = N - 1;
    f->ready = false;
    t = time_mono_ns();
    datapath_set_network(f->dp, &f->net);
    made = time_mono_ns() - t;
    fixture_wait(f, &f->ready);
    print_message("one changed, one gone: %.2f ms to compare, %.1f ms until in place\n",
                  (double) made / 1e6, (double) (time_mono_ns() - t) / 1e6);
    /* Four flows with the old host go and come under another key, one is overwritten; five go. */
    assert_int_equal(ovs_get_counters(f->dp).flow_mods - a.flow_mods, 9 + 5);
    assert_true(made < 100 * 1000 * 1000);
    assert_int_equal(fixture_count_flows(f), base + (N - 1) * 5);

    fixture_restart_agent(f);
    assert_int_equal(ovs_get_counters(f->dp).flow_mods, 0);
    f->net.remotes = f->remotes;
    f->net.n_remotes = 0;
    free(remotes);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return x < y ? -1 : x > y;
}

static void latency_of_single_attaches_is_reported(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    enum { N = 30 };
    uint64_t attach[N], detach[N];
    for (unsigned n = 0; n < N; n++) {
        fixture_make_veth(f, n);
    }
    for (unsigned n = 0; n < N; n++) {
        uint64_t t = time_mono_ns();
        assert_int_equal(fixture_attach(f, n), 0);
        attach[n] = time_mono_ns() - t;
    }
    for (unsigned n = 0; n < N; n++) {
        uint64_t t = time_mono_ns();
        assert_int_equal(fixture_detach(f, n), 0);
        detach[n] = time_mono_ns() - t;
    }
    qsort(attach, N, sizeof *attach, compare_u64);
    qsort(detach, N, sizeof *detach, compare_u64);
    print_message("attach p50 %.2f ms max %.2f ms, detach p50 %.2f ms max %.2f ms\n",
                  (double) attach[N / 2] / 1e6, (double) attach[N - 1] / 1e6,
                  (double) detach[N / 2] / 1e6, (double) detach[N - 1] / 1e6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* An argument is a pattern of tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        T(bridge_is_set_up_from_nothing),
        T(second_start_changes_nothing),
        T(inventory_comes_before_the_network_is_set),
        T(changed_remotes_touch_their_flows_only),
        T(attached_pod_has_port_identity_and_flows),
        T(fifty_pods_at_once_share_transactions_and_bundles),
        T(pods_may_be_attached_before_all_is_ready),
        T(names_and_addresses_in_use_are_refused),
        T(second_attach_of_a_container_replaces_the_first),
        T(attach_right_after_detach_works),
        T(detach_during_attach_cancels_it),
        T(changed_vnid_moves_flows_and_identity_in_one_bundle),
        T(pod_without_device_stays_listed_but_not_ready),
        T(port_goes_back_to_the_pool_and_is_used_again),
        T(address_does_not_get_its_port_again_at_once),
        T(device_of_a_spare_port_comes_back),
        T(foreign_port_with_a_name_of_the_pool_is_left_alone),
        T(many_spare_ports_go_when_it_is_quiet),
        T(pods_of_an_earlier_version_stay_until_they_go),
        T(flows_and_ports_return_after_the_switch_restarted),
        T(database_server_restart_disturbs_nothing),
        T(empty_database_after_a_restart_is_filled_again),
        T(missing_ovs_is_said_once),
        T(attach_without_switch_ends_at_once_and_leaves_nothing),
        T(attach_that_loses_the_switch_ends_at_once),
        T(refused_flow_fails_its_pod_at_once_and_is_no_loss),
        T(refused_flows_of_a_later_pod_are_taken_back),
        T(hung_switch_is_said_and_survived),
        T(random_faults_end_in_what_was_asked_for_last),
        T(datapath_may_be_closed_from_a_callback),
        T(wrong_flows_are_mended_at_start),
        T(flows_changed_by_others_are_mended_by_the_audit),
        T(changed_bridge_is_mended_at_once),
        T(half_a_bridge_is_completed_and_foreign_ports_stay),
        T(port_removed_by_hand_comes_back),
        T(bridge_deleted_by_hand_comes_back_with_its_pods),
        T(taken_device_name_is_fatal_and_undone),
        T(taken_tunnel_is_fatal_and_undone),
        T(port_of_another_bridge_is_fatal_and_nothing_written),
        T(missing_kernel_datapath_is_fatal),
        T(changes_of_an_existing_bridge_are_taken_back),
        T(bad_configuration_is_refused),
        T(five_thousand_remotes_are_compared_in_milliseconds),
        T(latency_of_single_attaches_is_reported),
    };
    return cmocka_run_group_tests_name("datapath/ovs", tests, NULL, NULL);
}
