/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/sqlite_sum.h"

#include "base/xxh64.h"

#include <endian.h>

uint64_t sqlite_row_sum(const struct sqlite_row *row)
{
    uint64_t numbers[3] = {htole64(row->revision), htole64(row->prev_revision),
                           htole64(row->deletion ? UINT64_MAX : row->value_size)};
    uint64_t sum = xxh64(row->key, row->key_size, xxh64(numbers, sizeof numbers, 0));
    return row->deletion ? sum : xxh64(row->value, row->value_size, sum);
}

struct sqlite_row sqlite_row_of(sqlite3_stmt *st, int first)
{
    const char *key = (const char *) sqlite3_column_text(st, first + 2);
    bool deletion = sqlite3_column_type(st, first + 3) == SQLITE_NULL;
    return (struct sqlite_row){
        .revision = (uint64_t) sqlite3_column_int64(st, first),
        .prev_revision = (uint64_t) sqlite3_column_int64(st, first + 1),
        .key = key ? key : "",
        .key_size = key ? (size_t) sqlite3_column_bytes(st, first + 2) : 0,
        .deletion = deletion,
        .value = deletion ? NULL : sqlite3_column_blob(st, first + 3),
        .value_size = deletion ? 0 : (size_t) sqlite3_column_bytes(st, first + 3),
    };
}

void sqlite_total_add(struct sqlite_total *t, uint64_t row_sum)
{
    t->n++;
    t->sum += row_sum;
}

void sqlite_total_remove(struct sqlite_total *t, uint64_t row_sum)
{
    t->n--;
    t->sum -= row_sum;
}

bool sqlite_total_equal(const struct sqlite_total *a, const struct sqlite_total *b)
{
    return a->n == b->n && a->sum == b->sum;
}

/* ---- in SQL ---- */

static void row_sum(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    struct sqlite_row row = {.revision = (uint64_t) sqlite3_value_int64(v[0]),
                             .prev_revision = (uint64_t) sqlite3_value_int64(v[1]),
                             .deletion = sqlite3_value_type(v[3]) == SQLITE_NULL};
    row.key = (const char *) sqlite3_value_text(v[2]);
    row.key_size = (size_t) sqlite3_value_bytes(v[2]);
    row.value = sqlite3_value_blob(v[3]);
    row.value_size = (size_t) sqlite3_value_bytes(v[3]);
    sqlite3_result_int64(ctx, (int64_t) sqlite_row_sum(&row));
}

static void total_step(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t *sum = sqlite3_aggregate_context(ctx, sizeof *sum);
    if (sum) {
        *sum += (uint64_t) sqlite3_value_int64(v[0]);
    }
}

static void total_final(sqlite3_context *ctx)
{
    const uint64_t *sum = sqlite3_aggregate_context(ctx, 0);
    sqlite3_result_int64(ctx, sum ? (int64_t) *sum : 0);
}

int sqlite_sum_register(sqlite3 *sql)
{
    int rc = sqlite3_create_function_v2(sql, "row_sum", 4, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                        row_sum, NULL, NULL, NULL);
    return rc != SQLITE_OK ? rc
                           : sqlite3_create_function_v2(sql, "sum_of_sums", 1, SQLITE_UTF8, NULL,
                                                        NULL, total_step, total_final, NULL);
}
