/* SPDX-License-Identifier: Apache-2.0 */
/* The datapath "ovs" beside its flows of the network, against a real Open vSwitch: links of pods
 * with and without limits, services, and answers of ovs-vswitchd's control socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leave_out.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "datapath/ovs/unixctl.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "ovs_fixture.h"
#include "sdn/explain.h"
#include "wire/json.h"

#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEEDS_OVS                     \
    struct fixture *f = *state;       \
    if (ovs_unavailable()) {          \
        LEAVE_OUT(ovs_unavailable()); \
    }

static void sh(const char *command)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    struct err e = {0};
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int status = -1;
    spec.argv = argv;
    if (process_run(&spec, WAIT_MS, NULL, &text, &status, &e) < 0 || status != 0) {
        fail_msg("%s: %s%s", command, e.text, strbuf_cstr(&text));
    }
}

/* ---- wires ---- */

static struct dp_wire make_wire(struct fixture *f, unsigned n, const struct cni_bandwidth *limits)
{
    static char host_if[16];
    snprintf(host_if, sizeof host_if, "vp%u", n);
    return (struct dp_wire){.host_if = host_if,
                            .port = fixture_port_of(f, n),
                            .mac = mac_from_ip4(0x0a800002 + n),
                            .mtu = 1450,
                            .limits = limits ? *limits : (struct cni_bandwidth){0}};
}

static void wire(struct fixture *f, unsigned n, const struct cni_bandwidth *limits)
{
    struct dp_wire w = make_wire(f, n, limits);
    struct err e = {0};
    if (datapath_wire(f->dp, &w, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static int check(struct fixture *f, unsigned n, const struct cni_bandwidth *limits, struct err *e)
{
    struct dp_wire w = make_wire(f, n, limits);
    return datapath_check_wire(f->dp, &w, e);
}

static void assert_wired(struct fixture *f, unsigned n, const struct cni_bandwidth *limits)
{
    struct err e = {0};
    if (check(f, n, limits, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static void attach_with_link(struct fixture *f, unsigned n)
{
    fixture_up(f);
    fixture_make_veth(f, n);
    assert_int_equal(fixture_attach(f, n), 0);
}

static void a_pods_link_and_its_port_hand_over_frames_both_ways(void **state)
{
    NEEDS_OVS
    struct err e = {0};
    struct rtnl_link port;
    attach_with_link(f, 1);
    CLEANUP_FREE char *name = xstrdup(fixture_port_of(f, 1));
    CLEANUP_FREE char *prefix = xasprintf("wire vp1 to port %s: ", name);
    assert_true(check(f, 1, NULL, &e) < 0);
    assert_true(str_has_prefix(e.text, prefix));
    wire(f, 1, NULL);
    assert_wired(f, 1, NULL);
    wire(f, 1, NULL);
    assert_wired(f, 1, NULL);

    static const char *const acts[] = {"tc filter del dev vp1 ingress",
                                       "tc filter del dev %s egress"};
    for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
        CLEANUP_FREE char *act = xasprintf(acts[i], name);
        sh(act);
        assert_true(check(f, 1, NULL, &e) < 0);
        wire(f, 1, NULL);
        assert_wired(f, 1, NULL);
    }
    CLEANUP_FREE char *down = xasprintf("ip link set %s down", name);
    CLEANUP_FREE char *up = xasprintf("ip link set %s up", name);
    CLEANUP_FREE char *want = xasprintf("%sport %s is down", prefix, name);
    sh(down);
    assert_int_equal(check(f, 1, NULL, &e), -ENOENT);
    assert_string_equal(e.text, want);
    sh(up);
    assert_wired(f, 1, NULL);

    /* The network has another MTU since the port was made. */
    struct dp_wire w = make_wire(f, 1, NULL);
    w.mtu = 1400;
    assert_int_equal(datapath_wire(f->dp, &w, &e), 0);
    assert_int_equal(rtnl_link_get(f->rtnl, name, &port, &e), 0);
    assert_int_equal(port.mtu, 1400);
    assert_int_equal(datapath_unlimit(f->dp, &w, &e), 0);
    assert_wired(f, 1, NULL);
}

static void limits_are_queues_of_the_pods_link_and_of_the_ports_peer(void **state)
{
    NEEDS_OVS
    const struct cni_bandwidth limits = {.from_pod = 8000000, .to_pod = 4000000};
    struct err e = {0};
    attach_with_link(f, 1);
    CLEANUP_FREE char *name = xstrdup(fixture_port_of(f, 1));
    wire(f, 1, NULL);
    assert_true(check(f, 1, &limits, &e) < 0);
    wire(f, 1, &limits);
    assert_wired(f, 1, &limits);
    assert_true(check(f, 1, NULL, &e) < 0); /* Its frames go to the port's peer now. */
    sh("tc qdisc del dev vp1 root");
    assert_true(check(f, 1, &limits, &e) < 0);
    wire(f, 1, &limits);
    assert_wired(f, 1, &limits);
    struct dp_wire w = make_wire(f, 1, &limits);
    assert_int_equal(datapath_unlimit(f->dp, &w, &e), 0);
    assert_true(check(f, 1, &limits, &e) < 0);
}

static void a_limit_by_another_plug_in_puts_a_bridge_between(void **state)
{
    NEEDS_OVS
    const struct cni_bandwidth elsewhere = {.elsewhere = true};
    struct err e = {0};
    attach_with_link(f, 1);
    sh("ip link set vp1 name veth1");
    struct dp_wire w = make_wire(f, 1, &elsewhere);
    w.host_if = "veth1";
    assert_int_equal(datapath_wire(f->dp, &w, &e), 0);
    assert_int_equal(datapath_check_wire(f->dp, &w, &e), 0);
    sh("ip link set tnbr1 down");
    assert_int_equal(datapath_check_wire(f->dp, &w, &e), -ENOENT);
    sh("ip link set tnbr1 up");
    assert_int_equal(datapath_check_wire(f->dp, &w, &e), 0);
    sh("tc filter del dev tnbr1 ingress");
    assert_true(datapath_check_wire(f->dp, &w, &e) < 0);
    assert_int_equal(datapath_wire(f->dp, &w, &e), 0);
    assert_int_equal(datapath_check_wire(f->dp, &w, &e), 0);
    assert_int_equal(datapath_unlimit(f->dp, &w, &e), 0);
    assert_int_equal(if_nametoindex("tnbr1"), 0);
}

/* ---- ports ---- */

static void a_number_that_a_foreign_port_has_is_not_taken(void **state)
{
    NEEDS_OVS
    sh("ip link add foreign type veth peer name other && ip link set foreign up");
    OVS_VSCTL(&f->ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "--",
              "add-port", "br0", "foreign", "--", "set", "interface", "foreign",
              "ofport_request=3");
    fixture_up(f);
    CLEANUP_FREE char *ports = FIXTURE_VSCTL(f, "list-ports", "br0");
    CLEANUP_FREE char *number = FIXTURE_VSCTL(f, "get", "interface", "foreign", "ofport");
    assert_string_equal(number, "3");
    assert_null(strstr(ports, "tp3"));
    assert_non_null(strstr(ports, "tp4"));
}

/* ---- services ---- */

static struct sdn_service *make_service(void)
{
    struct sdn_service *s = NULL;
    struct sdn_slice *slice = NULL;
    struct err e = {0};
    static const char service[] =
        "{\"metadata\":{\"namespace\":\"red\",\"name\":\"web\"},\"spec\":{\"clusterIP\":"
        "\"172.30.0.10\",\"ports\":[{\"name\":\"p\",\"port\":80}]}}";
    static const char endpoints[] =
        "{\"addressType\":\"IPv4\",\"metadata\":{\"labels\":{\"kubernetes.io/service-name\":"
        "\"web\"}},\"ports\":[{\"name\":\"p\",\"port\":8080,\"protocol\":\"TCP\"}],"
        "\"endpoints\":[{\"addresses\":[\"10.128.0.5\"],\"nodeName\":\"node1\",\"targetRef\":{"
        "\"kind\":\"Pod\",\"namespace\":\"red\",\"name\":\"x\"}}]}";
    CLEANUP(json_free) struct json *a = NULL, *b = NULL;
    assert_int_equal(json_parse(service, strlen(service), &a, &e), 0);
    assert_int_equal(json_parse(endpoints, strlen(endpoints), &b, &e), 0);
    assert_int_equal(sdn_service_parse(a, &s, &e), 0);
    assert_int_equal(sdn_slice_parse(b, &slice, &e), 0);
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}

static void wait_for_flows(struct fixture *f, const char *part, size_t n)
{
    for (uint64_t end = time_mono_ms() + WAIT_MS;;) {
        CLEANUP_FREE char *flows = fixture_flows(f);
        bool never = false;
        if (fixture_count(flows, part) == n) {
            return;
        }
        if (time_mono_ms() > end) {
            fail_msg("%zu flows with %s, not %zu", fixture_count(flows, part), part, n);
        }
        loop_run_until(f->loop, &never, 5);
    }
}

static void flows_of_a_service_come_and_go_with_it(void **state)
{
    NEEDS_OVS
    fixture_up(f);
    CLEANUP(sdn_service_free) struct sdn_service *s = make_service();
    struct sdn_project_service now = {.service = s, .vnid = 101};
    datapath_change_service(f->dp, NULL, &now);
    datapath_settle_services(f->dp, NULL);
    wait_for_flows(f, "nw_dst=172.30.0.10", 1);
    wait_for_flows(f, "10.128.0.5:8080", 1);
    datapath_change_service(f->dp, s, NULL);
    datapath_settle_services(f->dp, NULL);
    wait_for_flows(f, "172.30.0.10", 0);
    /* Open connections keep the endpoint's flow until they are idle. */
    wait_for_flows(f, "idle_timeout=", 1);
}

/* ---- the control socket ---- */

struct answer {
    bool done;
    int error;
    char text[200];
};

static void on_answer(void *ctx, int error, const char *text)
{
    struct answer *a = ctx;
    a->error = error;
    snprintf(a->text, sizeof a->text, "%s", text);
    a->done = true;
}

static void asks_and_answers_of_ovs_vswitchd(void **state)
{
    NEEDS_OVS
    struct answer good = {0}, bad = {0};
    static const char *const none[] = {NULL};
    CLEANUP_FREE char *links = xasprintf("cd %s && ln -s vswitchd.pid ovs-vswitchd.pid && "
                                         "ln -s vswitchd.ctl ovs-vswitchd.$(cat vswitchd.pid).ctl",
                                         f->ovs.dir);
    sh(links);
    unixctl_call(f->loop, f->ovs.dir, "version", none, on_answer, &good);
    assert_false(good.done);
    fixture_wait(f, &good.done);
    assert_int_equal(good.error, 0);
    assert_non_null(strstr(good.text, "Open vSwitch"));
    unixctl_call(f->loop, f->ovs.dir, "no/such", none, on_answer, &bad);
    fixture_wait(f, &bad.done);
    assert_int_equal(bad.error, -EINVAL);
    assert_non_null(strstr(bad.text, "no/such"));
}

static void a_control_socket_that_is_closed_ends_the_call(void **state)
{
    NEEDS_OVS
    struct answer a = {0};
    static const char *const none[] = {NULL};
    struct err e = {0};
    CLEANUP(fd_close) int listener = -1;
    CLEANUP_FREE char *path = xasprintf("%s/ovs-vswitchd.1.ctl", f->ovs.dir);
    CLEANUP_FREE char *pid = xasprintf("echo 1 >%s/ovs-vswitchd.pid", f->ovs.dir);
    sh(pid);
    assert_int_equal(sock_listen_unix(path, 0600, &listener, &e), 0);
    unixctl_call(f->loop, f->ovs.dir, "version", none, on_answer, &a);
    struct pollfd p = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&p, 1, WAIT_MS), 1);
    int fd = accept(listener, NULL, NULL);
    bool never = false;
    loop_run_until(f->loop, &never, 20);
    char request[256];
    assert_true(recv(fd, request, sizeof request, 0) > 0);
    close(fd);
    errno = EAGAIN; /* Of some earlier call. */
    fixture_wait(f, &a.done);
    assert_int_equal(a.error, -EIO);
    assert_string_equal(a.text, "ovs-vswitchd closed its control socket");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_pods_link_and_its_port_hand_over_frames_both_ways),
        T(limits_are_queues_of_the_pods_link_and_of_the_ports_peer),
        T(a_limit_by_another_plug_in_puts_a_bridge_between),
        T(a_number_that_a_foreign_port_has_is_not_taken),
        T(flows_of_a_service_come_and_go_with_it),
        T(asks_and_answers_of_ovs_vswitchd),
        T(a_control_socket_that_is_closed_ends_the_call),
    };
    return cmocka_run_group_tests_name("datapath/ovs wires", tests, NULL, NULL);
}
