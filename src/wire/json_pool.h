/* SPDX-License-Identifier: Apache-2.0 */
/* Equal parts of many JSON values, stored once.
 *
 * The copies that controllers hold of a cluster's pods are mostly equal: containers, tolerations
 * and labels are those of a few workloads.  json_pool_share gives the arrays and objects of the
 * first two levels below a value to a pool, or replaces them by the pool's equal ones.  Such a part
 * is counted by reference: json_free of each value that has it releases it.
 *
 * A value with shared parts must not be changed; json_clone gives a copy that may be.  A pool and
 * the values with its parts belong to one thread. */
#pragma once

#include "wire/json.h"

struct json_pool;

struct json_pool *json_pool_new(void);
/* The parts stay until the values that have them are freed.  Returns NULL. */
struct json_pool *json_pool_free(struct json_pool *p);
/* Shares parts of 'v', an array or object that the caller owns, and goes on to own. */
void json_pool_share(struct json_pool *p, struct json *v);
/* The number of different parts. */
size_t json_pool_count(const struct json_pool *p);
