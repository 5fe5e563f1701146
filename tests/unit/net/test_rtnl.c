/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/netns.h"
#include "net/kernel/rtnl.h"
#include "net/kernel/rtnl_priv.h"
#include "net/loop/process.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

/* Two namespaces, "a" and "b", fresh for each test. */
static char names[2][64];
static int ns[2] = {-1, -1};
static struct rtnl *r[2];
static struct err e;

static int teardown(void **state)
{
    for (int i = 0; i < 2; i++) {
        r[i] = rtnl_close(r[i]);
        ns[i] = fd_close(ns[i]);
        netns_delete(names[i], NULL);
    }
    return 0;
}

static int setup(void **state)
{
    e = (struct err){0};
    for (int i = 0; i < 2 && geteuid() == 0; i++) {
        snprintf(names[i], sizeof names[i], "tenet-ut-net-%d-%c", (int) getpid(), 'a' + i);
        if (netns_create(names[i], &e) < 0 || netns_open(names[i], &ns[i], &e) < 0 ||
            rtnl_open_at(ns[i], &r[i], &e) < 0) {
            print_error("%s\n", e.text);
            teardown(state);
            return -1;
        }
    }
    return 0;
}

#define OK(call)                    \
    do {                            \
        if ((call) != 0) {          \
            fail_msg("%s", e.text); \
        }                           \
    } while (0)

static struct ip4_prefix prefix(const char *s)
{
    struct ip4_prefix p = {0};
    OK(prefix_parse_host(s, &p, &e));
    return p;
}

static uint32_t ip(const char *s)
{
    uint32_t a = 0;
    assert_int_equal(ip4_parse(s, &a), 0);
    return a;
}

static struct rtnl_link link_of(struct rtnl *rt, const char *name)
{
    struct rtnl_link l = {0};
    OK(rtnl_link_get(rt, name, &l, &e));
    return l;
}

/* "left" in a, "right" in b, both up, 10.9.0.1/24 and 10.9.0.2/24. */
static void make_pair(void)
{
    struct rtnl_veth v = {.name = "left", .peer_name = "right", .peer_ns_fd = ns[1], .up = true};
    struct rtnl_link_set up = RTNL_LINK_SET_INIT("right");
    up.up = 1;
    OK(rtnl_veth_add(r[0], &v, &e));
    OK(rtnl_link_set(r[1], &up, &e));
    OK(rtnl_addr_add(r[0], link_of(r[0], "left").ifindex, prefix("10.9.0.1/24"), false, &e));
    OK(rtnl_addr_add(r[1], link_of(r[1], "right").ifindex, prefix("10.9.0.2/24"), false, &e));
}

/* ---- links ---- */

static void veth_is_made_across_namespaces_with_all_that_was_asked(void **state)
{
    NEEDS_ROOT();
    struct mac m1 = mac_from_ip4(ip("10.128.0.1")), m2 = mac_from_ip4(ip("10.128.0.2"));
    struct rtnl_veth v = {.name = "veth-left",
                          .peer_name = "eth0",
                          .peer_ns_fd = ns[1],
                          .mtu = 1450,
                          .mac = &m1,
                          .peer_mac = &m2,
                          .up = true};
    OK(rtnl_veth_add(r[0], &v, &e));
    struct rtnl_link left = link_of(r[0], "veth-left"), right = link_of(r[1], "eth0");
    assert_string_equal(left.kind, "veth");
    assert_int_equal(left.mtu, 1450);
    assert_int_equal(right.mtu, 1450);
    assert_true(mac_equal(left.mac, m1));
    assert_true(mac_equal(right.mac, m2));
    assert_true(left.flags & IFF_UP);
    assert_false(right.flags & IFF_UP);
    assert_int_equal(left.peer, right.ifindex);
    assert_int_equal(rtnl_veth_add(r[0], &v, &e), -EEXIST);
    struct rtnl_link same;
    OK(rtnl_link_get_index(r[0], left.ifindex, &same, &e));
    assert_string_equal(same.name, "veth-left");
}

static void a_new_veth_is_told_with_its_numbers(void **state)
{
    NEEDS_ROOT();
    struct rtnl_veth v = {.name = "left", .peer_name = "right", .peer_ns_fd = ns[1], .mtu = 1450};
    struct rtnl_link left = {0}, none = {.ifindex = -5};
    OK(rtnl_veth_add_get(r[0], &v, &left, &e));
    assert_string_equal(left.name, "left");
    assert_int_equal(left.ifindex, link_of(r[0], "left").ifindex);
    assert_int_equal(left.peer, link_of(r[1], "right").ifindex);
    assert_int_equal(left.mtu, 1450);
    /* Who has the name is not told, and the answer about it is no later request's. */
    assert_int_equal(rtnl_veth_add_get(r[0], &v, &none, &e), -EEXIST);
    assert_non_null(strstr(e.text, "left"));
    assert_int_equal(none.ifindex, -5);
    assert_string_equal(link_of(r[0], "lo").name, "lo");
    assert_int_equal(rtnl_link_get(r[0], "nothing", &none, &e), -ENODEV);
}

static void absent_link_is_enodev_and_named(void **state)
{
    NEEDS_ROOT();
    struct rtnl_link l = {.ifindex = -5};
    assert_int_equal(rtnl_link_get(r[0], "nothing", &l, &e), -ENODEV);
    assert_non_null(strstr(e.text, "nothing"));
    assert_int_equal(rtnl_link_get_index(r[0], 4711, &l, &e), -ENODEV);
    assert_int_equal(l.ifindex, -5);
    assert_int_equal(rtnl_link_get(r[0], "a-name-that-is-too-long", &l, &e), -EINVAL);
    assert_int_equal(rtnl_link_get(r[0], "", &l, &e), -EINVAL);
    OK(rtnl_link_del(r[0], "nothing", &e));
}

static void link_is_renamed_moved_and_changed(void **state)
{
    NEEDS_ROOT();
    OK(rtnl_veth_add(r[0], &(struct rtnl_veth){.name = "one", .peer_name = "two", .peer_ns_fd = -1},
                     &e));
    struct mac m = mac_from_ip4(ip("10.1.2.3"));
    struct rtnl_link_set s = RTNL_LINK_SET_INIT("two");
    s.new_name = "eth0";
    s.ns_fd = ns[1];
    s.mac = &m;
    s.mtu = 1300;
    s.up = 1;
    OK(rtnl_link_set(r[0], &s, &e));
    struct rtnl_link l = link_of(r[1], "eth0");
    assert_true(mac_equal(l.mac, m));
    assert_int_equal(l.mtu, 1300);
    assert_true(l.flags & IFF_UP);
    assert_int_equal(rtnl_link_get(r[0], "two", &l, &e), -ENODEV);
    s = RTNL_LINK_SET_INIT(NULL);
    s.ifindex = l.ifindex;
    s.up = 0;
    OK(rtnl_link_set(r[1], &s, &e));
    assert_false(link_of(r[1], "eth0").flags & IFF_UP);
    s = RTNL_LINK_SET_INIT("gone");
    s.up = 1;
    assert_int_equal(rtnl_link_set(r[0], &s, &e), -ENODEV);
    assert_non_null(strstr(e.text, "gone"));
}

static void bridge_is_made_once_and_takes_ports(void **state)
{
    NEEDS_ROOT();
    OK(rtnl_bridge_add(r[0], "br", &e));
    OK(rtnl_bridge_add(r[0], "br", &e));
    struct rtnl_link br = link_of(r[0], "br");
    assert_string_equal(br.kind, "bridge");
    make_pair();
    struct rtnl_link_set s = RTNL_LINK_SET_INIT("left");
    s.master = br.ifindex;
    OK(rtnl_link_set(r[0], &s, &e));
    assert_int_equal(link_of(r[0], "left").master, br.ifindex);
    s.master = -1;
    OK(rtnl_link_set(r[0], &s, &e));
    assert_int_equal(link_of(r[0], "left").master, 0);
    assert_int_equal(rtnl_bridge_add(r[0], "left", &e), -EEXIST);
}

static void deleting_one_end_of_a_veth_removes_both(void **state)
{
    NEEDS_ROOT();
    make_pair();
    OK(rtnl_link_del(r[0], "left", &e));
    struct rtnl_link l;
    assert_int_equal(rtnl_link_get(r[1], "right", &l, &e), -ENODEV);
}

static void list_has_all_links_of_a_full_namespace(void **state)
{
    NEEDS_ROOT();
    enum { PAIRS = 150 }; /* More than one message of a dump holds. */
    for (int i = 0; i < PAIRS; i++) {
        char a[IF_NAMESIZE], b[IF_NAMESIZE];
        snprintf(a, sizeof a, "a%d", i);
        snprintf(b, sizeof b, "b%d", i);
        OK(rtnl_veth_add(r[0], &(struct rtnl_veth){.name = a, .peer_name = b, .peer_ns_fd = ns[1]},
                         &e));
    }
    CLEANUP_FREE struct rtnl_link *all = NULL;
    size_t n = 0;
    OK(rtnl_link_list(r[0], &all, &n, &e));
    assert_int_equal(n, PAIRS + 1);
    bool seen[PAIRS] = {0};
    for (size_t i = 0; i < n; i++) {
        if (streq(all[i].kind, "veth")) {
            uint64_t number = 0;
            assert_int_equal(str_to_u64(all[i].name + 1, PAIRS - 1, &number), 0);
            seen[number] = true;
        }
    }
    for (int i = 0; i < PAIRS; i++) {
        assert_true(seen[i]);
    }
}

static void vxlan_port_is_read(void **state)
{
    NEEDS_ROOT();
    const char *argv[] = {"ip",    "link",     "add",     "vx0",  "type",
                          "vxlan", "external", "dstport", "4790", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    int status = -1;
    s.argv = argv;
    s.netns_fd = ns[0];
    OK(process_run(&s, 10000, NULL, NULL, &status, &e));
    assert_int_equal(status, 0);
    struct rtnl_link l = link_of(r[0], "vx0");
    assert_string_equal(l.kind, "vxlan");
    assert_int_equal(l.vxlan_port, 4790);
}

static int takes_metadata(void *ctx, const struct nlmsghdr *h)
{
    const struct nlattr *tb[IFLA_LINKINFO + 1], *info[IFLA_INFO_DATA + 1];
    const struct nlattr *data[IFLA_VXLAN_COLLECT_METADATA + 1];
    assert_int_equal(rtnl_attrs_parse(h, sizeof(struct ifinfomsg), tb, IFLA_LINKINFO), 0);
    assert_int_equal(rtnl_attrs_nested(tb[IFLA_LINKINFO], info, IFLA_INFO_DATA), 0);
    assert_int_equal(rtnl_attrs_nested(info[IFLA_INFO_DATA], data, IFLA_VXLAN_COLLECT_METADATA), 0);
    *(bool *) ctx = data[IFLA_VXLAN_COLLECT_METADATA] &&
                    mnl_attr_get_u8(data[IFLA_VXLAN_COLLECT_METADATA]) == 1 &&
                    data[IFLA_VXLAN_LEARNING] && mnl_attr_get_u8(data[IFLA_VXLAN_LEARNING]) == 0;
    return 0;
}

static void a_vxlan_device_takes_its_numbers_from_each_packet(void **state)
{
    NEEDS_ROOT();
    struct rtnl_vxlan v = {.name = "vx0", .port = 4790, .mtu = 1400, .mac = {{2, 0, 0, 0, 0, 7}}};
    OK(rtnl_vxlan_add(r[0], &v, &e));
    struct rtnl_link l = link_of(r[0], "vx0");
    assert_string_equal(l.kind, "vxlan");
    assert_int_equal(l.vxlan_port, 4790);
    assert_int_equal(l.mtu, 1400);
    assert_memory_equal(&l.mac, &v.mac, sizeof l.mac);
    bool metadata = false;
    struct nlmsghdr *h = rtnl_request(r[0], RTM_GETLINK, 0);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(h, sizeof *ifi);
    ifi->ifi_index = l.ifindex;
    assert_int_equal(rtnl_get(r[0], h, takes_metadata, &metadata), 0);
    assert_true(metadata);
    /* There is one already. */
    assert_int_equal(rtnl_vxlan_add(r[0], &v, &e), -EEXIST);
    assert_non_null(strstr(e.text, "add VXLAN device vx0 on port 4790"));
    v.name = "much-too-long-a-name";
    assert_int_equal(rtnl_vxlan_add(r[0], &v, &e), -EINVAL);
}

/* ---- addresses ---- */

static void addresses_are_added_once_listed_and_deleted(void **state)
{
    NEEDS_ROOT();
    make_pair();
    int left = link_of(r[0], "left").ifindex, lo = link_of(r[0], "lo").ifindex;
    OK(rtnl_addr_add(r[0], left, prefix("10.9.0.1/24"), false, &e)); /* Again. */
    OK(rtnl_addr_add(r[0], lo, prefix("198.51.100.10/32"), false, &e));
    CLEANUP_FREE struct rtnl_addr *all = NULL;
    CLEANUP_FREE struct rtnl_addr *of_left = NULL;
    CLEANUP_FREE struct rtnl_addr *none = NULL;
    size_t n = 0;
    OK(rtnl_addr_list(r[0], 0, &all, &n, &e));
    assert_int_equal(n, 3); /* 127.0.0.1 too */
    OK(rtnl_addr_list(r[0], left, &of_left, &n, &e));
    assert_int_equal(n, 1);
    assert_int_equal(of_left[0].ifindex, left);
    assert_string_equal(PREFIX_TEXT(of_left[0].addr), "10.9.0.1/24");
    OK(rtnl_addr_del(r[0], left, prefix("10.9.0.1/24"), &e));
    OK(rtnl_addr_del(r[0], left, prefix("10.9.0.1/24"), &e));
    OK(rtnl_addr_list(r[0], left, &none, &n, &e));
    assert_int_equal(n, 0);
    assert_int_equal(rtnl_addr_add(r[0], 4711, prefix("10.9.0.1/24"), false, &e), -ENODEV);
    assert_non_null(strstr(e.text, "10.9.0.1/24"));
}

static void noprefixroute_leaves_the_prefix_without_a_route(void **state)
{
    NEEDS_ROOT();
    make_pair();
    int left = link_of(r[0], "left").ifindex;
    OK(rtnl_addr_add(r[0], left, prefix("10.77.0.1/16"), true, &e));
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    size_t n = 0;
    OK(rtnl_route_list(r[0], left, &routes, &n, &e));
    assert_int_equal(n, 1);
    assert_string_equal(PREFIX_TEXT(routes[0].dst), "10.9.0.0/24");
    assert_int_equal(routes[0].src, ip("10.9.0.1"));
}

/* ---- routes ---- */

static void routes_of_a_fresh_namespace_are_none(void **state)
{
    NEEDS_ROOT();
    CLEANUP(rtnl_close) struct rtnl *fresh = NULL;
    struct rtnl_route *list = NULL;
    size_t n = 1;
    int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    assert_true(here >= 0);
    assert_int_equal(unshare(CLONE_NEWNET), 0); /* Not even "lo" is up. */
    OK(rtnl_open(&fresh, &e));
    assert_int_equal(setns(here, CLONE_NEWNET), 0);
    close(here);
    OK(rtnl_route_list(fresh, 0, &list, &n, &e));
    assert_int_equal(n, 0);
    free(list);
}

static void routes_are_added_replaced_listed_and_deleted(void **state)
{
    NEEDS_ROOT();
    make_pair();
    int left = link_of(r[0], "left").ifindex;
    struct rtnl_route rt = {
        .dst = prefix("10.128.0.0/14"), .ifindex = left, .src = ip("10.9.0.1"), .mtu = 1400};
    struct rtnl_route dflt = {.gateway = ip("10.9.0.2"), .ifindex = left};
    OK(rtnl_route_add(r[0], &rt, &e));
    OK(rtnl_route_add(r[0], &rt, &e));
    OK(rtnl_route_add(r[0], &dflt, &e));
    rt.mtu = 1350;
    OK(rtnl_route_add(r[0], &rt, &e));
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    CLEANUP_FREE struct rtnl_route *after = NULL;
    size_t n = 0;
    OK(rtnl_route_list(r[0], 0, &routes, &n, &e));
    assert_int_equal(n, 3);
    int seen = 0;
    for (size_t i = 0; i < n; i++) {
        if (prefix_equal(routes[i].dst, rt.dst)) {
            assert_int_equal(routes[i].mtu, 1350);
            assert_int_equal(routes[i].gateway, 0);
            assert_int_equal(routes[i].src, rt.src);
            seen |= 1;
        } else if (routes[i].dst.len == 0) {
            assert_int_equal(routes[i].gateway, dflt.gateway);
            assert_int_equal(routes[i].ifindex, left);
            seen |= 2;
        }
    }
    assert_int_equal(seen, 3);
    OK(rtnl_route_del(r[0], &rt, &e));
    OK(rtnl_route_del(r[0], &rt, &e));
    OK(rtnl_route_list(r[0], left, &after, &n, &e));
    assert_int_equal(n, 2);
}

static void only_unicast_of_the_main_table_is_listed(void **state)
{
    NEEDS_ROOT();
    static const char *const others[] = {"blackhole 10.77.0.0/16", "unreachable 10.78.0.0/16",
                                         "10.79.0.0/16 dev left table 77"};
    make_pair();
    CLEANUP_FREE struct rtnl_route *before = NULL;
    CLEANUP_FREE struct rtnl_route *after = NULL;
    size_t n = 0, now = 0;
    OK(rtnl_route_list(r[0], 0, &before, &n, &e));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        CLEANUP_FREE char *line = xasprintf("ip -n %s route add %s", names[0], others[i]);
        const char *argv[] = {"sh", "-c", line, NULL};
        struct process_spec s = PROCESS_SPEC_INIT;
        int status = -1;
        s.argv = argv;
        OK(process_run(&s, 0, NULL, NULL, &status, &e));
        assert_int_equal(status, 0);
    }
    OK(rtnl_route_list(r[0], 0, &after, &now, &e));
    assert_int_equal(now, n);
}

static void refused_route_says_why_in_the_kernel_s_words(void **state)
{
    NEEDS_ROOT();
    make_pair();
    struct rtnl_route rt = {.dst = prefix("10.50.0.0/16"),
                            .gateway = ip("172.31.0.1"), /* Not reachable. */
                            .ifindex = link_of(r[0], "left").ifindex};
    assert_true(rtnl_route_add(r[0], &rt, &e) < 0);
    assert_non_null(strstr(e.text, "10.50.0.0/16"));
    assert_non_null(strstr(e.text, "gateway"));
}

static void route_get_tells_next_hop_link_and_source(void **state)
{
    NEEDS_ROOT();
    make_pair();
    int left = link_of(r[0], "left").ifindex;
    struct rtnl_route dflt = {.gateway = ip("10.9.0.2"), .ifindex = left}, rt;
    assert_int_equal(rtnl_route_get(r[0], ip("203.0.113.9"), &rt, &e), -ENETUNREACH);
    OK(rtnl_route_add(r[0], &dflt, &e));
    OK(rtnl_route_get(r[0], ip("203.0.113.9"), &rt, &e));
    assert_int_equal(rt.gateway, ip("10.9.0.2"));
    assert_int_equal(rt.ifindex, left);
    assert_int_equal(rt.src, ip("10.9.0.1"));
    OK(rtnl_route_get(r[0], ip("10.9.0.7"), &rt, &e));
    assert_int_equal(rt.gateway, 0);
}

/* ---- neighbours, ethtool ---- */

static void neigh_text(struct strbuf *out)
{
    const char *argv[] = {"ip", "-4", "neigh", "show", "dev", "left", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    int status = -1;
    s.argv = argv;
    s.netns_fd = ns[0];
    strbuf_reset(out);
    OK(process_run(&s, 10000, out, NULL, &status, &e));
    assert_int_equal(status, 0);
}

static void neighbour_is_set_and_another_is_resolved_on_request(void **state)
{
    NEEDS_ROOT();
    make_pair();
    int left = link_of(r[0], "left").ifindex;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    OK(rtnl_neigh_add(r[0], left, ip("10.9.0.50"), mac_from_ip4(ip("10.9.0.50")), &e));
    neigh_text(&out);
    assert_non_null(strstr(strbuf_cstr(&out), "10.9.0.50 lladdr 0a:58:0a:09:00:32 PERMANENT"));
    OK(rtnl_neigh_probe(r[0], left, ip("10.9.0.2"), &e));
    CLEANUP_FREE char *want = xasprintf("10.9.0.2 lladdr %s", MAC_TEXT(link_of(r[1], "right").mac));
    for (int i = 0; i < 2000; i++) {
        neigh_text(&out);
        if (strstr(strbuf_cstr(&out), want)) {
            break;
        }
    }
    assert_non_null(strstr(strbuf_cstr(&out), want));
    CLEANUP_FREE struct rtnl_neigh *list = NULL;
    size_t n = 0, found = 0;
    OK(rtnl_neigh_list(r[0], &list, &n, &e));
    for (size_t i = 0; i < n; i++) {
        const uint32_t a = list[i].addr;
        assert_int_equal(list[i].ifindex, left);
        found += a == ip("10.9.0.50") && mac_equal(list[i].mac, mac_from_ip4(a));
        found += a == ip("10.9.0.2") && mac_equal(list[i].mac, link_of(r[1], "right").mac);
    }
    assert_int_equal(found, 2);
    OK(rtnl_neigh_probe(r[0], left, ip("10.9.0.77"), &e)); /* Nobody answers. */
    free(TAKE(list));
    OK(rtnl_neigh_list(r[0], &list, &n, &e));
    assert_int_equal(n, 2);
}

static void checksum_offload_is_switched_off(void **state)
{
    NEEDS_ROOT();
    make_pair();
    int back = -1;
    OK(netns_enter(ns[0], &back, &e));
    int off = ethtool_tx_checksum("left", false, &e);
    int missing = ethtool_tx_checksum("nothing", false, &e);
    netns_leave(back);
    assert_int_equal(off, 0);
    assert_int_equal(missing, -ENODEV);
    assert_non_null(strstr(e.text, "nothing"));
}

static void socket_stays_in_its_namespace(void **state)
{
    NEEDS_ROOT();
    OK(rtnl_bridge_add(r[1], "only-in-b", &e));
    struct rtnl_link l;
    assert_int_equal(rtnl_link_get(r[0], "only-in-b", &l, &e), -ENODEV);
    OK(rtnl_link_get(r[1], "only-in-b", &l, &e));
}

/* ---- answers that are not whole ---- */

static unsigned interrupted_dumps; /* How many are to come. */
static int receive_error;          /* Of the next call, which takes no message; 0: none. */

/* In place of the library's: fails when it is told to, and a dump that the kernel says was
 * interrupted lacks all that it should have. */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
    ssize_t (*receive)(const struct mnl_socket *, void *, size_t);
    *(void **) &receive = dlsym(RTLD_NEXT, "mnl_socket_recvfrom");
    if (receive_error) {
        errno = receive_error;
        receive_error = 0;
        return -1;
    }
    ssize_t n = receive(nl, buf, size);
    int left = (int) n;
    for (struct nlmsghdr *h = buf; interrupted_dumps && mnl_nlmsg_ok(h, left);
         h = mnl_nlmsg_next(h, &left)) {
        h->nlmsg_flags |= NLM_F_DUMP_INTR;
        if (h->nlmsg_type == NLMSG_DONE) {
            interrupted_dumps--;
        } else {
            h->nlmsg_type = NLMSG_NOOP;
        }
    }
    return n;
}

static void an_interrupted_dump_is_repeated(void **state)
{
    struct rtnl_link *links = NULL;
    size_t n = 0;
    interrupted_dumps = 3;
    OK(rtnl_link_list(r[0], &links, &n, &e));
    assert_int_equal(interrupted_dumps, 0);
    assert_true(n >= 1);
    free(TAKE(links));
    /* Should it never be whole, there is no list. */
    interrupted_dumps = 1000;
    assert_int_equal(rtnl_link_list(r[0], &links, &n, &e), -EINTR);
    assert_null(links);
    interrupted_dumps = 0;
}

static void the_answer_to_a_request_that_was_given_up_is_passed_over(void **state)
{
    NEEDS_ROOT();
    make_pair();
    struct rtnl_link l = {0};
    receive_error = ENOBUFS;
    assert_int_equal(rtnl_link_get(r[0], "left", &l, &e), -ENOBUFS);
    OK(rtnl_link_get(r[0], "lo", &l, &e));
    assert_string_equal(l.name, "lo");
    assert_int_equal(rtnl_link_get(r[0], "nothing", &l, &e), -ENODEV);
}

static void put_address(struct rtnl *rt)
{
    struct nlmsghdr *h = rtnl_request(rt, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    struct ifaddrmsg *a = mnl_nlmsg_put_extra_header(h, sizeof *a);
    a->ifa_family = AF_INET;
    a->ifa_prefixlen = 32;
    a->ifa_index = 1;
    mnl_attr_put_u32(h, IFA_LOCAL, htonl(0xc0000207));
    rtnl_enqueue(rt, h);
}

/* Which of several requests may fail is the first one only. */
static void a_failure_is_ignored_of_the_first_request_only(void **state)
{
    unsigned which = 9;
    put_address(r[0]);
    assert_int_equal(rtnl_flush(r[0], 1, 0, &which, NULL, NULL), 0);
    put_address(r[0]);
    assert_int_equal(rtnl_flush(r[0], 1, -EEXIST, &which, NULL, NULL), 0);
    put_address(r[0]);
    put_address(r[0]);
    assert_int_equal(rtnl_flush(r[0], 2, -EEXIST, &which, NULL, NULL), -EEXIST);
    assert_int_equal(which, 1);
    put_address(r[0]);
    assert_int_equal(rtnl_flush(r[0], 1, -ENODEV, &which, NULL, NULL), -EEXIST);
    assert_int_equal(which, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(veth_is_made_across_namespaces_with_all_that_was_asked),
        T(a_new_veth_is_told_with_its_numbers),
        T(absent_link_is_enodev_and_named),
        T(link_is_renamed_moved_and_changed),
        T(bridge_is_made_once_and_takes_ports),
        T(deleting_one_end_of_a_veth_removes_both),
        T(list_has_all_links_of_a_full_namespace),
        T(vxlan_port_is_read),
        T(a_vxlan_device_takes_its_numbers_from_each_packet),
        T(addresses_are_added_once_listed_and_deleted),
        T(noprefixroute_leaves_the_prefix_without_a_route),
        T(routes_of_a_fresh_namespace_are_none),
        T(routes_are_added_replaced_listed_and_deleted),
        T(only_unicast_of_the_main_table_is_listed),
        T(refused_route_says_why_in_the_kernel_s_words),
        T(route_get_tells_next_hop_link_and_source),
        T(neighbour_is_set_and_another_is_resolved_on_request),
        T(checksum_offload_is_switched_off),
        T(socket_stays_in_its_namespace),
        T(an_interrupted_dump_is_repeated),
        T(the_answer_to_a_request_that_was_given_up_is_passed_over),
        T(a_failure_is_ignored_of_the_first_request_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
