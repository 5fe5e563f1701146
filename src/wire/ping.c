/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ping.h"

#include <string.h>

#define IP_HEADER 20
#define IP_ICMP 1

enum { ECHO_REPLY = 0, UNREACHABLE = 3, ECHO = 8 };

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t) (v >> 8);
    p[1] = (uint8_t) v;
}

/* RFC 1071 */
static uint16_t checksum(const uint8_t *p, size_t size)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += (uint64_t) p[i] << (i & 1 ? 0 : 8);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t) ~sum;
}

void ping_put(uint8_t *out, size_t size, uint16_t id, uint16_t seq)
{
    memset(out, 0, size);
    out[0] = ECHO;
    put16(out + 4, id);
    put16(out + 6, seq);
    for (size_t i = PING_HEADER; i < size; i++) {
        out[i] = (uint8_t) i;
    }
    put16(out + 2, checksum(out, size));
}

/* The ICMP message in an IPv4 packet; NULL: there is none, or its header is truncated. */
static const uint8_t *find_icmp(const uint8_t *packet, size_t size, size_t *ret_size)
{
    size_t header = size ? (size_t) (packet[0] & 15) * 4 : 0;
    if (size < IP_HEADER || packet[0] >> 4 != 4 || header < IP_HEADER ||
        header + PING_HEADER > size || packet[9] != IP_ICMP || get16(packet + 6) & 0x1fff) {
        return NULL;
    }
    *ret_size = size - header;
    return packet + header;
}

struct ping_reply ping_parse(const uint8_t *packet, size_t size, uint16_t id)
{
    struct ping_reply r = {.kind = PING_NOT_OURS};
    size_t n = 0;
    const uint8_t *icmp = find_icmp(packet, size, &n);
    if (!icmp) {
        return r;
    }
    enum ping_kind kind = PING_ANSWER;
    const uint8_t *request = icmp;
    uint8_t want = ECHO_REPLY;
    if (icmp[0] == UNREACHABLE) {
        size_t quoted = 0;
        kind = PING_UNREACHABLE;
        want = ECHO;
        request = find_icmp(icmp + PING_HEADER, n - PING_HEADER, &quoted);
    }
    if (!request || request[0] != want || get16(request + 4) != id) {
        return r;
    }
    r.kind = kind;
    r.seq = get16(request + 6);
    r.code = icmp[1];
    r.from = (uint32_t) get16(packet + 12) << 16 | get16(packet + 14);
    return r;
}
