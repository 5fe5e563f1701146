/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "dns/addresses.h"

#define MESSAGE_MAX 65535

/* A message with a question for "a.test" and answers of the test's choice. */
struct message {
    uint8_t bytes[MESSAGE_MAX];
    size_t size;
};

static void put(struct message *m, const void *bytes, size_t size)
{
    assert_true(m->size + size <= sizeof m->bytes);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void put16(struct message *m, unsigned v)
{
    const uint8_t b[] = {(uint8_t) (v >> 8), (uint8_t) v};
    put(m, b, sizeof b);
}

static void put_name(struct message *m, const char *name)
{
    struct dns_name n;
    assert_int_equal(dns_name_parse(name, &n), 0);
    put(m, n.wire, n.size);
}

static void begin(struct message *m, unsigned rcode)
{
    m->size = 0;
    put16(m, 1);
    put16(m, 0x8180 | rcode);
    put16(m, 1);
    put16(m, 0);
    put16(m, 0);
    put16(m, 0);
    put_name(m, "a.test");
    put16(m, DNS_A);
    put16(m, 1);
}

static void add(struct message *m, const char *owner, unsigned type, unsigned ttl)
{
    unsigned answers = (unsigned) (m->bytes[6] << 8 | m->bytes[7]) + 1;
    m->bytes[6] = (uint8_t) (answers >> 8);
    m->bytes[7] = (uint8_t) answers;
    put_name(m, owner);
    put16(m, type);
    put16(m, 1);
    put16(m, ttl >> 16);
    put16(m, ttl & 0xffff);
}

static void add_address(struct message *m, const char *owner, uint32_t ip, unsigned ttl)
{
    add(m, owner, DNS_A, ttl);
    put16(m, 4);
    put16(m, ip >> 16);
    put16(m, ip & 0xffff);
}

static void add_alias(struct message *m, const char *owner, const char *of, unsigned ttl)
{
    struct dns_name n;
    assert_int_equal(dns_name_parse(of, &n), 0);
    add(m, owner, DNS_CNAME, ttl);
    put16(m, n.size);
    put(m, n.wire, n.size);
}

static int read_message(const struct message *m, struct dns_addresses *ret)
{
    struct err e = {0};
    int r = dns_addresses_read(m->bytes, m->size, ret, &e);
    assert_int_equal(r < 0, e.text[0] != '\0');
    return r;
}

static void addresses_are_sorted_and_the_smallest_ttl_counts(void **state)
{
    static struct message m;
    static struct dns_addresses a;
    begin(&m, DNS_NOERROR);
    add_address(&m, "A.test", 0xc0000202, 300);
    add_address(&m, "a.test", 0xc0000201, 60);
    add_address(&m, "a.test", 0xc0000202, 300);
    add_address(&m, "other.test", 0xc0000203, 1);
    assert_int_equal(read_message(&m, &a), 0);
    assert_int_equal(a.n, 2);
    assert_int_equal(a.ip[0], 0xc0000201);
    assert_int_equal(a.ip[1], 0xc0000202);
    assert_int_equal(a.ttl_s, 60);
}

static void aliases_are_followed_in_any_order(void **state)
{
    static struct message m;
    static struct dns_addresses a;
    begin(&m, DNS_NOERROR);
    add_address(&m, "c.test", 0xc0000201, 60);
    add_alias(&m, "b.test", "c.test", 7);
    add_alias(&m, "a.test", "b.test", 90);
    assert_int_equal(read_message(&m, &a), 0);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.ttl_s, 7);
}

static void what_is_no_address_is_an_error(void **state)
{
    static struct message m;
    static struct dns_addresses a;
    begin(&m, DNS_NXDOMAIN);
    assert_int_equal(read_message(&m, &a), -ENOENT);
    begin(&m, 2);
    assert_int_equal(read_message(&m, &a), -EREMOTEIO);
    begin(&m, DNS_NOERROR);
    assert_int_equal(read_message(&m, &a), -ENOENT);
    add_alias(&m, "a.test", "b.test", 1);
    assert_int_equal(read_message(&m, &a), -ENOENT);
    add_alias(&m, "b.test", "a.test", 1);
    assert_int_equal(read_message(&m, &a), -EBADMSG);
    begin(&m, DNS_NOERROR);
    add(&m, "a.test", DNS_A, 1);
    put16(&m, 2);
    put16(&m, 1);
    assert_int_equal(read_message(&m, &a), -EBADMSG);
    m.size--;
    assert_int_equal(read_message(&m, &a), -EBADMSG);
}

static void too_many_addresses_are_an_error(void **state)
{
    static struct message m;
    static struct dns_addresses a;
    begin(&m, DNS_NOERROR);
    for (uint32_t i = 0; i < DNS_ADDRESSES_MAX; i++) {
        add_address(&m, "a.test", 0x0a000000 + i, 1);
    }
    assert_int_equal(read_message(&m, &a), 0);
    assert_int_equal(a.n, DNS_ADDRESSES_MAX);
    add_address(&m, "a.test", 0x0b000000, 1);
    assert_int_equal(read_message(&m, &a), -E2BIG);
}

/* The cases of OpenShift's own test, and a TTL of 0. */
static void a_name_is_looked_up_again_as_in_openshift(void **state)
{
    static const uint32_t rows[][2] = {{0, 1},       {1, 1},       {2, 2},      {27, 27},
                                       {29, 29},     {30, 30},     {31, 30},    {1799, 30},
                                       {1800, 1800}, {1801, 1800}, {3600, 1800}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(dns_addresses_refresh_s(rows[i][0]), rows[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_sorted_and_the_smallest_ttl_counts),
        cmocka_unit_test(aliases_are_followed_in_any_order),
        cmocka_unit_test(what_is_no_address_is_an_error),
        cmocka_unit_test(too_many_addresses_are_an_error),
        cmocka_unit_test(a_name_is_looked_up_again_as_in_openshift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
