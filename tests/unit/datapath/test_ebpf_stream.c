/* SPDX-License-Identifier: Apache-2.0 */
/* The short way of a stream's packets (bpf/stream.h) never says anything else than the
 * long one: each frame runs through the program on a node where the short way knows its
 * pods, and on one where it does not.  Where frames before matter, and for what else is
 * done about a packet, one test each. */
#include "base/mem.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/program.h"
#include "ebpf_fixture.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "leave_out.h"

#define A 0x0a800202u
#define B 0x0a800203u       /* Of A's project. */
#define FOREIGN 0x0a800204u /* Of another one. */
#define UNWIRED 0x0a800205u /* Of A's, but its link is not up. */
#define SERVICE 0xac1e0007u
enum { PORT_A = 1011, PORT_B, PORT_FOREIGN, PORT_UNWIRED };
enum { SYN = 2, ACK = 16, TCP = 6, UDP = 17 };
enum { AT_TYPE = 12, AT_IP = 14, AT_FRAGMENT = 20, AT_PORTS = 34, AT_TCP_SIZE = 46, AT_FLAGS };
#define CAUSE(cb) ((cb) >> 16)

static const struct sdn_network net = {.plugin = SDN_MULTITENANT,
                                       .cluster = {{0x0a800000, 14}},
                                       .n_cluster = 1,
                                       .service = {0xac1e0000, 16},
                                       .local = {0x0a800000, 16},
                                       .host_ip = 0xc0a86401,
                                       .vxlan_port = SDN_VXLAN_PORT,
                                       .mtu = 1450};
static const struct devices devices = {.tun = 2001, .host = 2002, .vxlan = 2003};
static struct program_features features;
enum { SHORT, LONG, N_NODES };
static struct program nodes[N_NODES];

/* ---- frames ---- */

struct frame {
    unsigned char bytes[300];
    size_t size;
    uint32_t port;    /* By which it comes. */
    uint32_t segment; /* GSO; 0: it is none. */
};

static void put16(struct frame *f, size_t at, unsigned v)
{
    f->bytes[at] = (unsigned char) (v >> 8);
    f->bytes[at + 1] = (unsigned char) v;
}

static void put_address(struct frame *f, size_t at, uint32_t addr)
{
    addr = htonl(addr);
    memcpy(f->bytes + at, &addr, sizeof addr);
}

static struct frame frame_of(uint32_t src, uint32_t dst, unsigned src_port, unsigned dst_port,
                             unsigned flags)
{
    struct frame f = {.size = 14 + 20 + 60, .port = PORT_A + (src - A)};
    struct mac to = mac_from_ip4(dst), from = mac_from_ip4(src);
    memcpy(f.bytes, to.b, sizeof to.b);
    memcpy(f.bytes + 6, from.b, sizeof from.b);
    put16(&f, AT_TYPE, 0x0800);
    f.bytes[AT_IP] = 0x45;
    put16(&f, AT_IP + 2, 80);
    f.bytes[AT_IP + 8] = 64;
    f.bytes[AT_IP + 9] = TCP;
    put_address(&f, AT_IP + 12, src);
    put_address(&f, AT_IP + 16, dst);
    put16(&f, AT_PORTS, src_port);
    put16(&f, AT_PORTS + 2, dst_port);
    f.bytes[AT_TCP_SIZE] = 0x50;
    f.bytes[AT_FLAGS] = (unsigned char) flags;
    return f;
}

static struct frame stream(void)
{
    return frame_of(A, B, 4000, 80, ACK);
}

struct said {
    uint32_t action, cb[5];
    unsigned char bytes[400];
    uint32_t size;
};

static struct said run(int node, const struct frame *f)
{
    struct said ret = {.size = sizeof ret.bytes};
    struct __sk_buff in = {.gso_size = f->segment, .gso_segs = f->segment ? 2 : 0}, after = {0};
    in.cb[EBPF_CB_PORT] = f->port;
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->bytes, .data_size_in = (uint32_t) f->size,
                .data_out = ret.bytes, .data_size_out = ret.size, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = &after, .ctx_size_out = sizeof after);
    assert_int_equal(bpf_prog_test_run_opts(nodes[node].from_pod, &o), 0);
    ret.action = o.retval;
    ret.size = o.data_size_out;
    memcpy(ret.cb, after.cb, sizeof ret.cb);
    return ret;
}

/* Whether both say the same of a frame; '*ret_cause' (or NULL): of the drop, or 0. */
static bool agree(const struct frame *f, enum ebpf_cause *ret_cause)
{
    struct said a = run(SHORT, f), b = run(LONG, f);
    if (ret_cause) {
        *ret_cause = CAUSE(a.cb[EBPF_CB_VERDICT]);
    }
    return a.action == b.action && memcmp(a.cb, b.cb, sizeof a.cb) == 0 && a.size == b.size &&
           memcmp(a.bytes, b.bytes, a.size) == 0;
}

static enum ebpf_cause both(const struct frame *f)
{
    enum ebpf_cause cause;
    assert_true(agree(f, &cause));
    return cause;
}

/* ---- nodes ---- */

static void put_pod(const struct program *p, bool is_near, uint32_t ip, uint32_t link,
                    uint32_t vnid, bool is_wired)
{
    struct mac mac = mac_from_ip4(ip);
    uint32_t addr = htonl(ip), index = ip % EBPF_POD_CACHE_SIZE;
    struct ebpf_pod v = {
        .reach = {.ifindex = is_wired ? link : 0, .vnid = vnid}, .inlet = link, .addr = addr};
    memcpy(v.mac, mac.b, sizeof v.mac);
    ebpf_put(p->pods, &addr, &v);
    ebpf_put(p->ports, &link, &addr);
    if (is_near) {
        ebpf_put(p->pod_cache, &index, &v);
    }
}

static void put_service(const struct program *p)
{
    struct ebpf_service_key key = {.addr = htonl(SERVICE), .port = htons(80), .protocol = TCP};
    struct ebpf_service v = {.count = 1, .vnid = 7};
    struct ebpf_backend b = {.addr = htonl(B), .port = htons(8080)};
    struct ebpf_backend_key at = {.service = key};
    struct ebpf_serving_key serving = {.service = key, .backend = b};
    uint32_t one = 1;
    ebpf_put(p->services, &key, &v);
    ebpf_put(p->backends, &at, &b);
    ebpf_put(p->serving, &serving, &one);
}

static struct ebpf_settings settings(void)
{
    return encode_settings(&net, &devices, true);
}

static void put_settings(struct ebpf_settings s)
{
    uint32_t zero = 0;
    for (size_t i = 0; i < N_NODES; i++) {
        ebpf_put(nodes[i].settings, &zero, &s);
    }
}

static int remove_nodes(void **state)
{
    (void) state;
    for (size_t i = 0; i < N_NODES; i++) {
        program_done(&nodes[i]);
    }
    return 0;
}

static int make_nodes(void **state)
{
    (void) state;
    struct err e = {0};
    for (size_t i = 0; i < N_NODES; i++) {
        struct program *p = &nodes[i];
        size_t n;
        *p = (struct program){0};
        if (program_load(NULL, &features, true, p, &e) < 0) {
            print_message("%s\n", e.text);
            return -1;
        }
        CLEANUP_FREE struct table_row *routes = encode_routes(&net, NULL, &n);
        for (size_t k = 0; k < n; k++) {
            ebpf_put(p->routes, routes[k].key, routes[k].value);
        }
        put_pod(p, i == SHORT, A, PORT_A, 7, true);
        put_pod(p, i == SHORT, B, PORT_B, 7, true);
        put_pod(p, i == SHORT, FOREIGN, PORT_FOREIGN, 8, true);
        put_pod(p, i == SHORT, UNWIRED, PORT_UNWIRED, 7, false);
        put_service(p);
    }
    put_settings(settings());
    return 0;
}

/* ---- one frame ---- */

static void what_a_packet_may_be(void **state)
{
    (void) state;
    const struct {
        const char *what;
        size_t at;
        unsigned char is;
    } cases[] = {
        {"as it should be", AT_FLAGS, ACK},
        {"beginning", AT_FLAGS, SYN},
        {"answer to that", AT_FLAGS, SYN | ACK},
        {"no flag", AT_FLAGS, 0},
        {"another type", AT_TYPE, 0x86},
        {"VLAN tag", AT_TYPE, 0x81},
        {"another version", AT_IP, 0x65},
        {"options", AT_IP, 0x46},
        {"header too short", AT_IP, 0x44},
        {"longer than the frame", AT_IP + 2, 9},
        {"shorter than its headers", AT_IP + 3, 30},
        {"shorter than its IP header", AT_IP + 3, 10},
        {"more fragments", AT_FRAGMENT, 0x20},
        {"a later fragment", AT_FRAGMENT + 1, 9},
        {"do not fragment", AT_FRAGMENT, 0x40},
        {"UDP", AT_IP + 9, UDP},
        {"ICMP", AT_IP + 9, 1},
        {"SCTP", AT_IP + 9, 132},
        {"TCP header too short", AT_TCP_SIZE, 0x40},
        {"TCP header too long", AT_TCP_SIZE, 0xf0},
        {"TCP options", AT_TCP_SIZE, 0x80},
        {"from 0.0.2.2", AT_IP + 12, 0},
        {"to another node", AT_IP + 17, 0x81},
        {"to the outside", AT_IP + 16, 11},
        {"to many", AT_IP + 16, 0xea},
        {"from another Ethernet address", 6, 0x0c},
        {"to another Ethernet address", 0, 0x0c},
        {"to all", 0, 0xff},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct frame f = stream();
        f.bytes[cases[i].at] = cases[i].is;
        if (!agree(&f, NULL)) {
            fail_msg("%s", cases[i].what);
        }
    }
}

static void a_stream_passes(void **state)
{
    (void) state;
    struct frame f = stream();
    struct said s = run(SHORT, &f);
    assert_int_equal(s.cb[EBPF_CB_VERDICT], EBPF_DELIVER);
    assert_int_equal(s.cb[EBPF_CB_TARGET], PORT_B);
    assert_int_equal(both(&f), EBPF_NOT_DROPPED);
}

static void lengths_are_those_of_the_frame(void **state)
{
    (void) state;
    static const struct {
        unsigned length, segment;
        enum ebpf_cause cause;
    } cases[] = {
        {80, 0, EBPF_NOT_DROPPED},  {79, 0, EBPF_NOT_DROPPED}, {40, 0, EBPF_NOT_DROPPED},
        {81, 0, EBPF_NOT_IP},       {94, 0, EBPF_NOT_IP},      {95, 0, EBPF_NOT_IP},
        {95, 30, EBPF_NOT_DROPPED}, /* The kernel cuts it later. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct frame f = stream();
        put16(&f, AT_IP + 2, cases[i].length);
        f.segment = cases[i].segment;
        print_message("%u\n", cases[i].length);
        assert_int_equal(both(&f), cases[i].cause);
    }
}

static void whose_packet_it_is(void **state)
{
    (void) state;
    struct frame f = stream();
    f.port = PORT_B;
    assert_int_equal(both(&f), EBPF_SPOOFED_SOURCE);
    f.port = 9999;
    assert_int_equal(both(&f), EBPF_UNKNOWN_PORT);
    f = frame_of(UNWIRED, B, 4000, 80, ACK);
    assert_int_equal(both(&f), EBPF_SPOOFED_SOURCE);
    f = frame_of(FOREIGN, B, 4000, 80, ACK);
    f.port = PORT_A;
    assert_int_equal(both(&f), EBPF_SPOOFED_SOURCE);
    f = frame_of(A, UNWIRED, 4000, 80, ACK);
    assert_int_equal(both(&f), EBPF_NO_SUCH_POD);
    f = frame_of(A, A + 77, 4000, 80, ACK);
    assert_int_equal(both(&f), EBPF_NO_SUCH_POD);
    f = frame_of(A, FOREIGN, 4000, 80, ACK);
    assert_int_equal(both(&f), EBPF_VNID_MISMATCH);
    f = frame_of(A, A, 4000, 80, ACK);
    assert_int_equal(both(&f), EBPF_OWN_ADDRESS);
    /* Addresses with the same element of the cache. */
    f = frame_of(A, B, 4000, 80, ACK);
    put_address(&f, AT_IP + 12, A + EBPF_POD_CACHE_SIZE);
    assert_int_equal(both(&f), EBPF_SPOOFED_SOURCE);
    f = frame_of(A, B, 4000, 80, ACK);
    put_address(&f, AT_IP + 16, B + EBPF_POD_CACHE_SIZE);
    assert_int_equal(both(&f), EBPF_NO_SUCH_POD);
}

static void a_tunnel_is_no_stream(void **state)
{
    (void) state;
    struct frame f = frame_of(A, B, 4000, SDN_VXLAN_PORT, ACK);
    assert_int_equal(both(&f), EBPF_NOT_DROPPED);
    f.bytes[AT_IP + 9] = UDP;
    assert_int_equal(both(&f), EBPF_FORGED_TUNNEL);
}

static void what_the_header_says_of_sizes_is_true(void **state)
{
    (void) state;
    struct frame f = stream();
    put16(&f, AT_IP + 2, 2000);
    assert_int_equal(both(&f), EBPF_NOT_IP);
    f.segment = 30; /* The kernel's own, which cuts it. */
    assert_int_equal(both(&f), EBPF_NOT_DROPPED);
}

/* ---- what else is asked ---- */

static void where_policies_are_they_decide(void **state)
{
    (void) state;
    struct ebpf_settings s = settings();
    struct ebpf_generation g = {.closed = 1};
    uint32_t zero = 0;
    struct frame f = stream();
    for (size_t i = 0; i < N_NODES; i++) {
        ebpf_put(nodes[i].generation, &zero, &g);
    }
    assert_int_equal(both(&f), EBPF_NOT_DROPPED);
    s.has_policy = 1;
    put_settings(s);
    assert_int_equal(both(&f), EBPF_EGRESS_DENIED);
}

static void where_vnids_are_not_compared_all_pass(void **state)
{
    (void) state;
    struct ebpf_settings s = settings();
    struct frame f = frame_of(A, FOREIGN, 4000, 80, ACK);
    s.compare_vnids = 0;
    put_settings(s);
    assert_int_equal(both(&f), EBPF_NOT_DROPPED);
}

static int count_event(void *n, void *data, size_t size)
{
    (void) data;
    (void) size;
    ++*(size_t *) n;
    return 0;
}

static void who_watches_is_told(void **state)
{
    (void) state;
    struct ebpf_settings s = settings();
    struct frame f = stream();
    size_t n = 0;
    if (!features.ringbuf) {
        LEAVE_OUT("this kernel has no ring buffers for programs (Linux 5.8)");
    }
    struct ring_buffer *r = ring_buffer__new(nodes[SHORT].events, count_event, &n, NULL);
    assert_non_null(r);
    run(SHORT, &f);
    ring_buffer__consume(r);
    assert_int_equal(n, 0);
    s.watch = 1;
    put_settings(s);
    run(SHORT, &f);
    ring_buffer__consume(r);
    ring_buffer__free(r);
    assert_int_equal(n, 1);
}

/* ---- connections to services ---- */

static uint32_t source_of(const struct said *s)
{
    uint32_t src;
    memcpy(&src, s->bytes + AT_IP + 12, sizeof src);
    return ntohl(src);
}

/* Of what both let pass. */
static uint32_t source_that_arrives(const struct frame *f)
{
    struct said s = run(SHORT, f);
    assert_int_equal(both(f), EBPF_NOT_DROPPED);
    return source_of(&s);
}

/* A asks the service, from that port. */
static void ask(unsigned port)
{
    struct frame f = frame_of(A, SERVICE, port, 80, SYN);
    assert_int_equal(both(&f), EBPF_NOT_DROPPED);
}

static void answers_come_from_the_service(void **state)
{
    (void) state;
    struct frame answer = frame_of(B, A, 8080, 4000, ACK), other = frame_of(B, A, 8080, 4001, ACK);
    assert_int_equal(source_that_arrives(&answer), B);
    ask(4000);
    assert_int_equal(source_that_arrives(&answer), SERVICE);
    assert_int_equal(source_that_arrives(&other), B);
    answer.bytes[AT_FLAGS] = SYN | ACK;
    assert_int_equal(source_that_arrives(&answer), SERVICE);
}

static void so_do_those_with_options(void **state)
{
    (void) state;
    struct frame answer = frame_of(B, A, 8080, 4000, ACK);
    ask(4000);
    answer.bytes[AT_IP] = 0x46;
    memmove(answer.bytes + AT_PORTS + 4, answer.bytes + AT_PORTS, 56);
    memset(answer.bytes + AT_PORTS, 0, 4);
    put16(&answer, AT_PORTS, 0x101);
    /* Where a header without options has size and flags. */
    answer.bytes[AT_TCP_SIZE] = 0x50;
    answer.bytes[AT_FLAGS] = ACK;
    assert_int_equal(source_that_arrives(&answer), SERVICE);
}

static void so_do_all_parts_of_one(void **state)
{
    (void) state;
    struct frame first = frame_of(B, A, 8080, 4000, ACK), later = frame_of(B, A, 1, 2, ACK);
    ask(4000);
    first.bytes[AT_FRAGMENT] = 0x20;
    later.bytes[AT_FRAGMENT + 1] = 10;
    assert_int_equal(source_that_arrives(&first), SERVICE);
    assert_int_equal(source_that_arrives(&later), SERVICE);
}

/* The number of a packet comes again, and the parts of the new one go where that goes. */
static void parts_follow_the_last_packet_of_their_number(void **state)
{
    (void) state;
    struct frame answer = frame_of(B, A, 8080, 4000, ACK), other = frame_of(B, A, 8080, 4001, ACK),
                 later = frame_of(B, A, 1, 2, ACK);
    ask(4000);
    answer.bytes[AT_FRAGMENT] = other.bytes[AT_FRAGMENT] = 0x20;
    later.bytes[AT_FRAGMENT + 1] = 10;
    assert_int_equal(source_that_arrives(&answer), SERVICE);
    assert_int_equal(source_that_arrives(&other), B);
    assert_int_equal(source_that_arrives(&later), B);
}

static void who_asks_the_endpoint_itself_hears_from_that(void **state)
{
    (void) state;
    struct frame answer = frame_of(B, A, 8080, 4000, ACK), begin = frame_of(A, B, 4000, 8080, SYN);
    ask(4000);
    assert_int_equal(source_that_arrives(&answer), SERVICE);
    assert_int_equal(both(&begin), EBPF_NOT_DROPPED);
    assert_int_equal(source_that_arrives(&answer), B);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stream_passes, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(what_a_packet_may_be, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(whose_packet_it_is, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(a_tunnel_is_no_stream, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(what_the_header_says_of_sizes_is_true, make_nodes,
                                        remove_nodes),
        cmocka_unit_test_setup_teardown(where_policies_are_they_decide, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(where_vnids_are_not_compared_all_pass, make_nodes,
                                        remove_nodes),
        cmocka_unit_test_setup_teardown(who_watches_is_told, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(answers_come_from_the_service, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(so_do_those_with_options, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(so_do_all_parts_of_one, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(parts_follow_the_last_packet_of_their_number, make_nodes,
                                        remove_nodes),
        cmocka_unit_test_setup_teardown(lengths_are_those_of_the_frame, make_nodes, remove_nodes),
        cmocka_unit_test_setup_teardown(who_asks_the_endpoint_itself_hears_from_that, make_nodes,
                                        remove_nodes),
    };
    return EBPF_TESTS(&features, tests, NULL, NULL);
}
