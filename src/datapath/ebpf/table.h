/* SPDX-License-Identifier: Apache-2.0 */
/* A map of the kernel that the agent keeps at its desired rows by the smallest difference.
 *
 * The map is read once; its contents are known from then on, as only this module writes it. On
 * one thread at a time. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define TABLE_KEY_MAX 16
#define TABLE_VALUE_MAX 32

struct table_row {
    /* Unused bytes at the end are zero. */
    unsigned char key[TABLE_KEY_MAX], value[TABLE_VALUE_MAX];
    bool refused; /* table_sync's. */
};

struct table {
    int fd; /* Borrowed. */
    size_t key_size, value_size;
    bool is_array; /* A value of zeros means no entry. */
    struct table_row *rows;
    size_t n;
};

/* Reads the map 'fd', whose sizes must not be above those above. */
int table_load(struct table *t, int fd, struct err *e);
void table_done(struct table *t);
/* Makes the map equal to 'rows' (sorted and freed here; the last row of a key counts): adds and
 * changes first, removes last. '*ret_changes' counts; a row that the map refuses is left out and
 * counted in '*ret_refused', with the reason in 'e'. */
void table_sync(struct table *t, struct table_row *rows, size_t n, size_t *ret_changes,
                size_t *ret_refused, struct err *e);
