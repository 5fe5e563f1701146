/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xxh64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Checksums that the reference implementation gives. */
static void checksums_are_those_of_the_specification(void **state)
{
    static const struct {
        const char *text;
        uint64_t sum;
    } cases[] = {{"", 0xef46db3751d8e999u},
                 {"a", 0xd24ec4f1a98c6e5bu},
                 {"abc", 0x44bc2cf5ad770999u},
                 {"The quick brown fox jumps over the lazy dog", 0x0b242d361fda71bcu}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(xxh64(cases[i].text, strlen(cases[i].text), 0) == cases[i].sum);
    }
}

/* At every length there is, up to more than two stripes; from an odd address, too. */
static void each_bit_and_the_seed_count(void **state)
{
    unsigned char room[81] = {0}, *p = room + 1;
    for (size_t size = 0; size <= 80; size++) {
        uint64_t sum = xxh64(p, size, 1);
        assert_true(sum != xxh64(p, size, 2));
        assert_true(size == 80 || sum != xxh64(p, size + 1, 1));
        for (size_t bit = 0; bit < 8 * size; bit++) {
            p[bit / 8] ^= (unsigned char) (1 << bit % 8);
            assert_true(xxh64(p, size, 1) != sum);
            p[bit / 8] ^= (unsigned char) (1 << bit % 8);
        }
        assert_true(xxh64(p, size, 1) == sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_those_of_the_specification),
        cmocka_unit_test(each_bit_and_the_seed_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
