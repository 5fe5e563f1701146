/* SPDX-License-Identifier: Apache-2.0 */
/* Programming the switch: our OpenFlow codec beside ovs-ofctl, in one run on one Open vSwitch. */
#include "measure.h"
#include "ovs.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "sdn/pipeline.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

static const char help[] =
    "usage: flows [--flows N] [--rounds N] [--changes N]\n"
    "\n"
    "Measures how fast flows get into Open vSwitch, over our codec and one connection that stays "
    "open,\n"
    "as the node agent works, and with ovs-ofctl, a process each time, as the original did:\n"
    "\n"
    "  bundle   N flows of remote nodes and pods (--flows, default 10000) into an empty bridge, "
    "encoded and\n"
    "           committed in one bundle; peer: ovs-ofctl -O OpenFlow14 --bundle add-flows FILE "
    "with the same\n"
    "           flows.  Until the commit is acknowledged, or the process ends.\n"
    "  change   one flow added to that bridge in a bundle of its own, acknowledged; peer: "
    "ovs-ofctl\n"
    "           -O OpenFlow14 add-flow.\n"
    "  dump     all flows read and compared with what they should be: nothing differs.  Peer: "
    "ovs-ofctl\n"
    "           -O OpenFlow14 diff-flows against the file.\n"
    "\n"
    "Ours and the peer's runs alternate (--rounds of each for bundle and dump, default 9; "
    "--changes for\n"
    "change, default 100); medians are printed, and the ratio ours/peer.\n"
    "Needs root and Open vSwitch, which is started in a network namespace and folder of its own.\n";

/* Of flows and rounds. */
#define MOST 100000
#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))

struct bench {
    struct ovs ovs;
    struct of_client client;
    struct sdn_network net;
    size_t n_flows;
    char file[OVS_PATH_SIZE]; /* The flows as text. */
};

/* The flows of as many remote nodes and pods as make 'n', in equal parts. */
static void make_flows(const struct sdn_network *net, size_t n, struct of_flow_list *l)
{
    for (uint32_t i = 0; l->n < n; i++) {
        struct sdn_remote r = {
            .host_ip = IP(192, 168, 0, 2) + i, .subnet = {IP(11, 0, 0, 0) + (i << 9), 23}, .id = i};
        pipeline_remote(net, &r, l);
        uint32_t ip = net->local.addr + 2 + i;
        struct pipeline_pod p = {
            .ofport = 11 + i, .ip = ip, .mac = mac_from_ip4(ip), .vnid = SDN_VNID_MIN + i % 100};
        pipeline_pod(net, &p, l);
    }
    while (l->n > n) {
        of_flow_free(l->flows[--l->n]);
    }
}

static void delete_all(struct bench *b)
{
    struct of_flow_list all = {0};
    struct of_builder builder;
    of_begin(&builder, UINT8_MAX, 0, 0);
    of_end_into(&builder, &all);
    of_client_commit(&b->client, OF_FLOW_DELETE, &all);
    of_flow_list_done(&all);
}

static void fail(const char *what)
{
    fprintf(stderr, "flows: %s\n", what);
    exit(1);
}

/* ---- what is measured; each returns milliseconds ---- */

static double bundle_ours(struct bench *b)
{
    delete_all(b);
    uint64_t start = time_mono_ns();
    struct of_flow_list l = {0};
    make_flows(&b->net, b->n_flows, &l);
    of_client_commit(&b->client, OF_FLOW_ADD, &l);
    double ms = measure_ms_since(start);
    of_flow_list_done(&l);
    return ms;
}

static double bundle_peer(struct bench *b)
{
    delete_all(b);
    uint64_t start = time_mono_ns();
    OVS_RUN(&b->ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "--bundle", "add-flows", "br0", b->file);
    return measure_ms_since(start);
}

static double change_ours(struct bench *b, unsigned i)
{
    struct of_flow_list l = {0};
    uint64_t start = time_mono_ns();
    pipeline_vnid(&b->net, SDN_VNID_MIN + 2 * i, &l);
    of_client_commit(&b->client, OF_FLOW_ADD, &l);
    double ms = measure_ms_since(start);
    of_flow_list_done(&l);
    return ms;
}

static double change_peer(struct bench *b, unsigned i)
{
    char flow[128];
    unsigned vnid = SDN_VNID_MIN + 2 * i + 1;
    snprintf(flow, sizeof flow,
             "table=80,priority=100,reg0=%u,reg1=%u,actions=output:NXM_NX_REG2[]", vnid, vnid);
    uint64_t start = time_mono_ns();
    OVS_RUN(&b->ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "add-flow", "br0", flow);
    return measure_ms_since(start);
}

static int compare_keys(const void *a, const void *b)
{
    const struct of_flow *f = *(struct of_flow *const *) a, *g = *(struct of_flow *const *) b;
    uint32_t x = of_flow_hash(f), y = of_flow_hash(g);
    return (x > y) - (x < y);
}

static double dump_ours(struct bench *b)
{
    struct of_flow_list want = {0}, got = {0};
    make_flows(&b->net, b->n_flows, &want);
    uint64_t start = time_mono_ns();
    of_client_dump(&b->client, &got);
    qsort(want.flows, want.n, sizeof *want.flows, compare_keys);
    qsort(got.flows, got.n, sizeof *got.flows, compare_keys);
    size_t same = 0;
    for (size_t i = 0; i < want.n && i < got.n; i++) {
        same += of_flow_equal(want.flows[i], got.flows[i]);
    }
    double ms = measure_ms_since(start);
    if (same != want.n || got.n != want.n) {
        fail("the switch reports other flows than it was given");
    }
    of_flow_list_done(&want);
    of_flow_list_done(&got);
    return ms;
}

static double dump_peer(struct bench *b)
{
    uint64_t start = time_mono_ns();
    OVS_RUN(&b->ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "diff-flows", "br0", b->file);
    return measure_ms_since(start);
}

/* ---- report ---- */

static void report(const char *what, size_t n, double *ours, double *peer)
{
    double mo = measure_quantile(ours, n, 0.5), mp = measure_quantile(peer, n, 0.5);
    printf("%-8s %6zu %12.2f %9.2f-%-9.2f %12.2f %9.2f-%-9.2f %7.3f\n", what, n, mo, ours[0],
           ours[n - 1], mp, peer[0], peer[n - 1], mo / mp);
    measure_result(what, mo, "ms", "ovs-ofctl", mp);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"flows", required_argument, NULL, 'f'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"changes", required_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    size_t n_flows = 10000, rounds = 9, changes = 100;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'f':
            n_flows = measure_number(optarg, 1, MOST);
            break;
        case 'r':
            rounds = measure_number(optarg, 5, MOST);
            break;
        case 'c':
            changes = measure_number(optarg, 5, MOST);
            break;
        default:
            fputs(help, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (ovs_unavailable()) {
        fail(ovs_unavailable());
    }
    struct bench b = {.n_flows = n_flows};
    b.net = (struct sdn_network){.plugin = SDN_MULTITENANT,
                                 .cluster = {{IP(10, 0, 0, 0), 7}},
                                 .n_cluster = 1,
                                 .local = {IP(10, 128, 0, 0), 17},
                                 .vxlan_port = SDN_VXLAN_PORT};
    ovs_start(&b.ovs);
    OVS_VSCTL(&b.ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
              "fail_mode=secure");
    of_client_open(&b.client, &b.ovs, "br0");

    size_t n = MAX(rounds, changes);
    double *ours = xcalloc(n, sizeof *ours), *peer = xcalloc(n, sizeof *peer);
    printf("%zu flows; milliseconds (fastest-slowest); ratio is ours / ovs-ofctl\n", n_flows);
    printf("%-8s %6s %12s %19s %12s %19s %7s\n", "", "runs", "ours", "", "ovs-ofctl", "", "ratio");
    bundle_ours(&b); /* Warm-up, and what the file is made from. */
    ovs_write_flows(&b.ovs, "br0", b.file);
    bundle_peer(&b);
    for (size_t i = 0; i < rounds; i++) {
        peer[i] = bundle_peer(&b);
        ours[i] = bundle_ours(&b);
    }
    report("bundle", rounds, ours, peer);
    for (size_t i = 0; i < rounds; i++) {
        peer[i] = dump_peer(&b);
        ours[i] = dump_ours(&b);
    }
    report("dump", rounds, ours, peer);
    for (unsigned i = 0; i < changes; i++) {
        peer[i] = change_peer(&b, i);
        ours[i] = change_ours(&b, i);
    }
    report("change", changes, ours, peer);
    free(ours);
    free(peer);
    of_client_close(&b.client);
    ovs_stop(&b.ovs);
    return 0;
}
