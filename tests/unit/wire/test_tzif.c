/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones of the IANA database: a file as Debian has it, and files that are wrong. */
#include "wire/tzif.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SUMMER INT64_C(1782907200) /* 2026-07-01T12:00:00Z */
#define WINTER INT64_C(1767268800) /* 2026-01-01T12:00:00Z */

static void put(uint8_t **p, uint64_t n, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        *(*p)++ = (uint8_t) (n >> (8 * i));
    }
}

static void put_header(uint8_t **p, uint32_t times, uint32_t types)
{
    memcpy(*p, "TZif2", 5);
    memset(*p + 5, 0, 15);
    *p += 20;
    const uint32_t counts[] = {0, 0, 0, times, types, 4};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        put(p, counts[i], 4);
    }
}

/* A file with two transitions: +1 h from 'a' on, +2 h from 'b' on; 0 before. */
static size_t make(uint8_t *out, int64_t a, int64_t b, const char *footer)
{
    uint8_t *p = out;
    put_header(&p, 0, 1);
    put(&p, 0, 4);
    put(&p, 0, 2);
    memcpy(p, "UTC", 4);
    p += 4;
    put_header(&p, 2, 3);
    put(&p, (uint64_t) a, 8);
    put(&p, (uint64_t) b, 8);
    put(&p, 1, 1);
    put(&p, 2, 1);
    for (uint32_t i = 0; i < 3; i++) {
        put(&p, i * 3600, 4);
        put(&p, 0, 2);
    }
    memcpy(p, "UTC", 4);
    p += 4;
    memcpy(p, footer, strlen(footer));
    return (size_t) (p - out) + strlen(footer);
}

static void offsets_follow_the_transitions(void **state)
{
    uint8_t file[512];
    struct err e = {0};
    CLEANUP(tzif_free) struct tzif *z = NULL;
    size_t size = make(file, 1000, 2000, "\nCET-1CEST,M3.5.0,M10.5.0/3\n");
    assert_int_equal(tzif_parse(file, size, 1500, &z, &e), 0);
    assert_int_equal(tzif_offset(z, 999), 0);
    assert_int_equal(tzif_offset(z, 1000), 3600);
    assert_int_equal(tzif_offset(z, 1999), 3600);
    assert_int_equal(tzif_offset(z, 2000), 7200);
    assert_int_equal(tzif_offset(z, INT64_MAX), 7200);
    assert_int_equal(tzif_offset(z, INT64_MIN), 0);
    assert_int_equal(tzif_offset(NULL, 5), 0);
}

static void a_rule_without_transitions_is_refused(void **state)
{
    uint8_t file[512];
    struct err e = {0};
    struct tzif *z = NULL;
    size_t size = make(file, 1000, 2000, "\nCET-1CEST,M3.5.0,M10.5.0/3\n");
    assert_int_equal(tzif_parse(file, size, 2001, &z, &e), -EINVAL);
    assert_non_null(strstr(e.text, "no transitions for the present time"));
    size = make(file, 1000, 2000, "\nCET-1\n");
    assert_int_equal(tzif_parse(file, size, 2001, &z, &e), 0);
    tzif_free(z);
}

static void wrong_files_are_refused(void **state)
{
    uint8_t file[512], other[512];
    struct err e = {0};
    struct tzif *z = NULL;
    size_t size = make(file, 1000, 2000, "");
    for (size_t i = 0; i < size; i++) { /* Nothing is read beyond the end. */
        uint8_t *part = xmemdup(file, i + 1);
        assert_int_equal(tzif_parse(part, i, 0, &z, &e), -EINVAL);
        free(part);
    }
    size = make(file, 2000, 1000, "");
    assert_int_equal(tzif_parse(file, size, 0, &z, &e), -EINVAL);
    size = make(file, 1000, 2000, "");
    memcpy(other, file, size);
    other[4] = 0; /* Version 1. */
    assert_int_equal(tzif_parse(other, size, 0, &z, &e), -EINVAL);
    memcpy(other, file, size);
    other[size - 4 - 18 - 1] = 3; /* An unknown type. */
    assert_int_equal(tzif_parse(other, size, 0, &z, &e), -EINVAL);
    memcpy(other, file, size);
    other[size - 4 - 6] = 0x7f; /* An offset of years. */
    assert_int_equal(tzif_parse(other, size, 0, &z, &e), -EINVAL);
    assert_null(z);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_follow_the_transitions),
        cmocka_unit_test(a_rule_without_transitions_is_refused),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
