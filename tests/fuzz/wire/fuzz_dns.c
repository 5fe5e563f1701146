/* SPDX-License-Identifier: Apache-2.0 */
/* DNS messages.  What parses as a query can be answered, and the answer reads back; records that can be copied read
 * back the same. */
#include "base/mem.h"
#include "base/str.h"
#include "wire/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void) 0 : abort())

static void check_name(const struct dns_name *n)
{
    char text[DNS_NAME_TEXT];
    struct dns_name again;
    CHECK(n->size >= 1 && n->wire[n->size - 1] == 0);
    dns_name_format(n, text);
    if (!strchr(text, '\\')) {
        CHECK(dns_name_parse(text, &again) == 0 && dns_name_equal(n, &again));
    }
}

static unsigned count_records(const uint8_t *data, size_t size)
{
    struct dns_reader r;
    struct dns_record rec;
    unsigned n = 0;
    int more;
    CHECK(dns_reader_init(&r, data, size) == 0);
    while ((more = dns_reader_next(&r, &rec)) > 0) {
        n++;
    }
    CHECK(more == 0);
    return n;
}

static void check_query(const uint8_t *data, size_t size)
{
    struct dns_query q;
    uint8_t refusal[DNS_HEADER];
    int r = dns_query_parse(data, size, &q);
    CHECK(r == 0 || r == -ENOMSG || r == -EBADMSG || r == -EOPNOTSUPP);
    if (r == -EBADMSG || r == -EOPNOTSUPP) {
        dns_write_refusal(&q, DNS_FORMERR, refusal);
        CHECK(refusal[0] == data[0] && refusal[1] == data[1]);
    }
    if (r < 0) {
        return;
    }
    check_name(&q.name);
    CLEANUP_FREE uint8_t *buf = xmalloc(DNS_UDP_PLAIN);
    struct dns_writer w;
    dns_writer_answer(&w, &q, data + DNS_HEADER, buf, DNS_UDP_PLAIN);
    unsigned n = 0;
    for (int i = 0; i < 30; i++) {
        dns_writer_begin(&w, i % 2 ? NULL : &q.name, DNS_CNAME, 1);
        dns_writer_name(&w, &q.name, i % 3);
        n += dns_writer_end(&w);
    }
    size_t out = dns_writer_finish(&w, 0, DNS_NOERROR);
    CHECK(out <= DNS_UDP_PLAIN);
    CHECK(count_records(buf, out) == n + q.edns);
}

static void check_message(const uint8_t *data, size_t size)
{
    static const uint8_t query[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};
    struct dns_reader r;
    struct dns_record rec;
    struct dns_query q;
    struct dns_writer w;
    if (dns_reader_init(&r, data, size) < 0) {
        return;
    }
    if (r.question.size) {
        check_name(&r.question);
    }
    CLEANUP_FREE uint8_t *buf = xmalloc(DNS_MESSAGE_MAX);
    CHECK(dns_query_parse(query, sizeof query, &q) == 0);
    dns_writer_answer(&w, &q, query + DNS_HEADER, buf, DNS_MESSAGE_MAX);
    unsigned n = 0;
    while (dns_reader_next(&r, &rec) > 0) {
        check_name(&rec.owner);
        CHECK((size_t) rec.rdata + rec.rdata_size <= size);
        w.section = rec.section;
        int copied = dns_copy_record(&w, &r, &rec, rec.ttl);
        CHECK(copied == 0 || copied == -EBADMSG || copied == -ENOBUFS);
        n += copied == 0;
    }
    size_t out = dns_writer_finish(&w, 0, DNS_NOERROR);
    CHECK(count_records(buf, out) == n);
    /* What we wrote can be copied, and comes to the same. */
    CLEANUP_FREE uint8_t *again = xmalloc(DNS_MESSAGE_MAX);
    CHECK(dns_reader_init(&r, buf, out) == 0);
    dns_writer_answer(&w, &q, query + DNS_HEADER, again, DNS_MESSAGE_MAX);
    while (dns_reader_next(&r, &rec) > 0) {
        w.section = rec.section;
        CHECK(dns_copy_record(&w, &r, &rec, rec.ttl) == 0);
    }
    CHECK(dns_writer_finish(&w, 0, DNS_NOERROR) == out && memcmp(buf, again, out) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_query(data, size);
    check_message(data, size);
    return 0;
}
