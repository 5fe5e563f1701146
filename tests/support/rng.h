/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for tests: of one seed always the same (splitmix64).  One thread. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

void rng_start(uint64_t seed);
uint64_t rng(void);
static inline uint32_t below(uint64_t n)
{
    return (uint32_t) (rng() % n);
}
static inline bool chance(unsigned percent)
{
    return below(100) < percent;
}
#define PICK(array) ((array)[below(ARRAY_SIZE(array))])

/* A number of the environment; the test fails when it is none. */
uint64_t rng_setting(const char *name, uint64_t dflt);
/* Where 'n' seeds begin: as the environment says, or another number each time.  Prints it. */
uint64_t rng_first_seed(const char *name, uint64_t n, const char *what);
