/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "dns/cache.h"
#include "dns/resolv.h"

#include <stdio.h>

static struct dns_key key(const char *name, uint16_t type)
{
    struct dns_key k = {.type = type};
    assert_int_equal(dns_name_parse(name, &k.name), 0);
    return k;
}

static void put(struct dns_cache *c, const char *name, const char *text, uint32_t ttl_s,
                uint64_t now)
{
    struct dns_key k = key(name, DNS_A);
    CLEANUP(blob_unref) struct blob *b = blob_new(text, strlen(text));
    dns_cache_put(c, &k, b, ttl_s, now);
}

/* What is there for 'name', with its age: "text 3", "text 3 stale"; "": nothing.  Owned. */
static char *get(struct dns_cache *c, const char *name, uint64_t now, bool stale)
{
    struct dns_key k = key(name, DNS_A);
    struct dns_cached found;
    if (!dns_cache_get(c, &k, now, stale, &found)) {
        return xstrdup("");
    }
    char *text =
        xasprintf("%s %u%s", found.message->data, found.age_s, found.stale ? " stale" : "");
    blob_unref(found.message);
    return text;
}

#define EXPECT(c, name, now, stale, want)                  \
    do {                                                   \
        CLEANUP_FREE char *got = get(c, name, now, stale); \
        assert_string_equal(got, want);                    \
    } while (0)

static void answers_are_kept_for_their_time(void **state)
{
    CLEANUP(dns_cache_free) struct dns_cache *c = dns_cache_new(100000);
    put(c, "a.test", "one", 10, 5000);
    EXPECT(c, "a.test", 5000, false, "one 0");
    EXPECT(c, "a.test", 4999, false, "one 0"); /* A clock that is a little behind. */
    EXPECT(c, "A.Test", 14999, false, "one 9");
    EXPECT(c, "a.test", 15000, false, "");
    EXPECT(c, "b.test", 5000, true, "");
    EXPECT(c, "a.test", 15000, true, "one 10 stale");
    EXPECT(c, "a.test", 5000 + (10 + DNS_CACHE_STALE_S) * UINT64_C(1000) - 1, true,
           "one 86409 stale");
    EXPECT(c, "a.test", 5000 + (10 + DNS_CACHE_STALE_S) * UINT64_C(1000), true, "");
    put(c, "a.test", "two", 10, 16000);
    EXPECT(c, "a.test", 16000, false, "two 0");
    assert_int_equal(dns_cache_count(c), 1);
    struct dns_key k = key("a.test", DNS_AAAA);
    struct dns_cached found;
    assert_false(dns_cache_get(c, &k, 16000, true, &found));
    k = key("a.test", DNS_A);
    k.dnssec_ok = true;
    assert_false(dns_cache_get(c, &k, 16000, true, &found));
}

static void the_memory_has_a_limit_and_what_is_used_stays(void **state)
{
    CLEANUP(dns_cache_free) struct dns_cache *c = dns_cache_new(20000);
    put(c, "kept.test", "kept", 1000, 0);
    for (unsigned i = 0; i < 500; i++) {
        CLEANUP_FREE char *name = xasprintf("n%u.test", i);
        put(c, name, "text", 1000, 0);
        EXPECT(c, "kept.test", 0, false, "kept 0");
        assert_true(dns_cache_bytes(c) <= 20000);
    }
    EXPECT(c, "n0.test", 0, true, "");
    EXPECT(c, "n499.test", 0, false, "text 0");
    assert_in_range(dns_cache_count(c), 10, 100);
    CLEANUP_FREE char *huge = xmalloc(30000);
    memset(huge, 'x', 29999);
    huge[29999] = '\0';
    put(c, "huge.test", huge, 1000, 0); /* Does not fit at all. */
    assert_int_equal(dns_cache_count(c), 0);
    assert_int_equal(dns_cache_bytes(c), 0);
}

/* ---- how long ---- */

enum { NONE, SOA = 1, CNAME = 2, ANSWER = 4 };

static uint32_t ttl_of(unsigned rcode, unsigned parts, uint32_t ttl, uint32_t minimum)
{
    static const uint8_t query[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1};
    uint8_t buf[DNS_UDP_PLAIN];
    struct dns_query q;
    struct dns_writer w;
    struct dns_reader r;
    assert_int_equal(dns_query_parse(query, sizeof query, &q), 0);
    dns_writer_answer(&w, &q, query + DNS_HEADER, buf, sizeof buf);
    if (parts & CNAME) {
        dns_writer_begin(&w, NULL, DNS_CNAME, 7);
        dns_writer_name(&w, &q.name, true);
        dns_writer_end(&w);
    }
    if (parts & ANSWER) {
        dns_writer_begin(&w, NULL, DNS_A, ttl);
        dns_writer_u32(&w, 1);
        dns_writer_end(&w);
    }
    w.section = DNS_AUTHORITY;
    if (parts & SOA) {
        dns_writer_begin(&w, NULL, DNS_SOA, ttl);
        dns_writer_name(&w, &q.name, true);
        dns_writer_name(&w, &q.name, true);
        for (uint32_t i = 0; i < 4; i++) {
            dns_writer_u32(&w, i);
        }
        dns_writer_u32(&w, minimum);
        dns_writer_end(&w);
    }
    assert_int_equal(dns_reader_init(&r, buf, dns_writer_finish(&w, 0, rcode)), 0);
    return dns_message_ttl(&r);
}

static void the_time_is_the_shortest_of_all_and_bounded(void **state)
{
    static const struct {
        unsigned rcode, parts;
        uint32_t ttl, minimum, kept;
    } rows[] = {
        {DNS_NOERROR, ANSWER, 60, 0, 60},
        {DNS_NOERROR, ANSWER | CNAME, 60, 0, 7},
        {DNS_NOERROR, ANSWER, 1000000, 0, DNS_CACHE_TTL_MAX},
        {DNS_NOERROR, ANSWER, 0, 0, 0},
        {DNS_NXDOMAIN, SOA, 60, 30, 30},
        {DNS_NXDOMAIN, SOA, 20, 30, 20},
        {DNS_NXDOMAIN, SOA, 86400, 86400, DNS_CACHE_NEGATIVE_MAX},
        {DNS_NXDOMAIN, NONE, 0, 0, 0}, /* Nobody said how long. */
        {DNS_NOERROR, SOA, 60, 30, 30},
        {DNS_NOERROR, CNAME | SOA, 60, 30, 7},
        {DNS_NOERROR, CNAME, 0, 0, 0},
        {DNS_SERVFAIL, ANSWER, 60, 0, 0},
        {DNS_REFUSED, SOA, 60, 30, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(ttl_of(rows[i].rcode, rows[i].parts, rows[i].ttl, rows[i].minimum),
                         rows[i].kept);
    }
}

/* ---- name servers ---- */

static char *servers_text(const struct dns_servers *s)
{
    struct strbuf b = STRBUF_INIT;
    for (size_t i = 0; i < s->n; i++) {
        char text[DNS_ENDPOINT_TEXT];
        dns_endpoint_format(&s->at[i], text);
        strbuf_addf(&b, "%s%s", i ? " " : "", text);
    }
    return strbuf_steal(&b);
}

static void resolv_conf_is_read_as_the_c_library_does(void **state)
{
    static const struct {
        const char *text, *servers;
    } rows[] = {
        {"", ""},
        {"nameserver 10.0.0.1\n", "10.0.0.1:53"},
        {"nameserver 10.0.0.1", "10.0.0.1:53"},
        {"# nameserver 10.0.0.1\n;nameserver 10.0.0.2\n  nameserver\t10.0.0.3 # here\r\n",
         "10.0.0.3:53"},
        {"nameserver fd00::1\nnameserver fe80::1%eth0\n", "[fd00::1]:53 [fe80::1]:53"},
        {"nameserver 10.0.0.1\nnameserver 10.0.0.1\nnameserver name\nnameservers 10.0.0.2\n",
         "10.0.0.1:53"},
        {"nameserver 10.0.0.256\nsearch nameserver 10.0.0.1\n", ""},
        {"nameserver 10.0.0.1;comment\n", "10.0.0.1:53"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct dns_servers s;
        dns_servers_read(rows[i].text, strlen(rows[i].text), &s);
        CLEANUP_FREE char *text = servers_text(&s);
        assert_string_equal(text, rows[i].servers);
    }
}

static void lists_of_servers_are_checked(void **state)
{
    struct dns_servers s;
    struct err e = {0};
    assert_int_equal(dns_servers_parse("10.0.0.1, 10.0.0.2:5353,[fd00::1]:5353 fd00::2", &s, &e),
                     0);
    CLEANUP_FREE char *text = servers_text(&s);
    assert_string_equal(text, "10.0.0.1:53 10.0.0.2:5353 [fd00::1]:5353 [fd00::2]:53");
    static const char *const bad[] = {"x",        "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:",
                                      "[fd00::1", "[fd00::1]x", "10.0.0.1,here"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(dns_servers_parse(bad[i], &s, &e), -EINVAL);
        assert_non_null(strstr(e.text, "is not an address of a name server"));
    }
    assert_int_equal(s.n, 4); /* Untouched. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_kept_for_their_time),
        cmocka_unit_test(the_memory_has_a_limit_and_what_is_used_stays),
        cmocka_unit_test(the_time_is_the_shortest_of_all_and_bounded),
        cmocka_unit_test(resolv_conf_is_read_as_the_c_library_does),
        cmocka_unit_test(lists_of_servers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
