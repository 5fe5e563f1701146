/* SPDX-License-Identifier: Apache-2.0 */
/* Host ports against the real kernel: who has a port, which of another node's addresses are
 * believed, and when a port leads to its pod (needs root, in namespaces of its own). */
#include "node/host/node_host_ports.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/hold.h"
#include "node/host/addresses.h"
#include "node/host/own_ports.h"
#include "nspair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

#define LOOPBACK 0x7f000001u
#define OWN 0xc0a80701u /* 192.168.7.1 */

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

static int setup(void **state)
{
    if (nspair_setup(state) < 0) {
        return -1;
    }
    sh("ip link set lo up; ip link add nic0 type bridge; ip addr add 192.168.7.1/24 dev nic0; ip "
       "link set nic0 up");
    return 0;
}

/* A socket of the host's; -1: it cannot be had. */
static int bound(uint8_t protocol, uint32_t ip, uint16_t port)
{
    int fd = socket(AF_INET, (protocol == 6 ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    if (bind(fd, (struct sockaddr *) &at, sizeof at) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int listening(uint32_t ip, uint16_t port)
{
    int fd = bound(6, ip, port);
    if (fd >= 0 && listen(fd, 4) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static enum hold_result try_hold(uint8_t protocol, uint32_t ip, uint16_t port, uint32_t *at)
{
    enum hold_result result;
    struct err e = {0};
    int fd;
    assert_int_equal(hold_port(protocol, ip, port, &result, &fd, at, &e), 0);
    assert_true((result == HOLD_OK) == (fd >= 0));
    if (fd >= 0) {
        close(fd);
    }
    return result;
}

static void a_held_port_is_nobodys_to_listen_at(void **state)
{
    static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
    (void) state;
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        enum hold_result result;
        struct err e = {0};
        uint32_t at;
        int fd;
        assert_int_equal(hold_port(protocols[i], 0, 8080, &result, &fd, &at, &e), 0);
        assert_int_equal(result, HOLD_OK);
        assert_int_equal(bound(protocols[i], 0, 8080), -1);
        assert_int_equal(bound(protocols[i], LOOPBACK, 8080), -1);
        assert_int_equal(bound(protocols[i], OWN, 8080), -1);
        assert_int_equal(try_hold(protocols[i], OWN, 8080, &at), HOLD_LISTENS);
        close(fd);
        int other = bound(protocols[i], LOOPBACK, 8080);
        assert_true(other >= 0);
        close(other);
    }
}

static void a_listener_is_told_from_a_connection(void **state)
{
    uint32_t at;
    (void) state;
    assert_int_equal(try_hold(IPPROTO_TCP, 0, 8081, &at), HOLD_OK);
    int server = listening(LOOPBACK, 8081);
    assert_int_equal(try_hold(IPPROTO_TCP, 0, 8081, &at), HOLD_LISTENS);
    assert_int_equal(at, LOOPBACK);
    assert_int_equal(try_hold(IPPROTO_TCP, LOOPBACK, 8081, &at), HOLD_LISTENS);
    assert_int_equal(try_hold(IPPROTO_TCP, OWN, 8081, &at), HOLD_OK);
    assert_int_equal(try_hold(IPPROTO_UDP, 0, 8081, &at), HOLD_OK);

    /* The ends of a connection: that of a listener which is gone, and that of who connected. */
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(8081), .sin_addr.s_addr = htonl(LOOPBACK)};
    assert_int_equal(connect(client, (struct sockaddr *) &to, sizeof to), 0);
    int accepted = accept(server, NULL, NULL);
    assert_true(accepted >= 0);
    close(server);
    assert_int_equal(try_hold(IPPROTO_TCP, 0, 8081, &at), HOLD_CONNECTION);
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    assert_int_equal(getsockname(client, (struct sockaddr *) &own, &size), 0);
    assert_int_equal(try_hold(IPPROTO_TCP, 0, ntohs(own.sin_port), &at), HOLD_CONNECTION);
    close(client);
    close(accepted);

    /* Bound, and not listening (yet). */
    int fd = bound(6, 0, 8082);
    assert_int_equal(try_hold(IPPROTO_TCP, 0, 8082, &at), HOLD_LISTENS);
    close(fd);
    fd = bound(17, OWN, 8082);
    assert_int_equal(try_hold(IPPROTO_UDP, 0, 8082, &at), HOLD_LISTENS);
    assert_int_equal(at, OWN);
    /* Of one peer only: a client. */
    to.sin_addr.s_addr = htonl(OWN);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    assert_int_equal(try_hold(IPPROTO_UDP, 0, 8082, &at), HOLD_CONNECTION);
    close(fd);

    int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(8083)};
    if (six >= 0 && bind(six, (struct sockaddr *) &any, sizeof any) == 0 && listen(six, 1) == 0) {
        assert_int_equal(try_hold(IPPROTO_TCP, 0, 8083, &at), HOLD_LISTENS);
    }
    if (six >= 0) {
        close(six);
    }
}

static const char *own(const struct own_ports *o, uint8_t protocol, uint16_t port)
{
    const struct cni_host_port p = {.protocol = protocol, .host_port = port, .port = 1};
    const char *what = own_ports_find(o, &p);
    return what ? what : "";
}

static void ports_of_tenets_own_parts_are_known(void **state)
{
    struct node_config c = {0};
    const struct sdn_network n = {.vxlan_port = 4789};
    struct own_ports o = {.config = &c, .net = &n, .master = "https://192.168.7.1:8443"};
    (void) state;
    assert_string_equal(own(&o, CNI_UDP, 53), "DNS of pods");
    assert_string_equal(own(&o, CNI_TCP, 53), "DNS of pods");
    assert_non_null(strstr(own(&o, CNI_UDP, 4789), "VXLAN"));
    assert_string_equal(own(&o, CNI_TCP, 4789), "");
    assert_string_equal(own(&o, CNI_TCP, 8443), "the master's API");
    assert_string_equal(own(&o, CNI_TCP, 2379), "the master's etcd");
    assert_string_equal(own(&o, CNI_TCP, 2380), "the master's etcd");
    assert_string_equal(own(&o, CNI_UDP, 8443), "");
    assert_string_equal(own(&o, CNI_TCP, 30000), "node ports of services");
    assert_string_equal(own(&o, CNI_UDP, 32767), "node ports of services");
    assert_string_equal(own(&o, CNI_TCP, 29999), "");
    assert_string_equal(own(&o, CNI_TCP, 32768), "");
    assert_string_equal(own(&o, CNI_TCP, 9101), "");
    c.metrics_address = (char *) "127.0.0.1:9101";
    assert_string_equal(own(&o, CNI_TCP, 9101), "the agent's metrics");
    static const char *const elsewhere[] = {"https://192.168.7.2:8443", "https://master:8443", "",
                                            NULL};
    for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++) {
        o.master = elsewhere[i];
        assert_string_equal(own(&o, CNI_TCP, 8443), "");
        assert_string_equal(own(&o, CNI_TCP, 2379), "");
    }
    o.master = "http://127.0.0.1:8080";
    assert_string_equal(own(&o, CNI_TCP, 8080), "the master's API");
    c.dns_bind_address = (char *) "none";
    assert_string_equal(own(&o, CNI_UDP, 53), "");
    c.dns_bind_address = (char *) "192.168.7.1:5353";
    assert_string_equal(own(&o, CNI_UDP, 53), "");
    assert_string_equal(own(&o, CNI_UDP, 5353), "DNS of pods");
}

/* ---- when a port leads to its pod ---- */

struct datapath {
    struct dp_pod pod;
    const struct dp_pod *list[1];
    size_t n;
};

const struct dp_pod *const *datapath_pods(struct datapath *d, size_t *ret_n)
{
    *ret_n = d->n;
    return d->list;
}

static struct datapath dp;
static char opened[256], published[256], trouble[512];
static const char *taken;
static int told;

static void on_open(void *ctx, struct nat_port *ports, size_t n, datapath_done_fn *fn, void *fn_ctx)
{
    (void) ctx;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *one = sdn_host_ports_text(&ports[i].is, 1);
        strbuf_addf(&text, "%s%s ", one, ports[i].not_at_loopback ? "!" : "");
    }
    snprintf(opened, sizeof opened, "%s", strbuf_cstr(&text));
    free(ports);
    if (fn) {
        fn(fn_ctx, 0, "");
    }
}

static void on_publish(void *ctx, const char *text)
{
    (void) ctx;
    snprintf(published, sizeof published, "%s", text ? text : "");
}

static void on_changed(void *ctx)
{
    (void) ctx;
}

static const char *on_own_port(void *ctx, const struct cni_host_port *p)
{
    (void) ctx;
    (void) p;
    return taken;
}

static void on_trouble(void *ctx, const char *project, const char *pod, const char *reason,
                       const char *text)
{
    (void) ctx;
    snprintf(trouble, sizeof trouble, "%s/%s %s %s", project, pod, reason, text);
}

static void on_done(void *ctx, int error, const char *text)
{
    (void) ctx;
    (void) text;
    assert_int_equal(error, 0);
    told++;
}

static const struct host_ports_ops ops = {.open = on_open,
                                          .publish = on_publish,
                                          .changed = on_changed,
                                          .own_port = on_own_port,
                                          .trouble = on_trouble};

static void set_pod(const char *ports)
{
    dp.pod = (struct dp_pod){.pod_namespace = (char *) "red",
                             .pod_name = (char *) "web",
                             .ip = 0x0a800005,
                             .host_ports = (char *) ports};
    dp.list[0] = &dp.pod;
    dp.n = ports ? 1 : 0;
}

static void tell_published(struct host_ports *h, const char *text)
{
    struct sdn_host_port *list = NULL;
    size_t n = sdn_host_ports_parse(text, (struct ip4_prefix){0x0a800000, 23}, &list);
    host_ports_published(h, list, n);
}

static struct host_ports *fresh(struct loop *l)
{
    opened[0] = published[0] = trouble[0] = '\0';
    taken = NULL;
    told = 0;
    return host_ports_new(l, &ops, NULL);
}

static void a_port_is_open_to_others_when_they_know_it(void **state)
{
    struct loop *l = loop_new();
    struct host_ports *h = fresh(l);
    struct err e = {0};
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    (void) state;
    assert_int_equal(cni_host_ports_parse("tcp:8090:80,udp:8090:53", &r), 0);
    set_pod(NULL);
    host_ports_update(h, &dp, false, NULL, NULL);
    assert_int_equal(host_ports_reserve(h, &r, &e), 0);
    assert_int_equal(bound(6, LOOPBACK, 8090), -1);
    assert_int_equal(host_ports_reserve(h, &r, &e),
                     -EADDRINUSE); /* For another pod at the same time. */
    set_pod("tcp:8090:80,udp:8090:53");
    host_ports_update(h, &dp, true, on_done, NULL);
    host_ports_settled(h, &r);
    assert_string_equal(published, "tcp:8090=10.128.0.5:80,udp:8090=10.128.0.5:53");
    assert_string_equal(opened, "");
    assert_int_equal(told, 0);
    tell_published(h, "tcp:8090=10.128.0.5:80");
    assert_string_equal(opened, "tcp:8090=10.128.0.5:80 ");
    assert_int_equal(told, 0);
    tell_published(h, "tcp:8090=10.128.0.5:80,udp:8090=10.128.0.5:53");
    assert_string_equal(opened, "tcp:8090=10.128.0.5:80 udp:8090=10.128.0.5:53 ");
    assert_int_equal(told, 1);
    /* It goes at once. */
    set_pod(NULL);
    host_ports_update(h, &dp, false, on_done, NULL);
    assert_string_equal(opened, "");
    assert_string_equal(published, "");
    assert_int_equal(told, 2);
    int fd = bound(6, LOOPBACK, 8090);
    assert_true(fd >= 0);
    close(fd);
    host_ports_free(h);
    loop_free(l);
}

static void a_pod_does_not_wait_for_ever_for_others_to_know_its_ports(void **state)
{
    struct loop *l = loop_new();
    struct host_ports *h = fresh(l);
    (void) state;
    set_pod("tcp:8097:80");
    host_ports_update(h, &dp, true, on_done, NULL);
    assert_string_equal(published, "tcp:8097=10.128.0.5:80");
    assert_int_equal(told, 0);
    struct host_ports_stats s;
    host_ports_get_stats(h, &s);
    assert_int_equal(s.unpublished, 1);
    bool never = false;
    for (unsigned i = 0; i < 1000 && !told; i++) {
        loop_run_until(l, &never, 10);
    }
    assert_int_equal(told, 1);
    assert_string_equal(opened, ""); /* It stays closed to them. */
    host_ports_free(h);
    loop_free(l);
}

static void what_is_refused_holds_nothing(void **state)
{
    struct loop *l = loop_new();
    struct host_ports *h = fresh(l);
    struct err e = {0};
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    (void) state;
    assert_int_equal(cni_host_ports_parse("tcp:8091:80,tcp:8092:80,tcp:8093:80", &r), 0);
    int server = listening(LOOPBACK, 8092);
    set_pod(NULL);
    host_ports_update(h, &dp, false, NULL, NULL);
    assert_int_equal(host_ports_reserve(h, &r, &e), -EADDRINUSE);
    assert_string_equal(e.text,
                        "8092/tcp: a process of this host listens at 127.0.0.1:8092; stop it, or "
                        "choose another hostPort or hostIP");
    for (uint16_t port = 8091; port <= 8093; port += 2) {
        int fd = bound(6, 0, port);
        assert_true(fd >= 0);
        close(fd);
    }
    close(server);
    assert_int_equal(host_ports_reserve(h, &r, &e), 0);
    host_ports_settled(h, &r); /* It failed for another reason. */
    int fd = bound(6, 0, 8092);
    assert_true(fd >= 0);
    close(fd);
    taken = "DNS of pods";
    assert_int_equal(host_ports_reserve(h, &r, &e), -EADDRINUSE);
    assert_non_null(
        strstr(e.text, "8091/tcp cannot be a pod's: this node uses it for DNS of pods"));
    host_ports_free(h);
    loop_free(l);
}

static void a_pod_that_is_there_loses_a_port_that_the_host_has(void **state)
{
    struct loop *l = loop_new();
    struct host_ports *h = fresh(l);
    struct host_ports_stats s;
    (void) state;
    int server = listening(0, 8094);
    tell_published(h, "tcp:8094=10.128.0.5:80,tcp:8095=10.128.0.5:80");
    set_pod("tcp:8094:80,tcp:8095:80");
    host_ports_update(h, &dp, false, NULL, NULL);
    assert_string_equal(opened, "tcp:8095=10.128.0.5:80 ");
    assert_string_equal(published, "tcp:8095=10.128.0.5:80");
    assert_non_null(
        strstr(trouble, "red/web HostPortTaken 8094/tcp: a process of this host listens"));
    host_ports_get_stats(h, &s);
    assert_int_equal(s.ports, 2);
    assert_int_equal(s.closed, 1);
    close(server);
    host_ports_free(h);
    /* The next agent finds it free; then one of Tenet's own parts has it. */
    h = fresh(l);
    tell_published(h, "tcp:8094=10.128.0.5:80,tcp:8095=10.128.0.5:80");
    host_ports_update(h, &dp, false, NULL, NULL);
    assert_string_equal(opened, "tcp:8094=10.128.0.5:80 tcp:8095=10.128.0.5:80 ");
    host_ports_free(h);
    h = fresh(l);
    taken = "DNS of pods";
    host_ports_update(h, &dp, false, NULL, NULL);
    assert_string_equal(opened, "");
    assert_non_null(strstr(trouble, "DNS of pods"));
    host_ports_free(h);
    loop_free(l);
}

static void podman_holds_the_ports_of_its_containers_itself(void **state)
{
    struct loop *l = loop_new();
    struct host_ports *h = fresh(l);
    struct err e = {0};
    CLEANUP(cni_runtime_done) struct cni_runtime r = {0};
    (void) state;
    assert_int_equal(cni_host_ports_parse("tcp:8096:80,engine", &r), 0);
    set_pod(NULL);
    int server = listening(0, 8096);
    assert_int_equal(host_ports_reserve(h, &r, &e), -EADDRINUSE);
    close(server);
    assert_int_equal(host_ports_reserve(h, &r, &e), 0);
    server = listening(0, 8096);
    assert_true(server >= 0);
    tell_published(h, "tcp:8096=10.128.0.5:80");
    set_pod("tcp:8096:80,engine");
    host_ports_update(h, &dp, true, on_done, NULL);
    host_ports_settled(h, &r);
    assert_string_equal(opened, "tcp:8096=10.128.0.5:80 ");
    host_ports_free(h);
    h = fresh(l); /* Another agent. */
    tell_published(h, "tcp:8096=10.128.0.5:80");
    host_ports_update(h, &dp, false, NULL, NULL);
    assert_string_equal(opened, "tcp:8096=10.128.0.5:80 ");
    close(server);
    host_ports_free(h);
    loop_free(l);
}

/* ---- addresses ---- */

static void addresses_of_this_host_are_those_that_others_can_use(void **state)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    struct sdn_addresses a;
    const struct sdn_network n = {
        .cluster = {{0x0a800000, 14}}, .n_cluster = 1, .service = {0xac1e0000, 16}, .host_ip = OWN};
    (void) state;
    sh("ip addr add 192.168.7.9/24 dev nic0; ip addr add 169.254.3.4/16 dev nic0; ip link add tun0 "
       "type bridge; "
       "ip addr add 10.128.0.1/23 dev tun0; ip addr add 192.0.2.99/32 dev tun0; ip link add "
       "docker0 type bridge; "
       "ip addr add 172.17.0.1/16 dev docker0; ip addr add 198.51.100.7/32 dev lo; "
       "ip link add d1 type bridge; ip addr add 192.0.2.1/32 dev d1; ip addr add 10.129.3.4/32 dev "
       "d1");
    assert_int_equal(rtnl_open(&r, &e), 0);
    assert_int_equal(addresses_own(r, &n, &a, &e), 0);
    CLEANUP_FREE char *text = sdn_addresses_text(&a);
    assert_string_equal(text, "192.0.2.1,192.168.7.9");
    sh("ip link del tun0; ip link del docker0; ip link del d1; ip addr del 192.168.7.9/24 dev "
       "nic0; "
       "ip addr del 169.254.3.4/16 dev nic0; ip addr del 198.51.100.7/32 dev lo");
}

static void an_address_of_another_node_is_believed_where_packets_go_there_anyway(void **state)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct err e = {0};
    /* On the link; by the node as the next hop; by another next hop; nowhere; ours;
     * another's main one; of two. */
    struct sdn_remote remotes[] = {
        {.host_ip = OWN + 1,
         .addresses = {{OWN + 100, 0xc6336401, 0xc6336402, 0x08080808, OWN, OWN + 2, OWN + 7,
                        OWN + 8},
                       8}},
        {.host_ip = OWN + 2, .addresses = {{OWN + 7}, 1}},
    };
    struct sdn_network n = {.host_ip = OWN, .remotes = remotes, .n_remotes = 2};
    (void) state;
    sdn_addresses_add(&n.addresses, OWN + 8);
    sh("ip route add 198.51.100.1/32 via 192.168.7.2; ip route add 198.51.100.2/32 via "
       "192.168.7.254");
    assert_int_equal(rtnl_open(&r, &e), 0);
    addresses_believe(r, &n);
    CLEANUP_FREE char *text = sdn_addresses_text(&remotes[0].addresses);
    assert_string_equal(text, "192.168.7.101,198.51.100.1");
    assert_int_equal(remotes[1].addresses.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_port_is_nobodys_to_listen_at),
        cmocka_unit_test(a_listener_is_told_from_a_connection),
        cmocka_unit_test(ports_of_tenets_own_parts_are_known),
        cmocka_unit_test(a_port_is_open_to_others_when_they_know_it),
        cmocka_unit_test(a_pod_does_not_wait_for_ever_for_others_to_know_its_ports),
        cmocka_unit_test(what_is_refused_holds_nothing),
        cmocka_unit_test(a_pod_that_is_there_loses_a_port_that_the_host_has),
        cmocka_unit_test(podman_holds_the_ports_of_its_containers_itself),
        cmocka_unit_test(addresses_of_this_host_are_those_that_others_can_use),
        cmocka_unit_test(an_address_of_another_node_is_believed_where_packets_go_there_anyway),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
