/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/refusal.h"

#include <string.h>

#define ETH_HEADER 14
#define ETH_IP4 0x0800
#define IP_HEADER 20
#define IP_ICMP 1
#define IP_TTL 64
#define ICMP_HEADER 8
#define ICMP_UNREACHABLE 3
#define ICMP_TOS 0xc0 /* Internetwork control (RFC 1812 4.3.2.5) */
#define QUOTED 8      /* Minimum of bytes after the header (RFC 792). */

enum { HOST_UNREACHABLE = 1, PORT_UNREACHABLE = 3, PROHIBITED = 13 };

int refusal_code(enum model_cause cause)
{
    switch (cause) {
    case MODEL_NO_SUCH_NODE:
        return HOST_UNREACHABLE;
    case MODEL_SERVICE_NOT_AVAILABLE:
    case MODEL_SERVICE_NO_ENDPOINTS:
        return PORT_UNREACHABLE;
    case MODEL_FORGED_TUNNEL:
    case MODEL_METADATA:
        return PROHIBITED;
    default:
        return -1;
    }
}

bool refusal_allowed(struct refusal_bucket *b, uint64_t now_ms)
{
    uint64_t full = now_ms > 1000 ? now_ms - 1000 : 0, next = MAX(b->since_ms, full);
    next += 1000 / REFUSALS_PER_S;
    if (next > now_ms) {
        return false;
    }
    b->since_ms = next;
    return true;
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t) get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t) (v >> 8);
    p[1] = (uint8_t) v;
}

static void put32(uint8_t *p, uint32_t v)
{
    put16(p, (uint16_t) (v >> 16));
    put16(p + 2, (uint16_t) v);
}

/* RFC 1071 */
static uint16_t checksum(const uint8_t *p, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) {
        sum += (uint32_t) p[i] << (i & 1 ? 0 : 8);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~((sum & 0xffff) + (sum >> 16));
}

/* Bytes of the IP header at 'ip' when its packet may be answered; else 0. */
static size_t answerable(const struct refusal_sender *s, const uint8_t *ip, size_t size)
{
    size_t header = size ? (size_t) (ip[0] & 15) * 4 : 0;
    if (size < IP_HEADER || ip[0] >> 4 != 4 || header < IP_HEADER || header + QUOTED > size ||
        get16(ip + 2) < header) {
        return 0;
    }
    bool later_fragment = get16(ip + 6) & 0x1fff;
    uint32_t dst = get32(ip + 16);
    bool single = dst >> 28 < 14 && dst >> 24 != 0;
    if (later_fragment || get32(ip + 12) != s->ip || !single) {
        return 0;
    }
    /* For ICMP only requests are answered: errors about errors would not end. */
    if (ip[9] == IP_ICMP) {
        uint8_t type = ip[header];
        bool question = type == 8 || type == 13 || type == 15 || type == 17;
        return question ? header : 0;
    }
    return header;
}

size_t refusal_make(const struct refusal_sender *s, int code, const uint8_t *frame, size_t size,
                    uint8_t out[REFUSAL_SIZE_MAX])
{
    if (size < ETH_HEADER || get16(frame + 12) != ETH_IP4 || memcmp(frame + 6, s->mac.b, 6) != 0) {
        return 0;
    }
    const uint8_t *old = frame + ETH_HEADER;
    size_t header = answerable(s, old, size - ETH_HEADER);
    if (!header) {
        return 0;
    }
    struct mac from = mac_from_ip4(s->gateway);
    size_t quoted = header + QUOTED, total = IP_HEADER + ICMP_HEADER + quoted;
    static_assert(ETH_HEADER + IP_HEADER + ICMP_HEADER + 60 + QUOTED <= REFUSAL_SIZE_MAX, "");
    uint8_t *ip = out + ETH_HEADER, *icmp = ip + IP_HEADER;
    memset(out, 0, ETH_HEADER + IP_HEADER + ICMP_HEADER);
    memcpy(out, s->mac.b, 6);
    memcpy(out + 6, from.b, 6);
    put16(out + 12, ETH_IP4);
    ip[0] = 0x45;
    ip[1] = ICMP_TOS;
    put16(ip + 2, (uint16_t) total);
    ip[8] = IP_TTL;
    ip[9] = IP_ICMP;
    put32(ip + 12, s->gateway);
    put32(ip + 16, s->ip);
    put16(ip + 10, checksum(ip, IP_HEADER));
    icmp[0] = ICMP_UNREACHABLE;
    icmp[1] = (uint8_t) code;
    memcpy(icmp + ICMP_HEADER, old, quoted);
    put16(icmp + 2, checksum(icmp, ICMP_HEADER + quoted));
    return ETH_HEADER + total;
}
