/* SPDX-License-Identifier: Apache-2.0 */
/* Real frames through real links: a "pod" p in one namespace, its link h and a switch's port s in another. */
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "net/kernel/netns.h"
#include "net/kernel/redirect.h"
#include "net/kernel/shape.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

static char names[2][64];
static int ns[2] = {-1, -1}, pod_fd = -1, switch_fd = -1, peer_fd = -1;
static struct rtnl *r;
static struct rtnl_link h, s;
static struct err e;
static const struct mac pod_mac = {{0x0a, 0x58, 10, 128, 0, 2}};

#define OK(call)                    \
    do {                            \
        if ((call) != 0) {          \
            fail_msg("%s", e.text); \
        }                           \
    } while (0)

/* A socket that sees all that the link receives and sends through it. */
static int packet_socket(int in, const char *name)
{
    int back;
    OK(netns_enter(in, &back, &e));
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll a = {.sll_family = AF_PACKET,
                            .sll_protocol = htons(ETH_P_ALL),
                            .sll_ifindex = (int) if_nametoindex(name)};
    assert_return_code(fd, 0);
    assert_return_code(bind(fd, (struct sockaddr *) &a, sizeof a), 0);
    int one = 1;
    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
    netns_leave(back);
    return fd;
}

static int teardown(void **state)
{
    pod_fd = fd_close(pod_fd);
    switch_fd = fd_close(switch_fd);
    peer_fd = fd_close(peer_fd);
    r = rtnl_close(r);
    for (int i = 0; i < 2; i++) {
        ns[i] = fd_close(ns[i]);
        netns_delete(names[i], NULL);
    }
    return 0;
}

static int setup(void **state)
{
    if (geteuid() != 0) {
        return 0;
    }
    e = (struct err){0};
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "tenet-ut-rd-%d-%c", (int) getpid(), 'a' + i);
        OK(netns_create(names[i], &e));
        OK(netns_open(names[i], &ns[i], &e));
    }
    OK(rtnl_open_at(ns[0], &r, &e));
    struct rtnl_veth pod = {
        .name = "h", .peer_name = "p", .peer_ns_fd = ns[1], .peer_mac = &pod_mac, .up = true};
    struct rtnl_veth port = {.name = "s", .peer_name = "sx", .peer_ns_fd = -1, .up = true};
    OK(rtnl_veth_add(r, &pod, &e));
    OK(rtnl_veth_add(r, &port, &e));
    struct rtnl_link_set up = RTNL_LINK_SET_INIT("sx");
    up.up = 1;
    OK(rtnl_link_set(r, &up, &e));
    struct rtnl *other = NULL;
    OK(rtnl_open_at(ns[1], &other, &e));
    up.name = "p";
    OK(rtnl_link_set(other, &up, &e));
    rtnl_close(other);
    OK(rtnl_link_get(r, "h", &h, &e));
    OK(rtnl_link_get(r, "s", &s, &e));
    pod_fd = packet_socket(ns[1], "p");
    switch_fd = packet_socket(ns[0], "s");
    peer_fd = packet_socket(ns[0], "sx");
    return 0;
}

/* The frames are told by their last byte, and from what kernels say by their type. */
static void send_frame(int fd, struct mac to, uint8_t mark)
{
    uint8_t frame[60] = {[12] = 0x88, [13] = 0xb5, [59] = mark};
    memcpy(frame, to.b, 6);
    frame[6] = 0x02;
    /* What a hook drops on its way out is said not to have had room. */
    assert_true(send(fd, frame, sizeof frame, 0) == sizeof frame || errno == ENOBUFS);
}

/* The mark of the next frame; -1: none came. */
static int receive(int fd, int timeout_ms)
{
    uint64_t end = time_mono_ms() + (uint64_t) timeout_ms;
    for (;;) {
        uint64_t now = time_mono_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint8_t frame[2048];
        if (poll(&p, 1, now < end ? (int) (end - now) : 0) <= 0) {
            return -1;
        }
        ssize_t n = recv(fd, frame, sizeof frame, MSG_DONTWAIT);
        if (n >= 60 && frame[12] == 0x88 && frame[13] == 0xb5) {
            return frame[59];
        }
    }
}

static void wire(void)
{
    struct redirect in = {.ifindex = h.ifindex, .hook = REDIRECT_INGRESS, .to = s.ifindex};
    struct redirect out = {
        .ifindex = s.ifindex, .hook = REDIRECT_EGRESS, .to = h.ifindex, .destination = &pod_mac};
    OK(redirect_set(r, &in, &e));
    OK(redirect_set(r, &out, &e));
}

static void frames_pass_both_ways_and_only_the_pods_reach_it(void **state)
{
    NEEDS_ROOT();
    wire();
    struct mac other = pod_mac;
    send_frame(pod_fd, other, 1);
    assert_int_equal(receive(switch_fd, 5000), 1);
    send_frame(switch_fd, pod_mac, 2);
    assert_int_equal(receive(pod_fd, 5000), 2);
    /* Each byte of the destination counts; a frame of the pod's tells that the others were not late. */
    for (int i = 0; i < 6; i++) {
        other = pod_mac;
        other.b[i] ^= 4;
        send_frame(switch_fd, other, (uint8_t) (10 + i));
    }
    send_frame(switch_fd, (struct mac){{255, 255, 255, 255, 255, 255}}, 20);
    send_frame(switch_fd, pod_mac, 21);
    assert_int_equal(receive(pod_fd, 5000), 21);
    assert_int_equal(receive(peer_fd, 0), -1);
}

/* As on Linux before 5.11, where programs of all processes of a user count; others do not look at it. */
static void little_memory_that_may_be_locked_is_enough(void **state)
{
    NEEDS_ROOT();
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, before.rlim_max}), 0);
    wire();
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

static void hook_is_replaced_and_seen(void **state)
{
    NEEDS_ROOT();
    struct redirect in = {.ifindex = h.ifindex, .hook = REDIRECT_INGRESS, .to = s.ifindex};
    assert_int_equal(redirect_check(r, &in, &e), -ENOENT);
    wire();
    OK(redirect_check(r, &in, &e));
    in.to = h.ifindex;
    assert_int_equal(redirect_check(r, &in, &e), -ENOENT);
    assert_non_null(strstr(e.text, "does not hand its frames to link"));
    /* Onto itself: nothing reaches the switch. */
    OK(redirect_set(r, &in, &e));
    OK(redirect_check(r, &in, &e));
    in.hook = REDIRECT_EGRESS;
    assert_int_equal(redirect_check(r, &in, &e), -ENOENT);
}

static void dropped_frames_are_still_seen_by_the_switch(void **state)
{
    NEEDS_ROOT();
    wire();
    OK(redirect_drop_received(r, s.ifindex, &e));
    send_frame(pod_fd, pod_mac, 3);
    assert_int_equal(receive(switch_fd, 5000), 3);
    send_frame(switch_fd, pod_mac, 4);
    assert_int_equal(receive(pod_fd, 5000), 4);
}

static void frames_for_a_link_that_is_gone_are_dropped(void **state)
{
    NEEDS_ROOT();
    wire();
    OK(rtnl_link_del(r, "s", &e));
    send_frame(pod_fd, pod_mac, 5);
    /* Nor does the host get them. */
    int host = packet_socket(ns[0], "h");
    send_frame(pod_fd, pod_mac, 6);
    assert_int_equal(receive(host, 5000), 6); /* It came as far as the link. */
    fd_close(host);
    assert_int_equal(receive(peer_fd, 0), -1);
}

/* By the other end of the switch's port, whose queue is a token bucket: what is too much waits. */
static void a_limited_link_sends_later_what_is_too_much(void **state)
{
    NEEDS_ROOT();
    struct rtnl_link sx;
    OK(rtnl_link_get(r, "sx", &sx, &e));
    struct redirect in = {
        .ifindex = h.ifindex, .hook = REDIRECT_INGRESS, .to = sx.ifindex, .send = true};
    struct shape slow = {.rate = 64000};
    OK(redirect_set(r, &in, &e));
    assert_int_equal(shape_check(r, sx.ifindex, &slow, &e), -ENOENT);
    int k = shape_set(r, sx.ifindex, &slow, &e);
    if (k == -ENOENT) {
        LEAVE_OUT("this kernel has no tbf");
    }
    OK(k);
    OK(shape_check(r, sx.ifindex, &slow, &e));
    struct shape other = {.rate = 128000};
    assert_int_equal(shape_check(r, sx.ifindex, &other, &e), -ENOENT);
    assert_non_null(strstr(e.text, "128000 bit/s"));
    uint64_t begin = time_mono_ms();
    for (int i = 0; i < 30; i++) {
        uint8_t frame[1500] = {[12] = 0x88, [13] = 0xb5, [59] = (uint8_t) i};
        assert_int_equal(send(pod_fd, frame, sizeof frame, 0), sizeof frame);
    }
    for (int i = 0; i < 30; i++) {
        assert_int_equal(receive(switch_fd, 20000), i);
    }
    /* 45,000 bytes, less the burst, at 8,000 a second. */
    assert_in_range(time_mono_ms() - begin, 1200, 10000);
    OK(shape_clear(r, sx.ifindex, &e));
    OK(shape_clear(r, sx.ifindex, &e));
    assert_int_equal(shape_check(r, sx.ifindex, &slow, &e), -ENOENT);
}

static void cleared_hooks_are_free_for_others(void **state)
{
    NEEDS_ROOT();
    wire();
    struct redirect in = {.ifindex = h.ifindex, .hook = REDIRECT_INGRESS, .to = s.ifindex};
    OK(redirect_clear(r, h.ifindex, &e));
    assert_int_equal(redirect_check(r, &in, &e), -ENOENT);
    OK(redirect_clear(r, h.ifindex, &e));
}

/* A program that drops everything. */
static int load_drop(void)
{
    const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = TC_ACT_SHOT},
        {.code = BPF_JMP | BPF_EXIT}};
    union bpf_attr a = {.prog_type = BPF_PROG_TYPE_SCHED_CLS,
                        .insns = (uintptr_t) code,
                        .insn_cnt = ARRAY_SIZE(code),
                        .license = (uintptr_t) "Apache-2.0"};
    return (int) syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a);
}

static void a_hook_for_what_is_received_alone_is_as_good_as_the_other(void **state)
{
    NEEDS_ROOT();
    CLEANUP(fd_close) int fd = load_drop();
    assert_true(fd >= 0);
    OK(redirect_attach_received(r, h.ifindex, "mine", fd, &e));
    OK(redirect_check_attached(r, h.ifindex, REDIRECT_INGRESS, "mine", &e));
    send_frame(pod_fd, pod_mac, 30);
    /* Replaced, in the one way and in the other. */
    OK(redirect_attach_received(r, h.ifindex, "yours", fd, &e));
    OK(redirect_check_attached(r, h.ifindex, REDIRECT_INGRESS, "yours", &e));
    wire();
    send_frame(pod_fd, pod_mac, 31);
    assert_int_equal(receive(switch_fd, 5000), 31);
    OK(redirect_attach_received(r, h.ifindex, "mine", fd, &e));
    OK(redirect_clear(r, h.ifindex, &e));
    assert_int_equal(redirect_check_attached(r, h.ifindex, REDIRECT_INGRESS, "mine", &e), -ENOENT);
    assert_int_equal(redirect_attach_received(r, 9999, "mine", fd, &e), -ENODEV);
    assert_non_null(strstr(e.text, "link 9999"));
}

static void absent_link_is_an_error_that_names_it(void **state)
{
    NEEDS_ROOT();
    struct redirect in = {.ifindex = 9999, .hook = REDIRECT_INGRESS, .to = s.ifindex};
    assert_int_equal(redirect_set(r, &in, &e), -ENODEV);
    assert_non_null(strstr(e.text, "link 9999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_pass_both_ways_and_only_the_pods_reach_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(little_memory_that_may_be_locked_is_enough, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(hook_is_replaced_and_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(dropped_frames_are_still_seen_by_the_switch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(frames_for_a_link_that_is_gone_are_dropped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_limited_link_sends_later_what_is_too_much, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(cleared_hooks_are_free_for_others, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hook_for_what_is_received_alone_is_as_good_as_the_other,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(absent_link_is_an_error_that_names_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
