/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks in C share: how long something took, what of many figures counts, and the numbers of
 * their command lines.  A benchmark that cannot go on says why and exits: half a figure is none. */
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
