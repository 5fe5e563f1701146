/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xxh64.h"

#include <endian.h>
#include <string.h>

#define P1 0x9E3779B185EBCA87u
#define P2 0xC2B2AE3D27D4EB4Fu
#define P3 0x165667B19E3779F9u
#define P4 0x85EBCA77C2B2AE63u
#define P5 0x27D4EB2F165667C5u
#define STRIPE 32

static uint64_t rotate(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}

static uint64_t load64(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return le64toh(v);
}

static uint32_t load32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

static uint64_t lane_round(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * P2, 31) * P1;
}

/* All whole stripes from '*p' on. */
static uint64_t stripes(const unsigned char **p, size_t *size, uint64_t seed)
{
    uint64_t lane[4] = {seed + P1 + P2, seed + P2, seed, seed - P1};
    for (; *size >= STRIPE; *size -= STRIPE, *p += STRIPE) {
        for (unsigned i = 0; i < 4; i++) {
            lane[i] = lane_round(lane[i], load64(*p + 8 * i));
        }
    }
    uint64_t h =
        rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (unsigned i = 0; i < 4; i++) {
        h = (h ^ lane_round(0, lane[i])) * P1 + P4;
    }
    return h;
}

uint64_t xxh64(const void *bytes, size_t size, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t length = size;
    uint64_t h = (size >= STRIPE ? stripes(&p, &size, seed) : seed + P5) + length;
    for (; size >= 8; size -= 8, p += 8) {
        h = rotate(h ^ lane_round(0, load64(p)), 27) * P1 + P4;
    }
    if (size >= 4) {
        h = rotate(h ^ load32(p) * P1, 23) * P2 + P3;
        size -= 4;
        p += 4;
    }
    for (; size; size--, p++) {
        h = rotate(h ^ *p * P5, 11) * P1;
    }
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}
