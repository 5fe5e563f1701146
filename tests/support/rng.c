/* SPDX-License-Identifier: Apache-2.0 */
#include "rng.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>

#include <cmocka.h>

static uint64_t state;

void rng_start(uint64_t seed)
{
    state = seed;
}

uint64_t rng(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t rng_setting(const char *name, uint64_t dflt)
{
    const char *s = getenv(name);
    if (s && str_to_u64(s, UINT64_MAX / 2, &dflt) < 0) {
        fail_msg("%s=%s is not a number", name, s);
    }
    return dflt;
}

uint64_t rng_first_seed(const char *name, uint64_t n, const char *what)
{
    uint64_t first = 0;
    assert_int_equal(getrandom(&first, 4, 0), 4);
    first = rng_setting(name, first);
    print_message("%lu %s from %s=%lu\n", (unsigned long) n, what, name, (unsigned long) first);
    return first;
}
