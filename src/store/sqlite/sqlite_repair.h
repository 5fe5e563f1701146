/* SPDX-License-Identifier: Apache-2.0 */
/* Finds each damaged row of an embedded store's file, and creates a file without them.
 *
 * Reads around pages that cannot be read.  All calls block; errors name the file. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of text for each damage. */
typedef void sqlite_finding_fn(void *ctx, const char *text);

/* Reads all rows of 'path', also while a master works on it: '*ret_n' is the number of findings. */
int sqlite_scan(const char *path, sqlite_finding_fn *fn, void *ctx, size_t *ret_n, struct err *e);

struct sqlite_repair {
    size_t n_findings;
    size_t n_keys, n_dropped; /* Number of remaining keys, and of removed ones. */
    uint64_t revision;
    char *kept; /* Path of the damaged file now; owned. */
    bool holds_subnets,
        holds_vnids; /* Numbers of that kind may have been lost: none is allocated. */
};
/* Puts a file with the newest state of all keys whose rows are good in the place of 'path', and
 * keeps the damaged one beside it.  A key with a damaged row is dropped completely, as its
 * earlier value is outdated. If a HostSubnet or a NetNamespace may be lost, the key
 * STORE_HOLD_KEY of its kind is created. Does nothing without damage.  -EBUSY: a master works on
 * it; -EUCLEAN: nothing of it can be read. */
int sqlite_repair(const char *path, sqlite_finding_fn *fn, void *ctx, struct sqlite_repair *ret,
                  struct err *e);
