/* SPDX-License-Identifier: Apache-2.0 */
/* The service proxy of the host beside nft with the usual rule for each service, on one kernel. */
#include "measure.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "datapath/services/proxy.h"
#include "net/loop/process.h"
#include "node/host/monitor.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const char help[] =
    "usage: services [--services N] [--many N] [--rounds N] [--changes N] [--connects N] "
    "[--peer-services N]\n"
    "\n"
    "Measures the service proxy of the host, services with two endpoints each, in a network "
    "namespace of its own:\n"
    "\n"
    "  cold     N services (--services, default 10000) into an empty kernel, from the services as "
    "values to\n"
    "           their being in force; peer: nft -f of a file with a rule, and chains, for each "
    "service, as\n"
    "           kube-proxy's iptables mode lays them out (--peer-services, default as "
    "--services).\n"
    "  restart  the same when the table is there: it is read and compared, nothing is written.\n"
    "  change   one service gets another endpoint (--changes, default 300), until it is in "
    "force.\n"
    "  connect  connect(2) to a service (--connects, default 2000 a round) with --many services "
    "(default\n"
    "           30000), with one, and without any; peer: to the last service of nft's layout.\n"
    "  memory   what --many services take in this process: the proxy, and the services it is told "
    "of.\n"
    "\n"
    "Ours alternate (--rounds, default 7); medians are printed, and ratios.  Needs root and nft.\n";

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define NODE "node1"

struct bench {
    struct loop *loop;
    struct sdn_network net;
    struct sdn_service **services;
    size_t n;
    struct host_proxy *proxy;
    struct monitor
        *monitor; /* As the agent has one: the kernel then makes messages of all changes. */
    bool told;
    int server, direct; /* Listening where all services lead, and where none does. */
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "services: %s: %s\n", what, why);
    exit(1);
}

static void sh(const char *command)
{
    const char *const argv[] = {"sh", "-c", command, NULL};
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;
    struct err e = {0};
    int status = -1;
    spec.argv = argv;
    if (process_run(&spec, 600000, &out, &text, &status, &e) < 0 || status != 0) {
        fprintf(stderr, "%s", strbuf_cstr(&text));
        die(command, e.text[0] ? e.text : "failed");
    }
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &v, &e) < 0) {
        die(text, e.text);
    }
    return v;
}

static uint32_t cluster_ip(size_t i)
{
    return IP(172, 30, 0, 1) + (uint32_t) i;
}

/* Service 'i' with the endpoints 10.128.0.5 and 10.128.0.'last'. */
static struct sdn_service *make_service(size_t i, unsigned last)
{
    struct sdn_service *s = NULL;
    struct sdn_slice *slice = NULL;
    struct err e = {0};
    CLEANUP_FREE char *text =
        xasprintf("{\"metadata\":{\"namespace\":\"bench\",\"name\":\"service-%zu\"},\"spec\":"
                  "{\"clusterIP\":\"%s\",\"ports\":[{\"name\":\"http\",\"port\":80}]}}",
                  i, IP4_TEXT(cluster_ip(i)));
    CLEANUP(json_free) struct json *obj = parse(text);
    CLEANUP_FREE char *ends = xasprintf(
        "{\"addressType\":\"IPv4\",\"metadata\":{\"labels\":{\"kubernetes.io/service-name\":"
        "\"service-%zu\"}},\"ports\":[{\"name\":\"http\",\"port\":8080}],\"endpoints\":["
        "{\"addresses\":[\"10.128.0.5\"],\"nodeName\":\"node1\",\"targetRef\":{\"kind\":\"Pod\","
        "\"namespace\":\"bench\",\"name\":\"pod-a\"}},"
        "{\"addresses\":[\"10.128.0.%u\"],\"nodeName\":\"node2\",\"targetRef\":{\"kind\":\"Pod\","
        "\"namespace\":\"bench\",\"name\":\"pod-b\"}}]}",
        i, last);
    CLEANUP(json_free) struct json *slice_obj = parse(ends);
    if (sdn_service_parse(obj, &s, &e) < 0 || sdn_slice_parse(slice_obj, &slice, &e) < 0) {
        die("service", e.text);
    }
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}

static void on_told(void *ctx, int error, const char *text, bool restored)
{
    struct bench *b = ctx;
    (void) restored;
    if (error < 0) {
        die("proxy", text);
    }
    b->told = true;
}

static void wait_current(struct bench *b)
{
    while (!host_proxy_current(b->proxy)) {
        b->told = false;
        loop_run_until(b->loop, &b->told, 60000);
    }
}

static void on_changed(void *ctx, unsigned what)
{
    struct bench *b = ctx;
    if (what == MONITOR_SERVICES) {
        host_proxy_changed(b->proxy);
    }
}

static void on_link_gone(void *ctx, const char *name)
{
    (void) ctx;
    (void) name;
}

/* The first 'n' services; returns milliseconds until they were in force. */
static double open_proxy(struct bench *b, size_t n)
{
    struct host_proxy_config c = {
        .loop = b->loop, .node_name = NODE, .on_result = on_told, .ctx = b};
    static const struct monitor_ops mops = {.changed = on_changed, .link_gone = on_link_gone};
    struct err e = {0};
    uint64_t start = time_mono_ns();
    if (host_proxy_new(&c, &b->proxy, &e) < 0 ||
        monitor_new(b->loop, "tun0", &mops, b, &b->monitor, &e) < 0 ||
        monitor_ignore(b->monitor, host_proxy_port(b->proxy), &e) < 0) {
        die("proxy", e.text);
    }
    for (size_t i = 0; i < n; i++) {
        host_proxy_service_changed(b->proxy, NULL, b->services[i]);
    }
    host_proxy_set_network(b->proxy, &b->net);
    host_proxy_synced(b->proxy);
    wait_current(b);
    return measure_ms_since(start);
}

static void close_proxy(struct bench *b)
{
    b->monitor = monitor_free(b->monitor);
    b->proxy = host_proxy_free(b->proxy);
}

static void clear(void)
{
    sh("nft flush ruleset");
}

/* ---- the peer ---- */

static double load_peer(size_t n)
{
    char file[] = "/tmp/tenet-bench-services-XXXXXX";
    int fd = mkstemp(file);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        die("mkstemp", strerror(errno));
    }
    fprintf(f, "table ip peer {\n");
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            fprintf(f, "\tchain sep-%zu-%d { meta l4proto tcp dnat to 10.128.0.%d:8080; }\n", i, k,
                    5 + k);
        }
        fprintf(f, "\tchain svc-%zu { numgen random mod 2 0 goto sep-%zu-0; goto sep-%zu-1; }\n", i,
                i, i);
    }
    fprintf(f, "\tchain services {\n");
    for (size_t i = 0; i < n; i++) {
        fprintf(f, "\t\tip daddr %s tcp dport 80 goto svc-%zu\n", IP4_TEXT(cluster_ip(i)), i);
    }
    fprintf(f, "\t}\n\tchain output { type nat hook output priority -100; jump services; }\n}\n");
    fclose(f);
    CLEANUP_FREE char *command = xasprintf("nft -f %s", file);
    uint64_t start = time_mono_ns();
    sh(command);
    double took = measure_ms_since(start);
    unlink(file);
    return took;
}

/* ---- connecting ---- */

static int listen_at(uint32_t ip, uint16_t port)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, (struct sockaddr *) &sa, sizeof sa) < 0 || listen(fd, 128) < 0) {
        die("listen", strerror(errno));
    }
    return fd;
}

/* Median microseconds of connect(2). */
static double connect_us(int server, uint32_t ip, uint16_t port, size_t n)
{
    CLEANUP_FREE double *us = xcalloc(n, sizeof *us);
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
    for (size_t i = 0; i < n; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        /* Resets leave no port and no tracked connection behind. */
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
        uint64_t start = time_mono_ns();
        if (connect(fd, (struct sockaddr *) &sa, sizeof sa) < 0) {
            die("connect", strerror(errno));
        }
        us[i] = (double) (time_mono_ns() - start) / 1e3;
        int peer = accept(server, NULL, NULL);
        close(fd);
        close(peer);
    }
    return measure_quantile(us, n, 0.5);
}

/* ---- all ---- */

struct options {
    size_t services, many, rounds, changes, connects, peer_services;
};

static void bench_cold(struct bench *b, const struct options *o)
{
    CLEANUP_FREE double *cold = xcalloc(o->rounds, sizeof *cold);
    CLEANUP_FREE double *again = xcalloc(o->rounds, sizeof *again);
    for (size_t i = 0; i < o->rounds; i++) {
        cold[i] = open_proxy(b, o->services);
        close_proxy(b);
        again[i] = open_proxy(b, o->services);
        if (host_proxy_get_stats(b->proxy)->rewrites) {
            die("restart", "the table was made anew");
        }
        close_proxy(b);
        clear();
    }
    double ours = measure_quantile(cold, o->rounds, 0.5);
    printf("cold     %zu services: %.1f ms (slowest %.1f)\n", o->services, ours,
           cold[o->rounds - 1]);
    double peer = load_peer(o->peer_services);
    clear();
    double restart = measure_quantile(again, o->rounds, 0.5);
    printf("         nft -f, a rule each, %zu services: %.0f ms, ratio %.3f\n", o->peer_services,
           peer, ours / peer);
    printf("restart  %zu services: %.1f ms\n", o->services, restart);
    measure_result("cold", ours, "ms", "nft -f", peer);
    measure_result("cold, slowest", cold[o->rounds - 1], "ms", NULL, 0);
    measure_result("restart", restart, "ms", NULL, 0);
}

static void bench_change(struct bench *b, const struct options *o)
{
    CLEANUP_FREE double *ms = xcalloc(o->changes, sizeof *ms);
    open_proxy(b, o->services);
    for (size_t i = 0; i < o->changes; i++) {
        size_t k = i * 7919 % o->services;
        struct sdn_service *now = make_service(k, 7);
        uint64_t start = time_mono_ns();
        host_proxy_service_changed(b->proxy, b->services[k], now);
        host_proxy_settled(b->proxy);
        wait_current(b);
        ms[i] = measure_ms_since(start);
        sdn_service_free(b->services[k]);
        b->services[k] = now;
    }
    CLEANUP_FREE char *count =
        xasprintf("test $(nft list map ip " SERVICES_TABLE " endpoints | grep -c 10.128.0.7) = %zu",
                  o->changes);
    sh(count); /* They were made. */
    double p50 = measure_quantile(ms, o->changes, 0.5),
           p99 = measure_quantile(ms, o->changes, 0.99);
    printf("change   at %zu services: %.3f ms, p99 %.3f ms\n", o->services, p50, p99);
    measure_result("change p50", p50, "ms", NULL, 0);
    measure_result("change p99", p99, "ms", NULL, 0);
    close_proxy(b);
    clear();
}

static void bench_connect(struct bench *b, const struct options *o)
{
    CLEANUP_FREE double *none = xcalloc(o->rounds, sizeof *none);
    CLEANUP_FREE double *one = xcalloc(o->rounds, sizeof *one);
    CLEANUP_FREE double *many = xcalloc(o->rounds, sizeof *many);
    for (size_t i = 0; i < o->rounds; i++) {
        none[i] = connect_us(b->direct, IP(10, 128, 0, 5), 9090, o->connects);
        open_proxy(b, 1);
        one[i] = connect_us(b->server, cluster_ip(0), 80, o->connects);
        close_proxy(b);
        clear();
        open_proxy(b, o->many);
        many[i] = connect_us(b->server, cluster_ip(o->many - 1), 80, o->connects);
        close_proxy(b);
        clear();
    }
    double m1 = measure_quantile(one, o->rounds, 0.5), mn = measure_quantile(many, o->rounds, 0.5);
    printf("connect  no service %.1f us; one service %.1f us; %zu services %.1f us, ratio to one "
           "%.3f\n",
           measure_quantile(none, o->rounds, 0.5), m1, o->many, mn, mn / m1);
    load_peer(o->peer_services);
    double peer = connect_us(b->server, cluster_ip(o->peer_services - 1), 80, o->connects);
    clear();
    printf("         nft's last of %zu: %.1f us, ratio %.2f\n", o->peer_services, peer, mn / peer);
    measure_result("connect, many services", mn, "us", "one service", m1);
    measure_result("connect, the last service", mn, "us", "nft", peer);
}

static size_t resident(void)
{
    malloc_trim(0);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (file_read("/proc/self/statm", 4096, &text, NULL) < 0) {
        die("/proc/self/statm", "cannot be read");
    }
    const char *second = strchr(strbuf_cstr(&text), ' ');
    CLEANUP_FREE char *number = second ? xstrndup(second + 1, strcspn(second + 1, " ")) : NULL;
    uint64_t pages;
    if (!number || str_to_u64(number, UINT32_MAX, &pages) < 0) {
        die("/proc/self/statm", "is not as expected");
    }
    return pages * (size_t) sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv)
{
    struct options o = {10000, 30000, 7, 300, 2000, 0};
    static const struct option options[] = {
        {"services", required_argument, NULL, 's'}, {"many", required_argument, NULL, 'm'},
        {"rounds", required_argument, NULL, 'r'},   {"changes", required_argument, NULL, 'c'},
        {"connects", required_argument, NULL, 'n'}, {"peer-services", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
        uint64_t v;
        if (c == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (c == '?' || str_to_u64(optarg, 60000, &v) < 0 || v == 0) {
            fputs(help, stderr);
            return 2;
        }
        *(c == 's'   ? &o.services
          : c == 'm' ? &o.many
          : c == 'r' ? &o.rounds
          : c == 'c' ? &o.changes
          : c == 'n' ? &o.connects
                     : &o.peer_services) = (size_t) v;
    }
    o.peer_services = o.peer_services ? o.peer_services : o.services;
    if (unshare(CLONE_NEWNET) < 0) {
        die("unshare", strerror(errno));
    }
    sh("ip link set lo up && for i in 5 6 7; do ip addr add 10.128.0.$i/32 dev lo; done && "
       "ip link add nic0 type bridge && ip addr add 192.168.9.1/24 dev nic0 && "
       "ip link set nic0 up && ip route add 172.30.0.0/16 dev nic0");
    struct bench b = {.loop = loop_new(), .n = MAX(o.services, o.many)};
    b.net.n_cluster = 1;
    b.net.cluster[0] = (struct ip4_prefix){IP(10, 128, 0, 0), 14};
    b.net.service = (struct ip4_prefix){IP(172, 30, 0, 0), 16};
    b.server = listen_at(0, 8080);
    b.direct = listen_at(0, 9090);
    size_t empty = resident();
    b.services = xcalloc(b.n, sizeof *b.services);
    for (size_t i = 0; i < b.n; i++) {
        b.services[i] = make_service(i, 6);
    }
    size_t told = resident();
    open_proxy(&b, o.many);
    size_t full = resident();
    printf("memory   %zu services: the proxy %.1f MB, the services %.1f MB\n", o.many,
           (double) (full - told) / 1e6, (double) (told - empty) / 1e6);
    measure_result("memory of the proxy", (double) (full - told) / 1e6, "MB", NULL, 0);
    measure_result("memory of the services", (double) (told - empty) / 1e6, "MB", NULL, 0);
    close_proxy(&b);
    clear();
    bench_cold(&b, &o);
    bench_change(&b, &o);
    bench_connect(&b, &o);
    for (size_t i = 0; i < b.n; i++) {
        sdn_service_free(b.services[i]);
    }
    free(b.services);
    loop_free(b.loop);
    close(b.server);
    close(b.direct);
    return 0;
}
