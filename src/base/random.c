/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char digits[] = "0123456789abcdef";

void random_bytes(void *p, size_t size)
{
    assert(size <= 256);
    if (getrandom(p, size, 0) != (ssize_t) size) {
        abort();
    }
}

void random_hex(char *out, size_t size)
{
    uint8_t bytes[128];
    assert(size <= sizeof bytes);
    random_bytes(bytes, size);
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * size] = '\0';
    explicit_bzero(bytes, sizeof bytes);
}

void random_uuid(char out[RANDOM_UUID_SIZE])
{
    uint8_t bytes[16];
    random_bytes(bytes, sizeof bytes);
    bytes[6] = (uint8_t) ((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (uint8_t) ((bytes[8] & 0x3f) | 0x80);
    char *at = out;
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at = '\0';
}
