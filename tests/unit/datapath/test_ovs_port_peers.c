/* SPDX-License-Identifier: Apache-2.0 */
/* Other ends of ports in a namespace of their own, against a real Open vSwitch (needs
 * root and openvswitch-switch). */
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "datapath/ovs/port_peers.h"
#include "net/kernel/netns.h"
#include "ovs_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "leave_out.h"

#define WAIT_MS 20000

#define NEEDS_OVS                     \
    struct fixture *f = *state;       \
    if (ovs_unavailable()) {          \
        LEAVE_OUT(ovs_unavailable()); \
    }

static size_t spare_ports(struct fixture *f)
{
    struct datapath_status s;
    datapath_get_status(f->dp, &s);
    return s.spare_ports;
}

static void wait_for_spare_ports(struct fixture *f, size_t n)
{
    bool never = false;
    for (uint64_t end = time_mono_ms() + WAIT_MS; spare_ports(f) != n;) {
        loop_run_until(f->loop, &never, 5);
        assert_true(time_mono_ms() < end);
    }
}

static const struct dp_pod *attached(struct fixture *f, unsigned n)
{
    struct dp_pod p;
    fixture_pod(n, &p);
    return datapath_find(f->dp, p.container_id, p.ifname);
}

static bool has_port(struct fixture *f, const char *port)
{
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    CLEANUP_FREE char *lines = xasprintf("\n%s\n", ports);
    CLEANUP_FREE char *line = xasprintf("\n%s\n", port);
    return strstr(lines, line);
}

static bool is_in_host(struct fixture *f, const char *link)
{
    struct rtnl_link l;
    return rtnl_link_get(f->rtnl, link, &l, NULL) == 0;
}

/* A link on the end of pod 'n', as the agent makes it, but in this namespace. */
static void make_link(struct fixture *f, unsigned n)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(fd_close) int here = -1;
    struct rtnl_link end, link;
    struct err e = {0};
    const struct dp_pod *p = attached(f, n);
    assert_int_equal(netns_open("/proc/thread-self/ns/net", &here, &e), 0);
    assert_int_equal(rtnl_open_at(datapath_end(f->dp, p->port, p->host_if), &r, &e), 0);
    assert_int_equal(rtnl_link_get(r, p->host_if, &end, &e), 0);
    struct rtnl_macvlan m = {
        .name = "eth7", .lower = end.ifindex, .ns_fd = here, .mtu = f->net.mtu};
    assert_int_equal(rtnl_macvlan_add(r, &m, &e), 0);
    assert_int_equal(rtnl_link_get(f->rtnl, "eth7", &link, &e), 0);
    struct rtnl_endpoint ep = {.ifindex = link.ifindex,
                               .mac = &p->mac,
                               .address = {p->ip, 23},
                               .gateway = f->net.local.addr + 1};
    assert_int_equal(rtnl_endpoint_set(f->rtnl, &ep, &e), 0);
}

static void pods_get_the_other_end_unless_they_need_a_pair(void **state)
{
    NEEDS_OVS
    f->run_dir = f->ovs.dir;
    fixture_up(f);
    assert_int_equal(fixture_attach(f, 1), 0);
    char end[IF_NAMESIZE];
    port_peers_name(attached(f, 1)->port, end);
    assert_string_equal(attached(f, 1)->host_if, end);
    assert_false(is_in_host(f, end));
    assert_true(datapath_end(f->dp, attached(f, 1)->port, end) >= 0);
    assert_int_equal(datapath_end(f->dp, attached(f, 1)->port, "vp1"), -1);

    struct dp_pod p;
    struct outcome o = {0};
    fixture_pod(2, &p);
    p.pair = true;
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    fixture_wait(f, &o.done);
    assert_int_equal(o.error, 0);
    assert_string_equal(attached(f, 2)->host_if, "vp2");
    fixture_restart_agent(f);
    assert_string_equal(attached(f, 1)->host_if, end);
    assert_string_equal(attached(f, 2)->host_if, "vp2");
}

static void ports_of_an_earlier_version_stay_and_their_other_ends_move(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    char theirs[IF_NAMESIZE], end[IF_NAMESIZE];
    port_peers_name(attached(f, 1)->port, theirs);
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    size_t spare = spare_ports(f);

    f->run_dir = f->ovs.dir;
    fixture_restart_agent(f);
    wait_for_spare_ports(f, spare);
    CLEANUP_FREE char *after = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_string_equal(after, ports);
    assert_string_equal(attached(f, 1)->host_if, "vp1");
    assert_true(is_in_host(f, theirs));
    assert_int_equal(fixture_attach(f, 2), 0);
    port_peers_name(attached(f, 2)->port, end);
    assert_string_equal(attached(f, 2)->host_if, end);
    assert_false(is_in_host(f, end));

    assert_int_equal(fixture_detach(f, 1), 0);
    fixture_wait_for_ports(f);
    assert_false(is_in_host(f, theirs));
}

static void port_comes_back_when_the_pods_link_is_gone(void **state)
{
    NEEDS_OVS
    f->run_dir = f->ovs.dir;
    fixture_up(f);
    size_t spare = spare_ports(f);
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_int_equal(fixture_attach(f, 1), 0);
    make_link(f, 1);
    assert_int_equal(fixture_detach(f, 1), 0);
    bool never = false;
    loop_run_until(f->loop, &never, 50);
    assert_int_equal(spare_ports(f), spare - 1);
    assert_int_equal(rtnl_link_del(f->rtnl, "eth7", NULL), 0);
    wait_for_spare_ports(f, spare);
    CLEANUP_FREE char *after = FIXTURE_VSCTL(f, "list-ports", "br0");
    assert_string_equal(after, ports);
}

static void device_with_a_strangers_link_is_made_anew(void **state)
{
    NEEDS_OVS
    f->run_dir = f->ovs.dir;
    fixture_up(f);
    assert_int_equal(fixture_attach(f, 1), 0);
    CLEANUP_FREE char *port = xstrdup(attached(f, 1)->port);
    make_link(f, 1);
    assert_int_equal(fixture_detach(f, 1), 0);
    fixture_wait_for_ports(f);
    assert_false(is_in_host(f, "eth7"));
    /* Open vSwitch has to open the new device, so the port is another one. */
    for (uint64_t end = time_mono_ms() + WAIT_MS; has_port(f, port);) {
        bool never = false;
        loop_run_until(f->loop, &never, 20);
        assert_true(time_mono_ms() < end);
    }
    assert_int_equal(fixture_attach(f, 1), 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(pods_get_the_other_end_unless_they_need_a_pair),
        T(ports_of_an_earlier_version_stay_and_their_other_ends_move),
        T(port_comes_back_when_the_pods_link_is_gone),
        T(device_with_a_strangers_link_is_made_anew),
    };
    return cmocka_run_group_tests_name("datapath/ovs ends", tests, NULL, NULL);
}
