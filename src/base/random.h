/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes of the kernel (getrandom(2)), as they are and as text.
 *
 * For secrets, identifiers and seeds alike. A call cannot fail: for up to 256 bytes the kernel
 * neither blocks nor stops early once it is seeded; anything else ends the program. Any thread may
 * call these functions. */
#pragma once

#include "base/macro.h"

/* Bytes of a UUID's text, with the NUL. */
#define RANDOM_UUID_SIZE 37

/* Fills 'p' with 'size' bytes, at most 256. */
void random_bytes(void *p, size_t size);
/* Writes 'size' random bytes (at most 128) as 2 * size lower-case hexadecimal digits and a NUL. */
void random_hex(char *out, size_t size);
/* A UUID of version 4 (RFC 9562), in lower case. */
void random_uuid(char out[RANDOM_UUID_SIZE]);
