/* SPDX-License-Identifier: Apache-2.0 */
/* What the datapath "ebpf" shows: events of flows, traces without a sign, maps in words; and how it
 * does without what a kernel may lack, and says what it cannot do without.  No link is made:
 * programs run by BPF_PROG_TEST_RUN. */
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/program.h"
#include "datapath/ebpf/show.h"
#include "datapath/ebpf/trace.h"
#include "datapath/ebpf/watch.h"
#include "ebpf_fixture.h"
#include "net/loop/process.h"
#include "sdn/explain.h"
#include "sdn/pipeline.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define POD IP(10, 128, 0, 2)
#define OTHER IP(10, 128, 0, 3)
#define FOREIGN IP(10, 128, 0, 4)
#define SERVICE IP(172, 30, 0, 7)
#define NODE2 IP(192, 168, 100, 2)

static struct program_features features;
static struct loop *loop;
static char folder[64];

static const struct sdn_remote remote = {.host_ip = NODE2, .subnet = {IP(10, 128, 2, 0), 23}};
static const struct sdn_network network = {.plugin = SDN_MULTITENANT,
                                           .cluster = {{IP(10, 128, 0, 0), 14}},
                                           .n_cluster = 1,
                                           .service = {IP(172, 30, 0, 0), 16},
                                           .local = {IP(10, 128, 0, 0), 23},
                                           .host_ip = IP(192, 168, 100, 1),
                                           .vxlan_port = SDN_VXLAN_PORT,
                                           .remotes = (struct sdn_remote *) &remote,
                                           .n_remotes = 1,
                                           .mtu = 1450};
static const struct devices devices = {.tun = 2001, .host = 2002, .vxlan = 2003};

/* ---- a node's maps ---- */

static void put_pod(const struct program *p, uint32_t ip, uint32_t link, uint32_t vnid)
{
    struct mac mac = mac_from_ip4(ip);
    uint32_t addr = htonl(ip);
    struct ebpf_pod v = {.reach = {.ifindex = link, .vnid = vnid}, .inlet = link, .addr = addr};
    memcpy(v.mac, mac.b, sizeof v.mac);
    ebpf_put(p->pods, &addr, &v);
    ebpf_put(p->ports, &link, &addr);
}

static void put_settings(const struct program *p, uint32_t watch, uint32_t second)
{
    struct ebpf_settings s = encode_settings(&network, &devices, true);
    uint32_t zero = 0;
    s.watch = watch;
    s.watch_second = second;
    ebpf_put(p->settings, &zero, &s);
}

static void load(struct program *p, const struct program_features *f, bool under_test)
{
    struct err e = {0};
    struct table_row *rows;
    size_t n;
    if (program_load(NULL, f, under_test, p, &e) < 0) {
        fail_msg("%s", e.text);
    }
    put_settings(p, 0, 0);
    rows = encode_routes(&network, NULL, &n);
    for (size_t i = 0; i < n; i++) {
        ebpf_put(p->routes, rows[i].key, rows[i].value);
    }
    free(rows);
    rows = encode_vteps(&network, &n);
    for (size_t i = 0; i < n; i++) {
        ebpf_put(p->vteps, rows[i].key, rows[i].value);
    }
    free(rows);
    put_pod(p, POD, 11, 42);
    put_pod(p, OTHER, 12, 42);
    put_pod(p, FOREIGN, 13, 43);
}

static void put_service(const struct program *p, const struct ebpf_service *v, uint32_t backend)
{
    struct ebpf_service_key key = {.addr = htonl(SERVICE), .port = htons(80), .protocol = 6};
    struct ebpf_backend b = {.addr = htonl(backend), .port = htons(8080)};
    struct ebpf_backend_key at = {.service = key};
    struct ebpf_serving_key serving = {.service = key, .backend = b};
    uint32_t one = 1;
    ebpf_put(p->services, &key, v);
    ebpf_put(p->backends, &at, &b);
    ebpf_put(p->serving, &serving, &one);
}

static struct model_packet packet(uint32_t dst, uint16_t port)
{
    struct explain_question q = {.entry = MODEL_FROM_PORT,
                                 .port = 11,
                                 .src = POD,
                                 .dst = dst,
                                 .proto = 6,
                                 .src_port = 40000,
                                 .dst_port = port};
    struct model_packet p;
    explain_packet(&network, &q, &p);
    return p;
}

/* ---- events ---- */

struct told {
    struct ebpf_event last;
    size_t n;
};

static int on_event(void *ctx, void *data, size_t size)
{
    struct told *t = ctx;
    assert_int_equal(size, sizeof t->last);
    memcpy(&t->last, data, sizeof t->last);
    t->n++;
    return 0;
}

/* A TCP segment of POD, which has the link 11, with so much data. */
static void send_data(const struct program *p, uint32_t dst, uint16_t port, uint8_t data)
{
    uint8_t frame[54 + UINT8_MAX] = {0};
    struct mac mac = mac_from_ip4(POD);
    uint32_t src = htonl(POD), to = htonl(dst), cb[5] = {[EBPF_CB_PORT] = 11};
    uint16_t dport = htons(port), sport = htons(40000);
    uint8_t out[sizeof frame + 64];
    size_t size = sizeof out;
    int action;
    struct err e = {0};
    memcpy(frame + 6, mac.b, 6);
    frame[12] = 8;
    frame[14] = 0x45;
    frame[16] = (uint8_t) ((40 + data) >> 8);
    frame[17] = (uint8_t) (40 + data);
    frame[22] = 64;
    frame[23] = 6;
    memcpy(frame + 26, &src, 4);
    memcpy(frame + 30, &to, 4);
    memcpy(frame + 34, &sport, 2);
    memcpy(frame + 36, &dport, 2);
    frame[46] = 0x50;
    frame[47] = 2;
    if (program_run(p->from_pod, cb, frame, 54u + data, out, &size, &action, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static void send_to(const struct program *p, uint32_t dst, uint16_t port)
{
    send_data(p, dst, port, 0);
}

static size_t told_since(struct ring_buffer *ring, struct told *t)
{
    t->n = 0;
    assert_true(ring_buffer__consume(ring) >= 0);
    return t->n;
}

static uint64_t lost_of(const struct program *p)
{
    int cpus = libbpf_num_possible_cpus();
    CLEANUP_FREE struct ebpf_watched *all = xcalloc((size_t) cpus, sizeof *all);
    uint32_t zero = 0;
    uint64_t n = 0;
    assert_int_equal(bpf_map_lookup_elem(p->watched, &zero, all), 0);
    for (int i = 0; i < cpus; i++) {
        n += all[i].lost;
    }
    return n;
}

/* A packet's CPU tells; the test stays on one. */
static void stay(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t) sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static void needs_ringbuf(void)
{
    if (!features.ringbuf) {
        LEAVE_OUT("this kernel has no ring buffer (Linux 5.8)");
    }
}

/* The programs, and what they tell into 't'. */
static struct ring_buffer *load_watched(struct program *p, struct told *t)
{
    needs_ringbuf();
    load(p, &features, true);
    struct ring_buffer *ring = ring_buffer__new(p->events, on_event, t, NULL);
    assert_non_null(ring);
    return ring;
}

static void a_flow_is_told_once_and_to_nobody_when_nobody_watches(void **state)
{
    (void) state;
    struct program p = {0};
    struct told t = {0};
    struct ring_buffer *ring = load_watched(&p, &t);
    send_to(&p, OTHER, 80);
    assert_int_equal(told_since(ring, &t), 0);

    put_settings(&p, 1, 0);
    send_to(&p, OTHER, 80);
    assert_int_equal(told_since(ring, &t), 1);
    struct dp_event e = watch_event(&t.last);
    assert_int_equal(e.action, MODEL_DELIVER);
    assert_int_equal(e.entry, MODEL_FROM_PORT);
    assert_true(e.src == POD && e.dst == OTHER && e.port == 11 && e.proto == 6);
    assert_true(e.src_port == 40000 && e.dst_port == 80 && e.asked == 0 && e.size == 54);
    send_to(&p, OTHER, 80);
    assert_int_equal(told_since(ring, &t), 0);

    /* Another port, and what is dropped, with its cause. */
    send_to(&p, OTHER, 81);
    send_to(&p, FOREIGN, 80);
    assert_int_equal(told_since(ring, &t), 2);
    e = watch_event(&t.last);
    assert_int_equal(e.action, MODEL_DROP);
    assert_int_equal(e.cause, MODEL_VNID_MISMATCH);
    /* By the tunnel; and what is refused is told as one drop. */
    send_to(&p, IP(10, 128, 2, 9), 80);
    assert_int_equal(told_since(ring, &t), 1);
    e = watch_event(&t.last);
    assert_true(e.action == MODEL_TUNNEL && e.remote == NODE2 && e.vnid == 42);
    send_to(&p, IP(10, 130, 0, 1), 80);
    assert_int_equal(told_since(ring, &t), 1);
    e = watch_event(&t.last);
    assert_true(e.action == MODEL_DROP && e.cause == MODEL_NO_SUCH_NODE);

    /* The service that was asked. */
    put_service(&p, &(struct ebpf_service){.count = 1, .vnid = 42}, OTHER);
    send_to(&p, SERVICE, 80);
    assert_int_equal(told_since(ring, &t), 1);
    e = watch_event(&t.last);
    assert_true(e.asked == SERVICE && e.asked_port == 80 && e.dst == OTHER && e.dst_port == 8080);

    /* Told anew, and then nobody watches. */
    put_settings(&p, 2, 0);
    send_to(&p, OTHER, 80);
    assert_int_equal(told_since(ring, &t), 1);
    put_settings(&p, 0, 0);
    send_to(&p, OTHER, 82);
    assert_int_equal(told_since(ring, &t), 0);
    ring_buffer__free(ring);
    program_done(&p);
}

static void of_many_data_packets_some_are_looked_at(void **state)
{
    (void) state;
    struct program p = {0};
    struct told t = {0};
    struct ring_buffer *ring = load_watched(&p, &t);
    put_settings(&p, 1, 0);
    size_t before = 0;
    for (int i = 0; i < EBPF_DATA_LOOKED_AT; i++) {
        send_data(&p, OTHER, 80, EBPF_DATA_SIZE - 54);
        before += i < EBPF_DATA_LOOKED_AT - 1 ? told_since(ring, &t) : 0;
    }
    assert_int_equal(before, 0);
    assert_int_equal(told_since(ring, &t), 1);
    /* What is dropped is told at once; so is what is short, as beginnings are. */
    send_data(&p, FOREIGN, 80, EBPF_DATA_SIZE - 54);
    assert_int_equal(told_since(ring, &t), 1);
    send_data(&p, OTHER, 81, EBPF_DATA_SIZE - 55);
    assert_int_equal(told_since(ring, &t), 1);
    ring_buffer__free(ring);
    program_done(&p);
}

static void more_flows_than_can_be_told_are_counted(void **state)
{
    (void) state;
    struct program p = {0};
    struct told t = {0};
    enum { MORE = 200 };
    struct ring_buffer *ring = load_watched(&p, &t);
    put_settings(&p, 1, 7);
    for (uint16_t i = 0; i < EBPF_EVENTS_A_SECOND + MORE; i++) {
        send_to(&p, OTHER, (uint16_t) (1000 + i));
    }
    assert_int_equal(told_since(ring, &t), EBPF_EVENTS_A_SECOND);
    assert_int_equal(lost_of(&p), MORE);
    put_settings(&p, 1, 8); /* Another second. */
    send_to(&p, OTHER, 80);
    assert_int_equal(told_since(ring, &t), 1);
    ring_buffer__free(ring);
    program_done(&p);
}

/* ---- traces ---- */

static size_t entries_of(int fd, size_t key_size)
{
    unsigned char key[64] = {0}, next[64];
    const void *at = NULL;
    size_t n = 0;
    assert_true(key_size <= sizeof key);
    while (bpf_map_get_next_key(fd, at, next) == 0) {
        memcpy(key, next, key_size);
        at = key;
        n++;
    }
    return n;
}

static uint64_t drops_of(const struct program *p)
{
    int cpus = libbpf_num_possible_cpus();
    CLEANUP_FREE uint64_t *all = xcalloc((size_t) cpus, sizeof *all);
    uint64_t n = 0;
    for (uint32_t cause = 0; cause < EBPF_N_CAUSES; cause++) {
        assert_int_equal(bpf_map_lookup_elem(p->drops, &cause, all), 0);
        for (int i = 0; i < cpus; i++) {
            n += all[i];
        }
    }
    return n;
}

static struct trace_steps *trace(const struct program *live, const struct model_packet *p,
                                 struct dp_trace *ret)
{
    struct trace_steps *steps = NULL;
    struct err e = {0};
    if (trace_packet(live, &features, &network, p, ret, &steps, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return steps;
}

static void a_trace_says_what_packets_meet_and_leaves_no_sign(void **state)
{
    (void) state;
    struct program p = {0};
    struct dp_trace t;
    load(&p, &features, false);
    put_service(&p, &(struct ebpf_service){.count = 1, .vnid = 42, .affinity_s = 100}, OTHER);
    put_settings(&p, 1, 1); /* Somebody watches, and hears nothing of it. */

    struct model_packet to_service = packet(SERVICE, 80);
    struct trace_steps *steps = trace(&p, &to_service, &t);
    assert_int_equal(t.action, MODEL_DELIVER);
    assert_true(t.translated && t.endpoint_ip == OTHER && t.endpoint_port == 8080);
    static const char *const tables[] = {EBPF_PODS, EBPF_SERVICES, EBPF_BACKENDS, EBPF_PODS,
                                         EBPF_PODS};
    assert_int_equal(t.n, ARRAY_SIZE(tables));
    for (size_t i = 0; i < t.n; i++) {
        assert_string_equal(t.steps[i].place, tables[i]);
        assert_null(t.steps[i].details);
    }
    assert_true(t.steps[0].origin == pipeline_pod_cookie(POD) && t.steps[1].is_service);
    assert_true(t.steps[3].origin == pipeline_pod_cookie(OTHER));
    assert_string_equal(t.steps[4].meaning, "both ends have this VNID");
    trace_steps_free(steps);

    struct model_packet foreign = packet(FOREIGN, 80), nowhere = packet(IP(10, 130, 0, 1), 80);
    steps = trace(&p, &foreign, &t);
    assert_true(t.action == MODEL_DROP && t.cause == MODEL_VNID_MISMATCH && !t.translated);
    assert_true(t.steps[t.n - 1].cause == MODEL_VNID_MISMATCH);
    assert_int_equal(t.n, 3);
    assert_true(t.steps[1].origin == pipeline_pod_cookie(FOREIGN));
    assert_false(t.steps[2].is_service);
    trace_steps_free(steps);
    steps = trace(&p, &nowhere, &t); /* Refused: what leaves is an answer, and no translation. */
    assert_true(t.action == MODEL_DROP && t.cause == MODEL_NO_SUCH_NODE && !t.translated);
    trace_steps_free(steps);
    struct model_packet remote_pod = packet(IP(10, 128, 2, 9), 80);
    steps = trace(&p, &remote_pod, &t);
    assert_int_equal(t.action, MODEL_TUNNEL);
    assert_string_equal(t.steps[t.n - 1].actions, "vtep=192.168.100.2");
    trace_steps_free(steps);

    assert_int_equal(drops_of(&p), 0);
    assert_int_equal(entries_of(p.conns, sizeof(struct ebpf_connection_key)), 0);
    assert_int_equal(entries_of(p.affinity, sizeof(struct ebpf_affinity_key)), 0);
    assert_int_equal(entries_of(p.refusals, sizeof(uint32_t)), 0);
    program_done(&p);
}

static void a_trace_gets_the_endpoint_that_the_client_had(void **state)
{
    (void) state;
    struct program p = {0};
    struct dp_trace t;
    struct timespec now;
    load(&p, &features, false);
    struct ebpf_service_key key = {.addr = htonl(SERVICE), .port = htons(80), .protocol = 6};
    struct ebpf_affinity_key client = {.service = key, .client = htonl(POD)};
    uint32_t one = 1;
    ebpf_put(p.services, &key, &(struct ebpf_service){.count = 8, .vnid = 42, .affinity_s = 100});
    for (uint32_t i = 0; i < 8; i++) {
        struct ebpf_backend b = {.addr = htonl(OTHER), .port = htons((uint16_t) (8000 + i))};
        ebpf_put(p.backends, &(struct ebpf_backend_key){.service = key, .index = i}, &b);
        ebpf_put(p.serving, &(struct ebpf_serving_key){.service = key, .backend = b}, &one);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    struct ebpf_chosen had = {
        .addr = htonl(OTHER), .port = htons(8005), .asked_s = (uint32_t) now.tv_sec};
    ebpf_put(p.affinity, &client, &had);
    struct model_packet to_service = packet(SERVICE, 80);
    for (int i = 0; i < 4; i++) {
        struct trace_steps *steps = trace(&p, &to_service, &t);
        assert_true(t.translated && t.endpoint_port == 8005);
        trace_steps_free(steps);
    }
    program_done(&p);
}

static void a_trace_names_the_service_of_a_node_port(void **state)
{
    (void) state;
    struct program p = {0};
    struct dp_trace t;
    load(&p, &features, false);
    struct ebpf_service_key key = {.port = htons(30080), .protocol = 6};
    struct ebpf_backend b = {.addr = htonl(OTHER), .port = htons(8080)};
    uint32_t one = 1;
    ebpf_put(p.services, &key, &(struct ebpf_service){.count = 1, .vnid = 42});
    ebpf_put(p.backends, &(struct ebpf_backend_key){.service = key}, &b);
    ebpf_put(p.serving, &(struct ebpf_serving_key){.service = key, .backend = b}, &one);
    const uint32_t nodes[] = {network.host_ip, NODE2};
    for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
        struct model_packet to_node = packet(nodes[i], 30080);
        struct trace_steps *steps = trace(&p, &to_node, &t);
        assert_true(t.action == MODEL_DELIVER && t.translated && t.endpoint_ip == OTHER);
        assert_string_equal(t.steps[1].place, EBPF_SERVICES);
        assert_string_equal(t.steps[1].match, "address=0.0.0.0 port=30080 protocol=tcp");
        assert_string_equal(t.steps[1].actions, "backends=1 vnid=42");
        trace_steps_free(steps);
    }
    program_done(&p);
}

/* ---- maps in words ---- */

static void assert_shown(const char *map, const void *key, size_t key_size, const void *value,
                         size_t value_size, const char *want)
{
    CLEANUP(json_free) struct json *o = show_entry(map, key, key_size, value, value_size);
    CLEANUP_FREE char *text = json_to_text(o);
    assert_string_equal(text, want);
}

static void entries_are_shown_in_words(void **state)
{
    (void) state;
    uint32_t addr = htonl(POD), seven = 7;
    struct ebpf_pod pod = {.reach = {.ifindex = 9, .vnid = 42},
                           .inlet = 9,
                           .addr = addr,
                           .also_vnid = 43,
                           .mac = {10, 88, 10, 128, 0, 2},
                           .flags = 1};
    assert_shown(EBPF_PODS, &addr, sizeof addr, &pod, sizeof pod,
                 "{\"key\":{\"address\":\"10.128.0.2\"},\"value\":{\"link\":9,"
                 "\"ethernet\":\"0a:58:0a:80:00:02\",\"vnid\":42,\"alsoVNID\":43}}");
    uint32_t index = POD % EBPF_POD_CACHE_SIZE;
    pod.flags = 0;
    assert_shown(EBPF_POD_CACHE, &index, sizeof index, &pod, sizeof pod,
                 "{\"key\":{\"address\":\"10.128.0.2\",\"index\":2},\"value\":{\"link\":9,"
                 "\"ethernet\":\"0a:58:0a:80:00:02\",\"vnid\":42}}");
    struct ebpf_route_key prefix = {.len = 23, .addr = htonl(IP(10, 128, 2, 0))};
    struct ebpf_route route = {.kind = EBPF_REMOTE, .vtep = NODE2};
    assert_shown(EBPF_ROUTES, &prefix, sizeof prefix, &route, sizeof route,
                 "{\"key\":{\"prefix\":\"10.128.2.0/23\"},\"value\":{\"kind\":\"remote\","
                 "\"vtep\":\"192.168.100.2\"}}");
    struct ebpf_connection_key conn = {.src = htonl(POD),
                                       .dst = htonl(SERVICE),
                                       .src_port = htons(40000),
                                       .dst_port = htons(80),
                                       .protocol = 6};
    struct ebpf_chosen chosen = {.addr = htonl(OTHER), .port = htons(8080)};
    assert_shown(EBPF_CONNECTIONS, &conn, sizeof conn, &chosen, sizeof chosen,
                 "{\"key\":{\"from\":\"10.128.0.2:40000\",\"to\":\"172.30.0.7:80\","
                 "\"protocol\":\"tcp\"},\"value\":{\"goesToBackend\":\"10.128.0.3:8080\"}}");
    chosen.client_port = htons(61007);
    assert_shown(EBPF_CONNECTIONS, &conn, sizeof conn, &chosen, sizeof chosen,
                 "{\"key\":{\"from\":\"10.128.0.2:40000\",\"to\":\"172.30.0.7:80\","
                 "\"protocol\":\"tcp\"},\"value\":{\"goesToBackend\":\"10.128.0.3:8080\","
                 "\"clientPortThere\":61007}}");
    uint32_t cause = EBPF_VNID_MISMATCH;
    assert_shown(EBPF_DROPS, &cause, sizeof cause, &(uint64_t){5}, sizeof(uint64_t),
                 "{\"key\":{\"cause\":\"vnid-mismatch\"},\"value\":{\"packets\":5}}");
    struct ebpf_port_key ports = {
        .len = EBPF_PORT_PROTO_BITS + 16, .ports = 3, .protocol = 6, .port = htons(80)};
    struct ebpf_port_verdict verdict = {
        .admin = 5, .baseline = 6, .admin_action = EBPF_PASS, .baseline_action = EBPF_DENY};
    assert_shown(EBPF_PORT_SETS, &ports, sizeof ports, &verdict, sizeof verdict,
                 "{\"key\":{\"ports\":3,\"protocol\":\"tcp\",\"port\":\"80/16\"},"
                 "\"value\":{\"allowed\":false,\"admin\":\"pass\",\"baseline\":\"deny\"}}");
    verdict.allowed = 1;
    ports.len = EBPF_PORT_ANY_BITS;
    for (unsigned unknown = EBPF_PASS + 1; unknown <= UINT8_MAX; unknown++) {
        verdict.admin_action = verdict.baseline_action = (uint8_t) unknown; /* A later version's. */
        assert_shown(EBPF_PORT_SETS, &ports, sizeof ports, &verdict, sizeof verdict,
                     "{\"key\":{\"ports\":3},\"value\":{\"allowed\":true}}");
    }
    uint32_t group = 2;
    struct ebpf_clients clients = {.asked = {[0] = 1, [5] = 1, [63] = 1}};
    assert_shown(EBPF_CLIENTS, &group, sizeof group, &clients, sizeof clients,
                 "{\"key\":{\"lowBits\":128},\"value\":{\"clients\":3}}");
    /* A kind that nobody has heard of, and a map of another layout. */
    route.kind = 77;
    assert_shown(EBPF_ROUTES, &prefix, sizeof prefix, &route, sizeof route,
                 "{\"key\":{\"prefix\":\"10.128.2.0/23\"},\"value\":{\"kind\":\"unknown\"}}");
    assert_shown(EBPF_PODS, &addr, sizeof addr, &seven, sizeof seven,
                 "{\"key\":{\"bytes\":\"0a800002\"},\"value\":{\"bytes\":\"07000000\"}}");
}

static void a_map_is_shown_some_entries_at_a_time(void **state)
{
    (void) state;
    struct program p = {0};
    struct err e = {0};
    CLEANUP_FREE char *after = NULL;
    size_t n = 0, parts = 0;
    load(&p, &features, false);
    const struct table pods = {.fd = p.pods, .n = 3}, *const known[] = {&pods, NULL};
    do {
        CLEANUP(json_free) struct json *o = NULL;
        assert_int_equal(show_map(&p, known, "pods", after, 2, &o, &e), 0);
        assert_int_equal(json_get_int_or(json_get(o, "entries"), 0), 3);
        n += json_count(json_get(o, "items"));
        const char *next = json_path_string(o, "next", NULL);
        free(after);
        after = next ? xstrdup(next) : NULL;
        parts++;
    } while (after);
    assert_int_equal(n, 3);
    assert_int_equal(parts, 2);
    struct json *o = NULL;
    static const char *const bad[] = {"", "0a", "0a80000", "0a80000g", "0a80000200"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(show_map(&p, known, EBPF_PODS, bad[i], 2, &o, &e), -EINVAL);
    }
    CLEANUP(json_free) struct json *all = show_maps(&p, known);
    assert_string_equal(json_path_string(json_at(all, 0), "type", NULL), "hash");
    assert_int_equal(show_map(&p, known, "nosuch", NULL, 2, &o, &e), -ENOENT);
    program_done(&p);
}

/* ---- what a kernel may lack ---- */

static bool *member(struct program_features *f, const char *name)
{
    return streq(name, "tcx")             ? &f->tcx
           : streq(name, "redirect_peer") ? &f->redirect_peer
           : streq(name, "scrub")         ? &f->scrub
           : streq(name, "ringbuf")       ? &f->ringbuf
           : streq(name, "encap")         ? &f->encap
                                          : NULL;
}

/* Of kernels as they are released; a distribution may have put a feature into an older one. */
static void features_are_found_where_the_kernel_has_them(void **state)
{
    (void) state;
    static const struct {
        const char *name, *since;
    } all[] = {{"ringbuf", "5.8"},
               {"redirect_peer", "5.10"},
               {"encap", "5.13"},
               {"tcx", "6.6"},
               {"scrub", "6.15"}};
    struct utsname u;
    assert_int_equal(uname(&u), 0);
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (strverscmp(u.release, all[i].since) >= 0 && !*member(&features, all[i].name)) {
            fail_msg("%s is not found on Linux %s", all[i].name, u.release);
        }
    }
}

/* Denied one by one and all together: programs load and say the same. */
static void each_feature_can_be_done_without(void **state)
{
    (void) state;
    CLEANUP_STRBUF struct strbuf all = STRBUF_INIT;
    const char *name;
    size_t i;
    for (i = 0; (name = program_feature_name(i)); i++) {
        strbuf_addf(&all, "%s%s", i ? "," : "", name);
    }
    for (i = 0; i == 0 || program_feature_name(i - 1); i++) {
        name = program_feature_name(i);
        const char *without = name ? name : strbuf_cstr(&all);
        struct program_features f, want = features;
        struct err e = {0};
        struct program p = {0};
        struct dp_trace t;
        assert_int_equal(datapath_check_setting("ebpf.without", without, &e), 0);
        assert_int_equal(program_probe(without, &f, &e), 0);
        for (size_t k = 0; program_feature_name(k); k++) {
            bool denied = !name || streq(name, program_feature_name(k));
            assert_non_null(member(&want, program_feature_name(k)));
            *member(&want, program_feature_name(k)) &= !denied;
            assert_int_equal(*member(&f, program_feature_name(k)),
                             *member(&want, program_feature_name(k)));
        }
        load(&p, &f, false);
        assert_int_equal(p.events >= 0, f.ringbuf);
        struct model_packet to = packet(OTHER, 80);
        struct trace_steps *steps = NULL;
        assert_int_equal(trace_packet(&p, &f, &network, &to, &t, &steps, &e), 0);
        assert_int_equal(t.action, MODEL_DELIVER);
        trace_steps_free(steps);
        struct watch *w = NULL;
        struct watch_config c = {.loop = loop, .program = &p, .number = 1};
        assert_int_equal(watch_new(&c, &w, &e), f.ringbuf ? 0 : -EOPNOTSUPP);
        assert_true(f.ringbuf || strstr(e.text, "ring buffers (Linux 5.8)"));
        watch_free(w);
        program_done(&p);
    }
    assert_int_equal(datapath_check_setting("ebpf.without", "tcx,jit", &(struct err){0}), -EINVAL);
}

static void maps_can_be_made_small(void **state)
{
    (void) state;
    struct program_features f = features;
    struct program p = {0};
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    f.max_entries = 5;
    load(&p, &f, false); /* Five routes. */
    assert_int_equal(bpf_obj_get_info_by_fd(p.routes, &info, &size), 0);
    assert_int_equal(info.max_entries, 5);
    struct ebpf_route_key key = {.len = 23, .addr = htonl(IP(10, 128, 8, 0))};
    assert_true(bpf_map_update_elem(p.routes, &key, &(struct ebpf_route){0}, BPF_ANY) < 0);
    program_done(&p);
}

/* ---- what it cannot do without ---- */

/* In a child that keeps these capabilities only: the error of 'ask', "" when there is none. */
static void ask_with(uint64_t caps, int (*ask)(struct err *e), char text[600])
{
    int out[2], status;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = {0};
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {
            {.effective = (uint32_t) caps, .permitted = (uint32_t) caps},
            {.effective = (uint32_t) (caps >> 32), .permitted = (uint32_t) (caps >> 32)}};
        int r = syscall(SYS_capset, &head, data) == 0 ? ask(&e) : err_set(&e, -EIO, "capset");
        dprintf(out[1], "%s.", r < 0 ? e.text : "");
        _exit(0);
    }
    close(out[1]);
    memset(text, 0, 600);
    ssize_t n = read(out[0], text, 599);
    close(out[0]);
    waitpid(pid, &status, 0);
    assert_true(n > 0);
    text[n - 1] = '\0';
}

static int ask_probe(struct err *e)
{
    struct program_features f;
    return program_probe(NULL, &f, e);
}

static int ask_load(struct err *e)
{
    struct program_features f;
    struct program p = {0};
    int r = program_probe(NULL, &f, e);
    r = r < 0 ? r : program_load(NULL, &f, false, &p, e);
    if (r == 0) {
        program_done(&p);
    }
    return r;
}

static int ask_mount(struct err *e)
{
    int r = program_check_mount("/nowhere/bpf", e);
    return r < 0 ? r : program_mount(folder, e);
}

static void missing_capabilities_are_named(void **state)
{
    (void) state;
    const uint64_t bpf = 1ull << CAP_BPF, perfmon = 1ull << CAP_PERFMON;
    const uint64_t net = 1ull << CAP_NET_ADMIN, sys = 1ull << CAP_SYS_ADMIN;
    char text[600];
    ask_with(net, ask_probe, text);
    assert_non_null(strstr(text, "does not let this process make eBPF maps: it needs CAP_BPF"));
    ask_with(bpf, ask_probe, text);
    assert_non_null(strstr(text, "does not let this process load eBPF programs for links"));
    ask_with(bpf | perfmon | net, ask_load, text);
    assert_string_equal(text, "");
    ask_with(sys | net, ask_load, text);
    assert_string_equal(text, "");
    ask_with(bpf | perfmon | net, ask_mount, text);
    assert_non_null(strstr(text, "a bpffs cannot be mounted on /tmp/tenet-see-"));
    assert_non_null(strstr(text, "\"mount -t bpf bpf /tmp/tenet-see-"));
    assert_non_null(strstr(text, "Operation not permitted"));
}

/* ---- all ---- */

static int set_up(void **state)
{
    (void) state;
    stay();
    snprintf(folder, sizeof folder, "/tmp/tenet-see-%d", (int) getpid());
    loop = loop_new();
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    loop = loop_free(loop);
    return dir_remove(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flow_is_told_once_and_to_nobody_when_nobody_watches),
        cmocka_unit_test(of_many_data_packets_some_are_looked_at),
        cmocka_unit_test(more_flows_than_can_be_told_are_counted),
        cmocka_unit_test(a_trace_says_what_packets_meet_and_leaves_no_sign),
        cmocka_unit_test(a_trace_gets_the_endpoint_that_the_client_had),
        cmocka_unit_test(a_trace_names_the_service_of_a_node_port),
        cmocka_unit_test(entries_are_shown_in_words),
        cmocka_unit_test(a_map_is_shown_some_entries_at_a_time),
        cmocka_unit_test(features_are_found_where_the_kernel_has_them),
        cmocka_unit_test(each_feature_can_be_done_without),
        cmocka_unit_test(maps_can_be_made_small),
        cmocka_unit_test(missing_capabilities_are_named),
    };
    return EBPF_TESTS(&features, tests, set_up, tear_down);
}
