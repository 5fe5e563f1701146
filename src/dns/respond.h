/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered to one message: the policy of the server, between its sockets and the zone.
 *
 * Names of the cluster are answered to everyone; others only to clients of the cluster's networks
 * and of this host (or to all, when told so): who may not is REFUSED, so that the server is of no
 * use to flood somebody else with.  Type ANY is answered by a HINFO record (RFC 8482).  Any thread
 * may respond; see dns/zone.h for the zone. */
#pragma once

#include "dns/cache.h"
#include "dns/zone.h"

struct dns_responder {
    struct dns_zone *zone;
    struct dns_cache *cache;
    bool forwards;    /* There are servers to ask for other names. */
    bool recurse_all; /* For anybody. */
};

/* Counted by each thread of its own, and read by others. */
enum dns_counter {
    DNS_COUNT_UDP,
    DNS_COUNT_TCP,
    DNS_COUNT_CLUSTER, /* Answered from the zone alone. */
    DNS_COUNT_CACHED,
    DNS_COUNT_FORWARDED, /* Had to be asked for. */
    DNS_COUNT_DROPPED,   /* Not answered: no query, or too many wait. */
    DNS_COUNT_TRUNCATED,
    DNS_COUNT_RCODE, /* And the five after it: NOERROR to REFUSED. */
    DNS_COUNTERS = DNS_COUNT_RCODE + 6,
};
struct dns_counters {
    _Alignas(64) _Atomic uint64_t n[DNS_COUNTERS];
};
static inline void dns_count(struct dns_counters *c, enum dns_counter what)
{
    /* One writer: not a locked instruction. */
    uint64_t n = atomic_load_explicit(&c->n[what], memory_order_relaxed);
    atomic_store_explicit(&c->n[what], n + 1, memory_order_relaxed);
}

struct dns_request {
    const uint8_t *data;
    size_t size;
    uint32_t client; /* IPv4; 0: another. */
    bool tcp;
    unsigned turn;
    uint64_t now_ms;
    /* What was asked for on its behalf came to: an answer, or none although asked. */
    bool asked;
    const struct dns_cached *answer;
};

enum dns_reply { DNS_SEND, DNS_SILENCE, DNS_ASK };

/* Writes the answer to 'out' of at least DNS_UDP_EDNS bytes (over TCP DNS_MESSAGE_MAX).  DNS_ASK:
 * first '*ret_ask' has to be asked for; then the same again. */
/* 'parsed' is what dns_query_parse said of the message, and 'q' what it wrote. */
enum dns_reply dns_respond_parsed(const struct dns_responder *r, struct dns_counters *c,
                                  const struct dns_request *rq, int parsed,
                                  const struct dns_query *q, uint8_t *out, size_t *ret_size,
                                  struct dns_key *ret_ask);
enum dns_reply dns_respond(const struct dns_responder *r, struct dns_counters *c,
                           const struct dns_request *rq, uint8_t *out, size_t *ret_size,
                           struct dns_key *ret_ask);
