/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of the embedded store: one per row, and one of all rows together.
 *
 * A row's checksum is over all of its columns: it shows a changed byte.  The total is the number
 * of rows and the sum of their checksums modulo 2^64: it shows a row that is missing, that
 * reappeared, or whose key changed, as such rows may have a good checksum of their own. Pure,
 * except for registering the SQL functions. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One row; the strings are borrowed. */
struct sqlite_row {
    uint64_t revision, prev_revision;
    const char *key;
    size_t key_size;
    bool deletion;
    const void *value; /* For a deletion, or when 'value_size' is 0: ignored. */
    size_t value_size;
};
uint64_t sqlite_row_sum(const struct sqlite_row *row);
/* Reads columns rev, prev_rev, key, value of a statement, from column 'first' on; valid
 * until its next step. */
struct sqlite_row sqlite_row_of(sqlite3_stmt *st, int first);

struct sqlite_total {
    uint64_t n, sum;
};
void sqlite_total_add(struct sqlite_total *t, uint64_t row_sum);
void sqlite_total_remove(struct sqlite_total *t, uint64_t row_sum);
bool sqlite_total_equal(const struct sqlite_total *a, const struct sqlite_total *b);

/* SQL: row_sum(rev, prev_rev, key, value), and the aggregate sum_of_sums(sum).  Returns
 * SQLite's code. */
int sqlite_sum_register(sqlite3 *sql);
