/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/dns.h"

/* "web.a" IN A with an OPT record. */
static const uint8_t plain[] = {
    0x12, 0x34, 0x01, 0x00, 0,    1,   0, 0,    0, 0, 0, 1, /* header */
    3,    'W',  'e',  'B',  1,    'a', 0, 0,    1, 0, 1,    /* question */
    0,    0,    41,   0x10, 0x00, 0,   0, 0x80, 0, 0, 0,    /* OPT: 4096, DO */
};

static void a_query_is_taken_apart(void **state)
{
    struct dns_query q;
    assert_int_equal(dns_query_parse(plain, sizeof plain, &q), 0);
    assert_int_equal(q.id, 0x1234);
    assert_int_equal(q.flags, DNS_RD);
    assert_int_equal(q.type, DNS_A);
    assert_int_equal(q.class, DNS_CLASS_IN);
    assert_int_equal(q.n_labels, 2);
    assert_int_equal(q.label[1], 4);
    assert_int_equal(q.name.size, 7);
    assert_memory_equal(q.name.wire, "\3web\1a", 7);
    assert_int_equal(q.question_size, 11);
    assert_true(q.edns && q.dnssec_ok);
    assert_int_equal(q.udp_size, 4096);
}

/* Every byte that is missing or too much, and every wrong field, is an error or silence. */
static void malformed_queries_are_refused(void **state)
{
    struct dns_query q;
    for (size_t n = 0; n < sizeof plain; n++) {
        assert_int_equal(dns_query_parse(plain, n, &q), n < DNS_HEADER ? -ENOMSG : -EBADMSG);
    }
    uint8_t more[sizeof plain + 1] = {0};
    memcpy(more, plain, sizeof plain);
    assert_int_equal(dns_query_parse(more, sizeof more, &q), -EBADMSG);
    static const struct {
        size_t at;
        uint8_t value;
        int error;
    } changes[] = {
        {2, 0x81, -ENOMSG},              /* An answer. */
        {2, 0x29, -EOPNOTSUPP},          /* UPDATE */
        {5, 0, -EBADMSG},                /* No question, */
        {5, 2, -EBADMSG},                /* or two. */
        {7, 1, -EBADMSG},                /* An answer section. */
        {9, 1, -EBADMSG},                /* An authority section. */
        {11, 2, -EBADMSG},               /* A record that is not there. */
        {12, 0xc0, -EBADMSG},            /* A pointer in the question. */
        {12, 0x40, -EBADMSG},            /* A label of an unknown kind. */
        {12, 63, -EBADMSG},              /* A label beyond the end. */
        {23, 1, -EBADMSG},               /* OPT that is not the root's. */
        {sizeof plain - 1, 1, -EBADMSG}, /* Options beyond the end. */
    };
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        uint8_t bytes[sizeof plain];
        memcpy(bytes, plain, sizeof plain);
        bytes[changes[i].at] = changes[i].value;
        assert_int_equal(dns_query_parse(bytes, sizeof bytes, &q), changes[i].error);
    }
}

static void names_are_read_and_written(void **state)
{
    struct dns_name n, m;
    char text[DNS_NAME_TEXT];
    assert_int_equal(dns_name_parse("Web.Default.", &n), 0);
    assert_memory_equal(n.wire, "\3web\7default", 13);
    assert_int_equal(dns_name_parse("web.default", &m), 0);
    assert_true(dns_name_equal(&n, &m));
    assert_int_equal(dns_name_parse(".", &n), 0);
    assert_int_equal(n.size, 1);
    dns_name_format(&n, text);
    assert_string_equal(text, ".");
    n = (struct dns_name){.size = 6, .wire = {4, 'a', '.', '\\', 1}};
    dns_name_format(&n, text);
    assert_string_equal(text, "a\\.\\\\\\001.");
    assert_int_equal(dns_name_parse("", &n), 0);
    static const char *const bad[] = {
        "a..b", ".a", "..", "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(dns_name_parse(bad[i], &n), -EINVAL);
    }
}

static void the_longest_name_is_one_and_no_longer(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct dns_name n, m;
    for (int i = 0; i < 127; i++) {
        strbuf_adds(&b, i ? ".a" : "a");
    }
    assert_int_equal(dns_name_parse(b.data, &n), 0);
    assert_int_equal(n.size, 255);
    uint8_t query[DNS_HEADER + DNS_NAME_MAX + 4 + DNS_OPT_SIZE];
    struct dns_query q;
    size_t size = dns_query_write(7, &n, DNS_A, true, false, query);
    assert_int_equal(dns_query_parse(query, size, &q), 0);
    assert_int_equal(q.n_labels, 127);
    assert_int_equal(dns_name_parse("b", &m), 0);
    assert_int_equal(dns_name_join(&m, &n, &m), -ENAMETOOLONG);
    strbuf_adds(&b, ".a");
    assert_int_equal(dns_name_parse(b.data, &n), -EINVAL);
}

static void pointers_lead_backwards_or_nowhere(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t size, at;
        int result;
    } rows[] = {
        {{1, 'a', 0, 0xc0, 12}, 5, 15, 0},
        {{0xc0, 12}, 2, 12, -EBADMSG},           /* To itself. */
        {{0xc0, 14, 0xc0, 12}, 4, 12, -EBADMSG}, /* Forwards. */
        {{0xc0, 14, 0xc0, 12}, 4, 14, -EBADMSG}, /* There and back. */
        {{1, 'a', 0xc0, 12}, 4, 12, -EBADMSG},   /* Into itself. */
        {{0, 0xc0, 0}, 3, 13, -EBADMSG},         /* Into the header. */
        {{0, 0xc0}, 2, 13, -EBADMSG},            /* Half a pointer. */
        {{0x80, 0}, 2, 12, -EBADMSG},
        {{3, 'a'}, 2, 12, -EBADMSG},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint8_t message[DNS_HEADER + 8] = {0};
        memcpy(message + DNS_HEADER, rows[i].bytes, rows[i].size);
        struct dns_reader r;
        struct dns_name n;
        size_t end;
        assert_int_equal(dns_reader_init(&r, message, DNS_HEADER + rows[i].size), 0);
        assert_int_equal(dns_reader_name(&r, rows[i].at, &end, &n), rows[i].result);
    }
}

/* ---- writing ---- */

static void begin(struct dns_writer *w, struct dns_query *q, uint8_t *buf, size_t limit)
{
    assert_int_equal(dns_query_parse(plain, sizeof plain, q), 0);
    dns_writer_answer(w, q, plain + DNS_HEADER, buf, limit);
}

static void an_answer_keeps_the_spelling_and_compresses(void **state)
{
    uint8_t buf[DNS_UDP_PLAIN];
    struct dns_writer w;
    struct dns_query q;
    struct dns_name target;
    begin(&w, &q, buf, sizeof buf);
    assert_int_equal(dns_name_parse("x.a", &target), 0);
    dns_writer_begin(&w, NULL, DNS_CNAME, 30);
    dns_writer_name(&w, &target, true);
    assert_true(dns_writer_end(&w));
    dns_writer_begin(&w, &target, DNS_A, 30);
    dns_writer_u32(&w, 0x0a800005);
    assert_true(dns_writer_end(&w));
    size_t size = dns_writer_finish(&w, DNS_AA, DNS_NOERROR);
    static const uint8_t expected[] = {
        0x12, 0x34, 0x85, 0x00, 0,    1,   0, 2,    0, 0,  0, 1,                    /* header */
        3,    'W',  'e',  'B',  1,    'a', 0, 0,    1, 0,  1,                       /* question */
        0xc0, 12,   0,    5,    0,    1,   0, 0,    0, 30, 0, 4, 1,  'x', 0xc0, 16, /* CNAME */
        0xc0, 35,   0,    1,    0,    1,   0, 0,    0, 30, 0, 4, 10, 128, 0,    5,  /* A */
        0,    0,    41,   0x04, 0xd0, 0,   0, 0x80, 0, 0,  0,
    };
    assert_int_equal(size, sizeof expected);
    assert_memory_equal(buf, expected, size);
}

/* Only a name that was written before is pointed to, not one of the same shape. */
static void names_that_differ_are_written_out(void **state)
{
    static const char *const names[] = {"wex.a", "web.b", "eb.a", "webs.a"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint8_t buf[DNS_UDP_PLAIN];
        struct dns_writer w;
        struct dns_query q;
        struct dns_name target;
        struct dns_reader r;
        struct dns_record rec;
        struct dns_name read;
        size_t end;
        begin(&w, &q, buf, sizeof buf);
        assert_int_equal(dns_name_parse(names[i], &target), 0);
        dns_writer_begin(&w, NULL, DNS_CNAME, 30);
        dns_writer_name(&w, &target, true);
        assert_true(dns_writer_end(&w));
        size_t size = dns_writer_finish(&w, DNS_AA, DNS_NOERROR);
        assert_int_equal(dns_reader_init(&r, buf, size), 0);
        assert_int_equal(dns_reader_next(&r, &rec), 1);
        assert_int_equal(dns_reader_name(&r, rec.rdata, &end, &read), 0);
        assert_true(dns_name_equal(&read, &target));
    }
}

static void a_record_that_does_not_fit_is_left_out_whole(void **state)
{
    CLEANUP_FREE uint8_t *buf = xmalloc(DNS_UDP_PLAIN); /* The sanitizer sees what is beyond. */
    struct dns_writer w;
    struct dns_query q;
    struct dns_name n;
    begin(&w, &q, buf, DNS_UDP_PLAIN);
    assert_int_equal(dns_name_parse("other.name.that.is.new", &n), 0);
    unsigned written = 0;
    for (unsigned i = 0; i < 100; i++) {
        dns_writer_begin(&w, NULL, DNS_A, 30);
        dns_writer_u32(&w, i);
        written += dns_writer_end(&w);
    }
    dns_writer_begin(&w, &n, DNS_SRV, 30);
    dns_writer_name(&w, &n, false);
    assert_false(dns_writer_end(&w));
    assert_int_equal(w.counts[DNS_ANSWER], written);
    size_t size = dns_writer_finish(&w, 0, DNS_NOERROR);
    assert_true(size <= DNS_UDP_PLAIN);
    struct dns_reader r;
    struct dns_record rec;
    assert_int_equal(dns_reader_init(&r, buf, size), 0);
    assert_true(r.flags & DNS_TC);
    unsigned seen = 0;
    while (dns_reader_next(&r, &rec) > 0) {
        seen += rec.type == DNS_A;
    }
    assert_int_equal(seen, written);
    dns_writer_reset(&w);
    assert_int_equal(dns_writer_finish(&w, 0, DNS_BADVERS), 12 + 11 + 11);
    assert_int_equal(buf[3] & DNS_RCODE, 0);
    assert_int_equal(buf[12 + 11 + 5], 1); /* The upper bits of 16. */
}

static void copied_records_have_their_names_anew(void **state)
{
    /* "a" MX 5 "m" + pointer to the question; SRV whose target is a pointer; NAPTR; TXT. */
    static const uint8_t message[] = {
        0,    0,    0x80, 0,    0,  1, 0,  4, 0, 0,    0, 0,  1, 'a', 0, 0,   15,   0,    1,
        0xc0, 12,   0,    15,   0,  1, 0,  0, 0, 9,    0, 6,  0, 5,   1, 'm', 0xc0, 12,   0xc0,
        12,   0,    33,   0,    1,  0, 0,  0, 9, 0,    8, 0,  1, 0,   2, 0,   3,    0xc0, 12,
        0xc0, 12,   0,    35,   0,  1, 0,  0, 0, 9,    0, 10, 0, 1,   0, 2,   1,    'u',  0,
        0,    0xc0, 12,   0xc0, 12, 0, 16, 0, 1, 0x80, 0, 0,  9, 0,   3, 2,   'h',  'i',
    };
    static const uint8_t query[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 15, 0, 1};
    uint8_t buf[DNS_UDP_PLAIN];
    struct dns_query q;
    struct dns_writer w;
    struct dns_reader r;
    struct dns_record rec;
    assert_int_equal(dns_query_parse(query, sizeof query, &q), 0);
    dns_writer_answer(&w, &q, query + DNS_HEADER, buf, sizeof buf);
    assert_int_equal(dns_reader_init(&r, message, sizeof message), 0);
    while (dns_reader_next(&r, &rec) > 0) {
        assert_int_equal(dns_copy_record(&w, &r, &rec, rec.ttl), 0);
    }
    size_t size = dns_writer_finish(&w, 0, DNS_NOERROR);
    static const uint8_t expected[] = {
        0,  0,    0x81, 0, 0,  1, 0, 4, 0, 0,  0, 0, 1, 'a', 0,   0,    15,  0,    1,    0xc0,
        12, 0,    15,   0, 1,  0, 0, 0, 9, 0,  6, 0, 5, 1,   'm', 0xc0, 12,  0xc0, 12,   0,
        33, 0,    1,    0, 0,  0, 9, 0, 9, 0,  1, 0, 2, 0,   3,   1,    'a', 0,    0xc0, 12,
        0,  35,   0,    1, 0,  0, 0, 9, 0, 11, 0, 1, 0, 2,   1,   'u',  0,   0,    1,    'a',
        0,  0xc0, 12,   0, 16, 0, 1, 0, 0, 0,  0, 0, 3, 2,   'h', 'i', /* A TTL above 2^31 is 0. */
    };
    assert_int_equal(size, sizeof expected);
    assert_memory_equal(buf, expected, size);
}

/* A name in the data that goes beyond the data. */
static void a_record_with_bad_data_is_not_copied(void **state)
{
    static const uint8_t message[] = {
        0, 0, 0x80, 0, 0, 1, 0, 1, 0, 0, 0,   1, 1, 'a', 0, 0, 15, 0, 1, 0xc0, 12, 0,
        5, 0, 1,    0, 0, 0, 9, 0, 1, 1, 'b', 0, 0, 1,   0, 1, 0,  0, 0, 9,    0,  0,
    };
    uint8_t buf[DNS_UDP_PLAIN];
    struct dns_query q;
    struct dns_writer w;
    struct dns_reader r;
    struct dns_record rec;
    begin(&w, &q, buf, sizeof buf);
    size_t before = w.size;
    assert_int_equal(dns_reader_init(&r, message, sizeof message), 0);
    assert_int_equal(dns_reader_next(&r, &rec), 1);
    assert_int_equal(dns_copy_record(&w, &r, &rec, 9), -EBADMSG);
    assert_int_equal(w.size, before);
    assert_int_equal(w.counts[DNS_ANSWER], 0);
}

/* ---- hostile ---- */

static uint32_t random_next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Ten thousand damaged queries: each is refused, or is a query all the same, which can
 * be answered. */
static void ten_thousand_damaged_queries_do_no_harm(void **state)
{
    uint32_t seed = 0x2545f491;
    unsigned refused = 0, taken = 0, silent = 0;
    for (unsigned i = 0; i < 10000; i++) {
        size_t size = random_next(&seed) % (sizeof plain + 1);
        CLEANUP_FREE uint8_t *bytes = xmalloc(size + 1);
        memcpy(bytes, plain, size);
        for (unsigned k = random_next(&seed) % 4 + 1; k && size; k--) {
            bytes[random_next(&seed) % size] = (uint8_t) random_next(&seed);
        }
        struct dns_query q;
        struct dns_writer w;
        uint8_t buf[DNS_UDP_PLAIN];
        int r = dns_query_parse(bytes, size, &q);
        assert_true(r == 0 || r == -EBADMSG || r == -ENOMSG || r == -EOPNOTSUPP);
        refused += r == -EBADMSG || r == -EOPNOTSUPP;
        silent += r == -ENOMSG;
        if (r == 0) {
            taken++;
            dns_writer_answer(&w, &q, bytes + DNS_HEADER, buf, sizeof buf);
            dns_writer_begin(&w, NULL, DNS_A, 1);
            dns_writer_u32(&w, 1);
            assert_true(dns_writer_end(&w));
            struct dns_reader reader;
            assert_int_equal(dns_reader_init(&reader, buf, dns_writer_finish(&w, 0, 0)), 0);
            assert_true(dns_name_equal(&reader.question, &q.name));
        } else if (r != -ENOMSG) {
            dns_write_refusal(&q, DNS_FORMERR, buf);
            assert_int_equal(dns_get16(buf), dns_get16(bytes));
        }
    }
    assert_true(refused > 1000 && silent > 1000 && taken > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_query_is_taken_apart),
        cmocka_unit_test(malformed_queries_are_refused),
        cmocka_unit_test(names_are_read_and_written),
        cmocka_unit_test(the_longest_name_is_one_and_no_longer),
        cmocka_unit_test(pointers_lead_backwards_or_nowhere),
        cmocka_unit_test(an_answer_keeps_the_spelling_and_compresses),
        cmocka_unit_test(names_that_differ_are_written_out),
        cmocka_unit_test(a_record_that_does_not_fit_is_left_out_whole),
        cmocka_unit_test(copied_records_have_their_names_anew),
        cmocka_unit_test(a_record_with_bad_data_is_not_copied),
        cmocka_unit_test(ten_thousand_damaged_queries_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
