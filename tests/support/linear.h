/* SPDX-License-Identifier: Apache-2.0 */
/* Is a history of operations on one register linearizable?  The algorithm of Wing and Gong with Lowe's
 * memory of configurations ("Testing for linearizability", 2017).  Registers are independent, so a store is
 * checked key by key.
 *
 * An operation takes effect at one moment between its begin and its end.  One whose outcome is not known may do so at
 * any time after its begin, or never.  Pure; nothing is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINEAR_ABSENT INT64_C(0) /* The value of a register that is not there. */
#define LINEAR_UNKNOWN UINT64_MAX

enum linear_kind {
    LINEAR_READ,  /* Has found 'value'. */
    LINEAR_WRITE, /* Has set 'value', whatever was there. */
    LINEAR_SWAP,  /* Has set 'value' if 'from' was there: 'done' tells. */
};

struct linear_op {
    uint64_t begin,
        end; /* Of the call, by one clock; 'end' LINEAR_UNKNOWN: the outcome is not known. */
    enum linear_kind kind;
    int64_t from, value;
    bool done; /* Of a swap. */
};

/* 'ops' in any order; 'initial' is the register's value before all of them. */
bool linear_check(const struct linear_op *ops, size_t n, int64_t initial);
