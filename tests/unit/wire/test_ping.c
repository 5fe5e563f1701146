/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ID 0x1234
#define IP 20

/* An IPv4 packet from 10.128.0.2 with 'size' bytes behind a header of 'words' words. */
static size_t packet(uint8_t *out, unsigned words, const uint8_t *payload, size_t size)
{
    memset(out, 0, 4 * words);
    out[0] = (uint8_t) (0x40 | words);
    out[9] = 1;
    memcpy(out + 12, (const uint8_t[]){10, 128, 0, 2, 10, 128, 0, 3}, 8);
    memcpy(out + 4 * words, payload, size);
    return 4 * words + size;
}

/* The reply to an echo request. */
static void make_reply(uint8_t *out, size_t size)
{
    ping_put(out, size, ID, 7);
    out[0] = 0;
}

static void a_request_is_as_the_rfc_says(void **state)
{
    uint8_t b[11];
    uint32_t sum = 0;
    ping_put(b, sizeof b, ID, 0x5678);
    assert_memory_equal(b, "\x08\x00", 2);
    assert_memory_equal(b + 4, "\x12\x34\x56\x78\x08\x09\x0a", 7);
    for (size_t i = 0; i < sizeof b; i++) {
        sum += (uint32_t) b[i] << (i % 2 ? 0 : 8);
    }
    assert_int_equal((sum >> 16) + (sum & 0xffff), 0xffff);
}

static void an_answer_is_ours_by_its_number(void **state)
{
    for (unsigned words = 5; words <= 15; words += 10) {
        uint8_t p[128], icmp[16];
        make_reply(icmp, sizeof icmp);
        size_t size = packet(p, words, icmp, sizeof icmp);
        struct ping_reply r = ping_parse(p, size, ID);
        assert_int_equal(r.kind, PING_ANSWER);
        assert_int_equal(r.seq, 7);
        assert_int_equal(r.from, 0x0a800002);
        assert_int_equal(ping_parse(p, size, ID + 1).kind, PING_NOT_OURS);
    }
}

static void what_is_no_answer_is_not_ours(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {
        {0, 0x65}, {0, 0x44}, {0, 0x4f}, /* IPv6, a short header, one that is longer than it all. */
        {9, 17},   {6, 0x1f}, {7, 1},    /* UDP, and parts of a packet that are not the first. */
        {IP, 8},   {IP, 5},   {IP + 4, 0}, /* A request, a redirect, another's number. */
    };
    uint8_t p[128], icmp[8];
    make_reply(icmp, sizeof icmp);
    size_t size = packet(p, 5, icmp, sizeof icmp);
    assert_int_equal(ping_parse(p, size, ID).kind, PING_ANSWER);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(ping_parse(p, i, ID).kind, PING_NOT_OURS);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t before = p[wrong[i].at];
        p[wrong[i].at] = wrong[i].value;
        assert_int_equal(ping_parse(p, size, ID).kind, PING_NOT_OURS);
        p[wrong[i].at] = before;
    }
}

static void who_cannot_be_reached_is_said_by_a_quote(void **state)
{
    uint8_t p[256], quoted[64], request[8], icmp[8 + sizeof quoted] = {3, 13};
    ping_put(request, sizeof request, ID, 9);
    size_t n = packet(quoted, 5, request, sizeof request);
    memcpy(icmp + 8, quoted, n);
    size_t size = packet(p, 5, icmp, 8 + n);
    struct ping_reply r = ping_parse(p, size, ID);
    assert_int_equal(r.kind, PING_UNREACHABLE);
    assert_int_equal(r.code, 13);
    assert_int_equal(r.seq, 9);
    assert_int_equal(r.from, 0x0a800002);
    assert_int_equal(ping_parse(p, size, ID + 1).kind, PING_NOT_OURS);
    assert_int_equal(ping_parse(p, size - 1, ID).kind, PING_NOT_OURS);
    assert_int_equal(ping_parse(p, IP + 8, ID).kind, PING_NOT_OURS);
    p[IP + 8 + IP] = 0; /* It quotes an answer. */
    assert_int_equal(ping_parse(p, size, ID).kind, PING_NOT_OURS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_as_the_rfc_says),
        cmocka_unit_test(an_answer_is_ours_by_its_number),
        cmocka_unit_test(what_is_no_answer_is_not_ours),
        cmocka_unit_test(who_cannot_be_reached_is_said_by_a_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
