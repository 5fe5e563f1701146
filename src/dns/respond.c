/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/respond.h"

#include "base/str.h"

#define HINFO_TTL 3789 /* The TTL in the example of RFC 8482. */
#define LOOPBACK 127u

/* Whether the client may have names looked up at other servers. */
static bool may_recurse(const struct dns_responder *r, uint32_t client)
{
    return r->recurse_all || client >> 24 == LOOPBACK || dns_zone_is_own(r->zone, client);
}

static size_t limit_of(const struct dns_request *rq, const struct dns_query *q, bool trusted)
{
    if (rq->tcp) {
        return DNS_MESSAGE_MAX;
    }
    return trusted ? MIN(q->udp_size, DNS_UDP_EDNS) : DNS_UDP_PLAIN;
}

static size_t refuse(struct dns_writer *w, unsigned rcode)
{
    dns_writer_reset(w);
    return dns_writer_finish(w, 0, rcode);
}

/* The name exists; the answer to ANY does not list its types. */
static void answer_any(struct dns_writer *w)
{
    dns_writer_begin(w, NULL, DNS_HINFO, HINFO_TTL);
    dns_writer_bytes(w, "\7RFC8482\0", 9);
    dns_writer_end(w);
}

/* Appends the records of a forwarded answer. */
static int append(struct dns_writer *w, const struct dns_cached *c, unsigned *ret_rcode)
{
    struct dns_reader r;
    struct dns_record rec;
    int more = dns_reader_init(&r, (const uint8_t *) c->message->data, c->message->size);
    if (more < 0) {
        return more;
    }
    while ((more = dns_reader_next(&r, &rec)) > 0) {
        bool truncated = w->truncated;
        uint32_t ttl = c->stale ? DNS_CACHE_STALE_TTL : rec.ttl > c->age_s ? rec.ttl - c->age_s : 0;
        w->section = rec.section;
        if (dns_copy_record(w, &r, &rec, ttl) == -ENOBUFS && rec.section == DNS_ADDITIONAL) {
            w->truncated = truncated; /* Nobody needs these. */
        }
    }
    *ret_rcode = r.flags & DNS_RCODE;
    return more;
}

/* Finds the forwarded answer: in the request, or in the cache. */
static bool find_answer(const struct dns_responder *r, const struct dns_request *rq,
                        const struct dns_key *k, struct dns_cached *ret)
{
    struct dns_reader about;
    if (rq->answer) {
        const struct blob *m = rq->answer->message;
        if (dns_reader_init(&about, (const uint8_t *) m->data, m->size) == 0 &&
            about.type == k->type && dns_name_equal(&about.question, &k->name)) {
            *ret = *rq->answer;
            blob_ref(ret->message);
            return true;
        }
    }
    return dns_cache_get(r->cache, k, rq->now_ms, rq->asked, ret);
}

/* Names of one label are not forwarded: neither the cluster nor public name servers have them. */
static bool answer_special(struct dns_writer *w, const struct dns_query *q, unsigned *ret_rcode)
{
    static const uint8_t localhost[] = "\11localhost";
    static const uint8_t six[16] = {[15] = 1};
    bool address = q->type == DNS_A || q->type == DNS_AAAA;
    *ret_rcode = DNS_NOERROR;
    if (q->n_labels >= 1 && q->name.size >= sizeof localhost &&
        memcmp(q->name.wire + q->name.size - sizeof localhost, localhost, sizeof localhost) == 0 &&
        q->label[q->n_labels - 1] == q->name.size - sizeof localhost) {
        if (address) { /* RFC 6761, 6.3 */
            dns_writer_begin(w, NULL, q->type, DNS_TTL);
            if (q->type == DNS_A) {
                dns_writer_u32(w, LOOPBACK << 24 | 1);
            } else {
                dns_writer_bytes(w, six, sizeof six);
            }
            dns_writer_end(w);
        }
        return true;
    }
    if (q->n_labels == 1 && address) {
        *ret_rcode = DNS_NXDOMAIN;
        return true;
    }
    return false;
}

static enum dns_reply elsewhere(const struct dns_responder *r, struct dns_counters *c,
                                const struct dns_request *rq, struct dns_writer *w,
                                struct dns_lookup *found, struct dns_key *ask, size_t *ret_size)
{
    const struct dns_query *q = w->query;
    bool chain = w->counts[DNS_ANSWER] > 0;
    unsigned rcode;
    if (!chain && answer_special(w, q, &rcode)) {
        *ret_size = dns_writer_finish(w, DNS_RA, rcode);
        return DNS_SEND;
    }
    if (!r->forwards || !may_recurse(r, rq->client) || !(q->flags & DNS_RD)) {
        /* The client may continue from the part of the chain that is known. */
        *ret_size = chain && !found->searched ? dns_writer_finish(w, DNS_AA, DNS_NOERROR)
                                              : refuse(w, DNS_REFUSED);
        return DNS_SEND;
    }
    struct dns_cached answer;
    *ask = (struct dns_key){
        .name = found->target, .type = q->type, .dnssec_ok = q->edns && q->dnssec_ok};
    if (!find_answer(r, rq, ask, &answer)) {
        if (!rq->asked) {
            dns_count(c, DNS_COUNT_FORWARDED);
            return DNS_ASK;
        }
        dns_writer_reset(w);
        *ret_size = dns_writer_finish(w, DNS_RA, DNS_SERVFAIL);
        return DNS_SEND;
    }
    if (!rq->asked) {
        dns_count(c, DNS_COUNT_CACHED);
    }
    uint16_t flags = DNS_RA;
    if (append(w, &answer, &rcode) < 0) {
        dns_writer_reset(w);
        rcode = DNS_SERVFAIL;
    } else if (rcode == DNS_NXDOMAIN && found->searched) {
        dns_writer_reset(w);
        dns_zone_deny(r->zone, w);
        flags |= DNS_AA;
    }
    blob_unref(answer.message);
    *ret_size = dns_writer_finish(w, flags, rcode);
    return DNS_SEND;
}

static enum dns_reply respond(const struct dns_responder *r, struct dns_counters *c,
                              const struct dns_request *rq, const struct dns_query *q, uint8_t *out,
                              size_t *ret_size, struct dns_key *ret_ask)
{
    struct dns_writer w;
    struct dns_lookup found;
    bool trusted = may_recurse(r, rq->client);
    dns_writer_answer(&w, q, rq->data + DNS_HEADER, out, limit_of(rq, q, trusted));
    if (q->edns_version) {
        *ret_size = refuse(&w, DNS_BADVERS);
        return DNS_SEND;
    }
    if (q->class != DNS_CLASS_IN || q->type == DNS_AXFR || q->type == DNS_IXFR ||
        q->type == DNS_OPT) {
        *ret_size = refuse(&w, DNS_REFUSED);
        return DNS_SEND;
    }
    dns_zone_answer(r->zone, rq->client, rq->turn, &w, &found);
    if (q->type == DNS_ANY) {
        bool exists = !found.elsewhere && found.rcode == DNS_NOERROR;
        if (exists) {
            dns_writer_reset(&w);
            answer_any(&w);
        }
        *ret_size =
            found.elsewhere ? refuse(&w, DNS_REFUSED) : dns_writer_finish(&w, DNS_AA, found.rcode);
        return DNS_SEND;
    }
    if (found.elsewhere) {
        return elsewhere(r, c, rq, &w, &found, ret_ask, ret_size);
    }
    dns_count(c, DNS_COUNT_CLUSTER);
    *ret_size = dns_writer_finish(
        &w, (found.authoritative ? DNS_AA : 0) | (r->forwards && trusted ? DNS_RA : 0),
        found.rcode);
    return DNS_SEND;
}

enum dns_reply dns_respond_parsed(const struct dns_responder *r, struct dns_counters *c,
                                  const struct dns_request *rq, int parsed,
                                  const struct dns_query *q, uint8_t *out, size_t *ret_size,
                                  struct dns_key *ret_ask)
{
    enum dns_reply reply = DNS_SEND;
    if (!rq->asked) {
        dns_count(c, rq->tcp ? DNS_COUNT_TCP : DNS_COUNT_UDP);
    }
    if (parsed == -ENOMSG) {
        dns_count(c, DNS_COUNT_DROPPED);
        return DNS_SILENCE;
    }
    if (parsed < 0) {
        dns_write_refusal(q, parsed == -EOPNOTSUPP ? DNS_NOTIMP : DNS_FORMERR, out);
        *ret_size = DNS_HEADER;
    } else {
        reply = respond(r, c, rq, q, out, ret_size, ret_ask);
    }
    if (reply == DNS_SEND) {
        uint16_t flags = dns_get16(out + 2);
        dns_count(c, DNS_COUNT_RCODE + MIN(flags & DNS_RCODE, DNS_REFUSED));
        if (flags & DNS_TC) {
            dns_count(c, DNS_COUNT_TRUNCATED);
        }
    }
    return reply;
}

enum dns_reply dns_respond(const struct dns_responder *r, struct dns_counters *c,
                           const struct dns_request *rq, uint8_t *out, size_t *ret_size,
                           struct dns_key *ret_ask)
{
    struct dns_query q;
    int parsed = dns_query_parse(rq->data, rq->size, &q);
    return dns_respond_parsed(r, c, rq, parsed, &q, out, ret_size, ret_ask);
}
