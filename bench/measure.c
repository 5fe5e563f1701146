/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "base/str.h"
#include "base/timeutil.h"

double measure_ms_since(uint64_t start_ns)
{
    return (double) (time_mono_ns() - start_ns) / 1e6;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return (x > y) - (x < y);
}

static size_t place(size_t n, double part)
{
    return MIN(n - 1, (size_t) ((double) n * part));
}

double measure_quantile(double *values, size_t n, double part)
{
    qsort(values, n, sizeof *values, compare_doubles);
    return values[place(n, part)];
}

double measure_quantile_ns(uint64_t *values, size_t n, double part)
{
    qsort(values, n, sizeof *values, compare_u64);
    return (double) values[place(n, part)] / 1e6;
}

size_t measure_number(const char *s, size_t min, size_t max)
{
    uint64_t v = 0;
    if (str_to_u64(s, max, &v) < 0 || v < min) {
        fprintf(stderr, "\"%s\" is not a number of %zu to %zu\n", s, min, max);
        exit(2);
    }
    return (size_t) v;
}

/* Four digits, and all of those before the point. */
static void write_digits(FILE *f, double value)
{
    if (value >= 1000) {
        fprintf(f, "%.0f", value);
    } else {
        fprintf(f, "%.4g", value);
    }
}

void measure_result(const char *measure, double value, const char *unit, const char *peer,
                    double peer_value)
{
    const char *path = getenv("TENET_BENCH_ROWS");
    if (!path) {
        return;
    }
    FILE *f = fopen(path, "a");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    fprintf(f, "%s\t", measure);
    write_digits(f, value);
    fprintf(f, "\t%s\t", unit);
    if (peer) {
        fprintf(f, "%s\t", peer);
        write_digits(f, peer_value);
        fprintf(f, "\t%.3g\n", value / peer_value);
    } else {
        fputs("\t\t\n", f);
    }
    fclose(f);
}
