/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as Kubernetes' types Time and MicroTime have them: RFC 3339 texts.
 *
 * The API server takes exactly what Go's time.Parse takes for the layout of the type, with the same
 * words when it refuses a text: a MicroTime has six digits after the second, no more and no fewer.
 * Pure; shared by all threads. */
#pragma once

#include "base/err.h"
#include "base/timeutil.h"

struct moment {
    int64_t s; /* Seconds since 1970, UTC. */
    int32_t ns;
};

/* Year 1, which Go takes for "no time". */
#define MOMENT_NONE_S INT64_C(-62135596800)
/* The years 1000 to 9999, which moment_format writes. */
#define MOMENT_MIN_S INT64_C(-30610224000)
#define MOMENT_MAX_S INT64_C(253402300799)

/* 'micro': a MicroTime.  -EINVAL, with Go's words in 'e'. */
int moment_parse(const char *text, bool micro, struct moment *ret, struct err *e);
/* Writes the text in UTC: a Time without a fraction, a MicroTime with six digits.  -ERANGE: another
 * year. */
int moment_format(const struct moment *m, bool micro, char out[TIME_TEXT_SIZE]);
