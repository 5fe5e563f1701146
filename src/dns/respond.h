/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to one message: the policy of the server, between its sockets and the zone.
 *
 * Names of the cluster are answered to everyone; others only to clients of the cluster's networks
 * and of this host (or to all, if configured): others get REFUSED, so that the server cannot be
 * used for amplification attacks.  Type ANY is answered by a HINFO record (RFC 8482).  Any
 * thread may respond; see dns/zone.h for the zone. */
#pragma once

#include "dns/cache.h"
#include "dns/zone.h"

struct dns_responder {
    struct dns_zone *zone;
    struct dns_cache *cache;
    bool forwards;    /* There are servers for other names. */
    bool recurse_all; /* For anybody. */
};

/* Each thread counts on its own; other threads may read. */
enum dns_counter {
    DNS_COUNT_UDP,
    DNS_COUNT_TCP,
    DNS_COUNT_CLUSTER, /* Answered from the zone alone. */
    DNS_COUNT_CACHED,
    DNS_COUNT_FORWARDED, /* Needed a forwarded query. */
    DNS_COUNT_DROPPED,   /* Not answered: no query, or too many wait. */
    DNS_COUNT_TRUNCATED,
    DNS_COUNT_RCODE, /* This and the following five count NOERROR to REFUSED. */
    DNS_COUNTERS = DNS_COUNT_RCODE + 6,
};
struct dns_counters {
    _Alignas(64) _Atomic uint64_t n[DNS_COUNTERS];
};
static inline void dns_count(struct dns_counters *c, enum dns_counter what)
{
    /* A single writer needs no locked instruction. */
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
    /* The result of a forwarded query: an answer, or none although it was sent. */
    bool asked;
    const struct dns_cached *answer;
};

enum dns_reply { DNS_SEND, DNS_SILENCE, DNS_ASK };

/* Writes the answer to 'out' of at least DNS_UDP_EDNS bytes (over TCP DNS_MESSAGE_MAX). DNS_ASK:
 * '*ret_ask' has to be forwarded first; then the call is repeated. */
/* 'parsed' is the result of dns_query_parse for the message, and 'q' its output. */
enum dns_reply dns_respond_parsed(const struct dns_responder *r, struct dns_counters *c,
                                  const struct dns_request *rq, int parsed,
                                  const struct dns_query *q, uint8_t *out, size_t *ret_size,
                                  struct dns_key *ret_ask);
enum dns_reply dns_respond(const struct dns_responder *r, struct dns_counters *c,
                           const struct dns_request *rq, uint8_t *out, size_t *ret_size,
                           struct dns_key *ret_ask);
