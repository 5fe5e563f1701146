/* SPDX-License-Identifier: Apache-2.0 */
/* The paths to other nodes that the eBPF programs use (paths.c), what the kernel
 * says of them (net/kernel/path.c), and programs on links that others use as well.  In
 * a namespace of the test's own. */
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/paths.h"
#include "datapath/ebpf/program.h"
#include "ebpf_fixture.h"
#include "net/kernel/redirect.h"
#include "net/loop/process.h"
#include "wire_frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/pkt_cls.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "leave_out.h"

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define OWN IP(10, 7, 0, 1)
#define LIMIT_MS 20000

static struct program_features features;
static struct program program;
static struct ebpf_place place;
static struct loop *loop;

/* ---- surroundings ---- */

/* A command line of words. */
static bool run_line(const char *line, struct strbuf *out)
{
    CLEANUP_FREE char *copy = xstrdup(line);
    const char *argv[32] = {0};
    char *rest = copy;
    for (size_t n = 0; n < 31 && (argv[n] = strsep(&rest, " ")); n++) {
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct process_spec spec = PROCESS_SPEC_INIT;
    spec.argv = argv;
    int status = -1;
    return process_run(&spec, LIMIT_MS, out, &text, &status, NULL) == 0 && status == 0;
}

static bool try(const char *line)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    return run_line(line, &out);
}

static void must(const char *line)
{
    if (!try(line)) {
        fail_msg("%s", line);
    }
}

static int index_of(const char *name)
{
    int i = (int) if_nametoindex(name);
    assert_true(i > 0);
    return i;
}

/* ---- what the kernel says ---- */

static struct path way_to(uint32_t dst)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    struct path path;
    assert_int_equal(rtnl_open(&r, &e), 0);
    if (path_find(r, OWN, &dst, 1, &path, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return path;
}

static void assert_no_way(uint32_t dst)
{
    struct path path = way_to(dst);
    assert_int_equal(path.ifindex, 0);
    assert_int_equal(path.next, 0);
}

static void a_way_is_what_routes_and_rules_say(void **state)
{
    (void) state;
    must("ip route add 10.8.0.0/24 via 10.7.0.9 mtu 1400");
    must("ip route add 10.8.1.0/24 nexthop via 10.7.0.9 nexthop via 10.7.0.8");
    must("ip route add blackhole 10.8.2.0/24");
    must("ip rule add to 10.8.3.0/24 lookup 77");
    must("ip route add 10.8.3.0/24 via 10.7.0.5 table 77");
    struct path path = way_to(IP(10, 7, 0, 2));
    assert_int_equal(path.ifindex, index_of("up0"));
    assert_int_equal(path.next, IP(10, 7, 0, 2));
    assert_int_equal(path.mtu, 0);
    path = way_to(IP(10, 8, 0, 2));
    assert_int_equal(path.ifindex, index_of("up0"));
    assert_int_equal(path.next, IP(10, 7, 0, 9));
    assert_int_equal(path.mtu, 1400);
    path = way_to(IP(10, 8, 3, 2));
    assert_int_equal(path.next, IP(10, 7, 0, 5));
    assert_no_way(IP(10, 8, 1, 2)); /* The kernel spreads flows over both. */
    assert_no_way(IP(10, 8, 2, 2));
    assert_no_way(IP(10, 9, 9, 9)); /* No route. */
    assert_no_way(OWN);
    if (try("ip route add 10.8.4.0/24 via inet6 fe80::1 dev up0")) {
        assert_no_way(IP(10, 8, 4, 2));
    }
    must("ip rule del to 10.8.3.0/24 lookup 77");
    must("ip route flush root 10.8.0.0/16");
}

static void very_many_are_asked_at_once(void **state)
{
    (void) state;
    enum { N = 1000 };
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE uint32_t *dst = xcalloc(N, sizeof *dst);
    CLEANUP_FREE struct path *paths = xcalloc(N, sizeof *paths);
    struct err e = {0};
    for (uint32_t i = 0; i < N; i++) {
        dst[i] = i % 3 ? IP(10, 7, 0, 2 + i % 200) : IP(10, 9, i / 256, i % 256);
    }
    assert_int_equal(rtnl_open(&r, &e), 0);
    if (path_find(r, OWN, dst, N, paths, &e) < 0) {
        fail_msg("%s", e.text);
    }
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(paths[i].next, i % 3 ? dst[i] : 0);
    }
    /* What was asked by the same socket before does not disturb. */
    struct rtnl_link l;
    assert_int_equal(rtnl_link_get(r, "up0", &l, &e), 0);
}

/* ---- what the programs are lent ---- */

struct lender {
    struct hooks hooks;
    struct paths *paths;
    struct sdn_remote remotes[3];
    struct sdn_network net;
    bool changed;
};

static void on_changed(void *ctx)
{
    struct lender *l = ctx;
    l->changed = true;
}

static void make_lender(struct lender *l, bool tcx)
{
    struct err e = {0};
    struct paths_config c = {.loop = loop, .hooks = &l->hooks, .changed = on_changed, .ctx = l};
    *l = (struct lender){.hooks = {.tcx = tcx},
                         .remotes = {{.host_ip = IP(10, 7, 0, 2)},
                                     {.host_ip = IP(10, 8, 0, 2)},
                                     {.host_ip = IP(10, 9, 0, 2)}},
                         .net = {.host_ip = OWN, .n_remotes = 3}};
    l->net.remotes = l->remotes;
    l->hooks.dir = xasprintf("%s/bpf/links", place.folder);
    if (paths_new(&c, &l->paths, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static void free_lender(struct lender *l)
{
    paths_free(l->paths);
    free((char *) l->hooks.dir);
}

/* After 'line' something is said to have changed. */
static void change(struct lender *l, const char *line)
{
    l->changed = false;
    must(line);
    assert_int_equal(loop_run_until(loop, &l->changed, LIMIT_MS), 0);
}

static void ways_follow_routes_and_links(void **state)
{
    (void) state;
    struct lender l;
    make_lender(&l, features.tcx);
    const struct path *paths = paths_find(l.paths, &l.net);
    assert_int_equal(paths[0].ifindex, index_of("up0"));
    assert_int_equal(paths[0].mtu, 1500);
    assert_int_equal(paths[1].ifindex, 0);
    change(&l, "ip route add 10.8.0.0/24 via 10.7.0.9 mtu 1400");
    paths = paths_find(l.paths, &l.net);
    assert_int_equal(paths[1].next, IP(10, 7, 0, 9));
    assert_int_equal(paths[1].mtu, 1400);
    change(&l, "ip link set up0 mtu 1300");
    assert_int_equal(paths_find(l.paths, &l.net)[1].mtu, 1300);
    /* It carries no frames. */
    change(&l, "ip route add 10.9.0.0/24 dev dumb0");
    assert_int_equal(paths_find(l.paths, &l.net)[2].ifindex, 0);
    change(&l, "ip link set up0 down");
    assert_int_equal(paths_find(l.paths, &l.net)[0].ifindex, 0);
    change(&l, "ip link set up0 up mtu 1500");
    assert_int_equal(paths_find(l.paths, &l.net)[0].ifindex, index_of("up0"));
    /* A node that is new. */
    l.remotes[2].host_ip = IP(10, 7, 0, 3);
    assert_int_equal(paths_find(l.paths, &l.net)[2].next, IP(10, 7, 0, 3));
    must("ip route flush root 10.9.0.0/16");
    free_lender(&l);
    assert_null(paths_find(NULL, &l.net));
    assert_int_equal(paths_lend(NULL), 0);
}

static void nothing_is_lent_where_ipsec_has_a_say(void **state)
{
    (void) state;
    struct lender l;
    make_lender(&l, features.tcx);
    if (!try("ip xfrm policy")) {
        free_lender(&l);
        LEAVE_OUT("this kernel has no IPsec");
    }
    paths_find(l.paths, &l.net);
    assert_true(paths_lend(l.paths) > 0);
    change(&l, "ip xfrm policy add src 10.7.0.0/24 dst 10.7.0.2/32 dir out tmpl proto esp mode "
               "transport");
    assert_int_equal(paths_find(l.paths, &l.net)[0].ifindex, 0);
    assert_int_equal(paths_lend(l.paths), 0);
    change(&l, "ip xfrm policy del src 10.7.0.0/24 dst 10.7.0.2/32 dir out");
    assert_int_equal(paths_find(l.paths, &l.net)[0].ifindex, index_of("up0"));
    assert_true(paths_lend(l.paths) > 0);
    if (try("ip xfrm policy setdefault in block")) {
        assert_true(path_has_ipsec());
        must("ip xfrm policy setdefault in accept");
        assert_false(path_has_ipsec());
    }
    free_lender(&l);
}

/* How often the word is in what the command says. */
static size_t count_in(const char *line, const char *word)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_true(run_line(line, &out));
    size_t n = 0;
    for (const char *p = strbuf_cstr(&out); (p = strstr(p, word)); p++) {
        n++;
    }
    return n;
}

/* Programs at the ingress of up0, by tcx or as filters. */
static size_t programs(bool tcx)
{
    if (!tcx) {
        return count_in("tc filter show dev up0 ingress", "direct-action");
    }
    uint32_t ids[8], n = ARRAY_SIZE(ids), flags = 0;
    assert_int_equal(bpf_prog_query(index_of("up0"), HOOK_TCX_INGRESS, 0, &flags, ids, &n), 0);
    return n;
}

/* An uplink is not ours alone. */
static void beside_what_others_have_there(bool tcx)
{
    struct lender l;
    struct err e = {0};
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(fd_close) int theirs = -1;
    make_lender(&l, tcx);
    assert_int_equal(rtnl_open(&r, &e), 0);
    int up = index_of("up0");
    if (tcx) {
        theirs = bpf_link_create(program.from_host, up, HOOK_TCX_INGRESS, NULL);
        assert_true(theirs >= 0);
    } else {
        assert_int_equal(redirect_attach(r, up, REDIRECT_INGRESS, REDIRECT_ALONE, "theirs",
                                         program.from_host, &e),
                         0);
    }
    paths_find(l.paths, &l.net);
    paths_hook(l.paths, program.from_wire);
    paths_hook(l.paths, program.from_wire);
    assert_int_equal(programs(tcx), 2);
    assert_true(paths_has_link(l.paths, "up0"));
    assert_false(paths_has_link(l.paths, "dumb0"));
    /* Another agent finds it. */
    free_lender(&l);
    make_lender(&l, tcx);
    paths_find(l.paths, &l.net);
    paths_hook(l.paths, program.from_wire);
    assert_int_equal(programs(tcx), 2);
    change(&l, "ip addr del 10.7.0.1/24 dev up0");
    paths_find(l.paths, &l.net);
    assert_false(paths_has_link(l.paths, "up0"));
    assert_int_equal(programs(tcx), 1);
    must("ip addr add 10.7.0.1/24 dev up0");
    redirect_clear(r, up, NULL);
    free_lender(&l);
}

static void a_link_to_others_is_shared_by_tcx(void **state)
{
    (void) state;
    if (!features.tcx) {
        LEAVE_OUT("this kernel has no tcx (Linux 6.6)");
    }
    beside_what_others_have_there(true);
}

static void a_link_to_others_is_shared_by_clsact(void **state)
{
    (void) state;
    beside_what_others_have_there(false);
}

/* ---- for how long ---- */

static int run(int fd, const unsigned char *frame, size_t size, size_t *ret_size)
{
    unsigned char out[256];
    uint32_t cb[5] = {0};
    struct err e = {0};
    int action;
    *ret_size = sizeof out;
    if (program_run(fd, cb, frame, size, out, ret_size, &action, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return action;
}

/* When it is over packets go by the VXLAN device, in both directions. */
static void what_is_lent_ends_by_itself(void **state)
{
    (void) state;
    if (!features.encap) {
        LEAVE_OUT("programs cannot put headers on here");
    }
    enum { PLAIN = 14 + 28 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const struct {
        uint32_t until;
        bool direct;
    } cases[] = {{0, false},
                 {(uint32_t) now.tv_sec + 1000, true},
                 {(uint32_t) now.tv_sec - 1, false},
                 {UINT32_MAX, true}};
    struct sdn_remote far = {.host_ip = IP(10, 7, 0, 2), .subnet = {IP(10, 128, 4, 0), 23}};
    struct sdn_network net = {.plugin = SDN_SUBNET,
                              .cluster = {{IP(10, 128, 0, 0), 14}},
                              .n_cluster = 1,
                              .local = {IP(10, 128, 2, 0), 23},
                              .host_ip = OWN,
                              .vxlan_port = SDN_VXLAN_PORT,
                              .remotes = &far,
                              .n_remotes = 1};
    struct path path = {index_of("up0"), far.host_ip, 1500};
    struct encode_pod pod = {.ip = IP(10, 128, 2, 2), .ifindex = 1}; /* Test runs are on lo. */
    pod.mac = mac_from_ip4(pod.ip);
    struct table_row a, b;
    size_t n, size;
    CLEANUP_FREE struct table_row *routes = encode_routes(&net, &path, &n);
    for (size_t i = 0; i < n; i++) {
        ebpf_put(program.routes, routes[i].key, routes[i].value);
    }
    assert_true(encode_pod(&net, &pod, &a, &b));
    ebpf_put(program.pods, a.key, a.value);
    unsigned char to_far[PLAIN] = {[12] = 8, [14] = 0x45, [17] = 28, [22] = 64, [23] = 17};
    unsigned char from_far[PLAIN], outer[PLAIN + WIRE_OUTER];
    uint32_t src = htonl(pod.ip), dst = htonl(IP(10, 128, 4, 2));
    memcpy(to_far + 6, pod.mac.b, 6);
    memcpy(from_far, to_far, PLAIN);
    memcpy(to_far + 26, &src, 4);
    memcpy(to_far + 30, &dst, 4);
    memcpy(from_far + 26, &dst, 4);
    memcpy(from_far + 30, &src, 4);
    wire_put(&(struct wire_ends){far.host_ip, OWN, SDN_VXLAN_PORT, 0}, 0, from_far, PLAIN, outer);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct devices d = {.tun = 2001, .host = 2002, .vxlan = 2003};
        struct ebpf_settings s = encode_settings(&net, &d, false);
        s.direct_until_s = cases[i].until;
        uint32_t zero = 0;
        ebpf_put(program.settings, &zero, &s);
        assert_int_equal(run(program.from_pod, to_far, PLAIN, &size), TC_ACT_REDIRECT);
        assert_int_equal(size, cases[i].direct ? PLAIN + WIRE_OUTER : PLAIN);
        assert_int_equal(run(program.from_wire, outer, sizeof outer, &size),
                         cases[i].direct ? TC_ACT_REDIRECT : TC_ACT_UNSPEC);
        assert_int_equal(size, cases[i].direct ? PLAIN : PLAIN + WIRE_OUTER);
    }
}

/* ---- set-up ---- */

/* The loop last: a test that failed may have left something in it. */
static int tear_down(void **state)
{
    (void) state;
    if (program.loaded) {
        program_done(&program);
    }
    int r = ebpf_place_leave(&place);
    loop = loop_free(loop);
    return r;
}

static int set_up(void **state)
{
    struct err e = {0};
    if (ebpf_place_enter(&place, "paths") < 0) {
        return -1;
    }
    loop = loop_new();
    bool ok = program_load(NULL, &features, false, &program, &e) == 0 &&
              try("ip link add up0 type veth peer name far0") && try("ip link set far0 up") &&
              try("ip link set up0 up") && try("ip addr add 10.7.0.1/24 dev up0") &&
              try("ip tuntap add dev dumb0 mode tun") && try("ip link set dumb0 up");
    if (!ok) {
        print_message("%s\n", e.text);
        tear_down(state);
    }
    return ok ? 0 : -1;
}

int main(void)
{
    if (!ebpf_fixture_probe(&features)) {
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_way_is_what_routes_and_rules_say),
        cmocka_unit_test(very_many_are_asked_at_once),
        cmocka_unit_test(ways_follow_routes_and_links),
        cmocka_unit_test(nothing_is_lent_where_ipsec_has_a_say),
        cmocka_unit_test(a_link_to_others_is_shared_by_tcx),
        cmocka_unit_test(a_link_to_others_is_shared_by_clsact),
        cmocka_unit_test(what_is_lent_ends_by_itself),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
