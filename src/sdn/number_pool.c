/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/number_pool.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define BITS 64u
#define BAND_MIN 16u
#define BAND_MAX 256u

static size_t words(const struct number_pool *p)
{
    return ((size_t) p->n + BITS - 1) / BITS;
}

void number_pool_init(struct number_pool *p, uint32_t first, uint32_t n)
{
    *p = (struct number_pool){.first = first, .n = n};
    /* A small range has no reserved band, as in Kubernetes. */
    p->band = n <= BAND_MIN ? 0 : MIN(MAX(BAND_MIN, n / 16), BAND_MAX);
    p->bits = n ? xcalloc(words(p), sizeof *p->bits) : NULL;
}

void number_pool_init_net(struct number_pool *p, struct ip4_prefix net)
{
    uint64_t size = prefix_size(net);
    number_pool_init(p, net.addr + 1, size > 2 ? (uint32_t) (size - 2) : 0);
}

void number_pool_reserve_first(struct number_pool *p)
{
    if (p->n) {
        p->first++;
        p->n--;
        p->band = MIN(p->band, p->n);
    }
}

void number_pool_done(struct number_pool *p)
{
    free(p->bits);
    *p = (struct number_pool){0};
}

void number_pool_clear(struct number_pool *p)
{
    if (p->n) {
        memset(p->bits, 0, words(p) * sizeof *p->bits);
    }
    p->taken = 0;
}

bool number_pool_has(const struct number_pool *p, uint32_t number)
{
    return number >= p->first && number - p->first < p->n;
}

static bool is_taken(const struct number_pool *p, uint32_t i)
{
    return p->bits[i / BITS] >> (i % BITS) & 1;
}

bool number_pool_is_free(const struct number_pool *p, uint32_t number)
{
    return number_pool_has(p, number) && !is_taken(p, number - p->first);
}

void number_pool_take(struct number_pool *p, uint32_t number)
{
    if (number_pool_is_free(p, number)) {
        uint32_t i = number - p->first;
        p->bits[i / BITS] |= UINT64_C(1) << (i % BITS);
        p->taken++;
    }
}

void number_pool_give(struct number_pool *p, uint32_t number)
{
    if (number_pool_has(p, number) && is_taken(p, number - p->first)) {
        uint32_t i = number - p->first;
        p->bits[i / BITS] &= ~(UINT64_C(1) << (i % BITS));
        p->taken--;
    }
}

/* The first free index in from .. to - 1; 'to': none. */
static uint32_t find_free(const struct number_pool *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to;) {
        if (i % BITS == 0 && p->bits[i / BITS] == UINT64_MAX) {
            i = to - i > BITS ? i + BITS : to;
        } else if (is_taken(p, i)) {
            i++;
        } else {
            return i;
        }
    }
    return to;
}

/* From 'seed' to the end of from .. to - 1, then from 'from'. */
static bool choose_in(const struct number_pool *p, uint32_t from, uint32_t to, uint64_t seed,
                      uint32_t *ret)
{
    if (from == to) {
        return false;
    }
    uint32_t start = from + (uint32_t) (seed % (to - from));
    uint32_t i = find_free(p, start, to);
    if (i == to) {
        i = find_free(p, from, start);
        if (i == start) {
            return false;
        }
    }
    *ret = i;
    return true;
}

int number_pool_choose(struct number_pool *p, uint64_t seed, uint32_t *ret)
{
    uint32_t i = 0;
    if (p->taken == p->n ||
        (!choose_in(p, p->band, p->n, seed, &i) && !choose_in(p, 0, p->band, seed, &i))) {
        return -ENOSPC;
    }
    number_pool_take(p, p->first + i);
    *ret = p->first + i;
    return 0;
}
