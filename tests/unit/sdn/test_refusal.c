/* SPDX-License-Identifier: Apache-2.0 */
/* ICMP errors: what they look like, what gets none, and how often. */
#include "sdn/refusal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POD 0x0a800002u
#define GATEWAY 0x0a800001u

static const struct refusal_sender sender = {
    .ip = POD, .mac = {{0x0a, 0x58, 10, 128, 0, 2}}, .gateway = GATEWAY};

/* A frame of the pod to 10.130.0.5: TCP, 8 bytes of it. */
static const uint8_t frame[] = {
    0x0a, 0x58, 10, 128, 0, 1, 0x0a, 0x58, 10, 128, 0, 2, 0x08, 0x00, /* Ethernet */
    0x45, 0,    0,  28,  0, 1, 0,    0,    64, 6,   0, 0, 10,   128,
    0,    2,    10, 130, 0, 5, 0x0f, 0xa0, 0,  80,  0, 0, 0,    1};
enum {
    ETH = 14,
    IP_FLAGS = ETH + 6,
    IP_PROTO = ETH + 9,
    IP_SRC = ETH + 12,
    IP_DST = ETH + 16,
    L4 = 34
};

static size_t answer(const uint8_t *f, size_t size)
{
    uint8_t out[REFUSAL_SIZE_MAX];
    return refusal_make(&sender, 1, f, size, out);
}

/* The frame with one byte changed. */
static size_t answer_with(size_t at, uint8_t value)
{
    uint8_t f[sizeof frame];
    memcpy(f, frame, sizeof f);
    f[at] = value;
    return answer(f, sizeof f);
}

static uint16_t sum_of(const uint8_t *p, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += 2) {
        sum += (uint32_t) p[i] << 8 | p[i + 1];
    }
    return (uint16_t) ((sum & 0xffff) + (sum >> 16));
}

static void error_comes_from_the_gateway_and_quotes_the_packet(void **state)
{
    static const uint8_t want[] = {0x0a, 0x58, 10,   128,  0, 2,  0x0a, 0x58, 10, 128, 0,  1,
                                   0x08, 0x00, 0x45, 0xc0, 0, 56, 0,    0,    0,  0,   64, 1};
    uint8_t out[REFUSAL_SIZE_MAX];
    size_t n = refusal_make(&sender, 13, frame, sizeof frame, out);
    assert_int_equal(n, 14 + 20 + 8 + 28);
    assert_memory_equal(out, want, sizeof want);
    assert_memory_equal(out + 26, ((uint8_t[]){10, 128, 0, 1, 10, 128, 0, 2}), 8);
    assert_int_equal(out[34], 3);
    assert_int_equal(out[35], 13);
    assert_memory_equal(out + 42, frame + ETH, 28);
    assert_int_equal(sum_of(out + 14, 20), 0xffff);
    assert_int_equal(sum_of(out + 34, n - 34), 0xffff);
}

static void only_the_pods_own_packets_are_answered(void **state)
{
    assert_int_not_equal(answer(frame, sizeof frame), 0);
    assert_int_equal(answer_with(6 + 5, 3), 0);      /* Another's Ethernet address, */
    assert_int_equal(answer_with(IP_SRC + 3, 3), 0); /* ... IP address, */
    assert_int_equal(answer_with(13, 6), 0);         /* ARP, */
    assert_int_equal(answer_with(ETH, 0x65), 0);     /* IPv6 in disguise, */
    assert_int_equal(answer_with(ETH, 0x44), 0);     /* ... a header too short. */
    for (size_t n = 0; n < sizeof frame; n++) {
        assert_int_equal(answer(frame, n), 0);
    }
}

static void rfc_1122_names_what_gets_no_error(void **state)
{
    assert_int_equal(answer_with(IP_FLAGS + 1, 1), 0); /* A later fragment. */
    assert_int_not_equal(answer_with(IP_FLAGS, 0x20), 0);
    assert_int_equal(answer_with(IP_DST, 224), 0);
    assert_int_equal(answer_with(IP_DST, 255), 0);
    assert_int_equal(answer_with(IP_DST, 0), 0);
    for (unsigned type = 0; type <= UINT8_MAX; type++) {
        uint8_t f[sizeof frame];
        memcpy(f, frame, sizeof f);
        f[IP_PROTO] = 1;
        f[L4] = (uint8_t) type;
        bool question = type == 8 || type == 13 || type == 15 || type == 17;
        assert_int_equal(answer(f, sizeof f) != 0, question);
    }
}

/* What depends on other pods must look the same whether they exist, are forbidden, or not. */
static void nothing_that_depends_on_other_pods_is_refused_aloud(void **state)
{
    unsigned aloud = 0;
    for (enum model_cause c = 0; c < MODEL_N_CAUSES; c++) {
        aloud += refusal_code(c) >= 0;
    }
    assert_int_equal(aloud, 5);
    assert_int_equal(refusal_code(MODEL_NO_SUCH_NODE), 1);
    assert_int_equal(refusal_code(MODEL_SERVICE_NOT_AVAILABLE), 3);
    assert_int_equal(refusal_code(MODEL_SERVICE_NO_ENDPOINTS), 3);
    assert_int_equal(refusal_code(MODEL_SERVICE_FOREIGN), -1);
    assert_int_equal(refusal_code(MODEL_FORGED_TUNNEL), 13);
    assert_int_equal(refusal_code(MODEL_METADATA), 13);
    assert_int_equal(refusal_code(MODEL_NO_SUCH_POD), -1);
    assert_int_equal(refusal_code(MODEL_VNID_MISMATCH), -1);
}

static void a_pod_gets_ten_at_once_and_ten_a_second(void **state)
{
    struct refusal_bucket b = {0};
    unsigned sent = 0;
    for (uint64_t t = 50000; t < 50100; t++) {
        sent += refusal_allowed(&b, t);
    }
    assert_int_equal(sent, REFUSALS_PER_S);
    for (uint64_t t = 50100; t < 60100; t++) {
        sent += refusal_allowed(&b, t);
    }
    assert_in_range(sent, REFUSALS_PER_S * 11 - 1, REFUSALS_PER_S * 11 + 1);
    /* In no second are there more than the burst and the rate. */
    assert_false(refusal_allowed(&b, 60100) && refusal_allowed(&b, 60100));
    struct refusal_bucket fresh = {0};
    assert_true(refusal_allowed(&fresh, 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_comes_from_the_gateway_and_quotes_the_packet),
        cmocka_unit_test(only_the_pods_own_packets_are_answered),
        cmocka_unit_test(rfc_1122_names_what_gets_no_error),
        cmocka_unit_test(nothing_that_depends_on_other_pods_is_refused_aloud),
        cmocka_unit_test(a_pod_gets_ten_at_once_and_ten_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
