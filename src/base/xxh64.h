/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64, a fast 64-bit checksum (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
 *
 * It detects accidental changes only: equal checksums can be constructed on purpose. The result
 * is the same on every machine, so that it may be stored.  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Checksums of several parts are chained: the checksum of one part is the seed of the next. */
uint64_t xxh64(const void *p, size_t size, uint64_t seed);
