/* SPDX-License-Identifier: Apache-2.0 */
/* Common functions of the benchmarks in C: times, quantiles, numbers of the command line, and
 * results for tools/bench.  A benchmark that cannot go on says why and exits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Milliseconds since 'start_ns' (time_mono_ns). */
double measure_ms_since(uint64_t start_ns);
/* The value below which 'part' (0 to 1) of the 'n' > 0 values are; sorts them. */
double measure_quantile(double *values, size_t n, double part);
/* The same of nanoseconds, in milliseconds. */
double measure_quantile_ns(uint64_t *values, size_t n, double part);
/* The number that 's' is, of 'min' to 'max'; another ends the program. */
size_t measure_number(const char *s, size_t min, size_t max);
/* Appends a result to the file that the environment's TENET_BENCH_ROWS names, as bench/result.py
 * does; without that variable, does nothing.  'peer' NULL: there is no peer. */
void measure_result(const char *measure, double value, const char *unit, const char *peer,
                    double peer_value);
