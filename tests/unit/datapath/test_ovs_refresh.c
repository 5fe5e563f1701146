/* SPDX-License-Identifier: Apache-2.0 */
/* When ovs-vswitchd is asked to forget its cached flows (refresh.c): the switch is a real one, its
 * control socket ours, so that each request is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "leave_out.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/sock.h"
#include "ovs_fixture.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEEDS_OVS                     \
    struct fixture *f = *state;       \
    if (ovs_unavailable()) {          \
        LEAVE_OUT(ovs_unavailable()); \
    }

enum { MAX_ASKED = 64, SETTLE_MS = 100, INTERVAL_MS = 1000 };

/* ovs-vswitchd's control socket, as refresh.c finds it. */
static struct {
    struct fixture *f;
    int listener, fd;
    struct loop_fd *watch, *connection;
    bool refuses;
    const char *awaited; /* Each request says whether the switch has a flow with this text. */
    size_t n;
    uint64_t at_ms[MAX_ASKED];
    bool there[MAX_ASKED], asked;
} control;

static void answer(const char *reply)
{
    assert_int_equal(send(control.fd, reply, strlen(reply), MSG_NOSIGNAL), strlen(reply));
    control.connection = loop_fd_free(control.connection);
    control.fd = fd_close(control.fd);
}

/* The request comes in one piece. */
static void on_request(void *ctx, unsigned events)
{
    char text[256];
    ssize_t size = recv(control.fd, text, sizeof text - 1, 0);
    assert_true(size > 0);
    text[size] = '\0';
    if (strstr(text, "\"tnl/neigh/show\"")) { /* tunnels.c, which has no neighbours here. */
        answer("{\"result\":\"\",\"error\":null,\"id\":0}");
        return;
    }
    assert_non_null(strstr(text, "\"revalidator/purge\""));
    assert_in_range(control.n, 0, MAX_ASKED - 1);
    control.at_ms[control.n] = time_mono_ms();
    if (control.awaited) {
        CLEANUP_FREE char *flows = fixture_flows(control.f);
        control.there[control.n] = fixture_count(flows, control.awaited) > 0;
    }
    control.n++;
    control.asked = true;
    answer(control.refuses ? "{\"result\":null,\"error\":\"not now\",\"id\":0}"
                           : "{\"result\":\"\",\"error\":null,\"id\":0}");
}

/* Connections are accepted one after the other; others wait in the socket's queue. */
static void on_connection(void *ctx, unsigned events)
{
    if (control.connection) {
        return;
    }
    control.fd = accept4(control.listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(control.fd >= 0);
    control.connection = loop_fd_new(control.f->loop, control.fd, LOOP_READ, on_request, NULL);
}

static void socket_path(struct fixture *f, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", f->ovs.dir, name);
}

static void control_open(struct fixture *f)
{
    char path[96];
    struct err e = {0};
    socket_path(f, "ovs-vswitchd.1.ctl", path, sizeof path);
    if (sock_listen_unix(path, 0600, &control.listener, &e) < 0) {
        fail_msg("%s", e.text);
    }
    control.watch = loop_fd_new(f->loop, control.listener, LOOP_READ, on_connection, NULL);
    socket_path(f, "ovs-vswitchd.pid", path, sizeof path);
    FILE *pid = fopen(path, "we");
    assert_non_null(pid);
    fputs("1\n", pid);
    fclose(pid);
}

static void control_close(struct fixture *f)
{
    char path[96];
    control.watch = loop_fd_free(control.watch);
    control.connection = loop_fd_free(control.connection);
    control.fd = fd_close(control.fd);
    control.listener = fd_close(control.listener);
    socket_path(f, "ovs-vswitchd.1.ctl", path, sizeof path);
    unlink(path);
    socket_path(f, "ovs-vswitchd.pid", path, sizeof path);
    unlink(path);
}

static int set_up(void **state)
{
    int r = fixture_setup(state);
    memset(&control, 0, sizeof control);
    control.listener = control.fd = -1;
    control.f = *state;
    if (r == 0 && !ovs_unavailable()) {
        control_open(*state);
    }
    return r;
}

static int tear_down(void **state)
{
    if (!ovs_unavailable()) {
        control_close(*state);
    }
    return fixture_teardown(state);
}

static void run_for(struct fixture *f, uint64_t ms)
{
    bool never = false;
    loop_run_until(f->loop, &never, ms);
}

/* Everything is in place, and what that caused is asked for; a second later the next
 * may come at once. */
static void up(struct fixture *f)
{
    fixture_up(f);
    if (!control.asked) {
        fixture_wait(f, &control.asked);
    }
    run_for(f, INTERVAL_MS);
    control.n = 0;
    control.asked = false;
}

/* The group 'n' of policy is one flow, which the switch shows as "tp_dst=N". */
static void set_policy(struct fixture *f, uint16_t n)
{
    uint64_t cookie = pipeline_cookie(PIPELINE_POLICY_RULE, n);
    struct of_flow_list flows = {0};
    struct of_builder b;
    of_begin(&b, 20, 1000, cookie);
    of_match_eth_type(&b, 0x0800);
    of_match_ip_proto(&b, 6);
    of_match_tcp_dst(&b, n);
    of_end_into(&b, &flows);
    struct ovs_dp *o = CONTAINER_OF(f->dp, struct ovs_dp, dp);
    refresh_want(o, flow_table_set_group(&o->flows, cookie, &flows));
    loop_task_queue(&o->pump);
    of_flow_list_done(&flows);
}

static void policy_change_is_followed_by_one_request_when_it_is_in_the_switch(void **state)
{
    NEEDS_OVS
    up(f);
    control.awaited = "tp_dst=777";
    uint64_t start = time_mono_ms();
    set_policy(f, 777);
    fixture_wait(f, &control.asked);
    assert_true(control.there[0]);
    assert_true(control.at_ms[0] - start >= SETTLE_MS); /* For packets that were under way. */
    run_for(f, INTERVAL_MS + 300);
    assert_int_equal(control.n, 1);
}

static void change_that_the_switch_refuses_is_waited_for(void **state)
{
    NEEDS_OVS
    up(f);
    OVS_VSCTL(&f->ovs, "--", "--id=@t", "create", "Flow_Table", "flow_limit=2",
              "overflow_policy=refuse", "--", "set", "bridge", "br0", "flow_tables:20=@t");
    control.awaited = "tp_dst=777";
    f->ready = false;
    set_policy(f, 777);
    fixture_wait(f, &f->refused);
    run_for(f, 500);
    assert_int_equal(control.n, 0);
    OVS_VSCTL(&f->ovs, "clear", "bridge", "br0", "flow_tables");
    fixture_wait(f, &control.asked);
    assert_true(control.there[0]);
}

static void vnid_and_network_changes_are_followed_by_requests_pods_are_not(void **state)
{
    NEEDS_OVS
    up(f);
    fixture_make_veth(f, 1);
    assert_int_equal(fixture_attach(f, 1), 0);
    fixture_wait_for_ports(f);
    run_for(f, 300);
    assert_int_equal(control.n, 0);
    control.awaited = "reg0=0x22b,reg1=0x22b";
    datapath_set_vnids(f->dp, "red", &(struct sdn_vnids){.id = 555});
    fixture_wait(f, &control.asked);
    assert_true(control.there[0]);
    control.asked = false;
    control.awaited = "tun_src=192.168.0.4";
    fixture_add_remote(f, 3);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &control.asked);
    assert_true(control.there[1]);
    /* The same network again is no change. */
    datapath_set_network(f->dp, &f->net);
    run_for(f, INTERVAL_MS + 300);
    assert_int_equal(control.n, 2);
}

static void requests_are_a_second_apart_and_cover_the_last_change(void **state)
{
    NEEDS_OVS
    up(f);
    control.awaited = "tp_dst=2000";
    uint64_t start = time_mono_ms();
    uint16_t n = 1000;
    while (time_mono_ms() - start < 2500) {
        set_policy(f, ++n);
        run_for(f, 20);
    }
    assert_in_range(n, 1010, 1999);
    set_policy(f, 2000);
    while (!control.n || !control.there[control.n - 1]) {
        control.asked = false;
        fixture_wait(f, &control.asked);
    }
    run_for(f, INTERVAL_MS + 300);
    assert_true(control.there[control.n - 1]);
    assert_in_range(control.n, 2, 6);
    for (size_t i = 1; i < control.n; i++) {
        assert_true(control.at_ms[i] - control.at_ms[i - 1] >= INTERVAL_MS);
        assert_false(control.there[i - 1]); /* One after the last change is enough. */
    }
}

static void request_is_repeated_until_it_is_answered(void **state)
{
    NEEDS_OVS
    up(f);
    control_close(f);
    set_policy(f, 777);
    run_for(f, INTERVAL_MS + 300); /* In vain. */
    assert_int_equal(f->n_lost, 0);
    control.refuses = true;
    control_open(f);
    fixture_wait(f, &control.asked);
    control.asked = false;
    fixture_wait(f, &control.asked);
    assert_true(control.at_ms[1] - control.at_ms[0] >= INTERVAL_MS);
    control.refuses = control.asked = false;
    fixture_wait(f, &control.asked);
    run_for(f, INTERVAL_MS + 300);
    assert_int_equal(control.n, 3);
}

static void other_datapaths_are_left_alone(void **state)
{
    NEEDS_OVS
    up(f);
    fixture_close(f);
    /* The kernel's cannot be had everywhere; what is not "netdev" is treated like it. */
    OVS_VSCTL(&f->ovs, "set", "bridge", "br0", "datapath_type=dummy");
    fixture_open(f);
    free(((struct ovs_dp *) f->dp)->configured_type);
    ((struct ovs_dp *) f->dp)->configured_type = xstrdup("dummy");
    fixture_wait(f, &f->inventory);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->ready);
    set_policy(f, 777);
    run_for(f, INTERVAL_MS + 300);
    CLEANUP_FREE char *flows = fixture_flows(f);
    assert_int_equal(fixture_count(flows, "tp_dst=777"), 1);
    assert_int_equal(control.n, 0);
}

static void bridge_that_loses_its_type_is_survived(void **state)
{
    NEEDS_OVS
    up(f);
    /* Both meet in one turn of the pump: what is to be asked for, and a row that says no type. */
    set_policy(f, 777);
    OVS_VSCTL(&f->ovs, "--no-wait", "set", "bridge", "br0", "datapath_type=\"\"");
    fixture_wait(f, &control.asked);
    CLEANUP_FREE char *type = FIXTURE_VSCTL(f, "get", "bridge", "br0", "datapath_type");
    assert_string_equal(type, "netdev");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(policy_change_is_followed_by_one_request_when_it_is_in_the_switch),
        T(change_that_the_switch_refuses_is_waited_for),
        T(vnid_and_network_changes_are_followed_by_requests_pods_are_not),
        T(requests_are_a_second_apart_and_cover_the_last_change),
        T(request_is_repeated_until_it_is_answered),
        T(other_datapaths_are_left_alone),
        T(bridge_that_loses_its_type_is_survived),
    };
    return cmocka_run_group_tests_name("datapath/ovs refresh", tests, NULL, NULL);
}
