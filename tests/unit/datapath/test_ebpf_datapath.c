/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath "ebpf" as the agent uses it, with real programs and links in a network namespace of
 * its own: the network, pods and their links, services, and what it shows of them. */
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "datapath/datapath.h"
#include "datapath/ebpf/devices.h"
#include "ebpf_fixture.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"
#include "sdn/explain.h"
#include "wire/json.h"

#include <dirent.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "leave_out.h"

#define WAIT_MS 20000
#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define NODE1 IP(192, 168, 100, 1)
#define RED 101
#define BLUE 102

static struct program_features features;
static struct ebpf_place place;

struct agent {
    struct loop *loop;
    struct rtnl *rtnl;
    struct datapath *dp;
    struct smap settings;
    struct sdn_network net;
    struct sdn_remote remotes[4];
    struct sdn_service *service; /* NULL: the cluster has none. */
    uint32_t service_vnid;
    struct datapath_services services;

    bool inventory, ready, lost, fatal; /* A test clears what it waits for next. */
    char reason[512];
};

/* ---- the agent's side ---- */

static void on_inventory(void *ctx)
{
    ((struct agent *) ctx)->inventory = true;
}

static void on_ready(void *ctx)
{
    ((struct agent *) ctx)->ready = true;
}

static void on_lost(void *ctx, const char *reason)
{
    struct agent *a = ctx;
    a->lost = true;
    snprintf(a->reason, sizeof a->reason, "%s", reason);
}

static void on_fatal(void *ctx, const char *reason)
{
    struct agent *a = ctx;
    a->fatal = true;
    snprintf(a->reason, sizeof a->reason, "%s", reason);
}

static const struct datapath_events events = {.inventory = on_inventory,
                                              .ready = on_ready,
                                              .lost = on_lost,
                                              .refused = on_lost,
                                              .fatal = on_fatal};

static size_t list_services(void *ctx, struct sdn_project_service **ret)
{
    struct agent *a = ctx;
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct sdn_project_service){.service = a->service, .vnid = a->service_vnid};
    return a->service ? 1 : 0;
}

static void wait_for(struct agent *a, const bool *flag)
{
    if (loop_run_until(a->loop, flag, WAIT_MS) < 0) {
        fail_msg("nothing happened; the last reason: %s", a->reason);
    }
}

static void sh_output(const char *command, struct strbuf *out)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    struct err e = {0};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int status = -1;
    spec.argv = argv;
    if (process_run(&spec, WAIT_MS, out, &text, &status, &e) < 0 || status != 0) {
        fail_msg("%s: %s%s", command, e.text, strbuf_cstr(&text));
    }
}

static void sh(const char *command)
{
    sh_output(command, NULL);
}

static void add_remote(struct agent *a, unsigned n)
{
    a->remotes[a->net.n_remotes++] = (struct sdn_remote){
        .host_ip = NODE1 + n, .subnet = {IP(10, 128, 2 * n, 0), 23}, .id = 1000 + n};
}

static void open_datapath(struct agent *a)
{
    struct datapath_config cfg = {.kind = "ebpf",
                                  .node_name = "node1",
                                  .run_dir = place.folder,
                                  .settings = &a->settings,
                                  .expected = &a->net};
    struct err e = {0};
    a->inventory = a->ready = a->lost = a->fatal = false;
    cfg.prepared = datapath_prepare(a->loop, &cfg);
    assert_non_null(cfg.prepared);
    assert_int_equal(datapath_make_mounts(&cfg, &e), 0);
    if (datapath_open(a->loop, &cfg, &events, a, &a->dp, &e) < 0) {
        fail_msg("%s", e.text);
    }
    wait_for(a, &a->inventory);
}

static void bring_up(struct agent *a)
{
    open_datapath(a);
    datapath_set_network(a->dp, &a->net);
    datapath_settle_services(a->dp, &a->services);
    wait_for(a, &a->ready);
}

static void restart(struct agent *a)
{
    a->dp = datapath_close(a->dp);
    bring_up(a);
}

static int set_up(void **state)
{
    if (ebpf_place_enter(&place, "whole") < 0) {
        return -1;
    }
    sh("ip link set lo up && ip link add up0 type veth peer name up1 && "
       "ip addr add 192.168.100.1/24 dev up0 && ip link set up0 up && ip link set up1 up");
    struct agent *a = NEW(struct agent);
    *state = a;
    a->loop = loop_new();
    assert_int_equal(rtnl_open(&a->rtnl, NULL), 0);
    smap_init(&a->settings, free);
    a->net = (struct sdn_network){.plugin = SDN_MULTITENANT,
                                  .cluster = {{IP(10, 128, 0, 0), 14}},
                                  .n_cluster = 1,
                                  .service = {IP(172, 30, 0, 0), 16},
                                  .local = {IP(10, 128, 0, 0), 23},
                                  .host_ip = NODE1,
                                  .vxlan_port = SDN_VXLAN_PORT,
                                  .mtu = 1450,
                                  .remotes = a->remotes};
    add_remote(a, 1);
    add_remote(a, 2);
    a->services = (struct datapath_services){list_services, a};
    return 0;
}

static int tear_down(void **state)
{
    struct agent *a = *state;
    datapath_close(a->dp);
    rtnl_close(a->rtnl);
    smap_done(&a->settings);
    sdn_service_free(a->service);
    loop_free(a->loop);
    free(a);
    return ebpf_place_leave(&place);
}

/* ---- maps ---- */

static struct json *read_map(struct agent *a, const char *name)
{
    struct json *o = NULL;
    struct err e = {0};
    if (datapath_maps(a->dp, name, NULL, 4096, &o, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return o;
}

static size_t count_items(struct agent *a, const char *map)
{
    CLEANUP(json_free) struct json *o = read_map(a, map);
    return json_count(json_get(o, "items"));
}

/* Whether an entry of the map, as text, has this part. */
static bool has_entry(struct agent *a, const char *map, const char *part)
{
    CLEANUP(json_free) struct json *o = read_map(a, map);
    const struct json *items = json_get(o, "items");
    bool found = false;
    for (size_t i = 0; i < json_count(items); i++) {
        CLEANUP_FREE char *text = json_to_text(json_at(items, i));
        found = found || strstr(text, part);
    }
    return found;
}

/* ---- pods ---- */

struct outcome {
    char port[16], host_if[16];
    bool done;
    int error;
    char text[400];
};

static void on_port(void *ctx, const char *port, const char *host_if)
{
    struct outcome *o = ctx;
    assert_false(o->done);
    snprintf(o->port, sizeof o->port, "%s", port);
    snprintf(o->host_if, sizeof o->host_if, "%s", host_if);
}

static void on_done(void *ctx, int error, const char *text)
{
    struct outcome *o = ctx;
    assert_false(o->done);
    o->done = true;
    o->error = error;
    snprintf(o->text, sizeof o->text, "%s", text);
}

/* Pod 'n' has 10.128.0.(n+2), the link "veth<n>", and is of "red" when 'n' is odd, else "blue". */
static struct dp_pod make_pod(unsigned n)
{
    static char id[32], name[32];
    snprintf(id, sizeof id, "container-%u", n);
    snprintf(name, sizeof name, "pod-%u", n);
    struct dp_pod p = {.container_id = id,
                       .ifname = (char *) "eth0",
                       .pod_namespace = (char *) (n % 2 ? "red" : "blue"),
                       .pod_name = name,
                       .netns = (char *) "/run/netns/none",
                       .ip = IP(10, 128, 0, 2) + n,
                       .mac = mac_from_ip4(IP(10, 128, 0, 2) + n),
                       .vnid = n % 2 ? RED : BLUE};
    snprintf(p.host_if, sizeof p.host_if, "veth%u", n);
    return p;
}

static struct outcome attach(struct agent *a, unsigned n)
{
    struct dp_pod p = make_pod(n);
    struct outcome o = {0};
    datapath_attach(a->dp, &p, on_port, on_done, &o);
    assert_false(o.done);
    wait_for(a, &o.done);
    return o;
}

static struct outcome detach(struct agent *a, unsigned n)
{
    struct dp_pod p = make_pod(n);
    struct outcome o = {0};
    datapath_detach(a->dp, p.container_id, p.ifname, on_done, &o);
    assert_false(o.done);
    wait_for(a, &o.done);
    return o;
}

static const struct dp_pod *find_pod(struct agent *a, unsigned n)
{
    struct dp_pod p = make_pod(n);
    return datapath_find(a->dp, p.container_id, p.ifname);
}

static struct dp_wire make_wire(unsigned n, const struct cni_bandwidth *limits)
{
    static char name[16];
    snprintf(name, sizeof name, "veth%u", n);
    return (struct dp_wire){.host_if = name,
                            .port = name,
                            .mac = mac_from_ip4(IP(10, 128, 0, 2) + n),
                            .mtu = 1450,
                            .limits = limits ? *limits : (struct cni_bandwidth){0}};
}

static void make_veth(struct agent *a, unsigned n)
{
    char name[16], peer[16];
    snprintf(name, sizeof name, "veth%u", n);
    snprintf(peer, sizeof peer, "peer%u", n);
    struct rtnl_veth v = {.name = name, .peer_name = peer, .peer_ns_fd = -1, .mtu = 1450};
    struct err e = {0};
    if (rtnl_veth_add(a->rtnl, &v, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static void wire(struct agent *a, unsigned n, const struct cni_bandwidth *limits)
{
    struct dp_wire w = make_wire(n, limits);
    struct err e = {0};
    if (datapath_wire(a->dp, &w, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static int check_wire(struct agent *a, unsigned n, const struct cni_bandwidth *limits,
                      struct err *e)
{
    struct dp_wire w = make_wire(n, limits);
    return datapath_check_wire(a->dp, &w, e);
}

static void assert_wired(struct agent *a, unsigned n, const struct cni_bandwidth *limits)
{
    struct err e = {0};
    if (check_wire(a, n, limits, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

/* Attached and wired. */
static void run_pod(struct agent *a, unsigned n)
{
    make_veth(a, n);
    struct outcome o = attach(a, n);
    assert_int_equal(o.error, 0);
    wire(a, n, NULL);
}

static int link_of(unsigned n)
{
    char name[16];
    snprintf(name, sizeof name, "veth%u", n);
    return (int) if_nametoindex(name);
}

static size_t count_files(const char *folder)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", place.folder, folder);
    DIR *d = opendir(path);
    struct dirent *ent;
    size_t n = 0;
    while (d && (ent = readdir(d))) {
        n += ent->d_name[0] != '.';
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* ---- the network ---- */

static void the_network_is_in_the_maps_when_it_is_ready(void **state)
{
    struct agent *a = *state;
    struct datapath_status s;
    open_datapath(a);
    datapath_get_status(a->dp, &s);
    assert_true(!s.connected && !s.in_place && !s.variant);
    struct json *none = NULL;
    assert_int_equal(datapath_maps(a->dp, NULL, NULL, 1, &none, &(struct err){0}), -EAGAIN);
    datapath_set_network(a->dp, &a->net);
    datapath_get_status(a->dp, &s);
    assert_true(s.connected && !s.in_place); /* The services are not known yet. */
    datapath_settle_services(a->dp, &a->services);
    wait_for(a, &a->ready);
    datapath_get_status(a->dp, &s);
    assert_true(s.connected && s.in_place && s.refuses);
    assert_int_equal(s.remotes, 2);
    assert_int_equal(s.pods, 0);
    assert_string_equal(s.variant, features.tcx ? "ebpf/tcx" : "ebpf/clsact");

    CLEANUP(json_free) struct json *all = read_map(a, NULL);
    assert_true(json_count(all) > 20);
    assert_true(has_entry(a, "routes", "\"prefix\":\"10.128.2.0/23\""));
    assert_true(has_entry(a, "routes", "\"prefix\":\"10.128.4.0/23\""));
    assert_true(has_entry(a, "vteps", "\"vtep\":\"192.168.100.3\""));
    CLEANUP_FREE char *devices =
        xasprintf("\"tun\":%u,\"host\":%u,\"vxlan\":%u,\"vxlanPort\":4789", if_nametoindex("tun0"),
                  if_nametoindex(DEVICE_HOST), if_nametoindex(DEVICE_VXLAN));
    assert_true(has_entry(a, "settings", devices));
    assert_true(has_entry(a, "settings", "\"gateway\":\"10.128.0.1\""));
    assert_true(has_entry(a, "settings", "\"services\":true"));
}

static void nodes_come_and_go_and_the_other_rows_stay(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    size_t routes = count_items(a, "routes"), vteps = count_items(a, "vteps");
    add_remote(a, 3);
    datapath_set_network(a->dp, &a->net);
    assert_int_equal(count_items(a, "routes"), routes + 1);
    assert_int_equal(count_items(a, "vteps"), vteps + 1);
    assert_true(has_entry(a, "routes", "\"prefix\":\"10.128.6.0/23\""));
    a->net.n_remotes = 1;
    datapath_set_network(a->dp, &a->net);
    assert_int_equal(count_items(a, "routes"), routes - 1);
    assert_false(has_entry(a, "vteps", "192.168.100.3"));
    assert_false(a->lost);
}

static void a_foreign_link_is_fatal_and_changes_nothing(void **state)
{
    struct agent *a = *state;
    struct err e = {0};
    sh("ip link add tun0 type bridge");
    struct datapath_config cfg = {
        .kind = "ebpf", .node_name = "node1", .run_dir = place.folder, .settings = &a->settings};
    assert_int_equal(datapath_check(&cfg, &a->net, &e), -EEXIST);
    assert_true(str_has_prefix(e.text, "networkConfig.datapath: ebpf: there is a link tun0 of"));
    open_datapath(a);
    datapath_set_network(a->dp, &a->net);
    wait_for(a, &a->fatal);
    assert_true(str_has_prefix(a->reason, "there is a link tun0 of kind bridge"));
    assert_int_equal(if_nametoindex(DEVICE_HOST), 0);
    sh("ip link del tun0");
    assert_int_equal(datapath_check(&cfg, &a->net, &e), 0);
}

static void mounts_are_made_below_the_agents_folder(void **state)
{
    struct agent *a = *state;
    struct err e = {0};
    CLEANUP_FREE char *run_dir = xasprintf("%s/another", place.folder);
    CLEANUP_FREE char *bpffs = xasprintf("%s/bpf", run_dir);
    struct datapath_config cfg = {
        .kind = "ebpf", .node_name = "node1", .run_dir = run_dir, .settings = &a->settings};
    assert_false(program_is_mounted(bpffs));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(datapath_make_mounts(&cfg, &e), 0);
        assert_true(program_is_mounted(bpffs));
    }
    assert_int_equal(umount(bpffs), 0);
    cfg.kind = "nosuch";
    assert_int_equal(datapath_make_mounts(&cfg, &e), -EINVAL);
    assert_string_equal(e.text, "\"nosuch\" is not a datapath; there are: ovs, ebpf, hostgw");
}

static void a_lost_link_of_the_node_is_made_again(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    run_pod(a, 1);
    assert_true(find_pod(a, 1)->ready);
    datapath_link_gone(a->dp, "tun0"); /* A late report: the link is there. */
    assert_true(find_pod(a, 1)->ready);
    a->ready = false;
    sh("ip link del " DEVICE_VXLAN);
    datapath_link_gone(a->dp, DEVICE_VXLAN);
    assert_false(find_pod(a, 1)->ready);
    wait_for(a, &a->ready);
    /* It may be back before the agent is told. */
    assert_true(!a->lost || streq(a->reason, "the link " DEVICE_VXLAN " is gone"));
    assert_true(find_pod(a, 1)->ready);
    CLEANUP_FREE char *vxlan = xasprintf("\"vxlan\":%u,", if_nametoindex(DEVICE_VXLAN));
    assert_true(has_entry(a, "settings", vxlan));
}

static void a_link_that_is_not_there_yet_is_not_lost(void **state)
{
    struct agent *a = *state;
    bool never = false;
    open_datapath(a);
    datapath_link_gone(a->dp, "tun0"); /* That of another datapath, which was here before. */
    loop_run_until(a->loop, &never, 50);
    assert_false(a->lost);
}

static bool is_pinned(const char *link)
{
    CLEANUP_FREE char *path = xasprintf("%s/bpf/links/%s", place.folder, link);
    return access(path, F_OK) == 0;
}

static void a_link_that_leads_to_no_node_any_more_loses_its_program(void **state)
{
    struct agent *a = *state;
    if (!features.tcx || !features.encap) {
        LEAVE_OUT("this kernel has no tcx, or programs cannot put headers on");
    }
    bring_up(a);
    assert_true(is_pinned("up0") && is_pinned(DEVICE_VXLAN));
    a->dp = datapath_close(a->dp);
    sh("ip addr del 192.168.100.1/24 dev up0 && ip link add other0 type veth peer name other1 && "
       "ip link set other1 up && ip link set other0 up && "
       "ip addr add 192.168.100.1/24 dev other0");
    bring_up(a);
    assert_true(is_pinned("other0") && is_pinned(DEVICE_VXLAN));
    assert_false(is_pinned("up0"));
}

static void places_are_given_up_by_an_agent_that_ends_before_it_uses_them(void **state)
{
    struct agent *a = *state;
    bool never = false;
    if (!features.tcx) {
        LEAVE_OUT("this kernel has no tcx (Linux 6.6)");
    }
    open_datapath(a);
    datapath_set_network(a->dp, &a->net);
    /* Those of the links that were there when it began: maybe of up0 alone. */
    for (int i = 0; count_files("bpf/links") == 0; i++) {
        assert_true(i < 1000);
        loop_run_until(a->loop, &never, 10);
    }
    a->dp = datapath_close(a->dp);
    /* The worker may have gone on meanwhile. */
    for (int i = 0; count_files("bpf/links"); i++) {
        assert_true(i < 1000);
        loop_run_until(a->loop, &never, 10);
    }
}

/* ---- pods ---- */

static void an_attached_pod_is_on_file_in_the_maps_and_wired(void **state)
{
    struct agent *a = *state;
    struct err e = {0};
    bring_up(a);
    make_veth(a, 1);
    struct outcome o = attach(a, 1);
    assert_int_equal(o.error, 0);
    assert_string_equal(o.port, "veth1");
    assert_string_equal(o.host_if, "veth1");
    assert_int_equal(count_files("pods"), 1);
    const struct dp_pod *p = find_pod(a, 1);
    assert_non_null(p);
    assert_false(p->ready);
    assert_int_equal(check_wire(a, 1, NULL, &e), -ENOENT);

    wire(a, 1, NULL);
    p = find_pod(a, 1);
    assert_true(p->ready);
    assert_string_equal(p->port, "veth1");
    assert_int_equal(p->port_number, link_of(1));
    assert_int_equal(datapath_end(a->dp, "veth1", "veth1"), -1); /* It is a pair. */
    assert_wired(a, 1, NULL);
    CLEANUP_FREE char *pod = xasprintf("{\"key\":{\"address\":\"10.128.0.3\"},\"value\":{\"link\":"
                                       "%d,\"ethernet\":\"0a:58:0a:80:00:03\",\"vnid\":101}}",
                                       link_of(1));
    CLEANUP_FREE char *port =
        xasprintf("{\"key\":{\"link\":%d},\"value\":{\"address\":\"10.128.0.3\"}}", link_of(1));
    assert_true(has_entry(a, "pods", pod));
    assert_true(has_entry(a, "ports", port));
    assert_true(has_entry(a, "pod_cache", "\"address\":\"10.128.0.3\""));
    struct datapath_status s;
    datapath_get_status(a->dp, &s);
    assert_int_equal(s.pods, 1);

    o = detach(a, 1);
    assert_int_equal(o.error, 0);
    assert_null(find_pod(a, 1));
    assert_int_equal(count_items(a, "pods") + count_items(a, "ports") + count_items(a, "pod_cache"),
                     0);
    assert_int_equal(count_files("pods"), 0);
    assert_int_equal(check_wire(a, 1, NULL, &e), -ENOENT);
    assert_string_equal(e.text, "veth1 is not wired");
    o = detach(a, 1); /* There is none: nothing to do. */
    assert_int_equal(o.error, 0);
}

static void a_link_that_no_attached_pod_has_is_not_wired(void **state)
{
    struct agent *a = *state;
    struct err e = {0};
    bring_up(a);
    make_veth(a, 1);
    struct dp_wire w = make_wire(1, NULL);
    assert_int_equal(datapath_wire(a->dp, &w, &e), -ENOENT);
    assert_string_equal(e.text, "veth1 is no attached pod's link");
    w = make_wire(2, NULL);
    assert_int_equal(datapath_wire(a->dp, &w, &e), -ENODEV);
    assert_int_equal(count_items(a, "ports"), 0);
}

static void the_second_of_two_pods_goes_and_the_first_stays(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    for (unsigned n = 1; n <= 3; n++) {
        run_pod(a, n);
    }
    struct outcome o = detach(a, 2);
    assert_int_equal(o.error, 0);
    assert_null(find_pod(a, 2));
    assert_wired(a, 1, NULL);
    assert_wired(a, 3, NULL);
    assert_int_equal(count_items(a, "pods"), 2);
    assert_false(has_entry(a, "pods", "10.128.0.4"));
}

static void no_pod_is_attached_before_the_network_is_in_place(void **state)
{
    struct agent *a = *state;
    open_datapath(a);
    struct outcome o = attach(a, 1);
    assert_int_equal(o.error, -EAGAIN);
    assert_string_equal(o.text, "the datapath is not in place");
    assert_string_equal(o.port, "");
    assert_null(find_pod(a, 1));
}

static void the_same_container_again_replaces_its_pod(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    run_pod(a, 1);
    struct dp_pod p = make_pod(1);
    struct outcome o = {0};
    p.ip = IP(10, 128, 0, 50);
    p.mac = mac_from_ip4(p.ip);
    datapath_attach(a->dp, &p, on_port, on_done, &o);
    wait_for(a, &o.done);
    assert_int_equal(o.error, 0);
    wire(a, 1, NULL);
    assert_int_equal(count_items(a, "pods"), 1);
    assert_true(has_entry(a, "pods", "10.128.0.50"));
    assert_int_equal(count_files("pods"), 1);
}

static void a_pod_that_is_detached_while_it_is_attached_fails(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    struct dp_pod p = make_pod(1);
    struct outcome o = {0}, gone = {0};
    datapath_attach(a->dp, &p, on_port, on_done, &o);
    datapath_detach(a->dp, p.container_id, p.ifname, on_done, &gone);
    wait_for(a, &gone.done);
    wait_for(a, &o.done);
    assert_int_equal(o.error, -ECANCELED);
    assert_string_equal(o.text, "it was detached");
    assert_int_equal(gone.error, 0);
    assert_null(find_pod(a, 1));
    assert_int_equal(count_files("pods"), 0);
}

static void the_next_agent_finds_the_pods_and_their_links(void **state)
{
    struct agent *a = *state;
    struct outcome o = {0};
    bring_up(a);
    run_pod(a, 1);
    run_pod(a, 2);
    datapath_set_runtime(a->dp, "container-2", "eth0", "tcp:8080:80", NULL, on_done, &o);
    wait_for(a, &o.done);
    assert_int_equal(o.error, 0);
    CLEANUP_STRBUF struct strbuf before = STRBUF_INIT, after = STRBUF_INIT;
    for (int i = 0; i < 2; i++) {
        CLEANUP(json_free) struct json *pods = read_map(a, "pods");
        json_write(pods, 0, i ? &after : &before);
        if (i == 0) {
            a->dp = datapath_close(a->dp);
            open_datapath(a);
            const struct dp_pod *p = find_pod(a, 2);
            assert_non_null(p);
            assert_false(p->ready); /* The network is not set yet. */
            assert_string_equal(p->host_ports, "tcp:8080:80");
            assert_string_equal(p->pod_namespace, "blue");
            datapath_set_network(a->dp, &a->net);
            datapath_settle_services(a->dp, &a->services);
            wait_for(a, &a->ready);
        }
    }
    assert_string_equal(strbuf_cstr(&before), strbuf_cstr(&after));
    assert_true(find_pod(a, 1)->ready && find_pod(a, 2)->ready);
    assert_wired(a, 1, NULL);
    assert_wired(a, 2, NULL);
}

static void a_pod_without_its_link_is_not_ready_for_the_next_agent(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    run_pod(a, 1);
    run_pod(a, 2);
    a->dp = datapath_close(a->dp);
    sh("ip link del veth1");
    bring_up(a);
    assert_false(find_pod(a, 1)->ready);
    assert_true(find_pod(a, 2)->ready);
    assert_int_equal(count_items(a, "ports"), 1);
    assert_true(has_entry(a, "pods", "\"address\":\"10.128.0.3\"},\"value\":{\"link\":0,"));
}

static void a_pod_whose_link_is_gone_has_no_port(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    run_pod(a, 1);
    datapath_link_gone(a->dp, "veth1"); /* A late report of an earlier link. */
    assert_true(find_pod(a, 1)->ready);
    sh("ip link del veth1");
    datapath_link_gone(a->dp, "veth1");
    assert_false(find_pod(a, 1)->ready);
    assert_int_equal(count_items(a, "ports"), 0);
    assert_false(a->lost);
}

static void a_project_gets_another_vnid_and_keeps_it_on_file(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    run_pod(a, 1);
    run_pod(a, 2);
    datapath_set_vnids(a->dp, "red", &(struct sdn_vnids){.id = 7, .moving = true, .also = RED});
    assert_true(has_entry(a, "pods", "\"vnid\":7,\"alsoVNID\":101"));
    assert_true(has_entry(a, "pods", "\"vnid\":102}"));
    restart(a);
    const struct dp_pod *p = find_pod(a, 1);
    assert_true(p->vnid == 7 && p->has_also_vnid && p->also_vnid == RED);
    datapath_set_vnids(a->dp, "red", &(struct sdn_vnids){.id = 7});
    p = find_pod(a, 1);
    assert_true(p->vnid == 7 && !p->has_also_vnid);
    assert_true(has_entry(a, "pods", "\"vnid\":7}"));
    assert_int_equal(find_pod(a, 2)->vnid, BLUE);
}

static void settings_of_the_runtime_need_an_attached_pod(void **state)
{
    struct agent *a = *state;
    struct outcome none = {0}, first = {0}, second = {0};
    bring_up(a);
    run_pod(a, 1);
    datapath_set_runtime(a->dp, "container-2", "eth0", NULL, NULL, on_done, &none);
    wait_for(a, &none.done);
    assert_int_equal(none.error, -ENOENT);
    assert_string_equal(none.text, "the pod is not attached");
    datapath_set_runtime(a->dp, "container-1", "eth0", "udp:53:53", "elsewhere", on_done, &first);
    assert_string_equal(find_pod(a, 1)->host_ports, "udp:53:53");
    wait_for(a, &first.done);
    assert_int_equal(first.error, 0);
    datapath_set_runtime(a->dp, "container-1", "eth0", NULL, "elsewhere", on_done, &second);
    wait_for(a, &second.done);
    assert_null(find_pod(a, 1)->host_ports);
    assert_string_equal(find_pod(a, 1)->bandwidth, "elsewhere");
    assert_null(datapath_find(a->dp, "container-1", "eth1"));
}

static void more_pods_than_the_maps_have_room_for_are_refused(void **state)
{
    struct agent *a = *state;
    struct datapath_status s;
    smap_set(&a->settings, "ebpf.maxEntries", xstrdup("8"));
    bring_up(a);
    for (unsigned n = 1; n <= 8; n++) {
        struct outcome o = attach(a, n);
        assert_int_equal(o.error, 0);
    }
    struct outcome o = attach(a, 9);
    assert_int_equal(o.error, -ENOSPC);
    assert_true(str_has_prefix(o.text, "the datapath's maps of pods are full (8 at most): "));
    assert_null(find_pod(a, 9));
    assert_int_equal(count_files("pods"), 8);
    datapath_get_status(a->dp, &s);
    assert_int_equal(s.pods_refused, 1);
    assert_int_equal(s.pods, 8);
    o = detach(a, 3);
    assert_int_equal(o.error, 0);
    o = attach(a, 9);
    assert_int_equal(o.error, 0);
}

/* ---- limits ---- */

static bool has_link(struct agent *a, const char *name, struct rtnl_link *ret)
{
    return rtnl_link_get(a->rtnl, name, ret, NULL) == 0;
}

static void a_limit_from_the_pod_puts_a_queue_behind_its_link(void **state)
{
    struct agent *a = *state;
    const struct cni_bandwidth limits = {.from_pod = 8000000, .to_pod = 4000000};
    struct rtnl_link queue, inlet;
    struct err e = {0};
    bring_up(a);
    make_veth(a, 1);
    struct outcome o = attach(a, 1);
    assert_int_equal(o.error, 0);
    wire(a, 1, &limits);
    assert_wired(a, 1, &limits);
    assert_true(check_wire(a, 1, NULL, &e) < 0); /* As if it had no limits. */
    assert_true(has_link(a, "tnq1", &queue) && has_link(a, "tni1", &inlet));
    CLEANUP_FREE char *pod = xasprintf("\"link\":%d,\"inlet\":%d,", link_of(1), inlet.ifindex);
    assert_true(has_entry(a, "pods", pod));
    assert_true(has_entry(a, "pods", "\"queued\":true"));
    CLEANUP_FREE char *port = xasprintf("{\"link\":%d}", inlet.ifindex);
    assert_true(has_entry(a, "ports", port));

    sh("ip link set tni1 down");
    assert_int_equal(check_wire(a, 1, &limits, &e), -ENOENT);
    assert_string_equal(e.text, "tni1 is down");
    sh("ip link set tni1 up");
    assert_wired(a, 1, &limits);
    sh("tc qdisc del dev tnq1 root");
    assert_true(check_wire(a, 1, &limits, &e) < 0);
    wire(a, 1, &limits); /* Again, with the links that exist. */
    assert_wired(a, 1, &limits);
    sh("tc qdisc del dev veth1 root");
    assert_true(check_wire(a, 1, &limits, &e) < 0);
    wire(a, 1, &limits);

    struct dp_wire w = make_wire(1, &limits);
    assert_int_equal(datapath_unlimit(a->dp, &w, &e), 0);
    assert_false(has_link(a, "tnq1", &queue) || has_link(a, "tni1", &inlet));
    assert_true(check_wire(a, 1, &limits, &e) < 0);
}

/* Bytes that the link's queue has let pass. */
static unsigned long long queued_bytes(const char *link)
{
    CLEANUP_FREE char *command = xasprintf("tc -s qdisc show dev %s root", link);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    unsigned long long n = 0;
    sh_output(command, &out);
    const char *sent = strstr(strbuf_cstr(&out), "Sent ");
    assert_true(sent && sscanf(sent, "Sent %llu bytes", &n) == 1);
    return n;
}

static void packets_to_a_pod_with_a_limit_pass_its_queue(void **state)
{
    struct agent *a = *state;
    const struct cni_bandwidth limits = {.to_pod = 8000000};
    bring_up(a);
    run_pod(a, 1);
    make_veth(a, 3);
    struct outcome o = attach(a, 3);
    assert_int_equal(o.error, 0);
    wire(a, 3, &limits);
    assert_wired(a, 3, &limits);
    /* The ends in the pods are in this namespace, too. */
    sh("ip link set peer1 address 0a:58:0a:80:00:03 && for l in veth1 peer1 veth3 peer3; do "
       "ip link set $l up; done && ip addr add 10.128.0.3/32 dev peer1 && "
       "ip route add 10.128.0.5/32 dev peer1 && "
       "ip neigh add 10.128.0.5 lladdr 0a:58:0a:80:00:05 dev peer1 nud permanent");
    unsigned long long before = queued_bytes("veth3");
    sh("ping -c 3 -i 0.2 -W 1 -s 1200 -I peer1 10.128.0.5 >/dev/null || true");
    assert_true(queued_bytes("veth3") >= before + 3600);
}

static void the_next_agent_finds_a_limited_pods_inlet(void **state)
{
    struct agent *a = *state;
    const struct cni_bandwidth limits = {.from_pod = 8000000};
    struct outcome set = {0};
    bring_up(a);
    make_veth(a, 1);
    run_pod(a, 2);
    struct outcome o = attach(a, 1);
    assert_int_equal(o.error, 0);
    wire(a, 1, &limits);
    CLEANUP_FREE char *text = cni_bandwidth_text(&limits);
    datapath_set_runtime(a->dp, "container-1", "eth0", NULL, text, on_done, &set);
    wait_for(a, &set.done);
    restart(a);
    assert_wired(a, 1, &limits);
    assert_wired(a, 2, NULL);
    assert_false(has_entry(a, "pods", "\"queued\":true"));
    CLEANUP_FREE char *pod =
        xasprintf("\"link\":%d,\"inlet\":%u,", link_of(1), if_nametoindex("tni1"));
    assert_true(has_entry(a, "pods", pod));
}

static void a_limit_by_another_plug_in_puts_a_bridge_behind_the_link(void **state)
{
    struct agent *a = *state;
    const struct cni_bandwidth elsewhere = {.elsewhere = true};
    struct rtnl_link bridge, link;
    struct err e = {0};
    bring_up(a);
    make_veth(a, 1);
    struct outcome o = attach(a, 1);
    assert_int_equal(o.error, 0);
    wire(a, 1, &elsewhere);
    assert_wired(a, 1, &elsewhere);
    assert_true(has_link(a, "tnbr1", &bridge) && has_link(a, "veth1", &link));
    assert_int_equal(link.master, bridge.ifindex);
    assert_true(bridge.flags & IFF_UP);
    assert_true(bridge.flags & IFF_PROMISC); /* It takes frames to any address. */
    CLEANUP_FREE char *pod = xasprintf("\"link\":%d,\"inlet\":%d,", link_of(1), bridge.ifindex);
    assert_true(has_entry(a, "pods", pod));

    sh("ip link set tnbr1 down");
    assert_int_equal(check_wire(a, 1, &elsewhere, &e), -ENOENT);
    assert_string_equal(e.text, "veth1 is not in bridge tnbr1, or that is down");
    sh("ip link set tnbr1 up");
    assert_wired(a, 1, &elsewhere);
    sh("ip link set veth1 nomaster");
    assert_int_equal(check_wire(a, 1, &elsewhere, &e), -ENOENT);
    assert_string_equal(e.text, "veth1 is not in bridge tnbr1, or that is down");
    wire(a, 1, &elsewhere);
    assert_wired(a, 1, &elsewhere);

    struct dp_wire w = make_wire(1, &elsewhere);
    assert_int_equal(datapath_unlimit(a->dp, &w, &e), 0);
    assert_false(has_link(a, "tnbr1", &bridge));
    assert_int_equal(datapath_unlimit(a->dp, &w, &e), 0); /* It is gone. */
}

static void a_pod_without_limits_has_nothing_to_remove(void **state)
{
    struct agent *a = *state;
    struct err e = {0};
    bring_up(a);
    run_pod(a, 1);
    struct dp_wire w = make_wire(1, NULL);
    assert_int_equal(datapath_unlimit(a->dp, &w, &e), 0);
    assert_wired(a, 1, NULL);
}

/* ---- services ---- */

static struct sdn_service *make_service(const char *endpoint)
{
    struct sdn_service *s = NULL;
    struct sdn_slice *slice = NULL;
    struct err e = {0};
    CLEANUP_FREE char *text = xasprintf(
        "{\"addressType\":\"IPv4\",\"metadata\":{\"labels\":{\"kubernetes.io/service-name\":"
        "\"web\"}},\"ports\":[{\"name\":\"p\",\"port\":8080,\"protocol\":\"TCP\"}],"
        "\"endpoints\":[{\"addresses\":[\"%s\"],\"nodeName\":\"node1\",\"targetRef\":{\"kind\":"
        "\"Pod\",\"namespace\":\"red\",\"name\":\"x\"}}]}",
        endpoint);
    static const char service[] =
        "{\"metadata\":{\"namespace\":\"red\",\"name\":\"web\"},\"spec\":{\"clusterIP\":"
        "\"172.30.0.10\",\"ports\":[{\"name\":\"p\",\"port\":80}]}}";
    CLEANUP(json_free) struct json *a = NULL, *b = NULL;
    assert_int_equal(json_parse(service, strlen(service), &a, &e), 0);
    assert_int_equal(json_parse(text, strlen(text), &b, &e), 0);
    assert_int_equal(sdn_service_parse(a, &s, &e), 0);
    assert_int_equal(sdn_slice_parse(b, &slice, &e), 0);
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}

static void settle(struct agent *a)
{
    bool never = false;
    datapath_settle_services(a->dp, &a->services);
    loop_run_until(a->loop, &never, 20);
}

static void services_follow_what_the_agent_lists(void **state)
{
    struct agent *a = *state;
    bring_up(a);
    assert_int_equal(count_items(a, "services"), 0);
    a->service = make_service("10.128.0.3");
    a->service_vnid = RED;
    struct sdn_project_service now = {.service = a->service, .vnid = RED};
    datapath_change_service(a->dp, NULL, &now);
    settle(a);
    assert_true(has_entry(a, "services",
                          "{\"key\":{\"service\":\"172.30.0.10\",\"port\":80,\"protocol\":\"tcp\"},"
                          "\"value\":{\"backends\":1,\"vnid\":101}}"));
    assert_true(has_entry(a, "backends", "\"backend\":\"10.128.0.3:8080\""));
    restart(a); /* Nothing is removed meanwhile. */
    assert_int_equal(count_items(a, "services"), 1);

    struct sdn_service *old = TAKE(a->service);
    datapath_change_service(a->dp, old, NULL);
    settle(a);
    sdn_service_free(old);
    assert_int_equal(
        count_items(a, "services") + count_items(a, "backends") + count_items(a, "serving"), 0);
}

/* ---- looking ---- */

struct traced {
    int n, error;
    enum model_action action;
    enum model_cause cause;
    bool translated;
    uint32_t endpoint_ip;
};

static void on_trace(void *ctx, int error, const char *text, const struct dp_trace *t)
{
    struct traced *r = ctx;
    (void) text;
    *r = (struct traced){r->n + 1, error, t->action, t->cause, t->translated, t->endpoint_ip};
}

static struct traced trace_to(struct agent *a, unsigned from, uint32_t dst, uint16_t port)
{
    struct explain_question q = {.entry = MODEL_FROM_PORT,
                                 .port = (uint32_t) link_of(from),
                                 .src = IP(10, 128, 0, 2) + from,
                                 .dst = dst,
                                 .proto = 6,
                                 .src_port = 40000,
                                 .dst_port = port};
    struct model_packet p;
    struct traced r = {0};
    explain_packet(&a->net, &q, &p);
    datapath_trace(a->dp, &p, on_trace, &r);
    assert_int_equal(r.n, 1);
    return r;
}

static void a_trace_has_the_verdict_of_the_programs_in_use(void **state)
{
    struct agent *a = *state;
    const struct cni_bandwidth limits = {.from_pod = 8000000};
    open_datapath(a);
    assert_int_equal(trace_to(a, 1, IP(10, 128, 0, 5), 80).error, -EAGAIN);
    a->dp = datapath_close(a->dp);
    a->service = make_service("10.128.0.5");
    a->service_vnid = RED;
    bring_up(a);
    run_pod(a, 2);
    run_pod(a, 3);
    make_veth(a, 1);
    struct outcome o = attach(a, 1);
    assert_int_equal(o.error, 0);
    wire(a, 1, &limits); /* Its packets arrive at another link than its own. */
    assert_int_equal(trace_to(a, 1, IP(10, 128, 0, 5), 80).action, MODEL_DELIVER);
    struct traced r = trace_to(a, 1, IP(10, 128, 0, 4), 80);
    assert_true(r.action == MODEL_DROP && r.cause == MODEL_VNID_MISMATCH);
    r = trace_to(a, 3, IP(172, 30, 0, 10), 80);
    assert_true(r.action == MODEL_DELIVER && r.translated && r.endpoint_ip == IP(10, 128, 0, 5));
    assert_int_equal(trace_to(a, 3, IP(10, 128, 2, 9), 80).action, MODEL_TUNNEL);
}

struct counted {
    int n, error;
    uint64_t totals[MODEL_N_CAUSES];
};

static void on_drops(void *ctx, int error, const uint64_t totals[MODEL_N_CAUSES])
{
    struct counted *c = ctx;
    c->n++;
    c->error = error;
    memcpy(c->totals, totals, sizeof c->totals);
}

static void on_rules(void *ctx, int error, const char *text)
{
    assert_non_null(strstr(text, "tenet node maps"));
    *(int *) ctx = error;
}

static void drops_are_counted_and_there_are_no_flows(void **state)
{
    struct agent *a = *state;
    struct counted c = {0};
    int error = 0;
    open_datapath(a);
    datapath_drops(a->dp, on_drops, &c);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.error, -EAGAIN);
    a->dp = datapath_close(a->dp);
    bring_up(a);
    run_pod(a, 1);
    /* The end in the pod sends with an address that is not the pod's. */
    sh("ip link set veth1 up && ip link set peer1 up && ip addr add 10.128.0.77/32 dev peer1 && "
       "ip route add 10.128.0.78/32 dev peer1 && ip neigh add 10.128.0.78 lladdr "
       "0a:58:0a:80:00:4e dev peer1 nud permanent && "
       "{ ping -c 1 -W 1 -I peer1 10.128.0.78 >/dev/null || true; }");
    datapath_drops(a->dp, on_drops, &c);
    assert_int_equal(c.error, 0);
    assert_true(c.totals[MODEL_SPOOFED_SOURCE] > 0);
    struct datapath_rules_ops ops = {.done = on_rules};
    datapath_rules(a->dp, &ops, &error);
    assert_int_equal(error, -EOPNOTSUPP);
}

static void on_events(void *ctx, const struct dp_event *list, size_t n, uint64_t lost)
{
    (void) lost;
    for (size_t i = 0; i < n; i++) {
        *(bool *) ctx = *(bool *) ctx || list[i].cause == MODEL_SPOOFED_SOURCE;
    }
}

static void flows_are_told_while_they_are_watched(void **state)
{
    struct agent *a = *state;
    bool seen = false;
    struct err e = {0};
    if (!features.ringbuf) {
        LEAVE_OUT("this kernel has no ring buffers for programs (Linux 5.8)");
    }
    open_datapath(a);
    assert_int_equal(datapath_watch(a->dp, NULL, NULL, &e), 0);
    assert_int_equal(datapath_watch(a->dp, on_events, &seen, &e), -EAGAIN);
    a->dp = datapath_close(a->dp);
    bring_up(a);
    run_pod(a, 1);
    assert_true(has_entry(a, "settings", "\"watched\":false"));
    assert_int_equal(datapath_watch(a->dp, on_events, &seen, &e), 0);
    assert_true(has_entry(a, "settings", "\"watched\":true"));
    sh("ip link set veth1 up && ip link set peer1 up && ip addr add 10.128.0.77/32 dev peer1 && "
       "ip route add 10.128.0.78/32 dev peer1 && ip neigh add 10.128.0.78 lladdr "
       "0a:58:0a:80:00:4e dev peer1 nud permanent && "
       "{ ping -c 1 -W 1 -I peer1 10.128.0.78 >/dev/null || true; }");
    wait_for(a, &seen);
    assert_int_equal(datapath_watch(a->dp, NULL, NULL, &e), 0);
    assert_true(has_entry(a, "settings", "\"watched\":false"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_network_is_in_the_maps_when_it_is_ready),
        TEST(nodes_come_and_go_and_the_other_rows_stay),
        TEST(a_foreign_link_is_fatal_and_changes_nothing),
        TEST(mounts_are_made_below_the_agents_folder),
        TEST(a_lost_link_of_the_node_is_made_again),
        TEST(a_link_that_is_not_there_yet_is_not_lost),
        TEST(a_link_that_leads_to_no_node_any_more_loses_its_program),
        TEST(places_are_given_up_by_an_agent_that_ends_before_it_uses_them),
        TEST(an_attached_pod_is_on_file_in_the_maps_and_wired),
        TEST(a_link_that_no_attached_pod_has_is_not_wired),
        TEST(the_second_of_two_pods_goes_and_the_first_stays),
        TEST(no_pod_is_attached_before_the_network_is_in_place),
        TEST(the_same_container_again_replaces_its_pod),
        TEST(a_pod_that_is_detached_while_it_is_attached_fails),
        TEST(the_next_agent_finds_the_pods_and_their_links),
        TEST(a_pod_without_its_link_is_not_ready_for_the_next_agent),
        TEST(a_pod_whose_link_is_gone_has_no_port),
        TEST(a_project_gets_another_vnid_and_keeps_it_on_file),
        TEST(settings_of_the_runtime_need_an_attached_pod),
        TEST(more_pods_than_the_maps_have_room_for_are_refused),
        TEST(a_limit_from_the_pod_puts_a_queue_behind_its_link),
        TEST(packets_to_a_pod_with_a_limit_pass_its_queue),
        TEST(the_next_agent_finds_a_limited_pods_inlet),
        TEST(a_limit_by_another_plug_in_puts_a_bridge_behind_the_link),
        TEST(a_pod_without_limits_has_nothing_to_remove),
        TEST(services_follow_what_the_agent_lists),
        TEST(a_trace_has_the_verdict_of_the_programs_in_use),
        TEST(drops_are_counted_and_there_are_no_flows),
        TEST(flows_are_told_while_they_are_watched),
    };
    return EBPF_TESTS(&features, tests, NULL, NULL);
}
