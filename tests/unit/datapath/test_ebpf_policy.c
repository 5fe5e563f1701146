/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy in the programs and their maps, one matter at a time: what becomes of the
 * packets of a connection, how a change comes into force, and what happens where something does
 * not fit.  Frames run through the programs by BPF_PROG_TEST_RUN; that the verdicts are right for
 * all kinds of policies is in test_ebpf_model.c.
 *
 * Two pods, whose policies are written by hand: B takes TCP and UDP 80 and may send
 * nothing by itself; A is free. */
#include "base/mem.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/policy.h"
#include "datapath/ebpf/program.h"
#include "ebpf_fixture.h"
#include "tracked_frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define A 0x0a800202u
#define B 0x0a800204u
#define OTHER 0x0a800206u /* Nobody's. */
#define SERVICE 0xac1e0001u
#define OUTSIDE 0x08080808u
#define ROUTER 0x09090909u
enum { PORT_A = 1011, PORT_B = 1012, ICMP = 1, TCP = 6, UDP = 17 };
enum { SYN = 2, RST = 4, ACK = 16, FIN = 1 };
enum { IN_B = 70, OUT_B = 71, TO_80 = 90, PEER_A = 50, BLOCK_A = 60 };

static const struct sdn_network net = {.plugin = SDN_NETWORKPOLICY,
                                       .cluster = {{0x0a800000, 14}},
                                       .n_cluster = 1,
                                       .service = {0xac1e0000, 16},
                                       .local = {0x0a800200, 23},
                                       .host_ip = 0xc0a86401,
                                       .vxlan_port = SDN_VXLAN_PORT,
                                       .mtu = 1450};
static const struct devices devices = {.tun = 2001, .host = 2002, .vxlan = 2003};
static struct program program;
static struct policy_maps maps;

/* ---- frames ---- */

struct frame {
    unsigned char bytes[200];
    size_t size;
};

static void put16(struct frame *f, size_t at, unsigned v)
{
    f->bytes[at] = (unsigned char) (v >> 8);
    f->bytes[at + 1] = (unsigned char) v;
}

static void put_ip(struct frame *f, size_t at, uint32_t src, uint32_t dst, uint8_t proto)
{
    uint32_t ends[2] = {htonl(src), htonl(dst)};
    f->bytes[at] = 0x45;
    put16(f, at + 2, 60);
    f->bytes[at + 8] = 64;
    f->bytes[at + 9] = proto;
    memcpy(f->bytes + at + 12, ends, sizeof ends);
}

static struct frame frame_of(uint32_t src, uint32_t dst, uint8_t proto, unsigned src_port,
                             unsigned dst_port, unsigned flags)
{
    struct frame f = {.size = 14 + 20 + 60};
    struct mac to = mac_from_ip4(dst), from = mac_from_ip4(src);
    memcpy(f.bytes, to.b, 6);
    memcpy(f.bytes + 6, from.b, 6);
    put16(&f, 12, 0x0800);
    put_ip(&f, 14, src, dst, proto);
    put16(&f, 34, src_port);
    put16(&f, 36, dst_port);
    f.bytes[46] = 0x50; /* Five words, of TCP. */
    f.bytes[47] = (unsigned char) flags;
    return f;
}

/* MODEL_NOT_DROPPED: it passes. */
static enum model_cause judge(const struct frame *f)
{
    struct __sk_buff in = {0}, after = {0};
    unsigned char left[256];
    uint32_t src;
    memcpy(&src, f->bytes + 26, sizeof src);
    in.cb[EBPF_CB_PORT] = ntohl(src) == A ? PORT_A : PORT_B;
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->bytes, .data_size_in = (uint32_t) f->size,
                .data_out = left, .data_size_out = sizeof left, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = &after, .ctx_size_out = sizeof after);
    assert_int_equal(bpf_prog_test_run_opts(program.from_pod, &o), 0);
    return encode_cause(after.cb[EBPF_CB_VERDICT] >> 16);
}

static enum model_cause tcp(uint32_t src, uint32_t dst, unsigned src_port, unsigned dst_port,
                            unsigned flags)
{
    struct frame f = frame_of(src, dst, TCP, src_port, dst_port, flags);
    return judge(&f);
}

static enum model_cause udp(uint32_t src, uint32_t dst, unsigned src_port, unsigned dst_port)
{
    struct frame f = frame_of(src, dst, UDP, src_port, dst_port, 0);
    return judge(&f);
}

/* An error by 'src' about what 'from' sent to 'to'. */
static enum model_cause error_about(uint32_t src, uint32_t dst, uint32_t from, uint32_t to,
                                    uint8_t proto, unsigned from_port, unsigned to_port)
{
    struct frame f = frame_of(src, dst, ICMP, 0x0303, 0, 0);
    memset(f.bytes + 38, 0, f.size - 38);
    put_ip(&f, 42, from, to, proto);
    put16(&f, 62, from_port);
    put16(&f, 64, to_port);
    return judge(&f);
}

/* ---- policies ---- */

static void tell_ports(struct policy_maps *m, uint32_t id, unsigned port, bool there)
{
    struct policy_port_verdict rows[] = {
        {.proto = TCP, .len = 16, .port = (uint16_t) port, .verdict = {.allowed = true}},
        {.proto = UDP, .len = 16, .port = (uint16_t) port, .verdict = {.allowed = true}}};
    policy_maps_ops.set_ports(m, id, rows, ARRAY_SIZE(rows), there);
}

static void tell_anybody(struct policy_maps *m, enum policy_direction d, uint32_t subject,
                         uint32_t ports)
{
    struct policy_pair_key k = {.subject = subject, .dir = (uint8_t) d, .kind = POLICY_ANYBODY};
    struct policy_pair v = {.ports = ports, .isolated = true};
    policy_maps_ops.set_pair(m, &k, &v);
}

static void tell_all(struct policy_maps *m)
{
    struct policy_classes c = {.subject = {OUT_B, IN_B}};
    policy_maps_ops.set_address(m, B, &c);
    tell_ports(m, TO_80, 80, true);
    tell_anybody(m, POLICY_INGRESS, IN_B, TO_80);
    tell_anybody(m, POLICY_EGRESS, OUT_B, 0);
}

static void commit(struct policy_maps *m)
{
    struct err e = {0};
    policy_maps_ops.done(m);
    if (policy_maps_commit(m, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

/* Nothing is allowed to reach B, or what was again. */
static void allow(bool allowed)
{
    tell_anybody(&maps, POLICY_INGRESS, IN_B, allowed ? TO_80 : 0);
    commit(&maps);
}

static struct ebpf_tracked *find_connection(struct frame f, struct ebpf_tracked *ret)
{
    struct ebpf_tracked_key key;
    unsigned from;
    assert_true(tracked_key_of(f.bytes, f.size, &key, &from));
    return bpf_map_lookup_elem(program.tracked, &key, ret) == 0 ? ret : NULL;
}

static void change_connection(struct frame f, const struct ebpf_tracked *t)
{
    struct ebpf_tracked_key key;
    unsigned from;
    assert_true(tracked_key_of(f.bytes, f.size, &key, &from));
    assert_int_equal(bpf_map_update_elem(program.tracked, &key, t, BPF_EXIST), 0);
}

static uint64_t generation(void)
{
    struct ebpf_generation g;
    uint32_t zero = 0;
    assert_int_equal(bpf_map_lookup_elem(program.generation, &zero, &g), 0);
    return g.current;
}

static int set_up(void **state)
{
    (void) state;
    struct err e = {0};
    struct program_features f = {.redirect_peer = true};
    if (program_load(NULL, &f, true, &program, &e) < 0) {
        fail_msg("%s", e.text);
    }
    const uint32_t pods[][2] = {{A, PORT_A}, {B, PORT_B}};
    for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
        struct table_row pod, port;
        struct encode_pod p = {
            .ip = pods[i][0], .mac = mac_from_ip4(pods[i][0]), .ifindex = (int) pods[i][1]};
        assert_true(encode_pod(&net, &p, &pod, &port));
        ebpf_put(program.pods, pod.key, pod.value);
        ebpf_put(program.ports, port.key, port.value);
    }
    size_t n;
    CLEANUP_FREE struct table_row *routes = encode_routes(&net, NULL, &n);
    for (size_t i = 0; i < n; i++) {
        ebpf_put(program.routes, routes[i].key, routes[i].value);
    }
    struct ebpf_settings s = encode_settings(&net, &devices, true);
    uint32_t zero = 0;
    ebpf_put(program.settings, &zero, &s);
    policy_maps_init(&maps, NULL, NULL);
    assert_int_equal(policy_maps_load(&maps, &program, &e), 0);
    tell_all(&maps);
    commit(&maps);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    policy_maps_done(&maps);
    program_done(&program);
    return 0;
}

/* ---- connections ---- */

static void answers_pass_though_nothing_else_may(void **state)
{
    (void) state;
    assert_int_equal(tcp(B, A, 80, 4000, SYN | ACK), MODEL_EGRESS_DENIED);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, SYN | ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(A, B, 4000, 80, ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(A, B, 4000, 81, SYN), MODEL_INGRESS_DENIED);
    assert_int_equal(tcp(B, A, 81, 4000, SYN | ACK), MODEL_EGRESS_DENIED);
    assert_int_equal(tcp(B, A, 80, 4001, ACK), MODEL_EGRESS_DENIED);
    assert_int_equal(udp(B, A, 80, 4000), MODEL_EGRESS_DENIED);
}

static void what_begins_no_connection_lets_no_answer_pass(void **state)
{
    (void) state;
    static const unsigned flags[] = {FIN | ACK, RST, SYN | ACK};
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        assert_int_equal(tcp(A, B, 4000, 80, flags[i]), MODEL_NOT_DROPPED);
        assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_EGRESS_DENIED);
    }
    /* One that is older than what is known does. */
    assert_int_equal(tcp(A, B, 4000, 80, ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_NOT_DROPPED);
}

static void a_denied_connection_is_dead_both_ways_until_it_is_allowed(void **state)
{
    (void) state;
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, SYN | ACK), MODEL_NOT_DROPPED);
    allow(false);
    /* Until the other side next sends something, as docs/policy.md says. */
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(A, B, 4000, 80, ACK), MODEL_INGRESS_DENIED);
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_CONNECTION_DENIED);
    allow(true);
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_CONNECTION_DENIED);
    assert_int_equal(tcp(A, B, 4000, 80, ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_NOT_DROPPED);
}

static void a_connection_is_judged_once_a_generation(void **state)
{
    (void) state;
    struct frame f = frame_of(A, B, TCP, 4000, 80, ACK);
    struct ebpf_tracked t;
    assert_int_equal(judge(&f), MODEL_NOT_DROPPED);
    assert_non_null(find_connection(f, &t));
    assert_int_equal(t.generation, generation());
    /* Nothing is asked but that: rows that are taken away by force are not missed. */
    struct ebpf_pair_key key = {.subject = IN_B, .dir = EBPF_INGRESS, .kind = EBPF_ANYBODY};
    assert_int_equal(bpf_map_delete_elem(program.pairs, &key), 0);
    assert_int_equal(judge(&f), MODEL_NOT_DROPPED);
    t.generation--;
    change_connection(f, &t);
    assert_int_equal(judge(&f), MODEL_INGRESS_DENIED);
}

static void of_a_connection_that_is_over_nothing_is_left(void **state)
{
    (void) state;
    struct frame f = frame_of(A, B, UDP, 4000, 80, 0);
    struct timespec now;
    struct ebpf_tracked t;
    clock_gettime(CLOCK_MONOTONIC, &now);
    assert_int_equal(judge(&f), MODEL_NOT_DROPPED);
    assert_int_equal(udp(B, A, 80, 4000), MODEL_NOT_DROPPED);
    assert_non_null(find_connection(f, &t));
    t.seen_s = (uint32_t) now.tv_sec - EBPF_TRACKED_OTHER_S - 1;
    change_connection(f, &t);
    assert_int_equal(udp(B, A, 80, 4000), MODEL_EGRESS_DENIED);
    assert_int_equal(judge(&f), MODEL_NOT_DROPPED);
    assert_int_equal(udp(B, A, 80, 4000), MODEL_NOT_DROPPED);
}

/* One that is not answered is forgotten sooner. */
static void the_other_end_alone_can_answer_a_connection(void **state)
{
    (void) state;
    struct frame f = frame_of(A, B, UDP, 4000, 80, 0);
    struct ebpf_tracked t;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(judge(&f), MODEL_NOT_DROPPED);
        assert_non_null(find_connection(f, &t));
        assert_int_equal(t.answered, 0);
    }
    assert_int_equal(udp(B, A, 80, 4000), MODEL_NOT_DROPPED);
    assert_non_null(find_connection(f, &t));
    assert_int_equal(t.answered, 1);
}

static void who_begins_anew_after_the_end_is_judged(void **state)
{
    (void) state;
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, SYN), MODEL_NOT_DROPPED); /* An odd answer. */
    assert_int_equal(tcp(B, A, 80, 4000, FIN | ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, SYN), MODEL_EGRESS_DENIED);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, ACK), MODEL_NOT_DROPPED);
}

static void errors_pass_that_are_about_what_the_pod_received(void **state)
{
    (void) state;
    assert_int_equal(error_about(B, A, A, B, UDP, 4000, 80), MODEL_FORGED_ERROR);
    assert_int_equal(udp(A, B, 4000, 80), MODEL_NOT_DROPPED);
    assert_int_equal(error_about(B, A, A, B, UDP, 4000, 80), MODEL_NOT_DROPPED);
    assert_int_equal(error_about(A, B, B, A, UDP, 80, 4000), MODEL_NOT_DROPPED);
    assert_int_equal(error_about(B, A, A, B, UDP, 4000, 81), MODEL_FORGED_ERROR);
    assert_int_equal(error_about(B, A, A, B, TCP, 4000, 80), MODEL_FORGED_ERROR);
    /* To who did not send what it is about. */
    assert_int_equal(error_about(B, A, B, A, UDP, 80, 4000), MODEL_FORGED_ERROR);
    allow(false);
    assert_int_equal(udp(A, B, 4000, 80), MODEL_INGRESS_DENIED);
    assert_int_equal(error_about(B, A, A, B, UDP, 4000, 80), MODEL_CONNECTION_DENIED);
}

/* A pod that no policy limits has no say about connections of others, known here or not. */
static void errors_about_connections_of_others_are_dropped(void **state)
{
    (void) state;
    assert_int_equal(udp(B, OUTSIDE, 80, 53), MODEL_EGRESS_DENIED);
    assert_int_equal(error_about(A, B, B, OUTSIDE, UDP, 80, 53), MODEL_FORGED_ERROR);
    struct frame known = frame_of(B, OUTSIDE, UDP, 80, 53, 0);
    assert_true(tracked_put(&program, known.bytes, known.size, MODEL_ORIGINAL, false));
    assert_int_equal(error_about(A, B, B, OUTSIDE, UDP, 80, 53), MODEL_FORGED_ERROR);
    assert_true(tracked_put(&program, known.bytes, known.size, MODEL_REPLY, false));
    assert_int_equal(error_about(A, B, B, OUTSIDE, UDP, 80, 53), MODEL_FORGED_ERROR);
}

/* Of every type that quotes a packet, whole or its first fragment; what has no place
 * for a type is no error. */
static void every_kind_of_error_is_one(void **state)
{
    (void) state;
    for (unsigned type = 0; type < 256; type++) {
        bool error = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
        struct frame f = frame_of(A, B, ICMP, type << 8, 0, 0);
        enum model_cause otherwise = MODEL_INGRESS_DENIED;
        assert_int_equal(judge(&f), error ? MODEL_FORGED_ERROR : otherwise);
        put16(&f, 20, 0x2000);
        assert_int_equal(judge(&f), error ? MODEL_FORGED_ERROR : otherwise);
        put16(&f, 16, 20 + 7);
        assert_int_equal(judge(&f), otherwise);
        tracked_clear(&program);
    }
}

static bool host_delivers(uint32_t src, uint32_t dst, uint32_t from, uint32_t to)
{
    struct frame f = frame_of(src, dst, ICMP, 0x0304, 0, 0);
    struct mac gateway = mac_from_ip4(sdn_gateway(&net));
    memcpy(f.bytes + 6, gateway.b, 6);
    memset(f.bytes + 38, 0, f.size - 38);
    put_ip(&f, 42, from, to, UDP);
    put16(&f, 62, 80);
    put16(&f, 64, 53);
    struct __sk_buff in = {0}, after = {0};
    unsigned char left[256];
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f.bytes, .data_size_in = (uint32_t) f.size,
                .data_out = left, .data_size_out = sizeof left, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = &after, .ctx_size_out = sizeof after);
    assert_int_equal(bpf_prog_test_run_opts(program.from_host, &o), 0);
    return (after.cb[EBPF_CB_VERDICT] & 0xffff) == EBPF_DELIVER;
}

/* A router outside says that a packet was too large: whose the packet was is all that counts. */
static void routers_speak_about_packets_of_others(void **state)
{
    (void) state;
    struct frame known = frame_of(B, OUTSIDE, UDP, 80, 53, 0);
    assert_false(host_delivers(ROUTER, B, B, OUTSIDE));
    assert_true(tracked_put(&program, known.bytes, known.size, MODEL_ORIGINAL, false));
    assert_true(host_delivers(ROUTER, B, B, OUTSIDE));
}

static void an_echo_is_answered_and_not_asked_back(void **state)
{
    (void) state;
    struct policy_port_verdict any = {.verdict = {.allowed = true}};
    policy_maps_ops.set_ports(&maps, 91, &any, 1, true);
    tell_anybody(&maps, POLICY_INGRESS, IN_B, 91);
    commit(&maps);
    struct frame ask = frame_of(A, B, ICMP, 0x0800, 0, 0), back = frame_of(B, A, ICMP, 0, 0, 0);
    struct frame own = frame_of(B, A, ICMP, 0x0800, 0, 0);
    put16(&ask, 38, 77);
    put16(&back, 38, 77);
    put16(&own, 38, 78);
    assert_int_equal(judge(&back), MODEL_EGRESS_DENIED);
    assert_int_equal(judge(&ask), MODEL_NOT_DROPPED);
    assert_int_equal(judge(&back), MODEL_NOT_DROPPED);
    assert_int_equal(judge(&own), MODEL_EGRESS_DENIED);
}

static void later_fragments_follow_the_first(void **state)
{
    (void) state;
    struct frame first = frame_of(A, B, UDP, 4000, 80, 0), later = frame_of(A, B, UDP, 0, 0, 0);
    struct frame back = frame_of(B, A, UDP, 80, 4000, 0), back_later = frame_of(B, A, UDP, 0, 0, 0);
    put16(&first, 18, 7);
    put16(&later, 18, 7);
    put16(&back, 18, 8);
    put16(&back_later, 18, 8);
    put16(&first, 20, 0x2000);
    put16(&later, 20, 10);
    put16(&back, 20, 0x2000);
    put16(&back_later, 20, 10);
    assert_int_equal(judge(&later), MODEL_INGRESS_DENIED); /* Of which port, nobody knows. */
    assert_int_equal(judge(&first), MODEL_NOT_DROPPED);
    assert_int_equal(judge(&later), MODEL_NOT_DROPPED);
    assert_int_equal(judge(&back_later), MODEL_EGRESS_DENIED);
    assert_int_equal(judge(&back), MODEL_NOT_DROPPED);
    assert_int_equal(judge(&back_later), MODEL_NOT_DROPPED);
    put16(&later, 18, 9);
    assert_int_equal(judge(&later), MODEL_INGRESS_DENIED);
}

/* ---- shares ---- */

static void set_share(uint32_t owner, uint64_t n)
{
    ebpf_put(program.shares, &owner, &n);
}

static uint64_t get_share(uint32_t owner)
{
    uint64_t n = 0;
    assert_int_equal(bpf_map_lookup_elem(program.shares, &owner, &n), 0);
    return n;
}

static void a_pod_leaves_room_for_the_connections_of_others(void **state)
{
    (void) state;
    const uint32_t all = EBPF_SHARES_MAX - 1;
    set_share(A & 0xffff, EBPF_TRACKED_MAX / 2);
    set_share(all, EBPF_TRACKED_MAX / 2);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, SYN | ACK), MODEL_EGRESS_DENIED); /* It is not tracked. */
    set_share(A & 0xffff, EBPF_TRACKED_MAX / 2 - 1);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(tcp(B, A, 80, 4000, SYN | ACK), MODEL_NOT_DROPPED);
    assert_int_equal(get_share(A & 0xffff), EBPF_TRACKED_MAX / 2);
    assert_int_equal(get_share(all), EBPF_TRACKED_MAX / 2 + 1);
    /* Others have room. */
    set_share(B & 0xffff, 0);
    policy_maps_ops.set_address(&maps, B, NULL);
    commit(&maps);
    assert_int_equal(tcp(B, A, 5000, 80, SYN), MODEL_NOT_DROPPED);
    assert_int_equal(get_share(B & 0xffff), 1);
}

static size_t sweep(bool has_b, bool recount)
{
    const uint32_t pods[] = {B, A};
    struct policy_sweep s = {.local = net.local,
                             .gateway = sdn_gateway(&net),
                             .pods = xmemdup(pods + !has_b, (1u + has_b) * sizeof *pods),
                             .n_pods = 1u + has_b,
                             .recount = recount};
    return policy_maps_sweep(&maps, &s);
}

static void the_sweep_takes_what_is_over_or_of_nobody(void **state)
{
    (void) state;
    const uint32_t all = EBPF_SHARES_MAX - 1;
    struct frame f = frame_of(A, B, UDP, 4000, 80, 0), g = frame_of(A, B, UDP, 4001, 80, 0);
    struct ebpf_tracked t;
    assert_int_equal(judge(&f), MODEL_NOT_DROPPED);
    assert_int_equal(judge(&g), MODEL_NOT_DROPPED);
    assert_int_equal(sweep(true, false), 2);
    assert_int_equal(get_share(A & 0xffff), 2);
    assert_non_null(find_connection(f, &t));
    t.seen_s -= EBPF_TRACKED_UNANSWERED_S + 2;
    change_connection(f, &t);
    assert_int_equal(sweep(true, false), 1);
    assert_null(find_connection(f, &t));
    assert_non_null(find_connection(g, &t));
    assert_int_equal(get_share(A & 0xffff), 1);
    assert_int_equal(get_share(all), 1);
    set_share(all, 1000); /* What an agent left that ended on the way. */
    assert_int_equal(sweep(true, true), 1);
    assert_int_equal(get_share(all), 1);
    assert_int_equal(sweep(false, false), 0);
    assert_int_equal(get_share(all), 0);
}

/* ---- changes ---- */

static void a_change_is_not_seen_before_it_is_whole(void **state)
{
    (void) state;
    struct ebpf_pair_key key = {.subject = IN_B, .dir = EBPF_INGRESS, .kind = EBPF_ANYBODY};
    struct ebpf_pair_row row;
    assert_int_equal(bpf_map_lookup_elem(program.pairs, &key, &row), 0);
    assert_int_equal(row.now.ports, TO_80);
    /* Half of a change, as an agent leaves it that is killed. */
    row.before = row.now;
    row.now.ports = 0;
    row.since = generation() + 1;
    ebpf_put(program.pairs, &key, &row);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    /* The next one does not bring it into force either. */
    struct policy_maps after;
    struct err e = {0};
    policy_maps_init(&after, NULL, NULL);
    assert_int_equal(policy_maps_load(&after, &program, &e), 0);
    tell_all(&after);
    commit(&after);
    assert_int_equal(after.applied, 1);
    assert_int_equal(tcp(A, B, 4001, 80, SYN), MODEL_NOT_DROPPED);
    policy_maps_done(&after);
}

static void what_is_half_told_waits(void **state)
{
    (void) state;
    struct err e = {0};
    policy_maps_ops.set_address(&maps, B, NULL);
    assert_false(policy_maps_due(&maps));
    assert_int_equal(policy_maps_commit(&maps, &e), 0);
    assert_int_equal(tcp(B, A, 5000, 22, SYN), MODEL_EGRESS_DENIED);
    commit(&maps);
    assert_int_equal(tcp(B, A, 5000, 22, SYN), MODEL_NOT_DROPPED);
}

static void connections_of_another_time_are_forgotten(void **state)
{
    (void) state;
    struct ebpf_tracked t;
    for (unsigned i = 0; i < 5000; i++) {
        assert_int_equal(udp(A, B, 2000 + i, 80), MODEL_NOT_DROPPED);
    }
    assert_int_equal(get_share(A & 0xffff), 5000);
    policy_maps_forget_connections(&maps);
    assert_int_equal(get_share(A & 0xffff), 0);
    for (unsigned i = 0; i < 5000; i++) {
        assert_null(find_connection(frame_of(A, B, UDP, 2000 + i, 80, 0), &t));
    }
}

static void an_agent_writes_nothing_that_is_there(void **state)
{
    (void) state;
    struct policy_maps after;
    struct err e = {0};
    uint64_t before = generation();
    policy_maps_init(&after, NULL, NULL);
    assert_int_equal(policy_maps_load(&after, &program, &e), 0);
    tell_all(&after);
    commit(&after);
    assert_int_equal(after.applied, 0);
    assert_int_equal(generation(), before);
    policy_maps_done(&after);
}

static void an_agent_takes_away_what_nobody_wants_any_more(void **state)
{
    (void) state;
    struct policy_maps after;
    struct err e = {0};
    policy_maps_ops.set_block(&maps, POLICY_INGRESS, (struct ip4_prefix){A, 32}, BLOCK_A, true);
    commit(&maps);
    policy_maps_init(&after, NULL, NULL);
    assert_int_equal(policy_maps_load(&after, &program, &e), 0);
    commit(&after);
    const int fds[] = {program.classes, program.blocks, program.pairs, program.port_sets};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        unsigned char key[16];
        assert_int_equal(bpf_map_get_next_key(fds[i], NULL, key), -ENOENT);
    }
    assert_int_equal(tcp(B, A, 5000, 22, SYN), MODEL_NOT_DROPPED);
    policy_maps_done(&after);
}

static void a_block_that_goes_leaves_its_place_to_the_one_around(void **state)
{
    (void) state;
    struct policy_pair allowed = {.ports = TO_80};
    static const struct ip4_prefix wide = {0x0a800200, 24}, narrow = {A, 32};
    tell_anybody(&maps, POLICY_INGRESS, IN_B, 0);
    policy_maps_ops.set_block(&maps, POLICY_INGRESS, wide, BLOCK_A, true);
    policy_maps_ops.set_block(&maps, POLICY_INGRESS, narrow, BLOCK_A + 1, true);
    struct policy_pair_key k = {
        .subject = IN_B, .peer = BLOCK_A, .dir = POLICY_INGRESS, .kind = POLICY_BLOCK};
    policy_maps_ops.set_pair(&maps, &k, &allowed);
    commit(&maps);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_INGRESS_DENIED);
    policy_maps_ops.set_block(&maps, POLICY_INGRESS, narrow, BLOCK_A, false);
    commit(&maps);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    policy_maps_ops.set_block(&maps, POLICY_INGRESS, wide, 0, false);
    commit(&maps);
    assert_int_equal(tcp(A, B, 4000, 80, ACK), MODEL_INGRESS_DENIED);
}

static void a_subject_of_which_a_row_is_missing_is_cut_off(void **state)
{
    (void) state;
    struct ebpf_pair_key key = {.subject = IN_B, .dir = EBPF_INGRESS, .kind = EBPF_ANYBODY};
    assert_int_equal(bpf_map_delete_elem(program.pairs, &key), 0);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_INGRESS_DENIED);
    struct policy_classes unknown = {.unknown = true};
    policy_maps_ops.set_address(&maps, A, &unknown);
    commit(&maps);
    assert_int_equal(tcp(A, OTHER, 4000, 80, SYN), MODEL_EGRESS_DENIED);
}

static void what_does_not_fit_cuts_its_subject_off_until_it_does(void **state)
{
    (void) state;
    struct program small = program;
    struct policy_maps m;
    struct err e = {0};
    LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_NO_PREALLOC);
    small.pairs = bpf_map_create(BPF_MAP_TYPE_HASH, "tenet_test", sizeof(struct ebpf_pair_key),
                                 sizeof(struct ebpf_pair_row), 3, &o);
    assert_true(small.pairs >= 0);
    policy_maps_init(&m, NULL, NULL);
    assert_int_equal(policy_maps_load(&m, &small, &e), 0);
    tell_all(&m);
    commit(&m);
    struct policy_pair v = {.ports = TO_80};
    struct policy_pair_key k = {
        .subject = IN_B, .peer = PEER_A, .dir = POLICY_INGRESS, .kind = POLICY_POD};
    policy_maps_ops.set_pair(&m, &k, &v);
    k.peer++;
    policy_maps_ops.set_pair(&m, &k, &v);
    policy_maps_ops.done(&m);
    assert_int_equal(policy_maps_commit(&m, &e), -ENOSPC);
    assert_non_null(strstr(e.text, "1 rows of network policy do not fit into the maps (pairs)"));
    assert_int_equal(m.n_refused, 1);
    struct ebpf_pair_key in = {.subject = IN_B, .dir = EBPF_INGRESS, .kind = EBPF_ANYBODY};
    struct ebpf_pair_key out = {.subject = OUT_B, .dir = EBPF_EGRESS, .kind = EBPF_ANYBODY};
    struct ebpf_pair_row row;
    assert_int_equal(bpf_map_lookup_elem(small.pairs, &in, &row), 0);
    assert_int_equal(row.now.flags, EBPF_PAIR_ISOLATED | EBPF_PAIR_CUT_OFF);
    assert_int_equal(bpf_map_lookup_elem(small.pairs, &out, &row), 0);
    assert_int_equal(row.now.flags, EBPF_PAIR_ISOLATED);
    /* There is room again. */
    k.peer--;
    policy_maps_ops.set_pair(&m, &k, NULL);
    commit(&m);
    assert_int_equal(m.n_refused, 0);
    assert_int_equal(bpf_map_lookup_elem(small.pairs, &in, &row), 0);
    assert_int_equal(row.now.flags, EBPF_PAIR_ISOLATED);
    assert_int_equal(row.since, generation());
    policy_maps_done(&m);
    close(small.pairs);
}

static void a_peer_that_does_not_fit_cuts_off_whom_it_matters_to(void **state)
{
    (void) state;
    struct program small = program;
    struct policy_maps m;
    struct err e = {0};
    LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_NO_PREALLOC);
    small.classes = bpf_map_create(BPF_MAP_TYPE_HASH, "tenet_test", sizeof(__be32),
                                   sizeof(struct ebpf_classes_row), 1, &o);
    assert_true(small.classes >= 0);
    policy_maps_init(&m, NULL, NULL);
    assert_int_equal(policy_maps_load(&m, &small, &e), 0);
    tell_all(&m);
    struct policy_pair v = {.ports = TO_80};
    struct policy_pair_key k = {
        .subject = IN_B, .peer = PEER_A, .dir = POLICY_INGRESS, .kind = POLICY_POD};
    policy_maps_ops.set_pair(&m, &k, &v);
    commit(&m);
    struct policy_classes peer = {.peer = {0, PEER_A}};
    policy_maps_ops.set_address(&m, A, &peer);
    policy_maps_ops.done(&m);
    assert_int_equal(policy_maps_commit(&m, &e), -ENOSPC);
    assert_non_null(strstr(e.text, "(addresses)"));
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_INGRESS_DENIED);
    policy_maps_ops.set_address(&m, A, NULL);
    commit(&m);
    assert_int_equal(tcp(A, B, 4000, 80, SYN), MODEL_NOT_DROPPED);
    /* A pod of this node that has no row would have no policy: everything is denied. */
    struct policy_classes subject = {.subject = {OUT_B, IN_B}};
    policy_maps_ops.set_address(&m, A, &subject);
    policy_maps_ops.done(&m);
    assert_int_equal(policy_maps_commit(&m, &e), -ENOSPC);
    assert_int_equal(tcp(A, OTHER, 4001, 80, SYN), MODEL_EGRESS_DENIED);
    policy_maps_ops.set_address(&m, A, NULL);
    commit(&m);
    assert_int_equal(tcp(A, B, 4002, 80, SYN), MODEL_NOT_DROPPED);
    policy_maps_done(&m);
    close(small.classes);
}

/* A service whose endpoint is the service: what is remembered of its packets' ends is of both. */
static void later_parts_to_a_service_of_itself_fare_as_the_first(void **state)
{
    (void) state;
    struct ebpf_service_key key = {.addr = htonl(SERVICE), .port = htons(80), .protocol = TCP};
    struct ebpf_service v = {.count = 1};
    struct ebpf_backend b = {.addr = htonl(SERVICE), .port = htons(81)};
    struct ebpf_backend_key at = {.service = key};
    ebpf_put(program.services, &key, &v);
    ebpf_put(program.backends, &at, &b);
    struct frame first = frame_of(B, SERVICE, TCP, 4000, 80, SYN), later = first;
    put16(&first, 20, 0x2000);
    put16(&later, 20, 5);
    assert_int_equal(judge(&first), MODEL_EGRESS_DENIED);
    assert_int_equal(judge(&later), MODEL_EGRESS_DENIED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static struct program_features features;

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_pass_though_nothing_else_may),
        TEST(what_begins_no_connection_lets_no_answer_pass),
        TEST(a_denied_connection_is_dead_both_ways_until_it_is_allowed),
        TEST(a_connection_is_judged_once_a_generation),
        TEST(of_a_connection_that_is_over_nothing_is_left),
        TEST(the_other_end_alone_can_answer_a_connection),
        TEST(who_begins_anew_after_the_end_is_judged),
        TEST(errors_pass_that_are_about_what_the_pod_received),
        TEST(errors_about_connections_of_others_are_dropped),
        TEST(every_kind_of_error_is_one),
        TEST(routers_speak_about_packets_of_others),
        TEST(an_echo_is_answered_and_not_asked_back),
        TEST(later_fragments_follow_the_first),
        TEST(later_parts_to_a_service_of_itself_fare_as_the_first),
        TEST(a_pod_leaves_room_for_the_connections_of_others),
        TEST(the_sweep_takes_what_is_over_or_of_nobody),
        TEST(a_change_is_not_seen_before_it_is_whole),
        TEST(what_is_half_told_waits),
        TEST(connections_of_another_time_are_forgotten),
        TEST(an_agent_writes_nothing_that_is_there),
        TEST(an_agent_takes_away_what_nobody_wants_any_more),
        TEST(a_block_that_goes_leaves_its_place_to_the_one_around),
        TEST(a_subject_of_which_a_row_is_missing_is_cut_off),
        TEST(what_does_not_fit_cuts_its_subject_off_until_it_does),
        TEST(a_peer_that_does_not_fit_cuts_off_whom_it_matters_to),
    };
    return EBPF_TESTS(&features, tests, NULL, NULL);
}
