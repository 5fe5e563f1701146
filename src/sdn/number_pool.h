/* SPDX-License-Identifier: Apache-2.0 */
/* Unique numbers from a range: addresses of the service network, node ports.  Pure.
 *
 * One bit a number.  Which number is chosen follows a seed of the caller's, so that masters that
 * choose at the same time seldom choose the same; the store, not this module, prevents
 * duplicates (docs/services.md). A band at the beginning is used only when the rest is used up,
 * so that its numbers stay free longest for explicit requests (KEP-3070). The caller owns the
 * struct; not thread-safe. */
#pragma once

#include "base/ip.h"

struct number_pool {
    uint32_t first, n; /* n 0: empty. */
    uint32_t band;     /* The numbers first .. first + band - 1 are chosen last. */
    uint32_t taken;
    uint64_t *bits;
};

/* Numbers first .. first + n - 1, all free. */
void number_pool_init(struct number_pool *p, uint32_t first, uint32_t n);
/* The addresses of 'net' except the first and the last: for 172.30.0.0/16 these are 172.30.0.1
 * to 172.30.255.254. A /31 and a /32 have none. */
void number_pool_init_net(struct number_pool *p, struct ip4_prefix net);
/* Removes the first number from the pool; before anything is taken. */
void number_pool_reserve_first(struct number_pool *p);
void number_pool_done(struct number_pool *p);
void number_pool_clear(struct number_pool *p); /* All are free. */

bool number_pool_has(const struct number_pool *p, uint32_t number); /* It is in the range. */
bool number_pool_is_free(const struct number_pool *p, uint32_t number);
/* Both do nothing outside the range, or when the number has that state already. */
void number_pool_take(struct number_pool *p, uint32_t number);
void number_pool_give(struct number_pool *p, uint32_t number);
/* Chooses a free number by 'seed' and takes it. -ENOSPC: none is free. */
int number_pool_choose(struct number_pool *p, uint64_t seed, uint32_t *ret);
