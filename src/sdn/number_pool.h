/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a range, each given out once: addresses of the service network, node ports.  Pure.
 *
 * One bit a number.  Which number is chosen follows a seed of the caller's, so that several masters that choose at the
 * same time seldom meet; they are kept from giving the same one by the store (docs/services.md), not here.  A band at
 * the beginning is chosen from only when the rest is used up: who asks for a certain number finds those of the band
 * free longest (KEP-3070).  The struct belongs to whoever made it; not thread-safe. */
#pragma once

#include "base/ip.h"

struct number_pool {
    uint32_t first, n; /* n 0: empty. */
    uint32_t band;     /* The numbers first .. first + band - 1 come last. */
    uint32_t taken;
    uint64_t *bits;
};

/* Numbers first .. first + n - 1, all free. */
void number_pool_init(struct number_pool *p, uint32_t first, uint32_t n);
/* The addresses of 'net' but the first and the last, which are no host's: of 172.30.0.0/16 172.30.0.1 to
 * 172.30.255.254.  A /31 and a /32 have none. */
void number_pool_init_net(struct number_pool *p, struct ip4_prefix net);
/* The first number is not of the pool any more; before anything is taken. */
void number_pool_reserve_first(struct number_pool *p);
void number_pool_done(struct number_pool *p);
void number_pool_clear(struct number_pool *p); /* All are free. */

bool number_pool_has(const struct number_pool *p, uint32_t number); /* It is in the range. */
bool number_pool_is_free(const struct number_pool *p, uint32_t number);
/* Both do nothing outside the range, and when it is so already. */
void number_pool_take(struct number_pool *p, uint32_t number);
void number_pool_give(struct number_pool *p, uint32_t number);
/* A free number, which is taken then; which of them follows from 'seed'.  -ENOSPC: there is none. */
int number_pool_choose(struct number_pool *p, uint64_t seed, uint32_t *ret);
