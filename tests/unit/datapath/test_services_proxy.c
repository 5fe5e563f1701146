/* SPDX-License-Identifier: Apache-2.0 */
/* The host's service proxy against the real kernel, in a network namespace of its own
 * (needs root). */
#include "../node/nspair.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "datapath/services/proxy.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000

static struct loop *loop;
static struct host_proxy *proxy;
static bool restored;
static const char *annotations = "";
static const char *endpoint_kind = "Pod"; /* The kind of the endpoints' targetRef. */
static unsigned n_wanted;
static char told_text[256];
static int told_error;

static char *sh(const char *command)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    struct err e = {0};
    struct strbuf out = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int status = -1;
    spec.argv = argv;
    if (process_run(&spec, WAIT_MS, &out, &text, &status, &e) < 0 || status != 0) {
        fail_msg("%s: %s%s", command, e.text, strbuf_cstr(&text));
    }
    return strbuf_steal(&out);
}

static void run(const char *command)
{
    free(sh(command));
}

static struct json *parse(const char *fmt, ...) PRINTF_LIKE(1, 2);
static struct json *parse(const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&text, fmt, ap);
    va_end(ap);
    struct json *j = NULL;
    struct err e = {0};
    if (json_parse(text.data, text.size, &j, &e) < 0) {
        fail_msg("%s: %s", text.data, e.text);
    }
    return j;
}

/* A service whose only port "p" has the given endpoints: "10.128.0.5:8080@node-a,...". */
static struct sdn_service *make_service(const char *name, const char *spec, const char *protocol,
                                        const char *endpoints)
{
    struct sdn_service *s = NULL;
    struct err e = {0};
    CLEANUP(json_free)
    struct json *obj =
        parse("{\"metadata\":{\"namespace\":\"t\",\"name\":\"%s\"%s},%s}", name, annotations, spec);
    if (sdn_service_parse(obj, &s, &e) < 0) {
        fail_msg("%s", e.text);
    }
    struct sdn_slice *slices[16];
    size_t n = 0;
    CLEANUP_FREE char *copy = xstrdup(endpoints);
    for (char *save, *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        char ip[32], node[32];
        unsigned port;
        assert_int_equal(sscanf(one, "%31[^:]:%u@%31s", ip, &port, node), 3);
        CLEANUP(json_free)
        struct json *slice = parse(
            "{\"addressType\":\"IPv4\",\"metadata\":{\"labels\":{\"kubernetes.io/service-name\":"
            "\"%s\"}},\"ports\":[{\"name\":\"p\",\"port\":%u,\"protocol\":\"%s\"}],\"endpoints\":"
            "[{\"addresses\":[\"%s\"],\"nodeName\":\"%s\",\"targetRef\":{\"kind\":\"%s\","
            "\"namespace\":\"t\",\"name\":\"x\"}}]}",
            name, port, protocol, ip, node, endpoint_kind);
        if (sdn_slice_parse(slice, &slices[n++], &e) < 0) {
            fail_msg("%s", e.text);
        }
    }
    sdn_service_join(s, slices, n);
    for (size_t i = 0; i < n; i++) {
        sdn_slice_unref(slices[i]);
    }
    return s;
}

static void settle(void)
{
    uint64_t end = time_mono_ms() + WAIT_MS;
    host_proxy_settled(proxy);
    while (!host_proxy_current(proxy)) {
        bool never = false;
        loop_run_until(loop, &never, 5);
        if (time_mono_ms() > end) {
            fail_msg("services are not in place: %s", told_text);
        }
    }
}

/* 'spec' NULL: the service goes. */
static void set(const char *name, const char *spec, const char *protocol, const char *endpoints)
{
    CLEANUP(sdn_service_free)
    struct sdn_service *s =
        make_service(name, spec ? spec : "\"spec\":{}", protocol, endpoints ? endpoints : "");
    host_proxy_service_changed(proxy, spec ? NULL : s, spec ? s : NULL);
    settle();
}

static void on_told(void *ctx, int error, const char *text, bool was_restored)
{
    (void) ctx;
    told_error = error;
    snprintf(told_text, sizeof told_text, "%s", text);
    restored = restored || was_restored;
}

static void on_wanted(void *ctx, const char *ns, const char *name, uint8_t protocol, uint16_t port)
{
    (void) ctx;
    assert_string_equal(ns, "t");
    assert_string_equal(name, "web");
    assert_true(protocol == SDN_TCP || protocol == SDN_UDP);
    assert_int_equal(port, 80);
    n_wanted++;
}

static struct sdn_network network(void)
{
    struct sdn_network n = {.n_cluster = 1};
    assert_int_equal(prefix_parse("10.128.0.0/14", &n.cluster[0], NULL), 0);
    assert_int_equal(prefix_parse("172.30.0.0/16", &n.service, NULL), 0);
    return n;
}

static void open_proxy(enum services_mode mode)
{
    struct host_proxy_config c = {.loop = loop,
                                  .node_name = "node-a",
                                  .mode = mode,
                                  .on_result = on_told,
                                  .need_pods = on_wanted};
    struct err e = {0};
    struct sdn_network n = network();
    if (host_proxy_new(&c, &proxy, &e) < 0) {
        fail_msg("%s", e.text);
    }
    host_proxy_set_network(proxy, &n);
    host_proxy_synced(proxy);
    restored = false;
}

static void close_proxy(void)
{
    while (host_proxy_busy(proxy)) {
        bool never = false;
        loop_run_until(loop, &never, 5);
    }
    proxy = host_proxy_free(proxy);
}

/* In the namespace "pod", which is a pod by the link tun0 and a machine outside by nic1. */
static int enter_pod(void)
{
    int back;
    assert_int_equal(netns_enter(pod_ns, &back, NULL), 0);
    return back;
}

static void connect_namespaces(void)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    static const char *const names[][2] = {{"tun0", "eth0"}, {"nic1", "eth1"}};
    assert_int_equal(rtnl_open(&r, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct rtnl_veth v = {.name = names[i][0], .peer_name = names[i][1], .peer_ns_fd = pod_ns};
        assert_int_equal(rtnl_veth_add(r, &v, NULL), 0);
    }
    run("ip addr add 10.128.0.1/24 dev tun0 && ip link set tun0 up && "
        "ip addr add 192.168.50.1/24 dev nic1 && ip link set nic1 up");
    int back = enter_pod();
    run("ip link set lo up && ip addr add 10.128.0.9/24 dev eth0 && ip link set eth0 up && "
        "ip addr add 192.168.50.2/24 dev eth1 && ip link set eth1 up && "
        "ip route add 172.30.0.0/16 via 10.128.0.1 && ip route add 172.29.0.0/16 via 192.168.50.1 "
        "&& "
        "ip route add 80.0.0.0/8 via 10.128.0.1");
    netns_leave(back);
}

static int setup_group(void **state)
{
    if (nspair_setup(state) < 0) {
        return -1;
    }
    connect_namespaces();
    run("ip link add d0 type bridge && ip addr add 192.168.9.1/24 dev d0 && "
        "ip link set d0 up && ip route add default dev d0 && "
        "for i in 5 6 7; do ip addr add 10.128.0.$i/32 dev lo; done");
    return 0;
}

static int setup(void **state)
{
    (void) state;
    loop = loop_new();
    open_proxy(SERVICES_NETFILTER);
    settle();
    return 0;
}

static int setup_userspace(void **state)
{
    (void) state;
    loop = loop_new();
    open_proxy(SERVICES_USERSPACE);
    settle();
    return 0;
}

static int teardown(void **state)
{
    (void) state;
    annotations = "";
    endpoint_kind = "Pod";
    close_proxy();
    loop_free(loop);
    run("nft flush ruleset");
    return 0;
}

/* ---- real connections ---- */

static struct sockaddr_in address(const char *ip, uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, ip, &sa.sin_addr), 1);
    return sa;
}

static int serve(int type, const char *ip, uint16_t port)
{
    struct sockaddr_in sa = address(ip, port);
    int fd = socket(AF_INET, type, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    assert_int_equal(bind(fd, (struct sockaddr *) &sa, sizeof sa), 0);
    assert_true(type == SOCK_DGRAM || listen(fd, 1024) == 0);
    return fd;
}

/* 0, or what connect(2) said. */
static int try_connect(const char *from, const char *ip, uint16_t port)
{
    struct sockaddr_in sa = address(ip, port), src = address(from, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_usec = 300000},
               sizeof(struct timeval));
    assert_int_equal(bind(fd, (struct sockaddr *) &src, sizeof src), 0);
    int r = connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0 ? errno : 0;
    close(fd);
    return r;
}

static int try_from_pod(const char *from, const char *ip, uint16_t port)
{
    int back = enter_pod();
    int r = try_connect(from, ip, port);
    netns_leave(back);
    return r;
}

/* Takes one connection of 'server'; the address it came from. */
static const char *accept_from(int server, char ret[INET_ADDRSTRLEN])
{
    struct sockaddr_in peer = {0};
    socklen_t size = sizeof peer;
    int fd = accept(server, (struct sockaddr *) &peer, &size);
    assert_true(fd >= 0);
    close(fd);
    return inet_ntop(AF_INET, &peer.sin_addr, ret, INET_ADDRSTRLEN);
}

static bool waits(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* How many of 'n' connections each server gets. */
static void share(const char *ip, uint16_t port, const int *servers, size_t n_servers, int n,
                  int *ret)
{
    memset(ret, 0, n_servers * sizeof *ret);
    for (int i = 0; i < n; i++) {
        int code = try_connect("0.0.0.0", ip, port);
        if (code) {
            fail_msg("connection %d to %s:%u: %s", i, ip, port, strerror(code));
        }
        for (size_t k = 0; k < n_servers; k++) {
            while (waits(servers[k])) {
                close(accept(servers[k], NULL, NULL));
                ret[k]++;
            }
        }
    }
}

#define CLUSTER_IP(more) \
    "\"spec\":{\"clusterIP\":\"172.30.0.10\",\"ports\":[{\"name\":\"p\",\"port\":80}]" more "}"
#define TWO "10.128.0.5:8080@node-a,10.128.0.6:8080@node-b"

static void a_service_has_one_element_and_one_for_each_endpoint(void **state)
{
    (void) state;
    set("web", CLUSTER_IP(""), "TCP", TWO);
    CLEANUP_FREE char *text = sh("nft list table ip tenet-services");
    assert_non_null(strstr(text, "172.30.0.10 . tcp . 80 : goto to-2"));
    assert_non_null(strstr(text, "172.30.0.10 . tcp . 80 . 0x00000000 : 10.128.0.5 . 8080"));
    assert_non_null(strstr(text, "172.30.0.10 . tcp . 80 . 0x00000001 : 10.128.0.6 . 8080"));
    assert_non_null(strstr(text, "chain to-2 {"));
    set("web", CLUSTER_IP(""), "TCP", "10.128.0.6:8080@node-b");
    free(text);
    text = sh("nft list table ip tenet-services");
    assert_non_null(strstr(text, "172.30.0.10 . tcp . 80 : goto to-1"));
    assert_null(strstr(text, "10.128.0.5"));
    assert_null(strstr(text, "chain to-2 {"));
    set("web", NULL, "TCP", NULL);
    free(text);
    text = sh("nft list table ip tenet-services");
    assert_null(strstr(text, "172.30.0.10"));
    assert_null(strstr(text, "chain to-1 {"));
}

static void connections_spread_evenly(void **state)
{
    (void) state;
    int servers[] = {serve(SOCK_STREAM, "10.128.0.5", 8080), serve(SOCK_STREAM, "10.128.0.6", 8080),
                     serve(SOCK_STREAM, "10.128.0.7", 8080)};
    int got[3];
    set("web", CLUSTER_IP(""), "TCP", TWO ",10.128.0.7:8080@node-a");
    share("172.30.0.10", 80, servers, 3, 900, got);
    for (size_t i = 0; i < 3; i++) {
        assert_in_range(got[i], 220, 380); /* Six standard deviations. */
        close(servers[i]);
    }
    assert_int_equal(got[0] + got[1] + got[2], 900);
}

static void what_nobody_serves_is_refused_at_once(void **state)
{
    (void) state;
    set("web", CLUSTER_IP(""), "TCP", "");
    assert_int_equal(try_connect("0.0.0.0", "172.30.0.10", 80), ECONNREFUSED);
    assert_int_equal(try_connect("0.0.0.0", "172.30.0.10", 81), ECONNREFUSED);
    assert_int_equal(try_connect("0.0.0.0", "172.30.200.1", 80), ECONNREFUSED);
}

static void node_ports_are_at_every_address_of_the_host(void **state)
{
    (void) state;
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080), got;
    set("web",
        "\"spec\":{\"type\":\"NodePort\",\"clusterIP\":\"172.30.0.10\",\"externalIPs\":"
        "[\"80.11.12.10\"],\"ports\":[{\"name\":\"p\",\"port\":80,\"nodePort\":30080}]}",
        "TCP", "10.128.0.5:8080@node-a");
    static const struct {
        const char *ip;
        uint16_t port;
    } all[] = {
        {"192.168.9.1", 30080}, {"127.0.0.1", 30080}, {"172.30.0.10", 80}, {"80.11.12.10", 80}};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        share(all[i].ip, all[i].port, &server, 1, 3, &got);
        assert_int_equal(got, 3);
    }
    close(server);
}

static void a_client_with_affinity_comes_back(void **state)
{
    (void) state;
    int servers[] = {serve(SOCK_STREAM, "10.128.0.5", 8080),
                     serve(SOCK_STREAM, "10.128.0.6", 8080)};
    int got[2];
#define STICKY CLUSTER_IP(",\"sessionAffinity\":\"ClientIP\"")
    set("web", STICKY, "TCP", TWO);
    share("172.30.0.10", 80, servers, 2, 40, got);
    assert_true(got[0] == 40 || got[1] == 40);
    /* Its endpoint goes: it gets the other one, and keeps that when the first is back. */
    size_t had = got[0] ? 0 : 1;
    set("web", STICKY, "TCP", had == 0 ? "10.128.0.6:8080@node-b" : "10.128.0.5:8080@node-a");
    share("172.30.0.10", 80, servers, 2, 5, got);
    assert_int_equal(got[!had], 5);
    set("web", STICKY, "TCP", TWO);
    share("172.30.0.10", 80, servers, 2, 40, got);
    assert_int_equal(got[!had], 40);
    close(servers[0]);
    close(servers[1]);
}

static void local_policies_use_endpoints_of_this_node(void **state)
{
    (void) state;
    int servers[] = {serve(SOCK_STREAM, "10.128.0.5", 8080),
                     serve(SOCK_STREAM, "10.128.0.6", 8080)};
    int got[2];
#define LOCAL CLUSTER_IP(",\"internalTrafficPolicy\":\"Local\"")
    set("web", LOCAL, "TCP", TWO);
    share("172.30.0.10", 80, servers, 2, 20, got);
    assert_int_equal(got[0], 20);
    set("web", LOCAL, "TCP", "10.128.0.6:8080@node-b");
    assert_int_equal(try_connect("0.0.0.0", "172.30.0.10", 80), EINPROGRESS); /* Dropped. */
    close(servers[0]);
    close(servers[1]);
}

static void the_same_services_change_nothing_when_the_agent_starts_again(void **state)
{
    (void) state;
    set("web", STICKY, "TCP", TWO);
    set("np",
        "\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"172.30.0.11\","
        "\"externalTrafficPolicy\":\"Local\",\"loadBalancerSourceRanges\":[\"192.168.9.0/24\","
        "\"192.168.0.0/16\",\"10.0.0.0/8\"],\"ports\":[{\"name\":\"p\",\"port\":80,\"nodePort\":"
        "30080}]},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"172.29.0.3\"}]}}",
        "TCP", TWO);
    CLEANUP_FREE char *before = sh("nft -a list table ip tenet-services | grep handle");
    close_proxy();
    open_proxy(SERVICES_NETFILTER);
    CLEANUP(sdn_service_free) struct sdn_service *s = make_service("web", STICKY, "TCP", TWO);
    host_proxy_service_changed(proxy, NULL, s);
    set("np",
        "\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"172.30.0.11\","
        "\"externalTrafficPolicy\":\"Local\",\"loadBalancerSourceRanges\":[\"192.168.9.0/24\","
        "\"192.168.0.0/16\",\"10.0.0.0/8\"],\"ports\":[{\"name\":\"p\",\"port\":80,\"nodePort\":"
        "30080}]},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"172.29.0.3\"}]}}",
        "TCP", TWO);
    CLEANUP_FREE char *after = sh("nft -a list table ip tenet-services | grep handle");
    assert_string_equal(before, after); /* Also the handles: nothing was made anew. */
    assert_false(restored);
}

static void what_others_do_to_the_table_is_undone(void **state)
{
    (void) state;
    static const char *const acts[] = {
        "nft delete table ip tenet-services",
        "nft flush ruleset",
        "nft add rule ip tenet-services prerouting counter",
        "nft insert rule ip tenet-services to-2 accept",
        "nft flush chain ip tenet-services to-2",
        "nft flush map ip tenet-services endpoints",
        "nft delete element ip tenet-services frontends '{ 172.30.0.10 . tcp . 80 }'",
        "nft add element ip tenet-services frontends '{ 172.30.0.9 . tcp . 80 : goto to-2 }'",
        "nft add chain ip tenet-services mine",
        "nft add chain ip tenet-services output '{ policy drop; }'",
        "nft add table ip tenet-services '{ flags dormant; }'",
    };
    set("web", CLUSTER_IP(""), "TCP", TWO);
    CLEANUP_FREE char *want = sh("nft list table ip tenet-services");
    for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
        run(acts[i]);
        restored = false;
        host_proxy_changed(proxy);
        settle();
        CLEANUP_FREE char *now = sh("nft list table ip tenet-services");
        if (!streq(want, now) || !restored) {
            fail_msg("%s: restored=%d, now: %s", acts[i], restored, now);
        }
    }
}

static void the_first_by_name_has_a_disputed_address(void **state)
{
    (void) state;
    set("b", CLUSTER_IP(""), "TCP", "10.128.0.6:8080@node-b");
    set("a", CLUSTER_IP(""), "TCP", "10.128.0.5:8080@node-a");
    assert_int_equal(host_proxy_get_stats(proxy)->conflicts, 1);
    CLEANUP_FREE char *text = sh("nft list map ip tenet-services endpoints");
    assert_non_null(strstr(text, "10.128.0.5"));
    assert_null(strstr(text, "10.128.0.6"));
    set("a", NULL, "TCP", NULL);
    free(text);
    text = sh("nft list map ip tenet-services endpoints");
    assert_null(strstr(text, "10.128.0.5"));
    assert_non_null(strstr(text, "10.128.0.6"));
    assert_int_equal(host_proxy_get_stats(proxy)->conflicts, 0);
}

static void udp_goes_on_to_living_endpoints_only(void **state)
{
    (void) state;
    int servers[] = {serve(SOCK_DGRAM, "10.128.0.5", 53), serve(SOCK_DGRAM, "10.128.0.6", 53)};
    struct sockaddr_in sa = address("172.30.0.10", 53);
    int client = socket(AF_INET, SOCK_DGRAM, 0);
#define DNS                                                                                        \
    "\"spec\":{\"clusterIP\":\"172.30.0.10\",\"ports\":[{\"name\":\"p\",\"port\":53,\"protocol\":" \
    "\"UDP\"}]}"
    set("dns", DNS, "UDP", "10.128.0.5:53@node-a,10.128.0.6:53@node-b");
    assert_int_equal(connect(client, (struct sockaddr *) &sa, sizeof sa), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(send(client, "x", 1, 0), 1);
    }
    size_t had = waits(servers[0]) ? 0 : 1;
    assert_true(waits(servers[had]));
    assert_false(waits(servers[!had])); /* One client, one endpoint. */
    set("dns", DNS, "UDP", had == 0 ? "10.128.0.6:53@node-b" : "10.128.0.5:53@node-a");
    assert_int_equal(send(client, "y", 1, 0), 1);
    assert_true(waits(servers[!had]));
    assert_int_equal(host_proxy_get_stats(proxy)->forgotten, 1);
    close(client);
    close(servers[0]);
    close(servers[1]);
}

static void a_change_leaves_open_connections_alone(void **state)
{
    (void) state;
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    struct sockaddr_in sa = address("172.30.0.10", 80);
    char c = 0;
    set("web", CLUSTER_IP(""), "TCP", "10.128.0.5:8080@node-a");
    int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (struct sockaddr *) &sa, sizeof sa), 0);
    int peer = accept(server, NULL, NULL);
    set("web", CLUSTER_IP(""), "TCP", "10.128.0.6:8080@node-b");
    run("nft delete table ip tenet-services");
    host_proxy_changed(proxy);
    settle();
    assert_int_equal(send(client, "a", 1, 0), 1);
    assert_int_equal(recv(peer, &c, 1, 0), 1);
    assert_int_equal(send(peer, "b", 1, 0), 1);
    assert_int_equal(recv(client, &c, 1, 0), 1);
    assert_int_equal(c, 'b');
    close(client);
    close(peer);
    close(server);
}

#define NODE_PORT(more)                                                              \
    "\"spec\":{\"type\":\"NodePort\",\"clusterIP\":\"172.30.0.10\",\"externalIPs\":" \
    "[\"80.11.12.10\"],\"ports\":[{\"name\":\"p\",\"port\":80,\"nodePort\":30080}]" more "}"

static void clients_from_outside_use_what_the_policy_says(void **state)
{
    (void) state;
    char text[INET_ADDRSTRLEN];
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    set("web", NODE_PORT(""), "TCP", "10.128.0.5:8080@node-a");
    assert_int_equal(try_from_pod("192.168.50.2", "192.168.50.1", 30080), 0);
    accept_from(server, text);
    set("web", NODE_PORT(",\"externalTrafficPolicy\":\"Local\""), "TCP", TWO);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(try_from_pod("192.168.50.2", "192.168.50.1", 30080), 0);
        assert_string_equal(accept_from(server, text), "192.168.50.2");
    }
    set("web", NODE_PORT(",\"externalTrafficPolicy\":\"Local\""), "TCP", "10.128.0.6:8080@node-b");
    assert_int_equal(try_from_pod("192.168.50.2", "192.168.50.1", 30080), EINPROGRESS);
    close(server);
}

static void only_source_ranges_reach_a_load_balancer(void **state)
{
    (void) state;
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
#define RANGES(list)                                                                     \
    "\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"172.30.0.10\","                 \
    "\"loadBalancerSourceRanges\":[" list "],\"ports\":[{\"name\":\"p\",\"port\":80}]}," \
    "\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"172.29.0.3\"}]}}"
    static const struct {
        const char *service;
        int want;
    } cases[] = {{RANGES("\"192.168.49.0/24\",\"10.0.0.0/8\""), EINPROGRESS},
                 {RANGES("\"192.168.50.0/24\",\"10.0.0.0/8\""), 0},
                 {RANGES("\"192.168.50.3/32\""), EINPROGRESS},
                 {RANGES("\"0.0.0.0/0\""), 0},
                 {RANGES("\"fd00::/8\""), EINPROGRESS}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        set("lb", cases[i].service, "TCP", "10.128.0.5:8080@node-a");
        assert_int_equal(try_from_pod("192.168.50.2", "172.29.0.3", 80), cases[i].want);
    }
    close(server);
}

/* Translated here its packet would be the host's, and reach every project. */
static void a_pods_packet_is_refused(void **state)
{
    (void) state;
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    static const char *const addresses[] = {"172.30.0.10", "80.11.12.10"};
    set("web", NODE_PORT(""), "TCP", "10.128.0.5:8080@node-a");
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        assert_int_equal(try_from_pod("10.128.0.9", addresses[i], 80), ECONNREFUSED);
    }
    assert_int_equal(try_from_pod("10.128.0.9", "10.128.0.1", 30080), ECONNREFUSED);
    assert_int_equal(try_from_pod("10.128.0.9", "172.30.99.99", 80), ECONNREFUSED);
    assert_false(waits(server));
    assert_int_equal(try_from_pod("10.128.0.9", "10.128.0.5", 8080), 0); /* The way is open. */
    close(server);
}

static void run_until(bool (*condition)(int arg), int arg)
{
    uint64_t end = time_mono_ms() + WAIT_MS;
    while (!condition(arg)) {
        bool never = false;
        loop_run_until(loop, &never, 5);
        assert_true(time_mono_ms() < end);
    }
}

static bool is_wanted(int times)
{
    return n_wanted >= (unsigned) times;
}

#define IDLED ",\"annotations\":{\"idling.alpha.openshift.io/idled-at\":\"2026-11-21T00:00:00Z\"}"

static void an_idle_service_is_asked_for_and_its_connections_wait(void **state)
{
    (void) state;
    char text[8] = "";
    struct sockaddr_in sa = address("172.30.0.10", 80), node = address("127.0.0.1", 30080);
    annotations = IDLED;
    n_wanted = 0;
    set("web", NODE_PORT(""), "TCP", "");
    int clients[] = {socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(connect(clients[0], (struct sockaddr *) &sa, sizeof sa), 0);
    assert_int_equal(connect(clients[1], (struct sockaddr *) &node, sizeof node), 0);
    run_until(is_wanted, 2);
    /* A pod's packet is br0's to hold. */
    assert_int_equal(try_from_pod("10.128.0.9", "172.30.0.10", 80), ECONNREFUSED);
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    set("web", NODE_PORT(""), "TCP", "10.128.0.5:8080@node-a"); /* The annotation goes later. */
    for (int i = 0; i < 2; i++) {
        run_until(waits, server);
        int peer = accept(server, NULL, NULL);
        assert_int_equal(send(peer, "hello", 5, 0), 5);
        close(peer);
    }
    for (size_t i = 0; i < 2; i++) {
        run_until(waits, clients[i]);
        assert_int_equal(recv(clients[i], text, sizeof text, 0), 5);
        close(clients[i]);
    }
    CLEANUP_FREE char *map = sh("nft list map ip tenet-services frontends");
    assert_non_null(strstr(map, "172.30.0.10 . tcp . 80 : goto to-1"));
    assert_null(strstr(map, "goto port-"));
    annotations = "";
    close(server);
}

static void an_idle_service_is_asked_for_by_datagrams(void **state)
{
    (void) state;
#define IDLE_UDP                                                                      \
    "\"spec\":{\"clusterIP\":\"172.30.0.10\",\"ports\":[{\"name\":\"p\",\"port\":80," \
    "\"protocol\":\"UDP\"}]}"
    struct sockaddr_in sa = address("172.30.0.10", 80);
    annotations = IDLED;
    n_wanted = 0;
    set("web", IDLE_UDP, "UDP", "");
    int client = socket(AF_INET, SOCK_DGRAM, 0), server = serve(SOCK_DGRAM, "10.128.0.5", 8080);
    assert_int_equal(sendto(client, "x", 1, 0, (struct sockaddr *) &sa, sizeof sa), 1);
    run_until(is_wanted, 1);
    annotations = "";
    set("web", IDLE_UDP, "UDP", "10.128.0.5:8080@node-a");
    assert_int_equal(sendto(client, "y", 1, 0, (struct sockaddr *) &sa, sizeof sa), 1);
    assert_true(waits(server)); /* The client's connection to the proxy was forgotten. */
    close(client);
    close(server);
}

static void many_services_come_and_go(void **state)
{
    (void) state;
    enum { N = 3000 };
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            char name[16], spec[128];
            snprintf(name, sizeof name, "s%d", i);
            snprintf(spec, sizeof spec,
                     "\"spec\":{\"clusterIP\":\"172.30.%d.%d\",\"ports\":[{\"name\":\"p\",\"port\":"
                     "80}]}",
                     i / 250 + 1, i % 250);
            CLEANUP(sdn_service_free) struct sdn_service *s = make_service(name, spec, "TCP", TWO);
            host_proxy_service_changed(proxy, round ? s : NULL, round ? NULL : s);
        }
        settle();
        CLEANUP_FREE char *text =
            sh("nft list map ip tenet-services endpoints | grep -o 10.128.0 | wc -l");
        assert_int_equal(atoi(text), round ? 0 : 2 * N);
    }
    assert_int_equal(host_proxy_get_stats(proxy)->failures, 0);
}

/* ---- the userspace proxy ---- */

static int connect_to(int type, const char *ip, uint16_t port)
{
    struct sockaddr_in sa = address(ip, port);
    int fd = socket(AF_INET, type, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &sa, sizeof sa), 0);
    return fd;
}

static int accept_one(int server)
{
    run_until(waits, server);
    int fd = accept(server, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* Sends and expects exactly these bytes at the other end. */
static void pass(int from, int to, const char *text)
{
    char got[64] = "";
    assert_int_equal(send(from, text, strlen(text), 0), strlen(text));
    run_until(waits, to);
    assert_int_equal(recv(to, got, sizeof got, 0), strlen(text));
    assert_string_equal(got, text);
}

static void assert_ends(int fd)
{
    char c;
    run_until(waits, fd);
    assert_int_equal(recv(fd, &c, 1, 0), 0);
}

static void assert_reset(int fd)
{
    char c;
    run_until(waits, fd);
    assert_int_equal(recv(fd, &c, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
    close(fd);
}

static bool has_connections(int n)
{
    return host_proxy_get_stats(proxy)->userspace->connections == (size_t) n;
}

static void the_userspace_proxy_passes_single_bytes_and_ends_of_each_direction(void **state)
{
    (void) state;
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    set("web", CLUSTER_IP(""), "TCP", "10.128.0.5:8080@node-a");
    int client = connect_to(SOCK_STREAM, "172.30.0.10", 80), peer = accept_one(server);
    pass(client, peer, "a");
    pass(peer, client, "b");
    pass(client, peer, "many bytes at once");
    shutdown(client, SHUT_WR);
    assert_ends(peer);
    pass(peer, client, "c");
    assert_true(has_connections(1));
    close(peer);
    assert_ends(client);
    run_until(has_connections, 0);
    close(client);
    close(server);
}

static void the_userspace_proxy_tries_the_next_endpoint(void **state)
{
    (void) state;
    int server = serve(SOCK_STREAM, "10.128.0.6", 8080);
    set("web", CLUSTER_IP(""), "TCP", TWO);
    for (int i = 0; i < 2; i++) {
        int client = connect_to(SOCK_STREAM, "172.30.0.10", 80), peer = accept_one(server);
        pass(peer, client, "x");
        close(peer);
        close(client);
    }
    assert_int_equal(host_proxy_get_stats(proxy)->userspace->retried, 1);
    close(server);
}

static int which_waits(const int *servers)
{
    uint64_t end = time_mono_ms() + WAIT_MS;
    while (!waits(servers[0]) && !waits(servers[1])) {
        bool never = false;
        loop_run_until(loop, &never, 5);
        assert_true(time_mono_ms() < end);
    }
    return waits(servers[0]) ? 0 : 1;
}

/* Sends a datagram and answers it; the number of the server that got it. */
static int ask(int client, const int *servers)
{
    char got[8] = "";
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    assert_int_equal(send(client, "ask", 3, 0), 3);
    int which = which_waits(servers);
    assert_int_equal(recvfrom(servers[which], got, sizeof got, 0, (struct sockaddr *) &from, &size),
                     3);
    assert_string_equal(got, "ask");
    assert_int_equal(sendto(servers[which], "reply", 5, 0, (const struct sockaddr *) &from, size),
                     5);
    run_until(waits, client);
    assert_int_equal(recv(client, got, sizeof got, 0), 5);
    assert_memory_equal(got, "reply", 5);
    return which;
}

static void the_userspace_proxy_keeps_a_clients_datagrams_at_one_endpoint(void **state)
{
    (void) state;
    int servers[] = {serve(SOCK_DGRAM, "10.128.0.5", 53), serve(SOCK_DGRAM, "10.128.0.6", 53)};
    set("dns", DNS, "UDP", "10.128.0.5:53@node-a,10.128.0.6:53@node-b");
    /* Connected sockets: they take answers from the service's address only. */
    int clients[] = {connect_to(SOCK_DGRAM, "172.30.0.10", 53),
                     connect_to(SOCK_DGRAM, "172.30.0.10", 53)};
    int first = ask(clients[0], servers);
    assert_int_equal(ask(clients[1], servers), !first);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(clients[0], servers), first);
        assert_int_equal(ask(clients[1], servers), !first);
    }
    assert_int_equal(host_proxy_get_stats(proxy)->userspace->sessions, 2);
    /* The endpoint of the first client goes. */
    set("dns", DNS, "UDP", first == 0 ? "10.128.0.6:53@node-b" : "10.128.0.5:53@node-a");
    assert_int_equal(ask(clients[0], servers), !first);
    assert_int_equal(host_proxy_get_stats(proxy)->userspace->sessions, 2);
    for (int i = 0; i < 2; i++) {
        close(clients[i]);
        close(servers[i]);
    }
}

static void the_userspace_proxy_leaves_an_endpoint_that_refuses_datagrams(void **state)
{
    (void) state;
    int open = serve(SOCK_DGRAM, "10.128.0.6", 53), servers[] = {open, open};
    set("dns", DNS, "UDP", "10.128.0.5:53@node-a,10.128.0.6:53@node-b");
    /* Nothing listens at the first endpoint: its error comes back with the next datagram. */
    int client = connect_to(SOCK_DGRAM, "172.30.0.10", 53);
    for (int i = 0; i < 2 && !waits(open); i++) {
        bool never = false;
        assert_int_equal(send(client, "x", 1, 0), 1);
        loop_run_until(loop, &never, 50);
    }
    char c;
    assert_int_equal(recv(open, &c, 1, MSG_DONTWAIT), 1);
    ask(client, servers);
    close(client);
    close(open);
}

static void the_userspace_proxy_never_sends_to_the_tunnels_port(void **state)
{
    (void) state;
    struct sdn_network n = network();
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    n.vxlan_port = 8080;
    host_proxy_set_network(proxy, &n);
    set("web", CLUSTER_IP(""), "TCP", "10.128.0.5:8080@node-a");
    assert_reset(connect_to(SOCK_STREAM, "172.30.0.10", 80));
    n.vxlan_port = 4789;
    host_proxy_set_network(proxy, &n);
    int client = connect_to(SOCK_STREAM, "172.30.0.10", 80);
    close(accept_one(server));
    close(client);
    close(server);
}

/* The proxy's own packets reach every project. */
static void waiting_connections_reach_no_pod_of_another_project(void **state)
{
    (void) state;
    annotations = IDLED;
    n_wanted = 0;
    int server = serve(SOCK_STREAM, "10.128.0.5", 8080);
    set("web", CLUSTER_IP(""), "TCP", "");
    int client = connect_to(SOCK_STREAM, "172.30.0.10", 80);
    run_until(is_wanted, 1);
    annotations = "";
    endpoint_kind = "Node"; /* An address that the project wrote by hand. */
    set("web", CLUSTER_IP(""), "TCP", "10.128.0.5:8080@node-a");
    assert_reset(client);
    assert_false(waits(server));
    close(server);
}

static void the_userspace_proxy_gives_clients_from_outside_local_endpoints_only(void **state)
{
    (void) state;
    int servers[] = {serve(SOCK_STREAM, "10.128.0.5", 8080),
                     serve(SOCK_STREAM, "10.128.0.6", 8080)};
    set("web", NODE_PORT(",\"externalTrafficPolicy\":\"Local\""), "TCP", TWO);
    for (int i = 0; i < 4; i++) {
        int back = enter_pod();
        int client = connect_to(SOCK_STREAM, "192.168.50.1", 30080);
        netns_leave(back);
        close(accept_one(servers[0]));
        assert_ends(client);
        close(client);
    }
    int own[2] = {0};
    for (int i = 0; i < 4; i++) {
        int client = connect_to(SOCK_STREAM, "192.168.9.1", 30080), which = which_waits(servers);
        close(accept_one(servers[which]));
        own[which]++;
        close(client);
    }
    assert_int_equal(own[0], 2);
    assert_int_equal(own[1], 2);
    close(servers[0]);
    close(servers[1]);
}

/* ---- the table ---- */

static void count_ports(void *ctx, const struct services_element *el)
{
    *(size_t *) ctx += streq(services_sets[el->set], "proxy-ports");
}

static void a_frontend_without_a_socket_has_no_proxy_port(void **state)
{
    (void) state;
    CLEANUP(sdn_service_free)
    struct sdn_service *s = make_service("dns", DNS, "UDP", "10.128.0.5:53@node-a");
    CLEANUP_FREE struct sdn_frontend **list = NULL;
    size_t with = 0, without = 0;
    assert_int_equal(sdn_frontends_of(s, "node-a", &list), 1);
    services_elements(list[0], 40000, SERVICES_ALL_SETS, count_ports, &with);
    services_elements(list[0], 0, SERVICES_ALL_SETS, count_ports, &without);
    assert_int_equal(with, 1);
    assert_int_equal(without, 0);
    sdn_frontend_unref(list[0]);
}

static void a_new_network_and_a_new_service_come_at_once(void **state)
{
    (void) state;
    struct sdn_network n = network();
    n.n_cluster = 2;
    assert_int_equal(prefix_parse("10.132.0.0/14", &n.cluster[1], NULL), 0);
    CLEANUP(sdn_service_free)
    struct sdn_service *s = make_service("web", CLUSTER_IP(""), "TCP", TWO);
    host_proxy_service_changed(proxy, NULL, s);
    host_proxy_set_network(proxy, &n);
    settle();
    CLEANUP_FREE char *text = sh("nft list table ip tenet-services");
    assert_non_null(strstr(text, "chain to-2 {"));
    assert_non_null(strstr(text, "10.132.0.0/14"));
    assert_int_equal(host_proxy_get_stats(proxy)->failures, 0);
    /* The chain is counted once: it goes with its only service. */
    set("web", NULL, "TCP", NULL);
    free(text);
    text = sh("nft list table ip tenet-services");
    assert_null(strstr(text, "chain to-2 {"));
}

/* An answer to the tunnels' port would be taken for a packet of a tunnel. */
static void translated_packets_never_come_from_the_tunnels_port(void **state)
{
    (void) state;
    struct sdn_network n = network();
    set("web", CLUSTER_IP(""), "TCP", TWO);
    CLEANUP_FREE char *text = sh("nft list chain ip tenet-services postrouting");
    assert_non_null(strstr(text, "masquerade to :32768-65535 fully-random"));
    n.vxlan_port = 40000;
    host_proxy_set_network(proxy, &n);
    settle();
    free(text);
    text = sh("nft list table ip tenet-services");
    assert_non_null(strstr(text, "masquerade to :1024-32767 fully-random"));
    assert_non_null(strstr(text, "172.30.0.10 . tcp . 80 : goto to-2"));
}

static bool has_failed(int times)
{
    return host_proxy_get_stats(proxy)->failures >= (uint64_t) times;
}

static bool is_current(int arg)
{
    (void) arg;
    return host_proxy_current(proxy);
}

static size_t lines_with(FILE *log, const char *text)
{
    char line[512];
    size_t n = 0;
    rewind(log);
    while (fgets(line, sizeof line, log)) {
        n += strstr(line, text) != NULL;
    }
    return n;
}

/* A table with an owner can be changed by the owner's socket only, and ends with it. */
static void a_failure_is_logged_once_until_it_is_over(void **state)
{
    (void) state;
    FILE *log = tmpfile();
    assert_non_null(log);
    log_set_fd(fileno(log));
    run("nft delete table ip tenet-services");
    for (int round = 1; round <= 2; round++) {
        uint64_t before = host_proxy_get_stats(proxy)->failures;
        FILE *owner = popen("nft -i >/dev/null 2>&1", "w");
        assert_non_null(owner);
        fputs("add table ip tenet-services { flags owner; }\n", owner);
        fflush(owner);
        run("until nft list tables | grep -q tenet-services; do :; done");
        host_proxy_changed(proxy);
        run_until(has_failed, (int) before + 2);
        assert_true(told_error < 0);
        assert_true(told_text[0]);
        pclose(owner);
        run_until(is_current, 0);
        assert_int_equal(told_error, 0);
        assert_int_equal(lines_with(log, "cannot be brought up to date"), round);
        assert_int_equal(lines_with(log, "services are as they should be"), round);
        run("nft delete table ip tenet-services");
    }
    log_set_fd(STDERR_FILENO);
    fclose(log);
    host_proxy_changed(proxy);
    settle();
}

/* ---- health ---- */

/* The answer of the health check, or "" when nothing listens. */
static char *check_health(void)
{
    struct sockaddr_in sa = address("127.0.0.1", 32000);
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct strbuf answer = STRBUF_INIT;
    char part[512];
    ssize_t n;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *) &sa, sizeof sa) == 0) {
        assert_int_equal(send(fd, request, sizeof request - 1, 0), sizeof request - 1);
        do {
            run_until(waits, fd);
            n = recv(fd, part, sizeof part, 0);
            strbuf_add(&answer, part, n > 0 ? (size_t) n : 0);
        } while (n > 0);
    }
    close(fd);
    return strbuf_steal(&answer);
}

static void load_balancers_learn_how_many_endpoints_are_here(void **state)
{
    (void) state;
#define CHECKED                                                                        \
    "\"spec\":{\"type\":\"LoadBalancer\",\"clusterIP\":\"172.30.0.10\","               \
    "\"externalTrafficPolicy\":\"Local\",\"healthCheckNodePort\":32000,\"ports\":[{"   \
    "\"name\":\"p\",\"port\":80}]},\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\"" \
    ":\"172.29.0.3\"}]}}"
    set("web", CHECKED, "TCP", TWO ",10.128.0.7:8080@node-a");
    CLEANUP_FREE char *text = check_health();
    assert_non_null(strstr(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "{\"service\":{\"namespace\":\"t\",\"name\":\"web\"},"
                                 "\"localEndpoints\":2,\"serviceProxyHealthy\":true}"));
    assert_non_null(strcasestr(text, "x-load-balancing-endpoint-weight: 2\r\n"));
    set("web", CHECKED, "TCP", "10.128.0.6:8080@node-b");
    free(text);
    text = check_health();
    assert_non_null(strstr(text, "HTTP/1.1 503 "));
    assert_non_null(strstr(text, "\"localEndpoints\":0,"));
    set("web", NULL, "TCP", NULL);
    free(text);
    text = check_health();
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_service_has_one_element_and_one_for_each_endpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(connections_spread_evenly, setup, teardown),
        cmocka_unit_test_setup_teardown(what_nobody_serves_is_refused_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(node_ports_are_at_every_address_of_the_host, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_client_with_affinity_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(local_policies_use_endpoints_of_this_node, setup, teardown),
        cmocka_unit_test_setup_teardown(
            the_same_services_change_nothing_when_the_agent_starts_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_others_do_to_the_table_is_undone, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_by_name_has_a_disputed_address, setup, teardown),
        cmocka_unit_test_setup_teardown(udp_goes_on_to_living_endpoints_only, setup, teardown),
        cmocka_unit_test_setup_teardown(a_change_leaves_open_connections_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(clients_from_outside_use_what_the_policy_says, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_source_ranges_reach_a_load_balancer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pods_packet_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_idle_service_is_asked_for_and_its_connections_wait,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_idle_service_is_asked_for_by_datagrams, setup, teardown),
        cmocka_unit_test_setup_teardown(
            the_userspace_proxy_passes_single_bytes_and_ends_of_each_direction, setup_userspace,
            teardown),
        cmocka_unit_test_setup_teardown(the_userspace_proxy_tries_the_next_endpoint,
                                        setup_userspace, teardown),
        cmocka_unit_test_setup_teardown(
            the_userspace_proxy_keeps_a_clients_datagrams_at_one_endpoint, setup_userspace,
            teardown),
        cmocka_unit_test_setup_teardown(
            the_userspace_proxy_leaves_an_endpoint_that_refuses_datagrams, setup_userspace,
            teardown),
        cmocka_unit_test_setup_teardown(the_userspace_proxy_never_sends_to_the_tunnels_port,
                                        setup_userspace, teardown),
        cmocka_unit_test_setup_teardown(waiting_connections_reach_no_pod_of_another_project, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            the_userspace_proxy_gives_clients_from_outside_local_endpoints_only, setup_userspace,
            teardown),
        cmocka_unit_test_setup_teardown(a_frontend_without_a_socket_has_no_proxy_port, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_new_network_and_a_new_service_come_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(translated_packets_never_come_from_the_tunnels_port, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_failure_is_logged_once_until_it_is_over, setup, teardown),
        cmocka_unit_test_setup_teardown(load_balancers_learn_how_many_endpoints_are_here, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_services_come_and_go, setup, teardown),
    };
    if (geteuid() != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, setup_group, NULL);
}
