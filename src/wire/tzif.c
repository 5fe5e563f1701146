/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tzif.h"

#include "base/mem.h"

#include <string.h>

#define HEADER 44
#define MAX_COUNT 65536  /* Of transitions, in any file that is one. */
#define MAX_OFFSET 93600 /* 26 hours: RFC 9636, section 3.2. */

struct tzif {
    size_t n;
    int64_t *at;     /* Times of transitions, ascending. */
    int32_t *offset; /* The offset from each on. */
    int32_t first;   /* The offset before the first transition. */
};

/* Counts of a header. */
struct counts {
    uint32_t isut, isstd, leap, time, type, chars;
};

static uint32_t read32(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static int64_t read64(const uint8_t *p)
{
    return (int64_t) ((uint64_t) read32(p) << 32 | read32(p + 4));
}

static bool read_header(const uint8_t *p, size_t size, struct counts *ret)
{
    if (size < HEADER || memcmp(p, "TZif", 4) != 0 || p[4] < '2') {
        return false;
    }
    *ret = (struct counts){read32(p + 20), read32(p + 24), read32(p + 28),
                           read32(p + 32), read32(p + 36), read32(p + 40)};
    return ret->isut <= MAX_COUNT && ret->isstd <= MAX_COUNT && ret->leap <= MAX_COUNT &&
           ret->time <= MAX_COUNT && ret->type >= 1 && ret->type <= 256 && ret->chars <= MAX_COUNT;
}

/* Bytes of the data after a header; 'width': of a time. */
static size_t data_size(const struct counts *c, size_t width)
{
    return c->time * width + c->time + c->type * 6 + c->chars + c->leap * (width + 4) + c->isstd +
           c->isut;
}

/* The footer is a rule about daylight saving. */
static bool has_rule(const uint8_t *p, size_t size)
{
    return size > 0 && *p == '\n' && memchr(p, ',', size) != NULL;
}

/* Fills 'z' from the data of the second header; false: they contradict themselves. */
static bool read_data(const uint8_t *p, const struct counts *c, struct tzif *z)
{
    const uint8_t *index = p + c->time * 8, *types = index + c->time;
    int32_t offsets[256];
    for (uint32_t i = 0; i < c->type; i++) {
        offsets[i] = (int32_t) read32(types + i * 6);
        if (offsets[i] < -MAX_OFFSET || offsets[i] > MAX_OFFSET) {
            return false;
        }
    }
    z->first = offsets[0];
    for (size_t i = 0; i < c->time; i++) {
        z->at[i] = read64(p + i * 8);
        if (index[i] >= c->type || (i > 0 && z->at[i] <= z->at[i - 1])) {
            return false;
        }
        z->offset[i] = offsets[index[i]];
    }
    z->n = c->time;
    return true;
}

int tzif_parse(const void *data, size_t size, int64_t now_s, struct tzif **ret, struct err *e)
{
    const uint8_t *p = data;
    struct counts c;
    if (!read_header(p, size, &c) || size - HEADER < data_size(&c, 4)) {
        return err_set(e, -EINVAL, "not a TZif file of version 2");
    }
    size_t skip = HEADER + data_size(&c, 4);
    p += skip;
    size -= skip;
    if (!read_header(p, size, &c) || size - HEADER < data_size(&c, 8)) {
        return err_set(e, -EINVAL, "the TZif file ends too early");
    }
    CLEANUP(tzif_free) struct tzif *z = NEW(struct tzif);
    z->at = xcalloc((size_t) c.time + 1, sizeof *z->at);
    z->offset = xcalloc((size_t) c.time + 1, sizeof *z->offset);
    if (!read_data(p + HEADER, &c, z)) {
        return err_set(e, -EINVAL, "the TZif file contradicts itself");
    }
    skip = HEADER + data_size(&c, 8);
    if (has_rule(p + skip, size - skip) && (!z->n || z->at[z->n - 1] < now_s)) {
        return err_set(e, -EINVAL, "the TZif file has no transitions for the present time");
    }
    *ret = TAKE(z);
    return 0;
}

struct tzif *tzif_free(struct tzif *z)
{
    if (z) {
        free(z->at);
        free(z->offset);
        free(z);
    }
    return NULL;
}

int32_t tzif_offset(const struct tzif *z, int64_t utc_s)
{
    size_t low = 0, high = z ? z->n : 0;
    while (low < high) { /* The first transition after the time. */
        size_t middle = low + (high - low) / 2;
        if (z->at[middle] <= utc_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return !z ? 0 : low ? z->offset[low - 1] : z->first;
}
