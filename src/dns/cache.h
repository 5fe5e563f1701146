/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of other name servers, kept as long as their TTLs allow (RFC 2308 for
 * negative ones), in bounded memory.
 *
 * Expired answers stay, evicted in LRU order, for times when no server answers (RFC 8767).
 * Messages are shared by reference.  Thread-safe. */
#pragma once

#include "base/mem.h"
#include "wire/dns.h"

#define DNS_CACHE_TTL_MAX 3600
#define DNS_CACHE_NEGATIVE_MAX 300
#define DNS_CACHE_STALE_S 86400
#define DNS_CACHE_STALE_TTL 30

struct dns_key {
    struct dns_name name; /* Lower case. */
    uint16_t type;
    bool dnssec_ok;
};
bool dns_key_equal(const struct dns_key *a, const struct dns_key *b);
uint32_t dns_key_hash(const struct dns_key *k);

struct dns_cached {
    struct blob *message; /* The caller owns a reference. */
    uint32_t age_s;
    bool stale;
};

struct dns_cache;
struct dns_cache *dns_cache_new(size_t max_bytes);
struct dns_cache *dns_cache_free(struct dns_cache *c);
DEFINE_CLEANUP(struct dns_cache *, dns_cache_free)
void dns_cache_put(struct dns_cache *c, const struct dns_key *k, struct blob *message,
                   uint32_t ttl_s, uint64_t now_ms);
/* false: absent, or (unless 'stale') expired. */
bool dns_cache_get(struct dns_cache *c, const struct dns_key *k, uint64_t now_ms, bool stale,
                   struct dns_cached *ret);
size_t dns_cache_bytes(struct dns_cache *c);
size_t dns_cache_count(struct dns_cache *c);

/* Seconds that the message may be cached; 0: not at all. */
uint32_t dns_message_ttl(const struct dns_reader *message);
