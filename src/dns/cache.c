/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/cache.h"

#include "base/map.h"
#include "base/str.h"

#include <pthread.h>

struct entry {
    struct hmap_node node;
    struct list used; /* The latest first. */
    struct dns_key key;
    struct blob *message;
    uint64_t stored_ms;
    uint32_t ttl_s;
};

struct dns_cache {
    pthread_mutex_t lock;
    struct hmap entries;
    struct list used;
    size_t bytes, max_bytes;
};

bool dns_key_equal(const struct dns_key *a, const struct dns_key *b)
{
    return a->type == b->type && a->dnssec_ok == b->dnssec_ok && a->name.size == b->name.size &&
           memcmp(a->name.wire, b->name.wire, a->name.size) == 0;
}

uint32_t dns_key_hash(const struct dns_key *k)
{
    return hash32(k->name.wire, k->name.size) ^ (uint32_t) k->type * 0x9e3779b1u ^ k->dnssec_ok;
}

struct dns_cache *dns_cache_new(size_t max_bytes)
{
    struct dns_cache *c = NEW(struct dns_cache);
    pthread_mutex_init(&c->lock, NULL);
    hmap_init(&c->entries);
    list_init(&c->used);
    c->max_bytes = max_bytes;
    return c;
}

static size_t entry_bytes(const struct entry *en)
{
    return sizeof *en + sizeof *en->message + en->message->size;
}

static void drop(struct dns_cache *c, struct entry *en)
{
    c->bytes -= entry_bytes(en);
    hmap_remove(&c->entries, &en->node);
    list_remove(&en->used);
    blob_unref(en->message);
    free(en);
}

struct dns_cache *dns_cache_free(struct dns_cache *c)
{
    if (c) {
        struct entry *en;
        LIST_FOREACH (en, struct entry, used, &c->used) {
            drop(c, en);
        }
        hmap_done(&c->entries);
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}

static struct entry *find(const struct dns_cache *c, const struct dns_key *k)
{
    struct entry *en;
    HMAP_FOREACH_WITH_HASH (en, struct entry, node, dns_key_hash(k), &c->entries) {
        if (dns_key_equal(&en->key, k)) {
            return en;
        }
    }
    return NULL;
}

void dns_cache_put(struct dns_cache *c, const struct dns_key *k, struct blob *message,
                   uint32_t ttl_s, uint64_t now_ms)
{
    pthread_mutex_lock(&c->lock);
    struct entry *en = find(c, k);
    if (en) {
        drop(c, en);
    }
    en = NEW(struct entry);
    en->key = *k;
    en->message = blob_ref(message);
    en->stored_ms = now_ms;
    en->ttl_s = ttl_s;
    hmap_insert(&c->entries, &en->node, dns_key_hash(k));
    list_push_front(&c->used, &en->used);
    c->bytes += entry_bytes(en);
    while (c->bytes > c->max_bytes) {
        drop(c, CONTAINER_OF(c->used.prev, struct entry, used));
    }
    pthread_mutex_unlock(&c->lock);
}

bool dns_cache_get(struct dns_cache *c, const struct dns_key *k, uint64_t now_ms, bool stale,
                   struct dns_cached *ret)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    struct entry *en = find(c, k);
    /* A reader's clock may be slightly behind the writer's. */
    uint64_t age_s = en && now_ms > en->stored_ms ? (now_ms - en->stored_ms) / 1000 : 0;
    if (en && (age_s < en->ttl_s || (stale && age_s < en->ttl_s + DNS_CACHE_STALE_S))) {
        ret->message = blob_ref(en->message);
        ret->age_s = (uint32_t) age_s;
        ret->stale = age_s >= en->ttl_s;
        list_remove(&en->used);
        list_push_front(&c->used, &en->used);
        found = true;
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

size_t dns_cache_bytes(struct dns_cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t n = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return n;
}

size_t dns_cache_count(struct dns_cache *c)
{
    pthread_mutex_lock(&c->lock);
    size_t n = c->entries.n;
    pthread_mutex_unlock(&c->lock);
    return n;
}

uint32_t dns_message_ttl(const struct dns_reader *message)
{
    struct dns_reader r = *message;
    struct dns_record rec;
    unsigned rcode = r.flags & DNS_RCODE;
    uint32_t ttl = DNS_CACHE_TTL_MAX, negative = 0;
    bool answered = false;
    if (rcode != DNS_NOERROR && rcode != DNS_NXDOMAIN) {
        return 0;
    }
    while (dns_reader_next(&r, &rec) > 0) {
        if (rec.type == DNS_OPT) {
            continue;
        }
        if (rec.section == DNS_ANSWER) {
            answered = answered || rec.type == r.type || r.type == DNS_ANY;
            ttl = MIN(ttl, rec.ttl);
        } else if (rec.section == DNS_AUTHORITY && rec.type == DNS_SOA && rec.rdata_size >= 22) {
            uint32_t minimum = dns_get32(r.data + rec.rdata + rec.rdata_size - 4);
            negative = MIN(MIN(rec.ttl, minimum), DNS_CACHE_NEGATIVE_MAX);
        }
    }
    /* Without a SOA there is no TTL for the negative answer (RFC 2308, 5). */
    return rcode == DNS_NOERROR && answered ? ttl : MIN(ttl, negative);
}
