/* SPDX-License-Identifier: Apache-2.0 */
/* Request and response between two network namespaces, for bench/datapath.py: what a packet's way costs, without what a
 * program in another language would add.
 *
 * tcp: one byte there, one byte back, one at a time.  udp: a burst of 64-byte datagrams there, one back; a burst whose
 * answer does not come is lost, and the next one begins.
 *
 * usage: bench_exchange serve tcp|udp PORT
 *        bench_exchange ask tcp|udp ADDRESS PORT BURST MILLISECONDS
 * 'ask' prints: exchanges, lost ones, and the median and the 99th percentile of their times in nanoseconds. */
#include "measure.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAYLOAD 64
#define LOST_MS 100
#define BURST_MAX 256

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

static int open_socket(bool tcp)
{
    int fd = socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0), one = 1;
    if (fd < 0) {
        die("socket");
    }
    if (tcp) {
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    }
    return fd;
}

static void serve_tcp(int fd)
{
    char byte;
    int one = 1;
    if (listen(fd, 1) < 0) {
        die("listen");
    }
    for (;;) {
        int client = accept(fd, NULL, NULL);
        if (client < 0) {
            die("accept");
        }
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

int main(int argc, char **argv)
{
    bool serves = argc == 4 && streq(argv[1], "serve"), asks = argc == 7 && streq(argv[1], "ask");
    uint64_t port = 0, burst = 1, ms = 0;
    struct sockaddr_in at = {.sin_family = AF_INET};
    if (!(serves || asks) || !(streq(argv[2], "tcp") || streq(argv[2], "udp")) ||
        str_to_u64(argv[serves ? 3 : 4], UINT16_MAX, &port) < 0 ||
        (asks && (inet_pton(AF_INET, argv[3], &at.sin_addr) != 1 ||
                  str_to_u64(argv[5], BURST_MAX, &burst) < 0 || burst == 0 ||
                  str_to_u64(argv[6], 60000, &ms) < 0))) {
        fputs("usage: bench_exchange serve tcp|udp PORT\n"
              "       bench_exchange ask tcp|udp ADDRESS PORT BURST MILLISECONDS\n",
              stderr);
        return 2;
    }
    bool tcp = streq(argv[2], "tcp");
    int fd = open_socket(tcp);
    at.sin_port = htons((uint16_t) port);
    if (serves) {
        if (bind(fd, (struct sockaddr *) &at, sizeof at) < 0) {
            die("bind");
        }
        (tcp ? serve_tcp : serve_udp)(fd);
    }
    if (connect(fd, (struct sockaddr *) &at, sizeof at) < 0) {
        die("connect");
    }
    if (!tcp) {
        struct timeval wait = {.tv_usec = LOST_MS * 1000};
        set_option(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    }
    ask(fd, tcp, (unsigned) burst, ms);
    return 0;
}
