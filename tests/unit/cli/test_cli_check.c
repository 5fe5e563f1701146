/* SPDX-License-Identifier: Apache-2.0 */
/* The probes of tenet check, from a network namespace whose only link is its loopback. */
#include "base/mem.h"
#include "cli/explain/check.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"
#include "wire/dns.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "leave_out.h"

#define LOCALHOST 0x7f000001
#define RIGHT 0x7f000002 /* A name server. */
#define WRONG 0x7f000003 /* A name server whose answers have another id. */
#define ECHO 0x7f000004  /* It sends back the question. */

static volatile sig_atomic_t stop;
static struct check_pod pod;
static struct check_set set = {.pods = &pod, .n = 1, .stop = &stop};

static int server_at(uint32_t ip)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(ip), .sin_port = htons(53)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *) &a, sizeof a) < 0) {
        _exit(1);
    }
    return fd;
}

/* Answers questions on 'fd' with the bits of 'flip' in the id, and 'flag' in the third byte. */
static void answer_on(int fd, uint8_t flip, uint8_t flag)
{
    uint8_t buf[512];
    struct sockaddr_in peer;
    socklen_t size = sizeof peer;
    ssize_t n = recvfrom(fd, buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *) &peer, &size);
    if (n > 2) {
        buf[1] ^= flip;
        buf[2] |= flag;
        sendto(fd, buf, (size_t) n, 0, (struct sockaddr *) &peer, size);
    }
}

static pid_t serve(int ready)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* A test that fails leaves no server. */
        int back, ns = -1;
        struct err e = {0};
        if (netns_open(pod.netns, &ns, &e) < 0 || netns_enter(ns, &back, &e) < 0) {
            _exit(1);
        }
        int right = server_at(RIGHT), wrong = server_at(WRONG), echo = server_at(ECHO);
        close(ready);
        for (;;) {
            answer_on(right, 0, 0x80);
            answer_on(wrong, 1, 0x80);
            answer_on(echo, 0, 0);
            usleep(1000);
        }
    }
    close(ready);
    return pid;
}

static void each_probe_is_answered_by_what_it_asked(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *name = xasprintf("tenet-ut-check-%d", (int) getpid());
    CLEANUP_FREE char *up = xasprintf("ip -n %s link set lo up", name);
    struct err e = {0};
    pod.netns = name;
    assert_int_equal(netns_create(name, &e), 0);
    assert_int_equal(system(up), 0);
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = serve(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* The servers listen. */
    close(ready[0]);

    struct check_probe p[] = {
        {.name = "ping", .pod = &pod, .dst = LOCALHOST},
        {.name = "whole", .pod = &pod, .dst = LOCALHOST, .size = 1450},
        {.name = "tcp", .pod = &pod, .dst = LOCALHOST, .kind = CHECK_TCP},
        {.name = "dns", .pod = &pod, .dst = RIGHT, .kind = CHECK_DNS},
        {.name = "skipped"},
        {.name = "forbidden", .pod = &pod, .dst = 0xc0000201, .forbidden = true},
        {.name = "reached", .pod = &pod, .dst = LOCALHOST, .forbidden = true},
        {.name = "nowhere", .pod = &pod, .dst = 0xc0000201},
        {.name = "wrong id", .pod = &pod, .dst = WRONG, .kind = CHECK_DNS},
        {.name = "dns nowhere", .pod = &pod, .dst = 0xc0000201, .kind = CHECK_DNS},
        {.name = "tcp nowhere", .pod = &pod, .dst = 0xc0000201, .kind = CHECK_TCP},
        {.name = "no answer", .pod = &pod, .dst = ECHO, .kind = CHECK_DNS},
    };
    static const bool answered[ARRAY_SIZE(p)] = {
        [0] = true, [1] = true, [2] = true, [3] = true, [6] = true};
    static const enum check_result results[ARRAY_SIZE(p)] = {
        CHECK_OK,     CHECK_OK,     CHECK_OK,     CHECK_OK,     CHECK_SKIPPED, CHECK_OK,
        CHECK_FAILED, CHECK_FAILED, CHECK_FAILED, CHECK_FAILED, CHECK_FAILED,  CHECK_FAILED};
    assert_int_equal(check_run(&set, p, ARRAY_SIZE(p), &e), 0);
    for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
        if (p[i].answered != answered[i] || p[i].result != results[i]) {
            fail_msg("%s: answered %d, result %d, %s", p[i].name, p[i].answered, p[i].result,
                     p[i].detail);
        }
    }
    assert_string_equal(p[7].detail, "Network is unreachable");
    assert_string_equal(p[9].detail, "Network is unreachable");
    assert_string_equal(p[10].detail, "Network is unreachable");

    /* One that is to end says so, and judges nothing. */
    struct check_probe again = {.name = "ping", .pod = &pod, .dst = LOCALHOST};
    stop = 1;
    assert_int_equal(check_run(&set, &again, 1, &e), -EINTR);
    stop = 0;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(netns_delete(name, &e), 0);
    assert_int_equal(check_run(&set, &again, 1, &e), -ENOENT);
}

static void what_cannot_be_removed_is_told(void **state)
{
    struct agents none = {0};
    struct check_set s = {.agents = &none, .stop = &stop, .n = 2};
    struct err e = {0};
    s.pods = xcalloc(2, sizeof *s.pods);
    s.pods[0] = (struct check_pod){.netns = xstrdup("not/a/name"), .made = true};
    s.pods[1] = (struct check_pod){.netns = xstrdup("not-made")};
    int r = check_detach(&s, &e);
    assert_true(r < 0);
    assert_int_equal(r, e.code);
    assert_non_null(strstr(e.text, "not/a/name"));
    assert_null(s.pods);
    assert_int_equal(s.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_probe_is_answered_by_what_it_asked),
        cmocka_unit_test(what_cannot_be_removed_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
