/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP echo (RFC 792) and the smallest DNS query (RFC 1035), for probes.  Pure: bytes
 * in, values out. */
#pragma once

#include "base/macro.h"

#define PING_HEADER 8
#define PING_OVERHEAD 28 /* IPv4 and ICMP headers. */

/* An echo request of 'size' bytes in all (at least PING_HEADER). */
void ping_put(uint8_t *out, size_t size, uint16_t id, uint16_t seq);

enum ping_kind {
    PING_NOT_OURS,
    PING_ANSWER,      /* Echo reply. */
    PING_UNREACHABLE, /* Destination unreachable that quotes our request. */
};
struct ping_reply {
    enum ping_kind kind;
    uint16_t seq;
    uint8_t code;  /* PING_UNREACHABLE */
    uint32_t from; /* Sender of the message. */
};
/* Interprets an IPv4 packet (as read from a raw socket) as a reply to the requests with 'id'. */
struct ping_reply ping_parse(const uint8_t *packet, size_t size, uint16_t id);
