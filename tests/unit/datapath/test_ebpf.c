/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the datapath "ebpf" by themselves: maps that follow what is wanted, records of pods,
 * programs at links.  Links are those of a namespace of the test's own. */
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/hook.h"
#include "datapath/ebpf/program.h"
#include "datapath/ebpf/tcx_upgrade.h"
#include "datapath/record.h"
#include "ebpf_fixture.h"
#include "net/kernel/redirect.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

static struct program_features features;
static struct ebpf_place place;

/* ---- tables ---- */

static struct table_row row(uint32_t key, uint32_t value)
{
    struct table_row r = {0};
    memcpy(r.key, &key, sizeof key);
    memcpy(r.value, &value, sizeof value);
    return r;
}

static size_t sync_rows(struct table *t, const struct table_row *rows, size_t n,
                        size_t *ret_refused, struct err *e)
{
    size_t changes = 0;
    table_sync(t, n ? xmemdup(rows, n * sizeof *rows) : NULL, n, &changes, ret_refused, e);
    return changes;
}

static uint32_t value_in(int fd, uint32_t key)
{
    uint32_t value = UINT32_MAX;
    bpf_map_lookup_elem(fd, &key, &value);
    return value;
}

static void a_map_is_changed_by_the_difference_only(void **state)
{
    (void) state;
    CLEANUP(fd_close) int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "tenet_test", 4, 4, 4, NULL);
    struct err e = {0};
    struct table t = {0};
    size_t refused = 0;
    uint32_t key = 9, value = 90;
    assert_true(fd >= 0);
    assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
    assert_int_equal(table_load(&t, fd, &e), 0);
    assert_int_equal(t.n, 1);

    const struct table_row first[] = {row(3, 30), row(9, 90), row(1, 10)};
    assert_int_equal(sync_rows(&t, first, 3, &refused, &e), 2);
    assert_int_equal(sync_rows(&t, first, 3, &refused, &e), 0);
    const struct table_row second[] = {row(1, 11), row(3, 30)};
    assert_int_equal(sync_rows(&t, second, 2, &refused, &e), 2);
    assert_int_equal(value_in(fd, 1), 11);
    assert_int_equal(value_in(fd, 9), UINT32_MAX);
    assert_int_equal(refused, 0);

    /* A second look finds what the first left. */
    struct table again = {0};
    assert_int_equal(table_load(&again, fd, &e), 0);
    assert_int_equal(sync_rows(&again, second, 2, &refused, &e), 0);
    assert_int_equal(sync_rows(&again, NULL, 0, &refused, &e), 2);
    assert_int_equal(value_in(fd, 3), UINT32_MAX);
    table_done(&again);
    table_done(&t);
}

static void what_a_full_map_refuses_is_counted_and_tried_again(void **state)
{
    (void) state;
    CLEANUP(fd_close) int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "tenet_test", 4, 4, 2, NULL);
    struct err e = {0};
    struct table t = {0};
    size_t refused = 0;
    assert_int_equal(table_load(&t, fd, &e), 0);
    const struct table_row three[] = {row(1, 10), row(2, 20), row(3, 30)};
    assert_int_equal(sync_rows(&t, three, 3, &refused, &e), 3);
    assert_int_equal(refused, 1);
    assert_non_null(strstr(e.text, "add to an eBPF map"));
    assert_int_equal(value_in(fd, 1), 10);
    assert_int_equal(value_in(fd, 2), 20);
    const struct table_row two[] = {row(2, 20), row(3, 30)};
    /* Adds come before removes, so it takes a second time until there is room. */
    sync_rows(&t, two, 2, &refused, &e);
    sync_rows(&t, two, 2, &refused, &e);
    assert_int_equal(refused, 0);
    assert_int_equal(value_in(fd, 1), UINT32_MAX);
    assert_int_equal(value_in(fd, 3), 30);
    table_done(&t);
}

static void an_array_has_what_is_not_zero(void **state)
{
    (void) state;
    CLEANUP(fd_close) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tenet_test", 4, 4, 1000, NULL);
    struct err e = {0};
    struct table t = {0}, again = {0};
    size_t refused = 0;
    assert_int_equal(table_load(&t, fd, &e), 0);
    assert_int_equal(t.n, 0);
    const struct table_row first[] = {row(0, 10), row(999, 30)};
    assert_int_equal(sync_rows(&t, first, 2, &refused, &e), 2);
    assert_int_equal(table_load(&again, fd, &e), 0);
    assert_int_equal(again.n, 2);
    const struct table_row second[] = {row(999, 31)};
    assert_int_equal(sync_rows(&again, second, 1, &refused, &e), 2);
    assert_int_equal(refused, 0);
    assert_int_equal(value_in(fd, 0), 0);
    assert_int_equal(value_in(fd, 999), 31);
    table_done(&again);
    table_done(&t);
}

static void near_are_pods_that_do_not_move_and_have_a_place_of_their_own(void **state)
{
    (void) state;
    const uint32_t base = 0x0a800000;
    const struct sdn_network n = {.local = {base, 16}};
    const struct encode_pod pods[] = {
        {.ip = base + 2, .vnid = 7, .ifindex = 3},
        {.ip = base + 2 + EBPF_POD_CACHE_SIZE, .vnid = 8, .ifindex = 4},
        {.ip = base + 3 + EBPF_POD_CACHE_SIZE, .vnid = 6, .ifindex = 6},
        {.ip = base + 5, .vnid = 9, .ifindex = 5, .has_also_vnid = true, .also_vnid = 7}};
    struct table_row rows[ARRAY_SIZE(pods)], port;
    struct ebpf_pod v;
    struct table t = {0};
    struct err e = {0};
    size_t count, changes, refused;
    for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
        assert_true(encode_pod(&n, &pods[i], &rows[i], &port));
    }
    CLEANUP(fd_close)
    int fd =
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "tenet_test", 4, sizeof v, EBPF_POD_CACHE_SIZE, NULL);
    assert_int_equal(table_load(&t, fd, &e), 0);
    struct table_row *cached = encode_pod_cache(rows, ARRAY_SIZE(rows), &count);
    table_sync(&t, cached, count, &changes, &refused, &e);
    assert_int_equal(t.n, 1);
    uint32_t at = 3;
    assert_int_equal(bpf_map_lookup_elem(fd, &at, &v), 0);
    assert_true(v.addr == htonl(base + 3 + EBPF_POD_CACHE_SIZE) && v.reach.vnid == 6);
    table_done(&t);
}

static void of_two_routes_the_nearer_kind_counts(void **state)
{
    (void) state;
    struct ip4_prefix all = {0x0a800000, 23};
    struct sdn_remote claims_ours = {.host_ip = 1, .subnet = {0x0a800000, 16}};
    struct sdn_network n = {
        .cluster = {all}, .n_cluster = 1, .local = all, .remotes = &claims_ours, .n_remotes = 1};
    CLEANUP(fd_close)
    int fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "tenet_test", sizeof(struct ebpf_route_key),
                            sizeof(struct ebpf_route), 16,
                            &(struct bpf_map_create_opts){.sz = sizeof(struct bpf_map_create_opts),
                                                          .map_flags = BPF_F_NO_PREALLOC});
    struct table t = {0};
    struct err e = {0};
    size_t count, changes, refused;
    assert_int_equal(table_load(&t, fd, &e), 0);
    struct table_row *rows = encode_routes(&n, NULL, &count);
    table_sync(&t, rows, count, &changes, &refused, &e);
    struct ebpf_route_key key = {.len = 32, .addr = htonl(0x0a800007)};
    struct ebpf_route r = {0};
    assert_int_equal(bpf_map_lookup_elem(fd, &key, &r), 0);
    assert_int_equal(r.kind, EBPF_LOCAL);
    key.addr = htonl(0x0a800001);
    assert_int_equal(bpf_map_lookup_elem(fd, &key, &r), 0);
    assert_int_equal(r.kind, EBPF_GATEWAY);
    key.addr = htonl(0x0a800201);
    assert_true(bpf_map_lookup_elem(fd, &key, &r) < 0);
    table_done(&t);
}

/* Which of the prefixes are subnets of EBPF_SUBNETS; returns their length. */
static uint8_t subnets_of(const struct ip4_prefix *remotes, size_t n, struct ip4_prefix *ret,
                          size_t *ret_n)
{
    struct sdn_remote all[8] = {0};
    struct sdn_network net = {.cluster = {{0x0a000000, 8}},
                              .n_cluster = 1,
                              .service = {0xac1e0000, 16},
                              .local = {0x0aff0000, 23},
                              .remotes = all,
                              .n_remotes = n};
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct sdn_remote){.host_ip = 1 + (uint32_t) i, .subnet = remotes[i]};
    }
    uint8_t len;
    size_t n_routes;
    CLEANUP_FREE struct table_row *routes = encode_routes(&net, NULL, &n_routes);
    CLEANUP_FREE struct table_row *rows = encode_subnets(routes, n_routes, &len, ret_n);
    for (size_t i = 0; i < *ret_n; i++) {
        struct ebpf_route_key key;
        memcpy(&key, rows[i].key, sizeof key);
        ret[i] = (struct ip4_prefix){ntohl(key.addr), (uint8_t) key.len};
    }
    return len;
}

static void subnets_are_of_the_length_that_most_have(void **state)
{
    (void) state;
    struct ip4_prefix got[8];
    size_t n;
    const struct ip4_prefix most[] = {
        {0x0a010000, 24}, {0x0a020000, 23}, {0x0a030000, 24}, {0x0a040000, 25}};
    assert_int_equal(subnets_of(most, ARRAY_SIZE(most), got, &n), 24);
    assert_int_equal(n, 2);
    assert_true(prefix_equal(got[0], most[0]));
    assert_true(prefix_equal(got[1], most[2]));
    /* In the second one another's lies; and the first one of this node's addresses has
     * a route of its own. */
    const struct ip4_prefix within[] = {{0x0a010000, 23}, {0x0a020000, 23}, {0x0a020100, 24}};
    assert_int_equal(subnets_of(within, ARRAY_SIZE(within), got, &n), 23);
    assert_int_equal(n, 1);
    assert_true(prefix_equal(got[0], within[0]));
    assert_int_equal(subnets_of(NULL, 0, got, &n), 0);
    assert_int_equal(n, 0);
}

/* ---- records ---- */

static struct dp_pod example(void)
{
    static char id[] = "0123456789abcdef", ifname[] = "eth0", project[] = "red", name[] = "web-1",
                netns[] = "/run/netns/x", host_ports[] = "tcp:8080:80";
    return (struct dp_pod){.container_id = id,
                           .ifname = ifname,
                           .pod_namespace = project,
                           .pod_name = name,
                           .netns = netns,
                           .host_if = "veth01234567",
                           .host_ports = host_ports,
                           .ip = 0x0a800002,
                           .mac = mac_from_ip4(0x0a800002),
                           .vnid = SDN_VNID_MAX,
                           .has_also_vnid = true,
                           .also_vnid = 10};
}

struct bad_files {
    size_t n;
    char last[300];
};

static void on_bad(void *ctx, const char *file, const char *why)
{
    struct bad_files *b = ctx;
    b->n++;
    snprintf(b->last, sizeof b->last, "%s: %s", file, why);
}

static void records_come_back_as_they_went(void **state)
{
    (void) state;
    CLEANUP_FREE char *dir = xasprintf("%s/pods", place.folder);
    struct dp_pod p = example(), **got = NULL;
    struct bad_files bad = {0};
    struct err e = {0};
    size_t n = 1;
    assert_int_equal(record_read_all(dir, on_bad, &bad, &got, &n, &e), 0); /* No folder yet. */
    assert_int_equal(n, 0);
    assert_int_equal(record_write(dir, &p, &e), 0);
    p.vnid = 11;
    p.has_also_vnid = false;
    assert_int_equal(record_write(dir, &p, &e), 0);
    assert_int_equal(record_read_all(dir, on_bad, &bad, &got, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(got[0]->container_id, p.container_id);
    assert_string_equal(got[0]->ifname, "eth0");
    assert_string_equal(got[0]->pod_namespace, "red");
    assert_string_equal(got[0]->pod_name, "web-1");
    assert_string_equal(got[0]->netns, "/run/netns/x");
    assert_string_equal(got[0]->host_if, "veth01234567");
    assert_string_equal(got[0]->host_ports, "tcp:8080:80");
    assert_null(got[0]->bandwidth);
    assert_int_equal(got[0]->ip, p.ip);
    assert_true(mac_equal(got[0]->mac, p.mac));
    assert_int_equal(got[0]->vnid, 11);
    assert_false(got[0]->has_also_vnid);
    dp_pod_free(got[0]);
    free(got);

    CLEANUP_FREE char *broken = xasprintf("%s/vethbroken.json", dir);
    assert_int_equal(file_write_atomic(broken, "{\"ip\":", 6, 0600, &e), 0);
    assert_int_equal(record_remove(dir, &p, &e), 0);
    assert_int_equal(record_remove(dir, &p, &e), 0);
    assert_int_equal(record_read_all(dir, on_bad, &bad, &got, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_int_equal(bad.n, 1);
    assert_non_null(strstr(bad.last, "vethbroken.json: "));
    free(got);

    /* A pipe in its place does not hold up the agent's start. */
    assert_int_equal(unlink(broken), 0);
    assert_int_equal(mkfifo(broken, 0600), 0);
    alarm(10);
    assert_int_equal(record_read_all(dir, on_bad, &bad, &got, &n, &e), 0);
    alarm(0);
    assert_int_equal(n, 0);
    assert_int_equal(bad.n, 2);
    assert_non_null(strstr(bad.last, "vethbroken.json: is not a regular file"));
    free(got);
}

static void what_is_no_record_is_refused_with_the_reason(void **state)
{
    (void) state;
#define GOOD "\"containerID\":\"c\",\"ifname\":\"eth0\",\"link\":\"veth1\",\"ip\":\"10.128.0.2\""
    static const struct {
        const char *text, *needle;
    } cases[] = {
        {"", "line 1"},
        {"[]", "containerID"},
        {"{\"containerID\":\"c\"}", "ifname is missing"},
        {"{\"containerID\":\"c\",\"ifname\":\"eth0\",\"link\":\"a/b\"}",
         "link is missing or no name"},
        {"{\"containerID\":\"c\",\"ifname\":\"eth0\",\"link\":\"a-name-too-long-for-it\"}", "link"},
        {"{" GOOD ",\"mac\":\"0a:58\",\"vnid\":1}", "ip or mac"},
        {"{" GOOD ",\"mac\":\"0a:58:0a:80:00:02\"}", "vnid is missing"},
        {"{" GOOD ",\"mac\":\"0a:58:0a:80:00:02\",\"vnid\":16777216}", "vnid is missing or not in"},
        {"{" GOOD ",\"mac\":\"0a:58:0a:80:00:02\",\"vnid\":1,\"alsoVNID\":-1}", "alsoVNID"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        struct dp_pod *p = NULL;
        assert_true(record_parse(cases[i].text, strlen(cases[i].text), &p, &e) < 0);
        assert_null(p);
        if (!strstr(e.text, cases[i].needle)) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].needle, e.text);
        }
    }
}

/* ---- programs ---- */

struct links {
    struct program one, two;
    struct hooks hooks;
    struct rtnl *r;
    int ifindex, other;
};

static void make_links(struct links *l, bool tcx)
{
    struct err e = {0};
    struct rtnl_link link;
    struct rtnl_veth v = {.name = "tv0", .peer_name = "tv1", .peer_ns_fd = -1};
    *l = (struct links){.hooks = {.tcx = tcx}};
    l->hooks.dir = xasprintf("%s/bpf/links", place.folder);
    if (program_load(NULL, &features, false, &l->one, &e) < 0 ||
        program_load(NULL, &features, false, &l->two, &e) < 0 || rtnl_open(&l->r, &e) < 0 ||
        rtnl_veth_add(l->r, &v, &e) < 0 || rtnl_link_get(l->r, "tv0", &link, &e) < 0) {
        fail_msg("%s", e.text);
    }
    l->ifindex = link.ifindex;
}

static void remove_links(struct links *l)
{
    rtnl_link_del(l->r, "tv0", NULL);
    rtnl_close(l->r);
    program_done(&l->one);
    program_done(&l->two);
    free((char *) l->hooks.dir);
}

static bool keep_none(void *ctx, const char *ifname)
{
    return false;
}

static void a_program_is_attached_replaced_and_found_again(bool tcx, enum hook_kind kind)
{
    struct links l;
    struct err e = {0};
    make_links(&l, tcx);
    int one = l.one.from_host, two = l.two.from_host;
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, one, &e), -ENOENT);
    assert_int_equal(hook_attach(&l.hooks, l.r, kind, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(hook_attach(&l.hooks, l.r, kind, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(hook_attach(&l.hooks, l.r, kind, "tv0", l.ifindex, two, &e), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, two, &e), 0);
    if (tcx && kind == HOOK_TCX) {
        assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, one, &e), -ENOENT);
    }

    /* Another link of the same name. */
    struct rtnl_veth v = {.name = "tv0", .peer_name = "tv1", .peer_ns_fd = -1};
    struct rtnl_link link;
    assert_int_equal(rtnl_link_del(l.r, "tv0", &e), 0);
    assert_int_equal(rtnl_veth_add(l.r, &v, &e), 0);
    assert_int_equal(rtnl_link_get(l.r, "tv0", &link, &e), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", link.ifindex, two, &e), -ENOENT);
    assert_int_equal(hook_attach(&l.hooks, l.r, kind, "tv0", link.ifindex, two, &e), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", link.ifindex, two, &e), 0);
    assert_int_equal(hook_sweep(&l.hooks, l.r, keep_none, NULL, &e), 0);
    if (tcx && kind == HOOK_TCX) {
        assert_int_equal(hook_check(&l.hooks, l.r, "tv0", link.ifindex, two, &e), -ENOENT);
    }
    assert_true(hook_attach(&l.hooks, l.r, kind, "gone", 9999, two, &e) < 0);
    remove_links(&l);
}

static void needs_tcx(void)
{
    if (!features.tcx) {
        LEAVE_OUT("this kernel has no tcx (Linux 6.6)");
    }
}

static void with_tcx(void **state)
{
    (void) state;
    needs_tcx();
    a_program_is_attached_replaced_and_found_again(true, HOOK_TCX);
    a_program_is_attached_replaced_and_found_again(true, HOOK_POD);
}

/* A pod of an agent that gave it tcx keeps that: from one way to the other there would
 * be a moment with both. */
static void a_pods_tcx_link_is_kept(void **state)
{
    (void) state;
    needs_tcx();
    struct links l;
    struct err e = {0};
    make_links(&l, true);
    int one = l.one.from_pod, two = l.two.from_pod;
    CLEANUP_FREE char *pin = xasprintf("%s/tv0", l.hooks.dir);
    assert_int_equal(hook_attach(&l.hooks, l.r, HOOK_TCX, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(access(pin, F_OK), 0);
    assert_int_equal(hook_attach(&l.hooks, l.r, HOOK_POD, "tv0", l.ifindex, two, &e), 0);
    assert_int_equal(access(pin, F_OK), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, two, &e), 0);
    hook_forget(&l.hooks, "tv0");
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, two, &e), -ENOENT);
    remove_links(&l);
}

static void with_clsact(void **state)
{
    (void) state;
    a_program_is_attached_replaced_and_found_again(false, HOOK_TCX);
}

static bool keep_counting(void *ctx, const char *ifname)
{
    size_t *n = ctx;
    *n += streq(ifname, "tv0");
    return true;
}

static size_t shared_filters(const struct links *l)
{
    size_t n = 0;
    struct err e = {0};
    assert_int_equal(
        redirect_sweep(l->r, REDIRECT_AMONG_OTHERS, "tenet-datapath", keep_counting, &n, &e), 0);
    return n;
}

static void a_filter_among_others_goes_when_nobody_wants_it(void **state)
{
    (void) state;
    struct links l;
    struct err e = {0};
    make_links(&l, false);
    int one = l.one.from_wire;
    assert_int_equal(hook_attach(&l.hooks, l.r, HOOK_TCX, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(shared_filters(&l), 0);
    assert_int_equal(hook_attach(&l.hooks, l.r, HOOK_SHARED, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(shared_filters(&l), 1);
    assert_int_equal(hook_sweep(&l.hooks, l.r, keep_none, NULL, &e), 0);
    assert_int_equal(shared_filters(&l), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, one, &e), 0);
    remove_links(&l);
}

static void a_filter_makes_way_for_tcx(void **state)
{
    (void) state;
    needs_tcx();
    struct links l;
    struct err e = {0};
    make_links(&l, true);
    struct hooks older = {.dir = l.hooks.dir};
    int one = l.one.from_wire, two = l.two.from_wire;
    assert_int_equal(hook_attach(&older, l.r, HOOK_SHARED, "tv0", l.ifindex, one, &e), 0);
    assert_int_equal(hook_attach(&l.hooks, l.r, HOOK_SHARED, "tv0", l.ifindex, two, &e), 0);
    assert_int_equal(shared_filters(&l), 0);
    assert_int_equal(hook_check(&l.hooks, l.r, "tv0", l.ifindex, two, &e), 0);
    remove_links(&l);
}

/* ---- pods that last ---- */

struct pods_of_test {
    struct links l;
    struct loop *loop;
    struct tcx_upgrade *upgrade;
    bool asked, over; /* For the first one; for another. */
};

static bool next_lasting(void *ctx, struct hook_place *ret)
{
    struct pods_of_test *t = ctx;
    snprintf(ret->ifname, sizeof ret->ifname, "tv0");
    ret->ifindex = t->l.ifindex;
    t->over = t->asked;
    t->asked = true;
    return !t->over;
}

static void start_lasting(struct pods_of_test *t)
{
    struct err e = {0};
    *t = (struct pods_of_test){0};
    make_links(&t->l, true);
    t->loop = loop_new();
    hook_forget(&t->l.hooks, "tv0"); /* Of a test before. */
    assert_int_equal(
        hook_attach(&t->l.hooks, t->l.r, HOOK_NEW_POD, "tv0", t->l.ifindex, t->l.one.from_pod, &e),
        0);
    struct tcx_upgrade_config c = {
        .loop = t->loop, .hooks = &t->l.hooks, .next = next_lasting, .ctx = t};
    t->upgrade = tcx_upgrade_new(&c, t->l.one.from_pod);
    tcx_upgrade_defer(t->upgrade);
}

static void run_until_over(struct pods_of_test *t)
{
    assert_int_equal(loop_run_until(t->loop, &t->over, 60000), 0);
}

static void stop_upgrade(struct pods_of_test *t)
{
    tcx_upgrade_free(t->upgrade);
    loop_free(t->loop);
    remove_links(&t->l);
}

static bool has_own_filter(struct links *l)
{
    return redirect_check_attached(l->r, l->ifindex, REDIRECT_INGRESS, "tenet-datapath", NULL) == 0;
}

static void a_pod_that_lasts_gets_tcx_in_place_of_its_filter(void **state)
{
    (void) state;
    needs_tcx();
    struct pods_of_test t;
    struct err e = {0};
    start_lasting(&t);
    CLEANUP_FREE char *pin = xasprintf("%s/tv0", t.l.hooks.dir);
    assert_true(has_own_filter(&t.l) && access(pin, F_OK) < 0);
    run_until_over(&t);
    assert_true(!has_own_filter(&t.l) && access(pin, F_OK) == 0);
    assert_int_equal(hook_check(&t.l.hooks, t.l.r, "tv0", t.l.ifindex, t.l.one.from_pod, &e), 0);
    hook_forget(&t.l.hooks, "tv0");
    stop_upgrade(&t);
}

/* Nor is it let go on while it is there, though nobody knows it. */
static void of_a_pod_that_goes_meanwhile_nothing_stays(void **state)
{
    (void) state;
    needs_tcx();
    struct pods_of_test t;
    struct err e = {0};
    start_lasting(&t);
    CLEANUP_FREE char *pin = xasprintf("%s/tv0", t.l.hooks.dir);
    run_until_over(&t);
    assert_int_equal(hook_sweep(&t.l.hooks, t.l.r, keep_none, NULL, &e), 0);
    assert_int_equal(access(pin, F_OK), 0);
    assert_int_equal(rtnl_link_del(t.l.r, "tv0", &e), 0);
    assert_int_equal(hook_sweep(&t.l.hooks, t.l.r, keep_none, NULL, &e), 0);
    assert_int_equal(access(pin, F_OK), -1);
    t.over = t.asked = false;
    tcx_upgrade_defer(t.upgrade); /* It goes before its turn. */
    run_until_over(&t);
    assert_int_equal(access(pin, F_OK), -1);
    stop_upgrade(&t);
}

static void maps_are_found_again_or_made_anew(void **state)
{
    (void) state;
    CLEANUP_FREE char *pins = xasprintf("%s/bpf/maps", place.folder);
    CLEANUP_FREE char *pin = xasprintf("%s/" EBPF_PODS, pins);
    struct program p = {0};
    struct err e = {0};
    uint32_t addr = htonl(0x0a800002), zero = 0;
    struct ebpf_pod pod = {.reach.ifindex = 7};
    if (program_load(pins, &features, false, &p, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_false(p.reused);
    assert_int_equal(access(pins, F_OK), -1); /* Nothing is changed by loading. */
    assert_int_equal(program_pin(&p, pins, &e), 0);
    assert_int_equal(bpf_map_update_elem(p.pods, &addr, &pod, BPF_ANY), 0);
    program_done(&p);
    assert_int_equal(program_load(pins, &features, false, &p, &e), 0);
    assert_true(p.reused);
    pod.reach.ifindex = 0;
    assert_int_equal(bpf_map_lookup_elem(p.pods, &addr, &pod), 0);
    assert_int_equal(pod.reach.ifindex, 7);
    assert_int_equal(program_pin(&p, pins, &e), 0); /* All are. */
    program_done(&p);

    /* Of another layout. */
    CLEANUP(fd_close) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tenet_test", 4, 4, 1, NULL);
    assert_int_equal(unlink(pin), 0);
    assert_int_equal(bpf_obj_pin(fd, pin), 0);
    /* Another version had this one. */
    CLEANUP_FREE char *unknown = xasprintf("%s/tenet_near", pins);
    assert_int_equal(bpf_obj_pin(fd, unknown), 0);
    assert_int_equal(program_load(pins, &features, false, &p, &e), 0);
    assert_false(p.reused);
    assert_true(bpf_map_lookup_elem(p.pods, &zero, &pod) < 0);
    CLEANUP(fd_close) int there = bpf_obj_get(pin);
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    assert_int_equal(bpf_obj_get_info_by_fd(there, &info, &size), 0);
    assert_int_equal(info.type,
                     BPF_MAP_TYPE_ARRAY); /* Until it is decided that the new ones are used. */
    assert_int_equal(access(unknown, F_OK), 0);
    assert_int_equal(program_pin(&p, pins, &e), 0);
    assert_int_equal(access(unknown, F_OK), -1);
    program_done(&p);
    assert_int_equal(program_load(pins, &features, false, &p, &e), 0);
    assert_true(p.reused);
    program_done(&p);
}

/* In a child, which gives its privileges up. */
static void without_privileges_it_is_said_what_is_missing(void **state)
{
    (void) state;
    int out[2], status;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = {0};
        struct program_features f;
        bool dropped = setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
        int r = dropped ? program_probe(NULL, &f, &e) : 0;
        dprintf(out[1], "%d %s", r, e.text);
        _exit(0);
    }
    char text[600] = "";
    close(out[1]);
    ssize_t n = read(out[0], text, sizeof text - 1);
    close(out[0]);
    waitpid(pid, &status, 0);
    assert_true(n > 0);
    if (!strstr(text, "-1 ") || !strstr(text, "needs CAP_BPF, CAP_PERFMON and")) {
        fail_msg("%s", text);
    }
}

static void what_is_not_to_be_used_is_not(void **state)
{
    (void) state;
    struct program_features f;
    assert_int_equal(program_probe("redirect_peer,tcx", &f, NULL), 0);
    assert_false(f.tcx || f.redirect_peer);
    assert_int_equal(program_probe("redirect_peer", &f, NULL), 0);
    assert_true(!f.redirect_peer && f.tcx == features.tcx);
}

/* ---- surroundings ---- */

static int set_up(void **state)
{
    (void) state;
    struct err e = {0};
    if (ebpf_place_enter(&place, "ebpf") < 0) {
        return -1;
    }
    CLEANUP_FREE char *bpffs = xasprintf("%s/bpf", place.folder);
    return program_mount(bpffs, &e); /* Nothing is done where there is one. */
}

static int tear_down(void **state)
{
    (void) state;
    return ebpf_place_leave(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_has_what_is_not_zero),
        cmocka_unit_test(near_are_pods_that_do_not_move_and_have_a_place_of_their_own),
        cmocka_unit_test(a_map_is_changed_by_the_difference_only),
        cmocka_unit_test(what_a_full_map_refuses_is_counted_and_tried_again),
        cmocka_unit_test(of_two_routes_the_nearer_kind_counts),
        cmocka_unit_test(subnets_are_of_the_length_that_most_have),
        cmocka_unit_test(records_come_back_as_they_went),
        cmocka_unit_test(what_is_no_record_is_refused_with_the_reason),
        cmocka_unit_test(with_tcx),
        cmocka_unit_test(a_pods_tcx_link_is_kept),
        cmocka_unit_test(with_clsact),
        cmocka_unit_test(a_filter_among_others_goes_when_nobody_wants_it),
        cmocka_unit_test(a_filter_makes_way_for_tcx),
        cmocka_unit_test(a_pod_that_lasts_gets_tcx_in_place_of_its_filter),
        cmocka_unit_test(of_a_pod_that_goes_meanwhile_nothing_stays),
        cmocka_unit_test(maps_are_found_again_or_made_anew),
        cmocka_unit_test(without_privileges_it_is_said_what_is_missing),
        cmocka_unit_test(what_is_not_to_be_used_is_not),
    };
    return EBPF_TESTS(&features, tests, set_up, tear_down);
}
