/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic between two network namespaces, for bench/datapath.py.  It is C, because a program in
 * another language would add time of its own.
 *
 * tcp: one byte there, one byte back, one at a time.  udp: a burst of 64-byte datagrams there, one
 * datagram back; a burst without an answer is lost, and the next one begins.  stream: as much as
 * TCP takes.
 *
 * A stream sets its congestion control before it connects.  Where the host's own is bbr, an open
 * connection stays paced by timers, and a virtual machine pays more for these than for the packets.
 *
 * usage: bench_exchange serve tcp|udp|stream PORT [WINDOW]
 *        bench_exchange ask tcp|udp ADDRESS PORT BURST MILLISECONDS
 *        bench_exchange ask stream ADDRESS PORT WINDOW MILLISECONDS BLOCK
 * WINDOW is the size of the sockets' buffers in KiB, 0 for the kernel's choice; BLOCK is the size
 * of a write in KiB.  'ask' prints the exchanges, the lost ones, and the median and the 99th
 * percentile of their times in nanoseconds; for a stream: the bytes that arrived, the nanoseconds
 * that it took, and the nanoseconds of processor time of both ends. */
#include "measure.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAYLOAD 64
#define LOST_MS 100
#define BURST_MAX 256
#define BLOCK_MAX 4096
#define WINDOW_MAX (64 * 1024)
#define CONGESTION "cubic"

enum kind { TCP, UDP, STREAM };
static const char *const kinds[] = {"tcp", "udp", "stream"};

/* What the receiver of a stream says at its end. */
struct receipt {
    uint64_t bytes, cpu_ns;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void set_option(int fd, int level, int name, const void *value, socklen_t size)
{
    if (setsockopt(fd, level, name, value, size) < 0) {
        die("setsockopt");
    }
}

static int open_socket(enum kind kind, size_t window)
{
    int fd = socket(AF_INET, kind == UDP ? SOCK_DGRAM : SOCK_STREAM, 0), one = 1;
    int size = (int) window * 1024;
    if (fd < 0) {
        die("socket");
    }
    if (kind != UDP) {
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    }
    if (kind == TCP) {
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    if (kind == STREAM) {
        set_option(fd, IPPROTO_TCP, TCP_CONGESTION, CONGESTION, sizeof CONGESTION - 1);
    }
    if (window > 0) {
        set_option(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
        set_option(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    }
    return fd;
}

/* Processor time of this process. */
static uint64_t cpu_ns(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) < 0) {
        die("getrusage");
    }
    return (uint64_t) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
           (uint64_t) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static int accept_one(int fd)
{
    int client = accept(fd, NULL, NULL);
    if (client < 0) {
        die("accept");
    }
    return client;
}

static void serve_stream(int fd)
{
    static char block[128 * 1024];
    if (listen(fd, 1) < 0) {
        die("listen");
    }
    for (;;) {
        int client = accept_one(fd);
        uint64_t begin = cpu_ns();
        struct receipt r = {0};
        ssize_t n;
        while ((n = read(client, block, sizeof block)) > 0) {
            r.bytes += (uint64_t) n;
        }
        r.cpu_ns = cpu_ns() - begin;
        if (n < 0 || write(client, &r, sizeof r) != sizeof r) {
            die("stream");
        }
        close(client);
    }
}

static void ask_stream(int fd, uint64_t ms, size_t size)
{
    CLEANUP_FREE char *block = xcalloc(size, 1024);
    uint64_t begin = time_mono_ns(), begin_cpu = cpu_ns();
    struct receipt r;
    while (time_mono_ns() - begin < ms * 1000000) {
        if (write(fd, block, size * 1024) < 0) {
            die("stream");
        }
    }
    if (shutdown(fd, SHUT_WR) < 0 || recv(fd, &r, sizeof r, MSG_WAITALL) != sizeof r) {
        die("stream");
    }
    printf("%llu %llu %llu\n", (unsigned long long) r.bytes,
           (unsigned long long) (time_mono_ns() - begin),
           (unsigned long long) (cpu_ns() - begin_cpu + r.cpu_ns));
}

static void serve_tcp(int fd)
{
    char byte;
    int one = 1;
    if (listen(fd, 1) < 0) {
        die("listen");
    }
    for (;;) {
        int client = accept_one(fd);
        set_option(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (read(client, &byte, 1) == 1 && write(client, &byte, 1) == 1) {
        }
        close(client);
    }
}

/* The last datagram of a burst says so in its first byte. */
static void serve_udp(int fd)
{
    char data[PAYLOAD];
    struct sockaddr_in from;
    for (;;) {
        socklen_t size = sizeof from;
        if (recvfrom(fd, data, sizeof data, 0, (struct sockaddr *) &from, &size) > 0 && data[0]) {
            sendto(fd, data, sizeof data, 0, (struct sockaddr *) &from, size);
        }
    }
}

static bool exchange_tcp(int fd)
{
    char byte = 1;
    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1) {
        die("connection");
    }
    return true;
}

static bool exchange_udp(int fd, unsigned burst, uint32_t number)
{
    char data[PAYLOAD] = {0}, answer[PAYLOAD];
    memcpy(data + 1, &number, sizeof number);
    for (unsigned i = 1; i <= burst; i++) {
        data[0] = i == burst;
        if (send(fd, data, sizeof data, 0) < 0) {
            return false;
        }
    }
    while (recv(fd, answer, sizeof answer, 0) > 0) {
        if (memcmp(data, answer, sizeof data) == 0) { /* Not one that came too late. */
            return true;
        }
    }
    return false;
}

static void ask(int fd, bool tcp, unsigned burst, uint64_t ms)
{
    CLEANUP_FREE uint64_t *times = NULL;
    size_t n = 0, cap = 0;
    uint64_t lost = 0, begin = time_mono_ns(), now = begin;
    while (now - begin < ms * 1000000) {
        bool came = tcp ? exchange_tcp(fd) : exchange_udp(fd, burst, (uint32_t) (n + lost));
        uint64_t end = time_mono_ns();
        if (came) {
            times = grow(times, &cap, n + 1, sizeof *times);
            times[n++] = end - now;
        } else {
            lost++;
        }
        now = end;
    }
    if (n == 0) {
        fputs("exchange: nothing came back\n", stderr);
        exit(1);
    }
    printf("%zu %llu %.0f %.0f\n", n, (unsigned long long) lost,
           measure_quantile_ns(times, n, 0.5) * 1e6, measure_quantile_ns(times, n, 0.99) * 1e6);
}

static bool find_kind(const char *name, enum kind *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (streq(kinds[i], name)) {
            *ret = (enum kind) i;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    bool serves = (argc == 4 || argc == 5) && streq(argv[1], "serve");
    bool asks = argc > 6 && streq(argv[1], "ask");
    enum kind kind = TCP;
    struct sockaddr_in at = {.sin_family = AF_INET};
    if (!(serves || asks) || !find_kind(argv[2], &kind) ||
        (asks &&
         (argc != (kind == STREAM ? 8 : 7) || inet_pton(AF_INET, argv[3], &at.sin_addr) != 1))) {
        fputs("usage: bench_exchange serve tcp|udp|stream PORT [WINDOW]\n"
              "       bench_exchange ask tcp|udp ADDRESS PORT BURST MILLISECONDS\n"
              "       bench_exchange ask stream ADDRESS PORT WINDOW MILLISECONDS BLOCK\n",
              stderr);
        return 2;
    }
    size_t port = measure_number(argv[serves ? 3 : 4], 1, UINT16_MAX), window = 0, burst = 0;
    if (asks && kind != STREAM) {
        burst = measure_number(argv[5], 1, BURST_MAX);
    } else if (asks || argc == 5) {
        window = measure_number(argv[asks ? 5 : 4], 0, WINDOW_MAX);
    }
    int fd = open_socket(kind, window);
    at.sin_port = htons((uint16_t) port);
    if (serves) {
        if (bind(fd, (struct sockaddr *) &at, sizeof at) < 0) {
            die("bind");
        }
        (kind == TCP ? serve_tcp : kind == UDP ? serve_udp : serve_stream)(fd);
    }
    size_t ms = measure_number(argv[6], 1, 60000);
    if (connect(fd, (struct sockaddr *) &at, sizeof at) < 0) {
        die("connect");
    }
    if (kind == STREAM) {
        ask_stream(fd, ms, measure_number(argv[7], 1, BLOCK_MAX));
        return 0;
    }
    if (kind == UDP) {
        struct timeval wait = {.tv_usec = LOST_MS * 1000};
        set_option(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    }
    ask(fd, kind == TCP, (unsigned) burst, ms);
    return 0;
}
