/* SPDX-License-Identifier: Apache-2.0 */
/* Services inside br0: from services to programmed flows, in one run with ovs-ofctl. */
#include "measure.h"
#include "ovs.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "datapath/ovs/flow_table.h"
#include "sdn/service_flows.h"

#include <getopt.h>
#include <stdio.h>

static const char help[] =
    "usage: service_flows [--services N] [--rounds N] [--changes N]\n"
    "\n"
    "Measures how fast services get into Open vSwitch as the node agent brings them there: flows "
    "are\n"
    "made, compared with what the switch has, and the difference is committed in one bundle.\n"
    "\n"
    "  cold     N services with one port and two endpoints each (--services, default 10000) into "
    "an\n"
    "           empty bridge; peer: ovs-ofctl -O OpenFlow14 --bundle add-flows FILE with the same\n"
    "           flows.\n"
    "  change   one endpoint of one of them becomes another (--changes, default 1000): the "
    "median,\n"
    "           and what 99 of 100 take.\n"
    "  restart  all flows are read and compared, as by an agent that was started anew: nothing "
    "may\n"
    "           differ.\n"
    "\n"
    "Ours and the peer's runs alternate (--rounds, default 9).  Needs root and Open vSwitch, which "
    "is\n"
    "started in a network namespace and folder of its own.\n";

/* Of services, rounds and changes. */
#define MOST 60000

struct bench {
    struct ovs ovs;
    struct of_client client;
    struct sdn_network net;
    size_t n_services;
    struct sdn_service **services;
    struct service_flows *flows;
    struct flow_table table;
    uint32_t bundle;
    char file[OVS_PATH_SIZE]; /* The flows as text. */
};

static void fail(const char *what)
{
    fprintf(stderr, "service_flows: %s\n", what);
    exit(1);
}

/* ---- services ---- */

static struct json *parse(const struct strbuf *text)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(text->data, text->size, &v, &e) < 0) {
        fail(e.text);
    }
    return v;
}

/* 'version' moves one of its endpoints. */
static struct sdn_service *make_service(uint32_t i, uint32_t version)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct sdn_service *s = NULL;
    struct sdn_slice *slice = NULL;
    struct err e = {0};
    uint32_t pod = 0x0a800000 + 4 * i + version % 2 + 1;
    strbuf_addf(
        &text,
        "{\"metadata\":{\"namespace\":\"p\",\"name\":\"s%u\"},\"spec\":{\"clusterIP\":\"%s\","
        "\"ports\":[{\"port\":80}]}}",
        i, IP4_TEXT(0xac1e0001 + i));
    CLEANUP(json_free) struct json *obj = parse(&text);
    strbuf_reset(&text);
    strbuf_addf(&text,
                "{\"addressType\":\"IPv4\",\"ports\":[{\"port\":8080}],\"endpoints\":["
                "{\"addresses\":[\"%s\"]},{\"addresses\":[\"%s\"]}]}",
                IP4_TEXT(pod), IP4_TEXT(0x0a800000 + 4 * i + 3));
    CLEANUP(json_free) struct json *list = parse(&text);
    if (sdn_service_parse(obj, &s, &e) < 0 || sdn_slice_parse(list, &slice, &e) < 0) {
        fail(e.text);
    }
    sdn_service_join(s, &slice, 1);
    sdn_slice_unref(slice);
    return s;
}

static void set_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    struct bench *b = ctx;
    flow_table_set_group(&b->table, cookie, flows);
}

static const struct service_flows_ops ops = {.set_group = set_group};

static void tell(struct bench *b, const struct sdn_service *s)
{
    struct sdn_vnids v = {.id = SDN_VNID_MIN + s->cluster_ip % 100};
    service_flows_set(b->flows, s, &v);
}

/* ---- the switch ---- */

static void wait_for_bundle(struct bench *b, enum of_bundle_ctrl type)
{
    for (;;) {
        struct of_msg m = of_client_receive(&b->client);
        struct err e = {0};
        uint32_t bundle;
        uint16_t got;
        if (m.type == OF_ERROR) {
            fail("the switch refuses flows");
        }
        if (of_bundle_control_parse(&m, &bundle, &got, &e) == 0 && got == type + 1) {
            return;
        }
    }
}

/* Sends what differs and waits until the switch has it; returns how much that was. */
static size_t sync_switch(struct bench *b)
{
    struct flow_change *changes = NULL;
    size_t n = flow_table_build(&b->table, &changes);
    if (!n) {
        return 0;
    }
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    uint32_t id = ++b->bundle;
    of_put_bundle_control(&out, 1, id, OF_BUNDLE_OPEN);
    for (size_t i = 0; i < n; i++) {
        const struct of_flow *f = flow_table_flow(&b->table, &changes[i]);
        if (changes[i].idle_s) {
            of_put_bundle_flow_retire(&out, 2, id, changes[i].idle_s, f);
        } else {
            of_put_bundle_flow_mod(&out, 2, id, changes[i].command, f);
        }
    }
    of_put_bundle_control(&out, 3, id, OF_BUNDLE_CLOSE);
    of_client_send(&b->client, &out);
    wait_for_bundle(b, OF_BUNDLE_CLOSE);
    strbuf_reset(&out);
    of_put_bundle_control(&out, 4, id, OF_BUNDLE_COMMIT);
    of_client_send(&b->client, &out);
    wait_for_bundle(b, OF_BUNDLE_COMMIT);
    free(changes);
    flow_table_built_done(&b->table, true);
    return n;
}

static void empty_switch(struct bench *b)
{
    struct of_flow_list all = {0};
    struct of_builder builder;
    of_begin(&builder, UINT8_MAX, 0, 0);
    of_end_into(&builder, &all);
    of_client_commit(&b->client, OF_FLOW_DELETE, &all);
    of_flow_list_done(&all);
}

static void forget(struct bench *b)
{
    service_flows_free(b->flows);
    flow_table_done(&b->table);
}

static void begin(struct bench *b)
{
    flow_table_init(&b->table);
    b->flows = service_flows_new("node1", &ops, b);
    service_flows_set_network(b->flows, &b->net);
}

/* ---- what is measured; each returns milliseconds ---- */

static void tell_all(struct bench *b)
{
    for (size_t i = 0; i < b->n_services; i++) {
        tell(b, b->services[i]);
    }
    service_flows_flush(b->flows);
}

static double cold_ours(struct bench *b)
{
    empty_switch(b);
    forget(b);
    begin(b);
    flow_table_dump_begin(&b->table);
    flow_table_dump_end(&b->table);
    uint64_t start = time_mono_ns();
    tell_all(b);
    sync_switch(b);
    return measure_ms_since(start);
}

static double cold_peer(struct bench *b)
{
    empty_switch(b);
    uint64_t start = time_mono_ns();
    OVS_RUN(&b->ovs, NULL, "ovs-ofctl", "-OOpenFlow14", "--bundle", "add-flows", "br0", b->file);
    return measure_ms_since(start);
}

static double change(struct bench *b, uint32_t version)
{
    uint32_t i = (uint32_t) ((uint64_t) version * 7919 % b->n_services);
    struct sdn_service *s = make_service(i, version);
    uint64_t start = time_mono_ns();
    tell(b, s);
    service_flows_flush(b->flows);
    sync_switch(b);
    double ms = measure_ms_since(start);
    sdn_service_free(b->services[i]);
    b->services[i] = s;
    return ms;
}

static double restart(struct bench *b)
{
    struct of_flow_list got = {0};
    forget(b);
    begin(b);
    uint64_t start = time_mono_ns();
    of_client_dump(&b->client, &got);
    flow_table_dump_begin(&b->table);
    for (size_t i = 0; i < got.n; i++) {
        flow_table_dump_flow(&b->table, got.flows[i]);
    }
    of_flow_list_done(&got);
    tell_all(b);
    flow_table_dump_end(&b->table);
    size_t n = sync_switch(b);
    double ms = measure_ms_since(start);
    if (n) {
        fail("a restarted agent would change flows");
    }
    return ms;
}

/* ---- report ---- */

int main(int argc, char **argv)
{
    static const struct option options[] = {{"services", required_argument, NULL, 's'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"changes", required_argument, NULL, 'c'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    size_t rounds = 9, changes = 1000;
    struct bench b = {.n_services = 10000};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 's':
            b.n_services = measure_number(optarg, 1, MOST);
            break;
        case 'r':
            rounds = measure_number(optarg, 3, MOST);
            break;
        case 'c':
            changes = measure_number(optarg, 10, MOST);
            break;
        default:
            fputs(help, c == 'h' ? stdout : stderr);
            return c == 'h' ? 0 : 2;
        }
    }
    if (ovs_unavailable()) {
        fail(ovs_unavailable());
    }
    b.net = (struct sdn_network){.plugin = SDN_MULTITENANT,
                                 .cluster = {{0x0a800000, 14}},
                                 .n_cluster = 1,
                                 .service = {0xac1e0000, 16},
                                 .local = {0x0a800000, 23},
                                 .vxlan_port = SDN_VXLAN_PORT};
    b.services = xcalloc(b.n_services, sizeof(struct sdn_service *));
    for (uint32_t i = 0; i < b.n_services; i++) {
        b.services[i] = make_service(i, 0);
    }
    ovs_start(&b.ovs);
    OVS_VSCTL(&b.ovs, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev",
              "fail_mode=secure");
    of_client_open(&b.client, &b.ovs, "br0");
    begin(&b);
    cold_ours(&b); /* Warm-up, and what the file is made from. */
    ovs_write_flows(&b.ovs, "br0", b.file);

    size_t n = MAX(rounds, changes);
    double *ours = xcalloc(n, sizeof *ours), *peer = xcalloc(n, sizeof *peer);
    printf("%zu services of two endpoints, %zu flows; milliseconds\n", b.n_services,
           b.table.n_wanted);
    for (size_t i = 0; i < rounds; i++) {
        peer[i] = cold_peer(&b);
        ours[i] = cold_ours(&b);
    }
    double cold = measure_quantile(ours, rounds, 0.5), peers = measure_quantile(peer, rounds, 0.5);
    printf("cold     ours %8.2f  ovs-ofctl %8.2f  ratio %5.2f\n", cold, peers, cold / peers);
    measure_result("cold", cold, "ms", "ovs-ofctl", peers);
    for (size_t i = 0; i < rounds; i++) {
        ours[i] = restart(&b);
    }
    double again = measure_quantile(ours, rounds, 0.5);
    printf("restart  ours %8.2f  nothing differs\n", again);
    measure_result("restart", again, "ms", NULL, 0);
    for (uint32_t i = 0; i < changes; i++) {
        ours[i] = change(&b, i + 1);
    }
    double p50 = measure_quantile(ours, changes, 0.5), p99 = measure_quantile(ours, changes, 0.99);
    printf("change   ours %8.2f  p99 %8.2f\n", p50, p99);
    measure_result("change p50", p50, "ms", NULL, 0);
    measure_result("change p99", p99, "ms", NULL, 0);
    free(ours);
    free(peer);
    forget(&b);
    for (size_t i = 0; i < b.n_services; i++) {
        sdn_service_free(b.services[i]);
    }
    free(b.services);
    of_client_close(&b.client);
    ovs_stop(&b.ovs);
    return 0;
}
