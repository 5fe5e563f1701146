/* SPDX-License-Identifier: Apache-2.0 */
/* The time of the eBPF programs for a packet, on a node that knows little and on one that knows
 * much. */
#include "measure.h"

#include "base/mem.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/program.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: bench_programs [--nodes N] [--pods N] [--rounds N] [--packets N] [--cold]\n"
    "\n"
    "Measures how long the eBPF programs take for a packet, by BPF_PROG_TEST_RUN, without links "
    "and\n"
    "the kernel's part, on three nodes:\n"
    "\n"
    "  knows two          one other node, and two pods of its own\n"
    "  loaded             N other nodes (--nodes, default 5000) and N pods of its own (--pods, "
    "default\n"
    "                     1000), each with a project of its own\n"
    "  watched            as the first, and somebody watches its flows\n"
    "\n"
    "for packets\n"
    "\n"
    "  to a pod here      from_pod, to another pod of the node\n"
    "  to another node    from_pod, to a pod of another node, by the VXLAN device\n"
    "  from another node  from_tunnel, to a pod of this node\n"
    "\n"
    "They alternate (--rounds, default 9), with N packets each (--packets, default 200000); "
    "medians.\n"
    "With --cold the caches of the processor are emptied before each packet (default 500), as "
    "streams\n"
    "do with what they carry.  Needs root.\n";

#define NET 0x0a000000u   /* 10.0.0.0/9 ... */
#define LOCAL 0x0a000000u /* ... of which the first /22 is this node's. */
#define HOST_BITS 10
#define VTEP(i) (0xac100001u + (uint32_t) (i))
#define VNID 77
#define FIRST_PORT 100
#define REDIRECTED 7 /* TC_ACT_REDIRECT */
#define CACHES (8 << 20)

static void fail(const char *what)
{
    fprintf(stderr, "bench_programs: %s\n", what);
    exit(1);
}

/* ---- nodes ---- */

struct node {
    struct program program;
    struct table routes, subnets, vteps, pods, pod_cache, ports;
    uint32_t far; /* A pod of the node that was told last. */
    uint32_t far_vtep;
};

static void put(struct table *t, int fd, struct table_row *rows, size_t n)
{
    struct err e = {0};
    size_t changes, refused;
    if (table_load(t, fd, &e) < 0) {
        fail(e.text);
    }
    table_sync(t, rows, n, &changes, &refused, &e);
    if (refused) {
        fail(e.text);
    }
}

static uint32_t pod_ip(size_t i)
{
    return LOCAL + 2 + (uint32_t) i;
}

static void make_node(struct node *n, size_t n_nodes, size_t n_pods, bool watched)
{
    struct err e = {0};
    struct program_features f;
    *n = (struct node){0};
    if (program_probe(NULL, &f, &e) < 0 || program_load(NULL, &f, true, &n->program, &e) < 0) {
        fail(e.text);
    }
    struct sdn_network net = {.plugin = SDN_MULTITENANT,
                              .cluster = {{NET, 9}},
                              .n_cluster = 1,
                              .service = {0xac1e0000u, 16},
                              .local = {LOCAL, 32 - HOST_BITS},
                              .host_ip = VTEP(0),
                              .vxlan_port = 4789,
                              .mtu = 1450,
                              .n_remotes = n_nodes};
    CLEANUP_FREE struct sdn_remote *remotes = xcalloc(n_nodes, sizeof *remotes);
    for (size_t i = 0; i < n_nodes; i++) {
        uint32_t subnet = NET + ((uint32_t) (i + 1) << HOST_BITS);
        remotes[i] =
            (struct sdn_remote){.host_ip = VTEP(i + 1), .subnet = {subnet, 32 - HOST_BITS}};
        n->far = subnet + 2;
        n->far_vtep = remotes[i].host_ip;
    }
    net.remotes = remotes;
    size_t k;
    struct table_row *rows = encode_routes(&net, NULL, &k);
    put(&n->routes, n->program.routes, rows, k);
    uint8_t subnet_len;
    rows = encode_subnets(n->routes.rows, n->routes.n, &subnet_len, &k);
    put(&n->subnets, n->program.subnets, rows, k);
    rows = encode_vteps(&net, &k);
    put(&n->vteps, n->program.vteps, rows, k);
    struct table_row *pods = xcalloc(n_pods, sizeof *pods), *ports = xcalloc(n_pods, sizeof *ports);
    for (size_t i = 0; i < n_pods; i++) {
        struct encode_pod p = {.ip = pod_ip(i),
                               .mac = mac_from_ip4(pod_ip(i)),
                               .vnid = i < 2 ? VNID : VNID + (uint32_t) i,
                               .ifindex = (int) (FIRST_PORT + i)};
        if (!encode_pod(&net, &p, &pods[i], &ports[i])) {
            fail("a pod's address is not of its node");
        }
    }
    put(&n->pods, n->program.pods, pods, n_pods);
    put(&n->ports, n->program.ports, ports, n_pods);
    rows = encode_pod_cache(n->pods.rows, n->pods.n, &k);
    put(&n->pod_cache, n->program.pod_cache, rows, k);
    struct devices devices = {.tun = 2001, .host = 2002, .vxlan = 2003};
    struct ebpf_settings settings = encode_settings(&net, &devices, false);
    settings.subnet_len = subnet_len;
    settings.watch = watched;
    uint32_t zero = 0;
    if (bpf_map_update_elem(n->program.settings, &zero, &settings, BPF_ANY) < 0) {
        fail("cannot write the settings");
    }
}

static void remove_node(struct node *n)
{
    table_done(&n->routes);
    table_done(&n->subnets);
    table_done(&n->vteps);
    table_done(&n->pods);
    table_done(&n->pod_cache);
    table_done(&n->ports);
    program_done(&n->program);
}

/* ---- packets ---- */

struct packet {
    struct ethhdr eth;
    struct iphdr ip;
    struct tcphdr tcp;
    uint8_t data[1000];
} __attribute__((packed));

static void make_packet(struct packet *p, uint32_t from, uint32_t to)
{
    struct mac src = mac_from_ip4(from), dst = mac_from_ip4(to);
    *p = (struct packet){
        .eth.h_proto = htons(ETH_P_IP),
        .ip = {.version = 4,
               .ihl = 5,
               .tot_len = htons(sizeof *p - sizeof p->eth),
               .ttl = 64,
               .protocol = IPPROTO_TCP,
               .saddr = htonl(from),
               .daddr = htonl(to)},
        .tcp = {.source = htons(40000), .dest = htons(80), .doff = 5, .ack = 1},
    };
    memcpy(p->eth.h_source, src.b, ETH_ALEN);
    memcpy(p->eth.h_dest, dst.b, ETH_ALEN);
}

enum way { HERE, AWAY, IN, N_WAYS };
static const char *const ways[N_WAYS] = {"to a pod here", "to another node", "from another node"};

enum { FEW, LOADED, WATCHED, N_NODES };
static const char *const nodes[N_NODES] = {"knows two", "loaded", "watched"};

static double run(const struct node *n, enum way way, const struct packet *p, size_t packets)
{
    unsigned char out[sizeof *p + 256];
    struct __sk_buff in = {0};
    in.cb[EBPF_CB_PORT] = FIRST_PORT;
    in.cb[EBPF_CB_OUTER_SRC] = n->far_vtep;
    in.cb[EBPF_CB_TUNNEL_ID] = VNID;
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = p, .data_size_in = sizeof *p, .data_out = out,
                .data_size_out = sizeof out, .ctx_in = &in, .ctx_size_in = sizeof in,
                .repeat = (int) packets);
    if (bpf_prog_test_run_opts(way == IN ? n->program.from_tunnel : n->program.from_pod, &o) < 0) {
        fail("BPF_PROG_TEST_RUN failed");
    }
    if (o.retval != REDIRECTED) {
        fail("a packet was not sent on");
    }
    return o.duration;
}

/* What streams of packets do between two of them. */
static void empty_caches(void)
{
    static volatile unsigned char much[CACHES];
    for (size_t i = 0; i < CACHES; i += 64) {
        much[i]++;
    }
}

/* Nanoseconds a packet. */
static double measure(const struct node *n, enum way way, size_t packets, bool cold)
{
    struct packet p;
    uint32_t me = pod_ip(0);
    make_packet(&p, way == IN ? n->far : me, way == HERE ? pod_ip(1) : way == IN ? me : n->far);
    if (!cold) {
        return run(n, way, &p, packets);
    }
    CLEANUP_FREE double *ns = xcalloc(packets, sizeof *ns);
    for (size_t i = 0; i < packets; i++) {
        empty_caches();
        ns[i] = run(n, way, &p, 1);
    }
    return measure_quantile(ns, packets, 0.5);
}

int main(int argc, char **argv)
{
    enum { NODES = 'n', PODS = 'p', ROUNDS = 'r', PACKETS = 'k', COLD = 'c' };
    static const struct option options[] = {{"nodes", required_argument, NULL, NODES},
                                            {"pods", required_argument, NULL, PODS},
                                            {"rounds", required_argument, NULL, ROUNDS},
                                            {"packets", required_argument, NULL, PACKETS},
                                            {"cold", no_argument, NULL, COLD},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    size_t n_nodes = 5000, n_pods = 1000, rounds = 9, packets = 0;
    bool cold = false;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (c) {
        case NODES:
            n_nodes = measure_number(optarg, 1, 8000);
            break;
        case PODS:
            n_pods = measure_number(optarg, 2, 1000);
            break;
        case ROUNDS:
            rounds = measure_number(optarg, 1, 1000);
            break;
        case PACKETS:
            packets = measure_number(optarg, 1, 100000000);
            break;
        case COLD:
            cold = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs(help, stderr);
            return 2;
        }
    }
    packets = packets ? packets : cold ? 500 : 200000;
    struct node node[N_NODES];
    make_node(&node[FEW], 1, 2, false);
    make_node(&node[LOADED], n_nodes, n_pods, false);
    make_node(&node[WATCHED], 1, 2, true);
    CLEANUP_FREE double *ns = xcalloc(rounds * N_WAYS * N_NODES, sizeof *ns);
    for (size_t i = 0; i < rounds; i++) {
        for (size_t w = 0; w < N_WAYS; w++) {
            for (size_t k = 0; k < N_NODES; k++) {
                ns[(w * N_NODES + k) * rounds + i] = measure(&node[k], (enum way) w, packets, cold);
            }
        }
    }
    printf("%-20s", "ns a packet");
    for (size_t k = 0; k < N_NODES; k++) {
        printf(" %10s", nodes[k]);
    }
    for (size_t w = 0; w < N_WAYS; w++) {
        printf("\n%-20s", ways[w]);
        for (size_t k = 0; k < N_NODES; k++) {
            double median = measure_quantile(&ns[(w * N_NODES + k) * rounds], rounds, 0.5);
            printf(" %10.0f", median);
            CLEANUP_FREE char *name = xasprintf("%s, %s", ways[w], nodes[k]);
            measure_result(name, median, "ns", NULL, 0);
        }
    }
    putchar('\n');
    for (size_t k = 0; k < N_NODES; k++) {
        remove_node(&node[k]);
    }
    return 0;
}
