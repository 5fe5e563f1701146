/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones as the IANA database has them on disk: TZif files (RFC 9636).
 *
 * Why not the C library's: its zone is one for the whole process, and a CronJob has its own.  Times
 * of the file's transitions are enough for the decades that Debian's files cover; the rule behind
 * them is not evaluated, so a file whose transitions end while its rule goes on is refused.  Pure.
 * */
#pragma once

#include "base/err.h"

struct tzif;
/* 'now_s' (seconds since 1970): the file's transitions must go beyond it if it has a rule about
 * daylight saving.  -EINVAL with the reason. */
int tzif_parse(const void *data, size_t size, int64_t now_s, struct tzif **ret, struct err *e);
struct tzif *tzif_free(struct tzif *z);
DEFINE_CLEANUP(struct tzif *, tzif_free)
/* Seconds to add to UTC; 'z' NULL: UTC itself. */
int32_t tzif_offset(const struct tzif *z, int64_t utc_s);
