/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of pods to idle services: the programs hand them over as they came, and let those with
 * the mark go on by the link of their pod.  In a network namespace of its own. */
#include "base/mem.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/program.h"
#include "datapath/ebpf/upcall.h"
#include "ebpf_fixture.h"
#include "net/kernel/rtnl.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "leave_out.h"

#define POD 0x0a800202u
#define SERVICE 0xac1e0007u
enum { LINK = 11, INLET = 12, SIZE = 14 + 20 + 20 };

static const struct sdn_network network = {.plugin = SDN_SUBNET,
                                           .cluster = {{0x0a800000, 14}},
                                           .n_cluster = 1,
                                           .service = {0xac1e0000, 16},
                                           .local = {0x0a800200, 23},
                                           .host_ip = 0xc0a86401,
                                           .vxlan_port = SDN_VXLAN_PORT,
                                           .mtu = 1450};
static struct devices devices = {.tun = 2001, .host = 2002, .vxlan = 2003};
static struct program program;
static struct loop *loop;

/* ---- a node and a frame ---- */

static void load_as(const struct program_features *f, bool under_test, uint32_t inlet)
{
    struct err e = {0};
    struct table_row pod, port;
    uint32_t zero = 0;
    if (program_load(NULL, f, under_test, &program, &e) < 0) {
        fail_msg("%s", e.text);
    }
    struct ebpf_settings s = encode_settings(&network, &devices, true);
    struct encode_pod p = {.ip = POD, .mac = mac_from_ip4(POD), .ifindex = LINK, .inlet = inlet};
    assert_true(encode_pod(&network, &p, &pod, &port));
    struct ebpf_service_key key = {.addr = htonl(SERVICE), .port = htons(80), .protocol = 6};
    struct ebpf_service idle = {.flags = EBPF_SERVICE_IDLE};
    ebpf_put(program.settings, &zero, &s);
    ebpf_put(program.pods, pod.key, pod.value);
    ebpf_put(program.ports, port.key, port.value);
    ebpf_put(program.services, &key, &idle);
}

static void load(const struct program_features *f)
{
    load_as(f, true, INLET);
}

/* A TCP SYN, with a checksum that is yet to be made. */
static void make_frame(uint8_t frame[SIZE], uint32_t from, uint16_t port)
{
    struct mac mac = mac_from_ip4(from);
    uint32_t ends[2] = {htonl(from), htonl(SERVICE)};
    memset(frame, 0, SIZE);
    memcpy(frame + 6, mac.b, 6);
    frame[12] = 8;
    frame[14] = 0x45;
    frame[17] = 40;
    frame[22] = 64;
    frame[23] = 6;
    memcpy(frame + 26, ends, sizeof ends);
    frame[34] = 0x9c;
    frame[37] = (uint8_t) port;
    frame[46] = 0x50;
    frame[47] = 2;
}

static int run(int fd, const uint8_t *frame, size_t size, uint32_t mark)
{
    struct __sk_buff in = {.mark = mark, .cb = {[EBPF_CB_PORT] = INLET}};
    uint8_t out[256];
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = (uint32_t) size,
                .data_out = out, .data_size_out = sizeof out, .ctx_in = &in,
                .ctx_size_in = sizeof in);
    assert_int_equal(bpf_prog_test_run_opts(fd, &o), 0);
    return (int) o.retval;
}

struct seen {
    bool any;
    size_t n, size;
    uint32_t port;
    uint8_t frame[SIZE];
};

static void on_upcall(void *ctx, uint32_t port, const uint8_t *frame, size_t size)
{
    struct seen *s = ctx;
    s->any = true;
    s->n++;
    s->port = port;
    s->size = size;
    memcpy(s->frame, frame, MIN(size, sizeof s->frame));
}

static struct upcalls *open_upcalls(int ring, struct seen *s)
{
    struct upcall_config c = {
        .loop = loop, .ring = ring, .devices = &devices, .fn = on_upcall, .ctx = s};
    struct upcalls *u = NULL;
    struct err e = {0};
    if (upcall_new(&c, &u, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return u;
}

/* ---- tests ---- */

static void what_asks_an_idle_service_is_handed_over(void **state)
{
    struct program_features f = *(struct program_features *) *state;
    struct seen s = {0};
    uint8_t frame[SIZE];
    if (!f.ringbuf) {
        LEAVE_OUT("this kernel has no ring buffers for programs (Linux 5.8)");
    }
    load(&f);
    struct upcalls *u = open_upcalls(program.upcalls, &s);
    make_frame(frame, POD, 81); /* Nothing is there. */
    run(program.from_pod, frame, sizeof frame, 0);
    make_frame(frame, POD, 80);
    assert_int_equal(run(program.from_pod, frame, sizeof frame, 0), TC_ACT_SHOT);
    assert_int_equal(loop_run_until(loop, &s.any, 10000), 0);
    assert_true(s.n == 1 && s.port == LINK && s.size == sizeof frame);
    assert_memory_equal(s.frame, frame, sizeof frame);
    upcall_free(u);
    program_done(&program);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

/* Else one pod could have the agent wake up for each of its packets, and fill what
 * others wait in. */
static void a_pod_has_so_many_handed_over_a_second(void **state)
{
    enum { PACKETS = 400, LOOPBACK = 1 };
    struct program_features f = *(struct program_features *) *state;
    struct seen s = {0};
    uint8_t frame[SIZE];
    if (!f.ringbuf) {
        LEAVE_OUT("this kernel has no ring buffers for programs (Linux 5.8)");
    }
    load_as(&f, false, LOOPBACK); /* By which a frame comes that says nothing else. */
    struct upcalls *u = open_upcalls(program.upcalls, &s);
    double began = seconds();
    make_frame(frame, POD, 80);
    for (unsigned i = 0; i < PACKETS; i++) {
        assert_int_equal(run(program.from_pod, frame, sizeof frame, 0), TC_ACT_SHOT);
    }
    double took = seconds() - began;
    assert_int_equal(loop_run_until(loop, &s.any, 10000), 0);
    bool never = false;
    loop_run_until(loop, &never, 20);
    assert_true(s.n >= 1 && (double) s.n <= EBPF_REFUSALS_A_SECOND * (took + 2));
    assert_true(s.n < PACKETS);
    upcall_free(u);
    program_done(&program);
}

static void without_ring_buffers_it_is_only_dropped(void **state)
{
    struct program_features f = *(struct program_features *) *state;
    uint8_t frame[SIZE];
    f.ringbuf = false;
    load(&f);
    assert_int_equal(program.upcalls, -1);
    struct upcalls *u = open_upcalls(program.upcalls, NULL);
    make_frame(frame, POD, 80);
    assert_int_equal(run(program.from_pod, frame, sizeof frame, 0), TC_ACT_SHOT);
    upcall_free(u);
    program_done(&program);
}

static void what_has_the_mark_goes_on_by_the_link_of_its_pod(void **state)
{
    uint8_t frame[SIZE];
    load(*state);
    make_frame(frame, POD, 80);
    assert_int_equal(run(program.from_host, frame, sizeof frame, EBPF_REINJECT_MARK),
                     TC_ACT_REDIRECT);
    assert_int_equal(run(program.from_host, frame, sizeof frame, EBPF_REINJECT_MARK + 1),
                     TC_ACT_SHOT);
    make_frame(frame, POD + 1, 80);
    assert_int_equal(run(program.from_host, frame, sizeof frame, EBPF_REINJECT_MARK), TC_ACT_SHOT);
    program_done(&program);
}

/* Of what there is at 'fd', which has to come. */
static void receive(int fd, uint8_t frame[SIZE])
{
    struct timeval most = {.tv_sec = 10};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    assert_int_equal(recv(fd, frame, SIZE, 0), SIZE);
}

static void frames_are_sent_in_turn_with_their_checksums(void **state)
{
    (void) state;
    struct seen s = {0};
    uint8_t frame[SIZE], got[SIZE];
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(0x0800),
                             .sll_ifindex = (int) if_nametoindex("lo")};
    CLEANUP(fd_close) int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(0x0800));
    assert_int_equal(bind(fd, (const struct sockaddr *) &at, sizeof at), 0);
    devices.tun = at.sll_ifindex;
    struct upcalls *u = open_upcalls(-1, &s);
    for (uint16_t port = 80; port < 83; port++) {
        make_frame(frame, POD, port);
        upcall_reinject(u, frame, sizeof frame);
    }
    assert_int_equal(recv(fd, got, sizeof got, MSG_DONTWAIT), -1);
    upcall_flush(u);
    for (uint16_t port = 80; port < 83; port++) {
        make_frame(frame, POD, port);
        receive(fd, got);
        /* By hand: 0a80 + 0202 + ac1e + 0007 + 6 + 20, and 9c00 + port + 5002. */
        uint32_t sum = 0x0a80 + 0x0202 + 0xac1e + 0x0007 + 26 + 0x9c00 + port + 0x5002;
        sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
        frame[50] = (uint8_t) (sum >> 8);
        frame[51] = (uint8_t) sum;
        assert_memory_equal(got, frame, sizeof frame);
    }
    /* One that nobody says anything more about goes soon. */
    upcall_reinject(u, frame, sizeof frame);
    bool never = false;
    while (recv(fd, got, sizeof got, MSG_DONTWAIT) < 0) {
        loop_run_until(loop, &never, 20);
    }
    upcall_reinject(u, frame, sizeof frame); /* And what waits when all ends is given up. */
    upcall_free(u);
}

/* ---- all ---- */

static struct program_features features;

static int set_up(void **state)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link_set lo = RTNL_LINK_SET_INIT("lo");
    lo.up = 1;
    *state = &features;
    loop = loop_new();
    return unshare(CLONE_NEWNET) < 0 || rtnl_open(&r, NULL) < 0 || rtnl_link_set(r, &lo, NULL) < 0
               ? -1
               : 0;
}

static int tear_down(void **state)
{
    (void) state;
    loop = loop_free(loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_asks_an_idle_service_is_handed_over),
        cmocka_unit_test(a_pod_has_so_many_handed_over_a_second),
        cmocka_unit_test(without_ring_buffers_it_is_only_dropped),
        cmocka_unit_test(what_has_the_mark_goes_on_by_the_link_of_its_pod),
        cmocka_unit_test(frames_are_sent_in_turn_with_their_checksums),
    };
    return EBPF_TESTS(&features, tests, set_up, tear_down);
}
